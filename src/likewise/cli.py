"""The command line: results on stdout, everything else on stderr, and exit codes that are an interface.

    0    proven fair, or done (without --delta, once both bounds exist)
    2    bad input or usage: one to three lines on stderr, nothing written
    10   unfair, shown by a verified pair
    20   undecided in the time given
    130  interrupted before there was anything to save

A defect of likewise itself is a traceback and Python's 1.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.text import Text

from likewise import __version__, datasets
from likewise._api import certify
from likewise.certificate import Certificate
from likewise.domain import Continuous, Domain
from likewise.errors import DomainError, FileError, InputError, MetricError, MissingExtra, SolverError
from likewise.load import Schema, load, read_schema
from likewise.metric import WeightedLp
from likewise.report import describe, write_report
from likewise.rounding import Array
from likewise.search import ENGINES, News
from likewise.solvers import NAMES as SOLVERS

EXIT = {"fair": 0, "unfair": 10, "undecided": 20}
BAD_INPUT = 2
INTERRUPTED = 130
MOST_LINES, MOST_COLUMNS = 3, 400  # of a message about bad input
QUIET_SECONDS = 5.0  # between two lines of progress, where stderr is no terminal
PERSON_LIMIT = 1 << 20  # no csv file of one person is longer than this


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a label that the terminal cannot show is no reason to fail
    options = _parser().parse_args(argv)
    command: Callable[[argparse.Namespace], int] = options.run
    try:
        return command(options)
    except (InputError, SolverError) as error:
        _complain(str(error))
        return BAD_INPUT
    except KeyboardInterrupt:
        _complain("interrupted before there was anything to save")
        return INTERRUPTED


# ---------------------------------------------------------------------------------------------------- the commands


def _demo(options: argparse.Namespace) -> int:
    """Certify the embedded network and write a report; the exit code is 0 whatever the verdict."""
    target: Path = options.output_file
    _require_report()
    _require_writable(target, "-o")
    if not (math.isfinite(options.delta) and options.delta >= 0):
        raise InputError(f"delta must be a finite number >= 0, got {options.delta!r}")
    data, network = datasets.load("german"), datasets.demo_network()
    _note(f"{data.title}: can two people within eps = {options.eps:g} of each other be scored far apart?")
    with Ticker(options.seconds) as ticker:
        # Without delta, which would stop at the first pair: the demo shows the bounds closing.
        found = certify(network, data.domain, data.metric(), options.eps, seconds=options.seconds, progress=ticker.hear)
    write_report([found], target, delta=options.delta, title=f"{data.title}: are similar people treated alike?")
    _print(describe(found, options.delta))
    _print(f"\nThe report is in {target}")
    return 0


def _certify(options: argparse.Namespace) -> int:
    """Certify a model file; whatever is known at the end, by time-out or Ctrl-C too, is saved before it is shown."""
    inputs = [Path(p) for p in (options.model, options.schema, options.left) if p is not None]
    for target, flag in ((options.output_file, "-o"), (options.report, "--report")):
        if target is not None:
            _require_writable(target, flag, inputs)
    if options.report is not None:
        _require_report()
        if options.output_file is not None and _same(options.report, options.output_file):
            raise InputError(f"-o and --report are both {options.report}: give each a file of its own")
    schema = _schema(options.schema, options.metric)
    left = None if options.left is None else read_person(options.left, schema.domain)
    network = load(options.model)
    with Ticker(options.seconds) as ticker:
        found = certify(
            network,
            schema.domain,
            schema.metric,
            options.eps,
            delta=options.delta,
            seconds=options.seconds,
            gap=options.gap,
            engine=options.engine,
            solver=options.solver,
            threads=options.threads,
            left=left,
            output=options.output,
            scale=options.scale,
            progress=ticker.hear,
        )
    verdict = None if options.delta is None else found.verdict(options.delta)
    if options.output_file is not None:
        _note(f"saved {found.save(options.output_file)}")
    if options.report is not None:
        _note(f"wrote {write_report([found], options.report, delta=options.delta)}")
    _print(_as_json(found, verdict, options.delta) if options.json else describe(found, options.delta))
    if verdict is None:
        return 0 if math.isfinite(found.upper) else EXIT["undecided"]
    return EXIT[verdict]


def _as_json(found: Certificate, verdict: str | None, delta: float | None) -> str:
    return json.dumps({**found.summary(), "verdict": verdict, "delta": delta}, allow_nan=False)


# ------------------------------------------------------------------------------------------- what users hand over


def _schema(source: str, metric: str | None) -> Schema:
    """Return who can exist and who is similar, from an embedded data set's name or a toml file."""
    if source in datasets.NAMES:
        data = datasets.load(source)
        return Schema(data.domain, data.metric(metric or "mahalanobis"), data.title, data.source)
    if not Path(source).suffix and not Path(source).exists():
        names = ", ".join(datasets.NAMES)
        raise FileError(f"{source}: neither a schema file nor an embedded data set (which are: {names})")
    schema = read_schema(source)
    if metric in (None, schema.metric.kind):
        return schema
    if metric == "linf":
        return Schema(schema.domain, WeightedLp(np.ones(schema.domain.width)), schema.title, schema.source)
    raise MetricError(f"--metric {metric}: {source} defines a metric of kind {schema.metric.kind!r} only")


