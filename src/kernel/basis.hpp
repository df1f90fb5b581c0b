// Basis: which variables are basic, and the tableau that writes those in terms of the others.
//
// Variables are x (columns), r = A x (rows), a 1, and tangents of a ball; basic ones are linear in the others: basic = T
// nonbasic, objective = d nonbasic. Of T, only the rows of basic columns are kept. What is a row, or a tangent, is `loose` where
// it is basic: a handful of numbers times columns, so its row of T is put together when it is asked for. Most are never
// asked for, and T is small enough to stay close to the processor.
#pragma once
#include <array>

#include "program.hpp"
#include "wide.hpp"

namespace likewise {

class Basis {
  public:
    struct Cut {  // u.(A d) <= eps: u is a unit vector, of which Q is applied to what it multiplies
        std::vector<double> u, on;
        double low, high;
    };
    using Moves = std::vector<std::pair<int, double>>;  // columns of the tableau, and by how much their variables move

    int width = 0;
    long pivots = 0, since = 0;  // in all, and since the tableau was made
    std::vector<int> basic, loose, nonbasic;  // columns whose rows are kept; rows and tangents; of each column of the tableau
    std::vector<double> d, at;                // by columns of the tableau
    std::vector<double> beta, weight;         // by variables: what basic ones are, and 1 + the square of their row's norm
    std::vector<double> slopes;               // of the program's bends
    std::vector<Cut> cuts;

    explicit Basis(const Program &program) : slopes(program.slopes()), program_(&program), value_(program.loose.value) {}

    int height() const { return int(basic.size()); }
    int variables() const { return program_->variables() + int(cuts.size()); }
    bool is_basic(int v) const { return place_[v] > 0; }

    // Begin anew: all rows are basic but the equations, which are solved for their columns.
    void make(const std::vector<double> &cost) {
        const Program &p = *program_;
        basic.clear();
        loose.clear();
        table_.clear();
        place_.assign(variables(), 0);
        beta.assign(variables(), 0.0);
        weight.assign(variables(), 1.0);
        along_.resize(p.columns);
        nonbasic.resize(p.columns);
        for (int j = 0; j < p.columns; j++) sit(j, j);
        width = p.columns;
        at.assign(width, 0.0);
        row_.resize(width);
        d.resize(width);
        for (int j = 0; j < width; j++) d[j] = cost[j] + p.nudge[j];
        std::vector<double> given(p.variables(), 0.0);
        std::vector<uint8_t> gone(p.variables(), 0);
        for (size_t k = 0; k < p.solved.size(); k++) {
            const auto [i, j] = p.solved[k];
            row_.assign(width, 0.0);
            for (int e = p.start[i]; e < p.start[i + 1]; e++) add_column(p.index[e], p.value[e], row_.data());
            pivot(p.columns + i, -place_[j] - 1, {});
            gone[p.columns + i] = 1;
            given[p.columns + i] = p.given[k];
        }
        for (int j = 0; j < p.columns; j++) gone[j] = p.zero[j];
        drop(gone, given);
        for (int i = 0; i < p.rows; i++)
            if (p.loose.of[i] >= 0) loosen(p.columns + i);
        for (size_t k = 0; k < cuts.size(); k++) loosen(p.variables() + int(k));
        for (int v : loose) weight[v] = 1.0 + dot(express(v), row_.data(), width);
        pivots -= long(p.solved.size());
        since = 0;
    }

