// Tree: the parts, which of them are open, and the workers that split the widest first, each on a thread of its own.
#pragma once
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <queue>
#include <set>
#include <thread>

#include "joint.hpp"
#include "node.hpp"

namespace likewise {

constexpr size_t MOST = 200000;          // open parts from which on the newest is taken first

class Tree;

class Worker {
  public:
    Worker(Tree &tree);
    void run();

  private:
    Tree &tree_;
    std::unique_ptr<Tableau> here_, spare_, aside_, tried_[2], best_[2];  // of this part, of a dive, of joints, of halves
    std::vector<double> low_, high_;
    std::vector<Interval> values_[3];
    std::vector<Recall> recall_;
    Joiner joiner_;
    Multipliers recent_;  // of the last program with joints
    double asked_ = 0, closed_ = 0;
    long passed_ = 0;
    std::vector<std::pair<int, double>> changes_;
    std::vector<Sample> samples_;
    long bounded_ = 0;

    void bound(Part part, Tableau &tableau, double known, long most, Bound &out);
    std::vector<Split> candidates(const Part &part, const std::vector<double> &x) const;
    bool branch(int &id, Bound &now);
    std::vector<Split> shortlist(const std::vector<Split> &splits);
    double learn(const Split &split, const Bound &now, const Bound halves[2]);
    int try_out(const Bound &now, const std::vector<Split> &wanted, double upper, Bound halves[2]);
    int divide(int id, const Split &split, const Bound halves[2], double upper);
    bool record(int id, const Bound &now);
    void look(const Bound &now);
    long steps() const;
    void offer(const std::vector<double> &x);
    bool draw_in(Pair &pair) const;
    void dive(const Bound &now);
    void narrow(int id, Bound &now);
    bool worth_narrowing(int id, const Bound &now);
    void shape(const Part &part, Tableau &tableau);
    void lean(Tableau &tableau, long most, Bound &out);
    void join(const Part &part);
    double bound_as_before(const Tableau &tableau, Bound &out);
    void favoured(const Part &part, std::vector<Split> &splits);
    void bound_together(const Tableau &tableau, long most, Bound &out);
    double maximise(Tableau &tableau, long most, bool &finished, Multipliers &y);
};

class Tree {
  public:
    Question question;
    std::vector<Node> nodes;
    std::vector<Pair> pairs;
    std::vector<std::vector<double>> points;  // of parts that cannot be split
    long bounded = 0, steps = 0, narrowed = 0;
    double narrowing = 0;  // steps to narrow parts
    int model = 0;

    // `upper` is what is proven of the whole, and how is known elsewhere: so is that of nodes that have no multipliers.
    Tree(Question q, Part root, double upper) : question(std::move(q)) {
        nodes.emplace_back();
        nodes[0].upper = upper;
        nodes[0].part = std::make_unique<Part>(std::move(root));
        push(0);
    }

    // Go on with another model: parts keep their bounds, those that could not be split are tried again. `root` is what is
    // known of the whole by now.
    void renew(Question q, const Part &root) {
        question = std::move(q);
        model++;
        for (int id : stuck_) nodes[id].state = OPEN;
        stuck_.clear();
        workers_.clear();
        for (Node &node : nodes)
            if (node.part && !within(*node.part, root)) {  // a lemma of the root contradicts a split
                node.state = EMPTY;
                node.upper = -INF;
                node.part.reset();
            }
        newest_.clear();
        gather();
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
            node.rank = nodes[id].rank;
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
        uppers_.clear();
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
        if (!heap_.empty()) most = *uppers_.rbegin();
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
    std::priority_queue<std::pair<double, int>> heap_;  // the widest program first
    std::multiset<double> uppers_;                      // of parts in the heap
    std::vector<int> newest_, stuck_, active_;
    std::vector<std::unique_ptr<Worker>> workers_;
    std::map<std::array<int, 4>, Brought> brought_;
    std::mutex mutex_;
    std::chrono::steady_clock::time_point end_;
    std::atomic<bool> stop_{false};
    double known_ = 0, better_ = 0, wanted_ = 0;

    void push(int id) {
        if (heap_.size() < MOST) {
            heap_.emplace(nodes[id].rank, id);
            uppers_.insert(nodes[id].upper);
        } else {
            newest_.push_back(id);
        }
    }

    bool wider(int one, int other) const {
        return std::make_pair(nodes[one].rank, nodes[one].upper) > std::make_pair(nodes[other].rank, nodes[other].upper);
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

}  // namespace likewise
