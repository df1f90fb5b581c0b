#!/usr/bin/env python3
"""Check a likewise certificate without likewise: `python likewise_checker.py FILE.cert [MODEL.npz]`.

A certificate claims: two people of the domain whose distance is at most eps are scored at most `upper` apart, and one
such pair is scored at least `lower` apart. This file needs Python and numpy, imports nothing of likewise, and derives
both numbers again from what is in the certificate: the question (weights, domain, metric, eps: float64 numbers, read as
the real numbers they are), the pair, and a proof of `upper`.

The proof is a tree of parts of all pairs (left, right). A part has intervals for what enters every neuron: z of the
left person, z of the right one, and dz = z_left - z_right. At the root they come from interval arithmetic. A split cuts
an interval, a group's categories or an integer in two, so that both parts cover the part; a lemma narrows an interval,
and is verified first; a leaf bounds the gap of the pairs of its part. Lemmas and leaves are *arguments*: multipliers.
Any multipliers prove something: `Part.bound` says what, and why. docs/certificate-format.md has the bytes.

Rounding: a number computed from floats by n additions and products whose absolute values add up to m is off by less
than (n + 8) 2^-52 m + 1e-290 (Higham, section 3.1; twice the usual factor, because m is a float sum itself, and 1e-290
for underflow): `error`. exp, log, tanh, erfc are trusted to 2^-48 (1 + |value|). With --exact, networks of straight
pieces are checked in rational arithmetic, where `error` is 0; norms, exp, log are then still floats, rounded outward.

Exit codes: 0 verified, 10 refused, 20 `upper` rests on something that this file cannot check, 2 unreadable.
"""

import argparse, hashlib, io, json, math, struct, sys, zipfile
from fractions import Fraction
from itertools import pairwise

import numpy as np

INF, LEFT, RIGHT, DZ = math.inf, 0, 1, 2
LIMIT = 1 << 30  # bytes that a question, or a model, may unpack to; the proof is read as a stream
DEEPEST = 10_000  # parts on a path of the tree
PASSES = 12  # of intervals through the network, at most
CLOSE = 1e-6  # how far a claimed upper may be below the one derived here, relative to 1 or to itself
LIBRARY = 2.0**-48
EXACT = [False]  # whether this run computes with rationals

class Refused(Exception): """The certificate says something that is not so."""
class Unreadable(Exception): """The file is no certificate."""

def require(condition, reason):
    if not condition: raise Refused(reason)

# ---- arithmetic. A box is an array [lows, highs].

def array(values):
    """Return numbers to compute with: floats, or the rationals that they are."""
    plain = np.array(values, dtype=np.float64)
    return np.asarray(np.frompyfunc(Fraction, 1, 1)(plain), dtype=object) if EXACT[0] else plain

def error(terms, size, exact=None):
    """Bound what rounding may have done to a sum of `terms` products whose absolute values add up to `size`."""
    return 0 * size if (EXACT[0] if exact is None else exact) else (terms + 8) * 2.0**-52 * size + 1e-290

def up(x): return x + error(0, abs(x))
def down(x): return x - error(0, abs(x))
def meet(a, b): return np.array([np.maximum(a[0], b[0]), np.minimum(a[1], b[1])])
def plus(a, b): return np.array([down(a[0] + b[0]), up(a[1] + b[1])])
def minus(a, b): return np.array([down(a[0] - b[1]), up(a[1] - b[0])])
def largest(box): return np.maximum(abs(box[0]), abs(box[1]))
def corner(c, box): return up(np.maximum(c * box[0], c * box[1]))  # the largest c x over a box, one by one
def dot(row, exact): return sum((Fraction(a) * x for a, x in zip(row, exact) if a and x), Fraction(0))

def upper_sum(parts):
    """Bound the sum of all numbers of some arrays."""
    flat = np.concatenate([np.atleast_1d(part) for part in parts])
    return flat.sum() + error(2 * len(flat), abs(flat).sum())

def norm(values, p):
    """Return the p-norm of floats, without overflow, up to a relative 4e-15 for each of them and 8 more."""
    peak = float(abs(values).max(initial=0.0))
    return peak if peak == 0.0 or p == INF else peak * float(((abs(values) / peak) ** p).sum()) ** (1 / p)

# ---- activations: straight ones as pieces (from, to, slope, offset); curved ones with their slope, the places where
# ---- convexity turns, and whether each stretch is convex (the turns of silu, z tanh(z/2) = 2, are rounded: f is flat
# ---- to 1e-45 in between). The slope at a kink is the one on its right.

STRAIGHT = {
    "identity": [(-INF, INF, 1, 0)],
    "relu": [(-INF, 0, 0, 0), (0, INF, 1, 0)],
    "leaky_relu": [(-INF, 0, Fraction(0.01), 0), (0, INF, 1, 0)],
    "relu6": [(-INF, 0, 0, 0), (0, 6, 1, 0), (6, INF, 0, 6)],
    "hardtanh": [(-INF, -1, 0, -1), (-1, 1, 1, 0), (1, INF, 0, 1)],
    "hardsigmoid": [(-INF, -3, 0, 0), (-3, 3, Fraction(1, 6), Fraction(1, 2)), (3, INF, 0, 1)],
}
ERFC, SELU, SELU_LEFT = np.frompyfunc(math.erfc, 1, 1), 1.0507009873554805, 1.7580993408473766

def sigmoid(z): return np.where(z < 0, np.exp(-abs(z)), 1.0) / (1.0 + np.exp(-abs(z)))
def bump(z): return np.exp(-abs(z)) / (1.0 + np.exp(-abs(z))) ** 2
def normal(z): return 0.5 * np.asarray(ERFC(np.asarray(-z * math.sqrt(0.5))), dtype=np.float64)
def bell(z): return np.exp(-np.clip(z, -40, 40) ** 2 / 2) / math.sqrt(2 * math.pi)
def left(z): return np.minimum(z, 0.0)

