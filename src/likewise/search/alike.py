"""Alike: of all pairs that a network cannot tell from a given one, the most similar.

Where people have more numbers than a first layer has neurons, a linear program leaves most of a difference open: it
knows the metric's ball only as far as the network sees it. Its point is then often a pair in all but name, and where it
is none, the most similar pair that looks the same says best what rules it out.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import lsq_linear

from likewise.bounds.support import project
from likewise.problem import Problem
from likewise.rounding import Array

HELD = 1e4  # how much more an equation weighs than a difference
BROUGHT_IN = 12  # steps back to where the metric allows a difference
CLEAR = 1e-11  # how far below eps a distance is kept, relative, so that floats can tell
WIDE = 1e-9  # a column that may vary by less is held


def most_alike(problem: Problem, left: Array, right: Array) -> tuple[Array, Array]:
    """Return two people with the same entering values as the given ones, as similar as can be; a candidate only.

    Categories and integers are held. It is a least-squares problem over a box: ||A (x - y)|| where W x and W y are
    given, these equations with a large weight.
    """
    weight, metric = problem.network.layers[0].weight, problem.metric.matrix
    free = []
    for domain in (problem.left, problem.right):
        columns = domain.continuous
        free.append(columns[domain.upper[columns] - domain.lower[columns] > WIDE])
    one, other = free
    nothing = np.zeros((len(weight), len(other)))
    rows = np.vstack(
        [
            np.hstack([metric[:, one], -metric[:, other]]),
            np.hstack([HELD * weight[:, one], nothing]),
            np.hstack([np.zeros((len(weight), len(one))), HELD * weight[:, other]]),
        ]
    )
    held = left.copy(), right.copy()
    held[0][one], held[1][other] = 0.0, 0.0
    wanted = np.concatenate(
        [-metric @ (held[0] - held[1]), HELD * weight @ (left - held[0]), HELD * weight @ (right - held[1])]
    )
    lower = np.concatenate([problem.left.lower[one], problem.right.lower[other]])
    upper = np.concatenate([problem.left.upper[one], problem.right.upper[other]])
    found = lsq_linear(rows, wanted, (lower, upper), method="bvls").x
    x, y = left.copy(), right.copy()
    x[one], y[other] = found[: len(one)], found[len(one) :]
    return x, y


def brought_in(d: Array, matrix: Array, p: float, eps: float, lower: Array, upper: Array) -> Array:
    """Return differences near `d` that the metric allows.

    What the metric does not see is kept as it is, as far as the box allows: shrinking all of a difference would cost
    most of it where only a small part is too large.
    """
    back = np.linalg.pinv(matrix, rcond=1e-9).T
    for _ in range(BROUGHT_IN):
        s = d @ matrix.T
        d = np.clip(d - (s - project(s, p, eps)) @ back, lower, upper)
    size = np.linalg.norm(d @ matrix.T, p, axis=1, keepdims=True)
    return np.asarray(d * np.minimum(1.0, (1.0 - CLEAR) * eps / np.maximum(size, 1e-300)))
