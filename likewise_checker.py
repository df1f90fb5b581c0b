#!/usr/bin/env python3
"""Check a likewise certificate without likewise: `python likewise_checker.py FILE.cert [MODEL.npz]`.

A certificate claims: any two people of the domain whose distance is at most eps are scored at most `upper` apart, and
this pair of them is scored at least `lower` apart. This file needs Python and numpy, imports nothing of likewise, and
derives both numbers again from what is in the certificate: the question (weights, domain, metric, eps; all float64
numbers, read as the real numbers they are), the pair, and a proof of `upper`.

The proof is a tree of parts of all pairs (left, right). A part has an interval for what enters every neuron: z of the
left person, z of the right one, and dz = z_left - z_right. At the root they are derived by interval arithmetic; a split
cuts one of them (or the categories, or an integer) in two, so that the two parts cover the part; a lemma narrows one,
and is verified first; a leaf bounds the gap of all pairs of its part. Lemmas and leaves are *arguments*: lists of
multipliers. Any multipliers prove something; `Part.bound` says what, and why. docs/certificate-format.md has the bytes.

Rounding. Floats are rounded outward by one rule: a number that is computed from floats by n additions and products
whose absolute values add up to m is off by less than (n + 8) 2^-52 m + 1e-290 (Higham, section 3.1; twice the usual
factor pays for m being a float sum itself, and 1e-290 for underflow). exp, log, tanh and erfc of the platform are
trusted to 2^-48 (1 + |value|), 32 times the rounding of one operation. With --exact, networks of straight pieces are
checked in rational arithmetic; only exp, log, tanh and norms are then still floats, rounded outward.

Exit codes: 0 verified, 10 refused, 20 the upper bound rests on something that this file cannot check, 2 unreadable.
"""

import argparse
import hashlib
import io
import json
import math
import struct
import sys
import zipfile
from fractions import Fraction

import numpy as np

LIMIT = 1 << 30  # bytes that the question, and as many that a model, may unpack to; the proof is read as a stream
DEEPEST = 10_000  # parts on one path of the tree
CLOSE = 1e-6  # how far a claimed upper may be below the one derived here, relative to 1 or to itself
LIBRARY = 2.0**-48
KINDS, LEFT, RIGHT, DZ = ("left", "right", "dz"), 0, 1, 2
CLAIMS = np.dtype([("layer", "<u2"), ("kind", "u1"), ("side", "u1"), ("neuron", "<u4"), ("value", "<f8")])


class Refused(Exception):
    """The certificate says something that is not so."""


class Unreadable(Exception):
    """The file is no certificate."""


def require(condition, reason):
    if not condition:
        raise Refused(reason)


# ---- arithmetic: floats rounded outward, or rationals, by the same formulas (u and tiny are 0 for rationals) ----------


class Floats:
    u, tiny, exact = 2.0**-52, 1e-290, False

    @staticmethod
    def array(values):
        return np.array(values, dtype=np.float64)

    @staticmethod
    def error(terms, size):
        return (terms + 8) * 2.0**-52 * size + 1e-290


class Rationals:
    u, tiny, exact = Fraction(0), Fraction(0), True

    @staticmethod
    def array(values):
        plain = np.array(values, dtype=np.float64)
        out = np.empty(plain.shape, dtype=object)
        out.ravel()[:] = [Fraction(x) for x in plain.ravel().tolist()]
        return out


R = Floats  # which of the two this run uses


def error(terms, size):
    """Bound the rounding error of a sum of `terms` products whose absolute values add up to `size`."""
    return (terms + 8) * R.u * size + R.tiny


def up(x):
    return x + error(0, abs(x))


def down(x):
    return x - error(0, abs(x))


def corner(c, low, high):
    """Return the largest c x over low <= x <= high, one by one."""
    return up(np.maximum(c * low, c * high))


def largest(low, high):
    return np.maximum(abs(low), abs(high))


class Total:
    """A sum, with all that rounding may have taken from it."""

    def __init__(self):
        self.value, self.size, self.terms = R.array(0.0)[()], R.array(0.0)[()], 0

    def add(self, *parts):
        for part in parts:
            self.value, self.size = self.value + np.sum(part), self.size + np.sum(abs(part))
            self.terms += np.size(part)

    def upper(self):
        return self.value + error(2 * self.terms, self.size)


# ---- activations: straight ones as pieces (low, high, slope, offset), curved ones with slope and convexity -----------

INF = math.inf
LEAK, SIXTH = Fraction(0.01), Fraction(1, 6)
STRAIGHT = {
    "identity": [(-INF, INF, 1, 0)],
    "relu": [(-INF, 0, 0, 0), (0, INF, 1, 0)],
    "leaky_relu": [(-INF, 0, LEAK, 0), (0, INF, 1, 0)],
    "relu6": [(-INF, 0, 0, 0), (0, 6, 1, 0), (6, INF, 0, 6)],
    "hardtanh": [(-INF, -1, 0, -1), (-1, 1, 1, 0), (1, INF, 0, 1)],
    "hardsigmoid": [(-INF, -3, 0, 0), (-3, 3, SIXTH, Fraction(1, 2)), (3, INF, 0, 1)],
}
SELU, SELU_LEFT = 1.0507009873554805, 1.7580993408473766
ERFC = np.frompyfunc(math.erfc, 1, 1)


def sigmoid(z):
    e = np.exp(-np.abs(z))
    return np.where(z < 0, e, 1.0) / (1.0 + e)


def normal(z):
    return 0.5 * np.asarray(ERFC(np.asarray(-z * math.sqrt(0.5))), dtype=np.float64)


def density(z):
    return np.exp(-np.minimum(np.abs(z), 40.0) ** 2 / 2) / math.sqrt(2 * math.pi)


def bump(z):
    return np.exp(-np.abs(z)) / (1.0 + np.exp(-np.abs(z))) ** 2


def minus(z):
    return np.minimum(z, 0.0)


# name: value, slope (at 0 the one on the right), where convexity turns, and whether each stretch is convex
CURVED = {
    "sigmoid": (sigmoid, bump, (0.0,), (True, False)),
    "tanh": (np.tanh, lambda z: 4 * bump(2 * z), (0.0,), (True, False)),
    "softsign": (lambda z: z / (1 + abs(z)), lambda z: (1 + abs(z)) ** -2.0, (0.0,), (True, False)),
    "softplus": (lambda z: np.maximum(z, 0) + np.log1p(np.exp(-abs(z))), sigmoid, (), (True,)),
    "elu": (lambda z: np.where(z < 0, np.expm1(minus(z)), z), lambda z: np.exp(minus(z)), (0.0,), (True, True)),
    "selu": (
        lambda z: np.where(z < 0, SELU_LEFT * np.expm1(minus(z)), SELU * z),
        lambda z: np.where(z < 0, SELU_LEFT * np.exp(minus(z)), SELU),
        (0.0,),
        (True, True),
    ),
    "silu": (
        lambda z: z * sigmoid(z),
        lambda z: sigmoid(z) * (1 + z * sigmoid(-z)),
        (-2.3993572805154675, 2.3993572805154675),  # z tanh(z/2) = 2, rounded: between the two it is flat to 1e-45
        (False, True, False),
    ),
    "gelu": (
        lambda z: z * normal(z),
        lambda z: normal(z) + np.clip(z, -40, 40) * density(z),
        (-math.sqrt(2.0), math.sqrt(2.0)),
        (False, True, False),
    ),
}


