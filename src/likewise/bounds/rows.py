"""Rows: collect variables and linear rows, then hand them over as one LinearModel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix

from likewise.rounding import Array, dot_error, down, up
from likewise.solvers import LinearModel

# Solvers drop matrix entries of 1e-9 and less without a word.
SMALLEST = 2e-9

Index = np.ndarray


class Rows:
    """A model under construction. Every variable has finite bounds; every row is an outer description."""

    def __init__(self) -> None:
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.integer: list[bool] = []
        self._columns: list[np.ndarray] = []
        self._values: list[Array] = []
        self._sides: list[tuple[float, float]] = []

    def variable(self, lower: float, upper: float, integer: bool = False) -> int:
        """Add one variable and return its index."""
        self.lower.append(float(lower))
        self.upper.append(float(upper))
        self.integer.append(integer)
        return len(self.lower) - 1

    def variables(self, lower: ArrayLike, upper: ArrayLike) -> Index:
        """Add a variable per entry and return their indices."""
        pairs = zip(np.asarray(lower).tolist(), np.asarray(upper).tolist(), strict=True)
        return np.array([self.variable(low, high) for low, high in pairs], dtype=np.int64)

    def row(
        self, columns: Sequence[int] | Index, values: ArrayLike, lower: float = -np.inf, upper: float = np.inf
    ) -> None:
        """Add lower <= sum values[k] x[columns[k]] <= upper.

        A variable that is named twice is merged. Coefficients that solvers would silently drop are dropped here. The
        row is widened by all that either could have contributed, so that no point is lost.
        """
        where, what, lost = _merged(np.asarray(columns, dtype=np.int64), np.array(values, dtype=np.float64))
        small = (np.abs(what) <= SMALLEST) & (what != 0.0)
        lost = lost + np.where(small, np.abs(what), 0.0)
        if lost.any():
            largest = np.array([max(abs(self.lower[k]), abs(self.upper[k])) for k in where.tolist()])
            widening = float(up(float(lost @ largest) * (1 + 1e-12), 2))
            lower, upper = float(down(lower - widening)), float(up(upper + widening))
        keep = ~small & (what != 0.0)
        self._columns.append(where[keep])
        self._values.append(what[keep])
        self._sides.append((lower, upper))

    def model(self, objective: Array | None = None) -> LinearModel:
        """Return everything as arrays; without an objective, a zero one."""
        counts = np.array([len(c) for c in self._columns], dtype=np.int64)
        where = np.concatenate([*self._columns, np.empty(0, dtype=np.int64)])
        what = np.concatenate([*self._values, np.empty(0)])
        shape = (len(counts), len(self.lower))
        matrix = csr_matrix((what, where, np.concatenate([[0], np.cumsum(counts)])), shape=shape)
        matrix.sum_duplicates()
        sides = np.array(self._sides, dtype=np.float64).reshape(-1, 2)
        return LinearModel(
            np.zeros(shape[1]) if objective is None else objective,
            matrix,
            sides[:, 0].copy(),
            sides[:, 1].copy(),
            np.array(self.lower),
            np.array(self.upper),
            np.array(self.integer, dtype=bool),
        )


def _merged(where: Index, what: Array) -> tuple[Index, Array, Array]:
    """Add up the coefficients of variables that are named more than once, and bound what rounding lost."""
    unique, place = np.unique(where, return_inverse=True)
    if len(unique) == len(where):
        return where, what, np.zeros(len(what))
    total, size = np.zeros(len(unique)), np.zeros(len(unique))
    np.add.at(total, place, what)
    np.add.at(size, place, np.abs(what))
    once = np.bincount(place) == 1
    return unique, total, np.where(once, 0.0, dot_error(len(where), size))
