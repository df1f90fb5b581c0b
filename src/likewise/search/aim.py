"""Aim: look for people who have the phases that a bound of all differences together rests on.

A joint (`bounds.joint`) is met by some difference, and by phases of all neurons that make most of it. Who has all of
these phases, and a score where the sigmoid is steep, is the middle of a pair that shows the bound. What a wrong phase
costs is known, so people are annealed by that cost: it falls bit by bit on the way to a phase, while the gap itself, by
which `search.anneal` goes, tells nothing before the phase has changed. Nothing here is a claim: `Run.offer` decides.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from likewise.bounds.joint import Forms, Joint
from likewise.network import Layer
from likewise.rounding import Array
from likewise.search.polish import polish
from likewise.search.root import Root
from likewise.search.run import repaired

PEOPLE = 128  # moved at once
SEED = 2
ONCE = 1.0  # seconds to cool down in, at most
HOT, COLD = 0.02, 2e-4  # what is taken for once in e times, of the cost of all phases: at first and in the end
WIDE, SHARP = 1.0, 0.02  # over how much of what z differs by from person to person a cost falls, likewise
CHANGED = 0.6  # how often categories are changed; else a number is
SIZES = np.array([0.5, 0.15, 0.05, 0.01])  # by how much, in shares of its range
LATE = 0.5  # the share of the time after which the steepness of the score begins to count
RENEWED, REPLACED, NOTED = 20, 200, 50  # moves after which costs are counted anew, the worst replaced, the best noted
OFFERED, POLISHED = 10, 0.1  # kinds of people to make pairs of, and seconds to polish one
FAR = 40.0  # a logit beyond which a sigmoid is flat


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """What is aimed at: the phase of every hidden neuron (1 on, -1 off), what missing it costs, |dz|, d, the bound."""

    phase: tuple[Array, ...]
    worth: tuple[Array, ...]
    dz: tuple[Array, ...]
    d: Array
    upper: float


def aim(root: Root, seconds: float) -> bool:
    """Look for pairs where the root's best joint is met, for some seconds; tell whether there is one to aim at."""
    can_move = bool(root.problem.right.groups) or len(root.problem.right.continuous) > 0
    best = min(root.joints.values(), key=lambda one: one.upper, default=None) if can_move else None
    target = None if best is None else _target(root, best)
    if target is None:
        return False
    end = time.monotonic() + seconds
    while not root.run.done and (left := end - time.monotonic()) > 0.1 * seconds:
        crowd = _Crowd(root, target, np.random.default_rng([SEED, root.aimed]))
        root.aimed += 1
        for middle in crowd.cooled(min(ONCE, 0.8 * left)):
            _offer(root, target, middle)
            if root.run.done or time.monotonic() > end:
                break
    return True


def _target(root: Root, joint: Joint) -> Target | None:
    """Return the phases by which a joint's function is largest, as far as its slopes at that point tell."""
    forms, layers = Forms(root.problem, root.bounds, joint.both[-1]), root.problem.network.layers[:-1]
    looked = forms.seen(joint)
    if looked is None or any(set(layer.activations) != {"relu"} for layer in layers):
        return None
    dz, d = [rows @ looked.y for rows in forms.dz], np.zeros(root.problem.right.width)
    values = np.split(looked.y[1 + len(forms.free) :], np.cumsum([len(one) for one in dz])[:-1])
    slopes = [
        np.clip(dv / np.where(np.abs(one) > 1e-12, one, np.inf), 0.0, 1.0) for dv, one in zip(values, dz, strict=True)
    ]
    by = [joint.both[-1]]  # what a dv counts for, layer by layer from the last
    for k in reversed(range(len(layers) - 1)):
        by.insert(0, joint.both[k] + (by[0] * slopes[k + 1] - joint.turn[k + 1]) @ layers[k + 1].weight)
    made = [count * one for count, one in zip(by, dz, strict=True)]
    d[forms.free] = looked.y[1 : 1 + len(forms.free)]
    d[np.setdiff1d(np.arange(len(d)), root.problem.right.continuous)] = 0.0
    return Target(tuple(map(np.sign, made)), tuple(map(np.abs, made)), tuple(map(np.abs, dz)), d, looked.upper)


def _offer(root: Root, target: Target, middle: Array) -> None:
    """Make a pair of the person in its middle, and polish it."""
    left, right = (
        np.clip(middle + sign * target.d / 2, domain.lower, domain.upper)
        for sign, domain in ((1.0, root.problem.left), (-1.0, root.problem.right))
    )
    exact = repaired(root.outer, root.bounds.reach, left, right)
    if exact is not None:
        root.run.offer(*exact)
        seconds = min(POLISHED, 0.05 * root.run.seconds_left)
        polish(root.outer, root.problem, root.score, root.bounds.reach, root.run, exact, seconds)


