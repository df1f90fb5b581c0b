"""Attack: find a pair scored far apart, quickly. Its pairs are only candidates; `Run.offer` decides."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from likewise.bounds import Reach
from likewise.bounds.support import ascent, reduced
from likewise.network import Network
from likewise.problem import Problem
from likewise.rounding import Array
from likewise.search.run import Run, repaired

STARTS = 384
KEPT = 64
KICKS = 48
STEPS = (0.0, 0.003, 0.03, 0.1, 0.3, 0.6, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Many candidate pairs, right and the difference; left = right + d."""

    right: Array
    d: Array

    @property
    def left(self) -> Array:
        """The left people."""
        return self.right + self.d

    def take(self, rows: np.ndarray) -> Pairs:
        """Return some of the pairs."""
        return Pairs(self.right[rows], self.d[rows])


def attack(problem: Problem, reach: Reach, run: Run, rng: np.random.Generator, seconds: float) -> Pairs:
    """Climb from many random starts and from the best pair; offer the best found, return them all, best first."""
    end = time.monotonic() + seconds
    pairs = climb(problem, reach, _starts(problem, reach, rng, run), KEPT, 12, end)
    offer_best(problem, reach, run, pairs, 6)
    return pairs


def kick(problem: Problem, reach: Reach, run: Run, rng: np.random.Generator) -> Pairs:
    """Return what climbing makes of the best pair after its categories and numbers were shaken."""
    left, right = run.pair()
    pairs = Pairs(np.tile(right, (KICKS, 1)), np.tile(left - right, (KICKS, 1)))
    other = problem.right.sample(KICKS, rng)
    shared = [g for g in problem.right.groups if g not in reach.flippable]
    for group in shared:
        changed = (rng.random(KICKS) < 2.0 / len(shared)) & (pairs.d[:, group] == 0.0).all(axis=1)
        allowed = (other[:, group] <= problem.left.upper[group]).all(axis=1)
        pairs.right[:, group] = np.where((changed & allowed)[:, None], other[:, group], pairs.right[:, group])
    columns = problem.right.continuous
    moved = pairs.right[:, columns] + rng.normal(0.0, 0.2, (KICKS, len(columns)))
    lower = np.maximum(problem.right.lower[columns], problem.left.lower[columns] - pairs.d[:, columns])
    upper = np.minimum(problem.right.upper[columns], problem.left.upper[columns] - pairs.d[:, columns])
    pairs.right[:, columns] = np.where(lower <= upper, np.clip(moved, lower, upper), pairs.right[:, columns])
    return climb(problem, reach, pairs, KICKS, 4, time.monotonic() + 1.0)


def climb(problem: Problem, reach: Reach, pairs: Pairs, kept: int, turns: int, end: float) -> Pairs:
    """Improve pairs by turns, the difference, the shared columns, the categories; return them best first."""
    for turn in range(turns):
        pairs = _move_difference(problem, reach, pairs)
        pairs = _move_base(problem, pairs)
        if turn >= 2 or len(pairs.right) <= kept:
            pairs = _best(problem, pairs, kept)
            pairs = _move_categories(problem, reach, pairs)
            pairs = _move_integers(problem, reach, pairs)
        if time.monotonic() > end:
            break
    return _best(problem, pairs, kept)


def offer_best(problem: Problem, reach: Reach, run: Run, pairs: Pairs, count: int) -> None:
    """Offer the best few pairs, made exact first."""
    for left, right in zip(pairs.left[:count], pairs.right[:count], strict=True):
        exact = repaired(problem, reach, left, right)
        if exact is not None:
            run.offer(*exact)


def gaps(problem: Problem, pairs: Pairs) -> Array:
    """Return f(left) - f(right) of each pair, -inf where side constraints or an embedding rule it out."""
    left = pairs.left
    values = problem.network(left) - problem.network(pairs.right)
    if len(problem.right.constraints[1]):
        values = np.where(problem.left.inside(left) & problem.right.inside(pairs.right), values, -np.inf)
    if not problem.metric.is_linear:
        values = np.where(problem.metric.distances(left, pairs.right) <= problem.eps, values, -np.inf)
    return values


def _best(problem: Problem, pairs: Pairs, count: int) -> Pairs:
    return pairs.take(np.argsort(-gaps(problem, pairs))[:count])


def _starts(problem: Problem, reach: Reach, rng: np.random.Generator, run: Run) -> Pairs:
    people = problem.left.sample(STARTS, rng)
    corners = problem.left.continuous
    half = STARTS // 2
    ends = np.where(rng.random((half, len(corners))) < 0.5, problem.left.lower[corners], problem.left.upper[corners])
    people[:half, corners] = ends
    pairs = Pairs(np.clip(people, problem.right.lower, problem.right.upper), np.zeros_like(people))
    left, right = run.pair()
    pairs.right[-1], pairs.d[-1] = right, left - right
    return pairs


def _gradient(network: Network, people: Array) -> Array:
    """Return the gradient of each person's score; where it vanishes by saturation, of the logit."""
    entering = network.preactivations(people)
    slopes = [layer.slope(z) for layer, z in zip(network.layers, entering, strict=True)]
    back = np.maximum(slopes[-1], 1e-12)
    for layer, slope in zip(reversed(network.layers[1:]), reversed(slopes[:-1]), strict=True):
        back = (back @ layer.weight) * slope
    return back @ network.layers[0].weight


