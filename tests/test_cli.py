"""The command line as an interface: one JSON object, exit codes, files, Ctrl-C, and stdout for the result alone."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import likewise as lw
from likewise.cli import main
from likewise.cli._inputs import read_person
from likewise.load import read_schema, write_npz

CERTIFY = ["certify", "model.npz", "schema.toml", "--eps", "0.1", "--threads", "1"]
KEYS = {"lower", "upper", "gap", "seconds", "engine", "solver", "verdict", "eps", "witness"}
PAIR = {"left", "right", "left_score", "right_score", "distance"}


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "likewise", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)  # type: ignore[call-overload,no-any-return]


def write_hard_model(path: Path) -> None:
    """A random network for the german domain that no engine closes within seconds."""
    rng = np.random.default_rng(3)
    sizes = [(48, 57), (48, 48), (48, 48), (1, 48)]
    layers = [lw.Layer(rng.normal(size=s) / s[1] ** 0.5 * 1.6, rng.normal(size=s[0]) * 0.3, "relu") for s in sizes[:-1]]
    last = lw.Layer(rng.normal(size=sizes[-1]) * 0.5, np.zeros(1), "sigmoid")
    write_npz(lw.Network([*layers, last]), path)


def test_json_is_one_object_with_the_contracted_keys(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*CERTIFY, "--json"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    answer = json.loads(out)
    assert answer.keys() >= KEYS
    assert answer["witness"].keys() >= PAIR
    assert answer["verdict"] is None
    assert answer["eps"] == 0.1
    assert answer["engine"] == "branch"
    assert answer["solver"] == "highs"
    assert 0 <= answer["lower"] <= answer["upper"] <= answer["lower"] + 1.0001e-5
    network, schema = lw.load("model.npz"), read_schema("schema.toml")
    left, right = (np.array(answer["witness"][side]) for side in ("left", "right"))
    assert schema.domain.contains(left)
    assert schema.domain.contains(right)
    assert schema.metric.distance(left, right) <= 0.1
    scores = network(np.stack([left, right]))
    assert abs(scores[0] - scores[1]) == pytest.approx(answer["lower"], abs=1e-12)


def test_exit_codes_and_verdicts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*CERTIFY, "--json"]) == 0
    known = json.loads(capsys.readouterr().out)
    for delta, code, verdict in ((known["upper"] * 1.5, 0, "fair"), (known["lower"] / 2, 10, "unfair")):
        assert main([*CERTIFY, "--delta", repr(delta), "--json"]) == code
        assert json.loads(capsys.readouterr().out)["verdict"] == verdict
        assert main([*CERTIFY, "--delta", repr(delta)]) == code
        assert capsys.readouterr().out.startswith(verdict.upper())


def test_undecided_exits_with_20_and_saves(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_hard_model(folder / "hard.npz")
    command = ["certify", "hard.npz", "german", "--eps", "0.2", "--seconds", "1.5", "--json", "-o", "hard.cert"]
    assert main([*command, "--metric", "linf"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["gap"] > 0.05
    middle = repr((first["lower"] + first["upper"]) / 2)
    (folder / "hard.cert").unlink()
    assert main([*command, "--metric", "linf", "--delta", middle]) == 20
    assert json.loads(capsys.readouterr().out)["verdict"] == "undecided"
    assert lw.read("hard.cert").verdict(float(middle)) == "undecided"


def test_the_saved_certificate_is_what_was_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "out.cert").write_text("an older file")
    assert main([*CERTIFY, "--json", "-o", "out.cert", "--report", "out.html"]) == 0
    answer = json.loads(capsys.readouterr().out)
    saved = lw.read("out.cert").summary()
    assert {key: answer[key] for key in saved} == saved
    assert "<html" in (folder / "out.html").read_text()
    assert sorted(p.name for p in folder.iterdir()) == [
        "model.npz", "out.cert", "out.html", "person.csv", "schema.toml",
    ]  # fmt: skip


def test_stdout_is_the_result_and_stderr_the_progress(folder: Path) -> None:
    done = run(*CERTIFY, "-o", "out.cert")
    assert done.returncode == 0
    assert re.search(
        r"^lower [0-9.]+   upper [0-9.]+   gap [0-9.]+   [0-9,]+ nodes   \d+ s, \d+ s left$", done.stderr, re.M
    )
    assert "saved out.cert" in done.stderr
    assert "nodes   " not in done.stdout
    assert "The largest gap between similar people" in done.stdout


@pytest.mark.parametrize("engine", ["auto", "branch", "milp", "paper"])
def test_every_engine(engine: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*CERTIFY, "--engine", engine, "--json", "--gap", "0.01"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["engine"] == ("branch" if engine == "auto" else engine)
    assert answer["gap"] <= 0.02


@pytest.mark.parametrize("solver", ["highs", "scip", "gurobi", "cbc"])
def test_no_solver_writes_to_stdout(solver: str, folder: Path) -> None:
    done = run(*CERTIFY, "--solver", solver, "--json")
    if solver == "gurobi" and done.returncode == 2 and "licen" in done.stderr:
        pytest.skip(f"no Gurobi licence: {done.stderr}")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["solver"] == solver
    assert done.stdout.count("\n") == 1


def test_one_person_is_fixed_by_left(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*CERTIFY, "--json"]) == 0
    everyone = json.loads(capsys.readouterr().out)
    assert main([*CERTIFY, "--left", "person.csv", "--json"]) == 0
    one = json.loads(capsys.readouterr().out)
    assert one["witness"]["left"] == [0.5, 0.25, 0.0, 1.0]
    assert one["lower"] <= everyone["upper"]
    assert read_person("person.csv", read_schema("schema.toml").domain).tolist() == [0.5, 0.25, 0.0, 1.0]


def test_scale_metric_and_output(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*CERTIFY, "--json"]) == 0
    score = json.loads(capsys.readouterr().out)
    assert main([*CERTIFY, "--scale", "logit", "--output", "0", "--metric", "linf", "--json"]) == 0
    logit = json.loads(capsys.readouterr().out)
    assert logit["lower"] > score["lower"]  # the slope of a sigmoid is at most a quarter


def test_units_and_notes_are_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*CERTIFY, "--json"]) == 0
    score = json.loads(capsys.readouterr().out)
    assert (score["unit"], score["scale"], score["output"]) == ("score", "score", 0)
    assert "combinations of features that nobody has" in score["notes"][-1]
    assert "likewise schema DATA.csv --suggest" in score["notes"][-1]
    rng = np.random.default_rng(8)
    many = lw.Network([lw.Layer(rng.normal(size=(3, 4)), np.zeros(3), "identity")])
    write_npz(many, folder / "many.npz")
    command = ["certify", "many.npz", *CERTIFY[2:], "--output", "2"]
    assert main([*command, "--json"]) == 0
    own = json.loads(capsys.readouterr().out)
    assert (own["unit"], own["output"]) == ("output", 2)
    assert own["upper"] == pytest.approx(0.1 * np.abs(many.layers[0].weight[2, :2]).sum(), abs=1e-4)
    assert main(command) == 0
    assert "Gaps are in output 2, the units of the network's own output." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("where", "age", "jobs"),
    [
        (["age=25:40", "job=baker"], (25, 40), {1}),
        (["age=:30"], (18, 30), {0, 1}),
        (["age=30:", "job=baker,artist"], (30, 78), {0, 1}),
        (["age=48"], (48, 48), {0, 1}),
    ],
)
def test_a_group_is_given_by_where(
    where: list[str], age: tuple[float, float], jobs: set[int], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*CERTIFY, "--json"]) == 0
    everyone = json.loads(capsys.readouterr().out)
    assert main([*CERTIFY, "--json", *(part for limit in where for part in ("--where", limit))]) == 0
    group = json.loads(capsys.readouterr().out)
    assert group["lower"] <= everyone["upper"]
    left = group["witness"]["left"]
    assert age[0] - 1e-9 <= 18 + 60 * left[0] <= age[1] + 1e-9
    assert int(np.argmax(left[2:])) in jobs


def test_metrics_of_data_sets_and_norms(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from likewise.cli._inputs import schema_of

    data = lw.datasets.load("german")
    for name in ("mahalanobis", "embedding", "linf"):
        assert schema_of("german", name).metric.digest == data.metric(name).digest
    assert schema_of("german", "l1.5").metric.digest == lw.WeightedLp(np.ones(57), 1.5).digest
    assert schema_of("schema.toml", "l2").metric.digest == lw.WeightedLp(np.ones(4), 2).digest
    assert schema_of("schema.toml", "lp").metric.digest == read_schema("schema.toml").metric.digest


def test_a_schema_is_inferred(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{20 + i % 40},{'widow' if i % 40 > 20 else 'single'},{'mf'[i % 2]},{rng.integers(2)}" for i in range(400)]
    (folder / "data.csv").write_text("\n".join(["age,state,sex,y", *rows]) + "\n")
    command = ["schema", "data.csv", "--sensitive", "sex", "--target", "y", "-o"]
    assert main([*command, "new.toml"]) == 0
    seen = capsys.readouterr()
    assert "sensitive columns sex: dropped" in seen.out
    assert "nobody with state = widow and age below 41" in seen.out
    assert "wrote new.toml" in seen.err
    plain = read_schema("new.toml").domain
    assert [feature.name for feature in plain.features] == ["age", "state"]
    assert not len(plain.constraints[1])
    assert main([*command, "rules.toml", "--suggest", "--keep"]) == 0
    ruled = read_schema("rules.toml").domain
    assert [feature.name for feature in ruled.features] == ["age", "state", "sex"]
    assert len(ruled.constraints[1])
    with pytest.raises(lw.DomainError, match="constraint"):
        ruled.encode({"age": 0.0, "state": "widow", "sex": "f"})


@pytest.mark.parametrize("wait", [0.0, 2.5])
def test_ctrl_c_saves_and_exits_by_the_verdict(wait: float, folder: Path) -> None:
    write_hard_model(folder / "hard.npz")
    command = [sys.executable, "-m", "likewise", "certify", "hard.npz", "german", "--eps", "0.2", "--metric", "linf"]
    command += ["--seconds", "100", "--delta", "0.99", "--gap", "1e-9", "--json", "-o", "hard.cert"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
    )
    assert process.stderr is not None
    assert process.stderr.readline().startswith("lower")  # the search has begun
    time.sleep(wait)
    asked = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - asked < 15
    assert "Traceback" not in err
    answer = json.loads(out)
    saved = lw.read("hard.cert")
    assert (saved.lower, saved.upper) == (answer["lower"], answer["upper"])
    assert saved.verdict(0.99) == answer["verdict"]
    assert process.returncode == {"fair": 0, "unfair": 10, "undecided": 20}[answer["verdict"]]
    assert saved.notes == ("interrupted",)
    assert saved.seconds < 60


def test_a_reader_who_goes_away_changes_nothing(folder: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "likewise", *CERTIFY, "--delta", "0.0", "-o", "out.cert"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=120)
    os.close(writer)
    assert done.returncode == 10
    assert "Error" not in done.stderr
    assert lw.read("out.cert").lower > 0


def test_a_crash_is_a_traceback(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def defect(*_: object, **__: object) -> None:
        raise lw.SoundnessError("two facts contradict each other")

    monkeypatch.setattr("likewise.cli.certify.certify", defect)
    with pytest.raises(lw.SoundnessError):
        main(CERTIFY)


def test_demo_from_end_to_end(folder: Path) -> None:
    done = run("demo", "--seconds", "6", "-o", "page.html")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("UNFAIR: ")
    assert "years against" in done.stdout
    assert "The report is in page.html" in done.stdout
    page = (folder / "page.html").read_text()
    age = re.search(r"age: (\S+ years) against (\S+ years)", done.stdout)
    assert age is not None
    assert age.group(1) in page
    assert age.group(2) in page


def test_demo_exits_with_0_whatever_the_verdict(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--seconds", "1", "--delta", "0.9"]) == 0
    assert capsys.readouterr().out.startswith("FAIR: ")
    assert (folder / "report.html").exists()


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, expected in (
        (["--version"], f"likewise {lw.__version__}\n"),
        (["--help"], r"demo +certify.*\n +certify +bound(.|\n)*example: likewise "),
        (["certify", "--help"], r"--eps E +\S+(.|\n)*example: likewise certify "),
        (["--help"], r"demo +(.|\n)*certify +(.|\n)*profile +(.|\n)*schema +"),
        (["demo", "--help"], r"example: likewise demo "),
        (["profile", "--help"], r"--eps E1,E2(.|\n)*example: likewise profile "),
        (["schema", "--help"], r"--suggest(.|\n)*example: likewise schema "),
    ):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 0
        assert re.search(expected, capsys.readouterr().out)


def test_progress_in_a_terminal_is_one_moving_line(folder: Path) -> None:
    pty = pytest.importorskip("pty")
    controller, terminal = pty.openpty()
    command = [sys.executable, "-m", "likewise", *CERTIFY, "--json"]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=terminal, text=True, timeout=120,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
    )  # fmt: skip
    os.close(terminal)
    shown = os.read(controller, 1 << 16).decode()
    os.close(controller)
    assert done.returncode == 0
    assert json.loads(done.stdout)["gap"] < 1e-4
    assert "s left" in shown
