"""`likewise profile`: how far apart people can be scored, as a function of how similar they are."""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
from collections.abc import Sequence
from pathlib import Path

from likewise._api import profile
from likewise.certificate import Certificate, write_atomically
from likewise.cli._console import EXIT, follow, note, overall, show
from likewise.cli._inputs import left_of, model_of, require_report, require_writable, schema_of
from likewise.cli._options import add_question, add_search, search_options
from likewise.errors import FileError
from likewise.report import EVERYONE, profile_table, write_report

HELP = "bound the largest gap for several eps"
EXAMPLE = "likewise profile model.npz german --eps 0.05,0.1,0.2 --seconds 60 -o profile.html"
SECONDS = 60.0
COLUMNS = ("eps", "lower", "upper", "verdict", "unit", "left_score", "right_score", "distance", "seconds", "trusted")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add_question(parser)
    add("--eps", type=_numbers, required=True, metavar="E1,E2,...", help="how similar two people must be: a list")
    add_search(parser, f"{SECONDS:g}, for the whole list")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--left", metavar="PERSON.csv", help="one person: a line of feature names, a line of values")
    only.add_argument("--where", action="append", metavar="LIMIT", help='a group: "age=25:40" or "job=a,b"; repeatable')
    add("--json", action="store_true", help="print one JSON object, and the table on stderr")
    add("-o", dest="output_file", type=Path, metavar="FILE", help="write the table (.csv) or a report (.html)")


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"a list of numbers with commas is needed, got {text[:60]!r}") from None


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    target: Path | None = options.output_file
    if target is not None:
        require_writable(target, "-o", [p for p in (options.model, options.schema, options.left) if p is not None])
        if target.suffix.lower() not in (".html", ".csv"):
            raise FileError(f"-o {target}: a profile is written as .csv or .html")
        if target.suffix.lower() == ".html":
            require_report()
    schema = schema_of(options.schema, options.metric)
    left = left_of(options.left, options.where, schema.domain)
    network = model_of(options.model)
    seconds = SECONDS if options.seconds is None else options.seconds
    with follow(seconds) as ticker:
        found = profile(
            network,
            schema.domain,
            schema.metric,
            options.eps,
            seconds=seconds,
            left=left,
            progress=ticker.hear,
            **search_options(options),
        )
    if target is not None:
        _write(found, target, options.delta)
    table = profile_table(found, options.delta)
    if options.json:
        note(table)
    show(_as_json(found, options.delta) if options.json else f"{table}\n{EVERYONE}")
    if options.delta is None:
        return 0 if all(math.isfinite(one.upper) for one in found) else EXIT["undecided"]
    return EXIT[overall(one.verdict(options.delta) for one in found)]


def _write(found: Sequence[Certificate], target: Path, delta: float | None) -> None:
    if target.suffix.lower() == ".html":
        write_report(found, target, delta=delta)
    else:
        write_atomically(target, _as_csv(found, delta).encode())
    note(f"wrote {target}")


def _as_json(found: Sequence[Certificate], delta: float | None) -> str:
    listed = [
        {**one.summary(), "verdict": None if delta is None else one.verdict(delta), "notes": list(one.notes)}
        for one in found
    ]
    return json.dumps({"profile": listed, "delta": delta, "notes": [EVERYONE]}, allow_nan=False)


def _as_csv(found: Sequence[Certificate], delta: float | None) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for one in found:
        pair, verdict = one.witness, "" if delta is None else one.verdict(delta)
        upper = repr(one.upper) if math.isfinite(one.upper) else ""
        scores = [repr(pair.left_score), repr(pair.right_score), repr(pair.distance)]
        rest = [f"{one.seconds:.3f}", "; ".join(one.trusted)]
        writer.writerow([repr(one.eps), repr(one.lower), upper, verdict, one.unit, *scores, *rest])
    return text.getvalue()
