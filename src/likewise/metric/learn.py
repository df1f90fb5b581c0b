"""Learn who is similar from data: what gives the sensitive features away shall not count as a difference.

    learn_mahalanobis   directions from which the sensitive features can be guessed are projected out
    learn_weights       weight 0 on the sensitive features; less weight on what goes with them, if asked
    learn_embedding     compare people by what the first layer of a classifier makes of them

`sensitive` names features of the domain, or maps names to one value per person where their columns were dropped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from likewise.domain import Domain, OneHot
from likewise.errors import MetricError
from likewise.metric import _fit
from likewise.metric._form import Metric
from likewise.metric._summary import ease, plural, reach
from likewise.metric.embedding import Embedding
from likewise.metric.mahalanobis import Mahalanobis
from likewise.metric.weighted import WeightedLp
from likewise.network import Layer, Network
from likewise.rounding import Array

Sensitive = str | Sequence[str] | Mapping[str, ArrayLike]
NEGLIGIBLE = 1e-6  # a direction this much shorter than the longest is rounding, not data


class Learnt(NamedTuple):
    """A metric, and in words what it treats as similar: `metric, summary = learn_mahalanobis(...)`."""

    metric: Metric
    summary: str

    def __repr__(self) -> str:
        return f"Learnt({self.metric!r})"


@dataclass(frozen=True, slots=True, eq=False)
class Guess:
    """A sensitive feature to be guessed: class numbers (`classes` of them), or plain numbers if `classes` is 0."""

    name: str
    values: np.ndarray
    classes: int

    def columns(self) -> Array:
        """Return the feature as columns of numbers: one per class, or one."""
        return np.eye(self.classes)[self.values] if self.classes else self.values[:, None]

    def directions(self, X: Array, ridge: float) -> Array:
        """Return the directions of X from which the feature is guessed, each of length 1."""
        found = (
            _fit.softmax(X, self.values, self.classes, ridge) if self.classes else _fit.linear(X, self.values, ridge)
        )
        lengths = np.linalg.norm(found, axis=1)
        kept = lengths > NEGLIGIBLE * lengths.max(initial=0.0)
        units: Array = found[kept] / lengths[kept, None]
        return units


def learn_mahalanobis(X: ArrayLike, sensitive: Sensitive, domain: Domain, *, ridge: float = 1.0) -> Learnt:
    """Return S = I - P, P the projector on the directions from which the sensitive features can be guessed.

    Each sensitive feature is fitted on the columns of all the others: by softmax regression if it is a category, by
    least squares if it is a number, with the penalty ridge / 2 * |direction|^2. The directions of all fits together
    span what is projected out. Sensitive features that are columns themselves get zero rows and columns in S.
    """
    people = _people(X, domain)
    guesses, plain = _sensitive(people, sensitive, domain)
    if not (math.isfinite(ridge) and ridge > 0):
        raise MetricError(f"ridge must be a number above 0, got {ridge}")
    stacked = np.vstack([guess.directions(people[:, plain], ridge) for guess in guesses])
    _, sizes, rows = np.linalg.svd(stacked, full_matrices=False)
    basis = rows[sizes > NEGLIGIBLE * sizes.max(initial=0.0)]
    if len(basis) == plain.sum():
        raise MetricError("the sensitive features can be guessed from every direction: nothing is left to compare by")
    factor = Mahalanobis(np.eye(int(plain.sum())) - basis.T @ basis).matrix
    wide = np.zeros((len(factor), domain.width))
    wide[:, plain] = factor  # the sensitive columns are exactly 0, which factoring the whole of S would not give
    metric = Metric(wide, 2.0, "mahalanobis")
    names = ", ".join(guess.name for guess in guesses)
    head = f"Not counted: {plural(len(basis), 'direction')} of {plain.sum()} columns, from which one can guess {names}."
    free = _free(guesses, domain)
    return _learnt(metric, head, free, [*reach(metric, domain, free), *ease(metric, domain, people, free)])


def learn_weights(
    X: ArrayLike, sensitive: Sensitive, domain: Domain, *, p: float = math.inf, by: str = "uniform"
) -> Learnt:
    """Return a weighted lp metric: weight 0 on the columns of sensitive features, 1 on the others.

    With `by="correlation"` a column weighs 1 - R instead, R its multiple correlation with the sensitive features:
    what goes along with them counts less, and not at all if it is determined by them.
    """
    people = _people(X, domain)
    guesses, plain = _sensitive(people, sensitive, domain)
    if by not in ("uniform", "correlation"):
        raise MetricError(f"by must be 'uniform' or 'correlation', got {by!r}")
    weights = plain.astype(np.float64)
    if by == "correlation":
        weights[plain] -= _correlation(people[:, plain], np.hstack([guess.columns() for guess in guesses]))
    metric = WeightedLp(weights, p)
    how = {"uniform": "All other columns count alike.", "correlation": "Columns that go along with these count less."}
    head = f"Sensitive: {', '.join(guess.name for guess in guesses)}. {how[by]}"
    free = _free(guesses, domain)
    return _learnt(metric, head, free, ease(metric, domain, people, free))


def learn_embedding(
    X: ArrayLike,
    y: ArrayLike,
    domain: Domain,
    *,
    units: int = 10,
    activation: str = "identity",
    sensitive: Sensitive = (),
    hidden: int = 16,
    ridge: float = 1e-3,
    seed: int = 0,
) -> Learnt:
    """Return an embedding: the largest difference between the `units` outputs of a classifier's first layer.

    The classifier (that layer, `hidden` relu neurons, an output) is trained to tell y: classes if y is text or holds
    0 and 1 alone, numbers otherwise. Without the hidden layer, linear units would all tell the same thing. Each unit
    weighs 1 / its range among the people, so that eps is a share of that range; a unit that never moves weighs 0.
    The columns of sensitive features are not seen by the classifier: people may differ in them at distance 0.
    """
    people = _people(X, domain)
    guesses, plain = _sensitive(people, sensitive, domain) if sensitive else ([], np.ones(domain.width, dtype=bool))
    if units < 1 or hidden < 1:
        raise MetricError(f"units and hidden must be at least 1, got {units} and {hidden}")
    outcomes, classes = _outcomes(y, len(people))
    widths = (int(plain.sum()), units, hidden, classes or 1)
    acts = (activation, "relu", "identity")
    parts = _fit.train(people[:, plain], outcomes, acts, widths, seed, ridge)
    weight = np.zeros((units, domain.width))
    weight[:, plain] = parts[0]
    phi = Network([Layer(weight, parts[1], activation)])
    seen = phi(people).reshape(len(people), units)
    ranges = np.ptp(seen, axis=0)
    metric = Embedding(phi, WeightedLp(np.divide(1.0, ranges, out=np.zeros(units), where=ranges > 0)))
    head = f"People are compared by {units} {activation} units, each in shares of its range."
    head = f"{head} {_quality(parts, seen, outcomes)}"
    free = _free(guesses, domain)
    return _learnt(metric, head, free, ease(metric, domain, people, free))


# ------------------------------------------------------------------------------------------------- at the door


def _people(X: ArrayLike, domain: Domain) -> Array:
    try:
        people = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        raise MetricError(f"X must be numbers, one row of {domain.width} columns per person") from None
    if people.ndim != 2 or people.shape[1] != domain.width or len(people) < 2:
        raise MetricError(f"X must be two or more rows of {domain.width} columns, got an array of shape {people.shape}")
    if not np.isfinite(people).all():
        row, column = np.argwhere(~np.isfinite(people))[0]
        raise MetricError(f"X[{row}, {column}] is {people[row, column]}: a metric is learnt from finite numbers")
    return people


def _sensitive(people: Array, sensitive: Sensitive, domain: Domain) -> tuple[list[Guess], np.ndarray]:
    """Return what is to be guessed, and which columns it may be guessed from."""
    names = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    if not names or not all(isinstance(name, str) for name in names):
        raise MetricError("sensitive must name features of the domain, or map names to one value per person")
    given = sensitive if isinstance(sensitive, Mapping) else {}
    spans = {feature.name: (feature, span) for feature, span in domain.spans}
    plain = np.ones(domain.width, dtype=bool)
    guesses = []
    for name in names:
        if name not in spans and name not in given:
            raise MetricError(
                f"sensitive feature {name!r} is not in the domain\n"
                f"if its column was dropped, give its values: {{{name!r}: values}}"
            )
        if name in spans:
            feature, span = spans[name]
            plain[span] = False
        if name in given:
            guesses.append(_given(name, given[name], len(people)))
        else:
            part = people[:, span]
            guesses.append(
                _categories(name, part.argmax(axis=1)) if isinstance(feature, OneHot) else _numbers(name, part[:, 0])
            )
    if not plain.any():
        raise MetricError("every feature is sensitive: nothing is left to compare people by")
    return guesses, plain


def _given(name: str, values: ArrayLike, people: int) -> Guess:
    array = np.asarray(values)
    if array.ndim not in (1, 2) or len(array) != people:
        raise MetricError(f"sensitive feature {name!r}: expected {people} values, got an array of shape {array.shape}")
    if array.ndim == 2:
        if not (np.isin(array, (0, 1)).all() and (array.sum(axis=1) == 1).all()):
            raise MetricError(f"sensitive feature {name!r}: several columns must be one-hot, a single 1 in each row")
        return _categories(name, array.argmax(axis=1))
    return (
        _numbers(name, array.astype(np.float64)) if array.dtype.kind in "fiu" else _categories(name, array.astype(str))
    )


def _numbers(name: str, values: Array) -> Guess:
    if not np.isfinite(values).all():
        raise MetricError(f"sensitive feature {name!r} has a value that is not a finite number")
    return Guess(name, values, 0) if len(np.unique(values)) > 2 else _categories(name, values)


def _categories(name: str, values: np.ndarray) -> Guess:
    classes, codes = np.unique(values, return_inverse=True)
    if len(classes) < 2:
        raise MetricError(f"sensitive feature {name!r} has the same value for everyone: nothing can be learnt from it")
    return Guess(name, codes, len(classes))


def _outcomes(y: ArrayLike, people: int) -> tuple[np.ndarray, int]:
    """Return class numbers and how many classes there are, or numbers (scaled to variance 1) and 0."""
    array = np.asarray(y)
    if array.shape != (people,):
        raise MetricError(f"y must be {people} values, got an array of shape {array.shape}")
    if array.dtype.kind in "fiu" and not np.isfinite(array).all():
        raise MetricError("y has a value that is not a finite number")
    classes, codes = np.unique(array if array.dtype.kind in "fiu" else array.astype(str), return_inverse=True)
    if len(classes) < 2:
        raise MetricError("y is the same for everyone: nothing can be learnt from it")
    if array.dtype.kind in "fiu" and not np.isin(classes, (0, 1)).all():
        return (array - array.mean()) / array.std(), 0
    return codes.astype(np.int64), len(classes)


# ------------------------------------------------------------------------------------------------- in numbers


def _correlation(columns: Array, sensitive: Array) -> Array:
    """Return each column's multiple correlation, 0 to 1, with the sensitive columns."""
    centred, given = columns - columns.mean(axis=0), sensitive - sensitive.mean(axis=0)
    fitted = given @ np.linalg.lstsq(given, centred, rcond=None)[0]
    total = np.linalg.norm(centred, axis=0)
    shares = np.divide(np.linalg.norm(fitted, axis=0), total, out=np.zeros_like(total), where=total > 0)
    found: Array = np.minimum(shares, 1.0)
    return found


def _quality(parts: Sequence[Array], seen: Array, outcomes: np.ndarray) -> str:
    """Say how well the classifier tells the outcome from the units, beside what a guess would reach."""
    guesses = np.maximum(seen @ parts[2].T + parts[3], 0.0) @ parts[4].T + parts[5]
    if outcomes.dtype.kind == "f":
        return f"They explain {1 - float(((guesses[:, 0] - outcomes) ** 2).mean()):.0%} of the target's variance."
    right, most = (guesses.argmax(axis=1) == outcomes).mean(), np.bincount(outcomes).max() / len(outcomes)
    return f"From these {right:.1%} of people are classified rightly, by the most frequent class {most:.1%}."


def _free(guesses: Sequence[Guess], domain: Domain) -> list[str]:
    inside = {feature.name for feature in domain.features}
    return [guess.name for guess in guesses if guess.name in inside]


def _learnt(metric: Metric, head: str, free: list[str], rest: list[str]) -> Learnt:
    freed = [f"Free to differ: {', '.join(free)}."] if free else []
    return Learnt(metric, "\n".join([head, *freed, *rest]))
