"""Certificates with a proof, made by the engine in a short time: what tests of logs and of the checker begin with."""

from __future__ import annotations

from likewise import Certificate, Problem
from likewise.search import search


def certified(problem: Problem, seconds: float = 20.0, gap: float = 1e-3) -> Certificate:
    """Return a certificate of the branch engine, closed or not."""
    return search(problem, engine="branch", solver="highs", seconds=seconds, gap=gap, threads=1)
