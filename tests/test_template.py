"""The template of linear relaxations: every real pair is a point of it.

Planted faults must break that, or the check would be worth nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracle import similar_pairs
from problems import make

from likewise.activations.linear import hull_lines
from likewise.bounds import reach, twin_bounds
from likewise.bounds.difference import difference_lines
from likewise.bounds.encoding import Detail
from likewise.bounds.template import Template
from likewise.search.inner import inner_problem

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