def top(names, p, c, low, high):
    """Bound p f(z) - c z from above over low <= z <= high, neuron by neuron."""
    if len(names) == 1:
        return _top(names[0][0], p, c, low, high)
    out = low.copy()
    for name, rows in names:
        out[rows] = _top(name, p[rows], c[rows], low[rows], high[rows])
    return out


def _top(name, p, c, low, high):
    best = np.full(low.shape, -INF, dtype=low.dtype)
    if name in STRAIGHT:  # on each piece the function is linear: its ends decide
        for start, stop, slope, offset in STRAIGHT[name]:
            slope, offset = (slope, offset) if R.exact else (float(slope), float(offset))
            a, b = np.maximum(low, start), np.minimum(high, stop)
            for z in (a, b):
                value = p * (slope * z + offset) - c * z
                value = value + error(4, abs(p) * (abs(slope * z) + abs(offset)) + abs(c * z))
                best = np.where((a <= b) & (value > best), value, best)
        return best
    f, slope, turns, convex = CURVED[name]
    require(not R.exact, f"--exact is for activations of straight pieces, not {name}")
    for start, stop, is_convex in zip((-INF, *turns), (*turns, INF), convex):
        a, b = np.maximum(low, start), np.minimum(high, stop)
        inside = a <= b
        if not inside.any():
            continue
        a, b = np.where(inside, a, low), np.where(inside, b, low)
        found = np.maximum(_at(f, p, c, a), _at(f, p, c, b))
        bent = inside & (a < b) & ((p < 0) if is_convex else (p > 0))  # there p f is concave: a tangent is above it
        if bent.any():
            found[bent] = _tangent(f, slope, p[bent], c[bent], a[bent], b[bent])
        best = np.where(inside, np.maximum(best, found), best)
    return best


def _at(f, p, c, z):
    value = f(z)
    return p * value - c * z + abs(p) * LIBRARY * (1 + abs(value)) + error(2, abs(p * value) + abs(c * z))


def _tangent(f, slope, p, c, a, b):
    """Bound p f - c z on [a, b], where it is concave, by its tangent at about the highest point; any point would do."""
    last = np.maximum(np.nextafter(b, -INF), a)  # the slope at the right end is that on its left
    low, high = a, last
    rises, falls = p * slope(low) - c > 0, p * slope(high) - c < 0
    low, high = np.where(falls, low, high), np.where(rises, high, low)
    while (np.nextafter(low, INF) < high).any() and np.max(high - low) > 1e-10:
        z = low + (high - low) / 2
        rises = p * slope(z) - c > 0
        low, high = np.where(rises, z, low), np.where(rises, high, z)
    g = slope(low)
    off = (abs(p) * LIBRARY * (1 + abs(low)) + error(2, abs(p * g) + abs(c))) * (b - a)
    rise = np.maximum((p * g - c) * (a - low), (p * g - c) * (b - low))
    return _at(f, p, c, low) + up(rise + 2 * off)


def slopes(names, low, high):
    """Return bounds of all difference quotients (f(z) - f(z')) / (z - z') over low <= z, z' <= high."""
    least, most = low.copy(), high.copy()
    for name, rows in names:
        least[rows], most[rows] = _slopes(name, low[rows], high[rows])
    return least, most


def _slopes(name, low, high):
    least, most = np.full(low.shape, INF, dtype=low.dtype), np.full(low.shape, -INF, dtype=low.dtype)
    if name in STRAIGHT:
        for start, stop, slope, _ in STRAIGHT[name]:
            touches = ((low < stop) & (high > start)) | ((low == high) & (low >= start) & (low <= stop))
            below, above = (slope, slope) if R.exact else (down(float(slope)), up(float(slope)))
            whole = slope in (0, 1)
            below, above = (R.array(slope)[()],) * 2 if whole else (below, above)
            least = np.where(touches & (least > below), below, least)
            most = np.where(touches & (most < above), above, most)
        return least, most
    _, slope, turns, _ = CURVED[name]
    points = [low, np.maximum(np.nextafter(high, -INF), low)]
    points += [np.clip(end, low, points[1]) for turn in turns for end in (turn, np.nextafter(turn, -INF))]
    for z in points:
        value = slope(z)
        off = LIBRARY * (1 + abs(z)) + error(2, abs(value))
        least, most = np.minimum(least, value - off), np.maximum(most, value + off)
    return least, most


# ---- the question: network, people, metric ----------------------------------------------------------------------------


class Layer:
    def __init__(self, weight, bias, names):
        require(weight.ndim == 2 and bias.shape == weight.shape[:1] == (len(names),), "a layer has odd shapes")
        require(np.isfinite(weight).all() and np.isfinite(bias).all(), "a weight is not finite")
        for name in names:
            require(name in STRAIGHT or name in CURVED, f"unknown activation {name!r}")
        self.floats, self.names = (weight, bias), tuple(names)
        self.weight, self.bias = R.array(weight), R.array(bias)
        self.plus, self.minus, self.size = np.maximum(self.weight, 0), np.minimum(self.weight, 0), abs(self.weight)
        kinds = np.array(self.names)
        self.kinds = [(name, np.flatnonzero(kinds == name)) for name in dict.fromkeys(self.names)]
        self.height, self.width = weight.shape
        _, same = np.unique(np.column_stack([weight, bias]), axis=0, return_inverse=True)
        self.twins = [rows for rows in (np.flatnonzero(same.ravel() == k) for k in range(same.max() + 1)) if len(rows) > 1]

    def affine(self, low, high, bias=True):
        """Bound weight v + bias over a box of v (with or without the bias)."""
        b = self.bias if bias else self.bias * 0
        off = error(2 * self.width + 2, self.size @ largest(low, high) + abs(b))
        return self.plus @ low + self.minus @ high + b - off, self.plus @ high + self.minus @ low + b + off

    def values(self, low, high):
        """Bound the activations over a box of z."""
        one, nothing = low * 0 + 1, low * 0
        return -top(self.kinds, -one, nothing, low, high), top(self.kinds, one, nothing, low, high)


def network_digest(layers):
    sha = hashlib.sha256(b"likewise network 1")
    for layer in layers:
        sha.update(repr((layer.floats[0].shape, layer.names)).encode())
        for array in layer.floats:
            sha.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return sha.hexdigest()


