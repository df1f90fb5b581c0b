"""Shape: where a proof's tree was split, read back so that a later search can begin with the same parts.

Nothing that a file claims is taken over: splits only say how to cut, and every part is bounded anew. So a file from
anywhere may be read; one that is broken is refused.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO

import numpy as np

from likewise.errors import FileError
from likewise.problem import Problem
from likewise.proof.coding import (
    COLUMN,
    EMPTY,
    GROUP,
    LEAF,
    LEMMA,
    OPEN,
    ROOT,
    SIDES,
    SPLIT_CATEGORY,
    SPLIT_INTEGER,
    SPLIT_Z,
    TRUSTED_GROUP,
    What,
)
from likewise.proof.evaluation import KINDS

MOST = 10_000_000  # nodes of a tree


def read_shape(problem: Problem, file: IO[bytes]) -> Iterator[What | None]:
    """Yield the splits of a tree of an inner problem, depth first, and None for each part that was not split."""
    stream = _Stream(file, problem)
    stream.skip_reach()
    todo = 1
    for _ in range(MOST):
        tag = stream.take(1)
        if tag == LEMMA:
            stream.unpack("<HIBbd")
            stream.skip_argument()
            continue
        todo += 1 if tag in (SPLIT_Z, SPLIT_CATEGORY, SPLIT_INTEGER) else -1
        yield stream.split(tag)
        if not todo:
            return
    raise FileError(f"a proof has more than {MOST} nodes")


class _Stream:
    def __init__(self, file: IO[bytes], problem: Problem) -> None:
        self._file, self._rows = file, len(problem.metric.matrix)
        self._heights = [len(layer.bias) for layer in problem.network.layers]
        self._width = problem.right.width
        limits = len(problem.left.constraints[1]) + len(problem.right.constraints[1])
        self._numbers = 4 * sum(self._heights) + self._width + self._rows + limits

    def take(self, count: int) -> bytes:
        try:
            content = self._file.read(count)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
            raise FileError(f"the proof cannot be read: {error}") from None
        if len(content) != count:
            raise FileError("the proof ends too early")
        return content

    def unpack(self, form: str) -> tuple[float, ...]:
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def _skip_sparse(self, length: int) -> None:
        bits = np.frombuffer(self.take((length + 7) // 8), dtype=np.uint8)
        self.take(8 * int(np.unpackbits(bits).sum()))

    def skip_argument(self) -> None:
        _, count = self.unpack("<dH")
        self.take(16 * int(count))
        self._skip_sparse(self._numbers)

    def skip_reach(self) -> None:
        while (tag := self.take(1)) != ROOT:
            if tag == COLUMN:
                self.unpack("<Ib")
                self._skip_sparse(self._rows)
            elif tag == GROUP:
                _, count = self.unpack("<II")
                for _ in range(int(count)):
                    self.unpack("<HH")
                    self._skip_sparse(self._rows)
            elif tag == TRUSTED_GROUP:
                self.unpack("<I")
            else:
                raise FileError(f"the proof has an unknown part {tag!r}")

    def split(self, tag: bytes) -> What | None:
        if tag == LEAF:
            self.skip_argument()
            return None
        if tag in (EMPTY, OPEN):
            return None
        if tag == SPLIT_Z:
            kind, layer, neuron, at = self.unpack("<BHId")
            if kind >= len(KINDS) or layer >= len(self._heights) or neuron >= self._heights[int(layer)]:
                raise FileError("the proof splits a neuron that is not there")
            return KINDS[int(kind)], int(layer), int(neuron), _number(at)
        if tag == SPLIT_CATEGORY:
            side, start, count = (int(x) for x in self.unpack("<BIH"))
            mask = np.frombuffer(self.take(count), dtype=np.uint8) > 0
            self._check_column(side, start + count - 1)
            return "category", SIDES[side], slice(start, start + count), mask
        if tag == SPLIT_INTEGER:
            where = self.unpack("<BId")
            self._check_column(int(where[0]), int(where[1]))
            return "integer", SIDES[int(where[0])], int(where[1]), _number(where[2])
        raise FileError(f"the proof has an unknown part {tag!r}")

    def _check_column(self, side: int, column: int) -> None:
        if side >= len(SIDES) or column >= self._width:
            raise FileError("the proof splits a column that is not there")


def _number(value: float) -> float:
    if not np.isfinite(value):
        raise FileError("the proof splits at a number that is none")
    return float(value)