def read_person(path: str | os.PathLike[str], domain: Domain) -> Array:
    """Return the person of a csv file: a line of feature names, a line of numbers (network units) and categories."""
    file = Path(path)
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            rows = [row for row in csv.reader(io.StringIO(stream.read(PERSON_LIMIT))) if row]
    except OSError as error:
        raise FileError(f"cannot read {file}: {error.strerror or error}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileError(f"{file} is not a csv file: {error}") from None
    if len(rows) != 2 or len(rows[0]) != len(rows[1]):
        raise FileError(f"{file}: needs a line of feature names and one line of as many values")
    names, cells = ([cell.strip() for cell in row] for row in rows)
    known = {feature.name: feature for feature in domain.features}
    for name in names:
        if name not in known or names.count(name) > 1:
            raise FileError(f"{file}: feature {name!r} is {'given twice' if name in known else 'not in the schema'}")
    values: dict[str, float | str] = {}
    for name, cell in zip(names, cells, strict=True):
        values[name] = _number(f"{file}: {name}", cell) if isinstance(known[name], Continuous) else cell
    try:
        return domain.encode(values)
    except DomainError as error:
        raise DomainError(f"{file}: {error}") from None


def _number(where: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise DomainError(f"{where} needs a number, got {text[:40]!r}") from None


def _require_writable(target: Path, flag: str, inputs: Sequence[Path] = ()) -> None:
    """Refuse, before the long run, an output that could not be written or that would replace an input."""
    folder = target.parent
    if not folder.is_dir():
        raise FileError(f"{flag} {target}: there is no folder {folder}")
    if target.is_dir():
        raise FileError(f"{flag} {target} is a folder: name a file in it")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FileError(f"{flag} {target}: the folder {folder} is not writable")
    for given in inputs:
        if _same(target, given):
            raise InputError(f"{flag} {target} would replace the input {given}: name another file")


def _same(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()


def _require_report() -> None:
    """Refuse, before the long run, what the report would refuse after it."""
    if find_spec("jinja2") is None:
        raise MissingExtra("jinja2", "report")


# ------------------------------------------------------------------------------------------------ what people see


class Ticker:
    """Live progress on stderr: one moving line in a terminal, elsewhere a plain line every few seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._news: News | None = None
        self._started = time.monotonic()
        self._spoken = -math.inf
        console = Console(stderr=True)
        self._plain = not console.is_terminal
        # stdout is never redirected: it carries the result alone.
        live = Live(self, console=console, transient=True, redirect_stdout=False)
        self._live: Live | nullcontext[None] = nullcontext() if self._plain else live

    def __enter__(self) -> Ticker:
        self._live.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._live.__exit__(None, None, None)
        if self._plain and self._news is not None and raised[0] is None:
            _note(self._line())

    def __rich__(self) -> Text:
        return Text(self._line(), overflow="ellipsis", no_wrap=True)

    def hear(self, news: News) -> None:
        """Take the news of a run."""
        self._news = news
        now = time.monotonic()
        if self._plain and now - self._spoken >= QUIET_SECONDS:
            self._spoken = now
            _note(self._line())

    def _line(self) -> str:
        elapsed = time.monotonic() - self._started
        clock = f"{elapsed:.0f} s, {max(0.0, self._seconds - elapsed):.0f} s left"
        if self._news is None:
            return f"starting   {clock}"
        news = self._news
        lower = math.floor(news.lower * 1e6) / 1e6
        if not math.isfinite(news.upper):
            return f"lower {lower:.6f}   no upper bound yet   {news.nodes:,} nodes   {clock}"
        upper = math.ceil(news.upper * 1e6) / 1e6
        return f"lower {lower:.6f}   upper {upper:.6f}   gap {upper - lower:.6f}   {news.nodes:,} nodes   {clock}"


def _print(text: str) -> None:
    """Write the result to stdout; a reader who has gone away changes neither files nor exit code."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _note(text: str) -> None:
    """Write a line to stderr, if anybody still listens."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        return


def _complain(message: str) -> None:
    lines = [line[:MOST_COLUMNS] for line in message.strip().splitlines()[:MOST_LINES]] or ["failed"]
    _note("\n".join([f"likewise: {lines[0]}", *lines[1:]]))


# ------------------------------------------------------------------------------------------------------ the parser


class Parser(argparse.ArgumentParser):
    """argparse, with a usage error told in two lines."""

    def error(self, message: str) -> NoReturn:
        """Exit with 2."""
        _complain(f"{' '.join(message.splitlines())}\nsee {self.prog} --help")
        raise SystemExit(BAD_INPUT)


def _parser() -> Parser:
    parser = Parser(
        prog="likewise",
        description="Prove that a neural network treats similar people alike.",
        epilog="example: likewise certify model.npz schema.toml --eps 0.2 --delta 0.1 -o model.cert",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"likewise {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add, name, text, example in COMMANDS:
        add(
            commands.add_parser(
                name,
                help=text,
                description=f"{text[0].upper()}{text[1:]}.",
                epilog=f"example: {example}",
                allow_abbrev=False,
            )
        )
    return parser


def _add_demo(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--seconds", type=float, default=60.0, metavar="S", help="stop after this long (60)")
    add("--eps", type=float, default=0.2, metavar="E", help="how similar two people must be (0.2)")
    add("--delta", type=float, default=0.1, metavar="D", help="how far apart they may be scored (0.1)")
    add("-o", dest="output_file", type=Path, default=Path("report.html"), metavar="FILE", help="where the report goes")
    parser.set_defaults(run=_demo)


def _add_certify(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    names = ", ".join(datasets.NAMES)
    add("model", metavar="MODEL", help="the network: an npz file")
    add("schema", metavar="SCHEMA", help=f"who can exist and who is similar: a toml file, or one of: {names}")
    add("--eps", type=float, required=True, metavar="E", help="how similar two people must be")
    add("--delta", type=float, metavar="D", help="how far apart they may be scored; gives a verdict")
    add("--seconds", type=float, default=60.0, metavar="S", help="stop after this long (60)")
    add("--gap", type=float, default=1e-5, metavar="G", help="stop once the bounds are this close (1e-5)")
    add("--engine", choices=list(ENGINES), default="auto", help="how to search (auto)")
    add("--solver", choices=SOLVERS, default="highs", help="whose dual bounds to use (highs)")
    add("--threads", type=int, metavar="N", help="how many threads the solver may use (all)")
    add("--metric", choices=["mahalanobis", "linf"], help="who is similar, instead of the schema's default")
    add("--scale", choices=["score", "logit"], default="score", help="measure gaps in scores or in logits (score)")
    add("--output", type=int, default=0, metavar="K", help="which of the network's outputs (0)")
    add("--left", metavar="PERSON.csv", help="one fixed person: a line of feature names and a line of values")
    add("--json", action="store_true", help="print one JSON object instead of words")
    add("-o", dest="output_file", type=Path, metavar="FILE.cert", help="save the certificate")
    add("--report", type=Path, metavar="FILE.html", help="write a report for people")
    parser.set_defaults(run=_certify)


Add = Callable[[argparse.ArgumentParser], None]
COMMANDS: Sequence[tuple[Add, str, str, str]] = (
    (_add_demo, "demo", "certify an embedded network and write report.html", "likewise demo --eps 0.1 -o report.html"),
    (
        _add_certify,
        "certify",
        "bound how far apart two similar people can be scored",
        "likewise certify model.npz german --eps 0.2 --delta 0.1 --json",
    ),
)
