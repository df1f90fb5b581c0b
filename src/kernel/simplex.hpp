// Simplex: the bounded dual simplex method on a dense tableau, for programs of which only bounds change.
//
// Variables are x (columns) and r = A x (rows), all within finite bounds. Basic ones are linear in the others:
// basic = T nonbasic, objective = d nonbasic. Since every bound is finite, any basis is dual feasible: a nonbasic
// variable is put at the end that its d asks for. So the method starts anywhere, and whenever it stops, the d of rows are
// multipliers that bound the objective. They are hints: `Program::bound` evaluates them with outward rounding.
#pragma once
#include <optional>

#include "interior.hpp"

namespace likewise {

constexpr double PIVOT = 1e-8;       // the least pivot
constexpr double FEASIBLE = 1e-9;    // how far a basic variable may be outside
constexpr double SHORT = 1e-7;       // by how much a row must stay outside before nothing is called within all bounds
constexpr double ROUND = 1e-7;        // how far a point may be outside the ball, relative, before a tangent is drawn
constexpr long A_FEW_PIVOTS = 100;   // a limit below which a trial is meant
constexpr double TIE = 1e-11;        // ratios that count as the same

class Tableau {
  public:
    int height = 0, width = 0;
    long pivots = 0, since = 0;  // steps in all, and since the tableau was made
    std::vector<int> basic, nonbasic;
    std::vector<double> d, beta, at, weight;
    std::vector<double> slopes;  // of the program's bends
    double accuracy = 0.01;  // how far a point may be outside a ball, relative to it and to the objective

    explicit Tableau(const Program &program) : slopes(program.slopes()), program_(&program), cost_(program.cost) {
        if (program.shape) {  // then all is left to the interior point method
            interior_.emplace(program, program.shape);
            height = width = program.shape->rows;
        } else {
            make();
        }
    }

    // Begin anew from rows as they are: those that say something are basic, equations solved for their columns.
    void make() {
        const Program &p = *program_;
        basic.clear();
        nonbasic.clear();
        moved_.clear();
        passed_.clear();
        for (int i = 0; i < p.rows; i++)
            if (p.kept[i]) basic.push_back(p.columns + i);
        for (int j = 0; j < p.columns; j++) nonbasic.push_back(j);
        height = int(basic.size());
        width = int(nonbasic.size());
        table_.assign(size_t(height) * width, 0.0);
        for (int k = 0; k < height; k++) {
            int i = basic[k] - p.columns;
            for (int e = p.start[i]; e < p.start[i + 1]; e++) row(k)[p.index[e]] = p.value[e];
        }
        std::vector<int> place(p.variables() + cuts_.size(), -1);
        for (int k = 0; k < height; k++) place[basic[k]] = k;
        for (size_t b = 0; b < p.bends.size(); b++)
            if (int k = place[p.columns + p.bends[b].row]; k >= 0) {
                row(k)[p.bends[b].plus] -= slopes[b];
                if (p.bends[b].minus >= 0) row(k)[p.bends[b].minus] += slopes[b];
            }
        for (size_t k = 0; k < cuts_.size(); k++) {
            basic.push_back(p.variables() + int(k));
            table_.resize(table_.size() + width, 0.0);
            for (size_t c = 0; c < p.ball.columns.size(); c++) row(height)[p.ball.columns[c]] = cuts_[k].on[c];
            height++;
        }
        d.assign(width, 0.0);
        for (int j = 0; j < width; j++) d[j] = cost_[j] + p.nudge[j];
        weight.assign(height, 1.0);
        std::vector<uint8_t> gone(p.variables() + cuts_.size(), 0);
        std::vector<double> given(p.variables() + cuts_.size(), 0.0);
        for (size_t k = 0; k < p.solved.size(); k++) {
            auto [i, j] = p.solved[k];
            pivot(place[p.columns + i], j);
            gone[p.columns + i] = 1;
            given[p.columns + i] = p.given[k];
        }
        for (int j = 0; j < p.columns; j++) gone[j] = p.zero[j];
        drop(gone, given);
        at.assign(width, 0.0);
        beta.assign(height, 0.0);
        since = 0;
        for (int k = 0; k < height; k++) {
            double s = 1.0;
            for (int c = 0; c < width; c++) s += row(k)[c] * row(k)[c];
            weight[k] = s;
        }
    }

