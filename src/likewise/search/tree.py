"""Tree: parts of the pairs, how to split one, and the open ones, the widest slack first.

A part is a range of z per neuron and side, of dz per neuron, and the categories and integers still allowed. The two
halves of a split cover it, so the largest slack over the open parts bounds all pairs.
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likewise.bounds import Box, TwinBounds, entering
from likewise.bounds.stack import Zs
from likewise.domain import Domain
from likewise.problem import Problem
from likewise.rounding import Array
from likewise.search.relaxed import Relaxed

APART = 1e-9  # how far apart two bounds must be, relative, to show that nothing is between them
MOST = 100_000  # open parts to keep, the widest first; one takes some ten thousand bytes


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some of the pairs: those of a problem with fewer people and narrower intervals."""

    problem: Problem
    bounds: TwinBounds

    def again(self, node: int = 0) -> Half:
        """Return it to be bounded anew, or to be split."""
        return Half(self.problem, [(b.left, b.right, b.dz) for b in self.bounds.layers], node)

    def within(self, whole: TwinBounds, node: int) -> Half | None:
        """Return it to be bounded anew, within what is now known of the whole; None if that leaves nothing."""
        zs: list[tuple[Box, Box, Box]] = []
        for b, known in zip(self.bounds.layers, whole.layers, strict=True):
            boxes = []
            for one, other in ((b.left, known.left), (b.right, known.right), (b.dz, known.dz)):
                low, high = np.maximum(one.lower, other.lower), np.minimum(one.upper, other.upper)
                if (low - high > APART * (1.0 + np.abs(low))).any():
                    return None
                is_met = low <= high  # within rounding of nothing, a checker may see something: as it was
                boxes.append(Box(np.where(is_met, low, one.lower), np.where(is_met, high, one.upper)))
            zs.append((boxes[0], boxes[1], boxes[2]))
        return Half(self.problem, zs, node)


@dataclass(frozen=True, slots=True, eq=False)
class Half:
    """A part that is not yet bounded: its problem, and per layer z_left, z_right and dz."""

    problem: Problem
    zs: Zs
    node: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Bounded:
    """A part with its proven slack and what that makes of the gap, the linear program's point and basis, and its model.

    A slack below 0 says that the part holds no pair at the threshold. `settled` is the slack after the last time its
    dz were tightened, `node` its number in the proof.
    """

    slack: float
    upper: float
    part: Part
    point: Array
    basis: object
    relaxed: Relaxed
    node: int
    settled: float

    @property
    def is_open(self) -> bool:
        """Whether it may hold a pair at the threshold."""
        return self.slack >= 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Where to split: a neuron's z or dz at a number, an integer between two values, or some categories from others."""

    kind: str  # "left", "right" or "dz" of a neuron; "integer" or "category" of a column
    side: str = "both"  # of a column: "left", "right", or "both" if it is shared
    layer: int = 0
    place: int = 0  # the neuron, the column, or the first column of the group
    at: float = 0.0
    chosen: Array | None = None  # categories of the first half

    @property
    def what(self) -> tuple[Any, ...]:
        """The split as a proof writes it."""
        if self.chosen is not None:
            return self.kind, self.side, slice(self.place, self.place + len(self.chosen)), self.chosen > 0.5
        return (
            (self.kind, self.side, self.place, self.at)
            if self.kind == "integer"
            else (self.kind, self.layer, self.place, self.at)
        )


def split_of(what: tuple[Any, ...], problem: Problem) -> Split | None:
    """Return a split that a proof has written; None if it is none of this problem."""
    kind, first, where, at = what
    if kind == "category":
        groups = {group.start: group for group in problem.right.groups}
        if groups.get(where.start) != where:
            return None
        return Split(kind, first, place=where.start, chosen=np.asarray(at, dtype=np.float64))
    if kind == "integer":
        return Split(kind, first, place=where, at=at) if where in problem.right.integers else None
    return Split(kind, layer=first, place=where, at=at)


def halves(part: Half, split: Split) -> tuple[Half | None, Half | None]:
    """Return both halves of a part; None for one that nobody is in."""
    if split.kind == "category":
        return _by_category(part, split)
    if split.kind == "integer":
        return _by_step(part, split)
    return _by_interval(part, split, True), _by_interval(part, split, False)


