"""Check a likewise certificate without likewise: `python likewise_checker.py FILE.cert [MODEL.npz]`.
A certificate claims: two people of the domain whose distance is at most eps are scored at most `upper` apart, and one
such pair is scored at least `lower` apart. This file derives both again from the question (float64 numbers, read as
the real numbers they are), the pair, and a proof of `upper`: a tree of parts of all pairs. A part has an interval for
every number of a pair: x of both people and their difference d, per layer z and v = f(z) of both, and dz, dv. A split
cuts one of them, a person's categories, or "same category or not" in two parts that cover it. An *argument* bounds a
linear function of these numbers by multipliers of the equations between them, and of bounds of all differences together
(`Part.join`). Any multipliers prove something: `Part.bound`.
Rounding: n sums and products whose absolute values add up to m are off by less than (n + 8) 2^-52 m + 1e-290 (Higham,
3.1; twice the usual factor, for m is a float sum itself): `error`. exp, log, tanh, erfc, and so f and its slope, are
trusted to 2^-48 (1 + |value|), with room for a z that was rounded. --exact takes rationals but in `least`, `together`.
Exit codes: 0 verified, 10 refused, 20 `upper` rests on something that this file cannot check, 2 unreadable."""
import argparse, copy, functools, hashlib, io, json, math, os, struct, sys, threading, zipfile  # noqa: E401, I001
from fractions import Fraction
from itertools import cycle, pairwise, takewhile
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # for matrices as small as these, a second thread only waits
import numpy as np  # noqa: I001
INF, LEFT, RIGHT, DIFFERENCE, SIGNS = math.inf, 0, 1, 2, np.array([-1, 1]).reshape(2, 1, 1, 1)
# At most: bytes to unpack, numbers in a matrix, parts on a path, joint bounds, and by how much an upper may be too low.
LIMIT, WIDEST, DEEPEST, JOINTS, CLOSE = 1 << 30, 1 << 25, 10_000, 16, 1e-6
EXACT, LOCK = [False], threading.Lock()  # whether numbers are rationals just now; so there is one check at a time
Refused = type("Refused", (Exception,), {"__doc__": "The certificate says something that is not so."})
def require(condition, reason):
    if not condition:
        raise Refused(reason)
def real(values):  # numbers to compute with: floats, or the rationals that they are (a box: [lows, highs])
    return np.asarray(np.frompyfunc(Fraction, 1, 1)(values)) if EXACT[0] else np.asarray(values, dtype=np.float64)
def error(terms, size):  # what rounding may do to a sum of products whose absolute values add up to size
    return 0 * size if EXACT[0] else (terms + 8) * 2.0**-52 * size + 1e-290
def upper_sum(rows):  # bounds of sums of numbers that are rounded products themselves
    return rows.sum(axis=-1) + error(2 * rows.shape[-1], abs(rows).sum(axis=-1))
def meet(a, b):  # return what two boxes have in common; a bound that overflowed, and is no number, says nothing
    return np.array([np.fmax(a[0], b[0]), np.fmin(a[1], b[1])])
def minus(a, b):
    low, high = a[0] - b[1], a[1] - b[0]  # a difference of floats that is 0 is exact
    return np.array([low - (low != 0) * error(0, abs(low)), high + (high != 0) * error(0, abs(high))])
def times(matrix, box):  # bounds of matrix v over boxes of v
    return np.array([-upper_sum(-np.minimum(*(ends := box[:, ..., None, :] * matrix))), upper_sum(np.maximum(*ends))])
def agreed(box):  # boxes of left, right and their difference, narrowed by each other
    left, right, d = np.moveaxis(box, 2, 0)
    d = meet(d, minus(left, right))
    left, right = meet(left, minus(right, -d[::-1])), meet(right, minus(left, d))
    return np.stack([left, right, meet(d, minus(left, right))], axis=2)
def norm(rows, p):  # bounds of the p-norm of rows of numbers from above, by floats and without overflow
    sizes = abs(np.insert(np.asarray(rows, dtype=np.float64), 0, 1e-290, axis=-1))
    peak = sizes.max(axis=-1)
    return peak * np.linalg.norm(sizes / peak[..., None], p, axis=-1) * (1 + 4e-15 * (sizes.shape[-1] + 8))
def power(sizes):  # of 2, whose square times a size is about 1; none for what is very small or large
    return np.where((sizes > 1e-100) & (sizes < 1e100), 2.0 ** np.round(np.log2(sizes) / -2), np.nan)
def least(one, other, weights, sizes):
    """Return floats R for which R - sum_i weight_i (one_i.(y, 1)) (other_i.(y, 1)) is nowhere negative; INF if that is
    not shown. The first axis is of questions beside each other; sizes bound |one| and its terms. The form's matrix is H
    = [[Q, h], [h', R + k]], and R a little more than h' Q^-1 h - k: a Cholesky factor of H - c, scaled by powers of 2,
    shows that H is no lower than c - n 2^-51 times its trace (Rump 2006), and c pays for that and for H's rounding."""
    (count, m, n), others, by, c = one.shape, abs(other), weights[..., None], np.zeros((len(one), 1, 1))
    half, k_size = other.swapaxes(1, 2) @ (by * one) / -2, (weights * sizes[..., -1] * others[..., -1]).sum(axis=1)
    H = half + half.swapaxes(1, 2)
    k, scale = H[:, -1, -1].copy(), power(H[:, range(n - 1), range(n - 1)])[..., None]
    Q, h = H[:, :-1, :-1] * scale * scale.swapaxes(1, 2), H[:, :-1, -1:] * scale
    try:
        for _ in range(2):
            R = (h * np.linalg.solve(Q - 2 * c * np.eye(n - 1), h)).sum(axis=(1, 2)) - k
            R = R + 1e-9 * abs(R) + 4 * c[:, 0, 0] * (abs(R) + k_size)
            to = np.concatenate([scale, power(abs(R) + k_size)[:, None, None]], axis=1)
            off = to * sum(a.swapaxes(1, 2) @ (by * (b @ to)) for a, b in ((sizes, others), (others, sizes)))
            H[:, -1, -1] = R + k
            scaled = H * to * to.swapaxes(1, 2)
            c = 2.0**-50 * ((m + n + 16) * (2 + off.max(1)[:, None]) + (n + 8) * np.trace(scaled.T)[:, None, None])
        factor = np.linalg.cholesky(scaled - c * np.eye(n))
    except np.linalg.LinAlgError:  # of some, and nobody says of which
        alone = [least(*(rows[[i]] for rows in (one, other, weights, sizes))) for i in range(count) if count > 1]
        return np.concatenate(alone or [[INF]])
    return np.where(np.isfinite(factor).all(axis=(1, 2)) & np.isfinite(R), R, INF)
def straight(*of):  # pieces, as those of `curved`, of a function that is m z + c between a and b, bend 0
    return [(a, b, 0, lambda z, m=m, c=c: real(m) * z + real(c), lambda z, m=m: 0 * z + real(m)) for a, b, m, c in of]
