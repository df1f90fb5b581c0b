"""Bowls: quadratic functions of a smooth neuron's dz and dv that no pair exceeds, and what they show together."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tamper import Opened

import likewise_checker
from likewise import Continuous, Domain, Layer, Mahalanobis, Network, OneHot, Problem, WeightedLp
from likewise.activations import NAMES, by_name
from likewise.bounds import TwinBounds, reach, twin_bounds
from likewise.bounds.bowl import NUMBERS, bowls
from likewise.bounds.joint import Forms, Joint
from likewise.bounds.newton import look
from likewise.search import fast, search
from likewise.search.inner import inner_problem

SMOOTH = [name for name in NAMES if by_name(name).bends is not None]
seeds = st.integers(0, 10_000)


def smooth(name: str, seed: int, widths: tuple[int, ...] = (5,), is_round: bool = True) -> Problem:
    """Return a question about a random smooth network of five numbers and a category."""
    rng = np.random.default_rng([7, seed])
    domain = Domain([*(Continuous(f"x{k}", -1.0, 1.0) for k in range(5)), OneHot("g", ["a", "b", "c"])])
    layers, before = [], domain.width
    for width in widths:
        layers.append(Layer(rng.normal(0, 3 / np.sqrt(before), (width, before)), rng.normal(size=width), name))
        before = width
    layers.append(Layer(rng.normal(0, 2 / np.sqrt(before), (1, before)), np.zeros(1), "identity"))
    matrix = np.diag(rng.uniform(0.5, 2.0, domain.width)) if rng.random() < 0.7 else np.eye(domain.width)
    metric = Mahalanobis(matrix) if is_round else WeightedLp(np.ones(domain.width))
    return Problem(Network(layers), domain, domain, metric, 0.6)


def bounded(problem: Problem) -> tuple[Problem, TwinBounds]:
    inner = inner_problem(problem)[0]
    return inner, twin_bounds(inner, reach(inner, 5.0))


def joined(problem: Problem, bounds: TwinBounds, seed: int) -> tuple[Forms, Joint]:
    """Return what squares show of a random function of all differences."""
    rng, layers = np.random.default_rng([8, seed]), problem.network.layers
    both = tuple(rng.normal(size=len(layer.bias)) for layer in layers[:-1])
    turn = tuple(0.3 * rng.normal(size=len(layer.bias)) for layer in layers[:-1])
    forms = Forms(problem, bounds, both[-1])
    joint = forms.joint(rng.normal(size=problem.right.width), both, turn, time.monotonic() + 20)
    assert joint is not None
    return forms, joint


def largest_found(problem: Problem, joint: Joint, seed: int, count: int = 40_000) -> float:
    """Return the largest value of a joint's function over random similar people, most of them at the ball's border."""
    rng, domain = np.random.default_rng([9, seed]), problem.right
    right, d = domain.sample(count, rng), np.zeros((count, domain.width))
    free = domain.continuous
    d[:, free] = rng.normal(size=(count, len(free)))
    sizes = np.linalg.norm(d @ problem.metric.matrix.T, problem.metric.p, axis=1)
    d *= (problem.eps * rng.choice([1.0, 1.0, 0.3], count) / sizes)[:, None]
    fits = ((right + d >= domain.lower) & (right + d <= domain.upper)).all(axis=1)
    left, right, d = (right + d)[fits], right[fits], d[fits]
    assert len(d) > 500
    total = d @ joint.nu
    for layer, both, turn in zip(problem.network.layers, joint.both, joint.turn, strict=False):
        left, right, dz = left @ layer.weight.T + layer.bias, right @ layer.weight.T + layer.bias, 0 * total[:, None]
        dz, left, right = left - right, layer.activate(left), layer.activate(right)
        total = total + (left - right) @ both - dz @ turn
    return float(total.max())


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("widths", [(5,), (4, 4)])
@settings(max_examples=4, deadline=None)
@given(seed=seeds, is_round=st.booleans())
def test_no_pair_exceeds_what_bowls_show(name: str, widths: tuple[int, ...], seed: int, is_round: bool) -> None:
    problem, bounds = bounded(smooth(name, seed, widths, is_round))
    joint = joined(problem, bounds, seed)[1]
    found = largest_found(problem, joint, seed)
    assert found <= joint.upper
    assert joint.upper < 6 * abs(found) + 1.0  # it says something


@pytest.mark.parametrize("name", SMOOTH)
def test_tops_are_above_a_sample_and_hardly_higher(name: str) -> None:
    problem, bounds = bounded(smooth(name, 3, (5, 4)))
    rng = np.random.default_rng(4)
    for one in bowls(problem.network, bounds.layers):
        numbers = rng.normal(size=(NUMBERS, len(one.unit)))
        sized = numbers / one.unit ** np.array([2, 2, 2, 1, 1])[:, None]
        tops, sample = one.tops(sized), one.sample((161, 41))
        values = -np.einsum("jkc,cj->jk", sample[:, :, :NUMBERS], numbers).max(axis=1)
        highest = (-np.einsum("jkc,cj->jk", sample[:, :, :NUMBERS], numbers)).max(axis=1)
        assert (values <= highest).all()
        assert (tops >= highest).all()
        assert (tops <= highest + 0.02 * np.abs(numbers).sum(axis=0)).all()


def test_newtons_step_goes_down_the_slope_of_what_it_minimises() -> None:
    problem, bounds = bounded(smooth("tanh", 5, (4, 3)))
    rng = np.random.default_rng(6)
    both = tuple(rng.normal(size=len(layer.bias)) for layer in problem.network.layers[:-1])
    nothing = tuple(0 * one for one in both)
    forms = Forms(problem, bounds, both[-1])
    g = forms.objective(np.zeros(problem.right.width), both, nothing)
    at = forms._first(1.0)
    assert at is not None
    here = look(forms, g, at)
    assert here is not None
    step, gain = here.step(0.5, forms)
    assert gain > 0
    assert not step[forms.is_fixed].any()
    share = 1e-7
    there, back = (look(forms, g, at + sign * share * step) for sign in (1, -1))
    assert there is not None
    assert back is not None
    slope = (there.value(0.5, forms) - back.value(0.5, forms)) / (2 * share)
    assert slope == pytest.approx(-gain, rel=1e-3)


def test_bowls_beat_the_squares_of_slopes_where_differences_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, bounds = bounded(smooth("sigmoid", 1, (5,), is_round=False))
    last, nothing, deadline = problem.network.layers[-1].weight[0], np.zeros(5), time.monotonic() + 20
    uppers = []
    for _ in range(2):
        joint = Forms(problem, bounds, last).joint(np.zeros(problem.right.width), (last,), (nothing,), deadline)
        assert joint is not None
        uppers.append(joint.upper)
        monkeypatch.setattr("likewise.bounds.joint.bowls", lambda *_: [])
    assert uppers[0] < 0.97 * uppers[1]


@pytest.mark.parametrize(("name", "is_round"), [("sigmoid", True), ("tanh", False), ("gelu", True)])
def test_the_checker_derives_the_same_tops(name: str, is_round: bool, tmp_path: Path, monkeypatch) -> None:
    """An open certificate whose bound rests on bowls is verified, and one that claims a little less is refused."""
    monkeypatch.setattr(fast.Fast, "close", lambda self: None)
    cert = search(smooth(name, 2, (5, 4), is_round), engine="branch", solver="highs", seconds=4.0, gap=1e-6, threads=1)
    it = Opened.of(cert.save(tmp_path / "a.cert"))
    assert any(tag == b"J" for tag, _, _ in it.records("proof/0.bin"))
    found = likewise_checker.check(tmp_path / "a.cert")
    assert found["code"] == 0, found
    it.manifest["upper"] = (found["upper"] + found["lower"]) / 2
    assert likewise_checker.check(it.save(tmp_path / "lower.cert"))["code"] == 10


def test_a_proof_of_an_earlier_version_has_no_bowls(tmp_path: Path, monkeypatch) -> None:
    """Its records end before them: what is there is not read as something else."""
    monkeypatch.setattr(fast.Fast, "close", lambda self: None)
    cert = search(smooth("tanh", 2), engine="branch", solver="highs", seconds=5.0, gap=1e-6, threads=1)
    it = Opened.of(cert.save(tmp_path / "a.cert"))
    assert likewise_checker.check(tmp_path / "a.cert")["code"] == 0
    it.manifest["version"] = 7
    assert likewise_checker.check(it.save(tmp_path / "older.cert"))["code"] in (2, 10)
