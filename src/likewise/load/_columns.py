"""Preprocessing of scikit-learn as one affine map: which raw column each prepared column reads, and how.

Every transformer that is read works column by column, so a prepared column is factor * raw + shift, where raw is a
number as it stands in the data, or 1 for one category of a column and 0 for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from likewise.errors import ModelError
from likewise.rounding import Array


@dataclass(frozen=True, slots=True)
class Column:
    """A raw column: its name, and its categories in the order of their one-hot columns; a number has none."""

    name: str
    categories: tuple[Any, ...] = ()

    @property
    def width(self) -> int:
        """How many columns of the network it takes."""
        return max(1, len(self.categories))


@dataclass(frozen=True, slots=True)
class Prepared:
    """A prepared column: factor * (raw number, or whether the raw column is that category) + shift."""

    raw: int
    category: int | None = None
    factor: float = 1.0
    shift: float = 0.0

    def then(self, factor: float, shift: float) -> Prepared:
        """Return factor * this + shift."""
        return replace(self, factor=factor * self.factor, shift=factor * self.shift + shift)


@dataclass(slots=True)
class Raw:
    """What is known of the raw columns so far: their names, and how each one is read."""

    names: list[str]
    categories: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    numbers: set[int] = field(default_factory=set)


Table = Sequence[Prepared]


def kind_of(thing: object) -> str:
    """Return the name of a scikit-learn class, or '' for anything else; nothing is imported for it."""
    return type(thing).__name__ if type(thing).__module__.split(".")[0] == "sklearn" else ""


def prepared(step: Any, table: Table, raw: Raw, where: str) -> Table:
    """Return the columns that a fitted transformer makes out of others."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return table
    if isinstance(step, str) and step == "drop":
        return []
    reader = TRANSFORMERS.get(kind_of(step))
    if reader is None:
        known = ", ".join(sorted(TRANSFORMERS))
        raise ModelError(f"{where}: the transformer {type(step).__name__} is not read\nread are: {known}")
    return reader(step, table, raw, where)


def _number(columns: Table, raw: Raw, where: str) -> Table:
    """Mark raw columns as numbers; one that is also one-hot encoded cannot be."""
    for column in columns:
        if column.category is None:
            if column.raw in raw.categories:
                raise ModelError(
                    f"{where}: column {raw.names[column.raw]!r} is read both as a number and as categories"
                )
            raw.numbers.add(column.raw)
    return columns


def _affine(columns: Table, raw: Raw, where: str, factor: Array, shift: Array) -> Table:
    if len(columns) != len(factor) or not (np.isfinite(factor).all() and np.isfinite(shift).all()):
        raise ModelError(f"{where}: is fitted to {len(factor)} columns or not finite, and {len(columns)} come in")
    moved = zip(_number(columns, raw, where), factor.tolist(), shift.tolist(), strict=True)
    return [column.then(f, s) for column, f, s in moved]


def _centred(centre: str, spread: str) -> Callable[[Any, Table, Raw, str], Table]:
    """Return the reader of a scaler that computes (x - centre) / spread, either of which may be left out."""

    def read(step: Any, table: Table, raw: Raw, where: str) -> Table:
        width = len(table)
        moved = getattr(step, "with_mean", True)  # StandardScaler keeps a mean that it does not subtract
        middle = _fitted(step, centre if moved else "", where, np.zeros(width))
        scale = _fitted(step, spread, where, np.ones(width))
        return _affine(table, raw, where, 1.0 / scale, -middle / scale)

    return read


def _fitted(step: Any, name: str, where: str, default: Array) -> Array:
    """Return a fitted attribute; scikit-learn keeps None where centring or scaling is switched off."""
    if name and not hasattr(step, name):
        raise ModelError(f"{where}: {type(step).__name__} is not fitted")
    found = getattr(step, name) if name else None
    return default if found is None else np.asarray(found, dtype=np.float64)


