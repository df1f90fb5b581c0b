"""Evaluate: what an argument proves over a part of the pairs, rounded outward.

At a hidden layer the sum so far is p.v_left + q.v_right, a target adds g.z. For any numbers cl, cr, k, c of a neuron

    p vl + q vr + gl zl + gr zr = cl zl + cr zr + [(p - k) f(zl) - c1 zl] + [(q + k) f(zr) - c2 zr] + [k dv - c dz]

with c1 = cl - gl - c and c2 = cr - gr + c. Each bracket is bounded alone: the first two over one neuron's interval, the
last over dz and dv = s dz, s a difference quotient. What is left goes through z = W v + b to the layer before, and at
the input to the people's own bounds. A coefficient that floats have rounded is off by a known error; the error times
the largest value that it multiplies is added. `likewise_checker.py` does the same on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from likewise.bounds import TwinBounds
from likewise.bounds.argument import Argument
from likewise.bounds.support import dual_power
from likewise.domain import Domain
from likewise.problem import Problem
from likewise.proof.brackets import bracket, difference_bracket
from likewise.rounding import UNIT, Array, dot_error, up

KINDS = ("left", "right", "dz")


@dataclass(frozen=True, slots=True)
class Target:
    """What a lemma bounds from above: `sign` times z of a neuron, on the left, on the right, or left less right."""

    layer: int
    neuron: int
    kind: str
    sign: float

    def coefficients(self, layer: int, width: int) -> tuple[Array, Array]:
        """Return what it adds to the coefficients of z of a layer, left and right."""
        left, right = np.zeros(width), np.zeros(width)
        if layer == self.layer:
            left[self.neuron] = self.sign if self.kind != "right" else 0.0
            right[self.neuron] = {"left": 0.0, "right": self.sign, "dz": -self.sign}[self.kind]
        return left, right


class _Total:
    """A sum of floats with the error that adding them up may have."""

    def __init__(self) -> None:
        self.value, self.size, self.terms = 0.0, 0.0, 0

    def add(self, *parts: Array | float) -> None:
        for part in parts:
            self.value += float(np.sum(part))
            self.size += float(np.sum(np.abs(part)))
            self.terms += int(np.size(part))

    @property
    def upper(self) -> float:
        bound = float(up(self.value + dot_error(2 * self.terms, self.size), 2))
        return np.inf if np.isnan(bound) else bound


@dataclass(frozen=True, slots=True, eq=False)
class Brackets:
    """The bounds of one layer's brackets, and the coefficients they have: (p - k, c1), (q + k, c2), (k, c)."""

    left: Array
    right: Array
    dz: Array
    coefficients: tuple[tuple[Array, Array], tuple[Array, Array], tuple[Array, Array]]


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """The bound of the whole sum, and the brackets it is made of, layer by layer."""

    upper: float
    weight: float  # of all tangents together
    layers: tuple[Brackets, ...]

    @property
    def slack(self) -> float:
        """The bound of the least a - slope b - offset over the pairs; of an argument without a target."""
        if self.upper < 0.0:
            return self.upper
        return float(up(self.upper / self.weight, 2)) if self.weight > 0.0 else np.inf


@dataclass(frozen=True, slots=True, eq=False)
class _Sum:
    """Float coefficients of the left and the right side's numbers, and what each may be off by."""

    left: Array
    right: Array
    left_error: Array
    right_error: Array


def evaluate(problem: Problem, bounds: TwinBounds, argument: Argument, target: Target | None = None) -> Evaluation:
    """Bound the sum that the argument is about over the pairs of `problem`'s domains within `bounds`."""
    with np.errstate(over="ignore", invalid="ignore"):
        total, layers = _Total(), problem.network.layers
        weights = np.maximum(argument.weights, 0.0)
        total.add(-weights * argument.tangents.offsets)
        passed: _Sum | None = None
        done: list[Brackets] = []
        for k in reversed(range(len(layers))):
            wanted = _wanted(argument, weights, target, k, len(layers[k].bias))
            done.insert(0, _brackets(problem, bounds, argument, k, wanted, passed, total))
            passed = _through(layers[k].weight, argument.left[k], argument.right[k])
        assert passed is not None
        _inputs(problem, bounds, argument, passed, total)
        return Evaluation(total.upper, float(weights.sum() * (1 - 1e-12)), tuple(done))


