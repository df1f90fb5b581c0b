"""Bad input: exit 2, at most three lines that name the culprit, no traceback, and nothing overwritten."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import SCHEMA

import likewise as lw
from likewise.cli import main

Capture = pytest.CaptureFixture[str]
BEFORE = b"a file that was there before"


def refused(capsys: Capture, *arguments: str) -> str:
    """Run `certify` with -o on a file that exists; return its message once everything that must hold holds."""
    Path("out.cert").write_bytes(BEFORE)
    before = sorted(Path().iterdir())
    try:
        code = main(["certify", *arguments, "-o", "out.cert"])
    except SystemExit as stop:  # argparse leaves this way
        code = stop.code if isinstance(stop.code, int) else 1
    seen = capsys.readouterr()
    assert code == 2, seen.err
    assert seen.out == ""
    assert seen.err.startswith("likewise: ")
    assert "Traceback" not in seen.err
    assert 1 <= len(seen.err.splitlines()) <= 3
    assert Path("out.cert").read_bytes() == BEFORE
    assert sorted(Path().iterdir()) == before  # no half-written file either
    return seen.err


def good(**changes: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays of a network that fits schema.toml, some of them replaced."""
    arrays = {"W0": np.ones((3, 4)), "b0": np.zeros(3), "W1": np.ones((1, 3)), "b1": np.zeros(1)}
    return arrays | {"activations": np.array(["relu", "sigmoid"])} | changes


MODELS: dict[str, tuple[dict[str, np.ndarray], str]] = {
    "nan weight": (good(W0=np.full((3, 4), np.nan)), "layer 0"),
    "inf weight": (good(W1=np.full((1, 3), np.inf)), "layer 1"),
    "nan bias": (good(b1=np.array([np.nan])), "layer 1"),
    "shapes do not chain": (good(W1=np.ones((1, 5))), "layer 1"),
    "bias too short": (good(b0=np.zeros(2)), "layer 0"),
    "weight is a vector": (good(W0=np.ones(4)), "layer 0"),
    "no neurons": (good(W0=np.ones((0, 4)), b0=np.zeros(0), W1=np.ones((1, 0))), "layer 0"),
    "wrong input width": (good(W0=np.ones((3, 9))), "9 columns"),
    "unknown activation": (good(activations=np.array(["swoosh", "sigmoid"])), "swoosh"),
    "too few activations": (good(activations=np.array(["relu"])), "activations"),
    "layer left out": ({k: v for k, v in good().items() if k != "b0"}, "b0"),
    "unknown key": (good(gamma=np.ones(3)), "gamma"),
    "complex weights": (good(W0=np.ones((3, 4), dtype=complex)), "W0"),
    "text weights": (good(W0=np.full((3, 4), "x")), "W0"),
    "no layers": ({"meta": np.zeros(1)}, "W0"),
}


@pytest.mark.parametrize("case", MODELS)
def test_model(case: str, folder: Path, capsys: Capture) -> None:
    arrays, culprit = MODELS[case]
    np.savez(folder / "bad.npz", **arrays)  # type: ignore[arg-type]
    message = refused(capsys, "bad.npz", "schema.toml", "--eps", "0.1")
    assert culprit in message
    assert "bad.npz" in message or "columns" in message


