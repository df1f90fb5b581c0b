"""Anneal: look for where the score is steepest, by many small random moves of many people at once.

A pair is made of the person in its middle: the best difference there, to first order, has a closed form, so only one
person has to be looked for. Moves that lose a little are taken as well, less and less often as it gets colder. So
categories and phases are found that no climb reaches, since on the way there the gap falls.

The loop is the kernel's (`src/kernel/anneal.hpp`, `pairing.hpp`); here is what it is told.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.activations import by_name
from likewise.bounds import Reach
from likewise.problem import Problem
from likewise.rounding import Array
from likewise.search import compiled
from likewise.search.attack import Pairs
from likewise.search.score import Score

PEOPLE, FEWEST, AFFORDABLE = 128, 16, 10_000_000  # moved at once; of a large network; weights to multiply by at once
IN_A_SECOND = 90  # people to move for a second; for less or more by the root of it: few that cool slowly are better
ONCE, SMALL = 0.5, 8000  # seconds to cool down in, of a network with so many weights or fewer, before beginning anew
LONGEST = 4.0  # seconds to cool down in: until then nobody hears Ctrl-C
LANES = 8  # people that the kernel moves together
# How people are moved, see `Habits` in src/kernel/anneal.hpp.
HABITS: dict[str, Any] = {
    "hot": 0.1,
    "cold": 0.002,
    "changed": 0.8,
    "twice": 0.25,
    "numbers": 1.5,
    "sizes": (1.0, 0.3, 0.1, 0.03, 0.01),
    "borrowed": 0.3,
    "blind": 0.7,
    "uphill": 0.5,
    "hope": 0.8,
    "every": 30,
    "replaced": 8,
}
SEEN = 1e-9  # the least singular value of a metric that is not taken for 0, beside its largest one


@dataclass(frozen=True, slots=True, eq=False)
class Annealer:
    """Looks for pairs of a problem, given as the engines bound it (`inner`): its network ends in a logit."""

    inner: Problem
    kernel: Any

    def look(self, seconds: float, start: Array, rng: np.random.Generator, moves: int = 0) -> Pairs:
        """Cool down once or a few times in the time given, from people drawn at random and one more; best pairs first.

        The pairs are candidates, up to rounding. With a number of moves of each person, it may be over earlier.
        """
        weights = sum(layer.weight.size for layer in self.inner.network.layers)
        once = min(ONCE * max(1.0, weights / SMALL), LONGEST)
        times = max(1, math.ceil(seconds / once - 0.5)) if not moves else 1
        people = self._count(seconds / times, weights)
        found = [self._cooled(seconds / times, people, start if k == 0 else None, rng, moves) for k in range(times)]
        rights, ds, gaps = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return Pairs(rights, ds).take(np.argsort(-gaps)[:PEOPLE])

    def _cooled(
        self, seconds: float, count: int, start: Array | None, rng: np.random.Generator, moves: int
    ) -> tuple[Array, Array, Array]:
        """Return the right people of pairs, their differences, and gaps."""
        people = self.inner.right.sample(count, rng)
        if start is not None:
            people[0] = start
        right, d, gaps, _ = self.kernel.look(people, seconds, moves, int(rng.integers(2**62)))
        return right.reshape(people.shape), d.reshape(people.shape), gaps

    def _count(self, seconds: float, weights: int) -> int:
        worth = int(IN_A_SECOND * math.sqrt(min(max(seconds, 0.0), 100.0)))
        return max(FEWEST, min(PEOPLE, worth, AFFORDABLE // weights)) // LANES * LANES


def annealer(inner: Problem, reach: Reach, score: Score) -> Annealer | None:
    """Return what anneals a problem; None without the kernel, or if it is not one that annealing is for.

    Both domains must be one, hidden layers have an activation each, and a number must be able to differ. The metric may
    leave out whole columns, but no other direction: there the box cuts off too much, and climbing finds as much.
    """
    columns = np.intersect1d(reach.differences.free, inner.right.continuous)
    hidden = inner.network.layers[:-1]
    fits = hidden and all(len(set(layer.activations)) == 1 for layer in hidden)
    if compiled.missing or not fits or not inner.symmetric or inner.aside or not len(columns):
        return None
    form = _form(inner, columns)
    if form is None:
        return None
    return Annealer(inner, compiled.annealer(_quest(inner, score, columns) | form, HABITS))


def _form(inner: Problem, columns: np.ndarray) -> dict[str, Array] | None:
    """Return the metric over the columns that can differ, its inverse, and the columns it does not see.

    None if it does not see other directions as well.
    """
    matrix = inner.metric.matrix[:, columns]
    matrix = matrix[np.abs(matrix).sum(axis=1) > 0]
    _, values, turn = np.linalg.svd(matrix)
    rank = int((values > SEEN * values.max(initial=0.0)).sum())
    if inner.metric.p == 2.0:  # a rotation of what is measured changes nothing
        matrix = values[:rank, None] * turn[:rank]
    unseen = np.abs(matrix).max(axis=0, initial=0.0) <= SEEN * values.max(initial=0.0)
    if rank + int(unseen.sum()) < len(columns):
        return None
    inverse = np.linalg.pinv(matrix, rcond=SEEN)
    return {
        "metric": matrix,
        "inverse": inverse,
        "square": inverse @ inverse.T,
        "blind": np.eye(len(columns))[:, unseen],
    }


def _quest(inner: Problem, score: Score, columns: np.ndarray) -> dict[str, Any]:
    """Return the rest of what the kernel is told."""
    domain = inner.right
    side, side_high = domain.constraints
    return {
        "layers": [
            {
                "weight": layer.weight,
                "bias": layer.bias,
                "activation": layer.activations[0],
                "is_smooth": not by_name(layer.activations[0]).is_piecewise_linear(),
            }
            for layer in inner.network.layers
        ],
        "low": domain.lower,
        "high": domain.upper,
        "step": domain.steps,
        "free": columns,
        "numbers": domain.numbers,
        "groups": [(g.start, (g.start + np.flatnonzero(domain.upper[g] > 0.5)).tolist()) for g in domain.groups],
        "p": inner.metric.p,
        "eps": inner.eps,
        "side": side,
        "side_high": side_high,
        "curved": score.curved,
    }
