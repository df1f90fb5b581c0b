"""Annealing: its pairs are pairs, they are good ones, and it says where it does not apply."""

from __future__ import annotations

import numpy as np
import pytest
from problems import make

import likewise as lw
from likewise.activations import NAMES
from likewise.bounds import reach
from likewise.search import compiled, search
from likewise.search.anneal import annealer
from likewise.search.inner import inner_problem

PLAIN = lw.Domain(
    [
        lw.Continuous("age", 0.0, 1.0),
        lw.OneHot("job", ["a", "b", "c"]),
        lw.Continuous("income", -1.0, 2.0),
        lw.OneHot("home", ["x", "y"]),
        lw.Continuous("debt", 0.0, 0.5),
    ]
)
MOVES = 400


def network(inputs, widths=(8, 8), activation="relu", seed=0):
    rng = np.random.default_rng(seed)
    sizes = [inputs, *widths, 1]
    names = [*([activation] * len(widths)), "sigmoid"]
    return lw.Network(
        [
            lw.Layer(rng.normal(size=(high, low)) * 1.5 / np.sqrt(low), rng.normal(size=high) * 0.3, name)
            for low, high, name in zip(sizes, sizes[1:], names, strict=False)
        ]
    )


def problem(p, domain=PLAIN, eps=0.2, weights=None, **how):
    weights = np.where(np.arange(domain.width) % 2, 1.0, 0.7) if weights is None else weights
    metric = lw.WeightedLp(weights, p)
    return lw.Problem(network(domain.width, **how), domain, domain, metric, eps)


def looked(asked, seconds=20.0, moves=MOVES, seed=0):
    """Return pairs and their gaps."""
    inner, score = inner_problem(asked)
    found = annealer(inner, reach(inner), score)
    assert found is not None
    pairs = found.look(seconds, asked.right.person(), np.random.default_rng(seed), moves)
    return pairs, asked.network(pairs.left) - asked.network(pairs.right)


def engine_of(asked, seconds):
    return search(asked, engine="branch", solver="highs", seconds=seconds, gap=1e-4)


def are_pairs(asked, pairs):
    domain = asked.right
    assert (asked.metric.distances(pairs.left, pairs.right) <= asked.eps * (1 + 1e-9)).all()
    for people in (pairs.left, pairs.right):
        assert (people >= domain.lower - 1e-12).all()
        assert (people <= domain.upper + 1e-12).all()
        for group in domain.groups:
            assert set(np.unique(people[:, group])) <= {0.0, 1.0}
            assert (people[:, group].sum(axis=1) == 1.0).all()
    return True


@pytest.mark.parametrize("eps", [1e-6, 0.2, 5.0])
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, np.inf])
def test_what_is_found_are_pairs_best_first(p, eps):
    asked = problem(p, eps=eps, weights=np.where([*([True] * 4), False, *([True] * 3)], 9.0, 0.5))
    pairs, gaps = looked(asked)
    assert are_pairs(asked, pairs)
    assert gaps[0] > 0.0
    assert (np.diff(gaps) <= 1e-9).all()


@pytest.mark.parametrize("activation", NAMES)
def test_every_activation(activation):
    asked = problem(2.0, activation=activation)
    pairs, gaps = looked(asked)
    assert are_pairs(asked, pairs)
    lower = engine_of(asked, 1.0).lower
    assert gaps[0] >= 0.95 * lower  # a pair across kinks is more than first order, and left to `polish`


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_the_optimum_is_found(p, seed):
    asked = problem(p, seed=seed, widths=(8,))
    answer = engine_of(asked, 30.0)
    _, gaps = looked(asked, moves=2000)
    assert 0.98 * answer.upper <= gaps[0] <= answer.upper + 1e-9


def test_a_metric_that_measures_more_than_it_has_columns():
    matrix = np.random.default_rng(3).normal(size=(9, PLAIN.width))
    matrix[:, [1, 2, 3, 5, 6]] *= 10.0
    asked = lw.Problem(network(PLAIN.width), PLAIN, PLAIN, lw.Mahalanobis(matrix.T @ matrix), 0.3)
    pairs, gaps = looked(asked)
    assert are_pairs(asked, pairs)
    assert gaps[0] > 0.0


@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_what_the_metric_does_not_see_differs_as_far_as_it_may(p):
    asked = problem(p, weights=np.array([1.0, 9.0, 9.0, 9.0, 0.0, 9.0, 9.0, 1.0]), widths=(8,))
    pairs, gaps = looked(asked, moves=2000)
    assert are_pairs(asked, pairs)
    answer = engine_of(asked, 30.0)
    assert 0.98 * answer.upper <= gaps[0] <= answer.upper + 1e-9


def test_integers_and_constraints_are_kept():
    domain = lw.Domain(
        [lw.Continuous("age", 0.0, 1.0), lw.Integer("cars", 0, 6), lw.Continuous("debt", 0.0, 1.0)],
        [({"age": 1.0, "debt": 1.0}, 0.9), ({"cars": 0.1, "age": -1.0}, 0.2)],
    )
    pairs, gaps = looked(problem(2.0, domain, weights=np.array([1.0, 9.0, 1.0])))
    A, b = domain.constraints
    for people in (pairs.left[:32], pairs.right[:32]):
        assert (people @ A.T <= b + 1e-9).all()
        assert np.array_equal(people[:, 1], np.rint(people[:, 1]))
    assert gaps[0] > 0.0


def test_a_seed_and_a_number_of_moves_say_it_all():
    asked = problem(2.0)
    (one, _), (same, _), (other, _) = (looked(asked, moves=100, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.right, same.right)
    assert np.array_equal(one.d, same.d)
    assert not np.array_equal(one.right, other.right)


def test_where_it_does_not_apply(monkeypatch):
    def applies(asked):
        inner, score = inner_problem(asked)
        return annealer(inner, reach(inner), score) is not None

    asked = problem(2.0)
    assert applies(asked)
    matrix = np.random.default_rng(3).normal(size=(2, PLAIN.width))  # of three numbers, it sees two directions
    matrix = np.vstack([matrix, 9.0 * np.eye(PLAIN.width)[[1, 2, 3, 5, 6]]])
    assert not applies(lw.Problem(asked.network, PLAIN, PLAIN, lw.Mahalanobis(matrix.T @ matrix), 0.2))
    person = PLAIN.at(PLAIN.person())
    assert not applies(lw.Problem(asked.network, person, PLAIN, asked.metric, 0.2))
    mixed = lw.Layer(np.ones((2, PLAIN.width)), np.zeros(2), ["relu", "tanh"])
    net = lw.Network([mixed, lw.Layer(np.ones((1, 2)), np.zeros(1), "sigmoid")])
    assert not applies(lw.Problem(net, PLAIN, PLAIN, asked.metric, 0.2))
    monkeypatch.setattr(compiled, "missing", True)
    assert not applies(asked)


@pytest.mark.parametrize("seed", [0, 3, 6, 15, 21, 27, 30, 33, 36, 39, 42, 45, 48, 51, 54])
def test_odd_problems_have_pairs_too(seed):
    asked = make(seed).problem
    inner, score = inner_problem(asked)
    found = annealer(inner, reach(inner), score)
    assert found is not None
    pairs = found.look(5.0, asked.right.person(), np.random.default_rng(0), 50)
    assert np.isfinite(pairs.right).all()
    assert are_pairs(asked, pairs)
