"""Places where rounding once went inward, each found by review: the exact answer is computed in rationals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import likewise as lw
from likewise.bounds import domain_upper
from likewise.bounds.difference import through
from likewise.bounds.interval import Box
from likewise.bounds.rows import Rows
from likewise.search import search


def test_a_rotated_ball_holds_pairs_that_are_far_along_its_null_space():
    """||A|| |d| / eps is 1e11 here: an error relative to eps does not pay for a rotation of A."""
    matrix = np.array(
        [
            [15776.878925178593, 15776.878925178593],
            [16022.391763796257, 16022.39176495412],
            [19624.23093124381, 19624.23093124381],
        ]
    )
    domain = lw.Domain([lw.Continuous("a", 0, 1), lw.Continuous("b", 0, 1)])
    network = lw.Network(
        [lw.Layer([[1, -1], [1, -0.9]], [-0.2, -0.1], "relu"), lw.Layer([[1, 0.5]], [0.0], "identity")]
    )
    problem = lw.Problem(network, domain, domain, lw.Metric(matrix, 2.0, "test"), 2.442159359753383e-07)
    left, right = np.array([0.6999999950026035, 0.0]), np.array([0.45, 0.2499999949973977])
    assert problem.admits(left, right)
    cert = search(problem, engine="milp", solver="highs", seconds=4.0, gap=1e-8)
    assert cert.upper >= problem.gap_lower(left, right)


def test_a_tiny_distance_is_not_zero():
    metric = lw.Metric(np.eye(2), 2.0, "test")
    assert not metric.within(np.zeros(2), np.array([1e-170, 0.0]), 0.0)
    assert metric.within(np.zeros(2), np.array([1e-170, 0.0]), 1e-170)


def test_groups_with_negative_coefficients_only():
    rng = np.random.default_rng(0)
    domain = lw.Domain([lw.OneHot(f"g{i}", ["a", "b"]) for i in range(60)])
    rows = -rng.random((400, 120))
    for row, bound in zip(rows.tolist(), domain_upper(domain, rows), strict=True):
        assert Fraction(float(bound)) >= sum(Fraction(max(row[k], row[k + 1])) for k in range(0, 120, 2))


def test_a_row_is_widened_outward():
    rows = Rows()
    x = rows.variables([0.0, 0.0], [1.0, 1.0])
    rows.row(x, [1.0, 1e-20], 1.0, 1.0)
    model = rows.model()
    assert model.row_lower[0] < 1.0 < model.row_upper[0]


def test_a_variable_named_twice_is_merged_and_paid_for():
    rows = Rows()
    x = rows.variables([-1.0, -1.0], [1.0, 1.0])
    third = 1.0 / 3.0
    rows.row([x[0], x[1], x[0]], [1.0, 1.0, -third], 0.0, 0.0)
    rows.row([x[0], x[1], x[0]], [1.0, 1.0, -1.0 + 1e-12], 0.0, 0.0)
    model = rows.model()
    exact = 1 - Fraction(third)
    assert abs(Fraction(float(model.matrix[0, 0])) - exact) <= Fraction(float(model.row_upper[0]))
    assert model.matrix[1, 0] == 0.0
    assert model.row_upper[1] >= 1e-12


def test_a_product_that_underflows_is_not_zero():
    tiny = Box(np.array([1e-200]), np.array([1e-200]))
    product = through(tiny, tiny)
    assert product.lower[0] <= 0.0 < product.upper[0]
