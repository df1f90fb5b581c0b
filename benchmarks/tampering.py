"""Tamper with certificates at random, and see that no wrong claim is accepted.

    python benchmarks/tampering.py --count 2000 -o benchmarks/tables/tampering.md

The kinds of mutation are those of tests/tamper.py, drawn by hypothesis; the verdict on each file is that of
tests/test_check_tampered.py. A mutation may leave a claim true, or make it one about another question: then it is right
to accept it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from store import ROOT, commit, machine, publish, today
from table import markdown

sys.path.insert(0, str(ROOT / "tests"))
tampered: Any = import_module("test_check_tampered")
tamper: Any = import_module("tamper")
SAME, WRONG = tampered.UNCHANGED, -1
CODES = {10: "refused", 2: "unreadable", 20: "rests on trust", 0: "accepted, rightly", WRONG: "accepted, wrongly"}


def tampered_with(count: int, start: int, folder: Path) -> dict[str, Counter[int]]:
    """Return how often each kind of mutation came to each verdict."""
    found: dict[str, Counter[int]] = defaultdict(Counter)

    @seed(start)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.sampled_from(sorted(tamper.MUTATIONS)), st.integers(0, len(tampered.TREES) - 1), st.integers(0, 1 << 30))
    def one(name: str, tree: int, number: int) -> None:
        code, fault = tampered.verdict(name, tree, number, folder)
        found[name][WRONG if fault else code] += 1
        if fault:
            print(f"{name}, tree {tree}, seed {number}: {fault}", file=sys.stderr, flush=True)

    one()
    return found


def page(found: dict[str, Counter[int]], command: str) -> str:
    """Return the table, with where it was made."""
    rows = [(name, *(str(found[name][code] or "") for code in CODES)) for name in sorted(found)]
    total = sum(found.values(), Counter[int]())
    unchanged = total.pop(SAME, 0)
    where = machine("highs")
    return "\n\n".join(
        [
            f"# Tampering: {total.total()} mutations of {len(found)} kinds, {total[WRONG]} wrong claims accepted",
            f"- commit: `{commit()}`\n- command: `{command}`\n- machine: `{where['cpu']}, {where['cores']} cores, "
            f"{where['memory_gib']} GiB, Python {where['python']}`\n- date: {today()}",
            ", ".join(f"{total[code]} {word}" for code, word in CODES.items())
            + f". ({unchanged} more found nothing to change in the certificate they were given, and do not count.)",
            markdown(("mutation", *CODES.values()), rows),
        ]
    )


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line."""
    line = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    line.add_argument("--count", type=int, default=2000)
    line.add_argument("--seed", type=int, default=0)
    line.add_argument("-o", "--output", type=Path)
    options = line.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        found = tampered_with(options.count, options.seed, Path(folder))
    publish(
        page(found, f"python benchmarks/tampering.py --count {options.count} --seed {options.seed}"), options.output
    )
    return 1 if any(counts[WRONG] for counts in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
