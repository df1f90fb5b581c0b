// Anneal: many people are moved at random, each is the middle of a pair, and moves that lose a little are taken too, less
// and less often as it gets colder.
#pragma once
#include <algorithm>
#include <chrono>
#include <numeric>

#include "pairing.hpp"

namespace likewise {

// How people are moved: see likewise.search.anneal, where the numbers are.
struct Habits {
    double hot, cold;        // losses taken once in e times, at first and in the end, as shares of the best gap
    double changed, twice;   // how often a category is changed, and then another one
    double numbers;          // how many numbers are changed, on average
    Numbers sizes;           // by how much, in shares of their range
    double borrowed;         // how often a change is taken from other people
    double blind, uphill;    // how often the part of a difference that the metric does not see is moved, and then uphill
    double hope;             // the share of what is wanted that a pair must have to first order, to be looked at
    int every, replaced;     // moves after which one in so many people is replaced by one of the best
};

// Numbers at random: splitmix64, whose every seed is a good one.
struct Dice {
    uint64_t state;

    uint64_t next() {
        uint64_t v = state += 0x9e3779b97f4a7c15u;
        v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
        v = (v ^ v >> 27) * 0x94d049bb133111ebu;
        return v ^ v >> 31;
    }
    double one() { return double(next() >> 11) * 0x1p-53; }
    int below(int n) { return int((next() >> 32) * uint64_t(n) >> 32); }
    double normal() {  // nearly: the sum of eight shares of one draw
        const uint64_t v = next();
        int sum = 0;
        for (int k = 0; k < 64; k += 8) sum += int(v >> k & 255);
        return (sum - 1020) / 209.0;
    }
};

class Annealer {
  public:
    struct Group {
        int start;
        std::vector<int> allowed;
    };

    long moves = 0;  // so far, of all people
    Numbers x, gaps, right, apart;

    Annealer(Quest quest, std::vector<Group> several, std::vector<int> all_numbers, Habits ways)
        : q(std::move(quest)), pairing(q), habits(std::move(ways)), columns(q.stages[0].weight.turned()) {
        for (Group &group : several)
            if (group.allowed.size() > 1) groups.push_back(std::move(group));
        for (int c : all_numbers)
            if (q.high[c] > q.low[c]) numbers.push_back(c);
    }

    Annealer(const Annealer &) = delete;

    int width() const { return q.width(); }

    // Cool down once in some seconds, or in some moves of each person where `most` is positive. The people given (a
    // multiple of LANES) become the best ones found, in no order, with their pairs and gaps.
    void look(Numbers people, double seconds, long most, uint64_t seed) {
        using Clock = std::chrono::steady_clock;
        const auto began = Clock::now();
        dice = {seed};
        begin(std::move(people));
        for (long round = 0;; round++) {
            const double passed = std::chrono::duration<double>(Clock::now() - began).count() / std::max(seconds, 1e-9);
            const double share = std::max(passed, most > 0 ? double(round) / double(most) : 0.0);
            if (share >= 1.0) break;
            const double top = *std::max_element(gap.begin(), gap.end());
            const double warmth = habits.hot * std::pow(habits.cold / habits.hot, share) * std::max(top, 1e-12);
            work(warmth);
            if (round % habits.every == habits.every - 1) replace();
        }
        finish();
    }

  private:
    Quest q;
    Pairing pairing;
    Habits habits;
    Matrix columns;  // of the first weights, one a row
    std::vector<Group> groups;
    std::vector<int> numbers;
    Dice dice{0};
    int count = 0;
    Numbers z, blind, gap;  // of everyone: what enters the first stage, coordinates in what the metric does not see, gaps
    Numbers rise;           // the slopes in those coordinates
    Numbers room;           // how far each of them can go
    Numbers best_x, best_blind, best;
    Numbers new_x, new_z, new_blind, new_slope, wanted;  // where people may go, and what gaps they must have to go there
    std::vector<int> hopeful;

    int first() const { return q.first(); }
    int unseen() const { return q.blind.columns; }