CURVED = {
    "sigmoid": (sigmoid, bump, (0.0,), (True, False)),
    "tanh": (np.tanh, lambda z: 4 * bump(2 * z), (0.0,), (True, False)),
    "softsign": (lambda z: z / (1 + abs(z)), lambda z: (1 + abs(z)) ** -2.0, (0.0,), (True, False)),
    "softplus": (lambda z: np.maximum(z, 0) + np.log1p(np.exp(-abs(z))), sigmoid, (), (True,)),
    "elu": (lambda z: np.where(z < 0, np.expm1(left(z)), z), lambda z: np.exp(left(z)), (0.0,), (True, True)),
    "selu": (lambda z: np.where(z < 0, SELU_LEFT * np.expm1(left(z)), SELU * z),
             lambda z: np.where(z < 0, SELU_LEFT * np.exp(left(z)), SELU), (0.0,), (True, True)),
    "silu": (lambda z: z * sigmoid(z), lambda z: sigmoid(z) * (1 + z * sigmoid(-z)),
             (-2.3993572805154675, 2.3993572805154675), (False, True, False)),
    "gelu": (lambda z: z * normal(z), lambda z: normal(z) + np.clip(z, -40, 40) * bell(z),
             (-math.sqrt(2.0), math.sqrt(2.0)), (False, True, False)),
}

def top(name, p, c, low, high):
    """Bound p f(z) - c z over low <= z <= high, one by one."""
    best = np.full(low.shape, -INF, dtype=low.dtype)
    if name in STRAIGHT:  # on each piece it is linear: the ends decide
        for start, stop, slope, offset in STRAIGHT[name]:
            slope, offset = (slope, offset) if EXACT[0] else (float(slope), float(offset))
            a, b = np.maximum(low, start), np.minimum(high, stop)
            for z in (a, b):
                off = error(4, abs(p) * (abs(slope * z) + abs(offset)) + abs(c * z))
                value = p * (slope * z + offset) - c * z + off
                best = np.where((a <= b) & (value > best), value, best)
        return best
    require(not EXACT[0], f"--exact is for activations of straight pieces, not {name}")
    f, slope, turns, shapes = CURVED[name]
    for start, stop, convex in zip((-INF, *turns), (*turns, INF), shapes):
        a, b = np.maximum(low, start), np.minimum(high, stop)
        inside = a <= b
        a, b = np.where(inside, a, low), np.where(inside, b, low)
        found = np.maximum(at(f, p, c, a), at(f, p, c, b))
        bent = inside & (a < b) & ((p < 0) if convex else (p > 0))  # there p f is concave: below its tangents
        if bent.any(): found[bent] = below_tangent(f, slope, p[bent], c[bent], a[bent], b[bent])
        best = np.where(inside, np.maximum(best, found), best)
    return best

def at(f, p, c, z):
    value = f(z)
    return p * value - c * z + abs(p) * LIBRARY * (1 + abs(value)) + error(2, abs(p * value) + abs(c * z))

def below_tangent(f, slope, p, c, a, b):
    """Bound p f - c z on [a, b], where it is concave, by its tangent at about the highest point; any point would do."""
    low, high = a, np.maximum(np.nextafter(b, -INF), a)  # the slope at the right end is that on its left
    falls, rises = p * slope(low) - c <= 0, p * slope(high) - c >= 0
    low, high = np.where(rises, high, low), np.where(falls, low, high)
    while np.max(high - low - 1e-10 * (1 + abs(low))) > 0:
        z = low + (high - low) / 2
        rises = p * slope(z) - c > 0
        low, high = np.where(rises, z, low), np.where(rises, high, z)
    g = slope(low)
    off = (abs(p) * LIBRARY * (1 + abs(low)) + error(2, abs(p * g) + abs(c))) * (b - a)
    return at(f, p, c, low) + up(np.maximum((p * g - c) * (a - low), (p * g - c) * (b - low)) + 2 * off)

def quotients(name, low, high):
    """Bound all difference quotients (f(z) - f(z')) / (z - z') over low <= z, z' <= high."""
    box = np.array([np.full(low.shape, INF), np.full(low.shape, -INF)]).astype(low.dtype)
    if name in STRAIGHT:
        for start, stop, slope, _ in STRAIGHT[name]:
            touches = ((low < stop) & (high > start)) | ((low == high) & (low >= start) & (low <= stop))
            one, off = Fraction(slope) if EXACT[0] else float(slope), 0 if EXACT[0] or slope in (0, 1) else 1e-16
            box[0][touches & (box[0] > one - off)], box[1][touches & (box[1] < one + off)] = one - off, one + off
        return box
    _, slope, turns, _ = CURVED[name]
    points = [low, np.maximum(np.nextafter(high, -INF), low)]
    for z in points + [np.clip(end, *points) for turn in turns for end in (turn, np.nextafter(turn, -INF))]:
        off = LIBRARY * (1 + abs(z)) + error(2, abs(slope(z)))
        box = np.array([np.minimum(box[0], slope(z) - off), np.maximum(box[1], slope(z) + off)])
    return box

def apart(k, c, slopes, dz, dv):
    """Bound k dv - c dz over dz and dv = s dz in their intervals, s within the slopes.

    For k > 0 the largest dv at a dz is min(max(s0 dz, s1 dz), dv1): it bends at 0 and where it meets dv1, so these and
    the ends decide; for k < 0 the same is true of -dv.
    """
    s0, s1 = (np.where(k < 0, -a, b) for a, b in (slopes[::-1], slopes))
    most, size, steep = np.where(k < 0, -dv[0], dv[1]), abs(k), largest((s0, s1))
    meets = [np.where(s != 0, most / np.where(s != 0, s, s + 1), s) for s in (s0, s1)]
    best = np.full(k.shape, -INF, dtype=k.dtype)
    for point in (dz[0], dz[1], 0 * most, *meets):
        z = np.minimum(np.maximum(point, dz[0]), dz[1])
        value = size * np.minimum(np.maximum(s0 * z, s1 * z), most) - c * z
        best = np.maximum(best, value + error(8, (size * steep + abs(c)) * abs(z)))
    return best

# ---- the question

