"""The one form of every metric: the p-norm of a linear map of the difference."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from likewise.errors import LARGEST, MetricError
from likewise.rounding import Array, dot_error, up

NORMS = (1.0, 2.0, math.inf)


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """d(left, right) = || matrix (left - right) ||_p, with p in {1, 2, inf}.

    `kind` and `note` only say where it came from. Engines see `matrix` and `p` alone.
    """

    matrix: Array
    p: float
    kind: str
    note: str = ""

    def __post_init__(self) -> None:
        matrix = np.array(self.matrix, dtype=np.float64) + 0.0
        if matrix.ndim != 2 or not np.isfinite(matrix).all():
            raise MetricError(f"a metric needs a finite matrix, got shape {matrix.shape}")
        if matrix.size and np.abs(matrix).max() > LARGEST:
            raise MetricError(f"the metric has an entry beyond {LARGEST:g}: rescale it, and eps with it")
        if self.p not in NORMS:
            raise MetricError(f"p must be one of 1, 2 and inf, got {self.p}")
        matrix.setflags(write=False)
        object.__setattr__(self, "matrix", matrix)

    def __repr__(self) -> str:
        return f"Metric({self.kind}, p={self.p:g}, {self.width} columns, rank {len(self.matrix)})"

    @property
    def width(self) -> int:
        """How many columns a person has."""
        return int(self.matrix.shape[1])

    @property
    def digest(self) -> str:
        """SHA-256 of the matrix and p."""
        sha = hashlib.sha256(f"likewise metric 1 {self.p} {self.matrix.shape}".encode())
        sha.update(np.ascontiguousarray(self.matrix, dtype="<f8").tobytes())
        return sha.hexdigest()

    def distance(self, left: Array, right: Array) -> float:
        """Return the distance, rounded to float64."""
        return float(np.linalg.norm(self.matrix @ (left - right), self.p))

    def within(self, left: Array, right: Array, eps: float) -> bool:
        """Tell whether d(left, right) <= eps, without any rounding.

        A float bound decides the clear cases: |fl(a.d) - a.d| <= dot_error, and subtraction errs by one unit. The
        others are decided in rational arithmetic, in which floats, their differences, products and sums are exact.
        """
        moved = np.flatnonzero(left != right)
        if not len(moved):
            return True
        d = left[moved] - right[moved]
        part = self.matrix[:, moved]
        error = dot_error(2 * len(moved) + 2, np.abs(part) @ np.abs(d))
        sizes = up(np.abs(part @ d) + error, 2)
        top = float(sizes.max(initial=1e-300))  # divided out, so that no square underflows
        largest = top * float(np.linalg.norm(sizes / top, self.p)) * (1 + 1e-13 * (len(part) + 2))
        return largest <= eps or self._within_exactly(part, left[moved], right[moved], eps)

    def _within_exactly(self, part: Array, left: Array, right: Array, eps: float) -> bool:
        d = [Fraction(a) - Fraction(b) for a, b in zip(left.tolist(), right.tolist(), strict=True)]
        sums = [sum((Fraction(a) * x for a, x in zip(row, d, strict=True) if a), Fraction(0)) for row in part.tolist()]
        limit = Fraction(eps)
        if self.p == 1.0:
            return sum(abs(s) for s in sums) <= limit
        if self.p == 2.0:
            return sum(s * s for s in sums) <= limit * limit
        return all(abs(s) <= limit for s in sums)

    def boxed(self) -> Metric:
        """Return the rectangular relaxation: each row of the matrix within eps on its own.

        It holds at least the pairs of the metric itself, because every p-norm is at least the largest entry.
        """
        return self if self.p == math.inf else Metric(self.matrix, math.inf, self.kind, "relaxation: box")


def relaxed(metric: Metric, relaxation: str | None) -> Metric:
    """Return the metric itself (`None`) or its rectangular relaxation (`"box"`)."""
    if relaxation is None:
        return metric
    if relaxation == "box":
        return metric.boxed()
    raise MetricError(f"relaxation must be None or 'box', got {relaxation!r}")
