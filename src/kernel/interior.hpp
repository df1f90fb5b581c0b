// Interior: an interior point method for programs with a round ball, which it takes as it is, without tangents.
//
// A program falls into small blocks of columns (what a person's number is on both sides, what a pair of neurons is) that
// only the long equations of layers hold together. So Newton's equations shrink to one small dense system, a row for each
// of those equations and one or a few for the ball: a step costs a fraction of a millisecond, and a dozen are enough.
// What it returns are hints, as those of the simplex method are: `Program::bound` evaluates its multipliers.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>

#include "program.hpp"
#include "wide.hpp"

namespace likewise {

constexpr size_t LONG = 4;         // entries from which on a row holds blocks together
constexpr double WIDEN = 1e-7;     // by how much intervals are widened, so that there is an inside
constexpr double START = 1e-2;     // products to begin with
constexpr double STEP = 0.99;      // of the way to the nearest wall
constexpr int ENOUGH = 60, TRIAL_STEPS = 8;  // steps at most, and in a trial

// What never changes: which columns are left once short equations are solved, and how rows hold them together.
struct Shape {
    struct Thing {  // a column or a short row: a.x + constant, within the bounds of a variable of the program
        int variable, first, count, block;
        double constant;
    };
    struct Block {
        std::vector<int> columns, things, rows;  // rows: of the small system, in order
        std::vector<double> on;                  // of each of its rows, the factors of its columns
        bool dense = false;                      // its rows have no holes
    };
    int columns = 0, equations = 0, rows = 0;  // rows: equations, then the uneven directions of the ball and its slope
    std::vector<int> name;                     // of columns, in the program
    std::vector<std::vector<std::pair<int, double>>> of;  // columns of the program by those that are left
    std::vector<double> constant;                         // and what is added
    std::vector<Thing> things;
    std::vector<int> own;  // of things: the column that they are, or -1
    std::vector<int> index;                               // of things: columns within their block
    std::vector<double> value;
    std::vector<Block> blocks;
    std::vector<int> block_of, place_of;
    std::vector<double> given;      // what equations are equal to
    std::vector<int> equation_row;  // rows of the program
    std::vector<int> ball;          // columns that are compared
    double even = 0;                // S = A'A / eps^2 = even I + sum_k sign_k n_k n_k'
    std::vector<double> sign, uneven;

    explicit Shape(const Program &p, const std::vector<double> &low, const std::vector<double> &high) {
        substitute(p);
        std::vector<std::map<int, double>> rows_left;
        std::vector<int> row_names;
        std::vector<double> constants;
        std::vector<uint8_t> used(p.rows, 0);
        for (auto [row, column] : p.solved)
            if (int(size_t(p.start[row + 1] - p.start[row])) <= int(LONG)) used[row] = 1;
        std::vector<int> parent(columns);
        for (int j = 0; j < columns; j++) parent[j] = j;
        auto find = [&](int j) {
            while (parent[j] != j) j = parent[j] = parent[parent[j]];
            return j;
        };
        std::vector<std::map<int, double>> longs;
        std::vector<double> long_constants;
        for (int i = 0; i < p.rows; i++) {
            if (!p.kept[i] || used[i]) continue;
            std::map<int, double> entries;
            double c = 0;
            for (int k = p.start[i]; k < p.start[i + 1]; k++) {
                for (auto [j, by] : of[p.index[k]]) entries[j] += by * p.value[k];
                c += constant[p.index[k]] * p.value[k];
            }
            const bool is_equal = low[p.columns + i] == high[p.columns + i];
            if (entries.size() > LONG && is_equal) {
                equation_row.push_back(i);
                given.push_back(low[p.columns + i] - c);
                longs.push_back(std::move(entries));
                continue;
            }
            int any = -1;
            for (auto &[j, by] : entries) {
                if (any >= 0) parent[find(j)] = find(any);
                any = j;
            }
            row_names.push_back(p.columns + i);
            constants.push_back(c);
            rows_left.push_back(std::move(entries));
        }
        for (int j = 0; j < p.columns; j++) {
            if (p.zero[j] || of[j].empty()) continue;
            std::map<int, double> entries;
            int any = -1;
            for (auto [k, by] : of[j]) {
                entries[k] += by;
                if (any >= 0) parent[find(k)] = find(any);
                any = k;
            }
            row_names.push_back(j);
            constants.push_back(constant[j]);
            rows_left.push_back(std::move(entries));
        }
        block_of.assign(columns, -1);
        place_of.assign(columns, 0);
        for (int j = 0; j < columns; j++) {
            int root = find(j);
            if (block_of[root] < 0) {
                block_of[root] = int(blocks.size());
                blocks.emplace_back();
            }
            block_of[j] = block_of[root];
            place_of[j] = int(blocks[block_of[j]].columns.size());
            blocks[block_of[j]].columns.push_back(j);
        }
        for (size_t k = 0; k < rows_left.size(); k++) {
            if (rows_left[k].empty()) continue;
            Thing thing{row_names[k], int(index.size()), int(rows_left[k].size()), block_of[rows_left[k].begin()->first], constants[k]};
            for (auto [j, by] : rows_left[k]) {
                index.push_back(place_of[j]);
                value.push_back(by);
            }
            blocks[thing.block].things.push_back(int(things.size()));
            things.push_back(thing);
            own.push_back(thing.variable < p.columns && name[rows_left[k].begin()->first] == thing.variable ? rows_left[k].begin()->first : -1);
        }
        tie(p, longs);
    }

