// Tangents: a round ball for the simplex method, drawn where points ask for it, in more variables than the program has.
//
// With e = Q A d / eps, the directions that matter, |e| <= 1 is the same as q_i >= e_i^2 for each i and sum_i q_i <= 1.
// Each parabola is drawn by tangents 2 t e_i - q_i <= t^2 in a plane of its own: few are needed, and one point asks for
// one in every direction at once, where tangents of the ball itself have as many dimensions as it has directions.
// None of these variables are the program's. What multipliers y of tangents, s of the sum and r of the bounds of e say
// of it is that of mu = Q' m / eps, m_i = sum_k 2 t_k y_k + r_i, and |m| is never more than what the tableau counts:
//   |m| <= s + sum_i m_i^2 / 4s <= s + sum_k y_k t_k^2, by the means of s and |m|^2 / s, and of the t_k.
#pragma once
#include "program.hpp"

namespace likewise {

// The variables beyond the program's, by number: e_i, q_i, the sum of all q, then a row for each tangent.
class Tangents {
  public:
    struct Cut {
        int direction;
        double at;
    };
    std::vector<Cut> cuts;

    explicit Tangents(const Program &program)
        : ball_(&program.ball), first_(program.variables()), n_(program.ball.directions) {
        for (int i = 0; i < n_; i++)
            for (double t : {0.3, -0.3}) cuts.push_back({i, t});
    }

    int directions() const { return n_; }
    int e(int i) const { return first_ + i; }
    int q(int i) const { return first_ + n_ + i; }
    int sum() const { return first_ + 2 * n_; }
    int cut(size_t k) const { return first_ + 2 * n_ + 1 + int(k); }
    int end() const { return n_ ? cut(cuts.size()) : first_; }
    bool is_cut(int variable) const { return n_ && variable >= cut(0); }

    // The bounds of everything from e_0 on.
    void limit(std::vector<double> &low, std::vector<double> &high) const {
        if (!n_) return;
        low.insert(low.end(), n_, -1.0);
        high.insert(high.end(), n_, 1.0);
        low.insert(low.end(), n_ + 1, 0.0);
        high.insert(high.end(), n_ + 1, 1.0);
        for (const Cut &one : cuts) {
            low.push_back(-2 * std::fabs(one.at) - 1);
            high.push_back(one.at * one.at);
        }
    }

    // What a multiplier of a variable beyond the program adds to m; returns the direction, or -1.
    int share(int variable, double &by) const {
        if (variable < first_) return -1;
        if (variable < q(0)) return variable - first_;
        if (!is_cut(variable)) return -1;
        const Cut &one = cuts[variable - cut(0)];
        by *= 2 * one.at;
        return one.direction;
    }

    // mu of the ball, of m.
    std::vector<double> turned_back(const std::vector<double> &m) const {
        std::vector<double> mu(ball_->height, 0.0);
        for (int i = 0; i < n_; i++)
            for (int e = 0; e < ball_->height; e++) mu[e] += m[i] / ball_->eps * ball_->turn[size_t(i) * ball_->height + e];
        return mu;
    }

  private:
    const Ball *ball_;
    int first_, n_;
};

}  // namespace likewise
