"""What several frameworks have, written as folds and the activations of the table: batch norm, clip, softmax, ...

Frameworks keep parameters in float32, so a parameter is taken for 0.01, 1/6 or 1 if it is so in float32.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from likewise.errors import ModelError
from likewise.load._graph import Graph, Value, finite
from likewise.rounding import Array

MOST_CLASSES = 16  # of a softmax: it takes classes^2 neurons
SELU = (1.6732632423543772, 1.0507009873554805)  # alpha and scale


def decimal(number: float) -> float:
    """Return the shortest decimal of a parameter that was kept in float32: 0.2, not 0.20000000298."""
    return float(str(np.float32(number)))


def equal(number: float, expected: float) -> bool:
    """Tell whether the two numbers are the same in float32."""
    return bool(np.float32(number) == np.float32(expected))


def normalise(graph: Graph, value: Value, statistics: tuple[Array, ...], epsilon: float, where: str) -> Value:
    """(z - mean) / sqrt(variance + epsilon) * gain + offset, the channels being equal consecutive parts of z.

    `statistics` are gain, offset, mean and variance per channel, as stored after training.
    """
    repeat = len(value) // len(statistics[0])
    gain, offset, mean, variance = (np.repeat(v, repeat) for v in statistics)
    finite(where, gain, offset, mean, variance)
    if not (variance + epsilon > 0).all():
        raise ModelError(f"{where}: a variance is not positive")
    factor = gain / np.sqrt(variance + epsilon)
    return graph.shift(graph.scale(value, factor), offset - factor * mean)


def leaky(graph: Graph, value: Value, slope: ArrayLike, where: str) -> Value:
    """z above 0, slope z below: leaky_relu for .01, else relu(z) - slope relu(-z) with two neurons for one."""
    slopes = np.broadcast_to(np.asarray(slope, dtype=np.float64), (len(value),))
    if not np.isfinite(slopes).all():
        raise ModelError(f"{where}: a slope is not finite")
    if all(equal(float(s), 0.01) for s in slopes):
        return graph.activate(value, "leaky_relu", where)
    if not slopes.any():
        return graph.activate(value, "relu", where)
    n = len(value)
    both = graph.activate(graph.join([value, graph.scale(value, -1.0)]), "relu", where)
    below = graph.scale(graph.take(both, np.arange(n, 2 * n)), -slopes)
    return graph.add(graph.take(both, np.arange(n)), below)


def clip(graph: Graph, value: Value, low: float, high: float, where: str) -> Value:
    """min(max(z, low), high): relu, relu6 or hardtanh, moved and scaled where the bounds ask for it."""
    if not low < high:  # false for NaN too
        raise ModelError(f"{where}: cannot clip to [{low:g}, {high:g}]")
    if (low, high) == (-math.inf, math.inf):
        return value
    if high == math.inf:
        return graph.shift(graph.activate(graph.shift(value, -low), "relu", where), low)
    if low == -math.inf:
        mirrored = graph.shift(graph.scale(value, -1.0), high)
        return graph.shift(graph.scale(graph.activate(mirrored, "relu", where), -1.0), high)
    if (low, high) == (0.0, 6.0):
        return graph.activate(value, "relu6", where)
    middle, radius = low / 2 + high / 2, high / 2 - low / 2
    centred = graph.scale(graph.shift(value, -middle), 1.0 / radius)
    return graph.shift(graph.scale(graph.activate(centred, "hardtanh", where), radius), middle)


def hard_sigmoid(graph: Graph, value: Value, alpha: float, beta: float, where: str) -> Value:
    """min(max(alpha z + beta, 0), 1): hardsigmoid for 1/6 and 1/2, else a clipped line."""
    if equal(alpha, 1 / 6) and equal(beta, 0.5):
        return graph.activate(value, "hardsigmoid", where)
    return clip(graph, graph.shift(graph.scale(value, alpha), beta), 0.0, 1.0, where)


def elu(graph: Graph, value: Value, alpha: float, where: str) -> Value:
    """Return z above 0 and alpha (exp(z) - 1) below: the sum of alpha elu and (1 - alpha) relu."""
    smooth = graph.activate(value, "elu", where)
    if equal(alpha, 1.0):
        return smooth
    corner = graph.activate(value, "relu", where)
    return graph.add(graph.scale(smooth, alpha), graph.scale(corner, 1.0 - alpha))


def selu(graph: Graph, value: Value, alpha: float, gamma: float, where: str) -> Value:
    """Return selu with its own two constants; others are refused."""
    if not (equal(alpha, SELU[0]) and equal(gamma, SELU[1])):
        raise ModelError(
            f"{where}: selu is known with alpha {SELU[0]:g} and gamma {SELU[1]:g}, not {alpha:g}, {gamma:g}"
        )
    return graph.activate(value, "selu", where)


def softplus(graph: Graph, value: Value, beta: float, where: str) -> Value:
    """log(1 + exp(beta z)) / beta."""
    if not (math.isfinite(beta) and beta):
        raise ModelError(f"{where}: softplus needs a beta that is not 0, got {beta:g}")
    if beta == 1.0:
        return graph.activate(value, "softplus", where)
    return graph.scale(graph.activate(graph.scale(value, beta), "softplus", where), 1.0 / beta)


def softmax(graph: Graph, value: Value, where: str) -> Value:
    """p_k = sigmoid(z_k - log of the sum of exp(z_j) over the others), which is the same function.

    log(exp(a) + exp(b)) = a + softplus(b - a), so that the logarithm takes one layer of softplus neurons for every
    halving of the number of the others; with two classes there is none to take.
    """
    classes = len(value)
    if not 2 <= classes <= MOST_CLASSES:
        raise ModelError(
            f"{where}: a softmax over {classes} classes is not read (2 to {MOST_CLASSES} are)\n"
            "cut the model before the softmax: its logits can be certified one by one (output=k)"
        )
    apart = []
    for k in range(classes):
        others = graph.take(value, np.array([j for j in range(classes) if j != k]))
        while len(others) > 1:
            half = len(others) // 2
            first, second = (graph.take(others, np.arange(i * half, (i + 1) * half)) for i in range(2))
            more = graph.activate(graph.add(second, graph.scale(first, -1.0)), "softplus", where)
            rest = graph.take(others, np.arange(2 * half, len(others)))
            others = graph.join([graph.add(first, more), rest])
        apart.append(graph.add(graph.take(value, np.array([k])), graph.scale(others, -1.0)))
    return graph.activate(graph.join(apart), "sigmoid", where)
