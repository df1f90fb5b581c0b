"""The inner problem of fair training: the exact local engine against a MILP, person by person.

    python benchmarks/train_inner.py [--people 500] [--batch 5000] [-o FILE.md]

For networks of benchmarks/models the worst neighbour of each of so many training people is found by
likewise.train.local and by a MILP (HiGHS, the true ball but for 1e-4, both directions); the gap is
(milp - local) / milp in score difference. Beside it: the time of a whole batch, and the gap of gradient ascent. Crime's
network is used without the one column that the embedded data lacks. One result file per network, so a run that was
stopped goes on.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import instances
import numpy as np
import torch
from store import ROOT, commit, machine, publish, read_json, today, write_json
from table import markdown

import likewise as lw
from likewise.train.bound import twin_bound
from likewise.train.inner import ascended, neighbourhood
from likewise.train.layers import Layers, tensor
from likewise.train.local import worst_neighbours

EPS = 0.2
NETWORKS = [
    ("adult", "mild/adult_8"),
    ("adult", "mild/adult_16x16"),
    ("adult", "mild/adult_64"),
    ("credit", "mild/credit_8"),
    ("credit", "mild/credit_16x16"),
    ("german", "mild/german_8"),
    ("german", "mild/german_16x16"),
    ("german", "mild/german_64"),
    ("crime", "mild/crime_8"),
]


def cell(data_name: str, path: str, people: int, batch: int) -> dict[str, Any]:
    data = lw.datasets.load(data_name)
    network = _fitting(instances.network(path), instances.domain_of(data_name), data.domain)
    bound = twin_bound(data.domain, data.metric(), EPS, data.X_train)
    layers: Layers = [(tensor(layer.weight), tensor(layer.bias)) for layer in network.layers]
    rng = np.random.default_rng(0)
    rows = np.asarray(data.X_train)[rng.choice(len(data.X_train), min(people, len(data.X_train)), replace=False)]
    found = {
        "exact": worst_neighbours(layers, tensor(rows), bound, True).numpy(),
        "gradient": ascended(layers, tensor(rows), bound, 10, True).numpy(),
    }
    apart = {name: np.abs(network(near) - network(rows)) for name, near in found.items()}
    around = neighbourhood(layers, bound, data.domain, is_ball=True)
    gaps: dict[str, list[float]] = {name: [] for name in found}
    started = time.perf_counter()
    for i, person in enumerate(rows):
        near = around.farthest(person, True)
        best = max(float(np.abs(network(near[None]) - network(person[None]))[0]), 1e-9)
        for name, values in apart.items():
            gaps[name].append((best - float(values[i])) / best)
    milp = (time.perf_counter() - started) / len(rows)
    large = np.asarray(data.X_train)[:batch]
    started = time.perf_counter()
    worst_neighbours(layers, tensor(large), bound, True)
    seconds = time.perf_counter() - started
    return {
        "network": path,
        "people": len(rows),
        "mean_gap": statistics.fmean(gaps["exact"]),
        "largest_gap": max(gaps["exact"]),
        "gradient_gap": statistics.fmean(gaps["gradient"]),
        "batch": len(large),
        "batch_seconds": seconds,
        "milp_seconds": milp,
        "commit": commit(),
        "machine": machine("highs"),
        "date": today(),
    }


def _fitting(network: lw.Network, wide: lw.Domain, narrow: lw.Domain) -> lw.Network:
    """Return the network without the columns of features that the data does not have."""
    known = {feature.name for feature in narrow.features}
    kept = np.concatenate([np.arange(span.start, span.stop) for feature, span in wide.spans if feature.name in known])
    first, *others = network.layers
    return lw.Network([lw.Layer(first.weight[:, kept], first.bias, first.activations), *others])


def main() -> int:
    line = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    line.add_argument("--people", type=int, default=500)
    line.add_argument("--batch", type=int, default=5000)
    line.add_argument("--only", help="names that contain this")
    line.add_argument("--results", type=Path, default=ROOT / "results")
    line.add_argument("-o", dest="out", type=Path)
    options = line.parse_args()
    torch.set_num_threads(1)
    rows = []
    for data, path in NETWORKS:
        if options.only and options.only not in path:
            continue
        file = options.results / f"train-inner-{path.replace('/', '-')}-{options.people}-{options.batch}.json"
        done = read_json(file)
        if done is None:
            done = cell(data, path, options.people, options.batch)
            write_json(file, done)
        rows.append(done)
        print(f"{path}: mean gap {done['mean_gap']:.3%}, batch {done['batch_seconds']:.2f} s", file=sys.stderr)
    head = ["network", "people", "mean gap", "largest gap", "gradient's mean gap", "batch", "s", "milp, s a person"]
    table = markdown(head, [[
        r["network"], str(r["people"]), f"{r['mean_gap']:.3%}", f"{r['largest_gap']:.2%}", f"{r['gradient_gap']:.2%}",
        str(r["batch"]), f"{r['batch_seconds']:.2f}", f"{r['milp_seconds']:.3f}"] for r in rows])  # fmt: skip
    commits = ", ".join(sorted({f"`{one['commit']}`" for one in rows}))
    where = f"commit {commits}, {rows[0]['machine']['cpu']}, one core, {rows[0]['date'][:10]}"
    command = f"python benchmarks/train_inner.py --people {options.people} --batch {options.batch}"
    text = f"# The inner problem of Algorithm 1\n\n`{command}`\n\n{where}, eps = {EPS}, true ball.\n\n{table}\n"
    publish(text, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
