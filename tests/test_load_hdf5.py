"""HDF5: the layout of Keras 2, configurations that are refused, and hostile files; Keras itself is not needed here."""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from refusals import refuses

from likewise.errors import FileError, InputError, MissingExtra, ModelError
from likewise.load import load

Weights = Sequence[tuple[str, dict[str, np.ndarray]]]


def keras2_weights(group: Any, weights: Weights) -> None:
    group.attrs["layer_names"] = np.array([name.encode() for name, _ in weights])
    for name, arrays in weights:
        inner = group.create_group(name)
        inner.attrs["weight_names"] = np.array([f"{name}/{key}".encode() for key in arrays], dtype="S")
        for key, array in arrays.items():
            inner[f"{name}/{key}"] = array


def keras2(path: Path, config: Any, weights: Weights) -> Path:
    with h5py.File(path, "w") as file:
        file.attrs["keras_version"] = b"2.11.0"
        file.attrs["backend"] = b"tensorflow"
        file.attrs["model_config"] = json.dumps(config).encode()
        keras2_weights(file.create_group("model_weights"), weights)
    return path


def layer(kind: str, name: str, inbound: Any = None, **config: Any) -> dict[str, Any]:
    made = {"class_name": kind, "config": {"name": name, "dtype": "float32", "trainable": True, **config}}
    return made | ({} if inbound is None else {"name": name, "inbound_nodes": inbound})


RNG = np.random.default_rng(6)
W0, B0 = RNG.normal(size=(4, 3)).astype(np.float32), RNG.normal(size=3).astype(np.float32)
W1, B1 = RNG.normal(size=(3, 1)).astype(np.float32), RNG.normal(size=1).astype(np.float32)
NORM = {key: np.abs(RNG.normal(size=3)) for key in ("gamma:0", "beta:0", "moving_mean:0", "moving_variance:0")}
STORED = [
    ("dense", {"kernel:0": W0, "bias:0": B0}),
    ("norm", NORM),
    ("drop", {}),
    ("out", {"kernel:0": W1, "bias:0": B1}),
]
PEOPLE = np.random.default_rng(7).normal(size=(30, 4))


def keras2_sequential(**change: Any) -> dict[str, Any]:
    layers = [
        layer("Dense", "dense", units=3, activation="hard_sigmoid", use_bias=True, batch_input_shape=[None, 4]),
        layer("BatchNormalization", "norm", axis=[1], epsilon=0.001, scale=True, center=True),
        layer("Dropout", "drop", rate=0.5),
        layer("Dense", "out", units=1, activation="sigmoid", use_bias=True) | change,
    ]
    return {"class_name": "Sequential", "config": {"name": "sequential", "layers": layers}}


def by_hand(skip: bool) -> np.ndarray:
    h = np.clip(0.2 * (PEOPLE @ W0 + B0) + 0.5, 0, 1)  # what hard_sigmoid was in Keras 2
    gamma, beta, mean, variance = NORM.values()
    n = (h - mean) / np.sqrt(variance + 1e-3) * gamma + beta
    return np.asarray(1 / (1 + np.exp(-((n + h if skip else n) @ W1 + B1)))[:, 0])


def test_keras_2_sequential(tmp_path: Path) -> None:
    assert load(keras2(tmp_path / "m.h5", keras2_sequential(), STORED))(PEOPLE) == pytest.approx(by_hand(False))


def test_keras_2_functional(tmp_path: Path) -> None:
    layers = [
        layer("InputLayer", "x", [], batch_input_shape=[None, 4]),
        layer("Dense", "dense", [[["x", 0, 0, {}]]], activation="hard_sigmoid", use_bias=True),
        layer("BatchNormalization", "norm", [[["dense", 0, 0, {}]]], axis=[1], epsilon=0.001),
        layer("Add", "sum", [[["norm", 0, 0, {}], ["dense", 0, 0, {}]]]),
        layer("Dense", "out", [[["sum", 0, 0, {}]]], activation="sigmoid", use_bias=True),
    ]
    inner = {"name": "m", "layers": layers, "input_layers": [["x", 0, 0]], "output_layers": [["out", 0, 0]]}
    path = keras2(tmp_path / "m.h5", {"class_name": "Model", "config": inner}, STORED)
    assert load(path)(PEOPLE) == pytest.approx(by_hand(True))


