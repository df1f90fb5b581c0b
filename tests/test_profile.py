"""A profile: one true certificate per eps, both bounds growing with it, in the caller's order and one time limit."""

from __future__ import annotations

import csv
import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import likewise as lw
from likewise import _api
from likewise.cli import main
from likewise.search import News

DOMAIN = lw.Domain([lw.Continuous("age", 0.0, 1.0), lw.Integer("children", 0.0, 4.0), lw.OneHot("job", ["a", "b"])])
METRIC = lw.WeightedLp([1.0, 0.05, 0.0, 0.0])
EPS = [0.1, 0.3, 0.1, 0.0]


def network(seed: int = 0) -> lw.Network:
    rng = np.random.default_rng(seed)
    hidden = lw.Layer(rng.normal(size=(5, 4)), rng.normal(size=5), "relu")
    return lw.Network([hidden, lw.Layer(rng.normal(size=(1, 5)), np.zeros(1), "sigmoid")])


def check(found: list[lw.Certificate], eps: list[float]) -> None:
    assert [one.eps for one in found] == eps
    ordered = sorted(found, key=lambda one: one.eps)
    for small, large in pairwise(ordered):
        assert small.lower <= large.lower
        assert small.upper <= large.upper
    for one in found:
        problem, pair = one.problem, one.witness
        assert problem.admits(pair.left, pair.right)
        assert max(problem.gap_lower(pair.left, pair.right), problem.gap_lower(pair.right, pair.left), 0.0) >= one.lower
        assert pair.distance <= one.eps
        bounds = [(lower, upper) for _, lower, upper in one.trace]
        assert bounds[-1] == (one.lower, one.upper)
        assert [lower for lower, _ in bounds] == sorted(lower for lower, _ in bounds)
        assert [upper for _, upper in bounds] == sorted((upper for _, upper in bounds), reverse=True)


@pytest.mark.parametrize("left", [None, "person", "group"])
def test_it_agrees_with_single_questions(left: str | None) -> None:
    who: Any = {
        None: None, "person": DOMAIN.encode({"age": 0.5, "children": 2, "job": "a"}), "group": DOMAIN.where(job="b"),
    }[left]  # fmt: skip
    found = lw.profile(network(), DOMAIN, METRIC, EPS, seconds=60, threads=1, left=who)
    check(found, EPS)
    for one in found:
        alone = lw.certify(network(), DOMAIN, METRIC, one.eps, threads=1, left=who)
        assert one.gap <= 1.0001e-5
        assert one.lower <= alone.upper
        assert alone.lower <= one.upper
        assert one.problem.digest == alone.problem.digest


def test_bounds_grow_even_if_there_is_no_time() -> None:
    rng = np.random.default_rng(1)
    hidden = lw.Layer(rng.normal(size=(40, 4)), rng.normal(size=40), "tanh")
    wide = lw.Network([hidden, lw.Layer(rng.normal(size=(1, 40)), [0.0], "tanh")])
    found = lw.profile(wide, DOMAIN, METRIC, EPS, seconds=0.05, threads=1)
    check(found, EPS)


def test_certificates_stand_alone(tmp_path: Path) -> None:
    for one in lw.profile(network(), DOMAIN, METRIC, [0.2, 0.1], threads=1, scale="logit"):
        again = lw.read(one.save(tmp_path / "c.cert"))
        assert again.summary() == one.summary()
        assert again.unit == "logit"


def made(eps: float, lower: float, upper: float, trusted: tuple[str, ...] = (), seconds: float = 1.0) -> lw.Certificate:
    problem = lw.Problem(network(), DOMAIN, DOMAIN, METRIC, eps)
    person = DOMAIN.person()
    witness = lw.Witness(person, person, eps, 0.0, 0.0, DOMAIN)
    return lw.Certificate(problem, lower, upper, witness, "milp", "highs", seconds, trusted=trusted)


