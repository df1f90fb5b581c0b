"""Score: what the output activation makes of two logits.

For a sigmoid output and a threshold t in [0, 1), the pairs of logits (a, b) with sigma(a) - sigma(b) >= t are those
with a >= g(b), g(b) = logit(sigma(b) + t), b < logit(1 - t). With s = sigma(b), g'(b) = s (1-s) / ((s+t) (1-s-t)) rises
with s: the derivative of its logarithm in s is (1-2s)/(s-s^2) - (1-2(s+t))/((s+t)-(s+t)^2), and (1-2x)/(x-x^2) falls
in x on (0, 1). So g is convex, and every tangent is a valid cut a >= g(b0) + g'(b0) (b - b0): no binaries needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from likewise.network import Layer, Network
from likewise.rounding import UNIT, Array

SAFE = 1e-13  # relative room for a handful of float operations and library calls
FARTHEST = 1e3  # logits


@dataclass(frozen=True, slots=True)
class Score:
    """gap = factor * (sigma(a) - sigma(b)) if `curved`, else factor * (a - b)."""

    curved: bool
    factor: float = 1.0

    def gap(self, a: float, b: float) -> float:
        """Return the gap of two logits in floats (a hint)."""
        return self.factor * float(expit(a) - expit(b)) if self.curved else self.factor * (a - b)

    def upper(self, a_upper: float, b_lower: float, d_upper: float) -> float:
        """Bound the gap from a <= a_upper, b >= b_lower and a - b <= d_upper.

        sigma rises, and sigma(b + d) - sigma(b) is largest where the two logits are -d/2 and d/2: tanh(d/4).
        """
        if not self.curved:
            return self.factor * d_upper
        apart = float(expit(a_upper) - expit(b_lower))
        near = math.tanh(max(d_upper, 0.0) / 4)
        return max(0.0, self.factor * min(1.0, min(apart, near) * (1 + SAFE) + SAFE))

    def upper_from_slack(self, t: float, slack: float) -> float:
        """Bound the gap when a - g(b) <= slack for every pair at threshold t.

        Below 0 no pair reaches t. Otherwise a pair with a larger gap than t (in units of `factor`) has a = g(b) + s,
        0 < s <= slack, and its gap is t + h(p), h(p) = sigma(logit(p) + s) - p, p = sigma(b) + t >= t. h rises with s,
        and is concave in p, with its top at sigma(-s/2); so it is at most h of t or of that top, whichever is larger.
        """
        if slack < 0.0:
            return self.factor * t
        excess = _risen(max(t, float(expit(-slack / 2))), slack) if self.curved else slack
        return self.factor * math.nextafter(t + excess * (1 + SAFE), math.inf)


def _risen(p: float, s: float) -> float:
    """Return sigma(logit(p) + s) - p to a few units in its last place; beyond any float's reach of s, 1 - p."""
    if s > FARTHEST:
        return 1.0 - p
    return p * (1.0 - p) * -math.expm1(-s) / (p + (1.0 - p) * math.exp(-s))


def as_logits(network: Network) -> tuple[Network, Score]:
    """Split a network into one that ends in a logit and the score made of it.

    tanh(z) = 2 sigma(2 z) - 1, and doubling floats is exact. Any other output is a neuron before an identity.
    """
    last = network.layers[-1]
    kind = last.activations[0]
    if kind == "identity":
        return network, Score(curved=False)
    if kind == "sigmoid":
        return network.logit(), Score(curved=True)
    if kind == "tanh":
        doubled = Layer(2.0 * last.weight, 2.0 * last.bias, "identity")
        return Network((*network.layers[:-1], doubled)), Score(curved=True, factor=2.0)
    return Network((*network.layers, Layer([[1.0]], [0.0], "identity"))), Score(curved=False)


@dataclass(frozen=True, slots=True)
class Cut:
    """a >= slope * b + offset for every pair of logits whose gap is at least the threshold."""

    slope: float
    offset: float
    at: float = math.inf  # the b of its point; inf for a >= b


def tangents(t: float, b_lower: float, b_upper: float, points: Array) -> list[Cut]:
    """Return tangents of g at the points, each moved down by all that float evaluation may have lost.

    Where none can be drawn, because t is next to 1, a >= b is left: g(b) >= b for every t >= 0.

    With p = sigma(b0) + t and q = 1 - p the errors are at most 16 units/p + 16 units/q in the logit, and as much
    relative in the slope; the slope's error counts over the whole range of b. A reader of the proof takes more off, and
    near q = 0 that is much: as much is taken off here (`likewise_checker.py`), or a proof shows less than is claimed.
    """
    cuts, far = [], max(abs(b_lower), abs(b_upper))
    for b0 in points.tolist():
        s, rest = float(expit(b0)), float(expit(-b0))
        p, q = s + t, rest - t
        if q <= 1e-9 or p <= 1e-300:
            continue
        slope = s * rest / (p * q)
        value = math.log(p) - math.log(q)
        lost = 128 * UNIT * (1 / p + 1 / q + 2) * (1 + abs(value) + slope * (far + 2 * abs(b0)))
        cuts.append(Cut(slope, value - slope * b0 - lost, b0))
    return cuts or [Cut(1.0, 0.0)]


def tangent_points(t: float, b_lower: float, b_upper: float, a_upper: float, count: int, near: list[float]) -> Array:
    """Choose where to draw tangents: spread evenly over the angle of g, and closely around the logits in `near`."""
    high = min(b_upper, float(logit(max(1.0 - t - 1e-8, 1e-300))))
    top = float(expit(a_upper)) - t
    if 0.0 < top < 1.0:
        high = min(high, float(logit(top)))
    low = min(b_lower, high)
    if high - low < 1e-9:
        return np.array([low])
    fine = np.linspace(low, high, 2001)
    s, rest = expit(fine), expit(-fine)
    angle = np.arctan(s * rest / ((s + t) * np.maximum(rest - t, 1e-12)))
    spread = np.interp(np.linspace(angle[0], angle[-1], count), angle, fine)
    steps = np.array([0.0, 0.003, 0.01, 0.03, 0.1, 0.25])
    close = [b + sign * steps for b in near for sign in (-1.0, 1.0)]
    return np.unique(np.clip(np.concatenate([spread, *close]), low, high))
