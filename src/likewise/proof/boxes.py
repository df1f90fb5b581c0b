"""Boxes: the bounds that a search starts from, each with the argument for it in the log.

Backward substitution is an argument as it stands: its coefficients of z are the multipliers. What intervals show too
is left out, because a checker finds it by itself.
"""

from __future__ import annotations

import numpy as np

from likewise.bounds import Box, Differences, Reach, TwinBounds, twin_bounds
from likewise.bounds.argument import ALWAYS, Argument
from likewise.bounds.interval import affine
from likewise.problem import Problem
from likewise.proof.log import Log
from likewise.rounding import Array


def argued_bounds(problem: Problem, reach: Reach, log: Log) -> TwinBounds:
    """Return the twin bounds of a problem (an inner one), and write to the log's root why they hold."""
    heard: list[tuple[int, str, float, list[Array], Array]] = []
    bounds = twin_bounds(problem, reach, lambda *told: heard.append(told))
    for layer, kind, sign, trail, upper in heard:
        plain = _by_intervals(problem, bounds, layer, kind)
        known = plain.upper if sign > 0 else -plain.lower
        better = np.flatnonzero(upper < known - 1e-12 * np.abs(known))
        if not len(better) or (layer == 0 and kind != "dz"):  # a checker finds the best of these by itself
            continue
        rows = sign * problem.network.layers[layer].weight[better]
        arguments = _arguments(problem, reach, layer, kind, sign, better, rows, [through[better] for through in trail])
        for neuron, argument in zip(better.tolist(), arguments, strict=True):
            log.lemma(0, layer, neuron, kind, sign, argument)
    if problem.aside:
        _compared(problem, bounds, log)
    return bounds


def _by_intervals(problem: Problem, bounds: TwinBounds, layer: int, kind: str) -> Box:
    """Bound a layer by the values of the one before it alone."""
    weight, bias = problem.network.layers[layer].weight, problem.network.layers[layer].bias
    if kind == "dz":
        d = reach_box(bounds.reach) if layer == 0 else bounds.layers[layer - 1].dv
        return affine(weight, np.zeros(len(bias)), d)
    before = bounds.layers[layer - 1] if layer else None
    domain = problem.left if kind == "left" else problem.right
    box = Box(domain.lower, domain.upper)
    if before is not None:
        box = before.left_value if kind == "left" else before.right_value
    return affine(weight, bias, box)


def reach_box(reach: Reach) -> Box:
    """Return the box of differences."""
    return Box(reach.differences.lower, reach.differences.upper)


def _arguments(
    problem: Problem,
    reach: Reach,
    layer: int,
    kind: str,
    sign: float,
    neurons: np.ndarray,
    rows: Array,
    trail: list[Array],
) -> list[Argument]:
    """Return the arguments of some neurons from the coefficients on the way back."""
    layers = problem.network.layers
    zs: dict[int, Array] = {layer: sign * np.eye(len(layers[layer].bias))[neurons]}
    zs |= {layer - 1 - i: through for i, through in enumerate(trail)}
    values = {k: (rows if k == layer - 1 else zs[k + 1] @ layers[k + 1].weight) for k in range(layer)}
    first = zs[0] @ layers[0].weight if layer else rows
    pair = kind == "dz"
    mus = reach.differences.multipliers(first) if pair else np.zeros((len(rows), 0))
    nothing = [np.zeros(len(one.bias)) for one in layers]
    omega = (np.zeros(len(problem.left.constraints[1])), np.zeros(len(problem.right.constraints[1])))
    out = []
    for i in range(len(neurons)):
        passed = [zs[k][i] if k in zs else nothing[k] for k in range(len(layers))]
        left = tuple(nothing) if kind == "right" else tuple(passed)
        right = tuple(nothing) if kind == "left" else tuple(-c for c in passed) if pair else tuple(passed)
        both = tuple(values[k][i] if pair and k in values else nothing[k] for k in range(len(layers)))
        turn = tuple(zs[k][i] if pair and k in values else nothing[k] for k in range(len(layers)))
        nu = np.where(reach.shared, 0.0, first[i]) if pair else np.zeros(problem.right.width)
        mu = np.zeros(len(problem.metric.matrix))
        if pair and not problem.aside:
            mu = mus[i]
        out.append(Argument(ALWAYS, np.empty(0), left, right, both, turn, nu, mu, omega))
    return out


def _compared(problem: Problem, bounds: TwinBounds, log: Log) -> None:
    """Write how the metric limits the differences of what an embedding makes of two people."""
    last = len(problem.network.layers) - 1
    dz, count = bounds.layers[last].dz, problem.aside
    box = Differences(problem.metric, problem.eps, dz.lower[1:], dz.upper[1:])
    nothing = tuple(np.zeros(len(one.bias)) for one in problem.network.layers)
    omega = (np.zeros(len(problem.left.constraints[1])), np.zeros(len(problem.right.constraints[1])))
    for sign in (1.0, -1.0):
        for j, mu in enumerate(box.multipliers(sign * np.eye(count))):
            turn = np.zeros(count + 1)
            turn[j + 1] = -sign
            nu = np.zeros(problem.right.width)
            argument = Argument(ALWAYS, np.empty(0), nothing, nothing, nothing, (*nothing[:-1], turn), nu, mu, omega)
            log.lemma(0, last, j + 1, "dz", sign, argument)
