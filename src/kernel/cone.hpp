// Cone: a round ball in an interior point method, as s = (s0, A d / eps) with s0 = 1, inside a cone together with its
// multiplier z (Nesterov and Todd's scaling).
//
// All vectors that come up are A u / eps for some u of as many numbers as are compared, so u stands for them, and
// inner products are u'S u.
#pragma once
#include "shape.hpp"
#include "wide.hpp"

namespace likewise {

struct Ray {
    double head = 0;
    std::vector<double> tail;
};

class Cone {
  public:
    Ray s, z;
    std::vector<double> slope;  // S w: where the small system's row of the ball points to
    double weight = 1;          // what S is multiplied by in Newton's equations; half of its inverse is at that row

    explicit Cone(const Shape &shape) : n_(int(shape.ball.size())) {
        s.tail.assign(n_, 0.0);
        z.tail.assign(n_, 0.0);
    }

    void start(double product) {
        s.head = 1;
        z.head = product;
        std::fill(s.tail.begin(), s.tail.end(), 0.0);
        std::fill(z.tail.begin(), z.tail.end(), 0.0);
    }

    // Go on from another part's, a little further inside.
    void resume(const Shape &shape, double product, double room) {
        s.head = std::max(1.0, norm(shape, s) + room);
        z.head = std::max(z.head, norm(shape, z)) + product / s.head;
    }

    // S u.
    std::vector<double> seen(const Shape &shape, const std::vector<double> &u) const {
        std::vector<double> out(n_);
        for (int c = 0; c < n_; c++) out[c] = shape.even * u[c];
        for (size_t k = 0; k < shape.sign.size(); k++) {
            const double *along = shape.uneven.data() + k * n_;
            add_times(out.data(), along, shape.sign[k] * dot(along, u.data(), n_), n_);
        }
        return out;
    }

    double inner(const Shape &shape, const Ray &a, const Ray &b) const {
        return dot(a.tail.data(), seen(shape, b.tail).data(), n_);
    }
    double norm(const Shape &shape, const Ray &a) const { return std::sqrt(std::max(inner(shape, a, a), 0.0)); }
    double product(const Shape &shape) const { return s.head * z.head + inner(shape, s, z); }

    // Find the scaling W, W z = W^-1 s; false if s or z is not inside.
    bool scale(const Shape &shape) {
        const double inside_s = s.head * s.head - inner(shape, s, s), inside_z = z.head * z.head - inner(shape, z, z);
        if (!(inside_s > 0) || !(inside_z > 0)) return false;
        const double a = 1 / std::sqrt(inside_s), b = 1 / std::sqrt(inside_z);
        const double half = 2 * std::sqrt(0.5 * (1 + a * b * product(shape)));
        w_.head = (a * s.head + b * z.head) / half;
        w_.tail.resize(n_);
        for (int c = 0; c < n_; c++) w_.tail[c] = (a * s.tail[c] - b * z.tail[c]) / half;
        slope = seen(shape, w_.tail);
        eta_ = std::sqrt(std::sqrt(inside_s / inside_z));
        weight = 1 / (eta_ * eta_);
        both_ = scaled(z, eta_, 1);
        return true;
    }

    // Aim at products `tau`, corrected by the last direction's; returns S of what that adds to the multiplier.
    std::vector<double> aim(const Shape &shape, double tau, bool corrected) {
        Ray by = times(shape, both_, both_);
        if (corrected) {
            const Ray more = times(shape, scaled(ds_, 1 / eta_, -1), scaled(dz_, eta_, 1));
            by.head += more.head;
            for (int c = 0; c < n_; c++) by.tail[c] += more.tail[c];
        }
        by.head = tau - by.head;
        for (double &one : by.tail) one = -one;
        const double inside = both_.head * both_.head - inner(shape, both_, both_);
        Ray v = by;  // both o v = by
        v.head = (both_.head * by.head - inner(shape, both_, by)) / inside;
        for (int c = 0; c < n_; c++) v.tail[c] = (by.tail[c] - v.head * both_.tail[c]) / both_.head;
        goal_ = scaled(v, 1 / eta_, -1);
        const double off = 1 - s.head;  // s0 goes back to 1
        goal_.head -= weight * (2 * w_.head * w_.head - 1) * off;
        for (int c = 0; c < n_; c++) goal_.tail[c] += 2 * weight * w_.head * off * w_.tail[c];
        return seen(shape, goal_.tail);
    }

    // The direction of both, now that d's is known.
    void follow(const Shape &shape, const std::vector<double> &dx) {
        ds_.head = 1 - s.head;
        ds_.tail.resize(n_);
        for (int c = 0; c < n_; c++) ds_.tail[c] = shape.ball[c] < 0 ? 0.0 : dx[shape.ball[c]];
        const double along = dot(slope.data(), ds_.tail.data(), n_);
        dz_.head = goal_.head + 2 * weight * w_.head * along;
        dz_.tail.resize(n_);
        for (int c = 0; c < n_; c++) dz_.tail[c] = goal_.tail[c] - weight * (ds_.tail[c] + 2 * along * w_.tail[c]);
    }

    // How far s, or z, stays inside, at most `most`.
    double longest(const Shape &shape, bool primal, double most) const {
        const Ray &at = primal ? s : z, &by = primal ? ds_ : dz_;
        const double a = by.head * by.head - inner(shape, by, by), b = at.head * by.head - inner(shape, at, by);
        const double c = std::max(at.head * at.head - inner(shape, at, at), 0.0);
        if (by.head < 0) most = std::min(most, -at.head / by.head);
        const double root = b * b - a * c;  // a r^2 + 2 b r + c = 0
        if (root < 0 || (a >= 0 && b >= 0)) return most;
        return std::min(most, c / (std::sqrt(root) - b));
    }

    double product_after(const Shape &shape, double primal, double dual) const {
        Ray a = s, b = z;
        add(a, ds_, primal);
        add(b, dz_, dual);
        return a.head * b.head + inner(shape, a, b);
    }

    void move(double primal, double dual) {
        add(s, ds_, primal);
        add(z, dz_, dual);
    }

  private:
    int n_;
    double eta_ = 1;
    Ray w_, both_, goal_, ds_, dz_;

    static void add(Ray &to, const Ray &by, double share) {
        to.head += share * by.head;
        for (size_t c = 0; c < to.tail.size(); c++) to.tail[c] += share * by.tail[c];
    }

    // W v for sign 1, W^-1 v for sign -1, up to the factor given.
    Ray scaled(const Ray &v, double factor, double sign) const {
        const double along = dot(slope.data(), v.tail.data(), n_);
        const double share = sign * v.head + along / (1 + w_.head);
        Ray out;
        out.head = factor * (w_.head * v.head + sign * along);
        out.tail.resize(n_);
        for (int c = 0; c < n_; c++) out.tail[c] = factor * (v.tail[c] + share * w_.tail[c]);
        return out;
    }

    Ray times(const Shape &shape, const Ray &a, const Ray &b) const {
        Ray out;
        out.head = a.head * b.head + inner(shape, a, b);
        out.tail.resize(n_);
        for (int c = 0; c < n_; c++) out.tail[c] = a.head * b.tail[c] + b.head * a.tail[c];
        return out;
    }
};

}  // namespace likewise
