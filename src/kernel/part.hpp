// Part: some of the pairs, as an interval for z of every neuron on either side and for dz, and the categories still
// allowed; how intervals are carried on, and what they make of the program's bounds. Everything is rounded outward.
#pragma once
#include "plane.hpp"
#include "simplex.hpp"

namespace likewise {

constexpr double LOOSE = 0.1;  // of the range of slopes over an interval, by which a line's may be other than the best
constexpr double HAIR = 1e-9;  // by how much two intervals must miss each other before a part is called empty, relative

// One layer of the network, and where its numbers are in the program.
struct Layer {
    int height = 0, width = 0, first = 0;  // neurons, what enters, and the first neuron's place among all
    std::vector<double> weight, bias;      // weight by rows
    std::vector<int> z[2], v[2];           // columns; v of hidden layers
    std::vector<int> dz;                   // rows
    std::vector<int> steep[2], chord[2], below, above, value;  // rows of hidden layers
    std::vector<double> chord_slope[2], below_slope, above_slope;
    std::vector<double> influence;
    Curve curve;                   // of a hidden layer that is not of relus; then lines may change their slopes:
    std::vector<int> bend[2][4];   // below, at either end, above, among the program's bends; of both sides
    std::vector<int> differ[2];    // below and above, of differences
    std::vector<std::vector<int>> planes[2];  // above and below differences: of each a bend in dz, the next is in right z

