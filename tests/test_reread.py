"""Reread: a root knows what a reader of its proof derives from its lemmas; no pair at the threshold is cut off."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from test_confine import SHARE, near

import likewise_checker as checker
from likewise.search import search
from likewise.search.branch import begin
from likewise.search.primal import Primal
from likewise.search.root import Root
from likewise.search.run import Run

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
from instances import instance

CLOSE = (
    1e-4  # of its width, by which an interval of a reader may be another one (without rereading, a hundredth or more)
)


def narrowed(name: str, gap: float = 1e-5) -> Root:
    """Return the root of a question, narrowed under the cut."""
    asked = instance(name)
    at = begin(asked, Run(asked, seconds=60.0, gap=gap))
    at.narrow(1 / 2)
    at.claim()
    return at


@pytest.mark.parametrize("name", ["mild/german_16x16|mahalanobis|0.2", "paper/crime_16x16x16|mahalanobis|0.1"])
def test_a_root_knows_what_a_reader_derives(name, tmp_path, monkeypatch):
    at = narrowed(name)
    path, read = at.run.certificate("branch", "highs").save(tmp_path / "a.cert"), []
    settle = checker.Part.settle

    def kept(part: checker.Part) -> None:
        settle(part)
        read[:] = [part.triple(layer.z)[:, 0].copy() for layer in part.question.layers]

    monkeypatch.setattr(checker.Part, "settle", kept)
    assert checker.check(path)["ok"]
    for z, b in zip(read, at.bounds.layers, strict=True):
        room = CLOSE * (b.dz.upper - b.dz.lower) + 1e-12
        assert (np.abs(z[0, 2] - b.dz.lower) <= room).all()
        assert (np.abs(z[1, 2] - b.dz.upper) <= room).all()


def test_pairs_at_the_threshold_are_within(monkeypatch):
    name = "mild/german_16x16|mahalanobis|0.2"
    asked = instance(name)
    best = search(asked, engine="branch", solver="highs", seconds=20, gap=1e-4, threads=1)
    monkeypatch.setattr(Primal, "look", lambda *_: None)
    monkeypatch.setattr(Root, "dive", lambda *_: None)
    at = narrowed(name, best.lower * SHARE / 0.9)
    left, right = near(asked, best.witness, 200_000, 1)
    reached = asked.network(left) - asked.network(right) >= at.question().t
    assert reached.sum() > 1000
    entering = [asked.network.preactivations(people[reached]) for people in (left, right)]
    for one, other, b in zip(*entering, at.bounds.layers, strict=True):
        assert (one - other <= b.dz.upper + 1e-12).all()
        assert (one - other >= b.dz.lower - 1e-12).all()


@pytest.mark.parametrize(("name", "is_first"), [("mild/crime_8|linf|0.05", True), ("mild/german_16|linf|0.2", False)])
def test_what_is_nearly_closed_is_narrowed_before_differences_are_joined(name, is_first, monkeypatch):
    told, narrow = [], Root.narrow
    monkeypatch.setattr(Root, "narrow", lambda *given, **more: told.append("narrow") or narrow(*given, **more))
    monkeypatch.setattr("likewise.search.join.join", lambda root: told.append("join") or False)
    found = search(instance(name), engine="branch", solver="highs", seconds=20.0, gap=1e-5, threads=1)
    assert found.gap <= 1e-5 * (1 + 1e-9)
    assert (told[0] == "narrow") == is_first
