"""Exchange: change two categories of a pair at once, all of them tried.

A pair that no single change of category improves may be far from the best: two changes that only pay together are
beyond any climb. There are some thousands of them, each a row added to what enters the first layer, so all are tried.
"""

from __future__ import annotations

import itertools

import numpy as np

from likewise.bounds import Reach
from likewise.problem import Problem
from likewise.rounding import Array
from likewise.search.smooth import View

BEST = 8  # exchanges of a pair to go on with
MOST = 60_000  # exchanges of a pair to try at all


def exchanges(view: View, reach: Reach, left: Array, right: Array) -> Array:
    """Return right people that differ from `right` in two categories, the most promising ones for this difference."""
    choices = _choices(view.problem, reach, left, right)
    weight, bias = view.problem.network.layers[0].weight, view.problem.network.layers[0].bias
    z_left, z_right = weight @ left + bias, weight @ right + bias
    moves = [weight[:, columns].T - weight[:, now] for now, columns in choices]
    found: list[tuple[float, int, int]] = []
    for (g, one), (h, other) in itertools.combinations(enumerate(moves), 2):
        if len(one) * len(other) > MOST:
            continue
        both = (one[:, None] + other[None]).reshape(-1, len(bias))
        values = view.after(z_left + both) - view.after(z_right + both)
        for k in np.argsort(-values)[:BEST].tolist():
            i, j = divmod(k, len(other))
            found.append((float(values[k]), choices[g][1][i], choices[h][1][j]))
    people = np.tile(right, (min(BEST, len(found)), 1))
    groups = {column: group for group in view.problem.right.groups for column in range(group.start, group.stop)}
    for person, (_, *columns) in zip(people, sorted(found, reverse=True)[:BEST], strict=True):
        for column in columns:
            person[groups[column]] = 0.0
            person[column] = 1.0
    return people


def _choices(problem: Problem, reach: Reach, left: Array, right: Array) -> list[tuple[int, list[int]]]:
    """Return, for each category that both share, its column and those that both may have instead, itself included."""
    found = []
    for group in problem.right.groups:
        if group in reach.flippable and (left[group] != right[group]).any():
            continue
        allowed = (problem.left.upper[group] > 0.5) & (problem.right.upper[group] > 0.5)
        columns = (group.start + np.flatnonzero(allowed)).tolist()
        if len(columns) > 1:
            found.append((group.start + int(right[group].argmax()), columns))
    return found
