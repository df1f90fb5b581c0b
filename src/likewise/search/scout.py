"""Scout: the search for pairs in a process of its own, on a core of its own, beside the one that proves bounds.

The process runs `main` here with the same Python; it is told the problem through a pipe that nobody else holds, sends
back each better pair it finds, and ends when the pipe is closed. Its pairs are candidates only: `Run.offer` decides.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any

from likewise.bounds import Reach
from likewise.problem import Problem
from likewise.rounding import Array
from likewise.search.primal import Primal
from likewise.search.run import News, Run
from likewise.search.score import Score

Pair = tuple[Array, Array]
LOOK = 2.0  # seconds of one look
SEED = 1  # another one than that of the process that proves bounds


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """What a scout is sent out with."""

    outer: Problem
    inner: Problem
    score: Score
    reach: Reach
    seconds: float
    gap: float
    pair: Pair


class Scout:
    """A running scout; as a context it ends with it."""

    def __init__(self, order: Order) -> None:
        # A session of its own: Ctrl-C reaches this process alone, which then ends the other.
        self._process = subprocess.Popen(
            [sys.executable, "-c", "import sys; from likewise.search.scout import main; sys.exit(main())"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,
        )
        self._found: queue.SimpleQueue[Pair] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.tell(order)

    def __enter__(self) -> Scout:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:  # what it was not told any more
                continue

    def tell(self, what: Order | Pair) -> None:
        """Send a scout what it has to know, if it still listens."""
        assert self._process.stdin is not None
        try:
            pickle.dump(what, self._process.stdin)
            self._process.stdin.flush()
        except BrokenPipeError:
            return  # `trouble` says why

    def found(self) -> list[Pair]:
        """Return the pairs that have come in."""
        return [self._found.get() for _ in range(self._found.qsize())]

    @property
    def trouble(self) -> str | None:
        """Why it ended before its time, if it did."""
        if self._process.poll() in (None, 0):
            return None
        assert self._process.stderr is not None
        said = self._process.stderr.read().decode(errors="replace").strip().splitlines()
        return f"the search for pairs beside ended early: {said[-1] if said else self._process.returncode}"

    def _read(self) -> None:
        assert self._process.stdout is not None
        while (pair := _next(self._process.stdout)) is not None:
            self._found.put(pair)


def _next(pipe: IO[bytes]) -> Any:
    """Return the next thing that comes through a pipe of our own, None at its end."""
    try:
        return pickle.load(pipe)  # noqa: S301 - written by this module, in the process at the other end
    except (EOFError, pickle.UnpicklingError, ValueError):
        return None


def main() -> int:
    """Look for pairs until time is over or nobody listens."""
    order: Order = _next(sys.stdin.buffer)
    told: queue.SimpleQueue[Pair] = queue.SimpleQueue()

    def listen() -> None:
        while (pair := _next(sys.stdin.buffer)) is not None:
            told.put(pair)
        os._exit(0)  # whoever sent this out is gone

    threading.Thread(target=listen, daemon=True).start()

    def tell(news: News) -> None:
        pickle.dump(run.pair(), sys.stdout.buffer)
        sys.stdout.buffer.flush()

    run = Run(order.outer, seconds=order.seconds, gap=order.gap, listener=tell)
    run.offer(*order.pair)
    primal = Primal(order.outer, order.inner, order.score, order.reach, run, seed=SEED)
    while not run.done:
        primal.look(LOOK)
        for _ in range(told.qsize()):
            run.offer(*told.get())
    return 0
