"""Reach, argued: multipliers that show how far each column can differ and which groups cannot change category.

Both rest on the inequality of `evaluation.support`: for any mu, nu.d <= eps ||mu||_q + the box's support of nu - A^T mu
over all similar pairs. With nu = +-e_i it bounds a column. With nu = 0, over the pairs that change from some categories
to some others, a bound below 0 says that there are none: a small tree of such parts shows that a group cannot change.
What is not shown in this way is reported, and then nobody can check the proof.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linprog, lsq_linear

from likewise.bounds import Reach
from likewise.bounds.support import Differences
from likewise.problem import Problem
from likewise.proof.coding import (
    END,
    GROUP,
    NO_TARGET,
    SPLIT_CATEGORY,
    SPLIT_SAME,
    Lemma,
    Numbers,
    lemma,
    side_by_side,
)
from likewise.proof.evaluation import support
from likewise.rounding import Array

NEAR = 1e-9  # relative: what a bound must gain to be written
BUDGETS = (8, 60, 4000)  # parts to show that a group cannot change: what is cheap comes first, and helps with the rest
KEPT = 3  # multipliers to try again in the next part


@dataclass(frozen=True, slots=True, eq=False)
class ReachProof:
    """The bytes that a checker reads, and the groups that it would have to take on trust."""

    content: bytes
    trusted: tuple[slice, ...]


def argue(problem: Problem, reach: Reach) -> ReachProof:
    """Return an argument for what `reach` says of this problem (an inner one), as far as there is one."""
    walk = _Walk(problem, reach)
    if not problem.aside:
        while walk.columns() or any(walk.groups(most) for most in BUDGETS):
            pass
    return ReachProof(b"".join(walk.written), tuple(walk.still()))


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
        self.problem, self.wanted, self.numbers = problem, reach, Numbers(problem)
        self.lower, self.upper = first_box(problem)
        self.written: list[bytes] = []

    def columns(self) -> bool:
        """Bound each column about as well as the search did; tell whether that settles more of what is whole."""
        before, free, box = self._open(), self._free, self.wanted.differences
        wanted = [(int(c), 1) for c in free if box.upper[c] < self.upper[c]]
        wanted += [(int(c), -1) for c in free if box.lower[c] > self.lower[c]]
        rows = np.zeros((len(wanted), len(self.lower)))
        for row, (column, sign) in zip(rows, wanted, strict=True):
            row[column] = sign
        now = Differences(self.problem.metric, self.problem.eps, self.lower.copy(), self.upper.copy())
        lower, upper = self.lower.copy(), self.upper.copy()
        batch: list[Lemma] = []
        for (column, sign), nu, mu in zip(wanted, rows, now.multipliers(rows), strict=True):
            known = upper[column] if sign > 0 else -lower[column]
            found = max(support(self.problem, nu, mu, lower, upper), 0.0)
            whole = bool(self.problem.right.groups) and self.wanted.shared[column] and found >= 1.0
            if found < known * (1 - NEAR) and not whole:
                target = (self.numbers.x("dz", column), sign)
                batch.append(lemma(-math.inf, np.empty(0), target, self.numbers.of_metric(mu)))
                self._bound(column, sign, whole_steps(self.problem, column, found))
        self.written += [side_by_side(batch)] if batch else []
        return self._open() < before

    def _bound(self, column: int, sign: int, value: float) -> None:
        if sign > 0:
            self.upper[column] = min(self.upper[column], value)
        else:
            self.lower[column] = max(self.lower[column], -value)

    def _open(self) -> int:
        """Count what is left of changes of category and of integers."""
        whole = np.setdiff1d(np.arange(len(self.lower)), self.problem.right.continuous)
        free = int(np.isin(whole, self._free).sum())
        return int((self.upper[whole] >= 1.0).sum() + (self.lower[whole] <= -1.0).sum()) + free

    @property
    def _free(self) -> np.ndarray:
        return np.flatnonzero((self.lower != 0.0) | (self.upper != 0.0))

    def still(self) -> Iterator[slice]:
        """Yield the groups that the search holds to be the same in both, and that may still differ here."""
        for group in self.problem.right.groups:
            may = bool(((self.lower[group] != 0.0) | (self.upper[group] != 0.0)).any())
            if may and self.wanted.shared[group].all():
                yield group

    def groups(self, most: int) -> bool:
        """Exclude changes of category where the search did, by so many parts; tell whether any was new."""
        new = False
        for group in list(self.still()):
            index = self.problem.right.groups.index(group)
            shown = _Exclusion(self.problem, self.numbers, most).of(self.lower, self.upper, index)
            if shown is not None:
                self.written.append(SPLIT_SAME + struct.pack(GROUP, 0, index) + shown)
                self.lower[group] = self.upper[group] = 0.0
                new = True
        return new


def whole_steps(problem: Problem, column: int, most: float) -> float:
    """Round a bound of a difference down to whole steps, where floats leave no doubt; see `bounds.reach`.

    A category's is -1, 0 or 1.
    """
    step, error = float(problem.right.steps[column]), float(problem.right.grid_errors[column])
    if any(group.start <= column < group.stop for group in problem.right.groups):
        step, error = 1.0, 0.0
    if step == 0.0 or error >= 1e-10 * step:
        return most
    steps = math.floor(most / step + 1e-9)
    return 0.0 if steps == 0 else min(most, (steps + 1e-9) * step)


@dataclass(frozen=True, slots=True, eq=False)
class _Changes:
    """Pairs whose categories are among some on the left, and some on the right; `differ`: the groups that change."""

    lower: Array
    upper: Array
    left: np.ndarray
    right: np.ndarray
    differ: tuple[int, ...]

    def box(self, problem: Problem) -> tuple[Array, Array]:
        """Bound the differences: a category is surely somebody's if it is the only one left, after a split."""
        lower, upper = self.lower.copy(), self.upper.copy()
        for group in problem.right.groups:
            (left, sure_left), (right, sure_right) = (
                (some[group], some[group] & (some[group].sum() == 1 < (domain.upper[group] > 0.5).sum()))
                for some, domain in ((self.left, problem.left), (self.right, problem.right))
            )
            upper[group] = np.minimum(upper[group], 1.0 * left - sure_right)
            lower[group] = np.maximum(lower[group], 1.0 * sure_left - right)
        return lower, upper


