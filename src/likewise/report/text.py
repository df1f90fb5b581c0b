"""A certificate in a few lines of plain text, for a terminal."""

from __future__ import annotations

from likewise.certificate import Certificate
from likewise.report._words import basis, ceil_text, claim, floor_text, near_text, plain, rows, ruling


def describe(certificate: Certificate, delta: float | None = None) -> str:
    """Return the verdict, the range and the worst pair in words; `lower` is rounded down and `upper` up."""
    verdict, headline, reason = ruling(certificate, delta)
    lines = [f"{headline if verdict == 'range' else headline.upper()}: {reason}", claim(certificate)]
    lower, upper = floor_text(certificate.lower), ceil_text(certificate.upper)
    how = plain(", ".join(filter(None, (certificate.engine, certificate.solver))))
    lines.append(f"lower {lower}, upper {upper}, {certificate.seconds:.1f} s, {certificate.nodes:,} nodes, {how}")
    lines.append(basis(certificate))
    return "\n".join([*lines, *_pair_lines(certificate)])


def _pair_lines(certificate: Certificate) -> list[str]:
    pair = certificate.witness
    if certificate.lower == 0.0:
        return ["No similar pair that is scored apart was found."]
    lines = [f"Left scores {near_text(pair.left_score)}, right scores {near_text(pair.right_score)}:"]
    listed = rows(pair)
    lines += [f"  {row.name}: {row.left} against {row.right}" for row in listed if row.differs]
    nearly = [row.name for row in listed if row.nearly]
    lines += [f"  nearly alike: {'; '.join(nearly)}"] if nearly else []
    alike = [f"{row.name} {row.left}" for row in listed if not row.differs and not row.nearly]
    lines += [f"  alike: {'; '.join(alike)}"] if alike else []
    return lines
