"""Pattern: real people in whom every neuron is on the linear piece that a linear program's point has it on.

On these pieces the logits are linear, and the point says how far apart two people can be scored there; but its
categories are shares. Whether real categories exist is a puzzle of one inequality per neuron, which climbing by the
score does not solve: what is needed to satisfy one more of them often lowers the score at first. So the inequalities
are what is climbed by, from many roundings of the point at once, and those that stay violated count more and more.
All pairs are candidates only: `Run.offer` decides.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from likewise.bounds import Reach
from likewise.problem import Problem
from likewise.rounding import Array
from likewise.search.polish import Pair, composed
from likewise.search.tree import Bounded

WALKERS = 48
STEPS = 150
REACHES = np.array([1.0, 0.3, 0.1, 0.03])  # how far numbers are moved, in shares of their range; to both ends as well
MET = 1e-9  # how far an inequality may be violated, in shares of what its row can move
HEAVIER = 0.5  # what a violated inequality's weight grows by where no step helps
SMALLEST = 1e-9

Moves = tuple[Array, tuple[Array, Array]]  # costs [walker, move], the columns moved, and to what [walker, move, column]


@dataclass(frozen=True, slots=True, eq=False)
class Puzzle:
    """low <= matrix @ right + shift <= high, for a person `right` whose difference to the left one is held."""

    matrix: Array
    shift: Array
    low: Array
    high: Array
    worth: Array  # what each inequality's neuron brings to the gap, at most 1

    def missed(self, values: Array) -> Array:
        """Return by how much each inequality is violated."""
        return np.maximum(np.maximum(self.low - values, values - self.high), 0.0)


def matched(part: Bounded, reach: Reach, pair: Pair, rng: np.random.Generator, end: float) -> list[Pair]:
    """Return pairs that violate the inequalities of a part's point little, the best first; begin at its own `pair`."""
    problem, (left, right) = part.part.problem, pair
    whole = np.zeros(len(right), dtype=bool)
    for group in problem.right.groups:
        whole[group] = True
    d = left - right
    d[whole & reach.shared] = 0.0
    d = np.where(whole, np.round(d), d)
    walk = _Walk(problem, _puzzle(part, d), _rounded(problem, right, rng), d)
    for _ in range(STEPS):
        if time.monotonic() > end or not walk.moves:
            break
        walk.step(rng)
    order = np.argsort(walk.least, kind="stable")
    return [(right + d, right) for right in walk.best[order]]


def _puzzle(part: Bounded, d: Array) -> Puzzle:
    """Return the inequalities of a part's point: every neuron on its piece, and a gap of the threshold or more."""
    network, template, point = part.part.problem.network, part.relaxed.template, part.point
    left, right = (composed(network, [point[z][None] for z in side.z]) for side in (template.left, template.right))
    tangents = part.relaxed.tangents
    a, b = part.relaxed.logits(point)
    k = int(np.argmin(a - tangents.slopes * b - tangents.offsets))
    slope, offset = tangents.slopes[k], tangents.offsets[k]
    last = sum(len(layer.bias) for layer in network.layers[:-1])
    ahead = left.constant + left.gradient @ d
    matrix = np.vstack(
        [left.gradient[:last], right.gradient[:last], left.gradient[last] - slope * right.gradient[last]]
    )
    shift = np.concatenate([ahead[:last], right.constant[:last], [ahead[last] - slope * right.constant[last] - offset]])
    low = np.concatenate([left.low[:last], right.low[:last], [0.0]])
    high = np.concatenate([left.high[:last], right.high[:last], [np.inf]])
    scale = 1.0 / np.maximum(np.abs(matrix).max(axis=1), SMALLEST)
    worth = np.concatenate([np.empty(0), *_worths(part), *_worths(part)])
    worth = np.append(worth / max(float(worth.max(initial=0.0)), SMALLEST), 1.0)
    return Puzzle(matrix * scale[:, None], shift * scale, low * scale, high * scale, worth)