class Layer:
    def __init__(self, weight, bias, names):
        require(weight.ndim == 2 and bias.shape == weight.shape[:1] == (len(names),), "a layer has odd shapes")
        require(np.isfinite(weight).all() and np.isfinite(bias).all(), "a weight is not finite")
        require(all(name in STRAIGHT or name in CURVED for name in names), "an activation is unknown")
        self.floats, self.names, (self.height, self.width) = (weight, bias), tuple(names), weight.shape
        self.weight, self.bias = array(weight), array(bias)
        self.plus, self.minus, self.size = np.maximum(self.weight, 0), np.minimum(self.weight, 0), abs(self.weight)
        self.kinds = [(name, np.flatnonzero(np.array(names) == name)) for name in dict.fromkeys(names)]
        same = np.unique(np.column_stack([weight, bias]), axis=0, return_inverse=True)[1].ravel()
        self.twins = [np.flatnonzero(same == k) for k in np.flatnonzero(np.bincount(same) > 1)]

    def affine(self, box, bias=1):
        """Bound weight v + bias over a box of v (without the bias if it is 0)."""
        off = error(2 * self.width + 2, self.size @ largest(box) + abs(self.bias))
        ends = [self.plus @ a + self.minus @ b + bias * self.bias for a, b in (box, box[::-1])]
        return np.array([ends[0] - off, ends[1] + off])

    def each(self, function, *arrays):
        """Apply a function of one activation to the neurons that have it."""
        if len(self.kinds) == 1: return function(self.names[0], *arrays)
        out = [(rows, function(name, *(a[rows] for a in arrays))) for name, rows in self.kinds]
        joined = np.empty_like(np.concatenate([found for _, found in out], axis=-1))
        for rows, found in out: joined[..., rows] = found
        return joined

    def values(self, box):
        """Bound the activations over a box of z."""
        one = 0 * box[0] + 1
        return np.array([-self.each(top, -one, 0 * one, *box), self.each(top, one, 0 * one, *box)])

def network_digest(layers):
    sha = hashlib.sha256(b"likewise network 1")
    for layer in layers:
        sha.update(repr((layer.floats[0].shape, layer.names)).encode())
        for numbers in layer.floats: sha.update(np.ascontiguousarray(numbers, dtype="<f8").tobytes())
    return sha.hexdigest()

class Domain:
    """Who can exist: bounds of each column, one 1 in each group, integers low + k step, constraints A x <= b."""

    def __init__(self, plain):
        self.digest = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
        self.groups, self.steps, self.names, low, high = [], {}, {}, [], []
        for feature in plain["features"]:
            start, kind = len(low), feature["kind"]
            require(kind in ("continuous", "integer", "one_hot"), f"a feature is of kind {kind!r}")
            self.names[start], count = str(feature["name"]), len(feature["values"]) if kind == "one_hot" else 1
            low += [0.0] * count if kind == "one_hot" else [float(feature["low"])]
            high += [1.0] * count if kind == "one_hot" else [float(feature["high"])]
            self.groups += [slice(start, len(low))] if kind == "one_hot" else []
            if kind == "integer":
                step = float(feature["step"])
                require(step > 0 and (high[-1] - low[-1]) / step < 2.0**52, "an integer has an odd step")
                self.steps[start] = (low[-1], step, round((high[-1] - low[-1]) / step))
        self.width, rows = len(low), plain.get("constraints") or {"A": [], "b": []}
        self.box = np.array([plain.get("lower", low), plain.get("upper", high)], dtype=np.float64)
        self.A, self.b = np.array(rows["A"], dtype=np.float64).reshape(-1, self.width), np.array(rows["b"], dtype=float)
        require(self.box.shape == (2, self.width) and self.b.shape == self.A.shape[:1], "a domain has odd shapes")
        require((self.box[0] <= self.box[1]).all(), "a column has no value")
        require(all(np.isfinite(a).all() for a in (self.box, self.A, self.b)), "a number is not finite")
        ends = [(c, float(end)) for c in self.steps for end in self.box[:, c]]
        require(all(self.on_grid(c, end, True) == end for c, end in ends), "an integer ends between two values")
        self.grouped = np.array([c for g in self.groups for c in range(g.start, g.stop)], dtype=int)
        self.numbers = np.setdiff1d(np.arange(self.width), self.grouped)

    def holds(self, x):
        """Tell whether a person exists, exactly."""
        exact, (low, high) = [Fraction(v) for v in x.tolist()], self.box
        return (x.shape == (self.width,) and bool(((x >= low) & (x <= high)).all())
                and all(set(x[g].tolist()) <= {0.0, 1.0} and x[g].sum() == 1.0 for g in self.groups)
                and all(self.on_grid(c, float(x[c]), True) == x[c] for c in self.steps)
                and all(dot(row, exact) <= Fraction(b) for row, b in zip(self.A.tolist(), self.b.tolist())))

    def on_grid(self, column, value, is_below):
        """Return the last value of an integer up to `value`, or the first from it on; nan if there is none."""
        low, step, count = self.steps[column]
        k = round(min(max((value - low) / step, -1), count + 1))
        near = [low + i * step for i in range(max(k - 2, 0), min(k + 2, count) + 1)]
        fit = [v for v in near if (v <= value if is_below else v >= value)]
        return (max(fit) if is_below else min(fit)) if fit else math.nan

