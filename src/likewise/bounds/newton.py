"""Newton: the numbers of products (`bounds.joint`) that bound a linear function of differences best.

The bound is convex in the numbers. They stay positive, forms definite, and bowls below their tops (at the pairs of a
sample) by barriers that fall step by step. Nothing here is believed: a bound is shown anew with the numbers found.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from likewise.bounds.bowl import NUMBERS
from likewise.rounding import Array

if TYPE_CHECKING:
    from likewise.bounds.joint import Forms

COST = 1e-6  # of a number, beside its product's size: some could grow without end and bring nothing
STEPS, HALVINGS, FALL, CLOSE = 300, 30, 0.3, 1e-4  # at most; by how much barriers fall, and how close it comes
EACH = 0.02  # of a barrier, what counts for one pair of a bowl's sample
ENOUGH, CENTRED = 0.1, 0.5  # of what a step promises, to take it; what it may, beside a barrier, for that to fall
RIDGE = 1e-13  # relative, for steps that hardly anything tells


def followed(forms: Forms, g: Array, at: Array, begin: float, deadline: float) -> list[tuple[float, Array]]:
    """Return what Newton's method comes to from some numbers on, as barriers fall from `begin` times the bound on.

    The least bound is the last one. Bowls have many conditions each: they need steps that keep away from all of them.
    """
    here, found = look(forms, g, at), []
    assert here is not None
    count = len(g) + int((~forms.is_bowl).sum()) + EACH * forms.sample.shape[0] * forms.sample.shape[1]
    least, centred = (ENOUGH, CENTRED) if forms.bowls else (0.0, 0.1 * len(at))
    barrier, best = begin * abs(here.upper), here
    for _ in range(STEPS):
        step, gain = here.step(barrier, forms)
        share = min(1.0, 0.99 / max(_falls(forms, here, step), 1e-300))
        value = here.value(barrier, forms)
        for _ in range(HALVINGS):
            there = look(forms, g, here.weights + share * step)
            if there is not None and there.value(barrier, forms) < value - least * share * gain:
                break
            share, there = share / 2, None
        here = there or here
        best = here if here.upper < best.upper else best
        if time.monotonic() > deadline or barrier * count < CLOSE * abs(best.upper):
            break
        if there is None or gain < centred * barrier:
            barrier *= FALL
            found.append((here.upper, here.weights))
    return [*found, (best.upper, best.weights)]


def _falls(forms: Forms, here: Look, step: Array) -> float:
    """Return the largest share that a number, or what a top has to spare, would lose by a whole step."""
    falls = [-step[~forms.is_bowl] / here.weights[~forms.is_bowl]]
    if forms.bowls:
        falls.append((-forms.spare(step) / forms.spare(here.weights)).ravel())
    return float(np.concatenate(falls).max(initial=0.0))


def look(forms: Forms, g: Array, weights: Array) -> Look | None:
    """Return what some numbers make of a function; None if that is no bound."""
    total = forms.form(weights)
    factor = factored(-total[1:, 1:])
    if factor is None or not (weights[~forms.is_bowl] > 0.0).all():
        return None
    b = g[1:] + 2 * total[0, 1:]
    x = cho_solve(factor, b) / 2
    return Look(weights, factor, np.concatenate([[1.0], x]), float(total[0, 0] + b @ x / 2))


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """What some numbers make: the factor of their form, the y where the bound is met, and the bound."""

    weights: Array
    factor: tuple[Array, bool]
    y: Array
    upper: float

    def ellipsoid(self, rows: Array) -> tuple[Array, Array]:
        """Return where rows of (1, y) are at that y, and how far they get from there per root of the bound given up."""
        return rows @ self.y, (rows[:, 1:] * cho_solve(self.factor, rows[:, 1:].T).T).sum(axis=1)

    def value(self, barrier: float, forms: Forms) -> float:
        """Return the bound with what keeps the numbers positive, and small."""
        positive, spare = self.weights[~forms.is_bowl], forms.spare(self.weights)
        if not (spare > 0.0).all():
            return np.inf
        logs = 2 * np.log(np.diag(self.factor[0])).sum() + np.log(positive).sum() + EACH * np.log(spare).sum()
        return self.upper + COST * float(forms.magnitudes[~forms.is_bowl] @ positive) - barrier * float(logs)

    def step(self, barrier: float, forms: Forms) -> tuple[Array, float]:
        """Return Newton's step for the bound less the barrier times log det of the form and logs of the numbers.

        And what it promises to gain.
        """
        inverse = np.zeros((len(self.y), len(self.y)))
        inverse[1:, 1:] = cho_solve(self.factor, np.eye(len(self.y) - 1), check_finite=False)
        slope, bend = forms.products.derivatives(self.y, inverse, barrier)
        inward = 1.0 / np.where(forms.is_bowl, np.inf, self.weights)
        slope = slope + np.where(forms.is_bowl, 0.0, COST * forms.magnitudes) - barrier * inward
        bend = bend + np.diag(barrier * inward**2)
        if forms.bowls:
            drawn = forms.sample / forms.spare(self.weights)[:, :, None]
            slope[forms.is_bowl] -= EACH * barrier * drawn.sum(axis=1).T.ravel()
            own = EACH * np.moveaxis(drawn.swapaxes(1, 2) @ drawn, 0, 2)
            at = np.flatnonzero(forms.is_bowl).reshape(NUMBERS + 1, -1)
            bend[at[:, None], at[None]] += barrier * own
            slope[forms.is_fixed], bend[forms.is_fixed], bend[:, forms.is_fixed] = 0.0, 0.0, 0.0
            bend[forms.is_fixed, forms.is_fixed] = 1.0
        sized = 1.0 / np.sqrt(np.maximum(np.diag(bend), 1e-300))
        scaled = factored(bend * sized * sized[:, None] + RIDGE * np.eye(len(bend)))
        down = -slope * sized
        step = cho_solve(scaled, down) if scaled is not None else down
        return np.asarray(step * sized), float(down @ step)


def factored(matrix: Array) -> tuple[Array, bool] | None:
    """Return a Cholesky factor; None if there is none."""
    try:
        factor = cho_factor(matrix, lower=True, check_finite=False)
    except (LinAlgError, ValueError):
        return None
    return factor if bool(np.isfinite(np.diag(factor[0])).all()) else None
