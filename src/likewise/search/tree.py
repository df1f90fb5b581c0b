"""Tree: branch on categories and on neurons' intervals, bound every part by a linear program of our own proof.

A part is a set of pairs: a range of z per neuron and side, and the categories still allowed. Its slack is bounded by
`Session`, whose bounds are rebuilt from duals and hold in real arithmetic; the parts of a split cover the whole. So the
largest slack over the open parts bounds all pairs, and no solver's word is taken. Curved activations need no grid:
their hull tightens as intervals shrink.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from likewise.activations import by_name
from likewise.bounds import Box, LayerBounds, TwinBounds, settle
from likewise.bounds.encoding import NOTHING, Encoding
from likewise.domain import Domain
from likewise.network import Network
from likewise.problem import Problem
from likewise.rounding import Array, down, up

INSIDE = 0.1  # a split keeps at least this share of an interval on either side


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some of the pairs: those of a problem with fewer categories and narrower intervals."""

    problem: Problem
    bounds: TwinBounds


@dataclass(frozen=True, slots=True, eq=False)
class Bounded:
    """A part with its proven slack, the linear program's point and the encoding it refers to."""

    slack: float
    part: Part
    point: Array
    encoding: Encoding


@dataclass(frozen=True, slots=True)
class Split:
    """Where to split, and how much of the relaxation's error is found there, in logits."""

    weight: float
    parts: Callable[[], list[Part]]


Bounder = Callable[[Part], Bounded]


class Tree:
    """The open parts, the widest slack first."""

    def __init__(self, bound: Bounder, whole: Part) -> None:
        self._bound = bound
        self._count = itertools.count()
        self._heap: list[tuple[float, int, Bounded]] = []
        self._influence = influence(whole.problem.network)
        self._push(bound(whole))

    @property
    def slack(self) -> float:
        """The largest slack over the open parts; below 0 nothing is open."""
        return -self._heap[0][0] if self._heap else -1.0

    def split(self) -> bool:
        """Split the widest part and bound its halves; False if there is nothing left to split."""
        if not self._heap:
            return False
        _, _, widest = heapq.heappop(self._heap)
        split = best_split(widest, self._influence)
        if split.weight <= 0.0:
            self._push(widest)
            return False
        for part in split.parts():
            bounded = self._bound(part)
            self._push(replace(bounded, slack=min(bounded.slack, widest.slack)))
        return True

    def _push(self, bounded: Bounded) -> None:
        """Keep a part open unless its slack is proven below 0: then none of its pairs reaches the threshold."""
        if bounded.slack >= 0.0:
            heapq.heappush(self._heap, (-bounded.slack, next(self._count), bounded))


def influence(network: Network) -> list[Array]:
    """Estimate how much each neuron of each layer moves the logit: products of absolute weights (for ranking only)."""
    weights = [np.abs(layer.weight) for layer in network.layers]
    reach = [weights[-1][0]]
    for weight in reversed(weights[1:-1]):
        reach.insert(0, reach[0] @ weight)
    return reach


def best_split(bounded: Bounded, reach: list[Array]) -> Split:
    """Choose the category or the neuron where the linear program's point is furthest from a real pair."""
    nothing = Split(0.0, list)
    return max([nothing, *_group_splits(bounded, reach), *_neuron_splits(bounded, reach)], key=lambda s: s.weight)


def _group_splits(bounded: Bounded, reach: list[Array]) -> list[Split]:
    problem, encoding = bounded.part.problem, bounded.encoding
    first = problem.network.layers[0].weight
    effect = (reach[0] if len(problem.network.layers) > 1 else np.ones(1)) @ np.abs(first)
    splits = []
    for group in problem.right.groups:
        for side, x in (("left", encoding.left.x[group]), ("right", encoding.right.x[group])):
            values = bounded.point[x]
            missing = 1.0 - float(values.max())
            if missing > 1e-7:
                weight = missing * float(effect[group][values > 1e-7].max())
                shared = bool(bounded.part.bounds.reach.shared[group].all())
                splits.append(Split(weight, _by_category(bounded.part, group, int(values.argmax()), side, shared)))
    return splits


