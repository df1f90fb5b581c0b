"""Train and certify the networks of the training tables, one result file per finished cell, so that it can be resumed.

    python benchmarks/train_tables.py [GRID ...] [--seeds 5] [--results FOLDER] [-o FILE.md]

Grids: small (delta 0.002), crime (delta 0.11), front, methods, published (Algorithm 1 as released). Without a name:
all, in that order. Cells go seed by seed, so a run that was stopped still gives a table, which says how many seeds it
has. A cell is kept by its name; each has its commit, and the table lists them.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from store import ROOT, commit, finite, machine, read_json, today, write_json, write_text
from table import markdown

import likewise as lw
from likewise import LikewiseError
from likewise.cli._inputs import schema_of
from likewise.train.compare import TARGETS, Row, baseline_rows
from likewise.train.measures import group_gaps
from likewise.train.run import train
from likewise.train.settings import settings_of
from likewise.train.table import embedded

EPS = 0.2
CLASSES = ("adult", "credit", "german")
SHAPES = ((8,), (16, 16), (64,))
# As published: learning rate, weight decay (reg / 2 per squared weight), mini-batch steps.
PUBLISHED = {"adult": (0.001, 0.05, 400)}
PUBLISHED_BATCH = 5000
PUBLISHED_MINUTES = {(8,): 121.0, (100,): 540.0}


@dataclass(frozen=True, slots=True)
class Cell:
    """One training."""

    grid: str
    data: str
    method: str
    hidden: tuple[int, ...]
    seed: int
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What its file is called."""
        shape = "x".join(map(str, self.hidden))
        more = "-".join(f"{key}={value:g}" for key, value in sorted(self.options.items()) if key == "delta")
        return f"train-{self.grid}-{self.data}-{self.method}-{shape}-{self.seed}{'-' * bool(more)}{more}"


def small(seeds: int) -> Iterator[Cell]:
    options = {"delta": 0.002, "rounds": 1, "certify": 5.0}
    for seed in range(seeds):
        for data in CLASSES:
            for hidden in SHAPES:
                yield Cell("small", data, "certified", hidden, seed, options)


def crime(seeds: int) -> Iterator[Cell]:
    for seed in range(seeds):
        for hidden in SHAPES:
            yield Cell("crime", "crime", "certified", hidden, seed, {"delta": 0.11, "rounds": 1, "certify": 5.0})


def front(seeds: int) -> Iterator[Cell]:
    for data in CLASSES:
        for delta in TARGETS:
            yield Cell("front", data, "certified", (16, 16), 0, {"delta": delta, "certify": 5.0})


def methods(seeds: int) -> Iterator[Cell]:
    for data in CLASSES:
        for method in ("ftu", "sensr", "milp"):
            yield Cell("methods", data, method, (8,), 0, {"certify": 10.0})