    // Make the tableau of the present basis anew from the program, to get rid of rounding.
    bool refresh() {
        if (interior_) return false;
        std::vector<int> wanted = basic;
        long before = pivots;
        make();
        pivots = before;
        moved_.clear();
        std::vector<uint8_t> in(program_->variables() + cuts_.size(), 0);
        for (int v : wanted) in[v] = 1;
        for (int c = 0; c < width; c++) {
            if (!in[nonbasic[c]]) continue;
            int best = -1;
            for (int k = 0; k < height; k++)
                if (!in[basic[k]] && std::fabs(row(k)[c]) > (best < 0 ? 1e-7 : std::fabs(row(best)[c]))) best = k;
            if (best >= 0) pivot(best, c);
        }
        since = 0;
        passed_.assign(height, 0);
        return true;
    }

    // Maximise within bounds of all variables; stop once the objective is below `enough`, or after `most` steps.
    Ended solve(const double *low, const double *high, double enough, long most) {
        if (interior_) return inside(low, high, enough, most);
        low_.assign(low, low + program_->variables());
        high_.assign(high, high + program_->variables());
        if (cuts_.size() > spacious()) purge();
        for (const Cut &cut : cuts_) {
            low_.push_back(cut.low);
            high_.push_back(cut.high);
        }
        if (since > 3000) refresh();
        place();
        ray_ = -1;
        passed_.assign(height, 0);
        for (long step = 0; step < most; step++) {
            if (step % 64 == 63) place();
            if (objective() < enough) return Ended::below;
            int out = leaving();
            if (out < 0) {
                bool drawn = touch();
                if (objective() - over_ < enough) return Ended::below;
                if (!drawn) return Ended::optimal;
                continue;
            }
            if (!advance(out)) return Ended::empty;
        }
        return Ended::tired;
    }

    // Take other slopes for some of the program's bends. The basis stays: a basic row changes alone; for one at an end, all
    // that is linear in it is written in terms of the new one.
    void reshape(const std::vector<std::pair<int, double>> &changes) {
        const Program &p = *program_;
        std::vector<int> place(p.variables(), 0);  // k + 1 where basic, -(c + 1) where not
        for (int k = 0; k < height; k++)
            if (basic[k] < p.variables()) place[basic[k]] = k + 1;
        for (int c = 0; c < width; c++)
            if (nonbasic[c] < p.variables()) place[nonbasic[c]] = -(c + 1);
        bool whole = true;
        for (auto [b, slope] : changes) {
            const double by = slopes[b] - slope;
            slopes[b] = slope;
            whole = whole && reshape(p.bends[b], by, place);
        }
        if (!whole) refresh();
    }

    // Turn to something else to maximise: any basis will do to go on from.
    void aim(std::vector<double> cost) {
        const Program &p = *program_;
        cost_ = std::move(cost);
        if (interior_) return interior_->aim(cost_);
        for (int c = 0; c < width; c++) d[c] = nonbasic[c] < p.columns ? cost_[nonbasic[c]] + p.nudge[nonbasic[c]] : 0.0;
        for (int k = 0; k < height; k++) {
            double f = basic[k] < p.columns ? cost_[basic[k]] + p.nudge[basic[k]] : 0.0;
            if (f != 0.0) add_times(d.data(), row(k), f, width);
        }
    }

    double objective() const { return interior_ ? interior_->objective() : dot(d.data(), at.data(), width); }

    // Write the value of every variable of the program to x.
    void point(std::vector<double> &x) const {
        if (interior_) return interior_->point(x);
        for (int k = 0; k < height; k++)
            if (basic[k] < int(x.size())) x[basic[k]] = beta[k];
        for (int c = 0; c < width; c++)
            if (nonbasic[c] < int(x.size())) x[nonbasic[c]] = at[c];
    }

    // Return the multipliers of rows; along the ray of an empty program they are pushed until the bound is below -1.
    Multipliers multipliers() const {
        if (interior_) return interior_->multipliers();
        const Program &p = *program_;
        const int known = p.variables();
        std::vector<double> all(known + cuts_.size(), 0.0);
        for (int c = 0; c < width; c++) all[nonbasic[c]] = d[c];
        if (ray_ >= 0) {
            double far = std::max(farthest_, (std::max(objective(), 0.0) + 1.0) / missing_) * (above_ ? 1.0 : -1.0);
            for (int c = 0; c < width; c++) all[nonbasic[c]] -= far * row(ray_)[c];
            all[basic[ray_]] += far;
        }
        Multipliers found;
        found.rows.assign(all.begin() + p.columns, all.begin() + p.columns + p.rows);
        if (!p.ball.empty()) {
            found.mu.assign(p.ball.height, 0.0);
            for (size_t k = 0; k < cuts_.size(); k++)
                if (all[known + k] != 0.0)
                    for (int i = 0; i < p.ball.directions; i++)
                        for (int e = 0; e < p.ball.height; e++)
                            found.mu[e] += all[known + k] * cuts_[k].u[i] * p.ball.turn[size_t(i) * p.ball.height + e];
        }
        all.resize(p.columns);
        p.complete(found.rows, all, cost_, slopes);
        return found;
    }

