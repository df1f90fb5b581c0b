"""People on given pieces: walkers solve puzzles that have a solution, and what they return can exist."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

import likewise as lw
from likewise.search import pattern
from likewise.search.branch import begin
from likewise.search.pattern import Puzzle, matched
from likewise.search.root import Root
from likewise.search.run import Run
from likewise.search.tree import Bounded, Part


def _domain(groups: int, categories: int) -> lw.Domain:
    names = [f"c{k}" for k in range(categories)]
    return lw.Domain([*(lw.OneHot(f"g{g}", names) for g in range(groups)), lw.Continuous("x", 0.0, 1.0)])


def _problem(rng: np.random.Generator) -> lw.Problem:
    domain = _domain(4, 5)
    layers = [
        lw.Layer(rng.normal(size=(10, domain.width)), rng.normal(size=10), ("relu",) * 10),
        lw.Layer(rng.normal(size=(1, 10)), rng.normal(size=1), ("sigmoid",)),
    ]
    return lw.Problem(lw.Network(layers), domain, domain, lw.WeightedLp(np.ones(domain.width)), 0.3)


@pytest.mark.parametrize("seed", range(6))
def test_walkers_solve_a_puzzle_that_has_a_solution(seed):
    rng = np.random.default_rng(seed)
    problem = _problem(rng)
    width = problem.right.width
    hidden = problem.right.sample(1, rng)[0]
    matrix = rng.normal(size=(12, width))
    value = matrix @ hidden
    asked = Puzzle(matrix, np.zeros(12), value - 0.1, value + 0.1, np.ones(12))
    start = problem.right.sample(pattern.WALKERS, rng)
    walk = pattern._Walk(problem, asked, start, np.zeros(width))
    before = walk.least.min()
    for _ in range(pattern.STEPS):
        walk.step(rng)
    best = walk.best[walk.least.argmin()]
    assert problem.right.contains(best)
    assert walk.least.min() == pytest.approx(asked.missed(matrix @ best).sum())
    assert before > 0.1  # the start was none
    assert walk.least.min() < 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_matched_pairs_can_exist_and_are_sorted(seed):
    rng = np.random.default_rng(seed)
    root, part = _root(_problem(rng))
    pairs = matched(part, root.bounds.reach, root.people(part.relaxed, part.point), rng, time.monotonic() + 60.0)
    assert len(pairs) == pattern.WALKERS
    for _, right in pairs:
        assert root.problem.right.contains(right)
    lower = root.run.lower
    root.match(part)
    assert root.run.lower >= lower


def test_a_puzzle_is_met_by_the_pair_whose_pieces_it_asks_for():
    """But for the last one, which asks for the gap of the threshold."""
    rng = np.random.default_rng(1)
    root, part = _root(_problem(rng))
    template = part.relaxed.template
    right = root.problem.right.sample(1, rng)[0]
    d = np.zeros(len(right))
    d[-1] = 0.2 if right[-1] < 0.5 else -0.2
    point = part.point.copy()
    for side, person in ((template.left, right + d), (template.right, right)):
        point[side.x] = person
        for index, z in enumerate(root.problem.network.preactivations(person[None])):
            point[side.z[index]] = z[0]
    own = pattern._puzzle(_with(part, point), d)
    person = point[template.right.x]
    values = own.matrix @ person + own.shift
    assert own.missed(values)[:-1].max() <= 1e-9


def _with(part: Bounded, point: np.ndarray) -> Bounded:
    return Bounded(part.slack, part.upper, part.part, point, part.basis, part.relaxed, 0, part.slack)


def _root(problem: lw.Problem) -> tuple[Root, Bounded]:
    run = Run(problem, seconds=60.0, gap=1e-9)
    root = begin(problem, run)
    relaxed, session, slack, point = root._sharp()
    return root, Bounded(slack, math.inf, Part(root.problem, root.bounds), point, session.basis, relaxed, 0, slack)
