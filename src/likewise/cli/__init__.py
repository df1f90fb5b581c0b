"""The command line: results on stdout, everything else on stderr, and exit codes that are an interface.

    0    proven fair, or done (without --delta, once both bounds exist)
    2    bad input or usage: one to three lines on stderr, nothing written
    10   unfair, shown by a verified pair
    20   undecided in the time given
    130  interrupted before there was anything to save

A defect of likewise itself is a traceback and Python's 1. Each command has a file of its own; `_inputs.py` is what
users hand over, `_options.py` what commands share, `_console.py` what people see.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import NoReturn

from likewise import __version__
from likewise.cli import certify, check, demo, export, profile, schema, train
from likewise.cli._console import BAD_INPUT, INTERRUPTED, complain
from likewise.errors import InputError, SolverError

__all__ = ["main"]

COMMANDS: Sequence[tuple[str, ModuleType]] = (
    ("demo", demo),
    ("certify", certify),
    ("profile", profile),
    ("check", check),
    ("train", train),
    ("schema", schema),
    ("export", export),
)


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
        complain(str(error))
        return BAD_INPUT
    except KeyboardInterrupt:
        complain("interrupted before there was anything to save")
        return INTERRUPTED


class Parser(argparse.ArgumentParser):
    """argparse, with a usage error told in two lines."""

    def error(self, message: str) -> NoReturn:
        """Exit with 2."""
        complain(f"{' '.join(message.splitlines())}\nsee {self.prog} --help")
        raise SystemExit(BAD_INPUT)


def _parser() -> Parser:
    parser = Parser(
        prog="likewise",
        description="Prove that a neural network treats similar people alike.",
        epilog="example: likewise certify model.onnx schema.toml --eps 0.2 --delta 0.1 -o model.cert",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"likewise {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, command in COMMANDS:
        about: str = command.HELP
        own = commands.add_parser(
            name,
            help=about,
            description=f"{about[0].upper()}{about[1:]}.",
            epilog=f"example: {command.EXAMPLE}",
            allow_abbrev=False,
        )
        command.add_arguments(own)
        own.set_defaults(run=command.run)
    return parser
