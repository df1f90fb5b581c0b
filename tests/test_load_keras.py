"""Keras: files that Keras 3 itself writes, against its own forward pass."""

from __future__ import annotations

import io
import os
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from test_load_hdf5 import archive, keras2_weights, refuses

os.environ["KERAS_BACKEND"] = "torch"  # TensorFlow is not needed, and not installed
os.environ["KERAS_HOME"] = tempfile.mkdtemp()  # Keras writes its settings when it is imported

import keras
from keras import layers as kl

from likewise.errors import ModelError
from likewise.load import load
from likewise.network import Network

# Keras' own, in this combination of versions: about how it turns a torch variable into an array.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


def alive(model: Any) -> Any:
    """Fill every weight with random numbers, variances with positive ones."""
    rng = np.random.default_rng(3)
    model.set_weights([np.abs(rng.normal(size=w.shape)) if "var" in v.path else rng.normal(size=w.shape)
                       for v, w in zip(model.weights, model.get_weights(), strict=True)])  # fmt: skip
    return model


def agrees(model: Any, tmp_path: Path) -> Network:
    """Save the model in both formats, load them, and compare with Keras' own forward pass."""
    people = np.random.default_rng(1).normal(size=(40, sum(int(i.shape[1]) for i in model.inputs))) * 3
    starts = np.cumsum([int(i.shape[1]) for i in model.inputs])[:-1]
    parts = np.split(people, starts, axis=1)
    expected = keras.ops.convert_to_numpy(model(parts if len(parts) > 1 else parts[0]))
    digests = set()
    for name in ("m.keras", "m.h5"):
        model.save(tmp_path / name)
        net = load(tmp_path / name)
        assert net(people).reshape(40, -1) == pytest.approx(
            expected.reshape(40, -1), rel=1e-4, abs=1e-5
        )  # Keras computes in float32
        digests.add(net.digest)
    assert len(digests) == 1
    return net


def sequential(*steps: Any, inputs: int = 4) -> Any:
    return alive(keras.Sequential([keras.Input((inputs,)), *steps]))


