"""Cleaving: halves of what dz can be, each with a joint of its own, and a proof that rests on them."""

from __future__ import annotations

import numpy as np
import pytest
from tamper import Opened

import likewise_checker
from likewise import Certificate, Continuous, Domain, Layer, Network, Problem, WeightedLp
from likewise.search import cleave, fast, search
from likewise.search.root import Root


def problem(name: str, seed: int) -> Problem:
    """Return a question in which many z are free, and what counts is which way differences go."""
    rng, width, height = np.random.default_rng([11, seed]), 14, 6
    domain = Domain([Continuous(f"x{k}", -1.0, 1.0) for k in range(width)])
    first = Layer(rng.normal(0, 2.0 / np.sqrt(width), (height, width)), 0.3 * rng.normal(size=height), name)
    last = Layer(rng.normal(0, 1.0, (1, height)), np.zeros(1), "identity")
    return Problem(Network([first, last]), domain, domain, WeightedLp(np.ones(width)), 0.3)


def certified(monkeypatch: pytest.MonkeyPatch, asked: Problem, seconds: float = 8.0, gap: float = 1e-2) -> Certificate:
    """Certify by the root and by cleaving alone."""
    monkeypatch.setattr(fast.Fast, "close", lambda self: None)
    monkeypatch.setattr(Root, "narrow", lambda *_: None)
    return search(asked, engine="branch", solver="highs", seconds=seconds, gap=gap, threads=1)


@pytest.mark.parametrize(("name", "seed"), [("tanh", 0), ("sigmoid", 1)])
def test_halves_close_what_the_whole_leaves_open(name, seed, tmp_path, monkeypatch):
    asked = problem(name, seed)
    with monkeypatch.context() as patch:
        patch.setattr("likewise.search.branch.cleave", lambda root: None)
        whole = certified(patch, asked)
    halved = certified(monkeypatch, asked)
    assert halved.upper < whole.upper - 0.3 * whole.gap
    found = likewise_checker.check(halved.save(tmp_path / "a.cert"))
    assert found["code"] == 0, found
    it = Opened.of(tmp_path / "a.cert")
    tags = [tag for tag, _, _ in it.records("proof/0.bin")]
    assert tags.count(b"Z") > 0
    assert tags.count(b"J") > tags.count(b"Z")  # one for each half
    it.manifest["upper"] = halved.lower
    assert likewise_checker.check(it.save(tmp_path / "lower.cert"))["code"] == 10


def left_after_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have cleaving end after two halvings."""
    monkeypatch.setattr(cleave, "_seems_long", lambda *_: True)
    monkeypatch.setattr(cleave, "TRIED", 2)


def test_what_halves_have_shown_is_kept_where_they_are_left(tmp_path, monkeypatch):
    left_after_two(monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr("likewise.search.branch.cleave", lambda root: None)
        whole = certified(patch, problem("tanh", 0), gap=1e-6)
    cert = certified(monkeypatch, problem("tanh", 0), gap=1e-6)
    assert cert.upper < whole.upper
    assert likewise_checker.check(cert.save(tmp_path / "a.cert"))["code"] == 0
    assert [tag for tag, _, _ in Opened.of(tmp_path / "a.cert").records("proof/0.bin")].count(b"Z") == 2


@pytest.mark.parametrize("is_ahead", [True, False])
def test_a_tree_takes_over_once_it_shows_as_much(is_ahead, tmp_path, monkeypatch):
    left_after_two(monkeypatch)
    monkeypatch.setattr(Root, "narrow", lambda *_: None)
    if is_ahead:  # of halves that have shown nothing
        monkeypatch.setattr("likewise.search.branch.cleave", lambda root: root.log.kept())
    kept, write = [], fast.Fast.write

    def written(tree, log):
        kept.append(tree.earlier is not None)
        write(tree, log)

    monkeypatch.setattr(fast.Fast, "write", written)
    monkeypatch.setattr(fast.Fast, "climb", lambda tree: setattr(tree.run, "deadline", 0.0))  # after one slice
    cert = search(problem("tanh", 2), engine="branch", solver="highs", seconds=60.0, gap=1e-3, threads=1)
    assert likewise_checker.check(cert.save(tmp_path / "a.cert"))["code"] == 0
    assert kept == [not is_ahead]


def test_halving_ends_where_it_is_not_about_differences_any_more(monkeypatch):
    halved, honest = [], cleave._halves
    monkeypatch.setattr(cleave, "_halves", lambda *given: halved.append(given) or honest(*given))
    monkeypatch.setattr(cleave, "SPENT", 1e9)
    certified(monkeypatch, problem("tanh", 0), gap=1e-6)
    assert not halved


@pytest.mark.parametrize("seconds", [0.4, 0.8, 1.6, 3.2])
def test_whenever_time_is_up_the_proof_shows_what_is_claimed(seconds, tmp_path, monkeypatch):
    cert = certified(monkeypatch, problem("tanh", 3), seconds=seconds, gap=1e-6)
    assert likewise_checker.check(cert.save(tmp_path / "a.cert"))["code"] == 0


def test_an_interruption_leaves_a_proof_of_what_is_claimed(tmp_path, monkeypatch):
    halved = []

    def interrupted(*given):
        halved.append(given)
        if len(halved) > 3:
            raise KeyboardInterrupt
        return honest(*given)

    honest = cleave._halves
    monkeypatch.setattr(cleave, "_halves", interrupted)
    cert = certified(monkeypatch, problem("tanh", 0), gap=1e-6)
    assert "interrupted" in cert.notes
    assert cert.upper < cert.trace[0][2]
    assert len({upper for _, _, upper in cert.trace}) > 3  # claimed as it came
    assert likewise_checker.check(cert.save(tmp_path / "a.cert"))["code"] == 0


def test_a_delta_within_a_closed_gap_is_left_to_the_tree(tmp_path, monkeypatch):
    """Halves show no less than the threshold; what they do not decide is left to a tree."""
    asked = problem("tanh", 0)
    closed = certified(monkeypatch, asked)
    delta = closed.lower + 0.1 * closed.gap
    cert = search(asked, engine="branch", solver="highs", seconds=8.0, gap=1e-2, threads=1, delta=delta)
    assert likewise_checker.check(cert.save(tmp_path / "a.cert"))["code"] == 0
