"""LP tightening: bounds of z and dz from linear programs over the relaxed model, rebuilt from their duals.

Every bound is `solvers.dual_bound` of some multipliers, which holds in real arithmetic whatever the solver did. With a
cut that some real pair satisfies, the bounds hold for all pairs that satisfy the cut.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.bounds.interval import Box
from likewise.bounds.template import Template
from likewise.bounds.twin import LayerBounds, TwinBounds, settle
from likewise.problem import Problem
from likewise.solvers import Session


@dataclass(frozen=True, slots=True, eq=False)
class Tightener:
    """A warm linear program over a template, and when to stop."""

    session: Session
    deadline: float

    def upper(self, columns: list[int], values: list[float], known: float) -> float:
        """Bound a linear function of the variables from above, or return what was known when time is up."""
        if time.monotonic() > self.deadline:
            return known
        objective = np.zeros(self.session.columns)
        np.add.at(objective, columns, values)
        return min(known, self.session.maximise(objective)[0])


def tighten(
    problem: Problem, bounds: TwinBounds, template: Template, session: Session, deadline: float, first: int = 0
) -> TwinBounds:
    """Tighten z and dz of every neuron whose phase is open, from layer `first` on, until the deadline."""
    tightener = Tightener(session, deadline)
    for index in range(first, len(template.left.z)):
        bounds = bounds.with_layer(index, _layer(problem, bounds.layers[index], template, index, tightener))
    return bounds


def _layer(problem: Problem, b: LayerBounds, template: Template, index: int, tightener: Tightener) -> LayerBounds:
    layer = problem.network.layers[index]
    is_output = index == len(problem.network.layers) - 1
    wanted = np.flatnonzero(open_neurons(b) | is_output)
    left_z, right_z = template.left.z[index], template.right.z[index]

    def box(known: Box, columns: Callable[[int], list[int]], values: list[float]) -> Box:
        low, high = known.lower.copy(), known.upper.copy()
        for j in wanted:
            high[j] = tightener.upper(columns(int(j)), values, high[j])
            low[j] = -tightener.upper(columns(int(j)), [-v for v in values], -low[j])
        return Box(low, high)

    left = box(b.left, lambda j: [int(left_z[j])], [1.0])
    right = box(b.right, lambda j: [int(right_z[j])], [1.0])
    dz = box(b.dz, lambda j: [int(left_z[j]), int(right_z[j])], [1.0, -1.0])
    return settle(layer, left, right, dz)


def open_neurons(b: LayerBounds) -> NDArray[np.bool_]:
    """Mark the neurons whose activation is not one straight line over both sides' intervals."""
    straight = (b.slope.lower == b.slope.upper) & (b.slope.lower >= 0.0)
    return np.asarray(~straight, dtype=np.bool_)
