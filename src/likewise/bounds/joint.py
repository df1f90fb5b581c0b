"""Joint: one bound for the differences of all neurons together.

Bounded one by one, every neuron's dv = s dz is as far off as it can be, all at the same time; but all dz come from one
small d. Squares see that. For every pair within its bounds

    (high - n)(n - low) >= 0, n = d or dz       (s1 dz - dv)(dv - s0 dz) >= 0       eps^2 - ||A d||^2 >= 0

(a difference quotient s is within [s0, s1]; the last for round balls). Let g.y be a linear function of y = (d, dv of
all hidden layers), of which every dz is one. If upper - g.y less these products, each times a number >= 0, is a form in
(1, y) that is nowhere negative, then g.y <= upper. Any numbers will do; the best are found by Newton's method, for the
bound is convex in them: it changes with a product's number by the product itself, at the y where the form is least.

Where neurons are smooth, what is known of their dz and dv is their bowl instead, top - bowl >= 0 (`bounds.bowl`), with
five numbers of any sign; that a bowl's top is high enough for a sample of pairs is linear in all six.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from likewise.activations import by_name
from likewise.bounds.bowl import NUMBERS, bowls
from likewise.bounds.difference import slopes
from likewise.bounds.interval import Box
from likewise.bounds.newton import Look, factored, followed, look
from likewise.bounds.products import Products, Rows
from likewise.bounds.support import Differences
from likewise.bounds.twin import LayerBounds, TwinBounds
from likewise.network import Layer
from likewise.problem import Problem
from likewise.rounding import UNIT, Array

ROOM = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4)  # relative, added to the bound until its form passes
CURVED = (
    1e-3  # relative: a checker's intervals of curves are a little narrower, which may raise a bound of given weights
)
OFF = 1e-9  # relative, by how much a form must be positive: a checker needs room of its own, and has other last digits
BEGIN, AGAIN = 0.03, 1e-3  # the first barrier of bowls, beside the bound: to begin with, and on a finer sample
LOOSE = 1e-6  # relative, added to weights beside bowls: the best make a form that is all but flat somewhere
LEAST = 1e-300  # in place of a number that is 0
# What to begin with, beside what it multiplies.
FIRST = {"d": 1e-2, "dz": 1e-3, "slope": 1e-2, "ball": 100.0, "bowl": 1e-2}


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """nu.d + sum over hidden layers of both.dv - turn.dz <= upper, for all pairs within bounds; `weights` show it.

    The weights: of each column's interval, then layer by layer of dz's intervals and of slopes, and of the ball. Within
    other intervals they may show a little more or less: `margin`, relative, is what a part has to add. `bowls` are the
    numbers of all smooth neurons, in rows.
    """

    nu: Array
    both: tuple[Array, ...]
    turn: tuple[Array, ...]
    upper: float
    weights: Array
    margin: float = 0.0
    bowls: Array = field(default_factory=lambda: np.zeros((NUMBERS, 0)))

    def __repr__(self) -> str:
        return f"Joint(upper {self.upper:g}, {int(np.count_nonzero(self.weights))} products)"


class Forms:
    """The products of a problem (an inner one, nothing aside) within bounds: rows `one` and `other` of (1, y)."""

    def __init__(self, problem: Problem, bounds: TwinBounds, last: Array, margin: float = 0.0) -> None:
        """Take what multiplies the dv of the last hidden layer in the function to bound (see `_slopes`); a margin."""
        differences, self._layers = bounds.reach.differences, bounds.layers[:-1]
        self.free, self.width = differences.free, problem.right.width
        names = {name for layer in problem.network.layers[:-1] for name in layer.activations}
        self.bowls = bowls(problem.network, bounds.layers)
        is_known = bool(self.bowls) or all(by_name(name).is_piecewise_linear() for name in names)
        self.margin = margin if is_known else CURVED
        heights = [len(b.dz.lower) for b in self._layers]
        self.last = last if self.bowls else last[:0]  # bowls take the last dv in, so that y has none
        starts = np.cumsum([1, len(self.free), *heights[: len(heights) - bool(self.bowls)]])
        unit = np.eye(int(starts[-1]))
        self._d, before = unit[starts[0] : starts[1]], unit[starts[0] : starts[1]]
        self.dz: list[Array] = []  # by layers, as rows of (1, y)
        self._dv = [unit[a:b] for a, b in pairwise(starts[1:])]
        self._dv += [np.zeros((len(self.last), len(unit)))] * bool(self.bowls)
        for layer, dv in zip(problem.network.layers, self._dv, strict=False):
            weight = layer.weight if self.dz else layer.weight[:, self.free]
            self.dz.append(weight @ before)
            before = dv
        outer = problem.outer or problem
        # A proof has an embedding's numbers beside.
        self.is_round = problem.metric.p == 2.0 and outer.metric.phi is None and len(problem.metric.matrix) > 0
        self.products, self.kinds = self._products(problem, differences, last)
        self.one, self.other, self.of = self.products.rows()
        self.is_bowl = np.array([kind == "bowl" for kind in self.kinds])
        self.is_fixed = np.zeros(len(self.kinds), dtype=bool)  # p, q and e of the last bowls
        self.sample = np.zeros((0, 1, NUMBERS + 1))
        if self.bowls:
            self.sample = np.concatenate([one.sample() for one in self.bowls])
            of = np.flatnonzero(self.is_bowl).reshape(NUMBERS + 1, -1)
            self.is_fixed[of[[0, 1, 3], -len(last) :]] = True

    def _products(self, problem: Problem, differences: Differences, last: Array) -> tuple[Products, list[str]]:
        """Return what is never below 0 for a pair, and of what kind each is."""
        base = np.vstack([np.eye(1, len(self.dz[0][0])), self._d, *self.dz, *self._dv])
        unit = np.eye(len(base))
        hidden = sum(map(len, self.dz))
        d, dz, dv = np.split(unit[1:], [len(self._d), len(self._d) + hidden])
        pairs = [_interval(unit, d, differences.lower[self.free], differences.upper[self.free], "d")]
        if self.bowls:
            pairs.append(_of_bowls(unit, dz / self.units[:, None], dv / self.units[:, None]))
        else:
            of_last = _slopes(problem.network.layers[-2], self._layers[-1], last)
            ends = np.cumsum(list(map(len, self.dz)))[:-1]
            quotients = [*(b.slope for b in self._layers[:-1]), of_last]
            for b, slope, z, v in zip(self._layers, quotients, np.split(dz, ends), np.split(dv, ends), strict=True):
                pairs.append(_interval(unit, z, b.dz.lower, b.dz.upper, "dz"))
                s0, s1 = slope.lower[:, None], slope.upper[:, None]
                pairs.append((s1 * z - v, v - s0 * z, ["slope"] * len(z)))
        one, other = (Rows.of(np.vstack([pair[k] for pair in pairs])) for k in (0, 1))
        image = problem.metric.matrix[:, self.free] @ self._d if self.is_round else np.zeros((0, len(base[0])))
        kinds = [kind for pair in pairs for kind in pair[2]] + ["ball"] * self.is_round
        return Products(base, one, other, image, problem.eps), kinds

    def _taken(self, numbers: Array, by: float = 1.0) -> Array:
        """Return bowls, those of the last layer with what the function's dv are multiplied with (times `by`) for e."""
        out = numbers.copy()
        out[:2, -len(self.last) :] = 0.0
        out[3, -len(self.last) :] = by * self.last * self.units[-len(self.last) :]
        return out

    @cached_property
    def units(self) -> Array:
        """The powers of two that dz and dv of bowls are counted in, of all neurons."""
        return np.concatenate([one.unit for one in self.bowls])

    def refine(self, weights: Array) -> Array:
        """Take a sample of pairs where some bowls are highest, and return the numbers with tops above these."""
        numbers = weights[self.is_bowl].reshape(NUMBERS + 1, -1)
        split = np.split(numbers, np.cumsum([len(one.unit) for one in self.bowls])[:-1], axis=1)
        self.sample = np.concatenate([one.refined(some) for one, some in zip(self.bowls, split, strict=True)])
        out, low = weights.copy(), self.spare(weights).min(axis=1)
        raised = numbers[-1] - np.minimum(low, 0.0) + AGAIN * np.abs(numbers[-1])
        out[self.is_bowl] = np.concatenate([numbers[:-1].ravel(), raised])
        return out

    def spare(self, weights: Array) -> Array:
        """Return by how much the tops are above bowls, at every pair of the sample."""
        numbers = weights[self.is_bowl].reshape(NUMBERS + 1, -1)
        return np.asarray((self.sample @ numbers.T[:, :, None])[:, :, 0])

    def objective(self, nu: Array, both: tuple[Array, ...], turn: tuple[Array, ...]) -> Array:
        """Return g, with a 0 for the constant."""
        g = nu[self.free] @ self._d
        for k, (dz, dv) in enumerate(zip(self.dz, self._dv, strict=True)):
            g = g + both[k] @ dv - turn[k] @ dz
        return np.asarray(g)

    @cached_property
    def sizes(self) -> Array:
        """How large 1 and each of y is, roughly."""
        d = np.abs(self.one[: len(self.free), 0]) + np.abs(self.other[: len(self.free), 0])
        sizes = [d, *(b.dv.magnitude for b in self._layers[: len(self._layers) - bool(self.bowls)])]
        return np.concatenate([[1.0], *(np.maximum(one, 1e-3 * one.max(initial=1e-3)) for one in sizes)])

    @cached_property
    def magnitudes(self) -> Array:
        """How large each product is, roughly."""
        one, other = np.abs(self.one) @ self.sizes, np.abs(self.other) @ self.sizes
        return np.maximum(np.bincount(self.of, one * other), 1e-12)

    def form(self, weights: Array) -> Array:
        """Return the sum of all products, each times its number, as a symmetric matrix."""
        return self.products.total(weights)

    def holds(self, g: Array, upper: float, weights: Array) -> bool:
        """Tell whether upper - g.y less the products is nowhere negative, rounding included.

        The matrix H of that form is a float one: an entry is a sum of at most n products, off by less than (n + 8)
        2^-52 times the sum of their absolute values; the rows of these errors bound their norm. If H - c I has a
        Cholesky factor in floats, H - c I is no lower than -(n + 2) 2^-51 times its trace (Rump, 2006). c pays for all.
        """
        first = np.zeros_like(g)
        first[0] = 1.0
        linear = upper * first - g
        H = (np.outer(first, linear) + np.outer(linear, first)) / 2 - self.form(weights)
        size = np.abs(self.one).T @ (np.abs(weights)[self.of][:, None] * np.abs(self.other))
        size = np.outer(first, np.abs(linear)) + np.outer(np.abs(linear), first) + size + size.T
        if not (np.diag(H) > 0.0).all():
            return False
        scale = 2.0 ** np.round(-0.5 * np.log2(np.diag(H)))  # exact, and what is compared is of one size
        sized = scale[:, None] * scale
        off = ((len(self.one) + 16) * 2 * UNIT + OFF) * (size * sized).sum(axis=1).max()
        H = H * sized
        c = off + (len(H) + 8) * 8 * UNIT * float(np.abs(np.diag(H)).sum())
        try:
            return bool(np.isfinite(np.linalg.cholesky(H - c * np.eye(len(H)))).all())
        except np.linalg.LinAlgError:
            return False

    def joint(
        self, nu: Array, both: tuple[Array, ...], turn: tuple[Array, ...], deadline: float, near: Joint | None = None
    ) -> Joint | None:
        """Bound a function of differences as well as can be found by a deadline; None if nothing was.

        Of smooth networks the search can begin near the numbers of another joint, that of a wider part.
        """
        g = self.objective(nu, both, turn)
        if not np.abs(g).any() and not np.abs(self.last).any():
            return None
        unit = self._unit(g)
        for upper, weights in reversed(self._search(g, deadline, None if near is None else self.seen(near))):
            joint = self.shown(nu, both, turn, *self._topped(unit * upper, unit * weights * (1 + 1e-9)))
            if joint is not None:
                return joint
        return None

    def _unit(self, g: Array) -> float:
        """Return about how large a function is."""
        last = float(np.abs(self.last) @ self._layers[-1].dv.magnitude) if len(self.last) else 0.0
        return (float(np.abs(g) @ self.sizes) + last) / math.sqrt(len(g) + len(self.last))

    def _topped(self, upper: float, weights: Array) -> tuple[float, Array]:
        """Return numbers with tops that hold for every pair, and the bound that comes of it."""
        if not self.bowls:
            return upper, weights
        out, (*numbers, tops) = weights.copy(), weights[self.is_bowl].reshape(NUMBERS + 1, -1)
        out[~self.is_bowl] *= 1 + LOOSE
        given = self._taken(np.array(numbers))
        sized = given / self.units ** np.array([2, 2, 2, 1, 1])[:, None]
        ends = np.cumsum([len(one.unit) for one in self.bowls])[:-1]
        each = zip(self.bowls, np.split(sized, ends, axis=1), strict=True)
        highest = np.concatenate([one.tops(some) for one, some in each])
        out[self.is_bowl] = np.concatenate([given.ravel(), highest])
        return upper * (1 + LOOSE) + float((highest - tops).sum()), out

    def shown(
        self, nu: Array, both: tuple[Array, ...], turn: tuple[Array, ...], upper: float, weights: Array
    ) -> Joint | None:
        """Return a bound of about `upper` that given numbers show of a function; None if they do not."""
        g = self.objective(nu, both, turn)
        unit = self._unit(g)
        for room in ROOM:
            raised = upper + room * (abs(upper) + unit) + self.margin * abs(upper)
            if self.holds(g, raised, weights):
                return Joint(nu, both, turn, raised, *self._wide(weights))
        return None

    def seen(self, joint: Joint) -> Look | None:
        """Return what the numbers of a joint make of its function within these bounds; None if that is no bound."""
        columns, rest, ball = np.split(joint.weights, [self.width, len(joint.weights) - 1])
        weights = [np.maximum(part, LEAST) for part in (columns[self.free], rest, ball[: int(self.is_round)])]
        if self.bowls:
            sized = joint.bowls * self.units ** np.array([2, 2, 2, 1, 1])[:, None]
            weights[1] = np.concatenate([sized.ravel(), 0 * self.units])
            weights[1] = self._topped(0.0, np.concatenate(weights))[1][self.is_bowl]
        return look(self, self.objective(joint.nu, joint.both, joint.turn), np.concatenate(weights))

    def _wide(self, weights: Array) -> tuple[Array, float, Array]:
        """Return weights with a place for every column, whether it can differ or not, and for a ball; and bowls."""
        columns, hidden = np.zeros(self.width), sum(map(len, self.dz))
        columns[self.free] = weights[: len(self.free)]
        rest, numbers = weights[len(self.free) :], np.zeros((NUMBERS, 0))
        if self.bowls:
            numbers = weights[self.is_bowl].reshape(NUMBERS + 1, -1)[:-1]
            numbers = numbers / self.units ** np.array([2, 2, 2, 1, 1])[:, None]
            rest = np.concatenate([np.zeros(2 * hidden), rest[(NUMBERS + 1) * hidden :]])
        return np.concatenate([columns, rest, [] if self.is_round else [0.0]]), self.margin, numbers

    def _first(self, by: float) -> Array | None:
        """Return numbers whose form is positive, for a bound of about 1; None if none were found."""
        kinds = np.array(self.kinds)
        first = np.array([FIRST[kind] for kind in self.kinds]) / self.magnitudes
        if self.bowls:
            return self._first_bowls(first, by)
        depth = np.cumsum(
            np.diff(kinds == "dz", prepend=False) & (kinds == "dz")
        )  # a layer's are small beside the last one's
        smaller = np.where(np.isin(kinds, ["dz", "slope"]), 2.0**-depth, 1.5)
        for _ in range(60):
            if factored(-self.form(first)[1:, 1:]) is not None:
                return np.asarray(first)
            first = first * smaller
        return None

    def _first_bowls(self, first: Array, by: float) -> Array | None:
        """Return numbers whose form is positive: bowls of the steepest and the flattest slope, and tops above them."""
        low, high = (np.concatenate([getattr(b.slope, end) for b in self._layers]) for end in ("lower", "upper"))
        depth = np.concatenate([np.full(len(b.dz.lower), float(k)) for k, b in enumerate(self._layers)])
        p = 1.0 / np.maximum(np.maximum(np.abs(low), np.abs(high)), 1e-3) ** 2
        shape = np.concatenate([np.array([p, -p * (low + high), p * low * high]), np.zeros((2, len(p)))])
        far = np.ones(len(first))
        shape = self._taken(shape, by)
        for size in 1e-3 * 1.5 ** -np.arange(60.0):
            numbers = self._taken(size * 4.0**-depth * shape, by)
            tops = -np.einsum("jkc,cj->jk", self.sample[:, :, :NUMBERS], numbers).min(axis=1)
            tops = tops + 0.1 * np.abs(tops) + size
            first[self.is_bowl] = np.concatenate([numbers.ravel(), tops])
            if factored(-self.form(first * far)[1:, 1:]) is not None:
                return np.asarray(first * far)
            far = np.where(self.is_bowl, 1.0, 1.5 * far)
        return None

    def _search(self, g: Array, deadline: float, near: Look | None = None) -> list[tuple[float, Array]]:
        """Return bounds, the least one last, and the numbers that make them: by Newton's method, with barriers.

        The bound is the largest value over y of g.y + sum of products, each times its number: convex in the numbers.
        Those on the way, with higher barriers, are further from forms that rounding may turn negative.
        """
        by = 1.0 / self._unit(g)
        if near is not None and self.bowls:
            return followed(self, by * g, self.refine(by * near.weights), AGAIN, deadline)
        g, at = by * g, self._first(by)
        if at is None:
            return []
        found = followed(self, g, at, BEGIN if self.bowls else 0.1 / (len(at) + len(g)), deadline)
        if self.bowls and time.monotonic() < deadline:
            found += followed(self, g, self.refine(found[-1][1]), AGAIN, deadline)
        return found


