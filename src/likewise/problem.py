"""Problem: the question itself, a frozen value that every engine takes."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace

import numpy as np

from likewise.domain import Domain
from likewise.errors import LARGEST, DomainError, MetricError, ModelError
from likewise.metric import Metric
from likewise.network import Network
from likewise.rounding import Array


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """How far apart can `network` score a left and a right person who are within `eps` of each other?

    The network has one output. `symmetric` problems (both domains the same) need one direction only, because
    d(left, right) = d(right, left).
    """

    network: Network
    left: Domain
    right: Domain
    metric: Metric
    eps: float
    aside: int = 0  # how many of the network's last outputs are what the metric compares, instead of the columns
    outer: Problem | None = None  # the question that an engine made this one of, whose numbers its proof is about

    def __post_init__(self) -> None:
        if self.network.outputs != 1 + self.aside:
            raise ModelError(f"a problem is about one output, the network has {self.network.outputs}: select one")
        if not (isinstance(self.eps, int | float) and 0 <= self.eps <= LARGEST):
            raise MetricError(f"eps must be a number from 0 to {LARGEST:g}, got {self.eps!r}")
        if self.network.inputs != self.right.width:
            raise DomainError(f"the network takes {self.network.inputs} columns, the domain has {self.right.width}")
        if self.left.features != self.right.features:
            raise DomainError("left and right must be parts of the same domain")
        compared = self.aside or self.right.width
        if self.metric.width != compared:
            raise MetricError(f"the metric is for {self.metric.width} columns, the domain has {compared}")

    @property
    def symmetric(self) -> bool:
        """Whether left and right range over the same people."""
        parts = [(d.lower, d.upper, *d.constraints) for d in (self.left, self.right)]
        return all(np.array_equal(one, other) for one, other in zip(*parts, strict=True))

    @property
    def digest(self) -> str:
        """SHA-256 of the whole question."""
        parts = (self.network.digest, self.left.digest, self.right.digest, self.metric.digest, float(self.eps).hex())
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def swapped(self) -> Problem:
        """Return the same question in the other direction."""
        return replace(self, left=self.right, right=self.left)

    def admits(self, left: Array, right: Array) -> bool:
        """Tell, exactly, whether the pair exists and is similar."""
        return self.left.contains(left) and self.right.contains(right) and self.metric.within(left, right, self.eps)

    def gap_lower(self, left: Array, right: Array) -> float:
        """Return a proven lower bound on f(left) - f(right), at most an ulp-scale below it."""
        low, _ = self.network.enclose(left)
        _, high = self.network.enclose(right)
        return math.nextafter(float(low[0]) - float(high[0]), -math.inf)