def curved(f, slope, bend, *turns):  # (from, to, bend, f, slope) of a function that is convex (1), then concave (-1)
    f, slope = (lambda z, g=g: real(g(np.asarray(z, dtype=np.float64))) for g in (f, slope))
    return [(a, b, bend * (-1) ** k, f, slope) for k, (a, b) in enumerate(pairwise([-INF, *turns, INF]))]
sigmoid = lambda z: np.where(z < 0, np.exp(-abs(z)), 1.0) / (1.0 + np.exp(-abs(z)))  # noqa: E731
# The turns of silu, z tanh(z/2) = 2, are rounded: f is flat to 1e-45 in between.
TURN, ROOT, SELU, STEEP = 2.3993572805154675, math.sqrt(2), 1.0507009873554805, 1.7580993408473766
erfc, bell = np.vectorize(math.erfc, otypes=[np.float64]), lambda z: np.exp(z * z / -2) / math.sqrt(2 * math.pi)
PIECES = {
    "identity": straight((-INF, INF, 1, 0)), "leaky_relu": straight((-INF, 0, 0.01, 0), (0, INF, 1, 0)),
    "relu": straight((-INF, 0, 0, 0), (0, INF, 1, 0)), "relu6": straight((-INF, 0, 0, 0), (0, 6, 1, 0), (6, INF, 0, 6)),
    "hardtanh": straight((-INF, -1, 0, -1), (-1, 1, 1, 0), (1, INF, 0, 1)),
    "hardsigmoid": straight((-INF, -3, 0, 0), (-3, 3, Fraction(1, 6), 0.5), (3, INF, 0, 1)),
    "sigmoid": curved(sigmoid, lambda z: sigmoid(z) * sigmoid(-z), 1, 0),
    "tanh": curved(np.tanh, lambda z: 4 * sigmoid(2 * z) * sigmoid(-2 * z), 1, 0),
    "softsign": curved(lambda z: z / (1 + abs(z)), lambda z: (1 + abs(z)) ** -2.0, 1, 0),
    "softplus": curved(lambda z: np.maximum(z, 0) + np.log1p(np.exp(-abs(z))), sigmoid, 1),
    "elu": curved(np.expm1, np.exp, 1, 0)[:1] + straight((0, INF, 1, 0)),
    "selu": curved(lambda z: STEEP * np.expm1(z), lambda z: STEEP * np.exp(z), 1, 0)[:1] + straight((0, INF, SELU, 0)),
    "silu": curved(lambda z: z * sigmoid(z), lambda z: sigmoid(z) * (1 + z * sigmoid(-z)), -1, -TURN, TURN),
    "gelu": curved(lambda z: z / 2 * erfc(-z / ROOT), lambda z: erfc(-z / ROOT) / 2 + z * bell(z), -1, -ROOT, ROOT),
}
def apart(k, c, slopes, dz, dv):
    """Bound k dv - c dz over dz and dv = s dz in their intervals, s within the slopes. For k > 0 the largest dv at a dz
    is min(max(s0 dz, s1 dz), dv1): it bends at 0 and where it meets dv1; these and the ends decide. (k < 0: -dv.)"""
    s0, s1 = np.where(k < 0, -slopes[::-1], slopes)
    most, steep = np.where(k < 0, -dv[0], dv[1]), np.maximum(abs(s0), abs(s1))
    points = (dz[0], dz[1], 0 * most, *(np.where(s != 0, most / np.where(s != 0, s, 1), 0) for s in (s0, s1)))
    z = np.stack([np.broadcast_to(np.clip(point, *dz), k.shape) for point in points])
    value = abs(k) * np.minimum(np.maximum(s0 * z, s1 * z), most) - c * z
    return (value + error(8, (abs(k) * steep + abs(c)) * abs(z))).max(axis=0)
BENDS = {"sigmoid": (0.25, 0.1, 0.13), "tanh": (1, 0.8, 2), "softplus": (1, 0.25, 0.1), "silu": (1.1, 0.5, 0.4)}
BENDS["gelu"] = 1.13, 0.8, 0.8  # what the first three derivatives do not exceed
def together(f, first, second, third, c, squares, left, right, d, fine):
    """Bound G = c0 f(y) + c1 f(z) + c2 y + c3 z + p dv^2 + q dv h + r h^2, h = y - z, dv = f(y) - f(z), over boxes of
    y, z and h (left, right, d). Over a rectangle of z and h it is at most its highest corner + width^2 / 8 |G_zz| +
    height^2 / 8 |G_hh|, the error of interpolation; |dv| <= first |h|, which changes with z by at most second |h|, with
    h by first. What may hold more is halved. `fine` |c|, and what rounding may do, is added (INF if sums overflow)."""
    who, cell, far = np.arange(c.shape[1]), np.concatenate([right, d]), abs(np.r_[left, right, d]).max(axis=0)
    line, square, peak = abs(c).sum(axis=0), abs(squares).sum(axis=0), 4 + 4 * far
    more = fine * (line + square * abs(d).max(axis=0) ** 2) + (line + 4 * peak * square + 1e-290) * peak / 2**47
    best = np.full(c.shape[1], -1e300)  # what no pair is in has a bound all the same
    for cuts in range(60):
        z, h, (a, b, m, n), (low, high) = cell[[0, 0, 1, 1]], cell[[2, 3, 2, 3]], c[:, who], left[:, who]
        y, (p, q, r) = z + h, squares[:, who]  # sums are rounded in order, so no pair is lost
        fy, fz = np.float64(f(y)), np.float64(f(z[::2])).repeat(2, axis=0)
        value = a * fy + b * fz + m * y + n * z + (p * (fy - fz) + q * h) * (fy - fz) + r * h * h
        np.maximum.at(best, who, np.where((y >= low) & (y <= high), value, -INF).max(axis=0))
        far, (p, q, r) = abs(h[:2]).max(axis=0), abs(squares[:, who])
        turn, bent = np.minimum(2 * second, third * far), (2 * p * first + q) * (first + second * far) + 2 * r
        turns = (abs(a) + (q + 2 * p * first) * far) * turn + abs(a + b) * second + 2 * p * (second * far) ** 2
        size, middle = cell[[1, 3]] - cell[[0, 2]], cell[[0, 2]] + (cell[[1, 3]] - cell[[0, 2]]) / 2
        wide, tall = size**2 / 7 * [turns, abs(a) * second + bent + q * first]
        bound = np.where((y < low).all(axis=0) | (y > high).all(axis=0), -INF, value.max(axis=0) + wide + tall)
        if not (keep := ~(bound <= (best + more)[who])).any() or cuts == 59 or keep.sum() > 4000 * min(len(best), 32):
            break
        flat = np.where(((y < low) | (y > high)).any(axis=0), size[0] >= size[1], wide >= tall)  # both, if it is cut
        one, other = np.array([cell] * 2)
        one[3 - 2 * flat, range(len(who))] = other[2 - 2 * flat, range(len(who))] = np.where(flat, *middle)
        who, cell = np.tile(who[keep], 2), np.concatenate([one[:, keep], other[:, keep]], axis=1)
    np.maximum.at(best, who, bound - more[who])
    return best + 2 * more
