"""Put the published numbers of training beside ours, from the result files of train_tables.py (small and crime).

    python benchmarks/train_paper.py [--seeds 5] [--results FOLDER] [-o FILE.md]

The published numbers are in published_training.json. Only shapes that both have are compared.
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
from train_tables import finished, spread

PUBLISHED = Path(__file__).with_name("published_training.json")
METHOD = "MILP"  # of the published methods the one with guarantees
CAVEATS = """Theirs: 20 cores and a graphics card, deltas of the networks as trained, each the best pair found in 180 s,
which is no upper bound; means over their architectures, of which ours are three. Ours: one shared core, deltas of the
calibrated networks, the largest proven upper bound of all seeds and shapes. Their test people, and the groups of their
equalised odds (EOD), may be others than ours. Ratios above 1 are in our favour."""

Results = list[dict[str, Any]]


def by_shape(results: Results) -> dict[tuple[str, str], Results]:
    """Return the results by data set and shape, a shape being written as in the published numbers."""
    groups: dict[tuple[str, str], Results] = {}
    for one in results:
        shape = "[" + ",".join(map(str, one["hidden"])) + "]"
        groups.setdefault((one["data"], shape), []).append(one)
    return groups


def times_table(results: Results, published: dict[str, Any]) -> str:
    """Return the seconds of training, theirs and ours."""
    head = ["data", "hidden", "seeds", f"published {METHOD}, s", "certified, s", "ratio"]
    rows = []
    for (data, shape), cells in sorted(by_shape(results).items()):
        theirs = published["seconds"][data][METHOD].get(shape)
        if theirs is not None:
            ours = statistics.fmean(cell["seconds"] for cell in cells)
            rows.append([data, shape, str(len(cells)), str(theirs), f"{ours:.1f}", f"{theirs / ours:.0f}"])
    return markdown(head, rows)


def means_table(results: Results, published: dict[str, Any]) -> str:
    """Return accuracy, delta and equalised odds: the published methods, then ours over all seeds and shapes."""
    head = ["data", "method", "accuracy", "balanced accuracy", "delta", "published MILP delta / this", "EOD"]
    rows = []
    for data, methods in published["means"].items():
        milp = methods[METHOD]["delta"]
        for method, told in methods.items():
            values = [f"{told[name]:.3f} ± {told[f'{name}_std']:.3f}" for name in ("accuracy", "balanced_accuracy")]
            delta = f"{told['delta']:.3f} ± {told['delta_std']:.3f}"
            rows.append([data, f"published {method}", *values, delta, f"{milp / told['delta']:.2g}"])
            rows[-1].append(f"{told['eod']:.3f} ± {told['eod_std']:.3f}")
        cells = [one for one in results if one["data"] == data]
        if cells:
            rows.append([data, f"certified, {len(cells)} runs", *_ours(cells, milp)])
    return markdown(head, rows)


def _ours(cells: Results, milp: float) -> list[str]:
    values = [spread([cell["test"][name] for cell in cells], 3) for name in ("accuracy", "balanced_accuracy")]
    uppers = [cell["upper"] for cell in cells]
    worst = float("inf") if None in uppers else max(uppers)
    groups = sorted(cells[0]["groups"])
    gaps = {name: spread([cell["groups"][name]["equalised_odds"] for cell in cells], 3) for name in groups}
    told = ", ".join(f"{name} {gap}" for name, gap in gaps.items())
    return [*values, f"<= {worst:.4f}", f"{milp / worst:.2g}", told]


def main() -> int:
    line = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    line.add_argument("--seeds", type=int, default=5)
    line.add_argument("--results", type=Path, default=ROOT / "results")
    line.add_argument("-o", dest="out", type=Path)
    options = line.parse_args()
    published = json.loads(PUBLISHED.read_text())
    found = finished(["small", "crime"], options.seeds, options.results)
    results = [*found["small"], *found["crime"]]
    if not results:
        print(f"{options.results}: no results; run train_tables.py small crime first", file=sys.stderr)
        return 2
    parts = ["# Training, published and ours", CAVEATS, "## Seconds", times_table(results, published)]
    parts += ["## Accuracy and delta", means_table(found["small"], published)]
    text = "\n\n".join(parts) + "\n"
    publish(text, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