    // Make the tableau of the present basis anew from the program, to get rid of rounding.
    void refresh(const std::vector<double> &cost) {
        std::vector<uint8_t> wanted(variables(), 0);
        for (const std::vector<int> *some : {&basic, &loose})
            for (int v : *some) wanted[v] = 1;
        const long before = pivots;
        make(cost);
        for (int c = 0; c < width; c++) {
            if (!wanted[nonbasic[c]]) continue;
            for (int j : nonbasic)
                if (j < program_->columns) along_[j][0] = j == nonbasic[c];
            int best = -1;
            double most = 1e-7;
            auto consider = [&](int v, double size) {
                if (!wanted[v] && std::fabs(size) > most) most = std::fabs(size), best = v;
            };
            for (int k = 0; k < height(); k++) consider(basic[k], along_[basic[k]][0] = row(k)[c]);
            for (int v : loose) {
                double size = 0;
                each(v, [&](int j, double a) { size += a * along_[j][0]; });
                consider(v, size);
            }
            if (best < 0) continue;
            express(best);
            pivot(best, c, {});
        }
        pivots = before;
        since = 0;
    }

    // Turn to something else to maximise.
    void aim(const std::vector<double> &cost) {
        const Program &p = *program_;
        for (int c = 0; c < width; c++) d[c] = nonbasic[c] < p.columns ? cost[nonbasic[c]] + p.nudge[nonbasic[c]] : 0.0;
        for (int k = 0; k < height(); k++)
            if (const double f = cost[basic[k]] + p.nudge[basic[k]]; f != 0.0) add_times(d.data(), row(k), f, width);
    }

    // Compute all basic variables from the others.
    void evaluate() {
        for (int c = 0; c < width; c++)
            if (nonbasic[c] < program_->columns) along_[nonbasic[c]][0] = at[c];
        for (int k = 0; k < height(); k++) along_[basic[k]][0] = beta[basic[k]] = dot(row(k), at.data(), width);
        for (int v : loose) beta[v] = value(v);
    }

    // Return the row of a basic variable, which is overwritten by the next one asked for.
    const double *express(int v) {
        if (v < program_->columns) {
            std::copy(row(place_[v] - 1), row(place_[v] - 1) + width, row_.data());
        } else {
            std::fill(row_.begin(), row_.end(), 0.0);
            each(v, [&](int j, double a) { add_column(j, a, row_.data()); });
        }
        return row_.data();
    }

    // Exchange a basic variable, whose row was asked for last, with the nonbasic one of a column; carry on what moves.
    void pivot(int out, int in, const Moves &moves) {
        const int entering = nonbasic[in];
        const double by = row_[in];
        double step = 0;
        for (const auto &[c, far] : moves) step += row_[c] * far;
        if (is_basic(out)) leave(out);
        for (double &one : row_) one /= -by;
        row_[in] = 1.0 / by;
        const double squares = dot(row_.data(), row_.data(), width);
        for (int c = 0; c < width; c++)
            if (nonbasic[c] < program_->columns) along_[nonbasic[c]] = {double(c == in), c == in ? 0.0 : row_[c], 0.0, 0.0};
        for (const auto &[c, far] : moves)
            if (nonbasic[c] < program_->columns) along_[nonbasic[c]][2] = far;
        if (out < program_->columns) along_[out] = {by, -by * (squares - row_[in] * row_[in]), step, 0.0};
        exchange(in, squares, moves);
        sit(in, out);
        if (entering < program_->columns)
            keep(entering);
        else
            loosen(entering);
        weight[entering] = 1.0 + squares;
        pivots++;
        since++;
    }

    // Take other slopes for some of the program's bends. The basis stays: a basic row changes alone; for a nonbasic one, all that
    // is linear in it is written in terms of the new one. False if the basis cannot stay: then it is to be made anew.
    bool reshape(const std::vector<std::pair<int, double>> &changes) {
        bool whole = true;
        for (const auto &[b, slope] : changes) {
            const double by = slopes[b] - slope;
            slopes[b] = slope;
            const auto [plus, minus] = program_->loose.bends[b];
            if (plus >= 0) value_[plus] = -slope;
            if (minus >= 0) value_[minus] = slope;
            whole = whole && reshape(program_->bends[b], by);
        }
        return whole;
    }

