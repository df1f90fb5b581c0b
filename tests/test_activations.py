"""Activations against 60-digit arithmetic: values, ranges, slopes and lines."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.activations import NAMES, by_name
from likewise.errors import ModelError, SoundnessError

mp.mp.dps = 60

SMOOTH = [name for name in NAMES if not by_name(name).is_piecewise_linear()]
EXACT = ["relu", "relu6", "hardtanh", "identity"]


def _sigmoid(z):
    return 1 / (1 + mp.exp(-z)) if z >= 0 else mp.exp(z) / (1 + mp.exp(z))


TRUTH = {
    "relu": lambda z: max(z, mp.mpf(0)),
    "leaky_relu": lambda z: z if z >= 0 else mp.mpf(0.01) * z,
    "relu6": lambda z: min(max(z, mp.mpf(0)), mp.mpf(6)),
    "hardtanh": lambda z: min(max(z, mp.mpf(-1)), mp.mpf(1)),
    "hardsigmoid": lambda z: min(max(z / 6 + mp.mpf(1) / 2, mp.mpf(0)), mp.mpf(1)),
    "sigmoid": _sigmoid,
    "tanh": mp.tanh,
    "softplus": lambda z: mp.log1p(mp.exp(z)) if z < 0 else z + mp.log1p(mp.exp(-z)),
    "elu": lambda z: z if z >= 0 else mp.expm1(z),
    "selu": lambda z: mp.mpf(1.0507009873554805) * z if z >= 0 else mp.mpf(1.7580993408473766) * mp.expm1(z),
    "silu": lambda z: z * _sigmoid(z),
    "gelu": lambda z: z * mp.erfc(-z / mp.sqrt(2)) / 2,
    "softsign": lambda z: z / (1 + abs(z)),
    "identity": lambda z: z,
}


def true(name, z):
    return TRUTH[name](mp.mpf(float(z)))


@st.composite
def intervals(draw):
    """One-point, one-float, tiny, ordinary and huge intervals; at, across and beside the ends of pieces."""
    centre = draw(
        st.one_of(
            st.sampled_from([0.0, -1.0, 1.0, 3.0, -3.0, 6.0, -1.2784645427610737, -0.7517915246935645]),
            st.sampled_from([2.3993572805154675, -2.3993572805154675, 1.4142135623730951, -1.4142135623730951]),
            st.floats(-8, 8),
            st.floats(-700, 700),
        )
    )
    kind = draw(st.sampled_from(["point", "float", "tiny", "ordinary", "huge"]))
    if kind == "point":
        return centre, centre
    if kind == "float":
        return centre, float(np.nextafter(centre, math.inf))
    size = 10.0 ** draw({"tiny": st.floats(-15, -4), "ordinary": st.floats(-3, 1), "huge": st.floats(1, 2.8)}[kind])
    share = draw(st.sampled_from([0.0, 1.0, 0.5, 0.25, 0.9]))
    lo, hi = max(centre - share * size, -700.0), min(centre + (1 - share) * size, 700.0)
    return min(lo, hi), max(lo, hi)


def hardest(activation, line, lo, hi):
    """Points of [lo, hi] where f - line (or its negative) is smallest: ends, kinks, and a zoom into three dips."""
    points = {lo, hi, *(e for e in activation.inflections() if lo <= e <= hi)}
    coarse = np.clip(np.linspace(lo, hi, 101), lo, hi)
    for sign in (1, -1):
        gap = sign * (activation.value(coarse) - line(coarse))
        padded = np.concatenate([[math.inf], gap, [math.inf]])
        dips = np.flatnonzero((gap <= padded[:-2]) & (gap <= padded[2:]))
        for dip in dips[np.argsort(gap[dips], kind="stable")[:3]]:
            z, best = coarse, dip
            for _ in range(4):
                z = np.clip(np.linspace(z[max(best - 1, 0)], z[min(best + 1, len(z) - 1)], 41), lo, hi)
                best = int(np.argmin(sign * (activation.value(z) - line(z))))
                points |= {float(z[best]), float(z[9])}
    return sorted(points)


def line_violation(activation, lo, hi, a, c, side):
    """How far a z + c, in exact arithmetic, is on the wrong side of f somewhere in [lo, hi]; <= 0 if nowhere."""
    a, c = float(a), float(c)
    points = hardest(activation, lambda z: a * z + c, lo, hi)
    return max(side * (mp.mpf(a) * mp.mpf(z) + mp.mpf(c) - true(activation.name, z)) for z in points)


@pytest.mark.parametrize("name", NAMES)
def test_value_is_within_its_error_and_the_error_is_small(name):
    f = by_name(name)
    rng = np.random.default_rng(1)
    z = np.concatenate(
        [
            rng.uniform(-8, 8, 150), rng.uniform(-700, 700, 100), 10.0 ** rng.uniform(-300, 0, 50),
            -(10.0 ** rng.uniform(-300, 0, 50)), [-745.2, -1e5, 1e5, 0.0, -0.0, -37.5, -38.6, -1.0], f.inflections(),
        ]
    )  # fmt: skip
    value, error = f.value(z), f.error(z)
    for at, v, e in zip(z, value, error, strict=True):
        truth = true(name, at)
        assert abs(mp.mpf(float(v)) - truth) <= mp.mpf(float(e)), at
        assert e <= 1e-14 * abs(v) + 1e-318
        assert name not in EXACT or e == 0


@pytest.mark.parametrize("name", SMOOTH)
def test_slope_is_within_its_error(name):
    f = by_name(name)
    rng = np.random.default_rng(2)
    z = np.concatenate([rng.uniform(-6, 6, 40), rng.uniform(-300, 300, 20)])
    for at, s, e in zip(z, f.slope(z), f.slope_error(z), strict=True):
        step = mp.mpf(10) ** -25
        truth = (TRUTH[name](mp.mpf(at) + step) - TRUTH[name](mp.mpf(at) - step)) / (2 * step)
        assert abs(mp.mpf(float(s)) - truth) <= mp.mpf(float(e)) + mp.mpf(10) ** -30, at
        assert e <= 1e-14 * (1 + abs(s))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30, deadline=None)
@given(case=intervals())
def test_interval_encloses_and_is_tight(name, case):
    f, (lo, hi) = by_name(name), case
    lower, upper = (float(x) for x in f.interval(lo, hi))
    points = hardest(f, lambda z: 0.0 * z, lo, hi)
    values = [true(name, z) for z in points]
    assert lower <= min(values)
    assert max(values) <= upper
    slack = mp.mpf(0) if name in EXACT else 1e-14 * max(map(abs, values)) + mp.mpf(10) ** -317
    assert min(values) - lower <= slack + (mp.mpf("1e-7") * (hi - lo) ** 2 if f.minimum else 0)
    assert upper - max(values) <= slack


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30, deadline=None)
@given(case=intervals(), shares=st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_slopes_enclose_every_difference_quotient(name, case, shares):
    f, (lo, hi) = by_name(name), case
    lower, upper = (float(x) for x in f.slopes(lo, hi))
    points = [lo, hi, *(min(max(lo + share * (hi - lo), lo), hi) for share in shares)]
    points += [e for e in f.inflections() if lo <= e <= hi]
    points += [min(max(float(np.nextafter(e, side)), lo), hi) for e in f.inflections() for side in (-9, 9)]
    for x in points:
        for y in points:
            if x < y:
                with mp.workdps(400):  # the difference of two values next to each other, or next to a plateau
                    quotient = (true(name, y) - true(name, x)) / (mp.mpf(y) - mp.mpf(x))
                    assert lower <= quotient <= upper, (x, y)
    assert -f.lipschitz <= lower <= upper <= f.lipschitz


@pytest.mark.parametrize("name", NAMES)
def test_slopes_are_attained(name):
    f = by_name(name)
    for lo, hi in [(-4.0, 5.0), (-2.0, -0.5), (0.25, 0.75), (-0.1, 0.0), (0.0, 0.1), (-3.0, 3.0), (0.0, 6.0)]:
        z = np.linspace(lo, hi, 20001)
        quotients = np.diff(f.value(z)) / np.diff(z)
        lower, upper = f.slopes(lo, hi)
        assert quotients.min() - lower < 1e-3
        assert upper - quotients.max() < 2e-3
        assert lower <= quotients.min() + 1e-9
        assert upper >= quotients.max() - 1e-9


def test_relu_slopes_are_the_contract():
    lower, upper = by_name("relu").slopes(np.array([-1.0, 0.0, -2.0, 0.0, 3.0]), np.array([2.0, 4.0, 0.0, 0.0, 3.0]))
    assert lower.tolist() == [0, 1, 0, 1, 1]
    assert upper.tolist() == [1, 1, 0, 1, 1]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=45, deadline=None)
@given(case=intervals())
def test_linear_bounds_hold(name, case):
    f, (lo, hi) = by_name(name), case
    a_lower, c_lower, a_upper, c_upper = f.linear_bounds(lo, hi)
    assert line_violation(f, lo, hi, a_lower, c_lower, 1) <= 0
    assert line_violation(f, lo, hi, a_upper, c_upper, -1) <= 0


@pytest.mark.parametrize("name", SMOOTH)
def test_linear_bounds_close_quadratically(name):
    f = by_name(name)
    for centre in (-3.1, -2.4, -1.0, -0.3, 0.31, 1.41421, 2.5):
        gap = []
        for width in (0.2, 0.1, 0.05):
            lo, hi = centre - width / 2, centre + width / 2
            a_lower, c_lower, a_upper, c_upper = f.linear_bounds(lo, hi)
            z = np.array([lo, centre, hi])
            gap.append(float(np.max(a_upper * z + c_upper - a_lower * z - c_lower)))
        assert gap[1] <= 0.3 * gap[0] + 1e-14
        assert gap[2] <= 0.3 * gap[1] + 1e-14


@pytest.mark.parametrize("name", NAMES)
def test_linear_bounds_touch_somewhere(name):
    """Neither line could move inward: no slack is hidden in the offsets, also on wide intervals and across pieces."""
    f = by_name(name)
    for lo, hi in [(-5.0, 5.0), (-9.0, 2.0), (-0.5, 7.0), (1.0, 2.0), (-2.0, -1.0), (-60.0, 30.0)]:
        a_lower, c_lower, a_upper, c_upper = f.linear_bounds(lo, hi)
        assert line_violation(f, lo, hi, a_lower, c_lower, 1) > -1e-9
        assert line_violation(f, lo, hi, a_upper, c_upper, -1) > -1e-9


def test_linear_bounds_of_relu_are_crown_and_exact_when_stable():
    f = by_name("relu")
    a_lower, c_lower, a_upper, c_upper = f.linear_bounds(
        np.array([-1.0, -3.0, 1.0, -2.0]), np.array([3.0, 1.0, 2.0, 0.0])
    )
    assert a_lower.tolist() == [1, 0, 1, 0]
    assert c_lower.tolist() == [0, 0, 0, 0]
    assert a_upper.tolist() == [0.75, 0.25, 1, 0]
    assert c_upper == pytest.approx([0.75, 0.75, 0, 0], abs=1e-15)
    assert c_upper[2:].tolist() == [0, 0]


def test_linear_bounds_of_sigmoid_beat_the_parallel_pair():
    """On [-5, 5] the tangent through the far end leaves .63 at the middle, a line parallel to the chord .68."""
    _, c_lower, _, c_upper = by_name("sigmoid").linear_bounds(-5.0, 5.0)
    assert c_upper < 0.64
    assert c_lower > 0.36


@pytest.mark.parametrize("name", NAMES)
def test_shapes_broadcast_and_scalars_work(name):
    f = by_name(name)
    lo, hi = np.full((2, 3), -1.5), np.linspace(-1.5, 2.0, 6).reshape(2, 3)
    for out in (*f.interval(lo, hi), *f.slopes(lo, hi), *f.linear_bounds(lo, hi)):
        assert out.shape == (2, 3)
    for many, one in zip(f.linear_bounds(lo, hi), f.linear_bounds(-1.5, hi[1, 1]), strict=True):
        assert one.shape == ()
        assert many[1, 1] == one


def test_a_line_moved_inward_is_flagged():
    """The planted fault: the checker of this file must see 1e-9, on the chord side and on the tangent side."""
    for name in NAMES:
        f = by_name(name)
        for lo, hi in [(-2.0, 1.5), (0.3, 0.9), (-1.1, -0.2), (-0.7, 5.0)]:
            a_lower, c_lower, a_upper, c_upper = f.linear_bounds(lo, hi)
            assert line_violation(f, lo, hi, a_lower, c_lower, 1) <= 0
            assert line_violation(f, lo, hi, a_lower, c_lower + 1e-9, 1) > 0, (name, lo, hi)
            assert line_violation(f, lo, hi, a_upper, c_upper - 1e-9, -1) > 0, (name, lo, hi)


def test_a_tangent_with_the_wrong_sign_is_flagged():
    a_lower, c_lower, _, _ = by_name("sigmoid").linear_bounds(-4.0, -1.0)
    assert line_violation(by_name("sigmoid"), -4.0, -1.0, -a_lower, c_lower, 1) > 0


def test_pieces_cover_the_line_and_have_their_shape():
    for name in NAMES:
        f = by_name(name)
        assert f.pieces[0].low == -math.inf
        assert f.pieces[-1].high == math.inf
        for left, right in zip(f.pieces, f.pieces[1:], strict=False):
            assert left.high == right.low
        for piece in f.pieces:
            z = np.linspace(max(piece.low, -6.0), min(piece.high, 9.0), 301)
            bend = np.diff(f.value(z), 2)
            assert piece.shape != "linear" or np.abs(bend).max() < 1e-14
            assert piece.shape != "convex" or (bend > -1e-14).all()
            assert piece.shape != "concave" or (bend < 1e-14).all()
            assert piece.shape == "linear" or np.abs(bend).max() > 1e-7


def test_lipschitz_is_sound_and_sharp():
    for name in NAMES:
        f = by_name(name)
        z = np.linspace(-40, 40, 200_001)
        steepest = np.abs(f.slope(z)).max()
        assert steepest - 1e-15 <= f.lipschitz <= steepest + 1e-3
    step = mp.mpf(10) ** -20
    for name, turn in (("gelu", mp.sqrt(2)), ("silu", mp.findroot(lambda z: z * mp.tanh(z / 2) - 2, 2.4))):
        at_turn = (TRUTH[name](turn + step) - TRUTH[name](turn - step)) / (2 * step)
        assert at_turn < by_name(name).lipschitz < at_turn + 1e-15


def test_unknown_names_and_reversed_bounds_are_refused():
    with pytest.raises(ModelError, match="'swish9'") as caught:
        by_name("swish9")
    assert all(name in str(caught.value) for name in NAMES)
    for lo, hi in [(1.0, 0.0), (math.nan, 1.0), (0.0, math.inf)]:
        with pytest.raises(SoundnessError):
            by_name("relu").interval(lo, hi)
    assert repr(by_name("relu")) == "Activation('relu')"