    const std::vector<double> &cost() const { return cost_; }

  private:
    const Program *program_;
    std::vector<double> cost_;
    std::vector<double> table_;
    struct Cut {  // u.(A d) <= eps: u is a unit vector, of which Q is applied to what it multiplies
        std::vector<double> u, on;
        double low, high;
    };
    std::vector<Cut> cuts_;
    std::optional<Interior> interior_;
    std::vector<double> low_, high_;
    int ray_ = -1;
    bool above_ = false;
    double missing_ = 0, farthest_ = 0;  // how far outside an empty program's row stays, and the last ratio passed
    struct Candidate {
        double ratio, size;
        int column;
    };
    std::vector<Candidate> candidates_;
    std::vector<double> where_, direction_;
    double over_ = 0;  // by how much the objective exceeds what its multipliers prove
    std::vector<std::pair<int, double>> moved_;  // columns, and by how much they have just moved
    std::vector<uint8_t> passed_;  // rows that are outside by next to nothing, and stay there

    Ended inside(const double *low, const double *high, double enough, long most) {
        const long before = interior_->steps;
        interior_->accuracy = accuracy;
        const Ended ended = interior_->solve(low, high, enough, most < A_FEW_PIVOTS ? A_FEW : ENOUGH);
        pivots += interior_->steps - before;
        return ended;
    }

    double *row(int k) { return table_.data() + size_t(k) * width; }
    const double *row(int k) const { return table_.data() + size_t(k) * width; }

    // Add `by` times x_plus - x_minus to a row; false where that is the end of the basis.
    bool reshape(const Bend &bend, double by, const std::vector<int> &place) {
        const int at = place[program_->columns + bend.row];
        if (at == 0) return true;  // a row that says nothing
        direction_.assign(width, 0.0);
        for (int sign : {1, -1}) {
            const int v = sign > 0 ? bend.plus : bend.minus, there = v < 0 ? 0 : place[v];
            if (there > 0) add_times(direction_.data(), row(there - 1), sign, width);
            if (there < 0) direction_[-there - 1] += sign;
        }
        if (at > 0) {
            weight[at - 1] = 1.0 + add_times(row(at - 1), direction_.data(), by, width);
            return true;
        }
        const int c = -at - 1;
        const double share = 1.0 + by * direction_[c];
        if (std::fabs(share) < 1e-3) return false;
        for (double &one : direction_) one *= -by / share;
        direction_[c] = 1.0 / share;
        for (int k = 0; k < height; k++) {
            const double f = row(k)[c];
            if (f == 0.0) continue;
            row(k)[c] = 0.0;
            weight[k] = 1.0 + add_times(row(k), direction_.data(), f, width);
        }
        const double f = d[c];
        d[c] = 0.0;
        add_times(d.data(), direction_.data(), f, width);
        pivots++;
        since++;
        return true;
    }

    size_t spacious() const { return 40 + 12 * size_t(program_->ball.directions); }

    // Draw a tangent of the ball where the point is, if that is outside by more than matters beside the objective.
    // Together, multipliers y of tangents u prove eps |sum y u|, while the program counts eps sum y.
    bool touch() {
        const Program &p = *program_;
        const Ball &ball = p.ball;
        over_ = 0;
        if (ball.empty()) return false;
        const size_t n = ball.columns.size();
        where_.assign(p.columns, 0.0);
        point(where_);
        std::vector<double> u(ball.directions, 0.0), all(ball.directions, 0.0);
        for (int i = 0; i < ball.directions; i++)
            for (size_t c = 0; c < n; c++) u[i] += ball.turned[i * n + c] * where_[ball.columns[c]];
        double sum = 0;
        for (int c = 0; c < width; c++)
            if (nonbasic[c] >= p.variables() && d[c] > 0) {
                const Cut &cut = cuts_[nonbasic[c] - p.variables()];
                sum += d[c];
                for (int i = 0; i < ball.directions; i++) all[i] += d[c] * cut.u[i];
            }
        over_ = ball.eps * (sum - std::sqrt(dot(all.data(), all.data(), ball.directions)));
        if (!normalise(u, ball.eps * (1 + ROUND + accuracy * std::min(std::fabs(objective()), 1.0)))) return false;
        draw(std::move(u));
        return true;
    }

