"""Inner: the question as the engines bound it. Scores become logits, an embedding a matrix or a part of the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from likewise.metric import Metric, unfolded
from likewise.network import Layer, Network
from likewise.problem import Problem
from likewise.rounding import up
from likewise.search.score import Score, as_logits


def inner_problem(problem: Problem) -> tuple[Problem, Score]:
    """Return a problem about logits whose pairs are at least those of the given one, and the score made of them.

    A linear embedding is multiplied out, its rounding paid for by eps. Any other runs beside the network: its outputs
    follow the logit, and the metric compares those.
    """
    logits, score = as_logits(problem.network)
    metric = problem.metric
    if metric.phi is None:
        return replace(problem, network=logits, outer=problem), score
    if metric.is_linear:
        apart = np.maximum(problem.left.upper - problem.right.lower, problem.right.upper - problem.left.lower)
        plain, eps = unfolded(metric, problem.eps, up(np.abs(apart), 2))
        return replace(problem, network=logits, metric=plain, eps=eps, outer=problem), score
    both = beside([logits, metric.phi])
    plain = Metric(metric.matrix, metric.p, metric.kind, metric.note)
    return replace(problem, network=both, metric=plain, aside=metric.phi.outputs, outer=problem), score


def beside(networks: Sequence[Network]) -> Network:
    """Return one network that computes several on the same input, outputs one after the other, the last layer affine.

    A shorter one is carried on by identity neurons, which add nothing but zeros and so lose nothing.
    """
    depth = max(_depth(network) for network in networks)
    chains = [[*network.layers, *(_carry(network.outputs) for _ in range(depth))][:depth] for network in networks]
    first = Layer(
        np.concatenate([chain[0].weight for chain in chains]),
        np.concatenate([chain[0].bias for chain in chains]),
        [name for chain in chains for name in chain[0].activations],
    )
    return Network([first, *(_block([chain[k] for chain in chains]) for k in range(1, depth))])


def _depth(network: Network) -> int:
    """Return the layers it takes to end in an affine one."""
    ends_affine = set(network.layers[-1].activations) == {"identity"}
    return len(network.layers) + (0 if ends_affine else 1)


def _carry(width: int) -> Layer:
    return Layer(np.eye(width), np.zeros(width), "identity")


def _block(layers: Sequence[Layer]) -> Layer:
    weight = np.zeros((sum(len(layer.bias) for layer in layers), sum(layer.weight.shape[1] for layer in layers)))
    row = column = 0
    for layer in layers:
        height, width = layer.weight.shape
        weight[row : row + height, column : column + width] = layer.weight
        row, column = row + height, column + width
    names = [name for layer in layers for name in layer.activations]
    return Layer(weight, np.concatenate([layer.bias for layer in layers]), names)
