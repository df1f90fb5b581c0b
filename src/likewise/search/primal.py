"""Primal: the lower side. Attack for a pool of pairs, polish the best of each kind, then kick, climb and polish on."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

import numpy as np

from likewise.bounds import Reach
from likewise.problem import Problem
from likewise.search.anneal import Annealer, annealer
from likewise.search.attack import Pairs, attack, breed, exchange, joined, kick, offer_best
from likewise.search.polish import polish
from likewise.search.run import Run, repaired
from likewise.search.score import Score

POOL = 6  # kinds of pairs (by their categories) to polish from one pool
ONCE = 0.3  # seconds that a first climb may take, if it takes so long
FRESH = 4  # turns after which new pairs are sought from scratch
MOVES = (exchange, kick, exchange, breed)
SEED = 0
ANNEALED = 0.8  # of a look, to anneal
PER_PIECE = 0.1  # seconds for a linear program of a piece with a million (neurons x columns^2), roughly


@dataclass(slots=True, eq=False)
class Primal:
    """The search for pairs of one direction of a problem; `inner` is the same problem as the engines bound it.

    Its pool of pairs lives on from one look to the next, and gets new blood now and then.
    """

    problem: Problem
    inner: Problem
    score: Score
    reach: Reach
    run: Run
    pool: Pairs | None = None
    turn: int = 0
    seed: int = SEED
    seen: set[bytes] = field(default_factory=set)
    patient: Annealer | None = field(init=False)

    def __post_init__(self) -> None:
        self.patient = annealer(self.inner, self.reach, self.score)

    def look(self, seconds: float) -> None:
        """Raise `lower` for some seconds."""
        rng = np.random.default_rng([self.seed, self.turn])
        is_fresh = self.turn % FRESH == 0 and (self.patient is None or bool(self.reach.flippable))
        if self.pool is None or is_fresh:
            fresh = attack(self.problem, self.reach, self.run, rng, max(0.4 * seconds, self._once))
            self.pool = fresh if self.pool is None else joined(self.problem, self.pool, fresh)
        elif self.patient is not None:
            self.pool = joined(self.problem, self.pool, self._annealed(self.patient, ANNEALED * seconds, rng))
        end = time.monotonic() + (1 - ANNEALED) * seconds
        while not self.run.done:
            for pair in _kinds(self.problem, self.reach, self.pool, self.seen):
                if time.monotonic() > end:
                    break
                left = end - time.monotonic()
                if self._per_polish > left:
                    break
                polish(self.problem, self.inner, self.score, self.reach, self.run, pair, left)
            if time.monotonic() > end:
                break
            self.pool = MOVES[self.turn % len(MOVES)](self.problem, self.reach, self.run, self.pool, rng)
            self.turn += 1
        self.turn += 1

    def _annealed(self, patient: Annealer, seconds: float, rng: np.random.Generator) -> Pairs:
        """Return pairs found by annealing; the best are offered."""
        (left, right), columns = self.run.pair(), self.problem.right.continuous
        middle = right.copy()
        middle[columns] = (left + right)[columns] / 2
        found = patient.look(min(seconds, self.run.seconds_left), middle, rng)
        offer_best(self.problem, self.reach, self.run, found, 2)
        return found

    @property
    def _per_polish(self) -> float:
        """Guess the seconds for one linear program of a piece, which cannot be stopped; measured on wide networks."""
        neurons = sum(len(layer.bias) for layer in self.inner.network.layers)
        return PER_PIECE * math.pow(neurons * self.inner.network.inputs**2 / 1e6, 1.5)

    @property
    def _once(self) -> float:
        return min(ONCE, 0.1 * self.run.seconds_left)


def _kinds(problem: Problem, reach: Reach, pool: Pairs, seen: set[bytes]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the best pair of each new combination of categories."""
    whole = np.ones(problem.right.width, dtype=bool)
    whole[problem.right.continuous] = False
    fresh = []
    for left, right in zip(pool.left, pool.right, strict=True):
        kind = np.concatenate([left[whole], right[whole]]).round(6).tobytes()
        if kind in seen and whole.any():
            continue
        exact = repaired(problem, reach, left, right)
        if exact is None:
            continue
        seen.add(kind)
        fresh.append(exact)
        if len(fresh) == POOL:
            break
    return fresh
