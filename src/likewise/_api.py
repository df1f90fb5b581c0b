"""The front door: coerce what users hand over, then walk the line from problem to certificate."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path

from numpy.typing import ArrayLike

from likewise.certificate import Certificate
from likewise.domain import Domain
from likewise.errors import InputError
from likewise.load import load
from likewise.metric import Metric
from likewise.network import Network
from likewise.problem import Problem
from likewise.search import News, search


def certify(
    network: Network | str | os.PathLike[str],
    domain: Domain,
    metric: Metric,
    eps: float,
    *,
    delta: float | None = None,
    seconds: float = 60.0,
    gap: float = 1e-5,
    engine: str = "auto",
    solver: str = "highs",
    threads: int | None = None,
    left: Domain | ArrayLike | None = None,
    output: int = 0,
    scale: str = "score",
    progress: Callable[[News], None] | None = None,
) -> Certificate:
    """Bound how far apart two eps-similar people can be scored.

    Returns a certificate with proven `lower <= delta_max <= upper`, `lower` shown by a real pair. It stops when the
    bounds are within `gap`, when `delta` is decided, or after `seconds`; Ctrl-C returns what is known by then.
    `left` fixes one person, or a part of the domain, and solves both directions. `progress` is called with News.
    """
    problem = make_problem(network, domain, metric, eps, left=left, output=output, scale=scale)
    _positive("seconds", seconds)
    _positive("gap", gap)
    if delta is not None and not (_is_number(delta) and delta >= 0):
        raise InputError(f"delta must be a finite number >= 0, got {delta!r}")
    count = threads if threads is not None else os.cpu_count() or 1
    if not (isinstance(count, int) and count >= 1):
        raise InputError(f"threads must be a whole number >= 1, got {threads!r}")
    return search(
        problem,
        engine=engine,
        solver=solver,
        seconds=seconds,
        gap=gap,
        delta=delta,
        threads=count,
        listener=progress,
    )


def make_problem(
    network: Network | str | os.PathLike[str],
    domain: Domain,
    metric: Metric,
    eps: float,
    *,
    left: Domain | ArrayLike | None = None,
    output: int = 0,
    scale: str = "score",
) -> Problem:
    """Return the question as a value, every part of it checked."""
    if not isinstance(domain, Domain):
        raise InputError(f"domain must be a likewise.Domain, got {type(domain).__name__}")
    if not isinstance(metric, Metric):
        raise InputError(f"metric must be a likewise metric, got {type(metric).__name__}")
    one = load(Path(network) if isinstance(network, str) else network).select(output)
    if scale not in ("score", "logit"):
        raise InputError(f"scale must be 'score' or 'logit', got {scale!r}")
    who = domain if left is None else left if isinstance(left, Domain) else domain.at(left)
    return Problem(one.logit() if scale == "logit" else one, who, domain, metric, eps)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _positive(name: str, value: float) -> None:
    if not (_is_number(value) and value > 0):
        raise InputError(f"{name} must be a finite number above 0, got {value!r}")
