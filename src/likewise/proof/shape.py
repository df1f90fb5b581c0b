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
    ARGUMENTS,
    END,
    GROUP,
    HEAD,
    JOINT,
    NUMBER,
    SIDES,
    SPLIT_CATEGORY,
    SPLIT_NUMBER,
    SPLIT_SAME,
    TARGET,
    Numbers,
    What,
)

MOST = 10_000_000  # nodes of a tree


def read_shape(problem: Problem, file: IO[bytes]) -> Iterator[What | None]:
    """Yield the splits of a tree of an inner problem, depth first, and None for each part that was not split.

    What is said before of who can differ is left out: a search finds that by itself.
    """
    stream = _Stream(file, problem)
    todo = 1
    for _ in range(MOST):
        tag = stream.tag()
        if tag == SPLIT_SAME:  # one part is excluded, the other is what the tree is about
            stream.skip_tree()
            continue
        todo += -1 if tag == END else 1
        yield None if tag == END else stream.split(tag)
        if not todo:
            return
    raise FileError(f"a proof has more than {MOST} nodes")


class _Stream:
    def __init__(self, file: IO[bytes], problem: Problem) -> None:
        self._file, self._numbers, self._groups = file, Numbers(problem), problem.right.groups
        self._integers = set(problem.right.integers.tolist())

    def _take(self, count: int) -> bytes:
        try:
            content = self._file.read(count)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
            raise FileError(f"the proof cannot be read: {error}") from None
        if len(content) != count:
            raise FileError("the proof ends too early")
        return content

    def _unpack(self, form: str) -> tuple[float, ...]:
        return struct.unpack(form, self._take(struct.calcsize(form)))

    def _skip_sparse(self, length: int) -> None:
        bits = np.frombuffer(self._take((length + 7) // 8), dtype=np.uint8)
        self._take(8 * int(np.unpackbits(bits).sum()))

    def tag(self) -> bytes:
        """Return what ends the node, past its arguments; of a split of who can differ, past its head too."""
        while (tag := self._take(1)) in (ARGUMENTS, JOINT):
            if tag == JOINT:
                self._take(1)
                self._skip_sparse(self._numbers.size)
                self._skip_sparse(self._numbers.weights)
                if self._numbers.bowls:
                    self._skip_sparse(self._numbers.bowls)
                continue
            _, lines, count = (int(x) if np.isfinite(x) else 0 for x in self._unpack(HEAD))
            self._skip_sparse(lines)
            self._take(count * struct.calcsize(TARGET))
            for _ in range(count):
                self._skip_sparse(lines + self._numbers.count)
        if tag not in (SPLIT_SAME, SPLIT_NUMBER, SPLIT_CATEGORY, END):
            raise FileError(f"the proof has an unknown part {tag!r}")
        if tag == SPLIT_SAME:
            self._take(struct.calcsize(GROUP))
        return tag

    def skip_tree(self) -> None:
        """Read past a part with all its splits."""
        todo = 1
        while todo:
            tag = self.tag()
            todo += -1 if tag == END else 1
            if tag in (SPLIT_NUMBER, SPLIT_CATEGORY):
                self.split(tag)

    def split(self, tag: bytes) -> What:
        """Read what a split is about."""
        if tag == SPLIT_CATEGORY:
            side, index = (int(x) for x in self._unpack(GROUP))
            if side >= len(SIDES) or index >= len(self._groups):
                raise FileError("the proof splits a group that is not there")
            group = self._groups[index]
            mask = np.frombuffer(self._take(group.stop - group.start), dtype=np.uint8) > 0
            return "category", SIDES[side], group, mask
        place, at = self._unpack(NUMBER)
        named = self._numbers.named(int(place))
        if named is None or not np.isfinite(at) or (len(named) == 2 and named[1] not in self._integers):
            raise FileError("the proof splits a number that is not there")
        if len(named) == 2:
            return "integer", named[0], named[1], float(at)
        return *named, float(at)
