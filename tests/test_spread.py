"""Bounds by quadratic forms: no pair differs by more, whatever the form, and forms that claim too much are noticed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import similar_pairs
from problems import make

from likewise.bounds import Box, reach, twin_bounds
from likewise.bounds import spread as spreads
from likewise.bounds.spread import Form, is_positive, spread_of, symmetric
from likewise.bounds.wide import first_spread, spread_bounds
from likewise.errors import SoundnessError
from likewise.search.inner import inner_problem

SEEDS = range(0, 60, 4)


def some(seed, neurons, columns, p=2.0):
    """Return a layer's spread, with a sample of the set it is over: d, and dv for slopes as bad as can be."""
    rng = np.random.default_rng(seed)
    weight, matrix = rng.normal(size=(neurons, columns)), rng.normal(size=(max(1, columns - 2), columns))
    low = rng.choice([0.0, -0.2], neurons)
    slope = Box(low, np.maximum(low, rng.choice([0.0, 1.0, 1.1], neurons)))
    reached, eps = rng.uniform(0.2, 2.0, columns), 0.5
    d = rng.uniform(-1.0, 1.0, (4000, columns)) * reached
    far = np.linalg.norm(d @ matrix.T, p, axis=1) / eps
    d = d / np.maximum(far, 1.0)[:, None]
    return spread_of(weight, slope, symmetric(matrix, p, eps, reached)), d, slope, rng


def worst(k, d, spread, slope):
    """Return the largest k.dv of the sampled differences, each slope the worst one for k."""
    dz = d @ spread.weight.T
    return float(np.maximum(k * slope.lower * dz, k * slope.upper * dz).sum(axis=1).max())


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 30), st.integers(1, 7), st.sampled_from([1.0, 2.0, 3.0, np.inf]))
def test_no_difference_is_beyond_the_bound(seed, neurons, columns, p):
    spread, d, slope, rng = some(seed, neurons, columns, p)
    rows = rng.normal(size=(5, neurons))
    uppers = spread.upper(rows, spread.fitted(rows, steps=10))
    assert np.isfinite(uppers).all()
    assert all(worst(k, d, spread, slope) <= upper * (1 + 1e-9) for k, upper in zip(rows, uppers, strict=True))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.floats(-6.0, 6.0))
def test_any_form_makes_a_bound(seed, power):
    spread, d, slope, rng = some(seed, 12, 4)
    shares = rng.uniform(size=1 + len(spread.among.limits))
    form = Form(shares / shares.sum(), 10.0**power * rng.uniform(0.1, 1.0, 12))
    rows = rng.normal(size=(3, 12))
    uppers = spread.upper(rows, form)
    assert all(worst(k, d, spread, slope) <= upper * (1 + 1e-9) for k, upper in zip(rows, uppers, strict=True))


@pytest.mark.parametrize("power", [-150, -60, 60, 150])
def test_numbers_beyond_floats_give_no_bound_or_a_true_one(power):
    spread, d, slope, rng = some(5, 12, 4)
    huge = dataclasses.replace(spread, weight=spread.weight * 10.0 ** (power * rng.choice([0.0, 1.0], (12, 1))))
    rows = rng.normal(size=(3, 12))
    uppers = huge.upper(rows, huge.fitted(rows, steps=10))
    assert not np.isnan(uppers).any()
    assert all(worst(k, d, huge, slope) <= upper * (1 + 1e-9) for k, upper in zip(rows, uppers, strict=True))


def test_many_neurons_on_few_columns_are_bounded_far_below_their_sum():
    spread, _, _, rng = some(3, 400, 6)
    k = rng.normal(size=(1, 400))
    inverse = np.linalg.inv(spread._metric(spread.first().shares)[0])
    alone = np.sqrt(np.einsum("ij,jk,ik->i", spread.weight, inverse, spread.weight))  # of one neuron, in the ellipsoid
    together = float(spread.upper(k, spread.fitted(k))[0])
    assert together < 0.8 * float((np.abs(k[0]) * (np.abs(spread.middle) + spread.half) * alone).sum())


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 12), st.floats(-1e-3, 1e-3))
def test_only_positive_matrices_pass(seed, size, shift):
    rng = np.random.default_rng(seed)
    axes, _ = np.linalg.qr(rng.normal(size=(size, size)))
    values = np.append(shift, rng.uniform(0.1, 1.0, size - 1))
    matrix = (axes * values) @ axes.T
    assert is_positive((matrix + matrix.T) / 2, 1e-12) == (shift > 1e-12) or abs(shift) < 1e-11
    assert not is_positive(np.full((size, size), np.nan), 1e-12)


def outside(seed):
    """Count the neurons of sampled pairs whose difference leaves its bound."""
    problem = make(seed).problem
    inner, _ = inner_problem(problem)
    bounds = spread_bounds(inner, twin_bounds(inner, reach(inner), with_norms=True))
    left, right = similar_pairs(problem, seed, 200)
    entering = zip(inner.network.preactivations(left), inner.network.preactivations(right), strict=True)
    count = 0
    for (one, other), b in zip(entering, bounds.layers, strict=True):
        dz, room = one - other, 1e-9 * (1.0 + np.abs(one - other))
        count += int(((dz < b.dz.lower - room) | (dz > b.dz.upper + room)).sum())
    return count


@pytest.mark.parametrize("seed", SEEDS)
def test_every_pair_is_within_the_bounds(seed):
    assert outside(seed) == 0


def _is_noticed(seed):
    try:
        return outside(seed) > 0
    except SoundnessError:  # two bounds that contradict each other are noticed too
        return True


def test_forms_of_too_small_a_ball_are_noticed(monkeypatch):
    exact = spreads.Spread._proven
    monkeypatch.setattr(spreads.Spread, "_proven", lambda *args: 0.05 * exact(*args))
    assert sum(map(_is_noticed, SEEDS[::2])) >= 2


def test_a_matrix_that_is_not_looked_at_is_noticed(monkeypatch):
    monkeypatch.setattr(spreads, "is_positive", lambda matrix, room: True)
    monkeypatch.setattr(spreads, "MARGINS", (-0.5,))  # claims that Cholesky's method would refuse
    assert sum(map(_is_noticed, SEEDS[::2])) >= 1


def test_time_that_is_over_leaves_what_was_known():
    problem = make(14).problem
    inner, _ = inner_problem(problem)
    known = twin_bounds(inner, reach(inner), with_norms=True)
    late = spread_bounds(inner, known, deadline=0.0)
    assert all(
        np.array_equal(one.dz.upper, other.dz.upper) for one, other in zip(known.layers, late.layers, strict=True)
    )


def test_the_spread_is_that_of_the_columns_that_can_differ():
    problem = make(14).problem
    inner, _ = inner_problem(problem)
    bounds = twin_bounds(inner, reach(inner))
    assert first_spread(inner, bounds).weight.shape[1] == len(bounds.reach.differences.free)
