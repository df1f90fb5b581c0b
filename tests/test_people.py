"""Real people: bounds for each, in order and in parallel the same, people outside told, Ctrl-C keeps what is done."""

from __future__ import annotations

import csv
import json
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import likewise as lw
from likewise import _people
from likewise.cli import main

DOMAIN = lw.Domain([lw.Continuous("age", 0.0, 1.0), lw.OneHot("job", ["a", "b"])])
METRIC = lw.WeightedLp([1.0, 0.0, 0.0])
PEOPLE = [[0.5, 1.0, 0.0], [0.1, 0.0, 1.0], [1.5, 0.0, 1.0], [0.9, 1.0, 0.0]]
CSV = "age,income,job,target\n30,0.2,baker,yes\n50,0.9,artist,no\n200,0.1,baker,no\n40,0.5,artist,yes\n"


def network() -> lw.Network:
    rng = np.random.default_rng(2)
    hidden = lw.Layer(rng.normal(size=(4, 3)), rng.normal(size=4), "relu")
    return lw.Network([hidden, lw.Layer(rng.normal(size=(1, 4)), np.zeros(1), "sigmoid")])


def test_each_person_is_a_question_of_its_own() -> None:
    heard: list[lw.PersonBounds] = []
    found = lw.certify_people(network(), DOMAIN, METRIC, PEOPLE, 0.1, 0.2, threads=1, progress=heard.append)
    assert [one.row for one in found] == [0, 1, 2, 3]
    assert found == heard
    assert (found[2].verdict, found[2].witness, found[2].upper) == ("outside", None, math.inf)
    assert "age" in found[2].reason
    assert _people.tally(found)["outside"] == 1
    for one in (found[0], found[1], found[3]):
        alone = lw.certify(network(), DOMAIN, METRIC, 0.1, left=PEOPLE[one.row], threads=1)
        assert one.lower <= alone.upper
        assert alone.lower <= one.upper
        assert one.verdict == ("fair" if one.upper <= 0.2 else "unfair" if one.lower > 0.2 else "undecided")
        assert one.witness is not None
        assert one.witness.left.tolist() == PEOPLE[one.row]
        assert "\n" not in repr(one)


