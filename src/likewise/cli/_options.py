"""The options that commands share: what is asked, and how long and by which means to search."""

from __future__ import annotations

import argparse
from typing import Any

from likewise import datasets
from likewise.load import READERS
from likewise.search import ENGINES
from likewise.solvers import NAMES as SOLVERS


def add_question(parser: argparse.ArgumentParser) -> None:
    """Add the model and the schema."""
    add = parser.add_argument
    add("model", metavar="MODEL", help=f"the network: a file of one of these kinds: {', '.join(READERS)}")
    add("schema", metavar="SCHEMA", help=f"a toml file of who can exist, or one of: {', '.join(datasets.NAMES)}")


def add_search(parser: argparse.ArgumentParser, seconds: str) -> None:
    """Add delta, the limits of the search, its engine, and what of the network is asked about."""
    add = parser.add_argument
    add("--delta", type=float, metavar="D", help="how far apart they may be scored; gives a verdict")
    add("--seconds", type=float, metavar="S", help=f"stop after this long ({seconds})")
    add("--gap", type=float, default=1e-5, metavar="G", help="stop once the bounds are this close (1e-5)")
    add("--engine", choices=list(ENGINES), default="auto", help="how to search (auto)")
    add("--solver", choices=SOLVERS, default="highs", help="whose dual bounds to use (highs)")
    add("--threads", type=int, metavar="N", help="how many threads or processes to use (all cores)")
    add(
        "--metric",
        metavar="M",
        help="who is similar, instead of the schema's own: mahalanobis, embedding, linf, l1, ...",
    )
    add("--scale", choices=["score", "logit"], default="score", help="measure gaps in scores or in logits (score)")
    add("--output", type=int, default=0, metavar="K", help="which of the network's outputs, counted from 0 (0)")


def search_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return what `certify`, `profile` and `certify_people` take alike."""
    names = ("delta", "gap", "engine", "solver", "threads", "output", "scale")
    return {name: getattr(options, name) for name in names}