  private:
    // Solve short equations: write the columns they are solved for by others.
    void substitute(const Program &p) {
        std::vector<int> solved_by(p.columns, -1);
        for (size_t k = 0; k < p.solved.size(); k++) {
            auto [row, column] = p.solved[k];
            if (size_t(p.start[row + 1] - p.start[row]) <= LONG) solved_by[column] = int(k);
        }
        of.resize(p.columns);
        constant.assign(p.columns, 0.0);
        for (int j = 0; j < p.columns; j++)
            if (solved_by[j] < 0 && !p.zero[j]) {
                of[j] = {{columns++, 1.0}};
                name.push_back(j);
            }
        for (size_t k = 0; k < p.solved.size(); k++) {
            auto [row, column] = p.solved[k];
            if (solved_by[column] != int(k)) continue;
            double own = 0, c = p.given[k];
            std::map<int, double> entries;
            for (int e = p.start[row]; e < p.start[row + 1]; e++) {
                if (p.index[e] == column) {
                    own = p.value[e];
                    continue;
                }
                c -= p.value[e] * constant[p.index[e]];
                for (auto [j, by] : of[p.index[e]]) entries[j] -= by * p.value[e];
            }
            for (auto [j, by] : entries) of[column].push_back({j, by / own});
            constant[column] = c / own;
        }
    }

    // Note which blocks the rows of the small system hold together.
    void tie(const Program &p, const std::vector<std::map<int, double>> &longs) {
        const Ball &b = p.ball;
        equations = int(longs.size());
        even = b.even / (b.eps * b.eps);
        for (double s : b.sign) sign.push_back(s / (b.eps * b.eps));
        uneven = b.uneven;
        rows = equations + int(sign.size()) + 1;
        for (int j : b.columns) ball.push_back(of[j].empty() ? -1 : of[j][0].first);
        std::vector<std::map<int, std::map<int, double>>> on(blocks.size());
        for (int r = 0; r < equations; r++)
            for (auto [j, by] : longs[r]) on[block_of[j]][r][place_of[j]] = by;
        const size_t n = ball.size();
        for (size_t c = 0; c < n; c++) {
            if (ball[c] < 0) continue;
            for (size_t k = 0; k <= sign.size(); k++)
                on[block_of[ball[c]]][equations + int(k)][place_of[ball[c]]] = k < sign.size() ? uneven[k * n + c] : 0.0;
        }
        for (size_t k = 0; k < blocks.size(); k++) {
            Block &block = blocks[k];
            for (auto &[r, entries] : on[k]) {
                block.rows.push_back(r);
                size_t at = block.on.size();
                block.on.resize(at + block.columns.size(), 0.0);
                for (auto [place, by] : entries) block.on[at + place] = by;
            }
            block.dense = !block.rows.empty() && block.rows.back() - block.rows.front() + 1 == int(block.rows.size());
        }
    }
};

class Interior {
  public:
    long steps = 0;
    double accuracy = 0.01;

    Interior(const Program &program, std::shared_ptr<const Shape> shape) : program_(&program), shape_(std::move(shape)) {
        const Shape &s = *shape_;
        x_.assign(s.columns, 0.0);
        lambda_.assign(s.rows, 0.0);
        walls_.resize(s.things.size());
        range_.assign(s.columns, 1.0);
        aim(program.cost);
    }

