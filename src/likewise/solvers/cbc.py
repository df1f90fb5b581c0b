"""CBC, as a child process: the binary in cbcbox (extra `cbc`).

A child, because the C interface of the same release crashes in its progress callback. Bounds are read from the log
while it runs; the log has six digits, so each is widened by one unit of its last digit, and there may be most of a
second between two of them. Points are not in the log: `watch.point` hears of the last one only, when the run is over.
"""

from __future__ import annotations

import math
import os
import queue
import re
import signal
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import final

import cbcbox
import numpy as np

from likewise.errors import SolverError
from likewise.solvers._model import Answer, Array, Limits, LinearModel, Status, Watch
from likewise.solvers._mps import write_mps
from likewise.solvers._relay import TOLERANCE, Relay

# The first words of the solution file, up to a dash or a parenthesis.
_STATUS = {
    "Optimal": Status.OPTIMAL,
    "Stopped on time": Status.LIMIT,
    "Stopped on nodes": Status.LIMIT,
    "Stopped on iterations": Status.LIMIT,
    "Infeasible": Status.INFEASIBLE,
    "Integer infeasible": Status.INFEASIBLE,
    "Unbounded": Status.UNBOUNDED,
}
_DIGITS = 6
_WIDTH = 15  # of the log's column BestBound
_GRACE = 1.0  # seconds a child gets to obey, then it is killed
_TICK = 0.05


@final
class Cbc:
    """Mixed-integer maximisation with CBC in a child process, which dies with the run (Ctrl-C included)."""

    name: str = "cbc"

    def solve(
        self, model: LinearModel, limits: Limits, *, start: Array | None = None, watch: Watch | None = None
    ) -> Answer:
        """Maximise the model. An infeasible model is reported with bound +inf: it is never a proof."""
        with tempfile.TemporaryDirectory(prefix="likewise-cbc-") as name, Relay(model, watch) as relay:
            folder = Path(name)
            write_mps(model, folder / "model.mps")
            if start is not None:
                lines = [f"{j} c{j} {entry!r}\n" for j, entry in enumerate(start.tolist())]
                (folder / "start").write_text("".join(lines))
            log = _Log(model.constant, limits.gap)
            _run(_command(folder, limits, start is not None), log, relay, limits.seconds)
            status, point = _read(folder / "answer", model)
            if log.infeasible:
                status = Status.INFEASIBLE
            if relay.stop and status is not Status.OPTIMAL:
                status = Status.STOPPED
            elif status is Status.FAILED and relay.seconds > limits.seconds + _GRACE:
                status = Status.LIMIT  # killed, and what the log said still stands
            if status is Status.OPTIMAL and point is not None:
                log.optimal(float(model.objective @ point) + model.constant)
            if point is not None:
                relay.point(point, log.bound, log.nodes)
            return relay.answer(status, log.bound, point, log.nodes)


def _command(folder: Path, limits: Limits, started: bool) -> list[str]:
    options = {
        "seconds": max(0.0, limits.seconds),
        "timeMode": "elapsed",
        "threads": limits.threads if limits.threads > 1 else 0,
        "ratioGap": 0.0,
        "allowableGap": limits.gap,
        "increment": TOLERANCE,
        "integerTolerance": TOLERANCE,
        "primalTolerance": TOLERANCE,
        "dualTolerance": TOLERANCE,
    }
    command = [cbcbox.cbc_bin_path(), str(folder / "model.mps")]
    command += [word for name, option in options.items() for word in (f"-{name}", str(option))]
    if started:
        command += ["-mipstart", str(folder / "start")]
    return [*command, "-solve", "-solution", str(folder / "answer")]


class _Log:
    """What the log has said so far, as an upper bound on the maximum (the file minimises, so signs turn here).

    CBC drops what is within the allowed gap of its best point and then calls that point's value its bound, so the gap
    is added to all it says.
    """

    def __init__(self, constant: float, gap: float) -> None:
        self.bound = math.inf
        self.value = -math.inf
        self.nodes = 0
        self.infeasible = False
        self._constant = constant
        self._gap = gap
        self._column = 0

    def hear(self, line: str) -> None:
        """Read a line: a row of the branch-and-bound table, or one of the last lines."""
        if "BestBound" in line:
            self._column = line.index("BestBound") + len("BestBound")
        elif line.startswith("Lower bound:"):
            self._claim(line.split(":")[1])
        elif "infeasibility proved" in line:  # before there is a status to write to the solution file
            self.infeasible = True
        elif line.startswith("Enumerated nodes:"):
            self.nodes = int(line.split()[2])
        elif self._column and (row := re.match(r"[ ★]*(\d+) +\d+ +\d+ +(\S+)", line)):
            self._claim(line[self._column - _WIDTH : self._column])
            self.nodes = int(row[1])
            value = _number(row[2])
            self.value = self._constant - value if math.isfinite(value) else self.value

    def optimal(self, bound: float) -> None:
        """CBC called its point optimal up to the allowed gap."""
        self.bound = min(self.bound, bound + self._gap)

    def _claim(self, text: str) -> None:
        least = _number(text)
        if math.isfinite(least):
            unit = 10.0 ** (math.floor(math.log10(abs(least))) - _DIGITS + 1) if least else 0.0
            self.bound = min(self.bound, self._constant - least + unit + self._gap)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _run(command: list[str], log: _Log, relay: Relay, seconds: float) -> None:
    """Run the child to its end, passing on its log; ask it to stop when the caller wants to, kill it if it will not."""
    kill_at = seconds + _GRACE
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # so that Ctrl-C reaches us, and the child through us
        encoding="utf-8",
        errors="replace",
    ) as child:
        lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=_pump, args=(child, lines), daemon=True).start()
        asked = False
        try:
            while (line := _next(lines)) is not None:
                log.hear(line)
                if relay.progress(log.bound, log.value, log.nodes) and not asked:
                    asked = True
                    kill_at = relay.seconds + _GRACE
                    _interrupt(child)
                if relay.failed or relay.seconds > kill_at:
                    child.kill()
        finally:
            if child.poll() is None and not asked:
                child.kill()


def _pump(child: subprocess.Popen[str], lines: queue.SimpleQueue[str | None]) -> None:
    for line in child.stdout or ():
        lines.put(line)
    lines.put(None)


def _next(lines: queue.SimpleQueue[str | None]) -> str | None:
    try:
        return lines.get(timeout=_TICK)
    except queue.Empty:
        return ""


def _interrupt(child: subprocess.Popen[str]) -> None:
    if os.name == "nt":
        child.kill()
    else:
        child.send_signal(signal.SIGINT)


def _read(path: Path, model: LinearModel) -> tuple[Status, Array | None]:
    """Read the solution file: a status line, then the columns that are not zero."""
    if not path.exists():
        return Status.FAILED, None
    head, *rows = path.read_text().splitlines() or [""]
    status = _STATUS.get(re.split(r" - | \(", head)[0].strip(), Status.FAILED)
    found = status is Status.OPTIMAL or (status is Status.LIMIT and model.integer.any())
    if not found or "no integer solution" in head:
        return status, None
    point = np.zeros(model.objective.size)
    for row in rows:
        fields = row.replace("**", " ").split()
        if len(fields) < 3 or not fields[1].startswith("c"):
            raise SolverError(f"CBC wrote a solution that cannot be read: {row!r}")
        point[int(fields[1][1:])] = float(fields[2])
    return status, point