def _by_interval(part: Half, split: Split, is_below: bool) -> Half | None:
    zs = list(part.zs)
    place = ("left", "right", "dz").index(split.kind)
    box = zs[split.layer][place]
    low, high = box.lower.copy(), box.upper.copy()
    (high if is_below else low)[split.place] = split.at
    if low[split.place] > high[split.place]:
        return None
    boxes = list(zs[split.layer])
    boxes[place] = Box(low, high)
    zs[split.layer] = (boxes[0], boxes[1], boxes[2])
    return Half(part.problem, zs)


def _by_category(part: Half, split: Split) -> tuple[Half | None, Half | None]:
    assert split.chosen is not None
    group = slice(split.place, split.place + len(split.chosen))
    chosen = split.chosen > 0.5

    def half(allowed: np.ndarray) -> Half | None:
        domains = [
            domain.only(group, allowed) if split.side in (name, "both") else domain
            for name, domain in (("left", part.problem.left), ("right", part.problem.right))
        ]
        if not all((domain.upper[group] > 0.5).any() for domain in domains):
            return None
        return _fewer_people(part, domains[0], domains[1])

    return half(chosen), half(~chosen)


def _by_step(part: Half, split: Split) -> tuple[Half | None, Half | None]:
    def half(is_below: bool) -> Half | None:
        domains = [
            domain.beyond(split.place, split.at, is_below) if split.side in (name, "both") else domain
            for name, domain in (("left", part.problem.left), ("right", part.problem.right))
        ]
        left, right = domains
        return None if left is None or right is None else _fewer_people(part, left, right)

    return half(True), half(False)


def _fewer_people(part: Half, left: Domain, right: Domain) -> Half | None:
    """Return the half with fewer people, what enters the first layer bounded anew; None if nothing can enter it."""
    problem = replace(part.problem, left=left, right=right)
    known_left, known_right, dz = part.zs[0]
    boxes = []
    for known, domain in ((known_left, left), (known_right, right)):
        new = entering(problem.network.layers[0], domain)
        low, high = np.maximum(known.lower, new.lower), np.minimum(known.upper, new.upper)
        if not (low <= high).all():
            return None
        boxes.append(Box(low, high))
    return Half(problem, [(boxes[0], boxes[1], dz), *part.zs[1:]])


class Tree:
    """The open parts, the widest first; a part that holds no pair at the threshold is not kept.

    Memory is bounded: from `MOST` open parts on, the newest is taken first, so that what is added is soon closed.
    """

    def __init__(self) -> None:
        self._count = itertools.count()
        self._heap: list[tuple[float, int, Bounded]] = []
        self._newest: list[Bounded] = []  # those beyond MOST: hardly more than lie on one path
        self._stuck: list[Bounded] = []

    @property
    def upper(self) -> float:
        """The largest gap that an open part may hold; -inf if nothing is open."""
        widest = -self._heap[0][0] if self._heap else -math.inf
        return max([widest, *(bounded.upper for bounded in self._newest + self._stuck)])

    def push(self, bounded: Bounded) -> None:
        """Keep a part open, unless nothing of it is left."""
        if not bounded.is_open:
            return
        if len(self._heap) < MOST:
            heapq.heappush(self._heap, (-bounded.upper, next(self._count), bounded))
        else:
            self._newest.append(bounded)

    def pop(self, most: int) -> list[Bounded]:
        """Take the widest parts that are left to split, or the newest where there are too many."""
        taken = [self._newest.pop() for _ in range(min(most, len(self._newest)))]
        rest = min(most - len(taken), len(self._heap))
        return taken + [heapq.heappop(self._heap)[2] for _ in range(rest)]

    def give_up(self, bounded: Bounded) -> None:
        """Keep a part that cannot be split: open, but never to be taken again, until `retry`."""
        self._stuck.append(bounded)

    def retry(self) -> None:
        """Take the parts that could not be split again: there is a sharper model now."""
        stuck, self._stuck = self._stuck, []
        for bounded in stuck:
            self.push(bounded)
