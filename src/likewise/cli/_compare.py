"""`likewise train --compare`: all methods and the trivial baselines, in one table and one page."""

from __future__ import annotations

import argparse
import json

from likewise.certificate import write_atomically
from likewise.cli._console import note, show
from likewise.train.compare import TARGETS, compare, front
from likewise.train.examples import Examples
from likewise.train.page import page, text_table
from likewise.train.settings import settings_of

SETTINGS = ("epochs", "batch", "rate", "l2", "patience", "seed", "penalty")


def run_compare(options: argparse.Namespace, examples: Examples) -> int:
    """Run the comparison."""
    given = {name: getattr(options, name) for name in SETTINGS}
    given |= {"hidden": options.hidden, "eps": options.eps, "certify": options.seconds}
    settings = settings_of("certified", given | {"balanced": not options.unbalanced})
    rows = compare(examples, settings, note)
    points = front(examples, settings, options.targets or TARGETS, [r for r in rows if "linear" in r.name], note)
    if options.output_file is not None:
        write_atomically(options.output_file, page(examples, settings, rows, points).encode())
        note(f"wrote {options.output_file}")
    if options.json:
        show(json.dumps({"methods": [r.to_json() for r in rows], "front": [r.to_json() for r in points]}))
    else:
        show(f"{text_table(rows)}\n\n{text_table(points)}")
    return 0
