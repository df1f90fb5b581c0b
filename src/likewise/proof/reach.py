"""Reach, argued: multipliers that show how far each column can differ and which groups cannot change category.

Both rest on the inequality of `evaluation.support`: for any mu, nu.d <= eps ||mu||_q + the box's support of nu - A^T mu
over all similar pairs. With nu = +-e_i it bounds a column; with nu = 0, over the box of those pairs that change
category i for j, a bound below 0 says that there are none. What `bounds.reach` found otherwise is marked as trusted.
"""

from __future__ import annotations

import itertools
import math
import struct
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog, lsq_linear

from likewise.bounds import Reach
from likewise.bounds.support import Differences
from likewise.problem import Problem
from likewise.proof.coding import COLUMN, GROUP, ROOT, TRUSTED_GROUP, sparse
from likewise.proof.evaluation import support
from likewise.rounding import Array

NEAR = 1e-9  # relative: what a bound must gain to be written


@dataclass(frozen=True, slots=True, eq=False)
class ReachProof:
    """The bytes that a checker reads, the box of differences it will find, and what it has to take on trust."""

    content: bytes
    lower: Array
    upper: Array
    trusted: tuple[slice, ...]


def argue(problem: Problem, reach: Reach) -> ReachProof:
    """Return an argument for what `reach` says of this problem (an inner one), as far as there is one."""
    walk = _Walk(problem, reach)
    if not problem.aside:
        while walk.columns() or walk.groups():
            pass
        if walk.trust():
            walk.columns()
    return ReachProof(b"".join([*walk.written, ROOT]), walk.lower, walk.upper, tuple(walk.trusted))


def first_box(problem: Problem) -> tuple[Array, Array]:
    """Bound left - right by the domains alone; that of a category is -1, 0 or 1."""
    lower, upper = problem.left.lower - problem.right.upper, problem.left.upper - problem.right.lower
    lower[lower < 0] = np.nextafter(lower[lower < 0], -np.inf)
    upper[upper > 0] = np.nextafter(upper[upper > 0], np.inf)
    for group in problem.right.groups:
        lower[group], upper[group] = np.maximum(lower[group], -1.0), np.minimum(upper[group], 1.0)
    return lower, upper


class _Walk:
    def __init__(self, problem: Problem, reach: Reach) -> None:
        self.problem, self.wanted = problem, reach
        self.lower, self.upper = first_box(problem)
        self.written: list[bytes] = []
        self.trusted: list[slice] = []

    def columns(self) -> bool:
        """Bound each column about as well as the search did; tell whether that settles more of what is whole."""
        before, free, box = self._open(), self._free, self.wanted.differences
        wanted = [(c, 1.0) for c in free if box.upper[c] < self.upper[c]]
        wanted += [(c, -1.0) for c in free if box.lower[c] > self.lower[c]]
        rows = np.zeros((len(wanted), len(self.lower)))
        for row, (column, sign) in zip(rows, wanted, strict=True):
            row[column] = sign
        now = Differences(self.problem.metric, self.problem.eps, self.lower.copy(), self.upper.copy())
        for (column, sign), nu, mu in zip(wanted, rows, now.multipliers(rows), strict=True):
            known = self.upper[column] if sign > 0 else -self.lower[column]
            found = max(support(self.problem, nu, mu, self.lower, self.upper), 0.0)
            whole = bool(self.problem.right.groups) and self.wanted.shared[column] and found >= 1.0
            if found < known * (1 - NEAR) and not whole:
                self._bound(int(column), sign, found, mu)
        return self._open() < before

    def _open(self) -> int:
        """Count what is left of changes of category and of integers."""
        whole = np.setdiff1d(np.arange(len(self.lower)), self.problem.right.continuous)
        free = int(np.isin(whole, self._free).sum())
        return int((self.upper[whole] >= 1.0).sum() + (self.lower[whole] <= -1.0).sum()) + free

    @property
    def _free(self) -> np.ndarray:
        return np.flatnonzero((self.lower != 0.0) | (self.upper != 0.0))

    def _bound(self, column: int, sign: float, value: float, mu: Array) -> None:
        self.written.append(COLUMN + struct.pack("<Ib", column, int(sign)) + sparse(mu))
        if sign > 0:
            self.upper[column] = min(self.upper[column], value)
        else:
            self.lower[column] = max(self.lower[column], -value)
        self.lower[column], self.upper[column] = whole_steps(
            self.problem, column, float(self.lower[column]), float(self.upper[column])
        )

    def groups(self) -> bool:
        """Exclude changes of category where the search did; tell whether any was new."""
        new = False
        for group in self.problem.right.groups:
            still = bool(((self.lower[group] != 0.0) | (self.upper[group] != 0.0)).any())
            if still and self.wanted.shared[group].all():
                shown = self._excluded(group)
                if shown is not None:
                    head = struct.pack("<II", group.start, len(shown))
                    pairs = (struct.pack("<HH", i, j) + sparse(u) for i, j, u in shown)
                    self.written.append(GROUP + head + b"".join(pairs))
                    self.lower[group] = self.upper[group] = 0.0
                    new = True
        return new

    def _excluded(self, group: slice) -> list[tuple[int, int, Array]] | None:
        """Return multipliers for every change of category that the box leaves, or None if some are not to be had."""
        shown: list[tuple[int, int, Array]] = []
        left = (self.problem.left.upper[group] > 0.5) & (self.upper[group] >= 1.0)
        right = (self.problem.right.upper[group] > 0.5) & (self.lower[group] <= -1.0)
        at_hand = [_by_program(self.problem, self.lower, self.upper, group)] if self._needs_program else []
        for i, j in itertools.product(np.flatnonzero(left).tolist(), np.flatnonzero(right).tolist()):
            if i == j:
                continue
            lower, upper = changed_box(self.lower, self.upper, group, i, j)
            tried = itertools.chain(at_hand, (_apart(self.problem, lower, upper) for _ in range(1)))
            nothing = np.zeros(len(lower))
            u = next((u for u in tried if support(self.problem, nothing, u, lower, upper) < 0.0), None)
            if u is None:
                return None
            at_hand = [u, *at_hand[:2]]
            shown.append((i, j, u))
        return shown

    @property
    def _needs_program(self) -> bool:
        return self.problem.metric.p in (1.0, math.inf) and not _is_diagonal(self.problem.metric.matrix)

    def trust(self) -> bool:
        """Mark the groups that the search excluded by other means, and tell whether there were any."""
        for group in self.problem.right.groups:
            still = bool(((self.lower[group] != 0.0) | (self.upper[group] != 0.0)).any())
            if still and self.wanted.shared[group].all():
                self.written.append(TRUSTED_GROUP + struct.pack("<I", group.start))
                self.lower[group] = self.upper[group] = 0.0
                self.trusted.append(group)
        return bool(self.trusted)


