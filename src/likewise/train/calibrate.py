"""Platt scaling: the slope and shift of the logits that make the scores say how often the outcome is 1."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from likewise.network import Layer, Network
from likewise.rounding import Array

NEWTON = 100
LARGEST = 1e3  # of a slope: perfectly separable people have no finite one


def class_weights(y: Array) -> Array:
    """Return a weight for each person so that either class weighs as much as the other, 1 on average."""
    share = float(y.mean())
    if not 0.0 < share < 1.0:
        return np.ones_like(y)
    return np.where(y > 0.5, 0.5 / share, 0.5 / (1.0 - share))


def platt(logits: Array, y: Array, balanced: bool) -> tuple[float, float]:
    """Return the slope (not negative) and shift with the least log loss, weighted by class if `balanced`.

    Outcomes are drawn in by one person a class, as Platt does, so that the answer is finite when the classes can be
    told apart without error. Newton's method with a line search on two unknowns.
    """
    weights = class_weights(y) if balanced else np.ones_like(y)
    ones, zeros = float((y > 0.5).sum()), float((y <= 0.5).sum())
    target = np.where(y > 0.5, (ones + 1.0) / (ones + 2.0), 1.0 / (zeros + 2.0))

    def loss(at: Array) -> float:
        z = at[0] * logits + at[1]
        return float((weights * (np.logaddexp(0.0, z) - target * z)).sum())

    at, now = np.array([1.0, 0.0]), np.inf
    for _ in range(NEWTON):
        now = loss(at)
        p = expit(at[0] * logits + at[1])
        g, h = weights * (p - target), weights * p * (1.0 - p)
        slope = np.array([(g * logits).sum(), g.sum()])
        curve = np.array([[(h * logits**2).sum(), (h * logits).sum()], [(h * logits).sum(), h.sum()]])
        step = np.linalg.lstsq(curve, slope, rcond=1e-12)[0]
        size = 1.0
        while size > 1e-6 and loss(at - size * step) > now:
            size /= 2
        if size <= 1e-6 or np.abs(size * step).max() < 1e-9:
            break
        at = at - size * step
    return float(np.clip(at[0], 0.0, LARGEST)), float(at[1])


def folded(network: Network, slope: float, shift: float) -> Network:
    """Return the network whose output before its last activation is slope * (what it was) + shift."""
    last = network.layers[-1]
    return Network((*network.layers[:-1], Layer(slope * last.weight, slope * last.bias + shift, last.activations)))


def calibrated(network: Network, X: Array, y: Array, balanced: bool) -> Network:
    """Return a network of classes with Platt scaling on these people folded into its last layer."""
    return folded(network, *platt(network.logit()(X), y, balanced))
