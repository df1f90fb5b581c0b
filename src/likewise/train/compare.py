"""All methods and the trivial baselines side by side, and the front of balanced accuracy against certified delta."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likewise.certificate import Certificate
from likewise.network import Network
from likewise.train.baselines import divided, linear
from likewise.train.calibrate import calibrated
from likewise.train.certified import limit_of
from likewise.train.examples import Examples
from likewise.train.measures import group_gaps, measured
from likewise.train.run import certifier, context_of, train
from likewise.train.settings import METHODS, Settings, settings_of

TARGETS = (0.002, 0.01, 0.03, 0.05, 0.08, 0.11, 0.2, 0.3)
TINY_DELTA = 0.002  # what the logits of the second baseline are divided for

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One network of a comparison: bounds as it is, and bounds after calibration on the training people."""

    name: str
    test: dict[str, float]
    raw: tuple[float, float]
    calibrated: tuple[float, float]
    groups: dict[str, dict[str, float]]
    seconds: float
    target: float | None = None
    claimed: bool = True

    def __repr__(self) -> str:
        return f"Row({self.name}, {self.test}, delta in [{self.calibrated[0]:.6f}, {self.calibrated[1]:.6f}])"

    @property
    def goodness(self) -> float:
        """Balanced accuracy, or minus the mean squared error: more is better."""
        return self.test["balanced_accuracy"] if "mse" not in self.test else -self.test["mse"]

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


def compare(examples: Examples, settings: Settings, say: Say) -> list[Row]:
    """Return a row for each baseline and each method, all with the hidden layers, seed and eps of the settings."""
    rows = []
    for row in (*baseline_rows(examples, settings), *_methods(examples, settings)):
        say(f"{row.name}: {row.test}, delta in [{row.calibrated[0]:.5f}, {row.calibrated[1]:.5f}]")
        rows.append(row)
    return rows


def front(examples: Examples, settings: Settings, targets: Sequence[float], base: Sequence[Row], say: Say) -> list[Row]:
    """Return a row for each target delta; one that does not beat the trivial baselines is kept, but not claimed."""
    rows = []
    for delta in sorted(targets):
        row = method_row(examples, replace(settings, method="certified", delta=delta), f"certified, delta {delta:g}")
        row = replace(row, target=delta, claimed=row.calibrated[1] <= delta and beats(row, base))
        say(f"{row.name}: {row.test}, delta in [{row.calibrated[0]:.5f}, {row.calibrated[1]:.5f}]")
        rows.append(row)
    return rows


def beats(row: Row, base: Sequence[Row]) -> bool:
    """Tell whether no baseline is as good at a calibrated delta that is as small."""
    return not any(one.goodness >= row.goodness and one.calibrated[0] <= row.calibrated[1] for one in base)


def baseline_rows(examples: Examples, settings: Settings) -> Iterator[Row]:
    """Yield the rows of the trivial baselines (train/baselines.py)."""
    context = context_of(examples, settings)
    certify = certifier(examples, settings, None)
    free = context.bound.free.numpy()
    shared = np.setdiff1d(np.arange(examples.domain.width), free)
    if len(shared):
        started = time.perf_counter()
        network = linear(examples, shared, settings.balanced)
        yield _row("only what cannot differ (linear)", examples, settings, network, time.perf_counter() - started)
    started = time.perf_counter()
    everything = linear(examples, np.arange(examples.domain.width), settings.balanced)
    seconds = time.perf_counter() - started
    if not examples.is_classes:
        yield _row("all columns (linear)", examples, settings, everything, seconds)
        return
    difference = limit_of(min(certify(everything).upper, 1 - 1e-12), True, 1.0)
    constant = max(1.0, difference / limit_of(TINY_DELTA, True, 1.0))
    name = f"all columns (linear), logits / {constant:.0f}"
    yield _row(name, examples, settings, divided(everything, constant), seconds)


def _methods(examples: Examples, settings: Settings) -> Iterator[Row]:
    for method in reversed(METHODS):
        if method == "sensr" and (not examples.metric.is_linear or examples.metric.p != 2.0):
            continue  # it needs a Mahalanobis metric, and docs/training.md says so
        if method == "certified":
            yield method_row(examples, replace(settings, method=method), method)
            continue
        kept = ("hidden", "eps", "balanced", "seed", "certify", "batch")
        own = settings_of(method, {name: getattr(settings, name) for name in kept} | {"calibrate": False})
        yield method_row(examples, own, method)


def method_row(examples: Examples, settings: Settings, name: str) -> Row:
    """Train by a method and return its row."""
    trained = train(examples, settings)
    return _row(name, examples, settings, trained.network, trained.seconds, trained.certificate)


def _row(
    name: str,
    examples: Examples,
    settings: Settings,
    network: Network,
    seconds: float,
    proven: Certificate | None = None,
) -> Row:
    certify = certifier(examples, settings, None)
    raw = proven or certify(network)
    after = raw
    if examples.is_classes and not (proven is not None and settings.calibrate):
        network = calibrated(network, examples.X_train, examples.y_train, settings.balanced)
        after = certify(network)
    y, X = examples.y_test, examples.X_test
    groups = group_gaps(y, network(X) >= 0.5, examples.groups) if examples.is_classes else {}
    test = measured(network, X, y, examples.is_classes)
    return Row(name, test, (raw.lower, raw.upper), (after.lower, after.upper), groups, seconds)
