"""SCIP, through pyscipopt (extra `scip`)."""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np
import pyscipopt
from pyscipopt.scip import PY_SCIP_EVENTTYPE, Expr, ExprCons, Term

from likewise.solvers._model import Answer, Array, Limits, LinearModel, Status, Watch
from likewise.solvers._relay import TOLERANCE, Relay

_STATUS = {
    "optimal": Status.OPTIMAL,
    "gaplimit": Status.OPTIMAL,
    "userinterrupt": Status.STOPPED,
    "timelimit": Status.LIMIT,
    "memlimit": Status.LIMIT,
    "nodelimit": Status.LIMIT,
    "totalnodelimit": Status.LIMIT,
    "stallnodelimit": Status.LIMIT,
    "sollimit": Status.LIMIT,
    "bestsollimit": Status.LIMIT,
    "restartlimit": Status.LIMIT,
    "infeasible": Status.INFEASIBLE,
    "unbounded": Status.UNBOUNDED,
    "inforunbd": Status.INFEASIBLE,  # variables are boxed, so of the two it is infeasible
}
_EVENT = PY_SCIP_EVENTTYPE
_EVENTS = (_EVENT.BESTSOLFOUND, _EVENT.NODESOLVED, _EVENT.LPSOLVED, _EVENT.PRESOLVEROUND)


@final
class Scip:
    """Mixed-integer maximisation with SCIP; bounds and points arrive through its events. It uses one thread."""

    name: str = "scip"

    def solve(
        self, model: LinearModel, limits: Limits, *, start: Array | None = None, watch: Watch | None = None
    ) -> Answer:
        """Maximise the model. An infeasible model is reported with bound +inf: it is never a proof."""
        relay = Relay(model, watch)
        engine = pyscipopt.Model()
        engine.hideOutput()
        engine.setParams(
            {
                "limits/time": min(1e20, max(0.0, limits.seconds)),
                "limits/gap": 0.0,
                "limits/absgap": limits.gap,
                "numerics/feastol": TOLERANCE,
                "numerics/dualfeastol": TOLERANCE,
                "misc/catchctrlc": False,  # the relay does
                "timing/clocktype": 2,  # wall clock
            }
        )
        columns = _load(engine, model)
        if start is not None:
            _begin(engine, columns, start)
        with relay:
            engine.includeEventhdlr(_Listener(relay, columns), "relay", "passes news to the caller")
            engine.optimizeNogil()
            status = _STATUS.get(engine.getStatus(), Status.FAILED)
            point = _point(engine, engine.getBestSol(), columns) if engine.getNSols() else None
            return relay.answer(status, engine.getDualbound(), point, engine.getNTotalNodes())


def _load(engine: Any, model: LinearModel) -> list[Any]:
    """Build the model; terms are written directly, because adding up expressions takes quadratic time."""
    columns = [
        engine.addVar(vtype="I" if integer else "C", lb=lower, ub=upper, obj=cost)
        for integer, lower, upper, cost in zip(
            model.integer.tolist(),
            model.lower.tolist(),
            model.upper.tolist(),
            model.objective.tolist(),
            strict=True,
        )
    ]
    engine.setMaximize()
    engine.addObjoffset(model.constant)
    terms = [Term(column) for column in columns]
    matrix = model.matrix.copy()
    matrix.sum_duplicates()
    starts, indices, data = matrix.indptr.tolist(), matrix.indices.tolist(), matrix.data.tolist()
    for row, (lower, upper) in enumerate(zip(model.row_lower.tolist(), model.row_upper.tolist(), strict=True)):
        span = range(starts[row], starts[row + 1])
        expression = Expr({terms[indices[k]]: data[k] for k in span})
        sides = {"lhs": lower if lower > -math.inf else None, "rhs": upper if upper < math.inf else None}
        if sides["lhs"] is not None or sides["rhs"] is not None:
            engine.addCons(ExprCons(expression, **sides))
    return columns


def _begin(engine: Any, columns: list[Any], start: Array) -> None:
    solution = engine.createSol()
    for column, entry in zip(columns, start.tolist(), strict=True):
        engine.setSolVal(solution, column, entry)
    engine.addSol(solution)


def _point(engine: Any, solution: Any, columns: list[Any]) -> Array:
    return np.array([engine.getSolVal(solution, column) for column in columns], dtype=np.float64)


class _Listener(pyscipopt.Eventhdlr):
    """Hears SCIP's events; SCIP swallows what they raise, so the relay keeps it."""

    def __init__(self, relay: Relay, columns: list[Any]) -> None:
        self._relay = relay
        self._columns = columns

    def eventinit(self) -> None:
        """Subscribe."""
        for event in _EVENTS:
            self.model.catchEvent(event, self)

    def eventexit(self) -> None:
        """Unsubscribe."""
        for event in _EVENTS:
            self.model.dropEvent(event, self)

    def eventexec(self, event: Any) -> None:
        """Pass on the news."""
        engine = self.model
        if event.getType() == _EVENT.BESTSOLFOUND:
            point = _point(engine, engine.getBestSol(), self._columns)
            stop = self._relay.point(point, engine.getDualbound(), engine.getNTotalNodes())
        else:
            stop = self._relay.progress(engine.getDualbound(), engine.getPrimalbound(), engine.getNTotalNodes())
        if stop:
            engine.interruptSolve()