class Domain:
    """Who can exist: bounds of each column, one 1 in each group, integers low + k step, constraints A x <= b."""

    def __init__(self, plain):
        self.digest = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
        self.groups, self.steps, self.names, at = [], {}, {}, 0
        low, high = [], []
        for feature in plain["features"]:
            kind, self.names[at] = feature["kind"], str(feature["name"])
            if kind == "one_hot":
                width = len(feature["values"])
                self.groups.append(slice(at, at + width))
                low, high, at = low + [0.0] * width, high + [1.0] * width, at + width
                continue
            require(kind in ("continuous", "integer"), f"a feature is of kind {kind!r}")
            low, high = [*low, float(feature["low"])], [*high, float(feature["high"])]
            if kind == "integer":
                require(float(feature["step"]) > 0, "an integer has no step")
                step = float(feature["step"])
                self.steps[at] = (low[-1], step, round((high[-1] - low[-1]) / step))
            at += 1
        self.width = at
        self.low = np.array(plain.get("lower", low), dtype=np.float64)
        self.high = np.array(plain.get("upper", high), dtype=np.float64)
        require(self.low.shape == self.high.shape == (at,) and np.isfinite(self.low + self.high).all(), "odd bounds")
        require((self.low <= self.high).all(), "the domain has a column without a value")
        self.numbers = np.setdiff1d(np.arange(at), [c for g in self.groups for c in range(g.start, g.stop)]).astype(int)
        rows = plain.get("constraints") or {"A": np.zeros((0, at)), "b": []}
        self.A, self.b = np.array(rows["A"], dtype=np.float64).reshape(-1, at), np.array(rows["b"], dtype=np.float64)
        require(self.b.shape == self.A.shape[:1] and np.isfinite(self.A).all() and np.isfinite(self.b).all(), "odd rows")

    def holds(self, x):
        """Tell whether a person exists, exactly."""
        if x.shape != (self.width,) or not ((x >= self.low) & (x <= self.high)).all():
            return False
        if not all(set(x[g].tolist()) <= {0.0, 1.0} and x[g].sum() == 1.0 for g in self.groups):
            return False
        for column, (low, step, count) in self.steps.items():
            k = min(max(round((x[column] - low) / step), 0), count)
            if low + k * step != x[column]:
                return False
        exact = [Fraction(v) for v in x.tolist()]
        return all(dot(row, exact) <= Fraction(float(b)) for row, b in zip(self.A.tolist(), self.b))

    def on_grid(self, column, value, is_below):
        """Return the last value of an integer column up to `value`, or the first from it; nan if there is none."""
        low, step, count = self.steps[column]
        k = round((value - low) / step)
        near = [low + i * step for i in range(max(k - 2, 0), min(k + 2, count) + 1)]
        fit = [v for v in near if (v <= value if is_below else v >= value)]
        return (max(fit) if is_below else min(fit)) if fit else math.nan


def dot(row, exact):
    return sum((Fraction(a) * x for a, x in zip(row, exact) if a and x), Fraction(0))


def dual_norm(mu, p):
    """Bound the q-norm of multipliers from above, 1/p + 1/q = 1; a smaller q only makes it larger."""
    size = np.abs(np.array(mu, dtype=np.float64))
    peak = float(size.max(initial=0.0))
    if peak == 0.0 or p == 1.0:
        return peak
    q = 1.0 if p == INF else 2.0 if p == 2.0 else max(1.0, (p / (p - 1.0)) * (1 - 1e-14))
    return peak * float(((size / peak) ** q).sum()) ** (1 / q) * (1 + 1e-13 * (len(size) + 8))


class Question:
    """What a certificate is about; `inner` is the same in logits, for one direction."""

    def __init__(self, manifest, arrays):
        def layers(kinds, prefix):
            chain = [
                Layer(arrays[f"{prefix}W{i}"], arrays[f"{prefix}b{i}"], [str(n) for n in names])
                for i, names in enumerate(kinds)
            ]
            require(chain and all(a.height == b.width for a, b in zip(chain, chain[1:])), "layers do not fit")
            return chain

        form = manifest["metric"]
        self.layers = layers(manifest["activations"], "")
        self.phi = None if form.get("phi") is None else layers(form["phi"], "phi_")
        self.left, self.right = Domain(manifest["left"]), Domain(manifest["right"])
        self.matrix, self.p, self.eps = arrays["metric"], float(form["p"]), float(manifest["eps"])
        require(self.p >= 1.0 and math.isfinite(self.eps) and self.eps >= 0.0, "odd p or eps")
        require(self.layers[-1].height == 1, "the network has more than one output")
        width = self.right.width if self.phi is None else self.phi[-1].height
        require(self.matrix.ndim == 2 and self.matrix.shape[1] == width, "the metric does not fit")
        require(np.isfinite(self.matrix).all(), "the metric is not finite")
        require(self.layers[0].width == self.left.width == self.right.width, "network and domain do not fit")
        require(self.phi is None or self.phi[0].width == self.right.width, "the embedding does not fit")
        require(manifest["left"]["features"] == manifest["right"]["features"], "two kinds of people")
        one, other = self.left, self.right
        self.symmetric = all(np.array_equal(getattr(one, n), getattr(other, n)) for n in ("low", "high", "A", "b"))

    def digests(self):
        sha = hashlib.sha256(f"likewise metric 1 {self.p} {self.matrix.shape}".encode())
        sha.update(np.ascontiguousarray(self.matrix, dtype="<f8").tobytes())
        if self.phi is not None:
            sha.update(network_digest(self.phi).encode())
        parts = [network_digest(self.layers), self.left.digest, self.right.digest, sha.hexdigest()]
        whole = hashlib.sha256("\n".join([*parts, self.eps.hex()]).encode()).hexdigest()
        return dict(zip(("network", "left", "right", "metric", "problem"), [*parts, whole]))

    def within(self, left, right):
        """Tell whether d(left, right) <= eps: in rationals where all is rational, else by floats rounded outward."""
        chain = self.phi or []
        if self.p in (1.0, 2.0, 3.0, INF) and all(n in STRAIGHT for layer in chain for n in layer.names):
            d = [a - b for a, b in zip(rational(chain, left), rational(chain, right))]
            sums = [abs(dot(row, d)) for row in self.matrix.tolist()]
            limit = Fraction(self.eps)
            return max(sums, default=0) <= limit if self.p == INF else (
                sum(s ** int(self.p) for s in sums) <= limit ** int(self.p)
            )
        (a, b), (c, d) = (enclosed(chain, x) for x in (left, right))
        low, high = (np.array(side, dtype=np.float64) for side in (down(a - d), up(b - c)))
        off = Floats.error(2 * len(low), np.abs(self.matrix) @ largest(low, high))
        plus, less = np.maximum(self.matrix, 0), np.minimum(self.matrix, 0)
        sizes = largest(plus @ low + less @ high - off, plus @ high + less @ low + off)
        peak = float(sizes.max(initial=0.0)) or 1.0
        norm = peak * (1.0 if self.p == INF else float(((sizes / peak) ** self.p).sum()) ** (1 / self.p))
        return norm * (1 + 4e-15 * (len(sizes) + 8)) <= self.eps

    def inner(self, swapped):
        """Return the chain of layers up to the logit, with all that it is asked, left and right exchanged or not."""
        last, kind = self.layers[-1], self.layers[-1].names[0]
        weight, bias = last.floats
        chain, curved, factor = self.layers, False, 1.0
        if kind in ("sigmoid", "tanh"):  # tanh(z) = 2 sigmoid(2 z) - 1, and doubling floats is exact
            factor = 1.0 if kind == "sigmoid" else 2.0
            chain, curved = [*chain[:-1], Layer(factor * weight, factor * bias, ["identity"])], True
        elif kind != "identity":
            chain = [*chain, Layer(np.ones((1, 1)), np.zeros(1), ["identity"])]
        matrix, eps, aside = self.matrix, self.eps, 0
        if self.phi is not None and all(set(layer.names) == {"identity"} for layer in self.phi):
            matrix, eps = self.multiplied_out()
        elif self.phi is not None:
            chain, aside = beside(chain, self.phi), self.phi[-1].height
        people = (self.right, self.left) if swapped else (self.left, self.right)
        return Inner(chain, people, (matrix, self.p, eps), aside, (curved, factor))

    def multiplied_out(self):
        """Return matrix W for a linear embedding x -> W x + b, and eps with room for the rounding of that product."""
        product, off = self.matrix, np.zeros_like(self.matrix)
        for layer in reversed(self.phi):
            weight = layer.floats[0]
            off = off @ np.abs(weight) + Floats.error(2 * layer.height, (np.abs(product) + off) @ np.abs(weight))
            product = product @ weight
        far = largest(self.left.low - self.right.high, self.left.high - self.right.low)
        room = off @ far * (1 + 1e-9) + 1e-290
        room = room.sum() if self.p < INF else room.max(initial=0.0)
        return product, (self.eps + float(room)) * (1 + 2.0**-50)


