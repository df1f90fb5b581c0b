"""Primal: the lower side. Attack for a pool of pairs, polish the best of each kind, then kick, climb and polish on."""

from __future__ import annotations

import itertools
import time

import numpy as np

from likewise.bounds import Reach
from likewise.problem import Problem
from likewise.search.attack import Pairs, attack, breed, kick
from likewise.search.polish import polish
from likewise.search.run import Run, repaired
from likewise.search.score import Score

POOL = 6  # kinds of pairs (by their categories) to polish from one pool
ONCE = 1.0  # seconds that a first climb may take, if it takes so long
SEED = 0


def primal(problem: Problem, inner: Problem, score: Score, reach: Reach, run: Run, seconds: float, turn: int) -> None:
    """Raise `lower` for some seconds; `inner` is the same problem as the engines bound it.

    Every turn begins elsewhere.
    """
    rng = np.random.default_rng([SEED, turn])
    end = time.monotonic() + seconds
    seen: set[bytes] = set()
    pool = attack(problem, reach, run, rng, max(0.4 * seconds, min(ONCE, 0.1 * run.seconds_left)))
    for move in itertools.cycle((kick, breed)):
        if time.monotonic() > end or run.done:
            break
        for pair in _kinds(problem, reach, pool, seen):
            if time.monotonic() > end:
                break
            polish(problem, inner, score, reach, run, pair, end - time.monotonic())
        if time.monotonic() < end:
            pool = move(problem, reach, run, pool, rng)


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
