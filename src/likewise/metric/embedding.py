"""Embedding: compare people by what a network makes of them; and a linear one as a plain matrix, its rounding paid."""

from __future__ import annotations

import math

import numpy as np

from likewise.errors import MetricError
from likewise.metric._form import Metric
from likewise.network import Network
from likewise.rounding import Array, dot_error, up


def Embedding(network: Network, inner: Metric) -> Metric:  # noqa: N802 - reads as a type to users
    """Return the metric inner(phi(left), phi(right)), phi being the network."""
    if not isinstance(network, Network):
        raise MetricError(f"an embedding needs a likewise.Network, got {type(network).__name__}")
    if not isinstance(inner, Metric):
        raise MetricError(f"the inner metric of an embedding must be a likewise metric, got {type(inner).__name__}")
    if inner.phi is not None:
        raise MetricError("the inner metric of an embedding is an embedding itself: join the two networks")
    return Metric(inner.matrix, inner.p, "embedding", inner.note, network)


def unfolded(metric: Metric, eps: float, largest: Array) -> tuple[Metric, float]:
    """Return a metric without phi, and an eps, that hold at least the same pairs, for a linear phi.

    phi(left) - phi(right) = W (left - right) with W the product of phi's weights. In floats M = matrix W is off by at
    most E entry by entry, so ||M d||_p <= ||matrix W d||_p + ||E |d|||_p <= eps + ||E largest||_p for |d| <= largest.
    """
    if metric.phi is None:
        return metric, eps
    product, error = metric.matrix, np.zeros_like(metric.matrix)
    for layer in reversed(metric.phi.layers):
        size = np.abs(layer.weight)
        lost = dot_error(len(layer.bias), (np.abs(product) + error) @ size)
        product, error = product @ layer.weight, up(error @ size * (1 + 1e-12) + lost, 2)
    off = up(error @ largest * (1 + 1e-12), 2)
    room = float(np.abs(off).sum()) if metric.p < math.inf else float(off.max(initial=0.0))
    return Metric(product, metric.p, metric.kind, metric.note), float(up(eps + room, 2))
