"""Pairs: the largest value of  a f(zl) + b f(zr) + c zl + d zr  over the intervals of zl, of zr and of dz = zl - zr.

A neuron's two values are bounded together, which sees what lines of either value alone do not: dv = f(zl) - f(zr) is a
share of dz that depends on where z is. With z = zr and h = dz the function is G(z, h). Over a rectangle of widths w and
u it exceeds the largest of its four corners by at most

    w^2 / 8 max |G_zz| + u^2 / 8 max |G_hh|       (the error of interpolation, first in z, then in h)

with |G_hh| <= |a| F2 and |G_zz| <= |a| min(2 F2, F3 |h|) + |a + b| F2, where F2 and F3 bound the second and the third
derivative of f. Rectangles that may hold the largest value are halved until hardly anything is left to gain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likewise.activations import Activation
from likewise.bounds.interval import Box
from likewise.rounding import Array, up

FIRST = 8  # rectangles to begin with, side by side in z
ENOUGH = 1e-10  # beside the coefficients: what is not worth another cut
CUTS, CELLS = 60, 400  # at most: cuts one after the other, and rectangles per neuron
OFF = 2.0**-45  # beside coefficients and values: what rounding, f's included, does to a corner


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """Coefficients of f(zl), f(zr), zl and zr, neuron by neuron."""

    left_value: Array
    right_value: Array
    left: Array
    right: Array

    def of(self, which: np.ndarray) -> Terms:
        """Return those of some neurons."""
        return Terms(self.left_value[which], self.right_value[which], self.left[which], self.right[which])

    @property
    def size(self) -> Array:
        """How large they are together."""
        return np.abs(self.left_value) + np.abs(self.right_value) + np.abs(self.left) + np.abs(self.right)


def largest(activation: Activation, terms: Terms, left: Box, right: Box, dz: Box) -> Array:
    """Bound the function of every neuron from above, for an activation that has `bends`; see above why it holds.

    Only rectangles without a pair (z + h is outside of zl's interval), or whose bound is within ENOUGH of what is
    returned, are left out.
    """
    assert activation.bends is not None
    count, size = len(terms.left), terms.size
    far = 1.0 + np.maximum(left.magnitude, right.magnitude) + dz.magnitude
    off, enough = OFF * size * far, ENOUGH * size
    steps = right.lower + np.linspace(0.0, 1.0, FIRST + 1)[:, None] * (right.upper - right.lower)
    steps[-1] = right.upper
    who = np.tile(np.arange(count), FIRST)
    z = np.array([steps[:-1].ravel(), steps[1:].ravel()])
    h = np.array([np.tile(dz.lower, FIRST), np.tile(dz.upper, FIRST)])
    best, above = np.full(count, -np.inf), np.full(count, -np.inf)
    for cut in range(CUTS):
        # Sums are rounded in order, so that no pair is lost; what is no number is kept.
        is_there = ~((z[1] + h[1] < left.lower[who]) | (z[0] + h[0] > left.upper[who]))
        who, z, h = who[is_there], z[:, is_there], h[:, is_there]
        corners, inside = _corners(activation, terms.of(who), z, h, left.lower[who], left.upper[who])
        np.maximum.at(best, who, np.where(inside, corners, -np.inf).max(axis=0))
        in_z, in_h = _bent(activation.bends, terms.of(who), z, h)
        bound = np.where(np.isfinite(corners).all(axis=0), corners.max(axis=0), np.inf) + (in_z + in_h) * (1 + 1e-9)
        is_open = ~(bound <= best[who] + enough[who])
        if cut == CUTS - 1 or int(is_open.sum()) > CELLS * count:
            np.maximum.at(above, who, bound)
            break
        is_cut = (z[0] + h[0] < left.lower[who]) | (z[1] + h[1] > left.upper[who])  # then both ways in turn
        is_long = np.where(is_cut, z[1] - z[0] >= h[1] - h[0], in_z >= in_h)
        who, z, h, is_long = who[is_open], z[:, is_open], h[:, is_open], is_long[is_open]
        if not len(who):
            break
        who, z, h = np.tile(who, 2), _halved(z, is_long), _halved(h, ~is_long)
    return up(np.maximum(above, best + enough) + off, 2)


def _corners(
    activation: Activation, terms: Terms, z: Array, h: Array, low: Array, high: Array
) -> tuple[Array, np.ndarray]:
    """Return the values at the four corners of rectangles, and which of them are of a pair."""
    right = activation.value(z)
    values, inside = [], []
    for k in (0, 1):
        for m in (0, 1):
            left = z[k] + h[m]
            one = terms.left_value * activation.value(left) + terms.right_value * right[k]
            values.append(one + terms.left * left + terms.right * z[k])
            inside.append((left >= low) & (left <= high))
    return np.array(values), np.array(inside)


def _bent(bends: tuple[float, float], terms: Terms, z: Array, h: Array) -> tuple[Array, Array]:
    """Return by how much a rectangle may exceed its corners, because of z and because of h."""
    second, third = bends
    of_left = np.abs(terms.left_value)
    in_z = of_left * np.minimum(2 * second, third * np.abs(h).max(axis=0))
    in_z = in_z + np.abs(terms.left_value + terms.right_value) * second
    return in_z * (z[1] - z[0]) ** 2 / 8, of_left * second * (h[1] - h[0]) ** 2 / 8


def _halved(ends: Array, which: np.ndarray) -> Array:
    """Return the lower and then the upper halves of some intervals; the others twice."""
    middle = ends[0] + (ends[1] - ends[0]) / 2
    lower = np.array([ends[0], np.where(which, middle, ends[1])])
    upper = np.array([np.where(which, middle, ends[0]), ends[1]])
    return np.concatenate([lower, upper], axis=1)