def _min_max(step: Any, table: Table, raw: Raw, where: str) -> Table:
    if step.clip:
        raise ModelError(f"{where}: MinMaxScaler(clip=True) is not read: leave clip out")
    factor = _fitted(step, "scale_", where, np.ones(0))
    return _affine(table, raw, where, factor, _fitted(step, "min_", where, np.zeros(0)))


def _one_hot(step: Any, table: Table, raw: Raw, where: str) -> Table:
    if not hasattr(step, "categories_"):
        raise ModelError(f"{where}: OneHotEncoder is not fitted")
    if any(found is not None for found in getattr(step, "infrequent_categories_", [])):
        raise ModelError(f"{where}: OneHotEncoder with infrequent categories is not read")
    dropped = step.drop_idx_ if step.drop_idx_ is not None else [None] * len(table)
    made: list[Prepared] = []
    for column, values, without in zip(table, step.categories_, dropped, strict=True):
        name = raw.names[column.raw]
        if column != Prepared(column.raw) or column.raw in raw.numbers:
            raise ModelError(f"{where}: column {name!r} is changed before it is one-hot encoded, or also a number")
        categories = tuple(values.tolist())
        if raw.categories.setdefault(column.raw, categories) != categories:
            raise ModelError(f"{where}: column {name!r} is encoded twice, with different categories")
        made += [Prepared(column.raw, j) for j in range(len(categories)) if j != without]
    return made


def _pipeline(step: Any, table: Table, raw: Raw, where: str) -> Table:
    for name, inner in step.steps:
        table = prepared(inner, table, raw, f"{where}, step {name!r}")
    return table


def _column_transformer(step: Any, table: Table, raw: Raw, where: str) -> Table:
    if not hasattr(step, "transformers_"):
        raise ModelError(f"{where}: ColumnTransformer is not fitted")
    if step.transformer_weights:
        raise ModelError(f"{where}: ColumnTransformer with transformer_weights is not read")
    names = [str(name) for name in getattr(step, "feature_names_in_", [])]
    made: list[Prepared] = []
    for name, inner, chosen in step.transformers_:
        inside = f"{where}, transformer {name!r}"
        picked = [table[i] for i in _chosen(chosen, names, len(table), inside)]
        made += prepared(inner, picked, raw, inside) if picked else []
    return made


def _chosen(columns: Any, names: Sequence[str], width: int, where: str) -> list[int]:
    """Return column numbers from what a ColumnTransformer accepts: numbers, names, masks or slices of them."""
    if isinstance(columns, slice):
        ends = [columns.start, columns.stop]
        if any(isinstance(end, str) for end in ends):
            first = 0 if ends[0] is None else names.index(ends[0])
            return list(range(first, width if ends[1] is None else names.index(ends[1]) + 1))
        return list(range(width))[columns]
    listed = np.atleast_1d(np.asarray(columns))
    if listed.dtype.kind == "b":
        return [int(i) for i in np.flatnonzero(listed)]
    if listed.dtype.kind in "iu":
        return [int(i) % width for i in listed]
    unknown = [str(name) for name in listed if str(name) not in names]
    if unknown:
        raise ModelError(f"{where}: column {unknown[0]!r} is not known by its name")
    return [names.index(str(name)) for name in listed]


def _function(step: Any, table: Table, raw: Raw, where: str) -> Table:
    if step.func is not None:
        raise ModelError(f"{where}: a FunctionTransformer with a function is not read")
    return table


TRANSFORMERS: Mapping[str, Callable[[Any, Table, Raw, str], Table]] = {
    "ColumnTransformer": _column_transformer,
    "FunctionTransformer": _function,  # what "passthrough" becomes when it is fitted
    "MaxAbsScaler": _centred("", "scale_"),
    "MinMaxScaler": _min_max,
    "OneHotEncoder": _one_hot,
    "Pipeline": _pipeline,
    "RobustScaler": _centred("center_", "scale_"),
    "StandardScaler": _centred("mean_", "scale_"),
}
