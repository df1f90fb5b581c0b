"""Who is similar: every metric is || A (left - right) ||_p <= eps."""

from likewise.metric._form import Metric
from likewise.metric.mahalanobis import Mahalanobis
from likewise.metric.weighted import WeightedLp

__all__ = ["Mahalanobis", "Metric", "WeightedLp"]
