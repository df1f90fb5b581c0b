"""Real people, one by one: how far apart from each of them can anyone similar be scored?

Each person is a question of its own, so they are shared out over processes, one core each. The processes are started
afresh ("spawn"): a script that calls `certify_people` with more than one thread needs the usual
`if __name__ == "__main__":`.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from likewise._api import INTERRUPTED, certify, check_options, make_problem
from likewise.certificate import Witness
from likewise.domain import Domain
from likewise.errors import DomainError, InputError, LikewiseError
from likewise.load import load
from likewise.metric import Metric
from likewise.rounding import Array
from likewise.solvers import get

OUTSIDE = "outside"
CORES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, slots=True, eq=False)
class PersonBounds:
    """How far apart from one real person anyone similar can be scored: `lower <= largest gap <= upper`.

    `verdict` is "fair", "unfair" or "undecided" at the delta given, "" without one. A person outside of the domain
    has the verdict "outside", the `reason`, bounds of 0 and infinity, and no `witness`, whose left is that person.
    """

    row: int
    lower: float
    upper: float
    verdict: str
    witness: Witness | None
    seconds: float = 0.0
    trusted: tuple[str, ...] = ()
    reason: str = ""
    engine: str = ""

    def __repr__(self) -> str:
        return f"PersonBounds(row {self.row}, [{self.lower:.6f}, {self.upper:.6f}], {self.verdict or 'no delta'})"


def certify_people(
    network: Any,
    domain: Domain,
    metric: Metric,
    people: ArrayLike,
    eps: float,
    delta: float | None = None,
    *,
    seconds: float = 10.0,
    gap: float = 1e-5,
    engine: str = "auto",
    solver: str = "highs",
    threads: int | None = None,
    output: int = 0,
    scale: str = "score",
    progress: Callable[[PersonBounds], None] | None = None,
) -> list[PersonBounds]:
    """Bound, for each person (a row in the network's units), how far apart anyone within eps can be scored.

    `seconds` is the time for one person, `threads` the number of processes (all cores). People outside of the domain
    are told, not refused. `progress` hears of each person who is done; Ctrl-C returns those who are, by row.
    """
    count = check_options(delta, seconds, gap, threads)
    one = load(Path(network) if isinstance(network, str) else network)
    make_problem(one, domain, metric, eps, output=output, scale=scale)
    get(solver)  # so that what is missing is said here and not in another process
    rows = _rows(people, domain)
    limits: dict[str, Any] = {"seconds": seconds, "gap": gap, "engine": engine, "solver": solver}
    job = Job(one, domain, metric, eps, delta, {**limits, "output": output, "scale": scale})
    found: list[PersonBounds] = []
    results = _in_order(job, rows) if count == 1 or len(rows) < 2 else _in_parallel(job, rows, count)
    try:
        with closing(results):
            for bounds in results:
                found.append(bounds)
                if progress is not None:
                    progress(bounds)
    except KeyboardInterrupt:
        pass  # those who are done are the answer; the caller sees that rows are missing
    return sorted(found, key=lambda bounds: bounds.row)


def tally(found: Sequence[PersonBounds]) -> Counter[str]:
    """Return how many people there are of each verdict."""
    return Counter(bounds.verdict for bounds in found)


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """What all people of one run have in common."""

    network: Any
    domain: Domain
    metric: Metric
    eps: float
    delta: float | None
    options: Mapping[str, Any]

    def run(self, row: int, person: Array) -> PersonBounds:
        """Bound one person; Ctrl-C is passed on, because a person cut short is not done."""
        try:
            self.domain.require(person)
        except DomainError as error:
            return PersonBounds(row, 0.0, math.inf, OUTSIDE, None, reason=str(error).removeprefix("person: "))
        found = certify(
            self.network,
            self.domain,
            self.metric,
            self.eps,
            delta=self.delta,
            left=person,
            threads=1,
            **self.options,
        )
        if INTERRUPTED in found.notes:
            raise KeyboardInterrupt
        verdict = "" if self.delta is None else found.verdict(self.delta)
        return PersonBounds(
            row, found.lower, found.upper, verdict, found.witness, found.seconds, found.trusted, engine=found.engine
        )


def _rows(people: ArrayLike, domain: Domain) -> Array:
    try:
        rows = np.array(people, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"people must be rows of {domain.width} numbers") from None
    if rows.ndim != 2 or rows.shape[1] != domain.width or not len(rows):
        raise InputError(f"people must be one or more rows of {domain.width} columns, got shape {rows.shape}")
    return rows


def _in_order(job: Job, rows: Array) -> Generator[PersonBounds, None, None]:
    for row, person in enumerate(rows):
        yield job.run(row, person)


def _in_parallel(job: Job, rows: Array, workers: int) -> Generator[PersonBounds, None, None]:
    """Yield people as they are done; when the caller stops listening, the processes end at once."""
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(min(workers, len(rows)), context, _alone)
    done = False
    try:
        with _one_core_each():
            futures = [pool.submit(job.run, row, person) for row, person in enumerate(rows)]
        for future in as_completed(futures):
            yield future.result()
        done = True
    except BrokenProcessPool:
        raise LikewiseError(
            "the processes for the people ended before their time\n"
            "call certify_people under `if __name__ == '__main__':`, or with threads=1"
        ) from None
    finally:
        if not done:
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
        pool.shutdown(wait=done, cancel_futures=True)


@contextmanager
def _one_core_each() -> Iterator[None]:
    """Start processes whose linear algebra does not take the cores of the others, unless the user has chosen."""
    missing = [name for name in CORES if name not in os.environ]
    os.environ.update(dict.fromkeys(missing, "1"))
    try:
        yield
    finally:
        for name in missing:
            os.environ.pop(name, None)


def _alone() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
