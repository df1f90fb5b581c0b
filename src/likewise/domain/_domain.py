"""Domain: the set of people, as one frozen value, and its parts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from likewise.domain._constraints import in_words, read_constraints, satisfied
from likewise.domain._features import (
    WHOLE,
    Continuous,
    Feature,
    Integer,
    OneHot,
    feature_from_json,
    feature_to_json,
)
from likewise.domain._layout import Layout, layout
from likewise.domain._limits import categories_among, numbers_within
from likewise.domain._people import person, sample
from likewise.errors import DomainError
from likewise.rounding import Array

NEAR = 1e-12  # the relative tolerance of `inside`


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Domain:
    """The set of people: a box of columns, whole steps, one 1 in each one-hot group, and constraints A x <= b.

    `lower` and `upper` bound every column; a category whose `upper` is 0 is not allowed, and the bounds of an integer
    column are values of its own. `constraints` are pairs (A, b) with one row or several, or ({name: number}, b), where
    the column of a category is called "feature=category"; they are kept as one pair of arrays.
    """

    features: tuple[Feature, ...]
    lower: Array
    upper: Array
    constraints: tuple[Array, Array]
    _layout: Layout

    def __init__(self, features: Iterable[Feature], constraints: Iterable[Any] = ()) -> None:
        listed = tuple(features)
        if not listed:
            raise DomainError("a domain needs at least one feature")
        for feature in listed:
            if not isinstance(feature, Continuous | Integer | OneHot):
                kinds = "Continuous, Integer and OneHot"
                raise DomainError(f"a domain is made of {kinds} features, got {type(feature).__name__}")
        names = [f.name for f in listed]
        if len(set(names)) != len(names):
            raise DomainError(f"feature {next(n for n in names if names.count(n) > 1)!r} appears twice")
        low = [[0.0] * f.width if isinstance(f, OneHot) else [f.low] for f in listed]
        high = [[1.0] * f.width if isinstance(f, OneHot) else [f.high] for f in listed]
        columns = layout(listed)
        read = read_constraints(constraints, columns.names)
        self._set(listed, np.concatenate(low), np.concatenate(high), read, columns)

    def _set(
        self,
        features: tuple[Feature, ...],
        lower: Array,
        upper: Array,
        constraints: tuple[Array, Array],
        columns: Layout,
    ) -> None:
        for array in (lower, upper, *constraints):
            array.setflags(write=False)
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        object.__setattr__(self, "constraints", constraints)
        object.__setattr__(self, "_layout", columns)

    def __repr__(self) -> str:
        integers = f"{len(self.integers)} integer, " if len(self.integers) else ""
        rows = len(self.constraints[1])
        constraints = f", {rows} constraint{'s' * (rows > 1)}" if rows else ""
        kinds = f"{len(self.continuous)} continuous, {integers}{len(self.groups)} one-hot"
        return f"Domain({kinds}, {self.width} columns{constraints})"

    @property
    def width(self) -> int:
        """How many columns a person has."""
        return self._layout.width

    @property
    def spans(self) -> tuple[tuple[Feature, slice], ...]:
        """Each feature with its columns."""
        return self._layout.spans

    @property
    def columns(self) -> tuple[str, ...]:
        """The name of each column: that of its feature, or feature=category."""
        return self._layout.names

    @property
    def groups(self) -> tuple[slice, ...]:
        """The columns of each one-hot feature."""
        return self._layout.groups

    @property
    def continuous(self) -> np.ndarray:
        """The columns of continuous features."""
        return self._layout.continuous

    @property
    def integers(self) -> np.ndarray:
        """The columns of integer features."""
        return self._layout.integers

    @property
    def numbers(self) -> np.ndarray:
        """The columns that are not part of a one-hot group: continuous and integer ones."""
        return self._layout.numbers

    @property
    def steps(self) -> Array:
        """The step of each integer column; 0 for all other columns."""
        return self._layout.steps

    @property
    def grid_errors(self) -> Array:
        """How far an integer's float value may be from low + k step in real arithmetic; 0 for all other columns.

        k step errs by one unit in the last place of the grid's largest value, however narrow this part of it is, and
        the sum by half of one: four units cover two values.
        """
        return np.where(self.steps > 0.0, 4 * np.spacing(self._layout.sizes), 0.0)

    @property
    def digest(self) -> str:
        """SHA-256 of the features, their bounds and the constraints."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()

    def at(self, person: ArrayLike) -> Domain:
        """Return the domain that holds this one person only."""
        x = self.require(person)
        return self._narrowed(x.copy(), x.copy())

    def sharing(self, person: Array) -> Domain:
        """Return the part of the domain with the categories of this person, numbers left open."""
        lower, upper = self.lower.copy(), self.upper.copy()
        for group in self.groups:
            lower[group] = upper[group] = person[group]
        return self._narrowed(lower, upper)

    def holding(self, person: Array) -> Domain:
        """Return the part of the domain with the categories and the integers of this person."""
        lower, upper = self.lower.copy(), self.upper.copy()
        held = np.setdiff1d(np.arange(self.width), self.continuous)
        lower[held] = upper[held] = person[held]
        return self._narrowed(lower, upper)

    def beyond(self, column: int, value: float, is_below: bool) -> Domain | None:
        """Return the part of the domain where an integer column is below (or above) the value, or None if none is."""
        lower, upper = self.lower.copy(), self.upper.copy()
        if is_below:
            upper[column] = min(upper[column], value)
        else:
            lower[column] = max(lower[column], value)
        some = self._integer(column).within(float(lower[column]), float(upper[column])) is not None
        return self._narrowed(lower, upper) if some else None

    def only(self, group: slice, allowed: Array) -> Domain:
        """Return the part of the domain where a one-hot group takes one of the allowed categories."""
        lower, upper = self.lower.copy(), self.upper.copy()
        upper[group] = np.where(allowed, upper[group], 0.0)
        lower[group] = np.minimum(lower[group], upper[group])
        return self._narrowed(lower, upper)

    def where(self, **limits: Any) -> Domain:
        """Return the sub-population within limits in the units that people read, through the display transform.

        A number takes (low, high), ends included, or one number; a one-hot feature a list of categories, by value or
        label, or one of them: `domain.where(age=(25, 40), job=["a", "b"])`.
        """
        known = {feature.name: (feature, span) for feature, span in self.spans}
        lower, upper = self.lower.copy(), self.upper.copy()
        for name, limit in limits.items():
            if name not in known:
                raise DomainError(f"the domain has no feature {name!r}; known: {', '.join(known)}")
            feature, span = known[name]
            if isinstance(feature, OneHot):
                upper[span] = categories_among(feature, limit, upper[span] > 0.5)
                lower[span] = np.minimum(lower[span], upper[span])
            else:
                low, high = float(lower[span.start]), float(upper[span.start])
                lower[span], upper[span] = numbers_within(feature, limit, low, high)
        return self._narrowed(lower, upper)

    def _narrowed(self, lower: Array, upper: Array) -> Domain:
        """Return the part of the domain in a smaller box, drawn in to values of the integer columns."""
        c = self.integers
        for j in c[(lower[c] != self.lower[c]) | (upper[c] != self.upper[c])]:
            feature = self._integer(int(j))
            found = feature.within(float(lower[j]), float(upper[j]))
            if found is None:
                raise DomainError(f"feature {feature.name!r} has no value from {lower[j]:g} to {upper[j]:g}")
            lower[j], upper[j] = found
        narrow = object.__new__(Domain)
        narrow._set(self.features, lower, upper, self.constraints, self._layout)
        return narrow

    def _integer(self, column: int) -> Integer:
        feature = next((f for f, span in self.spans if span.start == column), None)
        if not isinstance(feature, Integer):
            raise DomainError(f"column {column} is not one of an integer feature")
        return feature

    def snap(self, people: Array) -> Array:
        """Return people, or one of them, clipped to the box, integer columns at the next value; categories as given."""
        clipped = np.clip(np.asarray(people, dtype=np.float64), self.lower, self.upper)
        return np.clip(self._layout.on_grid(clipped), self.lower, self.upper)

    def require(self, person: ArrayLike, what: str = "person") -> Array:
        """Return the person as a vector, or raise a DomainError that names the feature or constraint at fault."""
        try:
            x = np.array(person, dtype=np.float64)
        except (TypeError, ValueError):
            raise DomainError(f"{what}: expected {self.width} numbers") from None
        if x.shape != (self.width,):
            raise DomainError(f"{what}: expected {self.width} columns, got an array of shape {x.shape}")
        for feature, span in self.spans:
            if isinstance(feature, Continuous) and self.lower[span.start] <= x[span.start] <= self.upper[span.start]:
                continue
            part = x[span]
            if not ((part >= self.lower[span]) & (part <= self.upper[span])).all():
                raise DomainError(f"{what}: {feature.name} = {part.tolist()} is outside of the domain")
            if isinstance(feature, OneHot) and not (((part == 0.0) | (part == 1.0)).all() and part.sum() == 1.0):
                raise DomainError(f"{what}: {feature.name} needs exactly one 1 among its columns, got {part.tolist()}")
            if isinstance(feature, Integer) and feature.nearest(part)[0] != part[0]:
                raise DomainError(
                    f"{what}: {feature.name} = {part[0]!r} is no whole number of steps of {feature.step:g} "
                    f"from {feature.low:g}; the next value is {float(feature.nearest(part)[0])!r}"
                )
        A, b = self.constraints
        for j in np.flatnonzero(~satisfied(A, b, x[None])[0]):
            words = in_words(A[j], float(b[j]), self.columns)
            raise DomainError(f"{what}: constraint {j + 1} ({words}) does not hold: {float(A[j] @ x):.12g}")
        return x

    def contains(self, person: Array) -> bool:
        """Tell whether the person can exist, exactly: no tolerance on bounds, steps, categories or constraints."""
        if person.shape == (self.width,) and not ((person >= self.lower) & (person <= self.upper)).all():
            return False
        try:
            self.require(person)
        except DomainError:
            return False
        return True

    def inside(self, people: Array) -> np.ndarray:
        """Tell of each of many people whether they can exist, in floats up to a relative 1e-12.

        Fast, and for candidates of a search only: `contains` decides who exists.
        """
        x = np.asarray(people, dtype=np.float64)
        near = NEAR * np.maximum(np.abs(self.lower), np.abs(self.upper))
        for group in self.groups:
            near[group] = NEAR
        A, b = self.constraints
        with np.errstate(invalid="ignore", over="ignore"):
            good = ((x >= self.lower - near) & (x <= self.upper + near)).all(axis=-1)
            good &= (np.abs(x - self._layout.on_grid(x)) <= near)[..., self.integers].all(axis=-1)
            good &= (x @ A.T - b <= NEAR * (np.abs(x) @ np.abs(A).T + np.abs(b))).all(axis=-1)
            for group in self.groups:
                ones = np.rint(x[..., group])
                good &= (np.abs(x[..., group] - ones) <= NEAR).all(axis=-1) & (ones.sum(axis=-1) == 1.0)
        return np.asarray(good)

    def person(self) -> Array:
        """Return some person who exists; a DomainError says which constraints leave nobody."""
        return person(self)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n people who exist: numbers uniform, categories uniform among the allowed, constraints by rejection.

        Where constraints reject nearly everyone, the rest are moved versions, or repeats, of people who exist.
        """
        return sample(self, n, rng)

    def encode(self, values: Mapping[str, float | str]) -> Array:
        """Return the vector of a person given as feature name -> number or category, in the network's units.

        An integer's number is put on its exact value if it is within rounding of it.
        """
        x = np.zeros(self.width)
        for feature, span in self.spans:
            if feature.name not in values:
                raise DomainError(f"feature {feature.name!r} is missing")
            value = values[feature.name]
            if not isinstance(feature, OneHot):
                x[span] = _number(feature, value)
            elif str(value) not in feature.values:
                raise DomainError(f"feature {feature.name!r} has no category {value!r}; known: {list(feature.values)}")
            else:
                x[span.start + feature.values.index(str(value))] = 1.0
        return self.require(x)

    def decode(self, person: Array) -> dict[str, float | str]:
        """Return a person as feature name -> number or category, in the network's units."""
        return {
            f.name: f.values[int(person[s].argmax())] if isinstance(f, OneHot) else float(person[s][0])
            for f, s in self.spans
        }

    def show(self, person: Array) -> list[tuple[str, str]]:
        """Return a person in the user's words: (title, number with unit or category label) per feature."""
        shown = []
        for f, s in self.spans:
            if isinstance(f, OneHot):
                text = f.display.category(f.values[int(person[s].argmax())])
            else:
                text = f.text(float(person[s][0]))
            shown.append((f.display.title or f.name, text))
        return shown

    def to_json(self) -> dict[str, Any]:
        """Return the domain as plain values; there are constraints in it only if the domain has some."""
        A, b = self.constraints
        plain = {
            "features": [feature_to_json(f) for f in self.features],
            "lower": self.lower.tolist(),
            "upper": self.upper.tolist(),
        }
        return plain | ({"constraints": {"A": A.tolist(), "b": b.tolist()}} if len(b) else {})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Domain:
        """Return the domain described by plain values; the bounds and the constraints are optional."""
        try:
            rows = data.get("constraints")
            constraints = [] if rows is None else [(rows["A"], rows["b"])]
            domain = cls((feature_from_json(f) for f in data["features"]), constraints)
            if "lower" in data:
                lower = np.array(data["lower"], dtype=np.float64)
                upper = np.array(data["upper"], dtype=np.float64)
                if lower.shape != (domain.width,) or upper.shape != lower.shape or not (lower <= upper).all():
                    raise DomainError("the domain's bounds do not fit its features")
                domain = domain._narrowed(lower, upper)
        except DomainError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise DomainError(f"malformed domain: {type(error).__name__} at {error}") from None
        return domain


def _number(feature: Continuous | Integer, value: float | str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise DomainError(f"feature {feature.name!r} needs a number, got {str(value)[:60]!r}") from None
    if isinstance(feature, Integer):
        near = float(feature.nearest(np.array(number)))
        return near if abs(number - near) <= WHOLE * feature.step + 4 * np.spacing(abs(near)) else number
    return number