    void aim(std::vector<double> cost) {
        cost_ = std::move(cost);
        warm_ = false;
        c_.assign(shape_->columns, 0.0);
        for (int j = 0; j < program_->columns; j++)
            if (cost_[j] != 0.0)
                for (auto [k, by] : shape_->of[j]) c_[k] += by * cost_[j];
    }

    const std::vector<double> &cost() const { return cost_; }
    double objective() const { return upper_; }

    // 0: at the optimum; 1: below `enough`; 2: tired.
    int solve(const double *low, const double *high, double enough, int most) {
        begin(low, high);
        warm_ = false;
        for (int step = 0; step < most; step++) {
            measure();
            if (getenv("TRACE")) fprintf(stderr, "%2d upper %.6f primal %.6f gap %.2e off %.1e dual %.1e zeta %.2e t %.2e\n", step, upper_, dot(c_.data(), x_.data(), c_.size()), gap_, off_, off_dual_, zeta_, t_);
            const double near = 1e-7 + 0.1 * accuracy * std::min(std::fabs(upper_), 1.0);
            if (upper_ < enough && program_->bound(multipliers(), cost_, low, high) < enough) return 1;
            last_ = upper_;
            if (off_dual_ < near && off_ < 0.1 * near && gap_ < near) {
                warm_ = true;
                return 0;
            }
            if (!factor()) return 2;
            steps++;
            newton(0.0, false);
            double primal = longest(true), dual = longest(false);
            double after = 0;
            for (const Wall &w : walls_)
                after += (w.sl + primal * w.dsl) * (w.zl + dual * w.dzl) + (w.su + primal * w.dsu) * (w.zu + dual * w.dzu);
            after += (t_ + primal * dt_) * (zeta_ + dual * dzeta_);
            const double share = after / gap_, tau = std::max(share * share * share, 1e-4) * gap_ / count();
            newton(tau, true);
            primal = std::min(1.0, STEP * longest(true));
            dual = std::min(1.0, STEP * longest(false));
            if (getenv("SAME")) primal = dual = std::min(primal, dual);
            move(primal, dual);
            if (std::max(primal, dual) < 1e-3) return off_dual_ < 1e-6 ? 0 : 2;  // no way forward
        }
        return 2;
    }

    void point(std::vector<double> &x) const {
        for (int j = 0; j < program_->columns; j++) {
            double v = shape_->constant[j];
            for (auto [k, by] : shape_->of[j]) v += by * x_[k];
            x[j] = v;
        }
        for (int i = 0; i < program_->rows; i++) {
            double v = 0;
            for (int k = program_->start[i]; k < program_->start[i + 1]; k++) v += program_->value[k] * x[program_->index[k]];
            x[program_->columns + i] = v;
        }
        if (int(x.size()) > program_->columns + program_->rows) x[program_->columns + program_->rows] = 1.0;
    }

    Multipliers multipliers() const {
        const Program &p = *program_;
        Multipliers found;
        found.rows.assign(p.rows, 0.0);
        std::vector<double> reduced(p.columns, 0.0);
        for (size_t k = 0; k < walls_.size(); k++) {
            const int v = shape_->things[k].variable;
            (v < p.columns ? reduced[v] : found.rows[v - p.columns]) = walls_[k].zu - walls_[k].zl;
        }
        for (int r = 0; r < shape_->equations; r++) found.rows[shape_->equation_row[r]] = lambda_[r];
        found.mu.assign(p.ball.height, 0.0);
        const size_t n = p.ball.columns.size();
        for (int k = 0; k < p.ball.height; k++) {
            for (size_t c = 0; c < n; c++) found.mu[k] += p.ball.full[k * n + c] * (shape_->ball[c] < 0 ? 0.0 : x_[shape_->ball[c]]);
            found.mu[k] *= zeta_ / (p.ball.eps * p.ball.eps);
        }
        p.complete(found.rows, reduced, cost_);
        return found;
    }

