"""ONNX operations that only move entries: on computed tensors, and on constants such as shapes and indices.

The number of people is unknown while a model is read, so `Shape` yields an array of objects with None in its place;
such an array can be cut, joined and given to Reshape, and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from likewise.load._tensor import Item, Node, Tensor, arranged, reshaped

FLOATS = {1: np.float32, 11: np.float64}  # what Cast may turn a computed tensor into
INTEGERS = {6: np.int32, 7: np.int64}


def identity(node: Node) -> Item:
    """Identity, and Dropout as it is when a model is used."""
    return node.item(0)


def dropout(node: Node) -> Item:
    """Dropout does nothing unless it is told to train."""
    mode = node.given(2)
    if mode is not None and (isinstance(mode, Tensor) or mode.any()):
        raise node.refuse("is in training mode: export the model for inference")
    return node.item(0)


def cast(node: Node) -> Item:
    """Cast between float32 and float64; a shape may become whole numbers."""
    item, to = node.item(0), int(node.attributes["to"])
    if isinstance(item, Tensor):
        if to in INTEGERS:
            raise node.refuse("makes codes of a computed tensor: feed one-hot columns, not codes, and multiply them")
        if to not in FLOATS:
            raise node.refuse(f"casts a computed tensor to ONNX type {to}: only float32 and float64 are read")
        return item
    if item.dtype == object:
        if to not in INTEGERS:
            raise node.refuse("casts the number of people to a float")
        return item
    kinds: dict[int, Any] = {**FLOATS, **INTEGERS}
    if to not in kinds:
        raise node.refuse(f"casts a constant to ONNX type {to}: float32, float64, int32 and int64 are read")
    return item.astype(kinds[to])


def shape(node: Node) -> Item:
    """The shape of a tensor, None standing for the number of people."""
    item = node.item(0)
    full = [None, *item.shape] if isinstance(item, Tensor) else list(item.shape)
    end = node.attributes.get("end")
    return np.array(full[int(node.attributes.get("start", 0)) : None if end is None else int(end)], dtype=object)


def flatten(node: Node) -> Item:
    """Flatten everything that belongs to one person."""
    tensor = node.tensor()
    axis = int(node.attributes.get("axis", 1))
    if (axis + tensor.rank if axis < 0 else axis) != 1:
        raise node.refuse(f"flattens at axis {axis}: only 1, which keeps people apart, is read")
    return reshaped(tensor, (math.prod(tensor.shape),))


def reshape(node: Node) -> Item:
    """Another shape for the entries of one person; the first axis must stay that of the people."""
    item, target = node.item(0), node.item(1)
    if isinstance(target, Tensor) or target.dtype.kind not in "iuO":
        raise node.refuse("needs a constant shape")
    wanted: list[int | None] = [None if k is None else int(k) for k in target.ravel()]
    if isinstance(item, np.ndarray):
        return item.reshape([-2 if k is None else k for k in _copied(node, wanted, item.shape)])  # numpy refuses -2
    sizes = _copied(node, wanted, (None, *item.shape))
    entries = math.prod(item.shape)
    first, rest = sizes[0] if sizes else 0, sizes[1:]
    if None in rest or not (first is None or first == -1 or (first == node.batch and first)):
        raise node.refuse(f"to {wanted} would mix people: the first axis must be theirs (0 or -1)")
    lengths = [int(k) for k in rest if k is not None]
    if lengths.count(-1) == 1 and first != -1:
        known = -math.prod(lengths)
        lengths[lengths.index(-1)] = entries // known if known > 0 and entries % known == 0 else 0
    if min(lengths, default=1) < 0 or math.prod(lengths) != entries:
        raise node.refuse(f"to {wanted} does not fit {item.shape} per person")
    return reshaped(item, lengths)


def _copied(node: Node, wanted: Sequence[int | None], old: Sequence[int | None]) -> list[int | None]:
    """Return the wanted shape with every 0 replaced by the old length, unless the node takes 0 at its word."""
    if node.attributes.get("allowzero", 0):
        return list(wanted)
    return [old[i] if k == 0 else k for i, k in enumerate(wanted)]


def squeeze(node: Node) -> Item:
    """Remove axes of length 1."""
    item, axes = node.item(0), node.integers(1, "axes")
    if isinstance(item, np.ndarray):
        return item.squeeze() if axes is None else item.squeeze(tuple(axes))
    if axes is None:
        raise node.refuse("needs its axes: without them a single person would lose the first one")
    kept = item.places().squeeze(tuple(node.axis(axis, item.rank) for axis in axes))
    return reshaped(item, kept.shape[1:])


def unsqueeze(node: Node) -> Item:
    """Insert axes of length 1."""
    item, axes = node.item(0), node.integers(1, "axes") or []
    if isinstance(item, np.ndarray):
        return np.expand_dims(item, tuple(axes))
    rank = item.rank + len(axes)
    spread = np.expand_dims(item.places(), tuple(node.axis(axis, rank) for axis in axes))
    return reshaped(item, spread.shape[1:])


def transpose(node: Node) -> Item:
    """Reorder the axes of a constant."""
    item = node.item(0)
    if isinstance(item, Tensor):
        raise node.refuse("transposes a computed tensor, which is not read")
    return item.transpose(node.attributes.get("perm"))


def concat(node: Node) -> Item:
    """Join tensors along an axis."""
    items = [node.item(i) for i in range(len(node.inputs))]
    axis = int(node.attributes["axis"])
    constants = [item for item in items if isinstance(item, np.ndarray)]
    if len(constants) == len(items):
        node.graph.spend(sum(item.size for item in constants))
        return np.concatenate(constants, axis)
    tensors = [item if isinstance(item, Tensor) else _for_everybody(node, item) for item in items]
    place = node.axis(axis, tensors[0].rank)
    starts = np.cumsum([0, *(len(t.value) for t in tensors)])
    joined = Tensor((int(starts[-1]),), node.graph.join([t.value for t in tensors]))
    shifted = [t.places() + start for t, start in zip(tensors, starts, strict=False)]
    places = np.concatenate(shifted, place)
    return reshaped(joined, places.shape[1:]) if len(tensors[0].shape) == 1 else arranged(node, joined, places)


def _for_everybody(node: Node, item: np.ndarray) -> Tensor:
    if item.dtype.kind != "f" or item.ndim < 1 or item.shape[0] != 1:
        raise node.refuse(f"joins a constant of shape {item.shape} and {item.dtype} to a computed tensor")
    return Tensor(item.shape[1:], node.graph.constant(item.ravel()))


def gather(node: Node) -> Item:
    """Pick entries along an axis by constant indices."""
    item, indices, axis = node.item(0), node.item(1), int(node.attributes.get("axis", 0))
    if isinstance(indices, Tensor):
        raise node.refuse("looks up computed indices (an embedding of codes): feed one-hot columns to a Gemm instead")
    if indices.dtype.kind not in "iu":
        raise node.refuse(f"needs constant whole numbers as indices, got {indices.dtype}")
    length = item.shape[axis] if isinstance(item, np.ndarray) else math.prod(item.shape)
    node.graph.spend(indices.size * (item.size // max(length, 1) if isinstance(item, np.ndarray) else length))
    if isinstance(item, np.ndarray):
        return np.asarray(np.take(item, indices, axis))
    return arranged(node, item, np.take(item.places(), indices, node.axis(axis, item.rank)))


def slice_(node: Node) -> Item:
    """Cut a range out of each named axis."""
    item = node.item(0)
    starts, ends = node.integers(1, "starts"), node.integers(2, "ends")
    if starts is None or ends is None:
        raise node.refuse("needs its starts and ends")
    rank = item.ndim if isinstance(item, np.ndarray) else item.rank
    axes, steps = node.integers(3, "axes") or list(range(len(starts))), node.integers(4, "steps") or [1] * len(starts)
    cuts = [slice(None)] * rank
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        place = axis % rank if isinstance(item, np.ndarray) else node.axis(axis, rank)
        # Going backwards, an end before the first entry is written as a very negative number.
        cuts[place] = slice(start, None if step < 0 and end < -(1 << 30) else end, step)
    if isinstance(item, np.ndarray):
        return item[tuple(cuts)]
    return arranged(node, item, item.places()[tuple(cuts)])


def split(node: Node) -> list[Item]:
    """Cut an axis into consecutive parts."""
    tensor = node.tensor()
    place = node.axis(int(node.attributes.get("axis", 0)), tensor.rank)
    places = tensor.places()
    length, lengths = places.shape[place], node.integers(1, "split")
    if lengths is None:
        chunk = -(-length // node.outputs)
        lengths = [min(chunk, length - i * chunk) for i in range(node.outputs)]
    if len(lengths) != node.outputs or sum(lengths) != length or min(lengths) < 1:
        raise node.refuse(f"cannot split {length} entries into {lengths}")
    return [arranged(node, tensor, part) for part in np.split(places, np.cumsum(lengths)[:-1], place)]


OPERATIONS: Mapping[str, Callable[[Node], Item | list[Item]]] = {
    "Cast": cast,
    "Concat": concat,
    "Dropout": dropout,
    "Flatten": flatten,
    "Gather": gather,
    "Identity": identity,
    "Reshape": reshape,
    "Shape": shape,
    "Slice": slice_,
    "Split": split,
    "Squeeze": squeeze,
    "Transpose": transpose,
    "Unsqueeze": unsqueeze,
}