    // Add a tangent, which is basic.
    void add(Cut cut) {
        const int v = variables();
        cuts.push_back(std::move(cut));
        place_.push_back(0);
        beta.push_back(0.0);
        weight.push_back(1.0);
        loosen(v);
        weight[v] = 1.0 + dot(express(v), row_.data(), width);
        for (int j : program_->ball.columns) along_[j][0] = of_column(j);
        beta[v] = value(v);
    }

    // Forget tangents that do not touch.
    void purge() {
        const int known = program_->variables();
        std::vector<Cut> kept;
        loose.erase(std::remove_if(loose.begin(), loose.end(), [&](int v) { return v >= known; }), loose.end());
        for (size_t k = 0; k < loose.size(); k++) place_[loose[k]] = int(k) + 1;
        for (int c = 0; c < width; c++)
            if (nonbasic[c] >= known) {
                kept.push_back(std::move(cuts[nonbasic[c] - known]));
                nonbasic[c] = known + int(kept.size()) - 1;
            }
        cuts.swap(kept);
        place_.resize(variables());
        beta.resize(variables());
        weight.resize(variables());
        for (int c = 0; c < width; c++)
            if (nonbasic[c] >= known) place_[nonbasic[c]] = -(c + 1);
    }

    // What a column is now, basic or not.
    double of_column(int j) const { return place_[j] > 0 ? beta[j] : place_[j] < 0 ? at[-place_[j] - 1] : 0.0; }

  private:
    const Program *program_;
    std::vector<double> value_;                 // of loose rows, with the present slopes
    std::vector<double> table_, row_;           // of basic columns; the one that was asked for last
    std::vector<int> place_;                    // of variables: k + 1 where basic, -(c + 1) where not, 0 where gone
    // Of a column: its number at what is exchanged, its row along that one's, by how much it moves; and 0, to be four numbers.
    using Along = std::array<double, 4>;
    std::vector<Along> along_;

    double *row(int k) { return table_.data() + size_t(k) * width; }
    const double *row(int k) const { return table_.data() + size_t(k) * width; }

    // Call `each` with all columns that a row or a tangent is made of, and what they are multiplied by.
    template <class F> void each(int v, F each) const {
        const Program &p = *program_;
        if (v >= p.variables()) {
            const std::vector<double> &on = cuts[v - p.variables()].on;
            for (size_t c = 0; c < on.size(); c++) each(p.ball.columns[c], on[c]);
            return;
        }
        const int i = p.loose.of[v - p.columns];
        for (int e = p.loose.start[i]; e < p.loose.start[i + 1]; e++) each(p.loose.index[e], value_[e]);
    }

    // What a row or tangent is where columns are what `along_` says first.
    double value(int v) const {
        double sum = 0;
        each(v, [&](int j, double a) { sum += a * along_[j][0]; });
        return sum;
    }

    // Add a column's row, times a number.
    void add_column(int j, double times, double *to) const {
        if (place_[j] > 0) add_times(to, row(place_[j] - 1), times, width);
        if (place_[j] < 0) to[-place_[j] - 1] += times;
    }

    void sit(int c, int v) {
        nonbasic[c] = v;
        place_[v] = -(c + 1);
    }

    void loosen(int v) {
        loose.push_back(v);
        place_[v] = int(loose.size());
    }

    void keep(int v) {
        basic.push_back(v);
        place_[v] = height();
        table_.insert(table_.end(), row_.begin(), row_.end());
    }

    // Take a variable out of the basis: the last one takes its place.
    void leave(int v) {
        std::vector<int> &some = v < program_->columns ? basic : loose;
        const int k = place_[v] - 1, last = some.back();
        if (v < program_->columns) {
            if (last != v) std::copy(row(height() - 1), row(height() - 1) + width, row(k));
            table_.resize(table_.size() - width);
        }
        some[k] = last;
        place_[last] = k + 1;
        some.pop_back();
        place_[v] = 0;
    }

