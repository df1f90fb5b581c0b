"""Solvers by name: arrays in, both-sided answers out, and bounds that hold in real arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from likewise.errors import InputError, MissingExtra
from likewise.solvers._model import Answer, Limits, LinearModel, Progress, Solver, Status, Watch
from likewise.solvers.safe import Dual, dual, dual_bound
from likewise.solvers.session import Maximiser, Session, adapted, solver_room

__all__ = [
    "NAMES",
    "Answer",
    "Dual",
    "Limits",
    "LinearModel",
    "Maximiser",
    "Progress",
    "Session",
    "Solver",
    "Status",
    "Watch",
    "adapted",
    "dual",
    "dual_bound",
    "get",
    "solver_room",
]


def _highs() -> Solver:
    from likewise.solvers.highs import Highs

    return Highs()


def _scip() -> Solver:
    from likewise.solvers.scip import Scip

    return Scip()


def _gurobi() -> Solver:
    from likewise.solvers.gurobi import Gurobi

    return Gurobi()


def _cbc() -> Solver:
    from likewise.solvers.cbc import Cbc

    return Cbc()


# Name -> (library, loader); the extra to install has the solver's name.
_LOADERS: dict[str, tuple[str, Callable[[], Solver]]] = {
    "highs": ("highspy", _highs),
    "scip": ("pyscipopt", _scip),
    "gurobi": ("gurobipy", _gurobi),
    "cbc": ("cbcbox", _cbc),
}
NAMES = tuple(_LOADERS)


def get(name: str) -> Solver:
    """Return the solver called `name`; its library is imported now and not before."""
    if name not in _LOADERS:
        raise InputError(f"unknown solver {name!r}: expected one of {', '.join(NAMES)}")
    library, loader = _LOADERS[name]
    try:
        import_module(library)
        return loader()
    except ImportError as missing:
        raise MissingExtra(f"the solver {name} (Python library {library})", name) from missing
