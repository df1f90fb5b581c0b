// Node: a part in the tree, how it was bounded and split, and what is left of it.
#pragma once
#include <array>
#include <memory>

#include "part.hpp"

namespace likewise {

enum Kind : int8_t { LEFT = 0, RIGHT = 1, DZ = 2, CATEGORY = 3 };
enum State : int8_t { OPEN = 0, SPLIT = 1, CLOSED = 2, EMPTY = 3, STUCK = 4 };

struct Split {
    int8_t kind = LEFT;
    int8_t side = 2;      // of a category: 0, 1, or 2 for both; of a neuron: 3 if its other side is decided
    int layer = 0, place = 0;  // a neuron, or the group
    int chosen = 0;       // the category of the first half
    double weight = 0;    // how promising
    double at = 0;        // where a neuron's interval is cut
};

// The multipliers that are not 0, of the rows of a model and of its ball.
struct Shown {
    int model = -1;
    std::vector<int> index;
    std::vector<double> value, mu;
};

// A bound of a neuron's dz for the pairs of a part that reach the threshold.
struct Lemma {
    int layer, neuron, sign;
    double upper;
    Shown shown;
};

struct Node {
    int parent = -1, child[2] = {-1, -1};
    int8_t state = OPEN;
    Split split;
    double upper = INF;
    double rank = INF;     // the slack of its own program, without what holds of all differences together
    int depth = 0;
    double settled = INF;  // the slack when its dz were last narrowed
    Shown shown;
    std::vector<Lemma> lemmas;
    std::unique_ptr<Part> part;
};

struct Pair {
    double gap;
    std::vector<double> left, right;
};

// The gap, in units of the score's factor, that a slack at threshold t leaves: see `Score.upper_from_slack`.
inline double gap_from_slack(bool curved, double t, double slack) {
    if (slack < 0) return t;
    double excess = slack;
    if (curved) {
        double p = std::max(t, logistic(-slack / 2));
        excess = slack > 1e3 ? 1 - p : p * (1 - p) * -std::expm1(-slack) / (p + (1 - p) * std::exp(-slack));
    }
    return std::nextafter(t + excess * (1 + 1e-13), INF);
}

// Write half of a part to `out`; false if nobody is in it.
inline bool halve(const Question &q, const Part &part, const Split &split, int half, Part &out) {
    out = part;
    if (split.kind == CATEGORY) {
        const Group &g = q.groups[split.place];
        for (int side = 0; side < 2; side++) {
            if (split.side != 2 && split.side != side) continue;
            for (int c = g.start; c < g.stop; c++)
                if ((c == split.chosen) == (half == 1)) out.allowed[side][c] = 0;
            if (!enter(q, out, side)) return false;
        }
        return true;
    }
    Interval &box = out.box[split.kind][q.layers[split.layer].first + split.place];
    (half == 0 ? box.high : box.low) = split.at;
    return box.low <= box.high;
}

struct Brought {
    double sum = 0;
    int count = 0;
};

// What comes of bounding a part.
struct Bound {
    Part part;
    bool alive = false, is_open = false, finished = false;
    double slack = -INF, upper = -INF, own = -INF;  // `own`: what its program alone shows of the gap
    double together = -INF;  // the slack, with what holds of all differences together as far as that is known
    Multipliers y;
    std::vector<double> x;
};

inline Shown shown(const Multipliers &y, int model) {
    Shown out;
    out.model = model;
    out.mu = y.mu;
    for (size_t i = 0; i < y.rows.size(); i++)
        if (y.rows[i] != 0.0) {
            out.index.push_back(int(i));
            out.value.push_back(y.rows[i]);
        }
    return out;
}

// Note how a part was bounded.
inline void keep(Node &node, const Bound &bound, int model) { node.shown = bound.alive ? shown(bound.y, model) : Shown(); }

}  // namespace likewise
