"""Reach: which columns can differ within a similar pair, and by how much.

A one-hot group differs within a pair only if d_i = 1 and d_j = -1 for two of its columns. Proven bounds of single
columns exclude most of that, a distance or `Flips` the rest. Nothing is assumed without a bound: a group that cannot
be excluded may differ.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from likewise.bounds.flips import Flips
from likewise.bounds.support import Differences, distance_lower
from likewise.metric import Metric
from likewise.problem import Problem
from likewise.rounding import Array

PASSES = 3


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """`differences` bounds d = left - right column by column; `shared` marks the columns where d is 0."""

    differences: Differences
    shared: np.ndarray
    flippable: tuple[slice, ...]

    def __repr__(self) -> str:
        return f"Reach({int((~self.shared).sum())} columns can differ, {len(self.flippable)} groups among them)"


def reach(problem: Problem, seconds: float = math.inf) -> Reach:
    """Find the columns that can differ; every exclusion is proven by a dual bound (see the module's docstring).

    After about `seconds`, groups that are not yet excluded may differ.
    """
    deadline = time.monotonic() + seconds
    metric = problem.metric if not problem.aside else unlimited(problem.right.width)
    lower = problem.left.lower - problem.right.upper
    upper = problem.left.upper - problem.right.lower
    lower[lower < 0] = np.nextafter(lower[lower < 0], -np.inf)
    upper[upper > 0] = np.nextafter(upper[upper > 0], np.inf)
    open_groups = list(problem.right.groups)
    for _ in range(PASSES):
        shrunk = _tightened(Differences(metric, problem.eps, lower, upper))
        still = [g for g in open_groups if _changes(g, shrunk, problem)]
        lower, upper = _whole_steps(problem, shrunk)
        for group in set_minus(open_groups, still):
            lower[group] = upper[group] = 0.0
        for group in still:  # whole steps only: rounding may not widen a one-hot difference
            lower[group] = np.maximum(lower[group], -1.0)
            upper[group] = np.minimum(upper[group], 1.0)
        if len(still) == len(open_groups):
            gone = _unflippable(problem, Differences(metric, problem.eps, lower, upper), still, deadline)
            for group in gone:
                lower[group] = upper[group] = 0.0
            still = set_minus(still, gone)
        if len(still) == len(open_groups):
            break
        open_groups = still
    differences = Differences(metric, problem.eps, lower, upper)
    shared = (lower == 0.0) & (upper == 0.0)
    return Reach(differences, shared, tuple(open_groups))


def unlimited(width: int) -> Metric:
    """Return a metric by which everyone is similar: the columns say nothing where an embedding is compared."""
    return Metric(np.zeros((0, width)), math.inf, "none")


def _whole_steps(problem: Problem, box: Differences) -> tuple[Array, Array]:
    """Round differences of integers inward to whole steps; both people's values are on the same grid.

    A difference of two values is within `grid_errors` of a whole number of steps. That must be less than a billionth of
    a step; where steps are so tiny beside the values that it is not, nothing is rounded.
    """
    lower, upper = box.lower.copy(), box.upper.copy()
    errors, steps = problem.right.grid_errors, problem.right.steps
    columns = np.array([c for c in problem.right.integers.tolist() if errors[c] < 1e-10 * steps[c]], dtype=np.int64)
    steps = steps[columns]
    most, least = np.floor(upper[columns] / steps + 1e-9), np.ceil(lower[columns] / steps - 1e-9)
    upper[columns] = np.where(most == 0.0, 0.0, np.minimum(upper[columns], (most + 1e-9) * steps))
    lower[columns] = np.where(least == 0.0, 0.0, np.maximum(lower[columns], (least - 1e-9) * steps))
    return lower, upper


def set_minus(groups: list[slice], others: list[slice]) -> list[slice]:
    """Return the groups that are not among the others."""
    return [g for g in groups if g not in others]


def _tightened(box: Differences) -> Differences:
    free = box.free
    if not len(free):
        return box
    unit = np.eye(len(box.lower))[free]
    lower, upper = box.lower.copy(), box.upper.copy()
    upper[free] = np.minimum(upper[free], np.maximum(box.upper_bounds(unit), 0.0))
    lower[free] = np.maximum(lower[free], np.minimum(-box.upper_bounds(-unit), 0.0))
    return Differences(box.metric, box.eps, lower, upper)


def _changes(group: slice, box: Differences, problem: Problem) -> list[tuple[int, int]]:
    """Return the changes of category (left, right) that the bounds of single columns do not exclude."""
    left = np.flatnonzero((problem.left.upper[group] > 0.5) & (box.upper[group] >= 1.0))
    right = np.flatnonzero((problem.right.upper[group] > 0.5) & (box.lower[group] <= -1.0))
    return [(i, j) for i in left.tolist() for j in right.tolist() if i != j]


def _unflippable(problem: Problem, box: Differences, groups: list[slice], deadline: float) -> list[slice]:
    """Return the groups that cannot change; proving one makes the next easier, so they are tried in turn."""
    if not len(box.metric.matrix):
        return []
    if box.metric.p == 2.0:
        return [g for g in groups if all(_apart(box, g, i, j) for i, j in _changes(g, box, problem))]
    flips = Flips(problem, box, groups, deadline)
    proven: list[slice] = []
    for _ in range(PASSES):
        new = [g for k, g in enumerate(groups) if g not in proven and flips.excluded(k)]
        proven += new
        if not new or len(proven) == len(groups):
            break
    return proven


def _apart(box: Differences, group: slice, i: int, j: int) -> bool:
    """Prove that no pair with category i on the left and j on the right is within eps of the 2-norm, or say False."""
    lower, upper = box.lower.copy(), box.upper.copy()
    lower[group] = upper[group] = 0.0
    lower[group.start + i] = upper[group.start + i] = 1.0
    lower[group.start + j] = upper[group.start + j] = -1.0
    return distance_lower(box.metric, lower, upper) > box.eps
