"""What is true of a problem, found without the engines: a dense search from below, and exact re-verification.

`dense_search` returns a real pair, so its gap is a lower bound on the truth and no `upper` may be below it.
`violations` lists everything that a certificate says and that is not so. Nothing here uses bounds or engines.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import mpmath as mp
import numpy as np
from scipy.optimize import minimize
from test_activations import TRUTH

from likewise import Certificate, Domain, Layer, Network, Problem

INSIDE = 1 - 1e-9  # float distances up to this part of eps are within eps exactly
SAMPLES = 12_000
KEPT = 40
CLIMBS = 160
POLISHED = 5
GRID = 9
MOST_CATEGORIES = 12


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A pair that exists and is similar, and its gap."""

    gap: float
    left: np.ndarray
    right: np.ndarray


def dense_search(problem: Problem, seed: int = 0) -> Found:
    """Return the best pair of random sampling, a grid where that is small, climbing and a smooth optimiser."""
    return max((_one_direction(p, seed, swap) for p, swap in _directions(problem)), key=lambda found: found.gap)


def _directions(problem: Problem) -> list[tuple[Problem, bool]]:
    return [(problem, False)] if problem.symmetric else [(problem, False), (problem.swapped(), True)]


def _one_direction(problem: Problem, seed: int, swap: bool) -> Found:
    rng = np.random.default_rng([7, seed])
    pairs = _similar(problem, *_sampled(problem, rng))
    pairs = _joined(pairs, _similar(problem, *_gridded(problem)))
    pairs = _best(problem, pairs, KEPT)
    pairs = _climbed(problem, pairs, rng)
    best = _exact(problem, pairs)
    for left, right in _unlike(problem, _best(problem, pairs, KEPT), POLISHED):
        best = max(best, _exact(problem, _smooth(problem, left, right)), key=lambda found: found.gap)
    return Found(best.gap, best.right, best.left) if swap else best


Pairs = tuple[np.ndarray, np.ndarray]


def similar_pairs(problem: Problem, seed: int, count: int) -> Pairs:
    """Return up to `count` random pairs that the problem admits; the widest apart come first."""
    rng = np.random.default_rng([8, seed])
    pairs = _similar(problem, *_sampled(problem, rng, 10 * count))
    left, right = _best(problem, pairs, count)
    real = [problem.admits(one, other) for one, other in zip(left, right, strict=True)]
    return left[real], right[real]


def _unlike(problem: Problem, pairs: Pairs, count: int) -> list[Pairs]:
    """Return the best pair of each combination of categories, then the best of the rest, `count` in all."""
    held = np.setdiff1d(np.arange(problem.right.width), problem.right.continuous)
    kinds = [(left[held].tobytes(), right[held].tobytes()) for left, right in zip(*pairs, strict=True)]
    first = [k for k, kind in enumerate(kinds) if kind not in kinds[:k]]
    order = [*first[: count - 1], *(k for k in range(len(kinds)) if k not in first)]
    return [(pairs[0][k], pairs[1][k]) for k in order[:count]]


def _gaps(problem: Problem, pairs: Pairs) -> np.ndarray:
    return problem.network(pairs[0]) - problem.network(pairs[1])


def _joined(one: Pairs, other: Pairs) -> Pairs:
    return np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]])


def _best(problem: Problem, pairs: Pairs, count: int) -> Pairs:
    order = np.argsort(-_gaps(problem, pairs))[:count]
    return pairs[0][order], pairs[1][order]


def _similar(problem: Problem, left: np.ndarray, right: np.ndarray) -> Pairs:
    """Keep the pairs that are within eps by a safe margin; there is always the pair of someone with himself."""
    near = _distance(problem, left - right) <= problem.eps * INSIDE
    twin = problem.left.sample(1, np.random.default_rng(0))
    return np.concatenate([left[near], twin]), np.concatenate([right[near], twin])


def _distance(problem: Problem, d: np.ndarray) -> np.ndarray:
    return np.linalg.norm(d @ problem.metric.matrix.T, problem.metric.p, axis=1)


