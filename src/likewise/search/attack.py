"""Attack: find a pair scored far apart, quickly. Its pairs are only candidates; `Run.offer` decides."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from likewise.bounds import Reach
from likewise.bounds.support import ascent, project, reduced
from likewise.problem import Problem
from likewise.rounding import Array
from likewise.search.alike import brought_in
from likewise.search.exchange import exchanges
from likewise.search.run import Run, repaired
from likewise.search.smooth import View, view

STARTS, FEWEST, AFFORDABLE = 384, 48, 200_000_000  # pairs; those of a large network; weights to multiply by at once
KEPT = 96
CHILDREN = 48
SOURCES, EXCHANGED = 5, (0.0, 0.05, 0.2)  # pairs to exchange categories of, and widths of kinks to judge by
SHAKEN = 2.0  # groups of a child whose category is changed, on average
WIDTHS = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03, 0.015, 0.0, 0.0, 0.0)  # of rounded kinks, turn by turn
ONCE = 1.0  # seconds to climb from what was made of known pairs
ASCENT = 25  # steps towards the best difference
GRADIENTS, LONGEST, SHORTER = 8, 0.3, 0.8  # steps along the gradient, in shares of the box and of the kinks' width
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


Move = Callable[[View, Reach, Pairs], Pairs]


def attack(problem: Problem, reach: Reach, run: Run, rng: np.random.Generator, seconds: float) -> Pairs:
    """Climb from many random starts and from the best pair; offer the best found, return them all, best first."""
    end = min(time.monotonic() + seconds, run.deadline)
    pairs = climb(problem, reach, _starts(problem, reach, rng, run), KEPT, WIDTHS, end)
    offer_best(problem, reach, run, pairs, 6)
    return pairs


def breed(problem: Problem, reach: Reach, run: Run, pool: Pairs, rng: np.random.Generator) -> Pairs:
    """Return the pool with what climbing makes of crossings of its pairs, best first.

    A child has the difference of one parent, and each of its features from either of them.
    """
    left, right = run.pair()
    parents = Pairs(np.vstack([right, pool.right]), np.vstack([left - right, pool.d]))
    one = rng.integers(0, len(parents.right), CHILDREN)
    other = rng.integers(0, len(parents.right), CHILDREN)
    children = Pairs(parents.right[one], parents.d[one])
    held = children.d != 0.0
    for group in problem.right.groups:
        from_other = (rng.random(CHILDREN) < 0.5) & ~held[:, group].any(axis=1)
        children.right[from_other, group] = parents.right[other[from_other], group]
    columns = problem.right.numbers
    mixed = rng.random((CHILDREN, len(columns))) < 0.5
    children.right[:, columns] = np.where(mixed, parents.right[other][:, columns], children.right[:, columns])
    _shake(problem, reach, children, rng)
    children = climb(
        problem, reach, _inside(problem, children), CHILDREN, WIDTHS[-6:], min(time.monotonic() + ONCE, run.deadline)
    )
    return joined(problem, parents, children)


def kick(problem: Problem, reach: Reach, run: Run, pool: Pairs, rng: np.random.Generator) -> Pairs:
    """Return the pool with what climbing makes of the best pair after it was shaken, best first."""
    left, right = run.pair()
    pairs = Pairs(np.tile(right, (CHILDREN, 1)), np.tile(left - right, (CHILDREN, 1)))
    _shake(problem, reach, pairs, rng)
    pairs = climb(
        problem, reach, _inside(problem, pairs), CHILDREN, WIDTHS[-6:], min(time.monotonic() + ONCE, run.deadline)
    )
    return joined(problem, pool, pairs)


def exchange(problem: Problem, reach: Reach, run: Run, pool: Pairs, rng: np.random.Generator) -> Pairs:
    """Return the pool with what climbing makes of its best pairs after two categories of each were exchanged."""
    left, right = run.pair()
    seen = view(problem, pool.right).at(float(rng.choice(EXCHANGED)))
    sources = [(left, right), *zip(pool.left[:SOURCES], pool.right[:SOURCES], strict=True)]
    found = [(people, one - other) for one, other in sources if len(people := exchanges(seen, reach, one, other))]
    if not found:
        return pool
    d = np.vstack([np.tile(apart, (len(people), 1)) for people, apart in found])
    pairs = climb(
        problem,
        reach,
        Pairs(np.vstack([people for people, _ in found]), d),
        CHILDREN,
        WIDTHS[-6:],
        min(time.monotonic() + ONCE, run.deadline),
    )
    return joined(problem, pool, pairs)


def _shake(problem: Problem, reach: Reach, pairs: Pairs, rng: np.random.Generator) -> None:
    """Change a category here and there, in both people alike, and move numbers a little."""
    count, domain = len(pairs.right), problem.right
    people = domain.sample(count, rng)
    shared = [g for g in domain.groups if g not in reach.flippable]
    for group in shared:
        changed = (rng.random(count) < SHAKEN / len(shared)) & (pairs.d[:, group] == 0.0).all(axis=1)
        allowed = (people[:, group] <= problem.left.upper[group]).all(axis=1)
        pairs.right[:, group] = np.where((changed & allowed)[:, None], people[:, group], pairs.right[:, group])
    columns = domain.continuous
    spread = domain.upper[columns] - domain.lower[columns]
    size = rng.choice([0.02, 0.2], (count, 1)) * spread
    pairs.right[:, columns] += size * rng.normal(0.0, 1.0, (count, len(columns)))


def _inside(problem: Problem, pairs: Pairs) -> Pairs:
    """Return the pairs with both people's numbers within their bounds, the difference held where that can be."""
    columns, right = problem.right.continuous, problem.right.snap(pairs.right)
    d = pairs.d[:, columns]
    lower = np.maximum(problem.right.lower[columns], problem.left.lower[columns] - d)
    upper = np.minimum(problem.right.upper[columns], problem.left.upper[columns] - d)
    right[:, columns] = np.where(lower <= upper, np.clip(right[:, columns], lower, upper), right[:, columns])
    return Pairs(right, pairs.d)


