"""One JSON file per finished cell, keyed by everything that can change its answer."""

from __future__ import annotations

import datetime
import hashlib
import importlib.metadata
import json
import math
import os
import platform
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# What speaks to people or feeds data in cannot change what a given question is answered.
HARMLESS = ("cli", "__main__.py", "report", "datasets")
LIBRARIES = {"highs": "highspy", "scip": "pyscipopt", "gurobi": "gurobipy", "cbc": "cbcbox"}


@dataclass(frozen=True, slots=True)
class Settings:
    """How a cell is run."""

    engine: str
    solver: str
    seconds: float
    gap: float
    threads: int


@dataclass(frozen=True, slots=True)
class Cell:
    """One question with the settings of one run."""

    name: str
    settings: Settings


def code_digest(source: Path = ROOT / "src" / "likewise") -> str:
    """Return the SHA-256 of the source files that can change an answer, the kernel's among them."""
    sha = hashlib.sha256()
    for file in sorted((source.parent / "kernel").glob("*.?pp")):
        sha.update(f"{file.name}\n".encode() + file.read_bytes() + b"\0")
    for file in sorted(source.rglob("*.py")):
        inside = file.relative_to(source)
        if inside.parts[0] not in HARMLESS:
            sha.update(f"{inside.as_posix()}\n".encode() + file.read_bytes() + b"\0")
    return sha.hexdigest()


def solver_version(solver: str) -> str:
    """Return `name version` of a solver's library."""
    try:
        return f"{solver} {importlib.metadata.version(LIBRARIES[solver])}"
    except importlib.metadata.PackageNotFoundError:
        return f"{solver} (not installed)"


def key(digest: str, settings: Settings, code: str) -> str:
    """Return the name under which a cell's result is kept."""
    parts = [digest, json.dumps(asdict(settings), sort_keys=True), solver_version(settings.solver), code]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a result atomically."""
    write_text(path, json.dumps(content, indent=1, allow_nan=False))


def write_text(path: Path, content: str) -> None:
    """Write a file atomically: beside its place first, then moved."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def publish(text: str, out: Path | None) -> None:
    """Print a table, and write it to a file if one is wanted."""
    if out is not None:
        write_text(out, text)
    print(text)


def read_json(path: Path) -> dict[str, Any] | None:
    """Return a finished result, or None if there is none."""
    if not path.is_file():
        return None
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def finite(value: float) -> float | None:
    """Return a number as JSON has it: no infinity."""
    return value if math.isfinite(value) else None


def commit() -> str:
    """Return the commit, with a + where the work tree differs from it."""
    try:
        head = _git("rev-parse", "--short=12", "HEAD")
        return head + ("+" if _git("status", "--porcelain", "--", "src") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def machine(solver: str) -> dict[str, Any]:
    """Describe where a cell was run."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "python": platform.python_version(),
        "blas_threads": os.environ.get("OMP_NUM_THREADS", "unset"),
        "solver": solver_version(solver),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def today() -> str:
    """Return the time as people and programs read it."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
