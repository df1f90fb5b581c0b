"""Smooth: a network seen through rounded kinks, so that climbing sees beyond the piece it stands on.

Where two similar people have the same neurons active, the gap does not change as they move together: its gradient is
0, though a neuron more would help. With every relu rounded over a width, gains ahead slope towards them. The widths
shrink to 0 while pairs are climbed, and only the network itself decides in the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from likewise.network import Layer
from likewise.problem import Problem
from likewise.rounding import Array

ROUNDED = "relu"


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A problem's network with relus rounded over `width` times the spread of what enters each layer."""

    problem: Problem
    spreads: tuple[float, ...]
    width: float

    def at(self, width: float) -> View:
        """Return the view with another width."""
        return View(self.problem, self.spreads, width)

    def score(self, people: Array) -> Array:
        """Return the scores of people."""
        first = self.problem.network.layers[0]
        return self.after(people @ first.weight.T + first.bias)

    def after(self, z: Array) -> Array:
        """Return the scores of people of whom it is known what enters the first layer."""
        layers, x = (
            self.problem.network.layers,
            _activate(self.problem.network.layers[0], z, self.width * self.spreads[0]),
        )
        for layer, spread in zip(layers[1:], self.spreads[1:], strict=True):
            x = _activate(layer, x @ layer.weight.T + layer.bias, self.width * spread)
        return x[:, 0]

    def gradient(self, people: Array) -> Array:
        """Return the gradient of each person's score; where it vanishes by saturation, of the logit."""
        layers = self.problem.network.layers
        x, slopes = people, []
        for layer, spread in zip(layers, self.spreads, strict=True):
            z = x @ layer.weight.T + layer.bias
            slopes.append(_slope(layer, z, self.width * spread))
            x = _activate(layer, z, self.width * spread)
        back = np.maximum(slopes[-1], 1e-12)
        for layer, slope in zip(reversed(layers[1:]), reversed(slopes[:-1]), strict=True):
            back = (back @ layer.weight) * slope
        return back @ layers[0].weight


def view(problem: Problem, people: Array) -> View:
    """Return the network itself as a view, with the spreads of what enters its layers over some people."""
    entering = problem.network.preactivations(people)
    return View(problem, tuple(float(np.std(z)) for z in entering), 0.0)


def _activate(layer: Layer, z: Array, width: float) -> Array:
    if width <= 0.0:
        return layer.activate(z)
    value = np.empty_like(z)
    for activation, rows in layer.groups():
        part = z[:, rows]
        is_rounded = activation.name == ROUNDED
        value[:, rows] = width * np.logaddexp(0.0, part / width) if is_rounded else activation.value(part)
    return value


def _slope(layer: Layer, z: Array, width: float) -> Array:
    slope = layer.slope(z)
    if width > 0.0:
        for activation, rows in layer.groups():
            if activation.name == ROUNDED:
                slope[:, rows] = expit(z[:, rows] / width)
    return slope