ACTIVATIONS = {
    "linear": "identity",
    "relu": "relu",
    "relu6": "relu6",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
    "softplus": "softplus",
    "elu": "elu",
    "selu": "selu",
    "silu": "silu",
    "gelu": "gelu",
    "softsign": "softsign",
    "hard_tanh": "hardtanh",
    "hard_sigmoid": "hardsigmoid",
    "leaky_relu": "relu",
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(name: str, tmp_path: Path) -> None:
    net = agrees(sequential(kl.Dense(5, activation=name), kl.Dense(1)), tmp_path)
    assert set(net.layers[0].activations) == {ACTIVATIONS[name]}


LAYERS: dict[str, Callable[[], Any]] = {
    "activation": lambda: kl.Activation("tanh"),
    "relu": lambda: kl.ReLU(),
    "relu6": lambda: kl.ReLU(max_value=6),
    "relu to 2": lambda: kl.ReLU(max_value=2.0),
    "relu with a slope": lambda: kl.ReLU(negative_slope=0.2),
    "leaky": lambda: kl.LeakyReLU(),
    "leaky .01": lambda: kl.LeakyReLU(negative_slope=0.01),
    "prelu": lambda: kl.PReLU(),
    "elu": lambda: kl.ELU(alpha=0.5),
    "batch norm": lambda: kl.BatchNormalization(),
    "batch norm alone": lambda: kl.BatchNormalization(scale=False, center=False, epsilon=1e-2),
    "dropout": lambda: kl.Dropout(0.5),
    "flatten": lambda: kl.Flatten(),
}


@pytest.mark.parametrize("case", LAYERS)
def test_layer(case: str, tmp_path: Path) -> None:
    steps = [kl.Dense(5), LAYERS[case](), kl.Dense(1, use_bias=False, activation="sigmoid")]
    agrees(sequential(*steps), tmp_path)


def test_softmax_of_two(tmp_path: Path) -> None:
    for last in (kl.Dense(2, activation="softmax"), kl.Softmax()):
        net = agrees(sequential(kl.Dense(2, activation="relu"), last), tmp_path)
        assert net.layers[-1].activations == ("sigmoid", "sigmoid")


def test_softmax_of_more(tmp_path: Path) -> None:
    for classes in (3, 6):
        net = agrees(sequential(kl.Dense(4, activation="relu"), kl.Dense(classes, activation="softmax")), tmp_path)
        assert net.outputs == classes


def functional() -> Any:
    """Two inputs, an embedding, a layer that is used twice, a sum and a join."""
    numbers, job = keras.Input((3,), name="numbers"), keras.Input((4,), name="job")
    embedded = kl.Dense(2, use_bias=False, name="table")(job)
    both = kl.Concatenate()([numbers, embedded])
    shared = kl.Dense(5, activation="tanh", name="shared")
    once = shared(both)
    skip = kl.Add()([shared(once), once])
    out = kl.Dense(1, activation="sigmoid", name="out")(kl.BatchNormalization()(skip))
    return alive(keras.Model([numbers, job], out))


def test_functional_model(tmp_path: Path) -> None:
    assert [len(layer.bias) for layer in agrees(functional(), tmp_path).layers] == [5, 5, 10, 1]


def test_weights_alone_are_read_and_what_is_assumed_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    relus = [kl.Dense(3, activation="relu") for _ in range(11)]
    model = sequential(*relus, kl.Dense(1, activation="sigmoid"))
    expected = agrees(model, tmp_path).digest
    model.save_weights(tmp_path / "m.weights.h5")
    assert load(tmp_path / "m.weights.h5").digest == expected
    err = capsys.readouterr().err
    assert "m.weights.h5" in err
    assert "relu" in err
    arrays = [layer.get_weights() for layer in model.layers]
    with h5py.File(tmp_path / "old.h5", "w") as file:  # save_weights of Keras 2
        keras2_weights(file, [(f"d{12 - i}", dict(zip(("kernel:0", "bias:0"), pair, strict=True)))
                              for i, pair in enumerate(arrays)])  # fmt: skip
    assert load(tmp_path / "old.h5").digest == expected


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "unknown layer": (lambda: kl.LayerNormalization(name="ln"), "'ln' (LayerNormalization)"),
    "nested": (lambda: keras.Sequential([kl.Dense(2)], name="inner"), "'inner' (Sequential)"),
    "softmax of many": (lambda: kl.Dense(17, activation="softmax", name="d"), "17 classes"),
    "log softmax": (lambda: kl.Dense(2, activation="log_softmax", name="d"), "'log_softmax'"),
    "hard silu": (lambda: kl.Dense(2, activation="hard_silu", name="d"), "'hard_silu'"),
    "threshold": (lambda: kl.ReLU(threshold=1.0, name="r"), "'r'"),
    "half precision": (lambda: kl.Dense(2, dtype="mixed_float16", name="d"), "mixed_float16"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, tmp_path: Path) -> None:
    make, culprit = REFUSED[case]
    for name in ("m.keras", "m.h5"):
        model = keras.Sequential([keras.Input((4,)), kl.Dense(3), make()])
        model.save(tmp_path / name)
        refuses(tmp_path / name, ModelError, culprit)


def test_a_live_model_is_refused_with_what_to_do() -> None:
    with pytest.raises(ModelError, match=r"save it as \.keras"):
        load(keras.Sequential([keras.Input((4,)), kl.Dense(1)]))


def test_weights_stored_for_another_layer_are_refused(tmp_path: Path) -> None:
    model = sequential(kl.Dense(3, name="mine"))
    model.save(tmp_path / "m.keras")
    with zipfile.ZipFile(tmp_path / "m.keras") as made:
        config, stored = made.read("config.json"), io.BytesIO(made.read("model.weights.h5"))
    with h5py.File(stored, "r+") as file:
        file["layers/dense/vars"].attrs["name"] = "yours"
    refuses(
        archive(tmp_path / "n.keras", config__json=config, model__weights__h5=stored.getvalue()), ModelError, "yours"
    )