    static bool normalise(std::vector<double> &u, double least) {
        double norm = std::sqrt(dot(u.data(), u.data(), int(u.size())));
        if (!(norm > least)) return false;
        for (double &one : u) one /= norm;
        return true;
    }

    // Add the row u.(Q A d) <= eps.
    void draw(std::vector<double> u) {
        const Program &p = *program_;
        const Ball &ball = p.ball;
        const size_t n = ball.columns.size();
        Cut cut{std::move(u), std::vector<double>(n, 0.0), -ball.eps, ball.eps};
        for (size_t c = 0; c < n; c++)
            for (int i = 0; i < ball.directions; i++) cut.on[c] += cut.u[i] * ball.turned[i * n + c];
        table_.resize(table_.size() + width, 0.0);
        double *t = row(height);
        std::vector<double> of(p.columns, 0.0);
        for (size_t c = 0; c < n; c++) of[ball.columns[c]] = cut.on[c];
        for (int c = 0; c < width; c++)
            if (nonbasic[c] < p.columns) t[c] += of[nonbasic[c]];
        for (int k = 0; k < height; k++)
            if (basic[k] < p.columns && of[basic[k]] != 0.0) add_times(t, row(k), of[basic[k]], width);
        basic.push_back(p.variables() + int(cuts_.size()));
        beta.push_back(dot(t, at.data(), width));
        weight.push_back(1.0 + dot(t, t, width));
        passed_.push_back(0);
        low_.push_back(cut.low);
        high_.push_back(cut.high);
        cuts_.push_back(std::move(cut));
        height++;
    }

    // Forget tangents that do not touch.
    void purge() {
        const int known = program_->variables();
        std::vector<int> renamed(cuts_.size(), -1);
        std::vector<Cut> kept;
        for (int v : nonbasic)
            if (v >= known) {
                renamed[v - known] = int(kept.size());
                kept.push_back(cuts_[v - known]);
            }
        int to = 0;
        for (int k = 0; k < height; k++) {
            if (basic[k] >= known) continue;
            if (to != k) {
                std::copy(row(k), row(k) + width, row(to));
                basic[to] = basic[k];
                weight[to] = weight[k];
                beta[to] = beta[k];
            }
            to++;
        }
        height = to;
        table_.resize(size_t(height) * width);
        basic.resize(height);
        weight.resize(height);
        beta.resize(height);
        for (int &v : nonbasic)
            if (v >= known) v = known + renamed[v - known];
        cuts_.swap(kept);
    }

    // Replace columns whose value is given once and for all by one column of constants, the last.
    void drop(const std::vector<uint8_t> &gone, const std::vector<double> &given) {
        std::vector<int> stay, names;
        std::vector<double> costs;
        double cost = 0;
        for (int c = 0; c < width; c++)
            if (gone[nonbasic[c]]) {
                cost += d[c] * given[nonbasic[c]];
            } else {
                stay.push_back(c);
                names.push_back(nonbasic[c]);
                costs.push_back(d[c]);
            }
        names.push_back(program_->columns + program_->rows);
        costs.push_back(cost);
        std::vector<double> smaller(size_t(height) * names.size());
        for (int k = 0; k < height; k++) {
            double *to = smaller.data() + k * names.size();
            for (size_t c = 0; c < stay.size(); c++) to[c] = row(k)[stay[c]];
            for (int c = 0; c < width; c++)
                if (gone[nonbasic[c]]) to[stay.size()] += row(k)[c] * given[nonbasic[c]];
        }
        table_.swap(smaller);
        nonbasic.swap(names);
        d.swap(costs);
        width = int(nonbasic.size());
    }

    // Put nonbasic variables at the ends their d ask for, and compute the basic ones.
    void place() {
        for (int c = 0; c < width; c++) {
            int v = nonbasic[c];
            if (d[c] > 1e-12)
                at[c] = high_[v];
            else if (d[c] < -1e-12)
                at[c] = low_[v];
            else
                at[c] = std::fabs(at[c] - low_[v]) <= std::fabs(at[c] - high_[v]) ? low_[v] : high_[v];
        }
        for (int k = 0; k < height; k++) beta[k] = dot(row(k), at.data(), width);
    }

