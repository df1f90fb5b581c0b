"""People from a csv file, in the user's own units: "age" in years, "job" by its category.

Numbers are mapped back through the display of their feature, (cell - offset) / factor; a schema without a display
has them in the network's units already. Columns that the schema does not have are kept aside as text.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from likewise.domain import Continuous, Domain, Integer, OneHot
from likewise.errors import DomainError
from likewise.load._arrays import listed
from likewise.load._table import Csv, is_missing, read_csv, to_number
from likewise.rounding import Array

SNAP = 1e-9  # a number this near to a bound or a step, in shares of the range, is that bound or step


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """People in the network's units, one row each, with a name each ("line 2").

    `extra` are the columns of the file that the domain does not have. `outside` says of some people, by row, why
    they cannot exist in the domain; they are left as they are.
    """

    X: Array
    names: tuple[str, ...]
    extra: Mapping[str, tuple[str, ...]]
    outside: Mapping[int, str]

    def __repr__(self) -> str:
        return f"People({len(self.names)}, {len(self.outside)} outside of the domain)"


def read_people(path: str | os.PathLike[str], domain: Domain) -> People:
    """Read people in the user's units; a missing column or value, no number, or an unknown category is refused."""
    table = read_csv(path)
    known = {feature.name for feature in domain.features}
    absent = [feature.name for feature in domain.features if feature.name not in table.columns]
    if absent:
        raise DomainError(
            f"{table.file}: the column {listed(absent)} of the schema is missing\n"
            f"found: {listed(list(table.columns), 8)}"
        )
    X = encode(table, domain)
    names = tuple(f"line {line}" for line in table.lines)
    extra = {name: cells for name, cells in table.columns.items() if name not in known}
    return People(X, names, extra, _outside(X, names, domain))


def encode(table: Csv, domain: Domain) -> Array:
    """Return the rows of a table in the network's units."""
    X = np.zeros((len(table.lines), domain.width))
    for feature, span in domain.spans:
        if isinstance(feature, OneHot):
            X[:, span] = np.eye(feature.width)[_categories(table, feature)]
        else:
            X[:, span.start] = _numbers(table, feature)
    X.setflags(write=False)
    return X


def _categories(table: Csv, feature: OneHot) -> list[int]:
    place = {value: i for i, value in enumerate(feature.values)}
    codes = []
    for row, cell in enumerate(table.columns[feature.name]):
        if cell not in place:
            what = "the value is missing" if is_missing(cell) else f"unknown category {cell[:60]!r}"
            raise DomainError(f"{table.cell(row, feature.name)}: {what}\nknown: {listed(list(feature.values), 12)}")
        codes.append(place[cell])
    return codes


def _numbers(table: Csv, feature: Continuous | Integer) -> Array:
    raw = np.empty(len(table.lines))
    for row, cell in enumerate(table.columns[feature.name]):
        value = to_number(cell)
        if value is None:
            what = "the value is missing" if is_missing(cell) else f"needs a number, got {cell[:60]!r}"
            raise DomainError(f"{table.cell(row, feature.name)}: {what}")
        raw[row] = value
    shown = feature.display
    if shown.factor == 0.0:
        raise DomainError(f"feature {feature.name!r}: a display factor of 0 cannot be undone; correct the schema")
    return snapped((raw - shown.offset) / shown.factor, feature)


def snapped(values: Array, feature: Continuous | Integer) -> Array:
    """Return the values, with what rounding moved off a bound or a step put back on it."""
    width = feature.high - feature.low
    near = SNAP * (width or 1.0)
    targets = [np.full_like(values, feature.low), np.full_like(values, feature.high)]
    if isinstance(feature, Integer):
        targets.insert(0, feature.nearest(values))
    for target in targets:
        values = np.where(np.abs(values - target) <= near, target, values)
    return values


def _outside(X: Array, names: tuple[str, ...], domain: Domain) -> dict[int, str]:
    """Return why people cannot exist, by row; only those who look it are examined one by one."""
    A, b = domain.constraints
    doubtful = ~((domain.lower <= X) & (domain.upper >= X)).all(axis=1) | ~(b >= X @ A.T).all(axis=1)
    for feature, span in domain.spans:
        if isinstance(feature, Integer):
            doubtful |= feature.nearest(X[:, span.start]) != X[:, span.start]
    reasons = {}
    for row in np.flatnonzero(doubtful).tolist():
        try:
            domain.require(X[row], names[row])
        except DomainError as error:
            reasons[row] = str(error)
    return reasons