  private:
    struct Wall {  // both sides of a thing: distances and multipliers, and where they are going
        double low, high, sl, su, zl, zu, dsl, dsu, dzl, dzu, at, go, theta, rl, ru, kl, ku;
    };
    const Program *program_;
    std::shared_ptr<const Shape> shape_;
    std::vector<double> cost_, c_, x_, dx_, lambda_, dlambda_, residual_, equation_, slope_;
    std::vector<Wall> walls_;
    std::vector<double> range_;
    bool warm_ = false;
    double last_ = 0;
    double t_ = 0.5, zeta_ = 1, dt_ = 0, dzeta_ = 0, off_t_ = 0, kt_ = 0;
    double gap_ = 0, upper_ = INF, off_ = 0, off_dual_ = 0;
    std::vector<double> small_, factor_, blocks_, pulled_;  // the small system, its factor, those of blocks, and B^-1/2 C'
    std::vector<double> right_, half_;

    double count() const { return 2.0 * walls_.size() + 1; }

    static double times(const Shape &s, const Shape::Thing &thing, const double *x) {
        const auto &columns = s.blocks[thing.block].columns;
        double sum = 0;
        for (int e = thing.first; e < thing.first + thing.count; e++) sum += s.value[e] * x[columns[s.index[e]]];
        return sum;
    }

    void begin(const double *low, const double *high) {
        const Shape &s = *shape_;
        for (size_t k = 0; k < walls_.size(); k++) {
            Wall &w = walls_[k];
            const double l = low[s.things[k].variable], h = high[s.things[k].variable];
            w.low = l - WIDEN * (1.0 + std::fabs(l));
            w.high = h + WIDEN * (1.0 + std::fabs(h));
        }
        if (warm_)
            resume();
        else
            start();
        upper_ = INF;
    }

    // Begin in the middle, or near 0 where intervals are wide.
    void start() {
        const Shape &s = *shape_;
        for (size_t k = 0; k < walls_.size(); k++) {
            const Wall &w = walls_[k];
            const int j = s.own[k];
            if (j < 0) continue;
            const double width = w.high - w.low, in = 0.2 * std::min(width, 1.0);
            range_[j] = std::max(std::fabs(w.low), std::fabs(w.high));
            x_[j] = width < 20 ? 0.5 * (w.low + w.high) : std::min(std::max(0.0, w.low + in), w.high - in);
        }
        for (int j : s.ball)
            if (j >= 0) x_[j] = 0;
        settle();
        for (size_t k = 0; k < walls_.size(); k++) {
            Wall &w = walls_[k];
            w.at = times(s, s.things[k], x_.data()) + s.things[k].constant;
            const double width = w.high - w.low, least = 0.2 * std::min(width, 1.0);
            w.sl = std::max(std::fabs(w.at - w.low), least);  // what is outside begins as far inside
            w.su = std::max(std::fabs(w.high - w.at), least);
            const double far = std::max(w.sl, w.su);
            w.zl = START / (width < 1e-3 ? far : w.sl);
            w.zu = START / (width < 1e-3 ? far : w.su);
        }
        std::fill(lambda_.begin(), lambda_.end(), 0.0);
        t_ = 0.5;
        zeta_ = START / t_;
    }

    // Begin where another part has ended: what its multipliers add up to stays as it is.
    void resume() {
        const Shape &s = *shape_;
        static const double W = getenv("WARM") ? atof(getenv("WARM")) : 0.3, D = getenv("DELTA") ? atof(getenv("DELTA")) : 0.01;
        const double tau = W * std::max(std::fabs(last_), 1e-3) / count();
        for (size_t k = 0; k < walls_.size(); k++) {
            Wall &w = walls_[k];
            if (s.own[k] >= 0) range_[s.own[k]] = std::max(std::fabs(w.low), std::fabs(w.high));
            w.at = times(s, s.things[k], x_.data()) + s.things[k].constant;
            const double width = w.high - w.low, least = D * std::min(width, 1.0), y = w.zu - w.zl;
            w.sl = std::max(std::fabs(w.at - w.low), least);
            w.su = std::max(std::fabs(w.high - w.at), least);
            const double both = tau / std::max(w.sl, w.su);
            w.zl = std::max(-y, 0.0) + both;
            w.zu = std::max(y, 0.0) + both;
        }
        t_ = std::max(t_, D);
        zeta_ = std::max(zeta_, tau / t_);
    }

