"""Piecewise-linear bounds against 60-digit arithmetic."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_activations import EXACT, SMOOTH, intervals, true

from likewise.activations import NAMES, PwlBounds, by_name, pwl_bounds
from likewise.errors import InputError

GRIDS = ["adaptive", "uniform"]


def violation(activation, bounds):
    """How far the exact interpolation of the bounds is on the wrong side of f; <= 0 if nowhere we look.

    In every cell: both ends and, per side, where a zoom in float64 finds the bound closest to f.
    """
    worst = mp.mpf("-inf")
    for side, heights in ((1, bounds.lower), (-1, bounds.upper)):
        for i in range(max(len(bounds.breaks) - 1, 1)):
            p, q = bounds.breaks[i], bounds.breaks[min(i + 1, len(bounds.breaks) - 1)]
            u, v = heights[i], heights[min(i + 1, len(bounds.breaks) - 1)]
            for z in {p, q, (p + q) / 2, _closest(activation, p, q, u, v, side)}:
                f, p_, q_, z_ = true(activation.name, z), mp.mpf(p), mp.mpf(q), mp.mpf(z)
                width = q_ - p_ or mp.mpf(1)  # times the width, so that nothing is divided and lines stay exact
                excess = (width - (z_ - p_)) * (mp.mpf(u) - f) + (z_ - p_) * (mp.mpf(v) - f)
                noise = (abs(f) + abs(mp.mpf(u)) + abs(mp.mpf(v))) * mp.mpf(10) ** -55  # of 60 digits
                worst = max(worst, side * excess / width - noise)
    return worst


def _closest(activation, p, q, u, v, side):
    a, b = 0.0, 1.0
    for _ in range(4):
        share = np.linspace(a, b, 41)
        z = np.clip(p + share * (q - p), p, q)
        best = int(np.argmin(side * (activation.value(z) - (u + share * (v - u)))))
        a, b = share[max(best - 1, 0)], share[min(best + 1, 40)]
    return z[best]


def max_error(activation, bounds):
    z = np.unique(np.concatenate([np.linspace(bounds.breaks[0], bounds.breaks[-1], 200_001), bounds.breaks]))
    f = activation.value(z)
    lower, upper = np.interp(z, bounds.breaks, bounds.lower), np.interp(z, bounds.breaks, bounds.upper)
    return max(float(np.max(f - lower)), float(np.max(upper - f)))


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15, deadline=None)
@given(case=intervals(), cells=st.sampled_from([1, 2, 5, 9]))
def test_bounds_hold(name, grid, case, cells):
    f, (lo, hi) = by_name(name), case
    bounds = pwl_bounds(f, lo, hi, cells, grid)
    assert bounds.breaks[0] == lo
    assert bounds.breaks[-1] == hi
    assert (np.diff(bounds.breaks) > 0).all()
    assert violation(f, bounds) <= 0


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("name", SMOOTH)
def test_cells_are_as_many_as_asked_and_respect_pieces(name, grid):
    f = by_name(name)
    for lo, hi in [(-5.0, 5.0), (-1.0, 0.5), (-40.0, 3.0), (-1e-3, 2e-3)]:
        inside = [e for e in f.inflections() if lo < e < hi]
        for cells in (1, 4, 16):
            bounds = pwl_bounds(f, lo, hi, cells, grid)
            assert set(inside) <= set(bounds.breaks)
            assert len(bounds.breaks) - 1 == max(cells, len(inside) + 1)


@pytest.mark.parametrize("name", SMOOTH)
def test_the_chord_side_meets_f_at_the_breaks(name):
    """In a cell with only chords at an end (no concave cell beside it) the upper value is f up to margins."""
    f = by_name(name)
    for piece in f.pieces:
        lo, hi = max(piece.low, -6.0), min(piece.high, 6.0)
        bounds = pwl_bounds(f, lo, hi, 7)
        chord = bounds.upper if piece.shape == "convex" else bounds.lower
        tangent = bounds.lower if piece.shape == "convex" else bounds.upper
        for z, height, other in zip(bounds.breaks, chord, tangent, strict=True):
            assert abs(height - true(name, z)) <= 2e-14 * abs(true(name, z)) + mp.mpf(10) ** -318
            assert piece.shape == "linear" or abs(other - true(name, z)) > 1e-7


@pytest.mark.parametrize("name", SMOOTH)
def test_the_tangent_touches_inside_the_cell(name):
    f = by_name(name)
    for lo, hi in [(-4.5, -3.0), (-1.2, -0.4), (0.1, 1.3), (2.6, 5.0), (0.5, 0.5001)]:
        bounds = pwl_bounds(f, lo, hi, 1)
        shape = next(piece.shape for piece in f.pieces if piece.low <= lo and hi <= piece.high)
        side, heights = (1, bounds.lower) if shape != "concave" else (-1, bounds.upper)
        z = _closest(f, lo, hi, *heights, side)
        line = heights[0] + (z - lo) / (hi - lo) * (heights[1] - heights[0])
        assert abs(f.value(z) - line) < 1e-11
        assert shape == "linear" or lo + 0.2 * (hi - lo) < z < hi - 0.2 * (hi - lo)
        ends = side * (f.value(bounds.breaks) - heights)
        assert ends[0] == pytest.approx(ends[1], rel=1e-3, abs=1e-13)  # balanced, which is what makes it the best one


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("name", SMOOTH)
def test_error_falls_with_the_square_of_the_cells(name, grid):
    f = by_name(name)
    errors = [max_error(f, pwl_bounds(f, -5.0, 5.0, cells, grid)) for cells in (32, 64, 128)]
    for coarse, fine in pairwise(errors):
        assert 3.3 < coarse / fine < 4.8


def test_adaptive_beats_uniform():
    for name in SMOOTH:
        f = by_name(name)
        for cells in (8, 16, 32):
            adaptive, uniform = (max_error(f, pwl_bounds(f, -8.0, 8.0, cells, grid)) for grid in GRIDS)
            assert adaptive < uniform, (name, cells)


def test_the_adaptive_error_is_that_of_the_optimal_grid():
    """(integral of sqrt|f''|)^2 / (8 M^2), computed here with mpmath; a few cells in a far tail cost up to 30 %."""
    for name in ("sigmoid", "tanh", "softplus", "gelu"):
        f = by_name(name)
        ends = [-5, *f.inflections(), 5]
        bend = mp.quad(lambda z, name=name: mp.sqrt(abs(_second(name, z))), ends, maxdegree=5)
        ratio = max_error(f, pwl_bounds(f, -5.0, 5.0, 64)) / float(bend**2 / (8 * 64**2))
        assert 0.98 < ratio < 1.3, name


def _second(name, z):
    s = 1 / (1 + mp.exp(-z))
    return {
        "sigmoid": s * (1 - s) * (1 - 2 * s),
        "tanh": -2 * mp.tanh(z) * mp.sech(z) ** 2,
        "softplus": s * (1 - s),
        "gelu": mp.npdf(z) * (2 - z * z),
    }[name]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in SMOOTH])
def test_piecewise_linear_activations_are_exact(name):
    f = by_name(name)
    for lo, hi in [(-7.3, 8.1), (-0.5, 0.25), (0.1, 0.9), (-2.0, 0.0)]:
        bounds = pwl_bounds(f, lo, hi, 32)
        assert bounds.breaks.tolist() == [lo, *(e for e in f.inflections() if lo < e < hi), hi]
        assert (bounds.upper - bounds.lower <= (0 if name in EXACT else 1e-15)).all()
        assert violation(f, bounds) <= 0
        assert max_error(f, bounds) < 4e-15


@pytest.mark.parametrize("name", NAMES)
def test_given_breaks_are_used_with_the_ends_of_pieces(name):
    f, mine = by_name(name), np.array([-9.0, -2.5, -0.3, 0.2, 1.0, 4.0])
    bounds = pwl_bounds(f, -3.0, 4.0, 99, breaks=mine)
    wanted = {-3.0, -2.5, -0.3, 0.2, 1.0, 4.0, *(e for e in f.inflections() if -3 < e < 4)}
    assert bounds.breaks.tolist() == sorted(wanted)
    assert violation(f, bounds) <= 0


def test_margins_stay_below_1e_14_on_tiny_cells():
    for name in SMOOTH:
        f = by_name(name)
        for at in (-3.0, 0.7, 5.0):
            bounds = pwl_bounds(f, at, at + 1e-9, 3)
            assert max_error(f, bounds) < 2e-14 * abs(f.value(np.float64(at)))
        point = pwl_bounds(f, 0.7, 0.7, 3)
        assert len(point.breaks) == 1
        assert point.lower[0] < true(name, 0.7) < point.upper[0] or name == "elu"


@pytest.mark.parametrize("name", NAMES)
def test_bounds_moved_inward_are_flagged(name):
    """The planted fault: 1e-9 inward at any one break, or a tangent with the wrong sign, must not pass the checker."""
    f = by_name(name)
    lo, hi = (-2.0, -0.5) if name in ("sigmoid", "tanh", "softsign", "elu", "selu") else (-0.9, -0.1)
    bounds = pwl_bounds(f, lo, hi, 1)
    assert violation(f, bounds) <= 0
    for k in range(2):
        nudge = np.eye(2)[k] * 1e-9
        assert violation(f, dataclasses.replace(bounds, lower=bounds.lower + nudge)) > 0
        assert violation(f, dataclasses.replace(bounds, upper=bounds.upper - nudge)) > 0
    if name in SMOOTH:
        flipped = PwlBounds(bounds.breaks, bounds.lower[::-1], bounds.upper)
        assert violation(f, flipped) > 0


def test_bad_requests_are_refused():
    with pytest.raises(InputError, match="cubic"):
        pwl_bounds(by_name("tanh"), -1.0, 1.0, 4, "cubic")
    with pytest.raises(InputError, match="at least 1"):
        pwl_bounds(by_name("tanh"), -1.0, 1.0, 0)
    assert repr(pwl_bounds(by_name("tanh"), -1.0, 1.0, 4)) == "PwlBounds(4 cells on [-1, 1])"
