"""ONNX: what is refused, by name, and hostile files: in three lines, in time, in bounded memory."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from refusals import refuses
from test_load_onnx import Node, W, embedding, model, written

from likewise.cli import main
from likewise.errors import FileError, InputError, MissingExtra, ModelError
from likewise.load import load, read_onnx

_graph = importlib.import_module("likewise.load._graph")  # the name likewise.load is also that of a function

K = np.zeros((2, 4, 1, 1))
REFUSED: dict[str, tuple[list[Node], dict[str, Any], tuple[str, ...]]] = {
    "convolution": ([("Conv", ["x", "K"], "y")], {"K": K}, ("Conv", "Conv_0")),
    "max pool": ([("MaxPool", ["x"], "y", {"kernel_shape": [2]})], {}, ("MaxPool", "MaxPool_0")),
    "unknown": ([("Sin", ["x"], "y")], {}, ("Sin node 'Sin_0'",)),
    "hard swish": ([("HardSwish", ["x"], "y")], {}, ("HardSwish",)),
    "tanh gelu": ([("Gelu", ["x"], "y", {"approximate": "tanh"})], {}, ("Gelu_0", "tanh")),
    "swish of 2": ([("Swish", ["x"], "y", {"alpha": 2.0})], {}, ("Swish_0", "alpha")),
    "selu": ([("Selu", ["x"], "y", {"alpha": 2.0})], {}, ("Selu_0", "alpha")),
    "softmax of many": (
        [("MatMul", ["x", "W"], "z"), ("Softmax", ["z"], "y")],
        {"W": np.ones((4, 17))},
        ("Softmax_1", "17 classes", "logits"),
    ),
    "log softmax": ([("LogSoftmax", ["x"], "y")], {}, ("LogSoftmax",)),
    "erf alone": ([("Erf", ["x"], "y")], {}, ("Erf_0",)),
    "a square": ([("Mul", ["x", "x"], "y")], {}, ("Mul_0", "two computed")),
    "sigmoid of another": ([("Sigmoid", ["x"], "s"), ("Neg", ["x"], "n"), ("Mul", ["n", "s"], "y")], {}, ("Mul_2",)),
    "erf at another scale": (
        [("Erf", ["x"], "e"), ("Add", ["e", "one"], "d"), ("Mul", ["x", "d"], "y")],
        {"one": np.float64(1)},
        ("Mul_2", "gelu"),
    ),
    "product of two": ([("MatMul", ["x", "x"], "y")], {}, ("MatMul_0", "constant")),
    "constant on the left": ([("MatMul", ["M", "x"], "y")], {"M": np.eye(4)}, ("MatMul_0", "left")),
    "division by a tensor": ([("Div", ["one", "x"], "y")], {"one": np.float64(1)}, ("Div_0", "computed")),
    "division by 0": ([("Div", ["x", "o"], "y")], {"o": np.zeros(4)}, ("Div_0", "by 0")),
    "mixing people": ([("Gemm", ["x", "W"], "y", {"transA": 1})], {"W": W}, ("Gemm_0", "transA")),
    "along people": ([("Concat", ["x", "x"], "y", {"axis": 0})], {}, ("Concat_0", "people")),
    "slice of people": ([("Slice", ["x", "i", "i"], "y")], {"i": np.array([1])}, ("Slice_0", "people")),
    "reshape over people": ([("Reshape", ["x", "t"], "y")], {"t": np.array([2, -1])}, ("Reshape_0", "people")),
    "reshape that does not fit": ([("Reshape", ["x", "t"], "y")], {"t": np.array([-1, 3])}, ("Reshape_0", "fit")),
    "squeeze of anything": ([("Squeeze", ["x"], "y")], {}, ("Squeeze_0", "axes")),
    "embedding of codes": ([("Gather", ["T", "x"], "y")], {"T": W}, ("Gather_0", "one-hot")),
    "to whole numbers": ([("Cast", ["x"], "y", {"to": TensorProto.INT64})], {}, ("Cast_0", "one-hot")),
    "to half precision": ([("Cast", ["x"], "y", {"to": TensorProto.FLOAT16})], {}, ("Cast_0",)),
    "dropout that trains": ([("Dropout", ["x", "", "t"], "y")], {"t": np.array(True)}, ("Dropout_0", "training")),
    "batch norm that trains": (
        [("BatchNormalization", ["x", "o", "o", "o", "o"], "y r s", {"training_mode": 1})], {"o": np.ones(4)},
        ("BatchNormalization_0", "training"),
    ),
    "a negative variance": (
        [("BatchNormalization", ["x", "o", "o", "o", "v"], "y")], {"o": np.ones(4), "v": -np.ones(4)},
        ("BatchNormalization_0", "variance"),
    ),
    "not finite": ([("MatMul", ["x", "W"], "y")], {"W": np.full((4, 1), np.nan)}, ("MatMul_0", "non-finite")),
    "does not fit": ([("Gemm", ["x", "W"], "y")], {"W": np.ones((5, 2))}, ("(2, 5)", "vector of 4")),
    "broadcast that does not fit": ([("Add", ["x", "a"], "y")], {"a": np.ones(3)}, ("Add_0",)),
    "a constant per person": ([("Add", ["x", "a"], "y")], {"a": np.ones((7, 4))}, ("Add_0", "(7, 4)")),
    "no dependence": ([("Identity", ["a"], "y")], {"a": np.ones(4)}, ("'y'", "depend")),
    "clip backwards": ([("Clip", ["x", "a", "b"], "y")], {"a": np.ones(()), "b": np.zeros(())}, ("Clip_0", "[1, 0]")),
    "split": ([("Split", ["x", "s"], "y z", {"axis": 1})], {"s": np.array([2, 1])}, ("Split_0",)),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, tmp_path: Path) -> None:
    nodes, arrays, culprits = REFUSED[case]
    refuses(written(tmp_path / "m.onnx", model(nodes, **arrays)), ModelError, *culprits)


def test_models_of_another_form_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    fine = [("Relu", ["x"], "y")]
    refuses(written(path, model(fine, 10)), ModelError, "opset 10")
    refuses(written(path, model(fine, shape=("n", "m"))), ModelError, "'x'", "columns")
    refuses(written(path, model(fine, shape=(4,))), ModelError, "'x'")
    refuses(written(path, model(fine, shape=("n", 1 << 40))), ModelError, "too large")
    proto = model(fine)
    proto.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    refuses(written(path, proto), ModelError, "'x'", "type")
    proto = model([*fine, ("Neg", ["x"], "z")])
    proto.graph.output.append(helper.make_tensor_value_info("z", TensorProto.DOUBLE, ["n", 4]))
    refuses(written(path, proto), ModelError, "2 outputs", "'z'")
    proto = model(fine)
    proto.graph.node[0].domain = "com.example"
    proto.opset_import.append(helper.make_opsetid("com.example", 1))
    refuses(written(path, proto), ModelError, "com.example")
    proto = model(fine)
    proto.functions.append(helper.make_function("own", "f", ["a"], ["b"], [], [helper.make_opsetid("", 20)]))
    refuses(written(path, proto), ModelError, "functions", "'f'")
    proto = model(fine)
    proto.graph.node[0].attribute.append(helper.make_attribute("strange", 1))
    refuses(written(path, proto), ModelError, "strange")


def test_a_missing_library_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "m.onnx", model([("Relu", ["x"], "y")]))
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtra, match=r"likewise\[onnx\]"):
        load(path)


# --- hostile files ----------------------------------------------------------------------------------------------------


def test_files_that_are_no_models_are_refused(tmp_path: Path) -> None:
    refuses(tmp_path / "missing.onnx", FileError, "No such file")
    (tmp_path / "folder.onnx").mkdir()
    refuses(tmp_path / "folder.onnx", FileError, "directory")
    os.mkfifo(tmp_path / "pipe.onnx")
    refuses(tmp_path / "pipe.onnx", FileError, "regular")
    (tmp_path / "empty.onnx").write_bytes(b"")
    refuses(tmp_path / "empty.onnx", ModelError)
    whole = embedding(13).SerializeToString()
    (tmp_path / "half.onnx").write_bytes(whole[: len(whole) // 2])
    refuses(tmp_path / "half.onnx", ModelError, "ONNX")
    with (tmp_path / "huge.onnx").open("wb") as stream:
        stream.truncate(3 << 30)  # a sparse file: no room is taken
    refuses(tmp_path / "huge.onnx", FileError, "3072 MiB")


@pytest.mark.parametrize("dims", [[1 << 31, 1], [1 << 62, 4], [-1, 4], [0, 4]])
def test_a_tensor_that_claims_too_much_is_refused(dims: list[int], tmp_path: Path) -> None:
    for field in ("raw_data", "double_data"):
        proto = model([("MatMul", ["x", "W"], "y")], W=W)
        tensor = proto.graph.initializer[0]
        tensor.dims[:] = dims
        if field == "double_data":
            tensor.ClearField("raw_data")
            tensor.double_data.extend([1.0] * 4)
        refuses(written(tmp_path / "m.onnx", proto), ModelError, "W")


def test_a_graph_that_doubles_itself_is_refused_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_graph, "SPACE", 1 << 22)
    doubling: list[Node] = [("Concat", [f"t{i}", f"t{i}"], f"t{i + 1}", {"axis": 1}) for i in range(40)]
    computed = model([("Relu", ["x"], "t0"), *doubling, ("Relu", ["t40"], "y")])
    refuses(written(tmp_path / "m.onnx", computed), ModelError, "too large")
    constant = model([*doubling, ("MatMul", ["x", "t40"], "y")], t0=W)
    refuses(written(tmp_path / "m.onnx", constant), ModelError, "too large")
    wide = model([("Add", ["x", "a"], "p"), ("Unsqueeze", ["p", "one"], "q"), ("Add", ["q", "b"], "y")],
                 a=np.ones(4), one=np.array([2]), b=np.ones((1, 4, 1 << 18)))  # fmt: skip
    refuses(written(tmp_path / "m.onnx", wide), ModelError, "too large")


def outside(proto: onnx.ModelProto, **entries: object) -> onnx.ModelProto:
    """The model with its first tensor kept in another file."""
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    return proto


def product() -> onnx.ModelProto:
    return model([("MatMul", ["x", "W"], "y")], W=W)


def test_external_data_inside_of_the_folder_is_read(tmp_path: Path) -> None:
    expected = load(written(tmp_path / "plain.onnx", product()))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "w.bin").write_bytes(b"\0" * 16 + W.tobytes())
    proto = outside(product(), location="sub/w.bin", offset=16, length=W.nbytes)
    assert load(written(tmp_path / "m.onnx", proto)).digest == expected.digest


def test_external_data_leads_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, elsewhere = tmp_path / "inside", tmp_path / "elsewhere"
    inside.mkdir()
    elsewhere.mkdir()
    secret = elsewhere / "w.bin"
    secret.write_bytes(W.tobytes())
    (inside / "link.bin").symlink_to(secret)
    (inside / "linked").symlink_to(elsewhere)
    (inside / "short.bin").write_bytes(b"\0" * 8)
    os.mkfifo(inside / "pipe.bin")
    path = inside / "m.onnx"
    monkeypatch.chdir(elsewhere)  # a name is never looked up in the current folder
    tricks = [str(secret), "../elsewhere/w.bin", "sub/../../elsewhere/w.bin", "link.bin", "linked/w.bin"]
    tricks.append("sub/../short.bin")  # which lies inside, but no exporter writes that
    for place in tricks:
        refuses(written(path, outside(product(), location=place)), FileError, "'W'", "inside")
    for place, word in [("", "inside"), ("w.bin", "No such file"), ("short.bin", "ends"), ("pipe.bin", "regular")]:
        refuses_somewhere(written(path, outside(product(), location=place)), word)
    for numbers in ({"offset": -1}, {"length": 8}, {"length": 1 << 60}, {"offset": "x"}):
        refuses(written(path, outside(product(), location="short.bin", **numbers)), FileError, "'W'")
    proto = outside(product(), location="short.bin")
    proto.graph.initializer[0].dims[:] = [1 << 40, 1 << 20]
    refuses(written(path, proto), FileError, "'W'", "claims")


def refuses_somewhere(path: Path, word: str) -> None:
    """Refused, though the file at fault may be the one beside the model."""
    with pytest.raises(FileError, match=word):
        load(path)


@settings(max_examples=150, deadline=None)
@given(place=st.integers(0, 10**6), flip=st.integers(1, 255), cut=st.integers(0, 3))
def test_no_damage_escapes_as_anything_but_an_input_error(
    tmp_path_factory: pytest.TempPathFactory, place: int, flip: int, cut: int
) -> None:
    content = bytearray(embedding(13).SerializeToString())
    content[place % len(content)] ^= flip
    path = tmp_path_factory.mktemp("bent") / "m.onnx"
    path.write_bytes(content[: len(content) - 20 * cut])
    complaint = ""
    try:
        loaded = load(path)
    except InputError as error:
        complaint = str(error)
    if complaint:
        assert "m.onnx" in complaint
        assert complaint.count("\n") < 3
    else:  # the byte was one of a weight or a name
        assert loaded.outputs >= 1


def test_the_command_line_refuses_with_2_and_no_traceback(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for i, case in enumerate(["convolution", "not finite", "softmax of many"]):
        nodes, arrays, culprits = REFUSED[case]
        written(folder / f"{i}.onnx", model(nodes, **arrays))
        assert main(["certify", f"{i}.onnx", "schema.toml", "--eps", "0.1"]) == 2
        seen = capsys.readouterr().err
        assert culprits[0] in seen
        assert "Traceback" not in seen
        assert len(seen.splitlines()) <= 3
    assert read_onnx(written(folder / "good.onnx", product())).inputs == 4
