"""scikit-learn -> Network: fitted objects, and pipelines folded into the first layer.

A folded network takes raw columns: numbers in their own units and one-hot blocks, in the order of the data. Nothing is
unpickled here, and scikit-learn is not imported: a fitted object brings its own classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likewise.errors import DomainError, MetricError, ModelError
from likewise.load import _operations as common
from likewise.load._columns import Column, Prepared, Raw, kind_of, prepared
from likewise.load._graph import Graph, Value, finite
from likewise.metric import Metric
from likewise.network import Layer, Network
from likewise.rounding import Array

HIDDEN = {"identity": "identity", "logistic": "sigmoid", "tanh": "tanh", "relu": "relu"}
PERCEPTRONS = ("MLPClassifier", "MLPRegressor")
LINES = ("ElasticNet", "Lasso", "LinearRegression", "Ridge")


@dataclass(frozen=True, slots=True, eq=False)
class Folded:
    """A pipeline as a network of raw columns: prepared = matrix @ raw + shift, then the model."""

    network: Network
    columns: tuple[Column, ...]
    matrix: Array
    shift: Array

    def __repr__(self) -> str:
        shown = ", ".join(f"{c.name}({len(c.categories)})" if c.categories else c.name for c in self.columns)
        return f"Folded({shown}; {self.network!r})"

    def encode(self, rows: Sequence[Sequence[Any]]) -> Array:
        """Return people (n, inputs) from raw rows that hold the columns of `columns`, in that order."""
        made = np.zeros((len(rows), self.network.inputs))
        for i, row in enumerate(rows):
            start = 0
            if len(row) != len(self.columns):
                raise DomainError(f"row {i}: expected {len(self.columns)} columns, got {len(row)}")
            for column, value in zip(self.columns, row, strict=True):
                if not column.categories:
                    made[i, start] = float(value)
                elif value in column.categories:
                    made[i, start + column.categories.index(value)] = 1.0
                else:
                    raise DomainError(f"row {i}: column {column.name!r} has no category {value!r}")
                start += column.width
        return made

    def raw_metric(self, metric: Metric) -> Metric:
        """Return the same distance for raw columns: with prepared = T raw + t, ||A T (raw difference)||.

        An embedding gets T and t folded into its own first layer instead.
        """
        if metric.width != len(self.matrix):
            raise MetricError(f"the metric is for {metric.width} columns, the pipeline prepares {len(self.matrix)}")
        note = f"{metric.note}; in raw units" if metric.note else "in raw units"
        if metric.phi is None:
            return replace(metric, matrix=metric.matrix @ self.matrix, note=note)
        first, *rest = metric.phi.layers
        bias = first.bias + first.weight @ self.shift
        phi = Network([Layer(first.weight @ self.matrix, bias, first.activations), *rest])
        return replace(metric, phi=phi, note=note)

    def show(self, metric: Metric) -> str:
        """Return a table of what a difference costs before and after folding; eps stays the same number."""
        raw = self.raw_metric(metric)
        if metric.phi is not None:
            raise MetricError("an embedding has no such table: what a difference costs depends on the person")
        lines = [
            "A distance, and so eps, is the same number in prepared and in raw units. What a difference of 1 costs:",
            f"{'column':<32} {'prepared':>12} {'raw':>12}  raw units that make one prepared unit",
        ]
        start = 0
        for column in self.columns:
            for k in range(column.width):
                j = start + k
                name = f"{column.name} = {column.categories[k]}" if column.categories else column.name
                reads = np.flatnonzero(self.matrix[:, j])
                before = [f"{_cost(metric, int(i)):.4g}" for i in reads] or ["-"]
                units = [f"{abs(1.0 / self.matrix[i, j]):.4g}" for i in reads] or ["-"]
                lines.append(f"{name[:32]:<32} {'/'.join(before):>12} {_cost(raw, j):>12.4g}  {'/'.join(units)}")
            start += column.width
        return "\n".join(lines)


def _cost(metric: Metric, column: int) -> float:
    """Return the distance of two people who differ by 1 in one column."""
    one = np.zeros(metric.width)
    one[column] = 1.0
    return metric.distance(one, np.zeros(metric.width))


def read_sklearn(estimator: Any) -> Network:
    """Return the network of a fitted estimator or pipeline; of a pipeline, it takes the raw columns (see `folded`)."""
    return folded(estimator).network


def folded(estimator: Any) -> Folded:
    """Return a fitted estimator or pipeline as a network of raw columns, with what those columns are."""
    model, before = estimator, []
    if kind_of(estimator) == "Pipeline":
        before, model = estimator.steps[:-1], estimator.steps[-1][1]
    raw = Raw(_names(estimator))
    table: Sequence[Prepared] = [Prepared(i) for i in range(len(raw.names))]
    for name, step in before:
        table = prepared(step, table, raw, f"step {name!r}")
    columns, matrix, shift = _layout(table, raw)
    graph = Graph(matrix.shape[1])
    rows = np.array([int(np.flatnonzero(row)[0]) if row.any() else 0 for row in matrix])
    picked = graph.inputs if np.array_equal(rows, np.arange(matrix.shape[1])) else graph.take(graph.inputs, rows)
    value = graph.shift(graph.scale(picked, matrix[np.arange(len(rows)), rows]), shift)
    return Folded(graph.network(_model(graph, value, model)), columns, matrix, shift)


def _names(estimator: Any) -> list[str]:
    """Return the names of the raw columns, or numbers where the estimator was fitted without names."""
    steps = [step for _, step in estimator.steps] if kind_of(estimator) == "Pipeline" else [estimator]
    first = next((step for step in steps if hasattr(step, "n_features_in_")), None)
    if first is None:
        raise ModelError(f"{type(estimator).__name__} is not fitted")
    count, names = first.n_features_in_, getattr(first, "feature_names_in_", None)
    return [f"column {i}" for i in range(int(count))] if names is None else [str(name) for name in names]


def _layout(table: Sequence[Prepared], raw: Raw) -> tuple[tuple[Column, ...], Array, Array]:
    """Return the raw columns that are read, and the map from them to the prepared ones; dropped ones have no part."""
    used = sorted({column.raw for column in table} | raw.categories.keys())
    columns = tuple(Column(raw.names[i], raw.categories.get(i, ())) for i in used)
    starts = dict(zip(used, np.cumsum([0, *(column.width for column in columns)]), strict=False))
    matrix = np.zeros((len(table), sum(column.width for column in columns)))
    for i, column in enumerate(table):
        if column.category is None and column.raw in raw.categories:
            raise ModelError(f"column {raw.names[column.raw]!r} is read both as a number and as categories")
        matrix[i, starts[column.raw] + (column.category or 0)] = column.factor
    return columns, matrix, np.array([column.shift for column in table])


# --- estimators -------------------------------------------------------------------------------------------------------


def _model(graph: Graph, value: Value, model: Any) -> Value:
    kind = kind_of(model)
    if kind in PERCEPTRONS:
        return _perceptron(graph, value, model, kind)
    if kind in LINES:
        return _line(graph, value, model, kind)
    if kind == "LogisticRegression":
        if getattr(model, "multi_class", None) in ("multinomial", "ovr"):
            raise ModelError(f"LogisticRegression(multi_class={model.multi_class!r}) is not read: leave it out")
        line = _line(graph, value, model, kind)
        return graph.activate(line, "sigmoid", kind) if len(line) == 1 else common.softmax(graph, line, kind)
    known = ", ".join((*PERCEPTRONS, "LogisticRegression", *LINES))
    raise ModelError(f"the estimator {type(model).__name__} is not read\nread are: {known}")


def _line(graph: Graph, value: Value, model: Any, kind: str) -> Value:
    if not hasattr(model, "coef_"):
        raise ModelError(f"{kind} is not fitted")
    return _affine(graph, value, np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_), kind)


def _affine(graph: Graph, value: Value, weight: Any, bias: Any, where: str) -> Value:
    rows = np.asarray(weight, dtype=np.float64)
    offset = np.broadcast_to(np.asarray(bias, dtype=np.float64), (len(rows),))
    finite(where, rows, offset)
    return graph.shift(graph.product(value, rows), offset)


def _perceptron(graph: Graph, value: Value, model: Any, kind: str) -> Value:
    if not hasattr(model, "coefs_"):
        raise ModelError(f"{kind} is not fitted")
    if model.activation not in HIDDEN:
        raise ModelError(f"{kind}: the activation {str(model.activation)[:60]!r} is not read")
    if model.out_activation_ not in (*HIDDEN, "softmax"):
        raise ModelError(f"{kind}: the output {str(model.out_activation_)[:60]!r} is not read")
    for i, (weight, bias) in enumerate(zip(model.coefs_, model.intercepts_, strict=True)):
        where = f"{kind}, layer {i}"
        last = i == len(model.coefs_) - 1
        name = model.out_activation_ if last else model.activation
        value = _affine(graph, value, np.asarray(weight).T, bias, where)
        value = common.softmax(graph, value, where) if name == "softmax" else graph.activate(value, HIDDEN[name], where)
    return value
