"""Sub-populations: a limit in the units that people read becomes columns' bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from likewise.domain._features import WHOLE, Continuous, Integer, OneHot
from likewise.errors import DomainError

ULPS = 4  # what a display transform may lose to rounding, in units in the last place


def numbers_within(feature: Continuous | Integer, limit: Any, lower: float, upper: float) -> tuple[float, float]:
    """Return the part of [lower, upper] whose shown values lie in the limit: (low, high) or one number.

    Ends are computed exactly and rounded once. An integer's value counts if it is shown within the limit up to a
    billionth of its step, so that 25 means 25 although its scaled value is rounded.
    """
    low, high = _limit(feature.name, limit)
    display = feature.display
    if display.factor == 0.0:
        if low <= display.offset <= high:
            return lower, upper
        raise _nobody(feature, limit, lower, upper)
    ends = [None if math.isinf(end) else _value(feature, end) for end in (low, high)]
    first, last = ends if display.factor > 0.0 else reversed(ends)
    box = Fraction(lower), Fraction(upper)
    first, last = box[0] if first is None else first, box[1] if last is None else last
    slack = _slack(feature, [end for end in (low, high) if math.isfinite(end)], max(abs(lower), abs(upper)))
    if isinstance(feature, Integer):
        tolerance = min(Fraction(WHOLE * feature.step) + slack, Fraction(feature.step) / 4)
        first, last = max(first - tolerance, box[0]), min(last + tolerance, box[1])
        found = feature.within(float(first), float(last)) if first <= last else None
        if found is None:
            raise _nobody(feature, limit, lower, upper)
        return found
    first = box[1] if box[1] < first <= box[1] + slack else max(first, box[0])
    last = box[0] if box[0] - slack <= last < box[0] else min(last, box[1])
    if first > last:
        raise _nobody(feature, limit, lower, upper)
    return float(first), float(last)


def _value(feature: Continuous | Integer, shown: float) -> Fraction:
    return (Fraction(shown) - Fraction(feature.display.offset)) / Fraction(feature.display.factor)


def _slack(feature: Continuous | Integer, ends: list[float], size: float) -> Fraction:
    largest = max([abs(feature.display.offset), *(abs(end) for end in ends)])
    shown = Fraction(ULPS * math.ulp(largest)) / abs(Fraction(feature.display.factor))
    return shown + Fraction(ULPS * math.ulp(size))


def _limit(name: str, limit: Any) -> tuple[float, float]:
    ends = tuple(limit) if isinstance(limit, tuple | list | np.ndarray) and np.ndim(limit) == 1 else (limit, limit)
    if len(ends) != 2 or any(isinstance(end, str | bytes | bool | np.bool_) for end in ends):
        raise DomainError(f"feature {name!r}: a limit is (low, high) or a number, got {str(limit)[:60]!r}")
    try:
        low, high = float(ends[0]), float(ends[1])
    except (TypeError, ValueError, OverflowError):
        raise DomainError(f"feature {name!r}: a limit is (low, high) or a number, got {str(limit)[:60]!r}") from None
    if not low <= high or low == math.inf or high == -math.inf:
        raise DomainError(f"feature {name!r}: the range from {low:g} to {high:g} is empty")
    return low, high


def _nobody(feature: Continuous | Integer, limit: Any, lower: float, upper: float) -> DomainError:
    ends = [feature.text(value) for value in (lower, upper)]
    first, last = reversed(ends) if feature.display.factor < 0.0 else ends
    values = f" in steps of {abs(feature.display.factor * feature.step):.6g}" if isinstance(feature, Integer) else ""
    return DomainError(f"feature {feature.name!r}: nobody is within {limit!r}; it goes from {first} to {last}{values}")


def categories_among(feature: OneHot, limit: Any, allowed: np.ndarray) -> np.ndarray:
    """Return which of the allowed categories the limit names, by value or label: a list, or one of them."""
    listed = [limit] if isinstance(limit, str) or not isinstance(limit, Iterable) else list(limit)
    if not listed:
        raise DomainError(f"feature {feature.name!r}: the list of categories is empty")
    chosen = np.zeros(feature.width, dtype=bool)
    labels = [feature.display.category(value) for value in feature.values]
    for name in map(str, listed):
        among = feature.values if name in feature.values else labels
        if name not in among:
            raise DomainError(f"feature {feature.name!r} has no category {name!r}; known: {list(feature.values)}")
        chosen |= np.array([value == name for value in among])
    if not (chosen & allowed).any():
        left = [value for value, kept in zip(feature.values, allowed, strict=True) if kept]
        raise DomainError(f"feature {feature.name!r}: nobody is within {listed}; left are: {left}")
    return np.asarray(chosen & allowed)
