"""A network as torch tensors: relu layers and one output before its sigmoid, from nothing or from a Network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from likewise.errors import ModelError
from likewise.network import Layer, Network
from likewise.rounding import Array

Layers = list[tuple[Tensor, Tensor]]  # weight (out, in) and bias of each layer


def tensor(values: Array) -> Tensor:
    """Return a float64 tensor of its own."""
    return torch.tensor(np.asarray(values), dtype=torch.float64)


def initial(widths: Sequence[int], rng: np.random.Generator, seen: np.ndarray) -> Layers:
    """Return random layers (normal, variance 2 / inputs); columns that nobody to train on has start, and stay, at 0."""
    layers: Layers = []
    for inputs, outputs in pairwise(widths):
        weight = rng.normal(size=(outputs, inputs)) * math.sqrt(2.0 / inputs)
        if not layers:
            weight[:, ~seen] = 0.0
        layers.append((tensor(weight), tensor(np.zeros(outputs))))
    return layers


def logits(layers: Layers, X: Tensor) -> Tensor:
    """Return the output before its sigmoid, for people (n, columns)."""
    for weight, bias in layers[:-1]:
        X = torch.relu(torch.addmm(bias, X, weight.T))
    weight, bias = layers[-1]
    return torch.addmm(bias, X, weight.T)[:, 0]


def output_of(layers: Layers, entering: Tensor) -> Tensor:
    """Return the output, from what enters the first layer's activations."""
    values = entering
    for weight, bias in layers[1:]:
        values = torch.addmm(bias, torch.relu(values), weight.T)
    return values[:, 0]


def slope_of(layers: Layers, entering: Tensor, softness: float) -> Tensor:
    """Return the output's derivatives by what enters the first layer's activations.

    With a softness, a neuron within that distance of its kink counts as partly on.
    """
    values, on = entering, []
    for weight, bias in layers[1:]:
        on.append(torch.sigmoid(values / softness) if softness else (values > 0).double())
        values = torch.addmm(bias, torch.relu(values), weight.T)
    slope = torch.ones(len(entering), 1, dtype=torch.float64)
    for (weight, _), active in zip(reversed(layers[1:]), reversed(on), strict=True):
        slope = (slope @ weight) * active
    return slope


def to_network(layers: Layers, is_classes: bool) -> Network:
    """Return the network, with a sigmoid output for classes."""
    last = "sigmoid" if is_classes else "identity"
    names = [*["relu"] * (len(layers) - 1), last]
    arrays = [(weight.detach().numpy(), bias.detach().numpy()) for weight, bias in layers]
    return Network(Layer(weight, bias, name) for (weight, bias), name in zip(arrays, names, strict=True))


def from_network(network: Network, is_classes: bool, width: int) -> Layers:
    """Return the layers of a network that was trained before; other activations than ours are refused."""
    wanted = "sigmoid" if is_classes else "identity"
    if network.inputs != width or network.outputs != 1:
        raise ModelError(
            f"the network to start from maps {network.inputs} columns to {network.outputs} outputs, "
            f"the data has {width} columns and one outcome"
        )
    for i, layer in enumerate(network.layers):
        expected = wanted if i == len(network.layers) - 1 else "relu"
        if set(layer.activations) != {expected}:
            raise ModelError(
                f"the network to start from: layer {i} is {layer.activations[0]}, training needs {expected}"
            )
    return [(tensor(layer.weight), tensor(layer.bias)) for layer in network.layers]
