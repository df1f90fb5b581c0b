"""The template of linear relaxations: every real pair is a point of it; and reduced costs narrow without losing any.

Planted faults must break that, or the check would be worth nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracle import similar_pairs
from problems import make
from scipy.sparse import csr_matrix

from likewise.activations.linear import hull_lines
from likewise.bounds import reach, twin_bounds
from likewise.bounds.difference import difference_lines
from likewise.bounds.encoding import Detail
from likewise.bounds.template import Template
from likewise.search.inner import inner_problem
from likewise.solvers import LinearModel, Session, narrowed, narrowed_rows

SEEDS = range(0, 60, 3)
FAR = 1e-7  # what floats and a sum of many terms may be off by, relative


def values(template, problem, left, right, columns):
    """Return the variables of a pair that the template names; what is lifted is left at nan."""
    x = np.full(columns, np.nan)
    for side, person in ((template.left, left), (template.right, right)):
        x[side.x] = person
        for index, z in enumerate(problem.network.preactivations(person[None])):
            if index < len(side.z):
                x[side.z[index]] = z[0]
            if index < len(side.v):
                x[side.v[index]] = problem.network.layers[index].activate(z[0])
    differences, d = template.compared
    x[d] = (left - right)[differences.free]
    return x


def broken(model, x):
    """Count the bounds and rows that a pair breaks, rows with lifted variables left out."""
    known = np.isfinite(x)
    y = np.where(known, x, 0.0)
    over = np.maximum(y - model.upper, model.lower - y) > FAR * (1 + np.abs(y))
    rows = np.flatnonzero((np.abs(model.matrix) @ (~known).astype(float)) == 0.0)
    sums, size = model.matrix @ y, np.abs(model.matrix) @ np.abs(y)
    off = np.maximum(sums - model.row_upper, model.row_lower - sums) > FAR * (1 + size)
    return int((over & known).sum() + off[rows].sum())


def broken_by_pairs(seed):
    inner, _ = inner_problem(make(seed).problem)
    bounds = twin_bounds(inner, reach(inner))
    template = Template(inner, bounds, Detail(), len(inner.network.layers) - 1)
    model = template.model(inner, bounds)
    pairs = similar_pairs(make(seed).problem, seed, 30)
    return sum(broken(model, values(template, inner, *pair, template.columns)) for pair in zip(*pairs, strict=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_every_pair_is_a_point_of_the_template(seed):
    assert broken_by_pairs(seed) == 0


def moved_hull(activation, lo, hi):
    below, above = hull_lines(activation, lo, hi)
    return below, [(slope, offset - 1e-2) for slope, offset in above]


def flipped_difference(slope, dz):
    lines = difference_lines(slope, dz)
    return replace(lines, upper_slope=-lines.upper_slope)


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        ("likewise.activations.linear.hull_lines", moved_hull),
        ("likewise.bounds.template.difference_lines", flipped_difference),
    ],
)
def test_a_planted_fault_loses_pairs(place, wrong, monkeypatch):
    monkeypatch.setattr(place, wrong)
    assert sum(broken_by_pairs(seed) > 0 for seed in SEEDS) >= 5


def lost_when_narrowed(seed, stretch=1.0):
    """Count the points of a random polyhedron, at or above a floor, that narrowed bounds and rows no longer hold."""
    rng = np.random.default_rng([3, seed])
    columns, height = 5, 4
    points = rng.uniform(-1.0, 1.0, (400, columns))
    matrix = rng.normal(size=(height, columns))
    side = np.quantile(points @ matrix.T, 0.7, axis=0)
    points = points[(points @ matrix.T <= side).all(axis=1)]
    objective = rng.normal(size=columns)
    ends = (np.full(height, -10.0), side, np.full(columns, -1.0), np.ones(columns))
    model = LinearModel(objective, csr_matrix(matrix), *ends, np.zeros(columns, dtype=bool))
    session = Session(model)
    session.maximise(objective)
    floor = float(np.quantile(points @ objective, 0.8))
    kept = points[points @ objective >= floor]
    proof = replace(
        session.proof, reduced=stretch * session.proof.reduced, multipliers=stretch * session.proof.multipliers
    )
    lower, upper = narrowed(model, proof, floor)
    least, most = narrowed_rows(model, proof, floor, np.arange(height))
    sums = kept @ matrix.T
    return int(((kept < lower) | (kept > upper)).sum() + ((sums < least) | (sums > most)).sum())


@pytest.mark.parametrize("seed", range(40))
def test_reduced_costs_lose_no_point_above_the_floor(seed):
    assert lost_when_narrowed(seed) == 0


def test_reduced_costs_taken_for_more_than_they_are_lose_points():
    assert sum(lost_when_narrowed(seed, stretch=3.0) > 0 for seed in range(40)) >= 20


def test_narrowing_does_narrow():
    rows = LinearModel(
        np.array([1.0, 1.0]), csr_matrix((0, 2)), *(np.zeros(0),) * 2, -np.ones(2), np.ones(2), np.zeros(2, bool)
    )
    session = Session(rows)
    session.maximise(rows.objective)
    lower, upper = narrowed(rows, session.proof, 1.5)
    assert lower == pytest.approx([0.5, 0.5])
    assert upper == pytest.approx([1.0, 1.0])