# --- refused by name --------------------------------------------------------------------------------------------------


def test_other_models_and_broken_configurations_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.h5"
    inner = {"name": "m", "layers": [], "input_layers": [], "output_layers": [["a", 0, 0], ["b", 0, 0]]}
    for config, word in [
        ({"class_name": "Custom", "config": {"layers": []}}, "Custom"),
        ({"class_name": "Functional", "config": inner}, "2 outputs"),
        ({"class_name": "Sequential", "config": {"layers": [3]}}, "configuration"),
        ({"class_name": "Sequential", "config": {"layers": []}}, "configuration"),
        (["a", "list"], "configuration"),
        (keras2_sequential(registered_name="mine>Dense"), "'out'"),
        (keras2_sequential(module="mine"), "'out'"),
        (keras2_sequential(config={"name": "out", "activation": {"class_name": "Mine", "config": {}}}), "'out'"),
        (keras2_sequential(config={"name": "out", "use_bias": False}), "'out'"),
    ]:
        refuses(keras2(path, config, STORED), ModelError, word)
    refuses(keras2(path, keras2_sequential(), STORED[:-1]), ModelError, "'out'")
    odd = [*STORED[:-1], ("out", {"kernel:0": W1.T, "bias:0": B1})]
    refuses(keras2(path, keras2_sequential(), odd), ModelError, "'out'", "vector of 3")
    spoilt = [*STORED[:-1], ("out", {"kernel:0": np.full((3, 1), np.nan), "bias:0": B1})]
    refuses(keras2(path, keras2_sequential(), spoilt), ModelError, "'out'", "non-finite")


def test_a_missing_library_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = keras2(tmp_path / "m.h5", keras2_sequential(), STORED)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingExtra, match=r"likewise\[keras\]"):
        load(path)


# --- hostile files ----------------------------------------------------------------------------------------------------


def bent(path: Path, change: Callable[[Any], None]) -> Path:
    """A Keras 2 file whose output kernel is replaced by something else."""
    keras2(path, keras2_sequential(), STORED)
    with h5py.File(path, "r+") as file:
        group = file["model_weights/out/out"]
        del group["kernel:0"]
        change(group)
    return path


def virtual(group: Any) -> None:
    layout = h5py.VirtualLayout((3, 1), "f4")
    layout[:] = h5py.VirtualSource("secret.h5", "kernel", (3, 1))
    group.create_virtual_dataset("kernel:0", layout)


def zipped_numbers(group: Any) -> None:
    group.create_dataset("kernel:0", data=np.zeros((1 << 12, 1 << 10)), compression="gzip")