def beside(chain, other):
    """Return one chain that computes two on the same input, the shorter one carried on by identity neurons."""
    deep = [len(c) + (set(c[-1].names) != {"identity"}) for c in (chain, other)]
    both = []
    for c in (chain, other):
        width = c[-1].height
        rest = [Layer(np.eye(width), np.zeros(width), ["identity"] * width)] * (max(deep) - len(c))
        both.append([*c, *rest])
    joined = []
    for one, two in zip(*both):
        (w, b), (v, c) = one.floats, two.floats
        weight = np.block([[w, np.zeros((len(w), v.shape[1]))], [np.zeros((len(v), w.shape[1])), v]])
        weight = np.concatenate([w, v]) if not joined else weight
        joined.append(Layer(weight, np.concatenate([b, c]), [*one.names, *two.names]))
    return joined


def rational(chain, person):
    """Return what straight layers make of a person, exactly."""
    x = [Fraction(v) for v in person.tolist()]
    for layer in chain:
        z = [dot(row, x) + Fraction(b) for row, b in zip(layer.floats[0].tolist(), layer.floats[1].tolist())]
        pieces = [next(p for p in STRAIGHT[name] if v <= p[1]) for v, name in zip(z, layer.names)]
        x = [slope * v + offset for v, (_, _, slope, offset) in zip(z, pieces)]
    return x


def enclosed(chain, person):
    """Bound what layers make of one person."""
    low = high = R.array(person)
    for layer in chain:
        low, high = layer.values(*layer.affine(low, high))
    return low, high


class Inner:
    """One direction of a question, as the proof speaks of it."""

    def __init__(self, layers, people, metric, aside, score):
        self.layers, self.people, self.aside = layers, people, aside
        self.matrix, (_, self.p, self.eps) = R.array(metric[0]), metric
        self.curved, self.factor = score
        self.rows = [(R.array(one.A), R.array(one.b)) for one in people]
        self.groups, self.numbers, self.width = people[0].groups, people[0].numbers, people[0].width
        heights = [layer.height for layer in layers for _ in range(4)]
        sizes = [*heights, self.width, len(self.matrix), len(people[0].b), len(people[1].b)]
        self.places = np.cumsum([0, *sizes])

    def ball(self, nu, mu, low, high, total, groups=()):
        """Add a bound of nu.d over ||A d||_p <= eps, low <= d <= high. For any mu (Hoelder):

        nu.d = mu.(A d) + (nu - A^T mu).d <= eps ||mu||_q + the largest (nu - A^T mu).d over the box. Within a one-hot
        group d is 0, or 1 in a column and -1 in another.
        """
        rest = nu - mu @ self.matrix
        off = error(len(mu) + 2, abs(nu) + abs(mu) @ abs(self.matrix))
        total.add(off * largest(low, high), R.array(self.eps * dual_norm(mu, self.p) * (1 + 1e-15)))
        box = corner(rest, low, high)
        for g in groups:
            gain, lose = rest[g][high[g] >= 1], -rest[g][low[g] <= -1]
            stays = [R.array(0.0)[()]] if ((low[g] <= 0) & (high[g] >= 0)).all() else []
            change = [up(gain.max() + lose.max())] if len(gain) and len(lose) else []
            if stays or change:
                total.add(max(stays + change))
                box[g] = box[g] * 0
        total.add(box)

    def tangents(self, t, points, b_low, b_high):
        """Return lines a >= slope b + offset that hold for every pair of logits with a gap of t (times factor) or more.

        Straight score: a - b >= t. Sigmoid: a >= g(b) = logit(sigmoid(b) + t), which is convex for 0 <= t < 1, because
        g' = s(1-s) / ((s+t)(1-s-t)) grows with s = sigmoid(b); so every tangent is below it, and so is a = b.
        """
        if not self.curved:
            return np.ones(len(points)), np.full(len(points), t)
        require(0.0 <= t < 1.0 or not len(points), "a threshold is not between 0 and 1")
        lines = []
        for b in points.tolist():
            s, r = float(sigmoid(np.float64(b))), float(sigmoid(np.float64(-b)))
            p, q = s + t, r - t
            if not (math.isfinite(b) and q > 1e-10 and p > 1e-200):
                lines.append((1.0, 0.0))
                continue
            slope, value = s * r / (p * q), math.log(p) - math.log(q)
            off = 2.0**-46 * (1 / p + 1 / q + 2) * (1 + abs(value) + slope * (abs(b_low) + abs(b_high) + 2 * abs(b)))
            lines.append((slope, value - slope * b - off))
        return np.array([a for a, _ in lines]), np.array([o for _, o in lines])

    def from_slack(self, t, slack):
        """Bound the gap if a - g(b) <= slack: t if slack < 0, else t + tanh(slack / 4), or t + slack if straight."""
        if slack < 0:
            return self.factor * t
        more = math.tanh(slack / 4) if self.curved else slack
        return self.factor * (t + more + 1e-13 * (abs(t) + more))


class Argument:
    """Multipliers: see `Part.bound`."""

    def __init__(self, stream, inner):
        self.t, count = stream.unpack("<dH")
        self.points, self.weights = stream.floats(count), stream.floats(count)
        require((self.weights >= 0).all() and (count == 0 or math.isfinite(self.t)), "odd weights")
        flat, at = R.array(stream.vector(int(inner.places[-1]))), inner.places
        parts = [flat[a:b] for a, b in zip(at, at[1:])]
        self.layers = [parts[4 * k : 4 * k + 4] for k in range(len(inner.layers))]
        self.nu, self.mu, *self.omega = parts[4 * len(inner.layers) :]
        require(all((w >= 0).all() for w in self.omega), "a side constraint is used the wrong way round")


