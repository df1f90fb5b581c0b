"""The one form of every metric: the p-norm of a linear map of a difference, of people or of what phi makes of them."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from operator import mul

import numpy as np

from likewise.errors import LARGEST, MetricError
from likewise.network import Network
from likewise.rounding import Array, dot_error, down, up

LINEAR, EXACT = {"identity"}, {"identity", "relu"}  # activations of a linear phi, and of one that rationals can follow


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """d(left, right) = || matrix (phi(left) - phi(right)) ||_p, with p >= 1; without phi, of the people themselves.

    `kind` and `note` only say where it came from. Engines see `matrix`, `p` and `phi` alone.
    """

    matrix: Array
    p: float
    kind: str
    note: str = ""
    phi: Network | None = None

    def __post_init__(self) -> None:
        matrix = np.array(self.matrix, dtype=np.float64) + 0.0
        if matrix.ndim != 2 or not np.isfinite(matrix).all():
            raise MetricError(f"a metric needs a finite matrix, got shape {matrix.shape}")
        if matrix.size and np.abs(matrix).max() > LARGEST:
            raise MetricError(f"the metric has an entry beyond {LARGEST:g}: rescale it, and eps with it")
        if isinstance(self.p, bool) or not isinstance(self.p, int | float) or not self.p >= 1.0:
            raise MetricError(f"p must be a number from 1 to inf, got {self.p!r}")
        if self.phi is not None and self.phi.outputs != matrix.shape[1]:
            raise MetricError(f"the embedding gives {self.phi.outputs} numbers, its metric takes {matrix.shape[1]}")
        matrix.setflags(write=False)
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "p", float(self.p))

    def __repr__(self) -> str:
        through = "" if self.phi is None else f" through {self.phi!r}"
        return f"Metric({self.kind}, p={self.p:g}, {self.width} columns, rank {len(self.matrix)}{through})"

    @property
    def width(self) -> int:
        """How many columns a person has."""
        return int(self.matrix.shape[1]) if self.phi is None else self.phi.inputs

    @property
    def digest(self) -> str:
        """SHA-256 of the matrix, p and phi."""
        sha = hashlib.sha256(f"likewise metric 1 {self.p} {self.matrix.shape}".encode())
        sha.update(np.ascontiguousarray(self.matrix, dtype="<f8").tobytes())
        if self.phi is not None:
            sha.update(self.phi.digest.encode())
        return sha.hexdigest()

    def embed(self, people: Array) -> Array:
        """Return what the metric compares, for people (n, columns), in floats."""
        if self.phi is None:
            return people
        values = self.phi(people)
        return values.reshape(len(people), self.phi.outputs)

    def distances(self, left: Array, right: Array) -> Array:
        """Return the distance of each pair (n, columns), rounded to float64."""
        return np.asarray(np.linalg.norm((self.embed(left) - self.embed(right)) @ self.matrix.T, self.p, axis=1))

    def distance(self, left: Array, right: Array) -> float:
        """Return the distance, rounded to float64."""
        return float(self.distances(left[None], right[None])[0])

    def within(self, left: Array, right: Array, eps: float) -> bool:
        """Tell whether d(left, right) <= eps; True is proven, and so is False where rationals can decide.

        A float bound decides the clear cases: |fl(a.d) - a.d| <= dot_error, and subtraction errs by one unit. The
        others are decided in rational arithmetic if p is 1, 2, 3, ... or inf and phi is made of relu and identity. In
        what is left, a pair within rounding of eps does not count.
        """
        if (left == right).all():
            return True
        low_l, high_l = self._enclosed(left)
        low_r, high_r = self._enclosed(right)
        middle_l, middle_r = (low_l + high_l) / 2, (low_r + high_r) / 2
        d = middle_l - middle_r
        radius = up((high_l - low_l) + (high_r - low_r) + np.spacing(np.abs(d)), 2)
        moved = np.flatnonzero((d != 0.0) | (radius > np.spacing(np.abs(d)) * 4))
        d, radius, part = d[moved], radius[moved], self.matrix[:, moved]
        error = dot_error(2 * len(moved) + 2, np.abs(part) @ (np.abs(d) + radius)) + np.abs(part) @ radius
        size, lost, room = np.abs(part @ d), error * (1 + 1e-12), 1e-13 * (len(part) + 2)
        if self._norm(up(size + lost, 2)) * (1 + room) <= eps:
            return True
        if self._norm(np.maximum(down(size - lost, 2), 0.0)) * (1 - room) > eps:
            return False
        return self._is_rational and self._within_exactly(left, right, eps)

    def _norm(self, sizes: Array) -> float:
        top = float(sizes.max(initial=1e-300))  # divided out, so that no square underflows
        return top * float(np.linalg.norm(sizes / top, self.p))

    def _enclosed(self, person: Array) -> tuple[Array, Array]:
        return (person, person) if self.phi is None else self.phi.enclose(person)

    @property
    def _is_rational(self) -> bool:
        names = set() if self.phi is None else {a for layer in self.phi.layers for a in layer.activations}
        return names <= EXACT and (self.p == math.inf or (self.p == int(self.p) and self.p <= 64))

    def _within_exactly(self, left: Array, right: Array, eps: float) -> bool:
        one, other = (_rational(self.phi, person) for person in (left, right))
        d = [a - b for a, b in zip(one, other, strict=True)]
        sums = _sums(self.matrix, d)
        limit = Fraction(eps)
        if self.p == math.inf:
            return all(abs(s) <= limit for s in sums)
        power = int(self.p)
        return sum(abs(s) ** power for s in sums) <= limit**power

    @property
    def is_linear(self) -> bool:
        """Whether phi is a linear map (or not there)."""
        return self.phi is None or all(set(layer.activations) <= LINEAR for layer in self.phi.layers)

    def boxed(self) -> Metric:
        """Return the rectangular relaxation: each row of the matrix within eps on its own.

        It holds at least the pairs of the metric itself, because every p-norm is at least the largest entry.
        """
        return self if self.p == math.inf else Metric(self.matrix, math.inf, self.kind, "relaxation: box", self.phi)


def relaxed(metric: Metric, relaxation: str | None) -> Metric:
    """Return the metric itself (`None`) or its rectangular relaxation (`"box"`)."""
    if relaxation is None:
        return metric
    if relaxation == "box":
        return metric.boxed()
    raise MetricError(f"relaxation must be None or 'box', got {relaxation!r}")


@lru_cache(maxsize=64)
def _whole(matrix: bytes, columns: int) -> tuple[list[list[int]], int]:
    """Return a matrix of floats as integers over one power of two, with the exponent of that power."""
    ratios = [x.as_integer_ratio() for x in np.frombuffer(matrix).tolist()]
    finest = max((q.bit_length() for _, q in ratios), default=1)
    flat = [p << (finest - q.bit_length()) for p, q in ratios]
    return [flat[k : k + columns] for k in range(0, len(flat), max(columns, 1))], finest - 1


def _sums(matrix: Array, values: list[Fraction]) -> list[Fraction]:
    """Return matrix @ values in integers over common powers of two: floats and all made of them have no other divisor.

    Rationals would be brought to lowest terms at every step, which takes a hundred times as long.
    """
    rows, finest = _whole(np.ascontiguousarray(matrix).tobytes(), matrix.shape[1])
    finer = max((x.denominator.bit_length() for x in values), default=1)
    whole = [x.numerator << (finer - x.denominator.bit_length()) for x in values]
    one = 1 << (finest + finer - 1)
    return [Fraction(sum(map(mul, row, whole)), one) for row in rows]


def _rational(phi: Network | None, person: Array) -> list[Fraction]:
    """Return what phi makes of a person, in rationals: floats, their sums and products, and relu are exact there."""
    values = [Fraction(x) for x in person.tolist()]
    for layer in () if phi is None else phi.layers:
        sums = [s + Fraction(b) for s, b in zip(_sums(layer.weight, values), layer.bias.tolist(), strict=True)]
        names = layer.activations
        values = [max(s, Fraction(0)) if name == "relu" else s for s, name in zip(sums, names, strict=True)]
    return values