    bool is_curved() const { return curve.function != nullptr; }
    double of(double z) const { return is_curved() ? curve.value(z) : std::max(z, 0.0); }
};

// A bound of all differences together, as `Joiner` derives it for a part; y = (d, dv of all hidden layers).
struct Joint {
    int row = 0, n = 0;                    // of the program; of y
    double upper = 0, margin = 0;          // of the whole; relative, what a part's own has to have added
    double constant = 0, constant_size = 0;  // of C, by the products of d and of the ball
    std::vector<double> base, shift;       // their part of Q; what it may be off by, on the diagonal
    std::vector<double> linear;            // g, and what d's products add to it
    std::vector<double> scale;             // of y and 1: any positive numbers; the error's norm is bounded with them
    std::vector<int> columns;              // of d that are in y, of the first layer's weights
    std::vector<double> interval, slope;   // weights, neuron by neuron of all hidden layers
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
    std::vector<Joint> joints;  // of all differences together
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

// The range of difference quotients over both sides' intervals.
inline Interval slopes(const Layer &layer, const Interval &left, const Interval &right) {
    double low = std::min(left.low, right.low), high = std::max(left.high, right.high);
    if (layer.is_curved()) return layer.curve.quotients(low, high);
    return {low >= 0 ? 1.0 : 0.0, high <= 0 ? 0.0 : 1.0};
}

// dv = s dz, s within slopes; those of relus are 0 or 1, so products are exact.
inline Interval through(const Layer &layer, const Interval &s, const Interval &dz) {
    if (layer.is_curved()) {
        const double each[4] = {s.low * dz.low, s.high * dz.low, s.low * dz.high, s.high * dz.high};
        return {down(*std::min_element(each, each + 4)), up(*std::max_element(each, each + 4))};
    }
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
            if (index + 1 == q.layers.size()) continue;
            const Interval &a = values[0][j] = layer.is_curved() ? layer.curve.range(l) : Interval{relu(l.low), relu(l.high)};
            const Interval &b = values[1][j] = layer.is_curved() ? layer.curve.range(r) : Interval{relu(r.low), relu(r.high)};
            values[2][j] = through(layer, slopes(layer, l, r), d);
            if (!meet(values[2][j], down(a.low - b.high), up(a.high - b.low))) return false;
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
    double size = (std::max(1.0, s.size()) + std::fabs(slope)) * dz.size(), off = 8 * UNIT * size;
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

// What lines of chosen slopes were last asked: between parts next to each other, most neurons stay as they are.
struct Recall {
    Interval z{0, 0};
    double slope = 0, wanted[4] = {0, 0, 0, 0};
    Interval found{0, 0};
    Known plane;
};

// The slopes that lines of differences should have, below and above: those of the chords of what s dz can be.
inline void difference_slopes(const Interval &s, const Interval &dz, double out[2]) {
    const double width = dz.high - dz.low;
    out[0] = out[1] = s.high;
    if (!(width > 1e-12 * dz.size() + 1e-300)) return;
    auto most = [&](double x) { return std::max(s.low * x, s.high * x); };
    auto least = [&](double x) { return std::min(s.low * x, s.high * x); };
    out[0] = std::clamp((least(dz.high) - least(dz.low)) / width, s.low, s.high);
    out[1] = std::clamp((most(dz.high) - most(dz.low)) / width, s.low, s.high);
}

// Note which slopes a part should have that are off by more than a share of the range of slopes there.
inline void wish(const Question &q, const Part &part, const std::vector<double> &now, std::vector<Recall> &recall,
                 std::vector<std::pair<int, double>> &changes) {
    changes.clear();
    recall.resize(q.program.bends.size());
    for (const Layer &layer : q.layers) {
        if (!layer.is_curved()) continue;
        for (int j = 0; j < layer.height; j++) {
            const int at = layer.first + j;
            const Interval s = slopes(layer, part.box[0][at], part.box[1][at]);
            const double far = LOOSE * (s.high - s.low);
            for (int side = 0; side < 2; side++) {
                const Interval &z = part.box[side][at];
                Recall &known = recall[layer.bend[side][0][j]];
                if (known.z.low != z.low || known.z.high != z.high) layer.curve.lines(z, known.wanted);
                for (int k = 0; k < 4; k++)
                    if (int b = layer.bend[side][k][j]; std::fabs(known.wanted[k] - now[b]) > far)
                        changes.push_back({b, known.wanted[k]});
            }
            double wanted[2];
            difference_slopes(s, part.box[2][at], wanted);
            for (int k = 0; k < 2; k++)
                if (int b = layer.differ[k][j]; std::fabs(wanted[k] - now[b]) > far) changes.push_back({b, wanted[k]});
        }
    }
}

// Note planes that a point is above (or below) of by more than `least` in the logit: each takes the place of the one that is
// furthest from the point.
inline void planes_at(const Question &q, const Part &part, const std::vector<double> &x, double least, const std::vector<double> &now,
                      const std::vector<double> &high, std::vector<Sample> &samples,
                      std::vector<std::pair<int, double>> &changes) {
    changes.clear();
    samples.resize(q.neurons);
    for (const Layer &layer : q.layers) {
        if (layer.planes[0].empty()) continue;
        for (int j = 0; j < layer.height; j++) {
            const int at = layer.first + j;
            const Interval &r = part.box[1][at], &dz = part.box[2][at];
            if (!(r.high > r.low) || !(dz.high > dz.low)) continue;
            Sample &sample = samples[at];
            if (!sample.is_of(r, dz)) sample.take(layer.curve, r, dz);
            const double z = x[layer.z[1][j]], h = x[layer.z[0][j]] - z, dv = x[layer.v[0][j]] - x[layer.v[1][j]];
            for (int sign : {1, -1}) {
                double rise, lean;
                const double top = sample.facet(sign, z, h, rise, lean);
                if (!((sign * dv - top) * layer.influence[j] > least)) continue;
                int place = -1;
                double far = -INF;
                for (const std::vector<int> &plane : layer.planes[sign > 0 ? 0 : 1]) {
                    const int b = plane[j];
                    const double over = now[b] * h + now[b + 1] * z + high[q.program.columns + q.program.bends[b].row];
                    if (over > far) far = over, place = b;
                }
                if (place < 0) continue;  // no number was larger than any
                changes.push_back({place, rise});
                changes.push_back({place + 1, lean});
            }
        }
    }
}

// Write what a part makes of the bounds of the program's variables; `chosen` are the slopes of its bends.
inline void fill(const Question &q, const Part &part, const std::vector<Interval> values[3], const std::vector<double> &chosen,
                 std::vector<Recall> &recall, std::vector<double> &low, std::vector<double> &high) {
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
                if (layer.is_curved()) {
                    for (const std::vector<int> &line : layer.bend[side]) {
                        Recall &known = recall[line[j]];
                        const Interval &z = part.box[side][at];
                        const double slope = chosen[line[j]];
                        if (known.z.low != z.low || known.z.high != z.high || known.slope != slope) {
                            known.found = layer.curve.over(z, slope);
                            known.z = z;
                            known.slope = slope;
                        }
                        put(rows + q.program.bends[line[j]].row, known.found);
                    }
                    continue;
                }
                put(rows + layer.steep[side][j], over(part.box[side][at], 1.0));
                put(rows + layer.chord[side][j], over(part.box[side][at], layer.chord_slope[side][j]));
            }
            put(rows + layer.dz[j], part.box[2][at]);
            if (!hidden) continue;
            const Interval s = slopes(layer, part.box[0][at], part.box[1][at]), &dz = part.box[2][at];
            const bool bends = layer.is_curved();
            put(rows + layer.below[j], apart(s, dz, bends ? chosen[layer.differ[0][j]] : layer.below_slope[j]));
            put(rows + layer.above[j], apart(s, dz, bends ? chosen[layer.differ[1][j]] : layer.above_slope[j]));
            put(rows + layer.value[j], values[2][at]);
            const Triple box{part.box[0][at], part.box[1][at], dz};
            for (int sign : {1, -1})
                for (const std::vector<int> &plane : layer.planes[sign > 0 ? 0 : 1]) {
                    const int b = plane[j];
                    put(rows + q.program.bends[b].row,
                        recall[b].plane.ask(layer.curve, sign, chosen[b], chosen[b + 1], box, values[2][at]));
                }
        }
    }
}

}  // namespace likewise
