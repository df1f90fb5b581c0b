"""Export: the twin question for other verifiers, as one ONNX network and a VNN-LIB 2.0 query.

The network takes both people side by side, left first, and gives two numbers: the gap f(left) - f(right), and the
distance (for p other than 1 and inf, its p-th power, which saves a root). So every metric is inside the network, and
the query is linear: both people exist, the distance is within eps, and the gap is at least delta. "sat" means unfair.
All numbers are float64, so that the question is the same one.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from likewise.activations._functions import SELU_LEFT, SELU_SCALE
from likewise.certificate import write_atomically
from likewise.domain import Domain, Integer
from likewise.errors import DomainError, FileError, MissingExtra
from likewise.network import Layer, Network
from likewise.problem import Problem
from likewise.rounding import Array

NETWORK, QUERY = "twin.onnx", "twin.vnnlib"
MOST_VALUES = 10_000  # of an integer feature, each of which is written out
# Attributes of ONNX nodes are float32, so whatever needs a number is made of simpler nodes with float64 constants.
NODES = {
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "softplus": "Softplus",
    "elu": "Elu",
    "softsign": "Softsign",
    "identity": "Identity",
}
CLIPS = {"relu6": (0.0, 6.0), "hardtanh": (-1.0, 1.0)}


def export(problem: Problem, delta: float, folder: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Write the question "is there a similar pair with a gap of delta or more?" and return both paths."""
    target = Path(folder)
    query = query_text(problem, delta)
    model = _model(problem)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot write to {target}: {error.strerror}") from None
    write_atomically(target / NETWORK, model)
    write_atomically(target / QUERY, query.encode())
    return target / NETWORK, target / QUERY


# ---- the query


def query_text(problem: Problem, delta: float) -> str:
    """Return the query: what the two people and the two outputs have to satisfy."""
    width, power = problem.right.width, _power(problem)
    lines = [
        "; likewise: can two similar people be scored delta apart?",
        f"; the first {width} inputs are the left person, the next {width} the right one",
        f"; Y[0,0] is the gap, Y[0,1] the distance{f' to the power of {power:g}' if power != 1.0 else ''}",
        "(vnnlib-version <2.0>)",
        "(declare-network twin",
        f"  (declare-input X float64 [1,{2 * width}])",
        "  (declare-output Y float64 [1,2])",
        ")",
    ]
    lines += [*_person(problem.left, 0), *_person(problem.right, width)]
    lines.append(f"(assert (<= Y[0,1] {number(problem.eps**power)}))")
    gap = f"(>= Y[0,0] {number(delta)})"
    other = f"(<= Y[0,0] {number(-delta)})"
    lines.append(f"(assert {gap})" if problem.symmetric else f"(assert (or {gap} {other}))")
    return "\n".join(lines) + "\n"


def number(value: float) -> str:
    """Write a float exactly, as the grammar wants it: digits on both sides of a point, then an exponent."""
    digits, _, exponent = repr(float(value)).partition("e")
    digits = digits if "." in digits else f"{digits}.0"
    return f"{digits}e{int(exponent)}" if exponent else digits


def _person(domain: Domain, first: int) -> list[str]:
    def x(column: int) -> str:
        return f"X[0,{first + column}]"

    lines = []
    for column in range(domain.width):
        lines.append(f"(assert (>= {x(column)} {number(domain.lower[column])}))")
        lines.append(f"(assert (<= {x(column)} {number(domain.upper[column])}))")
    for feature, span in domain.spans:
        columns = list(range(span.start, span.stop))
        if span in domain.groups:
            choices = [[(c, float(c == k)) for c in columns] for k in columns if domain.upper[k] > 0.5]
        elif isinstance(feature, Integer):
            choices = [[(span.start, value)] for value in _values(feature, domain, span.start)]
        else:
            continue
        terms = [_all([f"(== {x(c)} {number(v)})" for c, v in choice]) for choice in choices]
        lines.append(f"(assert {terms[0] if len(terms) == 1 else '(or ' + ' '.join(terms) + ')'})")
    for row, most in zip(*domain.constraints, strict=True):
        terms = [f"(* {number(row[c])} {x(int(c))})" for c in np.flatnonzero(row)]
        total = terms[0] if len(terms) == 1 else f"(+ {' '.join(terms)})" if terms else "0.0"
        lines.append(f"(assert (<= {total} {number(most)}))")
    return lines


def _all(terms: list[str]) -> str:
    return terms[0] if len(terms) == 1 else f"(and {' '.join(terms)})"


