"""Interval bounds: an affine map of a box, and an activation of it, rounded outward."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likewise.errors import ModelError, SoundnessError
from likewise.network import Layer
from likewise.rounding import Array, dot_error, down, up


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """Proven bounds lower <= v <= upper of a vector of values, or of a stack of vectors, one a row."""

    lower: Array
    upper: Array

    def __post_init__(self) -> None:
        width = self.upper - self.lower  # not a number if an end is none, or if both are infinite
        if width.min(initial=0.0) >= 0.0 and width.max(initial=0.0) < np.inf:
            return
        if not (np.isfinite(self.lower).all() and np.isfinite(self.upper).all()):
            raise ModelError("values beyond what float64 can hold: look for huge weights, bounds or metric entries")
        if not (self.lower <= self.upper).all():
            raise SoundnessError("two proven bounds of the same value contradict each other")

    def __repr__(self) -> str:
        return f"Box({self.lower.size} values, widest {float((self.upper - self.lower).max(initial=0.0)):.3g})"

    @property
    def magnitude(self) -> Array:
        """The largest absolute value of each entry."""
        return np.maximum(np.abs(self.lower), np.abs(self.upper))

    def __getitem__(self, row: int) -> Box:
        """Return one box of a stack, which was looked at when the stack was made."""
        one: Box = object.__new__(Box)
        object.__setattr__(one, "lower", self.lower[row])
        object.__setattr__(one, "upper", self.upper[row])
        return one

    def meet(self, other: Box) -> Box:
        """Return the intersection: both bounds are proven, so the value is in it."""
        return Box(np.maximum(self.lower, other.lower), np.minimum(self.upper, other.upper))

    def minus(self, other: Box) -> Box:
        """Return bounds on the difference of two independent values."""
        return Box(down(self.lower - other.upper), up(self.upper - other.lower))


def affine(weight: Array, bias: Array, box: Box) -> Box:
    """Bound weight v + bias over a box: each term is extreme at an end, `dot_error` pays for the rounding."""
    positive, negative = np.maximum(weight, 0.0), np.minimum(weight, 0.0)
    error = dot_error(2 * weight.shape[1] + 1, box.magnitude @ np.abs(weight).T + np.abs(bias))
    low = box.lower @ positive.T + box.upper @ negative.T + bias
    high = box.upper @ positive.T + box.lower @ negative.T + bias
    return Box(down(low - error), up(high + error))


def activate(layer: Layer, z: Box) -> Box:
    """Bound each neuron's activation over its own interval."""
    low, high = np.empty_like(z.lower), np.empty_like(z.upper)
    for activation, rows in layer.groups():
        low[..., rows], high[..., rows] = activation.interval(z.lower[..., rows], z.upper[..., rows])
    return Box(low, high)
