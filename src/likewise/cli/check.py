"""`likewise check`: what the independent checker derives from a certificate file."""

from __future__ import annotations

import argparse
import json
import math

from likewise._check import Checked, check
from likewise.certificate import read
from likewise.cli._console import show
from likewise.proof.single import single_margin
from likewise.sign import signed_by

HELP = "derive a certificate's bounds again, independently of the search"
EXAMPLE = "likewise check model.cert model.npz"
WORDS = {0: "verified", 10: "refused", 20: "rests on trust", 2: "unreadable"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("certificate", metavar="FILE.cert", help="a certificate file")
    add("model", nargs="?", metavar="MODEL", help="the model it should be about: any file that certify takes")
    add("--exact", action="store_true", help="sums in rational arithmetic, for small networks")
    add("--key", metavar="PUBLIC.pem", help="refuse the file unless this key signed it")
    add("--float32", action="store_true", help="bounds for a model that computes in single precision")
    add("--json", action="store_true", help="print one JSON object instead of words")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    found = check(options.certificate, options.model, exact=options.exact)
    code, reasons, signed = found.code, list(found.reasons), None
    if options.key is not None and code != 2:
        signed = signed_by(options.certificate, options.key)
        if not signed:
            code, reasons = 10, [*reasons, f"{options.key} did not sign it"]
    margin = single_margin(read(options.certificate).problem) if options.float32 and code in (0, 20) else None
    show(_as_json(found, code, reasons, signed, margin) if options.json else _in_words(found, code, reasons, margin))
    return code


def _as_json(found: Checked, code: int, reasons: list[str], signed: bool | None, margin: float | None) -> str:
    plain = {
        "ok": code == 0,
        "word": WORDS[code],
        "lower": found.lower,
        "upper": found.upper if math.isfinite(found.upper) else None,
        "trusted": list(found.trusted),
        "reasons": reasons,
        "signed": signed,
        "float32_margin": margin,
    }
    return json.dumps(plain, allow_nan=False)


def _in_words(found: Checked, code: int, reasons: list[str], margin: float | None) -> str:
    lines = [WORDS[code]]
    if code != 2:
        lines.append(f"  derived   {found.lower:.9f} <= delta_max <= {found.upper:.9f}")
    if margin is not None:
        low, high = max(0.0, found.lower - margin), found.upper + margin
        lines.append(f"  float32   {low:.9f} <= delta_max <= {high:.9f}")
    lines += [f"  trusted   {what}" for what in found.trusted]
    lines += [f"  reason    {reason}" for reason in reasons]
    return "\n".join(lines)
