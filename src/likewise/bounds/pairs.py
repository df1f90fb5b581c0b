"""Pairs: the largest value of a function of a neuron's z and f(z), left and right, over intervals of both and of dz:

    a f(zl) + b f(zr) + c zl + d zr  +  p dv^2 + q dz dv + r dz^2,       dz = zl - zr, dv = f(zl) - f(zr)

A neuron's two values are bounded together, which sees what lines of either value alone do not: dv is a share of dz
that depends on where z is, and on how large dz is. With z = zr and h = dz the function is G(z, h). Over a rectangle of
widths w and u it exceeds the largest of its four corners by at most

    w^2 / 8 max |G_zz| + u^2 / 8 max |G_hh|       (the error of interpolation, first in z, then in h)

Let F1, F2 and F3 bound the first three derivatives of f. dv changes with h by f'(zl), with z by f'(zl) - f'(z): at most
F2 |h|, as |dv| is at most F1 |h|; its second derivatives are at most F2 and Z = min(2 F2, F3 |h|). So

    |G_hh| <= |a| F2 + |p| (2 F1^2 + 2 F1 F2 |h|) + |q| (2 F1 + F2 |h|) + 2 |r|
    |G_zz| <= |a| Z + |a + b| F2 + |p| (2 (F2 h)^2 + 2 F1 |h| Z) + |q h| Z

Rectangles that may hold the largest value are halved until hardly anything is left to gain.
"""

from __future__ import annotations

from dataclasses import dataclass, field

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
    """Coefficients of f(zl), f(zr), zl and zr, neuron by neuron, and of dv^2, dz dv and dz^2."""

    left_value: Array
    right_value: Array
    left: Array
    right: Array
    squares: Array = field(default_factory=lambda: np.zeros((3, 1)))

    def of(self, which: np.ndarray) -> Terms:
        """Return those of some neurons."""
        squares = np.broadcast_to(self.squares, (3, len(self.left)))
        lines = self.left_value[which], self.right_value[which], self.left[which], self.right[which]
        return Terms(*lines, squares[:, which])

    def size(self, far: Array) -> Array:
        """How large they are together, where no number is larger than `far`."""
        lines = np.abs(self.left_value) + np.abs(self.right_value) + np.abs(self.left) + np.abs(self.right)
        return np.asarray(lines + 16 * far * np.abs(self.squares).sum(axis=0))

    def value(self, left: Array, right: Array, f_left: Array, f_right: Array) -> Array:
        """Return the function of given z and f(z)."""
        p, q, r = self.squares
        dv, dz = f_left - f_right, left - right
        lines = self.left_value * f_left + self.right_value * f_right + self.left * left + self.right * right
        return np.asarray(lines + (p * dv + q * dz) * dv + r * dz * dz)


def largest(activation: Activation, terms: Terms, left: Box, right: Box, dz: Box, enough: Array | None = None) -> Array:
    """Bound the function of every neuron from above, for an activation that has `bends`; see above why it holds.

    Only rectangles without a pair (z + h is outside of zl's interval), or whose bound is within `enough` of what is
    returned, are left out.
    """
    assert activation.bends is not None
    far = 1.0 + np.maximum(left.magnitude, right.magnitude) + dz.magnitude
    count, size = len(terms.left), terms.size(far * max(activation.lipschitz, 1.0) ** 2)
    off, enough = OFF * size * far, ENOUGH * size if enough is None else enough
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
        in_z, in_h = _bent((activation.lipschitz, *activation.bends), terms.of(who), z, h)
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
            values.append(terms.value(left, z[k], activation.value(left), right[k]))
            inside.append((left >= low) & (left <= high))
    return np.array(values), np.array(inside)


def _bent(bends: tuple[float, float, float], terms: Terms, z: Array, h: Array) -> tuple[Array, Array]:
    """Return by how much a rectangle may exceed its corners, because of z and because of h."""
    first, second, third = bends
    of_left, (p, q, r), far = np.abs(terms.left_value), np.abs(terms.squares), np.abs(h).max(axis=0)
    turn = np.minimum(2 * second, third * far)
    in_z = (of_left + q * far) * turn + np.abs(terms.left_value + terms.right_value) * second
    in_z = in_z + 2 * p * ((second * far) ** 2 + first * far * turn)
    in_h = of_left * second + 2 * p * (first**2 + first * second * far) + q * (2 * first + second * far) + 2 * r
    return in_z * (z[1] - z[0]) ** 2 / 8, in_h * (h[1] - h[0]) ** 2 / 8


def _halved(ends: Array, which: np.ndarray) -> Array:
    """Return the lower and then the upper halves of some intervals; the others twice."""
    middle = ends[0] + (ends[1] - ends[0]) / 2
    lower = np.array([ends[0], np.where(which, middle, ends[1])])
    upper = np.array([np.where(which, middle, ends[0]), ends[1]])
    return np.concatenate([lower, upper], axis=1)
