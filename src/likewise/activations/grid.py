"""Where the breaks of piecewise-linear bounds go.

On a cell of width h both the chord and the parallel tangent err by about |f''| h^2 / 8. The largest error over all
cells is least when it is the same in each, that is when the cells carry equal shares of the integral of sqrt|f''|; it
is then (that integral)^2 / (8 M^2), and no other grid of M cells does better to leading order. The paper follows the
y-axis (equal steps of f) instead, which also places breaks where f moves but wastes them where it is nearly straight
and starves the bends of, say, softplus. `uniform` is the plain grid in x, for comparison.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from likewise.activations._activation import LINEAR, Activation
from likewise.errors import InputError
from likewise.rounding import Array

_SAMPLES = 513  # per piece, to integrate sqrt|f''|
_FLAT = 1e-3  # share of the cells that goes by width alone, so that no cell is unbounded where f'' vanishes
# Where convex meets concave, the tangent of one cell moves the chord of the next outward, by its own error at the
# shared break. Cells there get a quarter less: an error c h^3 that grows 1.75-fold is level again at h / 1.75^(1/3).
_RELIEF = 0.25


def grid_breaks(activation: Activation, ends: list[float], cells: int, grid: str) -> Array:
    """Return breaks inside the pieces between `ends`: `cells` cells in all, at least one a piece."""
    if grid not in ("adaptive", "uniform") or cells < 1:
        raise InputError(f"a grid is adaptive or uniform with at least 1 cell, not {grid!r} with {cells}")
    if activation.is_piecewise_linear() or ends[0] == ends[-1]:
        return np.empty(0)
    samples = [_samples(p, q) for p, q in pairwise(ends)]
    shares = [_adaptive(activation, x) if grid == "adaptive" else np.diff(x) for x in samples]
    turns = {a.high for a, b in pairwise(activation.pieces) if LINEAR not in (a.shape, b.shape)}
    relief = [(_RELIEF * (p in turns), _RELIEF * (q in turns)) for p, q in pairwise(ends)]
    counts = _counts([float(share.sum()) for share in shares], [sum(r) for r in relief], cells)
    return np.concatenate([_split(*piece) for piece in zip(samples, shares, counts, relief, strict=True)])


def _samples(p: float, q: float) -> Array:
    """Return points from p to q, denser near 0, where activations bend."""
    points: Array = np.clip(np.sinh(np.linspace(np.arcsinh(p), np.arcsinh(q), _SAMPLES)), p, q)
    return points


def _adaptive(activation: Activation, x: Array) -> Array:
    """Return the integral of sqrt|f''| between neighbours, as sqrt(|step of f'| times width), blended with width."""
    width = np.diff(x)
    bend = np.sqrt(np.abs(np.diff(activation.slope(x))) * width)
    share: Array = bend + _FLAT * bend.sum() * width / max(float(width.sum()), 1e-300)
    return share


def _counts(shares: list[float], relief: list[float], cells: int) -> list[int]:
    """Return how many cells each piece gets: one, then one more to whichever has the largest share per cell."""
    counts = [1] * len(shares)
    while sum(counts) < cells:
        per_cell = [share / (count - spared) for share, count, spared in zip(shares, counts, relief, strict=True)]
        if max(per_cell) == 0:
            break
        counts[int(np.argmax(per_cell))] += 1
    return counts


def _split(x: Array, share: Array, count: int, relief: tuple[float, float]) -> Array:
    """Return the count - 1 points that cut the shares into equal parts, less by `relief` of a part at the two ends."""
    total = np.concatenate([[0.0], np.cumsum(share)])
    cuts = (np.arange(1, count) - relief[0]) / (count - sum(relief))
    points: Array = np.interp(cuts * total[-1], total, x)
    return points