def _through(weight: Array, left: Array, right: Array) -> _Sum:
    """Return the coefficients of what entered a layer, from those of its z."""
    size, height = np.abs(weight), len(weight)
    errors = [dot_error(height, np.abs(c) @ size) for c in (left, right)]
    return _Sum(left @ weight, right @ weight, errors[0], errors[1])


def _wanted(argument: Argument, weights: Array, target: Target | None, k: int, width: int) -> _Sum:
    """Return the coefficients of z that tangents and target ask for."""
    nothing = np.zeros(width)
    left, right = target.coefficients(k, width) if target is not None else (nothing.copy(), nothing.copy())
    error = nothing.copy()
    if k == len(argument.left) - 1:
        weight, slope = float(weights.sum()), float(weights @ argument.tangents.slopes)
        left[0], right[0] = left[0] + weight, right[0] - slope
        error[0] = float(dot_error(len(weights) + 4, 2 + weight + weights @ np.abs(argument.tangents.slopes)))
    return _Sum(left, right, error, error)


def _brackets(
    problem: Problem,
    bounds: TwinBounds,
    argument: Argument,
    k: int,
    wanted: _Sum,
    passed: _Sum | None,
    total: _Total,
) -> Brackets:
    """Bound the brackets of layer k and add them up; in the last layer nothing leaves the neurons (`passed`)."""
    b, layer = bounds.layers[k], problem.network.layers[k]
    cl, cr, both, turn = argument.left[k], argument.right[k], argument.both[k], argument.turn[k]
    c1, c2 = (cl - wanted.left) - turn, (cr - wanted.right) + turn
    for c, g, error, box in (
        (cl, wanted.left, wanted.left_error, b.left),
        (cr, wanted.right, wanted.right_error, b.right),
    ):
        total.add((8 * UNIT * (np.abs(c) + np.abs(g) + np.abs(turn)) + error) * box.magnitude)
    if passed is None:
        both = v_left = v_right = np.zeros_like(both)
    else:
        v_left, v_right = passed.left - both, passed.right + both
        for v, error, box in (
            (passed.left, passed.left_error, b.left_value),
            (passed.right, passed.right_error, b.right_value),
        ):
            total.add((error + 4 * UNIT * (np.abs(v) + np.abs(both))) * box.magnitude)
    curve = None if passed is None else layer
    one, other = bracket(curve, v_left, c1, b.left), bracket(curve, v_right, c2, b.right)
    apart = difference_bracket(both, turn, b.slope, b.dz, b.dv)
    if passed is None and problem.aside:
        apart[1:] = 0.0
        total.add(_ball(problem, -turn[1:], argument.mu, b.dz.lower[1:], b.dz.upper[1:]))
    total.add(one, other, apart, cl * layer.bias, cr * layer.bias)
    return Brackets(one, other, apart, ((v_left, c1), (v_right, c2), (both, turn)))


