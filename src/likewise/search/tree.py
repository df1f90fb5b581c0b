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
from likewise.bounds import Box, TwinBounds, entering
from likewise.bounds.template import Template
from likewise.domain import Domain
from likewise.network import Network
from likewise.problem import Problem
from likewise.rounding import Array

INSIDE = 0.1  # a split keeps at least this share of an interval on either side


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some of the pairs: those of a problem with fewer categories and narrower intervals."""

    problem: Problem
    bounds: TwinBounds


@dataclass(frozen=True, slots=True, eq=False)
class Half:
    """A part that was just cut off: its problem, and per layer its boxes of z_left, z_right and dz."""

    problem: Problem
    zs: list[tuple[Box, Box, Box]]

    @classmethod
    def of(cls, part: Part) -> Half:
        """Return a whole part, to be bounded anew."""
        return cls(part.problem, [(b.left, b.right, b.dz) for b in part.bounds.layers])


@dataclass(frozen=True, slots=True, eq=False)
class Bounded:
    """A part with its proven slack, the linear program's point and the template and basis it refers to."""

    slack: float
    part: Part
    point: Array
    template: Template
    basis: object


@dataclass(frozen=True, slots=True)
class Split:
    """Where to split, and how much of the relaxation's error is found there, in logits."""

    weight: float
    halves: Callable[[], list[Half]]


Bounder = Callable[[list[tuple[Half, Bounded | None]]], list[Bounded]]


class Tree:
    """The open parts, the widest slack first. `bound` takes halves with what they were cut from, many at once.

    It returns those that may hold a pair; a half that it leaves out is proven to hold none.
    """

    def __init__(self, bound: Bounder, whole: Part) -> None:
        self._bound = bound
        self._count = itertools.count()
        self._heap: list[tuple[float, int, Bounded]] = []
        self._stuck: list[Bounded] = []
        self._influence = influence(whole.problem.network)
        self._push(bound([(Half.of(whole), None)]))

    @property
    def slack(self) -> float:
        """The largest slack over the open parts; below 0 nothing is open."""
        return max([-self._heap[0][0] if self._heap else -1.0, *(bounded.slack for bounded in self._stuck)])

    def split(self, most: int, template: Template) -> bool:
        """Split the widest parts, `most` at a time, and bound their halves; False if none is left to split."""
        halves: list[tuple[Half, Bounded | None]] = []
        self._push([bounded for bounded in self._stuck if bounded.template is not template])
        self._stuck = [bounded for bounded in self._stuck if bounded.template is template]
        for _ in range(min(most, len(self._heap))):
            _, _, widest = heapq.heappop(self._heap)
            if widest.template is not template:
                halves.append((Half.of(widest.part), widest))  # bounded at an earlier threshold: ask again first
                continue
            split = best_split(widest, self._influence)
            if split.weight <= 0.0:
                self._stuck.append(widest)
            else:
                halves += [(half, widest) for half in split.halves()]
        if halves:
            self._push(self._bound(halves))
        return bool(halves)

    def _push(self, parts: list[Bounded]) -> None:
        """Keep a part open unless its slack is proven below 0: then none of its pairs reaches the threshold."""
        for bounded in parts:
            if bounded.slack >= 0.0:
                heapq.heappush(self._heap, (-bounded.slack, next(self._count), bounded))


def influence(network: Network) -> list[Array]:
    """Estimate how much each neuron of each layer moves the logit: products of absolute weights (for ranking only)."""
    weights = [np.abs(layer.weight) for layer in network.layers]
    reach = [weights[-1].max(axis=0)]  # of the logit, and of what an embedding compares
    for weight in reversed(weights[1:-1]):
        reach.insert(0, reach[0] @ weight)
    return reach


def best_split(bounded: Bounded, reach: list[Array]) -> Split:
    """Choose the category or the neuron where the linear program's point is furthest from a real pair."""
    nothing = Split(0.0, list)
    splits = [*_group_splits(bounded, reach), *_integer_splits(bounded, reach), *_neuron_splits(bounded, reach)]
    return max([nothing, *splits], key=lambda s: s.weight)


def _effect(network: Network, reach: list[Array]) -> Array:
    """Estimate how much each column moves the logit."""
    first = np.abs(network.layers[0].weight)
    return np.asarray((reach[0] if len(network.layers) > 1 else np.ones(len(first))) @ first)


def _group_splits(bounded: Bounded, reach: list[Array]) -> list[Split]:
    problem, template = bounded.part.problem, bounded.template
    effect = _effect(problem.network, reach)
    splits = []
    for group in problem.right.groups:
        for side, x in (("left", template.left.x[group]), ("right", template.right.x[group])):
            values = bounded.point[x]
            missing = 1.0 - float(values.max())
            if missing > 1e-7:
                weight = missing * float(effect[group][values > 1e-7].max())
                shared = bool(bounded.part.bounds.reach.shared[group].all())
                splits.append(Split(weight, _by_category(bounded.part, group, int(values.argmax()), side, shared)))
    return splits


