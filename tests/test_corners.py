"""Corners in which an engine once claimed too little: each has a pair that is easy to see, which no upper may miss."""

from __future__ import annotations

import numpy as np
import pytest

from likewise import Continuous, Domain, Embedding, Integer, Layer, Network, Problem, WeightedLp
from likewise.search import search

ENGINES = ("milp", "paper")


def upper(problem: Problem, engine: str) -> float:
    return search(problem, engine=engine, solver="highs", seconds=10.0, gap=1e-6).upper


@pytest.mark.parametrize("engine", ENGINES)
def test_side_constraints_on_one_side_only_leave_two_directions(engine):
    everyone = Domain([Continuous("x", 0.0, 1.0)])
    lower_half = Domain([Continuous("x", 0.0, 1.0)], [([1.0], 0.5)])
    network = Network([Layer([[1.0]], [0.0], "identity")])
    problem = Problem(network, lower_half, everyone, WeightedLp([1.0]), 1.0)
    assert not problem.symmetric
    assert problem.admits(np.array([0.0]), np.array([1.0]))
    assert 1.0 <= upper(problem, engine) <= 1.0 + 1e-4


@pytest.mark.parametrize("engine", ENGINES)
def test_an_embedding_as_wide_as_people_is_not_taken_for_the_people(engine):
    domain = Domain([Continuous("x", 0.0, 1.0), Continuous("y", 0.0, 1.0)])
    phi = Network([Layer([[0.01, 0.0], [0.0, 1.0]], [0.0, 0.0], "relu")])
    network = Network([Layer([[1.0, 1.0]], [0.0], "identity")])
    problem = Problem(network, domain, domain, Embedding(phi, WeightedLp([1.0, 1.0])), 0.05)
    assert problem.admits(np.array([1.0, 0.05]), np.zeros(2))
    assert 1.05 <= upper(problem, engine) <= 1.05 + 1e-4


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("far", "step"), [(5e5, 0.01), (1e8, 0.1)])
def test_a_narrow_part_of_a_wide_grid_keeps_the_rounding_of_the_whole(engine, far, step):
    domain = Domain([Integer("x", -far, far, step)]).where(x=(0.0, 100 * step))
    count = round(domain.upper[0] / step)
    values = domain.snap(np.arange(count + 1)[:, None] * step)[:, 0]
    nearest = int(np.diff(values).argmin())
    left, right = values[[nearest + 1]], values[[nearest]]
    problem = Problem(
        Network([Layer([[1.0]], [0.0], "identity")]), domain, domain, WeightedLp([1.0]), float(left[0] - right[0])
    )
    assert problem.admits(left, right)
    assert upper(problem, engine) >= left[0] - right[0]
