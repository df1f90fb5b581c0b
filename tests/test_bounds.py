"""Bounds against samples, exact arithmetic and independent linear programs: nothing true is ever cut off."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import high_precision, similar_pairs
from problems import METRICS, make
from scipy.optimize import Bounds, LinearConstraint, linprog, milp, minimize
from scipy.special import logit
from test_activations import TRUTH

import likewise_checker
from likewise import Continuous, Domain, Layer, Mahalanobis, Network, OneHot, Problem, WeightedLp, solvers
from likewise.activations import NAMES, by_name, pwl_bounds
from likewise.bounds import Differences, domain_upper, reach, twin_bounds
from likewise.bounds.ball import ball_rows, fold_levels
from likewise.bounds.encoding import NOTHING, Detail, add_curve, encode
from likewise.bounds.interval import Box, affine
from likewise.bounds.rows import Rows
from likewise.search.score import Score, as_logits, tangent_points, tangents
from likewise.solvers import Limits, Status

seeds = st.integers(0, 10**6)
MOST_CHANGES = 100


def sampled(seed: int, count: int = 400) -> tuple[Problem, np.ndarray, np.ndarray]:
    """Return a random problem with some of its similar pairs."""
    problem = make(seed).problem
    left, right = similar_pairs(problem, seed, count)
    return problem, left, right


# reach


@pytest.mark.parametrize("seed", range(100, 130))
def test_reach_shares_no_group_that_can_flip(seed):
    problem = make(seed).problem
    found = reach(problem)
    for group in problem.right.groups:
        changes = math.prod(len(_changes(problem, g)) + 1 for g in problem.right.groups)
        if changes > MOST_CHANGES:
            continue
        nearest = min((_nearest(problem, group, i, j) for i, j in _changes(problem, group)), default=math.inf)
        if nearest <= problem.eps:
            assert group in found.flippable
            assert not found.shared[group].all()
        if nearest > problem.eps * (1 + 1e-6) + 1e-9:
            assert group not in found.flippable


def _changes(problem: Problem, group: slice) -> list[tuple[int, int]]:
    columns = range(group.start, group.stop)
    left, right = problem.left.upper, problem.right.upper
    return [(i, j) for i in columns for j in columns if i != j and left[i] > 0.5 and right[j] > 0.5]


def _nearest(problem: Problem, group: slice, i: int, j: int) -> float:
    """Return how near two people with these categories of one group can be, over every change of the others."""
    others = [[None, *_changes(problem, g)] for g in problem.right.groups if g != group]
    return min(_distance_with(problem, [(i, j), *[c for c in chosen if c]]) for chosen in itertools.product(*others))


def _distance_with(problem: Problem, changes: list[tuple[int, int]]) -> float:
    matrix, p = problem.metric.matrix, problem.metric.p
    columns = problem.right.continuous
    low = (problem.left.lower - problem.right.upper)[columns]
    high = (problem.left.upper - problem.right.lower)[columns]
    fixed = np.zeros(problem.right.width)
    for i, j in changes:
        fixed[i], fixed[j] = 1.0, -1.0
    part, offset = matrix[:, columns], matrix @ fixed
    rows, n = part.shape
    if p == 2.0:
        start = np.clip(-np.linalg.lstsq(part, offset, rcond=None)[0], low, high)
        away = lambda d: float(np.sum((part @ d + offset) ** 2))  # noqa: E731
        slope = lambda d: 2 * part.T @ (part @ d + offset)  # noqa: E731
        limits = list(zip(low, high, strict=True))
        solved = minimize(away, start, jac=slope, bounds=limits, options={"ftol": 1e-15, "gtol": 1e-12})
        return math.sqrt(away(np.clip(solved.x, low, high)))
    sizes = rows if p == 1.0 else 1  # a bound per row, or one for all
    tops = np.eye(rows) if p == 1.0 else np.ones((rows, 1))
    both = np.block([[part, -tops], [-part, -tops]])
    bounds = [*zip(low, high, strict=True), *[(0, None)] * sizes]
    cost = np.concatenate([np.zeros(n), np.ones(sizes)])
    solved = linprog(cost, A_ub=both, b_ub=np.concatenate([-offset, offset]), bounds=bounds)
    return float(solved.fun)


@given(seeds)
@settings(max_examples=30)
def test_reach_holds_every_difference(seed):
    problem, left, right = sampled(seed)
    found = reach(problem)
    d = left - right
    assert (d >= found.differences.lower).all()
    assert (d <= found.differences.upper).all()
    assert (d[:, found.shared] == 0.0).all()


def test_reach_at_a_distance_of_exactly_eps():
    """Two categories of weight 1 are 1 apart in l-inf and 2 in l-1; similar is inclusive."""
    domain = Domain([Continuous("x", 0, 1), OneHot("g", ["a", "b"])])
    network = Network([Layer([[1.0, 1.0, -1.0]], [0.0], "sigmoid")])
    for p, far in ((math.inf, 1.0), (1, 2.0)):
        for eps, flips in ((far, 1), (far * (1 - 1e-9), 0)):
            found = reach(Problem(network, domain, domain, WeightedLp(np.ones(3), p), eps))
            assert len(found.flippable) == flips


# support


@given(seeds, st.sampled_from(METRICS))
@settings(max_examples=60)
def test_upper_bounds_of_differences(seed, kind):
    problem, left, right = sampled(14 * 11 * 9 * 13 * (seed % 1000) + METRICS.index(kind), 200)
    found = reach(problem).differences
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(6, problem.right.width)) * (rng.random((6, problem.right.width)) < 0.7)
    errors = np.abs(rng.normal(size=rows.shape)) * 1e-6
    assert (rows @ (left - right).T <= found.upper_bounds(rows)[:, None] + 1e-15).all()
    wider = found.upper_bounds(rows, errors)
    for wrong in (errors, -errors):
        assert ((rows + wrong) @ (left - right).T <= wider[:, None] + 1e-15).all()


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_upper_bounds_are_near_the_best(p):
    """Where the box does not matter the maximum is eps times the dual norm, and the bound finds it."""
    rng = np.random.default_rng(3)
    matrix = np.linalg.qr(rng.normal(size=(5, 5)))[0] * 1.3
    metric = replace(Mahalanobis(np.eye(5)), matrix=matrix, p=p)
    box = Differences(metric, 0.1, np.full(5, -2.0), np.full(5, 2.0))
    rows = rng.normal(size=(20, 5))
    dual = {1.0: math.inf, 2.0: 2, math.inf: 1}[p]
    best = 0.1 * np.linalg.norm(rows @ np.linalg.inv(matrix), dual, axis=1)
    bounds = box.upper_bounds(rows)
    assert (bounds >= best * (1 - 1e-12)).all()
    assert (bounds <= best * (1 + 1e-6)).all()


@given(seeds)
@settings(max_examples=60)
def test_domain_upper(seed):
    problem = make(seed).problem
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(5, problem.right.width))
    for domain in (problem.left, problem.right):
        people = domain.sample(300, rng)
        bounds = domain_upper(domain, rows)
        assert (rows @ people.T <= bounds[:, None] + 1e-15).all()
        best = np.where(rows > 0, domain.upper, domain.lower)
        for group in domain.groups:
            best[:, group] = 0.0
            allowed = np.where(domain.upper[group] > 0.5, rows[:, group], -np.inf)
            best[np.arange(5), group.start + allowed.argmax(axis=1)] = 1.0
        reached = (rows * best).sum(axis=1)
        assert (bounds >= reached - 1e-15).all()
        assert (bounds <= reached + 1e-9).all()


# twin bounds


@pytest.mark.parametrize("name", NAMES)
@given(st.integers(0, 400))
@settings(max_examples=12)
def test_twin_bounds_hold_every_pair(name, k):
    problem, left, right = sampled(NAMES.index(name) + len(NAMES) * k)
    inner = replace(problem, network=as_logits(problem.network)[0])
    bounds = twin_bounds(inner, reach(inner))
    z_left, z_right = inner.network.preactivations(left), inner.network.preactivations(right)
    for layer, b, zl, zr in zip(inner.network.layers, bounds.layers, z_left, z_right, strict=True):
        vl, vr = layer.activate(zl), layer.activate(zr)
        for box, values in ((b.left, zl), (b.right, zr), (b.left_value, vl), (b.right_value, vr)):
            _inside(box, values, np.abs(values))
        _inside(b.dz, zl - zr, np.abs(zl) + np.abs(zr))
        _inside(b.dv, vl - vr, np.abs(vl) + np.abs(vr))


def _inside(box: Box, values: np.ndarray, size: np.ndarray) -> None:
    room = 1e-13 * size.max(initial=1.0)  # the samples' own rounding
    assert (values >= box.lower - room).all()
    assert (values <= box.upper + room).all()


@given(seeds)
def test_affine_against_exact_corners(seed):
    rng = np.random.default_rng(seed)
    weight, bias = rng.normal(size=(3, 4)) * 10.0 ** rng.integers(-9, 9), rng.normal(size=3)
    low = rng.normal(size=4)
    high = low + rng.exponential(size=4) * (rng.random(4) < 0.8)
    box = affine(weight, bias, Box(low, high))
    for corner in itertools.product((False, True), repeat=4):
        x = [mp.mpf(v) for v in np.where(corner, high, low).tolist()]
        for j in range(3):
            exact = mp.fsum([mp.mpf(w) * v for w, v in zip(weight[j].tolist(), x, strict=True)]) + mp.mpf(bias[j])
            assert mp.mpf(float(box.lower[j])) <= exact <= mp.mpf(float(box.upper[j]))


# the ball


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
@pytest.mark.parametrize("seed", range(4))
def test_ball_rows_hold_the_ball_and_little_more(p, seed):
    rng = np.random.default_rng([seed, int(min(p, 9))])
    n = int(rng.integers(2, 6))
    matrix = rng.normal(size=(n + seed % 2, n))
    metric = replace(Mahalanobis(np.eye(n)), matrix=matrix, p=p)
    eps = float(rng.uniform(0.05, 2.0))
    box = Differences(metric, eps, np.full(n, -20.0), np.full(n, 20.0))
    rows = Rows()
    d = rows.variables(box.lower, box.upper)
    ball_rows(rows, box, d, 1e-6)
    model = rows.model()
    for _ in range(25):
        point = rng.normal(size=n)
        point *= eps / np.linalg.norm(matrix @ point, p)
        for scale, inside in ((1 - 1e-12, True), (rng.random(), True), (1.01, False)):
            assert _completes(model, d, point * scale) is inside


def _completes(model, fixed, values, integers=False):
    """Tell whether the model has a point with these values, by scipy's own solver."""
    if (model.lower[fixed] > values).any() or (model.upper[fixed] < values).any():
        return False
    held = _held(model, fixed, values)
    rows = LinearConstraint(held.matrix, held.row_lower, held.row_upper)
    kind = held.integer.astype(int) if integers else 0
    solved = milp(held.objective, constraints=rows, bounds=Bounds(held.lower, held.upper), integrality=kind)
    assert solved.status in (0, 2), solved.message
    return solved.status == 0


