"""Spread: bounds of sums over a whole layer by one quadratic form, where a bound for each neuron adds up too much.

No pair makes every neuron differ as far as it can: in a wide layer, the differences dz = W d of thousands of neurons
hang on the few columns of d. With dv = m dz + q, |q| <= h |dz| for each neuron (its slopes are in m - h .. m + h),

    k.dv  <=  g.d + sum_j a_j |w_j.d|,    g = (k m) W,  a = |k| h,    and  a |x| <= (a^2 / rho + rho x^2) / 2, rho > 0.

Similar pairs have |f_i.d| <= r_i for some rows f_i and ||A d||_2 <= R, hence d^T H d <= size for any nu, tau >= 0,
where H = nu A^T A + F^T diag(tau) F and size = nu R^2 + sum_i tau_i r_i^2. With G = W^T diag(rho) W, whenever

    [ 2 gamma   -g^T   ]
    [   -g     s H - G ]   is positive semidefinite,    k.dv <= gamma + (s size + sum_j a_j^2 / rho_j) / 2,

because g.d - d^T (s H - G) d / 2 <= gamma then. Any rho, nu, tau, s and gamma make a bound that holds; they are found
in floats, by making nu, tau and rho agree with the second moments X of the worst d (which is the dual programme), and
what is claimed of them is computed anew, rounded outward.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from likewise.bounds.interval import Box
from likewise.rounding import UNIT, Array, dot_error, up

STEPS, SAMPLE = 40, 16  # of the search for a form, and rows to search it with
CALM, DAMPED = 0.25, 0.8  # exponent of a step, and what is kept of the moments before
HALVINGS = 30  # of the search for each row's scale
MARGINS = (1e-8, 1e-5, 1e-2)  # relative room for rounding, in turn
AT_ONCE = 32  # rows
NOTHING = 1e-200  # instead of 0, where no neuron counts
LEAST_SHARE = 1e-12  # that the search leaves to a row
FLATTEST = 1e-6  # of the longest: no limit is taken to be shorter


@dataclass(frozen=True, slots=True, eq=False)
class Symmetric:
    """Vectors d with |rows d| <= limits and ||matrix d||_2 <= radius; the first rows are the columns of d."""

    matrix: Array
    radius: float
    rows: Array
    limits: Array

    def moments(self, x: Array) -> Array:
        """Return what second moments x give the ball, then each row, as a share of what they allow (in floats)."""
        ball = float(np.einsum("ij,ij->", self.matrix @ x, self.matrix)) / self.radius**2
        return np.append(ball, np.einsum("ij,ij->i", self.rows @ x, self.rows) / self.limits**2)


def symmetric(matrix: Array, p: float, eps: float, reach: Array) -> Symmetric:
    """Return a set around all d with ||matrix d||_p <= eps and |d| <= reach, a column that is 0 made a little wider.

    ||x||_2 <= ||x||_p for p <= 2, and n^(1/2 - 1/p) times that for n numbers and a larger p.
    """
    active = matrix[np.abs(matrix).sum(axis=1) > 0]
    least = FLATTEST * float(reach.max())
    radius = eps * float(max(1, len(active))) ** max(0.0, 0.5 - 1.0 / p) * (1 + 1e-12)
    return Symmetric(active, max(radius, least), np.eye(len(reach)), np.maximum(reach, least))


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """Shares of the ball and of each row in d^T H d <= 1, and a typical |dz| of each neuron, as found by search."""

    shares: Array
    typical: Array


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """A layer's neurons, dz = weight d and |dv - middle dz| <= half |dz|, over a symmetric set of d."""

    weight: Array
    middle: Array
    half: Array
    among: Symmetric

    def first(self) -> Form:
        """Return a form to begin with: half for the ball, half for the rows."""
        count = len(self.among.limits)
        shares = np.append(0.5 if len(self.among.matrix) else 0.0, np.full(count, 0.5 / count))
        inverse = np.linalg.pinv(self._metric(shares)[0], hermitian=True)
        return Form(shares, self._typical(np.asarray(inverse, dtype=np.float64) / self.weight.shape[1]))

    def fitted(self, rows: Array, deadline: float = math.inf, form: Form | None = None, steps: int = STEPS) -> Form:
        """Search a form that bounds the given rows (of numbers k) well, by their sum."""
        form = best = self.first() if form is None else form
        least, moments = math.inf, np.empty(0)
        for _ in range(steps):
            try:
                scales = [self._scaled(part, form) for part in _parts(rows)]
            except np.linalg.LinAlgError:  # numbers too far apart for floats: what was found before is as good as any
                break
            total = float(sum(s.upper.sum() for s in scales))
            if total < least:
                least, best = total, form
            if time.monotonic() > deadline:
                break
            x = np.sum([s.moments for s in scales], axis=0) / len(rows)
            moments = x if not moments.size else DAMPED * moments + (1 - DAMPED) * x
            shares = form.shares * self.among.moments(moments) ** CALM
            shares = np.where(form.shares > 0, np.maximum(shares / shares.sum(), LEAST_SHARE), 0.0)
            form = Form(shares, self._typical(moments))
        return best

    def upper(self, rows: Array, form: Form, deadline: float = math.inf) -> Array:
        """Bound k.dv from above for each of the rows k; inf where time was over before. -k.dv has the same bound."""
        uppers = [
            np.full(len(part), math.inf) if time.monotonic() > deadline else self._claimed(part, form)
            for part in _parts(rows)
        ]
        return np.concatenate(uppers)

    def _claimed(self, rows: Array, form: Form) -> Array:
        uppers = np.full(len(rows), math.inf)
        try:
            scaled = self._scaled(rows, form)
        except np.linalg.LinAlgError:
            return uppers
        for margin in MARGINS:
            rest = np.flatnonzero(uppers == math.inf)
            if len(rest):
                uppers[rest] = self._proven(rows[rest], form, scaled.take(rest), margin)
        return uppers

    def _proven(self, rows: Array, form: Form, scaled: _Scaled, margin: float) -> Array:
        """Evaluate the bound of the module's docstring, rounded outward; inf where the matrix is not shown to do.

        Sums of products of non-negative weights and squares: the errors of H and G, entry by entry, are a matrix whose
        norm is at most (terms) units of the trace, since || |W|^T diag(rho) |W| ||_F <= sum_j rho_j ||w_j||^2.
        """
        among, (metric, size) = self.among, self._metric(form.shares)
        a = np.where((rows != 0) & (self.half > 0), up(np.abs(rows) * self.half), 0.0)
        s = scaled.s * (1 + margin) + NOTHING
        gamma = scaled.gamma * (1 + margin) + margin * scaled.upper + NOTHING
        rho = np.where(a > 0, a / (scaled.scale[:, None] * form.typical), 0.0)
        g = (rows * self.middle) @ self.weight
        terms = sum(self.weight.shape) + len(among.matrix) + len(among.limits) + 20
        uppers = np.full(len(rows), math.inf)
        for k in range(len(rows)):
            quadratic = (self.weight.T * rho[k]) @ self.weight
            trace = 2 * gamma[k] + s[k] * float(np.trace(metric)) + float(np.trace(quadratic))
            if is_positive(_bordered(2 * gamma[k], -g[k], s[k] * metric - quadratic), 4 * terms * UNIT * trace):
                uppers[k] = gamma[k] + s[k] * size / 2
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            squares = np.where(a > 0, a * a / rho, 0.0).sum(axis=1) / 2
        lost = dot_error(rows.shape[1] + 4, (np.abs(rows) * np.abs(self.middle)) @ np.abs(self.weight))
        lost = lost @ among.limits[: self.weight.shape[1]] * (1 + 1e-12)
        whole = uppers + squares + lost
        return np.where(np.isfinite(whole), up(whole + dot_error(rows.shape[1] + 8, whole), 4), math.inf)

    def _scaled(self, rows: Array, form: Form) -> _Scaled:
        """Find the best scale of a form for each row, in floats.

        In coordinates t with d^T H d = |t|^2 <= 1 and the eigenvalues e of G for rho = a / typical, a scale c of
        `typical` and s = x / c leave (c (a.typical + sum_i g_i^2 / (x - e_i)) + x / c) / 2, least at a closed c.
        """
        metric, size = self._metric(form.shares)
        turn = np.linalg.inv(np.linalg.cholesky(metric / size))
        weight = self.weight @ turn.T
        a = np.abs(rows) * self.half
        e, axes = np.linalg.eigh(np.stack([(weight.T * part) @ weight for part in a / form.typical]))
        g = np.einsum("ij,ijk->ik", (rows * self.middle) @ weight, axes)
        along = a @ form.typical
        top = np.maximum(e[:, -1], FLATTEST * (along + np.linalg.norm(g, axis=1)) + 1e-300)
        x = _least(lambda x: (along + (g**2 / (x[:, None] - e)).sum(axis=1)) * x, top)
        q = np.maximum(along + (g**2 / (x[:, None] - e)).sum(axis=1), 1e-300)
        scale = np.sqrt(x / q)
        y = scale[:, None] * g / (x[:, None] - e)
        y = y / np.maximum(np.linalg.norm(y, axis=1, keepdims=True), 1.0)
        worst = np.einsum("ijk,ik->ij", axes, y) @ turn
        rest = axes[:, :, -1] * np.sqrt(np.maximum(1 - (y**2).sum(axis=1), 0.0))[:, None] @ turn
        moments = worst.T @ worst + rest.T @ rest
        gamma = scale * (g**2 / (x[:, None] - e)).sum(axis=1) / 2
        return _Scaled(np.sqrt(q * x), x / scale / size, scale, gamma, moments)

    def _metric(self, shares: Array) -> tuple[Array, float]:
        """Return H and a bound on d^T H d over the set."""
        among = self.among
        nu, tau = float(shares[0]) / among.radius**2, shares[1:] / among.limits**2
        metric = nu * among.matrix.T @ among.matrix + (among.rows.T * tau) @ among.rows
        size = nu * among.radius**2 + float((tau * among.limits**2).sum())
        return metric, size * (1 + 4 * (len(tau) + 4) * UNIT)

    def _typical(self, moments: Array) -> Array:
        squares = np.einsum("ij,ij->i", self.weight @ moments, self.weight)
        return np.asarray(np.sqrt(np.maximum(squares, FLATTEST**2 * float(squares.max()) + 1e-300)))


