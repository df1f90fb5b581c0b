"""Argument: multipliers that bound a linear function of a pair from above, over a part of all pairs.

What is bounded is  sum_i weight_i (a - slope_i b - offset_i) + target,  a and b being the left and the right logit and
`target` nothing, or z of one neuron (left, right or their difference) with a sign. A pair whose gap is at least t makes
every bracket non-negative, so a bound of the sum bounds the target for all such pairs; without a target, a bound below
0 says that there is no such pair. *Any* numbers make an argument; how good they are shows when it is evaluated
(`proof.evaluation`, and `likewise_checker.py` on its own).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from likewise.bounds.ball import rotation, touched
from likewise.problem import Problem
from likewise.rounding import Array

PLAIN = math.inf  # the point of the line a >= b, which every pair with a gap of 0 or more satisfies


@dataclass(frozen=True, slots=True, eq=False)
class Tangents:
    """Lines a >= slope b + offset below all pairs of logits with a gap of at least t, drawn at `points` of b.

    Of a score that is not curved there is one line, a >= b + t, and its point says nothing.
    """

    t: float
    points: Array
    slopes: Array
    offsets: Array


ALWAYS = Tangents(-math.inf, np.empty(0), np.empty(0), np.empty(0))  # no line: what holds for every pair


@dataclass(frozen=True, slots=True, eq=False)
class Argument:
    """The multipliers, layer by layer.

    `left` and `right` are the coefficients with which z of each side is passed on to the layer before, `both` and
    `turn` those of dv and -dz where the two sides are bounded together; `nu` those of left - right per column, `mu`
    those of the metric's rows, `omega` those of the side constraints of the left and the right person, `joint` those of
    what was shown of all differences together.
    """

    tangents: Tangents
    weights: Array
    left: tuple[Array, ...]
    right: tuple[Array, ...]
    both: tuple[Array, ...]
    turn: tuple[Array, ...]
    nu: Array
    mu: Array
    omega: tuple[Array, Array]
    joint: Array = field(default_factory=lambda: np.empty(0))

    def __repr__(self) -> str:
        used = sum(int(np.count_nonzero(part)) for part in self.arrays())
        return f"Argument({used} multipliers, {int((self.weights > 0).sum())} tangents at t = {self.tangents.t:g})"

    def arrays(self) -> list[Array]:
        """Return all multipliers but those of the tangents, in the order of the file format."""
        layers = [a for k in range(len(self.left)) for a in (self.left[k], self.right[k], self.both[k], self.turn[k])]
        return [*layers, self.nu, self.mu, *self.omega, self.joint]


@dataclass(frozen=True, slots=True)
class InputRows:
    """Where `encode_inputs` put the rows that matter here."""

    differences: slice
    right: slice
    left: slice
    ball: int


def input_rows(problem: Problem, shared: np.ndarray) -> InputRows:
    """Find the rows of differences, of either person's side constraints and of the ball, by counting."""
    free = int((~shared).sum())
    at = free
    for group in problem.right.groups:
        at += 1 if shared[group].all() else 2
    constraints, integers = len(problem.right.constraints[1]), len(problem.right.integers)
    right = slice(at, at + constraints)
    at += constraints + integers
    left = slice(at, at)
    if free:
        left = slice(at, at + len(problem.left.constraints[1]))
        at += len(problem.left.constraints[1]) + integers
    return InputRows(slice(0, free), right, left, at)


def ball_multipliers(
    matrix: Array,
    free: np.ndarray,
    p: float,
    eps: float,
    touches: Sequence[Array],
    seen: Array | None,
    y: Array,
) -> Array:
    """Return mu, one number per row of the metric's matrix, from the multipliers of the rows of `ball_rows`.

    Those of A d itself for p = inf and for a p that is made of tangents; for p = 1 and 2 the rows come in pairs,
    size - (Q A d) >= 0 and size + (Q A d) >= 0, with the `rotation` Q for p = 2, where tangents follow at the end.
    """
    mu = np.zeros(len(matrix))
    part = matrix[:, free]
    active = np.abs(part).sum(axis=1) > 0
    count = int(active.sum())
    if not count:
        return mu
    if p == math.inf:
        mu[active] = y[:count]
    elif p in (1.0, 2.0):
        q = rotation(part[active], None if seen is None else seen[:, free]) if p == 2.0 else None
        pairs = y[: 2 * (count if q is None else len(q))]
        turned = pairs[1::2] - pairs[::2]
        mu[active] = turned if q is None else turned @ q
        if p == 2.0 and touches:
            directions = [touch / max(float(np.linalg.norm(touch)), 1e-300) for touch in touches]
            mu[active] += y[-len(touches) :] @ np.array(directions)
    else:
        blocks = [1 + 2 * len(touched(eps, touches, i)) for i in range(count)]
        mu[active] = y[np.cumsum([0, *blocks[:-1]])]
    return mu
