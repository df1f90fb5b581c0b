"""From a csv file to a schema to edit: `likewise schema DATA.csv --sensitive a,b --target y`.

Numbers are scaled to [0, 1] by their range, with the way back for people; a few whole numbers stay whole; text
becomes categories. The metric is learnt from the sensitive columns. Everything that was decided is said in notes,
and stands as comments in the file.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from likewise.domain import Continuous, Display, Domain, Feature, Integer, OneHot
from likewise.errors import DomainError, FileError, InputError, MetricError
from likewise.load import _mine
from likewise.load._arrays import listed
from likewise.load._mine import Rule
from likewise.load._table import Csv, is_missing, read_csv, to_numbers
from likewise.load._toml import rule_lines, write_schema
from likewise.load.people import encode
from likewise.load.schema import Schema
from likewise.metric import WeightedLp
from likewise.metric.learn import Learnt, learn_mahalanobis
from likewise.rounding import Array

FEW = 20  # whole numbers with at most this many different values stay whole
STEPS = 100  # and with at most this many steps from the least to the largest
CATEGORIES = 100  # text with more different values than this is an identifier, not a category
ENTRIES = 1 << 26  # numbers that are held at a time
RULES = 20  # suggestions that are written; the rest is counted


@dataclass(frozen=True, slots=True, eq=False)
class Inferred:
    """A schema inferred from a table, the people in it, and what was decided on the way.

    `suggestions` are constraints that all these people obey; they are part of the domain if they were asked for.
    `y` is the target: two values as 0 and 1, more words as the number of the word, more numbers as they are.
    """

    schema: Schema
    X: Array
    y: Array | None
    notes: tuple[str, ...]
    suggestions: tuple[Rule, ...]
    mined: bool

    def __repr__(self) -> str:
        return f"Inferred({len(self.X)} people, {self.schema.domain!r}, {len(self.suggestions)} suggestions)"


def infer(
    path: str | os.PathLike[str],
    target: str | None = None,
    sensitive: Sequence[str] = (),
    *,
    keep: bool = False,
    mine: bool = False,
) -> Inferred:
    """Infer who can exist and who is similar from a csv file with a header.

    Sensitive columns are dropped, or kept as features that may differ at distance 0 (`keep`). With `mine` the
    suggested constraints become part of the domain.
    """
    table, notes = _complete(read_csv(path), target, sensitive)
    names = [name for name in table.columns if name != target and (keep or name not in sensitive)]
    features, left_out = _features(table, names)
    if not features:
        raise FileError(f"{table.file}: no column is left to make a feature of")
    domain = Domain(features)
    if len(table.lines) * domain.width > ENTRIES:
        raise FileError(
            f"{table.file}: {len(table.lines):,} people of {domain.width} columns are too many; give a sample"
        )
    X = encode(table, domain)
    learnt = _metric(table, X, sensitive, domain)
    found = _mine.mine(X, domain, sensitive)
    if mine and found:
        domain = Domain(features, constraints=[_mine.rows(found[:RULES], domain.width)])
    y, meaning = _target(table, target)
    notes += [
        *meaning,
        *_sensitive_note(sensitive, keep),
        *left_out.values(),
        *_counts(domain),
        *learnt.summary.splitlines(),
    ]
    notes += _suggestion_notes(found, mine)
    schema = Schema(domain, learnt.metric, title=table.file.stem, source=f"inferred from {table.file.name}")
    return Inferred(schema, X, y, tuple(notes), tuple(found[:RULES]), mine)


def write_inferred(inferred: Inferred, path: str | os.PathLike[str]) -> Path:
    """Write the schema with the notes as comments, its metric beside it; suggestions are commented out unless mined."""
    tail = []
    if inferred.suggestions and not inferred.mined:
        tail = ["", "Suggested constraints: remove the # of those that are true of everyone, not only of these people."]
        for rule in inferred.suggestions:
            tail += ["", rule.text, *rule_lines(inferred.schema.domain, rule.terms, rule.at_most)]
    return write_schema(inferred.schema, path, head=inferred.notes, tail=tail)


# ------------------------------------------------------------------------------------------------------- columns


def _complete(table: Csv, target: str | None, sensitive: Sequence[str]) -> tuple[Csv, list[str]]:
    """Return the rows without a missing value, and how many there were."""
    if isinstance(sensitive, str):
        raise InputError(f"sensitive must be a list of columns, got the text {sensitive!r}")
    asked = [*([target] if target is not None else []), *sensitive]
    unknown = [name for name in asked if name not in table.columns]
    if unknown:
        raise FileError(f"{table.file}: there is no column {listed(unknown)}\nfound: {listed(list(table.columns), 12)}")
    if len(set(asked)) != len(asked):
        raise InputError(
            f"the column {listed([n for n in asked if asked.count(n) > 1][:1])} is named twice as target or sensitive"
        )
    missing = {name: np.array([is_missing(cell) for cell in cells]) for name, cells in table.columns.items()}
    there = ~np.any(list(missing.values()), axis=0)
    if there.sum() < 2:
        worst = max(missing, key=lambda name: int(missing[name].sum()))
        raise FileError(
            f"{table.file}: {there.sum()} rows without a missing value, at least 2 are needed\n"
            f"column {worst!r} lacks most: {missing[worst].sum()} of {len(there)}"
        )
    rows_kept = np.flatnonzero(there).tolist()
    columns = {name: tuple(cells[i] for i in rows_kept) for name, cells in table.columns.items()}
    note = (
        f"{len(rows_kept):,} people; {len(there) - len(rows_kept):,} more rows have a missing value and were left out"
    )
    return Csv(table.file, columns, tuple(table.lines[i] for i in rows_kept)), [note]


def _features(table: Csv, names: Sequence[str]) -> tuple[list[Feature], dict[str, str]]:
    """Return a feature per column, and why some columns are none."""
    features: list[Feature] = []
    left_out: dict[str, str] = {}
    for name in names:
        numbers = to_numbers(table.columns[name])
        if numbers is not None:
            features.append(_number(name, numbers))
            continue
        values = sorted(set(table.columns[name]))
        if len(values) > CATEGORIES:
            left_out[name] = (
                f"left out: {name!r} has {len(values):,} different texts, an identifier rather than a category"
            )
        else:
            features.append(OneHot(name, values))
    return features, left_out


def _number(name: str, values: Array) -> Feature:
    low, high = float(values.min()), float(values.max())
    if low == high:
        return Continuous(name, 0.0, 0.0, Display(low, 1.0))
    width = high - low
    if not math.isfinite(width):
        raise DomainError(f"column {name!r} runs from {low:g} to {high:g}: too wide for a number in float64")
    display = Display(low, width)
    distinct = np.unique(values)
    if len(distinct) <= FEW and (distinct == np.round(distinct)).all() and max(abs(low), abs(high)) < 2**53:
        step = math.gcd(*(int(v - low) for v in distinct))
        if width / step <= STEPS:
            return Integer(name, 0.0, 1.0, step / width, display)
    return Continuous(name, 0.0, 1.0, display)


def _target(table: Csv, target: str | None) -> tuple[Array | None, list[str]]:
    if target is None:
        return None, []
    numbers = to_numbers(table.columns[target])
    words, codes = np.unique(np.array(table.columns[target]) if numbers is None else numbers, return_inverse=True)
    if numbers is not None and len(words) > 2:
        return numbers, [f"target {target!r}: numbers from {words[0]:g} to {words[-1]:g}, as they are"]
    if len(words) < 2:
        raise FileError(f"{table.file}: the target {target!r} is {words.tolist()[0]!r} for everyone")
    if len(words) > CATEGORIES:
        raise FileError(f"{table.file}: the target {target!r} has {len(words):,} different texts: too many for classes")
    meaning = ", ".join(f"y = {i} for {word if numbers is None else f'{word:g}'}" for i, word in enumerate(words[:12]))
    return codes.astype(np.float64), [f"target {target!r}: {meaning}"]


# -------------------------------------------------------------------------------------------------------- metric


def _metric(table: Csv, X: Array, sensitive: Sequence[str], domain: Domain) -> Learnt:
    if not sensitive:
        metric = WeightedLp(np.ones(domain.width))
        return Learnt(metric, "No sensitive column was named: the metric is the largest difference of any column.")
    values: dict[str, np.ndarray] = {}
    for name in sensitive:
        numbers = to_numbers(table.columns[name])
        values[name] = np.array(table.columns[name]) if numbers is None else numbers
        if numbers is None and len(np.unique(values[name])) > CATEGORIES:
            raise FileError(f"{table.file}: the sensitive column {name!r} has more than {CATEGORIES} different texts")
    try:
        return learn_mahalanobis(X, values, domain)
    except MetricError as error:
        raise MetricError(f"{table.file}: {error}") from None


# --------------------------------------------------------------------------------------------------------- notes


def _sensitive_note(sensitive: Sequence[str], keep: bool) -> list[str]:
    if not sensitive:
        return []
    how = "kept as features, and free to differ" if keep else "dropped: they are no features"
    return [f"sensitive columns {', '.join(sensitive)}: {how}"]


def _counts(domain: Domain) -> list[str]:
    whole = [f.name for f in domain.features if isinstance(f, Integer)]
    fixed = [f"{f.name} = {f.text(f.low)}" for f in domain.features if isinstance(f, Continuous) and f.low == f.high]
    notes = [f"whole numbers, because there are few different ones: {', '.join(whole)}"] if whole else []
    return notes + ([f"always the same: {', '.join(fixed)}"] if fixed else [])


def _suggestion_notes(found: Sequence[Rule], mined: bool) -> list[str]:
    notes = ["Everyone who can exist by this file includes people who cannot: every combination of values is allowed."]
    if not found:
        return [*notes, "No two values were found that never come together though by chance they would."]
    how = "Added as constraints" if mined else "Suggested constraints, commented out below"
    more = f" ({len(found) - RULES:,} more were found)" if len(found) > RULES else ""
    return [*notes, f"{how}{more}:", *(f"  {rule.text}" for rule in found[:RULES])]
