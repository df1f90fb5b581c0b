// Part: some of the pairs, as an interval for z of every neuron on either side and for dz, and the categories still
// allowed; how intervals are carried on, and what they make of the program's bounds. Everything is rounded outward.
#pragma once
#include "simplex.hpp"

namespace likewise {

constexpr double HAIR = 1e-9;  // by how much two intervals must miss each other before a part is called empty, relative

inline double down(double v) { return std::nextafter(v, -INF); }
inline double up(double v) { return std::nextafter(v, INF); }

struct Interval {
    double low, high;
};

// One layer of the network, and where its numbers are in the program.
struct Layer {
    int height = 0, width = 0, first = 0;  // neurons, what enters, and the first neuron's place among all
    std::vector<double> weight, bias;      // weight by rows
    std::vector<int> z[2], v[2];           // columns; v of hidden layers
    std::vector<int> dz;                   // rows
    std::vector<int> steep[2], chord[2], below, above, value;  // rows of hidden layers
    std::vector<double> chord_slope[2], below_slope, above_slope;
    std::vector<double> influence;
};

struct Group {
    int start, stop;
    bool shared;
};

// The question: a relu network with one logit, two people's domains, and the program of the relaxed model.
struct Question {
    Program program;
    std::vector<double> low, high;  // of all variables, at the root
    std::vector<Layer> layers;
    std::vector<int> x[2];  // columns of either person
    std::vector<double> x_low[2], x_high[2];
    std::vector<Group> groups;
    std::vector<uint8_t> grouped;
    std::vector<int> group_of;
    std::vector<int> compared;  // columns of people that the ball compares, in its order
    int reliable = 4;       // how often a split was tried before it is taken at its word
    int dive_every = 16;    // parts between dives for a pair
    double narrowing = 0.25;  // of the steps of the simplex method, to narrow dz in the tree
    bool harmless = true;   // whether what a neuron is off by in the harmless direction is left alone
    bool curved = true;
    double t = 0;
    int neurons = 0, goal = 0;  // `goal`: the column of the slack
};

// [left z, right z, dz] of every neuron of every layer, and which columns may be other than 0 on either side.
struct Part {
    std::vector<Interval> box[3];
    std::vector<uint8_t> allowed[2];
};

// Intersect; tell whether something is left. By a hair is not enough to call it empty: then it stays as it was.
inline bool meet(Interval &one, double low, double high) {
    double a = std::max(one.low, low), b = std::min(one.high, high);
    if (a > b) {
        if (a - b > HAIR * (1.0 + std::fabs(b))) return false;
        return true;
    }
    one = {a, b};
    return true;
}

inline double relu(double z) { return z > 0 ? z : 0; }

// The range of a relu's difference quotients over both sides' intervals.
inline Interval slopes(const Interval &left, const Interval &right) {
    double low = std::min(left.low, right.low), high = std::max(left.high, right.high);
    return {low >= 0 ? 1.0 : 0.0, high <= 0 ? 0.0 : 1.0};
}

// dv = s dz, s within slopes; both slopes are 0 or 1, so products are exact.
inline Interval through(const Interval &s, const Interval &dz) {
    return {std::min(s.low * dz.low, s.high * dz.low), std::max(s.low * dz.high, s.high * dz.high)};
}

inline bool limit(Interval &box, double sum_low, double sum_high, double size, int terms) {
    double off = (2 * terms + 10) * 2 * UNIT * size + 1e-290;
    return meet(box, down(sum_low - off), up(sum_high + off));
}

// Bound what enters the first layer on one side, over the people still allowed.
inline bool enter(const Question &q, Part &part, int side) {
    const Layer &layer = q.layers[0];
    for (int j = 0; j < layer.height; j++) {
        const double *w = layer.weight.data() + size_t(j) * layer.width;
        double low = layer.bias[j], high = low, size = std::fabs(low);
        for (int c = 0; c < layer.width; c++) {
            if (q.grouped[c]) continue;
            double a = w[c] * q.x_low[side][c], b = w[c] * q.x_high[side][c];
            low += std::min(a, b);
            high += std::max(a, b);
            size += std::max(std::fabs(a), std::fabs(b));
        }
        for (const Group &g : q.groups) {
            double least = INF, most = -INF;
            for (int c = g.start; c < g.stop; c++)
                if (part.allowed[side][c]) {
                    least = std::min(least, w[c]);
                    most = std::max(most, w[c]);
                }
            if (least > most) return false;
            low += least;
            high += most;
            size += std::max(std::fabs(least), std::fabs(most));
        }
        if (!limit(part.box[side][j], low, high, size, layer.width + 1)) return false;
    }
    return true;
}

// Carry intervals through the network; false if a neuron has no value left, which shows that no pair is here.
inline bool settle(const Question &q, Part &part, std::vector<Interval> values[3]) {
    for (size_t index = 0; index < q.layers.size(); index++) {
        const Layer &layer = q.layers[index];
        const int at = layer.first;
        if (index > 0) {
            const int before = q.layers[index - 1].first;
            for (int kind = 0; kind < 3; kind++)
                for (int j = 0; j < layer.height; j++) {
                    const double *w = layer.weight.data() + size_t(j) * layer.width;
                    double low = kind < 2 ? layer.bias[j] : 0.0, high = low, size = std::fabs(low);
                    for (int c = 0; c < layer.width; c++) {
                        const Interval &v = values[kind][before + c];
                        double a = w[c] * v.low, b = w[c] * v.high;
                        low += std::min(a, b);
                        high += std::max(a, b);
                        size += std::max(std::fabs(a), std::fabs(b));
                    }
                    if (!limit(part.box[kind][at + j], low, high, size, layer.width + 1)) return false;
                }
        }
        for (int j = at; j < at + layer.height; j++) {
            Interval &l = part.box[0][j], &r = part.box[1][j], &d = part.box[2][j];
            if (!meet(d, down(l.low - r.high), up(l.high - r.low))) return false;
            if (!meet(l, down(r.low + d.low), up(r.high + d.high))) return false;
            if (!meet(r, down(l.low - d.high), up(l.high - d.low))) return false;
            if (!meet(d, down(l.low - r.high), up(l.high - r.low))) return false;
            values[0][j] = {relu(l.low), relu(l.high)};
            values[1][j] = {relu(r.low), relu(r.high)};
            values[2][j] = through(slopes(l, r), d);
            if (!meet(values[2][j], down(relu(l.low) - relu(r.high)), up(relu(l.high) - relu(r.low)))) return false;
        }
    }
    return true;
}

// f(z) - slope z over an interval, f = relu: extreme at the ends and, for the least, at 0.
inline Interval over(const Interval &z, double slope) {
    if (slope == 1.0 && z.low >= 0) return {0.0, 0.0};
    auto at = [&](double x) { return relu(x) - slope * x; };
    double size = (1.0 + std::fabs(slope)) * std::max(std::fabs(z.low), std::fabs(z.high)), off = 8 * UNIT * size;
    double a = at(z.low), b = at(z.high), low = std::min(a, b);
    if (z.low < 0 && z.high > 0) low = std::min(low, 0.0);
    double high = std::max(a, b);
    if (size == 0) return {0.0, 0.0};
    return {low - off - 1e-300, high + off + 1e-300};
}

// s dz - slope dz over dz and s within their intervals.
inline Interval apart(const Interval &s, const Interval &dz, double slope) {
    if (s.low == slope && s.high == slope) return {0.0, 0.0};
    double size = (1.0 + std::fabs(slope)) * std::max(std::fabs(dz.low), std::fabs(dz.high)), off = 8 * UNIT * size;
    double low = INF, high = -INF;
    auto take = [&](double x) {
        double m = slope * x;
        low = std::min(low, std::min(s.low * x, s.high * x) - m);
        high = std::max(high, std::max(s.low * x, s.high * x) - m);
    };
    take(dz.low);
    take(dz.high);
    if (dz.low < 0 && dz.high > 0) take(0.0);
    if (size == 0) return {0.0, 0.0};
    return {low - off - 1e-300, high + off + 1e-300};
}

// Write what a part makes of the bounds of the program's variables.
inline void fill(const Question &q, const Part &part, const std::vector<Interval> values[3], std::vector<double> &low,
                 std::vector<double> &high) {
    low = q.low;
    high = q.high;
    auto put = [&](int k, const Interval &box) {
        low[k] = box.low;
        high[k] = box.high;
    };
    for (int side = 0; side < 2; side++)
        for (const Group &g : q.groups) {
            int count = 0;
            for (int c = g.start; c < g.stop; c++) count += part.allowed[side][c];
            for (int c = g.start; c < g.stop; c++) {
                int k = q.x[side][c];
                if (!part.allowed[side][c])
                    high[k] = low[k] = 0.0;
                else if (count == 1)
                    low[k] = high[k] = 1.0;
            }
        }
    const int rows = q.program.columns;
    for (size_t index = 0; index < q.layers.size(); index++) {
        const Layer &layer = q.layers[index];
        const bool hidden = index + 1 < q.layers.size();
        for (int j = 0; j < layer.height; j++) {
            const int at = layer.first + j;
            for (int side = 0; side < 2; side++) {
                put(layer.z[side][j], part.box[side][at]);
                if (!hidden) continue;
                put(layer.v[side][j], values[side][at]);
                put(rows + layer.steep[side][j], over(part.box[side][at], 1.0));
                put(rows + layer.chord[side][j], over(part.box[side][at], layer.chord_slope[side][j]));
            }
            put(rows + layer.dz[j], part.box[2][at]);
            if (!hidden) continue;
            const Interval s = slopes(part.box[0][at], part.box[1][at]), &dz = part.box[2][at];
            put(rows + layer.below[j], apart(s, dz, layer.below_slope[j]));
            put(rows + layer.above[j], apart(s, dz, layer.above_slope[j]));
            put(rows + layer.value[j], values[2][at]);
        }
    }
}

}  // namespace likewise
