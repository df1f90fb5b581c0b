"""Train and certify the networks of the training tables, one result file per finished cell, so that it can be resumed.

    python benchmarks/train_tables.py [GRID ...] [--seeds 5] [--results FOLDER] [-o FILE.md]

Grids: small (delta 0.002), crime (delta 0.11), paper (the same for the paper's other shapes), front (eight targets),
methods (all methods, [8]), published (Algorithm 1 as released). Without a name: all, in that order. Cells go seed by
seed, so a run that was stopped still gives a table, which says how many seeds it has. A cell is kept by its name; each
has its commit, and the table lists them. train_report.py writes the tables.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from store import ROOT, commit, finite, machine, publish, read_json, today, write_json
from train_report import report

import likewise as lw
from likewise import LikewiseError
from likewise.cli._inputs import schema_of
from likewise.train.calibrate import calibrated
from likewise.train.compare import TARGETS, Row, baseline_rows
from likewise.train.measures import group_gaps
from likewise.train.run import certifier, train
from likewise.train.settings import settings_of
from likewise.train.table import embedded

EPS = 0.2
CLASSES = ("adult", "credit", "german")
SHAPES = ((8,), (16, 16), (64,))
OTHER_SHAPES = ((16,), (24,), (32,), (8, 8))
# As published: learning rate, weight decay (reg / 2 per squared weight), mini-batch steps.
PUBLISHED = {"adult": (0.001, 0.05, 400)}
PUBLISHED_BATCH = 5000
PUBLISHED_SHAPES = ((8,), (100,))


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


def paper(seeds: int) -> Iterator[Cell]:
    for seed in range(seeds):
        for data in CLASSES:
            for hidden in OTHER_SHAPES:
                yield Cell("paper", data, "certified", hidden, seed, {"delta": 0.002, "rounds": 1, "certify": 5.0})
        for hidden in ((12,), *OTHER_SHAPES):
            yield Cell("paper", "crime", "certified", hidden, seed, {"delta": 0.11, "rounds": 1, "certify": 5.0})


def front(seeds: int) -> Iterator[Cell]:
    for seed in range(seeds):
        for data in CLASSES:
            for delta in TARGETS:
                yield Cell("front", data, "certified", (16, 16), seed, {"delta": delta, "certify": 5.0})


def methods(seeds: int) -> Iterator[Cell]:
    for seed in range(seeds):
        yield from (cell for cell in (*small(seeds), *crime(seeds)) if cell.hidden == (8,) and cell.seed == seed)
        for data in (*CLASSES, "crime"):
            for method in ("ftu", "sensr", "milp"):
                yield Cell("methods", data, method, (8,), seed, {"certify": 10.0})


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
        "calibrate": False,
        "certify": 20.0,
    }
    for hidden in PUBLISHED_SHAPES:
        yield Cell("published", "adult", "milp", hidden, 0, options)


GRIDS = {
    "small": small,
    "crime": crime,
    "paper": paper,
    "front": front,
    "methods": methods,
    "published": published,
}


def run_cell(cell: Cell) -> dict[str, Any]:
    """Train and certify one cell."""
    examples = embedded(cell.data, schema_of(cell.data, None))
    settings = settings_of(cell.method, {"hidden": cell.hidden, "eps": EPS, "seed": cell.seed, **cell.options})
    trained = train(examples, settings, threads=1)
    proven = trained.certificate
    assert proven is not None
    after = proven
    if examples.is_classes and not settings.calibrate:
        network = calibrated(trained.network, examples.X_train, examples.y_train, settings.balanced)
        after = certifier(examples, settings, 1)(network)
    y, X = examples.y_test, examples.X_test
    groups = group_gaps(y, trained.network(X) >= 0.5, examples.groups) if examples.is_classes else {}
    return {
        **asdict(cell),
        "settings": asdict(settings),
        "test": trained.measures(X, y),
        "groups": groups,
        "lower": proven.lower,
        "upper": finite(proven.upper),
        "calibrated": [after.lower, finite(after.upper)],
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
    found = finished(names, options.seeds, options.results)
    base = {data: baselines(data) for data in sorted({one["data"] for cells in found.values() for one in cells})}
    publish(report(found, base, command, EPS), options.out)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
