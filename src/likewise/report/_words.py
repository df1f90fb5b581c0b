"""What a certificate says, in words and in numbers that stay true when they are shortened.

A shortened `lower` is rounded down and a shortened `upper` is rounded up, so that no sentence claims more than was
proven. Text from a file may hold anything: characters that do not print are replaced before people see them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

from likewise.certificate import Certificate, Witness
from likewise.domain import Feature, OneHot
from likewise.rounding import Array

PLACES = 4
SMALL = Decimal("1e-5")  # below this, powers of ten are easier to read
EVERYONE = (
    "The bounds speak of everyone who can exist, including combinations of features that nobody has: "
    "`likewise schema DATA.csv --suggest` proposes constraints that leave such people out."
)
UNITS = {
    "score": "scores from 0 to 1",
    "logit": "logits, before the final sigmoid",
    "output": "the units of the network's own output",
}


def floor_text(x: float, above: float | None = None) -> str:
    """Return a short number that is at most `x`, with enough digits to stay above `above` if `x` is."""
    return next(t for t in _shortened(x, ROUND_FLOOR) if above is None or x <= above or _number(t) > _number(above))


def ceil_text(x: float, within: float | None = None) -> str:
    """Return a short number that is at least `x`, with enough digits to stay within `within` if `x` is."""
    return next(
        t for t in _shortened(x, ROUND_CEILING) if within is None or x > within or _number(t) <= _number(within)
    )


def near_text(x: float) -> str:
    """Return a short number near `x`."""
    return next(_shortened(x, ROUND_HALF_EVEN))


def given_text(x: float) -> str:
    """Return a number that the user gave, in full."""
    return f"{x:g}" if float(f"{x:g}") == x else repr(float(x))


def _number(x: float | str) -> Decimal:
    """A float stands for its shortest decimal, as it does wherever people write 0.7."""
    return Decimal(x if isinstance(x, str) else repr(float(x)))


def _shortened(x: float, rounding: str) -> Iterator[str]:
    """Yield `x` with four decimals (significant digits, where those are zeros), then five, and at last in full."""
    if not math.isfinite(x):
        yield "no bound" if x == math.inf else str(x)
        return
    exact = _number(x)
    for places in range(PLACES, 17):
        exponent = min(-places, exact.adjusted() - places + 1)
        if exact.is_zero() or exact.adjusted() - exponent > 26:
            break
        short = exact.quantize(Decimal(1).scaleb(exponent), rounding=rounding)
        yield f"{short:.{places - 1}e}" if abs(short) < SMALL else f"{short:f}"
    yield f"{float(x):g}" if exact.is_zero() else repr(float(x))


def plain(text: str) -> str:
    """Return the text with characters that do not print (control codes, direction marks) replaced."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def is_score(certificate: Certificate) -> bool:
    """Tell whether the network's output is a score between 0 and 1."""
    return certificate.unit == "score"


def unit_words(certificate: Certificate) -> str:
    """Return what gaps are measured in, and of which output."""
    which = f"output {certificate.output}, " if certificate.output else ""
    return f"{which}{UNITS[certificate.unit]}"


def who(certificate: Certificate) -> str:
    """Return the subject of the claim: whom the question is about."""
    problem, eps = certificate.problem, f"eps = {given_text(certificate.eps)}"
    if problem.symmetric:
        return f"two people within {eps} of each other"
    if (problem.left.lower == problem.left.upper).all():
        return f"person within {eps} of the given person"
    return f"two people within {eps} of each other, the left one from the given group,"


def claim(certificate: Certificate) -> str:
    """Return the proven upper bound as a sentence."""
    if not math.isfinite(certificate.upper):
        return f"Nothing is proven yet about how far apart {who(certificate)} can be scored."
    apart = "apart" if certificate.problem.symmetric or "two" in who(certificate) else "apart from that person"
    return f"No {who(certificate)} can be scored more than {ceil_text(certificate.upper)} {apart}."


def finding(certificate: Certificate) -> str:
    """Return the proven lower bound, which is a pair, as a sentence."""
    if certificate.lower == 0.0:
        return "No similar pair that is scored apart was found."
    return f"The two people below are scored {floor_text(certificate.lower)} apart."


def ruling(certificate: Certificate, delta: float | None) -> tuple[str, str, str]:
    """Return (verdict, headline, reason); without a delta the verdict is "range"."""
    verdict = "range" if delta is None else certificate.verdict(delta)  # refuses what is no delta
    bounded = math.isfinite(certificate.upper)
    lower, upper = floor_text(certificate.lower, delta), ceil_text(certificate.upper, delta)
    if delta is None:
        if not bounded:
            return verdict, f"At least {lower}", "The largest gap between similar people is at least this much."
        return verdict, f"{lower} to {upper}", "The largest gap between similar people is proven to lie in this range."
    allowed = f"delta = {given_text(delta)}"
    if verdict == "fair":
        return verdict, "Fair", f"Proven: similar people are scored at most {upper} apart, and {allowed} is allowed."
    if verdict == "unfair":
        return (
            verdict,
            "Unfair",
            f"Proven by a pair: two similar people are scored {lower} apart; {allowed} is allowed.",
        )
    between = f"between {lower} and {upper}" if bounded else f"at least {lower}, with no upper bound yet"
    return verdict, "Undecided", f"The largest gap is {between}: that does not decide {allowed}."


@dataclass(frozen=True, slots=True)
class Row:
    """One feature of the pair; `nearly` marks values that differ by less than the digits shown."""

    name: str
    left: str
    right: str
    differs: bool
    nearly: bool


def rows(witness: Witness) -> tuple[Row, ...]:
    """Return the pair feature by feature, those that differ first."""
    listed = [_row(feature, witness.left[span], witness.right[span]) for feature, span in witness.domain.spans]
    return tuple(sorted(listed, key=lambda row: not row.differs))


def _row(feature: Feature, left: Array, right: Array) -> Row:
    shown_left, shown_right = _show(feature, left), _show(feature, right)
    differs = shown_left != shown_right
    nearly = not differs and bool((left != right).any())
    return Row(plain(feature.display.title or feature.name), shown_left, shown_right, differs, nearly)


def _show(feature: Feature, part: Array) -> str:
    if isinstance(feature, OneHot):
        return plain(feature.display.category(feature.values[int(part.argmax())]))
    return plain(feature.text(float(part[0])))


def metric_words(certificate: Certificate) -> str:
    """Return the metric in words."""
    metric = certificate.problem.metric
    norms = {1.0: "sum of weighted differences", 2.0: "true ball", math.inf: "largest weighted difference"}
    boxed = metric.note.startswith("relaxation: box")
    form = "rectangular relaxation" if boxed else norms.get(metric.p, f"p-norm with p = {metric.p:g}")
    through = "" if metric.phi is None else f", through {metric.phi!r}"
    raw = ", in raw units" if metric.note.endswith("in raw units") else ""
    return plain(f"{metric.kind}, {form}, {metric.width} columns{through}{raw}")


def basis(certificate: Certificate) -> str:
    """Return what the upper bound rests on."""
    if not math.isfinite(certificate.upper):
        return "There is no upper bound yet."
    own = "likewise's own arithmetic, rounded outward"
    if not certificate.trusted:
        return f"The upper bound rests on {own}, and on nothing else."
    return f"The upper bound rests on {own}, and on the word of: {plain(', '.join(certificate.trusted))}."
