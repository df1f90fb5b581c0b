"""One self-contained HTML file: no script, nothing fetched, every text escaped."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from likewise.certificate import Certificate, write_atomically
from likewise.errors import InputError, MissingExtra
from likewise.problem import Problem
from likewise.report import _charts, _words

TEMPLATE = "report.html.jinja"


@dataclass(frozen=True, slots=True)
class Mark:
    """A labelled place on a bar."""

    at: float
    label: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Section:
    """All that the template shows of one certificate."""

    anchor: str
    heading: str
    verdict: str
    headline: str
    reason: str
    claim: str
    finding: str
    lower: Mark
    upper: Mark
    delta: Mark | None
    gap_axis: _charts.Axis
    left: Mark
    right: Mark
    value_axis: _charts.Axis
    pair: tuple[_words.Row, ...]
    found: bool
    closing: _charts.Closing | None
    basis: str
    notes: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    digests: tuple[tuple[str, str], ...]


def write_report(
    certificates: Sequence[Certificate],
    path: str | os.PathLike[str],
    *,
    delta: float | None = None,
    title: str = "Are similar people treated alike?",
) -> Path:
    """Write one HTML file about the certificates and return its path.

    With `delta`, the allowed gap, every certificate gets a verdict; without it, its range. Numbers are those of the
    certificates as stated: `likewise check` is what re-derives them.
    """
    if not certificates:
        raise InputError("a report needs at least one certificate")
    try:
        import jinja2
    except ImportError:
        raise MissingExtra("jinja2", "report") from None
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(files("likewise.report").joinpath(TEMPLATE).read_text("utf-8"))
    sections = [section(certificate, delta, i + 1) for i, certificate in enumerate(certificates)]
    page = template.render(
        title=_words.plain(title), sections=sections, growth=_growth(certificates), everyone=_words.EVERYONE
    )
    target = Path(path)
    write_atomically(target, page.encode("utf-8", "replace"))
    return target


def _growth(certificates: Sequence[Certificate]) -> _charts.Growth | None:
    """Return how the bounds grow with eps, if the certificates differ in nothing else."""
    first = certificates[0]
    questions = {(p.network.digest, p.left.digest, p.right.digest, p.metric.digest) for p in _problems(certificates)}
    if len(questions) > 1:
        return None
    bounds = [(one.eps, one.lower, one.upper) for one in certificates]
    highest = [x for _, lower, upper in bounds for x in (lower, upper)]
    return _charts.growth(bounds, _charts.gap_axis(highest, _words.is_score(first)))


def _problems(certificates: Sequence[Certificate]) -> list[Problem]:
    return [certificate.problem for certificate in certificates]


def section(certificate: Certificate, delta: float | None, number: int) -> Section:
    """Return what the template shows of one certificate."""
    verdict, headline, reason = _words.ruling(certificate, delta)
    score = _words.is_score(certificate)
    gap = _charts.gap_axis([certificate.lower, certificate.upper, delta or 0.0], score)
    pair = certificate.witness
    values = _charts.value_axis(pair.left_score, pair.right_score, score)
    return Section(
        anchor=f"certificate-{number}",
        heading=f"Within eps = {_words.given_text(certificate.eps)}",
        verdict=verdict,
        headline=headline,
        reason=reason,
        claim=_words.claim(certificate),
        finding=_words.finding(certificate),
        lower=_mark(gap, certificate.lower, f"lower {_words.floor_text(certificate.lower)}"),
        upper=_mark(gap, certificate.upper, f"upper {_words.ceil_text(certificate.upper)}"),
        delta=None if delta is None else _mark(gap, delta, f"delta {_words.given_text(delta)}"),
        gap_axis=gap,
        left=_mark(values, pair.left_score, _words.near_text(pair.left_score)),
        right=_mark(values, pair.right_score, _words.near_text(pair.right_score)),
        value_axis=values,
        pair=_words.rows(pair),
        found=certificate.lower > 0.0,
        closing=_charts.closing(certificate.trace, certificate.seconds, gap),
        basis=_words.basis(certificate),
        notes=tuple(_words.plain(note) for note in certificate.notes),
        facts=_facts(certificate),
        digests=_digests(certificate),
    )


def _mark(axis: _charts.Axis, x: float, label: str) -> Mark:
    at = axis.at(x)
    return Mark(at, label, _charts.anchor(at))


def _facts(certificate: Certificate) -> tuple[tuple[str, str], ...]:
    problem = certificate.problem
    people = repr(problem.right) if problem.symmetric else f"{problem.right!r}; the left person is narrowed down"
    upper = repr(certificate.upper) if math.isfinite(certificate.upper) else "no bound yet"
    return (
        ("eps, how similar", _words.given_text(certificate.eps)),
        ("Gaps are in", _words.unit_words(certificate)),
        ("Metric", _words.metric_words(certificate)),
        ("Network", repr(problem.network)),
        ("Who can exist", people),
        ("lower, in full", repr(certificate.lower)),
        ("upper, in full", upper),
        ("Distance of the pair", _words.near_text(certificate.witness.distance)),
        ("Engine", _words.plain(certificate.engine)),
        ("Solver", _words.plain(certificate.solver) or "none"),
        ("Seconds", f"{certificate.seconds:.2f}"),
        ("Nodes", f"{certificate.nodes:,}"),
    )


def _digests(certificate: Certificate) -> tuple[tuple[str, str], ...]:
    problem = certificate.problem
    domains: tuple[tuple[str, str], ...] = (("domain", problem.right.digest),)
    if not problem.symmetric:
        domains = (("left domain", problem.left.digest), ("right domain", problem.right.digest))
    whole = (("network", problem.network.digest), *domains, ("metric", problem.metric.digest))
    return (*whole, ("the whole question", problem.digest))