    void begin(Numbers people) {
        x = std::move(people);
        count = int(x.size()) / width();
        scatter();
        gap.assign(count, -INF);
        enter();
        new_slope.resize(z.size());
        wanted.resize(count);
        pair_all([&](size_t i, int l) {
            gap[i] = pairing.gap[l];
            pairing.rise(l, rise.data() + i * unseen());
        });
        best_x = x;
        best_blind = blind;
        best = gap;
    }

    void scatter() {
        room.assign(unseen(), INF);
        for (int j = 0; j < unseen(); j++)
            for (int k = 0; k < q.apart(); k++)
                room[j] = std::min(room[j], (q.high[q.free[k]] - q.low[q.free[k]]) / std::max(std::fabs(q.blind.row(k)[j]), 1e-9));
        blind.resize(size_t(count) * unseen());
        for (size_t k = 0; k < blind.size(); k++) blind[k] = room[k % unseen()] * dice.normal();
        rise.assign(blind.size(), 0.0);
    }

    void enter() {
        z.assign(size_t(count) * first(), 0.0);
        for (int i = 0; i < count; i++) {
            double *to = z.data() + size_t(i) * first();
            std::copy(q.stages[0].bias.begin(), q.stages[0].bias.end(), to);
            for (int c = 0; c < width(); c++)
                if (x[size_t(i) * width() + c] != 0.0) add_times(to, columns.row(c), x[size_t(i) * width() + c], first());
        }
    }

    // Pair everyone as they are.
    template <class Use> void pair_all(Use use) {
        for (int from = 0; from < count; from += LANES) {
            Person them[LANES];
            const double any[LANES] = {-INF, -INF, -INF, -INF, -INF, -INF, -INF, -INF};
            for (int l = 0; l < LANES; l++) {
                const size_t i = from + l;
                them[l] = {&x[i * width()], &z[i * first()], blind.data() + i * unseen(), &new_slope[i * first()]};
            }
            pairing.guess(them);
            pairing.pair(them, any);
            for (int l = 0; l < LANES; l++) use(size_t(from + l), l);
        }
    }

    Person proposed(size_t i) {
        return {&new_x[i * width()], &new_z[i * first()], new_blind.data() + i * unseen(), &new_slope[i * first()]};
    }

    // Move everyone once. Only those are paired whose gap may be of use, as far as slopes can tell.
    void work(double warmth) {
        new_x = x;
        new_z = z;
        new_blind = blind;
        hopeful.clear();
        for (int from = 0; from < count; from += LANES) {
            Person them[LANES];
            for (int l = 0; l < LANES; l++) {
                const size_t i = from + l;
                move(i);
                wanted[i] = gap[i] + warmth * std::log(dice.one() + 1e-300);
                them[l] = proposed(i);
            }
            pairing.guess(them);
            for (int l = 0; l < LANES; l++)
                if (pairing.gap[l] > habits.hope * wanted[from + l] || wanted[from + l] <= 0) hopeful.push_back(from + l);
        }
        for (size_t from = 0; from < hopeful.size(); from += LANES) {
            Person them[LANES];
            double needed[LANES];
            for (size_t l = 0; l < LANES; l++) {
                const bool is_one = from + l < hopeful.size();
                const int i = hopeful[is_one ? from + l : from];
                them[l] = proposed(i);
                needed[l] = is_one ? wanted[i] : INF;
            }
            pairing.pair(them, needed);
            for (int l = 0; l < LANES; l++)
                if (pairing.gap[l] > needed[l]) take(hopeful[from + l], l, pairing.gap[l]);
        }
        moves += count;
    }

    void take(size_t i, int l, double value) {
        std::copy_n(new_x.begin() + i * width(), width(), x.begin() + i * width());
        std::copy_n(new_z.begin() + i * first(), first(), z.begin() + i * first());
        std::copy_n(new_blind.begin() + i * unseen(), unseen(), blind.begin() + i * unseen());
        pairing.rise(l, rise.data() + i * unseen());
        gap[i] = value;
        if (value <= best[i]) return;
        best[i] = value;
        std::copy_n(x.begin() + i * width(), width(), best_x.begin() + i * width());
        std::copy_n(blind.begin() + i * unseen(), unseen(), best_blind.begin() + i * unseen());
    }

