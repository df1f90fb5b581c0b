"""Choose the defaults of training on folds of the training people; the test people are not looked at.

    python benchmarks/train_choice.py [STAGE ...] [--results FOLDER] [-o FILE.md]

Stages: fit (l2, validation part and batch, where next to nothing may differ), decision (its share there), front
(decision and sharpness where something may differ), linear (ridge of the linear baseline). Each candidate is trained
on four fifths of the training people and measured on the last fifth, for one or more of the five folds. One result file
per finished candidate and data set, so a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from store import ROOT, commit, machine, publish, read_json, today, write_json
from table import markdown

from likewise.cli._inputs import schema_of
from likewise.network import Network
from likewise.train.baselines import linear
from likewise.train.calibrate import class_weights
from likewise.train.certified import certified, limit_of
from likewise.train.examples import Examples
from likewise.train.loop import fit, start
from likewise.train.measures import measured
from likewise.train.method import Context
from likewise.train.run import begin_layers, context_of, one_thread
from likewise.train.settings import settings_of
from likewise.train.table import embedded
from likewise.train.target import SAFE, deployed, settle

EPS = 0.2
FOLDS = 5
FOLD_SEED = 7
SHAPES = ((8,), (16, 16), (64,))


@dataclass(frozen=True, slots=True)
class Candidate:
    """Options to try on a data set, with the shapes and folds it is tried with."""

    stage: str
    data: str
    delta: float
    shapes: tuple[tuple[int, ...], ...]
    folds: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def said(self) -> str:
        """The options in words."""
        return ", ".join(f"{name} {value:g}" for name, value in self.options.items())

    @property
    def name(self) -> str:
        """What its file is called."""
        more = "-".join(f"{name}={value:g}" for name, value in self.options.items())
        return f"choice-{self.stage}-{self.data}-{self.delta:g}-{more}"


def fitting() -> Iterator[Candidate]:
    for l2, held, batch, epochs in (
        (10.0, 0.1, 32, 30),
        (30.0, 0.1, 32, 30),
        (10.0, 0.0, 128, 40),
        (20.0, 0.0, 128, 40),
        (30.0, 0.0, 128, 40),
    ):
        options = {"l2": l2, "validation": held, "batch": batch, "epochs": epochs}
        yield Candidate("fit", "german", 0.002, SHAPES, (0, 1, 2, 3, 4), options)
    for l2 in (10.0, 20.0, 30.0):
        for held, batch, epochs in ((0.1, 35, 30), (0.0, 128, 40)):
            options = {"l2": l2, "validation": held, "batch": batch, "epochs": epochs}
            yield Candidate("fit", "crime", 0.11, ((16, 16),), (0, 1), options)
    for data in ("adult", "credit"):
        for l2 in (10.0, 20.0, 30.0):
            yield Candidate("fit", data, 0.002, ((16, 16),), (0,), {"l2": l2})


def fronts() -> Iterator[Candidate]:
    for data, folds in (("adult", (0,)), ("german", (0, 1, 2, 3, 4))):
        for decision, sharpness in ((0.0, 15.0), (0.8, 15.0), (0.8, 5.0), (0.5, 15.0)):
            yield Candidate("front", data, 0.11, ((16, 16),), folds, {"decision": decision, "sharpness": sharpness})


def decisions() -> Iterator[Candidate]:
    for l2 in (20.0, 30.0):
        for decision in (0.0, 0.5, 0.8):
            options = {"l2": l2, "validation": 0.0, "batch": 96, "decision": decision}
            yield Candidate("decision", "german", 0.002, SHAPES, (0, 1, 2, 3, 4), options)
    for data in ("adult", "credit"):
        for decision in (0.0, 0.5, 0.8):
            yield Candidate("decision", data, 0.002, ((16, 16),), (0,), {"l2": 30.0, "decision": decision})


def linears() -> Iterator[Candidate]:
    for data in ("german", "credit", "adult"):
        for ridge in (1.0, 3.0, 10.0, 30.0, 100.0):
            yield Candidate("linear", data, 0.0, ((),), (0, 1, 2, 3, 4), {"ridge": ridge})


STAGES = {"fit": fitting, "decision": decisions, "front": fronts, "linear": linears}


@cache
def part(data: str, fold: int) -> Context:
    """Return the training people without a fold; the fold stands where the test people were."""
    whole = embedded(data, schema_of(data, None))
    rng = np.random.default_rng(FOLD_SEED)
    kinds = whole.y_train if whole.is_classes else np.zeros_like(whole.y_train)
    number = np.zeros(len(kinds), dtype=int)
    for kind in np.unique(kinds):
        rows = rng.permutation(np.flatnonzero(kinds == kind))
        number[rows] = np.arange(len(rows)) % FOLDS
    rest, held = number != fold, number == fold
    X, y = whole.X_train, whole.y_train
    examples = Examples(X[rest], y[rest], X[held], y[held], whole.domain, whole.metric, data)
    return context_of(examples, settings_of("certified", {"eps": EPS}))


def one(candidate: Candidate, shape: tuple[int, ...], fold: int) -> dict[str, float]:
    """Train without a fold and return what the network is worth on it."""
    if candidate.stage == "linear":
        return baseline(candidate, fold)
    given = {"hidden": shape, "eps": EPS, "delta": candidate.delta, "seed": fold, "rounds": 1, "decision": 0.0}
    settings = settings_of("certified", {**given, **candidate.options})
    context = replace(part(candidate.data, fold), settings=settings)
    method = certified(context, limit_of(candidate.delta, context.is_classes, context.unit) * SAFE)
    state = start(begin_layers(context, None), settings.seed)
    fit(context, method, state)
    settle(context, method, state)
    network, examples = deployed(context, method, state), context.examples
    found = measured(network, examples.X_test, examples.y_test, context.is_classes)
    if context.is_classes:
        found["log_loss"] = log_loss(network, examples)
    return {**found, "seconds": state.seconds}


def baseline(candidate: Candidate, fold: int) -> dict[str, float]:
    """Return what the linear model of the columns that cannot differ is worth on a fold."""
    context, started = part(candidate.data, fold), time.perf_counter()
    examples = context.examples
    shared = np.setdiff1d(np.arange(examples.domain.width), context.bound.free.numpy())
    network = linear(examples, shared, True, candidate.options["ridge"])
    found = measured(network, examples.X_test, examples.y_test, True)
    return {**found, "log_loss": log_loss(network, examples), "seconds": time.perf_counter() - started}


def log_loss(network: Network, examples: Examples) -> float:
    """Return the class-balanced log loss on the fold."""
    y, score = examples.y_test, np.clip(network(examples.X_test).ravel(), 1e-12, 1 - 1e-12)
    return float(-(class_weights(y) * np.where(y > 0.5, np.log(score), np.log1p(-score))).mean())


def tried(candidate: Candidate) -> dict[str, Any]:
    """Return the mean over shapes and folds."""
    found = [one(candidate, shape, fold) for shape in candidate.shapes for fold in candidate.folds]
    mean = {name: statistics.fmean(each[name] for each in found) for name in found[0]}
    return {
        **asdict(candidate),
        "mean": mean,
        "each": found,
        "commit": commit(),
        "cpu": machine("highs")["cpu"],
        "date": today(),
    }


def table(candidates: list[tuple[Candidate, dict[str, Any]]]) -> str:
    """Return a row per candidate."""
    head = ["data", "delta", "options", "trainings", "balanced accuracy or MSE", "log loss", "seconds"]
    rows = []
    for candidate, result in candidates:
        mean = result["mean"]
        good = mean.get("balanced_accuracy", mean.get("mse"))
        loss = f"{mean['log_loss']:.4f}" if "log_loss" in mean else ""
        count = str(len(result["each"]))
        rows.append([candidate.data, f"{candidate.delta:g}", candidate.said, count, f"{good:.4f}", loss])
        rows[-1].append(f"{mean['seconds']:.1f}")
    return markdown(head, rows)


def main() -> int:
    line = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    line.add_argument("stages", nargs="*", metavar="STAGE", help=", ".join(STAGES))
    line.add_argument("--results", type=Path, default=ROOT / "results")
    line.add_argument("--table", action="store_true", help="only write the table of what is there")
    line.add_argument("-o", dest="out", type=Path)
    options = line.parse_args()
    names = options.stages or list(STAGES)
    lines, made = [], set()
    for name in names:
        done = []
        for candidate in STAGES[name]():
            file = options.results / f"{candidate.name}.json"
            result = read_json(file)
            if result is None and not options.table:
                with one_thread():
                    result = tried(candidate)
                write_json(file, result)
                print(f"{candidate.name}: {result['mean']}", file=sys.stderr, flush=True)
            if result is not None:
                done.append((candidate, result))
                made.add(f"commit `{result['commit']}`, {result['cpu']}, one core")
        lines += [f"## {name}", "", table(done), ""]
    head = ["# Choice of defaults, on folds of the training people", ""]
    head += [f"`python benchmarks/train_choice.py {' '.join(names)}`, {'; '.join(sorted(made))}.", ""]
    publish("\n".join([*head, *lines]), options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
