// Tree: the branch and bound over parts. Each part is bounded by its program; what may still hold a pair is split at a
// neuron's kink or between categories, as trials of a few splits suggest, the widest part first and then down from it.
#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <queue>
#include <thread>

#include "part.hpp"

namespace likewise {

constexpr int NEURONS = 8, COLUMNS = 4;  // how many candidates there are of each
constexpr int RELIABLE = 4;              // how often a split was tried before it is taken at its word
constexpr double OFF = 1e-10, WHOLE = 1e-7;
constexpr long TRIAL = 30;               // steps of the simplex method in a trial
constexpr long STEPS = 2000;             // and for a part
constexpr double BELOW = -1e-8;          // a slack that is surely below 0
constexpr size_t MOST = 200000;          // open parts from which on the newest is taken first
constexpr int DIVE_EVERY = 16;           // parts between dives for a pair
constexpr size_t DEEPEST = 400;
constexpr double AGAIN = 0.7;            // a part whose slack fell to this share since its dz were narrowed has it done again
constexpr double SHARE = 0.25;            // of the steps of the simplex method, to narrow
constexpr double LEAST = 0.02;           // of its width, by which an interval must get narrower to be worth a lemma
constexpr double COARSE = 0.3;
constexpr long NARROWED = 300;           // steps of the simplex method for one end of an interval

enum Kind : int8_t { LEFT = 0, RIGHT = 1, DZ = 2, CATEGORY = 3 };
enum State : int8_t { OPEN = 0, SPLIT = 1, CLOSED = 2, EMPTY = 3, STUCK = 4 };

struct Split {
    int8_t kind = LEFT;
    int8_t side = 2;      // of a category: 0, 1, or 2 for both
    int layer = 0, place = 0;  // a neuron, or the group
    int chosen = 0;       // the category of the first half
    double weight = 0;    // how promising
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

inline double logistic(double z) { return z >= 0 ? 1 / (1 + std::exp(-z)) : std::exp(z) / (1 + std::exp(z)); }

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
    (half == 0 ? box.high : box.low) = 0.0;
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

class Tree;

class Worker {
  public:
    Worker(Tree &tree);
    void run();

  private:
    Tree &tree_;
    std::unique_ptr<Tableau> here_, spare_, tried_[2], best_[2];  // of this part, of a dive, of halves
    std::vector<double> low_, high_;
    std::vector<Interval> values_[3];
    long bounded_ = 0, narrowing_ = 0;

    void bound(Part part, Tableau &tableau, double known, long most, Bound &out);
    std::vector<Split> candidates(const Part &part, const std::vector<double> &x) const;
    bool branch(int &id, Bound &now);
    void offer(const std::vector<double> &x);
    bool draw_in(Pair &pair) const;
    void dive(const Bound &now);
    void narrow(int id, Bound &now);
    bool worth_narrowing(int id, const Bound &now);
};

class Tree {
  public:
    Question question;
    std::vector<Node> nodes;
    std::vector<Pair> pairs;
    std::vector<std::vector<double>> points;  // of parts that cannot be split
    long bounded = 0, steps = 0;
    int model = 0;

    Tree(Question q, Part root) : question(std::move(q)) {
        nodes.emplace_back();
        nodes[0].part = std::make_unique<Part>(std::move(root));
        push(0);
    }

    // Go on with another model: parts keep their bounds, those that could not be split are tried again. `root` is what is
    // known of the whole by now.
    void renew(Question q, const Part &root) {
        question = std::move(q);
        model++;
        for (int id : stuck_) {
            nodes[id].state = OPEN;
            push(id);
        }
        stuck_.clear();
        workers_.clear();
        for (Node &node : nodes)
            if (node.part && !within(*node.part, root)) {  // a lemma of the root contradicts a split
                node.state = EMPTY;
                node.upper = -INF;
                node.part.reset();
            }
        std::vector<std::pair<double, int>> rest;
        for (; !heap_.empty(); heap_.pop())
            if (nodes[heap_.top().second].part) rest.push_back(heap_.top());
        for (const auto &one : rest) heap_.push(one);
        newest_.erase(std::remove_if(newest_.begin(), newest_.end(), [this](int id) { return !nodes[id].part; }),
                      newest_.end());
    }

