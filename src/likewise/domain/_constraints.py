"""Linear side constraints A x <= b: read at the door, decided exactly, said in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from likewise.errors import LARGEST, DomainError
from likewise.rounding import Array, dot_error

EXACT = 2.0**52  # floats hold every whole number up to twice this
SHOWN = 6  # terms of a constraint that are written out


def read_constraints(constraints: Iterable[Any], names: Sequence[str]) -> tuple[Array, Array]:
    """Return all constraints as one pair of arrays, or raise a DomainError that names the one at fault."""
    if isinstance(constraints, Mapping | str) or not isinstance(constraints, Iterable):
        raise DomainError("constraints must be a list of pairs (A, b), for A x <= b")
    rows, sides = [np.zeros((0, len(names)))], [np.zeros(0)]
    for i, pair in enumerate(constraints):
        what = f"constraint {i + 1}"
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise DomainError(f"{what}: needs a pair (A, b), for A x <= b")
        left, right = pair
        A = _by_name(what, left, names) if isinstance(left, Mapping) else _numbers(f"{what}: A", left)
        b = _numbers(f"{what}: b", right)
        if A.ndim not in (1, 2) or A.shape[-1] != len(names):
            raise DomainError(f"{what}: A needs {len(names)} columns, got an array of shape {A.shape}")
        if b.shape != A.shape[:-1]:
            wanted = f"{len(A)} numbers" if A.ndim == 2 else "a number"
            raise DomainError(f"{what}: b needs {wanted}, got an array of shape {b.shape}")
        A, b = np.atleast_2d(A), np.atleast_1d(b)
        _refuse_odd(what, A, b, names)
        rows.append(A)
        sides.append(b)
    return np.concatenate(rows), np.concatenate(sides)


def _by_name(what: str, coefficients: Mapping[Any, Any], names: Sequence[str]) -> Array:
    row = np.zeros(len(names))
    for name, value in coefficients.items():
        columns = [k for k, known in enumerate(names) if known == name]
        if not columns:
            inside = [known for known in names if known.startswith(f"{name}=")]
            hint = f"; name a category, such as {inside[0]!r}" if inside else f"; known: {', '.join(names[:20])}"
            raise DomainError(f"{what}: no column is called {str(name)[:60]!r}{hint}")
        if len(columns) > 1:
            raise DomainError(f"{what}: {len(columns)} columns are called {name!r}: give A as an array")
        number = _numbers(f"{what}: {name}", value)
        if number.shape != ():
            raise DomainError(f"{what}: {name} needs one number, got an array of shape {number.shape}")
        row[columns[0]] = float(number)
    return row


def _numbers(what: str, value: Any) -> Array:
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DomainError(f"{what} must be made of numbers, got {str(value)[:60]!r}") from None


def _refuse_odd(what: str, A: Array, b: Array, names: Sequence[str]) -> None:
    for value, name in [*((A[i, j], names[j]) for i, j in np.argwhere(_odd(A))), *((v, "b") for v in b[_odd(b)])]:
        fault = f"is beyond {LARGEST:g}: rescale it" if np.isfinite(value) else "is not finite"
        raise DomainError(f"{what}: the number {value} at {name} {fault}")


def _odd(numbers: Array) -> np.ndarray:
    return np.asarray(~(np.abs(numbers) <= LARGEST))


def satisfied(A: Array, b: Array, people: Array) -> np.ndarray:
    """Tell which of m constraints hold for each of n people, exactly, as an (n, m) array.

    Floats decide where their error bound allows it, and where all products are whole numbers; else fractions do.
    """
    slack = b - people @ A.T
    size = np.abs(people) @ np.abs(A).T + np.abs(b)
    holds = np.asarray(slack >= 0.0)
    unsure = np.abs(slack) <= dot_error(A.shape[1] + 1, size)
    if unsure.any():
        odd_people, odd_rows = people != np.rint(people), (np.rint(A) != A).any(axis=1)
        odd = (odd_people.astype(np.float64) @ (A != 0.0).T > 0.0) | odd_rows | (size >= EXACT)
        for i, j in np.argwhere(unsure & odd):
            holds[i, j] = slack_of(A[j], float(b[j]), people[i]) >= 0
    return holds


def slack_of(row: Array, b: float, person: Array) -> Fraction:
    """Return b - row x exactly."""
    some = np.flatnonzero(row)
    products = (Fraction(a) * Fraction(x) for a, x in zip(row[some].tolist(), person[some].tolist(), strict=True))
    return Fraction(b) - sum(products, Fraction())


def in_words(row: Array, b: float, names: Sequence[str]) -> str:
    """Return one constraint as people write it: age - 2 job=a <= 0.5."""
    some = np.flatnonzero(row)
    text = ""
    for j in some[:SHOWN]:
        size = "" if abs(row[j]) == 1.0 else f"{abs(row[j]):.6g} "
        sign = "-" if row[j] < 0.0 else "+"
        text += f" {sign} {size}{names[j]}" if text else f"{'-' if sign == '-' else ''}{size}{names[j]}"
    if len(some) > SHOWN:
        text += f" + {len(some) - SHOWN} terms more"
    return f"{text or '0'} <= {b:.6g}"