class Part:
    """Some of the pairs: people within bounds, and an interval for z of every neuron, left, right and dz.

    `since` is the largest threshold of the lemmas used: the intervals hold for all pairs with a gap of that or more.
    """

    def __init__(self, inner):
        self.inner, self.since, self.trusted = inner, -INF, []
        self.low, self.high = ([R.array(side) for side in sides] for sides in zip(*((p.low, p.high) for p in inner.people)))
        low, high = self.low[0] - self.high[1], self.high[0] - self.low[1]
        self.d = np.where(low != 0, down(low), low), np.where(high != 0, up(high), high)
        for g in inner.groups:
            self.d[0][g], self.d[1][g] = np.maximum(self.d[0][g], -1), np.minimum(self.d[1][g], 1)
        self.z = []
        for layer in inner.layers:
            box = np.empty((3, 2, layer.height), dtype=layer.bias.dtype)
            box[:, 0], box[:, 1] = -INF, INF
            self.z.append(box)
        self.values = []

    def copy(self):
        twin = object.__new__(Part)
        twin.inner, twin.since, twin.trusted, twin.d = self.inner, self.since, self.trusted, self.d
        twin.low, twin.high, twin.z, twin.values = list(self.low), list(self.high), list(self.z), self.values
        return twin

    def enter(self):
        """Bound z of the first layer over the people and the differences; False if a group has no category left."""
        layer, box = self.inner.layers[0], self.z[0].copy()
        for side in (LEFT, RIGHT):
            for end, weight in ((0, -layer.weight), (1, layer.weight)):
                total = corner(weight, self.low[side], self.high[side])[:, self.inner.numbers].sum(axis=1)
                for g in self.inner.groups:
                    allowed = self.high[side][g] > 0.5
                    if not allowed.any():
                        return False
                    total = total + weight[:, g][:, allowed].max(axis=1)
                size = layer.size @ largest(self.low[side], self.high[side]) + abs(layer.bias)
                best = total + (2 * end - 1) * layer.bias + error(3 * layer.width, size)
                box[side, end] = np.minimum(box[side, 1], best) if end else np.maximum(box[side, 0], -best)
        low, high = layer.affine(*self.d, bias=False)
        box[DZ] = np.maximum(box[DZ, 0], low), np.minimum(box[DZ, 1], high)
        self.z[0] = box
        return True

    def settle(self):
        """Carry all intervals through the network; False if some neuron is left without a value: no pair is here.

        z_left - z_right = dz in each neuron; f(z_left) - f(z_right) = s dz with s a difference quotient of f.
        """
        values, layers = [], self.inner.layers
        for k, layer in enumerate(layers):
            (l0, l1), (r0, r1), (d0, d1) = self.z[k]
            if k:
                vl, vr, dv, _ = values[-1]
                (a, b), (c, d), (e, f) = layer.affine(*vl), layer.affine(*vr), layer.affine(*dv, bias=False)
                l0, l1, r0, r1 = np.maximum(l0, a), np.minimum(l1, b), np.maximum(r0, c), np.minimum(r1, d)
                d0, d1 = np.maximum(d0, e), np.minimum(d1, f)
            d0, d1 = np.maximum(d0, down(l0 - r1)), np.minimum(d1, up(l1 - r0))
            l0, l1 = np.maximum(l0, down(r0 + d0)), np.minimum(l1, up(r1 + d1))
            r0, r1 = np.maximum(r0, down(l0 - d1)), np.minimum(r1, up(l1 - d0))
            for rows in layer.twins:  # the same weights and bias: the same z
                for box, best in ((l0, max), (l1, min), (r0, max), (r1, min)):
                    box[rows] = best(box[rows])
            if not ((l0 <= l1) & (r0 <= r1) & (d0 <= d1)).all():
                return False
            self.z[k] = np.array([[l0, l1], [r0, r1], [d0, d1]])
            if k == len(layers) - 1:
                break
            vl, vr = layer.values(l0, l1), layer.values(r0, r1)
            s0, s1 = slopes(layer.kinds, np.minimum(l0, r0), np.maximum(l1, r1))
            ends = [s * d for s in (s0, s1) for d in (d0, d1)]
            e, f = down(np.minimum.reduce(ends)), up(np.maximum.reduce(ends))
            dv = np.maximum(e, down(vl[0] - vr[1])), np.minimum(f, up(vl[1] - vr[0]))
            if not (dv[0] <= dv[1]).all():
                return False
            values.append((vl, vr, dv, (s0, s1)))
        self.values = values
        return True

    def bound(self, argument, target=None):
        """Bound  sum_i weight_i (a - slope_i b - offset_i) + target  from above over the pairs of this part.

        a, b are the logits, each bracket is >= 0 for a pair with a gap of t, and target is (layer, neuron, kind, sign)
        for sign times z, or nothing. Going backward, at a layer the sum is p.f(zl) + q.f(zr) + g.zl + h.zr, and for ANY
        numbers cl, cr, k, c of a neuron it equals

            cl zl + cr zr + [(p - k) f(zl) - (cl-g-c) zl] + [(q + k) f(zr) - (cr-h+c) zr] + [k (f(zl)-f(zr)) - c dz].

        Each bracket is bounded over its intervals, and cl zl + cr zr goes through z = W v + b to the layer before. What
        a float coefficient may be off by counts times the largest value that it multiplies. Returns the bound, and per
        layer what `narrowed` needs.
        """
        inner, total, seen = self.inner, Total(), []
        last = len(inner.layers) - 1
        b_low, b_high = (float(v) for v in self.z[last][RIGHT, :, 0])
        slope, offset = inner.tangents(argument.t, argument.points, b_low, b_high)
        weights, slope, offset = R.array(argument.weights), R.array(slope), R.array(offset)
        total.add(-weights * offset)
        for k in range(last, -1, -1):
            layer, (cl, cr, both, turn) = inner.layers[k], argument.layers[k]
            (l0, l1), (r0, r1), (d0, d1) = self.z[k]
            g, h, g_off = turn * 0, turn * 0, turn * 0
            if k == last:
                g[0], h[0] = weights.sum(), -(weights @ slope)
                g_off[0] = error(2 * len(weights), g[0] + weights @ abs(slope))
            if target is not None and target[0] == k:
                _, j, kind, sign = target
                g[j] = g[j] + (sign if kind != RIGHT else 0)
                h[j] = h[j] + (0, sign, -sign)[kind]
            c1, c2 = cl - g - turn, cr - h + turn
            total.add((g_off + error(3, abs(cl) + abs(g) + abs(turn))) * largest(l0, l1))
            total.add((g_off + error(3, abs(cr) + abs(h) + abs(turn))) * largest(r0, r1))
            if k == last:
                one, two, three = corner(-c1, l0, l1), corner(-c2, r0, r1), corner(-turn, d0, d1)
                if inner.aside:  # the outputs that the metric compares
                    three[1:] = three[1:] * 0
                    inner.ball(-turn[1:], argument.mu, d0[1:], d1[1:], total)
                seen.append(((turn * 0, c1, one), (turn * 0, c2, two), (turn * 0, turn, three)))
            else:
                vl, vr, dv, quotients = self.values[k]
                total.add((p_off + error(1, abs(p) + abs(both))) * largest(*vl))
                total.add((q_off + error(1, abs(q) + abs(both))) * largest(*vr))
                one, two = top(layer.kinds, p - both, c1, l0, l1), top(layer.kinds, q + both, c2, r0, r1)
                three = apart(both, turn, quotients, (d0, d1), dv)
                seen.append(((p - both, c1, one), (q + both, c2, two), (both, turn, three)))
            total.add(one, two, three, cl * layer.bias, cr * layer.bias)
            p, q = cl @ layer.weight, cr @ layer.weight
            p_off, q_off = (error(layer.height, abs(c) @ layer.size) for c in (cl, cr))
        self.people(argument, (p, p_off), (q, q_off), total)
        upper = total.upper()
        return (upper if math.isfinite(upper) else INF), seen[::-1]

    def people(self, argument, left, right, total):
        """Add a bound of p.x_left + q.x_right: columns that cannot differ have one value, the others go with nu.d."""
        inner, coefficients = self.inner, []
        for (p, off), omega, (A, b), low, high in zip((left, right), argument.omega, inner.rows, self.low, self.high):
            total.add(omega * b)
            less = omega @ A if len(b) else p * 0
            off = off + error(len(b) + 4, abs(p) + (omega @ abs(A) if len(b) else 0) + abs(argument.nu))
            total.add(off * largest(low, high))
            coefficients.append(p - less)
        p, q = coefficients
        same = (self.d[0] == 0) & (self.d[1] == 0)
        nu = np.where(same, R.array(0.0), argument.nu)
        low, high = np.maximum(*self.low), np.minimum(*self.high)
        alone = corner(p - nu, self.low[0], self.high[0]) + corner(q + nu, self.low[1], self.high[1])
        total.add(error(1, abs(p) + abs(q)) * largest(low, high))
        total.add(np.where(same, corner(p + q, low, high), up(alone))[inner.numbers])
        for g in inner.groups:
            one, two = self.high[0][g] > 0.5, self.high[1][g] > 0.5
            mine, yours = (p - nu)[g][one & ~same[g]], (q + nu)[g][two & ~same[g]]
            choices = list((p + q)[g][one & two & same[g]])
            choices += [up(mine.max() + yours.max())] if len(mine) and len(yours) else []
            total.add(max(choices) if choices else 0 * p[0])
        if inner.aside:
            total.add(corner(nu, *self.d))
        else:
            inner.ball(nu, argument.mu, *self.d, total, inner.groups)

    def narrowed(self, argument, claims):
        """Narrow many intervals by one argument without a target: what it leaves of a side below 0 holds no pair.

        Its bound is a sum over neurons. With the bracket of one neuron bounded over the claimed-off end of its interval
        alone, a sum below 0 says that no pair with a gap of t is there. Claims that do not hold are moved, then ignored.
        """
        upper, seen = self.bound(argument)
        fresh = [box.copy() for box in self.z]
        for k, kind, side in {(int(c["layer"]), int(c["kind"]), int(c["side"])) for c in claims}:
            require(k < len(self.z) and kind < 3 and side < 2, "a claim about no neuron")
            mine = claims[(claims["layer"] == k) & (claims["kind"] == kind) & (claims["side"] == side)]
            require((mine["neuron"] < self.inner.layers[k].height).all(), "a claim about no neuron")
            if k == len(self.z) - 1 and kind == DZ and self.inner.aside:
                continue
            low, high = self.z[k][kind]
            (p, c, whole), at = seen[k][kind], mine["neuron"]
            goal = (low if side == 0 else high).copy()
            goal[at] = R.array(mine["value"])
            for give in (0.0, 1e-9, 1e-6, 1e-3):
                end = np.clip(goal + R.array(give)[()] * ((low if side == 0 else high) - goal), low, high)
                box = (low, end) if side == 0 else (end, high)
                if k == len(self.z) - 1:
                    part = corner(-c, *box)
                elif kind == DZ:
                    part = apart(p, c, self.values[k][3], box, self.values[k][2])
                else:
                    part = top(self.inner.layers[k].kinds, p, c, *box)
                gone = up(up(upper - whole) + part) < 0
                edge = fresh[k][kind, side]
                fresh[k][kind, side] = np.where(gone, np.maximum(edge, end) if side == 0 else np.minimum(edge, end), edge)
        self.z = fresh

    def from_boxes(self):
        """Bound the gap by the last layer's intervals: sigmoid rises, and is steepest around 0."""
        a, b, d = (float(self.z[-1][kind, end, 0]) for kind, end in ((LEFT, 1), (RIGHT, 0), (DZ, 1)))
        if not self.inner.curved:
            return self.inner.factor * (d + abs(d) * 1e-15)
        wide = min(float(sigmoid(np.float64(a)) - sigmoid(np.float64(b))), math.tanh(max(d, 0.0) / 4))
        return self.inner.factor * max(0.0, min(1.0, wide * (1 + 1e-13) + 1e-13))


