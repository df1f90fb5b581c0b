"""HiGHS, the default solver: free, and always installed."""

from __future__ import annotations

import math
from typing import Any, final

import highspy
import numpy as np

from likewise.errors import SolverError
from likewise.solvers._model import Answer, Array, Limits, LinearModel, Status, Watch
from likewise.solvers._relay import TOLERANCE, Relay

_STATUS = {
    highspy.HighsModelStatus.kOptimal: Status.OPTIMAL,
    highspy.HighsModelStatus.kInterrupt: Status.STOPPED,
    highspy.HighsModelStatus.kTimeLimit: Status.LIMIT,
    highspy.HighsModelStatus.kIterationLimit: Status.LIMIT,
    highspy.HighsModelStatus.kSolutionLimit: Status.LIMIT,
    highspy.HighsModelStatus.kMemoryLimit: Status.LIMIT,
    highspy.HighsModelStatus.kInfeasible: Status.INFEASIBLE,
    highspy.HighsModelStatus.kUnbounded: Status.UNBOUNDED,
    # Variables are boxed, so of the two it is infeasible.
    highspy.HighsModelStatus.kUnboundedOrInfeasible: Status.INFEASIBLE,
}
_EVENT = highspy.cb.HighsCallbackType
_EVENTS = (
    _EVENT.kCallbackMipInterrupt,
    _EVENT.kCallbackMipImprovingSolution,
    _EVENT.kCallbackSimplexInterrupt,
    _EVENT.kCallbackIpmInterrupt,
)
_TREE = (_EVENT.kCallbackMipInterrupt, _EVENT.kCallbackMipImprovingSolution)


@final
class Highs:
    """Mixed-integer maximisation with HiGHS; bounds and points arrive through its callbacks.

    Do not start another run with a different number of threads from inside a callback of this one: HiGHS keeps one
    pool of workers per calling thread, which has to be rebuilt to change its size. A `Session` is safe there.
    """

    name: str = "highs"

    def solve(
        self, model: LinearModel, limits: Limits, *, start: Array | None = None, watch: Watch | None = None
    ) -> Answer:
        """Maximise the model. An infeasible model is reported with bound +inf: it is never a proof."""
        relay = Relay(model, watch)
        engine = load(model, integers=True)
        set_options(
            engine,
            threads=max(1, limits.threads),
            time_limit=float(max(0.0, limits.seconds)),
            mip_rel_gap=0.0,
            mip_abs_gap=float(limits.gap),
            mip_feasibility_tolerance=TOLERANCE,
        )
        if start is not None:
            engine.setSolution(start.size, np.arange(start.size, dtype=np.int32), start.astype(np.float64))
        with relay:
            _listen(engine, relay)
            _run(engine)
            status = _STATUS.get(engine.getModelStatus(), Status.FAILED)
            info = engine.getInfo()
            point = None
            if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
                point = np.array(engine.getSolution().col_value, dtype=np.float64)
            bound = info.mip_dual_bound if model.integer.any() else math.inf
            return relay.answer(status, bound, point, info.mip_node_count)


def load(model: LinearModel, *, integers: bool) -> Any:
    """Hand the model's arrays to a new, silent HiGHS with tight tolerances."""
    engine: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    set_options(engine, output_flag=False, primal_feasibility_tolerance=TOLERANCE, dual_feasibility_tolerance=TOLERANCE)
    matrix = model.matrix
    kinds = model.integer if integers else np.zeros(model.objective.size)
    status = engine.passModel(
        model.objective.size,
        model.row_lower.size,
        matrix.nnz,
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMaximize),
        model.constant,
        model.objective,
        model.lower,
        model.upper,
        model.row_lower,
        model.row_upper,
        matrix.indptr.astype(np.int32),
        matrix.indices.astype(np.int32),
        matrix.data,
        kinds.astype(np.int32),
    )
    if status == highspy.HighsStatus.kError:
        raise SolverError("HiGHS refused the model: look for nan, for arrays of the wrong length")
    return engine


def set_options(engine: Any, **options: bool | int | float | str) -> None:
    """Set options by name; one that HiGHS does not know is an error."""
    for name, option in options.items():
        if engine.setOptionValue(name, option) != highspy.HighsStatus.kOk:
            raise SolverError(f"HiGHS {engine.version()} refused the option {name} = {option}")


def _listen(engine: Any, relay: Relay) -> None:
    def heard(event: int, _message: str, said: Any, reply: Any, _data: object) -> None:
        if event == _EVENT.kCallbackMipImprovingSolution:
            point = np.array(said.mip_solution, dtype=np.float64)
            stop = relay.point(point, said.mip_dual_bound, said.mip_node_count)
        elif event in _TREE:
            stop = relay.progress(said.mip_dual_bound, said.mip_primal_bound, said.mip_node_count)
        else:
            stop = relay.progress(math.inf, -math.inf, 0)
        if stop and event != _EVENT.kCallbackMipImprovingSolution:
            reply.user_interrupt = True

    engine.setCallback(heard, None)
    for event in _EVENTS:
        engine.startCallback(event)


def _run(engine: Any) -> None:
    """Run; if the calling thread's pool of workers has another size than asked for, rebuild it and run again."""
    if engine.run() == highspy.HighsStatus.kError and engine.getModelStatus() == highspy.HighsModelStatus.kNotset:
        highspy.Highs.resetGlobalScheduler(True)
        engine.run()
