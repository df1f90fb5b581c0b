"""A fast slice of the fixed networks against what earlier programs found; `bench.py known` runs all of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from likewise.search import fast, milp, root, search
from likewise.search.primal import Primal

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
from instances import METRICS, MODELS, WIDTHS, instance, known

SLICE = (
    "paper/adult_8|mahalanobis|0.2",
    "paper/adult_64|linf|0.05",
    "paper/credit_16|mahalanobis|0.2",
    "mild/german_8|linf|0.2",
    "mild/adult_16|mahalanobis|0.05",
    "mild/crime_8|mahalanobis|0.2",
)
SECONDS = 5.0


@pytest.mark.parametrize("name", SLICE)
def test_no_contradiction_with_what_is_known(name):
    fact = known()[name]
    problem = instance(name)
    cert = search(problem, engine="milp", solver="highs", seconds=SECONDS, gap=1e-5)
    assert cert.upper >= fact.lower - 1e-9  # the file has nine digits
    assert cert.lower <= fact.upper_float + 1e-9
    assert problem.admits(cert.witness.left, cert.witness.right)


# A network with neurons that hardly move. A badly scaled model of it once made a solver "prove" less than a pair has
# that only a second run found. (Which box it is depends on the eigenvectors that a machine's libraries choose.)
DELICATE = "mild/adult_24|box|0.05"


def test_no_bound_below_a_pair_that_the_search_is_not_shown(monkeypatch):
    gap = search(instance(DELICATE), engine="branch", solver="highs", seconds=8.0, gap=1e-5).lower
    assert gap > 0.8
    monkeypatch.setattr(Primal, "look", lambda *_: None)
    for module in (fast, milp, root):
        monkeypatch.setattr(module, "repaired", lambda *_: None)
    cert = search(instance(DELICATE), engine="milp", solver="highs", seconds=8.0, gap=1e-5, delta=gap - 0.005)
    assert cert.upper >= gap


def test_the_folder_is_complete():
    assert len(known()) == 185
    assert len([*MODELS.glob("paper/*.npz"), *MODELS.glob("mild/*.npz")]) == 80
    assert len(list(MODELS.glob("smooth/*.npz"))) == 18
    for recipe in ("paper", "mild"):
        for data in ("adult", "credit", "crime", "german"):
            assert {f.stem for f in (MODELS / recipe).glob(f"{data}_*.npz")} == {f"{data}_{w}" for w in WIDTHS}


@pytest.mark.parametrize("data", ["adult", "credit", "crime", "german"])
def test_every_metric_fits_its_networks(data, capsys):
    problems = [instance(f"mild/{data}_8|{metric}|0.2") for metric in METRICS]
    assert len({p.digest for p in problems}) == len(METRICS)
    assert {p.network.layers[0].activations[0] for p in problems} == {"relu"}
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["nonsense", "paper/adult_8|linf", "paper/adult_9|linf|0.1", "paper/adult_8|l7|0.1"])
def test_a_name_that_does_not_exist(name):
    with pytest.raises(ValueError, match=r"not of the form|no network|unknown metric"):
        instance(name)
