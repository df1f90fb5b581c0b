"""The graph behind the loaders: what it flattens to computes the same, folds exactly, and stays bounded."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.activations import NAMES, by_name
from likewise.errors import ModelError
from likewise.load._graph import Graph, Value
from likewise.network import Network
from likewise.rounding import Array

_graph = importlib.import_module("likewise.load._graph")  # the name likewise.load is also that of a function
Pair = tuple[Value, Array]  # a vector of the graph, and what it is for each of some people


def grow(graph: Graph, known: list[Pair], rng: np.random.Generator) -> Pair:
    """Apply a random operation to random vectors, in the graph and in numpy."""
    value, numbers = known[rng.integers(len(known))]
    same = [pair for pair in known if len(pair[0]) == len(value)]
    other, others = same[rng.integers(len(same))]
    rows = rng.integers(0, len(value), size=rng.integers(1, 5))
    weight = rng.normal(size=(rng.integers(1, 5), len(value)))
    vector = rng.normal(size=len(value))
    name = NAMES[rng.integers(len(NAMES))]
    choices: list[Callable[[], Pair]] = [
        lambda: (graph.scale(value, vector), numbers * vector),
        lambda: (graph.shift(value, vector), numbers + vector),
        lambda: (graph.take(value, rows), numbers[:, rows]),
        lambda: (graph.join([value, other]), np.hstack([numbers, others])),
        lambda: (graph.add(value, other), numbers + others),
        lambda: (graph.product(value, weight), numbers @ weight.T),
        lambda: (graph.product(value, weight), numbers @ weight.T),
        lambda: (graph.activate(value, name, "here"), by_name(name).value(numbers)),
        lambda: (graph.activate(value, name, "here"), by_name(name).value(numbers)),
    ]
    return choices[rng.integers(len(choices))]()


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), steps=st.integers(0, 14))
def test_any_graph_flattens_to_a_chain_that_computes_the_same(seed: int, steps: int) -> None:
    rng = np.random.default_rng(seed)
    graph = Graph(3)
    people = rng.normal(size=(20, 3))
    known: list[Pair] = [(graph.inputs, people)]
    for _ in range(steps):
        known.append(grow(graph, known, rng))
    value, expected = known[-1]
    scores = graph.network(value)(people).reshape(20, -1)
    assert scores == pytest.approx(expected, rel=1e-9, abs=1e-9 * max(1.0, float(np.abs(expected).max())))


def residual() -> Network:
    """h = relu(W x + b), then h + tanh(V h), then one output."""
    rng = np.random.default_rng(1)
    graph = Graph(4)
    z = graph.shift(graph.product(graph.inputs, rng.normal(size=(5, 4))), rng.normal(size=5))
    h = graph.activate(z, "relu", "")
    t = graph.activate(graph.product(h, rng.normal(size=(5, 5))), "tanh", "")
    return graph.network(graph.activate(graph.product(graph.add(h, t), np.ones((1, 5))), "sigmoid", ""))


def test_a_skip_connection_is_carried_by_exact_identity_neurons() -> None:
    net = residual()
    assert [layer.activations for layer in net.layers] == [
        ("relu",) * 5,
        ("tanh",) * 5 + ("identity",) * 5,
        ("sigmoid",),
    ]
    carry = net.layers[1]
    assert np.array_equal(carry.weight[5:], np.eye(5))
    assert not carry.bias[5:].any()
    assert np.array_equal(net.layers[2].weight, np.ones((1, 10)))  # the sum is folded, and no bit of it rounds


def test_a_deep_residual_network_stays_narrow() -> None:
    rng = np.random.default_rng(8)
    graph = Graph(3)
    stream = graph.inputs
    for _ in range(6):
        step = graph.activate(graph.product(stream, rng.normal(size=(3, 3))), "tanh", "")
        stream = graph.add(stream, graph.product(step, rng.normal(size=(3, 3))))
    net = graph.network(stream)
    assert max(len(layer.bias) for layer in net.layers) <= 6


def test_where_nothing_is_to_fold_no_bit_changes() -> None:
    rng = np.random.default_rng(2)
    weight, bias = rng.normal(size=(6, 5)), rng.normal(size=6)
    graph = Graph(5)
    x = graph.shift(graph.scale(graph.inputs, np.ones(5)), np.zeros(5))
    y = graph.take(graph.join([x, graph.constant([1.0])]), np.arange(5))
    z = graph.add(graph.shift(graph.product(y, weight), bias), graph.constant(np.zeros(6)))
    net = graph.network(graph.activate(graph.scale(z, 1.0), "tanh", ""))
    assert len(net.layers) == 1
    assert net.layers[0].weight.tobytes() == weight.tobytes()
    assert net.layers[0].bias.tobytes() == bias.tobytes()


def test_two_matrix_products_stay_two_layers() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.normal(size=(1, 4)), rng.normal(size=(3, 1))
    graph = Graph(4)
    net = graph.network(graph.activate(graph.product(graph.product(graph.inputs, first), second), "relu", ""))
    assert [layer.activations for layer in net.layers] == [("identity",), ("relu",) * 3]
    assert net.layers[0].weight.tobytes() == first.tobytes()
    assert net.layers[1].weight.tobytes() == second.tobytes()


def test_what_the_output_does_not_need_is_left_out() -> None:
    graph = Graph(2)
    graph.activate(graph.product(graph.inputs, np.ones((7, 2))), "tanh", "a side branch")
    net = graph.network(graph.activate(graph.product(graph.inputs, np.ones((1, 2))), "relu", ""))
    assert [len(layer.bias) for layer in net.layers] == [1]


def test_outputs_of_several_stages_end_in_one_layer() -> None:
    graph = Graph(2)
    early = graph.activate(graph.product(graph.inputs, np.ones((1, 2))), "softplus", "")
    late = graph.activate(graph.product(early, -np.ones((1, 1))), "sigmoid", "")
    net = graph.network(graph.join([late, early, graph.inputs]))
    assert [layer.activations for layer in net.layers][-1] == ("sigmoid", "identity", "identity", "identity")
    softplus = np.log1p(np.exp(3.0))
    assert net([[1.0, 2.0]])[0] == pytest.approx([1 / (1 + np.exp(softplus)), softplus, 1.0, 2.0])


def test_an_unknown_activation_is_named_only_if_it_is_needed() -> None:
    graph = Graph(2)
    odd = graph.activate(graph.inputs, "Erf", "Erf node 'e'")
    assert graph.network(graph.inputs).outputs == 2
    with pytest.raises(ModelError, match="Erf node 'e'"):
        graph.network(odd)


def test_a_graph_that_unfolds_too_far_is_refused_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_graph, "SPACE", 100_000)
    with pytest.raises(ModelError, match="too large"):
        Graph(400)
    graph = Graph(100)  # an identity of 10,000 numbers
    value = graph.join([graph.inputs] * 8)  # 80,000 more
    with pytest.raises(ModelError, match="too large"):
        graph.scale(value, 2.0)
    with pytest.raises(ModelError, match="too large"):
        Graph(1).take(Graph(1).inputs, np.zeros(10_000, dtype=int))
