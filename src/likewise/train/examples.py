"""Examples: people with known outcomes, who can exist, and who is similar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from likewise.datasets import Dataset
from likewise.domain import Domain
from likewise.errors import DomainError, InputError, MetricError
from likewise.load import Schema
from likewise.metric import Metric
from likewise.rounding import Array

FEWEST = 200  # people in a validation part: fewer say less than they would teach, and all are trained on


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """People (n, columns) in the network's units and their outcomes.

    Outcomes of 0 and 1 are classes and all else is a regression, unless `kind` says "classes" or "numbers". The test
    part may be empty. `groups` are sensitive features of the test people, for measures of group fairness.
    """

    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array
    domain: Domain
    metric: Metric
    name: str = ""
    source: str = ""
    groups: Mapping[str, np.ndarray] = field(default_factory=dict)
    kind: str = "auto"

    def __post_init__(self) -> None:
        for part in ("train", "test"):
            X, y = _numbers(self, f"X_{part}", 2), _numbers(self, f"y_{part}", 1)
            if X.shape[1] != self.domain.width:
                raise DomainError(f"X_{part} has {X.shape[1]} columns, the domain has {self.domain.width}")
            if len(X) != len(y):
                raise InputError(f"{len(X)} people in X_{part}, but {len(y)} outcomes in y_{part}")
            object.__setattr__(self, f"X_{part}", X)
            object.__setattr__(self, f"y_{part}", y)
        if self.kind not in ("auto", "classes", "numbers"):
            raise InputError(f"kind must be 'auto', 'classes' or 'numbers', got {self.kind!r}")
        if self.kind == "classes" and not self.is_classes:
            raise InputError("the outcomes of classes must be 0 and 1")
        if self.metric.width != self.domain.width:
            raise MetricError(f"the metric is for {self.metric.width} columns, the domain has {self.domain.width}")
        if len(self.y_train) < 2:
            raise InputError(f"at least 2 people are needed to train on, got {len(self.y_train)}")
        if self.is_classes and len(np.unique(self.y_train)) < 2:
            raise InputError(
                f"everyone to train on has the outcome {self.y_train[0]:g}: there is nothing to tell apart"
            )

    def __repr__(self) -> str:
        kind = "classes" if self.is_classes else "regression"
        return f"Examples({self.name or 'unnamed'}, {kind}, {len(self.y_train)} train, {len(self.y_test)} test)"

    @property
    def is_classes(self) -> bool:
        """Whether the outcomes are the two classes 0 and 1."""
        return self.kind != "numbers" and bool(np.isin(self.y_train, (0.0, 1.0)).all())

    @property
    def schema(self) -> Schema:
        """Who can exist and who is similar, to be written beside a model."""
        return Schema(self.domain, self.metric, self.name, self.source)

    def split(self, share: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows to fit and the rows to validate on; of either class the same share.

        The validation part is empty if it would be too small to say anything, or would leave a class without people.
        """
        kinds = self.y_train if self.is_classes else np.zeros_like(self.y_train)
        held: list[np.ndarray] = []
        for kind in np.unique(kinds):
            rows = rng.permutation(np.flatnonzero(kinds == kind))
            held.append(rows[: min(round(share * len(rows)), len(rows) - 1)])
        validation = np.sort(np.concatenate(held))
        if len(validation) < FEWEST:
            validation = validation[:0]
        return np.setdiff1d(np.arange(len(self.y_train)), validation), validation


def _numbers(examples: Examples, name: str, dimensions: int) -> Array:
    try:
        values = np.array(getattr(examples, name), dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be an array of numbers") from None
    if values.ndim != dimensions:
        raise InputError(f"{name} must have {dimensions} dimension{'s' * (dimensions > 1)}, got shape {values.shape}")
    if not np.isfinite(values).all():
        raise InputError(f"{name} has a value that is not finite (NaN or infinity) in row {_first_bad(values)}")
    values.setflags(write=False)
    return values


def _first_bad(values: Array) -> int:
    return int(np.flatnonzero(~np.isfinite(values.reshape(len(values), -1)).all(axis=1))[0])


def examples_of(data: Any, metric: str | Metric | None) -> Examples:
    """Return the examples of a data set with one of its metrics, by name, or with a metric that is given."""
    if isinstance(data, Examples):
        if metric is None or isinstance(metric, Metric):
            return data if metric is None else replace(data, metric=metric)
        raise MetricError(f"metric must be a likewise metric for examples of your own, got {metric!r}")
    if not isinstance(data, Dataset):
        raise InputError(f"data must be a Dataset or likewise.Examples, got {type(data).__name__}")
    chosen = metric if isinstance(metric, Metric) else data.metric("mahalanobis" if metric is None else metric)
    return Examples(data.X_train, data.y_train, data.X_test, data.y_test, data.domain, chosen, data.name, data.source)