    int leaving() const {
        int best = -1;
        double most = 0;
        for (int k = 0; k < height; k++) {
            if (passed_[k]) continue;
            int v = basic[k];
            double off = std::max(beta[k] - high_[v], low_[v] - beta[k]);
            if (off <= FEASIBLE * (1.0 + std::fabs(beta[k]))) continue;
            double worth = off * off / weight[k];
            if (worth > most) {
                most = worth;
                best = k;
            }
        }
        return best;
    }

    // One step of the dual simplex method, with as many variables moved to their other ends as pays.
    bool advance(int out) {
        const double *t = row(out);
        int v = basic[out];
        above_ = beta[out] > high_[v];
        double remaining = above_ ? beta[out] - high_[v] : low_[v] - beta[out];
        candidates_.clear();
        for (int c = 0; c < width; c++) {
            int j = nonbasic[c];
            if (high_[j] <= low_[j]) continue;
            double a = above_ ? t[c] : -t[c];
            if (std::fabs(a) < PIVOT) continue;
            bool at_high = at[c] == high_[j];
            if (at_high ? a > 0 : a < 0) candidates_.push_back({std::max(0.0, d[c] / a), std::fabs(a), c});
        }
        std::sort(candidates_.begin(), candidates_.end(),
                  [](const Candidate &x, const Candidate &y) { return x.ratio < y.ratio; });
        size_t k = 0;
        for (; k < candidates_.size(); k++) {
            int j = nonbasic[candidates_[k].column];
            double less = remaining - candidates_[k].size * (high_[j] - low_[j]);
            if (less <= 0) break;
            remaining = less;
        }
        if (k == candidates_.size()) {  // all moved, and still outside: nothing is within all bounds
            if (remaining <= SHORT * (1.0 + std::fabs(beta[out]))) {  // by so little that rounding may be all there is to it
                passed_[out] = 1;
                return true;
            }
            missing_ = remaining;
            farthest_ = candidates_.empty() ? 0.0 : candidates_.back().ratio;
            ray_ = out;
            for (const Candidate &one : candidates_) flip(one.column);
            return false;
        }
        size_t chosen = k;
        for (size_t e = k + 1; e < candidates_.size() && candidates_[e].ratio <= candidates_[k].ratio + TIE; e++)
            if (candidates_[e].size > candidates_[chosen].size) chosen = e;
        moved_.clear();
        for (size_t e = 0; e < k; e++) {
            int c = candidates_[e].column, j = nonbasic[c];
            double other = at[c] == high_[j] ? low_[j] : high_[j];
            moved_.push_back({c, other - at[c]});
            at[c] = other;
        }
        int in = candidates_[chosen].column;
        double goal = above_ ? high_[v] : low_[v], here = beta[out];
        for (auto [c, by] : moved_) here += t[c] * by;
        double step = (goal - here) / t[in], entered = at[in] + step;
        moved_.push_back({in, step});
        at[in] = goal;
        pivot(out, in);
        beta[out] = entered;
        return true;
    }

    void flip(int c) {
        int j = nonbasic[c];
        double other = at[c] == high_[j] ? low_[j] : high_[j], step = other - at[c];
        if (step == 0) return;
        at[c] = other;
        for (int i = 0; i < height; i++) beta[i] += row(i)[c] * step;
    }

    // Exchange the basic variable of row `out` with the nonbasic one of column `in`; carry on what has `moved_`.
    void pivot(int out, int in) {
        double *t = row(out), by = t[in];
        for (int c = 0; c < width; c++) t[c] /= -by;
        t[in] = 1.0 / by;
        weight[out] = 1.0 + dot(t, t, width);
        for (int k = 0; k < height; k++) {
            if (k == out) continue;
            double *r = row(k), f = r[in];
            for (auto [c, step] : moved_) beta[k] += r[c] * step;
            if (f == 0.0) continue;
            r[in] = 0.0;
            weight[k] = 1.0 + add_times(r, t, f, width);
        }
        double f = d[in];
        if (f != 0.0) {
            d[in] = 0.0;
            add_times(d.data(), t, f, width);
        }
        std::swap(basic[out], nonbasic[in]);
        if (!passed_.empty()) passed_[out] = 0;
        pivots++;
        since++;
    }
};

}  // namespace likewise
