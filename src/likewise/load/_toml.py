"""Write a schema.toml that reads back to the same digests.

What would not survive as text goes into npz files beside the toml: a mahalanobis metric as its factor A (S = A^T A
has many factors, and only the stored one gives the same bytes again), an embedding as its network.
"""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from likewise.certificate import write_atomically
from likewise.domain import Continuous, Display, Domain, Feature, Integer
from likewise.errors import DomainError, FileError, MetricError
from likewise.load.npz import write_npz
from likewise.load.schema import Schema
from likewise.metric import Metric, WeightedLp
from likewise.rounding import Array


def write_schema(
    schema: Schema, path: str | os.PathLike[str], *, head: Sequence[str] = (), tail: Sequence[str] = ()
) -> Path:
    """Write the schema atomically and return its path; arrays go to <stem>.metric.npz and <stem>.embedding.npz.

    `head` and `tail` are comments for the beginning and the end of the file.
    """
    target = Path(path)
    domain = schema.domain
    whole = Domain(domain.features, constraints=[domain.constraints])
    if domain.digest != whole.digest:
        raise DomainError("a schema holds whole domains only: this one is narrowed to some of its people")
    lines = [*_comments(head), *([""] if head else [])]
    lines += [f"{key} = {_string(text)}" for key, text in (("title", schema.title), ("source", schema.source)) if text]
    for feature in domain.features:
        lines += ["", "[[feature]]", *_feature_lines(feature)]
    for row, bound in zip(*domain.constraints, strict=True):
        used = np.flatnonzero((row != 0.0) | np.signbit(row)).tolist() or [0]  # a table needs at least one term
        terms = [(column, float(row[column])) for column in used]
        lines += ["", *rule_lines(domain, terms, float(bound))]
    lines += ["", "[metric]", *_metric_lines(schema.metric, target), *_comments(tail)]
    try:
        content = ("\n".join(lines).lstrip("\n") + "\n").encode()
    except UnicodeEncodeError as error:
        raise FileError(f"cannot write {target}: {error.object[error.start]!r} is not valid text") from None
    _write_beside(schema.metric, target)
    write_atomically(target, content)
    return target


def rule_lines(domain: Domain, terms: Iterable[tuple[int, float]], at_most: float) -> list[str]:
    """Return a [[constraint]] table: sum of coefficient * column <= at_most."""
    named = domain.columns
    pairs = []
    for column, coefficient in terms:
        if named.count(named[column]) > 1:
            raise DomainError(f"a schema cannot hold a constraint on {named[column]!r}: two columns have that name")
        pairs.append(f"{_string(named[column])} = {coefficient!r}")
    return ["[[constraint]]", f"terms = {{ {', '.join(pairs)} }}", f"at_most = {at_most!r}"]


def _comments(lines: Iterable[str]) -> list[str]:
    """Return lines as toml comments; what is not printable is escaped, so that no text can leave its comment."""
    return [
        "# ".rstrip() if not line else "# " + "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
        for line in lines
    ]


def _feature_lines(feature: Feature) -> list[str]:
    lines = [f"name = {_string(feature.name)}"]
    if isinstance(feature, Continuous):
        lines += ['kind = "continuous"', f"low = {feature.low!r}", f"high = {feature.high!r}"]
    elif isinstance(feature, Integer):
        lines += ['kind = "integer"', f"low = {feature.low!r}", f"high = {feature.high!r}", f"step = {feature.step!r}"]
    else:
        lines += ['kind = "one_hot"', f"values = [{', '.join(map(_string, feature.values))}]"]
    return lines + _display_lines(feature.display)


def _display_lines(display: Display) -> list[str]:
    offset, factor = repr(float(display.offset)), repr(float(display.factor))
    lines = [f"title = {_string(display.title)}"] if display.title else []
    lines += [f"offset = {offset}"] if offset != "0.0" else []  # as text: -0.0 has a digest of its own
    lines += [f"factor = {factor}"] if factor != "1.0" else []
    lines += [f"unit = {_string(display.unit)}"] if display.unit else []
    if display.labels:
        pairs = (f"{_string(value)} = {_string(label)}" for value, label in dict(display.labels).items())
        lines.append(f"labels = {{ {', '.join(pairs)} }}")
    return lines


# -------------------------------------------------------------------------------------------------------- metric


def _metric_lines(metric: Metric, target: Path) -> list[str]:
    if metric.kind == "embedding":
        inner = _metric_lines(inner_of(metric), target)
        return ['kind = "embedding"', f"file = {_string(_embedding_file(target).name)}", "", "[metric.inner]", *inner]
    boxed = metric.note == "relaxation: box"
    relaxation = ['relaxation = "box"'] if boxed else []
    if metric.kind == "mahalanobis" and metric.p == (math.inf if boxed else 2.0):
        return ['kind = "mahalanobis"', f"file = {_string(_metric_file(target).name)}", *relaxation]
    diagonal = np.diagonal(metric.matrix)
    if metric.kind != "lp" or not np.array_equal(metric.matrix, np.diag(diagonal)):
        raise MetricError(f"a schema cannot hold {metric!r}; it holds mahalanobis, weighted lp and embedding metrics")
    p = 1.0 if boxed else metric.p
    key, values = ("weights", diagonal) if p in (1.0, math.inf) else _weights(diagonal, p)
    listed = values.tolist()
    shown = repr(listed[0]) if len(set(listed)) == 1 else repr(listed)
    return ['kind = "lp"', f"p = {_string('inf') if p == math.inf else repr(p)}", f"{key} = {shown}", *relaxation]


def _weights(scales: Array, p: float) -> tuple[str, Array]:
    """Return weights w with w^(1/p) equal to the scales to the last bit, or the scales where rounding allows none."""
    weights = scales**p
    for _ in range(4):
        again = np.diagonal(WeightedLp(weights, p).matrix)
        if np.array_equal(again, scales):
            return "weights", weights
        weights = np.where(again == scales, weights, np.nextafter(weights, np.where(again < scales, np.inf, 0.0)))
    return "scales", scales


def _write_beside(metric: Metric, target: Path) -> None:
    """Write the files that the lines of the metric name."""
    if metric.kind == "embedding":
        assert metric.phi is not None
        write_npz(metric.phi, _embedding_file(target))
        _write_beside(inner_of(metric), target)
    elif metric.kind == "mahalanobis":
        packed = io.BytesIO()
        np.savez_compressed(packed, A=metric.matrix)
        write_atomically(_metric_file(target), packed.getvalue())


def inner_of(metric: Metric) -> Metric:
    """Return the metric that an embedding uses on the outputs of its network."""
    diagonal = (
        metric.matrix.shape[0] == metric.matrix.shape[1]
        and not (metric.matrix - np.diag(np.diagonal(metric.matrix))).any()
    )
    return Metric(metric.matrix, metric.p, "lp" if diagonal else "mahalanobis", metric.note)


def _metric_file(target: Path) -> Path:
    return target.with_name(f"{target.stem}.metric.npz")


def _embedding_file(target: Path) -> Path:
    return target.with_name(f"{target.stem}.embedding.npz")


def _string(text: str) -> str:
    """Return a toml basic string: JSON's escapes are toml's, but DEL needs one more."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
