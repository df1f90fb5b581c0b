"""Coding: arguments, lemmas and splits as bytes, little-endian, without any names; see docs/certificate-format.md."""

from __future__ import annotations

import struct

import numpy as np

from likewise.bounds.argument import Argument
from likewise.proof.evaluation import KINDS
from likewise.rounding import Array

SIDES = ("left", "right", "both")
LEMMA, LEAF, EMPTY, OPEN = b"T", b"L", b"E", b"O"
SPLIT_Z, SPLIT_CATEGORY, SPLIT_INTEGER = b"Z", b"C", b"I"
COLUMN, GROUP, TRUSTED_GROUP, ROOT = b"D", b"G", b"g", b"R"

What = tuple[str, int, int, float] | tuple[str, str, slice, np.ndarray] | tuple[str, str, int, float]


def sparse(values: Array) -> bytes:
    """Write a vector of known length: a bit per number, set where it is not 0, then the numbers that are not."""
    bits: bytes = np.packbits(values != 0.0, bitorder="little").tobytes()
    numbers: bytes = values[values != 0.0].astype("<f8").tobytes()
    return bits + numbers


def argument_bytes(argument: Argument) -> bytes:
    """Write an argument; numbers that are not finite are written as 0, which any multiplier may be."""
    used = argument.weights > 0.0
    count = int(used.sum())
    numbers = np.concatenate([argument.tangents.points[used], argument.weights[used]])
    flat = np.nan_to_num(np.concatenate(argument.arrays()), posinf=0.0, neginf=0.0)
    return struct.pack("<dH", argument.tangents.t, count) + numbers.astype("<f8").tobytes() + sparse(flat)


def lemma_bytes(layer: int, neuron: int, kind: str, sign: float, value: float, argument: Argument) -> bytes:
    """Write that sign times z of a neuron is at most `value`."""
    head = struct.pack("<HIBbd", layer, neuron, KINDS.index(kind), 1 if sign > 0 else -1, value)
    return LEMMA + head + argument_bytes(argument)


def split_bytes(what: What) -> bytes:
    """Write what a split is about; its two parts follow."""
    kind, first, where, at = what
    if kind == "category":
        assert isinstance(where, slice)
        mask = np.asarray(at, dtype=bool)
        return SPLIT_CATEGORY + struct.pack("<BIH", SIDES.index(str(first)), where.start, len(mask)) + mask.tobytes()
    if kind == "integer":
        return SPLIT_INTEGER + struct.pack("<BId", SIDES.index(str(first)), where, at)
    return SPLIT_Z + struct.pack("<BHId", KINDS.index(kind), first, where, at)