    // Move one person at random: a category or two, and a number or two.
    void move(size_t i) {
        double *person = &new_x[i * width()], *enters = &new_z[i * first()];
        if (!groups.empty() && dice.one() < habits.changed) {
            change(person, enters);
            if (dice.one() < habits.twice) change(person, enters);
        }
        const double size = habits.sizes[dice.below(int(habits.sizes.size()))];
        if (unseen() && dice.one() < habits.blind) turn(size, new_blind.data() + i * unseen(), rise.data() + i * unseen());
        if (numbers.empty()) return;
        const double share = habits.numbers / double(numbers.size());
        const bool is_borrowed = dice.one() < habits.borrowed;
        const double *one = x.data() + size_t(dice.below(count)) * width(), *other = x.data() + size_t(dice.below(count)) * width();
        for (int c : numbers)
            if (dice.one() < share)
                push(c, is_borrowed ? one[c] - other[c] : size * (q.high[c] - q.low[c]) * dice.normal(), person, enters);
    }

    // Change what the metric does not see of a difference, at random or uphill.
    void turn(double size, double *at, const double *slope) {
        if (dice.one() < habits.uphill) {
            double most = 1e-300;
            for (int j = 0; j < unseen(); j++) most = std::max(most, std::fabs(slope[j]) * room[j]);
            const double by = size * std::fabs(dice.normal()) / most;
            for (int j = 0; j < unseen(); j++) at[j] += by * slope[j] * room[j] * room[j];
            return;
        }
        const int j = dice.below(unseen());
        at[j] += size * room[j] * dice.normal();
    }

    void change(double *person, double *enters) {
        const Group &group = groups[dice.below(int(groups.size()))];
        const bool is_borrowed = dice.one() < habits.borrowed;
        const int to = is_borrowed ? chosen(group, x.data() + size_t(dice.below(count)) * width())
                                   : group.allowed[dice.below(int(group.allowed.size()))];
        const int from = chosen(group, person);
        if (from == to) return;
        person[from] = 0.0;
        person[to] = 1.0;
        add_times(enters, columns.row(from), -1.0, first());
        add_times(enters, columns.row(to), 1.0, first());
    }

    int chosen(const Group &group, const double *person) const {
        int at = group.start;
        while (at + 1 < width() && person[at] < 0.5) at++;
        return at;
    }

    void push(int c, double by, double *person, double *enters) {
        double to = person[c] + by;
        if (q.step[c] > 0) to = q.low[c] + q.step[c] * std::round((to - q.low[c]) / q.step[c]);
        to = std::clamp(to, q.low[c], q.high[c]);
        if (to == person[c]) return;
        add_times(enters, columns.row(c), to - person[c], first());
        person[c] = to;
    }

    // The worst become the best.
    void replace() {
        std::vector<int> order(count);
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return gap[a] < gap[b]; });
        for (int k = 0; k < count / habits.replaced; k++) {
            const size_t to = order[k], from = order[count - 1 - k];
            std::copy_n(x.begin() + from * width(), width(), x.begin() + to * width());
            std::copy_n(z.begin() + from * first(), first(), z.begin() + to * first());
            std::copy_n(blind.begin() + from * unseen(), unseen(), blind.begin() + to * unseen());
            std::copy_n(rise.begin() + from * unseen(), unseen(), rise.begin() + to * unseen());
            gap[to] = gap[from];
        }
    }

    // Pair the best anew, without what rounding has added up to.
    void finish() {
        const int n = q.apart();
        x = best_x;
        blind = best_blind;
        enter();
        right = x;
        apart.assign(x.size(), 0.0);
        gaps.resize(count);
        pair_all([&](size_t i, int l) {
            gaps[i] = pairing.gap[l];
            for (int k = 0; k < n; k++) {
                const double d = pairing.d[k * LANES + l];
                right[i * width() + q.free[k]] += pairing.shift[k * LANES + l] - d / 2;
                apart[i * width() + q.free[k]] = d;
            }
        });
    }
};

}  // namespace likewise
