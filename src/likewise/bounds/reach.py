"""Reach: which columns can differ within a similar pair, and by how much.

A one-hot group differs within a pair only if d_i = 1 and d_j = -1 for two of its columns. So for each such i and j a
proven upper bound below 1 on d_i, or below 2 on d_i - d_j, or a proven distance above eps with that change, shows
that the group is shared. Nothing is assumed without such a
bound: a group that cannot be excluded may differ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likewise.bounds.support import Differences, distance_lower
from likewise.problem import Problem
from likewise.rounding import Array

PASSES = 3
PAIRS = 600  # groups with more pairs of categories than this are only tested column by column


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """`differences` bounds d = left - right column by column; `shared` marks the columns where d is 0."""

    differences: Differences
    shared: np.ndarray
    flippable: tuple[slice, ...]

    def __repr__(self) -> str:
        return f"Reach({int((~self.shared).sum())} columns can differ, {len(self.flippable)} groups among them)"


def reach(problem: Problem) -> Reach:
    """Find the columns that can differ; every exclusion is proven by a dual bound (see the module's docstring)."""
    lower = problem.left.lower - problem.right.upper
    upper = problem.left.upper - problem.right.lower
    lower[lower < 0] = np.nextafter(lower[lower < 0], -np.inf)
    upper[upper > 0] = np.nextafter(upper[upper > 0], np.inf)
    open_groups = list(problem.right.groups)
    for _ in range(PASSES):
        shrunk = _tightened(Differences(problem.metric, problem.eps, lower, upper))
        still = [g for g in open_groups if not _fixed(g, shrunk, problem)]
        lower, upper = shrunk.lower.copy(), shrunk.upper.copy()
        for group in set_minus(open_groups, still):
            lower[group] = upper[group] = 0.0
        for group in still:  # whole steps only: rounding may not widen a one-hot difference
            lower[group] = np.maximum(lower[group], -1.0)
            upper[group] = np.minimum(upper[group], 1.0)
        if len(still) == len(open_groups):
            break
        open_groups = still
    differences = Differences(problem.metric, problem.eps, lower, upper)
    shared = (lower == 0.0) & (upper == 0.0)
    return Reach(differences, shared, tuple(open_groups))


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


def _fixed(group: slice, box: Differences, problem: Problem) -> bool:
    """Prove that a group cannot change within a pair, or return False."""
    allowed_left = problem.left.upper[group] > 0.5
    allowed_right = problem.right.upper[group] > 0.5
    size = group.stop - group.start
    pairs = [(i, j) for i in range(size) for j in range(size) if i != j and allowed_left[i] and allowed_right[j]]
    pairs = [(i, j) for i, j in pairs if box.upper[group][i] >= 1.0 and box.lower[group][j] <= -1.0]
    if not pairs:
        return True
    if len(pairs) > PAIRS:
        return False
    rows = np.zeros((len(pairs), len(box.lower)))
    for k, (i, j) in enumerate(pairs):
        rows[k, group.start + i], rows[k, group.start + j] = 1.0, -1.0
    bounds: Array = box.upper_bounds(rows)
    near = [pair for pair, bound in zip(pairs, bounds, strict=True) if bound >= 2.0]
    return all(_apart(box, group, i, j) for i, j in near)


def _apart(box: Differences, group: slice, i: int, j: int) -> bool:
    """Prove that no pair with category i on the left and j on the right is within eps, or return False."""
    lower, upper = box.lower.copy(), box.upper.copy()
    lower[group] = upper[group] = 0.0
    lower[group.start + i] = upper[group.start + i] = 1.0
    lower[group.start + j] = upper[group.start + j] = -1.0
    return distance_lower(box.metric, lower, upper) > box.eps
