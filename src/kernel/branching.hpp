// Branching: where to split a part, by trials of a few splits, and the way down from the widest part.
#pragma once
#include "bounding.hpp"

namespace likewise {

constexpr int NEURONS = 8, COLUMNS = 4;  // how many candidates there are of each
constexpr size_t FAVOURED = 6;           // and of those by which a bound of all differences together falls
constexpr double OFF = 1e-10, WHOLE = 1e-7;
constexpr double FAINT = 1e-3;           // of the most that a neuron is off by, below which others do not matter
constexpr double INSIDE = 0.1;           // a cut keeps at least this share of an interval on either side
inline const std::vector<double> ZERO = {0.0};
constexpr int RECENT = 20;               // what is remembered of a split
constexpr size_t DEEPEST = 3000;

// Where to cut a neuron's interval: at a kink if there is one inside, else where the point is, kept off the ends.
inline double place(const std::vector<double> &kinks, const Interval &box, double z) {
    double at = INF;
    for (double kink : kinks)
        if (box.low < kink && kink < box.high && std::fabs(kink - z) < std::fabs(at - z)) at = kink;
    const double margin = INSIDE * (box.high - box.low);
    return at < INF ? at : std::min(std::max(z, box.low + margin), box.high - margin);
}

inline std::vector<Split> Worker::candidates(const Part &part, const std::vector<double> &x) const {
    const Question &q = tree_.question;
    std::vector<Split> neurons, signs, columns;
    for (size_t index = 0; index + 1 < q.layers.size(); index++) {
        const Layer &layer = q.layers[index];
        const bool is_last = index + 2 == q.layers.size() && q.harmless;
        for (int j = 0; j < layer.height; j++) {
            const int at = layer.first + j;
            const Interval &l = part.box[0][at], &r = part.box[1][at], &d = part.box[2][at], s = slopes(layer, l, r);
            if (s.low == s.high) continue;
            // The gap never falls as the left output rises: what the last layer is off by the other way is harmless.
            const double w = is_last ? q.layers.back().weight[j] : 0.0, wanted = w > 0 ? 1 : w < 0 ? -1 : 0;
            auto harm = [](double off, double sign) { return sign == 0 ? std::fabs(off) : std::max(sign * off, 0.0); };
            // A cut of a curve's interval takes no more than this away: s dz, and f, are within that of a line over it.
            auto gain = [&](const Interval &box) { return layer.is_curved() ? (s.high - s.low) * (box.high - box.low) : INF; };
            double z[2], v[2], f[2];
            for (int side = 0; side < 2; side++) {
                const Interval &box = part.box[side][at];
                z[side] = std::min(std::max(x[layer.z[side][j]], box.low), box.high);
                v[side] = x[layer.v[side][j]];
                f[side] = layer.of(z[side]);
                double off = std::min(harm(v[side] - f[side], side == 0 ? wanted : -wanted), gain(box)) * layer.influence[j];
                const double cut = layer.is_curved() ? place(layer.curve.kinks, box, z[side]) : 0.0;
                const Interval &other = part.box[1 - side][at];
                const bool alone = other.low < cut && other.high > cut;  // the other side is not decided either
                if (off > OFF && box.low < cut && box.high > cut)
                    neurons.push_back({int8_t(side), int8_t(alone ? 2 : 3), int(index), j, 0, off, cut});
            }
            double off = std::min(0.5 * harm((v[0] - v[1]) - (f[0] - f[1]), wanted), gain(d)) * layer.influence[j];
            const double cut = layer.is_curved() ? place(ZERO, d, z[0] - z[1]) : 0.0;
            if (off > OFF && d.low < cut && d.high > cut)
                (layer.is_curved() ? neurons : signs).push_back({DZ, 2, int(index), j, 0, off, cut});
        }
    }
    const Layer &first = q.layers[0];
    for (size_t k = 0; k < q.groups.size(); k++) {
        const Group &g = q.groups[k];
        for (int side = g.shared ? 1 : 0; side < 2; side++) {
            int best = g.start;
            for (int c = g.start; c < g.stop; c++)
                if (x[q.x[side][c]] > x[q.x[side][best]]) best = c;
            double missing = 1.0 - x[q.x[side][best]];
            if (missing <= WHOLE) continue;
            double effect = 0;
            for (int c = g.start; c < g.stop; c++) {
                if (x[q.x[side][c]] <= WHOLE) continue;
                double e = 0;
                for (int j = 0; j < first.height; j++)
                    e += first.influence[j] * std::fabs(first.weight[size_t(j) * first.width + c]);
                effect = std::max(effect, e);
            }
            columns.push_back({CATEGORY, int8_t(g.shared ? 2 : side), 0, int(k), best, missing * effect});
        }
    }
    if (neurons.empty() && columns.empty()) neurons.swap(signs);
    auto more = [](const Split &a, const Split &b) { return a.weight > b.weight; };
    std::sort(neurons.begin(), neurons.end(), more);
    std::sort(columns.begin(), columns.end(), more);
    if (neurons.size() > NEURONS) neurons.resize(NEURONS);
    if (columns.size() > COLUMNS) columns.resize(COLUMNS);
    if (!q.program.bends.empty())  // some intervals are all but points
        while (!neurons.empty() && neurons.back().weight < FAINT * neurons.front().weight) neurons.pop_back();
    neurons.insert(neurons.end(), columns.begin(), columns.end());
    std::sort(neurons.begin(), neurons.end(), more);
    return neurons;
}

// Add the splits by which a bound of all differences together would fall most: of neurons with the largest part in it.
inline void Worker::favoured(const Part &part, std::vector<Split> &splits) {
    const Question &q = tree_.question;
    const Joint &joint = q.joints.front();
    joiner_.upper(q, joint, part);
    const std::vector<double> y = joiner_.point(joint);
    if (y.empty()) return;
    std::vector<Split> found;
    int at = int(joint.columns.size()), before = 0;
    for (size_t index = 0; index + 1 < q.layers.size(); index++) {
        const Layer &layer = q.layers[index];
        const bool is_last = index + 2 == q.layers.size();
        const int count = index == 0 ? int(joint.columns.size()) : layer.width;
        for (int j = 0; j < layer.height; j++) {
            const int k = layer.first + j;
            double dz = 0;
            for (int c = 0; c < count; c++)
                dz += layer.weight[size_t(j) * layer.width + (index == 0 ? joint.columns[c] : c)] * y[before + c];
            const double c = is_last ? joint.linear[at + j] : 0.0;
            int side = c > 0 ? 0 : 1;
            auto open = [&](int s) { return part.box[s][k].low < 0 && part.box[s][k].high > 0; };
            if (!is_last) side = open(0) ? 0 : 1;
            if (layer.is_curved() || !open(side)) continue;
            found.push_back({int8_t(side), int8_t(open(1 - side) ? 2 : 3), int(index), j, 0,
                             std::fabs(dz) * (is_last ? std::fabs(c) : layer.influence[j]), 0.0});
        }
        before = at;
        at += layer.height;
    }
    std::sort(found.begin(), found.end(), [](const Split &a, const Split &b) { return a.weight > b.weight; });
    if (found.size() > FAVOURED) found.resize(FAVOURED);
    for (const Split &one : found) {
        bool is_new = true;
        for (const Split &other : splits) is_new &= one.kind != other.kind || one.layer != other.layer || one.place != other.place;
        if (is_new) splits.push_back(one);
    }
}

inline void Worker::run() {
    const int me = [&] {
        for (size_t k = 0; k < tree_.workers_.size(); k++)
            if (tree_.workers_[k].get() == this) return int(k);
        return 0;
    }();
    int idle = 0;
    while (!tree_.over()) {
        int id = -1;
        Part part;
        double known = INF;
        {
            std::lock_guard<std::mutex> lock(tree_.mutex_);
            tree_.active_[me] = -1;
            if (tree_.upper() <= tree_.wanted_) {
                tree_.stop_ = true;
                return;
            }
            if (!tree_.newest_.empty()) {
                id = tree_.newest_.back();
                tree_.newest_.pop_back();
            } else if (!tree_.heap_.empty()) {
                id = tree_.heap_.top().second;
                tree_.heap_.pop();
                tree_.uppers_.erase(tree_.uppers_.find(tree_.nodes[id].upper));
            }
            if (id >= 0) {
                tree_.active_[me] = id;
                part = *tree_.nodes[id].part;
                known = tree_.nodes[id].upper;
            } else {
                bool busy = false;
                for (int other : tree_.active_) busy |= other >= 0;
                if (!busy) {
                    tree_.stop_ = true;
                    return;
                }
            }
        }
        if (id < 0) {
            std::this_thread::sleep_for(std::chrono::microseconds(std::min(500, 20 << std::min(idle++, 5))));
            continue;
        }
        idle = 0;
        Bound now;
        bound(std::move(part), *here_, known, steps(), now);
        if (!record(id, now)) continue;
        look(now);
        if (worth_narrowing(id, now)) narrow(id, now);
        while (now.is_open && branch(id, now)) {
            std::lock_guard<std::mutex> lock(tree_.mutex_);
            tree_.active_[me] = id;
            if (tree_.over() || tree_.nodes[id].upper <= tree_.wanted_) {
                tree_.push(id);
                tree_.active_[me] = -1;
                break;
            }
        }
        std::lock_guard<std::mutex> lock(tree_.mutex_);
        tree_.active_[me] = -1;
    }
}

inline std::array<int, 4> key(const Split &s) { return {s.kind, s.side, s.layer, s.place}; }

// Return the splits worth trying: those that little is known of, and the one that has brought most.
inline std::vector<Split> Worker::shortlist(const std::vector<Split> &splits) {
    std::lock_guard<std::mutex> lock(tree_.mutex_);
    std::vector<Split> wanted;
    double most = -1;
    const Split *best = nullptr;
    for (const Split &split : splits) {
        const Brought &known = tree_.brought_[key(split)];
        const double mean = known.sum / std::max(known.count, 1);
        if (known.count < tree_.question.reliable)
            wanted.push_back(split);
        else if (mean > most) {
            most = mean;
            best = &split;
        }
    }
    if (best) wanted.push_back(*best);
    return wanted;
}

// Note what a split has brought: the product of how far both halves fall, at most down to 0; by the program alone or with what
// holds of all differences together, whichever is more.
inline double Worker::learn(const Split &split, const Bound &now, const Bound halves[2]) {
    auto fallen = [&](double Bound::*slack) {
        double product = 1;
        for (int half = 0; half < 2; half++) {
            const double fall = now.*slack - (halves[half].is_open ? std::max(halves[half].*slack, 0.0) : 0.0);
            product *= std::max(fall, 1e-6 * (now.*slack)) / std::max(now.*slack, 1e-300);
        }
        return product;
    };
    double gain = std::max(fallen(&Bound::slack), fallen(&Bound::together));
    if (!(gain >= 0)) gain = 0;  // of infinite slacks
    std::lock_guard<std::mutex> lock(tree_.mutex_);
    Brought &known = tree_.brought_[key(split)];
    if (known.count >= RECENT) {
        known.sum *= 1 - 1.0 / RECENT;
        known.count = RECENT - 1;
    }
    known.sum += gain;
    known.count++;
    return gain;
}

// Bound both halves of some splits, and return which is best: it closes a half, or both fall furthest. Its halves are
// left in `halves`, their tableaux in `best_`.
inline int Worker::try_out(const Bound &now, const std::vector<Split> &wanted, double upper, Bound halves[2]) {
    for (auto *place : {&tried_[0], &tried_[1], &best_[0], &best_[1]})
        if (!*place) *place = std::make_unique<Tableau>(*here_);
    int chosen = 0;
    double most = -1;
    for (size_t k = 0; k < wanted.size(); k++) {
        Bound tried[2];
        bool closes = false;
        for (int half = 0; half < 2; half++) {
            Part part;
            if (halve(tree_.question, now.part, wanted[k], half, part)) {
                *tried_[half] = *here_;
                bound(std::move(part), *tried_[half], upper, wanted.size() > 1 ? TRIAL : steps(), tried[half]);
            }
            closes |= !tried[half].is_open;
        }
        const bool settles = closes && tree_.question.program.bends.empty();  // of curves, ends can be cut off without end
        const double gain = learn(wanted[k], now, tried) + (settles ? 2 : 0);
        if (gain > most) {
            most = gain;
            chosen = int(k);
            for (int half = 0; half < 2; half++) {
                std::swap(halves[half], tried[half]);
                std::swap(best_[half], tried_[half]);
            }
        }
        if (settles || tree_.over()) break;
    }
    return chosen;
}

// Write a split to the tree, keep its narrower half if that is open, and return the wider open one; -1 if there is none.
inline int Worker::divide(int id, const Split &split, const Bound halves[2], double upper) {
    std::lock_guard<std::mutex> lock(tree_.mutex_);
    const int first = int(tree_.nodes.size());
    int next = -1;
    for (int half = 0; half < 2; half++) {
        tree_.nodes.emplace_back();
        Node &node = tree_.nodes.back(), &parent = tree_.nodes[id];
        const Bound &bound = halves[half];
        node.parent = id;
        node.depth = parent.depth + 1;
        keep(node, bound, tree_.model);
        node.upper = bound.upper;
        node.rank = std::min(parent.rank, bound.slack);
        node.settled = parent.settled;
        if (bound.is_open && bound.own >= upper) node.shown = parent.shown;  // what is known of the whole is better
        node.state = !bound.alive ? EMPTY : bound.is_open ? OPEN : CLOSED;
        if (bound.is_open) node.part = std::make_unique<Part>(bound.part);
        if (bound.is_open && (next < 0 || tree_.wider(first + half, next))) next = first + half;
    }
    Node &parent = tree_.nodes[id];
    parent.state = SPLIT;
    parent.split = split;
    parent.child[0] = first;
    parent.child[1] = first + 1;
    parent.part.reset();
    parent.shown = Shown();
    const int other = next < 0 ? -1 : next == first ? first + 1 : first;
    if (other >= 0 && tree_.nodes[other].state == OPEN) tree_.push(other);
    return next;
}

// Split a part; go on with its wider half (`id` and `now` become those), and keep the other. False if none is open.
inline bool Worker::branch(int &id, Bound &now) {
    std::unique_lock<std::mutex> lock(tree_.mutex_);
    const double upper = tree_.nodes[id].upper;
    const bool is_deep = tree_.nodes[id].depth + 1 >= int(DEEPEST);
    lock.unlock();
    std::vector<Split> splits = candidates(now.part, now.x);
    if (!splits.empty() && !tree_.question.joints.empty()) favoured(now.part, splits);
    if (splits.empty() || is_deep) {
        lock.lock();
        tree_.nodes[id].state = STUCK;
        tree_.nodes[id].part = std::make_unique<Part>(now.part);
        tree_.stuck_.push_back(id);
        tree_.points.push_back(now.x);
        return false;
    }
    const std::vector<Split> wanted = shortlist(splits);
    Bound halves[2];
    const int chosen = try_out(now, wanted, upper, halves), next = divide(id, wanted[chosen], halves, upper);
    if (next < 0) return false;
    lock.lock();
    const int half = next - tree_.nodes[id].child[0];
    const double known = tree_.nodes[next].upper;
    lock.unlock();
    std::swap(here_, best_[half]);
    if (halves[half].finished)
        now = std::move(halves[half]);
    else
        bound(Part(halves[half].part), *here_, known, steps(), now);
    id = next;
    if (!record(id, now)) return false;
    look(now);
    if (worth_narrowing(id, now)) narrow(id, now);
    return now.is_open;
}

}  // namespace likewise
