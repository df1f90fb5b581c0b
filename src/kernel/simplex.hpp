// Simplex: the bounded dual simplex method on a tableau (`basis.hpp`), for programs of which only bounds change.
//
// All variables are within finite bounds, so any basis is dual feasible: a nonbasic variable is put at the end that its d asks
// for. So the method starts anywhere, and whenever it stops, the d of rows are multipliers that bound the objective. They are
// hints: `Program::bound` evaluates them with outward rounding.
#pragma once
#include <optional>

#include "basis.hpp"
#include "interior.hpp"

namespace likewise {

constexpr double PIVOT = 1e-8;       // the least pivot
constexpr double FEASIBLE = 1e-9;    // how far a basic variable may be outside
constexpr double SHORT = 1e-7;       // by how much a row must stay outside before nothing is called within all bounds
constexpr double ROUND = 1e-7;       // how far a point may be outside the ball, relative, before a tangent is drawn
constexpr double TIE = 1e-11;        // ratios that count as the same
constexpr long A_FEW_PIVOTS = 100;   // a limit below which a trial is meant
constexpr long OFTEN = 64, WORN = 3000;  // steps after which all values are computed anew, and the tableau

class Tableau {
  public:
    double accuracy = 0.01;  // how far a point may be outside a ball, relative to it and to the objective

    explicit Tableau(const Program &program) : program_(&program), cost_(program.cost), basis_(program) {
        if (program.shape)  // then all is left to the interior point method
            interior_.emplace(program, program.shape);
        else
            basis_.make(cost_);
    }

    const std::vector<double> &slopes() const { return basis_.slopes; }
    const std::vector<double> &cost() const { return cost_; }
    long pivots() const { return interior_ ? interior_->steps : basis_.pivots; }
    double objective() const {
        return interior_ ? interior_->objective() : dot(basis_.d.data(), basis_.at.data(), basis_.width);
    }

    // How many numbers a step touches.
    double size() const {
        return interior_ ? double(program_->shape->rows) * program_->shape->rows : double(basis_.height()) * basis_.width;
    }

    // Make the tableau of the present basis anew, to get rid of rounding; false if there is none.
    bool refresh() {
        if (!interior_) basis_.refresh(cost_);
        return !interior_;
    }

    // Maximise within bounds of all variables; stop once the objective is below `enough`, or after `most` steps.
    Ended solve(const double *low, const double *high, double enough, long most) {
        if (interior_) return inside(low, high, enough, most);
        low_.assign(low, low + program_->variables());
        high_.assign(high, high + program_->variables());
        if (basis_.cuts.size() > spacious()) basis_.purge();
        for (const Basis::Cut &cut : basis_.cuts) {
            low_.push_back(cut.low);
            high_.push_back(cut.high);
        }
        if (basis_.since > WORN) refresh();
        place();
        ray_ = -1;
        passed_.assign(basis_.variables(), 0);
        for (long step = 0; step < most; step++) {
            if (step % OFTEN == OFTEN - 1) place();
            if (objective() < enough) return Ended::below;
            const int out = leaving();
            if (out < 0) {
                const bool drawn = touch();
                if (objective() - over_ < enough) return Ended::below;
                if (!drawn) return Ended::optimal;
                continue;
            }
            if (!advance(out)) return Ended::empty;
        }
        return Ended::tired;
    }

    // Take other slopes for some of the program's bends.
    void reshape(const std::vector<std::pair<int, double>> &changes) {
        if (!basis_.reshape(changes)) refresh();
    }

    // Turn to something else to maximise: any basis will do to go on from.
    void aim(std::vector<double> cost) {
        cost_ = std::move(cost);
        interior_ ? interior_->aim(cost_) : basis_.aim(cost_);
    }

    // Write the value of every variable of the program to x.
    void point(std::vector<double> &x) const {
        if (interior_) return interior_->point(x);
        const int n = int(x.size());
        for (const std::vector<int> *some : {&basis_.basic, &basis_.loose})
            for (int v : *some)
                if (v < n) x[v] = basis_.beta[v];
        for (int c = 0; c < basis_.width; c++)
            if (basis_.nonbasic[c] < n) x[basis_.nonbasic[c]] = basis_.at[c];
    }

