"""What each idea of the branch engine brings alone: the same questions with one of them switched off at a time.

    python benchmarks/ablation.py [--seconds 20] [--only TEXT] [--results results/ablation]
                                  [-o benchmarks/tables/ablation.md]

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

from instances import instance
from store import ROOT, code_digest, commit, finite, machine, read_json, today, write_json, write_text
from table import markdown, where

from likewise.bounds import flips, joint
from likewise.search import aim, branch, compiled, fast, join, primal, root, search
from likewise.solvers import LinearModel, Session

QUESTIONS = (
    "mild/adult_16x16|linf|0.05",
    "mild/adult_32|mahalanobis|0.2",
    "mild/german_16x16|mahalanobis|0.2",
    "mild/credit_24|mahalanobis|0.05",
    "mild/adult_16x16x16|linf|0.05",
    "mild/german_24|box|0.2",
    "mild/crime_8|mahalanobis|0.2",
    "mild/german_32|mahalanobis|0.05",
    "mild/credit_32|linf|0.05",
    "smooth/adult_sigmoid_16x16|linf|0.2",
    "smooth/crime_sigmoid_16|mahalanobis|0.2",
    "smooth/crime_tanh_16|linf|0.2",
)


def _primal(model: LinearModel, basis: object = None, only_bounds: bool = False) -> Session:
    return Session(model, basis)


def _choice(name: str, value: float) -> Callable[[], contextlib.AbstractContextManager[Any]]:
    return lambda: mock.patch.dict(compiled.CHOICES, {name: value})


OFF: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
    "nothing": contextlib.nullcontext,
    "the kernel": lambda: mock.patch.object(root, "fits", return_value=False),
    "tangents for the ball (folds instead)": lambda: mock.patch.object(compiled, "_ball", return_value={}),
    "narrowing dz to a fixed point at the root": lambda: mock.patch.object(root, "ROUNDS", 1),
    "narrowing all of the root where splitting takes long": lambda: mock.patch.object(fast, "PATIENCE", math.inf),
    "narrowing dz inside the tree": _choice("narrowing", 0.0),
    "trying splits out": _choice("reliable", 0),
    "leaving harmless deviations alone": _choice("harmless", False),
    "dives for pairs in the tree": _choice("dive_every", 1 << 30),
    "polishing the tree's pairs": lambda: mock.patch.object(fast.Fast, "climb", return_value=None),
    "all differences together": lambda: mock.patch.object(join, "can_join", return_value=False),
    "confining differences by it": lambda: mock.patch.object(join, "hold", return_value=None),
    "bowls of smooth neurons": lambda: mock.patch.object(joint, "bowls", return_value=[]),
    "planes of smooth neurons": lambda: mock.patch.object(root.Root, "lean", return_value=False),
    "halving differences of smooth networks": lambda: mock.patch.object(branch, "cleave", return_value=None),
    "annealing": lambda: mock.patch.object(primal, "annealer", return_value=None),
    "aiming at the phases of a joint": lambda: mock.patch.object(aim, "_target", return_value=None),
    "narrowing all of the root again after a much better pair": lambda: mock.patch.object(fast, "JUMP", math.inf),
    "any look for pairs but the tree's": lambda: mock.patch.object(primal.Primal, "look", return_value=None),
    "the dual simplex for changes of category": lambda: mock.patch.object(flips, "Session", _primal),
    "tangents where points ask for them": lambda: mock.patch.object(root.Root, "draw", return_value=False),
}


def cells(folder: Path, seconds: float, only: str) -> Iterator[tuple[str, str, Path]]:
    """Yield every question with every idea and the file of its result."""
    code = code_digest()
    for name in filter(lambda one: only in one, QUESTIONS):
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
    line.add_argument("--only", default="", help="only questions whose name has this text in it")
    line.add_argument("--results", type=Path, default=ROOT / "results" / "ablation")
    line.add_argument("-o", dest="output", type=Path, default=ROOT / "results" / "ablation.md")
    options = line.parse_args()
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for name, idea, file in cells(options.results, options.seconds, options.only):
        result = read_json(file) or run(name, idea, file, options.seconds)
        found[name, idea] = result
        print(f"{name} without {idea}: {told(result)}", flush=True)
    names = [name for name in QUESTIONS if options.only in name]
    rows = [[idea, *(told(found[name, idea]) for name in names)] for idea in OFF]
    text = markdown(["without", *(name.replace("|", " ") for name in names)], rows)
    write_text(options.output, f"# Ablation\n\n{where(list(found.values()))}\n\n{text}\n")


if __name__ == "__main__":
    main()
