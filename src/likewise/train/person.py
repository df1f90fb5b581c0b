"""The worst neighbour of one person as a MILP, solved by HiGHS: Algorithm 1's inner problem, and local.py's yardstick.

Variables are the columns that can differ, and an output with an on/off switch for each relu that the neighbourhood
does not settle. The 2-norm ball is its rotated box, as published, or, for the true ball, a tree of cones
r >= ||(a, b)||, each folded `LEVELS` times (Ben-Tal and Nemirovski 2001), which exceeds the ball by less than 1e-4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_matrix

from likewise.domain import Domain
from likewise.errors import SolverError
from likewise.rounding import Array

LEVELS = 8  # of folding each cone
SECONDS = 18.0  # for one problem, as published
LIMIT_REACHED = 1  # scipy's status


@dataclass(frozen=True, slots=True, eq=False)
class Neighbourhood:
    """What the problems of all people share: weights, the columns that can differ, and the metric on them."""

    weights: tuple[tuple[Array, Array], ...]
    domain: Domain
    free: np.ndarray
    matrix: Array
    eps: float
    reach: Array  # the largest |d| of each free column
    is_ball: bool

    def farthest(self, person: Array, is_classes: bool, both: bool = True) -> Array:
        """Return the neighbour whose score is farthest from the person's, or, unless `both`, the highest."""
        if not len(self.free):
            return person
        here = self._score(person, is_classes)
        near = [self._extreme(person, sign) for sign in ((1.0, -1.0) if both else (1.0,))]
        return max(near, key=lambda one: abs(self._score(one, is_classes) - here))

    def support(self, rows: Array) -> Array:
        """Return how large rows.d can be in the ball (see bound.py); in its rotated box, no limit is told."""
        if not self.is_ball:
            return np.full(len(rows), np.inf)
        inverse = np.linalg.pinv(self.matrix, rcond=1e-9)
        unseen = np.abs(rows - rows @ inverse @ self.matrix) @ self.reach
        support: Array = self.eps * np.linalg.norm(rows @ inverse, axis=1) + unseen
        return support

    def _score(self, person: Array, is_classes: bool) -> float:
        x = person
        for i, (weight, bias) in enumerate(self.weights):
            x = weight @ x + bias
            x = np.maximum(x, 0.0) if i < len(self.weights) - 1 else x
        return float(1 / (1 + math.exp(-x[0])) if is_classes else x[0])

    def _extreme(self, person: Array, sign: float) -> Array:
        """Return the neighbour with the highest (or lowest) output."""
        d = _Model(self, person).solve(sign)
        near = person.copy()
        near[self.free] += d
        return near


def _fold_count(dimensions: int) -> int:
    """Return how many variables the cones of a ball need."""
    return (dimensions - 1) * (LEVELS + 2)


