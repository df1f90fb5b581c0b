"""schema.toml: who can exist and who is similar, in a file that people write by hand.

For example:

    title = "German credit"
    [[feature]]
    name = "age"
    kind = "continuous"
    low = 0.0
    high = 1.0
    title = "age"            # from here on optional, for people: offset + factor * value, and a unit
    offset = 19.0
    factor = 56.0
    unit = "years"
    [[feature]]
    name = "children"
    kind = "integer"         # low, low + step, ..., high
    low = 0
    high = 9
    step = 1
    [[feature]]
    name = "status"
    kind = "one_hot"
    values = ["A11", "A12"]
    labels = { A11 = "overdrawn" }
    [[constraint]]           # sum of coefficient * column <= at_most; the column of a category is feature=category
    terms = { "status=A11" = 0.5, age = 1.0 }
    at_most = 1.0
    [metric]
    kind = "mahalanobis"     # S = [[...]], or A = [[...]] with S = A^T A, or file = "metric.npz" with key S or A
    # kind = "lp"            # p = "inf" or a number >= 1; weights = 1.0 or one per column, or file with key weights
    # relaxation = "box"     # the paper's rectangle instead of the ball
    # kind = "embedding"     # file = "phi.npz", a network (W0, b0, activations), whose outputs are compared by
    # [metric.inner]         # another metric, given as above
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from likewise.domain import Continuous, Display, Domain, Feature, Integer, OneHot
from likewise.errors import DomainError, FileError, InputError, MetricError
from likewise.load._arrays import brief, listed, numbers, read_arrays, regular, take
from likewise.load.npz import read_npz
from likewise.metric import Embedding, Mahalanobis, Metric, WeightedLp
from likewise.metric._form import relaxed
from likewise.rounding import Array

LIMIT = 1 << 26  # no schema is longer than this
TOP = ("title", "source", "feature", "constraint", "metric")
SHOWN = ("title", "offset", "factor", "unit", "labels")
KINDS: Mapping[str, tuple[str, ...]] = {
    "continuous": ("low", "high"),
    "integer": ("low", "high", "step"),
    "one_hot": ("values",),
}
# what defines a metric, here or in its file; `scales` are w^(1/p), for weights that do not round back
METRICS: Mapping[str, tuple[str, ...]] = {"mahalanobis": ("S", "A"), "lp": ("weights", "scales"), "embedding": ()}


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """Who can exist and who is similar, with a title and where the data came from."""

    domain: Domain
    metric: Metric
    title: str = ""
    source: str = ""

    def __repr__(self) -> str:
        return f"Schema({self.title!r}, {self.domain!r}, {self.metric!r})"


def read_schema(path: str | os.PathLike[str]) -> Schema:
    """Read a schema.toml; whatever is unknown or missing is an error that names the file and the feature."""
    file = Path(path)
    data = _parse(file)
    _refuse_unknown(f"{file}", data, TOP, FileError)
    title, source = (_text(f"{file}", data, key) for key in ("title", "source"))
    tables = data.get("feature")
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise DomainError(f"{file}: needs at least one [[feature]] table")
    features = [_feature(file, i, table) for i, table in enumerate(tables)]
    constraints = _constraints(file, data.get("constraint", []))
    try:
        domain = Domain(features, constraints=constraints)
        domain.person()  # or an error that says which constraints leave nobody
    except DomainError as error:
        raise DomainError(f"{file}: {error}") from None
    return Schema(domain, _metric(file, data.get("metric"), domain.width), title, source)


def _parse(file: Path) -> dict[str, Any]:
    try:
        with regular(file).open("rb") as stream:
            content = stream.read(LIMIT + 1)
        if len(content) > LIMIT:
            raise FileError(f"{file}: longer than {LIMIT >> 20} MiB, which is no schema")
        return tomllib.loads(content.decode("utf-8"))
    except OSError as error:
        raise FileError(f"cannot read {file}: {error.strerror or brief(error)}") from None
    except FileError:
        raise
    except (ValueError, RecursionError, MemoryError) as error:
        raise FileError(f"{file} is not a toml file: {brief(error)}") from None


def _feature(file: Path, index: int, table: Mapping[str, Any]) -> Feature:
    name = table.get("name")
    if not isinstance(name, str) or not name:
        raise DomainError(f"{file}: feature number {index + 1}: needs a name, got {str(name)[:60]!r}")
    where = f"{file}: feature {name!r}"
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise DomainError(f"{where}: kind must be one of {listed(list(KINDS))}, got {str(kind)[:60]!r}")
    _refuse_unknown(where, table, ("name", "kind", *KINDS[kind], *SHOWN), DomainError)
    display = _display(where, table)
    try:
        if kind == "continuous":
            return Continuous(name, _number(where, table, "low"), _number(where, table, "high"), display)
        if kind == "integer":
            low, high = _number(where, table, "low"), _number(where, table, "high")
            return Integer(name, low, high, _number(where, table, "step", 1.0), display)
        feature = OneHot(name, _values(where, table), display)
    except DomainError as error:
        raise DomainError(str(error) if str(error).startswith(where) else f"{file}: {error}") from None
    stray = [value for value, _ in display.labels if value not in feature.values]
    if stray:
        raise DomainError(f"{where}: labels name the unknown category {listed(stray)}")
    return feature


def _display(where: str, table: Mapping[str, Any]) -> Display:
    labels = table.get("labels", {})
    if not isinstance(labels, dict) or not all(isinstance(label, str) for label in labels.values()):
        raise DomainError(f"{where}: labels must be a table of category = text")
    return Display(
        _number(where, table, "offset", 0.0),
        _number(where, table, "factor", 1.0),
        _text(where, table, "unit"),
        tuple(labels.items()),
        _text(where, table, "title"),
    )


def _constraints(file: Path, tables: object) -> list[tuple[dict[str, float], float]]:
    """Return the [[constraint]] tables as pairs ({column: coefficient}, at_most); the domain knows the columns."""
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise DomainError(f"{file}: constraints are [[constraint]] tables")
    rows = []
    for i, table in enumerate(tables):
        where = f"{file}: constraint {i + 1}"
        _refuse_unknown(where, table, ("terms", "at_most"), DomainError)
        terms = table.get("terms")
        if not isinstance(terms, dict) or not terms:
            raise DomainError(f"{where}: terms must be a table of column = coefficient")
        rows.append(({name: _number(where, terms, name) for name in terms}, _number(where, table, "at_most")))
    return rows


def _values(where: str, table: Mapping[str, Any]) -> list[str]:
    values = table.get("values")
    if not isinstance(values, list) or not all(isinstance(v, str | int) and not isinstance(v, bool) for v in values):
        raise DomainError(f"{where}: values must be a list of categories")
    return [str(value) for value in values]


def _number(where: str, table: Mapping[str, Any], key: str, default: float | None = None) -> float:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise DomainError(f"{where}: {key} must be a finite number, got {str(value)[:60]!r}")
    return float(value)


def _text(where: str, table: Mapping[str, Any], key: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise FileError(f"{where}: {key} must be text, got {str(value)[:60]!r}")
    return value


def _refuse_unknown(where: str, table: Mapping[str, Any], known: tuple[str, ...], kind: type[InputError]) -> None:
    unknown = [key for key in table if key not in known]
    if unknown:
        raise kind(f"{where}: unknown key {listed(unknown)}\nknown: {', '.join(known)}")


def _metric(file: Path, table: object, width: int, where: str = "[metric]", columns: str = "the features") -> Metric:
    where = f"{file}: {where}" if where.startswith("[") else where
    if not isinstance(table, dict):
        raise MetricError(f"{file}: needs a {where.split(': ')[-1]} table with kind = one of {', '.join(METRICS)}")
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in METRICS:
        raise MetricError(f"{where}: unknown kind {str(kind)[:60]!r}; known: {', '.join(METRICS)}")
    metric = _embedding(file, where, table) if kind == "embedding" else _linear(file, where, kind, table, width)
    if metric.width != width:
        raise MetricError(f"{where}: {kind} is for {metric.width} columns, {columns} have {width}")
    return metric


def _embedding(file: Path, where: str, table: Mapping[str, Any]) -> Metric:
    _refuse_unknown(where, table, ("kind", "file", "inner"), MetricError)
    phi = read_npz(_beside(file, where, table.get("file")))
    inner = _metric(file, table.get("inner"), phi.outputs, "[metric.inner]", "the outputs of the embedding")
    try:
        return Embedding(phi, inner)
    except MetricError as error:
        raise MetricError(f"{where}: {brief(error)}") from None


def _linear(file: Path, where: str, kind: str, table: Mapping[str, Any], width: int) -> Metric:
    extra = ("p",) if kind == "lp" else ()
    _refuse_unknown(where, table, ("kind", "file", *METRICS[kind], *extra, "relaxation"), MetricError)
    key, given = _given(file, where, table, METRICS[kind])
    relaxation = table.get("relaxation")
    try:
        if kind == "lp":
            given = np.full(width, given) if np.ndim(given) == 0 else given
            weighted = WeightedLp(given, _p(table), relaxation)  # refuses what is negative, of the wrong shape, ...
            return weighted if key == "weights" else relaxed(Metric(np.diag(given), _p(table), "lp"), relaxation)
        if key == "S":
            return Mahalanobis(given, relaxation)
        return relaxed(Metric(given, 2.0, "mahalanobis"), relaxation)
    except MetricError as error:
        raise MetricError(f"{where}: {brief(error)}") from None


def _given(file: Path, where: str, table: Mapping[str, Any], keys: tuple[str, ...]) -> tuple[str, Array]:
    """Return the one array that defines the metric, inline or from its file."""
    sources = [key for key in ("file", *keys) if key in table]
    if len(sources) != 1:
        found = f"got {listed(sources)}" if sources else "got none"
        raise MetricError(f"{where}: needs exactly one of file, {', '.join(keys)}; {found}")
    if sources != ["file"]:
        try:
            return sources[0], numbers(np.array(table[sources[0]]))
        except ValueError as error:
            raise MetricError(f"{where}: {sources[0]} {brief(error)}") from None
    beside = _beside(file, where, table["file"])
    arrays, others = read_arrays(beside, lambda key: key in keys)
    unknown = [key for key in others if key != "meta"]
    if unknown or len(arrays) != 1:
        found = listed([*arrays, *unknown]) or "nothing"
        raise MetricError(f"{beside}: needs exactly one array, named {' or '.join(keys)}; found {found}")
    key = next(iter(arrays))
    return key, take(beside, arrays, key, MetricError)


def _beside(file: Path, where: str, name: object) -> Path:
    """Return the metric's file, which must lie inside of the schema's folder, symbolic links followed."""
    if not isinstance(name, str) or not name:
        raise MetricError(f"{where}: file must be the name of an npz file, got {str(name)[:60]!r}")
    try:
        folder = file.parent.resolve()
        beside = (folder / name).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise FileError(f"{where}: cannot find {name[:200]!r}: {brief(error)}") from None
    if not beside.is_relative_to(folder):
        raise FileError(f"{where}: file {name[:200]!r} lies outside of the schema's folder")
    return beside


def _p(table: Mapping[str, Any]) -> float:
    p = table.get("p", "inf")
    if isinstance(p, bool) or not (p == "inf" or isinstance(p, int | float)):
        raise MetricError(f"p must be 'inf' or a number >= 1, got {str(p)[:60]!r}")
    return float(p)
