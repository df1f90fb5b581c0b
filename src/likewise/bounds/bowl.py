"""Bowls: what a smooth neuron makes of a difference, as a quadratic function of dz and dv that no pair exceeds.

    p dv^2 + q dz dv + r dz^2 + e dv + f dz <= top       for all pairs of a neuron's intervals

Squares of slopes alone, (dv - s0 dz)(dv - s1 dz) <= 0, know the steepest and the flattest slope anywhere. A bowl may
have any numbers: it sees that a long dz has no slope as steep as a short one, and that an S bends away on both sides.
They are found on a sample of pairs (`bounds.joint`); the top that counts is that of `pairs.largest`, whatever the
sample missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from likewise.activations import Activation, by_name
from likewise.bounds.interval import Box
from likewise.bounds.pairs import Terms, largest
from likewise.bounds.twin import LayerBounds
from likewise.network import Network
from likewise.rounding import Array

NUMBERS = 5  # p, q, r, e, f of a neuron
COARSE, FINE, CLOSEST = (33, 9), (257, 65), 400  # points of z and of dz; how many fine ones are taken
CLOSE = 1e-6  # beside a bowl's size, how close a top is to the largest value; readers have a tolerance of their own
SHORTEST = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Bowls:
    """Those of a layer: its activation, intervals, and for each neuron a power of two that is about its longest dz."""

    activation: Activation
    left: Box
    right: Box
    dz: Box
    unit: Array

    @classmethod
    def of(cls, network: Network, index: int, b: LayerBounds) -> Bowls:
        """Return those of a hidden layer of one smooth activation."""
        long = np.maximum(b.dz.magnitude, max(SHORTEST, 1e-9 * float(b.dz.magnitude.max(initial=0.0))))
        return cls(by_name(network.layers[index].activations[0]), b.left, b.right, b.dz, 2.0 ** np.ceil(np.log2(long)))

    def sample(self, count: tuple[int, int] = COARSE) -> Array:
        """Return, neuron by neuron, what multiplies (p, q, r, e, f, top) in top - bowl at some pairs, dz in units."""
        z, h = (grid.ravel()[None] for grid in np.meshgrid(*(np.linspace(0.0, 1.0, one) for one in count)))
        z = self.right.lower[:, None] + z * (self.right.upper - self.right.lower)[:, None]
        ends = self.dz.lower[:, None], self.dz.upper[:, None]
        low, high = (np.clip(end[:, None] - z, *ends) for end in (self.left.lower, self.left.upper))
        h = low + h * (high - low)
        value = self.activation.value
        dv, dz = (value(z + h) - value(z)) / self.unit[:, None], h / self.unit[:, None]
        return np.stack([-dv * dv, -dz * dv, -dz * dz, -dv, -dz, np.ones_like(dv)], axis=2)

    def refined(self, numbers: Array) -> Array:
        """Return a sample that is fine where given bowls (rows p, q, r, e, f, top, in units) are highest."""
        fine = self.sample(FINE)
        order = np.einsum("jkc,cj->jk", fine, numbers).argsort(axis=1)[:, :CLOSEST]
        return np.concatenate([self.sample(), np.take_along_axis(fine, order[:, :, None], axis=1)], axis=1)

    def tops(self, numbers: Array) -> Array:
        """Return a top of each neuron's bowl (rows p, q, r, e, f): see `pairs.largest` for why it holds."""
        p, q, r, e, f = numbers
        size = self.unit * ((np.abs(numbers[:3]) * self.unit).sum(axis=0) + np.abs(numbers[3:]).sum(axis=0))
        terms = Terms(e, -e, f, -f, np.array([p, q, r]))
        highest = largest(self.activation, terms, self.left, self.right, self.dz, CLOSE * size)
        return np.asarray(highest + 1.5 * CLOSE * size)


def bowls(network: Network, layers: Sequence[LayerBounds]) -> list[Bowls]:
    """Return the bowls of all hidden layers; none where one is not of one smooth activation."""
    names = [set(layer.activations) for layer in network.layers[:-1]]
    if not names or any(len(some) > 1 or by_name(*some).bends is None for some in names):
        return []
    return [Bowls.of(network, index, b) for index, b in enumerate(layers[: len(names)])]
