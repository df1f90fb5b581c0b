"""Check the certificates of a grid: each is written to a file and checked in a process of its own, without likewise.

`python benchmarks/bench.py GRID --check` does that for every cell that closed, and `table.py GRID` then says how many
were verified, how far the derived bounds are from the claimed ones, and which took longer to check than to prove.
"""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from store import ROOT, finite

from likewise import Certificate

CHECKER = ROOT / "likewise_checker.py"
CLOSE = 1e-6
TIMES = 3  # to start the checker with nothing to check; the quickest counts


def checked(cert: Certificate) -> dict[str, Any]:
    """Write a certificate, check it in a fresh process, and return the checker's words with the seconds it took."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        path = cert.save(Path(folder) / "cell.cert")
        written = time.monotonic() - started
        seconds, output = _run([str(path)])
        size = path.stat().st_size
    word, *lines = output.splitlines()
    told = dict(line.split(maxsplit=1) for line in lines)
    return {
        "word": word,
        "lower": float(told["lower"]),
        "upper": finite(float(told["upper"])),
        "trusted": told["trusted"],
        "reasons": told["reasons"],
        "seconds": seconds,
        "start": start(),
        "seconds_to_write": written,
        "bytes": size,
    }


@cache
def start() -> float:
    """Return the seconds that Python and numpy take to start before the checker does anything."""
    return min(_run(["--help"])[0] for _ in range(TIMES))


def _run(words: Sequence[str]) -> tuple[float, str]:
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-I", str(CHECKER), *words], capture_output=True, text=True, check=False)
    if done.stderr:
        raise RuntimeError(f"the checker fell over:\n{done.stderr}")
    return time.monotonic() - started, done.stdout


def summary(results: Sequence[dict[str, Any]]) -> str:
    """Return the sentences about the checked ones of some results, and name every one that is not as it should be."""
    own = [r for r in results if r.get("check")]
    words = Counter(r["check"]["word"] for r in own)
    verified = [r for r in own if r["check"]["word"] == "verified"]
    off = [r["check"]["upper"] - r["upper"] for r in verified] or [0.0]
    slow = [r for r in verified if r["check"]["seconds"] > r["seconds"]]
    slower = [r for r in verified if r["check"]["seconds"] - r["check"]["start"] > r["seconds"]]
    shares = sorted((r["check"]["seconds"] - r["check"]["start"]) / max(r["seconds"], 1e-9) for r in verified)
    middle = shares[len(shares) // 2] if shares else math.nan
    starts = [r["check"]["start"] for r in own]
    counted = ", ".join(f"{count} {word}" for word, count in words.items())
    lines = [
        f"Checked by `likewise_checker.py` in a process each: {len(own)} closed cells, {counted}.",
        f"The derived upper is at most {max(0.0, *off):.1e} above the claimed one, and {max(0.0, -min(off)):.1e} below "
        "(where intervals alone exclude the last parts).",
        f"{len(slow)} took longer to check than to prove; {len(slower)} did without the {min(starts):.2f} s that "
        f"Python and numpy take to start. Without it, checking took {middle:.2f} of the time of proving (median), "
        f"{shares[-1] if shares else math.nan:.2f} at most.",
    ]
    for title, some in (
        ("Not verified", [r for r in own if r not in verified]),
        (f"Above by more than {CLOSE:g}", [r for r in verified if r["check"]["upper"] > r["upper"] + CLOSE]),
        ("Longer to check than to prove", slow),
    ):
        lines += [f"{title}: " + "; ".join(map(_named, some)) + "."] if some else []
    return "\n\n".join(lines)


def _named(result: dict[str, Any]) -> str:
    check, name = result["check"], result["name"].replace("|", " ")
    if check["word"] != "verified":
        return f"{name} ({check['word']}: {check['reasons'] if check['reasons'] != '[]' else check['trusted']})"
    return f"{name} ({check['seconds']:.2f} s against {result['seconds']:.2f} s)"
