"""Search: from a problem to a certificate, by one of the engines."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

from threadpoolctl import ThreadpoolController

from likewise.certificate import Certificate, Proof
from likewise.errors import InputError
from likewise.problem import Problem
from likewise.rounding import Array
from likewise.search.branch import is_wide, search_branch
from likewise.search.milp import search_milp
from likewise.search.paper import search_paper
from likewise.search.run import Listener, News, Run
from likewise.solvers import Solver, get

__all__ = ["ENGINES", "News", "Run", "search"]

Engine = Callable[[Problem, Run, Solver, int], None]
ENGINES: dict[str, Engine] = {
    "auto": search_branch,
    "branch": search_branch,
    "milp": search_milp,
    "paper": search_paper,
}


def search(
    problem: Problem,
    *,
    engine: str,
    solver: str,
    seconds: float,
    gap: float,
    delta: float | None = None,
    threads: int = 1,
    listener: Listener | None = None,
    start: tuple[Array, Array] | None = None,
    ceiling: float = math.inf,
    earlier: Proof | None = None,
) -> Certificate:
    """Run an engine in every direction the problem has; time-out and Ctrl-C return what is known by then.

    `start` is a pair to begin with; it counts only if it is one of the problem's. `ceiling` must be a proven upper
    bound of this very problem, as one for a larger eps is. `earlier` is a proof of this very problem, whose tree to
    begin with; every part of it is bounded anew.
    """
    if engine not in ENGINES:
        raise InputError(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")
    backend = get(solver)
    run = Run(problem, seconds=seconds, gap=gap, delta=delta, listener=listener)
    run.earlier = earlier
    try:
        # Matrices of a few hundred rows gain nothing by more threads of BLAS, which keep a core busy while they wait.
        with _blas().limit(limits=threads if is_wide(problem) else 1, user_api="blas"):
            for direction in run.directions:
                run.prove(ceiling)
                if start is not None:
                    run.offer(*start)
                    run.offer(*reversed(start))
                ENGINES[engine](direction, run, backend, threads)
    except KeyboardInterrupt:
        run.notes.append("interrupted")
    return run.certificate("branch" if engine == "auto" else engine, solver)


@cache
def _blas() -> ThreadpoolController:
    """Return what limits the threads of numpy's and scipy's matrices; to find their libraries takes milliseconds."""
    return ThreadpoolController()
