// Shape: how a program falls into small blocks of columns (a number of both people, a pair of neurons) that only the long
// equations of layers, and a ball, hold together. It never changes while bounds do.
#pragma once
#include <map>
#include <numeric>

#include "program.hpp"

namespace likewise {

constexpr size_t LONG = 4;  // entries beyond which an equation holds blocks together instead of joining them

struct Shape {
    using Entries = std::map<int, double>;
    struct Thing {  // a column or a short row: a.x + constant, within the bounds of a variable of the program
        int variable, block, first, count;
        double constant;
        int own;  // the column that it is, or -1
    };
    struct Run {  // consecutive rows of a block that are consecutive in the small system
        int place, row, count;
    };
    struct Block {
        std::vector<int> columns, things, rows;  // rows of the small system, in order
        std::vector<Run> runs;
        std::vector<double> on;                   // of each of its rows, the factors of its columns
    };
    // The small system has a row for each direction in which the ball is uneven, one for where it slopes to, and one for
    // each long equation.
    int columns = 0, equations = 0, first = 0, rows = 0;
    std::vector<int> name;                                // of columns, in the program
    std::vector<std::vector<std::pair<int, double>>> of;  // the program's columns, by those that are left
    std::vector<double> constant;                         // and what is added
    std::vector<Thing> things;
    std::vector<int> index;  // of things: columns within their block
    std::vector<double> value;
    std::vector<Block> blocks;
    std::vector<double> given;      // what long equations are equal to
    std::vector<int> equation_row;  // and their rows in the program
    std::vector<int> ball;          // columns that are compared; -1 if always equal
    double even = 0;                // S = A'A / eps^2 = even I + sum_k sign_k n_k n_k'
    std::vector<double> sign, uneven;

    Shape(const Program &p, const std::vector<double> &low, const std::vector<double> &high) {
        substitute(p);
        std::vector<int> parent(columns);
        std::iota(parent.begin(), parent.end(), 0);
        std::vector<Entries> longs, shorts;
        std::vector<int> variables;
        std::vector<double> constants;
        auto keep = [&](Entries entries, int variable, double more) {
            for (auto &[j, by] : entries) parent[find(parent, j)] = find(parent, entries.begin()->first);
            shorts.push_back(std::move(entries));
            variables.push_back(variable);
            constants.push_back(more);
        };
        for (int i = 0; i < p.rows; i++) {
            if (!p.kept[i] || gone_[i]) continue;
            double more = 0;
            Entries entries;
            for (int k = p.start[i]; k < p.start[i + 1]; k++) {
                for (auto [j, by] : of[p.index[k]]) entries[j] += by * p.value[k];
                more += constant[p.index[k]] * p.value[k];
            }
            if (entries.size() > LONG && low[p.columns + i] == high[p.columns + i]) {
                equation_row.push_back(i);
                given.push_back(low[p.columns + i] - more);
                longs.push_back(std::move(entries));
            } else if (!entries.empty()) {
                keep(std::move(entries), p.columns + i, more);
            }
        }
        for (int j = 0; j < p.columns; j++)
            if (!of[j].empty()) keep(Entries(of[j].begin(), of[j].end()), j, constant[j]);
        std::vector<int> block_of(columns, -1), place_of(columns, 0);
        for (int j = 0; j < columns; j++) {
            int &block = block_of[find(parent, j)];
            if (block < 0) {
                block = int(blocks.size());
                blocks.emplace_back();
            }
            block_of[j] = block;
            place_of[j] = int(blocks[block].columns.size());
            blocks[block].columns.push_back(j);
        }
        for (size_t k = 0; k < shorts.size(); k++) {
            const int lead = shorts[k].begin()->first;
            const int own = variables[k] < p.columns && name[lead] == variables[k] ? lead : -1;
            blocks[block_of[lead]].things.push_back(int(things.size()));
            things.push_back({variables[k], block_of[lead], int(index.size()), int(shorts[k].size()), constants[k], own});
            for (auto [j, by] : shorts[k]) {
                index.push_back(place_of[j]);
                value.push_back(by);
            }
        }
        tie(p.ball, longs, block_of, place_of);
    }

  private:
    std::vector<uint8_t> gone_;  // rows that have been solved

    static int find(std::vector<int> &parent, int j) {
        while (parent[j] != j) j = parent[j] = parent[parent[j]];
        return j;
    }

    // Solve short equations: write the columns they are solved for by others.
    void substitute(const Program &p) {
        gone_.assign(p.rows, 0);
        of.resize(p.columns);
        constant.assign(p.columns, 0.0);
        std::vector<uint8_t> is_solved(p.columns, 0);
        for (auto [row, column] : p.solved)
            if (size_t(p.start[row + 1] - p.start[row]) <= LONG) gone_[row] = is_solved[column] = 1;
        for (int j = 0; j < p.columns; j++)
            if (!is_solved[j] && !p.zero[j]) {
                of[j] = {{columns++, 1.0}};
                name.push_back(j);
            }
        for (size_t k = 0; k < p.solved.size(); k++) {
            auto [row, column] = p.solved[k];
            if (!gone_[row]) continue;
            double own = 1, more = p.given[k];
            Entries entries;
            for (int e = p.start[row]; e < p.start[row + 1]; e++) {
                if (p.index[e] == column) {
                    own = p.value[e];
                    continue;
                }
                more -= p.value[e] * constant[p.index[e]];
                for (auto [j, by] : of[p.index[e]]) entries[j] -= by * p.value[e];
            }
            for (auto [j, by] : entries) of[column].push_back({j, by / own});
            constant[column] = more / own;
        }
    }

    // Note which blocks the rows of the small system hold together.
    void tie(const Ball &b, const std::vector<Entries> &longs, const std::vector<int> &block_of,
             const std::vector<int> &place_of) {
        const size_t n = b.columns.size();
        even = b.even / (b.eps * b.eps);
        for (double s : b.sign) sign.push_back(s / (b.eps * b.eps));
        uneven = b.uneven;
        equations = int(longs.size());
        first = int(sign.size()) + 1;
        rows = first + equations;
        std::vector<std::map<int, Entries>> on(blocks.size());
        for (size_t c = 0; c < n; c++) {
            const int j = of[b.columns[c]].empty() ? -1 : of[b.columns[c]][0].first;
            ball.push_back(j);
            for (int k = 0; j >= 0 && k < first; k++)
                on[block_of[j]][k][place_of[j]] = k + 1 < first ? uneven[k * n + c] : 0.0;
        }
        for (int r = 0; r < equations; r++)
            for (auto [j, by] : longs[r]) on[block_of[j]][first + r][place_of[j]] = by;
        for (size_t k = 0; k < blocks.size(); k++) {
            Block &block = blocks[k];
            for (auto &[row, entries] : on[k]) {
                const int place = int(block.rows.size());
                if (block.runs.empty() || block.runs.back().row + block.runs.back().count != row)
                    block.runs.push_back({place, row, 0});
                block.runs.back().count++;
                block.rows.push_back(row);
                block.on.resize(block.on.size() + block.columns.size(), 0.0);
                for (auto [at, by] : entries) block.on[place * block.columns.size() + at] = by;
            }
        }
    }
};

}  // namespace likewise
