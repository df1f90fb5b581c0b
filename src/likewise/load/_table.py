"""Open a csv file from a stranger: UTF-8, a header, rows of equal length, bounded in size; errors name the place."""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from likewise.errors import FileError
from likewise.load._arrays import brief, listed, regular
from likewise.load._bounded import content as bounded
from likewise.rounding import Array

LIMIT = 1 << 27  # no csv file has more bytes than this
CELLS = 1 << 24  # nor more cells
COLUMNS = 10_000
MISSING = frozenset({"", "?", "na", "n/a", "nan", "null"})
NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")


@dataclass(frozen=True, slots=True, eq=False)
class Csv:
    """The text of a csv file by column, and the line of the file on which each row ends."""

    file: Path
    columns: Mapping[str, tuple[str, ...]]
    lines: tuple[int, ...]

    def __repr__(self) -> str:
        return f"Csv({self.file}, {len(self.lines)} rows, {len(self.columns)} columns)"

    def cell(self, row: int, column: str) -> str:
        """Return the place of a cell, for a message."""
        return f"{self.file}: line {self.lines[row]}, column {column[:60]!r}"


def read_csv(path: str | os.PathLike[str]) -> Csv:
    """Return the cells of a csv file as text, blanks at their ends removed; empty lines are passed over."""
    file = Path(path)
    text = _text(file)
    if "\0" in text:
        raise FileError(
            f"{file} is not a csv file: it has a NUL byte on line {text.count(chr(10), 0, text.index(chr(0))) + 1}"
        )
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(file, header)
        rows, lines = [], []
        same: dict[str, str] = {}  # one object for equal cells: tables repeat themselves
        for row in reader:
            if not row:
                continue
            if len(row) != len(header):
                raise FileError(f"{file}: line {reader.line_num} has {len(row)} cells, the header has {len(header)}")
            rows.append([same.setdefault(cell, cell) for cell in map(str.strip, row)])
            lines.append(reader.line_num)
            if len(rows) * len(header) > CELLS:
                raise FileError(f"{file}: more than {CELLS:,} cells; give a sample of the rows")
    except csv.Error as error:
        raise FileError(f"{file}: line {reader.line_num} is not csv: {brief(error)}") from None
    if not rows:
        raise FileError(f"{file}: a header, but not one row below it")
    return Csv(file, dict(zip(header, zip(*rows, strict=True), strict=True)), tuple(lines))


def _text(file: Path) -> str:
    size = regular(file).stat().st_size
    if size > LIMIT:
        raise FileError(
            f"{file}: {size >> 20} MiB, more than the {LIMIT >> 20} MiB of a table; give a sample of the rows"
        )
    content = bounded(file, length=LIMIT)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise FileError(
            f"{file} is not a csv file in UTF-8: line {line} has the byte 0x{content[error.start]:02x}"
        ) from None


def _check_header(file: Path, header: list[str]) -> None:
    if not any(header):
        raise FileError(f"{file}: the first line must name the columns, it is empty")
    if len(header) > COLUMNS:
        raise FileError(f"{file}: {len(header):,} columns, more than the {COLUMNS:,} that are allowed")
    if "" in header:
        raise FileError(f"{file}: column {header.index('') + 1} of the header has no name")
    if len(set(header)) != len(header):
        raise FileError(
            f"{file}: the column {listed([name for name in header if header.count(name) > 1][:1])} appears twice"
        )
    if len(header) == 1 and re.search(r"[;\t|]", header[0]):
        raise FileError(f"{file}: one column named {header[0][:60]!r}: the cells must be separated by commas")


def is_missing(cell: str) -> bool:
    """Tell whether a cell says that its value is not known."""
    return cell.lower() in MISSING


def to_number(cell: str) -> float | None:
    """Return the finite number that a cell holds, or None."""
    if NUMBER.fullmatch(cell) is None:
        return None
    value = float(cell)
    return value if math.isfinite(value) else None


def to_numbers(cells: tuple[str, ...]) -> Array | None:
    """Return a column of finite numbers, or None if a cell is something else."""
    values = [to_number(cell) for cell in cells]
    return None if None in values else np.array(values, dtype=np.float64)