def _held(model, fixed, values):
    lower, upper = model.lower.copy(), model.upper.copy()
    lower[fixed] = upper[fixed] = values
    return replace(model, lower=lower, upper=upper)


def test_fold_levels_keep_their_promise():
    for accuracy in (1e-2, 1e-4, 1e-6, 1e-9):
        assert 1 / math.cos(math.pi / 2 ** fold_levels(accuracy)) - 1 <= accuracy


# curves


@pytest.mark.parametrize("name", NAMES)
def test_curve_holds_the_function_and_little_more(name):
    rng = np.random.default_rng(NAMES.index(name))
    activation = by_name(name)
    for low, high in ((-2.3, 1.7), (0.3, 0.9), (-7.0, -0.5), (-0.4, 7.5)):
        curve = pwl_bounds(activation, low, high, 16)
        loose = float((curve.upper - curve.lower).max()) + _sag(activation, curve.breaks)
        rows = Rows()
        z = rows.variable(low, high)
        ends = activation.interval(np.array([low]), np.array([high]))
        v = add_curve(rows, z, curve, (float(ends[0][0]), float(ends[1][0])), None)
        model = rows.model()
        for at in (low, high, *rng.uniform(low, high, 4)):
            value = float(activation.value(np.array([at]))[0])
            if v == NOTHING:
                assert value == 0.0
            elif v == z:
                assert value == at
            else:
                assert _completes(model, [z, v], [at, value], integers=True)
                for off in (loose + 1e-3, -loose - 1e-3):
                    assert not _completes(model, [z, v], [at, value + off], integers=True)