def test_processes_give_the_same_and_end() -> None:
    before = os.environ.get("OPENBLAS_NUM_THREADS")
    alone = lw.certify_people(network(), DOMAIN, METRIC, PEOPLE, 0.1, threads=1)
    found = lw.certify_people(network(), DOMAIN, METRIC, PEOPLE, 0.1, threads=2)
    assert [(one.row, one.verdict) for one in found] == [(one.row, one.verdict) for one in alone]
    for one, other in zip(found, alone, strict=True):
        assert one.lower <= other.upper
        assert other.lower <= one.upper
    assert not multiprocessing.active_children()
    assert os.environ.get("OPENBLAS_NUM_THREADS") == before


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_keeps_those_who_are_done(threads: int) -> None:
    many = [[age, 1.0, 0.0] for age in np.linspace(0.0, 1.0, 50).tolist()]

    def stop(_: lw.PersonBounds) -> None:
        raise KeyboardInterrupt

    found = lw.certify_people(network(), DOMAIN, METRIC, many, 0.1, threads=threads, progress=stop)
    assert len(found) == 1
    # Not active_children(): where two threads wait for one process, the slower never hears that it has ended.
    pids = [process.pid for process in multiprocessing.active_children()]
    deadline = time.monotonic() + 30.0
    while not all(ended(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert all(ended(pid) for pid in pids)


def ended(pid: int | None) -> bool:
    """Tell whether a process has ended, waited for or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_a_person_cut_short_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    real = _people.certify

    def certify(*given: Any, **options: Any) -> lw.Certificate:
        def interrupt(_: object) -> None:
            raise KeyboardInterrupt

        return real(*given, **(options | ({"progress": interrupt} if options["left"][0] == 0.1 else {})))

    monkeypatch.setattr(_people, "certify", certify)
    found = lw.certify_people(network(), DOMAIN, METRIC, PEOPLE, 0.1, threads=1)
    assert [one.row for one in found] == [0]


def test_a_script_without_a_guard_is_told_what_to_do(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import likewise as lw\n"
        "network = lw.Network([lw.Layer([[1.0]], [0.0], 'sigmoid')])\n"
        "domain = lw.Domain([lw.Continuous('age', 0.0, 1.0)])\n"
        "lw.certify_people(network, domain, lw.WeightedLp([1.0]), [[0.1], [0.2]], 0.1, threads=2)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    # The last line is Python's own now and then, on what its processes have left behind.
    assert "call certify_people under `if __name__ == '__main__':`, or with threads=1" in done.stderr.splitlines()


@pytest.mark.parametrize(
    ("change", "culprit"),
    [
        ({"people": [[0.5, 1.0]]}, "3 columns"),
        ({"people": []}, "people"),
        ({"people": [["x", 1.0, 0.0]]}, "people"),
        ({"eps": -1.0}, "eps"),
        ({"delta": math.nan}, "delta"),
        ({"threads": 0}, "threads"),
        ({"seconds": 0.0}, "seconds"),
        ({"solver": "abacus"}, "abacus"),
        ({"engine": "steam"}, "steam"),
        ({"output": 3}, "output 3"),
    ],
)
def test_bad_calls_are_refused(change: dict[str, Any], culprit: str) -> None:
    given: dict[str, Any] = {"people": PEOPLE, "eps": 0.1, "threads": 1} | change
    with pytest.raises(lw.InputError, match=culprit):
        lw.certify_people(network(), DOMAIN, METRIC, **given)


# --- on the command line -----------------------------------------------------------------------------------------


def certify(*options: str) -> list[str]:
    return ["certify", "model.npz", "schema.toml", "--eps", "0.1", "--people", "people.csv", *options]


def test_shares_rows_and_exit_codes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "people.csv").write_text(CSV)
    assert main(certify("--threads", "2", "--json", "-o", "out.csv")) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["people"], answer["inside"], answer["outside"], answer["verdict"]) == (4, 3, 1, None)
    assert answer["share_fair"] is None
    assert 0 < answer["lower"] <= answer["upper"] <= answer["lower"] + 1e-4
    with open("out.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["person"] for row in rows] == ["line 2", "line 3", "line 4", "line 5"]
    assert rows[2]["verdict"] == "outside"
    assert "age" in rows[2]["reason"]
    inside = [row for row in rows if row["lower"]]
    worst = max(inside, key=lambda row: float(row["lower"]))
    assert (worst["person"], float(worst["lower"])) == (answer["worst"], answer["lower"])
    assert "against" in worst["differs"]
    lowers = sorted(float(row["lower"]) for row in inside)
    middle = repr((lowers[0] + lowers[-1]) / 2)
    for delta, code, verdict in ((repr(answer["upper"]), 0, "fair"), (middle, 10, "unfair")):
        assert main(certify("--threads", "1", "--json", "--delta", delta)) == code
        assert json.loads(capsys.readouterr().out)["verdict"] == verdict
    assert main(certify("--threads", "1", "--delta", middle)) == 10
    seen = capsys.readouterr()
    assert "of 3 people are certified" in seen.out
    assert "not counted: 1, such as line 4" in seen.out
    assert "4 of 4 people" in seen.err
    assert "nobody has" in seen.out


def test_people_of_an_embedded_data_set(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = lw.datasets.load("german")
    few = lw.datasets.Dataset(
        data.name, data.title, data.source, data.X_train, data.y_train, data.X_test[:3], data.y_test[:3],
        data.domain, data.sensitive, data.outside,
    )  # fmt: skip
    monkeypatch.setattr(lw.datasets, "load", lambda name: few)
    lw.write_npz(lw.datasets.demo_network(), "german.npz")
    command = ["certify", "german.npz", "german", "--eps", "0.05", "--people", "german", "--delta", "1"]
    assert main([*command, "--seconds", "2", "--threads", "1", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["people"], answer["share_fair"]) == (3, 1.0)


def test_ctrl_c_saves_finished_rows(folder: Path) -> None:
    lines = [f"{18 + i % 60},{i % 100 / 100},baker" for i in range(3000)]
    (folder / "people.csv").write_text("\n".join(["age,income,job", *lines]) + "\n")
    command = [
        sys.executable,
        "-m",
        "likewise",
        *certify("--threads", "2", "--delta", "0.9", "--json", "-o", "out.csv"),
    ]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
    )
    assert process.stderr is not None
    assert "of 3000 people" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    assert process.returncode == 20
    answer = json.loads(out)
    assert 1 <= answer["done"] < answer["people"] == 3000
    assert answer["verdict"] == "undecided"
    assert f"interrupted: {answer['done']} of 3000" in err
    with open("out.csv", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == answer["done"]