    // Split an open part as an earlier search did, and return its halves; nothing is known of their bounds. Of a tree
    // that has just begun only.
    std::pair<int, int> divide(int id, const Split &split) {
        std::vector<Interval> values[3];
        for (auto &v : values) v.resize(question.neurons);
        const int first = int(nodes.size());
        std::unique_ptr<Part> part = std::move(nodes.at(id).part);
        for (int half = 0; half < 2; half++) {
            nodes.emplace_back();
            Node &node = nodes.back();
            node.parent = id;
            node.depth = nodes[id].depth + 1;
            node.upper = nodes[id].upper;
            node.part = std::make_unique<Part>();
            if (!part || !halve(question, *part, split, half, *node.part) || !settle(question, *node.part, values)) {
                node.state = EMPTY;
                node.part.reset();
            }
        }
        nodes[id].state = SPLIT;
        nodes[id].split = split;
        nodes[id].child[0] = first;
        nodes[id].child[1] = first + 1;
        return {first, first + 1};
    }

    // Take up all open parts after `divide`.
    void gather() {
        heap_ = {};
        for (size_t k = 0; k < nodes.size(); k++)
            if (nodes[k].part) push(int(k));
    }

    // Work for some seconds, or until `upper` is at most `wanted`, or a pair beats `known` by `better`.
    void run(double seconds, double known, double better, double wanted, int threads) {
        end_ = std::chrono::steady_clock::now() +
               std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
        known_ = known;
        better_ = known + better;
        wanted_ = wanted;
        stop_ = false;
        pairs.clear();
        points.clear();
        while (int(workers_.size()) < threads) workers_.push_back(std::make_unique<Worker>(*this));
        active_.assign(threads, -1);
        std::vector<std::thread> pool;
        for (int k = 1; k < threads; k++) pool.emplace_back([this, k] { workers_[k]->run(); });
        workers_[0]->run();
        for (auto &one : pool) one.join();
    }

    double upper() const {
        double most = -INF;
        if (!heap_.empty()) most = heap_.top().first;
        for (int id : newest_) most = std::max(most, nodes[id].upper);
        for (int id : stuck_) most = std::max(most, nodes[id].upper);
        for (int id : active_)
            if (id >= 0) most = std::max(most, nodes[id].upper);
        return most;
    }

    size_t open() const { return heap_.size() + newest_.size() + stuck_.size(); }
    size_t stuck() const { return stuck_.size(); }

  private:
    friend class Worker;
    std::priority_queue<std::pair<double, int>> heap_;
    std::vector<int> newest_, stuck_, active_;
    std::vector<std::unique_ptr<Worker>> workers_;
    std::map<std::array<int, 4>, Brought> brought_;
    std::mutex mutex_;
    std::chrono::steady_clock::time_point end_;
    std::atomic<bool> stop_{false};
    double known_ = 0, better_ = 0, wanted_ = 0;

    void push(int id) {
        if (heap_.size() < MOST)
            heap_.emplace(nodes[id].upper, id);
        else
            newest_.push_back(id);
    }

    static bool within(Part &part, const Part &root) {
        for (int kind = 0; kind < 3; kind++)
            for (size_t k = 0; k < part.box[kind].size(); k++)
                if (!meet(part.box[kind][k], root.box[kind][k].low, root.box[kind][k].high)) return false;
        return true;
    }

