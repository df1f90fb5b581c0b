"""Cells: the directions in which similar people may differ freely, cut into cells, each with a bound of its own.

A metric that does not see some directions leaves a difference d long there. With rows E for a basis of them, a cell
holds the d with |E d - mid| <= half. Write d = e + d' with the cell's centre e: then |E d'| <= half, and ||A d'|| is
about ||A d||, because A hardly sees e. For a neuron of the first layer, dz = w.e + w.d' and

    dv = m dz + q,  |q| <= h |dz| <= h |w.e| + h |w.d'|:

what e gives is an interval, what d' gives is bounded by the spread of the layer over the set of all d' (see
`bounds.spread`), which is the same for all cells of one size. Where |w.e| exceeds every |w.d'|, the sign of
dz is known, and |dz| is dz or -dz.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from likewise.bounds.difference import difference_lines
from likewise.bounds.interval import Box
from likewise.bounds.linear import Lines
from likewise.bounds.spread import Form, Spread, Symmetric
from likewise.bounds.twin import TwinBounds
from likewise.bounds.wide import first_spread
from likewise.problem import Problem
from likewise.rounding import UNIT, Array, dot_error, down, up

MOST = 6  # directions to cut
ROWS, FIRST, AGAIN = 8, 40, 15  # to fit the form of a size with; steps for the first size, and for a next one
ROOM = 1e-9  # relative: how far a centre may be from where it should be
SHRUNK = (0.0, 0.5, 1.0)  # shares of a cell's size to leave out of account, in looking for why it is empty


@dataclass(frozen=True, slots=True, eq=False)
class Free:
    """The directions (orthonormal rows, the most important first) that a metric does not see, and how long d is there.

    `back` is a pseudo-inverse of the metric's matrix, in floats; `lower` and `upper` bound the columns of d.
    """

    rows: Array
    longest: Array
    back: Array
    lower: Array
    upper: Array
    whole: Spread


@dataclass(frozen=True, slots=True, eq=False)
class Size:
    """What holds for the d' of all cells of one size: the layer's spread, and a bound of each neuron of the second."""

    half: Array
    spread: Spread
    form: Form
    second: Array
    output: Form
    apart: Array  # bounds |w.d'| of each neuron of the first layer


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Cells of one problem with two hidden layers and one output."""

    problem: Problem
    bounds: TwinBounds
    free: Free
    sizes: Array  # |weight| of the second layer

    def size(self, half: Array, before: Size | None, deadline: float) -> Size:
        """Bound what cells of one size have in common."""
        weights = [layer.weight for layer in self.problem.network.layers]
        steps, form, output = (FIRST, None, None) if before is None else (AGAIN, before.form, before.output)
        spread = replace(self.free.whole, among=self._among(half))
        sample = weights[1][np.linspace(0, len(weights[1]) - 1, min(ROWS, len(weights[1]))).astype(np.int64)]
        form = spread.fitted(sample, deadline, form, steps)
        second = spread.upper(weights[1], form, deadline)
        slope = self.bounds.layers[1].slope
        typical = (weights[2] * (slope.lower + slope.upper) / 2) @ weights[1]
        output = spread.fitted(typical, deadline, output, 2 * steps)
        return Size(half, spread, form, second, output, self.support(half, spread.weight))

    def _among(self, half: Array) -> Symmetric:
        free, among = self.free, self.free.whole.among
        limits = np.append(self.support(half, np.eye(free.rows.shape[1])), half + ROOM * free.longest)
        limits = np.maximum(limits, ROOM * float(limits.max()))
        return Symmetric(among.matrix, among.radius * (1 + ROOM), np.vstack([among.rows, free.rows]), limits)

    def support(self, half: Array, rows: Array) -> Array:
        """Bound rows @ d' over all cells of a size, by weak duality with multipliers of E and of the metric's rows."""
        free, among = self.free, self.free.whole.among
        along, mu = rows @ free.rows.T, rows @ free.back
        rest = rows - along @ free.rows - mu @ among.matrix
        far = 2 * (among.limits + np.abs(free.rows.T) @ free.longest)  # |d'| <= |d| + |e|, with room
        terms = len(free.rows) + len(among.matrix) + 4
        error = dot_error(terms, np.abs(rows) + np.abs(along) @ np.abs(free.rows) + np.abs(mu) @ np.abs(among.matrix))
        slabs = np.abs(along) @ (half + ROOM * free.longest)
        ball = np.linalg.norm(mu, axis=1) * among.radius * (1 + 2 * ROOM)
        whole = slabs + ball + (np.abs(rest) + error) @ far
        return up(whole + dot_error(rows.shape[1] + 8, whole), 2)

    def uppers(self, size: Size, mids: Array) -> Array:
        """Bound the difference of the outputs in each cell of a size; -inf where a cell is shown to be empty."""
        centres = mids @ self.free.rows
        uppers = np.full(len(mids), -math.inf)
        alive = np.flatnonzero(~self._empty(size, centres))
        if len(alive):
            uppers[alive] = self._uppers(size, centres[alive])
        uppers[~self._centred(mids, centres)] = math.inf
        return uppers

    def _centred(self, mids: Array, centres: Array) -> np.ndarray:
        """Tell of which cells the centre is where it should be, so that what is claimed of d' holds."""
        free, among = self.free, self.free.whole.among
        off = np.abs(mids - centres @ free.rows.T) + dot_error(
            free.rows.shape[1], np.abs(centres) @ np.abs(free.rows.T)
        )
        seen = np.abs(centres @ among.matrix.T) + dot_error(
            free.rows.shape[1], np.abs(centres) @ np.abs(among.matrix.T)
        )
        is_unseen = np.linalg.norm(seen, axis=1) <= 0.9 * ROOM * among.radius
        return np.asarray((off <= 0.9 * ROOM * free.longest).all(axis=1) & is_unseen)

    def _empty(self, size: Size, centres: Array) -> np.ndarray:
        """Tell which cells hold no d of a pair: for some row v, all of v.d in the cell is beyond what columns allow."""
        free = self.free
        empty = np.zeros(len(centres), dtype=bool)
        for shrink in SHRUNK:
            slack = shrink * np.abs(free.rows.T) @ size.half
            v = np.maximum(centres - free.upper - slack, 0.0) - np.maximum(free.lower - slack - centres, 0.0)
            most, least = np.maximum(v * free.lower, v * free.upper).sum(axis=1), (v * centres).sum(axis=1)
            lost = dot_error(v.shape[1] + 2, (np.abs(v) * (np.abs(centres) + free.whole.among.limits)).sum(axis=1))
            empty |= down(least - 2 * lost - self.support(size.half, -v), 2) > up(most, 2)
        return empty

    def _uppers(self, size: Size, centres: Array) -> Array:
        middle, half, weight = self.free.whole.middle, self.free.whole.half, self.free.whole.weight
        dz = centres @ weight.T
        error = dot_error(weight.shape[1], np.abs(centres) @ np.abs(weight.T))
        at = middle * dz
        radius = up(half * np.abs(dz) + (np.abs(middle) + half) * error + 4 * UNIT * np.abs(at), 4)
        second, empty = self._second(size, at, radius)
        k, constant = self._backward(second)
        fixed = (k * at + np.abs(k) * radius).sum(axis=1)
        lost = dot_error(2 * k.shape[1] + 4, (np.abs(k) * (np.abs(at) + radius)).sum(axis=1))
        is_known = down(np.abs(dz) - error) > size.apart
        uppers = constant + fixed + lost + self._spread(size, k, np.where(is_known, np.sign(dz), 0.0))
        room = dot_error(8, np.abs(constant) + np.abs(fixed) + np.abs(uppers))
        return np.where(empty, -math.inf, np.where(np.isfinite(uppers), up(uppers + room, 4), math.inf))

    def _second(self, size: Size, at: Array, radius: Array) -> tuple[Box, np.ndarray]:
        """Bound the second layer's dz in each cell; where that contradicts what is known of all pairs, it is empty."""
        weight, known = self.problem.network.layers[1].weight, self.bounds.layers[1].dz
        middle, spread = at @ weight.T, radius @ self.sizes.T
        lost = dot_error(2 * weight.shape[1] + 4, np.abs(at) @ self.sizes.T + spread)
        reach = up(spread + lost + size.second, 4)
        low, high = np.maximum(down(middle - reach), known.lower), np.minimum(up(middle + reach), known.upper)
        empty: np.ndarray = np.any(low > high, axis=1)
        return Box(np.where(empty[:, None], known.lower, low), np.where(empty[:, None], known.upper, high)), empty

    def _backward(self, dz: Box) -> tuple[Array, Array]:
        """Substitute the second layer's lines into the output: coefficients of the first layer's dv, and a constant.

        As in `linear.backward_upper`, with lines for each cell.
        """
        layers, bounds = self.problem.network.layers, self.bounds.layers
        lines: Lines = difference_lines(bounds[1].slope, dz)
        positive, negative = np.maximum(layers[2].weight[0], 0.0), np.minimum(layers[2].weight[0], 0.0)
        through = positive * lines.upper_slope + negative * lines.lower_slope
        offsets = lines.upper_offset @ positive + lines.lower_offset @ negative
        sizes = np.abs(lines.upper_offset) @ positive - np.abs(lines.lower_offset) @ negative
        lost = dot_error(2 * len(positive), sizes) + (dot_error(2, np.abs(through)) * dz.magnitude).sum(axis=1)
        error = dot_error(len(positive), np.abs(through) @ self.sizes)
        lost = lost + error @ bounds[0].dv.magnitude
        return through @ layers[1].weight, up(offsets + lost * (1 + 1e-12) + dot_error(4, np.abs(offsets)), 2)

    def _spread(self, size: Size, k: Array, signs: Array) -> Array:
        """Bound what d' gives to k.dv; where a sign is known, k m dz + |k| h |dz| is a number times dz."""
        whole = self.free.whole
        uppers = np.empty(len(k))
        for row in range(len(k)):
            middle = whole.middle + np.sign(k[row]) * signs[row] * whole.half
            half = np.where(signs[row] == 0.0, whole.half, 8 * UNIT * (np.abs(whole.middle) + whole.half))
            spread = replace(size.spread, middle=middle, half=half)
            uppers[row] = spread.upper(k[row : row + 1], size.output)[0]
        return uppers


