"""What a person is made of: numbers, whole steps, categories, and how each is shown to people."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from likewise.errors import LARGEST, DomainError
from likewise.rounding import Array

MOST_STEPS = 2**31
WHOLE = 1e-9  # how far, in parts of itself, a number may be from a whole one that it stands for
APART = 16  # steps need this many units in the last place, for float64 to tell neighbours apart


@dataclass(frozen=True, slots=True)
class Display:
    """How a value is shown to people: offset + factor * value, with a unit, or a label per category."""

    offset: float = 0.0
    factor: float = 1.0
    unit: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    title: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "offset", float(self.offset))
        object.__setattr__(self, "factor", float(self.factor))
        if not (math.isfinite(self.offset) and math.isfinite(self.factor)):
            raise DomainError(f"a display needs a finite offset and factor, got {self.offset} and {self.factor}")

    def number(self, value: float) -> str:
        """Return a number in the user's own units."""
        shown = self.offset + self.factor * value
        if abs(shown) <= 1e-9 * abs(self.offset):  # what is left when a number cancels its offset
            shown = 0.0
        text = f"{shown:,.0f}" if abs(shown) >= 1000 else f"{shown:.4g}"
        return f"{text} {self.unit}".strip()

    def category(self, value: str) -> str:
        """Return the label of a category, or the category itself."""
        return dict(self.labels).get(value, value)


@dataclass(frozen=True, slots=True)
class Continuous:
    """A number between `low` and `high`, in the network's input units; equal ones fix it."""

    name: str
    low: float
    high: float
    display: Display = field(default=Display())

    def __post_init__(self) -> None:
        low, high = _ends(self.name, self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def width(self) -> int:
        """How many columns the feature takes."""
        return 1

    def text(self, value: float) -> str:
        """Return a value as people read it."""
        return self.display.number(value)


@dataclass(frozen=True, slots=True)
class Integer:
    """A number that takes the values low + k * step up to `high`, in the network's input units.

    The step covers integers that were scaled: ages 19 to 75 as 0 to 1 have the step 1/56. A value is the float
    `low + k * step`, exactly; `high` is kept as the last of them.
    """

    name: str
    low: float
    high: float
    step: float = 1.0
    display: Display = field(default=Display())

    def __post_init__(self) -> None:
        low, high = _ends(self.name, self.low, self.high)
        step = _float(self.step)
        if not (math.isfinite(step) and step > 0.0):
            raise DomainError(f"feature {self.name!r}: needs a finite step above 0, got {self.step!r}")
        ratio = (high - low) / step
        if ratio > MOST_STEPS:
            raise DomainError(f"feature {self.name!r}: more than {MOST_STEPS} steps of {step:g}: use Continuous")
        count, ulp = round(ratio), math.ulp(max(abs(low), abs(high)))
        if abs(ratio - count) > max(min(WHOLE * count, 1e-3), 4 * ulp / step):
            raise DomainError(
                f"feature {self.name!r}: {low:g} to {high:g} is no whole number of steps of {step:g}, but {ratio:.12g}"
            )
        if count and step < APART * ulp:
            raise DomainError(
                f"feature {self.name!r}: steps of {step:g} are lost in float64 beside {low:g} to {high:g}"
            )
        object.__setattr__(self, "low", low + 0.0)
        object.__setattr__(self, "step", step)
        object.__setattr__(self, "high", low + count * step)

    @property
    def width(self) -> int:
        """How many columns the feature takes."""
        return 1

    @property
    def count(self) -> int:
        """How many steps there are from `low` to `high`; there is one value more."""
        return round((self.high - self.low) / self.step)

    def nearest(self, values: Array) -> Array:
        """Return, for each number, the value of the feature next to it."""
        k = np.clip(np.rint((np.asarray(values, dtype=np.float64) - self.low) / self.step), 0.0, float(self.count))
        return np.asarray(self.low + k * self.step)

    def within(self, low: float, high: float) -> tuple[float, float] | None:
        """Return the least and the largest value from low to high, or None if there is none."""
        if not (low <= high and low <= self.high and high >= self.low):
            return None
        first = 0 if low <= self.low else max(0, math.floor((low - self.low) / self.step) - 1)
        last = self.count if high >= self.high else min(self.count, math.ceil((high - self.low) / self.step) + 1)
        while first <= last and self.low + first * self.step < low:
            first += 1
        while first <= last and self.low + last * self.step > high:
            last -= 1
        return (self.low + first * self.step, self.low + last * self.step) if first <= last else None

    def text(self, value: float) -> str:
        """Return a value as people read it: without decimals if it is whole in their units."""
        shown = self.display.offset + self.display.factor * value
        if abs(shown - round(shown)) > WHOLE * max(1.0, abs(shown)):
            return self.display.number(value)
        return f"{round(shown):,d} {self.display.unit}".strip()


@dataclass(frozen=True, slots=True, init=False)
class OneHot:
    """One of several categories, as consecutive columns of which exactly one is 1."""

    name: str
    values: tuple[str, ...]
    display: Display

    def __init__(self, name: str, values: Sequence[str], display: Display = Display()) -> None:  # noqa: B008
        if isinstance(values, str) or not values or len(set(values)) != len(values):
            raise DomainError(f"feature {name!r}: needs a list of distinct categories, got {values!r}")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "values", tuple(str(v) for v in values))
        object.__setattr__(self, "display", display)

    @property
    def width(self) -> int:
        """How many columns the feature takes."""
        return len(self.values)


Feature = Continuous | Integer | OneHot


def _float(value: Any) -> float:
    """Return the number, or nan for what is none."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _ends(name: str, low: Any, high: Any) -> tuple[float, float]:
    first, last = _float(low), _float(high)
    if not (math.isfinite(first) and math.isfinite(last) and first <= last):
        raise DomainError(f"feature {name!r}: needs finite low <= high, got {low} and {high}")
    if max(abs(first), abs(last)) > LARGEST:
        raise DomainError(f"feature {name!r}: bounds beyond {LARGEST:g} are not supported: rescale it")
    return first, last


def feature_to_json(feature: Feature) -> dict[str, Any]:
    """Return a feature as plain values."""
    shown = feature.display
    display = {"offset": shown.offset, "factor": shown.factor, "unit": shown.unit}
    kind: dict[str, Any]
    if isinstance(feature, OneHot):
        kind = {"kind": "one_hot", "values": list(feature.values)}
    elif isinstance(feature, Integer):
        kind = {"kind": "integer", "low": feature.low, "high": feature.high, "step": feature.step}
    else:
        kind = {"kind": "continuous", "low": feature.low, "high": feature.high}
    return {"name": feature.name, **kind, "display": display | {"labels": dict(shown.labels), "title": shown.title}}


def feature_from_json(data: Mapping[str, Any]) -> Feature:
    """Return the feature described by plain values."""
    d = dict(data.get("display") or {})
    labels = tuple((str(k), str(v)) for k, v in dict(d.get("labels") or {}).items())
    display = Display(
        float(d.get("offset", 0.0)),
        float(d.get("factor", 1.0)),
        str(d.get("unit", "")),
        labels,
        str(d.get("title", "")),
    )
    name, kind = str(data["name"]), data.get("kind")
    if kind == "continuous":
        return Continuous(name, float(data["low"]), float(data["high"]), display)
    if kind == "integer":
        return Integer(name, float(data["low"]), float(data["high"]), float(data.get("step", 1.0)), display)
    if kind == "one_hot":
        return OneHot(name, data["values"], display)
    raise DomainError(f"feature {name!r}: kind must be 'continuous', 'integer' or 'one_hot', got {kind!r}")
