"""A bound on a linear model's maximum from any row multipliers, right in real arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from likewise.rounding import dot_error
from likewise.solvers._model import Array, LinearModel


def dual_bound(model: LinearModel, multipliers: Array) -> float:
    """Bound the maximum of `model` from above by weak duality; integer columns are relaxed.

    `multipliers` holds one number per row, positive where the row's upper side is charged, negative for its lower
    side; *any* numbers give a valid bound, the optimal duals of the LP give its optimum. The answer is +inf rather
    than nan when numbers overflow.

    Proof. Replace by 0 every y_i that is not finite or whose side is infinite. For feasible x and r = c - A'y,

        c.x = y.(Ax) + r.x <= sum_i y_i side_i + sum_j max(r_j lower_j, r_j upper_j),

    side_i being row_upper_i if y_i > 0 and row_lower_i if y_i < 0. In floats, r^_j is a sum of at most rows + 1
    products, so |r^_j - r_j| <= e_j (`dot_error`, any order of summation) and r_j x_j <= r^_j x_j + e_j |x_j|. What
    remains is a sum of 1 + rows + 2 columns products of floats (rounding is monotone, so the larger of two rounded
    products is the rounded larger product); `dot_error` bounds its error too, and a last step up pays for adding it.
    """
    return dual(model, multipliers).bound


@dataclass(frozen=True, slots=True, eq=False)
class Dual:
    """A proven bound on a model's maximum, with the multipliers that prove it: of rows, and of a ball that has none."""

    bound: float
    multipliers: Array
    mu: Array | None = None


def dual(model: LinearModel, multipliers: Array) -> Dual:
    """Evaluate the bound of any multipliers; the proof is in `dual_bound`."""
    with np.errstate(over="ignore", invalid="ignore"):
        y, side = _admissible(model, multipliers)
        matrix = model.matrix
        rows, columns = matrix.shape
        products = np.repeat(y, np.diff(matrix.indptr)) * matrix.data
        reduced = model.objective - np.bincount(matrix.indices, products, columns)
        size: Array = np.abs(model.objective) + np.bincount(matrix.indices, np.abs(products), columns)
        # A matrix that stores an entry twice may have more than `rows` products in a column.
        terms = rows if matrix.has_canonical_format else matrix.nnz
        slack = dot_error(terms + 1, size)
        parts = np.concatenate(
            (
                [model.constant],
                y * side,
                np.maximum(reduced * model.lower, reduced * model.upper),
                slack * np.maximum(np.abs(model.lower), np.abs(model.upper)),
            )
        )
        error = float(dot_error(parts.size, np.abs(parts).sum()))
        bound = math.nextafter(float(parts.sum()) + error, math.inf)
    return Dual(math.inf if math.isnan(bound) else bound, y)


def _admissible(model: LinearModel, multipliers: Array) -> tuple[Array, Array]:
    """Return multipliers that charge finite sides only, and those sides."""
    y = np.asarray(multipliers, dtype=np.float64)
    side = np.where(y > 0, model.row_upper, model.row_lower)
    finite = np.isfinite(side) & np.isfinite(y)
    return np.where(finite, y, 0.0), np.where(finite, side, 0.0)
