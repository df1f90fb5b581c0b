"""Domain: who can exist. Features in column order, a box, and one-hot groups of which exactly one entry is 1."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from likewise.errors import LARGEST, DomainError
from likewise.rounding import Array


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

    def number(self, value: float) -> str:
        """Return a number in the user's own units."""
        shown = self.offset + self.factor * value
        text = f"{shown:,.0f}" if abs(shown) >= 1000 else f"{shown:.4g}"
        return f"{text} {self.unit}".strip()

    def category(self, value: str) -> str:
        """Return the label of a category, or the category itself."""
        return dict(self.labels).get(value, value)


@dataclass(frozen=True, slots=True)
class Continuous:
    """A number between `low` and `high`, in the network's input units."""

    name: str
    low: float
    high: float
    display: Display = field(default=Display())

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise DomainError(f"feature {self.name!r}: needs finite low <= high, got {self.low} and {self.high}")
        if max(abs(self.low), abs(self.high)) > LARGEST:
            raise DomainError(f"feature {self.name!r}: bounds beyond {LARGEST:g} are not supported: rescale it")
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))

    @property
    def width(self) -> int:
        """How many columns the feature takes."""
        return 1


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


Feature = Continuous | OneHot


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Domain:
    """The set of people: a box of columns in which each one-hot group has exactly one 1.

    `lower` and `upper` bound every column; a category whose `upper` is 0 is not allowed.
    """

    features: tuple[Feature, ...]
    lower: Array
    upper: Array

    def __init__(self, features: Iterable[Feature]) -> None:
        listed = tuple(features)
        if not listed:
            raise DomainError("a domain needs at least one feature")
        for feature in listed:
            if not isinstance(feature, Continuous | OneHot):
                raise DomainError(f"a domain is made of Continuous and OneHot features, got {type(feature).__name__}")
        names = [f.name for f in listed]
        if len(set(names)) != len(names):
            raise DomainError(f"feature {next(n for n in names if names.count(n) > 1)!r} appears twice")
        low = [[f.low] if isinstance(f, Continuous) else [0.0] * f.width for f in listed]
        high = [[f.high] if isinstance(f, Continuous) else [1.0] * f.width for f in listed]
        self._set(listed, np.concatenate(low), np.concatenate(high))

    def _set(self, features: tuple[Feature, ...], lower: Array, upper: Array) -> None:
        for array in (lower, upper):
            array.setflags(write=False)
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    def __repr__(self) -> str:
        groups = len(self.groups)
        return f"Domain({len(self.features) - groups} continuous, {groups} one-hot, {self.width} columns)"

    @property
    def width(self) -> int:
        """How many columns a person has."""
        return sum(f.width for f in self.features)

    @property
    def spans(self) -> tuple[tuple[Feature, slice], ...]:
        """Each feature with its columns."""
        starts = np.cumsum([0, *(f.width for f in self.features)])
        return tuple((f, slice(int(a), int(a) + f.width)) for f, a in zip(self.features, starts, strict=False))

    @property
    def groups(self) -> tuple[slice, ...]:
        """The columns of each one-hot feature."""
        return tuple(span for f, span in self.spans if isinstance(f, OneHot))

    @property
    def continuous(self) -> np.ndarray:
        """The columns that are not part of a one-hot group."""
        mask = np.ones(self.width, dtype=bool)
        for span in self.groups:
            mask[span] = False
        return np.flatnonzero(mask)

    @property
    def digest(self) -> str:
        """SHA-256 of the features and their bounds."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()

    def at(self, person: ArrayLike) -> Domain:
        """Return the domain that holds this one person only."""
        x = self.require(person)
        return self._narrowed(x.copy(), x.copy())

    def sharing(self, person: Array) -> Domain:
        """Return the part of the domain with the categories of this person, continuous features left open."""
        lower, upper = self.lower.copy(), self.upper.copy()
        for group in self.groups:
            lower[group] = upper[group] = person[group]
        return self._narrowed(lower, upper)

    def only(self, group: slice, allowed: Array) -> Domain:
        """Return the part of the domain where a one-hot group takes one of the allowed categories."""
        lower, upper = self.lower.copy(), self.upper.copy()
        upper[group] = np.where(allowed, upper[group], 0.0)
        lower[group] = np.minimum(lower[group], upper[group])
        return self._narrowed(lower, upper)

    def _narrowed(self, lower: Array, upper: Array) -> Domain:
        narrow = object.__new__(Domain)
        narrow._set(self.features, lower, upper)
        return narrow

    def require(self, person: ArrayLike, what: str = "person") -> Array:
        """Return the person as a vector, or raise a DomainError that names the feature that is out of bounds."""
        try:
            x = np.array(person, dtype=np.float64)
        except (TypeError, ValueError):
            raise DomainError(f"{what}: expected {self.width} numbers") from None
        if x.shape != (self.width,):
            raise DomainError(f"{what}: expected {self.width} columns, got an array of shape {x.shape}")
        for feature, span in self.spans:
            part = x[span]
            if not ((part >= self.lower[span]) & (part <= self.upper[span])).all():
                raise DomainError(f"{what}: {feature.name} = {part.tolist()} is outside of the domain")
            if isinstance(feature, OneHot) and not (np.isin(part, (0.0, 1.0)).all() and part.sum() == 1.0):
                raise DomainError(f"{what}: {feature.name} needs exactly one 1 among its columns, got {part.tolist()}")
        return x

    def contains(self, person: Array) -> bool:
        """Tell whether the person can exist, exactly: no tolerance on bounds, one-hot entries 0 or 1."""
        try:
            self.require(person)
        except DomainError:
            return False
        return True

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n people: continuous features uniform, categories uniform among the allowed."""
        people = self.lower + (self.upper - self.lower) * rng.random((n, self.width))
        people = np.clip(people, self.lower, self.upper)
        for span in self.groups:
            allowed = np.flatnonzero(self.upper[span] > 0.5)
            people[:, span] = np.eye(span.stop - span.start)[rng.choice(allowed, size=n)]
        return people

    def encode(self, values: Mapping[str, float | str]) -> Array:
        """Return the vector of a person given as feature name -> number or category."""
        x = np.zeros(self.width)
        for feature, span in self.spans:
            if feature.name not in values:
                raise DomainError(f"feature {feature.name!r} is missing")
            value = values[feature.name]
            if isinstance(feature, Continuous):
                x[span] = float(value)
            elif str(value) not in feature.values:
                raise DomainError(f"feature {feature.name!r} has no category {value!r}; known: {list(feature.values)}")
            else:
                x[span.start + feature.values.index(str(value))] = 1.0
        return self.require(x)

    def decode(self, person: Array) -> dict[str, float | str]:
        """Return a person as feature name -> number or category, in the network's units."""
        return {
            f.name: float(person[s][0]) if isinstance(f, Continuous) else f.values[int(person[s].argmax())]
            for f, s in self.spans
        }

    def show(self, person: Array) -> list[tuple[str, str]]:
        """Return a person in the user's words: (title, number with unit or category label) per feature."""
        shown = []
        for f, s in self.spans:
            if isinstance(f, Continuous):
                text = f.display.number(float(person[s][0]))
            else:
                text = f.display.category(f.values[int(person[s].argmax())])
            shown.append((f.display.title or f.name, text))
        return shown

    def to_json(self) -> dict[str, Any]:
        """Return the domain as plain values."""
        features = []
        for f in self.features:
            shown = {"offset": f.display.offset, "factor": f.display.factor, "unit": f.display.unit}
            display = shown | {"labels": dict(f.display.labels), "title": f.display.title}
            if isinstance(f, Continuous):
                kind: dict[str, Any] = {"kind": "continuous", "low": f.low, "high": f.high}
            else:
                kind = {"kind": "one_hot", "values": list(f.values)}
            features.append({"name": f.name, **kind, "display": display})
        return {"features": features, "lower": self.lower.tolist(), "upper": self.upper.tolist()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Domain:
        """Return the domain described by plain values; the bounds are optional."""
        try:
            domain = cls(_feature(f) for f in data["features"])
            if "lower" in data:
                lower = np.array(data["lower"], dtype=np.float64)
                upper = np.array(data["upper"], dtype=np.float64)
                if lower.shape != (domain.width,) or upper.shape != lower.shape or not (lower <= upper).all():
                    raise DomainError("the domain's bounds do not fit its features")
                domain._set(domain.features, lower, upper)
        except (KeyError, TypeError, AttributeError) as error:
            raise DomainError(f"malformed domain: {type(error).__name__} at {error}") from None
        return domain


def _feature(data: Mapping[str, Any]) -> Feature:
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
    if kind == "one_hot":
        return OneHot(name, data["values"], display)
    raise DomainError(f"feature {name!r}: kind must be 'continuous' or 'one_hot', got {kind!r}")
