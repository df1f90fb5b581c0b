"""Products: what is never below 0 for a pair, as products of two linear functions of (1, y), and sums of such.

Each of the two is a number or two times rows of a base: 1, every d, dz and dv. So all that Newton's method wants to
know of two products comes from what their base rows make of each other, of which there are far fewer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from likewise.rounding import Array


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Linear functions, each of two rows of a base at most: their places in it, and what they count there."""

    at: np.ndarray
    by: Array

    @classmethod
    def of(cls, numbers: Array) -> Rows:
        """Return rows given by all their numbers, most of which are 0."""
        at = np.argsort(numbers == 0.0, axis=1, kind="stable")[:, :2]
        assert (np.count_nonzero(numbers, axis=1) <= 2).all()
        return cls(at.T.copy(), np.take_along_axis(numbers, at, axis=1).T.copy())

    def apply(self, matrix: Array) -> Array:
        """Return these functions of the rows of a matrix."""
        return np.asarray(self.by[0][:, None] * matrix[self.at[0]] + self.by[1][:, None] * matrix[self.at[1]])

    def within(self, matrix: Array, others: Rows) -> Array:
        """Return what a matrix over the base is for each of these and the other of the same place."""
        terms = (self.by[i] * others.by[j] * matrix[self.at[i], others.at[j]] for i in range(2) for j in range(2))
        return np.asarray(sum(terms))


@dataclass(frozen=True, eq=False)
class Products:
    """Products one_i (base (1, y)) other_i (base (1, y)), then, if `image` has rows, eps^2 - |image y|^2."""

    base: Array  # the first row is 1 itself
    one: Rows
    other: Rows
    image: Array
    eps: float

    def rows(self) -> tuple[Array, Array, np.ndarray]:
        """Return rows of (1, y) whose products they are, and of which each pair of rows is; the last one has many."""
        one, other = self.one.apply(self.base), self.other.apply(self.base)
        of = np.arange(len(one))
        if len(self.image):
            constant = self.eps * self.base[:1]
            one, other = np.vstack([one, constant, -self.image]), np.vstack([other, constant, self.image])
            of = np.concatenate([of, np.full(1 + len(self.image), len(of))])
        return one, other, of

    @cached_property
    def _ball(self) -> Array:
        matrix = -self.image.T @ self.image
        matrix[0, 0] += self.eps**2
        return np.asarray(matrix)

    @cached_property
    def _places(self) -> np.ndarray:
        return np.concatenate([self.one.at[i] * len(self.base) + self.other.at[j] for i in range(2) for j in range(2)])

    @cached_property
    def _sizes(self) -> Array:
        return np.array([self.one.by[i] * self.other.by[j] for i in range(2) for j in range(2)])

    def total(self, weights: Array) -> Array:
        """Return the sum of all products, each times its number, as a symmetric matrix."""
        sized = (self._sizes * weights[: self._sizes.shape[1]]).ravel()
        crossed = np.bincount(self._places, sized, minlength=len(self.base) ** 2).reshape(len(self.base), -1)
        total = self.base.T @ crossed @ self.base
        total = (total + total.T) / 2
        return np.asarray(total + weights[-1] * self._ball) if len(self.image) else np.asarray(total)

    def derivatives(self, y: Array, inverse: Array, barrier: float) -> tuple[Array, Array]:
        """Return the first and second ones, by all numbers, of the bound less `barrier` times log det of the form.

        With the bound met at y, and W the inverse of the form's part in y (0 for the 1), a product's matrix P changes
        the first by y'P y and log det by tr W P; two of them bend it by tr P X Q W, X = 2 y y' + barrier W.
        """
        at, known = self.base @ y, self.base @ inverse @ self.base.T
        one, other = self.one.apply(at[:, None])[:, 0], self.other.apply(at[:, None])[:, 0]
        left, right = self.one.apply(known), self.other.apply(known)
        w11, w12, w22 = self.one.apply(left.T), self.other.apply(left.T).T, self.other.apply(right.T)
        half = 0.5 * barrier
        mixed = (half * w12.T + np.multiply.outer(other, one)) * w12
        bend = 0.5 * ((half * w11 + np.multiply.outer(one, one)) * w22 + np.multiply.outer(other, other) * w11)
        bend += 0.5 * (half * w22 * w11 + mixed + mixed.T)
        slope = one * other + barrier * np.diag(w12)
        if not len(self.image):
            return slope, np.asarray(bend)
        X = 2 * np.outer(y, y) + barrier * inverse
        through = X @ self._ball @ inverse
        by_ball = self.one.within(self.base @ (through + through.T) @ self.base.T / 2, self.other)
        slope = np.append(slope, y @ self._ball @ y + barrier * float((self._ball * inverse).sum()))
        own = np.full((1, 1), float((self._ball * through).sum()))
        return slope, np.block([[bend, by_ball[:, None]], [by_ball[None], own]])
