"""LP tightening: bounds of z and dz from linear programs over the relaxed model, rebuilt from their duals.

Every bound is `solvers.dual_bound` of some multipliers, which holds in real arithmetic whatever the solver did. With a
cut on the model's variables, the bounds hold for all pairs that satisfy the cut.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.bounds.interval import Box
from likewise.bounds.stack import Zs
from likewise.bounds.template import Template
from likewise.bounds.twin import LayerBounds, TwinBounds
from likewise.solvers import Dual, Maximiser

ALL = ("left", "right", "dz")
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Lemma:
    """A new bound of a neuron's z or dz: sign * value <= bound, and the multipliers that prove it."""

    layer: int
    neuron: int
    kind: str
    sign: float
    bound: float
    proof: Dual


@dataclass(frozen=True, slots=True, eq=False)
class Tightener:
    """A warm linear program over a template, when to stop, and who is told of each new bound."""

    template: Template
    session: Maximiser
    deadline: float
    tell: Callable[[Lemma], None] = lambda lemma: None

    def box(self, known: Box, layer: int, kind: str, wanted: NDArray[np.int64]) -> Box | None:
        """Tighten both sides of some neurons; None if nothing is left of one of them."""
        low, high = known.lower.copy(), known.upper.copy()
        for j in wanted.tolist():
            high[j] = min(high[j], self._upper(layer, j, kind, 1.0, high[j]))
            low[j] = max(low[j], -self._upper(layer, j, kind, -1.0, -low[j]))
            if low[j] > high[j]:
                return None
        return Box(low, high)

    def _upper(self, layer: int, neuron: int, kind: str, sign: float, known: float) -> float:
        if time.monotonic() > self.deadline:
            return known
        objective = np.zeros(self.session.columns)
        if kind in ("left", "dz"):
            objective[self.template.left.z[layer][neuron]] += sign
        if kind in ("right", "dz"):
            objective[self.template.right.z[layer][neuron]] += sign if kind == "right" else -sign
        bound = self.session.maximise(objective)[0]
        if bound < known:
            self.tell(Lemma(layer, neuron, kind, sign, bound, self.session.proof))
        return bound


def tighten(
    bounds: TwinBounds,
    tightener: Tightener,
    kinds: Sequence[str] = ALL,
    first: int = 0,
) -> Zs | None:
    """Tighten neurons whose phase is open, from layer `first` on, until the deadline.

    The last layer's are all tightened. None if two proven bounds contradict each other: then no pair satisfies the
    model with its cut.
    """
    tight: list[tuple[Box, Box, Box]] = []
    for index, b in enumerate(bounds.layers):
        boxes = {"left": b.left, "right": b.right, "dz": b.dz}
        if first <= index < len(tightener.template.left.z):
            chosen = open_neurons(b) | (index == len(bounds.layers) - 1)
            for kind in kinds:
                box = tightener.box(boxes[kind], index, kind, np.flatnonzero(chosen))
                if box is None:
                    return None
                boxes[kind] = box
        tight.append((boxes["left"], boxes["right"], boxes["dz"]))
    return tight


def open_neurons(b: LayerBounds) -> Mask:
    """Mark the neurons whose activation is not one straight line over both sides' intervals."""
    straight = (b.slope.lower == b.slope.upper) & (b.slope.lower >= 0.0)
    return np.asarray(~straight, dtype=np.bool_)
