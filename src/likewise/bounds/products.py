"""Products: what is never below 0 for a pair, as products of two linear functions of (1, y), and sums of such.

Each of the two is a few numbers times rows of a base: 1, every d, dz and dv. So all that Newton's method wants to know
of two products comes from what their base rows make of each other (`curvature`), of which there are far fewer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve
from scipy.sparse import csr_array

from likewise.rounding import Array


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """Products (one_i base (1, y)) (other_i base (1, y)), then, if `image` has rows, eps^2 - |image y|^2."""

    base: Array  # the first row is 1 itself
    one: csr_array
    other: csr_array
    image: Array
    eps: float

    @property
    def count(self) -> int:
        """How many there are, the last one included."""
        return int(self.one.shape[0]) + bool(len(self.image))

    def rows(self) -> tuple[Array, Array, np.ndarray]:
        """Return rows of (1, y) whose products they are, and of which each pair of rows is; the last one has many."""
        one, other = np.asarray(self.one @ self.base), np.asarray(self.other @ self.base)
        of = np.arange(len(one))
        if len(self.image):
            constant = self.eps * self.base[:1]
            one, other = np.vstack([one, constant, -self.image]), np.vstack([other, constant, self.image])
            of = np.concatenate([of, np.full(1 + len(self.image), len(of))])
        return one, other, of

    def total(self, weights: Array) -> Array:
        """Return the sum of all products, each times its number, as a symmetric matrix."""
        count = int(self.one.shape[0])
        scaled = self.other * weights[:count, None]
        total = self.base.T @ np.asarray((self.one.T @ scaled) @ self.base)
        total = (total + total.T) / 2
        if len(self.image):
            total -= weights[-1] * (self.image.T @ self.image)
            total[0, 0] += weights[-1] * self.eps**2
        return np.asarray(total)

    def curvature(self, factor: tuple[Array, bool], y: Array, barrier: float) -> tuple[Array, Array]:
        """Return the first and second derivatives of the bound less `barrier` times log det of the form.

        `factor` is that of the form's part in y, and (1, y) where the form is met. A product P changes the bound by its
        value there, and by how it moves y; log det M by tr(M^-1 P).
        """
        base = self.base[:, 1:]
        known = base @ cho_solve(factor, base.T, check_finite=False)
        at = self.base @ y
        one, other = self.one @ at, self.other @ at
        left, right = np.asarray(self.one @ known), np.asarray(self.other @ known)
        own, crossed, others = left @ self.one.T, left @ self.other.T, right @ self.other.T
        slope = one * other + barrier * np.diag(crossed)
        moved = np.multiply.outer(one, one) * others + np.multiply.outer(other, other) * own
        mixed = np.multiply.outer(other, one) * crossed
        bend = 0.5 * (barrier * (own * others + crossed * crossed.T) + moved + mixed + mixed.T)
        if not len(self.image):
            return slope, bend
        image = self.image[:, 1:]
        through = cho_solve(factor, image.T, check_finite=False)
        seen, there = base @ through, image @ y[1:]  # of the ball, by base rows
        drawn = -2 * (seen @ there)
        by_ball = self.one @ drawn * other + self.other @ drawn * one
        by_ball = 0.5 * by_ball - barrier * ((self.one @ seen) * (self.other @ seen)).sum(axis=1)
        within = image @ through
        own_slope = self.eps**2 - there @ there - barrier * float(np.trace(within))
        own_bend = barrier * float((within * within).sum()) + 2 * float(there @ within @ there)
        bend = np.block([[bend, by_ball[:, None]], [by_ball[None], np.array([[own_bend]])]])
        return np.append(slope, own_slope), bend
