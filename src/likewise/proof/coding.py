"""Coding: arguments and splits as bytes, little-endian, without any names; see docs/certificate-format.md.

A pair has many numbers: x of both people and their difference, then z and v of every layer, each of the left, the right
and the difference. A proof knows a number by its place in that order (`Numbers`).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from likewise.bounds.argument import Argument
from likewise.problem import Problem
from likewise.proof.evaluation import KINDS
from likewise.rounding import Array

SIDES = ("left", "right", "both")
ARGUMENTS, END = b"A", b"E"
SPLIT_NUMBER, SPLIT_CATEGORY, SPLIT_SAME = b"Z", b"C", b"S"
HEAD, TARGET, NUMBER, GROUP = "<dHH", "<Ib", "<Id", "<BH"
NO_TARGET = (0, 0)
MOST = 1 << 22  # numbers side by side, over all arguments of a batch
FAR = 1e300  # stands for the point of the line a >= b

What = tuple[str, int, int, float] | tuple[str, str, slice, np.ndarray] | tuple[str, str, int, float]


class Numbers:
    """Where the numbers of a pair of a problem (an inner one) are, and the order of an argument's multipliers."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.width = problem, problem.right.width
        self.heights = [len(layer.bias) for layer in problem.network.layers]
        sizes = [self.width, *(height for height in self.heights for _ in "zv")][:-1]
        ends = np.cumsum([0, *(3 * size for size in sizes)]).tolist()
        self.starts, self.size = ends[1::2][: len(self.heights)], ends[-1] + 1
        limits = len(problem.left.constraints[1]) + len(problem.right.constraints[1])
        self.count = sum(sizes) + 2 * sum(self.heights) + len(problem.metric.matrix) + limits
        self._before_mu = sum(sizes) + 2 * sum(self.heights)

    def z(self, layer: int, kind: str, neuron: int) -> int:
        """Return the place of a neuron's z."""
        return int(self.starts[layer] + KINDS.index(kind) * self.heights[layer] + neuron)

    def x(self, kind: str, column: int) -> int:
        """Return the place of a column, of a person or of the difference."""
        return KINDS.index(kind) * self.width + column

    def named(self, place: int) -> tuple[str, int, int] | tuple[str, int] | None:
        """Return (kind, layer, neuron) or (side, column) of a place; None for one that no split is about."""
        if place < 2 * self.width:
            return SIDES[place // self.width], place % self.width
        for layer, (start, height) in enumerate(zip(self.starts, self.heights, strict=True)):
            if start <= place < start + 3 * height:
                return KINDS[(place - start) // height], layer, (place - start) % height
        return None

    def multipliers(self, argument: Argument, shared: np.ndarray) -> Array:
        """Return an argument's multipliers in a row.

        Columns that cannot differ are counted on the right person alone: what they have on the left is moved there.
        """
        A = self.problem.left.constraints[0]
        own = argument.left[0] @ self.problem.network.layers[0].weight - argument.omega[0] @ A
        parts = [np.where(shared, own, argument.nu)]
        for turn, both in zip(argument.turn, argument.both, strict=True):
            parts += [-turn, both]
        del parts[-1]
        for left, right in zip(argument.left, argument.right, strict=True):
            parts += [left, right]
        return np.concatenate([*parts, argument.mu, *argument.omega])

    def of_metric(self, mu: Array) -> Array:
        """Return the multipliers of an argument that is about the metric alone."""
        row = np.zeros(self.count)
        row[self._before_mu : self._before_mu + len(mu)] = mu
        return row


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
            row[numbers.width + sum(2 * height for height in numbers.heights[:layer]) + neuron] -= target[1]
    lines = argument.tangents
    return lemma(lines.t, lines.points, target, np.concatenate([np.maximum(argument.weights, 0.0), row]))


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
