// Interior: an interior point method for programs with a round ball, which it takes as it is, without tangents.
//
// A program falls into small blocks (see `Shape`), so Newton's equations shrink to one small dense system with a row for
// each long equation and a few for the ball; a dozen steps are enough (Mehrotra's predictor and corrector).
// What it returns are hints, as those of the simplex method are: `Program::bound` evaluates its multipliers.
#pragma once
#include "cone.hpp"

namespace likewise {

constexpr double WIDEN = 1e-7;  // by how much intervals are widened, so that there is an inside
constexpr double THIN = 1e-3;   // an interval so narrow that both its ends count the same to begin with
constexpr double START = 1e-2, MORE = 100, LARGEST = 10;  // products to begin with; more if that fails, up to a limit
constexpr double WARM = 0.3, ROOM = 0.01;  // where another part ended: products, as a share of its bound, and how far inside
constexpr double STEP = 0.99;   // of the way to the nearest wall
constexpr double STILL = 1e-3;  // a step that gets nowhere
constexpr double LOST = 30;     // times further off than it has been: rounding is all that is left
constexpr double CLOSE = 1e-5;  // how far off it may be where it gets no further, relative
constexpr long ENOUGH = 60, A_FEW = 16;  // steps at most, and in a trial

class Interior {
  public:
    long steps = 0;
    double accuracy = 0.01;  // how far the bound may be off, relative to the objective

    Interior(const Program &program, std::shared_ptr<const Shape> shape)
        : program_(&program),
          shape_(std::move(shape)),
          walls_(shape_->things.size()),
          cone_(*shape_),
          best_{INF, INF, {}, {}, {}, cone_} {
        x_.assign(shape_->columns, 0.0);
        range_.assign(shape_->columns, 1.0);
        lambda_.assign(shape_->equations, 0.0);
        aim(program.cost);
    }

    // Turn to something else to maximise.
    void aim(std::vector<double> cost) {
        cost_ = std::move(cost);
        is_warm_ = false;
        c_.assign(shape_->columns, 0.0);
        for (int j = 0; j < program_->columns; j++)
            for (auto [k, by] : shape_->of[j]) c_[k] += by * cost_[j];
    }

    double objective() const { return upper_; }

    // Maximise within bounds; stop once the objective is proven to be below `enough`, or after `most` steps.
    Ended solve(const double *low, const double *high, double enough, long most) {
        begin(low, high);
        double product = is_warm_ ? START / MORE : START;
        best_.off = INF;
        for (long step = 0; step < most; step++) {
            measure();
            const double near = 1e-7 + 0.1 * accuracy * std::min(std::fabs(upper_), 1.0), off = gap_ + off_dual_ + off_;
            if (upper_ < enough && program_->bound(multipliers(), cost_, {}, low, high) < enough) return left(Ended::below);
            if (off_dual_ < near && off_ < 0.1 * near && gap_ < near) return left(Ended::optimal);
            if (off < best_.off) best_ = {off, upper_, x_, lambda_, walls_, cone_};
            if (off < LOST * best_.off && advance()) continue;
            if (product > LARGEST) break;
            start(product *= MORE);
        }
        if (best_.off == INF) return left(Ended::tired);  // no number at all
        upper_ = best_.upper;  // rounding has the last word: go back to where it had not
        x_ = best_.x;
        lambda_ = best_.lambda;
        walls_ = best_.walls;
        cone_ = best_.cone;
        return left(best_.off < CLOSE * (1 + std::fabs(upper_)) ? Ended::optimal : Ended::tired);
    }

    // Write the value of every variable of the program to x.
    void point(std::vector<double> &x) const {
        const Program &p = *program_;
        for (int j = 0; j < p.columns; j++) {
            x[j] = shape_->constant[j];
            for (auto [k, by] : shape_->of[j]) x[j] += by * x_[k];
        }
        for (int i = 0; i < p.rows; i++) {
            x[p.columns + i] = 0;
            for (int k = p.start[i]; k < p.start[i + 1]; k++) x[p.columns + i] += p.value[k] * x[p.index[k]];
        }
        x[p.columns + p.rows] = 1.0;
    }

