"""`likewise schema`: infer a schema.toml from a csv file, to be edited."""

from __future__ import annotations

import argparse
from pathlib import Path

from likewise.cli._console import note, show
from likewise.cli._inputs import require_writable
from likewise.errors import FileError
from likewise.load.infer import infer, write_inferred

HELP = "infer a schema.toml to edit from a csv file"
EXAMPLE = "likewise schema data.csv --sensitive sex,race --target income -o schema.toml"
DEFAULT = Path("schema.toml")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("data", metavar="DATA.csv", help="people: a line of column names, a line of values each")
    add("--sensitive", type=_names, default=[], metavar="A,B", help="columns that must not matter")
    add("--target", metavar="Y", help="the column that the network predicts, which is no feature")
    add("--keep", action="store_true", help="keep sensitive columns as features that are free to differ")
    add("--suggest", action="store_true", help="add the constraints that the data suggests; else they are comments")
    add("-o", dest="output_file", type=Path, metavar="FILE", help=f"where the schema goes ({DEFAULT})")


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    target: Path = options.output_file or DEFAULT
    require_writable(target, "-o", [options.data])
    if options.output_file is None and target.exists():
        raise FileError(f"{target} exists: say -o {target} to replace it, or name another file")
    found = infer(options.data, options.target, options.sensitive, keep=options.keep, mine=options.suggest)
    write_inferred(found, target)
    for text in found.notes:
        show(text)
    note(f"wrote {target}: read it, and correct what is not so in your world")
    return 0