def published(seeds: int) -> Iterator[Cell]:
    rate, decay, steps = PUBLISHED["adult"]
    people = len(lw.datasets.load("adult").y_train)
    options = {
        "as_published": True,
        "batch": PUBLISHED_BATCH,
        "rate": rate,
        "l2": decay / 2 * people,
        "epochs": round(steps / -(-people // PUBLISHED_BATCH)),
        "validation": 0.0,
        "certify": 20.0,
    }
    for hidden in PUBLISHED_MINUTES:
        yield Cell("published", "adult", "milp", hidden, 0, options)


GRIDS = {"small": small, "crime": crime, "front": front, "methods": methods, "published": published}


def run_cell(cell: Cell) -> dict[str, Any]:
    """Train and certify one cell."""
    examples = embedded(cell.data, schema_of(cell.data, None))
    settings = settings_of(cell.method, {"hidden": cell.hidden, "eps": EPS, "seed": cell.seed, **cell.options})
    trained = train(examples, settings, threads=1)
    proven = trained.certificate
    assert proven is not None
    y, X = examples.y_test, examples.X_test
    groups = group_gaps(y, trained.network(X) >= 0.5, examples.groups) if examples.is_classes else {}
    return {
        **asdict(cell),
        "settings": asdict(settings),
        "test": trained.measures(X, y),
        "groups": groups,
        "lower": proven.lower,
        "upper": finite(proven.upper),
        "reached": trained.reached,
        "seconds": trained.seconds,
        "epochs": len(trained.history),
        "commit": commit(),
        "machine": machine("highs"),
        "date": today(),
    }


def baselines(data: str) -> list[Row]:
    """Return the rows of the trivial baselines of a data set."""
    examples = embedded(data, schema_of(data, None))
    return list(baseline_rows(examples, settings_of("certified", {"eps": EPS})))


def finished(names: list[str], seeds: int, results: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the results that are there, by grid."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name in names:
        stored = [read_json(results / f"{cell.name}.json") for cell in GRIDS[name](seeds)]
        found[name] = [one for one in stored if one is not None]
    return found


def goodness(result: dict[str, Any]) -> float:
    """Return balanced accuracy, or the mean squared error."""
    value: float = result["test"].get("balanced_accuracy", result["test"].get("mse"))
    return value


def spread(values: list[float], digits: int) -> str:
    """Return mean and standard deviation."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.fmean(values):.{digits}f} ± {deviation:.{digits}f}"


def seeds_table(results: list[dict[str, Any]], base: dict[str, list[Row]]) -> str:
    """Return a row per data set and shape, over the seeds, and one per baseline."""
    groups: dict[tuple[str, tuple[int, ...]], list[dict[str, Any]]] = {}
    for result in results:
        groups.setdefault((result["data"], tuple(result["hidden"])), []).append(result)
    head = ["data", "hidden", "seeds", "balanced accuracy or MSE", "largest upper", "all reached", "largest seconds"]
    rows = []
    for (data, hidden), cells in sorted(groups.items()):
        uppers = [cell["upper"] for cell in cells]
        worst = "none" if None in uppers else f"{max(uppers):.6f}"
        good = spread([goodness(cell) for cell in cells], 4)
        reached = "yes" if all(cell["reached"] for cell in cells) else "NO"
        longest = max(cell["seconds"] for cell in cells)
        rows.append([data, str(list(hidden)), str(len(cells)), good, worst, reached, f"{longest:.1f}"])
    for data in sorted({data for data, _ in groups}):
        for row in base[data]:
            good = f"{abs(row.goodness):.4f}"
            rows.append([data, row.name, "", good, f"{row.calibrated[1]:.6f}", "", f"{row.seconds:.1f}"])
    return markdown(head, rows)


def cells_table(results: list[dict[str, Any]], base: dict[str, list[Row]]) -> str:
    """Return a row per cell, and one per baseline."""
    head = ["data", "method", "hidden", "target", "accuracy", "balanced accuracy", "delta", "EOD", "seconds"]
    rows = [_baseline_cells(data, row) for data in sorted({cell["data"] for cell in results}) for row in base[data]]
    for cell in results:
        eod = ", ".join(f"{name} {gaps['equalised_odds']:.3f}" for name, gaps in cell["groups"].items())
        target = cell["options"].get("delta")
        upper = "inf" if cell["upper"] is None else f"{cell['upper']:.5f}"
        rows.append(
            [
                cell["data"],
                cell["method"],
                str(cell["hidden"]),
                "" if target is None else f"{target:g}",
                f"{cell['test']['accuracy']:.4f}",
                f"{cell['test']['balanced_accuracy']:.4f}",
                f"[{cell['lower']:.5f}, {upper}]",
                eod,
                f"{cell['seconds']:.1f}",
            ]
        )
    return markdown(head, rows)


def _baseline_cells(data: str, row: Row) -> list[str]:
    eod = ", ".join(f"{name} {gaps['equalised_odds']:.3f}" for name, gaps in row.groups.items())
    lower, upper = row.calibrated
    good = [f"{row.test[name]:.4f}" for name in ("accuracy", "balanced_accuracy")]
    return [data, row.name, "", "", *good, f"[{lower:.5f}, {upper:.5f}]", eod, f"{row.seconds:.1f}"]


def report(found: dict[str, list[dict[str, Any]]], command: str) -> str:
    """Return the tables as Markdown."""
    results = [one for cells in found.values() for one in cells]
    commits = ", ".join(sorted({f"`{one['commit']}`" for one in results}))
    cpu = results[0]["machine"]["cpu"]
    lines = [
        "# Training",
        "",
        f"`{command}`",
        "",
        f"Commit {commits}; {cpu}, one core, shared; eps = {EPS}, true ball.",
    ]
    lines.append("Deltas are those of the calibrated networks, also of the baseline whose logits are divided.")
    base = {data: baselines(data) for data in sorted({one["data"] for one in results})}
    for name, cells in found.items():
        if cells:
            table = seeds_table if name in ("small", "crime") else cells_table
            lines += ["", f"## {name}", "", table(cells, base)]
    return "\n".join(lines) + "\n"


def main() -> int:
    line = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    line.add_argument("grids", nargs="*", metavar="GRID", help=", ".join(GRIDS))
    line.add_argument("--seeds", type=int, default=5)
    line.add_argument("--results", type=Path, default=ROOT / "results")
    line.add_argument("--table", action="store_true", help="only write the table of what is there")
    line.add_argument("-o", dest="out", type=Path)
    options = line.parse_args()
    names = options.grids or list(GRIDS)
    failed = 0
    for name in [] if options.table else names:
        for cell in GRIDS[name](options.seeds):
            file = options.results / f"{cell.name}.json"
            if file.is_file():
                continue
            try:
                done = run_cell(cell)
            except LikewiseError as error:  # one cell's defect must not cost the others
                failed += 1
                print(f"{cell.name}: {error}", file=sys.stderr, flush=True)
                continue
            write_json(file, done)
            print(f"{cell.name}: {done['test']}, upper {done['upper']}, {done['seconds']:.1f} s", file=sys.stderr)
    command = f"python benchmarks/train_tables.py {' '.join(names)} --seeds {options.seeds}"
    text = report(finished(names, options.seeds, options.results), command)
    if options.out:
        write_text(options.out, text)
    print(text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
