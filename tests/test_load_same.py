"""One network in every format: the same layers, the same bits, the same digest."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from test_load_hdf5 import keras2, layer
from test_load_keras import keras, kl
from torch import nn

from likewise.load import load, write_npz
from likewise.network import Layer, Network

RNG = np.random.default_rng(13)
SHAPES = [(7, 5), (4, 7), (1, 4)]
WEIGHTS = [RNG.normal(size=shape).astype(np.float32) for shape in SHAPES]  # out x in
BIASES = [RNG.normal(size=shape[0]).astype(np.float32) for shape in SHAPES]
NAMES = ["relu", "relu", "sigmoid"]
EXPECTED = Network(Layer(w, b, n) for w, b, n in zip(WEIGHTS, BIASES, NAMES, strict=True)).digest


def onnx_model(path: Path, gemm: bool) -> Path:
    nodes, tensors, here = [], [], "x"
    for i, (weight, bias, name) in enumerate(zip(WEIGHTS, BIASES, ["Relu", "Relu", "Sigmoid"], strict=True)):
        stored = weight if gemm else np.ascontiguousarray(weight.T)
        tensors += [numpy_helper.from_array(stored, f"W{i}"), numpy_helper.from_array(bias, f"b{i}")]
        if gemm:
            nodes.append(helper.make_node("Gemm", [here, f"W{i}", f"b{i}"], [f"z{i}"], transB=1))
        else:
            nodes.append(helper.make_node("MatMul", [here, f"W{i}"], [f"p{i}"]))
            nodes.append(helper.make_node("Add", [f"p{i}", f"b{i}"], [f"z{i}"]))
        nodes.append(helper.make_node(name, [f"z{i}"], [f"h{i}"]))
        here = f"h{i}"
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", width]) for name, width in (("x", 5), (here, 1))
    ]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def module() -> nn.Sequential:
    made = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 4), nn.ReLU(), nn.Linear(4, 1), nn.Sigmoid())
    with torch.no_grad():
        for i, (weight, bias) in enumerate(zip(WEIGHTS, BIASES, strict=True)):
            made[2 * i].weight.copy_(torch.from_numpy(weight))
            made[2 * i].bias.copy_(torch.from_numpy(bias))
    return made


class Wrapped(nn.Module):
    """The same network behind a class of its own, so that it is read through its export."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = module()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)


def exported(path: Path) -> Path:
    written = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(module(), (torch.zeros(1, 5),), written, dynamo=False)
    path.write_bytes(written.getvalue())
    return path


def state_dict(path: Path) -> Path:
    torch.save(module().state_dict(), path)
    return path


def keras_model(path: Path) -> Path:
    made = keras.Sequential(
        [keras.Input((5,)), *(kl.Dense(len(b), activation=n) for b, n in zip(BIASES, NAMES, strict=True))]
    )
    made.set_weights([array for w, b in zip(WEIGHTS, BIASES, strict=True) for array in (w.T, b)])
    made.save(path)
    return path


def keras_2(path: Path) -> Path:
    names = ["dense", "dense_1", "dense_2"]
    first = {"batch_input_shape": [None, 5]}
    layers = [
        layer("Dense", k, activation=n, **(first if k == "dense" else {})) for k, n in zip(names, NAMES, strict=True)
    ]
    config = {"class_name": "Sequential", "config": {"name": "s", "layers": layers}}
    return keras2(
        path, config, [(k, {"kernel:0": w.T, "bias:0": b}) for k, w, b in zip(names, WEIGHTS, BIASES, strict=True)]
    )


def perceptron() -> MLPClassifier:
    made = MLPClassifier((7, 4), max_iter=1).fit(RNG.normal(size=(10, 5)), np.arange(10) % 2)
    made.coefs_, made.intercepts_ = [w.T.astype(float) for w in WEIGHTS], [b.astype(float) for b in BIASES]
    return made


def unscaled() -> Pipeline:
    scaler = StandardScaler().fit(RNG.normal(size=(10, 5)))
    scaler.mean_, scaler.scale_ = np.zeros(5), np.ones(5)
    return Pipeline([("scale", scaler), ("model", perceptron())])


FORMATS = {
    "npz": lambda folder: write_npz(load(module()), folder / "m.npz"),
    "onnx, Gemm": lambda folder: onnx_model(folder / "m.onnx", gemm=True),
    "onnx, MatMul and Add": lambda folder: onnx_model(folder / "m.onnx", gemm=False),
    "onnx, exported by torch": lambda folder: exported(folder / "m.onnx"),
    "torch, Sequential": lambda folder: module(),
    "torch, module": lambda folder: Wrapped(),
    "torch, state dict": lambda folder: state_dict(folder / "m.pt"),
    "keras": lambda folder: keras_model(folder / "m.keras"),
    "h5": lambda folder: keras_model(folder / "m.h5"),
    "h5 of Keras 2": lambda folder: keras_2(folder / "m.h5"),
    "scikit-learn": lambda folder: perceptron(),
    "scikit-learn, scaled by 1": lambda folder: unscaled(),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("name", FORMATS)
def test_the_digest_is_the_same(name: str, tmp_path: Path) -> None:
    assert load(FORMATS[name](tmp_path)).digest == EXPECTED
