"""Tamper with certificates at random, and see that no wrong claim is accepted.

    python benchmarks/tampering.py --count 2000

The kinds of mutation are those of tests/tamper.py; the verdict on each file is that of tests/test_check_tampered.py.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from store import ROOT

sys.path.insert(0, str(ROOT / "tests"))
tampered: Any = import_module("test_check_tampered")
tamper: Any = import_module("tamper")
WORDS = {0: "accepted, rightly", 10: "refused", 20: "rests on trust", 2: "unreadable"}


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line."""
    line = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    line.add_argument("--count", type=int, default=2000)
    line.add_argument("--seed", type=int, default=0)
    options = line.parse_args(words)
    rng, names, counts, wrong = np.random.default_rng(options.seed), sorted(tamper.MUTATIONS), Counter[int](), []
    with tempfile.TemporaryDirectory() as folder:
        for k in range(options.count):
            name, tree = names[k % len(names)], int(rng.integers(len(tampered.TREES)))
            seed = int(rng.integers(1 << 30))
            code, fault = tampered.verdict(name, tree, seed, Path(folder))
            counts[code] += 1
            if fault:
                wrong.append(f"{name}, tree {tree}, seed {seed}: {fault}")
                print(wrong[-1], file=sys.stderr, flush=True)
    print(f"{options.count} mutations of {len(names)} kinds: {len(wrong)} wrong claims accepted")
    for code, count in sorted(counts.items()):
        print(f"  {WORDS[code]:<18} {count}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