def joined(problem: Problem, pool: Pairs, more: Pairs) -> Pairs:
    """Return the best pairs of both with different gaps, best first."""
    pairs = Pairs(np.vstack([pool.right, more.right]), np.vstack([pool.d, more.d]))
    values = gaps(view(problem, pairs.right), pairs)
    order = [int(i) for i in np.argsort(-values) if np.isfinite(values[i])]
    apart = [i for k, i in enumerate(order) if not k or values[order[k - 1]] - values[i] > 1e-9]
    return pairs.take(np.array(apart[:KEPT], dtype=np.int64)) if apart else pairs


def climb(problem: Problem, reach: Reach, pairs: Pairs, kept: int, widths: Sequence[float], end: float) -> Pairs:
    """Improve pairs by turns, the difference, the shared columns, the categories; return them best first.

    There is a turn for each width over which the network's kinks are rounded, from wide to 0.
    """
    exact = view(problem, pairs.right)
    todo, turn = list(widths), 0
    while todo:
        began, seen = time.monotonic(), exact.at(todo.pop(0))
        moves: list[Move] = [_move_difference, _move_base]
        if turn >= 2 or len(pairs.right) <= kept:
            moves += [_keep(kept), _move_both, _move_categories, _move_integers]
        for move in moves:
            if time.monotonic() > end:  # one move of a wide network takes seconds
                return _best(exact, pairs, kept)
            pairs = move(seen, reach, pairs)
        turn += 1
        todo = _thinned(todo, began, end)
    return _best(exact, pairs, kept)


def _thinned(todo: list[float], began: float, end: float) -> list[float]:
    """Leave out widths where there is no time for all of them, if turns take as long as the last one; keep the end."""
    now = time.monotonic()
    turns = int((end - now) / max(now - began, 1e-6))
    if turns >= len(todo) or not todo:
        return todo
    return [todo[k] for k in np.linspace(0, len(todo) - 1, max(turns, 1) + 1).astype(int)[1:].tolist()]


def offer_best(problem: Problem, reach: Reach, run: Run, pairs: Pairs, count: int) -> None:
    """Offer the best few pairs, made exact first."""
    for left, right in zip(pairs.left[:count], pairs.right[:count], strict=True):
        exact = repaired(problem, reach, left, right)
        if exact is not None:
            run.offer(*exact)


def gaps(view: View, pairs: Pairs) -> Array:
    """Return f(left) - f(right) of each pair, -inf where side constraints or an embedding rule it out."""
    left, problem = pairs.left, view.problem
    values = view.score(left) - view.score(pairs.right)
    if len(problem.right.constraints[1]):
        values = np.where(problem.left.inside(left) & problem.right.inside(pairs.right), values, -np.inf)
    if not problem.metric.is_linear:
        values = np.where(problem.metric.distances(left, pairs.right) <= problem.eps, values, -np.inf)
    return values


def _best(view: View, pairs: Pairs, count: int) -> Pairs:
    return pairs.take(np.argsort(-gaps(view, pairs))[:count])


def _keep(count: int) -> Move:
    return lambda view, reach, pairs: _best(view, pairs, count)


