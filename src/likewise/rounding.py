"""Outward rounding: how a float64 computation becomes a bound on a real number.

Two tools serve the whole package. `up` and `down` step a result outward by a few units in the last place, for
single operations and library functions. `dot_error` bounds what a floating-point sum of products may have lost,
whatever the order of summation: |fl(w.x) - w.x| <= gamma_n |w|.|x| with gamma_n = n u / (1 - n u) (Higham, *Accuracy
and Stability of Numerical Algorithms*, section 3.1), plus n times the smallest normal number against underflow.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

UNIT = 2.0**-53
TINY = float(np.finfo(np.float64).tiny)
# Library functions (exp, tanh, erf, ...) are taken to be right to 8 units in the last place; the best known
# implementations promise 1 to 4.
LIBRARY_ULPS = 8


def up(x: Array | float, ulps: int = 1) -> Array:
    """Return a number at least `ulps` units in the last place above `x`."""
    return _step(np.asarray(x, dtype=np.float64), ulps, np.inf)


def down(x: Array | float, ulps: int = 1) -> Array:
    """Return a number at least `ulps` units in the last place below `x`."""
    return _step(np.asarray(x, dtype=np.float64), ulps, -np.inf)


def _step(x: Array, ulps: int, towards: float) -> Array:
    for _ in range(ulps):
        x = np.nextafter(x, towards)
    return x


def dot_error(terms: int, magnitude: Array | float) -> Array:
    """Bound the rounding error of a float sum of `terms` products whose absolute values sum to `magnitude`.

    `magnitude` may itself be computed in floats: two terms more and a step up pay for that.
    """
    n = terms + 4
    gamma = n * UNIT / (1 - n * UNIT)
    return up(gamma * np.asarray(magnitude, dtype=np.float64) + n * TINY, 2)
