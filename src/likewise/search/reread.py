"""Reread: narrow bounds by lemmas as a reader of the proof does.

The linear programs of a round all begin from the same bounds, and pay for each row alone. A reader evaluates what they
have written layer by layer, carries on what the lemmas before have left, and so ends with narrower intervals. Whoever
goes on from there should know as much: bounds of all differences together hang on every interval, and for given weights
narrower ones may show a little less (`bounds.joint`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from likewise.bounds import Box, TwinBounds, completed
from likewise.bounds.argument import Argument
from likewise.bounds.tighten import ALL, Lemma
from likewise.problem import Problem
from likewise.proof import Target, evaluate

Told = tuple[Lemma, Argument]


def reread(problem: Problem, bounds: TwinBounds, told: Sequence[Told]) -> TwinBounds | None:
    """Return bounds narrowed by all that was told of them; None if one is empty, so that no pair is there.

    Each value is `evaluate`'s, rounded outward, over pairs within the bounds that the lemmas before have left. Those of
    the first layer begin from the same bounds as their programs, but where intervals are short already, what a program
    leaves to tolerances is much of them.
    """
    now = bounds
    for layer, some in groupby(told, key=lambda one: one[0].layer):
        zs: list[tuple[Box, Box, Box]] = [(b.left, b.right, b.dz) for b in now.layers]
        ends = [(box.lower.copy(), box.upper.copy()) for box in zs[layer]]
        for lemma, argument in some:
            target = Target(layer, lemma.neuron, lemma.kind, lemma.sign)
            value = min(lemma.bound, evaluate(problem, now, argument, target).upper)
            low, high = ends[ALL.index(lemma.kind)]
            if lemma.sign > 0:
                high[lemma.neuron] = min(high[lemma.neuron], value)
            else:
                low[lemma.neuron] = max(low[lemma.neuron], -value)
        if any((low > high).any() for low, high in ends):
            return None
        left, right, dz = (Box(low, high) for low, high in ends)
        zs[layer] = left, right, dz
        carried = completed(problem.network, now.reach, zs)
        if carried is None:
            return None
        now = carried
    return now
