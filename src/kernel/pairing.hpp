// Pairing: the best pair around a person, to first order, eight people at a time.
//
// People lie in lanes: number k of lane l is at [k * lanes + l], so that every product with a matrix is one of a matrix with
// a narrow matrix. All of it is hints: the pairs that come out are checked elsewhere, exactly.
#pragma once
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "curve.hpp"
#include "wide.hpp"

namespace likewise {

constexpr int LANES = 8, BOTH = 2 * LANES;  // people at a time, and both people of their pairs
using Numbers = std::vector<double>;

// A smooth function by cubics through its values and slopes on a grid, itself beyond it; relu and the like as they are.
struct Fast {
    static constexpr double REACH = 16.0, PER_ONE = 64.0;  // off by 1e-9 at most
    const Function *function;
    bool is_relu, is_smooth;
    Numbers cubics;

    Fast(const std::string &name, bool smooth) : function(&function_of(name)), is_relu(name == "relu"), is_smooth(smooth) {
        const int count = smooth ? int(2 * REACH * PER_ONE) : 0;
        for (int k = 0; k < count; k++) {
            const double at = k / PER_ONE - REACH, next = at + 1 / PER_ONE;
            const double a = function->value(at), b = function->value(next);
            const double s = function->slope(at) / PER_ONE, e = function->slope(next == 0 ? -1e-300 : next) / PER_ONE;
            for (double c : {a, s, 3 * (b - a) - 2 * s - e, 2 * (a - b) + s + e}) cubics.push_back(c);
        }
    }

    void both(double z, double &value, double &slope) const {
        const double at = (z + REACH) * PER_ONE;
        if (!is_smooth || !(at >= 0 && at < 2 * REACH * PER_ONE)) {
            value = function->value(z);
            slope = function->slope(z);
            return;
        }
        const int k = int(at);
        const double t = at - k, *c = &cubics[4 * k];
        value = c[0] + t * (c[1] + t * (c[2] + t * c[3]));
        slope = PER_ONE * (c[1] + t * (2 * c[2] + 3 * t * c[3]));
    }

    // Values in place of z, and slopes.
    void apply(double *z, double *slope, int n) const {
        if (is_relu) {
            for (int k = 0; k < n; k++) {
                slope[k] = z[k] >= 0 ? 1.0 : 0.0;
                z[k] = z[k] >= 0 ? z[k] : 0.0;
            }
            return;
        }
        for (int k = 0; k < n; k++) both(z[k], z[k], slope[k]);
    }
};

struct Matrix {
    int rows = 0, columns = 0;
    Numbers data;

    Matrix() = default;
    Matrix(int r, int c, Numbers d) : rows(r), columns(c), data(std::move(d)) {}
    const double *row(int r) const { return data.data() + size_t(r) * columns; }

    Matrix turned() const {
        Matrix out(columns, rows, Numbers(data.size()));
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < columns; c++) out.data[size_t(c) * rows + r] = row(r)[c];
        return out;
    }

    Matrix only(const std::vector<int> &chosen) const {
        Matrix out(rows, int(chosen.size()), {});
        for (int r = 0; r < rows; r++)
            for (int c : chosen) out.data.push_back(row(r)[c]);
        return out;
    }

    template <int N> void times(const double *in, double *out) const { multiply<N>(out, data.data(), in, rows, columns); }
};

struct Stage {
    Matrix weight, back;
    Numbers bias;
    std::shared_ptr<const Fast> fast;
};

// What is asked: the network, whose last stage is a logit; the box; which columns can differ, and how far.
struct Quest {
    std::vector<Stage> stages;
    Numbers low, high, step;  // of every column; a step of 0: any number
    std::vector<int> free;    // the columns that can differ
    Matrix ahead, behind;     // the first weights over them, and turned
    double p, eps;
    Matrix metric;            // with `inverse` its pseudo-inverse, `dual` that turned, `square` both: inverse dual
    Matrix inverse, dual, square;
    Matrix blind;             // a basis of the differences that the metric does not see, one a column
    Matrix side;              // side x <= side_high of everyone
    Numbers side_high;
    bool curved;

    int width() const { return int(low.size()); }
    int first() const { return stages[0].weight.rows; }
    int apart() const { return int(free.size()); }
};

// Someone: numbers, what enters the first stage, coordinates in what the metric does not see, and room for the slopes of the
// logit in what enters the first stage.
struct Person {
    double *x, *z, *blind, *slope;
};