class Question:
    """What a certificate is about."""

    def __init__(self, manifest, arrays):
        form = manifest["metric"]
        self.layers = self.chain(manifest["activations"], "", arrays)
        self.phi = None if form.get("phi") is None else self.chain(form["phi"], "phi_", arrays)
        self.left, self.right = Domain(manifest["left"]), Domain(manifest["right"])
        self.matrix, self.p, self.eps = arrays["metric"], float(form["p"]), float(manifest["eps"])
        require(self.p >= 1.0 and 0.0 <= self.eps < INF and np.isfinite(self.matrix).all(), "odd metric or eps")
        width = self.right.width if self.phi is None else self.phi[-1].height
        require(self.matrix.ndim == 2 and self.matrix.shape[1] == width, "the metric does not fit")
        widths = {self.layers[0].width, self.left.width, self.right.width, (self.phi or self.layers)[0].width}
        require(len(widths) == 1 and self.layers[-1].height == 1, "network and domain do not fit")
        require(manifest["left"]["features"] == manifest["right"]["features"], "there are two kinds of people")
        pairs = [(getattr(self.left, n), getattr(self.right, n)) for n in ("box", "A", "b")]
        self.symmetric = all(np.array_equal(one, other) for one, other in pairs)

    @staticmethod
    def chain(kinds, prefix, arrays):
        layers = [Layer(arrays[f"{prefix}W{i}"], arrays[f"{prefix}b{i}"], [*map(str, k)]) for i, k in enumerate(kinds)]
        require(layers and all(a.height == b.width for a, b in pairwise(layers)), "layers do not fit")
        return layers

    def digests(self):
        sha = hashlib.sha256(f"likewise metric 1 {self.p} {self.matrix.shape}".encode())
        sha.update(np.ascontiguousarray(self.matrix, dtype="<f8").tobytes())
        sha.update(b"" if self.phi is None else network_digest(self.phi).encode())
        parts = [network_digest(self.layers), self.left.digest, self.right.digest, sha.hexdigest()]
        whole = hashlib.sha256("\n".join([*parts, self.eps.hex()]).encode()).hexdigest()
        return dict(zip(("network", "left", "right", "metric", "problem"), [*parts, whole]))

    def within(self, one, other):
        """Tell whether d(one, other) <= eps: in rationals where all is rational, else by floats rounded outward."""
        chain = self.phi or []
        if self.p in (1.0, 2.0, 3.0, INF) and all(n in STRAIGHT for layer in chain for n in layer.names):
            d = [a - b for a, b in zip(rational(chain, one), rational(chain, other))]
            sizes, power = [abs(dot(row, d)) for row in self.matrix.tolist()], 1 if self.p == INF else int(self.p)
            length = max(sizes, default=0) if self.p == INF else sum(s**power for s in sizes)
            return length <= Fraction(self.eps) ** power
        low, high = minus(enclosed(chain, one), enclosed(chain, other)).astype(np.float64)
        off = error(2 * len(low), abs(self.matrix) @ largest((low, high)), exact=False)
        rises, falls = np.maximum(self.matrix, 0), np.minimum(self.matrix, 0)
        sizes = largest((rises @ low + falls @ high - off, rises @ high + falls @ low + off))
        return norm(sizes, self.p) * (1 + 4e-15 * (len(sizes) + 8)) <= self.eps

    def inner(self, swapped):
        """Return the question in logits, left and right exchanged or not: the one that the proof is about."""
        kind, (weight, bias) = self.layers[-1].names[0], self.layers[-1].floats
        layers, curved, factor = self.layers, False, 1.0
        if kind in ("sigmoid", "tanh"):  # tanh(z) = 2 sigmoid(2 z) - 1, and doubling floats is exact
            curved, factor = True, 1.0 if kind == "sigmoid" else 2.0
            layers = [*layers[:-1], Layer(factor * weight, factor * bias, ["identity"])]
        elif kind != "identity": layers = [*layers, Layer(np.ones((1, 1)), np.zeros(1), ["identity"])]
        matrix, eps, aside = self.matrix, self.eps, 0
        if self.phi is not None and all(set(layer.names) == {"identity"} for layer in self.phi):
            off = np.zeros_like(matrix)  # multiply a linear embedding out; eps gets room for the rounding of that
            for layer in reversed(self.phi):
                size = abs(layer.floats[0])
                off = off @ size + error(2 * layer.height, (abs(matrix) + off) @ size, exact=False)
                matrix = matrix @ layer.floats[0]
            room = off @ largest(self.left.box - self.right.box[::-1]) * (1 + 1e-9)
            eps = (eps + float(room.sum() if self.p < INF else room.max(initial=0.0))) * (1 + 2.0**-50)
        elif self.phi is not None: layers, aside = beside(layers, self.phi), self.phi[-1].height
        people = (self.right, self.left) if swapped else (self.left, self.right)
        return Inner(layers, people, (matrix, self.p, eps), aside, (curved, factor))

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

def rational(chain, person):
    """Return what straight layers make of a person, exactly."""
    x = [Fraction(v) for v in person.tolist()]
    for layer in chain:
        z = [dot(row, x) + Fraction(b) for row, b in zip(layer.floats[0].tolist(), layer.floats[1].tolist())]
        pieces = [next(p for p in STRAIGHT[name] if v <= p[1]) for v, name in zip(z, layer.names)]
        x = [slope * v + offset for v, (_, _, slope, offset) in zip(z, pieces)]
    return x

def enclosed(chain, person):
    """Bound what layers make of a person."""
    box = array([person, person])
    for layer in chain: box = layer.values(layer.affine(box))
    return box

class Inner:
    """One direction of a question, as its proof speaks of it."""

    def __init__(self, layers, people, metric, aside, score):
        self.layers, self.people, self.aside, (self.curved, self.factor) = layers, people, aside, score
        self.matrix, self.p, self.eps, self.one = array(metric[0]), metric[1], metric[2], people[0]
        self.rows, self.width = [(array(person.A), array(person.b)) for person in people], people[0].width
        self.starts = np.cumsum([0, *(g.stop - g.start for g in people[0].groups)])[:-1]
        heights = [layer.height for layer in layers for _ in range(4)]
        self.places = np.cumsum([0, *heights, self.width, len(self.matrix), *(len(person.b) for person in people)])

    def ball(self, nu, mu, box, with_groups=True):
        """Return numbers whose sum bounds nu.d over ||A d||_p <= eps, d in a box. For any mu (Hoelder):

        nu.d = mu.(A d) + (nu - A^T mu).d <= eps ||mu||_q + the largest (nu - A^T mu).d over the box, 1/p + 1/q = 1; a
        smaller q only makes it larger. Within a one-hot group d is 0, or 1 in one column and -1 in another.
        """
        rest, floats, columns = nu - mu @ self.matrix, np.array(mu, dtype=np.float64), self.one.grouped
        q = INF if self.p == 1.0 else 1.0 if self.p == INF else max(1.0, self.p / (self.p - 1.0) * (1 - 1e-14))
        size = self.eps * norm(floats, 2.0 if self.p == 2.0 else q) * (1 + 4e-15 * (len(floats) + 8))
        off, best = error(len(mu) + 2, abs(nu) + abs(mu) @ abs(self.matrix)) * largest(box), corner(rest, box)
        if with_groups and len(columns):
            c, (low, high) = rest[columns], box[:, columns]
            gain, lose = (np.maximum.reduceat(a, self.starts)
                          for a in (np.where(high >= 1, c, -INF), np.where(low <= -1, -c, -INF)))
            stays = np.minimum.reduceat((low <= 0) & (high >= 0), self.starts)
            for g, change, zero in zip(self.one.groups, gain + lose, stays):
                if zero or change > -INF:
                    best[g] = 0 * best[g]
                    best[g.start] = 0 * rest[0] if zero and not change > 0 else up(change)
        return np.concatenate([best, off, array([size])])

    def tangents(self, t, points, b_low, b_high):
        """Return lines a >= slope b + offset that hold for every pair of logits with a gap of t (times factor) or more.

        Straight score: a - b >= t. Sigmoid: a >= g(b) = logit(sigmoid(b) + t), which is convex for 0 <= t < 1, because
        g' = s(1-s) / ((s+t)(1-s-t)) grows with s = sigmoid(b); so every tangent is below it, and so is a = b.
        """
        if not self.curved: return array(np.ones(len(points))), array(np.full(len(points), t))
        require(0.0 <= t < 1.0 or not len(points), "a threshold is not between 0 and 1")
        lines = np.zeros((2, len(points)))
        for i, b in enumerate(points.tolist()):
            s, r = float(sigmoid(np.float64(b))), float(sigmoid(np.float64(-b)))
            p, q, lines[0, i] = s + t, r - t, 1.0
            if math.isfinite(b) and q > 1e-10 and p > 1e-200:
                slope, value = s * r / (p * q), math.log(p) - math.log(q)
                wide = 1 + abs(value) + slope * (abs(b_low) + abs(b_high) + 2 * abs(b))
                lines[:, i] = slope, value - slope * b - 2.0**-46 * (1 / p + 1 / q + 2) * wide
        return array(lines)

    def gap(self, t, slack):
        """Bound the gap if a - g(b) <= slack: t if slack < 0, else t + tanh(slack / 4), or t + slack if straight."""
        more = 0.0 if slack < 0 else math.tanh(slack / 4) if self.curved else slack
        return self.factor * t if slack < 0 else self.factor * (t + more + 1e-13 * (abs(t) + more))

