"""Corners in which an engine once claimed too little: each has a pair that is easy to see, which no upper may miss."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from likewise import Continuous, Domain, Embedding, Integer, Layer, Network, Problem, WeightedLp
from likewise.search import search
from likewise.search.score import tangents
from likewise.solvers import LinearModel, solver_room

ENGINES = ("milp", "branch", "paper")


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


def small(output: str = "sigmoid") -> tuple[Network, Domain]:
    domain = Domain([Continuous("x", 0.0, 1.0), Continuous("y", 0.0, 1.0)])
    hidden = Layer([[3.0, -2.0], [-1.0, 4.0]], [0.1, -0.5], "tanh")
    return Network([hidden, Layer([[4.0, -3.0]], [0.2], output)]), domain


@pytest.mark.parametrize("eps", [0.0, 1e-300, 1e-15, 1e-9])
def test_a_tiny_eps_of_a_ball_made_of_tangents(eps):
    network, domain = small()
    found = search(
        Problem(network, domain, domain, WeightedLp([1.0, 1.0], p=1.5), eps),
        engine="milp", solver="highs", seconds=5.0, gap=1e-5,
    )  # fmt: skip
    assert 0.0 <= found.lower <= found.upper <= 1e-4


@pytest.mark.parametrize("delta", [1.0 - 1e-9, 1.0])
def test_a_delta_next_to_the_largest_gap_there_is(delta):
    network, domain = small()
    problem = Problem(network, domain, domain, WeightedLp([1.0, 1.0]), 0.5)
    assert search(problem, engine="milp", solver="highs", seconds=5.0, gap=1e-5, delta=delta).verdict(delta) == "fair"


def test_no_tangent_next_to_one_leaves_a_cut_that_holds():
    (cut,) = tangents(1.0 - 1e-10, -5.0, 5.0, np.linspace(-5.0, 5.0, 9))
    assert (cut.slope, cut.offset) == (1.0, 0.0)


def test_no_solver_is_believed_where_coefficients_outrun_its_tolerances():
    ends = (np.array([-1.0]), np.array([1.0]), np.zeros(2), np.ones(2))
    for size, is_endless in ((1e6, False), (1e9, True)):
        matrix = csr_matrix(np.array([[size, -1.0]]))
        room = solver_room(LinearModel(np.array([0.0, 1.0]), matrix, *ends, np.zeros(2, dtype=bool)))
        assert math.isinf(room) == is_endless
