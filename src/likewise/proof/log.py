"""Log: the proof of an upper bound as it comes about, kept in a file, and in the end only what the last tree needs.

A tree of parts: each node has lemmas, which narrow its boxes and those of all that follows from it, and then is split,
closed by an argument, empty, or left open. Nodes are numbered by the caller; 0 is the root. What a node was before it
was split is dropped when the tree is written, depth first, so that a reader needs no more than one path in memory.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import math
import struct
import tempfile
import weakref
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any

from likewise.bounds import Reach
from likewise.bounds.argument import Argument
from likewise.bounds.joint import Joint
from likewise.certificate import Payload
from likewise.problem import Problem
from likewise.proof.coding import (
    END,
    MOST,
    SCRATCH,
    Lemma,
    Numbers,
    What,
    argued,
    joint_bytes,
    side_by_side,
    split_bytes,
)
from likewise.proof.reach import ReachProof, argue

IN_MEMORY = 1 << 26  # bytes of a log that are kept in memory; beyond, a temporary file takes them
NOTHING = -1
NO_LAYER = 0xFFFF  # of what is said of all layers
SIZES = "<HIB"  # of a lemma in the log: its layer, the bytes that it shares with others, and those of its target


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """A tree that a log had: what was known of its nodes."""

    columns: tuple[array[int], ...]


class Log:
    """The tree of one direction of a problem (an inner one). `reach` says which columns can differ."""

    def __init__(self, problem: Problem, reach: Reach) -> None:
        self.problem, self._reach, self._numbers = problem, reach, Numbers(problem)
        self._file = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - lives as long as the log
        weakref.finalize(self, self._file.close)
        self._size = 0
        self._ends, self._last = array("q"), array("q")  # per node: the blob that ends it, the last of its lemmas
        self._leaves = array("q")  # per node: its last leaf, kept when it is split
        self._children: tuple[array[int], array[int]] = (array("q"), array("q"))
        self._places, self._lengths = array("q"), array("q")  # per blob
        self._before = array("q")  # per blob: the lemma of the same node before it
        self.rest: Callable[[Log], None] = _nothing  # writes what its caller has kept back, once a reader wants it

    def __repr__(self) -> str:
        return f"Log({len(self._ends)} nodes, {self._size} bytes)"

    def lemma(self, node: int, layer: int, neuron: int, kind: str, sign: float, argument: Argument) -> None:
        """Say that sign times z ("left", "right", "dz") is bounded in this node and below it."""
        one = argued(self._numbers, argument, self._reach.shared, (layer, kind, neuron, sign))
        head = struct.pack(SIZES, layer, len(one.shared), len(one.target))
        self._lemma(node, head + one.shared + one.target + one.multipliers)

    @property
    def can_join(self) -> bool:
        """Whether the proof can speak of all differences together."""
        return self._numbers.can_join

    def joint(self, slot: int, joint: Joint) -> None:
        """Say what holds of all differences together, in the whole; from now on arguments may use it."""
        head = struct.pack(SIZES, NO_LAYER, 0, 0)
        self._lemma(0, head + joint_bytes(self._numbers, slot, joint))

    def split(self, node: int, what: What, children: Sequence[int]) -> None:
        """Split a node in two.

        `what` is (kind, layer, neuron, at) with kind "left", "right" or "dz": z <= at first, then z >= at;
        ("category", side, columns, mask): the categories of the mask, then the others; ("integer", side, column, at):
        x <= at, then x >= at. A side is "left", "right", or "both" for columns that cannot differ.
        """
        first, second = children
        self._end(node, split_bytes(self._numbers, what))
        self._children[0][node], self._children[1][node] = first, second
        self._grow(max(first, second))

    def fell(self) -> None:
        """Drop the tree but for the root, its lemmas and its last leaf: another one is to grow there."""
        self._grow(0)
        self._ends[0] = self._leaves[0]
        self._children[0][0] = self._children[1][0] = NOTHING
        for column in self._columns:  # a number may be another node's next
            del column[1:]

    def kept(self) -> Kept:
        """Return the tree as it is now, to come back to after others."""
        return Kept(tuple(column[:] for column in self._columns))

    def restore(self, kept: Kept) -> None:
        """Go back to a tree, whatever has been said since."""
        for column, old in zip(self._columns, kept.columns, strict=True):
            column[:] = old

    @property
    def _columns(self) -> tuple[array[int], ...]:
        """What is known of all nodes."""
        return (self._ends, self._last, self._leaves, *self._children)

    def mark(self) -> tuple[int, int, int]:
        """Return where the root's lemmas and its leaf are; `back` forgets all that was said of it since."""
        self._grow(0)
        return self._last[0], self._leaves[0], self._ends[0]

    def back(self, mark: tuple[int, int, int]) -> None:
        """Forget what was said of the root since a mark."""
        self._last[0], self._leaves[0], self._ends[0] = mark

    def alone(self) -> None:
        """Leave out what the caller has kept back: the root shows all that is claimed."""
        self.rest = _nothing

    def leaf(self, node: int, argument: Argument, slack: float, joint: Joint | None = None) -> None:
        """Bound a node: below 0 it is closed, otherwise `slack` is what is left open of it. The last leaf counts.

        One that is split stays so; the leaf is what is known of it. The argument may rest on a joint of its own, in the
        slot for such.
        """
        self._grow(node)
        one = side_by_side([argued(self._numbers, argument, self._reach.shared, None)]) if math.isfinite(slack) else b""
        own = b"" if joint is None else joint_bytes(self._numbers, SCRATCH, joint)
        self._leaves[node] = self._write(own + one + END)
        if self._children[0][node] == NOTHING:
            self._ends[node] = self._leaves[node]

    def empty(self, node: int) -> None:
        """Say that the boxes of some neuron have nothing in common, which a reader sees by itself."""
        self._end(node, END)

    @cached_property
    def _argued(self) -> ReachProof:
        return argue(self.problem, self._reach)

    @property
    def trusted(self) -> tuple[str, ...]:
        """What nobody can derive from this proof: columns that the search holds to be the same in both people."""
        names = {span.start: feature.name for feature, span in self.problem.right.spans}
        return tuple(f"that {names[group.start]} cannot differ" for group in self._argued.trusted)

    def finish(self) -> Payload:
        """Write the tree, after the argument for `reach`, and return where it is."""
        self.rest(self)
        file: IO[bytes] = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - the payload's
        sha, size, nodes, leaves = hashlib.sha256(), 0, 0, 0
        self._grow(0)
        for blob, is_node, is_leaf in itertools.chain([(self._argued.content, False, False)], self._written()):
            file.write(blob)
            sha.update(blob)
            size, nodes, leaves = size + len(blob), nodes + is_node, leaves + is_leaf
        file.seek(0)
        return Payload(_Content(file, size).open, sha.hexdigest(), size, nodes, leaves)

    def _written(self) -> Iterator[tuple[bytes, bool, bool]]:
        """Yield the bytes of the tree, depth first, and whether they end a node, and a leaf."""
        todo = [(0, NOTHING)]  # a node, and the leaf that a node above it had before it was split
        while todo:
            node, known = todo.pop()
            for blob in self._batches(node):
                yield blob, False, False
            known = known if self._leaves[node] == NOTHING else self._leaves[node]
            # What holds of a part holds of its halves: a node that nobody came to bound is shown by the one above.
            end = known if self._ends[node] == NOTHING else self._ends[node]
            is_leaf = self._children[0][node] == NOTHING
            yield END if end == NOTHING else self._blob(end), True, is_leaf
            if not is_leaf:
                todo += [(self._children[1][node], known), (self._children[0][node], known)]

    def _batches(self, node: int) -> Iterator[bytes]:
        """Yield a node's lemmas: those that were proven from the same boxes side by side.

        These are of one layer, threshold and round; before others, a reader carries all intervals on. The lemma after a
        joint may rest on it alone, and those after that on the lemma.
        """
        blobs, blob = [], self._last[node]
        while blob != NOTHING:
            blobs.append(blob)
            blob = self._before[blob]
        batch: list[Lemma] = []
        beside, is_alone = b"", False
        for content in map(self._blob, reversed(blobs)):
            layer, shared, target = struct.unpack_from(SIZES, content)
            at = struct.calcsize(SIZES)
            if layer == NO_LAYER:
                if batch:
                    yield side_by_side(batch)
                batch, is_alone = [], True
                yield content[at:]
                continue
            one = Lemma(content[at : at + shared], content[at + shared :][:target], content[at + shared + target :])
            mark = struct.pack("<H", layer) + one.shared
            is_known = any(one.target == other.target for other in batch)
            if batch and (mark != beside or is_known or (len(batch) + 1) * self._numbers.size > MOST):
                yield side_by_side(batch)
                batch = []
            beside = b"" if is_alone else mark
            batch, is_alone = [*batch, one], False
        if batch:
            yield side_by_side(batch)

    def _blob(self, blob: int) -> bytes:
        self._file.seek(self._places[blob])
        return self._file.read(self._lengths[blob])

    def _grow(self, node: int) -> None:
        for column in self._columns:
            if len(column) <= node:
                column.extend([NOTHING] * (node + 1 - len(column)))

    def _write(self, content: bytes, before: int = NOTHING) -> int:
        self._file.seek(self._size)
        self._file.write(content)
        self._places.append(self._size)
        self._lengths.append(len(content))
        self._before.append(before)
        self._size += len(content)
        return len(self._places) - 1

    def _lemma(self, node: int, content: bytes) -> None:
        self._grow(node)
        self._last[node] = self._write(content, self._last[node])

    def _end(self, node: int, content: bytes) -> None:
        self._grow(node)
        self._ends[node] = self._write(content)