class Bomb:
    """Unpickling this creates a file."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, ...]]:
        return open, ("exploded", "w")


def pickled_npz() -> bytes:
    packed = io.BytesIO()
    np.savez(packed, **good(W0=np.array([Bomb()], dtype=object)))  # type: ignore[arg-type]
    return packed.getvalue()


def saved_npz() -> bytes:
    packed = io.BytesIO()
    np.savez(packed, **good())  # type: ignore[arg-type]
    return packed.getvalue()


def wrong_zip() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("W0.npy", b"not an array")
    return packed.getvalue()


FILES: dict[str, bytes] = {
    "empty": b"",
    "text": b"hello",
    "truncated": saved_npz()[:-200],
    "half": saved_npz()[: len(saved_npz()) // 2],
    "pickled array": pickled_npz(),
    "plain pickle": pickle.dumps(Bomb()),
    "zip of something else": wrong_zip(),
}


@pytest.mark.parametrize("case", FILES)
def test_model_file(case: str, folder: Path, capsys: Capture) -> None:
    (folder / "bad.npz").write_bytes(FILES[case])
    assert "bad.npz" in refused(capsys, "bad.npz", "schema.toml", "--eps", "0.1")
    assert not (folder / "exploded").exists()


@pytest.mark.parametrize(
    ("model", "culprit"),
    [("nowhere.npz", "nowhere.npz"), ("schema.toml", ".toml"), (".", "(no suffix)"), ("folder.npz", "folder.npz")],
)
def test_model_path(model: str, culprit: str, folder: Path, capsys: Capture) -> None:
    (folder / "folder.npz").mkdir()
    assert culprit in refused(capsys, model, "schema.toml", "--eps", "0.1")


def metric(text: str) -> str:
    return SCHEMA[: SCHEMA.index("[metric]")] + "[metric]\n" + text


ASYMMETRIC = "S = [[1.0, 0.5, 0, 0], [0, 1.0, 0, 0], [0, 0, 1.0, 0], [0, 0, 0, 1.0]]"
INDEFINITE = "S = [[1.0, 2.0, 0, 0], [2.0, 1.0, 0, 0], [0, 0, 1.0, 0], [0, 0, 0, 1.0]]"
NOT_FINITE = "S = [[nan, 0, 0, 0], [0, 1.0, 0, 0], [0, 0, 1.0, 0], [0, 0, 0, 1.0]]"
SCHEMAS: dict[str, tuple[str, str]] = {
    "empty": ("", "feature"),
    "not toml": ("[[[", "toml"),
    "no features": (metric("")[metric("").index("[metric]") :], "feature"),
    "unknown kind": (SCHEMA.replace("one_hot", "colour"), "colour"),
    "low above high": (SCHEMA.replace("high = 1.0", "high = -1.0"), "age"),
    "low is nan": (SCHEMA.replace("low = 0.0", "low = nan"), "age"),
    "high is inf": (SCHEMA.replace("high = 1.0", "high = inf"), "age"),
    "high is missing": (SCHEMA.replace("high = 1.0", "", 1), "high"),
    "no categories": (SCHEMA.replace('["artist", "baker"]', "[]"), "job"),
    "a category twice": (SCHEMA.replace("artist", "baker"), "job"),
    "a feature twice": (SCHEMA.replace('"income"', '"age"'), "age"),
    "a feature without a name": (SCHEMA.replace('name = "age"', ""), "name"),
    "unknown key": (SCHEMA.replace("unit =", "units ="), "units"),
    "no metric": (SCHEMA[: SCHEMA.index("[metric]")], "metric"),
    "unknown metric": (metric('kind = "vibes"'), "vibes"),
    "S not symmetric": (metric(f'kind = "mahalanobis"\n{ASYMMETRIC}'), "symmetric"),
    "S not positive": (metric(f'kind = "mahalanobis"\n{INDEFINITE}'), "eigenvalue"),
    "S not finite": (metric(f'kind = "mahalanobis"\n{NOT_FINITE}'), "finite"),
    "S too small": (metric('kind = "mahalanobis"\nS = [[1.0]]'), "columns"),
    "S not square": (metric('kind = "mahalanobis"\nS = [[1.0, 2.0]]'), "S"),
    "weights too few": (metric('kind = "lp"\nweights = [1.0, 2.0]'), "columns"),
    "weight negative": (metric('kind = "lp"\nweights = -1.0'), "weight"),
    "p of 0": (metric('kind = "lp"\nweights = 1.0\np = 0'), "p"),
    "metric file missing": (metric('kind = "mahalanobis"\nfile = "nowhere.npz"'), "nowhere.npz"),
    "metric file elsewhere": (metric('kind = "mahalanobis"\nfile = "../S.npz"'), "../S.npz"),
}


@pytest.mark.parametrize("case", SCHEMAS)
def test_schema(case: str, folder: Path, capsys: Capture) -> None:
    text, culprit = SCHEMAS[case]
    (folder / "bad.toml").write_text(text)
    message = refused(capsys, "model.npz", "bad.toml", "--eps", "0.1")
    assert culprit in message
    assert "bad.toml" in message or "nowhere.npz" in message


@pytest.mark.parametrize(("schema", "culprit"), [("nowhere.toml", "nowhere.toml"), ("adult9", "german"), (".", ".")])
def test_schema_path(schema: str, culprit: str, folder: Path, capsys: Capture) -> None:
    assert culprit in refused(capsys, "model.npz", schema, "--eps", "0.1")


OPTIONS: dict[str, tuple[list[str], str]] = {
    "eps missing": ([], "--eps"),
    "eps negative": (["--eps", "-0.1"], "eps"),
    "eps nan": (["--eps", "nan"], "eps"),
    "eps inf": (["--eps", "inf"], "eps"),
    "eps text": (["--eps", "small"], "--eps"),
    "delta negative": (["--eps", "0.1", "--delta", "-0.1"], "delta"),
    "delta nan": (["--eps", "0.1", "--delta", "nan"], "delta"),
    "delta inf": (["--eps", "0.1", "--delta", "inf"], "delta"),
    "seconds 0": (["--eps", "0.1", "--seconds", "0"], "seconds"),
    "seconds negative": (["--eps", "0.1", "--seconds", "-5"], "seconds"),
    "seconds nan": (["--eps", "0.1", "--seconds", "nan"], "seconds"),
    "seconds inf": (["--eps", "0.1", "--seconds", "inf"], "seconds"),
    "gap 0": (["--eps", "0.1", "--gap", "0"], "gap"),
    "gap negative": (["--eps", "0.1", "--gap", "-1"], "gap"),
    "gap nan": (["--eps", "0.1", "--gap", "nan"], "gap"),
    "threads 0": (["--eps", "0.1", "--threads", "0"], "threads"),
    "threads text": (["--eps", "0.1", "--threads", "many"], "--threads"),
    "output too high": (["--eps", "0.1", "--output", "1"], "output"),
    "output negative": (["--eps", "0.1", "--output", "-1"], "output"),
    "unknown solver": (["--eps", "0.1", "--solver", "abacus"], "abacus"),
    "unknown engine": (["--eps", "0.1", "--engine", "steam"], "steam"),
    "unknown scale": (["--eps", "0.1", "--scale", "metres"], "metres"),
    "unknown metric": (["--eps", "0.1", "--metric", "vibes"], "vibes"),
    "metric the schema lacks": (["--eps", "0.1", "--metric", "mahalanobis"], "mahalanobis"),
    "unknown option": (["--eps", "0.1", "--hurry"], "--hurry"),
    "report into a missing folder": (["--eps", "0.1", "--report", "nowhere/x.html"], "nowhere"),
    "report over the certificate": (["--eps", "0.1", "--report", "out.cert"], "out.cert"),
    "report over the schema": (["--eps", "0.1", "--report", "schema.toml"], "schema.toml"),
    "left missing": (["--eps", "0.1", "--left", "nowhere.csv"], "nowhere.csv"),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_option(case: str, folder: Path, capsys: Capture) -> None:
    options, culprit = OPTIONS[case]
    before = (folder / "schema.toml").read_bytes()
    assert culprit in refused(capsys, "model.npz", "schema.toml", *options)
    assert (folder / "schema.toml").read_bytes() == before


PEOPLE: dict[str, tuple[str, str]] = {
    "outside": ("job,age,income\nbaker,100,0.25\n", "age"),
    "nan": ("job,age,income\nbaker,nan,0.25\n", "age"),
    "no number": ("job,age,income\nbaker,old,0.25\n", "age"),
    "no such category": ("job,age,income\npilot,48,0.25\n", "pilot"),
    "a feature missing": ("job,age\nbaker,48\n", "income"),
    "a feature too many": ("job,age,income,height\nbaker,48,0.25,1\n", "height"),
    "a feature twice": ("job,age,age,income\nbaker,48,48,0.25\n", "age"),
    "two people": ("job,age,income\nbaker,48,0.25\nbaker,48,0.25\n", "one line"),
    "nobody": ("job,age,income\n", "not one row"),
    "short": ("job,age,income\nbaker,48\n", "line 2"),
    "empty": ("", "first line"),
    "a quote that never ends": ('job,age,income\n"baker,48,0.25\n', "line"),
    "other separators": ("job;age;income\nbaker;48;0.25\n", "commas"),
    "not text": ("\udcff\udcfe", "csv"),
}


@pytest.mark.parametrize("case", PEOPLE)
def test_left(case: str, folder: Path, capsys: Capture) -> None:
    text, culprit = PEOPLE[case]
    (folder / "bad.csv").write_bytes(text.encode(errors="surrogateescape"))
    message = refused(capsys, "model.npz", "schema.toml", "--eps", "0.1", "--left", "bad.csv")
    assert culprit in message
    assert "bad.csv" in message


@pytest.mark.parametrize(
    ("target", "culprit"),
    [
        ("nowhere/out.cert", "nowhere"),
        ("model.npz", "model.npz"),
        ("./model.npz", "model.npz"),
        ("link.npz", "link.npz"),
        ("schema.toml", "schema.toml"),
        ("person.csv", "person.csv"),
        ("subfolder", "subfolder"),
        ("model.npz/out.cert", "model.npz"),
    ],
)
def test_the_output_replaces_no_input(target: str, culprit: str, folder: Path, capsys: Capture) -> None:
    (folder / "subfolder").mkdir()
    (folder / "link.npz").symlink_to(folder / "model.npz")
    before = {p: p.read_bytes() for p in folder.iterdir() if p.is_file()}
    code = main(["certify", "model.npz", "schema.toml", "--eps", "0.1", "--left", "person.csv", "-o", target])
    message = capsys.readouterr().err
    assert code == 2
    assert message.startswith("likewise: -o ")
    assert culprit in message
    assert {p: p.read_bytes() for p in folder.iterdir() if p.is_file()} == before


@pytest.mark.parametrize(("solver", "library"), [("scip", "pyscipopt"), ("gurobi", "gurobipy"), ("cbc", "cbcbox")])
def test_missing_solver(
    solver: str, library: str, folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    assert f"likewise[{solver}]" in refused(capsys, "model.npz", "schema.toml", "--eps", "0.1", "--solver", solver)


@pytest.mark.parametrize("command", [["demo"], ["certify", "model.npz", "schema.toml", "--eps", "1", "--report", "x"]])
def test_missing_jinja2_is_said_before_the_run(
    command: list[str], folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_late(*_: object, **__: object) -> None:
        raise AssertionError("the run has begun")

    monkeypatch.setattr("likewise.cli._inputs.find_spec", lambda name: None)
    monkeypatch.setattr(f"likewise.cli.{command[0]}.certify", too_late)
    assert main(command) == 2
    assert "likewise[report]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "culprit"),
    [(["--eps", "nan"], "eps"), (["--delta", "nan"], "delta"), (["--seconds", "0"], "seconds"), (["-o", "no/x"], "no")],
)
def test_demo(options: list[str], culprit: str, folder: Path, capsys: Capture) -> None:
    assert main(["demo", *options]) == 2
    assert culprit in capsys.readouterr().err
    assert not (folder / "report.html").exists()


@pytest.mark.parametrize("arguments", [[], ["conquer"], ["certify"], ["certify", "model.npz"], ["--eps", "1"]])
def test_usage(arguments: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    message = capsys.readouterr().err
    assert message.startswith("likewise: ")
    assert "--help" in message
    assert len(message.splitlines()) <= 3


def test_a_process_of_its_own_tells_the_same(folder: Path) -> None:
    np.savez(folder / "bad.npz", **MODELS["nan weight"][0])  # type: ignore[arg-type]
    command = [sys.executable, "-m", "likewise", "certify", "bad.npz", "schema.toml", "--eps", "0.1", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "bad.npz" in done.stderr
    assert "Traceback" not in done.stderr


def test_every_refusal_is_one_of_ours() -> None:
    for name in ("ModelError", "DomainError", "MetricError", "FileError", "MissingExtra"):
        assert issubclass(getattr(lw, name), lw.InputError)
    assert not issubclass(lw.SoundnessError, lw.InputError)
