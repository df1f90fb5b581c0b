"""`likewise certify`: bound a model file; whatever is known at the end, by time-out or Ctrl-C too, is saved first."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

from likewise._api import certify
from likewise.certificate import Certificate, read
from likewise.cli import people
from likewise.cli._console import EXIT, follow, note, show
from likewise.cli._inputs import left_of, model_of, require_report, require_writable, same, schema_of
from likewise.cli._options import add_question, add_search, search_options
from likewise.errors import InputError
from likewise.report import EVERYONE, describe, write_report
from likewise.sign import private_key, sign

HELP = "bound how far apart two similar people can be scored"
EXAMPLE = "likewise certify model.npz german --eps 0.2 --delta 0.1 --json"
SECONDS = 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add_question(parser)
    add("--eps", type=float, required=True, metavar="E", help="how similar two people must be")
    add_search(parser, f"{SECONDS:g}; with --people {people.SECONDS:g} for each of them")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--left", metavar="PERSON.csv", help="one person: a line of feature names, a line of values")
    only.add_argument("--where", action="append", metavar="LIMIT", help='a group: "age=25:40" or "job=a,b"; repeatable')
    only.add_argument(
        "--people", metavar="FILE.csv", help="each of these people; also the name of an embedded data set"
    )
    add("--resume", type=Path, metavar="FILE.cert", help="go on from an earlier certificate of the same question")
    add("--json", action="store_true", help="print one JSON object instead of words")
    add("-o", dest="output_file", type=Path, metavar="FILE", help="save the certificate (with --people, the csv)")
    add("--sign", metavar="KEY.pem", help="sign the saved certificate with this Ed25519 key")
    add("--report", type=Path, metavar="FILE.html", help="write a report for people")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    _check_targets(options)
    schema = schema_of(options.schema, options.metric)
    if options.people is not None:
        if options.resume is not None:
            raise InputError("--resume is about one certificate: it cannot go with --people")
        return people.run(options, schema)
    left = left_of(options.left, options.where, schema.domain)
    network = model_of(options.model)
    seconds = SECONDS if options.seconds is None else options.seconds
    earlier = None if options.resume is None else read(options.resume)
    with follow(seconds) as ticker:
        found = certify(
            network,
            schema.domain,
            schema.metric,
            options.eps,
            seconds=seconds,
            left=left,
            progress=ticker.hear,
            resume=earlier,
            **search_options(options),
        )
    if options.output_file is not None:
        note(f"saved {found.save(options.output_file)}")
        if options.sign is not None:
            sign(options.output_file, options.sign)
            note(f"signed with {options.sign}")
    if options.report is not None:
        note(f"wrote {write_report([found], options.report, delta=options.delta)}")
    verdict = None if options.delta is None else found.verdict(options.delta)
    show(_as_json(found, verdict, options.delta) if options.json else describe(found, options.delta))
    if verdict is None:
        return 0 if math.isfinite(found.upper) else EXIT["undecided"]
    return EXIT[verdict]


def _check_targets(options: argparse.Namespace) -> None:
    """Refuse, before the long run, files that cannot be written, or that are an input or one another."""
    given = (options.model, options.schema, options.left, options.people)
    inputs = [path for path in given if path is not None]
    for target, flag in ((options.output_file, "-o"), (options.report, "--report")):
        if target is not None:
            require_writable(target, flag, inputs)
    if options.sign is not None:
        if options.output_file is None or options.people is not None:
            raise InputError("--sign signs a saved certificate: it needs -o, and cannot go with --people")
        private_key(options.sign)
    if options.report is None:
        return
    if options.people is not None:
        raise InputError("--report is about one certificate: with --people, -o writes a csv file instead")
    require_report()
    if options.output_file is not None and same(options.report, options.output_file):
        raise InputError(f"-o and --report are both {options.report}: give each a file of its own")


def _as_json(found: Certificate, verdict: str | None, delta: float | None) -> str:
    notes = [*found.notes, EVERYONE]
    return json.dumps({**found.summary(), "verdict": verdict, "delta": delta, "notes": notes}, allow_nan=False)
