// Drawing: tangents of a round ball in the simplex method's tableau, added where points ask for them, and forgotten.
#pragma once
#include "simplex.hpp"

namespace likewise {

// Add the rows of e, of the sum of q and of tangents to a tableau that has just been made of rows as they are.
inline void Tableau::add_ball() {
    const Ball &ball = program_->ball;
    const size_t n = ball.columns.size();
    const int base = program_->columns, directions = tangents_.directions();
    auto another = [&](int variable) {
        basic.push_back(variable);
        table_.resize(table_.size() + width, 0.0);
        return row(height++);
    };
    auto lay = [&](double *t, int i, double by) {
        for (size_t c = 0; c < n; c++) t[ball.columns[c]] = by * ball.turned[i * n + c] / ball.eps;
    };
    for (int i = 0; i < directions; i++) lay(another(tangents_.e(i)), i, 1.0);
    if (directions) std::fill_n(another(tangents_.sum()) + base, directions, 1.0);
    for (size_t k = 0; k < tangents_.cuts.size(); k++) {
        const Tangents::Cut &cut = tangents_.cuts[k];
        double *t = another(tangents_.cut(k));
        lay(t, cut.direction, 2 * cut.at);
        t[base + cut.direction] = -1.0;
    }
}

// Draw tangents where the point is, if that is outside the ball by more than matters beside the objective.
inline bool Tableau::touch() {
    const int n = tangents_.directions();
    over_ = 0;
    if (!n) return false;
    std::vector<int> where(tangents_.end() - program_->variables(), -1);  // rows, or -1 - columns
    std::vector<double> m(n, 0.0);
    const int known = program_->variables();
    double counted = 0;
    for (int k = 0; k < height; k++)
        if (basic[k] >= known) where[basic[k] - known] = k;
    for (int c = 0; c < width; c++) {
        if (nonbasic[c] < known) continue;
        where[nonbasic[c] - known] = -1 - c;
        counted += d[c] * at[c];
        double by = d[c];
        if (int i = tangents_.share(nonbasic[c], by); i >= 0) m[i] += by;
    }
    over_ = counted - std::sqrt(dot(m.data(), m.data(), n));
    std::vector<double> e(n), beyond(n);
    double squares = 0, worst = 0;
    for (int i = 0; i < n; i++) {
        auto value = [&](int k) { return k >= 0 ? beta[k] : at[-1 - k]; };
        e[i] = value(where[i]);
        beyond[i] = e[i] * e[i] - value(where[n + i]);
        squares += e[i] * e[i];
        worst = std::max(worst, beyond[i]);
    }
    if (std::sqrt(squares) <= 1 + ROUND + accuracy * std::min(std::fabs(objective()), 1.0)) return false;
    bool drawn = false;
    for (int i = 0; i < n; i++)
        if (beyond[i] > std::max(0.1 * worst, 1e-9)) {
            draw({i, e[i]}, where[i], where[n + i]);
            drawn = true;
        }
    return drawn;
}

// Add a tangent; e and q of its direction are in rows, or else in columns, -1 - c.
inline void Tableau::draw(const Tangents::Cut &cut, int e, int q) {
    table_.resize(table_.size() + width, 0.0);
    double *t = row(height);
    auto add = [&](int where, double by) {
        if (where >= 0)
            add_times(t, row(where), by, width);
        else
            t[-1 - where] += by;
    };
    add(e, 2 * cut.at);
    add(q, -1.0);
    basic.push_back(tangents_.end());
    beta.push_back(dot(t, at.data(), width));
    weight.push_back(1.0 + dot(t, t, width));
    passed_.push_back(0);
    low_.push_back(-2 * std::fabs(cut.at) - 1);
    high_.push_back(cut.at * cut.at);
    tangents_.cuts.push_back(cut);
    height++;
}

// Forget tangents that do not touch.
inline void Tableau::purge() {
    const int first = tangents_.cut(0);
    std::vector<Tangents::Cut> kept;
    for (int &v : nonbasic)
        if (tangents_.is_cut(v)) {
            kept.push_back(tangents_.cuts[v - first]);
            v = first + int(kept.size()) - 1;
        }
    int to = 0;
    for (int k = 0; k < height; k++) {
        if (tangents_.is_cut(basic[k])) continue;
        if (to != k) {
            std::copy(row(k), row(k) + width, row(to));
            basic[to] = basic[k];
            weight[to] = weight[k];
            beta[to] = beta[k];
        }
        to++;
    }
    height = to;
    table_.resize(size_t(height) * width);
    basic.resize(height);
    weight.resize(height);
    beta.resize(height);
    tangents_.cuts.swap(kept);
}

}  // namespace likewise
