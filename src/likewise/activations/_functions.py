"""The formulas: value and slope of every activation, and what float64 may lose in them.

The bookkeeping is relative, in units u = 2^-53. A library function right to LIBRARY_ULPS units in the last place has
relative error at most L = 2 LIBRARY_ULPS u (an ulp is at most 2u of the number), a single operation u, and a factor
feeds through with its condition number. Every formula below is arranged so that no condition number exceeds 1 by
much, even where the textbook form cancels: `expm1` near 0, `log1p` of a small exponential, `exp(-|z|)` so that nothing
overflows, and for the normal tail `erfcx` (smooth) times a Gaussian whose exponent is split so that squaring loses
nothing. `FLOOR` is added against gradual underflow: at most a few units of 2^-1074 times a factor below 750.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import erfc, erfcx

from likewise.rounding import LIBRARY_ULPS, UNIT, Array

Function = Callable[[Array], Array]

L = 2 * LIBRARY_ULPS  # one library call, in units of u
FLOOR = 2.0**-1060
DENORMAL = 2.0**-1074
LEAK = 0.01
SELU_SCALE = 1.0507009873554805
SELU_LEFT = 1.7580993408473766  # scale times alpha, as one float64, which is what the frameworks multiply by
_ROOT_HALF = 0.7071067811865476
_ROOT_TWO_PI = 2.5066282746310002


def relative(function: Function, units: float) -> Function:
    """Return an error bound of `units` u relative to `function`, plus FLOOR."""
    return lambda z: units * UNIT * np.abs(function(z)) + FLOOR


def nothing(z: Array) -> Array:
    """Return the error bound 0, for what float64 computes exactly."""
    return np.zeros_like(z)


# --- piecewise linear; slopes at kinks are those on the right ------------------------------------------------------


def step(low: float, high: float, height: float = 1.0) -> Function:
    """Return the slope of a function that rises by `height` per unit on [low, high) and is flat elsewhere."""
    return lambda z: np.where((z >= low) & (z < high), height, 0.0)


def identity(z: Array) -> Array:
    """z, exactly."""
    return z + 0.0


def relu(z: Array) -> Array:
    """max(z, 0), exactly."""
    return np.maximum(z, 0.0)


def relu6(z: Array) -> Array:
    """min(max(z, 0), 6), exactly."""
    return np.clip(z, 0.0, 6.0)


def hardtanh(z: Array) -> Array:
    """min(max(z, -1), 1), exactly."""
    return np.clip(z, -1.0, 1.0)


def leaky_relu(z: Array) -> Array:
    """z, or LEAK z below 0: one rounding there. LEAK is the float64 nearest to 1/100."""
    return np.where(z < 0, LEAK * z, z)


def leaky_relu_error(z: Array) -> Array:
    """One rounding below 0, nothing above."""
    return np.where(z < 0, 2 * UNIT * np.abs(LEAK * z) + DENORMAL, 0.0)


def leaky_relu_slope(z: Array) -> Array:
    """LEAK or 1, exactly."""
    return np.where(z < 0, LEAK, 1.0)


def hardsigmoid(z: Array) -> Array:
    """min(max((z + 3)/6, 0), 1): two roundings, relative, because z + 3 is exact near -3."""
    return np.clip((z + 3.0) / 6.0, 0.0, 1.0)


def hardsigmoid_error(z: Array) -> Array:
    """3u relative between the kinks, nothing outside."""
    return np.where((z > -3) & (z < 3), 3 * UNIT * hardsigmoid(z) + DENORMAL, 0.0)


def hardsigmoid_slope_error(z: Array) -> Array:
    """1/6 is no float64."""
    return np.where((z >= -3) & (z < 3), UNIT, 0.0)


# --- s-shaped --------------------------------------------------------------------------------------------------------


def sigmoid(z: Array) -> Array:
    """1/(1 + exp(-z)), through e = exp(-|z|) as 1/(1 + e) or e/(1 + e): L + 3u relative."""
    e = np.exp(-np.abs(z))
    return np.where(z < 0, e, 1.0) / (1.0 + e)


def sigmoid_slope(z: Array) -> Array:
    """e/(1 + e)^2: condition (1 - e)/(1 + e) <= 1, so L + 4u relative."""
    e = np.exp(-np.abs(z))
    return e / (1.0 + e) ** 2


def tanh(z: Array) -> Array:
    """The library's own: L."""
    return np.tanh(z)


def tanh_slope(z: Array) -> Array:
    """4 sigmoid'(2z): L + 4u relative, the doubling is exact."""
    return 4.0 * sigmoid_slope(2.0 * z)