def _sampled(problem: Problem, rng: np.random.Generator, count: int = SAMPLES) -> Pairs:
    """Draw people, change a category of half the pairs, then choose the continuous difference to make up for it."""
    right = problem.right.sample(count, rng)
    columns = problem.right.continuous
    corner = rng.random((count, len(columns)))
    ends = np.where(corner < 0.3, problem.right.lower[columns], problem.right.upper[columns])
    right[:, columns] = np.where((corner < 0.3) | (corner > 0.7), ends, right[:, columns])
    left = problem.left.sample(count, rng)
    _share_categories(problem, left, right, rng)
    if (problem.left.lower == problem.left.upper).all():
        return left, _differ(problem.right, left, -1.0, problem, right, rng)
    return _differ(problem.left, right, 1.0, problem, left, rng), right


def _share_categories(problem: Problem, left: np.ndarray, right: np.ndarray, rng: np.random.Generator) -> None:
    for group in problem.right.groups:
        same = rng.random(len(left)) < 0.8
        possible = (left[:, group] <= problem.right.upper[group]).all(axis=1) & same
        right[possible, group] = left[possible, group]


def _differ(
    domain: Domain, base: np.ndarray, sign: float, problem: Problem, other: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return `other` with its continuous columns set near those of `base`: sign * (other - base) within the metric."""
    columns = domain.continuous
    matrix = problem.metric.matrix
    held = np.setdiff1d(np.arange(domain.width), columns)
    already = (other[:, held] - base[:, held]) @ matrix[:, held].T
    goal = _in_ball(rng, len(base), len(matrix), problem.metric.p) * problem.eps - already
    part = matrix[:, columns]
    loose = _loose(part)
    d = goal @ np.linalg.pinv(part, rcond=1e-9).T
    wild = (domain.lower - domain.upper)[columns] * rng.uniform(-1, 1, d.shape)
    d += np.where(rng.random((len(d), 1)) < 0.7, wild @ loose.T, 0.0)
    moved = other.copy()
    moved[:, columns] = np.clip(base[:, columns] + d, domain.lower[columns], domain.upper[columns])
    return moved


def _loose(part: np.ndarray) -> np.ndarray:
    """Return the projector onto the null space; exact zeros where the matrix is diagonal."""
    if (np.count_nonzero(part, axis=1) <= 1).all():
        return np.diag((part == 0.0).all(axis=0).astype(float))
    return np.eye(part.shape[1]) - np.linalg.pinv(part, rcond=1e-9) @ part


def _in_ball(rng: np.random.Generator, count: int, size: int, p: float) -> np.ndarray:
    """Draw points of the unit p-ball, most of them at its surface."""
    w = rng.normal(size=(count, size)) * (rng.random((count, size)) < 0.6)
    if p == math.inf:
        w = np.where(rng.random((count, size)) < 0.7, np.sign(rng.normal(size=(count, size))), np.clip(w, -1, 1))
    length = np.maximum(np.linalg.norm(w, p, axis=1, keepdims=True), 1e-12)
    return w / length * np.where(rng.random((count, 1)) < 0.8, 1 - 2e-9, rng.random((count, 1)))


def _gridded(problem: Problem) -> Pairs:
    """Return every pair of a grid, all categories included, if there are at most two continuous columns."""
    columns = problem.right.continuous
    kinds = [_categories(problem, domain) for domain in (problem.left, problem.right)]
    if len(columns) > 2 or len(kinds[0]) * len(kinds[1]) > MOST_CATEGORIES:
        return problem.left.sample(0, np.random.default_rng(0)), problem.right.sample(0, np.random.default_rng(0))
    sides = []
    for domain, people in zip((problem.left, problem.right), kinds, strict=True):
        axes = [np.unique(np.linspace(domain.lower[c], domain.upper[c], GRID)) for c in columns]
        points = np.array(list(itertools.product(*axes)))
        side = np.repeat(people, len(points), axis=0)
        side[:, columns] = np.tile(points, (len(people), 1))
        sides.append(side)
    left, right = sides
    return np.repeat(left, len(right), axis=0), np.tile(right, (len(left), 1))


def _categories(problem: Problem, domain: Domain) -> np.ndarray:
    """Return one person per combination of allowed categories."""
    allowed = [np.flatnonzero(domain.upper[g] > 0.5) + g.start for g in domain.groups]
    people = []
    for chosen in itertools.islice(itertools.product(*allowed), MOST_CATEGORIES + 1):
        person = domain.lower.copy()
        for group in domain.groups:
            person[group] = 0.0
        person[list(chosen)] = 1.0
        people.append(person)
    return np.array(people)


def _climbed(problem: Problem, pairs: Pairs, rng: np.random.Generator) -> Pairs:
    """Move each pair at random, by steps that shrink, and keep what is similar and wider apart."""
    left, right = pairs[0].copy(), pairs[1].copy()
    value = _gaps(problem, (left, right))
    for turn in range(CLIMBS):
        size = 0.5 * 0.93**turn if turn < CLIMBS // 2 else 0.3 * 0.9 ** (turn - CLIMBS // 2)
        new_left, new_right = _stepped(problem, left, right, size, rng)
        near = _distance(problem, new_left - new_right) <= problem.eps * INSIDE
        gap = _gaps(problem, (new_left, new_right))
        better = near & (gap > value)
        left[better], right[better], value[better] = new_left[better], new_right[better], gap[better]
    return left, right


def _stepped(problem: Problem, left: np.ndarray, right: np.ndarray, size: float, rng: np.random.Generator) -> Pairs:
    """Propose new pairs: together, apart or one alone, sometimes with a new category for one or both."""
    shape = (len(left), len(problem.right.continuous))
    columns = problem.right.continuous
    step = size * rng.normal(size=shape) * (rng.random(shape) < 0.5)
    other = np.where(rng.random((len(left), 1)) < 0.5, step, size * rng.normal(size=shape) * (rng.random(shape) < 0.3))
    new = []
    for x, domain, move in ((left, problem.left, step), (right, problem.right, other)):
        y = x.copy()
        y[:, columns] = np.clip(x[:, columns] + move, domain.lower[columns], domain.upper[columns])
        new.append(y)
    for group in problem.right.groups:
        for k in np.flatnonzero(rng.random(len(left)) < 0.15):
            one = np.eye(group.stop - group.start)[int(rng.integers(group.stop - group.start))]
            sides = ((0, problem.left), (1, problem.right))
            which = int(rng.integers(3))
            for side, domain in sides if which == 2 else (sides[which],):
                if (one <= domain.upper[group]).all() and (one >= domain.lower[group]).all():
                    new[side][k, group] = one
    return _pulled(problem, new[0], new[1])


def _pulled(problem: Problem, left: np.ndarray, right: np.ndarray) -> Pairs:
    """Pull the continuous columns of pairs that are too far apart towards each other."""
    far = _distance(problem, left - right)
    scale = np.where(far > problem.eps, problem.eps * (1 - 2e-9) / np.maximum(far, 1e-300), 1.0)[:, None]
    columns = problem.right.continuous
    pulled = left.copy()
    pulled[:, columns] = right[:, columns] + (left - right)[:, columns] * scale
    pulled = np.clip(pulled, problem.left.lower, problem.left.upper)
    return pulled, right


def _smooth(problem: Problem, left: np.ndarray, right: np.ndarray) -> Pairs:
    """Polish the continuous columns of one pair by sequential quadratic programming; categories are held."""
    columns = problem.right.continuous
    n = len(columns)
    fixed = left - right
    fixed[columns] = 0.0
    part, offset = problem.metric.matrix[:, columns], problem.metric.matrix @ fixed

    def people(x: np.ndarray) -> Pairs:
        one, other = left.copy(), right.copy()
        one[columns], other[columns] = x[:n], x[n:]
        return one[None], other[None]

    def room(x: np.ndarray) -> np.ndarray:
        moved = part @ (x[:n] - x[n:]) + offset
        if problem.metric.p == 2.0:
            return np.array([problem.eps**2 * (1 - 4e-9) - moved @ moved])
        if problem.metric.p == 1.0:
            return np.array([problem.eps * (1 - 2e-9) - np.abs(moved).sum()])
        return problem.eps * (1 - 2e-9) - np.concatenate([moved, -moved])

    start = np.concatenate([left[columns], right[columns]])
    low = np.concatenate([problem.left.lower[columns], problem.right.lower[columns]])
    high = np.concatenate([problem.left.upper[columns], problem.right.upper[columns]])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        solved = minimize(
            lambda x: -float(_gaps(problem, people(x))[0]),
            start,
            bounds=list(zip(low, high, strict=True)),
            constraints={"type": "ineq", "fun": room},
            method="SLSQP",
            options={"maxiter": 40, "ftol": 1e-12},
        )
    x = np.clip(np.nan_to_num(solved.x), low, high)
    ways = [start + share * (x - start) for share in (1.0, 1 - 1e-9, 1 - 1e-7, 1 - 1e-5, 0.99, 0.0)]
    stacked = [people(np.clip(w, low, high)) for w in ways]
    return np.concatenate([s[0] for s in stacked]), np.concatenate([s[1] for s in stacked])


def _exact(problem: Problem, pairs: Pairs) -> Found:
    """Return the widest pair that the problem admits exactly, with its gap re-evaluated in high precision."""
    for k in np.argsort(-_gaps(problem, pairs)):
        left, right = pairs[0][k], pairs[1][k]
        if problem.admits(left, right):
            gap = high_precision(problem.network, left) - high_precision(problem.network, right)
            return Found(max(0.0, math.nextafter(float(gap), -math.inf)), left, right)
    same = problem.left.sample(1, np.random.default_rng(0))[0]
    return Found(0.0, same, same)


def high_precision(network: Network, person: np.ndarray) -> mp.mpf:
    """Return f(person) of a one-output network to fifty digits, by functions of the tests' own."""
    x = [mp.mpf(v) for v in person.tolist()]
    for layer in network.layers:
        x = _layer(layer, x)
    return x[0]


def _layer(layer: Layer, x: list[mp.mpf]) -> list[mp.mpf]:
    values = []
    for row, bias, name in zip(layer.weight.tolist(), layer.bias.tolist(), layer.activations, strict=True):
        function: Callable[[mp.mpf], mp.mpf] = TRUTH[name]
        values.append(function(mp.fsum([mp.mpf(w) * v for w, v in zip(row, x, strict=True)]) + mp.mpf(bias)))
    return values


def violations(problem: Problem, cert: Certificate, found: Found) -> list[str]:
    """Return what is wrong with a certificate, in words; an empty list if nothing is."""
    wrong = []
    if not 0.0 <= cert.lower <= cert.upper:
        wrong.append(f"not 0 <= lower <= upper: {cert.lower!r}, {cert.upper!r}")
    if found.gap > cert.upper:
        wrong.append(f"a pair has the gap {found.gap!r}, upper is {cert.upper!r}")
    wrong += [f"left {w}" for w in _not_a_person(problem.left, cert.witness.left)]
    wrong += [f"right {w}" for w in _not_a_person(problem.right, cert.witness.right)]
    if not exactly_similar(problem, cert.witness.left, cert.witness.right):
        wrong.append("the witness is not a similar pair")
    gap = high_precision(problem.network, cert.witness.left) - high_precision(problem.network, cert.witness.right)
    gap = gap if problem.symmetric else abs(gap)
    if gap < mp.mpf(cert.lower):
        wrong.append(f"the witness has the gap {float(gap)!r}, lower is {cert.lower!r}")
    return wrong + _not_monotone(cert)


def _not_a_person(domain: Domain, x: np.ndarray) -> list[str]:
    wrong = []
    if not all(low <= v <= high for low, v, high in zip(domain.lower, x, domain.upper, strict=True)):
        wrong.append("is out of the domain's box")
    groups = [x[group].tolist() for group in domain.groups]
    return wrong + [f"is not one-hot: {g}" for g in groups if sorted(g) != [0.0] * (len(g) - 1) + [1.0]]


def exactly_similar(problem: Problem, left: np.ndarray, right: np.ndarray) -> bool:
    """Decide d(left, right) <= eps in rational arithmetic, without the metric's own code."""
    d = [Fraction(a) - Fraction(b) for a, b in zip(left.tolist(), right.tolist(), strict=True)]
    sums = [
        sum((Fraction(a) * x for a, x in zip(row, d, strict=True)), Fraction())
        for row in problem.metric.matrix.tolist()
    ]
    eps = Fraction(problem.eps)
    if problem.metric.p == 2.0:
        return sum(s * s for s in sums) <= eps * eps
    return (sum(abs(s) for s in sums) if problem.metric.p == 1.0 else max(abs(s) for s in sums)) <= eps


def _not_monotone(cert: Certificate) -> list[str]:
    for (s0, lo0, up0), (s1, lo1, up1) in itertools.pairwise(cert.trace):
        if s1 < s0 or lo1 < lo0 or up1 > up0:
            return [f"the trace goes back from {(s0, lo0, up0)} to {(s1, lo1, up1)}"]
    return (
        []
        if cert.trace and cert.trace[-1][1:] == (cert.lower, cert.upper)
        else ["the trace does not end at the bounds"]
    )
