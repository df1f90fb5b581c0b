// Plane: what a smooth neuron makes of a difference, sign dv <= rise dz + lean z_right + offset, over the intervals of a part.
//
// The offset is the largest value of g(z, h) = sign (f(z + h) - f(z)) - rise h - lean z. Over a rectangle of widths w and u it
// exceeds the highest corner by at most w^2 / 8 |g_zz| + u^2 / 8 |g_hh|, the errors of interpolation, first in z, then in h.
// |g_hh| <= F2 and |g_zz| <= min(2 F2, F3 |h|), which bound the second and the third derivative of f (`likewise.bounds.pairs`).
#pragma once
#include "curve.hpp"

namespace likewise {

constexpr double SHARE = 0.01;   // of what corners leave open at first, that an offset may be too high
constexpr int RECTANGLES = 120;  // to look at for an offset
constexpr double SPARE = 4e-8;   // added to an offset: a reader of the proof cuts rectangles at other places
constexpr double ALIKE = 0.9;    // an offset is kept for intervals that are no shorter than this share of those it is of

struct Triple {
    Interval left, right, dz;
};

// A sample of f(z + h) - f(z) over a rectangle of right z and dz, and the facets of its hull.
class Sample {
  public:
    bool is_of(const Interval &z, const Interval &h) const {
        return z.low == z_.low && z.high == z_.high && h.low == h_.low && h.high == h_.high;
    }

    void take(const Curve &f, const Interval &z, const Interval &h) {
        z_ = z, h_ = h;
        for (int i = 0; i < ACROSS; i++) {
            const double x = z.low + (z.high - z.low) * i / (ACROSS - 1), right = f.value(x);
            for (int k = 0; k < ALONG; k++)
                value_[i * ALONG + k] = f.value(x + h.low + (h.high - h.low) * k / (ALONG - 1)) - right;
        }
    }

    // Return how high the hull of the sample is at a point, above (sign 1) or below (-1), and the rise and lean of its facet
    // there: of all triangles around the point the highest. It is found by exchanging one corner after the other.
    double facet(int sign, double z, double h, double &rise, double &lean) const {
        const double w = z_.high - z_.low, u = h_.high - h_.low;
        const double x = w > 0 ? std::clamp((z - z_.low) / w, 0.0, 1.0) : 0.5, y = u > 0 ? std::clamp((h - h_.low) / u, 0.0, 1.0) : 0.5;
        int at[3] = {0, ACROSS * ALONG - 1, x > y ? (ACROSS - 1) * ALONG : ALONG - 1};
        double share[3] = {1 - std::max(x, y), std::min(x, y), std::fabs(x - y)}, flat[3] = {0, 0, 0};
        for (int step = 0; step < EXCHANGES; step++) {
            through(sign, at, flat);
            int best = -1;
            double most = 1e-9 * (std::fabs(flat[0]) + std::fabs(flat[1]) + std::fabs(flat[2])) + 1e-300;
            for (int i = 0; i < ACROSS; i++) {
                const double base = flat[0] + flat[1] * i;
                for (int k = 0; k < ALONG; k++)
                    if (const double over = sign * value_[i * ALONG + k] - base - flat[2] * k; over > most) {
                        most = over;
                        best = i * ALONG + k;
                    }
            }
            if (best < 0 || !exchange(at, share, best)) break;
        }
        rise = u > 0 ? flat[2] * (ALONG - 1) / u : 0.0;
        lean = w > 0 ? flat[1] * (ACROSS - 1) / w : 0.0;
        return flat[0] + flat[1] * x * (ACROSS - 1) + flat[2] * y * (ALONG - 1);
    }

  private:
    static constexpr int ACROSS = 17, ALONG = 7, EXCHANGES = 24;
    Interval z_{0, -1}, h_{0, -1};
    double value_[ACROSS * ALONG];

    static double twice_area(int a, int b, int c) {
        const double i = a / ALONG, k = a % ALONG;
        return (b / ALONG - i) * (c % ALONG - k) - (c / ALONG - i) * (b % ALONG - k);
    }

    // The plane through three of the sample's points, by steps: its height at the first point of all, and both slopes.
    void through(int sign, const int at[3], double flat[3]) const {
        const double area = twice_area(at[0], at[1], at[2]), v[3] = {sign * value_[at[0]], sign * value_[at[1]], sign * value_[at[2]]};
        const double i0 = at[0] / ALONG, k0 = at[0] % ALONG, i1 = at[1] / ALONG - i0, k1 = at[1] % ALONG - k0, i2 = at[2] / ALONG - i0,
                     k2 = at[2] % ALONG - k0;
        flat[1] = ((v[1] - v[0]) * k2 - (v[2] - v[0]) * k1) / area;
        flat[2] = (i1 * (v[2] - v[0]) - i2 * (v[1] - v[0])) / area;
        flat[0] = v[0] - flat[1] * i0 - flat[2] * k0;
    }