    Multipliers multipliers() const {
        const Program &p = *program_;
        const Ball &ball = p.ball;
        const size_t n = ball.columns.size();
        Multipliers found{std::vector<double>(p.rows, 0.0), std::vector<double>(ball.height, 0.0)};
        std::vector<double> reduced(p.columns, 0.0);
        for (size_t k = 0; k < walls_.size(); k++) {
            const int v = shape_->things[k].variable;
            (v < p.columns ? reduced[v] : found.rows[v - p.columns]) = walls_[k].high.z - walls_[k].low.z;
        }
        for (int r = 0; r < shape_->equations; r++) found.rows[shape_->equation_row[r]] = lambda_[r];
        for (int k = 0; k < ball.height; k++)
            found.mu[k] = -dot(ball.full.data() + k * n, cone_.z.tail.data(), int(n)) / (ball.eps * ball.eps);
        p.complete(found.rows, reduced, cost_, {});
        return found;
    }

  private:
    struct Side {  // of a wall: where it is, how far away and its multiplier, where both are going, and what is missing
        double at, s, z, ds, dz, off, goal;
    };
    struct Wall {
        Side low, high;
        double theta;
    };
    const Program *program_;
    std::shared_ptr<const Shape> shape_;
    std::vector<double> cost_, c_, x_, dx_, lambda_, range_, residual_, equation_;
    std::vector<Wall> walls_;
    Cone cone_;
    bool is_warm_ = false;  // whether this is where a part ended, at its optimum
    struct {
        double off, upper;
        std::vector<double> x, lambda;
        std::vector<Wall> walls;
        Cone cone;
    } best_;
    double gap_ = 0, upper_ = INF, off_ = 0, off_dual_ = 0;
    std::vector<double> small_, blocks_, pulled_;  // the small system, factors of blocks, and L^-1 C'
    std::vector<double> stiff_, slope_;            // of columns: what the ball adds to B, and where it slopes to
    std::vector<double> right_, half_, e_;

    Ended left(Ended ended) {
        is_warm_ = ended == Ended::optimal;
        return ended;
    }

    template <class F> void each(const Shape::Thing &thing, F f) const {
        const std::vector<int> &columns = shape_->blocks[thing.block].columns;
        for (int e = thing.first; e < thing.first + thing.count; e++) f(columns[shape_->index[e]], shape_->value[e]);
    }

    double times(const Shape::Thing &thing, const std::vector<double> &x) const {
        double sum = 0;
        each(thing, [&](int j, double by) { sum += by * x[j]; });
        return sum;
    }

    void begin(const double *low, const double *high) {
        for (size_t k = 0; k < walls_.size(); k++) {
            const Shape::Thing &thing = shape_->things[k];
            const double l = low[thing.variable], h = high[thing.variable];
            walls_[k].low.at = l - WIDEN * (1.0 + std::fabs(l)) - thing.constant;
            walls_[k].high.at = h + WIDEN * (1.0 + std::fabs(h)) - thing.constant;
            if (thing.own >= 0) range_[thing.own] = std::max(std::fabs(l), std::fabs(h));
        }
        is_warm_ ? resume() : start(START);
    }

    // Begin in the middle, or near 0 where intervals are wide.
    void start(double product) {
        for (size_t k = 0; k < walls_.size(); k++) {
            const int j = shape_->things[k].own;
            if (j < 0) continue;
            const double low = walls_[k].low.at, high = walls_[k].high.at, in = 0.2 * std::min(high - low, 1.0);
            x_[j] = high - low < 20 ? 0.5 * (low + high) : std::min(std::max(0.0, low + in), high - in);
        }
        for (int j : shape_->ball)
            if (j >= 0) x_[j] = 0;
        settle();
        for (size_t k = 0; k < walls_.size(); k++) {
            Wall &w = walls_[k];
            keep_off(w, times(shape_->things[k], x_), 0.2);
            const bool is_thin = w.high.at - w.low.at < THIN;
            const double far = std::max(w.low.s, w.high.s);
            w.low.z = product / (is_thin ? far : w.low.s);
            w.high.z = product / (is_thin ? far : w.high.s);
        }
        std::fill(lambda_.begin(), lambda_.end(), 0.0);
        cone_.start(product);
    }

    // Begin where another part has ended: what its multipliers add up to stays as it is.
    void resume() {
        const double tau = WARM * std::max(std::fabs(upper_), 1e-3) / count();
        for (size_t k = 0; k < walls_.size(); k++) {
            Wall &w = walls_[k];
            keep_off(w, times(shape_->things[k], x_), ROOM);
            const double y = w.high.z - w.low.z, both = tau / std::max(w.low.s, w.high.s);
            w.low.z = std::max(-y, 0.0) + both;
            w.high.z = std::max(y, 0.0) + both;
        }
        cone_.resume(*shape_, tau, ROOM);
    }

