"""`likewise demo`: certify the embedded network and write a report; the exit code is 0 whatever the verdict."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from likewise import datasets
from likewise._api import certify
from likewise.cli._console import follow, note, show
from likewise.cli._inputs import require_report, require_writable
from likewise.errors import InputError
from likewise.report import describe, write_report

HELP = "certify an embedded network and write report.html"
EXAMPLE = "likewise demo --eps 0.1 -o report.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("--seconds", type=float, default=60.0, metavar="S", help="stop after this long (60)")
    add("--eps", type=float, default=0.2, metavar="E", help="how similar two people must be (0.2)")
    add("--delta", type=float, default=0.1, metavar="D", help="how far apart they may be scored (0.1)")
    add("-o", dest="output_file", type=Path, default=Path("report.html"), metavar="FILE", help="where the report goes")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    target: Path = options.output_file
    require_report()
    require_writable(target, "-o")
    if not (math.isfinite(options.delta) and options.delta >= 0):
        raise InputError(f"delta must be a finite number >= 0, got {options.delta!r}")
    data, network = datasets.load("german"), datasets.demo_network()
    note(f"{data.title}: can two people within eps = {options.eps:g} of each other be scored far apart?")
    with follow(options.seconds) as ticker:
        # Without delta, which would stop at the first pair: the demo shows the bounds closing.
        found = certify(network, data.domain, data.metric(), options.eps, seconds=options.seconds, progress=ticker.hear)
    write_report([found], target, delta=options.delta, title=f"{data.title}: are similar people treated alike?")
    show(describe(found, options.delta))
    show(f"\nThe report is in {target}")
    return 0
