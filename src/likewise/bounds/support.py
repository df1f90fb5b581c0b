"""Largest values of linear functions over sets of people and of differences, as proven upper bounds, batched.

Over a domain the maximum is a sum: per column a sign, per one-hot group the best allowed category. Over the
differences {d : ||A d||_p <= eps, lower <= d <= upper} weak duality gives, for ANY vector mu,

    c.d  =  (c - A^T mu).d + mu.(A d)  <=  sum_k max((c - A^T mu)_k lower_k, (c - A^T mu)_k upper_k) + eps ||mu||_q

with 1/p + 1/q = 1 (Hoelder). How mu was found does not matter for truth, only for tightness: here by a fixed number
of ADMM steps on all objectives at once. The right-hand side is evaluated with outward rounding.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear
from scipy.sparse import csr_matrix

from likewise.domain import Domain
from likewise.metric import Metric
from likewise.rounding import Array, dot_error, up
from likewise.solvers import LinearModel, Session

STEPS = 120
CHECK_EVERY = 20
BALANCE_EVERY = 5


def domain_upper(domain: Domain, rows: Array, errors: Array | None = None) -> Array:
    """Bound rows @ x from above over the people of a domain.

    `errors`, if given, bounds how far each true coefficient may be from the one in `rows`. The sum over columns is
    separable, so the maximum is exact but for rounding, which `dot_error` pays for.
    """
    best = np.maximum(rows * domain.lower, rows * domain.upper)
    total = best[:, domain.numbers].sum(axis=1)
    reach = np.maximum(np.abs(domain.lower), np.abs(domain.upper))
    magnitude = np.abs(rows) @ reach
    for span in domain.groups:
        allowed = domain.upper[span] > 0.5
        total = total + rows[:, span][:, allowed].max(axis=1)
    slack = 0.0 if errors is None else errors @ reach * (1 + 1e-12)
    return up(total + dot_error(3 * rows.shape[1], magnitude) + slack, 2)


@dataclass(frozen=True, slots=True, eq=False)
class Differences:
    """The differences left - right of similar pairs, relaxed to a box cut with the metric's ball."""

    metric: Metric
    eps: float
    lower: Array
    upper: Array

    @property
    def free(self) -> np.ndarray:
        """The columns in which a pair can differ."""
        return np.flatnonzero((self.lower != 0.0) | (self.upper != 0.0))

    def upper_bounds(self, rows: Array, errors: Array | None = None, steps: int = STEPS) -> Array:
        """Bound rows @ d from above for every similar pair; the argument is weak duality, in the module's docstring."""
        free = self.free
        if not len(free):
            return np.zeros(len(rows))
        part = _Slice(self.metric.matrix[:, free], self.metric.p, self.eps, self.lower[free], self.upper[free])
        slack = 0.0 if errors is None else errors[:, free] @ np.maximum(np.abs(part.lower), np.abs(part.upper))
        solved = part.solve_lp(rows[:, free]) if part.is_rotated_box() else part.solve(rows[:, free], steps)
        return up(solved + slack * (1 + 1e-12), 2)

    def multipliers(self, rows: Array, steps: int = STEPS) -> Array:
        """Return, for each row, multipliers of the matrix's rows that bound rows @ d about as well as is known."""
        free = self.free
        found = np.zeros((len(rows), len(self.metric.matrix)))
        if not (len(rows) and len(free) and len(self.metric.matrix)):
            return found
        part = _Slice(self.metric.matrix[:, free], self.metric.p, self.eps, self.lower[free], self.upper[free])
        if part.is_rotated_box():
            return part.lp_multipliers(rows[:, free])
        active = np.abs(part.matrix).sum(axis=1) > 0
        part = _Slice(part.matrix[active], part.p, part.eps, part.lower, part.upper)
        if active.any():
            found[:, active] = part.best_multipliers(rows[:, free], steps)
        return found


def distance_lower(metric: Metric, lower: Array, upper: Array) -> float:
    """Bound ||A d||_2 from below over a box of differences.

    For every unit vector u, ||A d||_2 >= u.(A d), whose minimum over the box is separable; a least-squares problem
    finds u.
    """
    matrix = metric.matrix
    ends = np.where(lower < upper, upper, np.nextafter(upper, np.inf))
    nearest = matrix @ lsq_linear(matrix, np.zeros(len(matrix)), (lower, ends)).x
    nearest = nearest / max(float(np.abs(nearest).max(initial=0.0)), 1e-300)
    u = nearest / max(float(np.linalg.norm(nearest)), 1.0) * (1 - 1e-12)
    # With eps = 0 and no objective, the dual bound at the multipliers u is the maximum of -(u A).d over the box.
    return -float(_Slice(matrix, metric.p, 0.0, lower, upper).bound(np.zeros((1, len(lower))), u[None])[0])