def starts(problem: Problem) -> int:
    """Return how many pairs to climb from at once: as many as a network's size allows to move in about a second."""
    weights = sum(layer.weight.size for layer in problem.network.layers)
    return max(FEWEST, min(STARTS, AFFORDABLE // weights))


def _starts(problem: Problem, reach: Reach, rng: np.random.Generator, run: Run) -> Pairs:
    count = starts(problem)
    people = problem.left.sample(count, rng)
    corners = problem.left.continuous
    half = count // 2
    ends = np.where(rng.random((half, len(corners))) < 0.5, problem.left.lower[corners], problem.left.upper[corners])
    people[:half, corners] = ends
    pairs = Pairs(np.clip(people, problem.right.lower, problem.right.upper), np.zeros_like(people))
    left, right = run.pair()
    pairs.right[-1], pairs.d[-1] = right, left - right
    return pairs


def _choose(view: View, candidates: list[Pairs]) -> Pairs:
    """Return, pair by pair, the best of several alternatives."""
    right, d = np.stack([c.right for c in candidates]), np.stack([c.d for c in candidates])
    width = right.shape[-1]
    values = gaps(view, Pairs(right.reshape(-1, width), d.reshape(-1, width))).reshape(right.shape[:2])
    best, each = values.argmax(axis=0), np.arange(right.shape[1])
    return Pairs(right[best, each], d[best, each])


def _move_difference(view: View, reach: Reach, pairs: Pairs) -> Pairs:
    """Move d towards the best linear step over the metric's ball and the box, one-hot columns held."""
    problem = view.problem
    columns = np.intersect1d(reach.differences.free, problem.right.continuous)
    if not len(columns):
        return pairs
    gradient = view.gradient(pairs.left)[:, columns]
    right = pairs.right[:, columns]
    lower, upper = problem.left.lower[columns] - right, problem.left.upper[columns] - right
    matrix = reach.differences.metric.matrix[:, columns]
    p, eps = reach.differences.metric.p, problem.eps
    _, small = reduced(matrix[np.abs(matrix).sum(axis=1) > 0], p)
    if len(small):
        *_, (goal, _) = ascent(gradient, small, p, eps, lower, upper, ASCENT)
        goal = brought_in(goal, small, p, eps, lower, upper)
    else:
        goal = np.where(gradient > 0, upper, lower)
    start = pairs.d[:, columns]
    candidates = []
    for step in STEPS:
        d = pairs.d.copy()
        d[:, columns] = start + step * (goal - start)
        candidates.append(Pairs(pairs.right, d))
    return _choose(view, candidates)


def _move_both(view: View, reach: Reach, pairs: Pairs) -> Pairs:
    """Move both people at once along the gradient of the gap, and back to where they are similar; columns as above.

    Where much of a difference is free, what one person may be hangs on the other: neither gets far alone.
    """
    problem = view.problem
    columns = np.intersect1d(reach.differences.free, problem.right.continuous)
    metric = reach.differences.metric.matrix[:, columns]
    metric = metric[np.abs(metric).sum(axis=1) > 0]
    if not len(metric):
        return pairs
    domains, people = (problem.left, problem.right), [pairs.left, pairs.right.copy()]
    box = [(domain.lower[columns], domain.upper[columns]) for domain in domains]
    p, back = reach.differences.metric.p, np.linalg.pinv(metric, rcond=1e-9).T / 2
    for k in range(GRADIENTS):
        size = LONGEST * SHORTER**k * max(view.width, WIDTHS[-4])
        slopes = [sign * view.gradient(x)[:, columns] for sign, x in zip((1.0, -1.0), people, strict=True)]
        top = np.maximum(*(np.abs(slope).max(axis=1, keepdims=True) for slope in slopes)) + 1e-300
        moved = [
            x[:, columns] + size * (most - least) * g / top
            for x, (least, most), g in zip(people, box, slopes, strict=True)
        ]
        for _ in range(2):
            s = (moved[0] - moved[1]) @ metric.T
            over = (s - project(s, p, problem.eps)) @ back
            moved = [np.clip(x, *b) for x, b in zip((moved[0] - over, moved[1] + over), box, strict=True)]
        for x, new in zip(people, moved, strict=True):
            x[:, columns] = new
    d, right = pairs.d.copy(), people[1]
    lower, upper = (end - moved[1] for end in box[0])
    d[:, columns] = brought_in(moved[0] - moved[1], metric, p, problem.eps, lower, upper)
    return _choose(view, [pairs, Pairs(right, d)])


def _move_base(view: View, reach: Reach, pairs: Pairs) -> Pairs:
    """Move both people together along the gradient of the gap, the difference held."""
    problem = view.problem
    columns = problem.right.continuous
    if not len(columns):
        return pairs
    slope = (view.gradient(pairs.left) - view.gradient(pairs.right))[:, columns]
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
    return _choose(view, candidates)


def _move_categories(view: View, reach: Reach, pairs: Pairs) -> Pairs:
    """Try every category of every group, in both people at once, or in one alone where the metric allows it."""
    problem = view.problem
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
        pairs = _choose(view, candidates)
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


def _move_integers(view: View, reach: Reach, pairs: Pairs) -> Pairs:
    """Try a step, many steps and the ends of every integer, for both people, or for one alone where that may be."""
    problem = view.problem
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
        pairs = _choose(view, candidates)
    return pairs


def _if_similar(problem: Problem, pairs: Pairs, right: Array, left: Array) -> Pairs:
    """Return the new pairs where they are similar, the old ones elsewhere."""
    near = (problem.metric.distances(left, right) <= problem.eps * (1 + 1e-9))[:, None]
    return Pairs(np.where(near, right, pairs.right), np.where(near, left - right, pairs.d))
