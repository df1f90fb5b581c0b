"""Mahalanobis: sqrt(d^T S d) for a symmetric positive semi-definite S, as the true ball or as the paper's box."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from likewise.errors import MetricError
from likewise.metric._form import Metric, relaxed
from likewise.rounding import Array

TOLERANCE = 1e-9


def Mahalanobis(S: ArrayLike, relaxation: str | None = None) -> Metric:  # noqa: N802 - reads as a type to users
    """Return the metric ||A d||_2 with S = A^T A; eigenvalues within 1e-9 of the largest from 0 are 0.

    `relaxation="box"` bounds each coordinate of the eigenbasis on its own, as the paper does: it depends on the
    basis and holds more pairs than the ball.
    """
    return relaxed(Metric(factor(S), 2.0, "mahalanobis"), relaxation)


def factor(S: ArrayLike) -> Array:
    """Return A with S = A^T A, one row per eigenvalue that is not 0; refuse what is not symmetric and PSD."""
    try:
        matrix = np.array(S, dtype=np.float64)
    except (TypeError, ValueError):
        raise MetricError("S must be a matrix of numbers") from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise MetricError(f"S must be a square matrix, got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise MetricError("S has a non-finite entry (NaN or infinity)")
    scale = float(np.abs(matrix).max())
    skew = np.abs(matrix - matrix.T)
    if skew.max() > TOLERANCE * scale:
        i, j = np.unravel_index(int(skew.argmax()), skew.shape)
        raise MetricError(f"S is not symmetric: S[{i},{j}] = {matrix[i, j]:g}, S[{j},{i}] = {matrix[j, i]:g}")
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    largest = float(np.abs(values).max())
    if values[0] < -TOLERANCE * largest:
        raise MetricError(f"S is not positive semi-definite: its smallest eigenvalue is {values[0]:g}")
    kept = values > TOLERANCE * largest
    rows: Array = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    return rows