@dataclass(frozen=True, slots=True, eq=False)
class _Slice:
    matrix: Array
    p: float
    eps: float
    lower: Array
    upper: Array

    def solve(self, rows: Array, steps: int) -> Array:
        active = np.abs(self.matrix).sum(axis=1) > 0
        part = _Slice(self.matrix[active], self.p, self.eps, self.lower, self.upper)
        best = part.bound(rows, np.zeros((len(rows), len(part.matrix))))
        if not len(part.matrix):
            return best
        for mu in part.guesses(rows):
            best = np.fmin(best, part.bound(rows, mu))
        return best if self.p == math.inf else part.search(rows, best, steps)

    def is_rotated_box(self) -> bool:
        """Tell whether the set is a polyhedron on which ADMM is slow and a linear program quick."""
        return self.p == math.inf and bool(((self.matrix != 0.0).sum(axis=1) > 1).any())

    def solve_lp(self, rows: Array) -> Array:
        """Bound each row by the duals of a linear program, rebuilt outward by `solvers.dual_bound`."""
        limit = np.full(len(self.matrix), self.eps)
        relaxed = np.zeros(len(self.lower), dtype=bool)
        matrix = csr_matrix(self.matrix)
        session = Session(LinearModel(rows[0], matrix, -limit, limit, self.lower, self.upper, relaxed))
        return np.array([session.maximise(row)[0] for row in rows])

    def lp_multipliers(self, rows: Array) -> Array:
        """Return the duals of the linear programs of `solve_lp`."""
        limit, relaxed = np.full(len(self.matrix), self.eps), np.zeros(len(self.lower), dtype=bool)
        model = LinearModel(rows[0], csr_matrix(self.matrix), -limit, limit, self.lower, self.upper, relaxed)
        session, found = Session(model), []
        for row in rows:
            session.maximise(row)
            found.append(session.proof.multipliers)
        return np.array(found)

    def best_multipliers(self, rows: Array, steps: int) -> Array:
        """Return the best of the multipliers that `solve` looks at."""
        basis, small = reduced(self.matrix, self.p)
        walk = ascent(rows, small, self.p, self.eps, self.lower, self.upper, 0 if self.p == math.inf else steps)
        looked_at = (mu @ basis for step, (_, mu) in enumerate(walk, 1) if step % CHECK_EVERY == 0)
        best = np.zeros((len(rows), len(self.matrix)))
        bound = self.bound(rows, best)
        for mu in itertools.chain(self.guesses(rows), looked_at):
            other = self.bound(rows, mu)
            better = other < bound
            best, bound = np.where(better[:, None], mu, best), np.where(better, other, bound)
        return best

    def guesses(self, rows: Array) -> list[Array]:
        """Multipliers that are optimal when the box does not matter, or when the matrix is diagonal."""
        if self.p == math.inf:
            return [self.column_by_column(rows)]
        inverse = np.linalg.pinv(self.matrix, rcond=1e-9)
        plain = [rows @ inverse]
        if self.p in (1.0, 2.0, math.inf) or (np.count_nonzero(self.matrix, axis=1) != 1).any():
            return plain
        return [*plain, self.along_columns(rows)]

    def column_by_column(self, rows: Array) -> Array:
        """Return the optimal multipliers of a matrix with one entry per row for p = inf: per column, box or metric.

        Of several rows on one column the largest entry limits it most.
        """
        column, scale = np.abs(self.matrix).argmax(axis=1), np.abs(self.matrix).max(axis=1)
        most = np.zeros(self.matrix.shape[1])
        np.maximum.at(most, column, scale)
        room = np.where(rows[:, column] > 0, self.upper[column], -self.lower[column])
        is_first = np.array([k == np.flatnonzero((column == c) & (scale == most[c]))[0] for k, c in enumerate(column)])
        entry = self.matrix[np.arange(len(column)), column]
        return np.asarray(np.where(is_first & (self.eps / scale < room), rows[:, column] / entry, 0.0))

    def along_columns(self, rows: Array) -> Array:
        """Return the optimal multipliers, up to floats, of a matrix with one entry per row and 1 < p < inf.

        At the optimum a d_i = clip(sign(c_i) (|c_i| / (a t))^(1/(p-1))), with t > 0 such that the norm is eps.
        """
        column, scale = np.abs(self.matrix).argmax(axis=1), np.abs(self.matrix).max(axis=1)
        c, power = np.abs(rows[:, column]) / scale, 1.0 / (self.p - 1.0)
        room = scale * np.where(rows[:, column] > 0, self.upper[column], -self.lower[column])
        low, high = np.full((len(rows), 1), -100.0), np.full((len(rows), 1), 100.0)
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            for _ in range(80):
                t = (low + high) / 2
                size = np.minimum((c * np.exp(-t)) ** power, room)
                large = np.linalg.norm(size, self.p, axis=1, keepdims=True) > self.eps
                low, high = np.where(large, t, low), np.where(large, high, t)
            mu = np.exp(high) * np.minimum((c * np.exp(-high)) ** power, room) ** (self.p - 1.0)
        sign = np.sign(rows[:, column]) * np.sign(self.matrix[np.arange(len(column)), column])
        return np.asarray(np.nan_to_num(sign * np.minimum(mu, c), posinf=0.0, neginf=0.0))

    def search(self, rows: Array, best: Array, steps: int) -> Array:
        """Improve the multipliers step by step; every iterate is a bound, the least is kept."""
        basis, small = reduced(self.matrix, self.p)
        for step, (_, mu) in enumerate(ascent(rows, small, self.p, self.eps, self.lower, self.upper, steps), 1):
            if step % CHECK_EVERY == 0:
                best = np.fmin(best, self.bound(rows, mu @ basis))
        return best

    def bound(self, rows: Array, mu: Array) -> Array:
        """Evaluate the dual bound for any multipliers, rounded outward."""
        rest = rows - mu @ self.matrix
        terms = len(self.matrix) + 1
        error = dot_error(terms, np.abs(rows) + np.abs(mu) @ np.abs(self.matrix))
        corner = np.maximum(rest * self.lower, rest * self.upper)
        reach = np.maximum(np.abs(self.lower), np.abs(self.upper))
        spread = error @ reach
        q = dual_power(self.p)
        top = np.maximum(np.abs(mu).max(axis=1, initial=0.0), 1e-300)  # divided out, so that no square underflows
        norm = self.eps * (top * np.linalg.norm(mu / top[:, None], q, axis=1)) * (1 + 1e-14 * (terms + 4))
        rounding = dot_error(rows.shape[1] + 4, np.abs(corner).sum(axis=1) + spread + norm)
        return up(corner.sum(axis=1) + spread + norm + rounding, 2)