class Argument:
    """Multipliers: see `Part.bound`."""

    def __init__(self, stream, inner):
        self.t, count = stream.unpack("<dH")
        self.points, self.weights = stream.floats(count), stream.floats(count)
        flat = array(stream.vector(int(inner.places[-1])))
        *layers, self.nu, self.mu, left_rows, right_rows = (flat[a:b] for a, b in pairwise(inner.places))
        self.layers, self.omega = [layers[k : k + 4] for k in range(0, len(layers), 4)], (left_rows, right_rows)
        require(all((w >= 0).all() for w in (self.weights, *self.omega)), "a multiplier has the wrong sign")
        require(np.isfinite(self.weights).all() and (count == 0 or math.isfinite(self.t)), "a number is not finite")

class Part:
    """Some of the pairs: a box of people on each side, of their differences d, and [z left, z right, dz] per layer.

    `since` is the largest threshold of the lemmas used: the boxes hold for all pairs with a gap of that or more. `cap`
    bounds the gap of all pairs of the part.
    """

    def __init__(self, inner):
        self.inner, self.since, self.cap, self.values = inner, -INF, INF, []
        self.x = [array(person.box) for person in inner.people]
        d = np.array([self.x[0][0] - self.x[1][1], self.x[0][1] - self.x[1][0]])
        self.d = np.where(d != 0, np.array([down(d[0]), up(d[1])]), d)
        groups = inner.one.grouped
        self.d[:, groups] = np.maximum(self.d[0, groups], -1), np.minimum(self.d[1, groups], 1)
        self.z = [np.array([[0 * a.bias - INF, 0 * a.bias + INF]] * 3, dtype=a.bias.dtype) for a in inner.layers]

    def copy(self):
        twin = object.__new__(Part)
        twin.__dict__.update(self.__dict__, x=[box.copy() for box in self.x], z=list(self.z))
        return twin

    def narrow(self, k, kind, side, value, j):
        """Move the lower (0) or upper (1) side of intervals inward."""
        self.z[k] = self.z[k].copy()
        edge = self.z[k][kind, side]
        edge[j] = np.maximum(edge[j], value) if side == 0 else np.minimum(edge[j], value)

    def enter(self):
        """Bound z of the first layer over the people and the differences; False if some column has no value left."""
        layer, one, everything = self.inner.layers[0], self.inner.one, slice(None)
        for side in (LEFT, RIGHT):
            allowed = [self.x[side][1, g] > 0.5 for g in one.groups]
            if not ((self.x[side][0] <= self.x[side][1]).all() and all(some.any() for some in allowed)): return False
            off = error(3 * layer.width, layer.size @ largest(self.x[side]) + abs(layer.bias))
            for end, sign in ((0, -1), (1, 1)):
                weight = sign * layer.weight
                best = corner(weight, self.x[side])[:, one.numbers].sum(axis=1) + sign * layer.bias + off
                best = best + sum(weight[:, g][:, some].max(axis=1) for g, some in zip(one.groups, allowed))
                self.narrow(0, side, end, sign * best, everything)
        self.z[0][DZ] = meet(self.z[0][DZ], layer.affine(self.d, bias=0))
        return True

    def settle(self):
        """Carry intervals through the network until they hardly shrink; False if some neuron has no value left."""
        for _ in range(PASSES):
            before = [z.copy() for z in self.z]
            if not self.carry(): return False
            if all((abs(a - b) <= 1e-9 * (1 + abs(b))).all() for a, b in zip(self.z, before)): break
        return True

    def carry(self):
        """Carry all intervals through the network once; False if some neuron is left without a value: no pair is here.

        z_left - z_right = dz in each neuron; f(z_left) - f(z_right) = s dz with s a difference quotient of f.
        """
        self.values = []
        for k, layer in enumerate(self.inner.layers):
            l, r, d = self.z[k]  # noqa: E741
            if k:
                vl, vr, dv, _ = self.values[-1]
                l = meet(l, layer.affine(vl))  # noqa: E741
                r, d = meet(r, layer.affine(vr)), meet(d, layer.affine(dv, bias=0))
            d = meet(d, minus(l, r))
            l = meet(l, plus(r, d))  # noqa: E741
            r = meet(r, minus(l, d))
            for box in (l, r) if layer.twins else ():  # the same weights and bias: the same z
                for rows in layer.twins:
                    box[:, rows] = [[max(box[0, rows])] * len(rows), [min(box[1, rows])] * len(rows)]
            self.z[k] = np.array([l, r, meet(d, minus(l, r))])
            d = self.z[k][DZ]
            if not (self.z[k][:, 0] <= self.z[k][:, 1]).all(): return False
            if k < len(self.inner.layers) - 1:
                vl, vr = layer.values(l), layer.values(r)
                slopes = layer.each(quotients, np.minimum(l[0], r[0]), np.maximum(l[1], r[1]))
                ends = [s * side for s in slopes for side in d]
                dv = meet([down(np.minimum.reduce(ends)), up(np.maximum.reduce(ends))], minus(vl, vr))
                if not (dv[0] <= dv[1]).all(): return False
                self.values.append((vl, vr, dv, slopes))
        self.limit(self.gap())
        return True

    def limit(self, gap):
        """Take a bound of the gap that holds for the pairs within the boxes; the others have one below `since`."""
        self.cap = min(self.cap, max(gap, self.inner.factor * self.since))

    def bound(self, argument, target=None):
        """Bound  sum_i weight_i (a - slope_i b - offset_i) + target  from above over the pairs of this part.

        a, b are the logits; each bracket is >= 0 for a pair with a gap of t; the target is sign times z of (layer,
        neuron, kind), or nothing. Going backward, at a layer the sum is p.f(zl) + q.f(zr) + g.zl + h.zr, and for ANY
        numbers cl, cr, k, c of a neuron it equals

            cl zl + cr zr + [(p - k) f(zl) - (cl-g-c) zl] + [(q + k) f(zr) - (cr-h+c) zr] + [k (f(zl)-f(zr)) - c dz].

        Each bracket is bounded over its intervals, and cl zl + cr zr goes through z = W v + b to the layer before. What
        a float coefficient may be off by counts times the largest value that it multiplies.
        """
        inner, passed = self.inner, None
        slope, offset = inner.tangents(argument.t, argument.points, *map(float, self.z[-1][RIGHT, :, 0]))
        weights = array(argument.weights)
        total = [-weights * offset]
        for k in range(len(inner.layers) - 1, -1, -1):
            layer, (cl, cr, both, turn) = inner.layers[k], argument.layers[k]
            wanted, off = np.array([0 * turn, 0 * turn]), 0 * turn
            if passed is None and len(weights):
                wanted[:, 0] = weights.sum(), -(weights @ slope)
                off[0] = error(2 * len(weights), weights.sum() + weights @ abs(slope))
            if target is not None and target[0] == k:
                wanted[:, target[1]] += ((target[3], 0), (0, target[3]), (target[3], -target[3]))[target[2]]
            for side, c, shift in ((LEFT, cl, turn), (RIGHT, cr, -turn)):
                rest, box = c - wanted[side] - shift, self.z[k][side]
                total.append((off + error(3, abs(c) + abs(wanted[side]) + abs(shift))) * largest(box))
                if passed is None:
                    total.append(corner(-rest, box))
                    continue
                p, p_off = passed[side]
                v = p - both if side == LEFT else p + both
                total += [(p_off + error(1, abs(p) + abs(both))) * largest(self.values[k][side]),
                          layer.each(top, v, rest, *box)]
            if passed is not None:
                total.append(apart(both, turn, self.values[k][3], self.z[k][DZ], self.values[k][2]))
            elif not inner.aside: total.append(corner(-turn, self.z[k][DZ]))
            else:  # all outputs but the first are what the metric compares
                total.append(corner(-turn[:1], self.z[k][DZ, :, :1]))
                total.append(inner.ball(-turn[1:], argument.mu, self.z[k][DZ, :, 1:], with_groups=False))
            total += [cl * layer.bias, cr * layer.bias]
            passed = [(c @ layer.weight, error(layer.height, abs(c) @ layer.size)) for c in (cl, cr)]
        upper = upper_sum(total + self.people(argument, passed))
        return upper if math.isfinite(upper) else INF

    def people(self, argument, passed):
        """Return numbers whose sum bounds p.x_left + q.x_right: a column that cannot differ has one value for both."""
        inner, total, rest, same = self.inner, [], [], (self.d[0] == 0) & (self.d[1] == 0)
        nu = np.where(same, 0 * argument.nu, argument.nu)
        for (p, off), omega, (A, b), box in zip(passed, argument.omega, inner.rows, self.x):
            off = off + error(len(b) + 6, 2 * abs(p) + omega @ abs(A) + abs(nu))
            total += [omega * b, off * largest(box)]
            rest.append(p - omega @ A)
        mine, yours, joint, shared = rest[0] - nu, rest[1] + nu, rest[0] + rest[1], meet(*self.x)
        total.append(error(1, abs(rest[0]) + abs(rest[1])) * largest(shared))
        alone = up(corner(mine, self.x[0]) + corner(yours, self.x[1]))
        total.append(np.where(same, corner(joint, shared), alone)[inner.one.numbers])
        for g in inner.one.groups:
            one, two = (box[1, g] > 0.5 for box in self.x)
            ours = [side[g][able & ~same[g]] for side, able in ((mine, one), (yours, two))]
            choices = list(joint[g][one & two & same[g]])
            choices += [up(ours[0].max() + ours[1].max())] if all(map(len, ours)) else []
            total.append(max(choices) if choices else 0 * nu[0])
        return [*total, corner(nu, self.d) if inner.aside else inner.ball(nu, argument.mu, self.d)]

    def gap(self):
        """Bound the gap by the last layer's intervals: sigmoid rises, and is steepest around 0."""
        a, b, d = (float(self.z[-1][kind, end, 0]) for kind, end in ((LEFT, 1), (RIGHT, 0), (DZ, 1)))
        wide = min(float(sigmoid(np.float64(a)) - sigmoid(np.float64(b))), math.tanh(max(d, 0.0) / 4))
        straight = self.inner.factor * (d + abs(d) * 1e-15)
        return self.inner.factor * max(0.0, min(1.0, wide * (1 + 1e-13) + 1e-13)) if self.inner.curved else straight

