// Curve: activations that are not relu, and what is proven of one over an interval.
//
// Values and slopes are computed by the C library and trusted to TRUST (1 + |value|) and TRUST (1 + |z|), as the checker
// trusts its own. Where pieces end is told from outside (`likewise.activations`).
#pragma once
#include <stdexcept>
#include <string>

#include "program.hpp"

namespace likewise {

constexpr double TRUST = 3.552713678800501e-15;  // 2^-48
constexpr int ROOTS = 40;                        // steps to find where a slope is met

inline double down(double v) { return std::nextafter(v, -INF); }
inline double up(double v) { return std::nextafter(v, INF); }

struct Interval {
    double low, high;
    double size() const { return std::max(std::fabs(low), std::fabs(high)); }
};

inline double logistic(double z) { return z >= 0 ? 1 / (1 + std::exp(-z)) : std::exp(z) / (1 + std::exp(z)); }

struct Function {
    const char *name;
    double (*value)(double);
    double (*slope)(double);
};

constexpr double SELU_SCALE = 1.0507009873554805, SELU_LEFT = 1.7580993408473766, ROOT_HALF = 0.7071067811865476;
inline double normal(double z) { return 0.5 * std::erfc(-z * ROOT_HALF); }
inline double density(double z) { return std::exp(-z * z / 2) / 2.5066282746310002; }
inline double bell(double z) { return logistic(z) * logistic(-z); }
inline double square(double z) { return z * z; }

inline const Function FUNCTIONS[] = {
    {"identity", [](double z) { return z; }, [](double) { return 1.0; }},
    {"relu", [](double z) { return z > 0 ? z : 0.0; }, [](double z) { return z >= 0 ? 1.0 : 0.0; }},
    {"leaky_relu", [](double z) { return z < 0 ? 0.01 * z : z; }, [](double z) { return z < 0 ? 0.01 : 1.0; }},
    {"relu6", [](double z) { return std::clamp(z, 0.0, 6.0); }, [](double z) { return z >= 0 && z < 6 ? 1.0 : 0.0; }},
    {"hardtanh", [](double z) { return std::clamp(z, -1.0, 1.0); }, [](double z) { return z >= -1 && z < 1 ? 1.0 : 0.0; }},
    {"hardsigmoid", [](double z) { return std::clamp((z + 3) / 6, 0.0, 1.0); },
     [](double z) { return z >= -3 && z < 3 ? 1.0 / 6 : 0.0; }},
    {"sigmoid", logistic, bell},
    {"tanh", [](double z) { return std::tanh(z); }, [](double z) { return 4 * bell(2 * z); }},
    {"softsign", [](double z) { return z / (1 + std::fabs(z)); }, [](double z) { return square(1 / (1 + std::fabs(z))); }},
    {"softplus", [](double z) { return std::max(z, 0.0) + std::log1p(std::exp(-std::fabs(z))); }, logistic},
    {"elu", [](double z) { return z < 0 ? std::expm1(z) : z; }, [](double z) { return z < 0 ? std::exp(z) : 1.0; }},
    {"selu", [](double z) { return z < 0 ? SELU_LEFT * std::expm1(z) : SELU_SCALE * z; },
     [](double z) { return z < 0 ? SELU_LEFT * std::exp(z) : SELU_SCALE; }},
    {"silu", [](double z) { return z * logistic(z); }, [](double z) { return logistic(z) * (1 + z * logistic(-z)); }},
    {"gelu", [](double z) { return z * normal(z); }, [](double z) { return normal(z) + z * density(z); }},
};

inline const Function &function_of(const std::string &name) {
    for (const Function &one : FUNCTIONS)
        if (name == one.name) return one;
    throw std::invalid_argument("the kernel does not know the activation " + name);
}

// A stretch on which a function is straight (bend 0), convex (1) or concave (-1).
struct Piece {
    double low, high;
    int bend;
};

struct Curve {
    const Function *function = nullptr;
    std::vector<Piece> pieces;
    std::vector<double> kinks;
    Interval values{-INF, INF}, steepness{-INF, INF};
    double second = INF, third = INF;  // what the second and the third derivative do not exceed

    double value(double z) const { return function->value(z); }

    // The slope at z, from within a piece.
    double slope(double z, const Piece &piece) const {
        return function->slope(z == piece.high ? std::nextafter(z, -INF) : z);
    }

