"""Arguments: those of a linear program's duals prove its bound, and no argument, however poor, is broken by a pair."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from oracle import similar_pairs
from problems import make
from wide import make_wide

import likewise.proof.evaluation as module
from likewise.bounds import reach, twin_bounds
from likewise.proof.evaluation import KINDS, Target, evaluate
from likewise.search.inner import inner_problem
from likewise.search.question import Question
from likewise.search.relaxed import Relaxed
from likewise.solvers import Session

SEEDS = range(0, 42, 3)
WIDE = range(26)


class Relaxation:
    """The linear program of a problem at a threshold, and what it is made of."""

    def __init__(self, problem, t=0.1):
        self.problem, self.score = inner_problem(problem)
        self.bounds = twin_bounds(self.problem, reach(self.problem))
        self.relaxed = Relaxed(self.problem, self.bounds, self.score, Question(t, math.inf, [0.0]))
        self.lines = self.relaxed.template.lines(self.bounds.layers)
        objective = self.relaxed.objective
        self.session = Session(self.relaxed.template.fill(self.problem, self.bounds, self.lines, objective))

    def maximise(self, target=None):
        """Return the linear program's bound and its argument."""
        objective, template = self.relaxed.objective, self.relaxed.template
        if target is not None:
            objective = np.zeros(template.columns)
            left, right = target.coefficients(target.layer, len(template.left.z[target.layer]))
            objective[template.left.z[target.layer]] = left
            objective[template.right.z[target.layer]] = right
        bound, _ = self.session.maximise(objective)
        y = self.session.proof.multipliers
        return bound, self.relaxed.argued(y, self.lines)

    def targets(self, seed):
        rng = np.random.default_rng([11, seed])
        for k, layer in enumerate(self.problem.network.layers):
            for kind in KINDS:
                yield Target(k, int(rng.integers(len(layer.bias))), kind, float(rng.choice([-1.0, 1.0])))


@pytest.mark.parametrize("problem", [*(make(s).problem for s in SEEDS), *(make_wide(s).problem for s in WIDE)])
def test_duals_make_an_argument_that_proves_at_least_as_much(problem):
    relaxation = Relaxation(problem)
    for target in (None, *relaxation.targets(0)):
        bound, argument = relaxation.maximise(target)
        found = evaluate(relaxation.problem, relaxation.bounds, argument, target).upper
        assert found <= bound + 1e-9 * (1 + abs(bound)), target


def broken(seed, noise):
    """Count the pairs whose sum exceeds what some argument proves of all of them."""
    case = make(seed)
    relaxation = Relaxation(case.problem)
    rng = np.random.default_rng([12, seed])
    pairs = [relaxation.problem.network.preactivations(x) for x in similar_pairs(case.problem, seed, 40)]
    count = 0
    for target in (None, *relaxation.targets(seed)):
        _, argument = relaxation.maximise(target)
        argument = disturbed(argument, rng, noise)
        sums = values(pairs, argument, target)
        upper = evaluate(relaxation.problem, relaxation.bounds, argument, target).upper
        count += int((sums > upper + 1e-9 * (1 + np.abs(sums))).sum())
    return count


def disturbed(argument, rng, noise):
    """Return the argument with every number moved at random."""

    def moved(a):
        return a + noise * rng.normal(size=a.shape) * (1 + np.abs(a))

    layers = {name: tuple(map(moved, getattr(argument, name))) for name in ("left", "right", "both", "turn")}
    rest = {name: moved(getattr(argument, name)) for name in ("nu", "mu")}
    return replace(argument, weights=np.abs(moved(argument.weights)), **layers, **rest)


def values(pairs, argument, target):
    """Return the sum that an argument is about, of each pair."""
    left, right = pairs
    lines = argument.tangents
    apart = left[-1][:, :1] - lines.slopes * right[-1][:, :1] - lines.offsets
    sums = apart @ argument.weights
    if target is not None:
        one, other = target.coefficients(target.layer, left[target.layer].shape[1])
        sums = sums + left[target.layer] @ one + right[target.layer] @ other
    return sums


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_no_pair_breaks_an_argument(seed, noise):
    assert broken(seed, noise) == 0


def half_ball(problem, nu, mu, lower, upper):
    return 0.5 * honest_ball(problem, nu, mu, lower, upper)


def no_bracket(layer, p, c, z):
    return np.minimum(honest_bracket(layer, p, c, z), -c * (z.lower + z.upper) / 2)


honest_ball, honest_bracket = module._ball, module.bracket


@pytest.mark.parametrize(("name", "wrong"), [("_ball", half_ball), ("bracket", no_bracket)])
def test_a_planted_fault_is_broken_by_pairs(name, wrong, monkeypatch):
    monkeypatch.setattr(module, name, wrong)
    assert sum(broken(seed, 0.0) > 0 for seed in SEEDS) >= 3
