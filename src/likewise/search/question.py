"""Question: one threshold just above the best pair, of which it is asked whether any pair reaches it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit

from likewise.network import Network
from likewise.search.run import Run
from likewise.search.score import Score


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """Is there a pair with a gap of t? `cut` is how far below 0 the slack of the best pair is, `near` its logits."""

    t: float
    cut: float
    near: list[float] = field(default_factory=list)


def ask(run: Run, score: Score, logits: Network, near: list[float]) -> Question:
    """Put the threshold nine tenths of the wanted gap above the best pair, or at a delta that is not decided yet."""
    left, right = run.pair()
    entering = logits.preactivations(np.stack([left, right]))[-1]
    a, b = float(entering[0, 0]), float(entering[1, 0])
    t = (run.lower + 0.9 * run.gap) / score.factor
    if run.delta is not None and run.lower <= run.delta:
        t = run.delta / score.factor
    t = min(t, 1.0 - 1e-9) if score.curved else t
    return Question(t, _deficit(score, t, a, b), [*near, b])


def _deficit(score: Score, t: float, a: float, b: float) -> float:
    """Return how far below the cuts the best pair is, with room for rounding."""
    if not score.curved:
        return max(0.0, t - (a - b)) + 1e-6
    p = float(expit(b)) + t
    g = math.log(p / (1 - p)) if p < 1 else math.inf
    return max(0.0, g - a) * (1 + 1e-9) + 1e-6
