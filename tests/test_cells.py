"""Cells of differences: together they hold every pair, none is below a pair of its own, and lost cells are noticed."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import likewise as lw
from likewise.bounds import cells as cells_module
from likewise.bounds import reach, twin_bounds
from likewise.bounds.cells import cells_of
from likewise.bounds.wide import spread_bounds
from likewise.errors import SoundnessError
from likewise.network import Layer, Network
from likewise.search import branch, search
from likewise.search.inner import inner_problem

OUTPUTS = ("identity", "sigmoid")


def some(seed, columns=5, unseen=2, output="identity"):
    """Return a problem whose metric does not see some directions of the columns."""
    rng = np.random.default_rng(seed)
    axes, _ = np.linalg.qr(rng.normal(size=(columns, columns)))
    seen = axes[unseen:] * rng.uniform(0.5, 2.0, (columns - unseen, 1))
    sizes = [columns, 14, 10, 1]
    layers = [
        Layer(rng.normal(size=(n, m)) / math.sqrt(m), 0.2 * rng.normal(size=n), "relu" if n > 1 else output)
        for m, n in itertools.pairwise(sizes)
    ]
    domain = lw.Domain([lw.Continuous(f"c{k}", 0.0, float(rng.uniform(0.5, 1.5))) for k in range(columns)])
    return lw.Problem(Network(layers), domain, domain, lw.Mahalanobis(seen.T @ seen), 0.1)


def pairs(problem, seed, count=1500):
    """Return similar pairs, as different as the box allows: moved along what the metric does not see, and a little."""
    rng = np.random.default_rng(seed)
    matrix, domain = problem.metric.matrix, problem.right
    _, values, axes = np.linalg.svd(matrix)
    unseen = axes[int((values > 1e-9).sum()) :]
    right = domain.sample(count, rng)
    d = rng.normal(size=(count, len(unseen))) @ unseen
    d += rng.normal(size=d.shape) * 0.02
    d *= problem.eps / np.maximum(np.linalg.norm(d @ matrix.T, axis=1, keepdims=True), problem.eps)
    room = np.where(d > 0, domain.upper - right, right - domain.lower) / np.maximum(np.abs(d), 1e-12)
    return right + d * np.minimum(room.min(axis=1, keepdims=True), rng.uniform(1.0, 5.0)) * (1 - 1e-9), right


def bounded(problem, depth=2):
    """Return the cells of a depth: their middles, half their lengths and their bounds; with the cells themselves."""
    inner, _ = inner_problem(problem)
    cells = cells_of(inner, spread_bounds(inner, twin_bounds(inner, reach(inner), with_norms=True)))
    half = cells.free.longest / 2**depth * (1 + 1e-9)
    grid = (np.arange(2**depth) - (2**depth - 1) / 2) * 2
    mids = np.stack(np.meshgrid(*[grid * h for h in half]), axis=-1).reshape(-1, len(half))
    return cells, half, mids, cells.uppers(cells.size(half, None, math.inf), mids), inner


def broken(seed, **kinds):
    """Count the pairs in a cell with a bound below their own difference (or in none at all)."""
    problem = some(seed, **kinds)
    cells, half, mids, uppers, inner = bounded(problem)
    left, right = pairs(problem, seed)
    apart = inner.network(left) - inner.network(right)
    columns = inner.metric.matrix.shape[1]
    assert cells.free.rows.shape[1] == columns
    y = (left - right) @ cells.free.rows.T
    inside = (np.abs(y[:, None, :] - mids[None]) <= half).all(axis=2)
    is_similar = np.linalg.norm((left - right) @ inner.metric.matrix.T, axis=1) <= inner.eps
    best = np.where(inside, uppers[None], -math.inf).max(axis=1)
    return int((is_similar & (apart > best + 1e-9)).sum())


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 2), st.sampled_from(OUTPUTS))
def test_no_pair_is_beyond_the_bound_of_its_cell(seed, unseen, output):
    assert broken(seed, unseen=unseen, output=output) == 0


def test_some_cells_are_empty_and_others_are_not():
    _, _, _, uppers, _ = bounded(some(3), 3)
    assert (uppers == -math.inf).any()
    assert np.isfinite(uppers).any()


def test_cells_that_leave_out_the_ball_are_noticed(monkeypatch):
    exact = cells_module.Cells.support
    monkeypatch.setattr(cells_module.Cells, "support", lambda self, half, rows: 0.2 * exact(self, half, rows))
    assert sum(_is_noticed(seed) for seed in range(4)) >= 2


def test_bounds_that_are_too_small_are_noticed(monkeypatch):
    exact = cells_module.Cells._spread
    monkeypatch.setattr(cells_module.Cells, "_spread", lambda *args: exact(*args) - 2.0)
    assert sum(_is_noticed(seed) for seed in range(4)) >= 2


def _is_noticed(seed):
    try:
        return broken(seed) > 0
    except SoundnessError:
        return True


def test_cutting_beats_the_whole_and_agrees_with_the_tree(monkeypatch):
    problem = some(3)
    exact = search(problem, engine="branch", solver="highs", seconds=1.0, gap=1e-3, threads=1)
    monkeypatch.setattr(branch, "WIDE", 2)
    cut = search(problem, engine="branch", solver="highs", seconds=3.0, gap=1e-3, threads=1)
    monkeypatch.setattr(branch, "cut", lambda root, deadline: None)
    whole = search(problem, engine="branch", solver="highs", seconds=3.0, gap=1e-3, threads=1)
    assert exact.lower <= cut.upper < whole.upper
    assert cut.lower <= exact.upper
    assert [upper for _, _, upper in cut.trace] == sorted((upper for _, _, upper in cut.trace), reverse=True)


def test_a_metric_that_sees_everything_has_no_cells():
    problem = some(2, unseen=0)
    inner, _ = inner_problem(problem)
    assert cells_of(inner, twin_bounds(inner, reach(inner))) is None
