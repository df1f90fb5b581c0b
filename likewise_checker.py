#!/usr/bin/env python3
"""Check a likewise certificate without likewise: `python likewise_checker.py FILE.cert [MODEL.npz]`.

A certificate claims: two people of the domain whose distance is at most eps are scored at most `upper` apart, and one
such pair is scored at least `lower` apart. This file needs Python and numpy, imports nothing of likewise, and derives
both numbers again from what is in the certificate: the question (weights, domain, metric, eps: float64 numbers, read as
the real numbers they are), the pair, and a proof of `upper`.

The proof is a tree of parts of all pairs. A part has an interval for every number that a pair has: x of both people and
their difference d; per layer z and v = f(z) of both, and their differences dz, dv. At the root the intervals come from
interval arithmetic. A split cuts one of them, a person's categories, or "same category or not" in two, so that both
parts cover the part. An *argument* bounds a linear function of these numbers by multipliers of the equations between
them. Any multipliers prove something: `Part.bound` says what, and why. docs/certificate-format.md has the bytes.

Rounding: a number computed from floats by n additions and products whose absolute values add up to m is off by less
than (n + 8) 2^-52 m + 1e-290 (Higham, section 3.1; twice the usual factor, because m is a float sum itself, and 1e-290
for underflow): `error`. exp, log, tanh, erfc are trusted to 2^-48 (1 + |value|): `slop`. With --exact, networks of
straight pieces are checked in rational arithmetic, where both are 0; norms and logarithms are still floats, rounded
outward.

Exit codes: 0 verified, 10 refused, 20 `upper` rests on something that this file cannot check, 2 unreadable.
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
from itertools import pairwise

import numpy as np

INF, LEFT, RIGHT, DIFFERENCE = math.inf, 0, 1, 2
LIMIT = 1 << 30  # bytes that a question, or a model, may unpack to; the proof is read as a stream
WIDEST = 1 << 25  # numbers in one matrix
DEEPEST = 10_000  # parts on a path of the tree
PASSES = 12  # of intervals through the network, at most
CLOSE = 1e-6  # how far a claimed upper may be below the one derived here, relative to 1 or to itself
EXACT = [False]  # whether numbers are rationals just now


class Refused(Exception):
    """The certificate says something that is not so."""


def require(condition, reason):
    if not condition:
        raise Refused(reason)


# ---- arithmetic. A box is an array [lows, highs].


def array(values):
    """Return numbers to compute with: floats, or the rationals that they are."""
    if not EXACT[0]:
        return np.array(values, dtype=np.float64)
    return np.asarray(np.frompyfunc(Fraction, 1, 1)(np.array(values, dtype=object)), dtype=object)


def error(terms, size):
    """Bound what rounding may have done to a sum of `terms` products whose absolute values add up to `size`."""
    return 0 * size if EXACT[0] else (terms + 8) * 2.0**-52 * size + 1e-290


def slop(value):
    """Bound what a library function that returned this value may be off by."""
    return 0 * value if EXACT[0] else 2.0**-48 * (1 + abs(value))


def up(x):
    return x + error(0, abs(x))


def upper_sum(rows):
    return rows.sum(axis=1) + error(2 * rows.shape[1], abs(rows).sum(axis=1))


def meet(a, b):
    """Return what two boxes have in common; a bound that overflowed, and is no number, says nothing."""
    return np.array([np.fmax(a[0], b[0]), np.fmin(a[1], b[1])])


def minus(a, b):
    return np.array([-up(b[1] - a[0]), up(a[1] - b[0])])


def agreed(left, right, d):
    """Narrow boxes of left, right and their difference by each other."""
    d = meet(d, minus(left, right))
    left = meet(left, minus(right, -d[::-1]))
    right = meet(right, minus(left, d))
    return np.stack([left, right, meet(d, minus(left, right))], axis=1)


def norm(rows, p):
    """Bound the p-norm of rows of numbers from above, by floats and without overflow."""
    sizes = abs(np.array(rows, dtype=np.float64))
    if not sizes.shape[-1]:
        return sizes.sum(axis=-1)
    peak = sizes.max(axis=-1, keepdims=True, initial=1e-290)
    return peak[..., 0] * np.linalg.norm(sizes / peak, p, axis=-1) * (1 + 4e-15 * (sizes.shape[-1] + 8))


# ---- activations: pieces (from, to, bend, f, slope of f); bend is 1 where f is convex, -1 where it is concave, 0 where
# ---- it is straight. (The turns of silu, z tanh(z/2) = 2, are rounded: f is flat to 1e-45 in between.)


def straight(*pieces):
    """Return pieces of a function that is m z + c between a and b."""
    return [
        (a, b, 0, lambda z, m=m, c=c: array(m) * z + array(c), lambda z, m=m: 0 * z + array(m)) for a, b, m, c in pieces
    ]


def curved(f, slope, bend, *turns):
    """Return pieces of one function that bends the other way at each turn."""
    return [(a, b, bend * (-1) ** k, f, slope) for k, (a, b) in enumerate(pairwise([-INF, *turns, INF]))]


def sigmoid(z):
    return np.where(z < 0, np.exp(-abs(z)), 1.0) / (1.0 + np.exp(-abs(z)))


def normal(z):
    return 0.5 * np.asarray(np.frompyfunc(math.erfc, 1, 1)(-z * math.sqrt(0.5)), dtype=np.float64)


TURN, ROOT, TAU, SELU, STEEP = 2.3993572805154675, math.sqrt(2), 2 * math.pi, 1.0507009873554805, 1.7580993408473766
PIECES = {
    "identity": straight((-INF, INF, 1, 0)),
    "relu": straight((-INF, 0, 0, 0), (0, INF, 1, 0)),
    "leaky_relu": straight((-INF, 0, 0.01, 0), (0, INF, 1, 0)),
    "relu6": straight((-INF, 0, 0, 0), (0, 6, 1, 0), (6, INF, 0, 6)),
    "hardtanh": straight((-INF, -1, 0, -1), (-1, 1, 1, 0), (1, INF, 0, 1)),
    "hardsigmoid": straight((-INF, -3, 0, 0), (-3, 3, Fraction(1, 6), 0.5), (3, INF, 0, 1)),
    "sigmoid": curved(sigmoid, lambda z: sigmoid(z) * sigmoid(-z), 1, 0),
    "tanh": curved(np.tanh, lambda z: 4 * sigmoid(2 * z) * sigmoid(-2 * z), 1, 0),
    "softsign": curved(lambda z: z / (1 + abs(z)), lambda z: (1 + abs(z)) ** -2.0, 1, 0),
    "softplus": curved(lambda z: np.maximum(z, 0) + np.log1p(np.exp(-abs(z))), sigmoid, 1),
    "elu": [(-INF, 0, 1, np.expm1, np.exp), *straight((0, INF, 1, 0))],
    "selu": [(-INF, 0, 1, lambda z: STEEP * np.expm1(z), lambda z: STEEP * np.exp(z)), *straight((0, INF, SELU, 0))],
    "silu": curved(lambda z: z * sigmoid(z), lambda z: sigmoid(z) * (1 + z * sigmoid(-z)), -1, -TURN, TURN),
    "gelu": curved(lambda z: z * normal(z), lambda z: normal(z) + z * np.exp(-z * z / 2) / TAU**0.5, -1, -ROOT, ROOT),
}


def at(f, p, c, z):
    value = f(z)
    return p * value - c * z + abs(p) * slop(value) + error(2, abs(p * value) + abs(c * z))


def top(name, p, c, low, high):
    """Bound p f(z) - c z over low <= z <= high, one by one: the ends of pieces decide, but where p f is concave."""
    p, c, low, high = np.broadcast_arrays(p, c, low, high)
    best = np.full(low.shape, -INF, dtype=low.dtype)
    for start, stop, bend, f, slope in PIECES[name]:
        inside = (low <= stop) & (high >= start)
        a, b = (np.minimum(np.maximum(end, start), stop) for end in (low, high))
        found, bent = np.maximum(at(f, p, c, a), at(f, p, c, b)), inside & (a < b) & (p * bend < 0)
        if bent.any():
            found[bent] = below_tangent(f, slope, p[bent], c[bent], a[bent], b[bent])
        best = np.where(inside, np.maximum(best, found), best)
    return best


def below_tangent(f, slope, p, c, a, b):
    """Bound p f - c z on [a, b], where it is concave, by its tangent at about the highest point; any point would do."""
    falls, rises = p * slope(a) - c <= 0, p * slope(b) - c >= 0
    low, high = np.where(rises, b, a), np.where(falls, a, b)
    for _ in range(200):
        z = low + (high - low) / 2
        if not np.max(high - low - 1e-10 * (1 + abs(low))) > 0:
            break
        rises = p * slope(z) - c > 0
        low, high = np.where(rises, z, low), np.where(rises, high, z)
    g = slope(low)
    off = (abs(p) * slop(low) + error(2, abs(p * g) + abs(c))) * (b - a)
    return at(f, p, c, low) + up(np.maximum((p * g - c) * (a - low), (p * g - c) * (b - low)) + 2 * off)


def quotients(name, low, high):
    """Bound all difference quotients (f(z) - f(z')) / (z - z') over low <= z, z' <= high: f' is monotone on a piece."""
    box = np.array([np.full(low.shape, INF), np.full(low.shape, -INF)], dtype=low.dtype)
    for start, stop, bend, _, slope in PIECES[name]:
        touches = ((low < stop) & (high > start)) | ((low == high) & (low >= start) & (low <= stop))
        for end in (low, high):
            z = np.minimum(np.maximum(end, start), stop)
            s, off = slope(z), slop(z if bend else slope(z))
            box = np.where(touches, [np.minimum(box[0], s - off), np.maximum(box[1], s + off)], box)
    return box


def apart(k, c, slopes, dz, dv):
    """Bound k dv - c dz over dz and dv = s dz in their intervals, s within the slopes.

    For k > 0 the largest dv at a dz is min(max(s0 dz, s1 dz), dv1): it bends at 0 and where it meets dv1, so these and
    the ends decide; for k < 0 the same is true of -dv.
    """
    s0, s1 = np.where(k < 0, -slopes[::-1, None], slopes[:, None])
    most, size, steep = np.where(k < 0, -dv[0], dv[1]), abs(k), np.maximum(abs(s0), abs(s1))
    best = np.full(k.shape, -INF, dtype=k.dtype)
    for point in (dz[0], dz[1], 0 * most, *(np.where(s != 0, most / np.where(s != 0, s, 1), 0) for s in (s0, s1))):
        z = np.minimum(np.maximum(point, dz[0]), dz[1])
        value = size * np.minimum(np.maximum(s0 * z, s1 * z), most) - c * z
        best = np.maximum(best, value + error(8, (size * steep + abs(c)) * abs(z)))
    return best


# ---- the question


class Layer:
    """z = weight v + bias, and the activations of z."""

    def __init__(self, weight, bias, names):
        require(weight.ndim == 2 and bias.shape == weight.shape[:1] == (len(names),), "a layer has odd shapes")
        require((abs(weight) <= 1e15).all() and (abs(bias) <= 1e15).all(), "a weight is not finite, or beyond 1e15")
        require(all(name in PIECES for name in names), "an activation is unknown")
        self.floats, self.names, (self.height, self.width) = (weight, bias), tuple(names), weight.shape
        self.weight, self.bias = array(weight), array(bias)
        self.kinds = [(name, np.flatnonzero(np.array(names) == name)) for name in dict.fromkeys(names)]
        self.is_straight = not any(bend for name in names for _, _, bend, _, _ in PIECES[name])
        same = np.unique(np.column_stack([weight, bias]), axis=0, return_inverse=True)[1].ravel()
        self.twins = same[:, None] == same if len(same) > same.max() + 1 else None  # the same weights: the same z

    def affine(self, box, bias):
        """Bound weight v + bias over a box of v."""
        rises, falls = np.maximum(self.weight, 0).T, np.minimum(self.weight, 0).T
        off = error(2 * self.width + 2, abs(box).max(axis=0) @ abs(self.weight).T + abs(bias))
        return np.array([box[k] @ rises + box[1 - k] @ falls + bias + sign * off for k, sign in ((0, -1), (1, 1))])

    def each(self, function, *arrays):
        """Apply a function of one activation to the neurons that have it."""
        found = [function(name, *(a[..., rows] for a in arrays)) for name, rows in self.kinds]
        order = np.argsort(np.concatenate([rows for _, rows in self.kinds]))
        return np.concatenate(found, axis=-1)[..., order]

    def values(self, box):
        """Bound the activations over a box of z."""
        return np.array([sign * self.each(top, 0 * box[0] + sign, 0 * box[0], *box) for sign in (-1, 1)])


def enclosed(chain, person):
    """Bound what layers make of a person."""
    box = array([person, person])
    for layer in chain:
        box = layer.values(layer.affine(box, layer.bias))
    return box


def beside(*chains):
    """Return one chain that computes two on the same input, the shorter one carried on by identity neurons."""
    deep = max(len(c) + (set(c[-1].names) != {"identity"}) for c in chains)
    carry = [Layer(np.eye(c[-1].height), np.zeros(c[-1].height), ["identity"] * c[-1].height) for c in chains]
    joined = []
    for one, two in zip(*([*c, *[more] * (deep - len(c))] for c, more in zip(chains, carry))):
        (w, b), (v, c) = one.floats, two.floats
        block = np.block([[w, np.zeros((len(w), v.shape[1]))], [np.zeros((len(v), w.shape[1])), v]])
        joined.append(Layer(block if joined else np.concatenate([w, v]), np.append(b, c), one.names + two.names))
    return joined


def network_digest(layers):
    sha = hashlib.sha256(b"likewise network 1")
    for layer in layers:
        sha.update(repr((layer.floats[0].shape, layer.names)).encode())
        sha.update(b"".join(np.ascontiguousarray(numbers, dtype="<f8").tobytes() for numbers in layer.floats))
    return sha.hexdigest()


class Domain:
    """Who can exist: bounds of each column, one 1 in each group, whole steps low + k step, constraints A x <= b."""

    def __init__(self, plain):
        self.digest = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
        self.groups, self.steps, low, high = [], {}, [], []
        for feature in plain["features"]:
            start, kind = len(low), feature["kind"]
            require(kind in ("continuous", "integer", "one_hot"), f"a feature is of kind {kind!r}")
            one = feature | ({"low": 0, "high": 1, "step": 1} if kind == "one_hot" else {"values": [0]})
            low += [float(one["low"])] * len(one["values"])
            high += [float(one["high"])] * len(one["values"])
            self.groups += [slice(start, len(low))] if kind == "one_hot" else []
            if kind != "continuous":
                step, span = float(one["step"]), high[-1] - low[-1]
                require(step > 0 and span / step < 2.0**52, "a feature has an odd step")
                self.steps |= dict.fromkeys(range(start, len(low)), (low[-1], step, round(span / step)))
        self.width, rows = len(low), plain.get("constraints") or {"A": [], "b": []}
        self.box = np.array([plain.get("lower", low), plain.get("upper", high)], dtype=np.float64)
        self.A, self.b = np.array(rows["A"], dtype=np.float64).reshape(-1, self.width), np.array(rows["b"], dtype=float)
        require(self.box.shape == (2, self.width) and self.b.shape == self.A.shape[:1], "a domain has odd shapes")
        require((self.box[0] <= self.box[1]).all(), "a column has no value")
        require(all(np.isfinite(a).all() for a in (self.box, self.A, self.b)), "a number is not finite")
        require(all(self.on_grid(c, end, True) == end for c in self.steps for end in self.box[:, c]), "an odd end")

    def holds(self, x):
        """Tell whether a person exists, exactly (numbers are rationals now)."""
        return (
            x.shape == (self.width,)
            and bool(((x >= self.box[0]) & (x <= self.box[1])).all())
            and all(x[g].sum() == 1.0 for g in self.groups)
            and all(self.on_grid(c, x[c], True) == x[c] for c in self.steps)
            and bool((array(self.A) @ array(x) <= array(self.b)).all())
        )

    def on_grid(self, column, value, is_below):
        """Return the last whole step up to `value`, or the first from it on; infinite if there is none."""
        low, step, count = self.steps[column]
        k = round(min(max((value - low) / step, -1), count + 1))
        near = [low + i * step for i in range(max(k - 2, 0), min(k + 2, count) + 1)]
        fit = [v for v in near if v == value or (v < value) == is_below]
        return max(fit, default=-INF) if is_below else min(fit, default=INF)

    def whole(self, column, most):
        """Round a bound of the difference of two people down to whole steps, if floats are sharp enough to tell."""
        first, step, count = self.steps.get(column, (0.0, 1.0, 2**60))
        if 4 * np.spacing(max(abs(first), abs(first + count * step))) >= 1e-10 * step or most == INF:
            return most
        steps = math.floor(float(most) / step + 1e-9)
        return 0 * most if steps == 0 else min(most, array((steps + 1e-9) * step)[()])


class Question:
    """What a certificate is about."""

    def __init__(self, manifest, arrays):
        form = manifest["metric"]
        self.layers = self.chain(manifest["activations"], "", arrays)
        self.phi = [] if form.get("phi") is None else self.chain(form["phi"], "phi_", arrays)
        self.left, self.right = Domain(manifest["left"]), Domain(manifest["right"])
        self.matrix, self.p, self.eps = arrays["metric"], float(form["p"]), float(manifest["eps"])
        require(self.p >= 1.0 and 0.0 <= self.eps < INF and self.layers[-1].height == 1, "an odd metric, eps or output")
        require(self.matrix.ndim == 2 and (abs(self.matrix) <= 1e15).all(), "the metric is no matrix up to 1e15")
        width = self.phi[-1].height if self.phi else self.left.width
        require(self.matrix.shape[1] == width, "the metric does not fit")
        widths = {self.layers[0].width, self.left.width, self.right.width, (self.phi or self.layers)[0].width}
        require(len(widths) == 1, "network and domain do not fit")
        require(manifest["left"]["features"] == manifest["right"]["features"], "there are two kinds of people")
        pairs = [(getattr(self.left, n), getattr(self.right, n)) for n in ("box", "A", "b")]
        self.symmetric = all(np.array_equal(one, other) for one, other in pairs)

    def chain(self, kinds, prefix, arrays):
        layers = [Layer(arrays[f"{prefix}W{i}"], arrays[f"{prefix}b{i}"], [*map(str, k)]) for i, k in enumerate(kinds)]
        require(layers and all(a.height == b.width for a, b in pairwise(layers)), "layers do not fit")
        return layers

    def digests(self):
        sha = hashlib.sha256(f"likewise metric 1 {self.p} {self.matrix.shape}".encode())
        sha.update(np.ascontiguousarray(self.matrix, dtype="<f8").tobytes())
        sha.update(network_digest(self.phi).encode() if self.phi else b"")
        parts = [network_digest(self.layers), self.left.digest, self.right.digest, sha.hexdigest()]
        whole = hashlib.sha256("\n".join([*parts, self.eps.hex()]).encode()).hexdigest()
        return dict(zip(("network", "left", "right", "metric", "problem"), [*parts, whole]))

    def is_within(self, one, other):
        """Tell whether d(one, other) <= eps, exactly if numbers are rationals now, else rounded outward."""
        d = minus(enclosed(self.phi, one), enclosed(self.phi, other))
        rows, apart = len(self.matrix), (d != 0).any(axis=0)
        metric = Layer(self.matrix[:, apart], np.zeros(rows), ["identity"] * rows)
        sizes = abs(metric.affine(d[:, apart], metric.bias)).max(axis=0)
        if not EXACT[0]:
            return norm(sizes, self.p) <= self.eps
        power = 1 if self.p == INF else int(self.p)
        return (sizes.max(initial=0) if self.p == INF else sum(sizes**power)) <= Fraction(self.eps) ** power


class Inner:
    """One direction of a question, as its proof speaks of it: in logits, all numbers of a pair in a row, the last 1."""

    def __init__(self, question, swapped):
        last, (weight, bias) = question.layers[-1].names[0], question.layers[-1].floats
        self.layers, self.p, self.eps, matrix = [*question.layers], question.p, question.eps, question.matrix
        self.people = (question.right, question.left) if swapped else (question.left, question.right)
        self.is_curved, self.factor = last in ("sigmoid", "tanh"), 2.0 if last == "tanh" else 1.0
        if self.is_curved:  # tanh(z) = 2 sigmoid(2 z) - 1, and doubling floats is exact
            self.layers[-1] = Layer(self.factor * weight, self.factor * bias, ["identity"])
        elif last != "identity":
            self.layers += [Layer(np.ones((1, 1)), np.zeros(1), ["identity"])]
        is_beside = any(set(layer.names) != {"identity"} for layer in question.phi)
        if is_beside:
            self.layers = beside(self.layers, question.phi)
        elif question.phi:  # multiply a linear embedding out; eps gets room for the rounding of that
            off = np.zeros_like(matrix)
            for layer in reversed(question.phi):
                size = abs(layer.floats[0])
                off = off @ size + (2 * layer.height + 8) * 2.0**-52 * ((abs(matrix) + off) @ size) + 1e-290
                matrix = matrix @ layer.floats[0]
            room = off @ abs(question.left.box - question.right.box[::-1]).max(axis=0) * (1 + 1e-9)
            self.eps = (self.eps + float(room.sum() if self.p < INF else room.max(initial=0.0))) * (1 + 2.0**-50)
        self.matrix, self.one, self.width = array(matrix), self.people[0], question.left.width
        self.lay_out(is_beside)

    def lay_out(self, is_beside):
        """Give every number of a pair its place. What the metric compares is d, or what an embedding beside makes."""
        self.grouped = np.array([c for g in self.one.groups for c in range(g.start, g.stop)], dtype=int)
        self.numbers = np.setdiff1d(np.arange(self.width), self.grouped)
        self.starts = np.cumsum([0, *(g.stop - g.start for g in self.one.groups)], dtype=int)[:-1]
        sizes = [self.width, *(layer.height for layer in self.layers for _ in "zv")][:-1]
        ends = np.cumsum([0, *(3 * size for size in sizes)]).tolist()
        self.places, self.size = [slice(a, b) for a, b in pairwise(ends)], ends[-1] + 1  # x, z, v, z, v, ... z and 1
        self.x, self.v, self.z = self.places[0], self.places[::2], self.places[1::2]
        self.a, self.b, self.d = (self.z[-1].start + kind * sizes[-1] for kind in (LEFT, RIGHT, DIFFERENCE))
        self.compared = slice(self.d + 1, self.size - 1) if is_beside else slice(2 * self.width, 3 * self.width)
        self.limits = sum(len(person.b) for person in self.people)
        self.count = sum(sizes) + 2 * sum(layer.height for layer in self.layers) + len(self.matrix) + self.limits
        self.equations = None  # written once there is an argument
        require(18 * self.layers[0].weight.size <= WIDEST, "the network is too wide to be checked")
        w, o = self.layers[0].weight, 0 * self.layers[0].weight
        rows = np.concatenate([np.stack(row, axis=1) for row in ((w, o, o), (o, w, o), (o, o, w))])
        self.first = np.concatenate([-rows, rows])  # what the first layer makes of left, right and difference

    def build(self):
        """Write down the equations that arguments multiply, a row each, as `Part.bound` lists them."""
        require(self.count * self.size <= WIDEST, "the network is too wide for a proof")
        matrix, at = np.zeros((self.count, self.size), dtype=self.matrix.dtype), 0
        for place in self.places:
            one = np.eye((place.stop - place.start) // 3, dtype=int)
            matrix[at : at + len(one), place] = np.hstack([-one, one, one])
            at += len(one)
        for layer, v, z in zip(self.layers, self.v, self.z):
            rows = matrix[at : at + 2 * layer.height]
            rows[:, v.start : v.start + 2 * layer.width] = np.kron(np.eye(2, dtype=int), layer.weight)
            rows[:, z.start : z.start + 2 * layer.height] = -np.eye(2 * layer.height, dtype=int)
            rows[:, -1] = np.tile(layer.bias, 2)
            at += len(rows)
        matrix[at : at + len(self.matrix), self.compared] = -self.matrix
        at += len(self.matrix)
        for side, person in enumerate(self.people):
            rows = matrix[at : at + len(person.b)]
            rows[:, side * self.width : (side + 1) * self.width], rows[:, -1] = -array(person.A), array(person.b)
            at += len(rows)
        self.equations = matrix, abs(matrix)

    def by_group(self, c):
        """Return the largest number of each group, row by row."""
        return np.maximum.reduceat(c[..., self.grouped], self.starts, axis=-1)

    def tangents(self, t, b, low, high):
        """Return lines a >= slope b + offset that hold for every pair of logits with a gap of t (times factor) or more.

        Straight score: a - b >= t. Sigmoid: a >= g(b) = logit(sigmoid(b) + t), which is convex for 0 <= t < 1, because
        g' = s(1-s) / ((s+t)(1-s-t)) grows with s = sigmoid(b); so every tangent is below it, and so is a = b.
        """
        if not self.is_curved:
            return array(np.ones(len(b))), array(np.full(len(b), t))
        require(0.0 <= t < 1.0, "a threshold is not between 0 and 1")
        s, r = sigmoid(b), sigmoid(-b)
        p, q = s + t, r - t
        slope, value = s * r / (p * q), np.log(p) - np.log(q)
        wide = 1 + abs(value) + slope * (max(abs(low), abs(high)) + 2 * abs(b))
        offset = value - slope * b - 2.0**-46 * (1 / p + 1 / q + 2) * wide
        return array(np.where((q > 1e-10) & (p > 1e-200), [slope, offset], [np.ones(len(b)), np.zeros(len(b))]))

    def gap(self, t, slack):
        """Bound the gap if a - g(b) <= slack: t if slack < 0, else t + slack if straight, else t + h(p) as follows.

        A pair with a = g(b) + slack has a gap of t + h(p), h(p) = sigmoid(logit(p) + slack) - p, p = sigmoid(b) + t.
        h is concave with its top at sigmoid(-slack / 2), so for p >= t it is largest there, or at t if that is beyond.
        """
        more = slack
        if slack < 0:
            return self.factor * t
        if self.is_curved:
            s = min(max(slack, 0.0), 1e3)  # a gap beyond that of 1e3 logits is no larger to 1e-400
            p = max(t, float(sigmoid(-s / 2)))
            more = p * (1 - p) * -math.expm1(-s) / (p + (1 - p) * math.exp(-s))
        return self.factor * (t + more + 1e-13 * (abs(t) + more))


# ---- the proof


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

    def vector(self, length):
        """Read numbers many of which are 0: a bit for each, then those that are not."""
        bits = np.unpackbits(np.frombuffer(self.take((length + 7) // 8), np.uint8), bitorder="little")[:length]
        out = np.zeros(length)
        out[bits == 1] = np.frombuffer(self.take(8 * int(bits.sum())), "<f8")
        require(np.isfinite(out).all(), "a number of the proof is not finite")
        return out


class Arguments:
    """Arguments side by side: multipliers, and what each bounds: sign times a number of a pair, or nothing (sign 0)."""

    def __init__(self, stream, inner):
        self.t, lines, count = stream.unpack("<dHH")
        require(8 * count * inner.size <= WIDEST and (math.isfinite(self.t) or not lines), "odd arguments")
        self.points, self.targets = stream.vector(lines), [stream.unpack("<Ib") for _ in range(count)]
        require(all(k < inner.size - 1 and sign in (-1, 0, 1) for k, sign in self.targets), "about no number")
        flat = array([stream.vector(lines + inner.count) for _ in range(count)]).reshape(count, -1)
        self.weights, self.y, mu = np.maximum(flat[:, :lines], 0), flat[:, lines:], inner.count - inner.limits
        self.y[:, mu:] = np.maximum(self.y[:, mu:], 0)  # of what is >= 0, not = 0
        self.mu = self.y[:, mu - len(inner.matrix) : mu]


class Part:
    """Some of the pairs: a box of all their numbers, of left, right and difference stage by stage.

    `since` is the largest threshold of the arguments used: the box holds for all pairs with a gap of that or more.
    `cap` bounds the gap of all pairs of the part. `differ` marks the groups whose category is not the same in both.
    """

    def __init__(self, inner):
        self.inner, self.since, self.cap, self.alive, self.stale = inner, -INF, INF, True, True
        self.differ, self.slopes = np.zeros(len(inner.one.groups), dtype=bool), []
        self.box = np.full((2, inner.size), [[-INF], [INF]]).astype(inner.matrix.dtype)
        self.box[:, -1] = 1
        left, right = (array(person.box) for person in inner.people)
        d = minus(left, right)
        d = np.where(left - right[::-1] == 0, 0 * d, d)  # rounding must not widen what is one value
        d[:, inner.grouped] = np.minimum(np.maximum(d[:, inner.grouped], -1), 1)
        self.box[:, inner.x] = np.concatenate([left, right, d], axis=1)

    def copy(self):
        twin = object.__new__(Part)
        twin.__dict__.update(self.__dict__, box=self.box.copy(), differ=self.differ.copy(), stale=True)
        return twin

    def triple(self, place):
        """Return the boxes of left, right and difference: [low or high, which of the three, number]."""
        return self.box[:, place].reshape(2, 3, -1)

    def settle(self):
        """Carry intervals through the network until they hardly shrink; no value left of a number: no pair is here."""
        for _ in range(PASSES if self.alive and self.stale else 0):
            before = self.box.copy()
            self.alive = self.carry()
            self.limit(self.gap() if self.alive else -INF)
            if not self.alive or (abs(self.box - before) <= 1e-9 * (1 + abs(before))).all():
                break
        self.stale = False

    def carry(self):
        """Carry all intervals through the network once, and tell whether every number has a value left.

        left - right = difference, of x and of z; f(z_left) - f(z_right) = s dz with s a difference quotient of f.
        """
        inner = self.inner
        self.box[:, inner.x] = agreed(*self.triple(inner.x).swapaxes(0, 1)).reshape(2, -1)
        if (self.people(0 * inner.first[:1]) == -INF).any():  # a group has no category left, or no change
            return False
        low, high = upper_sum(self.people(inner.first)).reshape(2, 3, -1)
        z, self.slopes = np.array([-low, high]), []
        for k, (layer, place) in enumerate(zip(inner.layers, inner.z)):
            bias = np.stack([layer.bias, layer.bias, 0 * layer.bias])
            z = layer.affine(self.triple(inner.v[k]), bias) if k else minus(z, [-bias, -bias])
            z = agreed(*meet(self.triple(place), z).swapaxes(0, 1))
            if layer.twins is not None:
                z[0] = np.where(layer.twins, z[0][:, None], -INF).max(axis=-1)
                z[1] = np.where(layer.twins, z[1][:, None], INF).min(axis=-1)
            self.box[:, place] = z.reshape(2, -1)
            if k + 1 < len(inner.layers):
                both, slopes = layer.values(z[:, :2]), layer.each(quotients, z[0, :2].min(axis=0), z[1, :2].max(axis=0))
                ends = np.stack([s * end for s in slopes for end in z[:, DIFFERENCE]])
                dv = meet([-up(-ends.min(axis=0)), up(ends.max(axis=0))], minus(both[:, LEFT], both[:, RIGHT]))
                self.box[:, inner.v[k + 1]] = np.concatenate([both, dv[:, None]], axis=1).reshape(2, -1)
                self.slopes.append(slopes)
        return not (self.box[0] > self.box[1]).any()

    def gap(self):
        """Bound the gap by the intervals of the logits and of their difference."""
        inner, (low, high) = self.inner, self.box.astype(np.float64)
        apart = inner.gap(0.0, high[inner.d])
        scores = (sigmoid(high[inner.a]) - sigmoid(low[inner.b])) * (1 + 1e-13) + 1e-13
        # max and min in this order: what is no number bounds nothing.
        return min(apart, inner.factor * max(scores, 0.0)) if inner.is_curved else apart

    def limit(self, gap):
        """Take a bound of the gap that holds for the pairs within the box; the others have one below `since`."""
        self.cap = min(self.cap, max(gap, self.inner.factor * self.since))

    def people(self, c):
        """Return numbers whose sum bounds c.(left, right, difference) over the people of this part, row by row.

        In a group one category of each person has its 1; the difference is 0, or 1 in one column and -1 in another.
        """
        inner, x = self.inner, self.triple(self.inner.x)
        total = [up(np.maximum(c * x[0], c * x[1]))[..., inner.numbers].reshape(len(c), -1)]
        if len(inner.grouped):
            people, (low, high), d = np.where(x[1, :2] > 0.5, c[:, :2], -INF), x[:, DIFFERENCE], c[:, DIFFERENCE]
            gain, lose = inner.by_group(np.where(high >= 1, d, -INF)), inner.by_group(np.where(low <= -1, -d, -INF))
            stays = ~inner.by_group((low > 0) | (high < 0)) & ~self.differ
            total.append(inner.by_group(people).reshape(len(c), -1))
            change = np.maximum(gain + lose, np.where(stays, 0, -INF))
            total.append(np.where(change > -INF, up(change), -INF))
        return np.concatenate(total, axis=1)

    def bound(self, given):
        """Bound  sum_i weight_i (a - slope_i b - offset_i) + target  from above over the pairs of this part.

        a, b are the logits; each bracket is >= 0 for a pair with a gap of t; the target is a number of the pair with a
        sign, or nothing. Added to this, times ANY multipliers, are

            d - x_left + x_right = 0, the same of every z and v       W v + bias - z = 0, left and right, of every layer
            w - A d = 0, A being the metric's (multipliers mu)        b - A x >= 0, left and right: the side constraints

        (the last times numbers >= 0). That adds nothing, or what is not below 0. What then multiplies each number is
        known, and the sum is bounded piece by piece: x and d by `people`, v = f(z) with z by `top`, dv with dz by
        `apart`, mu.w by Hoelder's eps ||mu||_q, 1/p + 1/q = 1 (a smaller q only makes it larger). What a coefficient
        may be off by, being a float, counts times the largest value of what it multiplies.
        """
        inner, count = self.inner, len(given.targets)
        if inner.equations is None:
            inner.build()
        equations, of_equations = inner.equations
        lines = np.zeros((len(given.points), inner.size), dtype=given.y.dtype)
        target = np.zeros((count, inner.size), dtype=given.y.dtype)
        if len(lines):
            slope, offset = inner.tangents(given.t, given.points, *map(float, self.box[:, inner.b]))
            lines[:, inner.a], lines[:, inner.b], lines[:, -1] = 1, -slope, -offset
        target[range(count), [k for k, _ in given.targets]] = [sign for _, sign in given.targets]
        c = target + given.weights @ lines + given.y @ equations
        sizes = abs(target) + given.weights @ abs(lines) + abs(given.y) @ of_equations
        total = [error(inner.count + len(lines), sizes) * abs(self.box).max(axis=0), c[:, -1:]]
        total.append(self.people(c[:, inner.x].reshape(count, 3, -1)))
        for k, layer in enumerate(inner.layers[:-1]):
            z, v = self.triple(inner.z[k]), self.triple(inner.v[k + 1])
            p, q = (c[:, place].reshape(count, 3, -1) for place in (inner.v[k + 1], inner.z[k]))
            total.append(layer.each(top, p[:, :2], -q[:, :2], *z[:, :2]))
            total.append(apart(p[:, DIFFERENCE], -q[:, DIFFERENCE], self.slopes[k], z[:, DIFFERENCE], v[:, DIFFERENCE]))
        total.append(up((c * self.box[:, None]).max(axis=0)[:, inner.z[-1]]))
        q = INF if inner.p == 1.0 else 1.0 if inner.p == INF else max(1.0, inner.p / (inner.p - 1.0) * (1 - 1e-14))
        total.append(array(inner.eps * norm(given.mu, 2.0 if inner.p == 2.0 else q))[:, None])
        upper = upper_sum(np.concatenate([terms.reshape(count, -1) for terms in total], axis=1))
        return [value if math.isfinite(value) else INF for value in upper]

    def use(self, given):
        """Take what arguments show: a bound of a number for all pairs with a gap of t or more, or of the gap."""
        t, width = given.t if len(given.points) else -INF, self.inner.width
        for value, (k, sign), weights in zip(self.bound(given) if self.alive else (), given.targets, given.weights):
            if sign == 0:
                weight = float(weights.sum()) * (1 - 1e-12)
                self.limit(self.inner.gap(t, -1.0 if value < 0 else float(value) / weight if weight > 0 else INF))
                continue
            value = self.inner.one.whole(k - 2 * width, value) if 2 * width <= k < 3 * width else value
            self.narrow(k, sign > 0, sign * value)
            self.since = max(self.since, t)

    def narrow(self, k, is_upper, value):
        """Move one end of an interval inward."""
        side, best = int(is_upper), min if is_upper else max
        self.box[side, k], self.stale = best(self.box[side, k], value), True


def split(stream, tag, part):
    """Return the two parts of a split, which together cover it."""
    inner, halves = part.inner, [part.copy(), part.copy()]
    if tag == b"Z":  # a number up to a value, or from it on
        k, value = stream.unpack("<Id")
        require(k < inner.size - 1 and math.isfinite(value), "a split of no number")
        steps = k < 2 * inner.width and k % inner.width in inner.one.steps
        for half, is_upper in zip(halves, (True, False)):
            end = inner.one.on_grid(k % inner.width, value, is_upper) if steps else value
            half.narrow(k, is_upper, array(end)[()] if math.isfinite(end) else end)
        return halves
    require(tag in (b"C", b"S"), "the proof has a step that is none")
    side, group = stream.unpack("<BH")
    require(side < 3 and group < len(inner.one.groups), "a split of no group")
    columns = inner.one.groups[group]
    if tag == b"C":  # one person's categories: some, or the others
        shown = np.frombuffer(stream.take(columns.stop - columns.start), np.uint8) == 1
        for half, some in zip(halves, (shown, ~shown)):
            box = half.triple(inner.x)[:, side % 2, columns]
            box[1, ~some] = 0
            if (box[1] > 0.5).sum() == 1:
                box[0, box[1] > 0.5] = 1
    else:  # another category on the left than on the right, or the same
        halves[0].differ[group] = True
        halves[1].triple(inner.x)[:, DIFFERENCE, columns] = 0
    return halves


def read_tree(stream, inner):
    """Walk the tree, depth first, and return the largest gap it leaves."""
    worst, todo = -INF, [Part(inner)]
    while todo:
        part = todo.pop()
        part.settle()
        while (tag := stream.take(1)) == b"A":
            part.use(Arguments(stream, inner))
            part.settle()
        if tag == b"E":
            worst = max(worst, part.cap)
        else:
            require(len(todo) < DEEPEST, "the tree is too deep")
            todo += split(stream, tag, part)[::-1]
    require(not stream.file.read(1), "the proof goes on after its end")
    return worst


# ---- the file


def unpacked(content):
    """Return the arrays of an npz; nothing is unpickled."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        refuse_large(arrays.zip)
        found = dict(arrays)
    numbers = {name for name, values in found.items() if values.dtype.kind != "U"}
    return found | {name: found[name].astype("<f8", casting="same_kind") + 0.0 for name in numbers}


def refuse_large(archive):
    if sum(entry.file_size for entry in archive.infolist() if not entry.filename.startswith("proof/")) > LIMIT:
        raise ValueError(f"it unpacks to more than {LIMIT >> 20} MiB")


def model_digest(path, manifest):
    """Return the digest of the network of a model file (npz: W0, b0, ..., activations) that a certificate is about."""
    with open(path, "rb") as file:
        arrays = unpacked(file.read(LIMIT))
    count = sum(name[0] == "W" for name in arrays)
    names = [str(n) for n in arrays.get("activations", ["relu"] * (count - 1) + ["sigmoid"])]
    layers = [Layer(arrays[f"W{i}"], arrays[f"b{i}"], [names[i]] * len(arrays[f"b{i}"])) for i in range(count)]
    k = int(manifest.get("output", 0)) if layers[-1].height > 1 else 0
    kind = "identity" if manifest.get("scale") == "logit" else names[-1]
    return network_digest([*layers[:-1], Layer(*(a[[k]] for a in layers[-1].floats), [kind])])


def lower_bound(manifest, arrays):
    """Return the gap of the pair, rounded down, if both people exist and are similar: in rationals as far as can be."""
    question, one, other = Question(manifest, arrays), arrays["witness_left"], arrays["witness_right"]
    EXACT[0] = True
    require(question.left.holds(one), "the left person of the pair is not in the domain")
    require(question.right.holds(other), "the right person of the pair is not in the domain")
    EXACT[0] = question.p in (1.0, 2.0, 3.0, INF) and all(layer.is_straight for layer in question.phi)
    require(Question(manifest, arrays).is_within(one, other), "the pair is not within eps")
    EXACT[0] = False
    low, high = minus(enclosed(question.layers, one), enclosed(question.layers, other))
    return max(0.0, float(low[0]), -float(high[0]))


def upper_bound(question, proof, archive):
    """Return the largest gap that is left, over both directions if the two domains differ."""
    uppers, eps = [], float(proof.get("eps", question.eps))
    require(eps >= question.eps, "the proof is for a smaller eps")
    question.eps = eps
    for k, swapped in enumerate([False] if question.symmetric else [False, True]):
        root = Part(Inner(question, swapped))
        require(not EXACT[0] or all(layer.is_straight for layer in root.inner.layers), "--exact is for straight pieces")
        root.settle()
        uppers.append(root.cap)
        for direction in (proof.get("directions") or [])[k : k + 1]:
            with archive.open(str(direction["file"])) as file:
                stream = Stream(io.BufferedReader(file))
                uppers[k] = min(uppers[k], read_tree(stream, root.inner))
            require(stream.sha.hexdigest() == direction["sha256"], "the proof does not match its digest")
    return max(0.0, *uppers)


def derive(found, archive, model, network, exact):
    """Derive both bounds from a certificate, and write them, and what they rest on, into `found`."""
    refuse_large(archive)
    manifest, arrays = json.loads(archive.read("manifest.json")), unpacked(archive.read("arrays.npz"))
    if manifest["format"] != "likewise certificate" or manifest["version"] not in (1, 2, 3, 4):
        raise ValueError("its manifest is not that of a likewise certificate of version 1 to 4")
    low, high = float(manifest["lower"]), INF if manifest["upper"] is None else float(manifest["upper"])
    found["claimed"], digests = [low, high], Question(manifest, arrays).digests()
    for name, digest in digests.items():
        require(manifest["digests"][name] == digest, f"the {name} does not match its digest")
    given = network if model is None else model_digest(model, manifest)
    require(given in (None, digests["network"]), "the model is another network than the certificate's")
    found["lower"] = lower_bound(manifest, arrays)
    require(found["lower"] >= low - 1e-9 * max(1.0, low), f"the pair shows only {found['lower']:.9g}")
    EXACT[0] = bool(exact)
    proof = manifest["proof"] if manifest["version"] == 4 else {}  # before, there was none, or one of another form
    found["upper"] = upper_bound(Question(manifest, arrays), proof, archive)
    if not found["upper"] <= high + CLOSE * max(1.0, high):
        require(proof.get("kind") != "tree", f"the proof shows only an upper of {found['upper']:.9g}")
        found["trusted"] = [*map(str, manifest["trusted"] or ["the engine: the certificate has no proof"])]
    found["code"] = 20 if found["trusted"] else 0


def check(path, model=None, exact=False, network=None):
    """Check a certificate and return {ok, lower, upper, trusted, reasons, code, claimed}.

    `model` is the path of an npz file, `network` the digest of a network: each must be the certificate's own.
    """
    found = {"lower": 0.0, "upper": INF, "claimed": [0.0, INF], "trusted": [], "reasons": [], "code": 10}
    EXACT[0] = False
    try:
        with np.errstate(all="ignore"), zipfile.ZipFile(path) as archive:
            derive(found, archive, model, network, exact)
    except Refused as reason:
        found["reasons"] = [str(reason)]
    except Exception as fault:  # noqa: BLE001 - whatever a file that is none of ours makes the libraries raise
        found |= {"code": 2, "reasons": [f"cannot read {path}: {type(fault).__name__}: {fault}"[:300]]}
    return found | {"ok": found["code"] == 0}


def main(argv=None):
    parser = argparse.ArgumentParser(description="Check a likewise certificate, without likewise.")
    parser.add_argument("certificate", metavar="FILE.cert")
    parser.add_argument("model", nargs="?", metavar="MODEL.npz", help="is this the network that it is about?")
    parser.add_argument("--exact", action="store_true", help="rational arithmetic, for small straight networks")
    options = parser.parse_args(argv)
    found = check(options.certificate, options.model, options.exact)
    print({0: "verified", 10: "refused", 20: "rests on trust", 2: "unreadable"}[found["code"]])
    for name in ("lower", "upper", "claimed", "trusted", "reasons"):
        print(f"  {name:8}  {found[name]}")
    return found["code"]


if __name__ == "__main__":
    sys.exit(main())
