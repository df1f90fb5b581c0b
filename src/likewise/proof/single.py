"""Single precision: how far a model that computes in float32 can be from the real-number function of its weights.

Certificates speak of the real-number function. A float32 evaluation of one layer rounds its inputs, every product and
every sum: |fl(W v + b) - (W v + b)| <= gamma_n (|W| |v| + |b|) with gamma_n = n u / (1 - n u), u = 2^-24, whatever the
order of summation (fused products only lose less), and a weight that is no float32 is off by u itself. An activation
adds what its library may lose, taken to be 16 units in the last place, and multiplies what it was given by its steepest
slope. The largest |v| comes from interval bounds over the whole domain, so the margin holds for every person.
"""

from __future__ import annotations

import numpy as np

from likewise.activations import by_name
from likewise.bounds.interval import Box, activate, affine
from likewise.domain import Domain
from likewise.network import Network
from likewise.problem import Problem
from likewise.rounding import up

UNIT = 2.0**-24
LIBRARY = 16  # units in the last place of a float32 activation
SMALLEST = 2.0**-126  # of normal float32 numbers: what underflow may take


def single_margin(problem: Problem) -> float:
    """Bound how much single precision may add to, or take from, the gap of any pair: the errors of both people."""
    errors = [_error(problem.network, domain) for domain in (problem.left, problem.right)]
    return float(up(errors[0] + errors[1], 2))


def _error(network: Network, domain: Domain) -> float:
    box = Box(domain.lower, domain.upper)
    off = UNIT * box.magnitude + SMALLEST
    for layer in network.layers:
        size, terms = np.abs(layer.weight), layer.weight.shape[1] + 4
        gamma = terms * UNIT / (1 - terms * UNIT)
        spread = size @ (box.magnitude + off) + np.abs(layer.bias)
        z_off = (size @ off + (gamma + 2 * UNIT) * spread) * (1 + 1e-9) + terms * SMALLEST
        z = affine(layer.weight, layer.bias, box)
        box = activate(layer, Box(z.lower - z_off, z.upper + z_off))
        steep = np.array([by_name(name).lipschitz for name in layer.activations])
        off = (steep * z_off + 2 * LIBRARY * UNIT * (1 + box.magnitude)) * (1 + 1e-9) + SMALLEST
    return float(off[0])