class Pairing {
  public:
    Numbers gap, d, shift;  // of each lane; how its people differ, and how far their middle is from the person

    explicit Pairing(const Quest &quest) : gap(LANES), q(quest), logistic("sigmoid", true) {
        const size_t n = q.apart(), seen = q.metric.rows;
        for (Numbers *one : {&d, &shift, &slopes, &way, &other_d, &other_shift}) one->resize(n * LANES);
        dual.resize(std::max(seen, n) * LANES);
        size_t most = 1;
        for (const Stage &stage : q.stages) {
            most = std::max(most, size_t(stage.weight.rows));
            bends.emplace_back(stage.weight.rows * BOTH);
        }
        for (Numbers *one : {&z, &value, &back}) one->resize(std::max(most, n) * BOTH);
        middle.resize(q.first() * LANES);
        before.resize(q.first() * LANES);
        start.resize(q.first() * LANES);
    }

    // Find the slopes at some people, and with them what the gaps of their pairs are to first order.
    void guess(const Person *them) {
        enter(them);
        std::copy(start.begin(), start.end(), z.begin());
        forward<LANES>();
        double logits[LANES];
        std::copy_n(z.begin(), LANES, logits);
        backward<LANES>();
        for (int l = 0; l < LANES; l++)
            for (int k = 0; k < q.first(); k++) people[l].slope[k] = back[k * LANES + l];
        q.behind.times<LANES>(back.data(), slopes.data());
        differ(d, shift);
        for (int l = 0; l < LANES; l++) {
            double half = 0;
            for (int k = 0; k < q.apart(); k++) half += slopes[k * LANES + l] * d[k * LANES + l] / 2;
            gap[l] = between(logits[l] + half, logits[l] - half);
        }
    }

    // Pair people, whose slopes are known; `wanted` is the gap that is of any use.
    void pair(const Person *them, const double *wanted) {
        enter(them);
        const int h = q.first();
        for (int l = 0; l < LANES; l++)
            for (int k = 0; k < h; k++) before[k * LANES + l] = people[l].slope[k];
        q.behind.times<LANES>(before.data(), slopes.data());
        differ(d, shift);
        score(d, shift, gap.data());
        if (!is_worth_more(wanted)) return;
        backward<BOTH>();
        double change[LANES] = {}, size[LANES] = {};
        for (int k = 0; k < h; k++)
            for (int l = 0; l < LANES; l++) {
                const double sum = back[k * BOTH + l] + back[k * BOTH + LANES + l];
                change[l] += std::fabs(sum - 2 * before[k * LANES + l]);
                size[l] += std::fabs(sum);
                middle[k * LANES + l] = sum;
            }
        bool is_new = false;  // not where both ends have the slopes of the middle
        for (int l = 0; l < LANES; l++) is_new |= gap[l] > HOPE * wanted[l] && change[l] > 1e-9 * size[l];
        if (!is_new) return;
        q.behind.times<LANES>(middle.data(), slopes.data());
        differ(other_d, other_shift);
        double other[LANES];
        score(other_d, other_shift, other);
        for (int l = 0; l < LANES; l++) {
            if (!(other[l] > gap[l])) continue;
            gap[l] = other[l];
            for (int k = 0; k < q.apart(); k++) {
                d[k * LANES + l] = other_d[k * LANES + l];
                shift[k * LANES + l] = other_shift[k * LANES + l];
            }
        }
    }

    // The slopes of a lane's gap in the coordinates that the metric does not see, as they were used last.
    void rise(int l, double *to) const {
        for (int j = 0; j < q.blind.columns; j++) {
            to[j] = 0.0;
            for (int k = 0; k < q.apart(); k++) to[j] += q.blind.row(k)[j] * slopes[k * LANES + l];
        }
    }

  private:
    static constexpr double HOPE = 0.7;  // a first pair with less of what is wanted is not improved
    const Quest &q;
    Fast logistic;
    Person people[LANES] = {};
    Numbers slopes, dual, way, other_d, other_shift;
    Numbers start, z, value, back, middle, before;
    std::vector<Numbers> bends;  // slopes of the neurons of each stage

    bool is_worth_more(const double *wanted) const {
        for (int l = 0; l < LANES; l++)
            if (gap[l] > HOPE * wanted[l]) return true;
        return false;
    }

