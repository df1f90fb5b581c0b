"""WeightedLp: (sum_i w_i |d_i|^p)^(1/p), or max_i w_i |d_i| for p = inf."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from likewise.errors import MetricError
from likewise.metric._form import Metric, relaxed


def WeightedLp(weights: ArrayLike, p: float = math.inf, relaxation: str | None = None) -> Metric:  # noqa: N802
    """Return the weighted lp metric for any p >= 1; a weight of 0 leaves its column free to differ.

    `relaxation="box"` bounds every column on its own, w_i^(1/p) |d_i| <= eps, as the paper does.
    """
    try:
        w = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise MetricError("weights must be numbers, one per column") from None
    if w.ndim != 1 or not w.size:
        raise MetricError(f"weights must be one number per column, got an array of shape {w.shape}")
    if not (np.isfinite(w) & (w >= 0)).all():
        worst = int(np.flatnonzero(~(np.isfinite(w) & (w >= 0)))[0])
        raise MetricError(f"weight {worst} is {w[worst]}: weights must be finite and not negative")
    if isinstance(p, bool) or not isinstance(p, int | float) or not p >= 1.0:
        raise MetricError(f"p must be a number from 1 to inf, got {p!r}")
    rows = w if p in (1.0, math.inf) else w ** (1.0 / p)
    return relaxed(Metric(np.diag(rows), float(p), "lp"), relaxation)
