"""Difference bounds: how an activation turns a difference of inputs into one of outputs.

For every pair z, z' in an interval, f(z) - f(z') = s (z - z') with s in the range of f's difference quotients. Over
low <= dz <= high the points (dz, s dz) lie between two lines, each drawn over the ends and the origin.
"""

from __future__ import annotations

import numpy as np

from likewise.bounds.interval import Box
from likewise.bounds.linear import Lines
from likewise.network import Layer
from likewise.rounding import Array, down, up


def slopes(layer: Layer, z: Box) -> Box:
    """Return the range of difference quotients of each neuron over its interval."""
    low, high = np.empty_like(z.lower), np.empty_like(z.upper)
    for activation, rows in layer.groups():
        low[..., rows], high[..., rows] = activation.slopes(z.lower[..., rows], z.upper[..., rows])
    return Box(low, high)


def difference_lines(slope: Box, dz: Box) -> Lines:
    """Return lines around v = s dz for s in `slope` and dz in its interval.

    max over s of s dz is convex in dz and linear on each side of 0, so a line that is above it at both ends and at
    the origin (if inside) is above it everywhere; likewise below. The slope may be any float: the offset is then
    chosen as the largest excess over those points, rounded outward.
    """
    top = _line(slope.lower, slope.upper, dz)
    bottom_slope, bottom_offset = _line(-slope.upper, -slope.lower, dz)
    return Lines(-bottom_slope, -bottom_offset, *top)


def _line(s_low: Array, s_high: Array, dz: Box) -> tuple[Array, Array]:
    low, high = dz.lower, dz.upper
    at_low = np.maximum(s_low * low, s_high * low)
    at_high = np.maximum(s_low * high, s_high * high)
    width = high - low
    wide = width > 1e-12 * np.maximum(np.abs(low), np.abs(high)) + 1e-300
    slope = np.where(wide, (at_high - at_low) / np.where(wide, width, 1.0), s_high)
    slope = np.clip(slope, s_low, s_high)
    excess = np.maximum(up(up(at_low) - down_product(slope, low)), up(up(at_high) - down_product(slope, high)))
    straddles = (low < 0.0) & (high > 0.0)
    offset = np.where(straddles, np.maximum(excess, 0.0), excess)
    zero = (low == 0.0) & (high == 0.0)
    return slope, np.where(zero, 0.0, up(offset))


def down_product(a: Array, b: Array) -> Array:
    """Return a lower bound on the real product."""
    return np.where((a == 0.0) | (b == 0.0), 0.0, down(a * b))


def through(slope: Box, dz: Box) -> Box:
    """Bound s dz over both intervals: a product is extreme at a corner."""
    pairs = [(s, d) for s in (slope.lower, slope.upper) for d in (dz.lower, dz.upper)]
    low = np.stack([down_product(s, d) for s, d in pairs]).min(axis=0)
    return Box(low, np.stack([-down_product(-s, d) for s, d in pairs]).max(axis=0))