    // Carry the point through the solved equations, in their order.
    void settle() {
        const Program &p = *program_;
        const Shape &s = *shape_;
        std::vector<double> all(p.variables(), 0.0);
        for (int j = 0; j < p.columns; j++) {
            all[j] = s.constant[j];
            for (auto [k, by] : s.of[j]) all[j] += by * x_[k];
        }
        for (size_t k = 0; k < p.solved.size(); k++) {
            auto [row, column] = p.solved[k];
            double own = 1, rest = p.given[k];
            for (int e = p.start[row]; e < p.start[row + 1]; e++)
                if (p.index[e] == column)
                    own = p.value[e];
                else
                    rest -= p.value[e] * all[p.index[e]];
            all[column] = rest / own;
            if (s.of[column].size() == 1 && s.name[s.of[column][0].first] == column) x_[s.of[column][0].first] = all[column];
        }
    }

    // How far the equations are off, how large the products are, and what the multipliers show.
    void measure() {
        const Shape &s = *shape_;
        residual_ = c_;
        off_ = off_dual_ = gap_ = 0;
        double dual = 0;
        for (size_t k = 0; k < walls_.size(); k++) {
            Wall &w = walls_[k];
            const Shape::Thing &thing = s.things[k];
            const auto &columns = s.blocks[thing.block].columns;
            w.at = times(s, thing, x_.data()) + thing.constant;
            w.rl = w.at - w.low - w.sl;
            w.ru = w.high - w.at - w.su;
            off_ = std::max(off_, std::max(std::fabs(w.rl), std::fabs(w.ru)));
            gap_ += w.sl * w.zl + w.su * w.zu;
            const double y = w.zu - w.zl;
            dual += w.zu * (w.high - thing.constant) - w.zl * (w.low - thing.constant);
            for (int e = thing.first; e < thing.first + thing.count; e++) residual_[columns[s.index[e]]] -= y * s.value[e];
        }
        equation_.assign(s.rows, 0.0);
        slope_.assign(s.columns, 0.0);
        const size_t n = s.ball.size();
        for (size_t c = 0; c < n; c++)
            if (s.ball[c] >= 0) slope_[s.ball[c]] = s.even * x_[s.ball[c]];
        for (size_t k = 0; k < s.sign.size(); k++) {
            double along = 0;
            for (size_t c = 0; c < n; c++)
                if (s.ball[c] >= 0) along += s.uneven[k * n + c] * x_[s.ball[c]];
            for (size_t c = 0; c < n; c++)
                if (s.ball[c] >= 0) slope_[s.ball[c]] += s.sign[k] * along * s.uneven[k * n + c];
        }
        double norm = 0;
        for (int j : s.ball)
            if (j >= 0) {
                norm += slope_[j] * x_[j];
                residual_[j] -= zeta_ * slope_[j];
            }
        off_t_ = 0.5 * (1 - norm) - t_;
        gap_ += t_ * zeta_;
        off_ = std::max(off_, std::fabs(off_t_));
        dual += zeta_ * std::sqrt(std::max(norm, 0.0));
        for (const Shape::Block &block : s.blocks)
            for (size_t r = 0; r < block.rows.size(); r++) {
                if (block.rows[r] >= s.equations) continue;
                const double *on = block.on.data() + r * block.columns.size();
                for (size_t c = 0; c < block.columns.size(); c++) {
                    equation_[block.rows[r]] += on[c] * x_[block.columns[c]];
                    residual_[block.columns[c]] -= on[c] * lambda_[block.rows[r]];
                }
            }
        for (int r = 0; r < s.equations; r++) {
            dual += lambda_[r] * s.given[r];
            equation_[r] -= s.given[r];
            off_ = std::max(off_, std::fabs(equation_[r]));
        }
        for (int j = 0; j < s.columns; j++) off_dual_ += std::fabs(residual_[j]) * range_[j];
        upper_ = dual;
    }

