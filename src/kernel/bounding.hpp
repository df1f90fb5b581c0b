// Bounding: the slack of a part by its program, pairs where its point is, and its dz narrowed under the cut.
#pragma once
#include "tree.hpp"

namespace likewise {

constexpr double WORK = 4e8;             // numbers of the tableau to touch for a part: more steps where it is small
constexpr double BELOW = -1e-8;          // a slack that is surely below 0
constexpr double AGAIN = 0.7;            // a part whose slack fell to this share since its dz were narrowed has it done again
constexpr double LEAST = 0.02;           // of its width, by which an interval must get narrower to be worth a lemma
constexpr double COARSE = 0.3;
constexpr double CLOSES = 0.15, REMEMBERED = 100;  // parts closed, of those asked for all differences together, to go on so
constexpr long SELDOM = 8;               // else one of so many is asked
constexpr int LEANINGS = 4;              // times that planes are leant against a part's point
constexpr double LEANING = 1e-2, WELL_LEANT = 0.97;  // of the slack, what a plane must take; and when it does not pay any more
constexpr long TRIAL = 30;               // steps of the simplex method in a trial
constexpr double GUESSED = 10;           // steps for each neuron, before it is known how many it takes
constexpr long NARROWED = 300;           // steps of the simplex method for one end of an interval

inline Worker::Worker(Tree &tree) : tree_(tree) {
    here_ = std::make_unique<Tableau>(tree.question.program);
    for (auto &v : values_) v.resize(tree.question.neurons);
}

// How many steps of the simplex method a part is worth.
inline long Worker::steps() const {
    return std::clamp(long(WORK / here_->size()), 300L, 2000L);
}

// Write a part's bounds to `low_` and `high_`, with slopes of a tableau's lines that suit it.
inline void Worker::shape(const Part &part, Tableau &tableau) {
    const Question &q = tree_.question;
    if (!q.program.bends.empty()) {
        wish(q, part, tableau.slopes(), recall_, changes_);
        if (!changes_.empty()) tableau.reshape(changes_);
    }
    fill(q, part, values_, tableau.slopes(), recall_, low_, high_);
}

// Add what holds of all differences of a part together.
inline void Worker::join(const Part &part) {
    const Question &q = tree_.question;
    for (const Joint &joint : q.joints) {
        const int k = q.program.columns + joint.row;
        high_[k] = std::max(low_[k], joiner_.upper(q, joint, part));
    }
}

// Maximise the slack within `low_` and `high_`, and return what the multipliers prove.
inline double Worker::maximise(Tableau &tableau, long most, bool &finished, Multipliers &y) {
    const Question &q = tree_.question;
    double slack = INF;
    const long before = tableau.pivots();
    for (int attempt = 0; attempt < 2; attempt++) {
        const Ended ended = tableau.solve(low_.data(), high_.data(), BELOW, most);
        finished = ended == Ended::optimal;
        y = tableau.multipliers();
        slack = q.program.bound(y, q.program.cost, tableau.slopes(), low_.data(), high_.data());
        const double expected = ended == Ended::empty ? -1.0 : tableau.objective();
        const double room = 1e-7 * (1 + std::fabs(expected)) + NUDGE * q.program.columns;
        const bool good = ended == Ended::below || ended == Ended::empty ? slack < 0 : slack <= expected + room;
        if (good || (attempt == 0 && !tableau.refresh())) break;
    }
    q.program.straighten(y, tableau.slopes());
    std::lock_guard<std::mutex> lock(tree_.mutex_);
    tree_.steps += tableau.pivots() - before;
    return slack;
}

// Bound a part by the multipliers of the last program with what holds of all differences together. That row is then out of the way
// again: splits are chosen by the program without, for with it both halves of most are as high.
inline double Worker::bound_as_before(const Tableau &tableau, Bound &out) {
    const Question &q = tree_.question;
    if (recent_.rows.empty()) return INF;
    join(out.part);
    Multipliers y = recent_;
    const double slack = q.program.bound(y, q.program.cost, tableau.slopes(), low_.data(), high_.data());
    for (const Joint &joint : q.joints) high_[q.program.columns + joint.row] = q.high[q.program.columns + joint.row];
    if (slack < 0) {
        q.program.straighten(y, tableau.slopes());
        out.y = std::move(y);
    }
    return slack;
}

// Bound a part with what holds of all its differences together, by a program of its own: it takes many steps, and is worth them
// only where it closes parts.
inline void Worker::bound_together(const Tableau &tableau, long most, Bound &out) {
    const Question &q = tree_.question;
    if (!(closed_ > CLOSES * (asked_ + 5) || ++passed_ % SELDOM == 0 || recent_.rows.empty())) return;
    join(out.part);
    if (!aside_) aside_ = std::make_unique<Tableau>(tableau);
    *aside_ = tableau;
    bool finished = false;
    Multipliers y;
    const double slack = maximise(*aside_, most, finished, y);
    recent_ = aside_->multipliers();
    asked_ += 1;
    closed_ += slack < 0;
    if (asked_ > REMEMBERED) asked_ /= 2, closed_ /= 2;
    out.together = std::min(out.together, slack);
    if (!(slack < out.slack)) return;
    out.is_open = !(slack < 0);
    out.own = gap_from_slack(q.curved, q.t, slack);
    out.y = std::move(y);
}

// Lean planes against the point of a part's program and maximise again, while it pays.
inline void Worker::lean(Tableau &tableau, long most, Bound &out) {
    const Question &q = tree_.question;
    for (int round = 0; round < (most > TRIAL ? LEANINGS : 1) && out.is_open && out.finished && !tree_.over(); round++) {
        planes_at(q, out.part, out.x, LEANING * std::max(out.slack, 1e-6), tableau.slopes(), high_, samples_, changes_);
        if (changes_.empty()) return;
        tableau.reshape(changes_);
        fill(q, out.part, values_, tableau.slopes(), recall_, low_, high_);
        bool finished = false;
        Multipliers y;
        const double slack = maximise(tableau, most, finished, y), before = out.slack;
        if (slack >= before) return;
        out.slack = slack;
        out.is_open = !(slack < 0);
        out.finished = finished;
        out.y = std::move(y);
        tableau.point(out.x);
        if (slack > WELL_LEANT * before) return;
    }
}

inline void Worker::bound(Part part, Tableau &tableau, double known, long most, Bound &out) {
    const Question &q = tree_.question;
    out.part = std::move(part);
    out.alive = settle(q, out.part, values_);
    out.is_open = out.finished = false;
    out.slack = out.upper = out.own = out.together = -INF;
    if (!out.alive) return;
    shape(out.part, tableau);
    out.together = q.joints.empty() ? INF : bound_as_before(tableau, out);
    if (out.together < 0) {
        out.slack = out.together;
        out.own = gap_from_slack(q.curved, q.t, out.slack);
    } else {
        out.slack = maximise(tableau, most, out.finished, out.y);
        out.is_open = !(out.slack < 0);
        out.x.resize(q.program.variables());
        tableau.point(out.x);
        if (!q.program.bends.empty()) lean(tableau, most, out);
        out.together = std::min(out.together, out.slack);
        out.own = gap_from_slack(q.curved, q.t, out.slack);
        if (out.is_open && most > TRIAL && !q.joints.empty()) bound_together(tableau, most, out);
    }
    out.upper = std::min(known, out.own);
    bounded_++;
    std::lock_guard<std::mutex> lock(tree_.mutex_);
    tree_.bounded++;
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
                for (double &one : v) one = layer.of(one);
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
                if (layer.is_curved()) continue;
                for (int j = 0; j < layer.height; j++)
                    for (int side = 0; side < 2; side++) {
                        Interval &box = part.box[side][layer.first + j];
                        if (box.low < 0 && box.high > 0) (next.x[layer.z[side][j]] > 0 ? box.low : box.high) = 0.0;
                    }
            }
        }
        Part given = std::move(part);
        bound(std::move(given), *spare_, INF, steps(), next);
        if (!next.is_open || !next.finished) return;
        offer(next.x);
    }
}

