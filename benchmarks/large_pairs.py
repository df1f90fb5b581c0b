"""A million sampled pairs on each of ten large networks: none may be scored further apart than `upper`.

    python benchmarks/large_pairs.py [--pairs 1000000] [--seconds 60] [--results FOLDER]

A file per finished network, keyed by code and question. The exit code is 1 if a pair beats a bound.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
from instances import instance
from store import ROOT, code_digest, commit, finite, machine, read_json, today, write_json

import likewise as lw
from likewise.bounds import reach
from likewise.search import search
from likewise.search.inner import inner_problem

QUESTIONS = (
    "mild/adult_64x64|mahalanobis|0.2",
    "mild/credit_64x64|mahalanobis|0.2",
    "mild/german_64x64|mahalanobis|0.2",
    "mild/crime_64x64|mahalanobis|0.2",
    "mild/german_16x16x16x16|linf|0.2",
    "mild/crime_16x16x16x16|linf|0.2",
    "wide/adult_512x512|mahalanobis|0.2",
    "wide/crime_512x512|mahalanobis|0.2",
    "wide/adult_2048x2048|mahalanobis|0.2",
    "wide/crime_2048x2048|mahalanobis|0.2",
)
AT_ONCE = 20_000


def widest(problem: lw.Problem, pairs: int) -> float:
    """Return the widest gap of random similar pairs: a random person, and one at the edge of what is similar."""
    rng = np.random.default_rng(0)
    inner, _ = inner_problem(problem)
    box = reach(inner, 10.0).differences
    columns = np.intersect1d(box.free, problem.right.continuous)
    best = 0.0
    for start in range(0, pairs, AT_ONCE):
        count = min(AT_ONCE, pairs - start)
        left = problem.left.sample(count, rng)
        right = left.copy()
        step = rng.normal(0.0, 1.0, (count, len(columns)))
        d = np.zeros_like(left)
        d[:, columns] = step
        d *= problem.eps / np.maximum(problem.metric.distances(left + d, left)[:, None], 1e-12)
        right = np.clip(left + d, problem.right.lower, problem.right.upper)
        similar = problem.metric.distances(left, right) <= problem.eps
        gaps = np.abs(problem.network(left) - problem.network(right))
        best = max(best, float(np.where(similar, gaps, 0.0).max()))
    return best


def main() -> int:
    """Run what is missing and print a line for each network."""
    line = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    line.add_argument("--pairs", type=int, default=1_000_000)
    line.add_argument("--seconds", type=float, default=60.0)
    line.add_argument("--results", type=Path, default=ROOT / "results" / "large_pairs")
    options = line.parse_args()
    beaten = 0
    for name in QUESTIONS:
        problem = instance(name)
        parts = [code_digest(), problem.digest, str(options.pairs), str(options.seconds)]
        file = options.results / f"{hashlib.sha256(chr(10).join(parts).encode()).hexdigest()}.json"
        result: dict[str, Any] | None = read_json(file)
        if result is None:
            cert = search(problem, engine="auto", solver="highs", seconds=options.seconds, gap=1e-5, threads=2)
            sampled = widest(problem, options.pairs)
            result = {"name": name, "lower": cert.lower, "upper": finite(cert.upper), "sampled": sampled}
            result |= {"commit": commit(), "machine": machine("highs"), "date": today()}
            write_json(file, result)
        upper = float("inf") if result["upper"] is None else result["upper"]
        beaten += result["sampled"] > upper
        print(f"{name}: sampled {result['sampled']:.6f}, lower {result['lower']:.6f}, upper {upper:.6f}", flush=True)
    print(f"{len(QUESTIONS)} networks, {options.pairs} pairs each: {beaten} bounds beaten")
    return 1 if beaten else 0


if __name__ == "__main__":
    sys.exit(main())
