"""Products: sums and derivatives by base rows are those of the products themselves."""

from __future__ import annotations

import time

import numpy as np
import pytest
from problems import make

from likewise.bounds import Reach, reach, twin_bounds
from likewise.bounds.joint import Forms
from likewise.bounds.newton import look
from likewise.bounds.products import Products, Rows
from likewise.search.inner import inner_problem

SEEDS = (3, 14, 25, 40)


def some(seed: int, is_round: bool) -> Products:
    """Return random products of five numbers, one of them the ball's."""
    rng = np.random.default_rng(seed)
    base = np.vstack([np.eye(1, 6), np.pad(rng.normal(size=(8, 5)), ((0, 0), (1, 0)))])
    one, other = np.zeros((2, 12, 9))
    for rows in (one, other):
        for row in rows:
            row[rng.choice(9, 2, replace=False)] = rng.normal(size=2)
    image = np.pad(rng.normal(size=(3, 5)), ((0, 0), (1, 0))) if is_round else np.zeros((0, 6))
    return Products(base, Rows.of(one), Rows.of(other), image, 0.7)


def matrices(products: Products) -> np.ndarray:
    """Return the matrix of each product."""
    one, other, of = products.rows()
    pairs = one[:, :, None] * other[:, None]
    return np.array([(total + total.T) / 2 for k in range(of[-1] + 1) for total in [pairs[of == k].sum(axis=0)]])


@pytest.mark.parametrize("is_round", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_sums_and_derivatives_are_those_of_the_matrices(seed, is_round):
    products, rng = some(seed, is_round), np.random.default_rng([seed, 1])
    P, barrier = matrices(products), 0.3
    weights, y = rng.normal(size=len(P)), np.append(1.0, rng.normal(size=5))
    assert np.allclose(products.total(weights), np.tensordot(weights, P, 1))
    W = np.zeros((6, 6))
    W[1:, 1:] = np.linalg.inv(np.cov(rng.normal(size=(5, 50))))
    X = 2 * np.outer(y, y) + barrier * W
    slope, bend = products.derivatives(y, W, barrier)
    assert np.allclose(slope, [y @ one @ y + barrier * np.trace(W @ one) for one in P])
    wanted = [[np.trace(one @ X @ other @ W) for other in P] for one in P]
    assert np.allclose(bend, (np.array(wanted) + np.array(wanted).T) / 2)


def test_rows_of_more_than_two_are_not_taken():
    with pytest.raises(AssertionError):
        Rows.of(np.ones((1, 3)))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_step_is_along_the_slope_of_the_bound(seed):
    """Differences of the bound itself, over the numbers of a real problem's products."""
    inner, _ = inner_problem(make(seed).problem)
    where: Reach = reach(inner)
    bounds = twin_bounds(inner, where)
    hidden = [0.0 * layer.bias for layer in inner.network.layers[:-1]]
    both = (*hidden[:-1], inner.network.layers[-1].weight[0])
    forms = Forms(inner, bounds, both[-1])
    g = forms.objective(np.zeros(inner.right.width), both, tuple(hidden))
    if not np.abs(g).any() and not np.abs(forms.last).any():
        pytest.fail("choose another seed: nothing can differ there")
    found = forms._search(g, time.monotonic() + 20)
    at = look(forms, g, forms._unit(g) * found[0][1])
    assert at is not None
    inverse = np.zeros((len(at.y),) * 2)
    slope, _ = forms.products.derivatives(at.y, inverse, 0.0)
    for k in range(len(slope)):
        by = 1e-6 * max(abs(at.weights[k]), 1e-9)
        there = look(forms, g, at.weights + by * np.eye(len(slope))[k])
        assert there is not None
        assert (there.upper - at.upper) / by == pytest.approx(slope[k], rel=1e-2, abs=1e-5 * np.abs(slope).max())