def whole_steps(problem: Problem, column: int, lower: float, upper: float) -> tuple[float, float]:
    """Round a difference of two integers inward to whole steps, where floats leave no doubt; see `bounds.reach`."""
    step, error = float(problem.right.steps[column]), float(problem.right.grid_errors[column])
    if step == 0.0 or error >= 1e-10 * step:
        return lower, upper
    most, least = math.floor(upper / step + 1e-9), math.ceil(lower / step - 1e-9)
    return (
        0.0 if least == 0 else max(lower, (least - 1e-9) * step),
        0.0 if most == 0 else min(upper, (most + 1e-9) * step),
    )


def changed_box(lower: Array, upper: Array, group: slice, i: int, j: int) -> tuple[Array, Array]:
    """Return the box of the differences of pairs with category i on the left and j on the right."""
    low, high = lower.copy(), upper.copy()
    low[group] = high[group] = 0.0
    low[group.start + i] = high[group.start + i] = 1.0
    low[group.start + j] = high[group.start + j] = -1.0
    return low, high


def _is_diagonal(matrix: Array) -> bool:
    used = matrix != 0.0
    return bool((used.sum(axis=0) <= 1).all() and (used.sum(axis=1) <= 1).all())


def _apart(problem: Problem, lower: Array, upper: Array) -> Array:
    """Return u for which u.(A d) is as far above eps ||u||_q as can be, over a box of differences."""
    matrix, p = problem.metric.matrix, problem.metric.p
    if _is_diagonal(matrix):
        nearest = matrix @ np.clip(0.0, lower, upper)
    elif p in (1.0, math.inf):
        return _by_program(problem, lower, upper)
    else:
        ends = np.where(lower < upper, upper, np.nextafter(upper, np.inf))
        nearest = matrix @ lsq_linear(matrix, np.zeros(len(matrix)), (lower, ends)).x
    size = np.abs(nearest) / max(float(np.abs(nearest).max(initial=0.0)), 1e-300)
    if p == math.inf:
        return np.where(np.arange(len(size)) == int(size.argmax()), np.sign(nearest), 0.0)
    return np.asarray(np.sign(nearest) * size ** (p - 1.0))


def _by_program(problem: Problem, lower: Array, upper: Array, changed: slice | None = None) -> Array:
    """Minimise ||A d||_1 or ||A d||_inf over a box, and return the multipliers of A d.

    Within a group d = gained - lost, each adding up to the same number: 1 at most, 1 in the group that is `changed`.
    """
    matrix = problem.metric.matrix
    height, width = matrix.shape
    sizes = np.eye(height) if problem.metric.p == 1.0 else np.ones((height, 1))
    count = sizes.shape[1]
    rows = [np.hstack([matrix, -matrix, -sizes]), np.hstack([-matrix, matrix, -sizes])]
    limits, equal = [np.zeros(2 * height)], [np.zeros((0, 2 * width + count))]
    for group in problem.right.groups:
        row = np.zeros((1, 2 * width + count))
        row[0, group] = 1.0
        rows.append(row)
        limits.append(np.ones(1))
        both = row.copy()
        both[0, width + group.start : width + group.stop] = -1.0
        equal.append(both)
        if group == changed:
            rows.append(-row)
            limits.append(-np.ones(1))
    cost = np.concatenate([np.zeros(2 * width), np.ones(count)])
    bounds = [(max(low, 0.0), max(high, 0.0)) for low, high in zip(lower, upper, strict=True)]
    bounds += [(max(-high, 0.0), max(-low, 0.0)) for low, high in zip(lower, upper, strict=True)]
    sums = np.concatenate(equal)
    solved = linprog(
        cost,
        A_ub=np.concatenate(rows),
        b_ub=np.concatenate(limits),
        A_eq=sums if len(sums) else None,
        b_eq=np.zeros(len(sums)) if len(sums) else None,
        bounds=[*bounds, *[(0.0, None)] * count],
    )
    if solved.x is None:
        return np.zeros(height)
    y = np.asarray(solved.ineqlin.marginals)
    return np.asarray(y[height : 2 * height] - y[:height])
