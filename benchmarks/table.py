"""Render the finished cells of a grid as a Markdown table: `python benchmarks/table.py GRID [options] -o FILE.md`.

It takes the options of bench.py, reads result files and never runs anything.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from bench import Plan, parser, plan
from checked import summary
from instances import Known, known
from store import read_json, write_text

Result = dict[str, Any]
Row = Sequence[str]


def markdown(head: Row, rows: Iterable[Row]) -> str:
    """Return a Markdown table, numbers to the right."""
    right = "|".join("---" if i == 0 else "---:" for i in range(len(head)))
    return "\n".join([f"| {' | '.join(head)} |", f"|{right}|", *(f"| {' | '.join(r)} |" for r in rows)])


def where(results: Sequence[Result]) -> str:
    """Return commit, command and machine; more than one of them is said, not hidden."""
    lines = []
    for title, of in (
        ("commit", lambda r: r["commit"]),
        ("command", lambda r: r["command"]),
        ("machine", lambda r: _machine(r["machine"])),
    ):
        seen = Counter(of(r) for r in results)
        lines.append(
            f"- {title}: " + "; ".join(f"`{k}`" + (f" ({n} cells)" if len(seen) > 1 else "") for k, n in seen.items())
        )
    dates = sorted(r["date"] for r in results)
    return "\n".join([*lines, f"- dates: {dates[0]} to {dates[-1]}"])


def _machine(m: Result) -> str:
    return f"{m['cpu']}, {m['cores']} cores, {m['memory_gib']} GiB, Python {m['python']}, {m['solver']}"


def closed(result: Result) -> bool:
    """Tell whether the bounds met within the wanted gap."""
    return result["upper"] is not None and result["upper"] - result["lower"] <= result["wanted_gap"] * (1 + 1e-9)


def number(value: float | None) -> str:
    return "inf" if value is None else f"{value:.6f}"


def cells(results: Sequence[Result]) -> str:
    """Return a row per cell and the sentence that sums them up."""
    rows = [
        (
            r["name"].replace("|", " "),
            r["engine"],
            number(r["lower"]),
            number(r["upper"]),
            f"{(r['upper'] - r['lower']):.1e}" if r["upper"] is not None else "inf",
            f"{r['seconds']:.2f}",
            str(r["nodes"]),
        )
        for r in results
    ]
    parts = [markdown(("question", "engine", "lower", "upper", "gap", "seconds", "nodes"), rows)]
    for engine in dict.fromkeys(r["engine"] for r in results):
        own = [r for r in results if r["engine"] == engine]
        wanted = " or ".join(f"{gap:g}" for gap in sorted({r["wanted_gap"] for r in own}))
        seconds = [r["seconds"] for r in own]
        parts.append(
            f"`{engine}`: {sum(map(closed, own))} of {len(own)} closed to {wanted}; "
            f"median {statistics.median(seconds):.2f} s, at most {max(seconds):.2f} s."
        )
    return "\n\n".join([*reached(results), *parts])


def reached(results: Sequence[Result]) -> list[str]:
    """Return how many cells of every network are where they were wanted, if not all are wanted to be at one place."""
    if len({(r["wanted_gap"], r["limit"]) for r in results}) < 2:
        return []
    groups: dict[tuple[str, str], list[Result]] = {}
    for r in results:
        groups.setdefault((r["name"].split("|")[0], r["engine"]), []).append(r)
    rows = []
    for (network, engine), own in groups.items():
        wanted, left = own[0], [r["upper"] - r["lower"] for r in own if not closed(r) and r["upper"] is not None]
        times = [r["seconds"] for r in own if closed(r)]
        middle, most = (f"{statistics.median(times):.2f}", f"{max(times):.2f}") if times else ("", "")
        told = f"{wanted['wanted_gap']:g} in {wanted['limit']:g} s"
        gap = f"{max(left):.1e}" if left else ""
        rows.append((network, engine, told, f"{len(times)} of {len(own)}", middle, most, gap))
    head = (
        "network",
        "engine",
        "wanted",
        "reached",
        "median s of these",
        "slowest of these",
        "widest gap of the others",
    )
    return [markdown(head, rows)]


def seconds_to(result: Result, gap: float = 1e-4) -> float:
    """Return when the bounds were within a gap first; the limit if they never were."""
    trace = ((at, low, high) for at, low, high in result["trace"] if high is not None)
    return float(next((at for at, low, high in trace if high - low <= gap * (1 + 1e-9)), result["limit"]))


def versus(results: Sequence[Result]) -> str:
    """Return how many times as long the paper's engine takes, per network over all its cells, and the medians."""
    by = {(r["name"], r["engine"]): r for r in results}
    engine = "auto" if any(r["engine"] == "auto" for r in results) else "milp"
    names = [n for n in dict.fromkeys(r["name"] for r in results) if (n, engine) in by and (n, "paper") in by]
    networks = dict.fromkeys(n.split("|")[0] for n in names)
    rows, ratios = [], {}
    for network in networks:
        own = [n for n in names if n.split("|")[0] == network]
        ours, milp, theirs = (
            sum(seconds_to(by[n, e]) for n in own) if all((n, e) in by for n in own) else math.nan
            for e in (engine, "milp", "paper")
        )
        ended = sum(by[n, "paper"]["seconds"] for n in own)
        cut, open_ = (sum(seconds_to(by[n, e]) >= by[n, e]["limit"] for n in own) for e in ("paper", engine))
        ratios[network] = theirs / ours
        mark = (">= " if cut else "") + f"{theirs / ours:.1f}" + (f" ({engine} left some open)" if open_ else "")
        times = (f"{seconds:.2f}" for seconds in (ours, milp, theirs))
        rows.append((network, str(len(own)), *times, f"{cut} of {len(own)}", mark, f"{ended / ours:.1f}"))
    head = ("network", "cells", f"{engine} s", "milp s", "paper s", "paper not there", "ratio", "to its own end")
    parts = [
        "The same question (the rotated box), the same solver, wall clock, one after the other on one core: seconds "
        "until lower and upper are within 1e-4. `paper` encodes the output by a grid of 32 cells, which leaves a gap "
        "of more than that; where it was not there by the limit, or ended its own solver run without being there, "
        "the limit counts and the ratio is a lower bound (>=). The last column takes its own end, whatever the gap.",
        markdown(head, rows),
    ]
    for data in dict.fromkeys(n.split("/")[1].split("_")[0] for n in networks):
        own_ratios = [v for n, v in ratios.items() if f"/{data}_" in n]
        parts.append(f"Median ratio, {data}: {statistics.median(own_ratios):.1f}.")
    parts.append(f"Median ratio over all: {statistics.median(ratios.values()):.1f}.")
    return "\n\n".join([*parts, cells(results)])


