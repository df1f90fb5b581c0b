"""The metric's ball as linear rows: exact for p = 1 and inf, a polyhedron just outside of it for any other p.

The Euclidean ball is written as a binary tree of cones r >= ||(a, b)||, each approximated by folding the quarter
plane in half `levels` times (Ben-Tal and Nemirovski 2001). The result contains the ball and exceeds it by the factor
1 / cos(pi / 2^levels) per cone on the way to the root. Only the coordinates in which a network sees d are folded: the
norm of a part is at most that of the whole.

For any other p the ball is sum_i (|s_i| / eps)^p <= 1, s = A d, and each term is bounded from below by tangents, a few
everywhere. Where a search wants the ball closer, it asks for tangents there (`touches`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from likewise.bounds.rows import Index, Rows
from likewise.bounds.support import Differences
from likewise.rounding import Array, dot_error, up

BALLS = (1.0, 2.0, math.inf)  # the p whose balls need no tangents
SMALLEST = 1e-6  # an eps below which the box is close enough, and tangents too steep for a solver
TOUCHED = (0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 1.0)  # where tangents of x^p are drawn, in shares of eps
ROUNDING = 1e-12  # relative; floats lose far less in a QR factorisation and in a tree of folds


def ball_rows(
    rows: Rows,
    differences: Differences,
    d: Index,
    accuracy: float,
    touches: Sequence[Array] = (),
    seen: Array | None = None,
) -> None:
    """Require ||A d||_p <= eps of the free columns' differences `d`, never cutting off a similar pair.

    `accuracy` is the largest relative excess allowed for p = 2, in the coordinates that the rows `seen` tell apart (all
    of them if it is None). `touches` are values of A d (of the rows of A that are not 0) at which to draw tangents for
    a p other than 1 and inf.
    """
    matrix = differences.metric.matrix[:, differences.free]
    matrix = matrix[np.abs(matrix).sum(axis=1) > 0]
    eps, p = differences.eps, differences.metric.p
    if not len(matrix):
        return
    if p == math.inf:
        for row in matrix:
            rows.row(d, row, -eps, eps)
    elif p == 1.0:
        _sum_rows(rows, matrix, d, eps)
    elif p == 2.0:
        _round_rows(rows, matrix, d, eps, accuracy, differences, seen)
        _touching_rows(rows, matrix, d, eps, differences, touches)
    else:
        _power_rows(rows, matrix, d, eps, p, touches)


def _sum_rows(rows: Rows, matrix: Array, d: Index, eps: float) -> None:
    sizes = rows.variables(np.zeros(len(matrix)), np.full(len(matrix), eps))
    for size, row in zip(sizes, matrix, strict=True):
        rows.row([size, *d], [1.0, *-row], lower=0.0)
        rows.row([size, *d], [1.0, *row], lower=0.0)
    rows.row(sizes, np.ones(len(sizes)), upper=eps)


def _power_rows(rows: Rows, matrix: Array, d: Index, eps: float, p: float, touches: Sequence[Array]) -> None:
    """Bound each (|s_i| / eps)^p from below by tangents, and their sum by 1.

    x^p is convex, so a tangent is below it; each is lowered by more than floats can have lost on [-eps, eps].
    """
    powers = rows.variables(np.zeros(len(matrix)), np.ones(len(matrix)))
    sums = rows.variables(np.full(len(matrix), -eps), np.full(len(matrix), eps))
    for i, (power, s, row) in enumerate(zip(powers, sums, matrix, strict=True)):
        rows.row([*d, s], [*row, -1.0], 0.0, 0.0)
        for x in touched(eps, touches, i):
            slope = p * x ** (p - 1.0) / eps
            offset = (1.0 - p) * x**p - 1e-12 * (p + 1.0) ** 2
            rows.row([power, s], [1.0, -slope], lower=offset)
            rows.row([power, s], [1.0, slope], lower=offset)
    rows.row(powers, np.ones(len(powers)), upper=1.0)


def touched(eps: float, touches: Sequence[Array], i: int) -> list[float]:
    """Return where tangents of (|s_i| / eps)^p are drawn, in shares of eps."""
    if eps < SMALLEST:
        return []
    asked = [min(abs(float(touch[i])) / eps, 1.0) for touch in touches]
    return list(np.unique([*TOUCHED, *(a for a in asked if a > 1e-6)]).tolist())


def excess(differences: Differences, d: Array) -> tuple[float, Array]:
    """Return how far free differences exceed eps, relative, and their A d, for a p that takes tangents; else 0."""
    metric, eps = differences.metric, differences.eps
    matrix = metric.matrix[:, differences.free]
    s: Array = matrix[np.abs(matrix).sum(axis=1) > 0] @ d
    if metric.p in (1.0, math.inf) or eps < SMALLEST or not len(s):
        return 0.0, s
    return float(np.linalg.norm(s, metric.p)) / eps - 1.0, s


def _touching_rows(rows: Rows, matrix: Array, d: Index, eps: float, box: Differences, touches: Sequence[Array]) -> None:
    """Require u.(A d) <= eps for the direction u of each touch: ||u|| <= 1 up to rounding, which widens eps.

    A row is off by the rounding of u A times the largest d.
    """
    largest = np.maximum(np.abs(box.lower), np.abs(box.upper))[box.free]
    for touch in touches:
        u = touch / max(float(np.linalg.norm(touch)), 1e-300)
        room = float(dot_error(len(matrix), np.abs(u) @ np.abs(matrix)) @ largest) * (1 + 1e-12)
        rows.row(d, u @ matrix, upper=float(up(eps * (1 + 1e-14 * (len(u) + 4)) + room, 2)))


def _round_rows(
    rows: Rows, matrix: Array, d: Index, eps: float, accuracy: float, box: Differences, seen: Array | None
) -> None:
    """Rotate A d to as few coordinates as its rank, or as what is seen of it, then fold them into one radius <= eps.

    Each coordinate is q.(A d) for a float vector q; its row is off by the rounding of q A times the largest d, which is
    its slack. ||Q A d|| <= ||Q|| ||A d|| with ||Q||^2 <= 1 + ||Q Q^T - I||, which widens the radius.
    """
    largest = np.maximum(np.abs(box.lower), np.abs(box.upper))[box.free]
    small, slack, stretch = _rotated(matrix, largest, None if seen is None else seen[:, box.free])
    radius = float(up(eps * (1 + stretch) * (1 + ROUNDING), 2)) + 1e-300
    depth = max(1, math.ceil(math.log2(max(2, len(small)))))
    levels = fold_levels(accuracy / depth)
    leaves: list[int] = []
    for row, room in zip(small, slack.tolist(), strict=True):
        size = rows.variable(0.0, radius * (1 + accuracy))
        rows.row([size, *d], [1.0, *-row], lower=-room)
        rows.row([size, *d], [1.0, *row], lower=-room)
        leaves.append(size)
    while len(leaves) > 1:
        odd = [leaves.pop()] if len(leaves) % 2 else []
        pairs = zip(leaves[::2], leaves[1::2], strict=True)
        leaves = [_cone(rows, a, b, radius * (1 + accuracy), levels) for a, b in pairs] + odd
    rows.row(leaves, [1.0], upper=radius)


def rotation(matrix: Array, seen: Array | None) -> Array | None:
    """Return Q, the rows q of the coordinates q.(A d) to fold, or None for those of A d itself.

    What W sees of d, up to the null space of A, is W A^+ (A d): the rows of W A^+ span all that matters.
    """
    if seen is not None and len(seen) < min(matrix.shape):
        return np.asarray(np.linalg.qr((seen @ np.linalg.pinv(matrix, rcond=1e-9)).T)[0].T)
    return None if len(matrix) <= matrix.shape[1] else np.asarray(np.linalg.qr(matrix)[0].T)


def _rotated(matrix: Array, largest: Array, seen: Array | None) -> tuple[Array, Array, float]:
    """Return rows Q A, what each may be off by, and how much Q may stretch a norm."""
    q = rotation(matrix, seen)
    if q is None:
        return matrix, np.zeros(len(matrix)), 0.0
    error = dot_error(len(matrix), np.abs(q) @ np.abs(matrix))
    skew = q @ q.T - np.eye(len(q))
    stretch = float(np.linalg.norm(skew)) + float(np.linalg.norm(dot_error(len(matrix), np.abs(q) @ np.abs(q.T))))
    return q @ matrix, up(error @ largest * (1 + 1e-12), 2), stretch * (1 + 1e-12)


def fold_levels(accuracy: float) -> int:
    """Return how many levels keep the excess 1 / cos(pi / 2^levels) - 1 within `accuracy`."""
    return next(n for n in range(3, 26) if 1 / math.cos(math.pi / 2**n) - 1 <= accuracy or n == 25)


def _cone(rows: Rows, a: int, b: int, radius: float, levels: int) -> int:
    """Return a variable r for which ||(a, b)|| <= r is allowed whenever it is true, for a, b >= 0.

    Every true point has a continuation: fold the plane about the angles pi/4, pi/8, ..., pi/2^levels, which keeps the
    norm and leaves an angle of at most pi/2^levels, so 0 <= y <= tan(that) x, and x <= norm <= r. The slacks and the
    factors 1 + 1e-9 and 1 + ROUNDING pay for the rounding of the constants.
    """
    x, y = a, b
    for level in range(2, levels + 1):
        cos, sin = math.cos(math.pi / 2**level), math.sin(math.pi / 2**level)
        new_x, new_y = rows.variable(0.0, 2 * radius), rows.variable(0.0, 2 * radius)
        rows.row([new_x, x, y], [1.0, -cos, -sin], 0.0, 0.0)
        rows.row([new_y, x, y], [1.0, sin, -cos], lower=0.0)
        rows.row([new_y, x, y], [1.0, -sin, cos], lower=0.0)
        x, y = new_x, new_y
    r = rows.variable(0.0, 2 * radius)
    tangent = math.tan(math.pi / 2**levels) * (1 + 1e-9)
    rows.row([x, y], [tangent, -1.0], lower=-radius * ROUNDING)
    rows.row([r, x], [1 + ROUNDING, -1.0], lower=-radius * ROUNDING)
    return r