def cells_of(problem: Problem, bounds: TwinBounds) -> Cells | None:
    """Return the cells of a problem, or None if its metric sees all directions, or misses too many to cut."""
    layers, differences = problem.network.layers, bounds.reach.differences
    columns = differences.free
    if len(layers) != 3 or len(layers[2].bias) != 1 or problem.aside or not len(columns):
        return None
    whole = first_spread(problem, bounds)
    _, values, axes = np.linalg.svd(whole.among.matrix)
    rank = int((values > ROOM * values.max(initial=0.0)).sum())
    if not 0 < len(columns) - rank <= MOST:
        return None
    influence = np.abs(layers[2].weight[0]) @ np.abs(layers[1].weight)
    _, _, turned = np.linalg.svd(influence[:, None] * (whole.weight @ axes[rank:].T), full_matrices=False)
    rows = np.zeros((len(columns) - rank, len(differences.lower)))
    rows[:, columns] = turned @ axes[rank:]
    longest = np.maximum(differences.upper_bounds(rows), differences.upper_bounds(-rows))
    back: Array = np.asarray(np.linalg.pinv(whole.among.matrix, rcond=ROOM), dtype=np.float64)
    lower, upper = differences.lower[columns], differences.upper[columns]
    free = Free(rows[:, columns], longest, back, lower, upper, whole)
    return Cells(problem, bounds, free, np.abs(layers[1].weight))