    // Return the multipliers of rows; along the ray of an empty program they are pushed until the bound is below -1.
    Multipliers multipliers() const {
        if (interior_) return interior_->multipliers();
        const Program &p = *program_;
        const int known = p.variables();
        std::vector<double> all(basis_.variables(), 0.0);
        for (int c = 0; c < basis_.width; c++) all[basis_.nonbasic[c]] = basis_.d[c];
        if (ray_ >= 0) {
            const double far = std::max(farthest_, (std::max(objective(), 0.0) + 1.0) / missing_) * (above_ ? 1.0 : -1.0);
            for (int c = 0; c < basis_.width; c++) all[basis_.nonbasic[c]] -= far * along_[c];
            all[ray_] += far;
        }
        Multipliers found;
        found.rows.assign(all.begin() + p.columns, all.begin() + p.columns + p.rows);
        if (!p.ball.empty()) {
            found.mu.assign(p.ball.height, 0.0);
            for (size_t k = 0; k < basis_.cuts.size(); k++)
                if (all[known + k] != 0.0)
                    for (int i = 0; i < p.ball.directions; i++)
                        for (int e = 0; e < p.ball.height; e++)
                            found.mu[e] += all[known + k] * basis_.cuts[k].u[i] * p.ball.turn[size_t(i) * p.ball.height + e];
        }
        all.resize(p.columns);
        p.complete(found.rows, all, cost_, basis_.slopes);
        return found;
    }

  private:
    const Program *program_;
    std::vector<double> cost_;
    Basis basis_;
    std::optional<Interior> interior_;
    std::vector<double> low_, high_;
    int ray_ = -1;  // a variable that stays outside: nothing is within all bounds
    std::vector<double> along_;  // its row
    bool above_ = false;
    double missing_ = 0, farthest_ = 0;  // how far outside it stays, and the last ratio passed
    struct Candidate {
        double ratio, size;
        int column;
    };
    std::vector<Candidate> candidates_;
    double over_ = 0;  // by how much the objective exceeds what its multipliers prove
    Basis::Moves moved_;
    std::vector<uint8_t> passed_;  // variables that are outside by next to nothing, and stay there

    Ended inside(const double *low, const double *high, double enough, long most) {
        interior_->accuracy = accuracy;
        return interior_->solve(low, high, enough, most < A_FEW_PIVOTS ? A_FEW : ENOUGH);
    }

    size_t spacious() const { return 40 + 12 * size_t(program_->ball.directions); }

    // Draw a tangent of the ball where the point is, if that is outside by more than matters beside the objective.
    // Together, multipliers y of tangents u prove eps |sum y u|, while the program counts eps sum y.
    bool touch() {
        const Ball &ball = program_->ball;
        over_ = 0;
        if (ball.empty()) return false;
        const size_t n = ball.columns.size();
        std::vector<double> u(ball.directions, 0.0), all(ball.directions, 0.0);
        for (size_t c = 0; c < n; c++)
            if (const double x = basis_.of_column(ball.columns[c]); x != 0.0)
                for (int i = 0; i < ball.directions; i++) u[i] += ball.turned[i * n + c] * x;
        double sum = 0;
        for (int c = 0; c < basis_.width; c++)
            if (basis_.nonbasic[c] >= program_->variables() && basis_.d[c] > 0) {
                const Basis::Cut &cut = basis_.cuts[basis_.nonbasic[c] - program_->variables()];
                sum += basis_.d[c];
                for (int i = 0; i < ball.directions; i++) all[i] += basis_.d[c] * cut.u[i];
            }
        over_ = ball.eps * (sum - std::sqrt(dot(all.data(), all.data(), ball.directions)));
        if (!normalise(u, ball.eps * (1 + ROUND + accuracy * std::min(std::fabs(objective()), 1.0)))) return false;
        draw(std::move(u));
        return true;
    }

    static bool normalise(std::vector<double> &u, double least) {
        const double norm = std::sqrt(dot(u.data(), u.data(), int(u.size())));
        if (!(norm > least)) return false;
        for (double &one : u) one /= norm;
        return true;
    }

    // Add the row u.(Q A d) <= eps.
    void draw(std::vector<double> u) {
        const Ball &ball = program_->ball;
        const size_t n = ball.columns.size();
        Basis::Cut cut{std::move(u), std::vector<double>(n, 0.0), -ball.eps, ball.eps};
        for (size_t c = 0; c < n; c++)
            for (int i = 0; i < ball.directions; i++) cut.on[c] += cut.u[i] * ball.turned[i * n + c];
        passed_.push_back(0);
        low_.push_back(cut.low);
        high_.push_back(cut.high);
        basis_.add(std::move(cut));
    }