class _Crowd:
    """People who are moved at random, all at once, towards a target."""

    def __init__(self, root: Root, target: Target, rng: np.random.Generator) -> None:
        self.domain, self.target, self.rng = root.problem.right, target, rng
        *self.hidden, self.last = root.problem.network.layers
        self.is_curved = root.score.curved and root.aimed % 2 == 0  # every other time the phases alone
        self.columns = np.ascontiguousarray(self.hidden[0].weight.T)
        self.x = self.domain.sample(PEOPLE, rng)
        self.z = self.x @ self.columns + self.hidden[0].bias
        self.spread = [z.std(axis=0) + 1e-9 for z in self._all(self.z)]
        groups = self.domain.groups
        self.chosen = np.stack([g.start + self.x[:, g].argmax(axis=1) for g in groups], axis=1) if groups else None
        self.allowed = [g.start + np.flatnonzero(self.domain.upper[g] > 0.5) for g in groups]

    def cooled(self, seconds: float) -> Iterator[Array]:
        """Cool down once, and yield people, the best first, one of each cost."""
        best, least = self.x.copy(), np.full(PEOPLE, np.inf)
        began, total, moves = time.monotonic(), sum(float(one.sum()) for one in self.target.worth), 0
        cost = np.full(PEOPLE, np.inf)
        while (share := (time.monotonic() - began) / seconds) < 1.0:
            wide, late = WIDE * (SHARP / WIDE) ** share, max(0.0, (share - LATE) / (1 - LATE))
            if moves % RENEWED == 0:
                cost = self._cost(self.z, wide, late)
            self._move(cost, total * HOT * (COLD / HOT) ** share, wide, late)
            moves += 1
            if moves % NOTED == 0:
                now = self._cost(self.z, 0.0, 1.0)
                best[now < least], least = self.x[now < least], np.minimum(now, least)
            if moves % REPLACED == 0:
                self._replace(cost)
        seen = np.unique(least.round(6), return_index=True)[1]
        yield from best[seen[:OFFERED]]

    def _all(self, z: Array) -> list[Array]:
        found = [z]
        for layer in self.hidden[1:]:
            found.append(_into(layer, found[-1]))
        return found

    def _cost(self, first: Array, wide: float, late: float) -> Array:
        """Return what people's phases cost, and after a while how flat the score is where they are."""
        zs, cost = self._all(first), np.zeros(len(first))
        told = self.target
        for z, phase, worth, dz, spread in zip(zs, told.phase, told.worth, told.dz, self.spread, strict=True):
            missed = np.clip(0.5 - phase * z / np.maximum(np.maximum(dz, wide * spread), 1e-12), 0.0, 1.0)
            cost += missed @ worth
        if late > 0.0 and self.is_curved:
            logit = np.clip(_into(self.last, zs[-1])[:, 0], -FAR, FAR)
            cost += late * told.upper * (1.0 - 1.0 / np.cosh(logit / 2) ** 2)
        return cost

    def _move(self, cost: Array, warmth: float, wide: float, late: float) -> None:
        rng, people = self.rng, np.arange(PEOPLE)
        if self.chosen is not None and (rng.random() < CHANGED or not len(self.domain.continuous)):
            group = int(rng.integers(len(self.allowed)))
            old, new = self.chosen[:, group].copy(), rng.choice(self.allowed[group], PEOPLE)
            z = self.z + self.columns[new] - self.columns[old]
            taken = self._take(z, cost, warmth, wide, late)
            self.x[people[taken], old[taken]] = 0.0
            self.x[people[taken], new[taken]] = 1.0
            self.chosen[taken, group] = new[taken]
            return
        column = rng.choice(self.domain.continuous, PEOPLE)
        low, high, was = self.domain.lower[column], self.domain.upper[column], self.x[people, column]
        to = np.clip(was + rng.choice(SIZES, PEOPLE) * rng.standard_normal(PEOPLE) * (high - low), low, high)
        taken = self._take(self.z + (to - was)[:, None] * self.columns[column], cost, warmth, wide, late)
        self.x[people[taken], column[taken]] = to[taken]

    def _take(self, z: Array, cost: Array, warmth: float, wide: float, late: float) -> Array:
        """Go where it costs less, or not much more; tell who did."""
        there = self._cost(z, wide, late)
        taken = there < cost - warmth * np.log(self.rng.random(PEOPLE) + 1e-300)
        self.z[taken], cost[taken] = z[taken], there[taken]
        return np.asarray(taken)

    def _replace(self, cost: Array) -> None:
        """Let the worst become the best."""
        order = np.argsort(cost)
        to, source = order[-PEOPLE // 8 :], order[: PEOPLE // 8]
        for one in (self.x, self.z, cost) if self.chosen is None else (self.x, self.z, cost, self.chosen):
            one[to] = one[source]


def _into(layer: Layer, z: Array) -> Array:
    return np.asarray(np.maximum(z, 0.0) @ layer.weight.T + layer.bias)