def _by_category(part: Part, group: slice, category: int, side: str, shared: bool) -> Callable[[], list[Half]]:
    def cut() -> list[Half]:
        size = group.stop - group.start
        chosen = np.arange(size) == category
        halves = []
        for allowed in (chosen, ~chosen):
            domains = {"left": part.problem.left, "right": part.problem.right}
            for name in ("left", "right") if shared else (side,):
                domains[name] = domains[name].only(group, allowed)
            if all(_inhabited(domain, group) for domain in domains.values()):
                halves.append(_fewer_people(part, replace(part.problem, left=domains["left"], right=domains["right"])))
        return [half for half in halves if half is not None]

    return cut


def _integer_splits(bounded: Bounded, reach: list[Array]) -> list[Split]:
    problem, template = bounded.part.problem, bounded.template
    effect = _effect(problem.network, reach)
    splits = []
    for column in problem.right.integers.tolist():
        step, low = problem.right.steps[column], problem.right.lower[column]
        for side, x in (("left", template.left.x[column]), ("right", template.right.x[column])):
            steps = (bounded.point[x] - low) / step
            off = abs(float(steps - np.round(steps)))
            if off > 1e-7 + problem.right.grid_errors[column] / step:
                at = float(np.floor(steps))
                splits.append(Split(off * step * float(effect[column]), _by_step(bounded.part, column, at, side)))
    return splits


def _by_step(part: Part, column: int, at: float, side: str) -> Callable[[], list[Half]]:
    """Cut between two neighbouring values of an integer, `at` steps above its least on the right and the next."""

    def cut() -> list[Half]:
        grid = part.problem.right.steps[column]
        below = part.problem.right.lower[column] + (at + 0.5) * grid
        shared = bool(part.bounds.reach.shared[column])
        halves = []
        for is_below in (True, False):
            domains = {"left": part.problem.left, "right": part.problem.right}
            for name in ("left", "right") if shared else (side,):
                narrow = domains[name].beyond(column, below, is_below)
                if narrow is None:
                    break
                domains[name] = narrow
            else:
                halves.append(_fewer_people(part, replace(part.problem, left=domains["left"], right=domains["right"])))
        return [half for half in halves if half is not None]

    return cut


def _fewer_people(part: Part, problem: Problem) -> Half | None:
    """Return the half with fewer people, what enters the first layer bounded anew; None if nothing can enter it."""
    left, right, dz = (part.bounds.layers[0].left, part.bounds.layers[0].right, part.bounds.layers[0].dz)
    first = problem.network.layers[0]
    boxes = []
    for known, domain in ((left, problem.left), (right, problem.right)):
        new = entering(first, domain)
        low, high = np.maximum(known.lower, new.lower), np.minimum(known.upper, new.upper)
        if not (low <= high).all():
            return None
        boxes.append(Box(low, high))
    return Half(problem, [(boxes[0], boxes[1], dz), *Half.of(part).zs[1:]])


def _inhabited(domain: Domain, group: slice) -> bool:
    return bool((domain.upper[group] > 0.5).any())


def _neuron_splits(bounded: Bounded, reach: list[Array]) -> list[Split]:
    template, part = bounded.template, bounded.part
    splits = []
    for index, b in enumerate(part.bounds.layers[:-1]):
        layer = part.problem.network.layers[index]
        for name, side, box in (("left", template.left, b.left), ("right", template.right, b.right)):
            z, v = bounded.point[side.z[index]], bounded.point[side.v[index]]
            off = np.abs(v - layer.activate(np.clip(z, box.lower, box.upper))) * reach[index]
            j = int(off.argmax())
            if off[j] > 1e-12 and box.upper[j] - box.lower[j] > 1e-9:
                splits.append(Split(float(off[j]), _by_interval(part, index, j, name, float(z[j]))))
    return splits


def _by_interval(part: Part, index: int, j: int, side: str, z: float) -> Callable[[], list[Half]]:
    def cut() -> list[Half]:
        b = part.bounds.layers[index]
        box = b.left if side == "left" else b.right
        at = _place(part.problem.network, index, j, float(box.lower[j]), float(box.upper[j]), z)
        return [_narrowed(part, index, j, side, at, is_below) for is_below in (True, False)]

    return cut


def _place(network: Network, index: int, j: int, low: float, high: float, z: float) -> float:
    """Split at a kink if there is one inside, else at the point, kept off the ends."""
    kinks = [k for k in by_name(network.layers[index].activations[j]).kinks() if low < k < high]
    if kinks:
        return min(kinks, key=lambda k: abs(k - z))
    return float(np.clip(z, low + INSIDE * (high - low), high - INSIDE * (high - low)))


def _narrowed(part: Part, index: int, j: int, side: str, at: float, is_below: bool) -> Half:
    """Return the half with z <= at or z >= at."""
    zs = Half.of(part).zs
    left, right, dz = zs[index]
    box = left if side == "left" else right
    low, high = box.lower.copy(), box.upper.copy()
    if is_below:
        high[j] = at
    else:
        low[j] = at
    zs[index] = (Box(low, high), right, dz) if side == "left" else (left, Box(low, high), dz)
    return Half(part.problem, zs)