    // What is outside begins as far inside.
    static void keep_off(Wall &w, double at, double share) {
        const double least = share * std::min(w.high.at - w.low.at, 1.0);
        w.low.s = std::max(std::fabs(at - w.low.at), least);
        w.high.s = std::max(std::fabs(w.high.at - at), least);
    }

    // Carry the point through the solved equations, in their order.
    void settle() {
        const Program &p = *program_;
        std::vector<double> all(p.variables(), 0.0);
        point(all);
        for (size_t k = 0; k < p.solved.size(); k++) {
            auto [row, column] = p.solved[k];
            double own = 1, rest = p.given[k];
            for (int e = p.start[row]; e < p.start[row + 1]; e++)
                if (p.index[e] == column)
                    own = p.value[e];
                else
                    rest -= p.value[e] * all[p.index[e]];
            all[column] = rest / own;
            for (auto [j, by] : shape_->of[column])
                if (shape_->name[j] == column) x_[j] = all[column];
        }
    }

    double count() const { return 2.0 * double(walls_.size()) + 1; }

    // How far the equations are off, how large the products are, and what the multipliers show.
    void measure() {
        const Shape &s = *shape_;
        residual_ = c_;
        gap_ = cone_.product(s);
        upper_ = cone_.norm(s, cone_.z);
        off_ = std::fabs(cone_.s.head - 1);
        for (size_t k = 0; k < walls_.size(); k++) {
            Wall &w = walls_[k];
            const double at = times(s.things[k], x_), y = w.high.z - w.low.z;
            w.low.off = at - w.low.at - w.low.s;
            w.high.off = w.high.at - at - w.high.s;
            off_ = std::max(off_, std::max(std::fabs(w.low.off), std::fabs(w.high.off)));
            gap_ += w.low.s * w.low.z + w.high.s * w.high.z;
            upper_ += w.high.z * w.high.at - w.low.z * w.low.at;
            each(s.things[k], [&](int j, double by) { residual_[j] -= y * by; });
        }
        const std::vector<double> pull = cone_.seen(s, cone_.z.tail);
        for (size_t c = 0; c < s.ball.size(); c++)
            if (s.ball[c] >= 0) residual_[s.ball[c]] += pull[c];
        equation_.assign(s.rows, 0.0);
        for (const Shape::Block &block : s.blocks)
            for (size_t r = 0; r < block.rows.size(); r++) {
                if (block.rows[r] < s.first) continue;
                const double *on = block.on.data() + r * block.columns.size(), by = lambda_[block.rows[r] - s.first];
                for (size_t c = 0; c < block.columns.size(); c++) {
                    equation_[block.rows[r]] += on[c] * x_[block.columns[c]];
                    residual_[block.columns[c]] -= on[c] * by;
                }
            }
        for (int r = 0; r < s.equations; r++) {
            upper_ += lambda_[r] * s.given[r];
            equation_[s.first + r] -= s.given[r];
            off_ = std::max(off_, std::fabs(equation_[s.first + r]));
        }
        off_dual_ = 0;
        for (int j = 0; j < s.columns; j++) off_dual_ += std::fabs(residual_[j]) * range_[j];
    }

    // One step; false if there is no way forward.
    bool advance() {
        if (!cone_.scale(*shape_) || !factor()) return false;
        steps++;
        newton(0.0, false);
        double primal = longest(true), dual = longest(false), after = cone_.product_after(*shape_, primal, dual);
        for (const Wall &w : walls_)
            for (const Side &side : {w.low, w.high}) after += (side.s + primal * side.ds) * (side.z + dual * side.dz);
        const double share = std::max(after / gap_, 0.0);
        newton(std::max(share * share * share, 1e-4) * gap_ / count(), true);
        primal = std::min(1.0, STEP * longest(true));
        dual = std::min(1.0, STEP * longest(false));
        for (size_t j = 0; j < x_.size(); j++) x_[j] += primal * dx_[j];
        for (int r = 0; r < shape_->equations; r++) lambda_[r] += dual * e_[shape_->first + r];
        for (Wall &w : walls_)
            for (Side *side : {&w.low, &w.high}) {
                side->s += primal * side->ds;
                side->z += dual * side->dz;
            }
        cone_.move(primal, dual);
        return std::max(primal, dual) > STILL;
    }