def _values(feature: Integer, domain: Domain, column: int) -> list[float]:
    if feature.count >= MOST_VALUES:
        raise DomainError(f"feature {feature.name!r} has more than {MOST_VALUES} values: too many to write out")
    values = feature.low + np.arange(feature.count + 1) * feature.step
    return [float(v) for v in values if domain.lower[column] <= v <= domain.upper[column]]


def _power(problem: Problem) -> float:
    return 1.0 if problem.metric.p in (1.0, math.inf) else problem.metric.p


# ---- the network


class _Graph:
    """Nodes and constants of an ONNX graph under construction."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: Array | list[int]) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(values), name))
        return name

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def network(self, network: Network, x: str) -> str:
        for layer in network.layers:
            z = self.add("Gemm", x, self.constant(layer.weight.T.copy()), self.constant(layer.bias))
            x = self.activate(layer, z)
        return x

    def activate(self, layer: Layer, z: str) -> str:
        """Apply activations; where a layer has several, each to all neurons, and masks pick."""
        kinds = list(dict.fromkeys(layer.activations))
        if len(kinds) == 1:
            return self.activation(kinds[0], z)
        total = ""
        for kind in kinds:
            mask = np.array([float(name == kind) for name in layer.activations])
            part = self.add("Mul", self.activation(kind, z), self.constant(mask))
            total = self.add("Add", total, part) if total else part
        return total

    def activation(self, kind: str, z: str) -> str:
        if kind in NODES:
            return self.add(NODES[kind], z)
        if kind in CLIPS:
            return self.clip(z, *CLIPS[kind])
        if kind == "silu":
            return self.add("Mul", z, self.add("Sigmoid", z))
        if kind == "leaky_relu":
            return self.add("Max", z, self.times(z, 0.01))
        if kind == "hardsigmoid":
            return self.clip(self.add("Add", self.times(z, 1 / 6), self.number(0.5)), 0.0, 1.0)
        if kind == "selu":
            below = self.add("Elu", self.add("Min", z, self.number(0.0)))
            return self.add("Add", self.times(self.add("Relu", z), SELU_SCALE), self.times(below, SELU_LEFT))
        assert kind == "gelu", kind
        grown = self.add("Add", self.add("Erf", self.times(z, math.sqrt(0.5))), self.number(1.0))
        return self.add("Mul", self.times(z, 0.5), grown)

    def number(self, value: float) -> str:
        return self.constant(np.array(value))

    def times(self, z: str, factor: float) -> str:
        return self.add("Mul", z, self.number(factor))

    def clip(self, z: str, low: float, high: float) -> str:
        return self.add("Clip", z, self.number(low), self.number(high))


def _model(problem: Problem) -> bytes:
    try:
        import onnx
    except ImportError:
        raise MissingExtra("onnx", "onnx") from None
    graph, width = _Graph(onnx), problem.right.width
    ends = graph.constant([0]), graph.constant([width]), graph.constant([2 * width]), graph.constant([1])
    left = graph.add("Slice", "X", ends[0], ends[1], ends[3])
    right = graph.add("Slice", "X", ends[1], ends[2], ends[3])
    gap = graph.add("Sub", graph.network(problem.network, left), graph.network(problem.network, right))
    length = _length(graph, problem, left, right)
    graph.nodes.append(onnx.helper.make_node("Concat", [gap, length], ["Y"], axis=1))
    double = onnx.TensorProto.DOUBLE
    made = onnx.helper.make_graph(
        graph.nodes,
        "twin",
        [onnx.helper.make_tensor_value_info("X", double, [1, 2 * width])],
        [onnx.helper.make_tensor_value_info("Y", double, [1, 2])],
        graph.constants,
    )
    model = onnx.helper.make_model(made, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def _length(graph: _Graph, problem: Problem, left: str, right: str) -> str:
    """Return the distance, or its p-th power, of the two people."""
    metric = problem.metric
    if metric.phi is not None:
        left, right = graph.network(metric.phi, left), graph.network(metric.phi, right)
    if not len(metric.matrix):
        return graph.add("Mul", graph.add("ReduceMax", left, axes=[1]), graph.constant(np.array(0.0)))
    sizes = graph.add("Abs", graph.add("MatMul", graph.add("Sub", left, right), graph.constant(metric.matrix.T.copy())))
    if metric.p == math.inf:
        return graph.add("ReduceMax", sizes, axes=[1])
    if metric.p != 1.0:
        sizes = graph.add("Pow", sizes, graph.constant(np.array(metric.p)))
    return graph.add("ReduceSum", sizes, graph.constant([1]))
