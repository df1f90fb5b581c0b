"""Write the tables of training as Markdown, from the results of train_tables.py and the trivial baselines."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from typing import Any

from table import markdown

from likewise.train.compare import Row

Result = dict[str, Any]
Base = dict[str, list[Row]]

# Algorithm 1 on Adult as published: minutes (20 cores), and deltas; that of [8] is a mean over all shapes.
PUBLISHED_MINUTES = {(8,): 121.0, (100,): 540.0}
PUBLISHED_DELTAS = {(8,): 0.006, (100,): 0.00072}


def report(found: dict[str, list[Result]], base: Base, command: str, eps: float) -> str:
    """Return the tables, grid by grid."""
    results = [one for cells in found.values() for one in cells]
    commits = ", ".join(sorted({f"`{one['commit']}`" for one in results}))
    cpu = results[0]["machine"]["cpu"]
    lines = [
        "# Training",
        "",
        f"`{command}`",
        "",
        f"Commit {commits}; {cpu}, one core, shared; eps = {eps}, true ball.",
    ]
    lines.append("Deltas are those of the calibrated networks, also of the baseline whose logits are divided.")
    lines.append("± is the standard deviation over the seeds.")
    for name, cells in found.items():
        if cells:
            lines += ["", f"## {name}", "", TABLES[name](cells, base)]
    return "\n".join(lines) + "\n"


def shapes_table(results: list[Result], base: Base) -> str:
    """Return a row per data set and shape, over the seeds, and one per baseline."""
    head = ["data", "hidden", "seeds", "balanced accuracy or MSE", "largest upper", "all reached", "largest seconds"]
    rows = []
    for (data, hidden), cells in sorted(grouped(results, lambda one: (one["data"], tuple(one["hidden"]))).items()):
        reached = "yes" if all(cell["reached"] for cell in cells) else "NO"
        longest = max(cell["seconds"] for cell in cells)
        good = spread([goodness(cell) for cell in cells], 4)
        rows.append([data, shape(hidden), str(len(cells)), good, f"{worst(cells):.6f}", reached, f"{longest:.1f}"])
    for data in sorted({one["data"] for one in results}):
        for row in base[data]:
            delta = f"{row.calibrated[1]:.6f}"
            rows.append([data, row.name, "", f"{abs(row.goodness):.4f}", delta, "", f"{row.seconds:.1f}"])
    return markdown(head, rows)


def front_table(results: list[Result], base: Base) -> str:
    """Return a row per data set and target; one is claimed only if its mean beats both baselines."""
    head = ["data", "hidden", "target", "seeds", "balanced accuracy", "accuracy"]
    head += ["delta", "reached", "claimed", "EOD", "s"]
    rows = []
    groups = grouped(results, lambda one: (one["data"], tuple(one["hidden"]), one["options"]["delta"]))
    for data in sorted({one["data"] for one in results}):
        for row in base[data]:
            lower, upper = row.calibrated
            good = [f"{row.test[name]:.4f}" for name in ("balanced_accuracy", "accuracy")]
            told = [f"[{lower:.5f}, {upper:.5f}]", "", "", gaps([{"groups": row.groups}], "equalised_odds")]
            rows.append([data, row.name, "", "", *good, *told, f"{row.seconds:.1f}"])
        for (where, hidden, target), cells in sorted(groups.items()):
            if where == data:
                good = [spread([one["test"][name] for one in cells], 4) for name in ("balanced_accuracy", "accuracy")]
                reached = f"{sum(bool(one['reached']) for one in cells)} of {len(cells)}"
                claim = "yes" if all(one["reached"] for one in cells) and is_better(cells, base[data]) else "no"
                told = [interval(cells), reached, claim, gaps(cells, "equalised_odds"), seconds(cells)]
                rows.append([data, shape(hidden), f"{target:g}", str(len(cells)), *good, *told])
    return markdown(head, rows)


def methods_table(results: list[Result], base: Base) -> str:
    """Return a row per data set and method, and one per baseline."""
    head = ["data", "method", "seeds", "accuracy or R2", "balanced accuracy or MSE", "delta", "EOD", "DPD", "s"]
    rows = []
    groups = grouped(results, lambda one: (one["data"], one["method"]))
    for data in sorted({one["data"] for one in results}):
        for row in base[data]:
            lower, upper = row.calibrated
            good = [f"{row.test.get('accuracy', row.test.get('r2')):.4f}", f"{abs(row.goodness):.4f}"]
            told = [gaps([{"groups": row.groups}], kind) for kind in ("equalised_odds", "demographic_parity")]
            rows.append([data, row.name, "", *good, f"[{lower:.5f}, {upper:.5f}]", *told, f"{row.seconds:.1f}"])
        for (where, method), cells in sorted(groups.items()):
            if where == data:
                first = spread([one["test"].get("accuracy", one["test"].get("r2")) for one in cells], 4)
                good = [first, spread([goodness(one) for one in cells], 4)]
                told = [gaps(cells, kind) for kind in ("equalised_odds", "demographic_parity")]
                target = cells[0]["options"].get("delta")
                name = method if target is None else f"{method}, delta {target:g}"
                rows.append([data, name, str(len(cells)), *good, interval(cells), *told, seconds(cells)])
    return markdown(head, rows)


def published_table(results: list[Result], base: Base) -> str:
    """Return a row per network trained as published, which is not calibrated, with the published numbers beside."""
    head = ["data", "hidden", "accuracy", "balanced accuracy", "delta as trained", "published", "delta calibrated"]
    head += ["EOD", "minutes", "published", "ratio"]
    rows = []
    for one in results:
        good = [f"{one['test'][name]:.4f}" for name in ("accuracy", "balanced_accuracy")]
        ours, theirs = one["seconds"] / 60, PUBLISHED_MINUTES[tuple(one["hidden"])]
        is_raw = not one["settings"]["calibrate"]
        lower, upper = one["calibrated"] if is_raw else (one["lower"], one["upper"])
        told = [interval([one]) if is_raw else "not measured", f"{PUBLISHED_DELTAS[tuple(one['hidden'])]:g}"]
        told.append(f"[{lower:.5f}, {upper:.5f}]")
        told += [gaps([one], "equalised_odds"), f"{ours:.1f}", f"{theirs:g}", f"{theirs / ours:.0f}"]
        rows.append([one["data"], shape(one["hidden"]), *good, *told])
    return markdown(head, rows)


TABLES: dict[str, Callable[[list[Result], Base], str]] = {
    "small": shapes_table,
    "crime": shapes_table,
    "paper": shapes_table,
    "front": front_table,
    "methods": methods_table,
    "published": published_table,
}


def grouped(results: list[Result], by: Callable[[Result], Any]) -> dict[Any, list[Result]]:
    """Return the results by a key."""
    groups: dict[Any, list[Result]] = {}
    for one in results:
        groups.setdefault(by(one), []).append(one)
    return groups


def is_better(cells: list[Result], base: Iterable[Row]) -> bool:
    """Tell whether their mean is above every baseline whose delta is as small."""
    mean = statistics.fmean(one["test"]["balanced_accuracy"] for one in cells)
    return not any(row.goodness >= mean and row.calibrated[0] <= worst(cells) for row in base)


def goodness(result: Result) -> float:
    """Return balanced accuracy, or the mean squared error."""
    value: float = result["test"].get("balanced_accuracy", result["test"].get("mse"))
    return value


def worst(cells: list[Result]) -> float:
    """Return the largest upper bound."""
    uppers = [float("inf") if one["upper"] is None else float(one["upper"]) for one in cells]
    return max(uppers)


def interval(cells: list[Result]) -> str:
    """Return the largest lower and the largest upper bound."""
    return f"[{max(one['lower'] for one in cells):.5f}, {worst(cells):.5f}]"


def spread(values: list[float], digits: int) -> str:
    """Return mean and standard deviation; of one value, the value."""
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{statistics.fmean(values):.{digits}f} ± {statistics.stdev(values):.{digits}f}"


def gaps(cells: list[Any], kind: str) -> str:
    """Return a measure of group fairness for each sensitive feature."""
    names = sorted(cells[0]["groups"])
    return ", ".join(f"{name} {spread([one['groups'][name][kind] for one in cells], 3)}" for name in names)


def seconds(cells: list[Result]) -> str:
    """Return the mean time to train."""
    return f"{statistics.fmean(one['seconds'] for one in cells):.1f}"


def shape(hidden: Iterable[int]) -> str:
    """Return the widths as the paper writes them."""
    return "[" + ",".join(map(str, hidden)) + "]"