// Note how a part was bounded; tell whether it is still open.
inline bool Worker::record(int id, const Bound &now) {
    std::lock_guard<std::mutex> lock(tree_.mutex_);
    Node &node = tree_.nodes[id];
    if (!now.is_open || now.own < node.upper) keep(node, now, tree_.model);
    node.upper = std::min(node.upper, now.upper);
    node.rank = std::min(node.rank, now.slack);
    if (now.is_open) return true;
    node.state = now.alive ? CLOSED : EMPTY;
    node.part.reset();
    return false;
}

// Look for pairs where a part's point is, and now and then below it.
inline void Worker::look(const Bound &now) {
    if (!now.finished) return;
    offer(now.x);
    if (bounded_ % tree_.question.dive_every == 0) dive(now);
}

// Whether to narrow the dz of a part: its slack has fallen since they were, and not too much of the time goes there.
inline bool Worker::worth_narrowing(int id, const Bound &now) {
    std::lock_guard<std::mutex> lock(tree_.mutex_);
    if (tree_.nodes[id].settled == INF) tree_.nodes[id].settled = now.slack;  // the whole has been narrowed before
    const double expected = tree_.narrowed > 0 ? tree_.narrowing / double(tree_.narrowed) : GUESSED * tree_.question.neurons;
    return now.finished && now.slack < AGAIN * tree_.nodes[id].settled &&
           tree_.narrowing + expected < tree_.question.narrowing * double(tree_.steps + 200);
}

