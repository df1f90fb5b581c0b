"""Between a running solver and the caller: news out, the wish to stop in, no exception lost on the way."""

from __future__ import annotations

import math
import signal
import threading
import time
from types import FrameType, TracebackType
from typing import final

import numpy as np

from likewise.errors import SolverError
from likewise.solvers._model import Answer, Array, LinearModel, Progress, Status, Watch

# Feasibility and integrality, where a solver allows it: likewise asks for gaps down to 1e-5, so 1e-6 is too coarse.
TOLERANCE = 1e-9
# What solvers call infinity starts at 1e20 (SCIP, HiGHS, CBC) or 1e100 (Gurobi).
INFINITE = 1e19
# Seconds between two progress reports without a new incumbent.
PAUSE = 0.05


@final
class Relay:
    """Carry progress and points from a solver's callbacks to a `Watch`.

    Nothing is raised inside a callback, because exceptions must not cross a C library: the first one is remembered,
    the solver is asked to stop, and leaving the `with` block raises it. Within the block Ctrl-C is treated the same
    way: whatever the handler in force raises is remembered. (Python runs signal handlers at the first bytecode of a
    callback, before any `try` could catch them.)
    """

    def __init__(self, model: LinearModel, watch: Watch | None) -> None:
        _refuse_nan(model)
        self._model = model
        self._watch = Watch() if watch is None else watch
        self._began = time.perf_counter()
        self._next = 0.0
        self._lost: BaseException | None = None
        self._handler: object = None
        self.stop = False
        self.bound = math.inf

    @property
    def seconds(self) -> float:
        """Wall-clock seconds since the run began."""
        return time.perf_counter() - self._began

    @property
    def failed(self) -> bool:
        """Whether an exception waits for the end of the run, so that nobody will see an answer."""
        return self._lost is not None

    def __enter__(self) -> Relay:
        handler = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is threading.main_thread() and callable(handler):
            self._handler = handler
            signal.signal(signal.SIGINT, self._interrupted)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if callable(self._handler):
            signal.signal(signal.SIGINT, self._handler)
        if self._lost is not None:
            raise self._lost

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        try:
            if callable(self._handler):
                self._handler(number, frame)
        except BaseException as lost:  # noqa: BLE001 -- raised again by __exit__
            self._lose(lost)

    def _lose(self, lost: BaseException) -> None:
        self._lost = self._lost or lost
        self.stop = True

    def progress(self, bound: float, value: float, nodes: float, *, now: bool = False) -> bool:
        """Report, at most every PAUSE seconds unless `now`; return True if the solver has to stop.

        A bound that is infinite, of either sign, or nan is no news: the best one seen stays.
        """
        if not self.stop and (now or self.seconds >= self._next):
            self.bound = min(self.bound, claimed(bound))
            try:
                news = Progress(self.bound, achieved(value), max(0, int(nodes)), self.seconds)
                self.stop = bool(self._watch.progress(news)) or self.stop
            except BaseException as lost:  # noqa: BLE001 -- raised again by __exit__
                self._lose(lost)
            self._next = self.seconds + PAUSE
        return self.stop

    def point(self, point: Array, bound: float, nodes: float) -> bool:
        """Report an improving point, then the progress it makes; return True if the solver has to stop."""
        if not self.failed:
            try:
                self._watch.point(point)
            except BaseException as lost:  # noqa: BLE001 -- raised again by __exit__
                self._lose(lost)
        return self.progress(bound, _value(self._model, point), nodes, now=True)

    def answer(self, status: Status, bound: float, point: Array | None, nodes: float) -> Answer:
        """Close the run. `bound` is the solver's last word; infeasible and failed runs claim nothing (+inf)."""
        value = -math.inf if point is None else _value(self._model, point)
        if math.isnan(bound) or math.isnan(value):
            raise SolverError(f"the solver answered nan (bound {bound}, value {value}, {status.value})")
        if status in (Status.INFEASIBLE, Status.UNBOUNDED, Status.FAILED):
            bound = math.inf
        elif status is Status.OPTIMAL and not self._model.integer.any():
            bound = value  # continuous models have no tree and no tree bound
        else:
            bound = max(value, min(self.bound, claimed(bound)))
        return Answer(status, bound, value, point, max(0, int(nodes)), self.seconds)


def claimed(bound: float) -> float:
    """Read an upper bound as a solver states it: anything that is not a finite number claims nothing."""
    return bound if -INFINITE < bound < INFINITE else math.inf


def achieved(value: float) -> float:
    """Read the value of a solver's best point: anything that is not a finite number means that there is none."""
    return value if -INFINITE < value < INFINITE else -math.inf


def _refuse_nan(model: LinearModel) -> None:
    """Stop a broken model here: HiGHS, for one, crashes the process on it."""
    for name in ("objective", "row_lower", "row_upper", "lower", "upper"):
        if np.isnan(getattr(model, name)).any():
            raise SolverError(f"the linear model has nan in its {name}")
    if np.isnan(model.matrix.data).any() or math.isnan(model.constant):
        raise SolverError("the linear model has nan in its matrix or constant")


def _value(model: LinearModel, point: Array) -> float:
    return float(np.dot(model.objective, point)) + model.constant
