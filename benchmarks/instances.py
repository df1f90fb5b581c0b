"""The fixed questions, by name: `recipe/data_widths|metric|eps` -> Problem."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import likewise as lw

MODELS = Path(__file__).resolve().parent / "models"
WIDTHS = ("8", "16", "24", "32", "64", "8x8", "16x16", "16x16x16", "16x16x16x16", "64x64")
METRICS = ("mahalanobis", "linf", "box", "embedding")


@dataclass(frozen=True, slots=True)
class Known:
    """What earlier programs found: a verified pair's gap, and an unproven upper bound."""

    lower: float
    upper_float: float
    source: str


def instance(name: str) -> lw.Problem:
    """Return the question called `name`; a name that does not exist is a ValueError that says which part."""
    try:
        path, metric, eps = name.split("|")
        data = path.split("/")[1].split("_")[0]
    except (ValueError, IndexError):
        raise ValueError(f"{name!r} is not of the form recipe/data_widths|metric|eps") from None
    domain = domain_of(data)
    return lw.Problem(network(path), domain, domain, metric_of(data, metric), float(eps))


def network(path: str) -> lw.Network:
    """Return a network by `recipe/data_widths`; its relu and sigmoid are known here and not worth a message."""
    file = MODELS / f"{path}.npz"
    if not file.is_file():
        raise ValueError(f"there is no network {path!r} in {MODELS}")
    with contextlib.redirect_stderr(io.StringIO()):
        return lw.load(file)


@cache
def domain_of(data: str) -> lw.Domain:
    """Return who can exist in a data set."""
    return lw.Domain.from_json(json.loads((MODELS / f"{data}.domain.json").read_text()))


@cache
def metric_of(data: str, kind: str) -> lw.Metric:
    """Return a metric of a data set."""
    if kind == "linf":
        return lw.WeightedLp(np.ones(domain_of(data).width))
    if kind not in METRICS:
        raise ValueError(f"unknown metric {kind!r}: expected one of {', '.join(METRICS)}")
    if kind == "embedding":
        return _embedding(data)
    with np.load(MODELS / f"{data}.metric.npz", allow_pickle=False) as file:
        return lw.Mahalanobis(file["S"], relaxation="box" if kind == "box" else None)


def _embedding(data: str) -> lw.Metric:
    """Return the learnt embedding of a data set; a column that only the networks have is not looked at."""
    learnt = lw.datasets.load(data)
    metric = learnt.metric("embedding")
    assert metric.phi is not None
    names = [name for feature, span in learnt.domain.spans for name in [feature.name] * (span.stop - span.start)]
    wanted = [name for feature, span in domain_of(data).spans for name in [feature.name] * (span.stop - span.start)]
    layer = metric.phi.layers[0]
    weight = np.zeros((len(layer.bias), len(wanted)))
    weight[:, [k for k, name in enumerate(wanted) if name in names]] = layer.weight
    return lw.Embedding(
        lw.Network([lw.Layer(weight, layer.bias, layer.activations)]), lw.WeightedLp(np.ones(len(weight)))
    )


def known() -> dict[str, Known]:
    """Return what is known, by the name of the question."""
    listed = json.loads((MODELS / "known.json").read_text())
    return {name: Known(**entry) for name, entry in listed.items()}