# ---- the proof: who can differ, then a tree, depth first

class Stream:
    """The bytes of a proof, read once and hashed on the way."""

    def __init__(self, file):
        self.file, self.sha = file, hashlib.sha256()

    def take(self, count):
        content = self.file.read(count)
        require(len(content) == count, "the proof ends too early")
        self.sha.update(content)
        return content

    def unpack(self, form): return struct.unpack(form, self.take(struct.calcsize(form)))

    def floats(self, count):
        values = np.frombuffer(self.take(8 * count), "<f8")
        require(not np.isnan(values).any(), "a number of the proof is none")
        return values

    def vector(self, length):
        """Read numbers many of which are 0: a bit for each, then those that are not."""
        bits = np.unpackbits(np.frombuffer(self.take((length + 7) // 8), np.uint8), bitorder="little")[:length]
        out = np.zeros(length)
        out[bits == 1] = self.floats(int(bits.sum()))
        require(np.isfinite(out).all(), "a multiplier is not finite")
        return out

def read_reach(stream, part, trusted):
    """Read how far columns can differ: bounds of single columns, and groups that cannot change."""
    inner, nothing = part.inner, array(np.zeros(part.inner.width))
    part.d = part.d.copy()
    while (tag := stream.take(1)) != b"R":
        require(tag in (b"D", b"G", b"g") and not inner.aside, "the proof has a step that is none")
        if tag == b"D":
            (column, sign), mu, nu = stream.unpack("<Ib"), array(stream.vector(len(inner.matrix))), nothing.copy()
            require(column < inner.width and sign in (-1, 1), "a bound of no column")
            nu[column] += sign
            most = upper_sum([inner.ball(nu, mu, part.d)])
            low, high = part.d[:, column]
            part.d[:, column] = whole_steps(inner, column, max(low, -most) if sign < 0 else low,
                                            min(high, most) if sign > 0 else high)
            continue
        (start,), shown = stream.unpack("<I"), set()
        g = next((g for g in inner.one.groups if g.start == start), None)
        require(g is not None, "a group of no columns")
        for _ in range(stream.unpack("<I")[0] if tag == b"G" else 0):
            (i, j), u, d = stream.unpack("<HH"), array(stream.vector(len(inner.matrix))), part.d.copy()
            require(max(i, j) < g.stop - start, "a change of no category")
            d[:, g] = nothing[g]
            d[:, start + i] += 1
            d[:, start + j] -= 1
            if upper_sum([inner.ball(nothing, u, d)]) < 0:  # no similar pair has i on the left and j on the right
                shown.add((i, j))
        gain = np.flatnonzero((part.x[0][1, g] > 0.5) & (part.d[1, g] >= 1)).tolist()
        lose = np.flatnonzero((part.x[1][1, g] > 0.5) & (part.d[0, g] <= -1)).tolist()
        trusted += [f"that {inner.one.names[start]} cannot differ"] if tag == b"g" else []
        if tag == b"g" or all((i, j) in shown for i in gain for j in lose if i != j): part.d[:, g] = nothing[g]

def whole_steps(inner, column, low, high):
    """Round a difference of two integers inward to whole steps, if floats are sharp enough to tell."""
    first, step, count = inner.one.steps.get(column, (0.0, 1.0, 2**60))
    if 4 * np.spacing(max(abs(first), abs(first + count * step))) >= 1e-10 * step: return low, high
    most, least = math.floor(float(high) / step + 1e-9), math.ceil(float(low) / step - 1e-9)
    return (0 * low if least == 0 else max(low, array((least - 1e-9) * step)[()]),
            0 * high if most == 0 else min(high, array((most + 1e-9) * step)[()]))

def split(stream, tag, part):
    """Return the two parts of a split, which together cover it; None for one that holds nobody."""
    inner, halves = part.inner, [part.copy(), part.copy()]
    if tag == b"Z":
        kind, k, j, value = stream.unpack("<BHId")
        require(kind < 3 and k < len(inner.layers) and j < inner.layers[k].height, "a split of no neuron")
        require(math.isfinite(value), "a number is not finite")
        for side, half in ((1, halves[0]), (0, halves[1])): half.narrow(k, kind, side, array(value)[()], j)
        return halves
    side, column = stream.unpack("<BI")
    g = next((g for g in inner.one.groups if g.start == column), slice(column, column + 1))
    count = stream.unpack("<H")[0] if tag == b"C" else 1
    require(side < 3 and count == g.stop - column and (column in inner.one.steps or tag == b"C"), "an odd split")
    shown = np.frombuffer(stream.take(count), np.uint8) == 1 if tag == b"C" else stream.unpack("<d")[0]
    require(side < 2 or (part.d[:, g] == 0).all(), "columns that can differ were split as one")
    for first, half in ((True, halves[0]), (False, halves[1])):
        for box in half.x if side == 2 else [half.x[side]]:
            if tag == b"C":
                box[1, g] = np.where(shown == first, box[1, g], 0 * box[1, g])
                box[0, g] = np.minimum(box[0, g], box[1, g])
            elif math.isnan(value := inner.one.on_grid(column, shown, first)):
                box[0, column] = box[1, column] + 1  # nobody
            elif first: box[1, column] = min(box[1, column], array(value)[()])
            else: box[0, column] = max(box[0, column], array(value)[()])
    return [half if half.enter() else None for half in halves]

def read_tree(stream, inner, trusted):
    """Walk the tree and return the largest gap it leaves."""
    root, worst = Part(inner), -INF
    read_reach(stream, root, trusted)
    todo = [root if root.enter() else None]
    while todo:
        part = todo.pop()
        alive, fresh = part is not None and part.settle(), []
        while (tag := stream.take(1)) == b"T":
            (k, j, kind, sign, _), argument = stream.unpack("<HIBbd"), Argument(stream, inner)
            require(k < len(inner.layers) and j < inner.layers[k].height and kind < 3 and sign in (-1, 1), "odd lemma")
            # Lemmas of one layer, threshold and round stand side by side; before others, all intervals are carried on.
            if fresh and (fresh[0][:2] != (k, argument.t) or (k, argument.t, j, kind, sign) in fresh):
                alive, fresh = alive and part.settle(), []
            fresh.append((k, argument.t, j, kind, sign))
            if alive:
                part.narrow(k, kind, int(sign > 0), sign * part.bound(argument, (k, j, kind, sign)), j)
                part.since = max(part.since, argument.t if len(argument.points) else -INF)
        alive = alive and (not fresh or part.settle())
        if part is not None and not alive:  # no pair is within the boxes
            part.limit(-INF)
            worst = max(worst, part.cap)
        if tag in (b"Z", b"C", b"I"):
            require(len(todo) < DEEPEST, "the tree is too deep")
            halves = split(stream, tag, part if alive else Part(inner))
            todo += halves[::-1] if alive else [None, None]
            continue
        require(tag in (b"L", b"E", b"O"), "the proof has a step that is none")
        argument = Argument(stream, inner) if tag == b"L" else None
        if alive and argument is not None:
            value, weight = part.bound(argument), float(argument.weights.sum()) * (1 - 1e-12)
            slack = -1.0 if value < 0 else float(value) / weight * (1 + 1e-15) if weight > 0 else INF
            part.limit(inner.gap(argument.t if len(argument.points) else -INF, slack))
        worst = max(worst, part.cap) if alive else worst
    require(not stream.file.read(1), "the proof goes on after its end")
    return worst

# ---- the file

def refuse_large(archive):
    if sum(entry.file_size for entry in archive.infolist() if not entry.filename.startswith("proof/")) > LIMIT:
        raise Unreadable(f"it unpacks to more than {LIMIT >> 20} MiB")

def arrays_of(content):
    """Return the arrays of an npz; nothing is unpickled, and no header can ask for more than is there."""
    arrays = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        refuse_large(archive)
        for entry in archive.infolist():
            stream = io.BytesIO(stored := archive.read(entry))
            version = np.lib.format.read_magic(stream)
            shape, by_column, dtype = np.lib.format.read_array_header_1_0(stream) if version == (1, 0) else (0, 0, None)
            if dtype is None or dtype.kind not in "fiuU": raise Unreadable(f"an array holds {dtype}")
            found = np.frombuffer(stored, dtype, offset=stream.tell()).reshape(shape, order="F" if by_column else "C")
            arrays[entry.filename.removesuffix(".npy")] = found if dtype.kind == "U" else found.astype("<f8") + 0.0
    return arrays

def model_digest(path, manifest):
    """Return the digest of the network of a model file (npz: W0, b0, ..., activations) that a certificate is about."""
    with open(path, "rb") as file:
        arrays = arrays_of(file.read(LIMIT))
    count = sum(name[0] == "W" for name in arrays)
    names = [str(n) for n in arrays.get("activations", ["relu"] * (count - 1) + ["sigmoid"])]
    layers = [Layer(arrays[f"W{i}"], arrays[f"b{i}"], [names[i]] * len(arrays[f"b{i}"])) for i in range(count)]
    k = int(manifest.get("output", 0)) if layers[-1].height > 1 else 0
    kind = "identity" if manifest.get("scale") == "logit" else names[-1]
    return network_digest([*layers[:-1], Layer(*(a[[k]] for a in layers[-1].floats), [kind])])

def lower_bound(question, one, other):
    """Return the gap of the pair, rounded down, if both people exist and are similar."""
    require(question.left.holds(one), "the left person of the pair is not in the domain")
    require(question.right.holds(other), "the right person of the pair is not in the domain")
    require(question.within(one, other), "the pair is not within eps")
    low, high = minus(enclosed(question.layers, one), enclosed(question.layers, other))
    return max(0.0, float(low[0]), -float(high[0]))

def upper_bound(question, manifest, archive, trusted):
    """Return the largest gap that is left, over both directions if the two domains differ."""
    proof, uppers = manifest.get("proof") or {}, []
    require(float(proof.get("eps", question.eps)) >= question.eps, "the proof is for a smaller eps")
    question.eps = float(proof.get("eps", question.eps))
    for k, swapped in enumerate([False] if question.symmetric else [False, True]):
        inner = question.inner(swapped)
        root = Part(inner)
        uppers.append(root.gap() if root.enter() and root.settle() else 0.0)
        if k < len(proof.get("directions") or []):
            with archive.open(str(proof["directions"][k]["file"])) as file:
                stream = Stream(io.BufferedReader(file))
                uppers[k] = min(uppers[k], read_tree(stream, inner, trusted))
            require(stream.sha.hexdigest() == proof["directions"][k]["sha256"], "the proof does not match its digest")
    return max(0.0, *uppers)

def check(path, model=None, exact=False, network=None):
    """Check a certificate and return {ok, lower, upper, trusted, reasons, code, claimed}.

    `model` is the path of an npz file, `network` the digest of a network: each must be the certificate's own.
    """
    EXACT[0] = False  # the pair is always evaluated in floats
    found = {"ok": False, "lower": 0.0, "upper": INF, "trusted": [], "reasons": [], "code": 10, "claimed": [0.0, INF]}
    try:
        with np.errstate(all="ignore"), zipfile.ZipFile(path) as archive:
            refuse_large(archive)
            manifest = json.loads(archive.read("manifest.json"))
            if manifest["format"] != "likewise certificate" or manifest["version"] not in (1, 2, 3):
                raise Unreadable("its manifest is not that of a likewise certificate of version 1, 2 or 3")
            arrays = arrays_of(archive.read("arrays.npz"))
            low, high = float(manifest["lower"]), INF if manifest["upper"] is None else float(manifest["upper"])
            found["claimed"], question = [low, high], Question(manifest, arrays)
            digests = question.digests()
            for name, digest in digests.items():
                require(manifest["digests"][name] == digest, f"the {name} does not match its digest")
            given = network if model is None else model_digest(model, manifest)
            require(given in (None, digests["network"]), "the model is another network than the certificate's")
            found["lower"] = lower_bound(question, arrays["witness_left"], arrays["witness_right"])
            require(found["lower"] >= low - 1e-9 * max(1.0, low), f"the pair shows only {found['lower']:.9g}")
            EXACT[0] = bool(exact)
            found["upper"] = upper_bound(Question(manifest, arrays), manifest, archive, found["trusted"])
            if not found["upper"] <= high + CLOSE * max(1.0, high):
                word = f"the proof shows only an upper of {found['upper']:.9g}"
                require((manifest.get("proof") or {}).get("kind") != "tree" or manifest["trusted"], word)
                found["trusted"] += [*map(str, manifest["trusted"] or ["the engine: the certificate has no proof"])]
        found["code"] = 20 if found["trusted"] else 0
    except Refused as error:
        found["reasons"].append(str(error))
    except (Unreadable, OSError, zipfile.BadZipFile, ArithmeticError, EOFError, LookupError, MemoryError, RuntimeError,
            SyntaxError, TypeError, ValueError, AttributeError, struct.error) as error:
        found["reasons"].append(f"cannot read {path} as a certificate: {type(error).__name__}: {error}"[:300])
        found["code"] = 2
    return found | {"ok": found["code"] == 0}

def main(argv=None):
    parser = argparse.ArgumentParser(description="Check a likewise certificate, without likewise.")
    parser.add_argument("certificate", metavar="FILE.cert")
    parser.add_argument("model", nargs="?", metavar="MODEL.npz", help="is this the network that it is about?")
    parser.add_argument("--exact", action="store_true", help="rational arithmetic, for small straight networks")
    options = parser.parse_args(argv)
    found = check(options.certificate, options.model, options.exact)
    print({0: "verified", 10: "refused", 20: "rests on trust", 2: "unreadable"}[found["code"]])
    for name in ("lower", "upper", "claimed", "trusted", "reasons"): print(f"  {name:8}  {found[name]}")
    return found["code"]

if __name__ == "__main__": sys.exit(main())
