"""`likewise export`: the same question for other verifiers, as an ONNX network and a VNN-LIB query."""

from __future__ import annotations

import argparse
from pathlib import Path

from likewise._api import make_problem
from likewise.cli._console import note
from likewise.cli._inputs import left_of, model_of, schema_of
from likewise.cli._options import add_question
from likewise.errors import InputError
from likewise.export import export

HELP = "write the question for other verifiers: ONNX and VNN-LIB 2.0"
EXAMPLE = "likewise export model.npz german --eps 0.2 --delta 0.1 -o question"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add_question(parser)
    add("--eps", type=float, required=True, metavar="E", help="how similar two people must be")
    add("--delta", type=float, default=0.1, metavar="D", help="ask for pairs scored at least this far apart (0.1)")
    add("-o", dest="folder", type=Path, required=True, metavar="FOLDER", help="where to write both files")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--left", metavar="PERSON.csv", help="one person: a line of feature names, a line of values")
    only.add_argument("--where", action="append", metavar="LIMIT", help='a group: "age=25:40" or "job=a,b"; repeatable')
    add("--metric", metavar="M", help="who is similar, instead of the schema's own: mahalanobis, linf, l1, ...")
    add("--scale", choices=["score", "logit"], default="score", help="measure gaps in scores or in logits (score)")
    add("--output", type=int, default=0, metavar="K", help="which of the network's outputs, counted from 0 (0)")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    if not options.delta > 0.0:
        raise InputError(f"--delta must be above 0, got {options.delta}")
    if options.folder.exists() and not options.folder.is_dir():
        raise InputError(f"-o {options.folder} is a file: name a folder")
    schema = schema_of(options.schema, options.metric)
    left = left_of(options.left, options.where, schema.domain)
    problem = make_problem(
        model_of(options.model),
        schema.domain,
        schema.metric,
        options.eps,
        left=left,
        output=options.output,
        scale=options.scale,
    )
    for path in export(problem, options.delta, options.folder):
        note(f"wrote {path}")
    return 0