    // Make the small system C B^-1 C' + T and factor it; B is made of blocks.
    bool factor() {
        const Shape &s = *shape_;
        const int m = s.rows, first = s.equations;
        small_.assign(size_t(m) * m, 0.0);
        for (int r = 0; r < first; r++) small_[size_t(r) * m + r] = 1e-11;
        for (size_t k = 0; k < s.sign.size(); k++) small_[size_t(first + k) * m + first + k] = 1.0 / (zeta_ * s.sign[k]);
        small_[size_t(m - 1) * m + m - 1] = t_ / zeta_;
        for (Wall &w : walls_) w.theta = w.zl / w.sl + w.zu / w.su;
        blocks_.clear();
        pulled_.clear();
        std::vector<double> b, y;
        std::vector<uint8_t> compared(s.columns, 0);
        for (int j : s.ball)
            if (j >= 0) compared[j] = 1;
        for (const Shape::Block &block : s.blocks) {
            const int n = int(block.columns.size()), q = int(block.rows.size());
            b.assign(size_t(n) * n, 0.0);
            for (int k : block.things) {
                const Shape::Thing &thing = s.things[k];
                for (int e = thing.first; e < thing.first + thing.count; e++)
                    for (int f = thing.first; f <= e; f++) {
                        int i = s.index[e], j = s.index[f];
                        b[size_t(std::max(i, j)) * n + std::min(i, j)] += walls_[k].theta * s.value[e] * s.value[f];
                    }
            }
            bool has_ball = false;
            for (int i = 0; i < n; i++)
                if (compared[block.columns[i]]) {
                    b[size_t(i) * n + i] += zeta_ * s.even;
                    has_ball = true;
                }
            for (int i = 0; i < n; i++)
                for (int j = 0; j <= i; j++) {
                    double v = b[size_t(i) * n + j];
                    for (int k = 0; k < j; k++) v -= b[size_t(i) * n + k] * b[size_t(j) * n + k];
                    if (i == j) {
                        if (!(v > 0)) v = 1e-12 * (1 + b[size_t(i) * n + i]);
                        b[size_t(i) * n + i] = std::sqrt(v);
                    } else {
                        b[size_t(i) * n + j] = v / b[size_t(j) * n + j];
                    }
                }
            blocks_.insert(blocks_.end(), b.begin(), b.end());
            y.assign(size_t(n) * q, 0.0);  // L^-1 C', by columns of the block
            for (int i = 0; i < n; i++) {
                for (int r = 0; r < q; r++) y[size_t(i) * q + r] = block.on[size_t(r) * n + i];
                if (has_ball && q && block.rows.back() == m - 1) y[size_t(i) * q + q - 1] = compared[block.columns[i]] ? slope_[block.columns[i]] : 0.0;
                for (int k = 0; k < i; k++) add_times(y.data() + size_t(i) * q, y.data() + size_t(k) * q, -b[size_t(i) * n + k], q);
                const double scale = 1 / b[size_t(i) * n + i];
                for (int r = 0; r < q; r++) y[size_t(i) * q + r] *= scale;
            }
            for (int i = 0; i < n; i++) {
                const double *row = y.data() + size_t(i) * q;
                for (int r = 0; r < q; r++) {
                    if (row[r] == 0.0) continue;
                    double *to = small_.data() + size_t(block.rows[r]) * m;
                    if (block.dense)
                        add_times(to + block.rows[0], row, row[r], r + 1);
                    else
                        for (int k = 0; k <= r; k++) to[block.rows[k]] += row[r] * row[k];
                }
            }
            pulled_.insert(pulled_.end(), y.begin(), y.end());
        }
        factor_ = small_;
        std::vector<double> scaled(m);
        for (int i = 0; i < m; i++) {
            double *row = factor_.data() + size_t(i) * m;
            for (int j = 0; j < i; j++) {
                const double *other = factor_.data() + size_t(j) * m;
                row[j] -= dot(row, other, j);  // row holds L D here, others L
            }
            double pivot = row[i];
            for (int j = 0; j < i; j++) {
                const double l = row[j] / factor_[size_t(j) * m + j];
                pivot -= l * row[j];
                row[j] = l;
            }
            if (std::isnan(pivot)) return false;
            if (std::fabs(pivot) < 1e-14 * std::fabs(row[i])) pivot = 1e-14 * row[i];
            if (pivot == 0.0) pivot = 1e-30;
            row[i] = pivot;
        }
        return true;
    }