def _nothing(log: Log) -> None:
    """Write nothing: all is there."""


class Later(Sequence[Payload]):
    """The payloads of logs, written when somebody asks for them and not before: most certificates are never saved."""

    def __init__(self, logs: Sequence[Log]) -> None:
        self._logs = tuple(logs)

    def __len__(self) -> int:
        return len(self._logs)

    def __getitem__(self, at: Any) -> Any:
        """Return one of them, or a slice."""
        return self._payloads[at]

    @cached_property
    def _payloads(self) -> tuple[Payload, ...]:
        return tuple(log.finish() for log in self._logs)


class _Content:
    """The bytes of a finished tree, for as long as somebody may read them; each reader starts at the beginning."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file, self._size = file, size
        weakref.finalize(self, file.close)

    def open(self) -> IO[bytes]:
        """Return a reader of all bytes."""
        return io.BufferedReader(_Window(self, self._file, self._size))


class _Window(io.RawIOBase):
    def __init__(self, owner: _Content, file: IO[bytes], size: int) -> None:
        super().__init__()
        self._owner = owner  # whose end would close the file
        self._file, self._size, self._at = file, size, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._file.seek(self._at)
        content = self._file.read(min(len(buffer), self._size - self._at))
        buffer[: len(content)] = content
        self._at += len(content)
        return len(content)
