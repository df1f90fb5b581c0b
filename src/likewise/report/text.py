"""Certificates in a few lines of plain text, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from likewise.certificate import Certificate, Witness
from likewise.report._words import (
    EVERYONE,
    basis,
    ceil_text,
    claim,
    floor_text,
    given_text,
    near_text,
    plain,
    rows,
    ruling,
    unit_words,
)


def describe(certificate: Certificate, delta: float | None = None) -> str:
    """Return the verdict, the range and the worst pair in words; `lower` is rounded down and `upper` up."""
    verdict, headline, reason = ruling(certificate, delta)
    lines = [f"{headline if verdict == 'range' else headline.upper()}: {reason}", claim(certificate)]
    lower, upper = floor_text(certificate.lower), ceil_text(certificate.upper)
    how = plain(", ".join(filter(None, (certificate.engine, certificate.solver))))
    lines.append(f"lower {lower}, upper {upper}, {certificate.seconds:.1f} s, {certificate.nodes:,} nodes, {how}")
    if certificate.unit != "score" or certificate.output:
        lines.append(f"Gaps are in {unit_words(certificate)}.")
    lines += [basis(certificate), EVERYONE]
    if certificate.lower == 0.0:
        return "\n".join([*lines, "No similar pair that is scored apart was found."])
    return "\n".join([*lines, *pair_lines(certificate.witness)])


def pair_lines(pair: Witness) -> list[str]:
    """Return the pair in words, line by line: scores, where the two differ, where they are alike."""
    lines = [f"Left scores {near_text(pair.left_score)}, right scores {near_text(pair.right_score)}:"]
    listed = rows(pair)
    lines += [f"  {row.name}: {row.left} against {row.right}" for row in listed if row.differs]
    nearly = [row.name for row in listed if row.nearly]
    lines += [f"  nearly alike: {'; '.join(nearly)}"] if nearly else []
    alike = [f"{row.name} {row.left}" for row in listed if not row.differs and not row.nearly]
    lines += [f"  alike: {'; '.join(alike)}"] if alike else []
    return lines


def profile_table(certificates: Sequence[Certificate], delta: float | None = None) -> str:
    """Return a line per eps: the bounds, the verdict if there is a delta, and how long it took."""
    lines = [f"{'eps':>10}  {'lower':>10}  {'upper':>10}  {'verdict':<10}  {'seconds':>8}"]
    for one in certificates:
        verdict = "-" if delta is None else one.verdict(delta)
        bounds = f"{floor_text(one.lower, delta):>10}  {ceil_text(one.upper, delta):>10}"
        lines.append(f"{given_text(one.eps):>10}  {bounds}  {verdict:<10}  {one.seconds:>8.1f}")
    units = {unit_words(one) for one in certificates}
    return "\n".join([*lines, f"Gaps are in {'; '.join(sorted(units))}."])
