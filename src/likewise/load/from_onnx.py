"""ONNX -> Network: opset 11 and later, with tensors beside the model only where they lie inside of its folder."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.errors import FileError, InputError, MissingExtra, ModelError
from likewise.load import _onnx_math, _onnx_shape
from likewise.load._arrays import LIMIT, brief, listed
from likewise.load._bounded import content
from likewise.load._graph import Graph
from likewise.load._tensor import Item, Node, Tensor
from likewise.network import Network

if TYPE_CHECKING:
    import onnx

OLDEST = 11
MOST_NODES = 100_000
FLOATS = (1, 11)  # FLOAT and DOUBLE: what may enter a model
OPERATIONS = {**_onnx_shape.OPERATIONS, **_onnx_math.OPERATIONS}
# What numpy and Python raise on shapes and indices that do not fit each other; each is turned into our own error.
MISFITS = (ValueError, IndexError, TypeError, KeyError, ZeroDivisionError, OverflowError, MemoryError)


def library() -> Any:
    """Return onnx, or raise the error that names the extra to install."""
    try:
        import onnx
        import onnx.checker
        import onnx.numpy_helper
    except ImportError:
        raise MissingExtra("onnx (to read ONNX models)", "onnx") from None
    return onnx


def read_onnx(path: str | os.PathLike[str]) -> Network:
    """Return the network of an ONNX file; what cannot be read is refused with the operation and the node."""
    file = Path(path)
    try:
        model = _parsed(content(file))
        _attach(model, file)
        return from_model(model)
    except (FileError, MissingExtra):
        raise
    except InputError as error:
        raise ModelError(f"{file}: {error}") from None


def from_bytes(written: bytes) -> Network:
    """Return the network of an ONNX model that an exporter has just written."""
    return from_model(_parsed(written))


def _parsed(written: bytes) -> onnx.ModelProto:
    onnx = library()
    from google.protobuf.message import DecodeError  # comes with onnx

    try:
        return onnx.load_model_from_string(written)  # type: ignore[no-any-return]
    except (DecodeError, *MISFITS) as error:
        raise ModelError(f"is not a readable ONNX file: {brief(error)}") from None


def from_model(model: onnx.ModelProto) -> Network:
    """Return the network of an ONNX model in memory, all of its tensors inside."""
    onnx = library()
    opset = _opset(model)
    try:
        onnx.checker.check_model(model)
    except (onnx.checker.ValidationError, *MISFITS) as error:
        raise ModelError(f"is no valid ONNX model: {brief(error)}") from None
    graph = model.graph
    items: dict[str, Item] = {tensor.name: _array(tensor) for tensor in graph.initializer}
    entering = [entry for entry in graph.input if entry.name not in items]
    shapes = {entry.name: _shape(entry) for entry in entering}
    if len(graph.output) != 1:
        names = listed([entry.name for entry in graph.output])
        raise ModelError(f"has {len(graph.output)} outputs ({names}): keep the one that is the score")
    builder = Graph(sum(math.prod(shape[1:]) for shape in shapes.values()))
    start, batch = 0, next((shape[0] for shape in shapes.values()), 0)
    for name, (_, *sizes) in shapes.items():
        rows = np.arange(start, start + math.prod(sizes))
        alone = builder.inputs if len(shapes) == 1 else builder.take(builder.inputs, rows)
        items[name] = Tensor(tuple(sizes), alone)
        start += len(rows)
    for node in _reached(graph.node, graph.output[0].name):
        _evaluate(node, items, opset, batch or None, builder)
    output = items.get(graph.output[0].name)
    if not isinstance(output, Tensor):
        raise ModelError(f"the output {graph.output[0].name!r} does not depend on the input")
    return builder.network(output.value)


def _opset(model: onnx.ModelProto) -> int:
    newest: int = library().defs.onnx_opset_version()
    if model.functions:
        raise ModelError(f"has functions of its own ({listed([f.name for f in model.functions])}): inline them first")
    version = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 0)
    if not OLDEST <= version <= newest:
        raise ModelError(f"uses ONNX opset {version}: {OLDEST} to {newest} are read")
    return int(version)


def _shape(entry: onnx.ValueInfoProto) -> list[int]:
    """Return the shape of an input; an unknown number of people is 0."""
    tensor = entry.type.tensor_type
    if tensor.elem_type not in FLOATS:
        raise ModelError(f"input {entry.name!r} has ONNX type {tensor.elem_type}: only float32 and float64 are read")
    sizes = [int(dim.dim_value) for dim in tensor.shape.dim]
    if len(sizes) < 2 or min(sizes[1:]) < 1:
        raise ModelError(
            f"input {entry.name!r} has shape {sizes}: needs (people, columns) with a fixed number of columns"
        )
    return sizes


def _reached(nodes: Sequence[onnx.NodeProto], output: str) -> list[onnx.NodeProto]:
    """Return the nodes that the output needs, in order."""
    if len(nodes) > MOST_NODES:
        raise ModelError(f"has {len(nodes):,} nodes, more than {MOST_NODES:,}")
    wanted, kept = {output}, []
    for node in reversed(nodes):
        if wanted.intersection(node.output):
            kept.append(node)
            wanted.update(node.input)
    return kept[::-1]


def _evaluate(proto: onnx.NodeProto, items: dict[str, Item], opset: int, batch: int | None, graph: Graph) -> None:
    where = f"{proto.op_type} node {(proto.name or proto.output[0])[:60]!r}"
    if proto.domain not in ("", "ai.onnx"):
        raise ModelError(f"{where}: operations of {proto.domain[:40]!r} are not read")
    attributes = {entry.name: _attribute(entry) for entry in proto.attribute}
    if proto.op_type == "Constant":
        items[proto.output[0]] = _constant(where, attributes)
        return
    operation = OPERATIONS.get(proto.op_type)
    if operation is None:
        hint = " (images are not supported yet)" if proto.op_type in ("Conv", "MaxPool", "AveragePool") else ""
        raise ModelError(f"{where}: {proto.op_type} is not read{hint}\nread are: {', '.join(sorted(OPERATIONS))}")
    inputs = tuple(items[name] if name else None for name in proto.input)
    node = Node(proto.op_type, where, inputs, attributes, opset, sum(map(bool, proto.output)), batch, graph)
    try:
        made = operation(node)
    except InputError:
        raise
    except MISFITS as error:
        raise ModelError(f"{where}: cannot be read: {brief(error)}") from None
    items.update(zip(proto.output, made if isinstance(made, list) else [made], strict=False))


def _attribute(entry: onnx.AttributeProto) -> Any:
    value = library().helper.get_attribute_value(entry)
    return _array(value) if entry.type == entry.TENSOR else value


def _constant(where: str, attributes: Mapping[str, Any]) -> np.ndarray:
    name, value = next(iter(attributes.items()), ("nothing", None))
    if name == "value" and isinstance(value, np.ndarray):
        return value
    if name in ("value_float", "value_floats"):
        return np.array(value, dtype=np.float32)
    if name in ("value_int", "value_ints"):
        return np.array(value, dtype=np.int64)
    raise ModelError(f"{where}: holds {name}, which is not read")


def _array(tensor: onnx.TensorProto) -> np.ndarray:
    """Return a stored tensor; what it claims is held against the bytes that are there."""
    onnx = library()
    what = f"tensor {tensor.name[:60]!r}"
    if tensor.data_location == tensor.EXTERNAL:
        raise ModelError(f"{what} lies outside of the file")
    try:
        kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        claimed, size = math.prod(tensor.dims), kind.itemsize
        room = len(tensor.raw_data) // max(size, 1) if tensor.HasField("raw_data") else _fields(tensor)
        if kind.kind not in "fiub" or min(tensor.dims, default=1) < 0 or claimed > room:
            raise ModelError(f"{what} claims {claimed:,} numbers of {kind}, {room:,} are there")
        array: np.ndarray = onnx.numpy_helper.to_array(tensor)
    except MISFITS as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{what} cannot be read: {brief(error)}") from None
    return array


def _fields(tensor: onnx.TensorProto) -> int:
    stored: Iterable[Sequence[Any]] = (
        tensor.float_data, tensor.double_data, tensor.int32_data, tensor.int64_data, tensor.uint64_data
    )  # fmt: skip
    return max(len(field) for field in stored)


# --- tensors beside the file ---------------------------------------------------------------------------------------


def _attach(model: onnx.ModelProto, file: Path) -> None:
    """Read every external tensor into the model."""
    total = 0
    tensors = [*model.graph.initializer, *(a.t for n in model.graph.node for a in n.attribute if a.HasField("t"))]
    for tensor in tensors:
        if tensor.data_location == tensor.EXTERNAL:
            raw = _beside(tensor, file)
            total += len(raw)
            if total > LIMIT:
                raise FileError(f"{file}: its external tensors have more than {LIMIT >> 20} MiB")
            tensor.raw_data = raw
            tensor.data_location = tensor.DEFAULT
            del tensor.external_data[:]


def _beside(tensor: onnx.TensorProto, file: Path) -> bytes:
    what = f"{file}: tensor {tensor.name[:60]!r}"
    stored = {entry.key: entry.value for entry in tensor.external_data}
    place = stored.get("location", "")
    try:
        folder = file.parent.resolve()
        target = (folder / place).resolve()
        offset = int(stored.get("offset", "0"))
        size = library().helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize * math.prod(tensor.dims)
        length = int(stored.get("length", str(size)))
    except (OSError, RuntimeError, *MISFITS) as error:
        raise FileError(f"{what}: its external data cannot be found: {brief(error)}") from None
    if not place or Path(place).is_absolute() or ".." in Path(place).parts or not target.is_relative_to(folder):
        raise FileError(f"{what}: external data {place[:100]!r} does not lie inside of the model's folder")
    if offset < 0 or length != size or size > LIMIT:
        raise FileError(f"{what}: claims {size:,} bytes at {offset:,}, and {length:,} bytes of external data")
    raw = content(target, offset, length)
    if len(raw) != length:
        raise FileError(f"{what}: external data {place[:100]!r} ends before its {length:,} bytes")
    return raw
