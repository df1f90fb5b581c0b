"""A line below and a line above an activation on an interval: the slope is a guess, the offset is proven.

Everything is written for the lower line; `side` = -1 turns the function over and gives the upper one. Any slope `a`
is allowed, because the offset is a proven lower bound of the minimum over [lo, hi] of side (f(z) - a z), whatever
the precision with which the slope was found:

- on a linear or concave piece the minimum sits at its ends;
- on a convex piece [p, q], for any two points u <= v in it, tangents give
  f(z) - a z >= f(u) - a u + (f'(u) - a)(z - u) left of u and between u and v, and the same from v right of v;
  each product is bounded at the far end, with the slope's own error bound. With f'(u) <= a <= f'(v) the two outer
  products cost nothing and the middle one (a - f'(u))(v - u) is of second order in v - u.

Slopes tried: the tangent of the convex piece nearest to the midpoint that stays below both ends, and the chords
between lo, the kinks and hi. The best one at the midpoint, which is the one with the smallest area, wins: for relu the
chord above and slope 0 or 1, by the larger side, below. Every slope lies in `slopes(lo, hi)`, so the distance of the
two lines is O(width^2) where f is twice differentiable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from likewise.rounding import UNIT, Array, down, up

if TYPE_CHECKING:
    from likewise.activations._activation import Activation, Piece

STEPS = 30  # halvings: what is left is squared in the bound, so 1e-18 of a width^2
_SHAPE = {1: "convex", -1: "concave"}
_DENORMAL = 2.0**-1074

Line = tuple[Array, Array]  # slope, offset


def linear_bounds(activation: Activation, lo: Array, hi: Array) -> tuple[Array, Array, Array, Array]:
    """Return (a_lower, c_lower, a_upper, c_upper), each of the shape of lo and hi."""
    if activation.name == "relu":
        return _relu_bounds(lo, hi)
    flat_lo, flat_hi = lo.ravel(), hi.ravel()
    lower = _best(activation, flat_lo, flat_hi, 1)
    upper = _best(activation, flat_lo, flat_hi, -1)
    a_lower, c_lower, a_upper, c_upper = (x.reshape(lo.shape) for x in (*lower, *upper))
    return a_lower, c_lower, a_upper, c_upper


def _relu_bounds(lo: Array, hi: Array) -> tuple[Array, Array, Array, Array]:
    """Return the lines for relu in closed form, some fifty times faster than the general way.

    Below, any slope in [0, 1] through 0 holds. Above, relu - a z is convex, so its maximum is at an end: -a lo or
    hi - a hi, both rounded up. Stable neurons are met exactly.
    """
    on, off = lo >= 0, (hi <= 0) & (lo < 0)
    span = np.where(on | off, 1.0, hi - lo)
    a_upper = np.where(on, 1.0, np.where(off, 0.0, np.minimum(hi / span, 1.0)))
    offset = np.maximum(up(-a_upper * lo), up(hi - down(a_upper * hi)))
    a_lower = np.where(off | (hi < -lo), 0.0, 1.0)
    return a_lower, np.zeros_like(a_lower), a_upper, np.where(on | off, 0.0, offset)


def hull_lines(activation: Activation, lo: Array, hi: Array) -> tuple[list[Line], list[Line]]:
    """Return lines below and above: the best single one, and those with the slopes at either end (see `_offset`)."""
    best = linear_bounds(activation, lo, hi)
    if activation.name == "relu":
        # Below, 0 and z hold everywhere.
        flat, steep = np.zeros_like(lo), np.ones_like(lo)
        return [(flat, flat), (steep, flat)], [(best[2], best[3])]
    ends = (lo, hi)
    tangents = [(activation.slope(lo), lo), (activation.slope(activation.before(hi)), hi)]
    below, above = (
        [(slope, _offset(activation, slope, ends, side, touch)) for slope, touch in tangents] for side in (1, -1)
    )
    return [best[:2], *below], [best[2:], *above]


def _best(activation: Activation, lo: Array, hi: Array, side: int) -> tuple[Array, Array]:
    """Return slope and offset of the line, among the candidates, that comes closest at the midpoint."""
    middle = np.clip(lo / 2 + hi / 2, lo, hi)
    slope, offset = np.zeros_like(lo), np.zeros_like(lo)
    height = np.full_like(lo, -np.inf)
    for a, touch in _candidates(activation, lo, hi, middle, side):
        c = _offset(activation, a, (lo, hi), side, touch)
        at_middle = side * (a * middle + c)
        better = at_middle > height
        slope, offset = np.where(better, a, slope), np.where(better, c, offset)
        height = np.where(better, at_middle, height)
    return slope, offset


def _candidates(
    activation: Activation, lo: Array, hi: Array, middle: Array, side: int
) -> Iterator[tuple[Array, Array]]:
    """Yield slopes worth trying, each with a point that it is the slope of, if it is that of a tangent."""
    for piece in activation.pieces:
        if piece.shape == _SHAPE[side]:
            touch = _tangent_point(activation, piece, (lo, hi), middle, side)
            yield activation.slope(_within(touch, piece)), touch
    points = [lo, *(np.clip(kink, lo, hi) for kink in activation.kinks()), hi]
    least, most = activation.slopes(lo, hi)
    for i in range(len(points)):
        for j in range(i + 1, len(points)):
            yield np.clip(_chord(activation, points[i], points[j]), least, most), lo


def _chord(activation: Activation, x: Array, y: Array) -> Array:
    """Return the slope between x and y, the derivative where they meet."""
    apart = y > x
    rise = activation.value(y) - activation.value(x)
    return np.where(apart, rise / np.where(apart, y - x, 1.0), activation.slope(x))


def _tangent_point(activation: Activation, piece: Piece, ends: tuple[Array, Array], middle: Array, side: int) -> Array:
    """Return the point of the convex piece nearest to the middle whose tangent stays below f at both ends, if any.

    The tangent's height at lo falls as the point moves right, and at hi it rises, so the good points are an interval.
    """
    lo, hi = ends
    p, q = np.clip(piece.low, lo, hi), np.clip(piece.high, lo, hi)

    def below(t: Array, end: Array) -> NDArray[np.bool_]:
        rise = activation.value(end) - activation.value(t)
        return side * (rise - activation.slope(_within(t, piece)) * (end - t)) >= 0

    first, last = p, q
    if np.any(lo < p):
        ok_p, ok_q = below(p, lo) | (p == lo), below(q, lo)
        _, found = _bisect(lambda t, rows: below(t, lo[rows]), p, q, ~ok_p & ok_q)
        first = np.where(ok_p, p, np.where(ok_q, found, q))
    if np.any(q < hi):
        ok_p, ok_q = below(p, hi), below(q, hi) | (q == hi)
        found, _ = _bisect(lambda t, rows: ~below(t, hi[rows]), p, q, ok_p & ~ok_q)
        last = np.where(ok_q, q, np.where(ok_p, found, p))
    return np.clip(middle, first, np.maximum(first, last))


def _bisect(
    test: Callable[[Array, NDArray[np.bool_]], NDArray[np.bool_]], low: Array, high: Array, rows: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """Return low and high halved STEPS times in `rows`, so that test (false, then true) turns between them."""
    low, high = low.copy(), high.copy()
    u, v = low[rows], high[rows]
    if u.size:
        for _ in range(STEPS):
            t = u / 2 + v / 2
            true = test(t, rows)
            u, v = np.where(true, u, t), np.where(true, t, v)
    low[rows], high[rows] = u, v
    return low, high


def _offset(activation: Activation, a: Array, ends: tuple[Array, Array], side: int, touch: Array) -> Array:
    """Return c with side (f(z) - a z) >= side c on [lo, hi]: the least over the pieces."""
    lo, hi = ends
    points = [lo, hi, *(np.clip(end, lo, hi) for end in activation.inflections())]
    least = np.minimum.reduce([_height(activation, z, a, side) for z in points])
    for piece in activation.pieces:
        if piece.shape == _SHAPE[side]:
            p, q = np.clip(piece.low, lo, hi), np.clip(piece.high, lo, hi)
            least = np.minimum(least, _least_on_convex(activation, a, piece, (p, q), side, touch))
    offset: Array = side * least
    return offset


def _height(activation: Activation, z: Array, a: Array, side: int) -> Array:
    """Return a lower bound of side (f(z) - a z), exact where nothing is rounded.

    The product errs by u |a z| (not at all if |a| is 0 or 1); what the difference loses is computed exactly (TwoSum).
    """
    f, w = activation.value(z), a * z
    s = f - w
    b = s - f
    lost = np.abs((f - (s - b)) + (-w - b))
    product = np.where((a == 0) | (np.abs(a) == 1), 0.0, UNIT * np.abs(w) + _DENORMAL)
    margin = activation.error(z) + product + lost
    return np.where(margin > 0, down(side * s - up(margin, 3)), side * s)


def _least_on_convex(
    activation: Activation, a: Array, piece: Piece, ends: tuple[Array, Array], side: int, touch: Array
) -> Array:
    """Return a lower bound of side (f(z) - a z) on a convex piece, by the tangents of the module text."""
    p, q = ends
    u, v = _bracket(activation, a, piece, ends, side, touch)
    at_u, at_v = _within(u, piece), _within(v, piece)
    slope_u, error_u = side * activation.slope(at_u), activation.slope_error(at_u)
    slope_v, error_v = side * activation.slope(at_v), activation.slope_error(at_v)
    height_u, height_v = _height(activation, u, a, side), _height(activation, v, a, side)
    left = _less(height_u, up(slope_u + error_u) - side * a, u - p)
    middle = _less(height_u, side * a - down(slope_u - error_u), v - u)
    right = _less(height_v, side * a - down(slope_v - error_v), q - v)
    return np.minimum(np.minimum(left, middle), right)


def _less(height: Array, excess: Array, width: Array) -> Array:
    """Return height - max(excess, 0) width, rounded down."""
    loss = up(up(excess) * up(width))
    return np.where((excess > 0) & (width > 0), down(height - loss), height)


def _bracket(
    activation: Activation, a: Array, piece: Piece, ends: tuple[Array, Array], side: int, touch: Array
) -> tuple[Array, Array]:
    """Return u <= v in [p, q] between which the slope passes `a`; both are `touch` where that is the very point."""
    p, q = ends
    known = (touch >= p) & (touch <= q) & (activation.slope(_within(touch, piece)) == a)
    steep = side * activation.slope(_within(p, piece)) >= side * a
    flat = side * activation.slope(_within(q, piece)) <= side * a
    u = np.where(known, touch, np.where(flat & ~steep, q, p))
    v = np.where(known, touch, np.where(steep, p, q))
    return _bisect(lambda t, rows: side * activation.slope(t) >= side * a[rows], u, v, u < v)


def _within(z: Array, piece: Piece) -> Array:
    """Return z, or the float below where z ends the piece: `slope` there is the one inside (see Activation.before)."""
    return np.where(z == piece.high, np.nextafter(z, -np.inf), z)
