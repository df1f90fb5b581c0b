"""Gurobi, through gurobipy (extra `gurobi`); the licence pip installs ends at 2000 rows and columns."""

from __future__ import annotations

import math
import signal
from typing import Any, final

import gurobipy
import numpy as np
from gurobipy import GRB

from likewise.errors import SolverError
from likewise.solvers._model import Answer, Array, Limits, LinearModel, Status, Watch
from likewise.solvers._relay import TOLERANCE, Relay

WILD = 1e8  # beyond this ratio of coefficients Gurobi's presolve was seen to lose a real pair (random problem 892)
_STATUS = {
    GRB.OPTIMAL: Status.OPTIMAL,
    GRB.INTERRUPTED: Status.STOPPED,
    GRB.TIME_LIMIT: Status.LIMIT,
    GRB.NODE_LIMIT: Status.LIMIT,
    GRB.ITERATION_LIMIT: Status.LIMIT,
    GRB.SOLUTION_LIMIT: Status.LIMIT,
    GRB.MEM_LIMIT: Status.LIMIT,
    GRB.WORK_LIMIT: Status.LIMIT,
    GRB.INFEASIBLE: Status.INFEASIBLE,
    GRB.UNBOUNDED: Status.UNBOUNDED,
    GRB.INF_OR_UNBD: Status.INFEASIBLE,  # variables are boxed, so of the two it is infeasible
}


@final
class Gurobi:
    """Mixed-integer maximisation with Gurobi; bounds and points arrive through its callback."""

    name: str = "gurobi"

    def solve(
        self, model: LinearModel, limits: Limits, *, start: Array | None = None, watch: Watch | None = None
    ) -> Answer:
        """Maximise the model. An infeasible model is reported with bound +inf: it is never a proof."""
        relay = Relay(model, watch)
        try:
            with gurobipy.Env(params={"OutputFlag": 0}) as env, gurobipy.Model(env=env) as engine:
                columns = _load(engine, model)
                _configure(engine, limits, model)
                if start is not None:
                    columns.Start = start
                return _run(engine, columns, relay)
        except gurobipy.GurobiError as error:
            raise SolverError(_explain(error, model)) from error


def _load(engine: Any, model: LinearModel) -> Any:
    kinds = np.where(model.integer, GRB.INTEGER, GRB.CONTINUOUS)
    columns = engine.addMVar(model.objective.size, lb=model.lower, ub=model.upper, vtype=kinds)
    engine.setObjective(model.objective @ columns + model.constant, GRB.MAXIMIZE)
    equal = model.row_lower == model.row_upper
    for rows, sense, side in (
        (equal, "=", model.row_upper),
        (~equal & (model.row_upper < math.inf), "<", model.row_upper),
        (~equal & (model.row_lower > -math.inf), ">", model.row_lower),
    ):
        if rows.any():
            engine.addMConstr(model.matrix[rows], columns, sense, side[rows])
    return columns


def _configure(engine: Any, limits: Limits, model: LinearModel) -> None:
    sizes = np.abs(model.matrix.data[model.matrix.data != 0.0])
    is_wild = bool(sizes.size) and float(sizes.max()) > WILD * float(sizes.min())
    for name, option in (
        ("NumericFocus", 2 if is_wild else 0),
        ("TimeLimit", max(0.0, limits.seconds)),
        ("Threads", max(1, limits.threads)),
        ("MIPGap", 0.0),
        ("MIPGapAbs", limits.gap),
        ("FeasibilityTol", TOLERANCE),
        ("IntFeasTol", TOLERANCE),
        ("OptimalityTol", TOLERANCE),
    ):
        engine.setParam(name, option)


def _run(engine: Any, columns: Any, relay: Relay) -> Answer:
    code = GRB.Callback

    def heard(model: Any, where: int) -> None:
        if where == code.MIPSOL:
            point = np.array(model.cbGetSolution(columns), dtype=np.float64)
            stop = relay.point(point, model.cbGet(code.MIPSOL_OBJBND), model.cbGet(code.MIPSOL_NODCNT))
        elif where == code.MIP:
            stop = relay.progress(*(model.cbGet(what) for what in (code.MIP_OBJBND, code.MIP_OBJBST, code.MIP_NODCNT)))
        else:
            stop = relay.progress(math.inf, -math.inf, 0)
        if stop:
            model.terminate()

    with relay:
        engine.optimize(heard)
        if engine.Status == GRB.INTERRUPTED and not relay.stop:
            signal.raise_signal(signal.SIGINT)  # Gurobi caught a Ctrl-C that was meant for Python
        status = _STATUS.get(engine.Status, Status.FAILED)
        point = np.array(columns.X, dtype=np.float64) if engine.SolCount else None
        bound = engine.ObjBound if engine.IsMIP and status is not Status.INFEASIBLE else math.inf
        return relay.answer(status, bound, point, engine.NodeCount)


def _explain(error: Any, model: LinearModel) -> str:
    if error.errno == GRB.Error.SIZE_LIMIT_EXCEEDED:
        rows, columns = model.matrix.shape
        return (
            f"Gurobi refused a model of {rows} rows and {columns} columns: its free licence ends at 2000 rows and "
            "2000 columns.\nInstall a full licence or choose another solver, such as 'highs'."
        )
    return f"Gurobi failed with error {error.errno}: {error}"