    void enter(const Person *them) {
        std::copy_n(them, LANES, people);
        for (int l = 0; l < LANES; l++)
            for (int k = 0; k < q.first(); k++) start[k * LANES + l] = people[l].z[k];
    }

    double between(double left, double right) const {
        double unused;
        if (!q.curved) return left - right;
        logistic.both(left, left, unused);
        logistic.both(right, right, unused);
        return left - right;
    }

    // From what enters the first stage, in z: the slopes of all hidden stages, and the logits, in z.
    template <int N> void forward() {
        const size_t last = q.stages.size() - 1;
        for (size_t s = 0; s < last; s++) {
            const Stage &stage = q.stages[s], &next = q.stages[s + 1];
            stage.fast->apply(z.data(), bends[s].data(), stage.weight.rows * N);
            next.weight.times<N>(z.data(), value.data());
            for (int k = 0; k < next.weight.rows; k++)
                for (int l = 0; l < N; l++) value[k * N + l] += next.bias[k];
            z.swap(value);
        }
    }

    // The slopes of the logits in what enters the first stage, in back.
    template <int N> void backward() {
        const size_t last = q.stages.size() - 1;
        for (int k = 0; k < q.stages[last].weight.columns; k++)
            for (int l = 0; l < N; l++) back[k * N + l] = q.stages[last].weight.data[k] * bends[last - 1][k * N + l];
        for (size_t s = last - 1; s > 0; s--) {
            q.stages[s].back.times<N>(back.data(), value.data());
            const Numbers &bend = bends[s - 1];
            for (int k = 0; k < q.stages[s].back.rows * N; k++) back[k] = value[k] * bend[k];
        }
    }

    // The gaps of pairs.
    void score(const Numbers &by, const Numbers &moved, double *gaps) {
        const int n = q.apart();
        for (int k = 0; k < n; k++)
            for (int l = 0; l < LANES; l++) {
                const double half = by[k * LANES + l] / 2, at = moved[k * LANES + l];
                value[k * BOTH + l] = at + half;
                value[k * BOTH + LANES + l] = at - half;
            }
        q.ahead.times<BOTH>(value.data(), z.data());
        for (int k = 0; k < q.first(); k++)
            for (int l = 0; l < LANES; l++) {
                z[k * BOTH + l] += start[k * LANES + l];
                z[k * BOTH + LANES + l] += start[k * LANES + l];
            }
        forward<BOTH>();
        for (int l = 0; l < LANES; l++) gaps[l] = between(z[l], z[LANES + l]);
        if (q.side.rows) hold_sides(by, moved, gaps);
    }

    // The best difference along `slopes`, and where the pair must go for both to be within the box.
    void differ(Numbers &by, Numbers &moved) {
        const int n = q.apart();
        if (q.p == 2.0)
            by_ball(by);
        else
            by_norm(by);
        bool is_off = q.p != 2.0 && q.metric.rows + q.blind.columns > n;  // of more rows than it has rank
        for (int k = 0; k < n; k++) {
            const double most = q.high[q.free[k]] - q.low[q.free[k]];
            double top = 0;
            for (int l = 0; l < LANES; l++) top = std::max(top, std::fabs(by[k * LANES + l]));
            if (top <= most) continue;
            is_off = true;
            for (int l = 0; l < LANES; l++) by[k * LANES + l] = std::clamp(by[k * LANES + l], -most, most);
        }
        if (is_off) shrink(by);
        if (q.blind.columns) add_blind(by);
        for (int k = 0; k < n; k++) {
            const int c = q.free[k];
            const double low = q.low[c], high = q.high[c];
            for (int l = 0; l < LANES; l++) {
                const double half = std::fabs(by[k * LANES + l]) / 2, x = people[l].x[c];
                moved[k * LANES + l] = std::max(low - (x - half), 0.0) - std::max(x + half - high, 0.0);
            }
        }
        if (q.side.rows) keep_sides(by, moved);
    }

    void by_ball(Numbers &by) {
        const int n = q.apart();
        q.square.times<LANES>(slopes.data(), by.data());
        double size[LANES] = {};
        for (int k = 0; k < n; k++)
            for (int l = 0; l < LANES; l++) size[l] += by[k * LANES + l] * slopes[k * LANES + l];
        for (double &one : size) one = one > 0 ? q.eps / std::sqrt(one) : 0.0;
        for (int k = 0; k < n; k++)
            for (int l = 0; l < LANES; l++) by[k * LANES + l] *= size[l];
    }