    // One direction: towards all products being `tau`; `corrected` by the products of the last direction.
    void newton(double tau, bool corrected) {
        const Shape &s = *shape_;
        const int m = s.rows;
        right_ = residual_;
        for (size_t k = 0; k < walls_.size(); k++) {
            Wall &w = walls_[k];
            w.kl = tau - w.sl * w.zl - (corrected ? w.dsl * w.dzl : 0.0);
            w.ku = tau - w.su * w.zu - (corrected ? w.dsu * w.dzu : 0.0);
            const double h = (w.ku - w.zu * w.ru) / w.su - (w.kl - w.zl * w.rl) / w.sl;
            const Shape::Thing &thing = s.things[k];
            const auto &columns = s.blocks[thing.block].columns;
            for (int e = thing.first; e < thing.first + thing.count; e++) right_[columns[s.index[e]]] -= h * s.value[e];
        }
        kt_ = tau - t_ * zeta_ - (corrected ? dt_ * dzeta_ : 0.0);
        std::vector<double> e(m, 0.0);
        for (int r = 0; r < s.equations; r++) e[r] = equation_[r];
        e[m - 1] = kt_ / zeta_ - off_t_;
        half_.assign(s.columns, 0.0);
        size_t at = 0, pulled = 0, place = 0;
        for (const Shape::Block &block : s.blocks) {  // half = L^-1 right, e += pulled half
            const int n = int(block.columns.size()), q = int(block.rows.size());
            const double *b = blocks_.data() + at, *y = pulled_.data() + pulled;
            for (int i = 0; i < n; i++) {
                double v = right_[block.columns[i]];
                for (int k = 0; k < i; k++) v -= b[size_t(i) * n + k] * half_[place + k];
                v /= b[size_t(i) * n + i];
                half_[place + i] = v;
                for (int r = 0; r < q; r++) e[block.rows[r]] += y[size_t(i) * q + r] * v;
            }
            at += size_t(n) * n;
            pulled += size_t(n) * q;
            place += n;
        }
        for (int i = 0; i < m; i++) e[i] -= dot(factor_.data() + size_t(i) * m, e.data(), i);
        for (int i = 0; i < m; i++) e[i] /= factor_[size_t(i) * m + i];
        for (int i = m - 1; i >= 0; i--)
            if (e[i] != 0.0) add_times(e.data(), factor_.data() + size_t(i) * m, -e[i], i);
        dlambda_ = e;
        dx_.assign(s.columns, 0.0);
        at = pulled = place = 0;
        for (const Shape::Block &block : s.blocks) {
            const int n = int(block.columns.size()), q = int(block.rows.size());
            const double *b = blocks_.data() + at, *y = pulled_.data() + pulled;
            for (int i = 0; i < n; i++)
                for (int r = 0; r < q; r++) half_[place + i] -= y[size_t(i) * q + r] * e[block.rows[r]];
            for (int i = n - 1; i >= 0; i--) {
                double v = half_[place + i];
                for (int k = i + 1; k < n; k++) v -= b[size_t(k) * n + i] * dx_[block.columns[k]];
                dx_[block.columns[i]] = v / b[size_t(i) * n + i];
            }
            at += size_t(n) * n;
            pulled += size_t(n) * q;
            place += n;
        }
        for (size_t k = 0; k < walls_.size(); k++) {
            Wall &w = walls_[k];
            w.go = times(s, s.things[k], dx_.data());
            w.dsl = w.go + w.rl;
            w.dsu = w.ru - w.go;
            w.dzl = (w.kl - w.zl * w.dsl) / w.sl;
            w.dzu = (w.ku - w.zu * w.dsu) / w.su;
        }
        dzeta_ = dlambda_[m - 1];
        dt_ = (kt_ - t_ * dzeta_) / zeta_;
    }

    // How far all distances (or multipliers) stay positive.
    double longest(bool primal) const {
        double most = 1.0 / STEP;
        auto limit = [&](double v, double by) {
            if (by < 0) most = std::min(most, -v / by);
        };
        for (const Wall &w : walls_) {
            limit(primal ? w.sl : w.zl, primal ? w.dsl : w.dzl);
            limit(primal ? w.su : w.zu, primal ? w.dsu : w.dzu);
        }
        limit(primal ? t_ : zeta_, primal ? dt_ : dzeta_);
        return std::min(most, 1.0 / STEP);
    }

    void move(double primal, double dual) {
        for (size_t j = 0; j < x_.size(); j++) x_[j] += primal * dx_[j];
        for (Wall &w : walls_) {
            w.sl += primal * w.dsl;
            w.su += primal * w.dsu;
            w.zl += dual * w.dzl;
            w.zu += dual * w.dzu;
        }
        for (size_t r = 0; r < lambda_.size(); r++) lambda_[r] += dual * dlambda_[r];
        t_ += primal * dt_;
        zeta_ += dual * dzeta_;
    }
};

}  // namespace likewise
