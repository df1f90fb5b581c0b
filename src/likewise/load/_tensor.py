"""Tensors of an ONNX model: constants as numpy arrays, and computed ones as vectors with a shape.

The first axis of a computed tensor is the people; an operation that would mix them is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.errors import ModelError
from likewise.load._graph import Graph, Value
from likewise.rounding import Array


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A computed tensor: its shape for one person, and its entries in row-major order."""

    shape: tuple[int, ...]
    value: Value

    def __repr__(self) -> str:
        return f"Tensor({self.shape})"

    @property
    def rank(self) -> int:
        """How many axes it has, the people included."""
        return 1 + len(self.shape)

    def places(self) -> np.ndarray:
        """Return where each entry lies in the vector, with an axis of length 1 for the people."""
        return np.arange(len(self.value)).reshape((1, *self.shape))


Item = Tensor | np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One operation: its name and place, what goes in (None where left out), and its attributes."""

    op: str
    where: str
    inputs: tuple[Item | None, ...]
    attributes: Mapping[str, Any]
    opset: int
    outputs: int
    batch: int | None  # the number of people, where the file fixes it
    graph: Graph

    def __repr__(self) -> str:
        return f"Node({self.where}, {len(self.inputs)} inputs)"

    def refuse(self, why: str) -> ModelError:
        """Return the error that names this node."""
        return ModelError(f"{self.where}: {why}")

    def given(self, i: int) -> Item | None:
        """Return input i, or None if it is left out."""
        return self.inputs[i] if i < len(self.inputs) else None

    def item(self, i: int) -> Item:
        """Return input i, which must be there."""
        found = self.given(i)
        if found is None:
            raise self.refuse(f"input {i} is missing")
        return found

    def tensor(self, i: int = 0) -> Tensor:
        """Return input i, which must be computed from the people."""
        found = self.item(i)
        if not isinstance(found, Tensor):
            raise self.refuse(f"input {i} must be computed from the model's input, it is a constant")
        return found

    def numbers(self, i: int) -> Array:
        """Return input i, which must be a constant, as float64."""
        found = self.item(i)
        if isinstance(found, Tensor):
            raise self.refuse(f"input {i} must be a constant, it is computed")
        if found.dtype.kind not in "fiu":
            raise self.refuse(f"input {i} must hold numbers, it has {found.dtype}")
        return found.astype(np.float64)

    def integers(self, i: int, attribute: str) -> list[int] | None:
        """Return whole numbers from input i or, in older opsets, from an attribute; None if neither is there."""
        found = self.given(i)
        if found is None:
            listed = self.attributes.get(attribute)
            return None if listed is None else [int(k) for k in np.atleast_1d(listed)]
        if isinstance(found, Tensor) or found.dtype.kind not in "iu":
            raise self.refuse(f"{attribute} must be constant whole numbers")
        return [int(k) for k in found.ravel()]

    def axis(self, axis: int, rank: int) -> int:
        """Return an axis counted from the front; the axis of the people is refused."""
        place = axis + rank if axis < 0 else axis
        if not 0 <= place < rank:
            raise self.refuse(f"axis {axis} does not exist in a tensor of {rank} axes")
        if place == 0:
            raise self.refuse("works along the first axis, which is that of the people")
        return place


def arranged(node: Node, tensor: Tensor, places: np.ndarray) -> Tensor:
    """Return the tensor with its entries taken from `places`, whose first axis is that of the people."""
    return Tensor(places.shape[1:], node.graph.take(tensor.value, places.ravel()))


def reshaped(tensor: Tensor, shape: Sequence[int]) -> Tensor:
    """Return the same entries in another shape."""
    return Tensor(tuple(shape), tensor.value)


def widened(node: Node, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return the tensor repeated to a shape, by numpy's rules."""
    if tensor.shape == shape:
        return tensor
    node.graph.spend(math.prod(shape))
    return arranged(node, tensor, np.broadcast_to(tensor.places(), (1, *shape)))


def spread(node: Node, constant: Array, tensor: Tensor) -> tuple[Array, Tensor]:
    """Return a constant and a tensor in their common shape, the constant flat; the people's axis takes no part."""
    aligned = constant.reshape((1,) * max(0, tensor.rank - constant.ndim) + constant.shape)
    if aligned.ndim > tensor.rank or aligned.shape[0] != 1:
        raise node.refuse(f"a constant of shape {constant.shape} does not fit {tensor.shape} per person")
    shape = tuple(np.broadcast_shapes(aligned.shape[1:], tensor.shape))
    node.graph.spend(math.prod(shape))
    flat: Array = np.broadcast_to(aligned, (1, *shape)).ravel()
    return flat, widened(node, tensor, shape)