def test_pairs_are_carried_up_and_bounds_down_with_what_they_trust() -> None:
    first, second, third = _api._monotone([made(0.1, 0.4, 0.9), made(0.2, 0.2, 0.6, ("highs",)), made(0.3, 0.3, 0.7)])
    assert [(one.lower, one.upper) for one in (first, second, third)] == [(0.4, 0.6), (0.4, 0.6), (0.4, 0.7)]
    assert [one.trusted for one in (first, second, third)] == [("highs",), ("highs",), ()]
    assert [one.witness.left_score for one in (first, second, third)] == [0.1, 0.1, 0.1]
    assert first.notes == ("the upper bound was proven for eps = 0.2",)
    assert second.notes == ("the pair was found for eps = 0.1",)
    assert third.notes == ("the pair was found for eps = 0.1",)


def test_a_contradiction_stops_the_run() -> None:
    with pytest.raises(lw.SoundnessError):
        _api._monotone([made(0.1, 0.4, 0.9), made(0.2, 0.1, 0.3)])


def test_time_that_is_left_goes_to_those_that_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[float, float, float]] = []

    def search(problem: lw.Problem, **options: Any) -> lw.Certificate:
        asked.append((problem.eps, options["ceiling"], options["seconds"]))
        second = len(asked) > 2
        return made(problem.eps, 0.1 if second else 0.0, 0.2 if second or problem.eps == 0.2 else 1.0, seconds=0.001)

    monkeypatch.setattr(_api, "search", search)
    small, large = lw.profile(network(), DOMAIN, METRIC, [0.1, 0.2], seconds=50)
    assert [(eps, ceiling) for eps, ceiling, _ in asked] == [(0.1, math.inf), (0.2, math.inf), (0.1, 0.2), (0.2, 0.2)]
    assert all(20 < seconds <= 50 for _, _, seconds in asked)
    assert (small.lower, small.upper, large.upper) == (0.1, 0.2, 0.2)
    assert small.seconds == pytest.approx(0.002)
    assert (small.notes, large.notes) == (("the upper bound was proven for eps = 0.2",), ())


def test_ctrl_c_leaves_a_true_certificate_for_every_eps() -> None:
    def stop(news: News) -> None:
        if news.lower > 0.0:
            raise KeyboardInterrupt

    found = lw.profile(network(), DOMAIN, METRIC, [0.3, 0.1, 0.2], threads=1, progress=stop)
    check(found, [0.3, 0.1, 0.2])
    assert all("interrupted" in one.notes for one in found)
    assert all(one.lower > 0.0 for one in found)


@pytest.mark.parametrize("eps", [[], "0.1", 0.1, [0.1, math.nan], [0.1, -1.0], [0.1, "x"], [None]])
def test_what_is_no_list_of_eps_is_refused(eps: Any) -> None:
    with pytest.raises(lw.InputError, match="eps"):
        lw.profile(network(), DOMAIN, METRIC, eps)


# --- on the command line -----------------------------------------------------------------------------------------

PROFILE = ["profile", "model.npz", "schema.toml", "--eps", "0.1,0.02,0.05", "--threads", "1"]


def test_json_on_stdout_and_the_table_on_stderr(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*PROFILE, "--json"]) == 0
    seen = capsys.readouterr()
    answer = json.loads(seen.out)
    assert [one["eps"] for one in answer["profile"]] == [0.1, 0.02, 0.05]
    assert all(one["verdict"] is None and one["unit"] == "score" for one in answer["profile"])
    assert "nobody has" in answer["notes"][0]
    assert "lower       upper" in seen.err
    largest = answer["profile"][0]["upper"]
    assert main([*PROFILE, "--delta", repr(1.5 * largest), "-o", "p.csv"]) == 0
    assert capsys.readouterr().out.count("fair") == 3
    with open("p.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["verdict"] for row in rows] == ["fair"] * 3
    assert [float(row["eps"]) for row in rows] == [0.1, 0.02, 0.05]


def test_one_unfair_eps_is_unfair(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*PROFILE, "--json"]) == 0
    bounds = {one["eps"]: one for one in json.loads(capsys.readouterr().out)["profile"]}
    middle = (bounds[0.02]["upper"] + bounds[0.1]["lower"]) / 2
    assert main([*PROFILE, "--delta", repr(middle), "-o", "p.html", "--left", "person.csv"]) in (0, 10, 20)
    assert main([*PROFILE, "--delta", repr(middle), "-o", "p.html"]) == 10
    page = (folder / "p.html").read_text()
    assert page.count("eps = 0.02") >= 1
    assert "Overview" in page