Pairs = tuple[Array, Array, list[str]]  # of rows whose products are never below 0, and of what kind they are


def _interval(unit: Array, rows: Array, low: Array, high: Array, kind: str) -> Pairs:
    """Return (high - n)(n - low)."""
    return high[:, None] * unit[:1] - rows, rows - low[:, None] * unit[:1], [kind] * len(rows)


def _of_bowls(unit: Array, dz: Array, dv: Array) -> Pairs:
    """Return top - bowl of all neurons as products, dz in units: all p, then all q, r, e, f, and all tops."""
    one = np.broadcast_to(unit[:1], dz.shape)
    kinds = ["bowl"] * (NUMBERS + 1) * len(dz)
    return np.vstack([-dv, -dz, -dz, -one, -one, one]), np.vstack([dv, dv, dz, dv, dz, one]), kinds


def _slopes(layer: Layer, b: LayerBounds, last: Array) -> Box:
    """Return the slopes that count of the last hidden layer, whose dv are in nothing but the function to bound.

    A relu is convex: dv is at most its slope at the left z times dz, and at least that at the right one. Where dv is
    multiplied by a number above 0, the former in its place makes the function no smaller; below 0, the latter.
    """
    if set(layer.activations) != {"relu"}:
        return b.slope
    left, right = slopes(layer, b.left), slopes(layer, b.right)
    is_left, is_right = last > 0, last < 0
    lower = np.where(is_left, left.lower, np.where(is_right, right.lower, b.slope.lower))
    upper = np.where(is_left, left.upper, np.where(is_right, right.upper, b.slope.upper))
    return Box(lower, upper)
