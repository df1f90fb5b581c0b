"""Curved neurons: both values bounded together, planes of their difference, and the ascent of smooth networks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import likewise_checker
from likewise import Continuous, Domain, Layer, Mahalanobis, Network, Problem, WeightedLp
from likewise.activations import NAMES, by_name
from likewise.bounds import Box, settle
from likewise.bounds.pairs import Terms, largest
from likewise.bounds.planes import Plane, can_lean, facets, placed
from likewise.bounds.reach import reach
from likewise.search import _kernel, search
from likewise.search.ascend import ascend, can_ascend
from likewise.search.compiled import curve

SMOOTH = [name for name in NAMES if by_name(name).bends is not None]
seeds = st.integers(0, 10_000)


def neurons(seed: int, count: int = 6) -> tuple[Terms, Box, Box, Box]:
    """Return random coefficients and intervals, some short, some where zl is held in by its own."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=count)
    b = -a * rng.choice([1.0, 1.0, 0.7, 0.0], count)
    lines = -a * rng.uniform(0, 1, count), a * rng.uniform(0, 1, count) + rng.normal(0, 0.05, count)
    terms = Terms(a, b, *lines)
    right = Box(rng.uniform(-4, 0, count), rng.uniform(0.01, 4, count))
    low = rng.uniform(-1, 0.5, count)
    dz = Box(low, low + rng.choice([0.01, 0.3, 2.0], count))
    someone = rng.uniform(right.lower, right.upper) + rng.uniform(dz.lower, dz.upper)
    low, high = right.lower + rng.uniform(-0.5, 0.2, count), right.upper + rng.uniform(0.0, 0.5, count)
    left = Box(np.minimum(low, someone), np.maximum(high, someone))
    return terms, left, right, dz


def bent(terms: Terms, seed: int) -> Terms:
    """Return the same lines with squares of dz and dv."""
    rng = np.random.default_rng([1, seed])
    return replace(terms, squares=rng.normal(size=(3, len(terms.left))) * rng.choice([0.0, 1.0, 3.0], len(terms.left)))


def dense(name: str, terms: Terms, left: Box, right: Box, dz: Box) -> np.ndarray:
    """Return the largest values on grids of pairs, the border of zl's interval included."""
    f, best = by_name(name).value, []
    for j in range(len(terms.left)):
        z, h = np.meshgrid(np.linspace(right.lower[j], right.upper[j], 241), np.linspace(dz.lower[j], dz.upper[j], 81))
        zl = np.concatenate([(z + h).ravel(), np.clip(z + h, left.lower[j], left.upper[j]).ravel()])
        zr = np.concatenate([z.ravel(), z.ravel()])
        inside = (zl >= left.lower[j]) & (zl <= left.upper[j])
        inside &= (zl - zr >= dz.lower[j]) & (zl - zr <= dz.upper[j])
        value = terms.left_value[j] * f(zl) + terms.right_value[j] * f(zr) + terms.left[j] * zl + terms.right[j] * zr
        (p, q, r), dv, h = terms.of(np.array([j])).squares[:, 0], f(zl) - f(zr), zl - zr
        best.append((value + p * dv**2 + q * h * dv + r * h**2)[inside].max())
    return np.array(best)


@pytest.mark.parametrize("name", SMOOTH)
@settings(max_examples=25, deadline=None)
@given(seed=seeds)
def test_no_pair_is_above_what_bounds_it_together(name: str, seed: int) -> None:
    terms, left, right, dz = neurons(seed)
    terms = bent(terms, seed)
    shown, found = largest(by_name(name), terms, left, right, dz), dense(name, terms, left, right, dz)
    assert (shown >= found).all()
    size = terms.size(np.ones(1))
    assert (shown <= found + 0.05 * size).all()  # as far as the grid goes
    c = np.array([terms.left_value, terms.right_value, terms.left, terms.right])
    ends = (np.array([box.lower, box.upper]) for box in (left, right, dz))
    asked = (by_name(name).value, *likewise_checker.BENDS[name], c, terms.squares, *ends, 1e-8)
    checked = likewise_checker.together(*asked)
    assert (checked >= found).all()
    assert (checked <= shown + 1e-6 * size.max()).all()  # it may take more rectangles


@pytest.mark.parametrize("name", SMOOTH)
def test_bends_are_those_of_the_function(name: str) -> None:
    z, step = np.linspace(-12, 12, 48_001), 1e-4
    slope = by_name(name).slope
    second = np.abs(slope(z + step) - slope(z - step)) / (2 * step)
    third = np.abs(slope(z + step) - 2 * slope(z) + slope(z - step)) / step**2
    for first, *bends in ((by_name(name).lipschitz, *by_name(name).bends), likewise_checker.BENDS[name]):  # type: ignore[misc]
        assert np.abs(slope(z)).max() <= first
        assert second.max() <= bends[0] + 1e-7
        assert third.max() <= bends[1] + 1e-4
    assert second.max() > 0.99 * by_name(name).bends[0]  # type: ignore[index]
    assert third.max() > 0.99 * by_name(name).bends[1]  # type: ignore[index]


def test_the_checker_bounds_together_what_likewise_does() -> None:
    assert set(likewise_checker.BENDS) == set(SMOOTH)


def network(name: str, widths: tuple[int, ...], seed: int, inputs: int = 4) -> Network:
    rng = np.random.default_rng(seed)
    layers, before = [], inputs
    for width in widths:
        weight = rng.normal(0, 1.4 / np.sqrt(before), (width, before))
        layers.append(Layer(weight, -weight.sum(axis=1) / 2 * (before == inputs), (name,) * width))
        before = width
    weight = rng.normal(0, 2 / np.sqrt(before), (1, before))
    return Network((*layers, Layer(weight, np.zeros(1), ("sigmoid",))))


