"""Many objectives over one polyhedron: a linear program that keeps its basis."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Protocol, final

import highspy
import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.solvers._model import Array, LinearModel
from likewise.solvers._relay import TOLERANCE
from likewise.solvers.highs import load, set_options
from likewise.solvers.safe import Dual, dual

# A new objective leaves the last basis primal feasible, so the primal simplex goes on from there. From the basis of a
# part that this one was cut from, it takes a third of the steps of the dual simplex, since rows have changed as well as
# bounds; where bounds are all that changes, the dual simplex is five times faster. Scaling and perturbation cost a
# third of the time each. Where the first finds nothing, the dual simplex goes on from the same basis to show that
# nothing is there (its ray is a proof), and at last starts afresh with all help there is.
_WARM = {"simplex_strategy": 4, "simplex_scale_strategy": 0, "primal_simplex_bound_perturbation_multiplier": 0.0}
_TURNED = _WARM | {"simplex_strategy": 1}
_COLD = {"simplex_strategy": 1, "simplex_scale_strategy": 2, "primal_simplex_bound_perturbation_multiplier": 1.0}

LARGEST_TRUSTED = 1e7  # coefficients beyond which HiGHS was seen to call a false bound optimal
ITERATIONS = 20_000  # of the simplex method, and 20 more for each row and column; then a bound is taken as it is
SECONDS = 5.0  # likewise, where steps are slow or numbers so wild that the method turns in circles


class Maximiser(Protocol):
    """What bounds one linear function after the other over the same polyhedron, each with its proof."""

    proof: Dual

    @property
    def columns(self) -> int:
        """How many variables the model has."""

    @property
    def basis(self) -> object:
        """Where the last objective has led."""

    def maximise(self, objective: Array) -> tuple[float, Array]:
        """Return a proven upper bound on objective.x, and a point."""

    def change_bounds(self, columns: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> None:
        """Replace the bounds of some variables."""


@final
class Session:
    """Maximise linear functions over the continuous relaxation of a model, each from the basis of the last.

    The model's own objective and constant are ignored. `proof` is that of the last objective's bound. `basis`, that of
    a model with as many rows and columns, is where to start. `only_bounds`: they change more often than the objective.
    """

    def __init__(self, model: LinearModel, basis: object = None, only_bounds: bool = False) -> None:
        columns = model.objective.size
        self._model = replace(model, objective=np.zeros(columns), constant=0.0)
        self._columns = np.arange(columns, dtype=np.int32)
        self._free = np.zeros(model.row_lower.size)
        self.proof = Dual(math.inf, self._free)
        self._engine = load(self._model, integers=False)
        # Threads stay unset: HiGHS refuses a number other than that of the pool a surrounding run may have built.
        self._first = self._method = _TURNED if only_bounds else _WARM
        set_options(self._engine, solver="simplex", presolve="off", parallel="off", **self._method)
        most = ITERATIONS + 20 * (columns + model.row_lower.size)
        set_options(self._engine, simplex_iteration_limit=most)
        if basis is not None:
            self._engine.setBasis(basis)

    @property
    def columns(self) -> int:
        """How many variables the model has."""
        return int(self._columns.size)

    @property
    def basis(self) -> object:
        """The basis of the last objective, for a session over a model of the same shape."""
        return self._engine.getBasis()

    def maximise(self, objective: Array) -> tuple[float, Array]:
        """Return a proven upper bound on objective.x, and the point the LP found (a hint, feasible to 1e-9).

        The bound is rebuilt from the duals with outward rounding, so it holds whatever HiGHS did; if HiGHS failed, it
        is the maximum over the variables' bounds alone, and if it called the polyhedron empty, what its ray proves.
        `proof` keeps how it came about.
        """
        model = replace(self._model, objective=np.asarray(objective, dtype=np.float64))
        self._engine.changeColsCost(self._columns.size, self._columns, model.objective)
        self._use(self._first)
        optimal = self._optimal()
        for method in (_TURNED, _COLD):
            if optimal:
                break
            self.proof = self._without_optimum(model)
            least = np.minimum(model.objective * model.lower, model.objective * model.upper).sum()
            if self.proof.bound < least:  # below the least value there is: proven empty, and nothing to improve
                return self.proof.bound, (model.lower + model.upper) / 2
            if method is _COLD:  # a basis that failed twice is not worth going on from
                self._engine.clearSolver()
            if method is not self._method:
                self._use(method)
                optimal = self._optimal()
        if optimal:
            solution = self._engine.getSolution()
            self.proof = dual(model, np.array(solution.row_dual))
            return self.proof.bound, np.array(solution.col_value)
        self.proof = self._without_optimum(model)
        return self.proof.bound, (model.lower + model.upper) / 2

    def _without_optimum(self, model: LinearModel) -> Dual:
        """Return the best bound at hand when there is no optimum: of no multipliers, or along a dual ray.

        If the polyhedron is empty, multiples of a ray that shows it (Farkas) push the bound below anything. Whether it
        does is not taken on trust: every candidate is only a choice of multipliers for `dual`.
        """
        candidates = [self._free]
        if self._engine.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
            _, has_ray, ray = self._engine.getDualRay()
            if has_ray and np.isfinite(ray).all() and np.any(ray):
                unit = np.array(ray) / np.abs(ray).max()
                candidates += [sign * 10.0**power * unit for sign in (-1, 1) for power in (3, 6, 9, 11)]
        return min((dual(model, y) for y in candidates), key=lambda proof: proof.bound)

    def _use(self, method: dict[str, float]) -> None:
        if method is not self._method:
            set_options(self._engine, **method)
            self._method = method

    def _optimal(self) -> bool:
        # HiGHS's clock runs on from one objective to the next.
        set_options(self._engine, time_limit=self._engine.getRunTime() + SECONDS)
        self._engine.run()
        return bool(self._engine.getModelStatus() == highspy.HighsModelStatus.kOptimal)

    def change_bounds(self, columns: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> None:
        """Replace the bounds of some variables."""
        where = np.asarray(columns, dtype=np.int32)
        new_lower, new_upper = self._model.lower.copy(), self._model.upper.copy()
        new_lower[where], new_upper[where] = lower, upper
        self._model = replace(self._model, lower=new_lower, upper=new_upper)
        self._engine.changeColsBounds(where.size, where, new_lower[where], new_upper[where])


def adapted(basis: Any, rows: NDArray[np.int64]) -> Any:
    """Return a basis for a model with other rows: `rows` says which of the old ones each is, -1 if it is new.

    It need not be a basis at all: HiGHS makes one of it.
    """
    new = highspy.HighsBasis()
    status = basis.row_status
    new.col_status = basis.col_status
    new.row_status = [highspy.HighsBasisStatus.kBasic if k < 0 else status[k] for k in rows.tolist()]
    new.alien, new.valid = True, True
    return new


def solver_room(model: LinearModel) -> float:
    """Return how much to add to a solver's dual bound before it may enter a claim.

    A solver meets rows and reduced costs only up to a tolerance. A row that may be missed by it moves the maximum by
    the row's multiplier times as much, a reduced cost by the range of its variable (those of the objective itself are
    basic). The multipliers of the tree's nodes
    are not known; those of the relaxation at the root stand for them, ten times over. This is an estimate, not a
    proof: it is why such bounds are listed as trusted. Where coefficients are so large that a tolerance is no longer
    small beside what they multiply, no room is enough: then it is infinite, and nothing is claimed.
    """
    if np.abs(model.matrix.data).max(initial=0.0) > LARGEST_TRUSTED:
        return math.inf
    session = Session(model)
    session.maximise(model.objective)
    ranges = (model.upper - model.lower)[model.objective == 0.0]
    return 10 * TOLERANCE * float(1.0 + np.abs(session.proof.multipliers).sum() + ranges.sum())