def _choose(problem: Problem, candidates: list[Pairs]) -> Pairs:
    """Return, pair by pair, the best of several alternatives."""
    values = np.stack([gaps(problem, c) for c in candidates])
    best = values.argmax(axis=0)
    each = np.arange(len(best))
    right, d = np.stack([c.right for c in candidates]), np.stack([c.d for c in candidates])
    return Pairs(right[best, each], d[best, each])


def _move_difference(problem: Problem, reach: Reach, pairs: Pairs) -> Pairs:
    """Move d towards the best linear step over the metric's ball and the box, one-hot columns held."""
    columns = np.intersect1d(reach.differences.free, problem.right.continuous)
    if not len(columns):
        return pairs
    gradient = _gradient(problem.network, pairs.left)[:, columns]
    right = pairs.right[:, columns]
    lower, upper = problem.left.lower[columns] - right, problem.left.upper[columns] - right
    matrix = reach.differences.metric.matrix[:, columns]
    p, eps = reach.differences.metric.p, problem.eps
    _, small = reduced(matrix[np.abs(matrix).sum(axis=1) > 0], p)
    if len(small):
        *_, (goal, _) = ascent(gradient, small, p, eps, lower, upper, 25)
        size = np.linalg.norm(goal @ small.T, p, axis=1, keepdims=True)
        goal = goal * np.minimum(1.0, eps / np.maximum(size, 1e-300))
    else:
        goal = np.where(gradient > 0, upper, lower)
    start = pairs.d[:, columns]
    candidates = []
    for step in STEPS:
        d = pairs.d.copy()
        d[:, columns] = start + step * (goal - start)
        candidates.append(Pairs(pairs.right, d))
    return _choose(problem, candidates)


def _move_base(problem: Problem, pairs: Pairs) -> Pairs:
    """Move both people together along the gradient of the gap, the difference held."""
    columns = problem.right.continuous
    if not len(columns):
        return pairs
    slope = (_gradient(problem.network, pairs.left) - _gradient(problem.network, pairs.right))[:, columns]
    d = pairs.d[:, columns]
    lower = np.maximum(problem.right.lower[columns], problem.left.lower[columns] - d)
    upper = np.minimum(problem.right.upper[columns], problem.left.upper[columns] - d)
    goal = np.where(slope > 0, upper, lower)
    start = pairs.right[:, columns]
    candidates = []
    for step in STEPS:
        right = pairs.right.copy()
        right[:, columns] = np.where(lower <= upper, start + step * (goal - start), start)
        candidates.append(Pairs(right, pairs.d))
    return _choose(problem, candidates)


def _move_categories(problem: Problem, reach: Reach, pairs: Pairs) -> Pairs:
    """Try every category of every group, in both people at once, or in one alone where the metric allows it."""
    for group in problem.right.groups:
        size = group.stop - group.start
        candidates = [pairs]
        for i in range(size):
            one = np.eye(size)[i]
            if problem.right.upper[group][i] > 0.5 and problem.left.upper[group][i] > 0.5:
                right = pairs.right.copy()
                right[:, group] = one
                d = pairs.d.copy()
                d[:, group] = 0.0
                candidates.append(Pairs(right, d))
            if group in reach.flippable:
                candidates += _one_sided(problem, pairs, group, one)
        pairs = _choose(problem, candidates)
    return pairs


def _one_sided(problem: Problem, pairs: Pairs, group: slice, one: Array) -> list[Pairs]:
    """Change the category of one person only, in those pairs where they stay similar."""
    changed = []
    left = pairs.left
    for side in ("left", "right"):
        domain = problem.left if side == "left" else problem.right
        if domain.upper[group][int(one.argmax())] < 0.5:
            continue
        right, d = pairs.right.copy(), pairs.d.copy()
        if side == "left":
            d[:, group] = one - right[:, group]
        else:
            right[:, group] = one
            d[:, group] = left[:, group] - one
        near = problem.metric.distances(right + d, right) <= problem.eps * (1 + 1e-9)
        changed.append(Pairs(np.where(near[:, None], right, pairs.right), np.where(near[:, None], d, pairs.d)))
    return changed


def _move_integers(problem: Problem, reach: Reach, pairs: Pairs) -> Pairs:
    """Try a step, many steps and the ends of every integer, for both people, or for one alone where that may be."""
    for column in problem.right.integers.tolist():
        step, span = problem.right.steps[column], problem.right.upper[column] - problem.right.lower[column]
        moves = [sign * size for sign in (-1.0, 1.0) for size in (step, np.ceil(span / step / 4) * step, span)]
        candidates = [pairs]
        for move in moves:
            right, left = problem.right.snap(pairs.right), problem.left.snap(pairs.left)
            near, far = right.copy(), left.copy()
            near[:, column] += move
            far[:, column] += move
            near, far = problem.right.snap(near), problem.left.snap(far)
            candidates.append(Pairs(near, far - near))
            if not reach.shared[column]:
                candidates += [_if_similar(problem, pairs, right, far), _if_similar(problem, pairs, near, left)]
        pairs = _choose(problem, candidates)
    return pairs


def _if_similar(problem: Problem, pairs: Pairs, right: Array, left: Array) -> Pairs:
    """Return the new pairs where they are similar, the old ones elsewhere."""
    near = (problem.metric.distances(left, right) <= problem.eps * (1 + 1e-9))[:, None]
    return Pairs(np.where(near, right, pairs.right), np.where(near, left - right, pairs.d))
