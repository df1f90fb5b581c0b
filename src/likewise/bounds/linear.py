"""Linear bounds: substitute backwards through linear relaxations of the activations, down to the input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from likewise.bounds.interval import Box
from likewise.network import Layer
from likewise.rounding import Array, dot_error, up


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """lower_slope z + lower_offset <= v <= upper_slope z + upper_offset for each neuron of a layer."""

    lower_slope: Array
    lower_offset: Array
    upper_slope: Array
    upper_offset: Array


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One layer to substitute through: z = weight v_before + bias, then v by its lines.

    `z` and `before` bound the values in question; rounding errors of coefficients are paid for with them.
    """

    weight: Array
    bias: Array
    lines: Lines
    z: Box
    before: Box


def activation_lines(layer: Layer, z: Box) -> Lines:
    """Return each neuron's linear relaxation over its interval."""
    parts = [np.empty_like(z.lower) for _ in range(4)]
    for activation, rows in layer.groups():
        for part, values in zip(parts, activation.linear_bounds(z.lower[rows], z.upper[rows]), strict=True):
            part[rows] = values
    return Lines(*parts)


def backward_upper(
    rows: Array,
    stages: Sequence[Stage],
    base: Callable[[Array, Array | None], Array],
    trail: list[Array] | None = None,
) -> Array:
    """Bound rows @ v_last from above, where v_last leaves the last stage.

    The coefficients of each stage's z are appended to `trail`, the last stage's first.

    Each step replaces a value by its upper line where its coefficient is positive and by its lower line where it is
    negative, which can only raise the sum. The coefficients are floats: whatever each one may have lost in
    rounding, times the largest value it multiplies, is added to the constant. `base` bounds a linear function of
    the input, given its coefficients and a bound on their errors.
    """
    coefficients, constant, error = rows, np.zeros(len(rows)), None
    for stage in reversed(stages):
        positive, negative = np.maximum(coefficients, 0.0), np.minimum(coefficients, 0.0)
        lines = stage.lines
        through = positive * lines.upper_slope + negative * lines.lower_slope
        if trail is not None:
            trail.append(through)
        offsets = positive @ lines.upper_offset + negative @ lines.lower_offset
        sizes = np.abs(positive) @ np.abs(lines.upper_offset) + np.abs(negative) @ np.abs(lines.lower_offset)
        lost = dot_error(2 * rows.shape[1], sizes) + dot_error(2, np.abs(through)) @ stage.z.magnitude
        shift = through @ stage.bias
        lost = lost + dot_error(len(stage.bias), np.abs(through) @ np.abs(stage.bias))
        next_error = dot_error(len(stage.bias), np.abs(through) @ np.abs(stage.weight))
        coefficients = through @ stage.weight
        if stage is stages[0]:
            error = next_error
        else:
            lost = lost + next_error @ stage.before.magnitude
        total = constant + offsets + shift
        constant = up(total + lost * (1 + 1e-12) + dot_error(4, np.abs(constant) + np.abs(offsets) + np.abs(shift)), 2)
    return up(constant + base(coefficients, error), 1)
