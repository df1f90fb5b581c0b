"""Reports on the wider question: any metric, units of the output, whole numbers, several eps."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
from test_report import certificate, page

from likewise.certificate import Certificate, Witness
from likewise.domain import Display, Domain, Integer, OneHot
from likewise.metric import Embedding, Mahalanobis, WeightedLp
from likewise.network import Layer, Network
from likewise.problem import Problem
from likewise.report import describe, pair_lines, profile_table
from likewise.report._charts import Axis, growth


def test_metrics_of_any_p_and_embeddings_are_named(tmp_path: Path) -> None:
    base = certificate()
    phi = Network([Layer(np.ones((2, 4)), np.zeros(2), "relu")])
    cases = {
        "p-norm with p = 1.5": WeightedLp(np.ones(4), p=1.5),
        "through Network(4 -> 2; relu": Embedding(phi, WeightedLp(np.ones(2), p=3)),
        "in raw units": replace(Mahalanobis(np.eye(4)), note="in raw units"),
    }
    for words, metric in cases.items():
        problem = Problem(base.problem.network, base.problem.left, base.problem.right, metric, 0.2)
        other = Certificate(problem, 0.1, 0.2, base.witness, "branch", "highs", 1.0)
        assert words in page(tmp_path, other).text


def test_units_are_told(tmp_path: Path) -> None:
    cases = {
        "scores from 0 to 1": certificate(),
        "logits, before the final sigmoid": certificate(final="identity", scale="logit"),
        "output 2, the units of the network's own output": certificate(final="identity", output=2),
    }
    for words, one in cases.items():
        assert words in page(tmp_path, one).text
        assert (f"Gaps are in {words}." in describe(one)) == (words != "scores from 0 to 1")
        assert words in profile_table([one])


def test_everyone_who_can_exist_is_explained(tmp_path: Path) -> None:
    for text in (describe(certificate()), page(tmp_path, certificate()).text):
        assert "combinations of features that nobody has" in text
        assert "likewise schema DATA.csv --suggest" in text


def test_whole_numbers_are_shown_whole() -> None:
    people = Domain([Integer("age", 0.0, 1.0, 1 / 56, Display(19.0, 56.0, "years")), OneHot("job", ["technician"])])
    left, right = people.encode({"age": 15 / 56, "job": "technician"}), people.encode({"age": 1.0, "job": "technician"})
    pair = Witness(left, right, 0.8, 0.1, 0.5, people)
    assert pair_lines(pair)[1:] == ["  age: 34 years against 75 years", "  alike: job technician"]
    assert "age: 34 years against 75 years" in pair.describe()


def test_several_eps_make_a_chart(tmp_path: Path) -> None:
    base = certificate()
    wider = replace(base, problem=replace(base.problem, eps=0.5), upper=0.9)
    for bounded in (wider, replace(wider, upper=math.inf)):
        parsed = page(tmp_path, bounded, base)
        assert [a.get("id") for a in parsed.tags("title")].count("growth") == 1
        assert "drawn, not proven" in parsed.text
    other = replace(wider, problem=replace(wider.problem, metric=Mahalanobis(np.eye(4))))
    for pair in ((base, base), (base, other)):
        assert "drawn, not proven" not in page(tmp_path, *pair).text
    chart = growth([(0.5, 0.4, 0.8), (0.1, 0.0, 0.2)], Axis(0.0, 1.0))
    assert chart is not None
    assert [(p.x, p.lower, p.upper) for p in chart.points] == [(20, 100, 80), (100, 60, 20)]


def test_a_profile_is_a_line_per_eps() -> None:
    lines = profile_table([certificate(), certificate(upper=math.inf)], 0.7).splitlines()
    assert lines[1].split() == ["0.2", "0.6428", "0.6431", "fair", "2.5"]
    assert lines[2].split() == ["0.2", "0.6428", "no", "bound", "undecided", "2.5"]
