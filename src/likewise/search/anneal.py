"""Anneal: look for where the score is steepest, by many small random moves of many people at once.

A pair is made of the person in its middle: the best difference there, to first order, has a closed form, so only one
person has to be looked for. Moves that lose a little are taken as well, less and less often as it gets colder. So
categories and phases are found that no climb reaches, since on the way there the gap falls.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from likewise.bounds import Reach
from likewise.problem import Problem
from likewise.rounding import Array
from likewise.search.attack import Pairs
from likewise.search.score import Score

PEOPLE, FEWEST, AFFORDABLE = 128, 16, 10_000_000  # moved at once; of a large network; weights to multiply by at once
HOT, COLD = 0.03, 0.0005  # losses that are taken once in e times, at first and in the end, as shares of the best gap
CHANGED, TWICE = 0.6, 0.5  # how often a category is changed in a move, and a second one is tried
NUMBERS = 1.5  # numbers that a move changes, on average
SIZES = (1.0, 0.3, 0.1, 0.03, 0.01)  # of such changes, in shares of their range
EVERY, REPLACED = 50, 8  # moves after which one in so many people is replaced by one of the best
INVERTIBLE = 1e-9  # the least singular value of a metric, beside its largest one


@dataclass(frozen=True, slots=True, eq=False)
class Annealer:
    """Looks for pairs of a problem, given as the engines bound it (`inner`): its network ends in a logit.

    `columns` are the numbers that can differ, `inverse` is that of the metric's matrix over them.
    """

    inner: Problem
    score: Score
    columns: np.ndarray
    inverse: Array

    def look(self, seconds: float, start: Array, rng: np.random.Generator) -> Pairs:
        """Cool down once in the time given, from people drawn at random and one more; return pairs, best first.

        The pairs are candidates, up to rounding.
        """
        began, people = time.monotonic(), self.inner.right.sample(self._count(), rng)
        people[0] = start
        (pairs, values), moves, share = self.pairs(people), 0, 0.0
        while (share := (time.monotonic() - began) / max(seconds, 1e-9)) < 1.0:
            warmth = HOT * (COLD / HOT) ** share * max(float(values.max()), 1e-12)
            moved = self._moved(people, rng)
            found, new = self.pairs(moved)
            taken = np.log(rng.random(len(people))) < (new - values) / warmth
            people[taken], values[taken], moves = moved[taken], new[taken], moves + 1
            pairs.right[taken], pairs.d[taken] = found.right[taken], found.d[taken]
            if moves % EVERY == 0:
                order, count = np.argsort(values), len(people) // REPLACED
                for rows in (people, values, pairs.right, pairs.d):
                    rows[order[:count]] = rows[order[-count:]]
        return pairs.take(np.argsort(-values))

    def _count(self) -> int:
        weights = sum(layer.weight.size for layer in self.inner.network.layers)
        return max(FEWEST, min(PEOPLE, AFFORDABLE // weights))

    def pairs(self, people: Array) -> tuple[Pairs, Array]:
        """Return the pair around each person, and its gap in floats, -inf where a side constraint rules it out.

        Its difference is the best along the slope there or, if that is better, along that of both ends.
        """
        one = self._around(people, self._slopes(self._entering(people)[:-1]))
        entering = self._entering(np.concatenate([one.left, one.right]))
        left, right = np.split(self._slopes(entering[:-1]), 2)
        other = self._around(people, left + right)
        before, after = self._gaps(one, entering[-1]), self._gaps(other)
        is_better = (after > before)[:, None]
        pairs = Pairs(np.where(is_better, other.right, one.right), np.where(is_better, other.d, one.d))
        return pairs, np.maximum(before, after)

    def _gaps(self, pairs: Pairs, logits: Array | None = None) -> Array:
        """Return the gap of each pair, of whom logits may be known."""
        if logits is None:
            logits = self._entering(np.concatenate([pairs.left, pairs.right]))[-1]
        left, right = np.split((expit(logits) if self.score.curved else logits)[:, 0], 2)
        found = np.asarray(left - right)
        if len(self.inner.right.constraints[1]):
            found[~(self.inner.left.inside(pairs.left) & self.inner.right.inside(pairs.right))] = -np.inf
        return found

    def _around(self, people: Array, slopes: Array) -> Pairs:
        """Return pairs with the best difference for some slopes, people in the middle as far as the domain allows."""
        columns, domain = self.columns, self.inner.right
        low, high = domain.lower[columns], domain.upper[columns]
        d = np.clip(self._difference(slopes), low - high, high - low)
        ends = people[:, columns] + d / 2, people[:, columns] - d / 2
        inward = np.maximum(low - np.minimum(*ends), 0.0) - np.maximum(np.maximum(*ends) - high, 0.0)
        right, apart = people.copy(), np.zeros_like(people)
        right[:, columns], apart[:, columns] = ends[1] + inward, d
        return Pairs(right, apart)

    def _difference(self, slopes: Array) -> Array:
        """Return the d of ||A d||_p <= eps with the largest slopes.d: with u = A d, that of the dual norm."""
        dual, p = slopes @ self.inverse, self.inner.metric.p
        size = np.abs(dual)
        if p == 1.0:
            u = np.sign(dual) * (size == size.max(axis=1, keepdims=True))
            u /= np.maximum(np.abs(u).sum(axis=1, keepdims=True), 1.0)
        elif p == np.inf:
            u = np.sign(dual)
        else:
            u = np.sign(dual) * (size / np.maximum(size.max(axis=1, keepdims=True), 1e-300)) ** (1 / (p - 1))
            u /= np.maximum(np.linalg.norm(u, p, axis=1, keepdims=True), 1e-300)
        return np.asarray(self.inner.eps * (u @ self.inverse.T))

    def _entering(self, people: Array) -> list[Array]:
        return self.inner.network.preactivations(people)

    def _slopes(self, hidden: list[Array]) -> Array:
        """Return the slope of people's logits in every number that can differ, from what enters the hidden layers."""
        layers = self.inner.network.layers
        back = np.broadcast_to(layers[-1].weight[0], (len(hidden[0]), layers[-1].weight.shape[1]))
        for layer, z in zip(reversed(layers[:-1]), reversed(hidden), strict=True):
            back = (back * layer.slope(z)) @ (layer.weight[:, self.columns] if layer is layers[0] else layer.weight)
        return np.asarray(back)

    def _moved(self, people: Array, rng: np.random.Generator) -> Array:
        """Return each person after a random move: a category or two, and a number or two."""
        domain, count, moved = self.inner.right, len(people), people.copy()
        for _ in range(1 + int(rng.random() < TWICE) if domain.groups else 0):
            chosen, is_changed = rng.integers(0, len(domain.groups), count), rng.random(count) < CHANGED
            for k, group in enumerate(domain.groups):
                rows = np.flatnonzero((chosen == k) & is_changed)
                allowed = group.start + np.flatnonzero(domain.upper[group] > 0.5)
                moved[rows, group] = 0.0
                moved[rows, rng.choice(allowed, len(rows))] = 1.0
        columns = domain.numbers
        low, high = domain.lower[columns], domain.upper[columns]
        is_changed = rng.random((count, len(columns))) < NUMBERS / max(len(columns), 1)
        by = rng.choice(SIZES, (count, 1)) * (high - low) * rng.normal(size=(count, len(columns)))
        moved[:, columns] = np.clip(moved[:, columns] + is_changed * by, low, high)
        return domain.snap(moved) if len(domain.integers) else moved


def annealer(inner: Problem, reach: Reach, score: Score) -> Annealer | None:
    """Return what anneals a problem; None unless both domains are one, and the metric sees all that differs."""
    columns = np.intersect1d(reach.differences.free, inner.right.continuous)
    if not inner.symmetric or inner.aside or not len(columns) or len(inner.network.layers) < 2:
        return None
    matrix = inner.metric.matrix[:, columns]
    values = np.linalg.svd(matrix, compute_uv=False)
    if len(values) < len(columns) or values[-1] <= INVERTIBLE * values[0]:
        return None
    return Annealer(inner, score, columns, np.asarray(np.linalg.pinv(matrix), dtype=np.float64))