class Layer:  # z = weight v + bias and f(z) of each; a question adds where in a row of all numbers v, z and f(z) are
    def __init__(self, weight, bias, names):
        is_layer = weight.ndim == 2 and bias.shape == weight.shape[:1] == (len(names),) and PIECES.keys() >= {*names}
        require(is_layer and (abs(weight) <= 1e15).all() and (abs(bias) <= 1e15).all(), "an odd, or huge, layer")
        self.floats, self.weight, self.bias, self.names = (weight, bias), real(weight), real(bias), tuple(names)
        some = {n: np.array(names) == n if len({*names}) > 1 else slice(None) for n in names}  # of each activation
        self.pieces = [(rows, *piece) for name, rows in some.items() for piece in PIECES[name]]
        same = np.unique(np.column_stack([weight, bias]), axis=0, return_inverse=True)[1].ravel()
        self.twins = same[:, None] == same if len(same) > same.max() + 1 else None  # the same weights: the same z
        self.less = -np.array([[[self.bias, self.bias, 0 * self.bias]]] * 2)  # of left, right and difference
    def top(self, p, c, low, high):  # bounds of p f(z) - c z, by ends of pieces, or of a tangent where p f is concave
        p, c, low, high = np.broadcast_arrays(p, c, low, high)
        best = np.full(p.shape, -INF, dtype=p.dtype)
        for rows, start, stop, bend, f, slope in self.pieces:
            (k, m, a, b), trusted = (n[..., rows] for n in (p, c, low, high)), bool(bend or not EXACT[0])
            inside, z, more = (a <= stop) & (b >= start), real(np.clip([a, b], start, stop)), 0 * k
            if bend and (bent := inside & (z[0] < z[1]) & (k * bend < 0)).any():
                ends, z, more = z, z.copy(), 0 * z
                (left, right), g, h = ends[:, bent].astype(np.float64), k[bent], m[bent]
                rises, falls = g * slope(right) - h >= 0, g * slope(left) - h <= 0
                left, right = np.where(rises, right, left), np.where(falls & ~rises, left, right)
                while (right - left > 1e-10 * (1 + abs(left))).any():
                    rises = g * slope(middle := left + (right - left) / 2) - h > 0
                    left, right = np.where(rises, middle, left), np.where(rises, right, middle)
                z[:, bent] = touch = real(np.clip(left, *ends[:, bent]))
                s, reach = slope(touch), ends[:, bent] - touch
                off = abs(g) * (1 + abs(touch)) / 2**48 + error(8, abs(g * s) + abs(h))  # of the tangent's slope
                more[:, bent] = (g * s - h) * reach + 2 * off * abs(reach)
            more = more + abs(k) * (1 + abs(value := f(z))) * trusted / 2**48 + error(8, abs(k * value) + abs(m * z))
            found = np.where(inside, (k * value - m * z + more).max(axis=0), -INF)
            best[..., rows] = np.maximum(best[..., rows], found)
        return best
    def values(self, box):  # bounds of f(z) over a box of z
        return (signs := np.array([0 * box[0] - 1, 0 * box[0] + 1])) * self.top(signs, 0 * box[0], *box)
    def quotients(self, low, high):  # of (f(z) - f(z')) / (z - z') over a box: f' is monotone on a piece
        box = np.array([0 * low + INF, 0 * low - INF])
        for rows, start, stop, bend, _, slope in self.pieces:
            a, b = ends = np.array([low, high])[..., rows]
            touches = ((a < stop) & (b > start)) | ((a == b) & (a >= start) & (a <= stop))
            z = real(np.clip(ends, start, stop))
            s, off = slope(z), (1 + abs(z if bend else slope(z))) * bool(bend or not EXACT[0]) / 2**48
            found = np.minimum(box[0][..., rows], (s - off).min(0)), np.maximum(box[1][..., rows], (s + off).max(0))
            box[..., rows] = np.where(touches, found, box[..., rows])
        return box
def chain(kinds, prefix, arrays):
    return [Layer(arrays[f"{prefix}W{i}"], arrays[f"{prefix}b{i}"], [*map(str, k)]) for i, k in enumerate(kinds)]
def enclosed(layers, person):  # bounds of what layers make of a person
    carry = lambda box, layer: layer.values(minus(times(layer.weight, box), [-layer.bias, -layer.bias]))  # noqa: E731
    return functools.reduce(carry, layers, real([person, person]))
def digest(*parts):  # return the SHA-256 sum of texts, of numbers, and of layers: their shapes, activations and numbers
    told = [q for p in parts for q in ((repr((p.weight.shape, p.names)), *p.floats) if isinstance(p, Layer) else [p])]
    return hashlib.sha256(b"".join(q.encode() if isinstance(q, str) else q.tobytes() for q in told)).hexdigest()
class Domain:  # who can exist: bounds of each column, one 1 in each group, whole steps low + i step, A x <= b
    def __init__(self, plain):
        self.digest, self.width, self.groups, self.steps = digest(json.dumps(plain, sort_keys=True)), 0, [], {}
        for feature in plain["features"]:
            kind, start, is_hot = feature["kind"], self.width, feature["kind"] == "one_hot"
            require(kind in ("continuous", "integer", "one_hot"), f"a feature is of kind {kind!r}")
            self.width += len(feature["values"]) if is_hot else 1
            self.groups += [slice(start, self.width)] * is_hot
            if kind != "continuous":  # floats make a value, or a difference of two, whole but for `off` steps
                low, high, step = (0.0, 1.0, 1.0) if is_hot else (float(feature[k]) for k in ("low", "high", "step"))
                off = 1e-9 + 8 * np.spacing(max(abs(low), abs(high))) / step
                require(step > 0 and off < 1, "a feature has an odd step")
                self.steps |= dict.fromkeys(range(start, self.width), (low, high, step, off))
        rows = plain.get("constraints") or {"A": [], "b": []}
        self.box, self.b = (np.array(v, dtype=np.float64) for v in ([plain["lower"], plain["upper"]], rows["b"]))
        self.A = np.array(rows["A"], dtype=np.float64).reshape(-1, self.width)
        is_finite = all(np.isfinite(a).all() for a in (self.box, self.A, self.b))
        require(is_finite and self.box.shape == (2, self.width) and self.b.shape == self.A.shape[:1], "an odd domain")
        require((self.box[0] <= self.box[1]).all() and all(map(self.is_whole, self.box)), "a column has odd ends")
        self.free = ~np.isin(np.arange(self.width), [c for g in self.groups for c in range(g.start, g.stop)])
        starts = np.cumsum([0, *(g.stop - g.start for g in self.groups)], dtype=int)[:-1]
        self.largest = functools.partial(np.maximum.reduceat, indices=starts, axis=-1)  # of each group
    def is_whole(self, x):  # whether all that has steps is the float low + i step for some i, up to high
        return all(a <= x[c] <= b and a + round((x[c] - a) / s) * s == x[c] for c, (a, b, s, _) in self.steps.items())
    def holds(self, x):  # whether a person exists, exactly (numbers are rationals now)
        fits = x.shape == (self.width,) and bool((np.clip(x, *self.box) == x).all()) and self.is_whole(x)
        return fits and all(x[g].sum() == 1.0 for g in self.groups) and (real(self.A) @ real(x) <= real(self.b)).all()