def smooth_problem(name: str, seed: int, is_round: bool = True, widths: tuple[int, ...] = (6, 6)) -> Problem:
    domain = Domain(tuple(Continuous(f"x{k}", 0.0, 1.0) for k in range(4)))
    metric = Mahalanobis(np.eye(4)) if is_round else WeightedLp(np.ones(4), np.inf)
    return Problem(network(name, widths, seed), domain, domain, metric, 0.05)


@pytest.mark.parametrize("name", SMOOTH)
@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_planes_are_above_all_differences(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    net = network(name, (3,), seed)
    layer = net.layers[0]
    _, left, right, dz = neurons(seed, 3)
    bounds = [settle(layer, left, right, dz)]
    some = facets(net, bounds)
    points = [
        (k, j, rng.uniform(dz.lower[j], dz.upper[j]), rng.uniform(right.lower[j], right.upper[j])) for k, j in some
    ]
    planes = [
        Plane(k, j, *how, 0.0)
        for k, j, h, z in points
        for dv in (9.0, -9.0)
        for how in some[k, j].lowest(h, z, dv, 0.0)
    ]
    assert planes
    f = by_name(name).value
    for plane in placed(net, bounds, planes):
        j = plane.neuron
        zr, h = rng.uniform(right.lower[j], right.upper[j], 4000), rng.uniform(dz.lower[j], dz.upper[j], 4000)
        is_pair = (zr + h >= left.lower[j]) & (zr + h <= left.upper[j])
        over = plane.sign * (f(zr + h) - f(zr)) - plane.rise * h - plane.lean * zr - plane.offset
        assert (over[is_pair] <= 0).all()


@pytest.mark.parametrize("name", SMOOTH)
@settings(max_examples=25, deadline=None)
@given(seed=seeds)
def test_the_kernel_bounds_planes_as_python_does(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    _, left, right, dz = neurons(seed)
    rise, lean, sign = rng.uniform(-0.5, 1.5, 6), rng.normal(0, 0.3, 6), rng.choice([-1.0, 1.0], 6)
    terms = Terms(sign, -sign, -rise, rise - lean)
    shown, found = largest(by_name(name), terms, left, right, dz), dense(name, terms, left, right, dz)
    for j in range(6):
        ends = [float(end[j]) for box in (left, right, dz) for end in (box.lower, box.upper)]
        own = _kernel.offset(curve(by_name(name)), int(sign[j]), rise[j], lean[j], ends)
        bent = (ends[3] - ends[2]) ** 2 + (ends[5] - ends[4]) ** 2
        assert found[j] <= own <= shown[j] + 0.02 * bent + 1e-5


@pytest.mark.parametrize("name", SMOOTH)
@settings(max_examples=25, deadline=None)
@given(seed=seeds)
def test_a_facet_touches_the_hull_where_it_is_asked_for(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    f, z, h = by_name(name).value, np.sort(rng.uniform(-4, 4, 2)), np.sort(rng.uniform(-1, 1, 2))
    zs, hs = rng.uniform(*z), rng.uniform(*h)
    across, along = np.meshgrid(np.linspace(*z, 17), np.linspace(*h, 7))
    value = f(across + along) - f(across)
    for sign in (1, -1):
        top, rise, lean = _kernel.facet(curve(by_name(name)), sign, zs, hs, [*z, *h])
        plane = top + rise * (along - hs) + lean * (across - zs)
        assert (sign * value <= plane + 1e-6 * (1 + np.abs(plane))).all()  # above all of the sample
        assert top <= sign * value.max() + 1e-9 if sign > 0 else top <= -value.min() + 1e-9
        points = np.array([across.ravel(), along.ravel(), np.ones(across.size)])
        hull = linprog(-sign * value.ravel(), A_eq=points, b_eq=[zs, hs, 1.0])  # the highest mean of points around it
        assert top == pytest.approx(-hull.fun, abs=1e-6)


def test_only_smooth_curves_lean() -> None:
    assert can_lean(network("tanh", (3, 2), 0))
    assert not can_lean(network("relu", (3, 2), 0))
    assert not can_lean(network("elu", (3,), 0))


@pytest.mark.parametrize("is_round", [True, False])
def test_a_proof_by_planes_is_verified_and_needs_what_bounds_them(
    is_round: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = smooth_problem("tanh", 3, is_round, (5,))
    found = search(problem, engine="auto", solver="highs", seconds=60.0, gap=1e-3)
    assert found.upper - found.lower <= 1e-3
    path = tmp_path / "tanh.cert"
    found.save(path)
    assert likewise_checker.check(path)["ok"]
    monkeypatch.setattr(likewise_checker, "BENDS", {})
    assert likewise_checker.check(path)["code"] == 10


@pytest.mark.parametrize("is_round", [True, False])
def test_an_ascent_finds_a_better_pair_that_is_similar(is_round: bool) -> None:
    problem = smooth_problem("gelu", 1, is_round)
    assert can_ascend(problem)
    right = np.full(4, 0.5)
    left = right + 0.01
    better = ascend(problem, reach(problem), (left, right), 5.0)
    gaps = [float(np.subtract(*problem.network(np.stack(pair)))) for pair in ((left, right), better)]
    assert gaps[1] > 3 * gaps[0] > 0
    assert problem.metric.distance(*better) <= 0.05 * (1 + 1e-5)
    assert all(
        problem.right.contains(np.clip(one, 0, 1)) and np.abs(one - np.clip(one, 0, 1)).max() == 0 for one in better
    )