def _by_category(part: Part, group: slice, category: int, side: str, shared: bool) -> Callable[[], list[Part]]:
    def parts() -> list[Part]:
        size = group.stop - group.start
        chosen = np.arange(size) == category
        halves = []
        for allowed in (chosen, ~chosen):
            domains = {"left": part.problem.left, "right": part.problem.right}
            for name in ("left", "right") if shared else (side,):
                domains[name] = domains[name].only(group, allowed)
            if all(_inhabited(domain, group) for domain in domains.values()):
                halves.append(Part(replace(part.problem, left=domains["left"], right=domains["right"]), part.bounds))
        return halves

    return parts


def _inhabited(domain: Domain, group: slice) -> bool:
    return bool((domain.upper[group] > 0.5).any())


def _neuron_splits(bounded: Bounded, reach: list[Array]) -> list[Split]:
    encoding, part = bounded.encoding, bounded.part
    splits = []
    for index, b in enumerate(part.bounds.layers[:-1]):
        layer = part.problem.network.layers[index]
        for name, side, box in (("left", encoding.left, b.left), ("right", encoding.right, b.right)):
            z = bounded.point[side.z[index]] / side.scale[index]
            v = np.where(side.v[index] == NOTHING, 0.0, bounded.point[side.v[index]] / side.scale[index])
            off = np.abs(v - layer.activate(np.clip(z, box.lower, box.upper))) * reach[index]
            j = int(off.argmax())
            if off[j] > 1e-12 and box.upper[j] - box.lower[j] > 1e-9:
                splits.append(Split(float(off[j]), _by_interval(part, index, j, name, float(z[j]))))
    return splits


def _by_interval(part: Part, index: int, j: int, side: str, z: float) -> Callable[[], list[Part]]:
    def parts() -> list[Part]:
        b = part.bounds.layers[index]
        box = b.left if side == "left" else b.right
        at = _place(part.problem.network, index, j, float(box.lower[j]), float(box.upper[j]), z)
        halves = (_narrowed(part, b, index, j, side, at, is_below) for is_below in (True, False))
        return [half for half in halves if half is not None]

    return parts


def _place(network: Network, index: int, j: int, low: float, high: float, z: float) -> float:
    """Split at a kink if there is one inside, else at the point, kept off the ends."""
    kinks = [k for k in by_name(network.layers[index].activations[j]).kinks() if low < k < high]
    if kinks:
        return min(kinks, key=lambda k: abs(k - z))
    return float(np.clip(z, low + INSIDE * (high - low), high - INSIDE * (high - low)))


def _narrowed(part: Part, b: LayerBounds, index: int, j: int, side: str, at: float, is_below: bool) -> Part | None:
    """Return the half with z <= at or z >= at, or None if the other side's bounds leave no pair in it.

    z_left = z_right + dz carries a limit of one side over to the other, rounded outward.
    """
    boxes = {name: (box.lower.copy(), box.upper.copy()) for name, box in (("left", b.left), ("right", b.right))}
    other = "right" if side == "left" else "left"
    shift = (b.dz.lower[j], b.dz.upper[j]) if other == "left" else (-b.dz.upper[j], -b.dz.lower[j])
    if is_below:
        boxes[side][1][j] = min(boxes[side][1][j], at)
        boxes[other][1][j] = min(boxes[other][1][j], float(up(at + shift[1])))
    else:
        boxes[side][0][j] = max(boxes[side][0][j], at)
        boxes[other][0][j] = max(boxes[other][0][j], float(down(at + shift[0])))
    if any(lower[j] > upper[j] for lower, upper in boxes.values()):
        return None
    layer = part.problem.network.layers[index]
    settled = settle(layer, Box(*boxes["left"]), Box(*boxes["right"]), b.dz)
    return Part(part.problem, part.bounds.with_layer(index, settled))
