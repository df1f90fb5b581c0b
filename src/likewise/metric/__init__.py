"""Who is similar: every metric is || A (phi(left) - phi(right)) ||_p <= eps, phi the identity or a network."""

from likewise.metric._form import Metric
from likewise.metric.embedding import Embedding, unfolded
from likewise.metric.mahalanobis import Mahalanobis
from likewise.metric.weighted import WeightedLp

__all__ = ["Embedding", "Mahalanobis", "Metric", "WeightedLp", "unfolded"]
