"""Check: what the independent checker says of a certificate file, and of the model it is said to be about."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import likewise_checker
from likewise.certificate import read
from likewise.errors import InputError
from likewise.load import load
from likewise.network import Network

OWN_FILES = frozenset({".npz", ".cert"})  # what the checker reads by itself


@dataclass(frozen=True, slots=True)
class Checked:
    """What was derived again: `lower <= delta_max <= upper`, and what had to be taken on trust.

    `ok` says that the certificate's claims follow from what it holds, nothing trusted. `reasons` says why they do not.
    `code` is the exit code of `likewise check`.
    """

    ok: bool
    lower: float
    upper: float
    trusted: tuple[str, ...]
    reasons: tuple[str, ...]
    code: int = 0


def check(path: str | os.PathLike[str], network: Any = None, *, exact: bool = False) -> Checked:
    """Check a certificate file with `likewise_checker.py`, which shares no code with the search.

    `network` is anything that `load` takes; the certificate must be about it. `exact` adds up in rationals, for
    small networks. A mismatch is a reason, never an exception.
    """
    digest = None if network is None else _digest(path, network)
    found = likewise_checker.check(os.fspath(path), exact=exact, network=digest)
    trusted = [*found["trusted"], *_reading(network)]
    return Checked(
        found["ok"], found["lower"], found["upper"], tuple(trusted), tuple(found["reasons"]), int(found["code"])
    )


def _digest(path: str | os.PathLike[str], network: Any) -> str:
    """Return the digest of the output that the certificate is about; of a file that is none, any will do."""
    whole: Network = load(Path(network) if isinstance(network, str) else network)
    try:
        written = read(path)
    except InputError:
        return whole.digest
    try:
        one = whole.select(written.output)
        return (one.logit() if written.scale == "logit" else one).digest
    except InputError:
        return whole.digest


def _reading(network: Any) -> list[str]:
    """Name what stands between a model file and its weights."""
    if not isinstance(network, str | os.PathLike) or Path(network).suffix in OWN_FILES:
        return []
    return [f"reading {Path(network).name} into weights"]
