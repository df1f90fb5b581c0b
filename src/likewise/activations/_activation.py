"""What an activation is: a function with its rounding error and its convexity pieces, and the bounds that follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from likewise.activations import linear
from likewise.errors import SoundnessError
from likewise.rounding import Array, down, up

LINEAR, CONVEX, CONCAVE = "linear", "convex", "concave"


@dataclass(frozen=True, slots=True)
class Piece:
    """A maximal interval [low, high] on which the function is linear, convex or concave.

    An end that is irrational (the inflections of silu and gelu) is its nearest float64. The sliver between the two is
    shorter than 4e-16 and the second derivative in it below 1e-15, so within the piece the function is within 1e-45
    of one that is truly convex (or concave) and equal to it outside of the sliver; values there are of size 0.1 to
    3, hence every margin taken from `error` (above 1e-17 there) covers it.
    """

    low: float
    high: float
    shape: str


class Minimum(NamedTuple):
    """The one minimum of a function that falls, then rises: it lies in [left, right] and is at least `lower`."""

    left: float
    right: float
    lower: float


@dataclass(frozen=True, slots=True, repr=False)
class Activation:
    """An activation function; every method is vectorised over lo <= hi and sound including rounding.

    `value` and `slope` are float64 functions, off by at most `error` and `slope_error`; `slope` at a kink is the one
    on the right. `values` and `steepness` enclose the function and its difference quotients on the whole line.
    `minimum` is None for the non-decreasing ones. `bends` are numbers that neither the second nor the third derivative
    exceeds in absolute value, of a function that has both everywhere.
    """

    name: str
    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    pieces: tuple[Piece, ...]
    error: Callable[[Array], Array]
    slope_error: Callable[[Array], Array]
    values: tuple[float, float]
    steepness: tuple[float, float]
    minimum: Minimum | None = None
    bends: tuple[float, float] | None = None

    def __repr__(self) -> str:
        return f"Activation({self.name!r})"

    def is_piecewise_linear(self) -> bool:
        """Return whether every piece is linear, so that bounds by pieces are exact."""
        return all(piece.shape == LINEAR for piece in self.pieces)

    def inflections(self) -> tuple[float, ...]:
        """Return where one piece ends and the next begins: inflection points and kinks, left to right."""
        return tuple(piece.high for piece in self.pieces[:-1])

    def kinks(self) -> tuple[float, ...]:
        """Return those of `inflections()` where the slope jumps."""
        ends = np.array(self.inflections())
        jump = np.abs(self.slope(self.before(ends)) - self.slope(ends))
        return tuple(float(z) for z in ends[jump > 1e-6])

    def before(self, z: Array) -> Array:
        """Return `z`, or the float below it where `z` ends a piece, so that `slope` there is the one on the left.

        That differs from the one-sided derivative by the second derivative (0 at an inflection, at most 2 at an end
        at 0, where the next float is 5e-324 away) times one float: far below `slope_error`.
        """
        return np.where(np.isin(z, self.inflections()), np.nextafter(z, -np.inf), z)

    def interval(self, lo: Array | float, hi: Array | float) -> tuple[Array, Array]:
        """Return (lower, upper) around {f(z): lo <= z <= hi}, exact where `error` is 0.

        A function that rises, or falls and then rises, has its maximum at an end, and its minimum at an end unless
        the one minimum lies inside; whether it does is decided outward. `values` cuts off what only margins reach.
        """
        lo, hi = ordered(lo, hi)
        left, right = self.value(lo), self.value(hi)
        left_error, right_error = self.error(lo), self.error(hi)
        lower = np.minimum(_outward(left, -left_error), _outward(right, -right_error))
        upper = np.maximum(_outward(left, left_error), _outward(right, right_error))
        if self.minimum is not None:
            inside = (lo <= self.minimum.right) & (hi >= self.minimum.left)
            lower = np.where(inside, self.minimum.lower, lower)
        return np.maximum(lower, self.values[0]), np.minimum(upper, self.values[1])

    def slopes(self, lo: Array | float, hi: Array | float) -> tuple[Array, Array]:
        """Return (lower, upper) around every difference quotient over [lo, hi]; around the slope if lo == hi.

        A difference quotient is a mean of slopes. Within a piece the slope is monotone, so its extremes sit at lo
        (from the right), at hi (from the left) and at the ends of pieces strictly between, where both sides count.
        """
        lo, hi = ordered(lo, hi)
        points = [lo, np.where(lo < hi, self.before(hi), hi)]
        for end in self.inflections():
            inside = (lo < end) & (end < hi)
            points += [np.where(inside, end, lo), np.where(inside, np.nextafter(end, -np.inf), lo)]
        slope = [(self.slope(z), self.slope_error(z)) for z in points]
        lower = np.minimum.reduce([_outward(s, -error) for s, error in slope])
        upper = np.maximum.reduce([_outward(s, error) for s, error in slope])
        return np.maximum(lower, self.steepness[0]), np.minimum(upper, self.steepness[1])

    def linear_bounds(self, lo: Array | float, hi: Array | float) -> tuple[Array, Array, Array, Array]:
        """Return (a_lower, c_lower, a_upper, c_upper) with a_lower z + c_lower <= f(z) <= a_upper z + c_upper.

        It holds for every real z in [lo, hi], in exact arithmetic on the four numbers: see `linear`.
        """
        lo, hi = ordered(lo, hi)
        return linear.linear_bounds(self, lo, hi)

    def hull_counts(self) -> tuple[int, int]:
        """Return how many lines `hull_lines` gives below and above."""
        return (2, 1) if self.name == "relu" else (3, 3)

    def hull_lines(self, lo: Array, hi: Array) -> tuple[list[linear.Line], list[linear.Line]]:
        """Return several (slope, offset) lines below and above f on [lo, hi]: a hull, each line proven by itself."""
        return linear.hull_lines(self, *ordered(lo, hi))

    @property
    def lipschitz(self) -> float:
        """Return a constant that no absolute difference quotient exceeds."""
        return max(abs(self.steepness[0]), abs(self.steepness[1]))


def ordered(lo: Array | float, hi: Array | float) -> tuple[Array, Array]:
    """Return lo and hi as float64 arrays of one shape, or refuse: bounds must be finite and lo <= hi."""
    low, high = np.broadcast_arrays(np.asarray(lo, dtype=np.float64), np.asarray(hi, dtype=np.float64))
    if not (np.all(low <= high) and np.all(np.isfinite(low)) and np.all(np.isfinite(high))):
        raise SoundnessError("bounds before an activation must be finite with lower <= upper")
    return low, high


def _outward(x: Array, error: Array) -> Array:
    """Return x + error, rounded away from x unless error is 0."""
    moved = np.where(error > 0, up(x + error), down(x + error))
    return np.where(error == 0, x, moved)
