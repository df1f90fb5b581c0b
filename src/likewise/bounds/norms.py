"""Norms: bound differences of whole layers by the lengths of vectors, where intervals add up too much.

The difference of a layer's values is at most as long as that of what enters it, times the steepest slope of its
activations; a matrix stretches a vector by its largest singular value at most. In wide layers this grows far slower
than sums of absolute values. For one neuron, |row . dv| <= ||row|| ||dv||.
"""

from __future__ import annotations

import numpy as np

from likewise.bounds.interval import Box
from likewise.network import Layer
from likewise.rounding import Array

POWERS = 5  # the Gram matrix is squared this often: the bound exceeds the norm by the factor n^(1/4/2^POWERS) at most
ROOM = 1e-9  # relative; sums of a few thousand rounded products lose less than a thousandth of it


def stretch(weight: Array) -> float:
    """Bound the largest singular value of a matrix from above.

    With G = W W^T or W^T W, s^2 is G's largest eigenvalue, so s^2 <= ||G^k||_F^(1/k). G is scaled to a norm of 1
    before each squaring, so the rounding of a product is at most n / 2^52 in norm, beside a norm of n^(-1/2) or more:
    a part in 10^10 for n = 2048, doubled with each squaring and halved by each root. A part in a million pays for all.
    """
    gram = weight @ weight.T if weight.shape[0] <= weight.shape[1] else weight.T @ weight
    exponent, logarithm = 1.0, 0.0
    for _ in range(POWERS):
        size = float(np.linalg.norm(gram)) * (1 + ROOM)
        if size == 0.0:
            return 0.0
        logarithm += exponent * np.log(size)
        gram = gram / size
        gram = gram @ gram
        exponent /= 2.0
    logarithm += exponent * np.log(float(np.linalg.norm(gram)) * (1 + ROOM) + 1e-300)
    return float(np.exp(logarithm / 2.0) * (1 + 1e-6))


def length(box: Box) -> float:
    """Bound the length of a vector within a box."""
    return float(np.linalg.norm(box.magnitude) * (1 + ROOM))


def steepest(layer: Layer) -> float:
    """Return the largest slope of a layer's activations, in absolute value."""
    return max(activation.lipschitz for activation, _ in layer.groups())


def differences(layer: Layer, longest: float) -> Box:
    """Bound what enters each neuron's difference, given the length of the difference of the values before it."""
    reach = np.linalg.norm(layer.weight, axis=1) * longest * (1 + 2 * ROOM)
    return Box(-reach, reach)
