"""Ascend: climb from a pair in a network of smooth curves, all numbers of both people at once.

A quasi-Newton method (L-BFGS-B) climbs the gap within both people's bounds; that they stay similar is a matter of
multipliers (an augmented Lagrangian), which are raised until it holds. Linear programs along tangents (`polish`) get
there too, a short stretch at a time. Categories and whole numbers stay as they are. All pairs are candidates only.
"""

from __future__ import annotations

import math
import time

import numpy as np
from scipy.optimize import minimize

from likewise.activations import by_name
from likewise.bounds import Reach
from likewise.problem import Problem
from likewise.rounding import Array
from likewise.search.smooth import view

ROUNDS = 14  # times that the multipliers are raised
STEPS, MEMORY = 200, 30  # of the quasi-Newton method, in each round
FIRST, GROWTH = 10.0, 1.5  # the weight of what is too far apart, beside the gap; and by how much it grows
WELL = 1e-7  # how far apart a pair may be, relative, to go on from there

Pair = tuple[Array, Array]


def can_ascend(problem: Problem) -> bool:
    """Tell whether a problem has smooth hidden neurons, a metric with few corners, and no side constraints."""
    names = {name for layer in problem.network.layers[:-1] for name in layer.activations}
    is_smooth = bool(names) and all(by_name(name).bends is not None for name in names)
    is_plain = problem.metric.phi is None and not len(problem.right.constraints[1])
    return is_smooth and is_plain and problem.metric.p in (2.0, math.inf) and problem.eps > 0.0


def ascend(problem: Problem, reach: Reach, pair: Pair, seconds: float) -> Pair:
    """Return a better pair than a given one, similar but for a hair: the last whose rounds were over in time."""
    climb = _Climb(problem, reach, *pair)
    deadline = time.monotonic() + seconds
    at = np.concatenate([pair[1][climb.right], pair[0][climb.left]])
    multipliers, weight = np.zeros(len(climb.apart(at)[0])), FIRST
    for _ in range(ROUNDS):
        found = minimize(
            climb.cost,
            at,
            (multipliers, weight),
            "L-BFGS-B",
            jac=True,
            bounds=climb.bounds,
            options={"maxiter": STEPS, "maxcor": MEMORY},
        )
        at, excess = found.x, climb.apart(found.x)[0]
        multipliers = np.maximum(multipliers + weight * excess, 0.0)
        weight *= GROWTH
        if time.monotonic() > deadline or (excess.max(initial=0.0) < WELL and (multipliers * excess > -WELL).all()):
            break
    return climb.people(at)


class _Climb:
    """What is climbed: the continuous numbers of the right person, and of the left one where the two may differ."""

    def __init__(self, problem: Problem, reach: Reach, left: Array, right: Array) -> None:
        self.problem, self.pair = problem, (left, right)
        self.right = np.asarray(problem.right.continuous)
        self.left = np.setdiff1d(self.right, np.flatnonzero(reach.shared))
        self.shared = np.setdiff1d(self.right, self.left)
        sides = ((problem.right, self.right), (problem.left, self.left))
        self.bounds = [end for domain, at in sides for end in zip(domain.lower[at], domain.upper[at], strict=True)]
        self.matrix = problem.metric.matrix / problem.eps
        self.view = view(problem, np.stack(self.pair))

    def people(self, at: Array) -> Pair:
        """Return both people."""
        left, right = (one.copy() for one in self.pair)
        right[self.right] = at[: len(self.right)]
        left[self.left] = at[len(self.right) :]
        left[self.shared] = right[self.shared]
        return left, right

    def apart(self, at: Array) -> tuple[Array, Array]:
        """Return by how much squares of distances, in units of eps, exceed 1: one number, or those of all rows."""
        left, right = self.people(at)
        rows = self.matrix @ (left - right)
        return np.array([rows @ rows - 1.0]) if self.problem.metric.p == 2.0 else rows**2 - 1.0, rows

    def cost(self, at: Array, multipliers: Array, weight: float) -> tuple[float, Array]:
        """Return what is to be made small, and its gradient: minus the gap, and what being too far apart costs."""
        left, right = self.people(at)
        excess, rows = self.apart(at)
        force = np.maximum(multipliers + weight * excess, 0.0)
        people = np.stack([left, right])
        scores, (up, down) = self.view.score(people), self.view.gradient(people)
        pull = 2.0 * (force * rows) @ self.matrix
        of_left, of_right = pull - up, down - pull
        of_right[self.shared] += of_left[self.shared]
        value = scores[1] - scores[0] + float(force @ force - multipliers @ multipliers) / (2.0 * weight)
        return float(value), np.concatenate([of_right[self.right], of_left[self.left]])