def apart(k, c, quotients, dz, dv):
    """Bound k dv - c dz over dz and dv = s dz in their intervals, s within the quotients.

    For k > 0 the largest dv at a dz is min(max(s0 dz, s1 dz), dv1): it bends at 0 and where it meets dv1, so these and the
    ends decide; for k < 0 the same holds of -dv.
    """
    s0, s1 = (np.where(k < 0, -a, b) for a, b in (quotients[::-1], quotients))
    most, size = np.where(k < 0, -dv[0], dv[1]), abs(k)
    steep, best = largest(s0, s1), np.full(k.shape, -INF, dtype=k.dtype)
    meets = [np.where(s != 0, most / np.where(s != 0, s, s + 1), s) for s in (s0, s1)]
    for point in (dz[0], dz[1], 0 * most, *meets):
        z = np.minimum(np.maximum(point, dz[0]), dz[1])
        value = size * np.minimum(np.maximum(s0 * z, s1 * z), most) - c * z
        best = np.maximum(best, value + error(8, (size * steep + abs(c)) * abs(z)))
    return best


# ---- the proof: who can differ, then a tree, depth first ---------------------------------------------------------------


class Stream:
    """The bytes of a proof, read once and hashed on the way."""

    def __init__(self, file):
        self.file, self.sha = file, hashlib.sha256()

    def take(self, count):
        content = self.file.read(count)
        require(len(content) == count, "the proof ends too early")
        self.sha.update(content)
        return content

    def unpack(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def floats(self, count):
        values = np.frombuffer(self.take(8 * count), "<f8")
        require(not np.isnan(values).any(), "a number of the proof is none")
        return values

    def vector(self, length):
        """Read numbers most of which may be 0: a bit for each, then those that are not."""
        bits = np.unpackbits(np.frombuffer(self.take((length + 7) // 8), np.uint8), bitorder="little")[:length]
        out = np.zeros(length)
        out[bits == 1] = self.floats(int(bits.sum()))
        require(np.isfinite(out).all(), "a multiplier is not finite")
        return out


def read_reach(stream, part):
    """Read how far columns can differ: bounds of single columns, and groups that cannot change."""
    inner, nothing = part.inner, R.array(np.zeros(part.inner.width))
    part.d = low, high = part.d[0].copy(), part.d[1].copy()
    while (tag := stream.take(1)) != b"R":
        require(not inner.aside, "columns are not what the metric compares")
        if tag == b"D":
            (column, sign), mu, total = stream.unpack("<Ib"), R.array(stream.vector(len(inner.matrix))), Total()
            require(column < inner.width and sign in (-1, 1), "a bound of no column")
            nu = nothing.copy()
            nu[column] = nu[column] + sign
            inner.ball(nu, mu, low, high, total, inner.groups)
            if sign > 0:
                high[column] = min(high[column], total.upper())
            else:
                low[column] = max(low[column], -total.upper())
            low[column], high[column] = whole(inner, column, low[column], high[column])
        elif tag in (b"G", b"g"):
            start, count = stream.unpack("<II" if tag == b"G" else "<I") + (() if tag == b"G" else (0,))
            g = next((g for g in inner.groups if g.start == start), None)
            require(g is not None, "a group of no columns")
            shown = set()
            for _ in range(count):
                (i, j), u, total = stream.unpack("<HH"), R.array(stream.vector(len(inner.matrix))), Total()
                require(i < g.stop - start and j < g.stop - start, "a change of no category")
                a, b = low.copy(), high.copy()
                a[g] = b[g] = nothing[g]
                a[start + i] = b[start + i] = nothing[0] + 1
                a[start + j] = b[start + j] = nothing[0] - 1
                inner.ball(nothing, u, a, b, total, inner.groups)
                if total.upper() < 0:  # no similar pair has category i on the left and j on the right
                    shown.add((i, j))
            gain = np.flatnonzero((part.high[0][g] > 0.5) & (high[g] >= 1))
            lose = np.flatnonzero((part.high[1][g] > 0.5) & (low[g] <= -1))
            if tag == b"g":
                part.trusted.append(f"that {inner.people[0].names[start]} cannot differ")
            elif not all((i, j) in shown for i in gain for j in lose if i != j):
                continue
            low[g] = high[g] = nothing[g]
        else:
            raise Refused("the proof has a step that is none")


def whole(inner, column, low, high):
    """Round a difference of two integers inward to whole steps, if floats are sharp enough to tell."""
    if column not in inner.people[0].steps:
        return low, high
    first, step, count = inner.people[0].steps[column]
    if 4 * np.spacing(max(abs(first), abs(first + count * step))) >= 1e-10 * step:
        return low, high
    most, least = math.floor(float(high) / step + 1e-9), math.ceil(float(low) / step - 1e-9)
    zero = low * 0
    return (
        zero if least == 0 else max(low, R.array((least - 1e-9) * step)[()]),
        zero if most == 0 else min(high, R.array((most + 1e-9) * step)[()]),
    )


def split(stream, tag, part):
    """Return the two parts of a split, which cover it; None for one that has nobody."""
    inner, halves = part.inner, []
    if tag == b"Z":
        kind, k, j, at = stream.unpack("<BHId")
        require(kind < 3 and k < len(inner.layers) and j < inner.layers[k].height and math.isfinite(at), "odd split")
    elif tag == b"C":
        side, start, count = stream.unpack("<BIH")
        mask = np.frombuffer(stream.take(count), np.uint8) == 1
        g = next((g for g in inner.groups if g.start == start and g.stop == start + count), None)
        require(g is not None, "a split of no group")
    else:
        side, column, at = stream.unpack("<BId")
        require(column in inner.people[0].steps and math.isfinite(at), "a split of no integer")
    for first in (True, False):
        half = part.copy()
        if tag == b"Z":
            half.z[k] = half.z[k].copy()
            box = half.z[k][kind]
            if first:
                box[1, j] = min(box[1, j], R.array(at)[()])
            else:
                box[0, j] = max(box[0, j], R.array(at)[()])
            halves.append(half)
            continue
        columns = g if tag == b"C" else slice(column, column + 1)
        if side == 2:
            require(all((end[columns] == 0).all() for end in part.d), "columns that can differ were split as one")
        require(side < 3, "odd split")
        for one in (0, 1) if side == 2 else (side,):
            low, high = half.low[one].copy(), half.high[one].copy()
            if tag == b"C":
                high[g] = np.where(mask == first, high[g], 0 * high[g])
                low[g] = np.minimum(low[g], high[g])
            else:
                value = inner.people[0].on_grid(column, at, first)
                if math.isnan(value):
                    low[column], high[column] = high[column] + 1, low[column]
                elif first:
                    high[column] = min(high[column], R.array(value)[()])
                else:
                    low[column] = max(low[column], R.array(value)[()])
            half.low[one], half.high[one] = low, high
        fits = all((a <= b).all() for a, b in zip(half.low, half.high))
        halves.append(half if fits and half.enter() else None)
    return halves


def read_tree(stream, inner):
    """Walk the tree and return the largest gap it leaves, and what had to be trusted."""
    root, worst = Part(inner), -INF
    read_reach(stream, root)
    todo = [root if root.enter() else None]
    while todo:
        part = todo.pop()
        alive = part is not None and part.settle()
        while (tag := stream.take(1)) in (b"T", b"N"):
            if tag == b"T":
                k, j, kind, sign, _ = stream.unpack("<HIBbd")
                require(k < len(inner.layers) and j < inner.layers[k].height and kind < 3 and sign in (-1, 1), "odd lemma")
                argument = Argument(stream, inner)
                if alive:
                    value, _ = part.bound(argument, (k, j, kind, sign))
                    box = part.z[k] = part.z[k].copy()
                    if sign > 0:
                        box[kind, 1, j] = min(box[kind, 1, j], value)
                    else:
                        box[kind, 0, j] = max(box[kind, 0, j], -value)
            else:
                argument = Argument(stream, inner)
                claims = np.frombuffer(stream.take(16 * stream.unpack("<I")[0]), CLAIMS)
                if alive:
                    part.narrowed(argument, claims)
            if alive:
                part.since = max(part.since, argument.t) if len(argument.points) else part.since
                alive = part.settle()
        if tag in (b"Z", b"C", b"I"):
            require(len(todo) < DEEPEST, "the tree is too deep")
            first, second = split(stream, tag, part if alive else Part(inner))
            todo += [second, first] if alive else [None, None]
            continue
        require(tag in (b"L", b"E", b"O"), "the proof has a step that is none")
        argument = Argument(stream, inner) if tag == b"L" else None
        if alive:
            upper = part.from_boxes()
            if argument is not None:
                value, weight = part.bound(argument)[0], float(argument.weights.sum()) * (1 - 1e-12)
                if value < 0 or weight > 0:
                    t = argument.t if len(argument.points) else -INF
                    upper = min(upper, inner.from_slack(t, float(value) / weight * (1 + 1e-15) if value >= 0 else -1.0))
            worst = max(worst, upper)
        if part is not None:
            worst = max(worst, inner.factor * part.since)
    require(not stream.file.read(1), "the proof goes on after its end")
    return worst, root.trusted


# ---- the file -----------------------------------------------------------------------------------------------------------


def arrays_of(content):
    """Return the float64 arrays of an npz; nothing is unpickled, and no header can ask for more than is there."""
    arrays = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        fits(archive)
        for entry in archive.infolist():
            stored = archive.read(entry)
            stream = io.BytesIO(stored)
            if np.lib.format.read_magic(stream) != (1, 0):
                raise Unreadable("an array is of an unknown version")
            shape, by_column, dtype = np.lib.format.read_array_header_1_0(stream)
            name = entry.filename.removesuffix(".npy")
            if dtype.hasobject:
                raise Unreadable(f"array {name!r} holds objects")
            values = np.frombuffer(stored, dtype, offset=stream.tell()).reshape(shape, order="F" if by_column else "C")
            arrays[name] = values.astype(np.float64) + 0.0 if dtype.kind in "fiu" else values
    return arrays


def fits(archive):
    if sum(e.file_size for e in archive.infolist() if not e.filename.startswith("proof/")) > LIMIT:
        raise Unreadable(f"it unpacks to more than {LIMIT >> 20} MiB")


def same_network(path, manifest, digest):
    """Tell whether a model file (npz: W0, b0, ..., activations) is the network that the certificate is about."""
    with open(path, "rb") as file:
        if (content := file.read(LIMIT + 1))[LIMIT:]:
            raise Unreadable("the model is too large")
    arrays = arrays_of(content)
    count = sum(name.startswith("W") for name in arrays)
    names = [str(n) for n in arrays.get("activations", ["relu"] * (count - 1) + ["sigmoid"])]
    layers = [Layer(arrays[f"W{i}"], arrays[f"b{i}"], [names[i]] * len(arrays[f"b{i}"])) for i in range(count)]
    (weight, bias), kinds, k = layers[-1].floats, layers[-1].names, int(manifest.get("output", 0))
    if layers[-1].height > 1:
        weight, bias, kinds = weight[[k]], bias[[k]], kinds[:1]
    kinds = ["identity"] if manifest.get("scale") == "logit" else kinds
    return network_digest([*layers[:-1], Layer(weight, bias, kinds)]) == digest


def lower_bound(question, arrays):
    """Return the gap of the pair, rounded down, if both people exist and are similar."""
    left, right = arrays["witness_left"], arrays["witness_right"]
    require(question.left.holds(left), "the left person of the pair is not in the domain")
    require(question.right.holds(right), "the right person of the pair is not in the domain")
    require(question.within(left, right), "the pair is not within eps")
    (low, _), (_, high) = (enclosed(question.layers, x) for x in (left, right))
    (_, high_left), (low_right, _) = (enclosed(question.layers, x) for x in (left, right))
    gap = float(low[0] - high[0])
    if not question.symmetric:  # the pair may show either direction
        gap = max(gap, float(low_right[0] - high_left[0]))
    return max(0.0, gap - 1e-16 - abs(gap) * 1e-15)


def upper_bound(question, manifest, archive, trusted, reasons):
    """Return the largest gap that the proof leaves, over both directions if the two domains differ."""
    proof, uppers = manifest.get("proof") or {}, []
    directions = [False] if question.symmetric else [False, True]
    parts = proof.get("directions") or []
    wide = float(proof.get("eps", question.eps))
    if wide < question.eps:
        raise Refused("the proof is for a smaller eps")
    question.eps = wide
    for k, swapped in enumerate(directions):
        inner = question.inner(swapped)
        root = Part(inner)
        plain = root.from_boxes() if root.enter() and root.settle() else 0.0
        if k < len(parts):
            name = str(parts[k]["file"])
            with archive.open(name) as file:
                stream = Stream(io.BufferedReader(file))
                found, named = read_tree(stream, inner)
            require(stream.sha.hexdigest() == parts[k]["sha256"], f"{name} does not match its digest")
            trusted += [what for what in named if what not in trusted]
            plain = min(plain, found)
        uppers.append(max(plain, 0.0))
    return max(uppers)


def check(path, model=None, exact=False, network=None):
    """Check a certificate file and return what was found: ok, lower, upper, trusted, reasons, code.

    `model` is the path of an npz file, `network` the digest of a network, either to be compared with the certificate's.
    """
    global R
    R, trusted, reasons, lower, upper = Rationals if exact else Floats, [], [], 0.0, math.inf
    claimed = 0.0, math.inf
    try:
        with np.errstate(all="ignore"), zipfile.ZipFile(path) as archive:
            fits(archive)
            manifest = json.loads(archive.read("manifest.json"))
            if manifest["format"] != "likewise certificate" or manifest["version"] not in (1, 2, 3):
                raise Unreadable("its manifest is not one of a likewise certificate that is known here")
            arrays = arrays_of(archive.read("arrays.npz"))
            claimed = float(manifest["lower"]), math.inf if manifest["upper"] is None else float(manifest["upper"])
            question = Question(manifest, arrays)
            digests = question.digests()
            for name, digest in digests.items():
                require(manifest["digests"][name] == digest, f"the {name} does not match its digest")
            require(model is None or same_network(model, manifest, digests["network"]), "the model is another network")
            require(network in (None, digests["network"]), "the model is another network")
            lower = lower_bound(question, arrays)
            require(lower >= claimed[0] - 1e-9 * max(1.0, claimed[0]), f"the pair shows only {lower:.9g}")
            upper = upper_bound(question, manifest, archive, trusted, reasons)
            if not upper <= claimed[1] + CLOSE * max(1.0, abs(claimed[1])):
                if manifest.get("trusted") or not manifest.get("proof"):
                    trusted += [str(t) for t in manifest.get("trusted") or ["the engine's word: there is no proof inside"]]
                else:
                    raise Refused(f"the proof shows only an upper of {upper:.9g}")
    except Refused as error:
        reasons.append(str(error))
    except OSError as error:
        return outcome(False, lower, upper, trusted, [f"cannot read {path}: {error.strerror or error}"], 2, claimed)
    except (Unreadable, zipfile.BadZipFile, ArithmeticError, EOFError, LookupError, MemoryError, RuntimeError,
            SyntaxError, TypeError, ValueError, AttributeError, struct.error, NotImplementedError) as error:
        return outcome(False, lower, upper, trusted, [f"{path} is not a certificate: {error}"], 2, claimed)
    code = 10 if reasons else 20 if trusted else 0
    return outcome(code == 0, lower, upper, trusted, reasons, code, claimed)


def outcome(ok, lower, upper, trusted, reasons, code, claimed):
    return {"ok": ok, "lower": lower, "upper": upper, "trusted": trusted, "reasons": reasons, "code": code,
            "claimed": claimed}


def main(argv=None):
    parser = argparse.ArgumentParser(description="Check a likewise certificate, without likewise.")
    parser.add_argument("certificate")
    parser.add_argument("model", nargs="?", help="an npz file: is it the network that the certificate is about?")
    parser.add_argument("--exact", action="store_true", help="rational arithmetic, for small networks of straight pieces")
    options = parser.parse_args(argv)
    found = check(options.certificate, options.model, options.exact)
    print(json.dumps(found))
    return found["code"]


if __name__ == "__main__":
    sys.exit(main())