def spread_of(weight: Array, slope: Box, among: Symmetric) -> Spread:
    """Return the spread of a layer whose slopes are in a box; `half` is rounded up from the middle, whatever it is."""
    middle = (slope.lower + slope.upper) / 2
    half = up(np.maximum(slope.upper - middle, middle - slope.lower))
    return Spread(weight, middle, np.where(slope.lower == slope.upper, 0.0, half), among)


@dataclass(frozen=True, slots=True, eq=False)
class _Scaled:
    """For each row its bound, s, the scale of `typical` and gamma; and the sum of the second moments of the worst d."""

    upper: Array
    s: Array
    scale: Array
    gamma: Array
    moments: Array

    def take(self, rows: np.ndarray) -> _Scaled:
        return _Scaled(self.upper[rows], self.s[rows], self.scale[rows], self.gamma[rows], self.moments)


def is_positive(matrix: Array, room: float) -> bool:
    """Tell whether a symmetric matrix that is known to `room` in norm is shown to be positive semidefinite.

    If Cholesky's method completes on a matrix B of n rows in floats, B + E is positive semidefinite for some E with
    ||E|| <= 2 (n + 1) u trace(B) (Higham, section 10.1; Rump 2006). `room` is to pay for that as well.
    """
    if not (math.isfinite(room) and np.isfinite(matrix).all()):
        return False
    try:
        np.linalg.cholesky(matrix - room * np.eye(len(matrix)))
    except np.linalg.LinAlgError:
        return False
    return True


def _least(value: Callable[[Array], Array], top: Array) -> Array:
    """Return x > top where `value` is about least, by a golden section of log(x / top - 1)."""
    low, high, golden = np.full(len(top), -9.0), np.full(len(top), 3.0), (math.sqrt(5.0) - 1) / 2
    for _ in range(HALVINGS):
        one, other = high - golden * (high - low), low + golden * (high - low)
        is_left = value(top * (1 + np.exp(one))) < value(top * (1 + np.exp(other)))
        low, high = np.where(is_left, low, one), np.where(is_left, other, high)
    return np.asarray(top * (1 + np.exp((low + high) / 2)))


def _bordered(corner: float, side: Array, inside: Array) -> Array:
    whole = np.empty((len(side) + 1, len(side) + 1))
    whole[0, 0], whole[0, 1:], whole[1:, 0], whole[1:, 1:] = corner, side, side, inside
    return whole


def _parts(rows: Array) -> list[Array]:
    return [rows[k : k + AT_ONCE] for k in range(0, len(rows), AT_ONCE)]
