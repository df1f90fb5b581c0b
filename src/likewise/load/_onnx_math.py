"""ONNX operations that compute: affine maps, activations, and the two gates that exporters write out as products."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from likewise.load import _operations as common
from likewise.load._graph import Block, Value, finite
from likewise.load._tensor import Item, Node, Tensor, reshaped, spread, widened
from likewise.rounding import Array

CLOSE = 1e-6  # float32 constants such as sqrt(2) are this close to what they stand for, relatively


def gemm(node: Node) -> Item:
    """alpha A B + beta C, with B constant."""
    tensor, weight = node.tensor(), node.numbers(1)
    if node.attributes.get("transA", 0):
        raise node.refuse("transposes its first input, which would mix people (transA)")
    if len(tensor.shape) != 1 or weight.ndim != 2:
        raise node.refuse(f"needs a vector per person and a matrix, got {tensor.shape} and {weight.shape}")
    rows = weight if node.attributes.get("transB", 0) else weight.T
    made = _product(node, tensor, _number(node, "alpha", 1.0) * rows)
    third, beta = node.given(2), _number(node, "beta", 1.0)
    if third is None:
        return made
    if isinstance(third, Tensor):
        return _plus(node, made, Tensor(third.shape, node.graph.scale(third.value, beta)))
    return _shifted(node, made, beta * node.numbers(2))


def matmul(node: Node) -> Item:
    """A B with B a constant matrix or vector."""
    if not isinstance(node.item(0), Tensor):
        raise node.refuse("multiplies with the constant on the left, which is not read: transpose the product")
    tensor, weight = node.tensor(), node.numbers(1)
    if not tensor.shape or weight.ndim not in (1, 2):
        raise node.refuse(f"cannot multiply {tensor.shape} per person with a constant of shape {weight.shape}")
    rows = weight[None, :] if weight.ndim == 1 else weight.T
    many = math.prod(tensor.shape[:-1])
    if many != 1:
        node.graph.spend(many * many * rows.size)
    repeated: Array = rows if many == 1 else np.kron(np.eye(many), rows).astype(np.float64)
    made = _product(node, tensor, repeated)
    return reshaped(made, tensor.shape[:-1] + (() if weight.ndim == 1 else (len(rows),)))


def _product(node: Node, tensor: Tensor, rows: Array) -> Tensor:
    finite(node.where, rows)
    value = node.graph.product(tensor.value, rows)
    return Tensor((len(value),), value)


def add(node: Node) -> Item:
    """The sum of two tensors, or of a tensor and a constant."""
    return _sum(node, 1.0)


def subtract(node: Node) -> Item:
    """The difference of two tensors, or of a tensor and a constant."""
    return _sum(node, -1.0)


def _sum(node: Node, sign: float) -> Item:
    left, right = node.item(0), node.item(1)
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        other = right if sign > 0 else Tensor(right.shape, node.graph.scale(right.value, sign))
        return _plus(node, left, other)
    if isinstance(left, Tensor):
        return _shifted(node, left, sign * node.numbers(1))
    if isinstance(right, Tensor):
        other = right if sign > 0 else Tensor(right.shape, node.graph.scale(right.value, sign))
        return _shifted(node, other, node.numbers(0))
    return _constants(node, lambda a, b: a + sign * b)


def _plus(node: Node, left: Tensor, right: Tensor) -> Tensor:
    if left.rank != right.rank:
        raise node.refuse(f"adds tensors of different rank, {left.shape} and {right.shape} per person")
    shape = tuple(np.broadcast_shapes(left.shape, right.shape))
    one, two = widened(node, left, shape), widened(node, right, shape)
    return Tensor(shape, node.graph.add(one.value, two.value))


def _shifted(node: Node, tensor: Tensor, constant: Array) -> Tensor:
    finite(node.where, constant)
    offset, wide = spread(node, constant, tensor)
    return Tensor(wide.shape, node.graph.shift(wide.value, offset))


def _scaled(node: Node, tensor: Tensor, constant: Array) -> Tensor:
    finite(node.where, constant)
    factor, wide = spread(node, constant, tensor)
    return Tensor(wide.shape, node.graph.scale(wide.value, factor))


def _constants(node: Node, operation: Callable[[Array, Array], Array]) -> Item:
    left, right = node.numbers(0), node.numbers(1)
    node.graph.spend(math.prod(np.broadcast_shapes(left.shape, right.shape)))
    return np.asarray(operation(left, right))


def sum_(node: Node) -> Item:
    """The sum of any number of tensors."""
    total = node.tensor(0)
    for i in range(1, len(node.inputs)):
        other = node.item(i)
        total = _plus(node, total, other) if isinstance(other, Tensor) else _shifted(node, total, node.numbers(i))
    return total


def negative(node: Node) -> Item:
    """The tensor times -1."""
    if isinstance(node.item(0), Tensor):
        return Tensor(node.tensor().shape, node.graph.scale(node.tensor().value, -1.0))
    return -node.numbers(0)


def divide(node: Node) -> Item:
    """A tensor divided by a constant."""
    if isinstance(node.item(1), Tensor):
        raise node.refuse("divides by a computed tensor")
    divisor = node.numbers(1)
    if not divisor.all():
        raise node.refuse("divides by 0")
    if isinstance(node.item(0), Tensor):
        return _scaled(node, node.tensor(), 1.0 / divisor)
    return _constants(node, lambda a, b: a / b)


def multiply(node: Node) -> Item:
    """A tensor times a constant, or one of the gates z sigmoid(z) and z (1 + erf(z / sqrt 2))."""
    left, right = node.item(0), node.item(1)
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        gated = _gate(node, left, right) or _gate(node, right, left)
        if gated is None:
            raise node.refuse("multiplies two computed tensors, and it is no silu or gelu")
        return gated
    if isinstance(left, Tensor):
        return _scaled(node, left, node.numbers(1))
    if isinstance(right, Tensor):
        return _scaled(node, right, node.numbers(0))
    return _constants(node, lambda a, b: a * b)


def _gate(node: Node, plain: Tensor, factor: Tensor) -> Tensor | None:
    """Return silu or gelu if `factor` is the distribution function that goes with `plain`."""
    block = node.graph.made_by(factor.value)
    if block is None or plain.shape != factor.shape or len(set(block.activations)) != 1:
        return None
    slope = np.diag(next(iter(factor.value.parts.values())))
    if block.activations[0] == "sigmoid" and (slope == 1.0).all() and not factor.value.bias.any():
        known = plain.value.same(block.before)
        return Tensor(plain.shape, node.graph.activate(plain.value, "silu", node.where)) if known else None
    if block.activations[0] == "Erf" and (slope == factor.value.bias).all():
        return _gelu_gate(node, plain, block, slope)
    return None


def _gelu_gate(node: Node, plain: Tensor, block: Block, slope: Array) -> Tensor | None:
    """Return (a z) (b + b erf(z / sqrt 2)) as 2 a b gelu(z), for a = 1 or 1/2, or None if it is something else."""
    for a in (1.0, 0.5):
        z = node.graph.scale(plain.value, 1.0 / a)
        if _close(node.graph.scale(z, math.sqrt(0.5)), block.before):
            gelu = node.graph.activate(z, "gelu", node.where)
            return Tensor(plain.shape, node.graph.scale(gelu, 2.0 * a * slope))
    return None


def _close(one: Value, other: Value) -> bool:
    return one.parts.keys() == other.parts.keys() and all(
        np.allclose(a, b, rtol=CLOSE, atol=0.0)
        for a, b in [(one.bias, other.bias), *((one.parts[k], other.parts[k]) for k in one.parts)]
    )


def batch_normalization(node: Node) -> Item:
    """(x - mean) / sqrt(variance + epsilon) * scale + shift per channel, with stored statistics."""
    if node.attributes.get("training_mode", 0) or node.outputs > 1:
        raise node.refuse("is in training mode: export the model for inference")
    tensor = node.tensor()
    gain, offset, mean, variance = (node.numbers(i) for i in range(1, 5))
    if not tensor.shape or any(v.shape != tensor.shape[:1] for v in (gain, offset, mean, variance)):
        raise node.refuse(f"needs 4 vectors of {tensor.shape[:1]} entries")
    statistics = (gain, offset, mean, variance)
    epsilon = _number(node, "epsilon", 1e-5)
    return Tensor(tensor.shape, common.normalise(node.graph, tensor.value, statistics, epsilon, node.where))


def _plain(name: str) -> Callable[[Node], Item]:
    """Return the operation that applies one activation of the table."""

    def apply(node: Node) -> Item:
        tensor = node.tensor()
        return Tensor(tensor.shape, node.graph.activate(tensor.value, name, node.where))

    return apply


def _shaped(apply: Callable[[Node, Value], Value]) -> Callable[[Node], Item]:
    """Return the operation that applies an activation with parameters."""
    return lambda node: Tensor(node.tensor().shape, apply(node, node.tensor().value))


def _number(node: Node, name: str, default: float) -> float:
    """Return an attribute; ONNX keeps it in float32, so the shortest decimal of that is what was meant (0.2)."""
    stored = node.attributes.get(name)
    return default if stored is None else common.decimal(stored)


def _leaky(node: Node, value: Value) -> Value:
    return common.leaky(node.graph, value, _number(node, "alpha", 0.01), node.where)


def _prelu(node: Node, value: Value) -> Value:
    slope, wide = spread(node, node.numbers(1), node.tensor())
    if wide.shape != node.tensor().shape:
        raise node.refuse(f"has slopes of shape {node.numbers(1).shape} for {node.tensor().shape} per person")
    return common.leaky(node.graph, wide.value, slope, node.where)


def _clip(node: Node, value: Value) -> Value:
    bounds = [-math.inf, math.inf]
    for i in (0, 1):
        if node.given(i + 1) is not None:
            bounds[i] = float(node.numbers(i + 1).reshape(()))
            if abs(bounds[i]) >= float(np.finfo(np.float32).max):  # how exporters write "no bound"
                bounds[i] = math.copysign(math.inf, bounds[i])
    return common.clip(node.graph, value, bounds[0], bounds[1], node.where)


def _hard_sigmoid(node: Node, value: Value) -> Value:
    alpha, beta = _number(node, "alpha", 0.2), _number(node, "beta", 0.5)
    return common.hard_sigmoid(node.graph, value, alpha, beta, node.where)


def _elu(node: Node, value: Value) -> Value:
    return common.elu(node.graph, value, _number(node, "alpha", 1.0), node.where)


def _selu(node: Node, value: Value) -> Value:
    alpha, gamma = _number(node, "alpha", common.SELU[0]), _number(node, "gamma", common.SELU[1])
    return common.selu(node.graph, value, alpha, gamma, node.where)


def _gelu(node: Node, value: Value) -> Value:
    kind = node.attributes.get("approximate", b"none")
    if kind not in (b"none", "none"):
        raise node.refuse(f"is the approximation {str(kind)[:40]} of gelu: only the exact form (erf) is read")
    return node.graph.activate(value, "gelu", node.where)


def _swish(node: Node, value: Value) -> Value:
    if _number(node, "alpha", 1.0) != 1.0:
        raise node.refuse("has an alpha other than 1: only silu, z sigmoid(z), is read")
    return node.graph.activate(value, "silu", node.where)


def _softmax(node: Node, value: Value) -> Value:
    axis = int(node.attributes.get("axis", 1 if node.opset < 13 else -1))
    if len(node.tensor().shape) != 1 or node.axis(axis, 2) != 1:
        raise node.refuse(f"works on axis {axis} of {node.tensor().shape} per person: only over a vector is it read")
    return common.softmax(node.graph, value, node.where)


OPERATIONS: Mapping[str, Callable[[Node], Item]] = {
    "Add": add,
    "BatchNormalization": batch_normalization,
    "Clip": _shaped(_clip),
    "Div": divide,
    "Elu": _shaped(_elu),
    "Erf": _plain("Erf"),  # no activation here: it must become part of a gelu
    "Gelu": _shaped(_gelu),
    "Gemm": gemm,
    "HardSigmoid": _shaped(_hard_sigmoid),
    "LeakyRelu": _shaped(_leaky),
    "MatMul": matmul,
    "Mul": multiply,
    "Neg": negative,
    "PRelu": _shaped(_prelu),
    "Relu": _plain("relu"),
    "Selu": _shaped(_selu),
    "Sigmoid": _plain("sigmoid"),
    "Softmax": _shaped(_softmax),
    "Softplus": _plain("softplus"),
    "Softsign": _plain("softsign"),
    "Sub": subtract,
    "Sum": sum_,
    "Swish": _shaped(_swish),
    "Tanh": _plain("tanh"),
}