    // Factor the blocks B, then the small system C B^-1 C' + T.
    bool factor() {
        const Shape &s = *shape_;
        const int m = s.rows;
        size_t squares = 0, pulled = 0;
        for (const Shape::Block &block : s.blocks) {
            squares += block.columns.size() * block.columns.size();
            pulled += block.columns.size() * block.rows.size();
        }
        blocks_.assign(squares, 0.0);
        pulled_.resize(pulled);
        for (Wall &w : walls_) w.theta = w.low.z / w.low.s + w.high.z / w.high.s;
        stiff_.assign(s.columns, 0.0);
        slope_.assign(s.columns, 0.0);
        for (size_t c = 0; c < s.ball.size(); c++)
            if (s.ball[c] >= 0) {
                stiff_[s.ball[c]] = cone_.weight * s.even;
                slope_[s.ball[c]] = cone_.slope[c];
            }
        small_.assign(size_t(m) * m, 0.0);
        for (int k = 0; k + 1 < s.first; k++) small_[size_t(k) * m + k] = 1.0 / (cone_.weight * s.sign[k]);
        small_[size_t(s.first - 1) * m + s.first - 1] = 0.5 / cone_.weight;
        double *b = blocks_.data(), *y = pulled_.data();
        for (size_t k = 0; k < s.blocks.size();) {
            const Shape::Block &block = s.blocks[k];
            const int q = int(block.rows.size());
            const double *from = y;
            int height = 0;  // of all blocks in a row that the same rows hold together
            for (; k < s.blocks.size() && s.blocks[k].rows == block.rows; k++) {
                const int n = int(s.blocks[k].columns.size());
                factor_block(s.blocks[k], b, y);
                b += size_t(n) * n;
                y += size_t(n) * q;
                height += n;
            }
            for (int i = 0; i < height; i += 4) add_block(block, from + size_t(i) * q, std::min(height - i, 4));
        }
        return factor_small();
    }

    // small += y'y, for up to four rows of y.
    void add_block(const Shape::Block &block, const double *y, int height) {
        const int q = int(block.rows.size()), m = shape_->rows;
        double by[4] = {0, 0, 0, 0};
        for (int r = 0; r < q; r++) {
            for (int i = 0; i < height; i++) by[i] = y[size_t(i) * q + r];
            double *to = small_.data() + size_t(block.rows[r]) * m;
            for (const Shape::Run &run : block.runs) {
                if (run.place > r) break;
                add_rows(to + run.row, y + run.place, q, by, height, std::min(run.count, r + 1 - run.place));
            }
        }
    }

    // B = L L' of a block, and y = L^-1 C'.
    void factor_block(const Shape::Block &block, double *b, double *y) const {
        const Shape &s = *shape_;
        const int n = int(block.columns.size()), q = int(block.rows.size());
        for (int k : block.things) {
            const Shape::Thing &thing = s.things[k];
            for (int e = thing.first; e < thing.first + thing.count; e++)
                for (int f = thing.first; f <= e; f++)  // columns of things are in order
                    b[size_t(s.index[e]) * n + s.index[f]] += walls_[k].theta * s.value[e] * s.value[f];
        }
        for (int i = 0; i < n; i++) {
            double *row = b + size_t(i) * n, *to = y + size_t(i) * q;
            row[i] += stiff_[block.columns[i]];
            for (int r = 0; r < q; r++)
                to[r] = block.rows[r] == s.first - 1 ? slope_[block.columns[i]] : block.on[size_t(r) * n + i];
            double rest = row[i];
            for (int j = 0; j < i; j++) {
                row[j] = (row[j] - dot(row, b + size_t(j) * n, j)) / b[size_t(j) * n + j];
                rest -= row[j] * row[j];
                if (row[j] != 0.0) add_times(to, y + size_t(j) * q, -row[j], q);
            }
            row[i] = std::sqrt(std::max(rest, 1e-14 * row[i] + 1e-200));
            for (int r = 0; r < q; r++) to[r] /= row[i];
        }
    }

