"""`likewise train` on the command line: files, JSON, exit codes, comparisons and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import likewise as lw
from likewise.cli import main
from likewise.train.compare import Row, beats
from likewise.train.page import cells, text_table

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def table(folder: Path) -> Path:
    """The folder with a data.csv of 200 people that fits schema.toml."""
    rng = np.random.default_rng(0)
    lines = ["age,income,job,paid,town"]
    for _ in range(200):
        age, income, job = rng.integers(18, 78), rng.random(), rng.choice(["artist", "baker"])
        paid = "yes" if income + 0.5 * (job == "baker") + 0.2 * rng.normal() > 0.7 else "no"
        lines.append(f"{age},{income:.3f},{job},{paid},{rng.choice(['north', 'south'])}")
    (folder / "data.csv").write_text("\n".join(lines) + "\n")
    return folder


def train(*words: str) -> int:
    options = ["--hidden", "4", "--eps", "0.1", "--epochs", "3", "--seconds", "2"]
    return main(["train", "data.csv", "schema.toml", *options, *words])


def test_from_csv_to_model(table: Path, capsys: Capture) -> None:
    assert train("--target", "paid", "--delta", "0.05", "--json", "-o", "fair.npz") == 0
    seen = capsys.readouterr()
    found = json.loads(seen.out)
    assert found["reached"] is True
    assert found["upper"] <= 0.05
    assert 0 <= found["test"]["balanced_accuracy"] <= 1
    assert "y = 1 for yes, 0 for no" in seen.err
    assert lw.read("fair.cert").upper == found["upper"]
    assert json.loads(Path("fair.history.json").read_text())["settings"]["hidden"] == [4]
    assert not Path("fair.npz.checkpoint").exists()
    assert main(["certify", "fair.npz", "fair.toml", "--eps", "0.1", "--delta", "0.06", "--seconds", "5"]) == 0


def test_words_and_repair(table: Path, capsys: Capture) -> None:
    assert train("--target", "paid", "--method", "ftu", "-o", "plain.npz") == 0
    assert "balanced accuracy" in capsys.readouterr().out
    assert train("--target", "paid", "--from", "plain.npz", "--delta", "0.01", "-o", "fair.onnx") == 0
    assert "delta <= 0.01 is proven" in capsys.readouterr().out
    assert lw.load("fair.onnx").inputs == 4


def test_a_delta_that_cannot_be_proven_is_exit_20(table: Path, capsys: Capture) -> None:
    # Rounding alone keeps the upper bound of a network with weights of some size above this.
    assert train("--target", "paid", "--delta", "1e-300", "-o", "fair.npz") == 20
    assert "could NOT be proven" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-o", "m.npz"], "--target"),
        (["--target", "salary", "-o", "m.npz"], "salary"),
        (["--target", "paid"], "-o model.npz"),
        (["--target", "paid", "-o", "m.xyz"], ".xyz"),
        (["--target", "paid", "-o", "schema.npz"], "would replace the input schema.toml"),
        (["--target", "paid", "--resume", "-o", "m.npz"], "--resume"),
        (["--target", "paid", "--method", "ftu", "--delta", "0.1", "-o", "m.npz"], "delta"),
        (["--target", "paid", "--hidden", "a", "-o", "m.npz"], "16,16"),
        (["--target", "paid", "--sensitive", "shoe", "-o", "m.npz"], "shoe"),
        (["--target", "paid", "--from", "missing.npz", "-o", "m.npz"], "missing.npz"),
        (["--target", "paid", "--compare", "-o", "m.npz"], ".html"),
    ],
)
def test_bad_input_is_told_and_writes_nothing(words: list[str], told: str, table: Path, capsys: Capture) -> None:
    before = sorted(table.iterdir())
    try:
        code = train(*words)
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    seen = capsys.readouterr()
    assert code == 2
    assert told in seen.err
    assert "Traceback" not in seen.err
    assert sorted(table.iterdir()) == before


@pytest.mark.parametrize(
    ("cells_of_a_row", "told"),
    [("30,0.5,pilot,yes,north", "unknown category 'pilot'"), ("30,0.5,baker,,north", "the outcome is missing")],
)
def test_rows_that_cannot_be_read_are_named(cells_of_a_row: str, told: str, table: Path, capsys: Capture) -> None:
    with Path("data.csv").open("a") as file:
        file.write(cells_of_a_row + "\n")
    assert train("--target", "paid", "-o", "m.npz") == 2
    assert told in capsys.readouterr().err


def test_compare_shows_the_trivial_baselines(table: Path, capsys: Capture) -> None:
    words = ["--target", "paid", "--sensitive", "town", "--compare", "--targets", "0.01,0.3", "-o", "page.html"]
    schema = Path("schema.toml").read_text().replace('kind = "lp"\nweights = 1.0', 'kind = "mahalanobis"')
    np.savez("metric.npz", S=np.eye(4))
    Path("schema.toml").write_text(schema + 'file = "metric.npz"\n')
    assert train(*words) == 0
    out = capsys.readouterr().out
    for name in ("only what cannot differ", "logits /", "ftu", "sensr", "milp", "certified", "EOD town", "DPD town"):
        assert name in out
    page = Path("page.html").read_text()
    assert "certified, delta 0.3" in page
    assert "data:image/png;base64," in page


def row(name: str, good: float, delta: tuple[float, float]) -> Row:
    return Row(name, {"accuracy": good, "balanced_accuracy": good}, (0.0, 0.002), delta, {}, 1.0)


def test_only_what_beats_the_baselines_is_claimed() -> None:
    base = [row("shared", 0.77, (0.0, 0.0)), row("divided", 0.82, (0.9, 0.9))]
    assert beats(row("mine", 0.78, (0.1, 0.11)), base)
    assert not beats(row("mine", 0.77, (0.0, 0.001)), base)  # as good as delta 0, and no fairer
    assert not beats(row("mine", 0.81, (0.9, 0.95)), base)  # dividing does not make the second one fair


def test_a_table_marks_what_is_not_claimed() -> None:
    one, other = row("first", 0.7, (0.0, 0.1)), Row("second", {"mse": 0.1}, (0, 1), (0, 1), {}, 2.0, claimed=False)
    assert cells([one])[1][0] == "first"
    assert cells([other])[1][0] == "second *"
    assert text_table([one]).splitlines()[0].startswith("method")
