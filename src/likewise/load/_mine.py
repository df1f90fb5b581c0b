"""Look for values that never come together in the data, though by chance they would: candidates for constraints.

A rule is a row of A x <= b that everyone in the data obeys. Two categories exclude each other: x_a + x_b <= 1. A
category goes with a part of a number's range only: x_j >= low + (seen - low) x_a, and the same from above. It is
suggested if independence would make it so rare an accident that none is expected among all rules looked at.

Sensitive features are left alone: a rule such as "no woman is a pilot" would take the very people out of the domain
with whom the others are to be compared.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from likewise.domain import Continuous, Domain, Integer, OneHot
from likewise.rounding import Array

Number = Continuous | Integer
CHANCE = 1e-3  # of a single false suggestion, were all features independent


@dataclass(frozen=True, slots=True)
class Rule:
    """A suggested constraint on (column, coefficient) terms, and how many people would break it by chance."""

    terms: tuple[tuple[int, float], ...]
    at_most: float
    text: str
    expected: float


def mine(X: Array, domain: Domain, sensitive: Collection[str] = ()) -> list[Rule]:
    """Return the rules that everyone in X obeys against expectation, the most surprising first."""
    named = [text.replace("=", " = ", 1) for text in domain.columns]
    free = [(f, s) for f, s in domain.spans if f.name not in sensitive]
    categories = [i for f, s in free if isinstance(f, OneHot) for i in range(s.start, s.stop)]
    numbers = [(f, s.start) for f, s in free if not isinstance(f, OneHot)]
    needed = math.log(max(len(categories) * (len(categories) + 4 * len(numbers)), 2) / (2 * CHANCE))
    rules = _pairs(X, domain, categories, needed)
    for feature, j in numbers:
        ordered = np.sort(X[:, j])
        for a in categories:
            inside = X[X[:, a] == 1.0, j]
            if len(inside):
                rules += _ranges(inside, ordered, (a, named[a]), (j, feature), needed)
    return sorted(rules, key=lambda rule: (-rule.expected, rule.text))


def rows(rules: Sequence[Rule], width: int) -> tuple[Array, Array]:
    """Return the rules as A and b of A x <= b."""
    A = np.zeros((len(rules), width))
    for i, rule in enumerate(rules):
        for column, coefficient in rule.terms:
            A[i, column] = coefficient
    return A, np.array([rule.at_most for rule in rules])


def _pairs(X: Array, domain: Domain, categories: list[int], needed: float) -> list[Rule]:
    """Return the pairs of categories, of different features, that nobody has."""
    columns = np.array(categories, dtype=int)
    group = np.array([next(i for i, s in enumerate(domain.groups) if s.start <= c < s.stop) for c in categories])
    part = X[:, columns]
    counts = part.sum(axis=0)
    expected = np.outer(counts, counts) / len(X)
    found = (part.T @ part == 0) & (group[:, None] < group[None, :]) & (expected >= needed)
    named = [text.replace("=", " = ", 1) for text in domain.columns]
    rules = []
    for i, j in np.argwhere(found).tolist():
        a, b, often = categories[i], categories[j], float(expected[i, j])
        text = f"nobody with {named[a]} and {named[b]}: by chance {often:,.0f}"
        rules.append(Rule(((a, 1.0), (b, 1.0)), 1.0, text, often))
    return rules


def _ranges(
    inside: Array, ordered: Array, category: tuple[int, str], number: tuple[int, Number], needed: float
) -> list[Rule]:
    """Return how a category bounds a number, from below and from above: `inside` of all the `ordered` values."""
    (a, what), (j, feature) = category, number
    low, high = float(inside.min()), float(inside.max())
    below = int(np.searchsorted(ordered, low, "left"))
    above = len(ordered) - int(np.searchsorted(ordered, high, "right"))
    rules = []
    for seen, side, rarer, sign, bound in (
        (low, "below", below, -1.0, feature.low),
        (high, "above", above, 1.0, feature.high),
    ):
        often = rarer * len(inside) / len(ordered)
        if often < needed:
            continue
        # toward 0: rounding the other way would exclude the very person who set the bound
        step = math.nextafter(abs(seen - bound), 0.0)
        text = f"nobody with {what} and {feature.name} {side} {feature.text(seen)}: by chance {often:,.0f}"
        rules.append(Rule(((j, sign), (a, step)), sign * bound + 0.0, text, often))
    return rules