def _inputs(
    problem: Problem,
    bounds: TwinBounds,
    argument: Argument,
    passed: _Sum,
    total: _Total,
) -> None:
    """Add the largest value of p.x_left + q.x_right over similar people."""
    reach, (omega_left, omega_right) = bounds.reach, argument.omega
    shared, nu = reach.shared, np.where(reach.shared, 0.0, argument.nu)
    p, p_error = _less_constraints(problem.left, omega_left, (passed.left, passed.left_error), total)
    q, q_error = _less_constraints(problem.right, omega_right, (passed.right, passed.right_error), total)
    off = 8 * UNIT * (np.abs(p) + np.abs(q) + np.abs(nu))
    sizes = [np.maximum(np.abs(d.lower), np.abs(d.upper)) for d in (problem.left, problem.right)]
    total.add((p_error + off) * sizes[0], (q_error + off) * sizes[1])
    l_own, r_own, joint = p - nu, q + nu, p + q
    low = np.maximum(problem.left.lower, problem.right.lower)
    high = np.minimum(problem.left.upper, problem.right.upper)
    n = problem.right.numbers
    one = _corner(l_own, problem.left.lower, problem.left.upper)
    other = _corner(r_own, problem.right.lower, problem.right.upper)
    total.add(np.where(shared, _corner(joint, low, high), up(one + other))[n])
    for group in problem.right.groups:
        at, allowed = shared[group], (problem.left.upper[group] > 0.5, problem.right.upper[group] > 0.5)
        mine = np.where(~at & allowed[0], l_own[group], -np.inf).max()
        yours = np.where(~at & allowed[1], r_own[group], -np.inf).max()
        same = np.where(at & allowed[0] & allowed[1], joint[group], -np.inf).max()
        best = max(float(up(mine + yours)), float(same))
        total.add(best if np.isfinite(best) else 0.0)
    d = reach.differences
    if problem.aside:
        total.add(_corner(nu, d.lower, d.upper))
    else:
        total.add(_ball(problem, nu, argument.mu, d.lower, d.upper))


def _less_constraints(domain: Domain, omega: Array, given: tuple[Array, Array], total: _Total) -> tuple[Array, Array]:
    """Take omega (A x - b) <= 0 off the coefficients of a person's columns."""
    A, b = domain.constraints
    if not len(b):
        return given
    omega = np.maximum(omega, 0.0)
    total.add(omega * b)
    p, error = given
    return p - omega @ A, error + dot_error(len(b) + 2, np.abs(p) + omega @ np.abs(A))


def _corner(c: Array, lower: Array, upper: Array) -> Array:
    return up(np.maximum(c * lower, c * upper), 1)


def _ball(problem: Problem, nu: Array, mu: Array, lower: Array, upper: Array, differ: Sequence[int] = ()) -> Array:
    """Bound nu.d over ||A d||_p <= eps, d in a box: eps ||mu||_q plus the box's support of nu - A^T mu.

    `differ` are the groups that must change.
    """
    matrix = problem.metric.matrix
    rest = nu - mu @ matrix
    error = dot_error(len(matrix) + 2, np.abs(nu) + np.abs(mu) @ np.abs(matrix))
    top = max(float(np.abs(mu).max(initial=0.0)), 1e-300)
    norm = problem.eps * top * float(np.linalg.norm(mu / top, dual_power(problem.metric.p))) if len(mu) else 0.0
    corner = np.maximum(rest * lower, rest * upper)
    if not problem.aside:
        for index, group in enumerate(problem.right.groups):
            corner[group] = _change(rest[group], lower[group], upper[group], index in differ)
    widest = np.maximum(np.abs(lower), np.abs(upper))
    return np.concatenate([corner + 4 * UNIT * np.abs(corner), error * widest, [norm * (1 + 1e-14 * (len(mu) + 8))]])


def _change(c: Array, lower: Array, upper: Array, must: bool) -> Array:
    """Bound c.d over the changes of one category: d is 0, or 1 where one is gained and -1 where one is lost.

    The bound is the sum of what is returned, most of it 0.
    """
    out = np.zeros_like(c)
    gained = np.where(upper >= 1.0, c, -np.inf).max()
    lost = np.where(lower <= -1.0, -c, -np.inf).max()
    stays = not must and bool(((lower <= 0.0) & (upper >= 0.0)).all())
    out[0] = max(gained + lost, 0.0 if stays else -np.inf)
    if not np.isfinite(out[0]):
        out = np.maximum(c * lower, c * upper)
    return up(out, 1)


def support(problem: Problem, nu: Array, mu: Array, lower: Array, upper: Array, differ: Sequence[int] = ()) -> float:
    """Bound nu.d over ||A d||_p <= eps, lower <= d <= upper, by the multipliers mu; some groups must change."""
    total = _Total()
    total.add(_ball(problem, nu, mu, lower, upper, differ))
    return total.upper