    // Put nonbasic variables at the ends their d ask for, and compute the basic ones.
    void place() {
        for (int c = 0; c < basis_.width; c++) {
            const int v = basis_.nonbasic[c];
            double &at = basis_.at[c];
            if (basis_.d[c] > 1e-12)
                at = high_[v];
            else if (basis_.d[c] < -1e-12)
                at = low_[v];
            else
                at = std::fabs(at - low_[v]) <= std::fabs(at - high_[v]) ? low_[v] : high_[v];
        }
        basis_.evaluate();
    }

    int leaving() const {
        int best = -1;
        double most = 0;
        for (const std::vector<int> *some : {&basis_.basic, &basis_.loose})
            for (int v : *some) {
                const double b = basis_.beta[v], off = std::max(b - high_[v], low_[v] - b);
                if (off <= FEASIBLE * (1.0 + std::fabs(b)) || passed_[v]) continue;
                const double worth = off * off / basis_.weight[v];
                if (worth > most) {
                    most = worth;
                    best = v;
                }
            }
        return best;
    }

    // One step of the dual simplex method, with as many variables moved to their other ends as pays; false if all were, and
    // nothing is within all bounds.
    bool advance(int out) {
        const double *t = basis_.express(out), here = basis_.beta[out];
        above_ = here > high_[out];
        double remaining = above_ ? here - high_[out] : low_[out] - here, last = 0;
        gather(t);
        moved_.clear();
        while (!candidates_.empty()) {
            const Candidate next = candidates_.front();
            const double less = remaining - next.size * range(next.column);
            if (less <= 0) {
                exchange(out, largest(next).column, t);
                return true;
            }
            remaining = less;
            last = next.ratio;
            moved_.push_back({next.column, 0.0});
            std::pop_heap(candidates_.begin(), candidates_.end(), later);
            candidates_.pop_back();
        }
        if (remaining <= SHORT * (1.0 + std::fabs(here))) {  // by so little that rounding may be all there is to it
            passed_[out] = 1;
            return true;
        }
        missing_ = remaining;
        farthest_ = last;
        ray_ = out;
        along_.assign(t, t + basis_.width);
        for (const auto &[c, none] : moved_) flip(c);
        basis_.evaluate();
        return false;
    }

    static bool later(const Candidate &x, const Candidate &y) { return x.ratio > y.ratio; }

    // List the columns that may enter, as a heap: the first few are all that is asked for, most often.
    void gather(const double *t) {
        candidates_.clear();
        for (int c = 0; c < basis_.width; c++) {
            const int j = basis_.nonbasic[c];
            if (high_[j] <= low_[j]) continue;
            const double a = above_ ? t[c] : -t[c];
            if (std::fabs(a) < PIVOT) continue;
            const bool at_high = basis_.at[c] == high_[j];
            if (at_high ? a > 0 : a < 0) candidates_.push_back({std::max(0.0, basis_.d[c] / a), std::fabs(a), c});
        }
        std::make_heap(candidates_.begin(), candidates_.end(), later);
    }

    // Of candidates whose ratios are all but the least one, the one with the largest pivot.
    Candidate largest(Candidate best) const {
        const double most = candidates_.front().ratio + TIE;
        for (const Candidate &one : candidates_)
            if (one.ratio <= most && one.size > best.size) best = one;
        return best;
    }

    // Let a variable leave the basis at the end that it is beyond, for that of a column, and move others to their other ends.
    void exchange(int out, int in, const double *t) {
        const double goal = above_ ? high_[out] : low_[out];
        double here = basis_.beta[out];
        for (auto &[c, by] : moved_) {
            by = flip(c);
            here += t[c] * by;
        }
        const double step = (goal - here) / t[in], entered = basis_.at[in] + step;
        const int entering = basis_.nonbasic[in];
        moved_.push_back({in, step});
        basis_.at[in] = goal;
        basis_.pivot(out, in, moved_);
        basis_.beta[entering] = entered;
        passed_[entering] = 0;
    }

    double range(int c) const { return high_[basis_.nonbasic[c]] - low_[basis_.nonbasic[c]]; }

    // Move a variable to its other end; return by how much.
    double flip(int c) {
        const int j = basis_.nonbasic[c];
        const double other = basis_.at[c] == high_[j] ? low_[j] : high_[j], step = other - basis_.at[c];
        basis_.at[c] = other;
        return step;
    }
};

}  // namespace likewise
