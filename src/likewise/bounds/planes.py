"""Planes: what a curved neuron makes of a difference, bounded by a linear function of the difference *and* of z.

    sign (f(zl) - f(zr)) <= rise dz + lean zr + offset

for all pairs of a neuron's intervals. Where dz is short and z is not, a line in dz alone has to be as steep as the
steepest slope; a plane follows the slope as z changes. Which planes are worth having shows at a model's point: the
facet of a sample's hull that is lowest there. The offset is that of `pairs.largest`, whatever the sample missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from likewise.activations import by_name
from likewise.bounds.interval import Box
from likewise.bounds.pairs import Terms, largest
from likewise.bounds.twin import LayerBounds
from likewise.network import Network
from likewise.rounding import Array

PLACES = 2  # for planes of a tree, above and below each difference
SAMPLE = (33, 9)  # points of z and of dz
SHORT = 1e-7  # an interval shorter than this needs no plane
UPRIGHT = 1e-6  # a facet as steep as this is none of a function
ROOM = 4e-8  # added to an offset: a reader of the proof cuts rectangles at other places


@dataclass(frozen=True, slots=True)
class Plane:
    """One plane of a neuron of a hidden layer, above dv (sign 1) or below it (-1)."""

    layer: int
    neuron: int
    sign: float
    rise: float
    lean: float
    offset: float


@dataclass(frozen=True, slots=True, eq=False)
class Facets:
    """The facets of a neuron's sample: rise, lean and offset of each, above (sign 1) and below."""

    rise: Array
    lean: Array
    offset: Array
    sign: Array

    def lowest(self, dz: float, z: float, dv: float, least: float) -> list[tuple[float, float, float]]:
        """Return sign, rise and lean of the facets that a point is outside of by more than `least`: two at most."""
        found = []
        height = self.rise * dz + self.lean * z + self.offset
        for sign in (1.0, -1.0):
            some = np.flatnonzero(self.sign == sign)
            if len(some):
                at = some[int(np.argmin(height[some]))]
                if sign * dv > height[at] + least:
                    found.append((sign, float(self.rise[at]), float(self.lean[at])))
        return found


def can_lean(network: Network) -> bool:
    """Tell whether all hidden neurons have planes: their layers are of one curve each, that of a smooth function."""
    names = [set(layer.activations) for layer in network.layers[:-1]]
    return bool(names) and all(len(some) == 1 and by_name(*some).bends is not None for some in names)


def facets(network: Network, layers: Sequence[LayerBounds]) -> dict[tuple[int, int], Facets]:
    """Return the facets of every hidden neuron whose intervals are not short, by layer and neuron."""
    found = {}
    for index, (layer, b) in enumerate(zip(network.layers[:-1], layers, strict=False)):
        for j, name in enumerate(layer.activations):
            ends = [(float(box.lower[j]), float(box.upper[j])) for box in (b.right, b.dz)]
            if min(high - low for low, high in ends) < SHORT:
                continue
            grids = (np.linspace(*end, count) for end, count in zip(ends, SAMPLE, strict=True))
            z, h = (grid.ravel() for grid in np.meshgrid(*grids))
            is_pair = (z + h >= b.left.lower[j]) & (z + h <= b.left.upper[j])
            value = by_name(name).value
            some = _hull(np.array([h, z, value(z + h) - value(z)])[:, is_pair])
            if some is not None:
                found[index, j] = some
    return found


def places(layers: Sequence[LayerBounds]) -> list[Plane]:
    """Return level planes for every hidden neuron, above and below in turn: a tree leans them part by part."""
    found = []
    for index, b in enumerate(layers[:-1]):
        for sign, offsets in ((1.0, b.dv.upper), (-1.0, -b.dv.lower)) * PLACES:
            found += [Plane(index, j, sign, 0.0, 0.0, offset) for j, offset in enumerate(offsets.tolist())]
    return found


def _hull(points: Array) -> Facets | None:
    """Return the facets of a sample (dz, z, dv), brought to the size of 1; None if it is too flat to have any."""
    if points.shape[1] < 4:
        return None
    low, width = points.min(axis=1, keepdims=True), np.ptp(points, axis=1, keepdims=True)
    if not (width > 1e-12).all():
        return None
    try:
        normal = ConvexHull(((points - low) / width).T).equations
    except QhullError:  # flat: lines in dz say all there is to say
        return None
    normal = normal[np.abs(normal[:, 2]) > UPRIGHT]
    size = width[2, 0] / np.abs(normal[:, 2])
    rise, lean = -normal[:, 0] / width[0, 0] * size, -normal[:, 1] / width[1, 0] * size
    sign = np.sign(normal[:, 2])
    offset = (sign[:, None] * points[2] - rise[:, None] * points[0] - lean[:, None] * points[1]).max(axis=1)
    return Facets(rise, lean, offset, sign)


def placed(network: Network, layers: Sequence[LayerBounds], planes: Sequence[Plane]) -> list[Plane]:
    """Return planes with offsets that hold within bounds: `pairs.largest` says why."""
    found: dict[int, float] = {}
    for index in sorted({plane.layer for plane in planes}):
        some = [k for k, one in enumerate(planes) if one.layer == index]
        at, b = np.array([planes[k].neuron for k in some]), layers[index]
        sign, rise, lean = (np.array([getattr(planes[k], what) for k in some]) for what in ("sign", "rise", "lean"))
        left, right, dz = (Box(box.lower[at], box.upper[at]) for box in (b.left, b.right, b.dz))
        curve = by_name(network.layers[index].activations[0])
        tops = largest(curve, Terms(sign, -sign, -rise, rise - lean), left, right, dz)
        found |= zip(some, (tops + ROOM * (1 + np.abs(rise) + np.abs(lean))).tolist(), strict=True)
    return [replace(one, offset=found[k]) for k, one in enumerate(planes)]
