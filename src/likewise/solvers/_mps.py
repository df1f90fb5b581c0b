"""Write a linear model as a free-format MPS file, every number to the last bit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from likewise.solvers._model import LinearModel


def write_mps(model: LinearModel, path: Path) -> None:
    """Write `model` as a minimisation of -objective, without the constant; rows r0, r1, ..., columns c0, c1, ..."""
    with path.open("w", encoding="ascii") as file:
        for section in (_rows, _columns, _sides, _bounds):
            file.writelines(section(model))
        file.write("ENDATA\n")


def _kind(lower: float, upper: float) -> str:
    if lower == upper:
        return "E"
    if upper < math.inf:
        return "L"
    return "G" if lower > -math.inf else "N"


def _rows(model: LinearModel) -> Iterator[str]:
    yield "NAME likewise FREE\nROWS\n N cost\n"
    for i, (lower, upper) in enumerate(zip(model.row_lower.tolist(), model.row_upper.tolist(), strict=True)):
        yield f" {_kind(lower, upper)} r{i}\n"


def _columns(model: LinearModel) -> Iterator[str]:
    yield "COLUMNS\n"
    matrix = model.matrix.tocsc()  # also adds up entries stored twice
    matrix.sum_duplicates()
    starts, indices, data = matrix.indptr.tolist(), matrix.indices.tolist(), matrix.data.tolist()
    cost = (-model.objective).tolist()
    for integer in (False, True):
        if integer:
            yield " M1 'MARKER' 'INTORG'\n"
        for j in np.flatnonzero(model.integer == integer).tolist():
            yield f" c{j} cost {cost[j]!r}\n"
            for k in range(starts[j], starts[j + 1]):
                yield f" c{j} r{indices[k]} {data[k]!r}\n"
    yield " M2 'MARKER' 'INTEND'\n"


def _sides(model: LinearModel) -> Iterator[str]:
    sides = list(enumerate(zip(model.row_lower.tolist(), model.row_upper.tolist(), strict=True)))
    yield "RHS\n"
    for i, (lower, upper) in sides:
        side = upper if upper < math.inf else lower
        if side > -math.inf:
            yield f" rhs r{i} {side!r}\n"
    yield "RANGES\n"
    for i, (lower, upper) in sides:
        if -math.inf < lower < upper < math.inf:
            # The range is rounded up: a row may become a trifle wider, never narrower.
            yield f" rng r{i} {math.nextafter(upper - lower, math.inf)!r}\n"


def _bounds(model: LinearModel) -> Iterator[str]:
    yield "BOUNDS\n"
    for j, (lower, upper) in enumerate(zip(model.lower.tolist(), model.upper.tolist(), strict=True)):
        if lower == upper:
            yield f" FX bnd c{j} {lower!r}\n"
        else:
            yield f" LO bnd c{j} {lower!r}\n UP bnd c{j} {upper!r}\n"
