"""The one language spoken to every solver: arrays in, both-sided answer out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

Array = NDArray[np.float64]


class Status(Enum):
    """How a run ended. None of them is a proof: only `Answer.bound` is a claim, and only of the solver's."""

    OPTIMAL = "optimal"
    STOPPED = "stopped"  # by the caller's callback
    LIMIT = "limit"  # time, node or memory limit
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class LinearModel:
    """Maximise objective.x + constant over row_lower <= matrix x <= row_upper, lower <= x <= upper, some x integer.

    Every variable has finite bounds, so that any row multipliers give a finite bound on the maximum.
    """

    objective: Array
    matrix: csr_matrix
    row_lower: Array
    row_upper: Array
    lower: Array
    upper: Array
    integer: NDArray[np.bool_]
    constant: float = 0.0


@dataclass(frozen=True, slots=True)
class Progress:
    """What a running solver knows: an upper bound on the maximum, its best point, how far it has come."""

    bound: float
    value: float
    nodes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop: wall-clock seconds, absolute gap between bound and value, threads to use."""

    seconds: float
    gap: float = 0.0
    threads: int = 1


@dataclass(frozen=True, slots=True)
class Answer:
    """Both sides of a run: `bound` >= maximum as the solver says, `point` with `value` <= maximum if one was found."""

    status: Status
    bound: float
    value: float
    point: Array | None
    nodes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Watch:
    """What the caller wants to hear while a solver runs.

    `progress` returns True to stop the run. `point` is called with every improving solution the solver reports.
    """

    progress: Callable[[Progress], bool] = field(default=lambda _: False)
    point: Callable[[Array], None] = field(default=lambda _: None)


class Solver(Protocol):
    """A mixed-integer linear solver."""

    name: str

    def solve(
        self, model: LinearModel, limits: Limits, *, start: Array | None = None, watch: Watch | None = None
    ) -> Answer:
        """Maximise the model, from the feasible point `start` if one is given."""
        ...