    // Enclose f(z) - s z over an interval. On a straight piece its ends decide. On a convex one the largest is at an end,
    // and for any t in it f(z) >= f(t) + f'(t) (z - t), which is least at an end, too; concave ones the other way round.
    Interval over(const Interval &z, double s) const {
        Interval out{INF, -INF};
        for (const Piece &piece : pieces) {
            const double a = std::max(z.low, piece.low), b = std::min(z.high, piece.high);
            if (a > b) continue;
            for (double x : {a, b}) {
                const double f = value(x), g = f - s * x, off = slip(f, s * x);
                out.low = std::min(out.low, g - off);
                out.high = std::max(out.high, g + off);
            }
            if (piece.bend == 0 || a == b) continue;
            const double t = met(piece, a, b, s), f = value(t), m = slope(t, piece), g = f - s * t;
            const double off = slip(f, s * t) + (TRUST * (1 + std::fabs(t)) + 8 * UNIT * (std::fabs(m) + std::fabs(s))) * (b - a);
            const double ends[2] = {(m - s) * (a - t), (m - s) * (b - t)};
            if (piece.bend > 0)
                out.low = std::min(out.low, g + std::min({ends[0], ends[1], 0.0}) - off);
            else
                out.high = std::max(out.high, g + std::max({ends[0], ends[1], 0.0}) + off);
        }
        return {down(out.low), up(out.high)};
    }

    Interval range(const Interval &z) const {
        const Interval out = over(z, 0.0);
        return {std::max(out.low, values.low), std::min(out.high, values.high)};
    }

    // Enclose all difference quotients over an interval: means of slopes, which are monotone on every piece.
    Interval quotients(double low, double high) const {
        Interval out{INF, -INF};
        for (const Piece &piece : pieces) {
            const double a = std::max(low, piece.low), b = std::min(high, piece.high);
            if (a > b || (a == b && low < high)) continue;
            for (double x : {a, b}) {
                const double m = slope(x, piece), off = TRUST * (1 + std::fabs(piece.bend ? x : m));
                out.low = std::min(out.low, m - off);
                out.high = std::max(out.high, m + off);
            }
        }
        return {std::max(out.low, steepness.low), std::min(out.high, steepness.high)};
    }

    // Slopes of lines worth having: below and above closest in the middle, and the tangents at both ends.
    void lines(const Interval &z, double slopes[4]) const {
        const Piece &first = at(z.low), &last = at(std::nextafter(z.high, -INF));
        slopes[0] = closest(z, 1);
        slopes[1] = slope(z.low, first);
        slopes[2] = slope(z.high, last);
        slopes[3] = closest(z, -1);
    }

  private:
    static double slip(double f, double product) {
        return TRUST * (1 + std::fabs(f)) + 8 * UNIT * (std::fabs(f) + std::fabs(product)) + 1e-300;
    }

    const Piece &at(double z) const {
        for (const Piece &piece : pieces)
            if (z < piece.high) return piece;
        return pieces.back();
    }

    double chord(const Interval &z) const {
        if (z.high - z.low <= 1e-9 * (1 + z.size())) return slope(z.low, at(z.low));
        return (value(z.high) - value(z.low)) / (z.high - z.low);
    }

    // A point of [a, b] where the slope is about s: any point is sound, near ones are sharp.
    double met(const Piece &piece, double a, double b, double s) const {
        double fa = slope(a, piece) - s, fb = slope(b, piece) - s;
        if (fa * piece.bend >= 0) return a;
        if (fb * piece.bend <= 0) return b;
        const double enough = 1e-4 * std::fabs(fb - fa);
        for (int k = 0; k < ROOTS; k++) {
            double t = k % 3 == 2 ? a + (b - a) / 2 : a + (b - a) * (fa / (fa - fb));
            t = std::clamp(t, a, b);
            const double f = slope(t, piece) - s;
            if (std::fabs(f) <= enough) return t;
            (f * piece.bend < 0 ? a : b) = t;
            (f * piece.bend < 0 ? fa : fb) = f;
        }
        return a + (b - a) / 2;
    }

    // The slope of a line below (side 1) or above (-1): of the tangent nearest to the middle that stays on its side at both
    // ends, or of the chord if there is none.
    double closest(const Interval &z, int side) const {
        const double middle = z.low + (z.high - z.low) / 2;
        const Piece *best = nullptr;
        for (const Piece &piece : pieces)
            if (piece.bend == side && std::max(z.low, piece.low) < std::min(z.high, piece.high))
                if (!best || std::fabs(std::clamp(middle, piece.low, piece.high) - middle) <
                                 std::fabs(std::clamp(middle, best->low, best->high) - middle))
                    best = &piece;
        if (!best) return chord(z);
        double p = std::max(z.low, best->low), q = std::min(z.high, best->high);
        auto fits = [&](double t, double end) {
            return side * (value(end) - value(t) - slope(t, *best) * (end - t)) >= -1e-12;
        };
        if (z.high > q && !fits(q, z.high)) {
            if (!fits(p, z.high)) return chord(z);
            q = turn(p, q, [&](double t) { return fits(t, z.high); });
        }
        if (z.low < p && !fits(p, z.low)) {
            if (!fits(q, z.low)) return chord(z);
            p = turn(q, p, [&](double t) { return fits(t, z.low); });
        }
        return slope(std::clamp(middle, p, std::max(p, q)), *best);
    }

    template <class Test> static double turn(double good, double bad, Test test) {
        for (int k = 0; k < 20; k++) {
            const double t = good + (bad - good) / 2;
            (test(t) ? good : bad) = t;
        }
        return good;
    }
};

}  // namespace likewise