    // Put a point in the place of one corner, so that the triangle still is around what its corners' shares are of.
    static bool exchange(int at[3], double share[3], int in) {
        const double area = twice_area(at[0], at[1], at[2]);
        double of[3];
        int out = -1;
        for (int c = 0; c < 3; c++) {
            const int b = at[(c + 1) % 3], d = at[(c + 2) % 3];
            of[c] = twice_area(in, b, d) / area;
            if (of[c] > 1e-9 && (out < 0 || share[c] * of[out] < share[out] * of[c])) out = c;
        }
        if (out < 0) return false;
        const double by = share[out] / of[out];
        for (int c = 0; c < 3; c++) share[c] = std::max(share[c] - by * of[c], 0.0);
        share[out] = by;
        at[out] = in;
        return true;
    }
};

// Bound g from above, see the top of this file: the widest of all rectangles is halved until hardly anything is left to gain.
inline double offset(const Curve &f, int sign, double rise, double lean, const Triple &box) {
    struct Rectangle {
        double bound, z[2], h[2];
        bool lies;  // is halved across z
        bool operator<(const Rectangle &other) const { return bound < other.bound; }
    };
    Rectangle open[RECTANGLES + 2];
    int count = 0;
    double best = -INF, enough = -1, size = 0;
    auto add = [&](Rectangle r) {
        const bool is_cut = r.z[0] + r.h[0] < box.left.low || r.z[1] + r.h[1] > box.left.high;
        if (r.z[1] + r.h[1] < box.left.low || r.z[0] + r.h[0] > box.left.high) return;  // sums are rounded in order: no pair
        r.bound = -INF;
        for (double z : r.z) {
            const double right = f.value(z);
            for (double h : r.h) {
                const double l = z + h, left = f.value(l), g = sign * (left - right) - rise * h - lean * z;
                size = std::max(size, std::fabs(left) + std::fabs(right) + std::fabs(rise * h) + std::fabs(lean * z) + std::fabs(l));
                r.bound = std::fabs(g) < INF ? std::max(r.bound, g) : INF;
                if (l >= box.left.low && l <= box.left.high) best = std::max(best, g);
            }
        }
        const double w = r.z[1] - r.z[0], u = r.h[1] - r.h[0], far = std::max(std::fabs(r.h[0]), std::fabs(r.h[1]));
        const double wide = std::min(2 * f.second, f.third * far) * w * w / 8, tall = f.second * u * u / 8;
        r.bound += (wide + tall) * (1 + 1e-9);
        if (!(r.bound < INF)) r.bound = INF;  // of what is no number
        r.lies = is_cut ? w >= u : wide >= tall;  // where the ends of left z cut corners off, both ways in turn
        if (enough < 0) enough = SHARE * (wide + tall);
        open[count++] = r;
        std::push_heap(open, open + count);
    };
    add({0, {box.right.low, box.right.high}, {box.dz.low, box.dz.high}, false});
    for (int seen = 0; seen < RECTANGLES && count > 0 && count < RECTANGLES && open[0].bound > best + enough; seen++) {
        std::pop_heap(open, open + count);
        Rectangle one = open[--count], other = one;
        double(&ends)[2] = one.lies ? one.z : one.h, (&rest)[2] = one.lies ? other.z : other.h;
        ends[1] = rest[0] = ends[0] + (ends[1] - ends[0]) / 2;
        add(one);
        add(other);
    }
    const double most = count > 0 ? std::max(open[0].bound, best) : best;  // what is no longer open is at most best + enough
    const double out = most + enough + 8 * TRUST * (1 + size) + SPARE * (1 + std::fabs(rise) + std::fabs(lean));
    return out == out && out > -INF ? up(out) : INF;  // no pair at all: that is for others to say
}

// What was asked last: between parts next to each other, most neurons stay as they are.
struct Known {
    double rise = 0, lean = 0, high = INF;
    Triple box{{0, 0}, {0, 0}, {0, 0}};

    // Enclose sign dv - rise dz - lean z: from above by an offset, both ways by the ends of intervals.
    Interval ask(const Curve &f, int sign, double r, double l, const Triple &now, const Interval &dv) {
        const bool serves = high < INF && r == rise && l == lean && covers(box.left, now.left) && covers(box.right, now.right) &&
                            covers(box.dz, now.dz);
        if (!serves) {
            rise = r, lean = l, box = now;
            high = offset(f, sign, r, l, now);
        }
        const double v[2] = {sign > 0 ? dv.low : -dv.high, sign > 0 ? dv.high : -dv.low};
        const double h[2] = {r * now.dz.low, r * now.dz.high}, z[2] = {l * now.right.low, l * now.right.high};
        const double off = 16 * UNIT * (dv.size() + std::fabs(r) * now.dz.size() + std::fabs(l) * now.right.size()) + 1e-290;
        const double low = v[0] - std::max(h[0], h[1]) - std::max(z[0], z[1]) - off;
        return {low, std::max(low, std::min(high, v[1] - std::min(h[0], h[1]) - std::min(z[0], z[1]) + off))};
    }

  private:
    static bool covers(const Interval &known, const Interval &now) {
        return known.low <= now.low && now.high <= known.high && now.high - now.low >= ALIKE * (known.high - known.low);
    }
};

}  // namespace likewise