// Narrow the dz of a part's open neurons, for pairs at the threshold (so that the slack is at least 0), and bound it anew.
inline void Worker::narrow(int id, Bound &now) {
    const Question &q = tree_.question;
    if (!spare_) spare_ = std::make_unique<Tableau>(*here_);
    *spare_ = *here_;
    const long before = spare_->pivots();
    spare_->accuracy = COARSE;
    if (!settle(q, now.part, values_)) return;
    shape(now.part, *spare_);
    low_[q.goal] = std::max(low_[q.goal], 0.0);
    std::vector<Lemma> lemmas;
    for (size_t index = 0; index < q.layers.size(); index++) {
        const Layer &layer = q.layers[index];
        for (int j = 0; j < layer.height; j++) {
            const int at = layer.first + j;
            const Interval s = slopes(layer, now.part.box[0][at], now.part.box[1][at]), &dz = now.part.box[2][at];
            if ((index + 1 < q.layers.size() && s.low == s.high) || tree_.over()) continue;
            for (int sign : {1, -1}) {
                std::vector<double> cost(q.program.columns, 0.0);
                cost[layer.z[0][j]] += sign;
                cost[layer.z[1][j]] -= sign;
                spare_->aim(std::move(cost));
                spare_->solve(low_.data(), high_.data(), -INF, NARROWED);
                Multipliers y = spare_->multipliers();
                const double upper = q.program.bound(y, spare_->cost(), spare_->slopes(), low_.data(), high_.data());
                q.program.straighten(y, spare_->slopes());
                if (upper < (sign > 0 ? dz.high : -dz.low) - LEAST * (dz.high - dz.low))
                    lemmas.push_back({int(index), j, sign, upper, shown(y, tree_.model)});
            }
        }
    }
    {
        std::lock_guard<std::mutex> lock(tree_.mutex_);
        tree_.narrowing += double(spare_->pivots() - before);
        tree_.narrowed++;
    }
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
        bound(std::move(part), *here_, known, steps(), now);
    else
        now.alive = now.is_open = false;
    std::lock_guard<std::mutex> lock(tree_.mutex_);
    Node &node = tree_.nodes[id];
    for (Lemma &lemma : lemmas) node.lemmas.push_back(std::move(lemma));
    if (!now.is_open || now.own < node.upper) keep(node, now, tree_.model);
    node.upper = std::min(node.upper, std::max(now.upper, q.t));
    node.settled = now.is_open && now.slack < AGAIN * slack ? slack : now.slack;  // it paid: try again soon
    if (now.is_open) {
        *node.part = now.part;
        return;
    }
    node.state = now.alive ? CLOSED : EMPTY;
    node.part.reset();
}

}  // namespace likewise
