"""Random small problems at scale: dense search against `upper`, witnesses re-verified, one file per finished problem.

    python benchmarks/soundness.py [--suite small|wide] [--count 2000] [--seed0 0] [--seconds 20] [--results FOLDER]

The small problems have every activation and the metrics of the paper; the wide ones integers, constraints, every p,
embeddings, several outputs, sub-populations and residual networks. Every problem is certified by `branch`, by `milp`
with a solver that goes round, and by `paper` with another. It can be stopped and resumed; the summary and a table of
what was covered go to stdout, and the exit code is 1 if anything was refuted. Large networks: see large_pairs.py.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

from store import ROOT, Settings, code_digest, commit, finite, key, machine, read_json, today, write_json

from likewise import SolverError, SoundnessError
from likewise.search import search
from likewise.solvers import NAMES

# Highs on every other problem, the others in turn.
SOLVERS = ("highs", "scip", "highs", "cbc", "highs", "gurobi")
PAPER_SECONDS = 5.0

sys.path.insert(0, str(ROOT / "tests"))
problems: Any = import_module("problems")
oracle: Any = import_module("oracle")
wide: Any = import_module("wide")
wide_oracle: Any = import_module("wide_oracle")


@dataclass(frozen=True, slots=True)
class Suite:
    """Where problems come from, who judges them, how a file is called, and what the coverage table counts."""

    make: Callable[[int], Any]
    oracle: Any
    prefix: str
    rows: str
    columns: Sequence[str]
    names: tuple[str, ...]


SUITES = {
    "small": Suite(
        problems.make,
        oracle,
        "soundness",
        "activation",
        problems.METRICS,
        ("activation", "metric", "trait", "left", "smooth"),
    ),
    "wide": Suite(
        wide.make_wide,
        wide_oracle,
        "wide",
        "network",
        wide.METRICS,
        ("network", "metric", "output", "left", "integers", "rows", "smooth"),
    ),
}


def runs(case: Any, seconds: float) -> list[Settings]:
    """Return how a case is run: branch, milp with one solver, paper with another."""
    first, second = SOLVERS[case.seed % len(SOLVERS)], SOLVERS[(case.seed // 2 + 3) % len(SOLVERS)]
    return [
        Settings("branch", "highs", seconds, case.gap, 1),
        Settings("milp", first, seconds, case.gap, 1),
        Settings("paper", second, min(seconds, PAPER_SECONDS), case.gap, 1),
    ]


def check(suite: Suite, case: Any, settings: Settings, found: Any) -> dict[str, Any]:
    """Certify one case in one way and list everything that is wrong with the answer."""
    s = settings
    started = time.monotonic()
    told: dict[str, Any] = {"engine": s.engine, "solver": s.solver, "wrong": [], "refused": None}
    try:
        cert = search(case.problem, engine=s.engine, solver=s.solver, seconds=s.seconds, gap=s.gap, threads=s.threads)
    except SoundnessError as error:
        return told | {"wrong": [f"SoundnessError: {error}"], "closed": False, "seconds": time.monotonic() - started}
    except SolverError as error:
        return told | {"refused": str(error), "closed": False, "seconds": time.monotonic() - started}
    if "interrupted" in cert.notes:
        raise KeyboardInterrupt
    return told | {
        "lower": cert.lower,
        "upper": finite(cert.upper),
        "seconds": time.monotonic() - started,
        "closed": cert.gap <= s.gap,
        "wrong": suite.oracle.violations(case.problem, cert, found),
        "notes": list(cert.notes),
    }


def run_case(suite: Suite, seed: int, seconds: float) -> dict[str, Any]:
    """Return everything about one seed."""
    case = suite.make(seed)
    found = suite.oracle.dense_search(case.problem)
    return {
        "seed": seed,
        "case": repr(case),
        **{name: getattr(case, name) for name in suite.names},
        "oracle": found.gap,
        "runs": [check(suite, case, settings, found) for settings in runs(case, seconds)],
        "commit": commit(),
        "machine": machine("highs"),
        "date": today(),
    }


def result_file(suite: Suite, results: Path, seed: int, seconds: float, code: str) -> Path:
    """Return where the result of a seed is kept."""
    case = suite.make(seed)
    keys = [key(case.problem.digest, settings, code) for settings in runs(case, seconds)]
    return results / f"{suite.prefix}-{seed:05d}-{''.join(part[:12] for part in keys)}.json"


def faults(result: dict[str, Any]) -> list[str]:
    """Return what is wrong with a finished problem: refuted claims, and pairs of runs that contradict each other."""
    wrong = [f"{r['engine']} {r['solver']}: {w}" for r in result["runs"] for w in r["wrong"]]
    told = [r for r in result["runs"] if r.get("upper") is not None]
    lowest, highest = min((r["upper"] for r in told), default=0.0), max((r["lower"] for r in told), default=0.0)
    return wrong + ([f"two runs contradict each other: {highest!r} > {lowest!r}"] if told and highest > lowest else [])


def summary(results: Sequence[dict[str, Any]], suite: Suite = SUITES["small"]) -> str:
    """Return the coverage tables, the open, refused and refuted cells, and one line that sums up."""
    every = [(r, run) for r in results for run in r["runs"]]
    used = [(r, run) for r, run in every if not run["refused"]]
    exact = [(r, run) for r, run in used if run["engine"] != "paper"]
    refuted = [f"REFUTED: {r['case']}: {fault}" for r in results for fault in faults(r)]
    told = []
    for engine in ("branch", "milp"):
        ended = [run["closed"] for _, run in exact if run["engine"] == engine]
        told.append(f"{engine} closed {sum(ended)} of {len(ended)}")
    lines = [
        *coverage(suite.rows, [(r[suite.rows], r["metric"]) for r, _ in used], suite.columns),
        "",
        *coverage("engine", [(run["engine"], run["solver"]) for _, run in used], NAMES),
        "",
        *(f"open: {r['case']}, {run['engine']} with {run['solver']}" for r, run in exact if not run["closed"]),
        *(
            f"refused: {r['case']} {run['engine']} {run['solver']}: {run['refused']}"
            for r, run in every
            if run["refused"]
        ),
        *refuted,
        f"{len(results)} problems, {len(every)} runs: {len(refuted)} refuted, {', '.join(told)}",
    ]
    return "\n".join(lines)


def coverage(title: str, cells: Sequence[tuple[str, str]], columns: Sequence[str]) -> list[str]:
    """Return the lines of a table that counts the cells."""
    counts = Counter(cells)
    names = dict.fromkeys(sorted(name for name, _ in cells))
    rows = [f"{name:<13}" + "".join(f"{counts[name, c]:>12}" for c in columns) for name in names]
    return [f"{title:<13}" + "".join(f"{c:>12}" for c in columns), *rows]


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line."""
    line = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    line.add_argument("--suite", choices=list(SUITES), default="small")
    line.add_argument("--count", type=int, default=2000)
    line.add_argument("--seed0", type=int, default=0)
    line.add_argument("--step", type=int, default=1, help="14 in the small suite: relu networks alone")
    line.add_argument("--seconds", type=float, default=20.0)
    line.add_argument("--results", type=Path, default=ROOT / "results" / "soundness")
    options = line.parse_args(words)
    suite = SUITES[options.suite]
    code = code_digest()
    results = []
    stopped = False
    try:
        for index, seed in enumerate(count(options.seed0, options.step)):
            if index == options.count:
                break
            file = result_file(suite, options.results, seed, options.seconds, code)
            result = read_json(file)
            if result is None:
                result = run_case(suite, seed, options.seconds)
                write_json(file, result)
                state = "; ".join(faults(result)) or "sound"
                seconds = sum(run["seconds"] for run in result["runs"])
                print(
                    f"[{index + 1}/{options.count}] {result['case']}: {state}, {seconds:.1f} s",
                    file=sys.stderr,
                    flush=True,
                )
            results.append(result)
    except KeyboardInterrupt:
        stopped = True
        print("stopped; the same command goes on from here", file=sys.stderr)
    print(summary(results, suite))
    return 130 if stopped else 1 if any(faults(r) for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
