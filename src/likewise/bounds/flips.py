"""Flips: prove that a one-hot group cannot change within a similar pair, by a small tree of linear programs.

A change of category i to j is d_i = 1, d_j = -1. With p_k = 1 if k is the left person's new category and q_k = 1 if it
is the right one's, d = p - q, sum p = sum q <= 1 in every group, and the metric holds for all columns together. The
largest sum p of one group over the relaxation, proven from duals, is below 1 only if no pair changes that group.
Where the relaxation says less, some p or q is set to 0 and to 1 in turn.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from likewise.bounds.ball import ball_rows
from likewise.bounds.rows import Index, Rows
from likewise.bounds.support import Differences
from likewise.problem import Problem
from likewise.rounding import Array
from likewise.solvers import Session

MOST = 120  # linear programs per group before it is given up and may change
WHOLE = 1e-6  # what a linear program's point may be off a whole number
ACCURACY = 1e-3  # of the ball's polyhedron, relative: outside of it, so only sharpness is at stake


class Flips:
    """The linear program of all groups that may change, its bounds narrowed as groups are proven not to."""

    def __init__(self, problem: Problem, box: Differences, groups: Sequence[slice], deadline: float) -> None:
        self._deadline = deadline
        rows = Rows()
        d = rows.variables(box.lower[box.free], box.upper[box.free])
        ball_rows(rows, box, d, ACCURACY)
        place = dict(zip(box.free.tolist(), d.tolist(), strict=True))
        self._new: list[Index] = []
        self._old: list[Index] = []
        for group in groups:
            new = rows.variables(np.zeros(group.stop - group.start), np.minimum(problem.left.upper[group], 1.0))
            old = rows.variables(np.zeros(group.stop - group.start), np.minimum(problem.right.upper[group], 1.0))
            for k, (one, other) in enumerate(zip(new, old, strict=True)):
                difference = place.get(group.start + k)
                extra = ([difference], [-1.0]) if difference is not None else ([], [])
                rows.row([one, other, *extra[0]], [1.0, -1.0, *extra[1]], 0.0, 0.0)
                rows.row([one, other], [1.0, 1.0], upper=1.0)
            rows.row(new, np.ones(len(new)), upper=1.0)
            rows.row([*new, *old], [*np.ones(len(new)), *-np.ones(len(old))], 0.0, 0.0)
            self._new.append(new)
            self._old.append(old)
        model = rows.model()
        self._lower, self._upper = model.lower, model.upper
        self._session = Session(model, only_bounds=True)
        self._whole = np.concatenate([*self._new, *self._old, np.empty(0, dtype=np.int64)])

    def excluded(self, index: int) -> bool:
        """Prove that the group cannot change, and hold it from now on; or return False."""
        objective = np.zeros(len(self._lower))
        objective[self._new[index]] = 1.0
        todo: list[list[tuple[int, float]]] = [[]]
        for _ in range(MOST):
            if not todo:
                self._hold(index)
                return True
            if time.monotonic() > self._deadline:
                return False
            fixed = todo.pop()
            most, point = self._maximise(objective, fixed)
            if most < 1.0:
                continue
            column = self._fractional(point)
            if column is None:
                return False
            todo += [[*fixed, (column, 0.0)], [*fixed, (column, 1.0)]]
        return False

    def _maximise(self, objective: Array, fixed: list[tuple[int, float]]) -> tuple[float, Array]:
        columns = np.array([column for column, _ in fixed], dtype=np.int64)
        values = np.array([value for _, value in fixed])
        if len(columns):
            self._session.change_bounds(columns, values, values)
        found = self._session.maximise(objective)
        if len(columns):
            self._session.change_bounds(columns, self._lower[columns], self._upper[columns])
        return found

    def _fractional(self, point: Array) -> int | None:
        """Return the column that is furthest from a whole number, or None if all are whole."""
        off = np.abs(point[self._whole] - np.round(point[self._whole]))
        worst = int(off.argmax())
        return int(self._whole[worst]) if off[worst] > WHOLE else None

    def _hold(self, index: int) -> None:
        columns = np.concatenate([self._new[index], self._old[index]])
        self._upper[columns] = 0.0
        self._session.change_bounds(columns, self._lower[columns], self._upper[columns])
