"""Brackets: the largest value of p f(z) - c z over a neuron's interval, and of k dv - c dz over that of a pair."""

from __future__ import annotations

import numpy as np

from likewise.activations import Activation
from likewise.activations._activation import CONCAVE, LINEAR
from likewise.bounds import Box
from likewise.network import Layer
from likewise.rounding import UNIT, Array, up

STEPS = 44  # of bisection for the highest point of a curved bracket; more would change nothing


def bracket(layer: Layer | None, p: Array, c: Array, z: Box) -> Array:
    """Bound p f(z) - c z over an interval, neuron by neuron; without a layer there is no f."""
    if layer is None:
        return up(np.maximum(-c * z.lower, -c * z.upper), 2)
    out = np.empty_like(p)
    for activation, rows in layer.groups():
        out[rows] = _curve(activation, p[rows], c[rows], z.lower[rows], z.upper[rows])
    return out


def _curve(activation: Activation, p: Array, c: Array, lower: Array, upper: Array) -> Array:
    """Bound p f(z) - c z: at the ends of f's pieces where it is convex, by a tangent where it is concave."""
    best = np.full(p.shape, -np.inf)
    for piece in activation.pieces:
        a, b = np.maximum(lower, piece.low), np.minimum(upper, piece.high)
        inside = a <= b
        if not inside.any():
            continue
        a, b = np.where(inside, a, lower), np.where(inside, b, lower)
        found = np.maximum(_at(activation, p, c, a), _at(activation, p, c, b))
        bent = ((p > 0) if piece.shape == CONCAVE else (p < 0)) & (a < b) & (piece.shape != LINEAR)
        if bent.any():
            found[bent] = _top(activation, p[bent], c[bent], a[bent], b[bent])
        best = np.where(inside, np.maximum(best, found), best)
    return best


def _at(activation: Activation, p: Array, c: Array, z: Array) -> Array:
    """Return p f(z) - c z, rounded up."""
    value, line = p * activation.value(z), c * z
    error = np.abs(p) * activation.error(z) + 4 * UNIT * (np.abs(value) + np.abs(line))
    return up(value - line + error, 2)


def _top(activation: Activation, p: Array, c: Array, a: Array, b: Array) -> Array:
    """Bound p f(z) - c z on [a, b], where it is concave, by its tangent at about its highest point."""
    low, high = a, b
    for _ in range(STEPS):
        z = low + (high - low) / 2
        rises = p * activation.slope(z) - c > 0.0
        low, high = np.where(rises, z, low), np.where(rises, high, z)
    at = activation.before(low)
    slope = p * activation.slope(at) - c
    off = np.abs(p) * activation.slope_error(at) + 4 * UNIT * (np.abs(p * activation.slope(at)) + np.abs(c))
    rise = np.maximum(slope * (a - low), slope * (b - low))
    error = off * (b - a) * (1 + 8 * UNIT) + 8 * UNIT * np.abs(rise)
    return up(_at(activation, p, c, low) + rise + error, 4)


def difference_bracket(k: Array, c: Array, slope: Box, dz: Box, dv: Box) -> Array:
    """Bound k dv - c dz over dz and dv = s dz in their intervals.

    For k > 0 the largest dv is min(max(s_low dz, s_high dz), dv_high), which bends at 0 and where it meets dv_high; for
    k < 0 it is the same with signs turned.
    """
    size = np.abs(k)
    s_low = np.where(k < 0, -slope.upper, slope.lower)
    s_high = np.where(k < 0, -slope.lower, slope.upper)
    most = np.where(k < 0, -dv.lower, dv.upper)
    points = [dz.lower, dz.upper, np.zeros_like(most)]
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        points += [np.nan_to_num(most / s, nan=0.0) for s in (s_low, s_high)]
    best = np.full(k.shape, -np.inf)
    for point in points:
        z = np.clip(point, dz.lower, dz.upper)
        steep = np.maximum(np.abs(s_low), np.abs(s_high))
        largest = np.minimum(np.maximum(s_low * z, s_high * z), most)
        value, line = size * largest, c * z
        error = 8 * UNIT * (np.abs(value) + np.abs(line) + (size * steep + np.abs(c)) * np.abs(z)) + 1e-300
        best = np.maximum(best, value - line + error)
    return up(best, 2)
