"""A Network as an ONNX file or as the state dict of a torch Sequential, in float64, so that nothing is rounded."""

from __future__ import annotations

import io
from importlib.util import find_spec
from pathlib import Path

import torch

from likewise.certificate import write_atomically
from likewise.errors import MissingExtra, ModelError
from likewise.network import Network

OPERATIONS = {"relu": "Relu", "sigmoid": "Sigmoid"}
OPSET = 17


def write_torch(network: Network, path: Path) -> Path:
    """Write {"0.weight": ..., "0.bias": ..., "2.weight": ...}: a Sequential of Linear and ReLU, and a final Sigmoid.

    A state dict does not say what its activations are, so only these are written.
    """
    names = [layer.activations[0] for layer in network.layers]
    if names[:-1] != ["relu"] * (len(names) - 1) or names[-1] != "sigmoid":
        raise ModelError(f"{path}: a state dict cannot say that the output is {names[-1]}: write .npz or .onnx")
    state: dict[str, torch.Tensor] = {}
    for i, layer in enumerate(network.layers):
        state |= {f"{2 * i}.weight": torch.tensor(layer.weight), f"{2 * i}.bias": torch.tensor(layer.bias)}
    packed = io.BytesIO()
    torch.save(state, packed)
    write_atomically(path, packed.getvalue())
    return path


def write_onnx(network: Network, path: Path) -> Path:
    """Write the network as Gemm and activation nodes."""
    if find_spec("onnx") is None:
        raise MissingExtra("onnx (to write .onnx files)", "onnx")
    from onnx import TensorProto, helper, numpy_helper

    nodes, weights, value = [], [], "people"
    for i, layer in enumerate(network.layers):
        weights += [numpy_helper.from_array(layer.weight.copy(), f"W{i}")]
        weights += [numpy_helper.from_array(layer.bias.copy(), f"b{i}")]
        nodes.append(helper.make_node("Gemm", [value, f"W{i}", f"b{i}"], [f"z{i}"], transB=1))
        value = f"z{i}"
        if layer.activations[0] != "identity":
            nodes.append(helper.make_node(OPERATIONS[layer.activations[0]], [value], [f"a{i}"]))
            value = f"a{i}"
    ends = [
        helper.make_tensor_value_info(name, TensorProto.DOUBLE, ["n", width])
        for name, width in (("people", network.inputs), (value, network.outputs))
    ]
    graph = helper.make_graph(nodes, "network", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    write_atomically(path, model.SerializeToString())
    return path
