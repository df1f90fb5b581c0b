"""The layers of Keras, one small function each: weights and configuration in, a vector out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.errors import ModelError
from likewise.load import _operations as common
from likewise.load._graph import Graph, Value, finite
from likewise.rounding import Array


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A vector and its shape for one person."""

    shape: tuple[int, ...]
    value: Value


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One layer at one place: its configuration, its weights, and the major version of the Keras that wrote it."""

    kind: str
    where: str
    config: Mapping[str, Any]
    weights: Sequence[Array]
    version: int
    graph: Graph

    def number(self, *names: str, default: float) -> float:
        """Return the first parameter that is there, as the decimal that was meant."""
        for name in names:
            stored = self.config.get(name)
            if stored is not None:
                return common.decimal(float(stored))
        return default

    def refuse(self, why: str) -> ModelError:
        """Return the error that names this layer."""
        return ModelError(f"{self.where}: {why}")


def vector(step: Step, inputs: Sequence[Tensor]) -> Value:
    """Return the one input of a layer, which must be a vector per person."""
    if len(inputs) != 1 or len(inputs[0].shape) != 1:
        raise step.refuse(f"needs one vector per person, got {[tensor.shape for tensor in inputs]}")
    return inputs[0].value


def dense(step: Step, inputs: Sequence[Tensor]) -> Value:
    """A matrix product, a bias and an activation."""
    value = vector(step, inputs)
    wanted = 2 if step.config.get("use_bias", True) else 1
    if len(step.weights) != wanted or step.weights[0].ndim != 2:
        raise step.refuse(f"needs a kernel{' and a bias' if wanted == 2 else ''}, got {len(step.weights)} arrays")
    kernel = step.weights[0]
    bias = step.weights[1] if wanted == 2 else np.zeros(kernel.shape[1])
    if bias.shape != kernel.shape[1:] or kernel.shape[0] != len(value):
        raise step.refuse(f"kernel {kernel.shape} and bias {bias.shape} do not fit a vector of {len(value)}")
    finite(step.where, kernel, bias)
    return activation(step, step.graph.shift(step.graph.product(value, kernel.T), bias))


def activation(step: Step, value: Value) -> Value:
    """Apply the activation that the configuration names."""
    named = step.config.get("activation")
    if named is None:
        return value
    if isinstance(named, dict) and isinstance(named.get("config"), str):  # how some versions write a function
        named = named["config"]
    if not isinstance(named, str):
        raise step.refuse(f"its activation {str(named)[:60]!r} is not read")
    graph, where = step.graph, step.where
    if named in NAMED:
        return graph.activate(value, NAMED[named], where)
    if named == "leaky_relu":
        return common.leaky(graph, value, 0.2, where)  # the default of the function, in Keras 2 and 3
    if named == "hard_sigmoid":
        alpha = 1 / 6 if step.version >= 3 else 0.2
        return common.hard_sigmoid(graph, value, alpha, 0.5, where)
    if named == "softmax":
        return common.softmax(graph, value, where)
    raise step.refuse(f"the activation {named[:60]!r} is not read")


NAMED = {
    "linear": "identity",
    "relu": "relu",
    "relu6": "relu6",
    "hard_tanh": "hardtanh",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
    "softplus": "softplus",
    "elu": "elu",
    "selu": "selu",
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "softsign": "softsign",
}


def _activation(step: Step, inputs: Sequence[Tensor]) -> Value:
    return activation(step, vector(step, inputs))


def _relu(step: Step, inputs: Sequence[Tensor]) -> Value:
    slope = step.number("negative_slope", default=0.0)
    top = step.number("max_value", default=math.inf)
    if step.number("threshold", default=0.0) or (slope and top != math.inf):
        raise step.refuse("has a threshold, or both a slope and a maximum, which is not read")
    value = vector(step, inputs)
    if slope:
        return common.leaky(step.graph, value, slope, step.where)
    return common.clip(step.graph, value, 0.0, top, step.where)


def _leaky(step: Step, inputs: Sequence[Tensor]) -> Value:
    slope = step.number("negative_slope", "alpha", default=0.3)
    return common.leaky(step.graph, vector(step, inputs), slope, step.where)


def _prelu(step: Step, inputs: Sequence[Tensor]) -> Value:
    value = vector(step, inputs)
    if len(step.weights) != 1 or step.weights[0].shape != (len(value),):
        raise step.refuse("needs one slope per entry")
    return common.leaky(step.graph, value, step.weights[0], step.where)


def _elu(step: Step, inputs: Sequence[Tensor]) -> Value:
    return common.elu(step.graph, vector(step, inputs), step.number("alpha", default=1.0), step.where)


def _softmax(step: Step, inputs: Sequence[Tensor]) -> Value:
    if step.config.get("axis", -1) not in (-1, 1):
        raise step.refuse(f"works along axis {step.config['axis']}")
    return common.softmax(step.graph, vector(step, inputs), step.where)


def _batch_norm(step: Step, inputs: Sequence[Tensor]) -> Value:
    value, axis = vector(step, inputs), step.config.get("axis", -1)
    if axis not in (-1, 1, [-1], [1]):
        raise step.refuse(f"works along axis {axis}")
    learnt = [bool(step.config.get(name, True)) for name in ("scale", "center")]
    width = len(value)
    if len(step.weights) != 2 + sum(learnt) or any(w.shape != (width,) for w in step.weights):
        raise step.refuse(f"needs {2 + sum(learnt)} vectors of {width} entries, got {len(step.weights)} arrays")
    stored = iter(step.weights)
    gain = next(stored) if learnt[0] else np.ones(width)
    offset = next(stored) if learnt[1] else np.zeros(width)
    statistics = (gain, offset, next(stored), next(stored))
    return common.normalise(step.graph, value, statistics, float(step.config.get("epsilon", 1e-3)), step.where)


def _add(step: Step, inputs: Sequence[Tensor]) -> Value:
    if len({tensor.shape for tensor in inputs}) != 1:
        raise step.refuse(f"adds tensors of different shapes: {[tensor.shape for tensor in inputs]}")
    total = inputs[0].value
    for tensor in inputs[1:]:
        total = step.graph.add(total, tensor.value)
    return total


def _concatenate(step: Step, inputs: Sequence[Tensor]) -> Value:
    if step.config.get("axis", -1) not in (-1, 1) or any(len(tensor.shape) != 1 for tensor in inputs):
        raise step.refuse("joins only vectors, along their own axis")
    return step.graph.join([tensor.value for tensor in inputs])


def _nothing(step: Step, inputs: Sequence[Tensor]) -> Value:
    if len(inputs) != 1:
        raise step.refuse(f"needs one input, got {len(inputs)}")
    return inputs[0].value


LAYERS: Mapping[str, Callable[[Step, Sequence[Tensor]], Value]] = {
    "Activation": _activation,
    "ActivityRegularization": _nothing,
    "Add": _add,
    "AlphaDropout": _nothing,
    "BatchNormalization": _batch_norm,
    "Concatenate": _concatenate,
    "Dense": dense,
    "Dropout": _nothing,
    "ELU": _elu,
    "Flatten": _nothing,
    "GaussianDropout": _nothing,
    "GaussianNoise": _nothing,
    "LeakyReLU": _leaky,
    "PReLU": _prelu,
    "ReLU": _relu,
    "Softmax": _softmax,
}


def shape_after(kind: str, inputs: Sequence[Tensor], value: Value) -> tuple[int, ...]:
    """Return the shape that a layer gives: layers that change nothing keep theirs, all others make a vector."""
    keeps = LAYERS[kind] in (_nothing, _add) and kind != "Flatten"
    return inputs[0].shape if keeps else (len(value),)
