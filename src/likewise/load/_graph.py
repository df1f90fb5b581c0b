"""A network as a graph of affine maps and activations, and the chain of layers that it flattens to.

Every loader builds its network here, so that the same network has the same layers, and so the same digest, whatever
file it came from. The canonical form:

- A vector is an affine map of *atoms*: the columns of a person, and the neurons that were activated so far.
- Scaling, shifting, selecting, joining and adding fold into that map, in float64. Where there is nothing to fold
  (a factor of 1, an offset of 0) no bit changes: W I = W and b + 0 = b hold exactly in floating point.
- Two matrix products in a row are *not* multiplied out: that would round, and turn a narrow embedding into a wide
  matrix. The first becomes a layer of identity neurons, as it would in an npz file.
- What a later layer still needs (a skip connection) is carried by identity neurons: weight 1, bias 0. A product or a
  sum that is needed later is carried as such, and not as all that it was made of: residual networks stay narrow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from likewise.activations import NAMES
from likewise.errors import ModelError
from likewise.network import Layer, Network
from likewise.rounding import Array

SPACE = 1 << 27  # numbers that one model may unfold to while it is read: 1 GiB of float64
WIDEST = 1 << 13  # entries of one vector: a layer of as many neurons would use up the space
INPUT = 0  # the block of the people's own columns

Segment = tuple[int, np.ndarray]  # a block, and which of its atoms


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A vector as an affine map of atoms: sum over blocks of parts[block] @ atoms, plus bias.

    `mixed` says that it has gone through a matrix product since the last activation.
    """

    parts: Mapping[int, Array]
    bias: Array
    mixed: bool

    def __repr__(self) -> str:
        return f"Value({len(self)} entries over blocks {sorted(self.parts)}{', mixed' if self.mixed else ''})"

    def __len__(self) -> int:
        return len(self.bias)

    def same(self, other: Value) -> bool:
        """Tell whether the other vector is the same affine map of the same atoms, bit for bit."""
        return (
            self.parts.keys() == other.parts.keys()
            and np.array_equal(self.bias, other.bias)
            and all(np.array_equal(part, other.parts[block]) for block, part in self.parts.items())
        )


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Atoms made in one step: the activation of each entry of `before`.

    The stage is the layer in which they are made, 0 for the input. A `lazy` block is a product or a sum: what is made
    in its own stage reads through it to `before`, and only what comes later needs it as identity neurons.
    """

    before: Value
    activations: tuple[str, ...]
    where: str
    stage: int
    lazy: bool = False


@final
class Graph:
    """Builds vectors out of `inputs` columns; `network(value)` flattens what one of them needs to a Network."""

    def __init__(self, inputs: int) -> None:
        self._spent = 0
        self._wide(inputs, inputs)
        if inputs < 1:
            raise ModelError("the model has no input columns")
        nothing = Value({}, np.zeros(inputs), False)
        self._blocks = [Block(nothing, ("identity",) * inputs, "the input", 0)]
        self._through: dict[int, Value] = {}
        self.inputs = self._atoms(INPUT)

    def __repr__(self) -> str:
        return f"Graph({len(self.inputs)} inputs, {len(self._blocks) - 1} activated blocks)"

    def spend(self, numbers: int) -> None:
        """Book room for so many numbers, before they are made; refuse a model that wants too many."""
        self._spent += numbers
        if self._spent > SPACE:
            raise ModelError(f"the model unfolds to more than {SPACE >> 20} million numbers: it is too large to read")

    def _wide(self, entries: int, columns: int) -> None:
        """Book a matrix, and refuse a vector that no layer could hold."""
        if entries > WIDEST:
            raise ModelError(f"a vector of {entries:,} entries is too large: at most {WIDEST:,} are read")
        self.spend(entries * columns)

    def _atoms(self, block: int) -> Value:
        width = len(self._blocks[block].activations)
        return Value({block: np.eye(width)}, np.zeros(width), False)

    # --- what folds ---------------------------------------------------------------------------------------------------

    def constant(self, numbers: ArrayLike) -> Value:
        """Return a vector that is the same for everybody."""
        return Value({}, np.array(numbers, dtype=np.float64), False)

    def take(self, value: Value, rows: np.ndarray) -> Value:
        """Return the entries `rows`, in that order; blocks that they do not use are dropped."""
        self._wide(len(rows), sum(part.shape[1] for part in value.parts.values()))
        parts = {block: part[rows] for block, part in value.parts.items()}
        kept = {block: part for block, part in parts.items() if part.any()}
        return Value(kept, value.bias[rows], value.mixed)

    def join(self, values: Sequence[Value]) -> Value:
        """Return the vectors one after the other."""
        width = sum(len(value) for value in values)
        self._wide(width, 0)
        parts: dict[int, Array] = {}
        start = 0
        for value in values:
            for block, part in value.parts.items():
                if block not in parts:
                    self.spend(width * part.shape[1])
                    parts[block] = np.zeros((width, part.shape[1]))
                parts[block][start : start + len(value)] = part
            start += len(value)
        bias = np.concatenate([value.bias for value in values])
        return Value(parts, bias, any(value.mixed for value in values))

    def add(self, left: Value, right: Value) -> Value:
        """Return the sum of two vectors of the same length."""
        parts = dict(left.parts)
        for block, part in right.parts.items():
            self.spend(part.size)
            parts[block] = parts[block] + part if block in parts else part
        total = Value(parts, left.bias + right.bias, left.mixed or right.mixed)
        return self._lazy(total) if left.parts and right.parts else total

    def scale(self, value: Value, factor: ArrayLike) -> Value:
        """Return each entry times its factor."""
        f = np.broadcast_to(np.asarray(factor, dtype=np.float64), (len(value),))
        self.spend(sum(part.size for part in value.parts.values()))
        parts = {block: f[:, None] * part for block, part in value.parts.items()}
        return Value(parts, f * value.bias, value.mixed)

    def shift(self, value: Value, offset: ArrayLike) -> Value:
        """Return each entry plus its offset."""
        return Value(value.parts, value.bias + np.asarray(offset, dtype=np.float64), value.mixed)

    # --- what makes layers --------------------------------------------------------------------------------------------

    def product(self, value: Value, weight: Array) -> Value:
        """Return weight (out x in) times the vector; a vector that is itself a product becomes a layer first."""
        if weight.ndim != 2 or weight.shape[1] != len(value) or not weight.size:
            raise ModelError(f"a weight of shape {weight.shape} (out x in) does not fit a vector of {len(value)}")
        operand = self._block(value, ("identity",) * len(value), "a matrix product") if value.mixed else value
        self._wide(len(weight), sum(part.shape[1] for part in operand.parts.values()))
        parts = {block: weight @ part for block, part in operand.parts.items()}
        return self._lazy(Value(parts, weight @ operand.bias, True))

    def activate(self, value: Value, name: str, where: str) -> Value:
        """Return the activation of every entry; `where` is named should the activation turn out to be unknown."""
        return value if name == "identity" else self._block(value, (name,) * len(value), where)

    def _block(self, before: Value, activations: tuple[str, ...], where: str) -> Value:
        self.spend(len(before) ** 2)
        self._blocks.append(Block(before, activations, where, 1 + self._stage(before)))
        return self._atoms(len(self._blocks) - 1)

    def _lazy(self, before: Value) -> Value:
        self.spend(len(before) ** 2)
        names = ("identity",) * len(before)
        self._blocks.append(Block(before, names, "a sum", 1 + self._stage(before), lazy=True))
        return replace(self._atoms(len(self._blocks) - 1), mixed=before.mixed)

    def _stage(self, value: Value) -> int:
        """Return the layer after which the vector can be read: one earlier for what is lazy."""
        blocks = [self._blocks[block] for block in value.parts]
        return max((block.stage - block.lazy for block in blocks), default=0)

    def made_by(self, value: Value) -> Block | None:
        """Return the block of which the vector is a multiple plus a constant, entry by entry, if there is one."""
        if len(value.parts) != 1:
            return None
        number, part = next(iter(value.parts.items()))
        diagonal = part.shape[0] == part.shape[1] and np.count_nonzero(part - np.diag(np.diag(part))) == 0
        return self._blocks[number] if diagonal and number != INPUT else None

    # --- flattening ---------------------------------------------------------------------------------------------------

    def network(self, output: Value) -> Network:
        """Return the chain of layers that computes `output`."""
        picked = self._picked(output)
        if picked is None or not max(self._blocks[block].stage for block, _ in picked):
            picked = self._picked(self._block(output, ("identity",) * len(output), "the output"))
            assert picked is not None
        above: list[Segment] = picked
        layers = []
        for stage in range(max(self._blocks[block].stage for block, _ in picked), 0, -1):
            below = self._needed(above, stage)
            layers.append(self._layer(above, below, stage))
            above = below
        return Network(reversed(layers))

    def _picked(self, value: Value) -> list[Segment] | None:
        """Return the one atom behind each entry, or None if an entry is anything else than an atom."""
        rows: list[Segment] = []
        if value.bias.any():
            return None
        for i in range(len(value)):
            used = [(block, np.flatnonzero(part[i])) for block, part in value.parts.items() if part[i].any()]
            if len(used) != 1 or len(used[0][1]) != 1 or value.parts[used[0][0]][i, used[0][1][0]] != 1.0:
                return None
            rows += used
        return rows

    def _needed(self, above: Sequence[Segment], stage: int) -> list[Segment]:
        """Return the neurons of the layer below: what was made there as a whole, and what is carried on."""
        if stage == 1:
            return [(INPUT, np.arange(len(self.inputs)))]
        wanted: dict[int, np.ndarray] = {}
        for block, rows in above:
            for source, atoms in self._sources(block, rows, stage):
                mask = wanted.setdefault(source, np.zeros(len(self._blocks[source].activations), dtype=bool))
                mask[atoms] = True
        made = [b for b in sorted(wanted) if self._blocks[b].stage == stage - 1]
        carried = [b for b in sorted(wanted) if self._blocks[b].stage < stage - 1 and wanted[b].any()]
        lazy = [b for b in made if self._blocks[b].lazy and wanted[b].any()]
        whole = [(b, np.arange(len(wanted[b]))) for b in made if not self._blocks[b].lazy]
        return whole + [(b, np.flatnonzero(wanted[b])) for b in sorted(lazy + carried)]

    def _sources(self, block: int, rows: np.ndarray, stage: int) -> Iterator[Segment]:
        """Yield the atoms that neurons of a layer read; those of an earlier stage read themselves."""
        if self._blocks[block].stage < stage:
            yield block, rows
        else:
            for source, part in self._before(block).parts.items():
                yield source, np.flatnonzero(part.any(axis=0))

    def _before(self, number: int) -> Value:
        """Return what enters a block, with lazy blocks of its own stage multiplied out."""
        if number in self._through:
            return self._through[number]
        here = self._blocks[number]
        parts, bias = dict(here.before.parts), here.before.bias
        while lazy := [b for b in parts if self._blocks[b].lazy and self._blocks[b].stage == here.stage]:
            part, inner = parts.pop(lazy[0]), self._blocks[lazy[0]].before
            for source, matrix in inner.parts.items():
                self._wide(len(bias), matrix.shape[1])
                parts[source] = parts[source] + part @ matrix if source in parts else part @ matrix
            bias = bias + part @ inner.bias
        self._through[number] = Value(parts, bias, here.before.mixed)
        return self._through[number]

    def _layer(self, above: Sequence[Segment], below: Sequence[Segment], stage: int) -> Layer:
        starts = np.cumsum([0, *(len(atoms) for _, atoms in below)])
        places = {block: (atoms, int(start)) for (block, atoms), start in zip(below, starts, strict=False)}
        height = sum(len(rows) for _, rows in above)
        self.spend(height * int(starts[-1]))
        weight, bias = np.zeros((height, int(starts[-1]))), np.zeros(height)
        names: list[str] = []
        for block, rows in above:
            here = self._blocks[block]
            span = slice(len(names), len(names) + len(rows))
            if here.stage < stage:
                atoms, start = places[block]
                weight[np.arange(span.start, span.stop), start + np.searchsorted(atoms, rows)] = 1.0
                names += ["identity"] * len(rows)
                continue
            before = self._before(block)
            for source, part in before.parts.items():
                if source in places:  # a block whose every weight is 0 is not carried
                    atoms, start = places[source]
                    weight[span, start : start + len(atoms)] = part[np.ix_(rows, atoms)]
            bias[span] = before.bias[rows]
            names += [_known(here, int(row)) for row in rows]
        return Layer(weight, bias, names)


def _known(block: Block, row: int) -> str:
    name = block.activations[row]
    if name not in NAMES:
        raise ModelError(f"{block.where}: {name} has no form here on its own\nknown are: {', '.join(NAMES)}")
    return name


def finite(where: str, *arrays: Array) -> None:
    """Refuse weights that are NaN or infinite, by name: folding would hide where they came from."""
    for array in arrays:
        if not math.isfinite(float(np.abs(array).max(initial=0.0))):
            raise ModelError(f"{where}: has a non-finite weight (NaN or infinity)")