def dual_power(p: float) -> float:
    """Return q with 1/p + 1/q = 1, or a float just below it: a norm grows as its power falls, so bounds still hold."""
    if p in (1.0, math.inf):
        return math.inf if p == 1.0 else 1.0
    return 2.0 if p == 2.0 else max(1.0, float(np.nextafter(np.nextafter(p / (p - 1.0), 0.0), 0.0)))


def ascent(
    rows: Array, matrix: Array, p: float, eps: float, lower: Array, upper: Array, steps: int
) -> Iterator[tuple[Array, Array]]:
    """Yield (d, mu) of ADMM on max rows.d, d = v in the box, matrix d = w in the p-ball, all rows at once.

    Each d is in its box (one for all rows, or one per row), the multipliers mu belong to the ball.
    """
    length = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
    rho = length / (4 * max(eps, 0.02 * float(np.max(upper - lower)), 1e-12))
    inverse = np.linalg.inv(np.eye(matrix.shape[1]) + matrix.T @ matrix)
    v, w = np.zeros_like(rows), np.zeros((len(rows), len(matrix)))
    u1, u2 = v.copy(), w.copy()
    for step in range(1, steps + 1):
        old = (v, w)
        d = (rows / rho + (v - u1) + (w - u2) @ matrix) @ inverse
        moved = d @ matrix.T
        v = np.clip(d + u1, lower, upper)
        w = project(moved + u2, p, eps)
        u1 += d - v
        u2 += moved - w
        yield v, rho * u2
        if step % BALANCE_EVERY == 0:  # keep both residuals of a row alike (Boyd et al. 2011, section 3.4.1)
            apart = np.hypot(np.linalg.norm(d - v, axis=1), np.linalg.norm(moved - w, axis=1))[:, None]
            drift = np.hypot(np.linalg.norm(v - old[0], axis=1), np.linalg.norm(w - old[1], axis=1))[:, None]
            factor = np.where(apart > 4 * drift, 2.0, np.where(drift > 4 * apart, 0.5, 1.0))
            rho, u1, u2 = rho * factor, u1 / factor, u2 / factor


def reduced(matrix: Array, p: float) -> tuple[Array, Array]:
    """Return (basis, small): the same norm with at most as many rows as columns; only the 2-norm allows a rotation."""
    if p != 2.0 or matrix.shape[0] <= matrix.shape[1]:
        return np.eye(len(matrix)), matrix
    q, r = np.linalg.qr(matrix)
    return q.T, r


def project(points: Array, p: float, radius: float) -> Array:
    """Return the nearest points of the p-ball, row by row (float accuracy: used for search, never for proof).

    For a p other than 1, 2 and inf, of the smallest Euclidean ball around it.
    """
    if p == math.inf:
        return np.clip(points, -radius, radius)
    if p != 1.0:
        radius = radius * points.shape[1] ** max(0.0, 0.5 - 1.0 / p)
        norms = np.linalg.norm(points, axis=1, keepdims=True)
        return np.asarray(points * np.minimum(1.0, radius / np.maximum(norms, 1e-300)))
    size = np.abs(points)
    inside = size.sum(axis=1) <= radius
    ranked = -np.sort(-size, axis=1)
    excess = (np.cumsum(ranked, axis=1) - radius) / np.arange(1, size.shape[1] + 1)
    count = np.maximum((ranked > excess).sum(axis=1), 1)
    shift = np.where(inside, 0.0, excess[np.arange(len(size)), count - 1])
    return np.asarray(np.sign(points) * np.maximum(size - shift[:, None], 0.0))
