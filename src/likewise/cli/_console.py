"""What people see: the result on stdout, progress and complaints on stderr."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Generic, TypeVar

from rich.console import Console
from rich.live import Live
from rich.text import Text

from likewise.search import News

EXIT = {"fair": 0, "unfair": 10, "undecided": 20}
BAD_INPUT = 2
INTERRUPTED = 130
MOST_LINES, MOST_COLUMNS = 3, 400  # of a message about bad input
QUIET_SECONDS = 5.0  # between two lines of progress, where stderr is no terminal

T = TypeVar("T")


def show(text: str) -> None:
    """Write the result to stdout; a reader who has gone away changes neither files nor exit code."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def note(text: str) -> None:
    """Write a line to stderr, if anybody still listens."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        return


def complain(message: str) -> None:
    """Write a message about bad input to stderr, in at most three lines."""
    lines = [line[:MOST_COLUMNS] for line in message.strip().splitlines()[:MOST_LINES]] or ["failed"]
    note("\n".join([f"likewise: {lines[0]}", *lines[1:]]))


def overall(verdicts: Iterable[str]) -> str:
    """Return the verdict on all of several questions: unfair if one is, fair if every one is."""
    listed = set(verdicts)
    if "unfair" in listed:
        return "unfair"
    return "fair" if listed == {"fair"} else "undecided"


class Ticker(Generic[T]):
    """Live progress on stderr: one moving line in a terminal, elsewhere a plain line every few seconds.

    `line` makes the line of the latest news (None before the first) and the seconds since the start.
    """

    def __init__(self, line: Callable[[T | None, float], str]) -> None:
        self._make = line
        self._news: T | None = None
        self._started = time.monotonic()
        self._spoken = -math.inf
        console = Console(stderr=True)
        self._plain = not console.is_terminal
        # stdout is never redirected: it carries the result alone.
        live = Live(self, console=console, transient=True, redirect_stdout=False)
        self._live: Live | nullcontext[None] = nullcontext() if self._plain else live

    def __enter__(self) -> Ticker[T]:
        self._live.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._live.__exit__(None, None, None)
        if self._plain and self._news is not None and raised[0] is None:
            note(self._line())

    def __rich__(self) -> Text:
        return Text(self._line(), overflow="ellipsis", no_wrap=True)

    def hear(self, news: T) -> None:
        """Take the news of a run."""
        self._news = news
        now = time.monotonic()
        if self._plain and now - self._spoken >= QUIET_SECONDS:
            self._spoken = now
            note(self._line())

    def _line(self) -> str:
        return self._make(self._news, time.monotonic() - self._started)


def follow(seconds: float) -> Ticker[News]:
    """Return the live bounds of a search that may take so long."""

    def line(news: News | None, elapsed: float) -> str:
        clock = f"{elapsed:.0f} s, {max(0.0, seconds - elapsed):.0f} s left"
        if news is None:
            return f"starting   {clock}"
        lower = math.floor(news.lower * 1e6) / 1e6
        if not math.isfinite(news.upper):
            return f"lower {lower:.6f}   no upper bound yet   {news.nodes:,} nodes   {clock}"
        upper = math.ceil(news.upper * 1e6) / 1e6
        return f"lower {lower:.6f}   upper {upper:.6f}   gap {upper - lower:.6f}   {news.nodes:,} nodes   {clock}"

    return Ticker(line)