class Question:
    """Can left be scored higher than right? Proofs know numbers by place: x, z, v, ..., left, right, difference; 1."""
    def __init__(self, manifest, arrays, sides=("left", "right")):
        form, self.network = manifest["metric"], chain(manifest["activations"], "", arrays)
        self.phi = chain(form["phi"], "phi_", arrays) if form.get("phi") else []
        self.matrix, self.p, self.eps = arrays["metric"], float(form["p"]), float(manifest["eps"])
        self.people, chains = [Domain(manifest[side]) for side in sides], [[*self.network], [*self.phi]]
        self.one, self.width, (name, *others) = self.people[0], self.people[0].width, self.network[-1].names
        is_metric = self.matrix.ndim == 2 and (abs(self.matrix) <= 1e15).all() and self.p >= 1.0
        require(is_metric and 0.0 <= self.eps < INF and not others, "an odd metric, eps or output")
        require(manifest["left"]["features"] == manifest["right"]["features"], "there are two kinds of people")
        self.is_curved, self.factor = name in ("sigmoid", "tanh"), 2.0 if name == "tanh" else 1.0
        last = [self.factor * numbers for numbers in self.network[-1].floats]  # tanh(z) = 2 sigmoid(2 z) - 1, exactly
        chains[0][-1] = Layer(*last, ["sigmoid" if self.is_curved else name])
        for layers in chains[self.is_curved : 2 if self.phi else 1]:  # what is scored, or compared, is a z
            if {*layers[-1].names} != {"identity"}:
                layers.append(Layer(np.eye(n := len(layers[-1].names)), np.zeros(n), ["identity"] * n))
        self.layers, k = chains[0] + chains[1], len(chains[0])
        sizes = [self.width, *(len(layer.names) for layer in self.layers for _ in "zv")]
        self.places = [slice(3 * a, 3 * b) for a, b in pairwise(np.cumsum([0, *sizes]).tolist())]
        self.x, self.size = self.places[0], self.places[-1].stop + 1
        for i, layer in enumerate(self.layers):
            source = 0 if i == k else 2 * i  # an embedding begins with x again
            is_small = (2 if source else 18) * layer.weight.size <= WIDEST
            require(is_small and layer.weight.shape[1] == sizes[source], "layers are too wide, or do not fit")
            layer.source, layer.z, layer.v = (self.places[stage] for stage in (source, 2 * i + 1, 2 * i + 2))
            fan = None if source else np.kron([*-np.eye(3, dtype=int), *np.eye(3, dtype=int)], layer.weight)
            layer.fan = None if source else fan.reshape(1, -1, 3, self.width)
        widest = max(sum(sizes[: 2 * k - 1 : 2]) ** 2 // 8, *(18 * layer.weight.size for layer in self.layers))
        self.beside = 1 if EXACT[0] else np.clip((1 << 19) // widest, 1, 64)  # parts at once, some of them empty
        self.told, (self.a, self.b, self.d) = manifest.get("told", -INF), range(self.size)[self.layers[k - 1].z]
        self.scored, compared = self.layers[k - 1].v.stop - 1, -2 if self.phi else 0
        require(self.matrix.shape[1] == sizes[compared], "the metric does not fit")
        self.compared, before = self.places[compared], sum(sizes) + 2 * sum(sizes[1::2])
        self.mu = slice(before, before + len(self.matrix))  # where the metric's multipliers are in an argument
        self.count = self.mu.stop + sum(len(person.b) for person in self.people) + JOINTS
        d, *rest = (np.arange(self.size)[place].reshape(3, -1)[DIFFERENCE] for place in self.places[: 2 * k - 1])
        self.ins, self.outs = np.hstack([d, *rest[::2]]), np.hstack([d, *rest[1::2]])  # of hidden layers
        self.starts, self.joints = np.cumsum([0, self.width, *map(len, rest[::2])]), {}
        self.ball = self.matrix if self.p == 2 and not self.phi else np.empty((0, self.width))  # if it is round
        self.is_smooth = manifest["version"] > 7 and all({*a.names} in [{n} for n in BENDS] for a in chains[0][:-1])
    def digests(self):
        networks = [digest("likewise network 1", *layers) for layers in (self.network, self.phi) if layers]
        metric = digest(f"likewise metric 1 {self.p} {self.matrix.shape}", self.matrix, *networks[1:])
        parts = [networks[0], *(person.digest for person in self.people), metric]
        parts += [digest("\n".join([*parts, self.eps.hex()]))]
        return dict(zip(("network", "left", "right", "metric", "problem"), parts))
    @functools.cached_property
    def equations(self):  # the equations that arguments multiply, as `Part.bound` lists them, and their sizes
        require(self.count * self.size <= WIDEST, "the network is too wide for a proof")
        numbers = np.eye(self.size)
        stages = {place.start: numbers[place].reshape(3, -1, self.size) for place in self.places}
        rows = [d - left + right for left, right, d in stages.values()]
        for layer in self.layers:
            (weight, bias), source, z = layer.floats, stages[layer.source.start], stages[layer.z.start]
            rows += [weight @ source[side] + np.outer(bias, numbers[-1]) - z[side] for side in (LEFT, RIGHT)]
        limits = [np.outer(one.b, numbers[-1]) - one.A @ x for one, x in zip(self.people, stages[0])]
        rows += [-self.matrix @ stages[self.compared.start][DIFFERENCE], *limits, np.zeros((JOINTS, self.size))]
        return real(np.concatenate(rows)), real(abs(np.concatenate(rows)))
    def tangents(self, t, b, far):
        """Return lines a >= slope b + offset that hold for gaps of t or more, |b| <= far. Straight: a - b >= t. Logits:
        tangents of a >= g(b) = logit(sigmoid(b) + t), convex as g' = s(1-s) / ((s+t)(1-s-t)) grows with s, and a = b"""
        if not self.is_curved:
            return real([b**0, t * b**0])
        require(0.0 <= t < 1.0 or not len(b), "a threshold is not between 0 and 1")
        p, q = (s := sigmoid(b)) + t, (r := sigmoid(-b)) - t
        slope, value = s * r / (p * q), np.log(p) - np.log(q)
        offset = value - slope * b - 2.0**-46 * (1 / p + 1 / q + 2) * (1 + abs(value) + slope * (far + 2 * abs(b)))
        return real(np.where((q > 1e-10) & (p > 1e-200), [slope, offset], [b**0, 0 * b]))
    def gap(self, t, value, weight=1.0):
        """Bound the gap if weight (a - g(b)) <= value: t if that is < 0; t + slack, slack = value / weight if straight;
        t + sigmoid(logit(p) + slack) - p, p = sigmoid(b) + t, if not: its top is at sigmoid(-slack / 2), or at t"""
        slack = (float(value) + 1e-280) / (float(weight) * (1 - 1e-12)) if 0 < weight < INF else INF  # floats underflow
        if self.is_curved and not value < -1e-280:
            p = max(t, float(sigmoid(-slack / 2)), 1e-300)
            slack = p * (1 - p) * -math.expm1(-slack) / (p + (1 - p) * math.exp(-slack))
        return t if value < -1e-280 else t + slack + 1e-13 * (abs(t) + slack)
def take(file, form):  # read numbers from a proof, as struct names them; it raises an error where the file is too short
    return struct.unpack(form, file.read(struct.calcsize(form)))
def vector(file, length):  # read numbers many of which are 0: a bit for each, then those that are not
    marks = np.frombuffer(take(file, f"{(length + 7) // 8}s")[0], np.uint8)
    bits, out = np.unpackbits(marks, bitorder="little")[:length] == 1, np.zeros(length)
    out[bits] = np.frombuffer(take(file, f"{8 * bits.sum()}s")[0], "<f8")
    require(np.isfinite(out).all(), "a number of the proof is not finite")
    return out
class Part:
    """Pairs, parts beside each other: box[low or high, part, number] of gaps of `since` or more; `cap` bounds all."""
    def __init__(self, question):
        self.question, self.since, self.cap, self.alive = question, *np.array([[-INF], [INF]]), np.array([True])
        self.tops, self.differ = np.full((1, JOINTS), INF), np.zeros((1, len(question.one.groups)), dtype=bool)
        left, right = (real(person.box) for person in question.people)
        d = np.where(question.one.free, minus(left, right), np.clip(minus(left, right), -1, 1))
        rest = np.full((2, question.size - 3 * question.width - 1), [[-INF], [INF]])
        self.box = np.concatenate([left, right, d, rest, np.ones((2, 1), dtype=int)], axis=1)[:, None]
    def triple(self, place):  # boxes of left, right and difference: [low or high, part, which, number]
        return self.box[..., place].reshape(*self.box.shape[:2], 3, -1)
    def settle(self):  # carry intervals through the layers, with dv = s dz, s a quotient; what is empty has no pair
        x, question, self.slopes = self.triple(self.question.x), self.question, []
        x[:] = agreed(x)
        self.alive = self.alive & ~(self.people(0 * x[:1, :1]) == -INF).any(axis=(1, 2))  # a group has nothing left
        for layer in takewhile(lambda _: self.alive.any(), question.layers):
            z, v, source = (self.triple(place) for place in (layer.z, layer.v, layer.source))
            ends = times(layer.weight, source) if layer.fan is None else upper_sum(self.people(layer.fan))
            ends = ends if layer.fan is None else SIGNS * ends.reshape(-1, 2, *z.shape[2:]).swapaxes(0, 1)
            z[:] = agreed(meet(z, minus(ends, layer.less)))
            if (same := layer.twins) is not None:
                z[:] = [s * np.where(same, s * one[..., None, :], -INF).max(axis=-1) for s, one in zip((1, -1), z)]
            self.alive = self.alive & ~(z[0] > z[1]).any(axis=(1, 2))
            z[:, ~self.alive] = 0  # what is empty goes on beside the others, with numbers that are finite
            slopes = layer.quotients(z[0, :, :2].min(axis=1), z[1, :, :2].max(axis=1))
            ends = np.stack([s * end for s in slopes for end in z[:, :, DIFFERENCE]])
            dv = minus([ends.min(axis=0), ends.max(axis=0)], 0 * slopes)
            v[:] = agreed(meet(v, np.concatenate([layer.values(z[:, :, :2]), dv[:, :, None]], axis=2)))
            self.slopes.append(slopes)
        self.alive = self.alive & ~(self.box[0] > self.box[1]).any(axis=1)
        tops = zip(self.alive, *(map(float, self.box[1, :, k]) for k in (question.d, question.scored)))
        gaps = [np.fmin(question.gap(0.0, d), scored) if alive else -INF for alive, d, scored in tops]  # NaN: nothing
        self.cap = np.fmin(self.cap, np.maximum(gaps, self.since))
    def people(self, c):  # numbers whose sum bounds c.(left, right, difference), row by row; a group has one 1 each
        one, x = self.question.one, self.triple(self.question.x)[:, :, None]
        total = [np.maximum(c * x[0], c * x[1])[..., one.free]]
        if one.groups:
            (low, high), x, c = x[..., DIFFERENCE, ~one.free], x[..., ~one.free], c[..., ~one.free]
            gain, lose = (np.where(o, k, -INF) for o, k in ((high >= 1, c[..., 2, :]), (low <= -1, -c[..., 2, :])))
            stays = np.array([0, -INF], c.dtype)[1 * (one.largest((low > 0) | (high < 0)) | self.differ[:, None])]
            total.append(one.largest(np.where(x[1, ..., :2, :] > 0.5, c[..., :2, :], -INF)))
            total.append(np.maximum(one.largest(gain) + one.largest(lose), stays))
        return np.concatenate([terms.reshape(*terms.shape[:2], -1) for terms in total], axis=2)
    def bound(self, t, points, targets, weights, y):
        """Bound  sum_i weight_i (a - slope_i b - offset_i) + target  from above over the pairs of this part.
        a, b are the scores, or logits; each bracket is >= 0 for a pair with a gap of t; the target is a number of the
        pair with a sign, or nothing (sign 0). Added to this, times ANY multipliers y, are
            d - x_left + x_right = 0, the same of every z and v       W v + bias - z = 0, left and right, of every layer
            w - A d = 0, A being the metric's (multipliers mu)        b - A x >= 0, left and right: the side constraints
            R - g >= 0, g being what a slot defines, a function of differences, and R what `join` bounds it by
        (these two times numbers >= 0): nothing, or what is not below 0. The sum is then bounded piece by piece: x and d
        by `people`, v = f(z) with z by `top`, dv with dz by `apart`, or a whole neuron by `together`, mu.w by Hoelder's
        eps ||mu||_q, 1/p + 1/q = 1 (a smaller q makes it larger). Rounding counts times what it is of."""
        question, count, p, w = self.question, len(targets), self.question.p, weights.sum(axis=1)
        lines, target = (np.zeros((n, question.size), dtype=y.dtype) for n in (len(points), count))
        slope, offset = question.tangents(t, points, float(abs(self.box[:, self.alive, question.b]).max()))
        lines[:, question.a], lines[:, question.b], lines[:, -1] = 1, -slope, -offset
        target[range(count), [k for k, _ in targets]] = [sign for _, sign in targets]
        c = target + weights @ lines + y @ question.equations[0]
        sizes = abs(target) + weights @ abs(lines) + abs(y) @ question.equations[1]
        q, late, rows = {1.0: INF, 2.0: 2.0, INF: 1.0}.get(p) or max(1.0, p / (p - 1.0) * (1 - 1e-14)), [], self.alive
        total = [error(question.count + len(lines), sizes) * abs(self.box).max(axis=0), c[:, -1:]]
        total += real(question.eps * norm(y[:, question.mu], q)), self.people(c[:, question.x].reshape(count, 1, 3, -1))
        for slot, by in ((one, y[:, one - JOINTS]) for one in question.joints if y[:, one - JOINTS].any()):
            self.join(slot, (by > 0).reshape(-1, len(self.alive)).any(axis=0))
            tops = np.array([real(top)[()] if top < INF else INF for top in self.tops[:, slot]], dtype=y.dtype)
            total.append(np.where(by > 0, by * tops, 0))
        for layer, slopes in zip(question.layers, self.slopes):
            z, v = self.triple(layer.z), self.triple(layer.v)
            k, m = (c[:, place].reshape(count, 3, -1) for place in (layer.v, layer.z))
            far = apart(k[:, DIFFERENCE], -m[:, DIFFERENCE], slopes, z[:, :, DIFFERENCE], v[:, :, DIFFERENCE])
            total.append(np.concatenate([layer.top(k[:, :2], -m[:, :2], *z[:, :, :2]), far[:, None]], axis=1))
            late += [(layer, k, m, z, total[-1])] if len({*layer.names}) == 1 and layer.names[0] in BENDS else []
        for fine in (0, 1e-4, 1e-6, 1e-8, 1e-10) if late else (0,):  # together, what shows too little
            for one in late if fine and rows.any() else ():
                self.pair(*one, rows, fine)
            upper = upper_sum(np.concatenate([terms.reshape(count, -1) for terms in total], axis=1))
            over = [n >= 0 and not question.factor * question.gap(t, n, of) <= question.told for n, of in zip(upper, w)]
            rows = self.alive & np.where([sign for _, sign in targets], fine == 1e-6, over)
        return [value if math.isfinite(value) else INF for value in upper]
    def pair(self, layer, k, m, z, terms, rows, fine):  # bound all of a neuron together, if that is less than its terms
        some = np.nonzero(((abs(m) + abs(k))[:, :2].max(1) > 1e-12 * abs(k[:, 2])) & (k[:, 2] != 0) & rows[:, None])
        c = np.array([k[:, 0] + k[:, 2], k[:, 1] - k[:, 2], m[:, 0] + m[:, 2], m[:, 1] - m[:, 2]])
        ends = np.nextafter(np.broadcast_to(z, (2, *k.shape)).astype(np.float64), SIGNS * INF)[..., some[0], :, some[1]]
        c, f = c[:, *some].astype(np.float64), layer.pieces[0][4]
        top = real(together(f, *BENDS[layer.names[0]], c, 0 * c[:3], *ends.T, fine))
        is_less = top < upper_sum(terms.swapaxes(1, 2)[some])
        terms[some[0][is_less], :, some[1][is_less]] = top[is_less, None] * [1, 0, 0]
    def define(self, file):  # read a function -g of differences, weights by which `join` bounds g; last slots change
        question, width, heights = self.question, self.question.width, np.diff(self.question.starts[1:])
        (slot,), row = take(file, "<B"), vector(file, question.size)
        weights, row[-1] = np.maximum(vector(file, width + 2 * sum(heights) + 1), 0), 0
        bowls = vector(file, 5 * sum(heights) * question.is_smooth).reshape(5, -1)
        is_small = len(heights) and (3 * len(row) + len(question.ball)) * len(question.ins) <= WIDEST
        is_new = slot == JOINTS - 1 or (slot < JOINTS and slot not in question.joints)
        require(is_small and is_new, "a joint bound too wide, or of no new slot")
        require(not np.delete(row, [*question.ins, *question.outs]).any(), "a joint bound of more than differences")
        d, *on, (ball,) = np.split(weights, np.cumsum([width, *np.repeat(heights, 2)]))
        question.joints[slot] = row, np.hstack([d, *on[::2]]), np.hstack(on[1::2]), ball, bowls
        question.equations[0][slot - JOINTS], question.equations[1][slot - JOINTS] = real(row), real(abs(row))
        self.tops[:, slot] = INF
        self.settle()
        _ = self.alive.any() and self.join(slot, self.alive)
    def join(self, slot, which):
        """Bound g of a slot over some parts; what bounds it over a part bounds it over parts of that. Every pair has
            (high - n)(n - low) >= 0, n = d or dz    (s1 dz - dv)(dv - s0 dz) >= 0    eps^2 - ||A d||^2 >= 0, if p = 2
        and no embedding; s0, s1 are slopes; dz is W d, or W dv of the layer before: all are forms in d, dv and 1. If
        R - g, less these times numbers >= 0, is nowhere negative, g <= R. A d that is [0, 0] is left out. The last dv
        are in g alone, times c: a relu's is at most (left z's slope) dz, which may take its place if c > 0, at least
        (right z's slope) dz, if c < 0. Of smooth neurons, top - p dv^2 - q dv dz - r dz^2 - e dv - f dz >= 0 takes the
        place of slopes, with the record's numbers (of the last: p = q = 0, e = c) and the tops of `together`."""
        question, some, n = self.question, np.flatnonzero(which & self.alive), len(self.question.ins)
        (row, on, on_slopes, on_ball, bowls), starts, width = question.joints[slot], question.starts, question.width
        *slopes, last = self.slopes[: len(starts) - 2]
        if {*(layer := question.layers[len(slopes)]).names} == {"relu"}:
            left, right = np.moveaxis(layer.quotients(*self.triple(layer.z)[:, :, :2]), 2, 0)
            last = np.where((c := row[question.outs[starts[-2] :]]) < 0, left, np.where(c > 0, right, last))
        box = np.concatenate([self.box[..., question.ins], *slopes, last], axis=2)[:, some]
        ends, more = np.nextafter(box.astype(np.float64), [[[-INF]], [[INF]]])[..., None], ((0, 0), (0, n + 1 - width))
        free, dz = np.pad((box[..., :width] != 0).any(axis=0), more, constant_values=True), np.zeros((n - width, n + 1))
        for layer, a, b, c in zip(question.layers, starts, starts[1:], starts[2:]):
            dz[b - width : c - width, a:b] = layer.floats[0]
        kept = free.any(axis=0) | (np.arange(n + 1) >= width)
        in_y = kept & ((np.arange(n + 1) < (starts[-2] if question.is_smooth else n)) | (np.arange(n + 1) == n))
        free, unit = free[:, None, in_y], np.tile(np.eye(in_y.sum()), (len(some), 1, 1))
        dz, ball = (rows[:, in_y] * free for rows in (dz, np.pad(question.ball, more)))
        d, dv, one = np.split(unit, [m := kept[:width].sum(), -1], axis=1)
        (low, high), (s0, s1), numbers = ends[:, :, :n][:, :, kept[:-1]], ends[:, :, n:], np.hstack([d, dz])
        own, through = np.append(row[question.outs], 0)[in_y] * free, row[question.ins[width:], None]
        g, size = (of(own) + of(through * dz).sum(axis=1, keepdims=True) for of in (np.negative, abs))
        (a, b), by, top = (
            self.bowls(bowls, -row[question.outs[starts[-2] :]], some, dz, dv, one) if question.is_smooth else
            ((s1 * dz - dv, dv - s0 * dz), on_slopes * np.where(s1 - s0 < 1e-9, 1024, 1)[..., 0], 0))
        left = np.hstack([high * one - numbers, a, question.eps * one, -ball, g])
        right = np.hstack([numbers - low * one, b, question.eps * one, ball, one])
        weights = [np.where(free[:, 0, :m], on[:width][kept[:width]], 1), np.tile(on[width:], (len(some), 1)), by]
        weights = np.hstack([*weights, np.tile([on_ball] * (1 + len(question.ball)) + [1], (len(some), 1))])
        tops = least(left, right, weights, np.hstack([abs(left[:, :-1]), size])) + top
        self.tops[some, slot] = np.minimum(self.tops[some, slot], tops)
    def bowls(self, numbers, last, some, dz, dv, one):  # of smooth neurons: top - bowl as products, and the tops' sum
        numbers, m, tops, ends = numbers.copy(), dv.shape[1], [], self.question.starts[2:-1] - self.question.width
        numbers[:2, m:], numbers[3, m:] = 0, last
        for layer, own in zip(self.question.layers, np.split(numbers, ends, axis=1)):
            box = np.nextafter(self.triple(layer.z)[:, some].astype(np.float64), SIGNS * INF).transpose(2, 0, 1, 3)
            c, box = np.tile(own, len(some)), box.reshape(3, 2, -1)
            lines, f = c[[3, 3, 4, 4]] * [[1], [-1], [1], [-1]], layer.pieces[0][4]
            tops.append(together(f, *BENDS[layer.names[0]], lines, c[:3], *box, 1e-9).reshape(len(some), -1))
        p, q, r, e, f = numbers[..., None]
        rows = np.hstack([dv, dz]), np.hstack([-p[:m] * dv - q[:m] * dz[:, :m] - e[:m] * one, -r * dz - f * one])
        return rows, np.ones(rows[0].shape[:2]), upper_sum(np.hstack(tops))
    def use(self, t, points, targets, weights, y):  # take what arguments bound: a target, or the gap
        self.settle()
        shown = self.bound(t, points, targets, weights, y) if self.alive.any() else ()
        for value, (k, sign), by, part in zip(shown, targets, weights.sum(axis=1), cycle(range(len(self.cap)))):
            if sign:
                self.narrow(k, sign, sign * value)
                self.since = np.maximum(self.since, t)
            else:
                self.cap[part] = np.fmin(self.cap[part], np.maximum(self.question.gap(t, value, by), self.since[part]))
    def narrow(self, k, sign, value):  # move an end inward, to low + i step; a difference's to about steps, or 0
        width, end = self.question.width, int(sign > 0)
        ends, steps = [self.box[end, 0, k], value], self.question.one.steps.get(k % width) if k < 3 * width else None
        if steps and math.isfinite(value):
            low, _, step, off = steps if k < 2 * width else (0.0, *steps[1:])
            count = sign * math.floor(sign * (float(value) - low) / step + off)
            ends.append(real(low + count * step + (sign * off * step if k >= 2 * width and count else 0.0))[()])
        self.box[end, 0, k] = sign * min(sign * one for one in ends)
    def split(self, file, tag):  # return the two parts of a split, which together cover this one
        question, half, self.tops[:, -1] = self.question, copy.copy(self), INF
        half.box, half.differ, half.tops, halves = self.box.copy(), self.differ.copy(), self.tops.copy(), [half, self]
        if tag == b"Z":  # a number up to a value, or from it on
            k, value = take(file, "<Id")
            require(k < question.size - 1 and math.isfinite(value), "a split of no number")
            return [half.narrow(k, sign, real(value)[()]) or half for half, sign in zip(halves, (1, -1))]
        side, group = take(file, "<BH")
        require(tag in (b"C", b"S") and side < 3 and group < len(question.one.groups), "a split of nothing there is")
        columns = question.one.groups[group]
        if tag == b"S":  # another category on the left than on the right, or the same
            halves[0].differ[:, group], halves[1].triple(question.x)[..., DIFFERENCE, columns] = True, 0
            return halves
        shown = np.array(take(file, f"{columns.stop - columns.start}B")) == 1
        for half, some in zip(halves, (shown, ~shown)):  # one person's categories: some, or the others
            low, high = half.triple(question.x)[:, 0, side % 2, columns]
            high[~some] = 0
            low[:] = np.where((high > 0.5) & ((high > 0.5).sum() == 1), 1, low)
        return halves
def arguments(question, file):  # read arguments: threshold, points of its lines, what each is about, multipliers
    t, lines, count = take(file, "<dHH")
    is_small = count * max(8 * question.size, lines + question.count) <= WIDEST
    require(is_small and (math.isfinite(t) or not lines), "odd arguments")
    points, targets, t = vector(file, lines), [take(file, "<Ib") for _ in range(count)], t if lines else -INF
    require(all(k < question.size - 1 and sign in (-1, 0, 1) for k, sign in targets), "about no number")
    given = real([vector(file, lines + question.count) for _ in range(count)]).reshape(count, -1)
    weights, y, limits = np.maximum(given[:, :lines], 0), given[:, lines:], slice(question.mu.stop, None)
    y[:, limits] = np.maximum(y[:, limits], 0)  # of what is >= 0, not = 0
    return t, points, targets, weights, y
def closed(leaves):  # the largest gap of some parts, each with its last argument, all of one threshold
    parts, said = zip(*leaves)
    stack, points = copy.copy(parts[0]), np.unique(np.concatenate([one[1] for one in said]))
    for name in ("box", "since", "cap", "alive", "differ", "tops"):
        setattr(stack, name, np.concatenate([getattr(part, name) for part in parts], axis=int(name == "box")))
    weights = np.zeros((len(said), len(points)), dtype=stack.box.dtype)
    for row, (_, own, _, given, _) in zip(weights, said):
        np.add.at(row, np.searchsorted(points, own), given[0])
    stack.use(said[0][0], points, [(0, 0)] * len(said), weights, np.concatenate([one[4] for one in said]))
    return stack.cap.max()
def upper_bound(question, file):  # the largest gap that a proof's tree leaves; leaves are closed some at once
    worst, todo, leaves = -INF, [Part(question)], []
    nothing = np.empty(0), [(0, 0)], np.empty((1, 0)), real(np.zeros((1, question.count)))  # said of an empty part
    while todo:
        part, last = todo.pop(), None
        while (tag := take(file, "c")[0]) in (b"A", b"J"):
            _ = last and part.use(*last)
            last = arguments(question, file) if tag == b"A" else part.define(file)
        last = part.use(*last) if last and (tag != b"E" or last[2] != [(0, 0)] or last[4][:, -1].any()) else last
        if tag == b"E":
            last = last or (leaves[-1][1][0] if leaves else -INF, *nothing)
            if leaves and (last[0] != leaves[-1][1][0] or len(leaves) >= question.beside):
                worst, leaves = max(worst, closed(leaves)), []
            leaves.append((part, last))
        else:
            require(len(todo) < DEEPEST, "the tree is too deep")
            todo += part.split(file, tag)[::-1]
    require(not file.read(1), "the proof goes on after its end")
    return max(0.0, question.factor * float(max(worst, closed(leaves))))
def unpacked(file):  # the arrays of an npz, as float64; nothing is unpickled, or unpacked beyond the limit
    with np.load(io.BytesIO(file.read(LIMIT)), allow_pickle=False) as arrays:
        if sum(entry.file_size for entry in arrays.zip.infolist()) > LIMIT:
            raise ValueError(f"it unpacks to more than {LIMIT >> 20} MiB")
        return {n: a if a.dtype.kind == "U" else a.astype("<f8", casting="same_kind") + 0.0 for n, a in arrays.items()}
def model_digest(path, manifest):  # of the network of a model file (npz: W0, b0, ..., activations)
    with open(path, "rb") as file:
        arrays = unpacked(file)
    heights = [len(arrays[f"b{i}"]) for i in range(sum(name[0] == "W" for name in arrays))]
    names = [str(n) for n in arrays.get("activations", ["relu"] * (len(heights) - 1) + ["sigmoid"])]
    *hidden, last = chain([[name] * height for name, height in zip(names, heights, strict=True)], "", arrays)
    k = int(manifest.get("output", 0)) if heights[-1] > 1 else 0
    kind = "identity" if manifest.get("scale") == "logit" else names[-1]
    return digest("likewise network 1", *hidden, Layer(last.floats[0][[k]], last.floats[1][[k]], [kind]))
def lower_bound(question, one, other):  # the gap of a pair that exists and is similar, rounded down; in rationals
    EXACT[0], p, power = True, question.p, int(question.p) if question.p in (1.0, 2.0, 3.0) else 1
    for name, person, domain in zip(("left", "right"), (one, other), question.people):
        require(domain.holds(person), f"the {name} person of the pair is not in the domain")
    d = minus(*(enclosed([Layer(*a.floats, a.names) for a in question.phi], person) for person in (one, other)))
    some = (d != 0).any(axis=0)
    sizes = abs(times(real(question.matrix[:, some]), d[:, some])).max(axis=0)
    far = sizes.max(initial=0) if p == INF else sum(sizes**power) if p == power else real(norm(sizes, p))[()]
    require(far <= Fraction(question.eps) ** power, "the pair is not within eps")
    EXACT[0] = False
    (low,), (high,) = minus(enclosed(question.network, one), enclosed(question.network, other))
    return max(0.0, float(low), -float(high))
def derive(found, archive, model, network, exact):  # both bounds, and what they rest on, into `found`
    manifest, arrays = json.loads(archive.open("manifest.json").read(LIMIT)), unpacked(archive.open("arrays.npz"))
    if manifest["format"] != "likewise certificate" or manifest["version"] not in range(1, 9):
        raise ValueError("its manifest is not that of a likewise certificate of version 1 to 8")
    low, high = float(manifest["lower"]), INF if manifest["upper"] is None else float(manifest["upper"])
    question, found["claimed"] = Question(manifest, arrays), [low, high]
    for name, told in question.digests().items():
        require(manifest["digests"][name] == told, f"the {name} does not match its digest")
    given = network if model is None else model_digest(model, manifest)
    require(given in (None, manifest["digests"]["network"]), "the model is another network than the certificate's")
    found["lower"] = lower_bound(question, arrays["witness_left"], arrays["witness_right"])
    require(high >= found["lower"] >= low - 1e-9 * max(1.0, low), f"the pair shows {found['lower']:.9g}")
    EXACT[0], proof = bool(exact), manifest["proof"] if manifest["version"] >= 6 else {}  # before, none of this form
    more, uppers = {"eps": float(proof.get("eps", question.eps)), "told": high}, []
    require(more["eps"] >= question.eps, "the proof is for a smaller eps")
    for k, sides in enumerate([("left", "right"), ("right", "left")][: 1 + (manifest["left"] != manifest["right"])]):
        question, tree = Question(manifest | more, arrays, sides), (proof.get("directions") or [])[k : k + 1]
        with archive.open(str(tree[0]["file"])) if tree else io.BytesIO(b"E") as file:
            require(not tree or hashlib.file_digest(file, "sha256").hexdigest() == tree[0]["sha256"], "another proof")
            file.seek(0)
            uppers.append(upper_bound(question, io.BufferedReader(file)))
    found["upper"] = max(uppers)
    if not found["upper"] <= high + CLOSE * max(1.0, high):
        require(proof.get("kind") != "tree", f"the proof shows only an upper of {found['upper']:.9g}")
        found["trusted"] = [*map(str, manifest["trusted"] or ["the engine: the certificate has no proof"])]
    found["code"] = 20 if found["trusted"] else 0
def check(path, model=None, exact=False, network=None):  # `model` (an npz) or `network` (a digest) must fit, if given
    found = {"lower": 0.0, "upper": INF, "claimed": [0.0, INF], "trusted": [], "reasons": [], "code": 10}
    try:
        with LOCK, np.errstate(all="ignore"), zipfile.ZipFile(path) as archive:
            EXACT[0] = False
            derive(found, archive, model, network, exact)
    except Refused as reason:
        found["reasons"] = [str(reason)]
    except Exception as fault:  # noqa: BLE001 - whatever a file that is none of ours makes the libraries raise
        found |= {"code": 2, "reasons": [f"cannot read {path}: {type(fault).__name__}: {fault}"[:300]]}
    return found | {"ok": found["code"] == 0}
def main(argv=None):
    parser = argparse.ArgumentParser(description="Check a likewise certificate, without likewise.")
    parser.add_argument("path", metavar="FILE.cert")
    parser.add_argument("model", nargs="?", metavar="MODEL.npz", help="is this the network that it is about?")
    parser.add_argument("--exact", action="store_true", help="rational arithmetic, for small networks")
    found = check(**vars(parser.parse_args(argv)))
    told = [f"  {name:8}  {found[name]}" for name in ("lower", "upper", "claimed", "trusted", "reasons")]
    print({0: "verified", 10: "refused", 20: "rests on trust", 2: "unreadable"}[found["code"]], *told, sep="\n")
    return found["code"]
if __name__ == "__main__":
    sys.exit(main())
