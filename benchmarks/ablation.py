"""What each idea of the branch engine brings alone: the same questions with one of them switched off at a time.

    python benchmarks/ablation.py [--seconds 20] [--results results/ablation] [-o benchmarks/tables/ablation.md]

A file per finished cell, keyed by code, question and idea, so that it can be stopped and resumed.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from instances import instance
from store import ROOT, code_digest, commit, finite, machine, read_json, today, write_json, write_text
from table import markdown, where

from likewise.bounds import flips
from likewise.rounding import Array
from likewise.search import attack, bounding, branch, choose, primal, root, search
from likewise.search.attack import WIDTHS
from likewise.search.score import Score
from likewise.search.tree import Split
from likewise.solvers import LinearModel, Session

QUESTIONS = (
    "mild/german_16|linf|0.2",
    "mild/german_16|mahalanobis|0.2",
    "mild/adult_16|mahalanobis|0.2",
    "mild/credit_16|mahalanobis|0.05",
    "mild/adult_16x16|linf|0.05",
    "mild/adult_32|linf|0.2",
    "mild/german_16x16|linf|0.05",
    "mild/german_16|box|0.2",
    "smooth/german_tanh_16|linf|0.2",
)


def _first(self: choose.Experience, splits: list[Split]) -> list[Split]:
    return splits[:1]


def _coarse(self: Score, t: float, slack: float) -> float:
    excess = math.tanh(slack / 4) if self.curved else slack
    return self.factor * (t if slack < 0.0 else math.nextafter(t + excess * (1 + 1e-13), math.inf))


def _primal(model: LinearModel, basis: object = None, only_bounds: bool = False) -> Session:
    return Session(model, basis)


def _either_way(off: Array, wanted: Array) -> Array:
    return np.abs(off)


OFF: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
    "nothing": contextlib.nullcontext,
    "narrowing dz to a fixed point at the root": lambda: mock.patch.object(root, "ROUNDS", 1),
    "narrowing dz again inside the tree": lambda: mock.patch.object(branch, "AGAIN", 0.0),
    "trying splits out": lambda: mock.patch.object(choose.Experience, "shortlist", _first),
    "splitting dz last": lambda: mock.patch.object(choose, "is_straight", return_value=False),
    "the dual simplex for the parts of the tree": lambda: mock.patch.object(bounding, "Session", _primal),
    "leaving harmless deviations alone": lambda: mock.patch.object(choose, "harm", _either_way),
    "the sharp bound of a gap by its slack": lambda: mock.patch.object(Score, "upper_from_slack", _coarse),
    "people on the pieces of a point": lambda: mock.patch.object(root.Root, "match", return_value=None),
    "the dual simplex for changes of category": lambda: mock.patch.object(flips, "Session", _primal),
    "exchanging two categories at once": lambda: mock.patch.object(primal, "MOVES", (attack.kick, attack.breed)),
    "dives for pairs": lambda: mock.patch.object(root.Root, "dive", return_value=None),
    "rounded kinks in the attack": lambda: mock.patch.object(attack, "WIDTHS", tuple(0.0 for _ in WIDTHS)),
    "tangents where points ask for them": lambda: mock.patch.object(root.Root, "draw", return_value=False),
}


def cells(folder: Path, seconds: float) -> Iterator[tuple[str, str, Path]]:
    """Yield every question with every idea and the file of its result."""
    code = code_digest()
    for name in QUESTIONS:
        for idea in OFF:
            parts = [code, instance(name).digest, idea, str(seconds)]
            yield name, idea, folder / f"{hashlib.sha256(chr(10).join(parts).encode()).hexdigest()}.json"


def run(name: str, idea: str, file: Path, seconds: float) -> dict[str, Any]:
    """Certify one question with one idea switched off."""
    started = time.monotonic()
    with OFF[idea]():
        cert = search(instance(name), engine="branch", solver="highs", seconds=seconds, gap=1e-5, threads=1)
    content = {
        "name": name,
        "idea": idea,
        "lower": cert.lower,
        "upper": finite(cert.upper),
        "seconds": time.monotonic() - started,
        "nodes": cert.nodes,
        "commit": commit(),
        "command": f"python benchmarks/ablation.py --seconds {seconds:g}",
        "machine": machine("highs"),
        "date": today(),
    }
    write_json(file, content)
    return content


def told(result: dict[str, Any]) -> str:
    """Say when a question was closed, or how far it is open."""
    if result["upper"] is None:
        return "no bound"
    gap = result["upper"] - result["lower"]
    return f"{result['seconds']:.1f} s" if gap <= 1e-5 * (1 + 1e-9) else f"open by {gap:.1e}"


def main() -> None:
    """Run what is missing, then write the table."""
    line = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    line.add_argument("--seconds", type=float, default=20.0)
    line.add_argument("--results", type=Path, default=ROOT / "results" / "ablation")
    line.add_argument("-o", dest="output", type=Path, default=ROOT / "results" / "ablation.md")
    options = line.parse_args()
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for name, idea, file in cells(options.results, options.seconds):
        result = read_json(file) or run(name, idea, file, options.seconds)
        found[name, idea] = result
        print(f"{name} without {idea}: {told(result)}", flush=True)
    rows = [[idea, *(told(found[name, idea]) for name in QUESTIONS)] for idea in OFF]
    text = markdown(["without", *(name.replace("|", " ") for name in QUESTIONS)], rows)
    write_text(options.output, f"# Ablation\n\n{where(list(found.values()))}\n\n{text}\n")


if __name__ == "__main__":
    main()