    void by_norm(Numbers &by) {
        const int rows = q.dual.rows;
        q.dual.times<LANES>(slopes.data(), dual.data());
        for (int l = 0; l < LANES; l++) {
            double most = 0, sum = 0;
            int top = 0;
            for (int k = 0; k < rows; k++)
                if (std::fabs(dual[k * LANES + l]) > most) most = std::fabs(dual[k * LANES + l]), top = k;
            for (int k = 0; k < rows; k++) {
                double &u = dual[k * LANES + l];
                const double size = most > 0 ? std::fabs(u) / most : 0.0, sign = u > 0 ? q.eps : u < 0 ? -q.eps : 0.0;
                if (q.p == 1.0)
                    u = k == top ? sign : 0.0;
                else if (q.p == INF)
                    u = sign;
                else
                    u = sign * std::pow(size, 1 / (q.p - 1)), sum += std::pow(std::fabs(u), q.p);
            }
            if (q.p == 1.0 || q.p == INF || sum == 0) continue;
            const double f = q.eps / std::pow(sum, 1 / q.p);
            for (int k = 0; k < rows; k++) dual[k * LANES + l] *= f;
        }
        q.inverse.times<LANES>(dual.data(), by.data());
    }

    // Shrink differences back into the metric's ball.
    void shrink(Numbers &by) {
        q.metric.times<LANES>(by.data(), dual.data());
        for (int l = 0; l < LANES; l++) {
            double most = 0, sum = 0;
            for (int k = 0; k < q.metric.rows; k++) most = std::max(most, std::fabs(dual[k * LANES + l]));
            if (most == 0) continue;
            for (int k = 0; k < q.metric.rows && q.p != INF; k++) sum += std::pow(std::fabs(dual[k * LANES + l]) / most, q.p);
            const double norm = q.p == INF ? most : most * std::pow(sum, 1 / q.p);
            if (norm <= q.eps) continue;
            for (int k = 0; k < q.apart(); k++) by[k * LANES + l] *= q.eps / norm;
        }
    }

    // Add as much of what the metric does not see as the box has room for.
    void add_blind(Numbers &by) {
        const int n = q.apart(), count = q.blind.columns;
        for (int l = 0; l < LANES; l++) {
            const double *c = people[l].blind;
            double share = 1.0;
            for (int k = 0; k < n; k++) {
                const double v = dot(q.blind.row(k), c, count), most = q.high[q.free[k]] - q.low[q.free[k]];
                way[k * LANES + l] = v;
                const double room = most - (v > 0 ? by[k * LANES + l] : -by[k * LANES + l]);
                if (std::fabs(v) * share > room) share = std::max(room, 0.0) / std::fabs(v);
            }
            for (int k = 0; k < n; k++) by[k * LANES + l] += share * way[k * LANES + l];
        }
    }

    // Shrink differences until both ends keep the side constraints, if their middle does.
    void keep_sides(Numbers &by, const Numbers &moved) {
        for (int l = 0; l < LANES; l++) {
            double share = 1.0;
            for (int r = 0; r < q.side.rows; r++) {
                const auto [at, half] = sides(r, l, by, moved);
                const double room = q.side_high[r] - at;
                if (half > 0 && share * half > room) share = std::max(room, 0.0) / half;
            }
            for (int k = 0; k < q.apart(); k++) by[k * LANES + l] *= share;
        }
    }

    void hold_sides(const Numbers &by, const Numbers &moved, double *gaps) const {
        for (int l = 0; l < LANES; l++)
            for (int r = 0; r < q.side.rows; r++) {
                const auto [at, half] = sides(r, l, by, moved);
                if (at + half > q.side_high[r] + 1e-12 * (1 + std::fabs(q.side_high[r]))) gaps[l] = -INF;
            }
    }

    // What a side constraint is in the middle of a pair, and by how much more at one end.
    std::pair<double, double> sides(int r, int l, const Numbers &by, const Numbers &moved) const {
        double at = dot(q.side.row(r), people[l].x, q.width()), half = 0;
        for (int k = 0; k < q.apart(); k++) {
            at += q.side.row(r)[q.free[k]] * moved[k * LANES + l];
            half += q.side.row(r)[q.free[k]] * by[k * LANES + l] / 2;
        }
        return {at, std::fabs(half)};
    }
};

}  // namespace likewise
