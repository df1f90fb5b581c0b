"""Bounding: the slack of parts, many at once, each by its linear program."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from likewise.bounds import Reach, TwinBounds, propagated
from likewise.search.relaxed import Relaxed
from likewise.search.tree import Bounded, Half, Part
from likewise.solvers import Session

Job = tuple[Half, Bounded | None]  # a part, and what it was cut from


def bound(relaxed: Relaxed, where: Reach, jobs: Sequence[Job], threads: int = 1) -> list[Bounded | None]:
    """Bound the slack of parts; None for one that holds no pair at the threshold.

    `Session` rebuilds each bound from its duals, outward rounded, so it holds whatever the solver did.
    """
    if not jobs:
        return []
    layers, alive = propagated(jobs[0][0].problem.network, [half.zs for half, _ in jobs])
    lines = relaxed.template.lines(layers)

    def one(row: int) -> Bounded | None:
        if not alive[row]:
            return None
        half, parent = jobs[row]
        bounds = TwinBounds(where, tuple(b[row] for b in layers))
        own = [tuple(values[row] for values in part) for part in lines]
        # A basis fits only a model with the same rows.
        basis = parent.basis if parent is not None and parent.relaxed is relaxed else None
        session = Session(relaxed.template.fill(half.problem, bounds, own, relaxed.objective), basis)
        slack, point = session.maximise(relaxed.objective)
        if slack < 0.0:
            return None
        slack, settled = (slack, slack) if parent is None else (min(slack, parent.slack), parent.settled)
        part = Part(half.problem, bounds)
        return Bounded(slack, part, point, session.proof.multipliers, session.basis, relaxed, half.node, settled)

    if threads > 1 and len(jobs) > 1:
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(one, range(len(jobs))))
    return [one(row) for row in range(len(jobs))]
