"""Piecewise-linear bounds on an activation: Lemma 1 of the paper, rounding included.

Every end of a convexity piece is a break, so in a cell [p, q] the function is linear, convex or concave.

- The chord side (above a convex cell) is f(p) and f(q), each moved outward by the error bound of `value`: the
  interpolation of numbers above f(p) and f(q) is above the chord, which is above f.
- The tangent side is T(p) and T(q), T the tangent at a float t in the cell, each rounded outward with the errors of
  f(t), f'(t), t - p and the operations: the interpolation of numbers below T(p) and T(q) is below T, which is below f.
  Where t lies matters only for tightness. It is where the slope is the chord's, which makes the errors at both ends
  equal, hence the larger of them least (the paper takes the midpoint, the same to leading order).
- At a shared break the smaller lower and the larger upper value is kept, so the bounds are continuous, and moving
  a value outward keeps them bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from likewise.activations._activation import CONVEX, LINEAR, Activation, ordered
from likewise.activations.grid import grid_breaks
from likewise.activations.linear import STEPS
from likewise.rounding import UNIT, Array, down, up


@dataclass(frozen=True, slots=True, repr=False)
class PwlBounds:
    """Continuous piecewise-linear bounds on [breaks[0], breaks[-1]]: interpolate `lower` and `upper` exactly."""

    breaks: Array
    lower: Array
    upper: Array

    def __repr__(self) -> str:
        return f"PwlBounds({len(self.breaks) - 1} cells on [{self.breaks[0]:g}, {self.breaks[-1]:g}])"


def pwl_bounds(
    activation: Activation,
    lo: float,
    hi: float,
    cells: int,
    grid: Literal["adaptive", "uniform"] = "adaptive",
    breaks: Array | None = None,
) -> PwlBounds:
    """Return piecewise-linear bounds on [lo, hi] with about `cells` cells.

    Piecewise-linear activations are met exactly, with a cell per piece. Otherwise there are `cells` cells, or one per
    piece if those are more, placed by `grid` (see `grid`), or at `breaks` where given: those strictly inside (lo, hi),
    plus kinks and inflections. One point (lo == hi) gives one break and no cell.
    """
    ordered(lo, hi)
    forced = [end for end in activation.inflections() if lo < end < hi]
    if breaks is None:
        inner = grid_breaks(activation, [lo, *forced, hi], cells, grid)
    else:
        inner = np.asarray(breaks, dtype=np.float64)
    inner = inner[(inner > lo) & (inner < hi)]
    stops = np.unique(np.concatenate([[lo], forced, inner, [hi]]).astype(np.float64))
    return _bounds_at(activation, stops)


def _bounds_at(activation: Activation, stops: Array) -> PwlBounds:
    """Return the bounds on the cells between `stops`, none of which straddles the end of a piece."""
    f, error = activation.value(stops), activation.error(stops)
    lower, upper = np.where(error > 0, down(f - error), f), np.where(error > 0, up(f + error), f)
    ends = np.array(activation.inflections())
    shapes = np.array([piece.shape for piece in activation.pieces])[np.searchsorted(ends, stops[:-1], side="right")]
    curved = np.flatnonzero(shapes != LINEAR)
    if curved.size:
        p, q = stops[curved], stops[curved + 1]
        side = np.where(shapes[curved] == CONVEX, 1.0, -1.0)
        t = _tangent_points(activation, p, q, side)
        for index, z in ((curved, p), (curved + 1, q)):
            tangent = side * _tangent_low(activation, t, z, side)
            lower[index] = np.where(side > 0, np.minimum(lower[index], tangent), lower[index])
            upper[index] = np.where(side < 0, np.maximum(upper[index], tangent), upper[index])
    return PwlBounds(stops, lower, upper)


def _tangent_points(activation: Activation, p: Array, q: Array, side: Array) -> Array:
    """Return floats t with p <= t < q where the slope is about the chord's.

    t < q because `slope` at a kink is the one on the right, and the cell needs its own.
    """
    chord = (activation.value(q) - activation.value(p)) / (q - p)
    u, v = p, q
    for _ in range(STEPS):
        t = u / 2 + v / 2
        steep: NDArray[np.bool_] = side * activation.slope(t) >= side * chord
        u, v = np.where(steep, u, t), np.where(steep, t, v)
    t = np.clip(u / 2 + v / 2, p, q)
    return np.where(t < q, t, p)


def _tangent_low(activation: Activation, t: Array, z: Array, side: Array) -> Array:
    """Return a lower bound of side (f(t) + f'(t) (z - t)).

    The distance errs by u relative, the product by another, the sum by u of the result: 3u of the magnitude, plus the
    errors of value and slope.
    """
    f, way = activation.value(t), z - t
    rise = activation.slope(t) * way
    margin = activation.error(t) + activation.slope_error(t) * np.abs(way) * (1 + 4 * UNIT)
    margin += 3 * UNIT * (np.abs(f) + np.abs(rise)) + 2.0**-1073
    return down(side * (f + rise) - up(margin, 4))
