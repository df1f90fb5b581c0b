"""From a table of text to a Dataset: split, scale, one-hot. What is special about one data set is a `Table` value."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

import numpy as np

from likewise.domain import Continuous, Display, Domain, Feature, OneHot
from likewise.errors import InputError, MetricError
from likewise.metric import Embedding, Mahalanobis, Metric, WeightedLp
from likewise.network import Layer, Network
from likewise.rounding import Array

TRAIN_SHARE = 0.8
LARGEST_SEED = 2**32 - 1
MISSING = "?"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the table and how people read it; `labels` may leave categories out."""

    name: str
    kind: Literal["continuous", "one_hot"]
    title: str
    unit: str = ""
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """What is special about one data set.

    `columns` are in the order of the network's inputs; `sensitive` ones follow them when they are kept. The target
    is 1 where the column `target` says `positive`; with no `positive` it is the number in that column.
    """

    name: str
    title: str
    source: str
    columns: tuple[Column, ...]
    sensitive: tuple[Column, ...]
    target: str
    positive: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """People with known outcomes, split and encoded for a network, and the domain they come from.

    Continuous columns are scaled to [0, 1] by the range of the training people alone; `outside` counts the test
    people beyond that range, who are left as they are and so are not in the domain. `sensitive` names the sensitive
    features, whether or not they are among the columns.
    """

    name: str
    title: str
    source: str
    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array
    domain: Domain
    sensitive: tuple[str, ...]
    outside: int

    def __repr__(self) -> str:
        return f"Dataset({self.name}, {len(self.y_train)} train, {len(self.y_test)} test, {self.domain.width} columns)"

    def metric(self, kind: str = "mahalanobis") -> Metric:
        """Return who is similar: "mahalanobis" or "embedding" (learnt, embedded), or "linf" (weight 1 on every column).

        Both were learnt once (benchmarks/learn_metrics.py), on the columns without the sensitive features, and are the
        same for every seed. The embedding is 10 linear units in shares of their range, and the largest difference
        counts. Sensitive columns that are kept get zero rows and columns in S, and weight 0 in the others: people
        who differ in them alone are at distance 0.
        """
        maker = METRICS.get(kind)
        if maker is None:
            raise MetricError(f"unknown metric {kind!r} of data set {self.name!r}; known: {', '.join(METRICS)}")
        return maker(self)

    def _kept(self) -> np.ndarray:
        """The columns of the features that are not sensitive."""
        mask = np.ones(self.domain.width, dtype=bool)
        for feature, span in self.domain.spans:
            mask[span] = feature.name not in self.sensitive
        return np.flatnonzero(mask)


def _mahalanobis(data: Dataset) -> Metric:
    with np.load(io.BytesIO(resource(f"{data.name}.metric.npz")), allow_pickle=False) as stored:
        learnt = Mahalanobis(stored["S"]).matrix
    return Metric(_widened(learnt, data), 2.0, "mahalanobis")


def _linf(data: Dataset) -> Metric:
    weights = np.zeros(data.domain.width)
    weights[data._kept()] = 1.0
    return WeightedLp(weights)


def _embedding(data: Dataset) -> Metric:
    with np.load(io.BytesIO(resource(f"{data.name}.embedding.npz")), allow_pickle=False) as stored:
        learnt, bias = stored["W0"], stored["b0"]
    phi = Network([Layer(_widened(learnt, data), bias, "identity")])
    return Embedding(phi, WeightedLp(np.ones(len(learnt))))


def _widened(learnt: Array, data: Dataset) -> Array:
    """Return the matrix with a column of zeros for each sensitive column."""
    wide = np.zeros((len(learnt), data.domain.width))
    wide[:, data._kept()] = learnt
    return wide


METRICS: Mapping[str, Callable[[Dataset], Metric]] = {
    "mahalanobis": _mahalanobis,
    "linf": _linf,
    "embedding": _embedding,
}


def resource(name: str) -> bytes:
    """Return an embedded file."""
    return files("likewise.datasets").joinpath("data", name).read_bytes()


def prepare(table: Table, sensitive: str, seed: int) -> Dataset:
    """Read, split, scale and encode an embedded table; `sensitive` is "drop" or "keep"."""
    if sensitive not in ("drop", "keep"):
        raise InputError(f"sensitive must be 'drop' or 'keep', got {sensitive!r}")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= LARGEST_SEED:
        raise InputError(f"seed must be a whole number from 0 to {LARGEST_SEED}, got {seed!r}")
    cells = read_table(resource(f"{table.name}.csv.gz"))
    train, test = split_rows(len(cells[table.target]), seed)
    columns = table.columns + (table.sensitive if sensitive == "keep" else ())
    parts = [_encode(column, cells[column.name], train) for column in columns]
    X = np.column_stack([values for _, values in parts])
    y = _target(table, cells[table.target])
    domain = Domain(feature for feature, _ in parts)
    beyond = (X[test] < domain.lower) | (X[test] > domain.upper)
    return Dataset(
        table.name,
        table.title,
        table.source,
        X_train=_frozen(X[train]),
        y_train=_frozen(y[train]),
        X_test=_frozen(X[test]),
        y_test=_frozen(y[test]),
        domain=domain,
        sensitive=tuple(column.name for column in table.sensitive),
        outside=int(beyond.any(axis=1).sum()),
    )


def split_rows(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to train and to test on: those of scikit-learn's train_test_split(test_size=0.2).

    The fixed networks of benchmarks/models, and the metrics that came with them, were learnt on these people.
    """
    order = np.random.RandomState(seed).permutation(count)
    held = count - int(TRAIN_SHARE * count)
    return order[held:], order[:held]


def read_table(packed: bytes) -> dict[str, np.ndarray]:
    """Return the columns of a gzipped csv as text, without the rows in which a value is missing."""
    with gzip.open(io.BytesIO(packed), "rt", encoding="utf-8", newline="") as stream:
        header, *rows = csv.reader(stream)
    complete = [row for row in rows if MISSING not in row]
    return {name: np.array(values) for name, values in zip(header, zip(*complete, strict=True), strict=True)}


def _encode(column: Column, values: np.ndarray, train: np.ndarray) -> tuple[Feature, Array]:
    if column.kind == "one_hot":
        return _one_hot(column, values, _ordered(set(values.tolist())))
    numbers = values.astype(np.float64)
    low, high = float(numbers[train].min()), float(numbers[train].max())
    factor = (high - low) or 1.0
    display = Display(low, factor, column.unit, title=column.title)
    return Continuous(column.name, 0.0, 1.0, display), ((numbers - low) / factor)[:, None]


def _ordered(values: set[str]) -> list[str]:
    """Return categories in the order of their numbers if they are whole numbers, else of their letters."""
    whole = all(value.removeprefix("-").isdecimal() for value in values)
    return sorted(values, key=int) if whole else sorted(values)


def _one_hot(column: Column, values: np.ndarray, categories: Sequence[str]) -> tuple[Feature, Array]:
    known = tuple((value, label) for value, label in column.labels if value in categories)
    feature = OneHot(column.name, categories, Display(labels=known, title=column.title))
    return feature, (values[:, None] == np.array(categories)).astype(np.float64)


def _target(table: Table, values: np.ndarray) -> Array:
    return values.astype(np.float64) if table.positive is None else (values == table.positive).astype(np.float64)


def _frozen(values: Array) -> Array:
    values.setflags(write=False)
    return values