def _sag(activation, breaks):
    """Return how far the function leaves its chords."""
    fine = np.concatenate([np.linspace(a, b, 50) for a, b in itertools.pairwise(breaks)])
    return float(np.abs(activation.value(fine) - np.interp(fine, breaks, activation.value(breaks))).max())


@pytest.mark.parametrize("seed", range(200, 228))
def test_encoding_holds_real_pairs(seed):
    """A solver that gets a real pair as input finds the rest of the model's point: no pair is lost to tolerances."""
    problem, left, right = sampled(seed, 3)
    inner = replace(problem, network=as_logits(problem.network)[0])
    bounds = twin_bounds(inner, reach(inner))
    encoding = encode(inner, bounds, Detail(), len(inner.network.layers) - 1)
    model = encoding.rows.model()
    fixed = np.concatenate([encoding.left.x, encoding.right.x])
    fixed, first = np.unique(fixed, return_index=True)
    for one, other in zip(left[:3], right[:3], strict=True):
        values = np.concatenate([one, other])[first]
        answer = solvers.get("highs").solve(_held(model, fixed, values), Limits(10.0))
        assert answer.status is Status.OPTIMAL


# the score


@given(st.floats(0.0, 0.999), st.floats(-12, 12), st.floats(0, 1), st.floats(-12, 12))
@settings(max_examples=300)
def test_tangents_hold_every_pair_of_logits(t, b, share, b0):
    sigma = TRUTH["sigmoid"]
    top = sigma(mp.mpf(b)) + mp.mpf(t)
    if top >= 1 - mp.mpf(10) ** -12:
        return
    level = top + mp.mpf(share) * (1 - top) * mp.mpf("0.999")  # any sigma(a) >= sigma(b) + t
    a = mp.log(level / (1 - level))
    for cut in tangents(t, -12.0, 12.0, np.array([b0])):
        assert a >= mp.mpf(cut.slope) * mp.mpf(b) + mp.mpf(cut.offset)


