"""Put the published numbers of training beside ours, from the result files of train_tables.py.

    python benchmarks/train_paper.py [--seeds 5] [--results FOLDER] [-o FILE.md]

The published numbers are in published_training.json. Ours are the grids small, crime, paper (certified, all shapes) and
methods ([8]). Only shapes that both have are compared.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from store import ROOT, publish
from table import markdown
from train_report import gaps, grouped, shape, spread, worst
from train_tables import finished

PUBLISHED = Path(__file__).with_name("published_training.json")
GRIDS = ["small", "crime", "paper", "methods"]
OURS = {"ftu": "FTU", "sensr": "SenSR", "milp": "MILP", "certified": "MILP"}  # what each is compared with
CAVEATS = """Theirs: 20 cores and a graphics card, deltas of the networks as trained, each the best pair found in 180 s,
which is no upper bound; means over their architectures. Ours: one shared core, deltas of the calibrated networks;
`certified` over all seeds and shapes with the largest proven upper bound, the other methods for [8] alone. Their test
people, and the groups of their equalised odds (EOD), may be others than ours. Ratios above 1 are in our favour."""

Results = list[dict[str, Any]]


def times_table(results: Results, published: dict[str, Any]) -> str:
    """Return the seconds of training, theirs and ours."""
    head = ["data", "hidden", "ours", "seeds", "seconds", "theirs", "published seconds", "ratio"]
    rows = []
    groups = grouped(results, lambda one: (one["data"], one["method"], tuple(one["hidden"])))
    for (data, method, hidden), cells in sorted(groups.items()):
        theirs = published["seconds"][data][OURS[method]].get(shape(hidden))
        if theirs is not None:
            ours = statistics.fmean(cell["seconds"] for cell in cells)
            told = [f"{ours:.1f}", OURS[method], str(theirs), _times(theirs / ours)]
            rows.append([data, shape(hidden), method, str(len(cells)), *told])
    return markdown(head, rows)


def means_table(results: Results, published: dict[str, Any]) -> str:
    """Return accuracy, delta and equalised odds: the published methods, then ours."""
    head = ["data", "method", "accuracy", "balanced accuracy", "delta", "published MILP delta / this", "EOD"]
    rows = []
    for data, methods in published["means"].items():
        milp = methods["MILP"]["delta"]
        for method, told in methods.items():
            values = [f"{told[name]:.3f} ± {told[f'{name}_std']:.3f}" for name in ("accuracy", "balanced_accuracy")]
            delta = f"{told['delta']:.3f} ± {told['delta_std']:.3f}"
            rows.append([data, f"published {method}", *values, delta, f"{milp / told['delta']:.2g}"])
            rows[-1].append(f"{told['eod']:.3f} ± {told['eod_std']:.3f}")
        groups = grouped([one for one in results if one["data"] == data], lambda one: one["method"])
        for method, cells in sorted(groups.items()):
            values = [spread([cell["test"][name] for cell in cells], 3) for name in ("accuracy", "balanced_accuracy")]
            told = [f"<= {worst(cells):.4f}", f"{milp / worst(cells):.2g}", gaps(cells, "equalised_odds")]
            rows.append([data, f"{method}, {len(cells)} run{'s' * (len(cells) > 1)}", *values, *told])
    return markdown(head, rows)


def deviations_table(results: Results, published: dict[str, Any]) -> str:
    """Return the standard deviation of delta over the seeds of [8]."""
    head = ["data", "ours", "seeds", "deviation of our pair", "of our upper bound", "theirs", "published"]
    rows = []
    eight = [one for one in results if one["hidden"] == [8]]
    for (data, method), cells in sorted(grouped(eight, lambda one: (one["data"], one["method"])).items()):
        if len(cells) > 1:
            ours = [statistics.stdev(float(one[end]) for one in cells) for end in ("lower", "upper")]
            theirs = published["deviation_of_delta"][data][OURS[method]]
            told = [*(f"{value:.2g}" for value in ours), OURS[method], f"{theirs:g}"]
            rows.append([data, method, str(len(cells)), *told])
    return markdown(head, rows)


def shapes_table(results: Results, published: dict[str, Any]) -> str:
    """Return the delta of plain training as published, and ours, shape by shape."""
    head = ["data", "hidden", "seeds", "balanced accuracy or MSE", "certified delta", "published FTU delta", "ratio"]
    rows = []
    certified = [one for one in results if one["method"] == "certified"]
    for (data, hidden), cells in sorted(grouped(certified, lambda one: (one["data"], tuple(one["hidden"]))).items()):
        good = spread([one["test"].get("balanced_accuracy", one["test"].get("mse")) for one in cells], 4)
        theirs = published["delta_of_plain"][data].get(shape(hidden))
        told = [f"{theirs:g}", _times(theirs / worst(cells))] if theirs is not None else ["", ""]
        rows.append([data, shape(hidden), str(len(cells)), good, f"<= {worst(cells):.4f}", *told])
    return markdown(head, rows)


def _times(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2g}"


def main() -> int:
    line = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    line.add_argument("--seeds", type=int, default=5)
    line.add_argument("--results", type=Path, default=ROOT / "results")
    line.add_argument("-o", dest="out", type=Path)
    options = line.parse_args()
    published = json.loads(PUBLISHED.read_text())
    found = finished(GRIDS, options.seeds, options.results)
    found["methods"] = [one for one in found["methods"] if one["method"] != "certified"]  # these are in the others
    results = [one for cells in found.values() for one in cells]
    if not results:
        grids = " ".join(GRIDS)
        print(f"{options.results}: no results; run train_tables.py {grids} first", file=sys.stderr)
        return 2
    commits = ", ".join(sorted({f"`{one['commit']}`" for one in results}))
    where = f"`python benchmarks/train_paper.py`, commit {commits}, {results[0]['machine']['cpu']}, eps 0.2, true ball."
    parts = ["# Training, published and ours", where, CAVEATS, "## Seconds", times_table(results, published)]
    parts += ["## Accuracy, delta and equalised odds", means_table(results, published)]
    parts += ["## Standard deviation of delta over seeds, [8]", deviations_table(results, published)]
    parts += ["## Delta by shape", shapes_table(results, published)]
    publish("\n\n".join(parts) + "\n", options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