    // L D L' in place: D may have negative entries where the ball is uneven, but none of 0.
    bool factor_small() {
        const int m = shape_->rows;
        for (int i = 0; i < m; i++) {
            double *row = small_.data() + size_t(i) * m, pivot = row[i];
            for (int j = 0; j < i; j++) row[j] -= dot(row, small_.data() + size_t(j) * m, j);  // L D of this row so far
            for (int j = 0; j < i; j++) {
                const double l = row[j] / small_[size_t(j) * m + j];
                pivot -= l * row[j];
                row[j] = l;
            }
            const double least = 1e-14 * std::fabs(row[i]) + 1e-200;
            if (std::isnan(pivot)) return false;
            row[i] = std::fabs(pivot) < least ? std::copysign(least, pivot) : pivot;
        }
        return true;
    }

    // A direction towards products `tau`, corrected by those of the last direction: dx_, e_ for equations, and all sides.
    void newton(double tau, bool corrected) {
        const Shape &s = *shape_;
        const int m = s.rows;
        right_ = residual_;
        for (size_t k = 0; k < walls_.size(); k++) {
            Wall &w = walls_[k];
            for (Side *side : {&w.low, &w.high})
                side->goal = (tau - side->s * side->z - (corrected ? side->ds * side->dz : 0.0) - side->z * side->off) / side->s;
            const double by = w.high.goal - w.low.goal;
            each(s.things[k], [&](int j, double on) { right_[j] -= by * on; });
        }
        const std::vector<double> pull = cone_.aim(s, tau, corrected);
        for (size_t c = 0; c < s.ball.size(); c++)
            if (s.ball[c] >= 0) right_[s.ball[c]] += pull[c];
        e_ = equation_;
        half_.resize(s.columns);
        const double *b = blocks_.data(), *y = pulled_.data();
        double *half = half_.data();
        for (const Shape::Block &block : s.blocks) {  // half = L^-1 right, e += y' half
            const int n = int(block.columns.size()), q = int(block.rows.size());
            for (int i = 0; i < n; i++) {
                half[i] = (right_[block.columns[i]] - dot(b + size_t(i) * n, half, i)) / b[size_t(i) * n + i];
                for (const Shape::Run &run : block.runs)
                    add_times(e_.data() + run.row, y + size_t(i) * q + run.place, half[i], run.count);
            }
            b += size_t(n) * n;
            y += size_t(n) * q;
            half += n;
        }
        for (int i = 0; i < m; i++) e_[i] -= dot(small_.data() + size_t(i) * m, e_.data(), i);
        for (int i = 0; i < m; i++) e_[i] /= small_[size_t(i) * m + i];
        for (int i = m - 1; i > 0; i--) add_times(e_.data(), small_.data() + size_t(i) * m, -e_[i], i);
        back();
        for (size_t k = 0; k < walls_.size(); k++) {
            Wall &w = walls_[k];
            const double go = times(s.things[k], dx_);
            w.low.ds = go + w.low.off;
            w.high.ds = w.high.off - go;
            w.low.dz = w.low.goal - w.low.z / w.low.s * go;
            w.high.dz = w.high.goal + w.high.z / w.high.s * go;
        }
        cone_.follow(s, dx_);
    }

    // dx = L'^-1 (half - y e), block by block.
    void back() {
        const Shape &s = *shape_;
        dx_.resize(s.columns);
        const double *b = blocks_.data(), *y = pulled_.data();
        double *half = half_.data();
        for (const Shape::Block &block : s.blocks) {
            const int n = int(block.columns.size()), q = int(block.rows.size());
            for (int i = n - 1; i >= 0; i--) {
                for (const Shape::Run &run : block.runs)
                    half[i] -= dot(y + size_t(i) * q + run.place, e_.data() + run.row, run.count);
                for (int k = i + 1; k < n; k++) half[i] -= b[size_t(k) * n + i] * dx_[block.columns[k]];
                dx_[block.columns[i]] = half[i] / b[size_t(i) * n + i];
            }
            b += size_t(n) * n;
            y += size_t(n) * q;
            half += n;
        }
    }

    // How far all distances (or multipliers) stay positive.
    double longest(bool primal) const {
        double most = 1.0 / STEP;
        for (const Wall &w : walls_)
            for (const Side &side : {w.low, w.high}) {
                const double v = primal ? side.s : side.z, by = primal ? side.ds : side.dz;
                if (by < 0) most = std::min(most, -v / by);
            }
        return cone_.longest(*shape_, primal, most);
    }
};

}  // namespace likewise
