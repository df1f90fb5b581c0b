"""Embedded data sets, ready for a network: `load("german")`. Licences are in data/ATTRIBUTION.md."""

from __future__ import annotations

import io
from collections.abc import Mapping

import numpy as np

from likewise.datasets._tabular import Dataset, Table, prepare, resource, split_rows
from likewise.datasets.adult import ADULT
from likewise.datasets.credit import CREDIT
from likewise.datasets.crime import CRIME
from likewise.datasets.german import GERMAN
from likewise.errors import InputError
from likewise.network import Layer, Network

__all__ = ["NAMES", "Dataset", "demo_network", "load", "split_rows"]

TABLES: Mapping[str, Table] = {table.name: table for table in (ADULT, CREDIT, GERMAN, CRIME)}
NAMES = tuple(TABLES)


def load(name: str, sensitive: str = "drop", seed: int = 42) -> Dataset:
    """Return an embedded data set, split 80/20 by `seed` as scikit-learn's train_test_split does.

    `sensitive="drop"` leaves the sensitive features out; "keep" puts them after the other columns.
    """
    table = TABLES.get(name)
    if table is None:
        raise InputError(f"unknown data set {name!r}; known: {', '.join(NAMES)}")
    return prepare(table, sensitive, seed)


def demo_network() -> Network:
    """Return a small credit-scoring network (57 -> 8 -> 8 -> 1) for `load("german")`.

    It was trained on a split of its own: the test people of `load` may have been among its training people.
    """
    with np.load(io.BytesIO(resource("german.network.npz")), allow_pickle=False) as stored:
        names = stored["activations"].tolist()
        return Network(Layer(stored[f"W{i}"], stored[f"b{i}"], name) for i, name in enumerate(names))