def _worths(part: Bounded) -> list[Array]:
    """Return what each neuron brings to the gap at the point, layer by layer, on the right person's pieces."""
    network, template, point = part.part.problem.network, part.relaxed.template, part.point
    back = network.layers[-1].weight[0]
    worths: list[Array] = []
    for index in reversed(range(len(network.layers) - 1)):
        right = point[template.right.z[index]]
        worths.insert(0, np.abs(back * (point[template.left.z[index]] - right)))
        back = (back * network.layers[index].slope(right)) @ network.layers[index].weight
    return worths


def _rounded(problem: Problem, right: Array, rng: np.random.Generator) -> Array:
    """Return walkers, each with categories drawn by their shares."""
    people = np.tile(right, (WALKERS, 1))
    for group in problem.right.groups:
        shares = np.clip(right[group], 0.0, 1.0) + SMALLEST
        drawn = rng.choice(group.stop - group.start, WALKERS, p=shares / shares.sum())
        people[:, group] = np.eye(group.stop - group.start)[drawn]
    return people


class _Walk:
    """Walkers with their values, weights of the inequalities, and the least that each has violated so far."""

    def __init__(self, problem: Problem, asked: Puzzle, people: Array, d: Array) -> None:
        self.asked, self.people, self.values = asked, people, people @ asked.matrix.T + asked.shift
        self.weights = np.tile(asked.worth, (len(people), 1))
        self.best, self.least = people.copy(), asked.missed(self.values) @ asked.worth
        self.groups = []
        for group in problem.right.groups:
            allowed = (problem.left.upper[group] > 0.5) & (problem.right.upper[group] > 0.5)
            if allowed.sum() > 1 and not d[group].any():
                self.groups.append(group.start + np.flatnonzero(allowed))
        low, high = np.maximum(problem.right.lower, problem.left.lower - d), problem.right.upper
        high = np.minimum(high, problem.left.upper - d)
        self.numbers = [(int(k), low[k], high[k]) for k in problem.right.continuous if low[k] < high[k]]
        self.moves = sum(map(len, self.groups)) + len(self.numbers)

    def step(self, rng: np.random.Generator) -> None:
        """Make the best step of each walker; where there is none, what it violates gets heavier."""
        asked = self.asked
        costs, moved = map(list, zip(*self._exchanges(), *self._shifts(rng), strict=True))
        table = np.hstack(costs)
        chosen, missed = table.argmin(axis=1), asked.missed(self.values)
        is_better = table.min(axis=1) < (self.weights * missed).sum(axis=1) * (1 - MET)
        starts = np.cumsum([0, *(cost.shape[1] for cost in costs)])
        for walker in np.flatnonzero(is_better).tolist():
            kind = int(np.searchsorted(starts, chosen[walker], side="right")) - 1
            columns, to = moved[kind]
            self.people[walker, columns] = to[walker, chosen[walker] - starts[kind]]
        self.weights[~is_better] += HEAVIER * asked.worth * (missed[~is_better] > MET)
        self.values = self.people @ asked.matrix.T + asked.shift
        missed_now = asked.missed(self.values) @ asked.worth
        is_least = missed_now < self.least
        self.best[is_least], self.least[is_least] = self.people[is_least], missed_now[is_least]

    def _cost(self, values: Array) -> Array:
        """Return what walkers violate, [walker, move], at the values that moves give them."""
        return np.asarray(np.einsum("wi,wmi->wm", self.weights, self.asked.missed(values)))

    def _exchanges(self) -> Iterator[Moves]:
        """Yield, per group, the cost of each of its categories for each walker."""
        for columns in self.groups:
            held = self.people[:, columns].argmax(axis=1)
            rows = self.asked.matrix.T[columns]
            one = np.eye(len(columns))
            yield (
                self._cost((self.values - rows[held])[:, None] + rows),
                (columns, np.broadcast_to(one, (len(self.people), *one.shape))),
            )

    def _shifts(self, rng: np.random.Generator) -> Iterator[Moves]:
        """Yield, per number, the cost of some of its values for each walker."""
        for column, low, high in self.numbers:
            here = self.people[:, column, None]
            some = here + (high - low) * rng.normal(0.0, REACHES, (len(here), len(REACHES)))
            to = np.clip(np.hstack([some, np.full((len(here), 2), [low, high])]), low, high)
            change = (to - here)[:, :, None] * self.asked.matrix[:, column]
            yield self._cost(self.values[:, None] + change), (np.array([column]), to[:, :, None])