def against_known(results: Sequence[Result], facts: dict[str, Known]) -> str:
    """Return every contradiction with what was known, and how the rest compares."""
    rows = [
        (
            r["name"].replace("|", " "),
            number(r["lower"]),
            number(r["upper"]),
            number(k.lower),
            number(k.upper_float),
            k.source,
        )
        for r in results
        for k in [facts[r["name"]]]
        if contradicts(r, k)
    ]
    head = ("question", "lower", "upper", "known lower", "known upper_float", "source")
    told = markdown(head, rows) if rows else f"No contradiction with `known.json` in {len(results)} cells."
    better = sum(r["upper"] is not None and r["upper"] < facts[r["name"]].upper_float - 1e-9 for r in results)
    return f"{told}\n\n{better} uppers are below the known float bound.\n\n{cells(results)}"


def contradicts(result: Result, fact: Known) -> bool:
    """Tell whether an upper is below a known pair, or a pair above a known bound (both files round to 9 digits)."""
    below = result["upper"] is not None and result["upper"] < fact.lower - 1e-9
    return bool(below or result["lower"] > fact.upper_float + 1e-9)


def render(grid: str, todo: Plan) -> str:
    """Return the whole page."""
    found = [read_json(file) for file in todo.files]
    results = [r for r in found if r is not None]
    title = f"# {grid}: {len(results)} of {len(found)} cells"
    if not results:
        return f"{title}\n\nNothing is finished yet: `{todo.command}`\n"
    bodies: dict[str, Callable[[], str]] = {
        "versus": lambda: versus(results),
        "known": lambda: against_known(results, known()),
    }
    body = bodies.get(grid, lambda: cells(results))()
    told = [summary(results)] if any(r.get("check") for r in results) else []
    return "\n\n".join([title, where(results), *told, body]) + "\n"


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line."""
    line = parser()
    line.description = (__doc__ or "").split("\n\n")[0]
    line.add_argument("-o", "--output", type=Path, help="the Markdown file (default: stdout)")
    options, _ = line.parse_known_args(words)
    page = render(options.grid, plan(options))
    if options.output is None:
        print(page, end="")
    else:
        write_text(options.output, page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