def softsign(z: Array) -> Array:
    """z/(1 + |z|): 2u relative."""
    return z / (1.0 + np.abs(z))


def softsign_slope(z: Array) -> Array:
    """(1/(1 + |z|))^2: 5u relative."""
    return (1.0 / (1.0 + np.abs(z))) ** 2


# --- hinges ----------------------------------------------------------------------------------------------------------


def softplus(z: Array) -> Array:
    """max(z, 0) + log1p(exp(-|z|)): log1p has condition at most 1 and both terms are >= 0, so 2L + u relative."""
    return np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z)))


def elu(z: Array) -> Array:
    """expm1(z) below 0 (L relative), z above (exact)."""
    return np.where(z < 0, np.expm1(np.minimum(z, 0.0)), z)


def elu_error(z: Array) -> Array:
    """L relative below 0, nothing above."""
    return np.where(z < 0, (L + 1) * UNIT * np.abs(elu(z)) + FLOOR, 0.0)


def elu_slope(z: Array) -> Array:
    """exp(z) below 0 (L relative), 1 above."""
    return np.exp(np.minimum(z, 0.0))


def elu_slope_error(z: Array) -> Array:
    """L relative below 0, nothing above."""
    return np.where(z < 0, (L + 1) * UNIT * elu_slope(z) + FLOOR, 0.0)


def selu(z: Array) -> Array:
    """SELU_LEFT expm1(z) below 0 (L + u), SELU_SCALE z above (u); both factors are float64 numbers by definition."""
    return np.where(z < 0, SELU_LEFT * np.expm1(np.minimum(z, 0.0)), SELU_SCALE * z)


def selu_slope(z: Array) -> Array:
    """SELU_LEFT exp(z) below 0 (L + u), SELU_SCALE above (exact)."""
    return np.where(z < 0, SELU_LEFT * np.exp(np.minimum(z, 0.0)), SELU_SCALE)


def selu_slope_error(z: Array) -> Array:
    """L + u relative below 0, nothing above."""
    return np.where(z < 0, (L + 2) * UNIT * selu_slope(z) + FLOOR, 0.0)


# --- gates: z times a distribution function --------------------------------------------------------------------------


def silu(z: Array) -> Array:
    """The product z sigmoid(z): L + 4u relative, nothing cancels."""
    return z * sigmoid(z)


def silu_slope(z: Array) -> Array:
    """The product s(z) (1 + z s(-z)), s the sigmoid: cancels near the minimum of silu, so its error is not relative."""
    return sigmoid(z) * (1.0 + z * sigmoid(-z))


def silu_slope_error(z: Array) -> Array:
    """2L + 9u relative to s(z) (1 + |z| s(-z)), the same sum without cancellation."""
    return (2 * L + 12) * UNIT * sigmoid(z) * (1.0 + np.abs(z) * sigmoid(-z)) + FLOOR


def gauss(z: Array) -> Array:
    """exp(-z^2/2): 2L + 4u relative.

    With h = |z| rounded to a multiple of 1/16, h^2/2 is exact and the rest (|z| - h)(|z| + h)/2 is below 1.3, so its
    2u relative are below 3u absolute, hence 3u relative after exp. Beyond 40 the result is below FLOOR.
    """
    w = np.minimum(np.abs(z), 40.0)
    h = np.rint(w * 16.0) / 16.0
    return np.exp(-h * h / 2.0) * np.exp(-(w - h) * (w + h) / 2.0)


def normal(z: Array) -> Array:
    """Return the normal distribution function: 3L + 9u relative.

    Above -1: erfc(-z/sqrt 2)/2 (condition <= 1.6 there). Below: gauss(z) erfcx(-z/sqrt 2)/2, erfcx of condition < 1.
    """
    head: Array = erfc(-np.maximum(z, -1.0) * _ROOT_HALF)
    tail: Array = gauss(z) * erfcx(np.maximum(-z, 1.0) * _ROOT_HALF)
    return 0.5 * np.where(z < -1.0, tail, head)


def gelu(z: Array) -> Array:
    """The product of z and the normal distribution function, the exact form: 3L + 10u relative."""
    return z * normal(z)


def gelu_slope(z: Array) -> Array:
    """The sum of normal(z) and z density(z): cancels near the minimum of gelu, so its error is not relative."""
    return normal(z) + np.clip(z, -40.0, 40.0) * (gauss(z) / _ROOT_TWO_PI)


def gelu_slope_error(z: Array) -> Array:
    """3L + 12u relative to the same sum without cancellation."""
    return (3 * L + 14) * UNIT * (normal(z) + np.minimum(np.abs(z), 40.0) * (gauss(z) / _ROOT_TWO_PI)) + FLOOR
