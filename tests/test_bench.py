"""The benchmark runner: one atomic file per finished cell, resumable, keyed by what can change the answer."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
import bench  # noqa: E402
import soundness  # noqa: E402
import store  # noqa: E402
import table  # noqa: E402
from grids import GRIDS  # noqa: E402
from instances import Known  # noqa: E402

KEPT = {"commit", "command", "machine", "date", "lower", "upper", "seconds", "trace", "nodes", "trusted", "notes"}
SETTINGS = store.Settings("milp", "highs", 20.0, 1e-5, 1)


@pytest.fixture
def tiny(monkeypatch):
    """A grid of two quick cells in place of `smoke`."""
    names = ["paper/adult_8|linf|0.05", "paper/german_8|mahalanobis|0.2"]
    monkeypatch.setitem(GRIDS, "smoke", replace(GRIDS["smoke"], names=lambda: names))
    return names


def test_resume_and_table(tiny, tmp_path, capsys, monkeypatch):
    words = ["smoke", "--seconds", "10", "--results", str(tmp_path)]
    assert bench.main([*words, "--check"]) == 0
    files = sorted(tmp_path.iterdir())
    assert len(files) == len(tiny)
    assert "[1/2] paper/adult_8|linf|0.05 auto: [" in capsys.readouterr().err
    for file in files:
        result = json.loads(file.read_text())
        assert {
            "commit",
            "command",
            "machine",
            "date",
            "lower",
            "upper",
            "seconds",
            "trace",
            "nodes",
            "trusted",
            "notes",
        } <= set(result)
        assert result["lower"] <= result["upper"]
        assert {"cpu", "cores", "memory_gib", "python", "solver"} <= set(result["machine"])
        assert result["check"]["word"] == "verified"
    monkeypatch.setattr(bench, "run_cell", lambda *_: pytest.fail("a finished cell was run again"))
    assert bench.main(words) == 0
    assert "2 finished before" in capsys.readouterr().err
    page = tmp_path / "page.md"
    assert table.main([*words, "-o", str(page)]) == 0
    text = page.read_text()
    assert "2 of 2 cells" in text
    assert "2 closed cells, 2 verified" in text
    assert "- commit: `" in text
    assert "python benchmarks/bench.py smoke" in text


def test_interrupted_cells_leave_nothing(tiny, tmp_path, monkeypatch, capsys):
    def stop(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(bench, "search", stop)
    assert bench.main(["smoke", "--results", str(tmp_path)]) == 130
    assert list(tmp_path.iterdir()) == []
    assert "goes on from here" in capsys.readouterr().err


def test_jobs_in_subprocesses(tmp_path):
    assert bench.main(["smoke", "--seconds", "3", "--jobs", "2", "--results", str(tmp_path)]) == 0
    assert len(list(tmp_path.glob("*.json"))) == 4


def test_key_sees_what_matters(tmp_path):
    keys = {store.key("q", SETTINGS, "c"), store.key("p", SETTINGS, "c"), store.key("q", SETTINGS, "d")}
    for changed in ({"engine": "paper"}, {"solver": "scip"}, {"seconds": 9.0}, {"gap": 1e-3}, {"threads": 2}):
        keys.add(store.key("q", replace(SETTINGS, **changed), "c"))
    assert len(keys) == 8


def test_code_digest_sees_what_can_change_an_answer(tmp_path):
    for room in ("cli", "report", "search"):
        (tmp_path / room).mkdir()
    files = {name: tmp_path / name for name in ("cli/certify.py", "report/html.py", "search/milp.py", "network.py")}
    for file in files.values():
        file.write_text("x = 1\n")
    before = store.code_digest(tmp_path)
    files["cli/certify.py"].write_text("x = 2\n")
    files["report/html.py"].write_text("x = 2\n")
    (tmp_path / "notes.md").write_text("words")
    assert store.code_digest(tmp_path) == before
    files["search/milp.py"].write_text("x = 2\n")
    assert store.code_digest(tmp_path) != before


def test_nothing_is_half_written(tmp_path):
    with pytest.raises(ValueError, match="JSON compliant"):
        store.write_json(tmp_path / "a.json", {"upper": float("inf")})
    assert list(tmp_path.iterdir()) == []


def result(name: str, engine: str, seconds: float, upper: float = 0.500005, limit: float = 180.0) -> dict:
    where = {"cpu": "c", "cores": 2, "memory_gib": 8, "python": "3", "solver": "highs 1"}
    return {
        "name": name,
        "engine": engine,
        "lower": 0.5,
        "upper": upper,
        "seconds": seconds,
        "limit": limit,
        "wanted_gap": 1e-5,
        "nodes": 1,
        "trace": [[0.1, 0.0, None], [seconds / 2, 0.5, 0.9], [seconds, 0.5, upper]],
        "commit": "c",
        "command": "x",
        "machine": where,
        "date": "d",
    }


def test_versus_sums_the_cells_of_a_network():
    cells = [
        result("mild/adult_8|box|0.05", "auto", 1.0),
        result("mild/adult_8|box|0.05", "milp", 2.0),
        result("mild/adult_8|box|0.05", "paper", 20.0, upper=0.50009),
        result("mild/adult_8|box|0.2", "auto", 3.0),
        result("mild/adult_8|box|0.2", "milp", 6.0),
        result("mild/adult_8|box|0.2", "paper", 140.0, upper=0.9),
        result("mild/german_8|box|0.2", "auto", 2.0),
        result("mild/german_8|box|0.2", "paper", 30.0),
        result("mild/german_16|box|0.2", "auto", 180.0, upper=0.6),
        result("mild/german_16|box|0.2", "paper", 180.0, upper=0.6),
    ]
    text = table.versus(cells)
    assert "| mild/adult_8 | 2 | 4.00 | 8.00 | 200.00 | 1 of 2 | >= 50.0 | 40.0 |" in text
    assert "| mild/german_8 | 1 | 2.00 | nan | 30.00 | 0 of 1 | 15.0 | 15.0 |" in text
    assert "| mild/german_16 | 1 | 180.00 | nan | 180.00 | 1 of 1 | >= 1.0 (auto left some open) | 1.0 |" in text
    assert "Median ratio, adult: 50.0." in text
    assert "Median ratio over all: 15.0." in text


def test_known_shows_contradictions():
    fact = Known(0.6, 0.7, "both")
    clash = result("a/b_c|linf|1", "milp", 1.0)
    assert table.contradicts(clash, fact)
    assert "| a/b_c linf 1 | 0.500000 | 0.500005 | 0.600000 |" in table.against_known([clash], {"a/b_c|linf|1": fact})
    fine = Known(0.5, 0.500009, "both")
    assert "No contradiction" in table.against_known([clash], {"a/b_c|linf|1": fine})
    assert table.contradicts(clash, Known(0.4, 0.49, "milp"))


def test_soundness_resumes_and_covers(tmp_path, capsys, monkeypatch):
    words = ["--count", "3", "--seed0", "40", "--seconds", "3", "--results", str(tmp_path)]
    assert soundness.main(words) == 0
    assert "3 problems, 9 runs: 0 refuted" in capsys.readouterr().out
    monkeypatch.setattr(soundness, "run_case", lambda *_: pytest.fail("a finished problem was run again"))
    assert soundness.main(words) == 0
    assert "3 problems, 9 runs: 0 refuted" in capsys.readouterr().out


def test_soundness_reports_a_refuted_claim():
    run = {"engine": "milp", "solver": "highs", "lower": 0.1, "upper": 0.2, "wrong": ["a pair"], "refused": None}
    other = {"engine": "paper", "solver": "cbc", "lower": 0.3, "upper": 0.4, "wrong": [], "refused": None}
    told = {
        "case": "c",
        "activation": "relu",
        "metric": "l1",
        "runs": [run | {"closed": False}, other | {"closed": True}],
    }
    assert len(soundness.faults(told)) == 2
    assert "REFUTED: c: milp highs: a pair" in soundness.summary([told])
