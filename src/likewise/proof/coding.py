"""Coding: arguments and splits as bytes, little-endian, without any names; see docs/certificate-format.md.

A pair has many numbers: x of both people and their difference, then z and v of every layer, each of the left, the right
and the difference. A proof knows a number by its place in that order (`Numbers`).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from likewise.activations import by_name
from likewise.bounds.argument import Argument
from likewise.bounds.joint import Joint
from likewise.network import Layer, Network
from likewise.problem import Problem
from likewise.proof.evaluation import KINDS
from likewise.rounding import Array

SIDES = ("left", "right", "both")
ARGUMENTS, JOINT, END = b"A", b"J", b"E"
JOINTS = 16  # what a proof may say of all differences together, at most
SCRATCH = JOINTS - 1  # the slot that may be defined again and again, for the next argument alone
SPLIT_NUMBER, SPLIT_CATEGORY, SPLIT_SAME = b"Z", b"C", b"S"
HEAD, TARGET, NUMBER, GROUP = "<dHH", "<Ib", "<Id", "<BH"
NO_TARGET = (0, 0)
MOST = 1 << 22  # numbers side by side, over all arguments of a batch
FAR = 1e300  # stands for the point of the line a >= b

What = tuple[str, int, int, float] | tuple[str, str, slice, np.ndarray] | tuple[str, str, int, float]


class Numbers:
    """Where the numbers of a pair of a problem (an inner one) are, and the order of an argument's multipliers.

    A proof speaks of the numbers of the question itself: x, z and v of the network's layers, then of the embedding's,
    each ended by an affine layer. An inner problem may have more neurons that only carry a number on: they are that
    number. Of an embedding that was multiplied into the metric it has none; the multipliers of its equations follow
    from those of the metric.
    """

    def __init__(self, problem: Problem) -> None:
        outer = problem.outer or problem
        phi = () if outer.metric.phi is None else _ended(outer.metric.phi, set())
        network = _ended(outer.network, {"sigmoid", "tanh"})
        self.problem, self.width, self._phi, self._matrix = problem, problem.right.width, phi, outer.metric.matrix
        self._chains = (network, phi) if problem.aside else (network,)
        self._heights = [len(layer.bias) for layer in (*network, *phi)]
        sizes = [self.width, *(height for height in self._heights for _ in "zv")]
        self._rows = np.cumsum([0, *sizes]).tolist()  # of the differences, stage by stage
        self._affine = (self._rows[-1] + np.cumsum([0, *(2 * height for height in self._heights)])).tolist()
        self.size = 3 * self._rows[-1] + 1
        limits = len(problem.left.constraints[1]) + len(problem.right.constraints[1])
        self.count = self._affine[-1] + len(self._matrix) + limits + JOINTS
        depth = len(problem.network.layers)
        self._z = [self._stages(k, 0) for k in range(depth)]
        v = [self._stages(k, 1) for k in range(depth)]
        self._v = v
        self._z_rows, self._v_rows = ([self._differences(stages) for stages in some] for some in (self._z, v))

    def _stages(self, k: int, is_v: int) -> list[tuple[int, int]]:
        """Return (stage, row) of every z or v of an inner layer; stages are x, then z and v of each layer in turn."""
        found = []
        for first, chain in zip((0, len(self._chains[0])), self._chains, strict=False):
            last = len(chain) - 1
            stage = 1 + 2 * (first + min(k, last)) + (is_v if k < last else 0)
            found += [(stage, row) for row in range(len(chain[min(k, last)].bias))]
        return found

    def _differences(self, stages: list[tuple[int, int]]) -> NDArray[np.int64]:
        return np.array([self._rows[stage] + row for stage, row in stages], dtype=np.int64)

    @property
    def weights(self) -> int:
        """How many weights show what holds of all differences together."""
        return self.width + 2 * sum(self._heights[: len(self._chains[0]) - 1]) + 1

    @cached_property
    def bowls(self) -> int:
        """How many numbers bowls have beside these: five a neuron, if every hidden layer is of one smooth curve."""
        hidden = self._chains[0][:-1]
        is_smooth = all(len({*a.activations}) == 1 and by_name(a.activations[0]).bends is not None for a in hidden)
        return 5 * sum(self._heights[: len(hidden)]) if is_smooth else 0

    @property
    def can_join(self) -> bool:
        """Whether a proof can speak of all differences together: layers are the question's own, nothing is aside."""
        return not self.problem.aside and len(self._chains[0]) == len(self.problem.network.layers)

    def z(self, layer: int, kind: str, neuron: int) -> int:
        """Return the place of a neuron's z."""
        return self._place(kind, *self._z[layer][neuron])

    def _place(self, kind: str, stage: int, row: int) -> int:
        height = self._rows[stage + 1] - self._rows[stage]
        return int(3 * self._rows[stage] + KINDS.index(kind) * height + row)

    def x(self, kind: str, column: int) -> int:
        """Return the place of a column, of a person or of the difference."""
        return KINDS.index(kind) * self.width + column

    def difference(self, layer: int, neuron: int) -> int:
        """Return which multiplier is that of dz - z_left + z_right = 0."""
        return int(self._z_rows[layer][neuron])

    @cached_property
    def _named(self) -> dict[int, tuple[str, int, int]]:
        numbers = [(k, j) for k, stages in enumerate(self._z) for j in range(len(stages))]
        return {self.z(k, kind, j): (kind, k, j) for k, j in reversed(numbers) for kind in KINDS}

    def named(self, place: int) -> tuple[str, int, int] | tuple[str, int] | None:
        """Return (kind, layer, neuron) or (side, column) of a place; None for one that no split is about."""
        if place < 2 * self.width:
            return SIDES[place // self.width], place % self.width
        return self._named.get(place)

    def multipliers(self, argument: Argument, shared: np.ndarray) -> Array:
        """Return an argument's multipliers in a row.

        Columns that cannot differ are counted on the right person alone: what they have on the left is moved there.
        """
        row, A = self.of_metric(argument.mu), self.problem.left.constraints[0]
        own = argument.left[0] @ self.problem.network.layers[0].weight - argument.omega[0] @ A
        row[: self.width] += np.where(shared, own, argument.nu)
        for k, (turn, both) in enumerate(zip(argument.turn, argument.both, strict=True)):
            row[self._z_rows[k]] -= turn
            if k + 1 < len(self._z):
                row[self._v_rows[k]] += both
            self._pass_on(row, k, argument.left[k], argument.right[k])
        rest = np.concatenate([*argument.omega, np.maximum(argument.joint, 0.0)])
        first = self.count - JOINTS - len(argument.omega[0]) - len(argument.omega[1])
        row[first : first + len(rest)] = rest
        return row

    def _pass_on(self, row: Array, k: int, left: Array, right: Array) -> None:
        """Write the multipliers of W v + bias - z = 0; a neuron that carries a number on has no such equation."""
        at, first = 0, 0
        for chain in self._chains:
            height = len(chain[min(k, len(chain) - 1)].bias)
            if k < len(chain):
                start = self._affine[first + k]
                row[start : start + height] = left[at : at + height]
                row[start + height : start + 2 * height] = right[at : at + height]
            at, first = at + height, first + len(chain)

    def joined(self, joint: Joint) -> Array:
        """Return upper - nu.d - both.dv + turn.dz as coefficients of all numbers of a pair, the last one of 1."""
        row = np.zeros(self.size)
        row[2 * self.width : 3 * self.width] = -joint.nu
        for k, (both, turn) in enumerate(zip(joint.both, joint.turn, strict=True)):
            for j in range(len(both)):
                row[self._place("dz", *self._v[k][j])] = -both[j]
                row[self._place("dz", *self._z[k][j])] = turn[j]
        row[-1] = joint.upper
        return row

    def of_metric(self, mu: Array) -> Array:
        """Return the multipliers of an argument that is about the metric alone."""
        row = np.zeros(self.count)
        row[self._affine[-1] : self._affine[-1] + len(mu)] = mu
        if self._phi and not self.problem.aside:
            back = mu @ self._matrix
            row[self._rows[-3] : self._rows[-2]] = back
            for k, layer in reversed(list(enumerate(self._phi, len(self._chains[0])))):
                row[self._affine[k] : self._affine[k + 1]] = np.concatenate([-back, back])
                back = back @ layer.weight
            row[: self.width] = -back
        return row


def _ended(network: Network, scores: set[str]) -> tuple[Layer, ...]:
    """Return layers that end in an affine one, or in one of some functions of it."""
    names = set(network.layers[-1].activations)
    if names == {"identity"} or names <= scores:
        return tuple(network.layers)
    return (*network.layers, Layer(np.eye(network.outputs), np.zeros(network.outputs), "identity"))


@dataclass(frozen=True, slots=True)
class Lemma:
    """One argument in bytes: what it shares with others that stand beside it, what it is about, its multipliers."""

    shared: bytes
    target: bytes
    multipliers: bytes


def sparse(values: Array) -> bytes:
    """Write a vector of known length: a bit per number, set where it is not 0, then the numbers that are not.

    Numbers that are not finite are written as 0, which any multiplier may be.
    """
    values = np.nan_to_num(values, posinf=0.0, neginf=0.0)
    bits: bytes = np.packbits(values != 0.0, bitorder="little").tobytes()
    numbers: bytes = values[values != 0.0].astype("<f8").tobytes()
    return bits + numbers


def lemma(t: float, points: Array, target: tuple[int, int], multipliers: Array) -> Lemma:
    """Return an argument in bytes; its multipliers begin with those of the tangents at the points."""
    at = np.clip(points, -FAR, FAR)
    return Lemma(struct.pack("<dH", t, len(at)) + sparse(at), struct.pack(TARGET, *target), sparse(multipliers))


def argued(
    numbers: Numbers, argument: Argument, shared: np.ndarray, about: tuple[int, str, int, float] | None
) -> Lemma:
    """Return an argument in bytes, about sign times a neuron's z (layer, kind, neuron, sign) or nothing."""
    row, target = numbers.multipliers(argument, shared), NO_TARGET
    if about is not None:
        layer, kind, neuron, sign = about
        target = (numbers.z(layer, kind, neuron), 1 if sign > 0 else -1)
        if kind == "dz":  # an argument has it as z_left - z_right, a proof as a number of its own
            row[numbers.difference(layer, neuron)] -= target[1]
    lines = argument.tangents
    return lemma(lines.t, lines.points, target, np.concatenate([np.maximum(argument.weights, 0.0), row]))


def joint_bytes(numbers: Numbers, slot: int, joint: Joint) -> bytes:
    """Write what holds of all differences together, and the weights that show it."""
    bowls = sparse(joint.bowls.ravel()) if joint.bowls.size else b""
    return JOINT + struct.pack("<B", slot) + sparse(numbers.joined(joint)) + sparse(joint.weights) + bowls


def side_by_side(lemmas: list[Lemma]) -> bytes:
    """Write arguments that share a threshold and its points."""
    t_and_lines, points = lemmas[0].shared[:10], lemmas[0].shared[10:]
    head = ARGUMENTS + t_and_lines + struct.pack("<H", len(lemmas)) + points
    return head + b"".join(one.target for one in lemmas) + b"".join(one.multipliers for one in lemmas)


def split_bytes(numbers: Numbers, what: What) -> bytes:
    """Write what a split is about; its two parts follow. A split of "both" is one of the left: the right follows."""
    kind, first, where, at = what
    if kind == "category":
        assert isinstance(where, slice)
        group = [one.start for one in numbers.problem.right.groups].index(where.start)
        mask = np.asarray(at, dtype=bool).tobytes()
        return SPLIT_CATEGORY + struct.pack(GROUP, SIDES.index(str(first)), group) + mask
    assert isinstance(where, int)
    if kind == "integer":
        place = numbers.x("right" if first == "right" else "left", where)
    else:
        place = numbers.z(int(first), kind, where)
    return SPLIT_NUMBER + struct.pack(NUMBER, place, at)