class _Model:
    """Rows and columns of one person's MILP."""

    def __init__(self, around: Neighbourhood, person: Array) -> None:
        self._around = around
        domain, free = around.domain, around.free
        low = np.maximum(np.minimum(domain.lower[free] - person[free], 0.0), -around.reach)
        high = np.minimum(np.maximum(domain.upper[free] - person[free], 0.0), around.reach)
        hidden = sum(len(bias) for _, bias in around.weights[:-1])
        root = np.linalg.qr(around.matrix, mode="r") if around.is_ball else around.matrix
        cones = _fold_count(len(root)) if around.is_ball else 0
        self.width = len(free) + 2 * hidden + cones
        self._next = self.width - cones
        self._low = np.r_[low, np.zeros(2 * hidden), np.zeros(cones)]
        self._high = np.r_[high, np.full(hidden, np.inf), np.ones(hidden), np.full(cones, np.inf)]
        self._whole = np.r_[np.zeros(len(free) + hidden), np.ones(hidden), np.zeros(cones)]
        self._rows: list[Array] = []
        self._least: list[float] = []
        self._most: list[float] = []
        for row in root:
            self.add(self._wide(row), -around.eps, around.eps)
        if around.is_ball:
            self._ball([self._wide(row) for row in root])
        self._categories(person)
        self._output, self._constant = self._network(person, low, high, hidden)

    def add(self, row: Array, least: float, most: float) -> None:
        """Add least <= row.x <= most."""
        self._rows.append(row)
        self._least.append(least)
        self._most.append(most)

    def _wide(self, row: Array) -> Array:
        return np.concatenate([row, np.zeros(self.width - len(row))])

    def _ball(self, rows: list[Array]) -> None:
        """Require that the squares of these rows.x sum to at most eps squared: a tree of cones, pair by pair."""
        while len(rows) > 1:
            pairs = [self._cone(*rows[i : i + 2]) for i in range(0, len(rows) - 1, 2)]
            rows = pairs + rows[len(pairs) * 2 :]
        self.add(rows[0], -self._around.eps, self._around.eps)

    def _cone(self, one: Array, other: Array) -> Array:
        """Return a new r >= ||(one.x, other.x)|| (but for the folding)."""
        a, b = self._at_least(one), self._at_least(other)
        for level in range(2, LEVELS + 2):
            angle = math.pi / 2**level
            a, b = math.cos(angle) * a + math.sin(angle) * b, self._at_least(math.cos(angle) * b - math.sin(angle) * a)
        self.add(b - math.tan(math.pi / 2 ** (LEVELS + 1)) * a, -np.inf, 0.0)
        return a

    def _at_least(self, row: Array) -> Array:
        """Return a new variable, as a row, that is at least |row.x|."""
        unit = np.zeros(self.width)
        unit[self._next] = 1.0
        self._next += 1
        self.add(unit - row, 0.0, np.inf)
        self.add(unit + row, 0.0, np.inf)
        return unit

    def _categories(self, person: Array) -> None:
        """Let a category change only as a whole."""
        place = {int(column): i for i, column in enumerate(self._around.free)}
        for group in self._around.domain.groups:
            inside = [place[c] for c in range(group.start, group.stop) if c in place]
            if inside:
                self._whole[inside] = 1.0  # a person's entries are 0 and 1, so whole differences keep them so
                row = np.zeros(self.width)
                row[inside] = 1.0
                self.add(row, 0.0, 0.0)

    def _network(self, person: Array, low: Array, high: Array, hidden: int) -> tuple[Array, float]:
        """Add the relu layers, and return the output as row and constant."""
        first = len(self._around.free)
        (weight, bias), *others = self._around.weights
        rows = np.zeros((len(bias), self.width))
        rows[:, :first] = weight[:, self._around.free]
        constants = weight @ person + bias
        part = rows[:, :first]
        radius = self._around.support(part)
        least = constants + np.maximum(np.minimum(part * low, part * high).sum(axis=1), -radius)
        most = constants + np.minimum(np.maximum(part * low, part * high).sum(axis=1), radius)
        at = first
        for weight, bias in others:
            count = len(rows)
            for j in range(count):
                self._relu(rows[j], constants[j], least[j], most[j], at + j, at + j + hidden)
            rows = np.zeros((len(bias), self.width))
            rows[:, at : at + count] = weight
            on, off = np.maximum(most, 0.0), np.maximum(least, 0.0)
            plus, minus = np.maximum(weight, 0.0), np.minimum(weight, 0.0)
            least, most = plus @ off + minus @ on + bias, plus @ on + minus @ off + bias
            constants, at = bias, at + count
        return rows[0], float(constants[0])

    def _relu(self, row: Array, constant: float, least: float, most: float, out: int, switch: int) -> None:
        """Add out = relu(row.x + constant)."""
        if most <= 0.0:
            self._high[out] = 0.0
            return
        tied = -row
        tied[out] += 1.0
        if least >= 0.0:
            self.add(tied, constant, constant)
            return
        self._high[out] = most
        self.add(tied.copy(), constant, np.inf)
        tied[switch] -= least  # out <= z - least (1 - switch)
        self.add(tied, -np.inf, constant - least)
        limited = np.zeros(self.width)
        limited[out], limited[switch] = 1.0, -most
        self.add(limited, -np.inf, 0.0)

    def solve(self, sign: float) -> Array:
        """Return the free columns' differences where the output is highest (or lowest)."""
        rows = LinearConstraint(csr_matrix(np.array(self._rows)), self._least, self._most)
        bounds = Bounds(self._low, self._high)
        found = milp(
            -sign * self._output,
            constraints=rows,
            bounds=bounds,
            integrality=self._whole,
            options={"time_limit": SECONDS, "mip_rel_gap": 1e-4},
        )
        if found.x is None and found.status == LIMIT_REACHED:
            return np.zeros(len(self._around.free))  # as published: the person themselves, if nothing was found
        if found.x is None:
            raise SolverError(f"HiGHS found no neighbour of a person, who is one: {found.message[:80]}")
        return np.asarray(found.x[: len(self._around.free)], dtype=np.float64)