@given(st.floats(1e-6, 0.99), st.floats(-10, 10))
@settings(max_examples=200)
def test_tangents_touch(t, b0):
    p = TRUTH["sigmoid"](mp.mpf(b0)) + mp.mpf(t)
    if 1 - p < 1e-4:
        return
    (cut,) = tangents(t, -12.0, 12.0, np.array([b0]))
    g = mp.log(p / (1 - p))
    assert abs(g - (mp.mpf(cut.slope) * mp.mpf(b0) + mp.mpf(cut.offset))) < 1e-8 * (1 + cut.slope)


@given(st.floats(0.9, 1 - 1e-7), st.floats(0.0, 1.0), st.floats(0.5, 40.0))
@settings(max_examples=300)
def test_a_reader_takes_no_more_off_a_tangent(t, share, far):
    high = float(logit(max(1.0 - t - 1e-8, 1e-300)))
    points = -far + share * (min(high, far) + far) + np.linspace(0.0, 1e-6, 3)
    asked = SimpleNamespace(is_curved=True)
    for cut in tangents(t, -far, far, points):
        if cut.at < np.inf:
            _, offset = likewise_checker.Question.tangents(asked, t, np.array([cut.at]), far)
            assert cut.offset <= offset[0] + 1e-12 * abs(offset[0])


@given(st.floats(0.0, 0.999), st.floats(-10, 5), st.floats(0.1, 10), st.floats(-5, 10))
def test_tangent_points_are_in_range(t, b_lower, width, a_upper):
    points = tangent_points(t, b_lower, b_lower + width, a_upper, 24, [0.0])
    assert len(points)
    assert (points <= b_lower + width).all()


@given(st.floats(-9, 9), st.floats(-9, 9), st.floats(0, 3), st.floats(0, 3), st.floats(0, 3))
def test_score_upper(a, b, room_a, room_b, room_d):
    sigma = TRUTH["sigmoid"]
    gap = sigma(mp.mpf(a)) - sigma(mp.mpf(b))
    upper = Score(curved=True).upper(a + room_a, b - room_b, (a - b) * (1 + 1e-15) + room_d)
    assert max(gap, 0) <= mp.mpf(upper) + mp.mpf(10) ** -15


@given(st.floats(0.0, 1.0, exclude_max=True), st.floats(-40, 40), st.floats(-40, 40))
@mp.workdps(400)
def test_score_upper_from_slack(t, a, b):
    sigma = TRUTH["sigmoid"]
    p = sigma(mp.mpf(b)) + mp.mpf(t)
    if p >= 1:
        return
    slack = mp.mpf(a) - mp.log(p / (1 - p))
    upper = Score(curved=True).upper_from_slack(t, math.nextafter(float(slack), math.inf))
    assert sigma(mp.mpf(a)) - sigma(mp.mpf(b)) <= mp.mpf(upper)


@given(st.floats(0.0, 0.999), st.floats(1e-6, 40))
def test_score_upper_from_slack_is_reached(t, slack):
    """By the pair of logits around 0, or where t is too large for that, by one whose lower score is next to 0."""
    sigma = TRUTH["sigmoid"]
    p = max(mp.mpf(t) + mp.mpf(10) ** -15, sigma(-mp.mpf(slack) / 2))
    gap = t + sigma(mp.log(p / (1 - p)) + slack) - p
    assert Score(curved=True).upper_from_slack(t, slack) <= gap + mp.mpf(10) ** -12


# the network


@given(seeds)
@settings(max_examples=80)
def test_enclose_against_high_precision(seed):
    case = make(seed)
    network = case.problem.network
    for person in case.problem.right.sample(3, np.random.default_rng(seed)):
        low, high = network.enclose(person)
        exact = high_precision(network, person)
        assert mp.mpf(float(low[0])) <= exact <= mp.mpf(float(high[0]))
        gain = np.prod([max(1.0, float(np.abs(layer.weight).sum(axis=1).max())) for layer in network.layers])
        assert high[0] - low[0] <= 1e-12 * gain * max(1.0, abs(float(exact)))