    // Write what the variable of a column is, row_, wherever it stands; of rows that are kept, weights are found anew, those of
    // loose ones follow: |r + f t|^2 = |r|^2 + 2 f r.t + f^2 |t|^2.
    void exchange(int in, double squares, const Moves &moves) {
        const double *t = row_.data();
        for (int k = 0; k < height(); k++) {
            double *r = row(k), f = r[in], step = 0, way;
            for (const auto &[c, far] : moves) step += r[c] * far;
            if (f == 0.0) {
                way = dot(r, t, width);
            } else {
                r[in] = 0.0;
                weight[basic[k]] = 1.0 + add_along(r, t, f, width, way);
                way -= f * squares;
            }
            beta[basic[k]] += step;
            along_[basic[k]] = {f, way, step, 0.0};
        }
        const double least = t[in] * t[in];
        for (int v : loose) {
            Along sum{};
            each(v, [&](int j, double a) {
                for (int k = 0; k < 4; k++) sum[k] += a * along_[j][k];
            });
            const auto &[f, way, step, none] = sum;
            beta[v] += step;
            if (f != 0.0) weight[v] = std::max(weight[v] + f * (2 * way + f * (squares - 1)), 1 + f * f * least);
        }
        if (const double f = d[in]; f != 0.0) {
            d[in] = 0.0;
            add_times(d.data(), t, f, width);
        }
    }

    // Add `by` times x_plus - x_minus to a row; false where that is the end of the basis.
    bool reshape(const Bend &bend, double by) {
        const int v = program_->columns + bend.row;
        if (place_[v] > 0) weight[v] = 1.0 + dot(express(v), row_.data(), width);
        if (place_[v] >= 0) return true;
        const int c = -place_[v] - 1;
        std::fill(row_.begin(), row_.end(), 0.0);
        add_column(bend.plus, 1.0, row_.data());
        if (bend.minus >= 0) add_column(bend.minus, -1.0, row_.data());
        const double share = 1.0 + by * row_[c];
        if (std::fabs(share) < 1e-3) return false;
        for (double &one : row_) one *= -by / share;
        row_[c] = 1.0 / share;
        for (int k = 0; k < width; k++)
            if (nonbasic[k] < program_->columns) along_[nonbasic[k]] = {0.0, row_[k], 0.0, 0.0};
        exchange(c, dot(row_.data(), row_.data(), width), {});
        pivots++;
        since++;
        return true;
    }

    // Replace columns whose value is given once and for all by one column of constants, the last.
    void drop(const std::vector<uint8_t> &gone, const std::vector<double> &given) {
        std::vector<int> stay, names;
        std::vector<double> costs;
        double cost = 0;
        for (int c = 0; c < width; c++)
            if (gone[nonbasic[c]]) {
                cost += d[c] * given[nonbasic[c]];
                place_[nonbasic[c]] = 0;
            } else {
                stay.push_back(c);
                names.push_back(nonbasic[c]);
                costs.push_back(d[c]);
            }
        names.push_back(program_->columns + program_->rows);
        costs.push_back(cost);
        std::vector<double> smaller(basic.size() * names.size());
        for (int k = 0; k < height(); k++) {
            double *to = smaller.data() + k * names.size();
            for (size_t c = 0; c < stay.size(); c++) to[c] = row(k)[stay[c]];
            for (int c = 0; c < width; c++)
                if (gone[nonbasic[c]]) to[stay.size()] += row(k)[c] * given[nonbasic[c]];
        }
        table_.swap(smaller);
        width = int(names.size());
        nonbasic.resize(width);
        for (int c = 0; c < width; c++) sit(c, names[c]);
        d.swap(costs);
        at.assign(width, 0.0);
        row_.assign(width, 0.0);
        along_.assign(program_->columns, {});  // those that are gone are 0
        for (int k = 0; k < height(); k++) weight[basic[k]] = 1.0 + dot(row(k), row(k), width);
    }
};

}  // namespace likewise
