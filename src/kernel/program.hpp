// Program: a linear program of which only bounds change, perhaps with a round ball, and what any multipliers prove of it.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace likewise {

constexpr double INF = std::numeric_limits<double>::infinity();
constexpr double UNIT = 1.1102230246251565e-16;
constexpr double NUDGE = 1e-8;  // what nudging may add to an objective, for each column

// Multipliers of rows, and of the ball.
struct Multipliers {
    std::vector<double> rows, mu;
};

// A round ball: ||A d|| <= eps of some columns d. `turned` = Q A holds the directions in which to draw tangents.
struct Ball {
    std::vector<int> columns;
    std::vector<double> full, turn, turned;  // A, Q and Q A, by rows
    int height = 0, directions = 0;          // rows of A, and of Q
    double eps = 0, even = 0;                // A'A = even I + sum_k sign_k n_k n_k', n_k the rows of `uneven`
    std::vector<double> sign, uneven;

    bool empty() const { return columns.empty(); }
};

// A row with a slope that may be chosen anew for every part: it has -slope (x_plus - x_minus) besides its fixed numbers.
struct Bend {
    int row, plus, minus;  // `minus` is -1 where there is none
    int dz;                // of a line of differences, the row of x_plus - x_minus; else -1
    double slope;          // at first
};

struct Shape;

// The rows that are neither equations solved for a column nor say nothing, one after the other, slopes included.
struct Loose {
    std::vector<int> of;                     // of each row, which of these it is; -1 if none
    std::vector<int> start, index;
    std::vector<double> value;
    std::vector<std::pair<int, int>> bends;  // where a bend's slope stands, for plus and minus; -1 if nowhere
};

// How maximising ended: at the optimum, below what is enough, with nothing within all bounds, or after too many steps.
enum class Ended { optimal, below, empty, tired };

// The part of a program that never changes.
struct Program {
    Ball ball;
    std::vector<Bend> bends;
    std::vector<int> bend_start, bend_of;  // by columns
    std::vector<double> bend_sign;
    Loose loose;
    std::shared_ptr<const Shape> shape;  // for an interior point method; without it, the simplex method
    int columns = 0, rows = 0;
    std::vector<int> start, index;  // by rows
    std::vector<double> value;
    std::vector<int> column_start, column_row;  // by columns
    std::vector<double> column_value;
    std::vector<std::pair<int, int>> solved;  // equations and the column each is solved for, in that order
    std::vector<uint8_t> kept;                // rows that say something
    std::vector<uint8_t> zero;                // columns that are always 0
    std::vector<double> given;                // what the solved equations are equal to
    std::vector<double> nudge;                // tiny objectives that keep the method from turning in circles
    std::vector<double> cost;                 // what to maximise

