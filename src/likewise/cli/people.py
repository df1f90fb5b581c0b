"""`likewise certify --people FILE.csv`: one question per real person, and the share of them treated alike."""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from likewise._people import OUTSIDE, PersonBounds, certify_people, tally
from likewise.certificate import write_atomically
from likewise.cli._console import EXIT, Ticker, note, overall, show
from likewise.cli._inputs import model_of, people_of
from likewise.cli._options import search_options
from likewise.errors import DomainError
from likewise.load import Schema
from likewise.report import EVERYONE, ceil_text, floor_text, given_text, pair_lines

SECONDS = 10.0
COLUMNS = ("person", "verdict", "lower", "upper", "score", "other_score", "differs", "seconds", "trusted", "reason")


def run(options: argparse.Namespace, schema: Schema) -> int:
    """Certify each person and tell the shares; Ctrl-C keeps those who are done."""
    people = people_of(options.people, schema.domain)
    if len(people.outside) == len(people.names):
        first = next(iter(people.outside.values()))
        raise DomainError(f"{options.people}: nobody of these {len(people.names)} is in the domain\n{first}")
    network = model_of(options.model)
    counts: Counter[str] = Counter()
    began = time.monotonic()

    def line(news: str | None, elapsed: float) -> str:
        done = ", ".join(f"{n} {word or 'done'}" for word, n in sorted(counts.items()))
        return f"{counts.total()} of {len(people.names)} people   {done}   {elapsed:.0f} s"

    with Ticker[str](line) as ticker:

        def hear(bounds: PersonBounds) -> None:
            counts[bounds.verdict] += 1
            ticker.hear(bounds.verdict)

        found = certify_people(
            network,
            schema.domain,
            schema.metric,
            people.X,
            options.eps,
            seconds=SECONDS if options.seconds is None else options.seconds,
            progress=hear,
            **search_options(options),
        )
    if options.output_file is not None:
        write_atomically(options.output_file, _as_csv(found, people.names).encode("utf-8", "replace"))
        note(f"saved {options.output_file}, {len(found)} people")
    if len(found) < len(people.names):
        note(f"interrupted: {len(found)} of {len(people.names)} people are done")
    answer = _summary(found, people.names, options, time.monotonic() - began)
    show(json.dumps(answer, allow_nan=False) if options.json else _in_words(found, people.names, options))
    if options.delta is None:
        return 0 if answer["upper"] is not None and len(found) == len(people.names) else EXIT["undecided"]
    return EXIT[answer["verdict"]]


def _inside(found: Sequence[PersonBounds]) -> list[PersonBounds]:
    return [bounds for bounds in found if bounds.verdict != OUTSIDE]


def _summary(
    found: Sequence[PersonBounds], names: Sequence[str], options: argparse.Namespace, seconds: float
) -> dict[str, Any]:
    """Return the answer about all people: the shares, the largest bounds, and the pair that is furthest apart."""
    inside, counts = _inside(found), tally(found)
    worst = max(inside, key=lambda bounds: bounds.lower, default=None)
    upper = max((bounds.upper for bounds in inside), default=math.inf)
    lower = 0.0 if worst is None else worst.lower
    bounded = math.isfinite(upper) and len(found) == len(names)
    verdicts = [bounds.verdict for bounds in inside] + ["undecided"] * (len(found) < len(names))
    return {
        "people": len(names),
        "done": len(found),
        "inside": len(inside),
        **{word: counts[word] for word in ("fair", "unfair", "undecided", OUTSIDE)},
        "share_fair": counts["fair"] / len(inside) if inside and options.delta is not None else None,
        "lower": lower,
        "upper": upper if bounded else None,
        "gap": upper - lower if bounded else None,
        "seconds": seconds,
        "engine": options.engine if worst is None else worst.engine,
        "solver": options.solver,
        "eps": options.eps,
        "delta": options.delta,
        "verdict": None if options.delta is None else overall(verdicts),
        "worst": None if worst is None else names[worst.row],
        "witness": None if worst is None or worst.witness is None else worst.witness.summary(),
        "notes": [EVERYONE],
    }


def _in_words(found: Sequence[PersonBounds], names: Sequence[str], options: argparse.Namespace) -> str:
    inside, counts = _inside(found), tally(found)
    eps = f"eps = {given_text(options.eps)}"
    if not inside:
        return "Nothing is known yet of any of these people."
    lines = []
    if options.delta is not None:
        share = f"{1000 * counts['fair'] // len(inside) / 10:.1f}%"  # rounded down: all is said of all alone
        lines.append(
            f"{share} of {len(inside)} people are certified: nobody within {eps} of them can be scored more than "
            f"delta = {given_text(options.delta)} apart from them."
        )
        shown = [(word, counts[word]) for word in ("fair", "unfair", "undecided")]
        lines.append(", ".join(f"{word} {count}" for word, count in shown))
    worst, most = max(inside, key=lambda one: one.lower), max(one.upper for one in inside)
    lines.append(
        f"The largest gap of anyone within {eps} of one of these {len(inside)} people: "
        f"lower {floor_text(worst.lower)}, upper {ceil_text(most)}."
    )
    if counts[OUTSIDE]:
        first = next(one for one in found if one.verdict == OUTSIDE)
        lines.append(f"Outside of the domain, and not counted: {counts[OUTSIDE]}, such as {names[first.row]}:")
        lines.append(f"  {first.reason}")
    if worst.witness is not None and worst.lower > 0.0:
        lines += [f"Furthest apart is {names[worst.row]}, the left one here:", *pair_lines(worst.witness)]
    return "\n".join([*lines, EVERYONE])


def _as_csv(found: Sequence[PersonBounds], names: Sequence[str]) -> str:
    """Return a line per person; an upper bound that does not exist is left empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for one in found:
        pair = one.witness
        if pair is None:
            writer.writerow([names[one.row], one.verdict, *[""] * 7, one.reason])
            continue
        differs = "; ".join(f"{name}: {left} against {right}" for name, left, right in pair.rows() if left != right)
        upper = repr(one.upper) if math.isfinite(one.upper) else ""
        bounds = [names[one.row], one.verdict, repr(one.lower), upper]
        scores = [repr(pair.left_score), repr(pair.right_score), differs]
        writer.writerow([*bounds, *scores, f"{one.seconds:.3f}", "; ".join(one.trusted), ""])
    return text.getvalue()