class _Exclusion:
    """A tree of parts of the pairs that change some category, none of which holds a similar pair."""

    def __init__(self, problem: Problem, numbers: Numbers, most: int) -> None:
        self.problem, self.numbers, self.groups = problem, numbers, problem.right.groups
        self.kept: list[Array] = []
        self.left = most  # parts that may still be looked at

    def of(self, lower: Array, upper: Array, index: int) -> bytes | None:
        """Return the tree that shows that a group cannot change, or None if there is none to be had."""
        left, right = self.problem.left.upper > 0.5, self.problem.right.upper > 0.5
        return self._tree(_Changes(lower, upper, left, right, (index,)))

    def _tree(self, part: _Changes) -> bytes | None:
        self.left -= 1
        if self.left < 0:
            return None
        lower, upper = part.box(self.problem)
        choices = [self._choices(part, lower, upper, index) for index in part.differ]
        if any(not len(some) for pair in choices for some in pair):
            return END  # which a reader sees by itself
        shown = self._shown(part, lower, upper, all(len(some) == 1 for pair in choices for some in pair))
        if shown is not None:
            return shown
        for index, pair in zip(part.differ, choices, strict=True):
            if len(pair[0]) == len(pair[1]) == 1 and pair[0] == pair[1]:  # no change at all, once it is somebody's
                return self._by_category(part, index, 0, pair[0])
            for side, some in enumerate(pair):
                if len(some) > 1:
                    return self._by_category(part, index, side, some[: len(some) // 2])
        return self._by_change(part, lower, upper)

    def _choices(self, part: _Changes, lower: Array, upper: Array, index: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the categories that a group may change to (left) and from (right)."""
        group = self.groups[index]
        return (
            np.flatnonzero(part.left[group] & (upper[group] >= 1.0)),
            np.flatnonzero(part.right[group] & (lower[group] <= -1.0)),
        )

    def _shown(self, part: _Changes, lower: Array, upper: Array, is_single: bool) -> bytes | None:
        """Return a leaf whose multipliers show that nobody is in a part."""
        is_worth_it = is_single or self._by_program
        fresh = (self._multipliers(part, lower, upper) for _ in range(is_worth_it))  # only if the others do not
        for mu in itertools.chain(self.kept, fresh):
            if support(self.problem, np.zeros(len(lower)), mu, lower, upper, part.differ) < 0.0:
                self.kept = [mu, *(one for one in self.kept if one is not mu)][:KEPT]
                return side_by_side([lemma(-math.inf, np.empty(0), NO_TARGET, self.numbers.of_metric(mu))]) + END
        return None

    def _by_category(self, part: _Changes, index: int, side: int, chosen: np.ndarray) -> bytes | None:
        group = self.groups[index]
        mask = np.isin(np.arange(group.stop - group.start), chosen)
        written = SPLIT_CATEGORY + struct.pack(GROUP, side, index) + mask.tobytes()
        for some in (mask, ~mask):
            allowed = (part.left if side == 0 else part.right).copy()
            allowed[group] &= some
            half = self._tree(replace(part, left=allowed) if side == 0 else replace(part, right=allowed))
            if half is None:
                return None
            written += half
        return written

    def _by_change(self, part: _Changes, lower: Array, upper: Array) -> bytes | None:
        """Split a part by whether another group changes as well."""
        for index, group in enumerate(self.groups):
            if index not in part.differ and all(map(len, self._choices(part, lower, upper, index))):
                one = self._tree(replace(part, differ=(*part.differ, index)))
                low, high = part.lower.copy(), part.upper.copy()
                low[group] = high[group] = 0.0
                other = None if one is None else self._tree(replace(part, lower=low, upper=high))
                return None if one is None or other is None else SPLIT_SAME + struct.pack(GROUP, 0, index) + one + other
        return None

    @property
    def _by_program(self) -> bool:
        return self.problem.metric.p in (1.0, math.inf) and not _is_diagonal(self.problem.metric.matrix)

    def _multipliers(self, part: _Changes, lower: Array, upper: Array) -> Array:
        """Return mu for which mu.(A d) is as far above eps ||mu||_q as can be, over a part."""
        changed = tuple(self.groups[index] for index in part.differ)
        if self._by_program:
            return _by_program(self.problem, lower, upper, changed)
        low, high = lower.copy(), upper.copy()
        for group in changed:
            gained, lost = upper[group] >= 1.0, lower[group] <= -1.0
            low[group], high[group] = np.where(gained, 1.0, np.where(lost, -1.0, 0.0)), np.where(gained, 1.0, 0.0)
            high[group] = np.where(lost & ~gained, -1.0, high[group])
        return _apart(self.problem, low, high)


def _is_diagonal(matrix: Array) -> bool:
    used = matrix != 0.0
    return bool((used.sum(axis=0) <= 1).all() and (used.sum(axis=1) <= 1).all())


def _apart(problem: Problem, lower: Array, upper: Array) -> Array:
    """Return mu for which mu.(A d) is as far above eps ||mu||_q as can be, over a box of differences."""
    matrix, p = problem.metric.matrix, problem.metric.p
    if _is_diagonal(matrix):
        nearest = matrix @ np.clip(0.0, lower, upper)
    else:
        ends = np.where(lower < upper, upper, np.nextafter(upper, np.inf))
        nearest = matrix @ lsq_linear(matrix, np.zeros(len(matrix)), (lower, ends)).x
    size = np.abs(nearest) / max(float(np.abs(nearest).max(initial=0.0)), 1e-300)
    if p == math.inf:
        return np.where(np.arange(len(size)) == int(size.argmax()), np.sign(nearest), 0.0)
    return np.asarray(np.sign(nearest) * size ** (p - 1.0))


def _by_program(problem: Problem, lower: Array, upper: Array, changed: tuple[slice, ...]) -> Array:
    """Minimise ||A d||_1 or ||A d||_inf over a box, and return the multipliers of A d.

    Within a group d = gained - lost, each adding up to the same number: 1 at most, 1 in the groups that are `changed`.
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
        if group in changed:
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
