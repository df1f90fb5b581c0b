"""Examples from a csv file, in the user's own units, and the sensitive features of an embedded data set's people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from likewise.datasets import Dataset, load, split_rows
from likewise.domain import Domain, OneHot
from likewise.errors import DomainError, FileError
from likewise.load import Schema
from likewise.load._table import is_missing, to_numbers
from likewise.load.people import People, read_people
from likewise.rounding import Array
from likewise.train.examples import Examples

SPLIT_SEED = 42  # the split into training and test people is the same for every run


def read_examples(
    path: str, schema: Schema, target: str | None, sensitive: Sequence[str] = ()
) -> tuple[Examples, list[str]]:
    """Return the examples of a csv file, split 80/20, and what was decided on the way, in words.

    `target` is the column of outcomes; it may be left out if the file has just one column that is no feature. Two
    different outcomes are classes, the second of them in order being 1.
    """
    people = read_people(path, schema.domain)
    chosen = _target(path, people, target)
    y, meaning = _outcomes(path, chosen, people)
    unknown = [name for name in sensitive if name not in people.extra]
    if unknown:
        raise FileError(f"{path}: there is no column {unknown[0]!r} beside the features of the schema")
    train, test = split_rows(len(y), SPLIT_SEED)
    notes = [meaning, *([f"{len(people.outside)} people are outside of the domain"] if people.outside else [])]
    examples = Examples(
        people.X[train],
        y[train],
        people.X[test],
        y[test],
        schema.domain,
        schema.metric,
        schema.title or Path(path).stem,
        schema.source,
        {name: np.array(people.extra[name])[test] for name in sensitive},
    )
    return examples, notes


def _target(path: str, people: People, target: str | None) -> str:
    if target is None and len(people.extra) == 1:
        return next(iter(people.extra))
    if target is None or target not in people.extra:
        what = "name the column of outcomes with --target" if target is None else f"there is no column {target!r}"
        found = ", ".join(list(people.extra)[:12]) or "none"
        raise FileError(f"{path}: {what}\ncolumns that are no features: {found}")
    return target


def _outcomes(path: str, target: str, people: People) -> tuple[Array, str]:
    cells = people.extra[target]
    for row, cell in enumerate(cells):
        if is_missing(cell):
            raise FileError(f"{path}: {people.names[row]}, column {target!r}: the outcome is missing")
    numbers = to_numbers(cells)
    values, codes = np.unique(np.array(cells) if numbers is None else numbers, return_inverse=True)
    if len(values) == 2:
        return codes.astype(np.float64), f"target {target!r}: y = 1 for {values[1]}, 0 for {values[0]}"
    if len(values) < 2:
        raise FileError(f"{path}: the target {target!r} is {cells[0][:60]!r} for everyone")
    if numbers is None:
        raise FileError(f"{path}: the target {target!r} has {len(values)} classes: two, or numbers, can be trained on")
    return numbers, f"target {target!r}: numbers from {values[0]:g} to {values[-1]:g}"


def embedded(name: str, schema: Schema) -> Examples:
    """Return the examples of an embedded data set with the metric of a schema, and the test people's groups."""
    data = load(name)
    if data.domain.features != schema.domain.features:
        raise DomainError(f"the data set {name!r} has other features than the schema")
    groups = groups_of(load(name, sensitive="keep"), data.domain)
    return Examples(
        data.X_train, data.y_train, data.X_test, data.y_test, schema.domain, schema.metric, name, data.source, groups
    )


def groups_of(kept: Dataset, without: Domain) -> Mapping[str, np.ndarray]:
    """Return, of a data set that keeps its sensitive features, the categories of the test people in these."""
    groups: dict[str, np.ndarray] = {}
    for feature, span in kept.domain.spans:
        if isinstance(feature, OneHot) and span.start >= without.width:
            groups[feature.name] = np.array(feature.values)[kept.X_test[:, span].argmax(axis=1)]
    return groups