    // Nudge every column by next to nothing, at random but always the same.
    void jostle(const std::vector<double> &low, const std::vector<double> &high, double by) {
        uint64_t state = 88172645463325252ull;
        nudge.assign(columns, 0.0);
        for (int j = 0; j < columns; j++) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            double share = 0.5 + double(state >> 11) / 9007199254740992.0;
            if (cost[j] == 0.0 && high[j] > low[j]) nudge[j] = (state & 1 ? by : -by) * share / std::max(high[j] - low[j], 1.0);
        }
    }

    int variables() const { return columns + rows + 1; }  // columns, rows, and a 1 that stands for all constants

    void transpose() {
        column_start.assign(columns + 1, 0);
        for (int j : index) column_start[j + 1]++;
        for (int j = 0; j < columns; j++) column_start[j + 1] += column_start[j];
        column_row.resize(index.size());
        column_value.resize(index.size());
        std::vector<int> at(column_start.begin(), column_start.end() - 1);
        for (int i = 0; i < rows; i++)
            for (int k = start[i]; k < start[i + 1]; k++) {
                column_row[at[index[k]]] = i;
                column_value[at[index[k]]++] = value[k];
            }
        bend_start.assign(columns + 1, 0);
        bend_of.clear();
        bend_sign.clear();
        for (int j = 0; j < columns && !bends.empty(); j++) {
            for (size_t b = 0; b < bends.size(); b++)
                if (bends[b].plus == j || bends[b].minus == j) {
                    bend_of.push_back(int(b));
                    bend_sign.push_back(bends[b].plus == j ? -1.0 : 1.0);
                }
            bend_start[j + 1] = int(bend_of.size());
        }
        gather();
    }

    // List the loose rows.
    void gather() {
        std::vector<uint8_t> is_loose = kept;
        for (const auto &[row, column] : solved) is_loose[row] = 0;
        std::vector<std::vector<int>> of(rows);
        for (size_t b = 0; b < bends.size(); b++) of[bends[b].row].push_back(int(b));
        loose = {std::vector<int>(rows, -1), {0}, {}, {}, std::vector<std::pair<int, int>>(bends.size(), {-1, -1})};
        auto add = [&](int column, double by) {
            loose.index.push_back(column);
            loose.value.push_back(by);
            return int(loose.value.size()) - 1;
        };
        for (int i = 0; i < rows; i++) {
            if (!is_loose[i]) continue;
            for (int k = start[i]; k < start[i + 1]; k++)
                if (value[k] != 0.0) add(index[k], value[k]);
            for (int b : of[i]) {
                loose.bends[b].first = add(bends[b].plus, -bends[b].slope);
                if (bends[b].minus >= 0) loose.bends[b].second = add(bends[b].minus, bends[b].slope);
            }
            loose.of[i] = int(loose.start.size()) - 1;
            loose.start.push_back(int(loose.index.size()));
        }
    }

    // Take a number out of a row; `add_bend` puts a slope of its place.
    void erase(int row, int column) {
        for (int k = start[row]; k < start[row + 1]; k++)
            if (index[k] == column) value[k] = 0.0;
    }

    void add_bend(const Bend &bend) {
        erase(bend.row, bend.plus);
        if (bend.minus >= 0) erase(bend.row, bend.minus);
        bends.push_back(bend);
    }

    std::vector<double> slopes() const {
        std::vector<double> out;
        for (const Bend &bend : bends) out.push_back(bend.slope);
        return out;
    }

    // The same multipliers with all slopes as they were at first: y (dv - s dz) = y (dv - s0 dz) + y (s0 - s) dz. Lines of one
    // side are left alone: a proof has no use for their multipliers.
    void straighten(Multipliers &by, const std::vector<double> &slopes) const {
        for (size_t b = 0; b < bends.size(); b++)
            if (bends[b].dz >= 0) by.rows[bends[b].dz] += by.rows[bends[b].row] * (bends[b].slope - slopes[b]);
    }

    // An upper bound on c.x over all x within bounds whose rows are within theirs, by any multipliers y:
    //   c.x = y.(A x) + r.x <= sum_i max(y_i low_i, y_i high_i) + sum_j max(r_j low_j, r_j high_j), r = c - A'y.
    // A ball adds mu.(B d) <= eps ||mu|| for any mu (Cauchy and Schwarz), and takes B' mu off the r of its columns.
    // A float r_j is a sum of at most n = rows + 1 products; it is off by less than (n + 8) 2^-52 times the sum of their
    // absolute values (twice the usual factor, for that sum is a float itself) and 1e-290 for underflow; times the
    // largest |x_j| this is added, and the same is done for the last sum. NaN, from overflow, comes out as infinity.
    double bound(const Multipliers &by, const std::vector<double> &cost, const std::vector<double> &slopes, const double *low,
                 const double *high) const {
        const std::vector<double> &y = by.rows;
        double total = 0, size = 0;
        std::vector<double> round, rounder;  // B' mu, and the absolute values that it is the sum of
        if (!by.mu.empty()) {
            round.assign(columns, 0.0);
            rounder.assign(columns, 0.0);
            double squares = 0, top = 1e-290;  // of mu / top, so that nothing underflows
            for (double one : by.mu) top = std::max(top, std::fabs(one));
            for (int k = 0; k < ball.height; k++) {
                squares += (by.mu[k] / top) * (by.mu[k] / top);
                for (size_t c = 0; c < ball.columns.size(); c++) {
                    double p = by.mu[k] * ball.full[k * ball.columns.size() + c];
                    round[ball.columns[c]] += p;
                    rounder[ball.columns[c]] += std::fabs(p);
                }
            }
            total = ball.eps * top * std::sqrt(squares) * (1 + 1e-14 * (ball.height + 8)) + 1e-290;
            size = total;
        }
        long terms = 1;
        auto add = [&](double v) {
            total += v;
            size += std::fabs(v);
            terms++;
        };
        for (int i = 0; i < rows; i++)
            if (y[i] != 0.0) add(y[i] > 0 ? y[i] * high[columns + i] : y[i] * low[columns + i]);
        for (int j = 0; j < columns; j++) {
            double r = cost[j], s = std::fabs(r);
            int n = 1;
            for (int k = column_start[j]; k < column_start[j + 1]; k++) {
                double p = y[column_row[k]] * column_value[k];
                r -= p;
                s += std::fabs(p);
                n++;
            }
            for (int k = bend_start[j]; k < bend_start[j + 1]; k++) {
                double p = y[bends[bend_of[k]].row] * (bend_sign[k] * slopes[bend_of[k]]);
                r -= p;
                s += std::fabs(p);
                n++;
            }
            if (!round.empty()) {
                r -= round[j];
                s += rounder[j];
                n += ball.height;
            }
            double off = (n + 8) * 2 * UNIT * s + 1e-290;
            add(std::max(r * low[j], r * high[j]));
            add(off * std::max(std::fabs(low[j]), std::fabs(high[j])));
        }
        double out = std::nextafter(total + ((2 * terms + 8) * 2 * UNIT * size + 1e-290), INF);
        return std::isnan(out) ? INF : out;
    }

    // Complete the multipliers of solved equations: the reduced cost of the column solved for is what the tableau says.
    void complete(std::vector<double> &y, const std::vector<double> &reduced, const std::vector<double> &cost,
                  const std::vector<double> &slopes) const {
        for (auto it = solved.rbegin(); it != solved.rend(); ++it) {
            auto [row, column] = *it;
            double rest = cost[column] - reduced[column], own = 0;  // no such column is in the ball
            for (int k = column_start[column]; k < column_start[column + 1]; k++)
                if (column_row[k] == row)
                    own = column_value[k];
                else
                    rest -= y[column_row[k]] * column_value[k];
            for (int k = bend_start[column]; k < bend_start[column + 1]; k++)
                rest -= y[bends[bend_of[k]].row] * bend_sign[k] * slopes[bend_of[k]];
            y[row] = rest / own;
        }
    }
};

}  // namespace likewise
