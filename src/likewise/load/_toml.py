"""Write a schema.toml that reads back to the same digests.

A mahalanobis metric is kept as its factor A, in an npz file beside the toml: S = A^T A has many factors, and only
the stored one gives the same bytes again.
"""

from __future__ import annotations

import io
import json
import math
import os
from pathlib import Path

import numpy as np

from likewise.certificate import write_atomically
from likewise.domain import Continuous, Display, Domain, Feature
from likewise.errors import DomainError, FileError, MetricError
from likewise.load.schema import Schema
from likewise.metric import Metric


def write_schema(schema: Schema, path: str | os.PathLike[str]) -> Path:
    """Write the schema atomically and return its path; a mahalanobis metric goes to <stem>.metric.npz beside it."""
    target = Path(path)
    if schema.domain.digest != Domain(schema.domain.features).digest:
        raise DomainError("a schema holds whole domains only: this one is narrowed to some of its people")
    beside = target.with_name(f"{target.stem}.metric.npz")
    lines = [f"{key} = {_string(text)}" for key, text in (("title", schema.title), ("source", schema.source)) if text]
    for feature in schema.domain.features:
        lines += ["", "[[feature]]", *_feature_lines(feature)]
    lines += ["", "[metric]", *_metric_lines(schema.metric, beside.name)]
    try:
        content = ("\n".join(lines).lstrip("\n") + "\n").encode()
    except UnicodeEncodeError as error:
        raise FileError(f"cannot write {target}: {error.object[error.start]!r} is not valid text") from None
    if schema.metric.kind == "mahalanobis":
        packed = io.BytesIO()
        np.savez_compressed(packed, A=schema.metric.matrix)
        write_atomically(beside, packed.getvalue())
    write_atomically(target, content)
    return target


def _feature_lines(feature: Feature) -> list[str]:
    lines = [f"name = {_string(feature.name)}"]
    if isinstance(feature, Continuous):
        lines += ['kind = "continuous"', f"low = {float(feature.low)!r}", f"high = {float(feature.high)!r}"]
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


def _metric_lines(metric: Metric, beside: str) -> list[str]:
    boxed = metric.note == "relaxation: box"
    relaxation = ['relaxation = "box"'] if boxed else []
    if metric.kind == "mahalanobis" and metric.p == (math.inf if boxed else 2.0):
        return ['kind = "mahalanobis"', f"file = {_string(beside)}", *relaxation]
    diagonal = np.diagonal(metric.matrix)
    if metric.kind != "lp" or not np.array_equal(metric.matrix, np.diag(diagonal)):
        raise MetricError(f"a schema cannot hold {metric!r}; it holds mahalanobis and weighted lp metrics")
    p = "1" if boxed or metric.p == 1.0 else '"inf"'
    weights = diagonal.tolist()
    shown = repr(weights[0]) if len(set(weights)) == 1 else repr(weights)
    return ['kind = "lp"', f"p = {p}", f"weights = {shown}", *relaxation]


def _string(text: str) -> str:
    """Return a toml basic string: JSON's escapes are toml's, but DEL needs one more."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