    bool over() {
        if (stop_) return true;
        if (std::chrono::steady_clock::now() > end_) stop_ = true;
        return stop_;
    }
};

inline Worker::Worker(Tree &tree) : tree_(tree) {
    here_ = std::make_unique<Tableau>(tree.question.program);
    for (auto &v : values_) v.resize(tree.question.neurons);
}

inline void Worker::bound(Part part, Tableau &tableau, double known, long most, Bound &out) {
    const Question &q = tree_.question;
    out.part = std::move(part);
    out.alive = settle(q, out.part, values_);
    out.is_open = out.finished = false;
    out.slack = out.upper = out.own = -INF;
    if (!out.alive) return;
    fill(q, out.part, values_, low_, high_);
    long before = tableau.pivots;
    for (int attempt = 0; attempt < 2; attempt++) {
        Ended ended = tableau.solve(low_.data(), high_.data(), BELOW, most);
        out.finished = ended == Ended::optimal;
        out.y = tableau.multipliers();
        out.slack = q.program.bound(out.y, q.program.cost, low_.data(), high_.data());
        double expected = ended == Ended::empty ? -1.0 : tableau.objective();
        bool good = ended == Ended::below || ended == Ended::empty ? out.slack < 0
                                                                    : out.slack <= expected + 1e-7 * (1 + std::fabs(expected));
        if (good) break;
        if (attempt == 0) tableau.refresh();
    }
    out.is_open = !(out.slack < 0);
    out.own = gap_from_slack(q.curved, q.t, out.slack);
    out.upper = std::min(known, out.own);
    out.x.resize(q.program.variables());
    tableau.point(out.x);
    bounded_++;
    {
        std::lock_guard<std::mutex> lock(tree_.mutex_);
        tree_.bounded++;
        tree_.steps += tableau.pivots - before;
    }
}

inline std::vector<Split> Worker::candidates(const Part &part, const std::vector<double> &x) const {
    const Question &q = tree_.question;
    std::vector<Split> neurons, signs, columns;
    for (size_t index = 0; index + 1 < q.layers.size(); index++) {
        const Layer &layer = q.layers[index];
        const bool is_last = index + 2 == q.layers.size();
        for (int j = 0; j < layer.height; j++) {
            const int at = layer.first + j;
            const Interval &l = part.box[0][at], &r = part.box[1][at], &d = part.box[2][at], s = slopes(l, r);
            if (s.low == s.high) continue;
            // The gap never falls as the left output rises: what the last layer is off by the other way is harmless.
            const double w = is_last ? q.layers.back().weight[j] : 0.0, wanted = w > 0 ? 1 : w < 0 ? -1 : 0;
            auto harm = [](double off, double sign) { return sign == 0 ? std::fabs(off) : std::max(sign * off, 0.0); };
            double z[2], v[2], f[2];
            for (int side = 0; side < 2; side++) {
                const Interval &box = part.box[side][at];
                z[side] = std::min(std::max(x[layer.z[side][j]], box.low), box.high);
                v[side] = x[layer.v[side][j]];
                f[side] = relu(z[side]);
                double off = harm(v[side] - f[side], side == 0 ? wanted : -wanted) * layer.influence[j];
                if (off > OFF && box.low < 0 && box.high > 0)
                    neurons.push_back({int8_t(side), 2, int(index), j, 0, off});
            }
            double off = 0.5 * harm((v[0] - v[1]) - (f[0] - f[1]), wanted) * layer.influence[j];
            if (off > OFF && d.low < 0 && d.high > 0) signs.push_back({DZ, 2, int(index), j, 0, off});
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
    neurons.insert(neurons.end(), columns.begin(), columns.end());
    std::sort(neurons.begin(), neurons.end(), more);
    return neurons;
}

// Draw the left person towards the right one until they are similar; false if categories differ and forbid it.
inline bool Worker::draw_in(Pair &pair) const {
    const Ball &ball = tree_.question.program.ball;
    const std::vector<int> &of = tree_.question.compared;
    double squares = 0;
    for (int k = 0; k < ball.height; k++) {
        double s = 0;
        for (size_t c = 0; c < of.size(); c++) s += ball.full[k * of.size() + c] * (pair.left[of[c]] - pair.right[of[c]]);
        squares += s * s;
    }
    const double norm = std::sqrt(squares), share = ball.eps / std::max(norm, 1e-300) * (1 - 1e-9);
    if (ball.empty() || norm <= ball.eps) return true;
    for (int c : of) {
        if (tree_.question.grouped[c] && pair.left[c] != pair.right[c]) return false;
        pair.left[c] = pair.right[c] + share * (pair.left[c] - pair.right[c]);
    }
    return true;
}

inline void Worker::offer(const std::vector<double> &x) {
    const Question &q = tree_.question;
    Pair pair;
    for (int side = 0; side < 2; side++) {
        std::vector<double> &person = side == 0 ? pair.left : pair.right;
        const int width = int(q.x[side].size());
        person.resize(width);
        for (int c = 0; c < width; c++) person[c] = std::min(std::max(x[q.x[side][c]], q.x_low[side][c]), q.x_high[side][c]);
        for (const Group &g : q.groups) {
            int best = g.start;
            for (int c = g.start; c < g.stop; c++)
                if (person[c] > person[best]) best = c;
            for (int c = g.start; c < g.stop; c++) person[c] = c == best;
        }
    }
    if (!draw_in(pair)) return;
    double logit[2];
    for (int side = 0; side < 2; side++) {
        std::vector<double> v = side == 0 ? pair.left : pair.right, z;
        for (size_t index = 0; index < q.layers.size(); index++) {
            const Layer &layer = q.layers[index];
            z.assign(layer.bias.begin(), layer.bias.end());
            for (int j = 0; j < layer.height; j++)
                for (int c = 0; c < layer.width; c++) z[j] += layer.weight[size_t(j) * layer.width + c] * v[c];
            v = z;
            if (index + 1 < q.layers.size())
                for (double &one : v) one = relu(one);
        }
        logit[side] = v[0];
    }
    pair.gap = q.curved ? logistic(logit[0]) - logistic(logit[1]) : logit[0] - logit[1];
    std::lock_guard<std::mutex> lock(tree_.mutex_);
    if (pair.gap <= tree_.known_) return;
    tree_.known_ = pair.gap;
    if (pair.gap > tree_.better_) tree_.stop_ = true;
    tree_.pairs.push_back(std::move(pair));
}

// Decide all categories as the point does, then all phases; the program's point is then all but a pair.
inline void Worker::dive(const Bound &now) {
    const Question &q = tree_.question;
    if (!spare_) spare_ = std::make_unique<Tableau>(*here_);
    *spare_ = *here_;
    Bound next;
    next.part = now.part;
    next.x = now.x;
    for (int stage = 0; stage < 3; stage++) {
        Part part = next.part;
        if (stage == 0) {
            if (q.groups.empty()) continue;
            for (int side = 0; side < 2; side++)
                for (const Group &g : q.groups) {
                    int best = -1;
                    for (int c = g.start; c < g.stop; c++)
                        if (part.allowed[side][c] && (best < 0 || next.x[q.x[side][c]] > next.x[q.x[side][best]])) best = c;
                    for (int c = g.start; c < g.stop; c++) part.allowed[side][c] = c == best;
                }
            if (!enter(q, part, 0) || !enter(q, part, 1)) return;
        } else {
            for (size_t index = 0; index + 1 < q.layers.size(); index++) {
                if (stage == 1 && index > 0) break;
                const Layer &layer = q.layers[index];
                for (int j = 0; j < layer.height; j++)
                    for (int side = 0; side < 2; side++) {
                        Interval &box = part.box[side][layer.first + j];
                        if (box.low < 0 && box.high > 0) (next.x[layer.z[side][j]] > 0 ? box.low : box.high) = 0.0;
                    }
            }
        }
        Part given = std::move(part);
        bound(std::move(given), *spare_, INF, STEPS, next);
        if (!next.is_open || !next.finished) return;
        offer(next.x);
    }
}

// Whether to narrow the dz of a part: its slack has fallen since they were, and not too much of the time goes there.
inline bool Worker::worth_narrowing(int id, const Bound &now) {
    std::lock_guard<std::mutex> lock(tree_.mutex_);
    return now.finished && now.slack < AGAIN * tree_.nodes[id].settled && narrowing_ < SHARE * double(here_->pivots + 200);
}

// Narrow the dz of a part's open neurons, for pairs at the threshold (so that the slack is at least 0), and bound it anew.
inline void Worker::narrow(int id, Bound &now) {
    const Question &q = tree_.question;
    if (!spare_) spare_ = std::make_unique<Tableau>(*here_);
    *spare_ = *here_;
    const long before = spare_->pivots;
    spare_->accuracy = COARSE;
    if (!settle(q, now.part, values_)) return;
    fill(q, now.part, values_, low_, high_);
    low_[q.goal] = std::max(low_[q.goal], 0.0);
    std::vector<Lemma> lemmas;
    for (size_t index = 0; index < q.layers.size(); index++) {
        const Layer &layer = q.layers[index];
        for (int j = 0; j < layer.height; j++) {
            const int at = layer.first + j;
            const Interval s = slopes(now.part.box[0][at], now.part.box[1][at]), &dz = now.part.box[2][at];
            if (index + 1 < q.layers.size() && s.low == s.high) continue;
            for (int sign : {1, -1}) {
                std::vector<double> cost(q.program.columns, 0.0);
                cost[layer.z[0][j]] += sign;
                cost[layer.z[1][j]] -= sign;
                spare_->aim(std::move(cost));
                spare_->solve(low_.data(), high_.data(), -INF, NARROWED);
                Multipliers y = spare_->multipliers();
                const double upper = q.program.bound(y, spare_->cost(), low_.data(), high_.data());
                if (upper < (sign > 0 ? dz.high : -dz.low) - LEAST * (dz.high - dz.low))
                    lemmas.push_back({int(index), j, sign, upper, shown(y, tree_.model)});
            }
        }
    }
    narrowing_ += spare_->pivots - before;
    spare_->accuracy = here_->accuracy;
    Part part = now.part;
    bool alive = true;
    for (const Lemma &lemma : lemmas) {
        Interval &dz = part.box[2][q.layers[lemma.layer].first + lemma.neuron];
        alive &= lemma.sign > 0 ? meet(dz, -INF, lemma.upper) : meet(dz, -lemma.upper, INF);
    }
    const double slack = now.slack;
    double known;
    {
        std::lock_guard<std::mutex> lock(tree_.mutex_);
        known = tree_.nodes[id].upper;
    }
    if (alive)
        bound(std::move(part), *here_, known, STEPS, now);
    else
        now.alive = now.is_open = false;
    std::lock_guard<std::mutex> lock(tree_.mutex_);
    Node &node = tree_.nodes[id];
    for (Lemma &lemma : lemmas) node.lemmas.push_back(std::move(lemma));
    if (!now.is_open || now.own < node.upper) keep(node, now, tree_.model);
    node.upper = std::min(node.upper, std::max(now.upper, q.t));
    node.settled = now.is_open && now.slack < AGAIN * slack ? slack : now.slack;  // it paid: try again soon
    if (now.is_open) return;
    node.state = now.alive ? CLOSED : EMPTY;
    node.part.reset();
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
        bound(std::move(part), *here_, known, STEPS, now);
        {
            std::lock_guard<std::mutex> lock(tree_.mutex_);
            Node &node = tree_.nodes[id];
            if (!now.is_open || node.shown.model < 0 || now.own < node.upper) keep(node, now, tree_.model);
            node.upper = std::min(node.upper, now.upper);
            if (!now.alive || !now.is_open) {
                node.state = now.alive ? CLOSED : EMPTY;
                node.part.reset();
                tree_.active_[me] = -1;
                continue;
            }
        }
        if (now.finished) offer(now.x);
        if (now.finished && bounded_ % DIVE_EVERY == 0) dive(now);
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

// Split a part; go on with its wider half (`id` and `now` become those), and keep the other. False if none is open.
inline bool Worker::branch(int &id, Bound &now) {
    std::unique_lock<std::mutex> lock(tree_.mutex_);
    const int depth = tree_.nodes[id].depth + 1;
    const double upper = tree_.nodes[id].upper, settled = tree_.nodes[id].settled;
    lock.unlock();
    std::vector<Split> splits = candidates(now.part, now.x);
    if (splits.empty() || depth >= int(DEEPEST)) {
        lock.lock();
        tree_.nodes[id].state = STUCK;
        tree_.nodes[id].part = std::make_unique<Part>(now.part);
        tree_.stuck_.push_back(id);
        tree_.points.push_back(now.x);
        return false;
    }
    auto key = [](const Split &s) { return std::array<int, 4>{s.kind, s.side, s.layer, s.place}; };
    std::vector<Split> wanted;
    {
        std::lock_guard<std::mutex> lock(tree_.mutex_);
        double most = -1;
        const Split *best = nullptr;
        for (const Split &split : splits) {
            const Brought &known = tree_.brought_[key(split)];
            if (known.count < RELIABLE)
                wanted.push_back(split);
            else if (known.sum / known.count > most) {
                most = known.sum / known.count;
                best = &split;
            }
        }
        if (best) wanted.push_back(*best);
    }
    for (auto *place : {&tried_[0], &tried_[1], &best_[0], &best_[1]})
        if (!*place) *place = std::make_unique<Tableau>(*here_);
    Bound halves[2], tried[2];
    int chosen = -1;
    double most = -1;
    for (size_t k = 0; k < wanted.size(); k++) {
        bool closes = false;
        for (int half = 0; half < 2; half++) {
            Part part;
            tried[half] = Bound();
            if (!halve(tree_.question, now.part, wanted[k], half, part)) {
                closes = true;
                continue;
            }
            *tried_[half] = *here_;
            bound(std::move(part), *tried_[half], upper, wanted.size() > 1 ? TRIAL : STEPS, tried[half]);
            closes |= !tried[half].is_open;
        }
        double gain = 1;
        for (const Bound &half : tried) {
            double fall = now.slack - (half.is_open ? std::max(half.slack, 0.0) : 0.0);
            gain *= std::max(fall, 1e-6 * now.slack) / std::max(now.slack, 1e-300);
        }
        {
            std::lock_guard<std::mutex> lock(tree_.mutex_);
            Brought &known = tree_.brought_[key(wanted[k])];
            if (known.count >= 20) {
                known.sum *= 0.95;
                known.count = 19;
            }
            known.sum += gain;
            known.count++;
        }
        if (closes) gain += 2;
        if (gain > most) {
            most = gain;
            chosen = int(k);
            for (int half = 0; half < 2; half++) {
                std::swap(halves[half], tried[half]);
                std::swap(best_[half], tried_[half]);
            }
        }
        if (closes) break;
    }
    int next = -1;
    lock.lock();
    const int first = int(tree_.nodes.size());
    for (int half = 0; half < 2; half++) {
        tree_.nodes.emplace_back();
        Node &node = tree_.nodes.back();
        Bound &bound = halves[half];
        node.parent = id;
        node.depth = depth;
        keep(node, bound, tree_.model);
        node.upper = bound.upper;
        node.settled = settled;
        if (bound.is_open && bound.own > upper && tree_.nodes[id].shown.model >= 0)  // what is known of the whole is better
            node.shown = tree_.nodes[id].shown;
        node.state = !bound.alive ? EMPTY : bound.is_open ? OPEN : CLOSED;
        if (bound.is_open && (next < 0 || bound.upper > tree_.nodes[next].upper)) next = first + half;
    }
    Node &parent = tree_.nodes[id];
    parent.state = SPLIT;
    parent.split = wanted[chosen];
    parent.child[0] = first;
    parent.child[1] = first + 1;
    parent.part.reset();
    parent.shown = Shown();
    if (next < 0) return false;
    const int half = next - first;
    if (halves[1 - half].is_open) {
        tree_.nodes[first + 1 - half].part = std::make_unique<Part>(std::move(halves[1 - half].part));
        tree_.push(first + 1 - half);
    }
    tree_.nodes[next].part = std::make_unique<Part>(halves[half].part);
    const double known = tree_.nodes[next].upper;
    lock.unlock();
    std::swap(here_, best_[half]);
    if (halves[half].finished)
        now = std::move(halves[half]);
    else
        bound(Part(halves[half].part), *here_, known, STEPS, now);
    lock.lock();
    Node &node = tree_.nodes[next];
    if (!now.is_open || now.own < node.upper) keep(node, now, tree_.model);
    node.upper = std::min(node.upper, now.upper);
    if (!now.alive || !now.is_open) {
        node.state = now.alive ? CLOSED : EMPTY;
        node.part.reset();
        return false;
    }
    lock.unlock();
    if (now.finished) offer(now.x);
    if (now.finished && bounded_ % DIVE_EVERY == 0) dive(now);
    id = next;
    if (worth_narrowing(id, now)) narrow(id, now);
    return now.is_open;
}

}  // namespace likewise
