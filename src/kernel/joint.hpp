// Joint: what is shown of all differences together (see likewise.bounds.joint), anew for every part.
//
// g.y <= R for y = (d, dv of all hidden layers) if  R - g.y - sum of weight * product  is a form in (y, 1) that is nowhere
// negative, the products being (high - n)(n - low), n = d or dz, (s1 dz - dv)(dv - s0 dz), and eps^2 - |A d|^2: all >= 0 for
// every pair of a part. Its matrix is H = [[Q, h], [h', R - C]]. The weights are those of the root; s and dz are the part's.
#pragma once
#include "part.hpp"

namespace likewise {

constexpr double FORMED = 1e-11;   // what an entry of H may be off by, beside the sum of absolute values: 300 products are less
constexpr double ONE_PHASE = 1e-9, FIRM = 1024;  // slopes that are all but one, and how much more their product then weighs

// Bounds the differences of parts, one after the other.
class Joiner {
  public:
    // R of a part, or that of the whole where the part's own form is not positive. Every entry of H is off by less than FORMED
    // times the sum of the absolute values of its products; |E| <= diag(sum_j |E_ij| t_j / t_i) for any t > 0, and a float
    // Cholesky factorisation that runs through is that of a matrix off by at most (n + 2) 2^-52 sqrt(H_ii H_jj). Both are taken
    // off the diagonal before. The last pivot is positive by the choice of R.
    double upper(const Question &q, const Joint &joint, const Part &part) {
        const int n = joint.n;
        matrix_ = joint.base;
        shift_ = joint.shift;
        linear_ = joint.linear;
        double constant = joint.constant, size = joint.constant_size;
        int at = int(joint.columns.size()), before = 0;  // where a layer's dv and what enters it are in y
        for (size_t index = 0; index + 1 < q.layers.size(); index++) {
            const Layer &layer = q.layers[index];
            const int count = index == 0 ? int(joint.columns.size()) : layer.width;
            weight_.resize(count);
            for (int j = 0; j < layer.height; j++) {
                const int k = layer.first + j;
                for (int c = 0; c < count; c++)
                    weight_[c] = layer.weight[size_t(j) * layer.width + (index == 0 ? joint.columns[c] : c)];
                const Interval &dz = part.box[2][k];
                within(joint, joint.interval[k], dz, before, count, constant, size);
                const bool is_last = index + 2 == q.layers.size();
                const Interval s = quotients(layer, part.box[0][k], part.box[1][k], is_last ? joint.linear[at + j] : 0.0);
                along(joint, joint.slope[k], s, before, count, at + j);
            }
            before = at;
            at += layer.height;
        }
        for (int i = 0; i < n; i++) matrix_[size_t(i) * n + i] -= shift_[i] + LOST * n * (n + 8) * matrix_[size_t(i) * n + i];
        const double squares = factor(n);
        is_found_ = squares >= 0;
        if (!is_found_) return joint.upper;
        const double rest = squares * (1 + 1e-9) + shift_[n];
        const double out = constant + rest * (1 + LOST * n * (n + 8)) + FORMED * (size + rest) + joint.margin * (std::fabs(constant) + rest) + 1e-300;
        return std::isfinite(out) ? std::min(joint.upper, out) : joint.upper;
    }

    // The y where the last bound is met, all but rounding; empty if there was none.
    std::vector<double> point(const Joint &joint) const {
        const int n = joint.n;
        std::vector<double> y(is_found_ ? n : 0);
        for (int i = n - 1; i >= 0 && is_found_; i--) {
            double sum = -linear_[i];
            for (int k = i + 1; k < n; k++) sum -= matrix_[size_t(k) * n + i] * y[k];
            y[i] = sum / matrix_[size_t(i) * n + i];
        }
        return y;
    }

  private:
    bool is_found_ = false;
    // The slopes that count. The dv of the last hidden layer are in nothing but g, each times a number c. As a relu is convex, dv
    // is at most its slope at the left z times dz, and at least that at the right one: with c > 0 the former in its place makes g
    // no smaller, with c < 0 the latter. So slopes of one side are enough.
    static Interval quotients(const Layer &layer, const Interval &left, const Interval &right, double c) {
        if (layer.is_curved() || c == 0.0) return slopes(layer, left, right);
        return c > 0 ? slopes(layer, left, left) : slopes(layer, right, right);
    }

    static constexpr double LOST = 4.5e-16;
    std::vector<double> matrix_, shift_, linear_, weight_;

    // Take weight * (high - dz)(dz - low) off: its square is in `base` already.
    void within(const Joint &joint, double weight, const Interval &dz, int before, int count, double &constant, double &size) {
        if (weight == 0.0) return;
        const double middle = weight * (dz.low + dz.high), far = dz.size(), t = joint.scale[joint.n];
        double sum = far * t;
        for (int c = 0; c < count; c++) {
            linear_[before + c] += middle * weight_[c];
            sum += std::fabs(weight_[c]) * joint.scale[before + c];
        }
        for (int c = 0; c < count; c++) shift_[before + c] += FORMED * weight * std::fabs(weight_[c]) * sum / joint.scale[before + c];
        shift_[joint.n] += FORMED * weight * far * sum / t;
        constant -= weight * dz.low * dz.high;
        size += weight * far * far;
    }

    // Take weight * (s1 dz - dv)(dv - s0 dz) off.
    void along(const Joint &joint, double weight, const Interval &s, int before, int count, int v) {
        if (s.high - s.low < ONE_PHASE) weight *= FIRM;
        if (weight == 0.0) return;
        const int n = joint.n;
        const double cross = -0.5 * weight * (s.low + s.high), square = weight * s.low * s.high, steep = s.size();
        double sum = joint.scale[v];
        for (int c = 0; c < count; c++) sum += steep * std::fabs(weight_[c]) * joint.scale[before + c];
        matrix_[size_t(v) * n + v] += weight;
        shift_[v] += FORMED * weight * sum / joint.scale[v];
        double *row = matrix_.data() + size_t(v) * n + before;  // v is behind: the lower triangle is what counts
        for (int c = 0; c < count; c++) {
            row[c] += cross * weight_[c];
            shift_[before + c] += FORMED * weight * steep * std::fabs(weight_[c]) * sum / joint.scale[before + c];
        }
        if (square != 0.0)
            for (int c = 0; c < count; c++)
                if (weight_[c] != 0.0)
                    add_times(matrix_.data() + size_t(before + c) * n + before, weight_.data(), square * weight_[c], c + 1);
    }

    // Factorise the lower triangle in place, solve for h = -linear / 2, and return |L^-1 h|^2; -1 if a pivot is not positive.
    double factor(int n) {
        for (int i = 0; i < n; i++) {
            double *row = matrix_.data() + size_t(i) * n;
            for (int j = 0; j < i; j++) {
                const double *other = matrix_.data() + size_t(j) * n;
                row[j] = (row[j] - dot(row, other, j)) / other[j];
            }
            const double pivot = row[i] - dot(row, row, i);
            if (!(pivot > 0)) return -1;
            row[i] = std::sqrt(pivot);
        }
        for (int i = 0; i < n; i++) {
            const double *row = matrix_.data() + size_t(i) * n;
            linear_[i] = (-0.5 * linear_[i] - dot(row, linear_.data(), i)) / row[i];
        }
        return dot(linear_.data(), linear_.data(), n);
    }
};

}  // namespace likewise
