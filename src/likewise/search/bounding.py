"""Bounding: the slack of parts, many at once, each by its linear program."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from likewise.bounds import Reach, TwinBounds, propagated
from likewise.bounds.argument import Argument
from likewise.search.relaxed import Relaxed
from likewise.search.tree import Bounded, Half, Part
from likewise.solvers import Session

Job = tuple[Half, Bounded | None]  # a part, and what it was cut from
Result = tuple[Bounded, Callable[[], Argument] | None]  # with how it was bounded; None if its intervals show it empty


def bound(relaxed: Relaxed, where: Reach, jobs: Sequence[Job], threads: int = 1) -> list[Result]:
    """Bound the slack of parts.

    `Session` rebuilds each bound from its duals, outward rounded, so it holds whatever the solver did.
    """
    if not jobs:
        return []
    template, t = relaxed.template, relaxed.question.t
    layers, alive = propagated(jobs[0][0].problem.network, [half.zs for half, _ in jobs])
    lines = template.lines(layers)

    def one(row: int) -> Result:
        half, parent = jobs[row]
        bounds = TwinBounds(where, tuple(b[row] for b in layers))
        part = Part(half.problem, bounds)
        if not alive[row]:
            return Bounded(-math.inf, -math.inf, part, np.empty(0), None, relaxed, half.node, 0.0), None
        own = [tuple(values[row] for values in part) for part in lines]
        basis = None if parent is None or parent.basis is None else relaxed.adapted(parent.basis, parent.relaxed)
        session = Session(template.fill(half.problem, bounds, own, relaxed.objective), basis, only_bounds=True)
        slack, point = session.maximise(relaxed.objective)
        upper = relaxed.score.upper_from_slack(t, slack)
        settled = slack
        if parent is not None:
            upper, settled = min(upper, parent.upper), parent.settled
        y = session.proof.multipliers
        bounded = Bounded(slack, upper, part, point, session.basis, relaxed, half.node, settled)
        return bounded, lambda: relaxed.argued(y, own)

    if threads > 1 and len(jobs) > 1:
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(one, range(len(jobs))))
    return [one(row) for row in range(len(jobs))]
