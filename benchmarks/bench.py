"""Certify a grid of fixed questions; a result file per finished cell, so that it can be stopped and resumed.

    python benchmarks/bench.py GRID [--engine milp,paper] [--solver highs] [--seconds S] [--gap G] [--threads N]
                                    [--jobs N] [--only TEXT] [--results FOLDER] [--check]

GRID is one of those in grids.py: smoke (default), adult, known, mild, paper, settings, smooth, versus, wide. Then
`python benchmarks/table.py GRID`.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from checked import checked
from grids import GRIDS
from instances import instance
from store import (
    ROOT,
    Cell,
    Settings,
    code_digest,
    commit,
    finite,
    key,
    machine,
    read_json,
    solver_version,
    today,
    write_json,
)

from likewise import LikewiseError
from likewise.search import search


@dataclass(frozen=True, slots=True)
class Plan:
    """The cells of a run with the files of their results."""

    cells: tuple[Cell, ...]
    files: tuple[Path, ...]
    command: str
    check: bool = False

    def finished(self, file: Path) -> bool:
        """Tell whether a cell was run before, and checked if that is wanted."""
        result = read_json(file)
        return result is not None and (not self.check or "check" in result)


def parser() -> argparse.ArgumentParser:
    """Return the command line; table.py takes the same options to find the same cells."""
    line = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    line.add_argument("grid", nargs="?", default="smoke", choices=sorted(GRIDS))
    line.add_argument("--engine", help="engines, separated by commas (default: those of the grid)")
    line.add_argument("--solver", default="highs")
    line.add_argument("--seconds", type=float, help="per cell (default: that of the grid)")
    line.add_argument("--gap", type=float)
    line.add_argument("--threads", type=int)
    line.add_argument("--only", default="", help="only questions whose name has this text in it, such as german_16")
    line.add_argument("--results", type=Path, default=ROOT / "results")
    line.add_argument("--check", action="store_true", help="check the certificate of every cell that closes")
    return line


def plan(options: argparse.Namespace) -> Plan:
    """Return the cells: question by question, the engines one after the other."""
    grid = GRIDS[options.grid]
    engines = options.engine.split(",") if options.engine else grid.engines
    cells = tuple(
        Cell(
            name,
            Settings(
                engine,
                options.solver,
                grid.limit(name)[0] if options.seconds is None else options.seconds,
                grid.limit(name)[1] if options.gap is None else options.gap,
                grid.threads if options.threads is None else options.threads,
            ),
        )
        for name in grid.names()
        if options.only in name
        for engine in engines
    )
    code = code_digest()
    digests = {name: instance(name).digest for name in dict.fromkeys(cell.name for cell in cells)}
    files = tuple(options.results / f"{key(digests[c.name], c.settings, code)}.json" for c in cells)
    return Plan(cells, files, _command(options, engines), options.check)


def _command(options: argparse.Namespace, engines: Sequence[str]) -> str:
    chosen = [("--engine", ",".join(engines) if options.engine else None), ("--solver", options.solver)]
    chosen += [(f"--{name}", getattr(options, name)) for name in ("seconds", "gap", "threads")]
    chosen += [("--only", options.only or None)]
    words = [word for name, value in chosen if value is not None for word in (name, str(value))]
    words += ["--check"] if options.check else []
    return shlex.join(["python", "benchmarks/bench.py", options.grid, *words])


def run_cell(cell: Cell, file: Path, command: str, check: bool = False) -> dict[str, Any]:
    """Certify one cell, check the certificate if that is wanted and the gap is closed, and write the result."""
    s = cell.settings
    problem = instance(cell.name)
    started = time.monotonic()
    cert = search(problem, engine=s.engine, solver=s.solver, seconds=s.seconds, gap=s.gap, threads=s.threads)
    if "interrupted" in cert.notes:
        raise KeyboardInterrupt
    wall = time.monotonic() - started
    content = {
        "name": cell.name,
        "engine": s.engine,
        "solver": s.solver,
        "limit": s.seconds,
        "wanted_gap": s.gap,
        "threads": s.threads,
        "lower": cert.lower,
        "upper": finite(cert.upper),
        "seconds": wall,
        "nodes": cert.nodes,
        "trace": [[at, low, finite(high)] for at, low, high in cert.trace],
        "trusted": list(cert.trusted),
        "notes": list(cert.notes),
        "digest": problem.digest,
        "code": code_digest(),
        "commit": commit(),
        "command": command,
        "machine": machine(s.solver),
        "date": today(),
    }
    if check:
        content["check"] = checked(cert) if cert.gap <= s.gap * (1 + 1e-9) else None
    write_json(file, content)
    return content


def say(index: int, count: int, cell: Cell, result: dict[str, Any]) -> None:
    """Tell people about one cell, on stderr."""
    upper, check = "inf" if result["upper"] is None else f"{result['upper']:.6f}", result.get("check")
    print(
        f"[{index + 1}/{count}] {cell.name} {cell.settings.engine}: "
        f"[{result['lower']:.6f}, {upper}] in {result['seconds']:.2f} s"
        + (f", {check['word']} in {check['seconds']:.2f} s" if check else ""),
        file=sys.stderr,
        flush=True,
    )


def run_here(todo: Plan) -> int:
    """Run the missing cells in this process, in order; return how many failed."""
    failed = 0
    for index, (cell, file) in enumerate(zip(todo.cells, todo.files, strict=True)):
        if todo.finished(file):
            continue
        try:
            say(index, len(todo.cells), cell, run_cell(cell, file, todo.command, todo.check))
        except LikewiseError as error:  # one cell's defect must not cost the others
            failed += 1
            print(f"[{index + 1}/{len(todo.cells)}] {cell.name} {cell.settings.engine}: {error}", file=sys.stderr)
    return failed


def run_apart(todo: Plan, jobs: int, words: Sequence[str]) -> int:
    """Run the missing cells in subprocesses, `jobs` at once; return how many failed."""
    waiting = [i for i, file in enumerate(todo.files) if not todo.finished(file)]
    running: dict[int, subprocess.Popen[bytes]] = {}
    failed = 0
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                index = waiting.pop(0)
                running[index] = _start(words, index)
            time.sleep(0.1)
            for index in [i for i, process in running.items() if process.poll() is not None]:
                process = running.pop(index)
                failed += bool(process.returncode) or not todo.finished(todo.files[index])
    except KeyboardInterrupt:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()
        raise
    return failed


def _start(words: Sequence[str], index: int) -> subprocess.Popen[bytes]:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    # A session of its own: Ctrl-C reaches this process alone, which then ends its children.
    command = [sys.executable, str(Path(__file__).resolve()), *words, "--cell", str(index)]
    return subprocess.Popen(command, env=environment, start_new_session=True)


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line."""
    given = list(sys.argv[1:] if words is None else words)
    line = parser()
    line.add_argument("--jobs", type=int, default=1, help="cells to run at once, each in a process of its own")
    line.add_argument("--cell", type=int, help=argparse.SUPPRESS)
    options = line.parse_args(given)
    todo = plan(options)
    if options.cell is not None:
        here = slice(options.cell, options.cell + 1)
        todo = replace(todo, cells=todo.cells[here], files=todo.files[here])
        return 1 if run_here(todo) else 0
    done = sum(map(todo.finished, todo.files))
    where = f"{len(todo.cells)} cells, {done} finished before, {solver_version(options.solver)}"
    print(f"{options.grid}: {where}, results in {options.results}", file=sys.stderr)
    try:
        failed = run_apart(todo, options.jobs, given) if options.jobs > 1 else run_here(todo)
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 130
    print(f"render: python benchmarks/table.py {shlex.join(given)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
