"""Joint: one bound for the differences of all neurons together.

Bounded one by one, every neuron's dv = s dz is as far off as it can be, all at the same time; but all dz come from one
small d. Squares see that. For every pair within its bounds

    (high - n)(n - low) >= 0, n = d or dz       (s1 dz - dv)(dv - s0 dz) >= 0       eps^2 - ||A d||^2 >= 0

(a difference quotient s is within [s0, s1]; the last for round balls). Let g.y be a linear function of y = (d, dv of
all hidden layers), of which every dz is one. If upper - g.y less these products, each times a number >= 0, is a form in
(1, y) that is nowhere negative, then g.y <= upper. Any numbers will do; the best are found by Newton's method, for the
bound is convex in them: it changes with a product's number by the product itself, at the y where the form is least.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from likewise.activations import by_name
from likewise.bounds.difference import slopes
from likewise.bounds.interval import Box
from likewise.bounds.twin import LayerBounds, TwinBounds
from likewise.network import Layer
from likewise.problem import Problem
from likewise.rounding import UNIT, Array

COST = 1e-6  # of a number, beside its product's size: some could grow without end and bring nothing
STEPS, FALL, CLOSE = 200, 0.3, 1e-4  # of the search: at most, by how much barriers fall, and how close it comes
ROOM = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4)  # relative, added to the bound until its form passes
CURVED = (
    1e-3  # relative: a checker's intervals of curves are a little narrower, which may raise a bound of given weights
)
OFF = 1e-9  # relative, by how much a form must be positive: a checker needs room of its own, and has other last digits
LEAST = 1e-300  # in place of a number that is 0
FIRST = {"d": 1e-2, "dz": 1e-3, "slope": 1e-2, "ball": 100.0}  # what to begin with, beside what it multiplies


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """nu.d + sum over hidden layers of both.dv - turn.dz <= upper, for all pairs within bounds; `weights` show it.

    The weights: of each column's interval, then layer by layer of dz's intervals and of slopes, and of the ball. Within
    other intervals they may show a little more or less: `margin`, relative, is what a part has to add.
    """

    nu: Array
    both: tuple[Array, ...]
    turn: tuple[Array, ...]
    upper: float
    weights: Array
    margin: float = 0.0

    def __repr__(self) -> str:
        return f"Joint(upper {self.upper:g}, {int(np.count_nonzero(self.weights))} products)"


class Forms:
    """The products of a problem (an inner one, nothing aside) within bounds: rows `one` and `other` of (1, y)."""

    def __init__(self, problem: Problem, bounds: TwinBounds, last: Array, margin: float = 0.0) -> None:
        """Take what multiplies the dv of the last hidden layer in the function to bound (see `_slopes`); a margin."""
        differences, self._layers = bounds.reach.differences, bounds.layers[:-1]
        self.free, self.width = differences.free, problem.right.width
        names = {name for layer in problem.network.layers[:-1] for name in layer.activations}
        self.margin = margin if all(by_name(name).is_piecewise_linear() for name in names) else CURVED
        starts = np.cumsum([1, len(self.free), *(len(b.dz.lower) for b in self._layers)])
        unit = np.eye(int(starts[-1]))
        self._d, before = unit[starts[0] : starts[1]], unit[starts[0] : starts[1]]
        self.dz: list[Array] = []  # by layers, as rows of (1, y)
        self._dv = [unit[a:b] for a, b in pairwise(starts[1:])]
        for layer, dv in zip(problem.network.layers, self._dv, strict=False):
            weight = layer.weight if self.dz else layer.weight[:, self.free]
            self.dz.append(weight @ before)
            before = dv
        pairs = [self._interval(self._d, differences.lower[self.free], differences.upper[self.free], "d")]
        quotients = [*(b.slope for b in self._layers[:-1]), _slopes(problem.network.layers[-2], self._layers[-1], last)]
        for b, slope, dz, dv in zip(self._layers, quotients, self.dz, self._dv, strict=True):
            pairs.append(self._interval(dz, b.dz.lower, b.dz.upper, "dz"))
            s0, s1 = slope.lower[:, None], slope.upper[:, None]
            pairs.append((s1 * dz - dv, dv - s0 * dz, ["slope"] * len(dz)))
        outer = problem.outer or problem
        self.is_round = (
            problem.metric.p == 2.0 and outer.metric.phi is None
        )  # a proof has an embedding's numbers beside
        if self.is_round:
            constant, image = problem.eps * unit[:1], problem.metric.matrix[:, self.free] @ self._d
            pairs.append((np.vstack([constant, -image]), np.vstack([constant, image]), ["ball"]))
        self.one, self.other = (np.vstack([pair[k] for pair in pairs]) for k in (0, 1))
        self.kinds = [kind for pair in pairs for kind in pair[2]]
        self.of = np.minimum(np.arange(len(self.one)), len(self.kinds) - 1)  # the ball's rows have one number

    def _interval(self, rows: Array, low: Array, high: Array, kind: str) -> tuple[Array, Array, list[str]]:
        constant = np.zeros_like(rows)
        constant[:, 0] = 1.0
        return high[:, None] * constant - rows, rows - low[:, None] * constant, [kind] * len(rows)

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
        sizes = [d, *(b.dv.magnitude for b in self._layers)]
        return np.concatenate([[1.0], *(np.maximum(one, 1e-3 * one.max(initial=1e-3)) for one in sizes)])

    @cached_property
    def products(self) -> Array:
        """How large each product is, roughly."""
        one, other = np.abs(self.one) @ self.sizes, np.abs(self.other) @ self.sizes
        return np.maximum(np.add.reduceat(one * other, np.arange(len(self.kinds))), 1e-12)

    def form(self, weights: Array) -> Array:
        """Return the sum of all products, each times its number, as a symmetric matrix."""
        total = self.one.T @ (weights[self.of][:, None] * self.other)
        return np.asarray((total + total.T) / 2)

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
        size = np.abs(self.one).T @ (weights[self.of][:, None] * np.abs(self.other))
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

    def joint(self, nu: Array, both: tuple[Array, ...], turn: tuple[Array, ...], deadline: float) -> Joint | None:
        """Bound a function of differences as well as can be found by a deadline; None if nothing was."""
        g = self.objective(nu, both, turn)
        if not np.abs(g).any():
            return None
        unit = float(np.abs(g) @ self.sizes) / max(len(g), 1) ** 0.5
        for upper, weights in reversed(self._search(g / unit, deadline)):
            joint = self.shown(nu, both, turn, unit * upper, unit * weights * (1 + 1e-9))
            if joint is not None:
                return joint
        return None

    def shown(
        self, nu: Array, both: tuple[Array, ...], turn: tuple[Array, ...], upper: float, weights: Array
    ) -> Joint | None:
        """Return a bound of about `upper` that given numbers show of a function; None if they do not."""
        g = self.objective(nu, both, turn)
        unit = float(np.abs(g) @ self.sizes) / max(len(g), 1) ** 0.5
        for room in ROOM:
            raised = upper + room * (abs(upper) + unit) + self.margin * abs(upper)
            if self.holds(g, raised, weights):
                return Joint(nu, both, turn, raised, self._wide(weights), self.margin)
        return None

    def seen(self, joint: Joint) -> Look | None:
        """Return what the numbers of a joint make of its function within these bounds; None if that is no bound."""
        columns, rest = np.split(joint.weights, [self.width])
        weights = np.concatenate([columns[self.free], rest if self.is_round else rest[:-1]])
        return self._look(self.objective(joint.nu, joint.both, joint.turn), np.maximum(weights, LEAST))

    def _wide(self, weights: Array) -> Array:
        """Return weights with a place for every column, whether it can differ or not, and for a ball."""
        columns = np.zeros(self.width)
        columns[self.free] = weights[: len(self.free)]
        return np.concatenate([columns, weights[len(self.free) :], [] if self.is_round else [0.0]])

    def _first(self, g: Array) -> Array | None:
        """Return numbers whose form is positive, for a bound of about 1; None if none were found."""
        kinds = np.array(self.kinds)
        first = np.array([FIRST[kind] for kind in self.kinds]) / self.products
        depth = np.cumsum(
            np.diff(kinds == "dz", prepend=False) & (kinds == "dz")
        )  # a layer's are small beside the last one's
        smaller = np.where(np.isin(kinds, ["dz", "slope"]), 2.0**-depth, 1.5)
        for _ in range(60):
            if _factor(-self.form(first)[1:, 1:]) is not None:
                return np.asarray(first)
            first = first * smaller
        return None

    def _search(self, g: Array, deadline: float) -> list[tuple[float, Array]]:
        """Return bounds, the least one last, and the numbers that make them: by Newton's method, with barriers.

        The bound is the largest value over y of g.y + sum of products, each times its number: convex in the numbers.
        Those on the way, with higher barriers, are further from forms that rounding may turn negative.
        """
        at, found = self._first(g), []
        if at is None:
            return []
        here = self._look(g, at)
        assert here is not None
        barrier, best = 0.1 * abs(here.upper) / (len(at) + len(g)), here
        for _ in range(STEPS):
            step, gain = here.step(barrier, self)
            share = min(1.0, 0.99 / max(float(np.max(-step / here.weights, initial=0.0)), 1e-300))
            for _ in range(30):
                there = self._look(g, here.weights + share * step)
                if there is not None and there.value(barrier, self) < here.value(barrier, self):
                    break
                share, there = share / 2, None
            here = there or here
            best = here if here.upper < best.upper else best
            if time.monotonic() > deadline or barrier * (len(at) + len(g)) < CLOSE * abs(best.upper):
                break
            if there is None or gain < 0.1 * barrier * len(at):
                barrier *= FALL
                found.append((here.upper, here.weights))
        return [*found, (best.upper, best.weights)]

    def _look(self, g: Array, weights: Array) -> Look | None:
        total = self.form(weights)
        factor = _factor(-total[1:, 1:])
        if factor is None or not (weights > 0.0).all():
            return None
        b = g[1:] + 2 * total[0, 1:]
        x = cho_solve(factor, b) / 2
        return Look(weights, factor, np.concatenate([[1.0], x]), float(total[0, 0] + b @ x / 2))


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """What some numbers make: the factor of their form, the y where the bound is met, and the bound."""

    weights: Array
    factor: tuple[Array, bool]
    y: Array
    upper: float

    def ellipsoid(self, rows: Array) -> tuple[Array, Array]:
        """Return where rows of (1, y) are at that y, and how far they get from there per root of the bound given up."""
        return rows @ self.y, (rows[:, 1:] * cho_solve(self.factor, rows[:, 1:].T).T).sum(axis=1)

    def value(self, barrier: float, forms: Forms) -> float:
        """Return the bound with what keeps the numbers positive, and small."""
        return (
            self.upper
            + COST * float(forms.products @ self.weights)
            - barrier * (2 * float(np.log(np.diag(self.factor[0])).sum()) + float(np.log(self.weights).sum()))
        )

    def step(self, barrier: float, forms: Forms) -> tuple[Array, float]:
        """Return Newton's step for the bound less the barrier times log det of the form and logs of the numbers.

        And what it promises to gain.
        """
        each = np.arange(len(self.weights))
        one, other = forms.one[:, 1:], forms.other[:, 1:]
        at_one, at_other = forms.one @ self.y, forms.other @ self.y
        inverse = cho_solve(self.factor, np.eye(one.shape[1]))
        left, right = one @ inverse, other @ inverse
        slope = np.add.reduceat(at_one * at_other + barrier * (left * other).sum(axis=1), each)
        rise = np.add.reduceat(at_one[:, None] * other + at_other[:, None] * one, each, axis=0)
        crossed = left @ other.T
        bend = 0.5 * barrier * ((left @ one.T) * (right @ other.T) + crossed * crossed.T)
        bend = np.add.reduceat(np.add.reduceat(bend, each, axis=0), each, axis=1) + 0.5 * (rise @ inverse @ rise.T)
        slope, bend = slope + COST * forms.products - barrier / self.weights, bend + np.diag(barrier / self.weights**2)
        scaled = _factor(bend * self.weights * self.weights[:, None])
        down = -slope * self.weights
        step = cho_solve(scaled, down) if scaled is not None else down
        return np.asarray(step * self.weights), float(down @ step)


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


def _factor(matrix: Array) -> tuple[Array, bool] | None:
    try:
        factor = cho_factor(matrix, lower=True, check_finite=False)
    except (LinAlgError, ValueError):
        return None
    return factor if bool(np.isfinite(np.diag(factor[0])).all()) else None
