"""Bounds by norms: no vector is stretched further, no pair differs by more, and a norm that is too small is noticed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import dense_search, similar_pairs, violations
from problems import make

from likewise.bounds import norms, reach, twin_bounds
from likewise.errors import SoundnessError
from likewise.search import branch, search
from likewise.search.inner import inner_problem

SEEDS = range(0, 60, 4)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 40), st.floats(-8.0, 8.0), st.booleans())
def test_no_vector_is_stretched_further(seed, rows, columns, power, is_flat):
    rng = np.random.default_rng(seed)
    weight = 10.0**power * rng.normal(size=(rows, columns))
    if is_flat:  # of rank 1: its singular values are as far apart as can be
        weight = np.outer(weight[:, 0], rng.normal(size=columns))
    bound = norms.stretch(weight)
    true = float(np.linalg.norm(weight, 2))
    assert true * (1 - 1e-12) <= bound <= 1.06 * true
    v = rng.normal(size=columns)
    assert np.linalg.norm(weight @ v) <= bound * np.linalg.norm(v) * (1 + 1e-12)


def test_nothing_is_stretched_by_nothing():
    assert norms.stretch(np.zeros((3, 2))) == 0.0


def outside(seed):
    """Count the neurons of sampled pairs whose difference leaves its bound."""
    problem = make(seed).problem
    inner, _ = inner_problem(problem)
    bounds = twin_bounds(inner, reach(inner), with_norms=True)
    left, right = similar_pairs(problem, seed, 200)
    count = 0
    for one, other, b in zip(
        inner.network.preactivations(left), inner.network.preactivations(right), bounds.layers, strict=True
    ):
        dz = one - other
        room = 1e-9 * (1.0 + np.abs(dz))
        count += int(((dz < b.dz.lower - room) | (dz > b.dz.upper + room)).sum())
    return count


@pytest.mark.parametrize("seed", SEEDS)
def test_every_pair_is_within_the_bounds(seed):
    assert outside(seed) == 0


def test_norms_that_are_too_small_are_noticed(monkeypatch):
    exact = norms.differences
    monkeypatch.setattr(norms, "differences", lambda layer, longest: exact(layer, 0.05 * longest))
    assert sum(_is_noticed(seed) for seed in SEEDS) >= 3


def _is_noticed(seed):
    try:
        return outside(seed) > 0
    except SoundnessError:  # two bounds that contradict each other are noticed too
        return True


@pytest.mark.parametrize("seed", [14, 17, 28, 33, 58])
def test_a_network_that_is_too_wide_gets_a_sound_bound_and_no_proof(seed, monkeypatch):
    monkeypatch.setattr(branch, "WIDE", 2)
    problem = make(seed).problem
    cert = search(problem, engine="auto", solver="highs", seconds=0.5, gap=1e-6, threads=1)
    assert not violations(problem, cert, dense_search(problem))
    assert "too wide" in cert.notes[0]
    assert cert.proof is None
    assert np.isfinite(cert.upper)