HOSTILE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "external link": (lambda g: g.__setitem__("kernel:0", h5py.ExternalLink("secret.h5", "/kernel")), "link"),
    "soft link": (lambda g: g.__setitem__("kernel:0", h5py.SoftLink("/model_weights/dense")), "link"),
    "external storage": (
        lambda g: g.create_dataset("kernel:0", (3, 1), "f4", external=[("secret.bin", 0, 12)]),
        "another file",
    ),
    "virtual": (virtual, "another file"),
    "huge and empty": (lambda g: g.create_dataset("kernel:0", (1 << 20, 1 << 20), "f4", chunks=(64, 64)), "claims"),
    "huge and contiguous": (lambda g: g.create_dataset("kernel:0", (1 << 15, 1 << 15), "f4"), "claims"),
    "zip bomb": (zipped_numbers, "claims"),
    "a group": (lambda g: g.create_group("kernel:0"), "expected an array"),
    "text": (lambda g: g.__setitem__("kernel:0", "hello"), "kernel:0"),
    "whole numbers beyond float64": (lambda g: g.__setitem__("kernel:0", np.full((3, 1), 2**60)), "2^53"),
    "missing": (lambda g: None, "missing"),
    "no array in it": (lambda g: g.create_dataset("kernel:0", dtype="f4", shape=None), "claims"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_arrays_are_refused(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.bin").write_bytes(W1.tobytes())
    with h5py.File(tmp_path / "secret.h5", "w") as secret:
        secret["kernel"] = W1
    change, culprit = HOSTILE[case]
    refuses(bent(tmp_path / "m.h5", change), ModelError, "/model_weights/out", culprit)


def test_a_name_leads_nowhere_else(tmp_path: Path) -> None:
    path = keras2(tmp_path / "m.h5", keras2_sequential(), STORED)
    for name in ("../dense/dense/kernel:0", "/model_weights/dense/dense/kernel:0", "out/./kernel:0"):
        with h5py.File(path, "r+") as file:
            file["model_weights/out"].attrs["weight_names"] = np.array([name.encode(), b"out/bias:0"])
        refuses(path, ModelError, "no path")


def test_forged_texts_neither_hang_nor_fill_the_memory(tmp_path: Path) -> None:
    path = keras2(tmp_path / "m.h5", keras2_sequential(), STORED)
    whole = path.read_bytes()
    free = whole.index(b"GCOL") + 16
    while whole[free : free + 2] != b"\0\0":  # step over the texts to the free space behind them
        free += 16 + -(-int.from_bytes(whole[free + 8 : free + 16], "little") // 8) * 8
    path.write_bytes(whole[: free + 8] + b"\0" * 8 + whole[free + 16 :])
    refuses(path, FileError, "leads nowhere")
    name = whole.index(b"model_config\0")
    config = len(json.dumps(keras2_sequential()))
    claim = whole.index(config.to_bytes(4, "little"), name)  # the first number behind the name that is its length
    path.write_bytes(whole[:claim] + b"\xff\xff\xff\xf0" + whole[claim + 4 :])
    refuses(path, FileError, "longer than the file")


def archive(path: Path, **entries: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in entries.items():
            made.writestr(name.replace("__", "."), content)
    return path


def test_files_that_are_no_models_are_refused(tmp_path: Path) -> None:
    refuses(tmp_path / "missing.h5", FileError, "No such file")
    refuses(tmp_path / "missing.keras", FileError, "No such file")
    (tmp_path / "text.h5").write_text("hello")
    refuses(tmp_path / "text.h5", FileError, "HDF5")
    (tmp_path / "text.keras").write_text("hello")
    refuses(tmp_path / "text.keras", FileError, "zip")
    refuses(archive(tmp_path / "a.keras", config__json=b"{}"), FileError, "model.weights.h5")
    broken = {"config__json": b"{", "model__weights__h5": b""}
    refuses(archive(tmp_path / "b.keras", **broken), FileError)
    refuses(archive(tmp_path / "c.keras", **(broken | {"config__json": b"[" * 99999})), FileError)
    refuses(archive(tmp_path / "d.keras", **(broken | {"config__json": b"{}"})), FileError, "HDF5")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["numbers"] = np.ones(3)
    refuses(tmp_path / "other.h5", ModelError, "no Keras file")
    whole = keras2(tmp_path / "m.h5", keras2_sequential(), STORED).read_bytes()
    (tmp_path / "half.h5").write_bytes(whole[: len(whole) // 2])
    refuses(tmp_path / "half.h5", FileError, "HDF5")


def test_an_archive_that_unpacks_to_gigabytes_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "bomb.keras", config__json=b"{}", model__weights__h5=b"")
    content = bytearray(path.read_bytes())
    central = content.index(b"PK\x01\x02")
    content[central + 24 : central + 28] = (3 << 30).to_bytes(4, "little")  # the uncompressed size it declares
    path.write_bytes(content)
    refuses(path, FileError, "3072 MiB")


@pytest.mark.parametrize("step", range(0, 20000, 211))
def test_no_damage_escapes_as_anything_but_an_input_error(step: int, tmp_path: Path) -> None:
    path = keras2(tmp_path / "m.h5", keras2_sequential(), STORED)
    content = bytearray(path.read_bytes())
    content[step % len(content)] ^= 0x55
    path.write_bytes(content)
    complaint = ""
    try:
        loaded = load(path)
    except InputError as error:
        complaint = str(error)
    if complaint:
        assert "m.h5" in complaint
        assert complaint.count("\n") < 3
    else:  # HDF5 has no checksums over everything
        assert loaded.inputs == 4
