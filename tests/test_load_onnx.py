"""ONNX: every operation against onnx's own reference evaluator, in the oldest and the newest opset."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from likewise.load import load
from likewise.network import Network

NEWEST = onnx.defs.onnx_opset_version()
RNG = np.random.default_rng(11)
W, B = RNG.normal(size=(4, 3)), RNG.normal(size=3)
V = RNG.normal(size=(3, 3))
Node = tuple[Any, ...]  # operation, inputs, output, attributes


def model(
    nodes: Sequence[Node], opset: int = NEWEST, shape: Sequence[Any] = ("n", 4), **arrays: Any
) -> onnx.ModelProto:
    """A model from x to y; arrays become initialisers."""
    kind = TensorProto.DOUBLE
    made = [helper.make_node(op, ins, outs.split(), name=f"{op}_{i}", **(rest[0] if rest else {}))
            for i, (op, ins, outs, *rest) in enumerate(nodes)]  # fmt: skip
    graph = helper.make_graph(
        made,
        "g",
        [helper.make_tensor_value_info("x", kind, list(shape))],
        [helper.make_tensor_value_info("y", kind, ["n", "k"])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def written(path: Path, proto: onnx.ModelProto) -> Path:
    path.write_bytes(proto.SerializeToString())
    return path


def agrees(tmp_path: Path, proto: onnx.ModelProto, close: float = 1e-12) -> Network:
    """Load the model and compare it with the reference evaluator on random people."""
    net = load(written(tmp_path / "m.onnx", proto))
    shape = [d.dim_value for d in proto.graph.input[0].type.tensor_type.shape.dim]
    people = np.random.default_rng(5).normal(size=(60, net.inputs)) * 3
    evaluator = ReferenceEvaluator(proto)
    batches = people.reshape(-1, 1, *shape[1:]) if shape[0] == 1 else [people.reshape(-1, *shape[1:])]
    expected = np.concatenate([evaluator.run(None, {"x": batch})[0].reshape(len(batch), -1) for batch in batches])
    assert net(people).reshape(60, -1) == pytest.approx(expected, rel=close, abs=close)
    return net


DENSE: list[Node] = [("Gemm", ["x", "W", "B"], "z")]
ACTIVATIONS: dict[str, tuple[str, dict[str, Any], str]] = {
    "relu": ("Relu", {}, "relu"),
    "leaky": ("LeakyRelu", {"alpha": 0.01}, "leaky_relu"),
    "leaky .2": ("LeakyRelu", {"alpha": 0.2}, "relu"),
    "sigmoid": ("Sigmoid", {}, "sigmoid"),
    "tanh": ("Tanh", {}, "tanh"),
    "softplus": ("Softplus", {}, "softplus"),
    "softsign": ("Softsign", {}, "softsign"),
    "elu": ("Elu", {}, "elu"),
    "elu .5": ("Elu", {"alpha": 0.5}, "elu/relu"),
    "selu": ("Selu", {}, "selu"),
    "hard sigmoid of torch": ("HardSigmoid", {"alpha": 1 / 6, "beta": 0.5}, "hardsigmoid"),
    "hard sigmoid": ("HardSigmoid", {}, "hardtanh"),
}


@pytest.mark.parametrize("opset", [11, NEWEST])
@pytest.mark.parametrize("case", ACTIVATIONS)
def test_activation(case: str, opset: int, tmp_path: Path) -> None:
    op, attributes, name = ACTIVATIONS[case]
    net = agrees(tmp_path, model([*DENSE, (op, ["z"], "y", attributes)], opset, W=W, B=B), 1e-6)
    assert "/".join(dict.fromkeys(net.layers[0].activations)) == name


@pytest.mark.parametrize(("op", "name"), [("Gelu", "gelu"), ("Swish", "silu")])
def test_activation_of_newer_opsets(op: str, name: str, tmp_path: Path) -> None:
    net = agrees(tmp_path, model([*DENSE, (op, ["z"], "y")], W=W, B=B), 1e-6)  # the evaluator's erf is single
    assert set(net.layers[-1].activations) == {name}


@pytest.mark.parametrize("opset", [11, NEWEST])
@pytest.mark.parametrize(
    ("low", "high", "name"),
    [
        (0.0, 6.0, "relu6"),
        (-1.0, 1.0, "hardtanh"),
        (0.0, 1.0, "hardtanh"),
        (-0.5, 2.0, "hardtanh"),
        (0.0, None, "relu"),
        (0.5, None, "relu"),
        (None, 0.25, "relu"),
        (None, None, "identity"),
    ],
)
def test_clip(low: float | None, high: float | None, name: str, opset: int, tmp_path: Path) -> None:
    ends = {key: np.float64(end) for key, end in (("low", low), ("high", high)) if end is not None}
    inputs = ["z", "low" if low is not None else "", "high" if high is not None else ""]
    net = agrees(tmp_path, model([*DENSE, ("Clip", inputs, "y")], opset, W=W, B=B, **ends))
    assert set(net.layers[0].activations) == {name}


def test_prelu(tmp_path: Path) -> None:
    agrees(tmp_path, model([*DENSE, ("PRelu", ["z", "s"], "y")], W=W, B=B, s=np.array([0.25, -0.5, 0.1])))


GELUS: dict[str, list[Node]] = {
    "x first": [("Mul", ["z", "d"], "a"), ("Mul", ["a", "half"], "y")],
    "half first": [("Mul", ["z", "half"], "a"), ("Mul", ["a", "d"], "y")],
    "half the distribution": [("Mul", ["d", "half"], "a"), ("Mul", ["a", "z"], "y")],
}


@pytest.mark.parametrize("case", GELUS)
def test_gelu_written_out(case: str, tmp_path: Path) -> None:
    nodes: list[Node] = [*DENSE, ("Div", ["z", "root"], "s"), ("Erf", ["s"], "e"), ("Add", ["e", "one"], "d")]
    constants = {"root": np.float64(np.sqrt(2)), "one": np.float64(1), "half": np.float64(0.5)}
    net = agrees(tmp_path, model([*nodes, *GELUS[case]], 13, W=W, B=B, **constants), 1e-6)
    assert set(net.layers[0].activations) == {"gelu"}


def test_silu_written_out(tmp_path: Path) -> None:
    net = agrees(tmp_path, model([*DENSE, ("Sigmoid", ["z"], "s"), ("Mul", ["s", "z"], "y")], 13, W=W, B=B))
    assert set(net.layers[0].activations) == {"silu"}


AFFINE: dict[str, tuple[list[Node], dict[str, Any]]] = {
    "gemm": ([("Gemm", ["x", "W", "B"], "y")], {}),
    "gemm scaled": ([("Gemm", ["x", "W", "B"], "y", {"alpha": 2.0, "beta": -0.5})], {}),
    "gemm transposed": ([("Gemm", ["x", "T", "c"], "y", {"transB": 1})], {"T": W.T.copy(), "c": np.float64(0.5)}),
    "gemm without a bias": ([("Gemm", ["x", "W"], "y")], {}),
    "gemm with a computed bias": ([("MatMul", ["x", "W"], "a"), ("Gemm", ["x", "W", "a"], "y", {"beta": 3.0})], {}),
    "matmul with a vector": ([("MatMul", ["x", "w"], "y")], {"w": W[:, 0].copy()}),
    "arithmetic": (
        [("Sub", ["x", "m"], "a"), ("Div", ["a", "s"], "b"), ("Mul", ["k", "b"], "c"), ("Neg", ["c"], "d"),
         ("Sub", ["k", "d"], "e"), ("MatMul", ["e", "W"], "f"), ("Add", ["B", "f"], "g"), ("Sub", ["g", "f"], "h"),
         ("Sum", ["h", "g", "B"], "y")],
        {"m": RNG.normal(size=4), "s": RNG.uniform(1, 2, size=(1, 4)), "k": np.float64(1.5)},
    ),
    "constants of their own": (
        [("Constant", [], "c", {"value_floats": [1.0, 2.0, 3.0, 4.0]}),
         ("Cast", ["c"], "k", {"to": TensorProto.DOUBLE}),
         ("Add", ["k", "k"], "kk"), ("Neg", ["kk"], "n"), ("Mul", ["x", "n"], "y")],
        {},
    ),
    "two products": ([("MatMul", ["x", "W"], "a"), ("MatMul", ["a", "V"], "y")], {"V": V}),
    "identity and dropout": ([("Identity", ["x"], "a"), ("Dropout", ["a"], "b"), ("Gemm", ["b", "W", "B"], "y")], {}),
}  # fmt: skip


@pytest.mark.parametrize("opset", [12, NEWEST])
@pytest.mark.parametrize("case", AFFINE)
def test_affine(case: str, opset: int, tmp_path: Path) -> None:
    nodes, arrays = AFFINE[case]
    agrees(tmp_path, model(nodes, opset, **{"W": W, "B": B, **arrays}), 1e-9)


def axes(opset: int, *numbers: int) -> tuple[list[str], dict[str, Any], dict[str, Any]]:
    """How an opset takes axes: as an attribute, or as one more input."""
    return (["ax"], {}, {"ax": np.array(numbers)}) if opset >= 13 else ([], {"axes": list(numbers)}, {})


@pytest.mark.parametrize("opset", [11, 13, NEWEST])
def test_reshaping_is_harmless(opset: int, tmp_path: Path) -> None:
    more, attributes, arrays = axes(opset, 1)
    nodes: list[Node] = [
        ("Unsqueeze", ["x", *more], "a", attributes),
        ("Reshape", ["a", "pair"], "b"),
        ("Add", ["b", "table"], "c"),
        ("Flatten", ["c"], "d"),
        ("Reshape", ["d", "one"], "e"),
        ("Squeeze", ["e", *more], "f", attributes),
        ("MatMul", ["f", "W"], "y"),
    ]
    given_ = {"pair": np.array([0, 2, -1]), "table": RNG.normal(size=(2, 2)), "one": np.array([-1, 1, 4])}
    agrees(tmp_path, model(nodes, opset, W=W, **given_, **arrays))


def test_a_shape_that_is_computed_keeps_people_apart(tmp_path: Path) -> None:
    nodes: list[Node] = [
        ("Shape", ["x"], "s"),
        ("Gather", ["s", "zero"], "n"),
        ("Unsqueeze", ["n", "axis"], "n1"),
        ("Concat", ["n1", "rest"], "t", {"axis": 0}),
        ("Reshape", ["x", "t"], "r"),
        ("MatMul", ["r", "W"], "y"),
    ]
    agrees(tmp_path, model(nodes, 13, W=W, zero=np.array(0), axis=np.array([0]), rest=np.array([-1])))


def test_a_model_for_one_person_with_images_like_axes(tmp_path: Path) -> None:
    nodes: list[Node] = [("Flatten", ["x"], "f"), ("Gemm", ["f", "W", "B"], "g"), ("Reshape", ["g", "t"], "y")]
    agrees(tmp_path, model(nodes, shape=(1, 1, 2, 2), W=W, B=B, t=np.array([1, 3])))


def embedding(opset: int) -> onnx.ModelProto:
    """Two numbers and two one-hot columns of 3 and 4, each with a table of its own."""
    rng = np.random.default_rng(9)
    if opset >= 13:
        cut: list[Node] = [("Split", ["x", "sizes"], "n a b", {"axis": 1})]
        arrays: dict[str, Any] = {"sizes": np.array([2, 3, 4])}
    else:
        cut = [
            ("Slice", ["x", "s0", "s2", "ax"], "n"),
            ("Gather", ["x", "picked"], "a", {"axis": 1}),
            ("Slice", ["x", "s5", "s9", "ax"], "b"),
        ]
        ends = {"s0": 0, "s2": 2, "s5": 5, "s9": np.iinfo(np.int64).max, "ax": 1}
        arrays = {name: np.array([end]) for name, end in ends.items()} | {"picked": np.array([2, 3, 4])}
    nodes: list[Node] = [
        *cut,
        ("MatMul", ["a", "A"], "ea"),
        ("Gemm", ["b", "T"], "eb", {"transB": 1}),
        ("Concat", ["n", "ea", "eb"], "e", {"axis": -1}),
        ("Gemm", ["e", "W0", "b0"], "z"),
        ("Relu", ["z"], "h"),
        ("Gemm", ["h", "W1"], "o"),
        ("Sigmoid", ["o"], "y"),
    ]
    arrays |= {"A": rng.normal(size=(3, 2)), "T": rng.normal(size=(2, 4)), "W0": rng.normal(size=(6, 5))}
    arrays |= {"b0": rng.normal(size=5), "W1": rng.normal(size=(5, 1))}
    return model(nodes, opset, ("n", 9), **arrays)


def test_entity_embeddings(tmp_path: Path) -> None:
    nets = [agrees(tmp_path, embedding(opset), 1e-9) for opset in (11, NEWEST)]
    assert nets[0].digest == nets[1].digest
    assert [len(layer.bias) for layer in nets[0].layers] == [6, 5, 1]


@pytest.mark.parametrize("opset", [14, NEWEST])
def test_residual_network_with_batch_norm(opset: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    norm = {"g": rng.normal(size=3), "o": rng.normal(size=3), "m": rng.normal(size=3), "v": rng.uniform(0.5, 2, size=3)}
    nodes: list[Node] = [
        *DENSE,
        ("BatchNormalization", ["z", "g", "o", "m", "v"], "n", {"epsilon": 1e-3}),
        ("Relu", ["n"], "h"),
        ("Gemm", ["h", "V", "B"], "r"),
        ("Tanh", ["r"], "t"),
        ("Add", ["h", "t"], "s"),
        ("BatchNormalization", ["s", "g", "o", "m", "v"], "q", {"epsilon": 1e-3}),
        ("Gemm", ["q", "V", "B"], "u"),
        ("Add", ["u", "s"], "w"),
        ("Softplus", ["w"], "y"),
    ]
    net = agrees(tmp_path, model(nodes, opset, W=W, B=B, V=V, **norm), 1e-8)
    assert [len(layer.bias) for layer in net.layers] == [3, 6, 3]
    # Before opset 14 batch norm trains if it has more than one output; the evaluator always trains then.
    older = written(tmp_path / "older.onnx", model(nodes, 11, W=W, B=B, V=V, **norm))
    assert load(older).digest == net.digest


@pytest.mark.parametrize("opset", [11, NEWEST])
def test_softmax_of_two_classes_is_a_sigmoid_of_the_difference(opset: int, tmp_path: Path) -> None:
    nodes: list[Node] = [("Gemm", ["x", "W2"], "z"), ("Softmax", ["z"], "y", {"axis": 1})]
    net = agrees(tmp_path, model(nodes, opset, W2=W[:, :2].copy()))
    assert net.layers[0].activations == ("sigmoid", "sigmoid")


def test_several_inputs_are_joined_in_their_order(tmp_path: Path) -> None:
    proto = model([("Concat", ["x", "z"], "c", {"axis": 1}), ("MatMul", ["c", "K"], "y")], K=RNG.normal(size=(6, 1)))
    proto.graph.input.append(helper.make_tensor_value_info("z", TensorProto.DOUBLE, ["n", 2]))
    people = RNG.normal(size=(5, 6))
    expected = ReferenceEvaluator(proto).run(None, {"x": people[:, :4], "z": people[:, 4:]})[0]
    assert load(written(tmp_path / "m.onnx", proto))(people) == pytest.approx(expected[:, 0], rel=1e-12)


def test_float32_weights_become_float64_exactly(tmp_path: Path) -> None:
    weight = RNG.normal(size=(4, 1)).astype(np.float32)
    proto = model([("MatMul", ["x", "W"], "y")], W=weight)
    proto.graph.input[0].type.tensor_type.elem_type = TensorProto.FLOAT
    assert np.array_equal(load(written(tmp_path / "m.onnx", proto)).layers[0].weight[0], weight[:, 0].astype(float))
