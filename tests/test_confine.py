"""Confine: no pair at the threshold is cut off, deep networks close by it, and a wrong bound is noticed."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tamper import Opened

import likewise as lw
import likewise_checker as checker
from likewise.search import confine, join, root, search
from likewise.search.branch import begin
from likewise.search.primal import Primal
from likewise.search.run import Run

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
from instances import instance

SHARE = 0.98  # of the largest gap, where the threshold is put


def problem(metric: str) -> lw.Problem:
    """Return a question about a trained network: of random ones, squares leave too much."""
    return instance(f"mild/german_16x16|{metric}|0.05")


def held(asked: lw.Problem, gap: float, monkeypatch: pytest.MonkeyPatch) -> tuple[root.Root, list[np.ndarray]]:
    """Return a root whose differences were confined, for a threshold of .9 gaps, and the widths that they had."""
    monkeypatch.setattr(Primal, "look", lambda *_: None)
    run = Run(asked, seconds=30.0, gap=gap)
    at = begin(asked, run)
    assert join.join(at)
    before = [b.dz.upper - b.dz.lower for b in at.bounds.layers]
    join.hold(at)
    return at, before


def near(asked: lw.Problem, witness: lw.Witness, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs around one, some of them next to it, some far away; categories are the same."""
    rng, columns = np.random.default_rng(seed), asked.right.continuous
    size = 10.0 ** rng.uniform(-4, 0, size=(2, count, 1)) * [[[1.0]], [[asked.eps]]]
    middle, d = (np.tile(one, (count, 1)) for one in ((witness.left + witness.right) / 2, witness.left - witness.right))
    for k, one in enumerate((middle, d)):
        one[:, columns] += size[k] * rng.normal(size=(count, len(columns)))
    d *= np.minimum(1.0, asked.eps * (1 - 1e-9) / asked.metric.distances(d, 0 * d))[:, None]
    middle = np.clip(middle, asked.right.lower + np.abs(d) / 2, asked.right.upper - np.abs(d) / 2)
    return middle + d / 2, middle - d / 2


@pytest.mark.parametrize("metric", ["mahalanobis", "linf"])
def test_pairs_at_the_threshold_are_within(metric, monkeypatch):
    asked = problem(metric)
    best = search(asked, engine="branch", solver="highs", seconds=20, gap=1e-4, threads=1)
    at, before = held(asked, best.lower * SHARE / 0.9, monkeypatch)
    left, right = near(asked, best.witness, 200_000, 1)
    gaps = asked.network(left) - asked.network(right)
    reached = gaps >= at.question().t
    assert reached.sum() > 1000
    entering = [asked.network.preactivations(people[reached]) for people in (left, right)]
    narrower = []
    for one, other, b, width in zip(*entering, at.bounds.layers, before, strict=True):
        assert (one - other <= b.dz.upper + 1e-12).all()
        assert (one - other >= b.dz.lower - 1e-12).all()
        narrower.append((b.dz.upper - b.dz.lower).sum() / width.sum())
    assert min(narrower) < 0.95


def test_what_is_confined_is_verified(monkeypatch, tmp_path):
    asked = problem("mahalanobis")
    best = search(asked, engine="branch", solver="highs", seconds=20, gap=1e-4, threads=1)
    at, _ = held(asked, best.lower * SHARE / 0.9, monkeypatch)
    at.claim()
    path = at.run.certificate("branch", "highs").save(tmp_path / "a.cert")
    it = Opened.of(path)
    slots = [it.proofs["proof/0.bin"][start + 1] for tag, start, _ in it.records("proof/0.bin") if tag == b"J"]
    assert slots.count(confine.SCRATCH) > 1
    assert checker.check(path)["code"] == 0


def test_a_bound_that_is_too_low_is_noticed(monkeypatch, tmp_path):
    asked, real = problem("mahalanobis"), confine._confined
    true = search(asked, engine="branch", solver="highs", seconds=20, gap=1e-4, threads=1)

    def wrong(*given):
        found = real(*given)
        return None if found is None else replace(found, bound=found.bound - 0.02)

    monkeypatch.setattr(confine, "_confined", wrong)
    at, _ = held(asked, true.lower * SHARE / 0.9, monkeypatch)
    cert = at.run.certificate("branch", "highs")
    assert cert.upper < true.lower  # or the fault would be none
    found = checker.check(cert.save(tmp_path / "wrong.cert"))
    assert found["code"] == 10
    assert found["upper"] >= true.lower - 1e-9
