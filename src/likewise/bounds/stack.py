"""Stack: carry the bounds of many parts of a tree through the network at once, by intervals.

Arrays have a row for each part. Python's cost is per call and not per number, so twenty parts cost as much as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from likewise.bounds.interval import Box, affine
from likewise.bounds.reach import Reach
from likewise.bounds.twin import LayerBounds, TwinBounds, settle
from likewise.network import Layer, Network
from likewise.rounding import down, up

HAIR = 1e-10  # by how much two boxes must miss each other before a part is called empty, relative

Zs = Sequence[tuple[Box, Box, Box]]  # per layer: z of the left, z of the right, dz


def stacked(boxes: Sequence[Box]) -> Box:
    """Return one stack of single boxes."""
    return Box(np.stack([box.lower for box in boxes]), np.stack([box.upper for box in boxes]))


def propagated(network: Network, parts: Sequence[Zs]) -> tuple[list[LayerBounds], NDArray[np.bool_]]:
    """Complete the bounds of many parts from their boxes of z and dz, and say which parts may hold a pair at all.

    Layer by layer: the sides limit dz and, since z_left = z_right + dz, each other; values of one layer limit the z
    of the next. Everything is rounded outward, so boxes of one neuron that have nothing in common prove that a part is
    empty.
    """
    alive = np.ones(len(parts), dtype=bool)

    def meet(one: Box, other: Box) -> Box:
        # A part for which the intersection is empty is marked, and goes on with any box. By a hair is not enough:
        # whoever checks it rounds in his own way, and a linear program will say so too.
        low, high = np.maximum(one.lower, other.lower), np.minimum(one.upper, other.upper)
        np.logical_and(alive, (low <= high + HAIR * (1.0 + np.abs(high))).all(axis=-1), out=alive)
        return Box(np.minimum(low, high), high)

    done: list[LayerBounds] = []
    for index, layer in enumerate(network.layers):
        left, right, dz = (stacked([part[index][k] for part in parts]) for k in range(3))
        if done:
            before = done[-1]
            left = meet(left, affine(layer.weight, layer.bias, before.left_value))
            right = meet(right, affine(layer.weight, layer.bias, before.right_value))
            dz = meet(dz, affine(layer.weight, np.zeros(len(layer.bias)), before.dv))
        dz = meet(dz, left.minus(right))
        left = meet(left, Box(down(right.lower + dz.lower), up(right.upper + dz.upper)))
        right = meet(right, Box(down(left.lower - dz.upper), up(left.upper - dz.lower)))
        left, right = _alike(layer, left), _alike(layer, right)
        done.append(settle(layer, left, right, dz, meet))
    return done, alive


def completed(network: Network, reach: Reach, zs: Zs) -> TwinBounds | None:
    """Complete the bounds of one part; None if it is empty."""
    layers, alive = propagated(network, [zs])
    return TwinBounds(reach, tuple(layer[0] for layer in layers)) if alive[0] else None


def _alike(layer: Layer, z: Box) -> Box:
    """Let neurons with the same weights and bias share their bounds: what enters them is the same number."""
    twins = _twins(layer)
    if not twins:
        return z
    low, high = z.lower.copy(), z.upper.copy()
    for same in twins:
        low[..., same] = low[..., same].max(axis=-1, keepdims=True)
        high[..., same] = np.maximum(high[..., same].min(axis=-1, keepdims=True), low[..., same])
    return Box(low, high)


@lru_cache(maxsize=64)
def _twins(layer: Layer) -> list[NDArray[np.int64]]:
    """Return the neurons of each set of two or more with the same weights and bias."""
    rows = np.column_stack([layer.weight, layer.bias])
    group = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    return [np.flatnonzero(group == k) for k in np.flatnonzero(np.bincount(group) > 1)]
