"""Wide: bounds of the differences of a network whose layers have many neurons, by the spread of its first layer.

Behind the first layer every difference is a sum over that layer's neurons, after backward substitution through the
layers between; `bounds.spread` bounds such sums better than one line for each neuron does.
"""

from __future__ import annotations

import math

import numpy as np

from likewise.bounds.difference import difference_lines
from likewise.bounds.interval import Box
from likewise.bounds.linear import Stage, backward_upper
from likewise.bounds.spread import SAMPLE, Spread, spread_of, symmetric
from likewise.bounds.twin import LayerBounds, TwinBounds, settle
from likewise.problem import Problem
from likewise.rounding import Array


def first_spread(problem: Problem, bounds: TwinBounds) -> Spread:
    """Return the spread of a network's first layer over the differences of all similar pairs."""
    differences = bounds.reach.differences
    free = differences.free
    reach = np.maximum(np.abs(differences.lower[free]), np.abs(differences.upper[free]))
    among = symmetric(differences.metric.matrix[:, free], differences.metric.p, differences.eps, reach)
    return spread_of(problem.network.layers[0].weight[:, free], bounds.layers[0].slope, among)


def spread_bounds(problem: Problem, bounds: TwinBounds, deadline: float = math.inf) -> TwinBounds:
    """Return the bounds with the dz of every layer but the first met with what the first one's spread shows."""
    if not len(bounds.reach.differences.free) or problem.aside:
        return bounds
    spread = first_spread(problem, bounds)
    done = [bounds.layers[0]]
    for layer, known in zip(problem.network.layers[1:], bounds.layers[1:], strict=True):
        stages = _between(problem, done)
        high = _upper(layer.weight, stages, spread, done[0], deadline)
        is_even = problem.symmetric or not stages
        low = -high if is_even else -_upper(-layer.weight, stages, spread, done[0], deadline)
        dz = Box(np.maximum(known.dz.lower, low), np.minimum(known.dz.upper, high))
        done.append(settle(layer, known.left, known.right, dz))
    return TwinBounds(bounds.reach, tuple(done))


def _between(problem: Problem, done: list[LayerBounds]) -> list[Stage]:
    """Return the stages of differences behind the first layer."""
    layers = problem.network.layers
    return [
        Stage(layers[k].weight, np.zeros(len(layers[k].bias)), difference_lines(b.slope, b.dz), b.dz, done[k - 1].dv)
        for k, b in enumerate(done)
        if k
    ]


def _upper(weight: Array, stages: list[Stage], spread: Spread, first: LayerBounds, deadline: float) -> Array:
    """Bound weight @ (difference of the values before) from above; how a form was found does not matter for truth."""

    def base(rows: Array, errors: Array | None) -> Array:
        sample = rows[np.linspace(0, len(rows) - 1, min(SAMPLE, len(rows))).astype(np.int64)]
        uppers = spread.upper(rows, spread.fitted(sample, deadline), deadline)
        return uppers if errors is None else uppers + errors @ first.dv.magnitude * (1 + 1e-12)

    return backward_upper(weight, stages, base)
