"""People who exist: some person under side constraints, and samples of them.

Whatever a solver or a float computation proposes is tested exactly before it is called a person.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from likewise.domain._constraints import in_words, satisfied, slack_of
from likewise.errors import DomainError
from likewise.rounding import Array, dot_error

if TYPE_CHECKING:
    from likewise.domain._domain import Domain

TRIES = 2000
SHARE = 50  # a sample of n draws at most TRIES + SHARE * n people before it makes do with neighbours of those found
MARGIN = 1e-4  # how much room to a constraint is worth having, in parts of its largest term
SECONDS = 20.0
INFEASIBLE = 2  # scipy's status
FILTERED = 64  # more constraints than these are not searched for the few that contradict each other


def draw(domain: Domain, n: int, rng: np.random.Generator) -> Array:
    """Draw n people without regard to constraints: numbers uniform, categories uniform among the allowed."""
    parts = rng.random((n, domain.width))
    people = np.clip(domain.lower + (domain.upper - domain.lower) * parts, domain.lower, domain.upper)
    c = domain.integers
    if len(c):
        step = domain.steps[c]
        values = np.rint((domain.upper[c] - domain.lower[c]) / step) + 1.0
        k = np.minimum(np.floor(parts[:, c] * values), values - 1.0)
        people[:, c] = domain.lower[c] + k * step
        people = domain.snap(people)
    for span in domain.groups:
        people[:, span] = np.eye(span.stop - span.start)[rng.choice(_allowed(domain, span), size=n)]
    return people


def _allowed(domain: Domain, group: slice) -> np.ndarray:
    allowed = np.flatnonzero(domain.upper[group] > 0.5)
    if not len(allowed):
        name = next(feature.name for feature, span in domain.spans if span == group)
        raise DomainError(f"nobody can exist: feature {name!r} has no category left")
    return allowed


def sample(domain: Domain, n: int, rng: np.random.Generator) -> Array:
    """Draw n people who satisfy the constraints: by rejection, then by moves from those found."""
    people = draw(domain, n, rng)
    A, b = domain.constraints
    if not len(b) or not n:
        return people
    found = people[satisfied(A, b, people).all(axis=1)]
    drawn = n
    while len(found) < n and drawn < TRIES + SHARE * n and (len(found) or drawn < TRIES):
        people = draw(domain, max(n, 256), rng)
        drawn += len(people)
        found = np.concatenate([found, people[satisfied(A, b, people).all(axis=1)]])
    if len(found) < n:
        base = found if len(found) else person(domain)[None]
        found = np.concatenate([found, _moved(domain, base, n - len(found), rng)])
    return found[:n]


def _moved(domain: Domain, base: Array, n: int, rng: np.random.Generator) -> Array:
    """Return n people on the ways from people of `base` to drawn ones, as far as the constraints allow."""
    A, b = domain.constraints
    start = base[rng.integers(len(base), size=n)]
    way = np.zeros_like(start)
    c = domain.continuous
    way[:, c] = draw(domain, n, rng)[:, c] - start[:, c]
    speed, room = way @ A.T, np.maximum(b - start @ A.T, 0.0)
    with np.errstate(over="ignore"):
        furthest = np.divide(room, speed, out=np.full_like(room, math.inf), where=speed > 0.0)
    share = np.minimum(furthest.min(axis=1), 1.0) * rng.random(n)
    people = np.clip(start + share[:, None] * way, domain.lower, domain.upper)
    people[:, domain.integers] = start[:, domain.integers]
    exists = satisfied(A, b, people).all(axis=1, keepdims=True)
    return np.where(exists, people, start)


def person(domain: Domain) -> Array:
    """Return some person who exists, or raise a DomainError that says why there is none."""
    middle: Array = domain.snap(domain.lower + (domain.upper - domain.lower) / 2)
    for group in domain.groups:
        middle[group] = np.eye(group.stop - group.start)[_allowed(domain, group)[0]]
    A, b = domain.constraints
    if satisfied(A, b, middle[None]).all():
        return middle
    people = draw(domain, TRIES, np.random.default_rng(0))
    exists = satisfied(A, b, people).all(axis=1)
    if exists.any():
        return np.array(people[np.argmax(exists)])
    _refuse_alone(domain)
    status, solution = _solve(domain, np.arange(len(b)))
    if solution is not None:
        for candidate in _repairs(domain, solution):
            if domain.contains(candidate):
                return candidate
    if status == INFEASIBLE:
        culprits = _fewest(domain)
        raise DomainError(f"nobody can exist: the constraints contradict each other: {_listed(domain, culprits)}")
    raise DomainError(
        "nobody was found who satisfies the constraints exactly: loosen those that leave no room, say by 1e-9: "
        + _listed(domain, np.arange(len(b)))
    )


def _listed(domain: Domain, rows: np.ndarray) -> str:
    A, b = domain.constraints
    words = [f"constraint {j + 1} ({in_words(A[j], float(b[j]), domain.columns)})" for j in rows[:4]]
    return " and ".join(words) + (f" and {len(rows) - 4} more" if len(rows) > 4 else "")


def _refuse_alone(domain: Domain) -> None:
    """Raise a DomainError if one constraint alone leaves nobody: its least value over the box is above b."""
    A, b = domain.constraints
    ends = np.minimum(A * domain.lower, A * domain.upper)
    size = np.abs(A) @ np.maximum(np.abs(domain.lower), np.abs(domain.upper)) + np.abs(b)
    least = ends[:, domain.numbers].sum(axis=1)
    for group in domain.groups:
        least += A[:, group][:, _allowed(domain, group)].min(axis=1)
    for j in np.flatnonzero(least - b > dot_error(domain.width + 1, size)):
        words = in_words(A[j], float(b[j]), domain.columns)
        raise DomainError(
            f"nobody can exist: the constraints contradict each other: constraint {j + 1} ({words}) "
            f"cannot hold, its left side is at least {least[j]:.6g}"
        )


def _solve(domain: Domain, rows: np.ndarray) -> tuple[int, Array | None]:
    """Return scipy's status and a person of a mixed-integer program that leaves room to constraints where it can.

    Columns are counted from `lower` in steps, or in parts of their range; every constraint has a slack that is
    rewarded up to MARGIN.
    """
    A, b = domain.constraints[0][rows], domain.constraints[1][rows]
    scale = np.where(domain.steps > 0.0, domain.steps, domain.upper - domain.lower)
    most = np.where(domain.steps > 0.0, np.rint((domain.upper - domain.lower) / np.where(scale > 0, scale, 1.0)), 1.0)
    left, right = A * scale, b - A @ domain.lower
    size = np.abs(left).max(axis=1, initial=0.0)
    size = np.where(size > 0.0, size, 1.0)
    left, right = left / size[:, None], right / size
    m = len(rows)
    ones = np.zeros((len(domain.groups), domain.width))
    for i, group in enumerate(domain.groups):
        ones[i, group] = scale[group]
    left_out = 1.0 - np.array([domain.lower[group].sum() for group in domain.groups])
    whole = np.ones(domain.width)
    whole[domain.continuous] = 0.0
    conditions = [LinearConstraint(np.hstack([left, np.eye(m)]), -np.inf, right)]
    if len(ones):
        conditions.append(LinearConstraint(np.hstack([ones, np.zeros((len(ones), m))]), left_out, left_out))
    solved = milp(
        np.concatenate([np.zeros(domain.width), -np.ones(m)]),
        integrality=np.concatenate([whole, np.zeros(m)]),
        bounds=Bounds(np.zeros(domain.width + m), np.concatenate([most, np.full(m, MARGIN)])),
        constraints=conditions,
        options={"time_limit": SECONDS},
    )
    if solved.x is None:
        return int(solved.status), None
    y = np.where(whole > 0, np.rint(solved.x[: domain.width]), solved.x[: domain.width])
    return int(solved.status), domain.snap(domain.lower + scale * y)


def _fewest(domain: Domain) -> np.ndarray:
    """Return constraints that contradict each other and of which none can be left out."""
    rows = np.arange(len(domain.constraints[1]))
    if len(rows) > FILTERED:
        return rows
    for j in rows.copy():
        fewer = rows[rows != j]
        if _solve(domain, fewer)[0] == INFEASIBLE:
            rows = fewer
    return rows


def _repairs(domain: Domain, x: Array) -> Iterator[Array]:
    """Yield the solver's person, and others like it with shorter numbers, moved to satisfy violated constraints."""
    yield x
    width = domain.upper - domain.lower
    for bits in (52, 40, 30, 20, 10):
        unit = np.exp2(np.ceil(np.log2(np.where(width > 0.0, width, 1.0))) - bits)
        shorter = x.copy()
        c = domain.continuous
        shorter[c] = np.clip(np.rint(x[c] / unit[c]) * unit[c], domain.lower[c], domain.upper[c])
        for _ in range(8):
            yield shorter
            shorter = _pushed(domain, shorter)


def _pushed(domain: Domain, x: Array) -> Array:
    """Return the person with each violated constraint met in turn, by its strongest continuous column with room."""
    A, b = domain.constraints
    x = x.copy()
    for j in range(len(b)):
        slack = slack_of(A[j], float(b[j]), x)
        if slack >= 0:
            continue
        towards = np.where(A[j] > 0.0, x - domain.lower, domain.upper - x) * np.abs(A[j])
        k = domain.continuous[int(towards[domain.continuous].argmax())] if len(domain.continuous) else 0
        if len(domain.continuous) and towards[k] > 0.0:
            wanted = Fraction(float(x[k])) + slack / Fraction(float(A[j, k]))
            value = float(wanted)
            if (Fraction(value) - wanted) * Fraction(float(A[j, k])) > 0:
                value = math.nextafter(value, -math.inf if A[j, k] > 0.0 else math.inf)
            x[k] = min(max(value, float(domain.lower[k])), float(domain.upper[k]))
    return x
