"""What users hand over on the command line: schemas, people, parts of the domain, and files to write."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from likewise import datasets
from likewise.domain import Domain, OneHot
from likewise.errors import DomainError, FileError, InputError, MetricError, MissingExtra
from likewise.load import Schema, load, read_schema
from likewise.load.people import People, read_people
from likewise.metric import Metric, WeightedLp
from likewise.network import Network
from likewise.rounding import Array


def model_of(source: str) -> Network:
    """Return the network of a model file."""
    _refuse_pipe(source)
    return load(source)


def _refuse_pipe(source: str) -> None:
    """Refuse what is neither a file nor a folder, before reading from it could wait forever."""
    path = Path(source)
    if path.exists() and not path.is_file() and not path.is_dir():
        raise FileError(f"cannot read {source}: it is no regular file")


def schema_of(source: str, metric: str | None) -> Schema:
    """Return who can exist and who is similar, from an embedded data set's name or a toml file."""
    if source in datasets.NAMES:
        data = datasets.load(source)
        chosen = _norm(metric, data.metric("linf")) or data.metric(metric or "mahalanobis")
        return Schema(data.domain, chosen, data.title, data.source)
    if not Path(source).suffix and not Path(source).exists():
        names = ", ".join(datasets.NAMES)
        raise FileError(f"{source}: neither a schema file nor an embedded data set (which are: {names})")
    _refuse_pipe(source)
    schema = read_schema(source)
    if metric in (None, schema.metric.kind):
        return schema
    norm = _norm(metric, WeightedLp(np.ones(schema.domain.width)))
    if norm is None:
        known = f"{schema.metric.kind!r}, and linf, l1, l2, ... with weight 1 on every column"
        raise MetricError(f"--metric {metric}: {source} defines a metric of kind {known}")
    return Schema(schema.domain, norm, schema.title, schema.source)


def _norm(name: str | None, largest: Metric) -> Metric | None:
    """Return the metric of "linf", "l1", "l2" or any other lp with the weights of the l-inf one, or None."""
    try:
        p = float((name or "").removeprefix("l")) if (name or "").startswith("l") else None
    except ValueError:
        return None
    return None if p is None else WeightedLp(np.diagonal(largest.matrix), p)


def left_of(person: str | None, where: Sequence[str] | None, domain: Domain) -> Domain | Array | None:
    """Return the left person of --left, the people of --where, or None for everyone."""
    if person is not None:
        return read_person(person, domain)
    return part_of(domain, where) if where else None


def read_person(path: str | os.PathLike[str], domain: Domain) -> Array:
    """Return the one person of a csv file: a line of feature names, a line of values in the user's own units."""
    people = read_people(path, domain)
    if len(people.names) != 1:
        raise FileError(f"{path}: needs a line of feature names and one line of values, has {len(people.names)}")
    if people.extra:
        raise FileError(f"{path}: column {next(iter(people.extra))[:60]!r} is not a feature of the schema")
    try:
        return domain.require(people.X[0])
    except DomainError as error:
        raise DomainError(f"{path}: {error}") from None


def people_of(source: str, domain: Domain) -> People:
    """Return the people of a csv file, or the test people of an embedded data set."""
    if source not in datasets.NAMES:
        return read_people(source, domain)
    data = datasets.load(source)
    if data.domain.features != domain.features:
        raise DomainError(f"--people {source}: these people have other features than the schema")
    names = tuple(f"test {i}" for i in range(len(data.X_test)))
    return People(data.X_test, names, {}, {})


def part_of(domain: Domain, where: Sequence[str]) -> Domain:
    """Return the part of the domain within limits such as "age=25:40" or "job=a,b", in the user's own units."""
    known = {feature.name: feature for feature in domain.features}
    limits: dict[str, Any] = {}
    for text in where:
        name = max((name for name in known if text.startswith(f"{name}=")), key=len, default=None)
        if name is None:
            raise DomainError(
                f"--where {text!r}: write feature=low:high or feature=category,category\nfeatures: {', '.join(known)}"
            )
        if name in limits:
            raise DomainError(f"--where: the feature {name!r} is limited twice")
        limits[name] = _limit(known[name], text[len(name) + 1 :])
    try:
        return domain.where(**limits)
    except DomainError as error:
        raise DomainError(f"--where: {error}") from None


def _limit(feature: Any, text: str) -> Any:
    if isinstance(feature, OneHot):
        names = {*feature.values, *(feature.display.category(value) for value in feature.values)}
        return [text] if text in names else [part.strip() for part in text.split(",") if part.strip()]
    low, colon, high = text.partition(":")
    ends = _end(feature.name, low, -math.inf), _end(feature.name, high if colon else low, math.inf)
    if not colon and not low.strip():
        raise DomainError(f"--where {feature.name}=: needs low:high or a number")
    return ends


def _end(name: str, text: str, default: float) -> float:
    try:
        return float(text) if text.strip() else default
    except ValueError:
        raise DomainError(f"--where {name}: needs low:high or a number, got {text[:40]!r}") from None


def require_writable(target: Path, flag: str, inputs: Sequence[str | Path] = ()) -> None:
    """Refuse, before the long run, an output that could not be written or that would replace an input."""
    folder = target.parent
    if not folder.is_dir():
        raise FileError(f"{flag} {target}: there is no folder {folder}")
    if target.is_dir():
        raise FileError(f"{flag} {target} is a folder: name a file in it")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FileError(f"{flag} {target}: the folder {folder} is not writable")
    for given in inputs:
        if same(target, Path(given)):
            raise InputError(f"{flag} {target} would replace the input {given}: name another file")


def same(one: Path, other: Path) -> bool:
    """Tell whether two paths are one file."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()


def require_report() -> None:
    """Refuse, before the long run, what the report would refuse after it."""
    if find_spec("jinja2") is None:
        raise MissingExtra("jinja2", "report")
