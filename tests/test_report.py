"""Reports: every number is there, none claims more than was proven, nothing is fetched, no text becomes markup."""

from __future__ import annotations

import math
import re
import sys
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.certificate import Certificate, Witness, read
from likewise.domain import Continuous, Display, Domain, OneHot
from likewise.errors import FileError, InputError, MissingExtra
from likewise.metric import Mahalanobis, WeightedLp
from likewise.network import Layer, Network
from likewise.problem import Problem
from likewise.report import describe, write_report
from likewise.report._charts import Axis, closing, gap_axis, value_axis
from likewise.report._words import ceil_text, floor_text, near_text

HOSTILE = '<script>alert("x")</script>'
VOID = {"meta", "br", "hr", "img", "input", "link"}
TRACE = ((0.01, 0.0, math.inf), (0.1, 0.3, 0.9), (0.5, 0.6, 0.7), (2.0, 0.64289, 0.64301))


def domain(name: str = "age") -> Domain:
    return Domain(
        [
            Continuous(name, 0.0, 1.0, Display(18.0, 60.0, "years")),
            Continuous("income", 0.0, 1.0),
            OneHot("job", ["a", "b"], Display(labels=(("a", "artist"), ("b", "baker")), title="trade")),
        ]
    )


def certificate(
    people: Domain | None = None, *, lower: float = 0.64289, upper: float = 0.64301, **change: object
) -> Certificate:
    people = people or domain()
    final = str(change.pop("final", "sigmoid"))
    net = Network([Layer([[2.0, 1.0, 0.0, -1.0]], [0.0], final)])
    problem = Problem(net, change.pop("left", people), people, WeightedLp(np.ones(4)), 0.2)  # type: ignore[arg-type]
    left, right = np.array([0.5, 0.25, 1.0, 0.0]), np.array([0.3, 0.25, 1.0, 0.0])
    fields: dict[str, object] = {"engine": "branch", "solver": "highs", "seconds": 2.5, "trace": TRACE, "nodes": 1234}
    witness = Witness(left, right, 0.8123, 0.16941, 0.2, people)
    return Certificate(problem, lower, upper, witness, **(fields | change))  # type: ignore[arg-type]


class Page(HTMLParser):
    """Parse a page, insist that its tags are balanced, and keep its elements and text."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[tuple[str | None, list[str]]] = []
        self.words: list[str] = []
        self.feed(markup)
        self.close()
        assert self.open == []
        self.text = re.sub(r"\s+", " ", " ".join(self.words))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append((dict(attrs).get("class"), []))
        if tag in ("td", "th"):
            self.rows[-1][1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            return
        self.words.append(data)
        if {"td", "th"} & set(self.open):
            self.rows[-1][1][-1] += data

    def tags(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag == name]


def page(tmp_path: Path, *certificates: Certificate, **options: object) -> Page:
    path = write_report(certificates, tmp_path / "r.html", **options)  # type: ignore[arg-type]
    return Page(path.read_text("utf-8"))


def test_all_numbers_are_there(tmp_path: Path) -> None:
    text = page(tmp_path, certificate(trusted=("highs said so",), notes=("a note",)), delta=0.7).text
    for needle in (
        "No two people within eps = 0.2 of each other can be scored more than 0.6431 apart.",
        "The two people below are scored 0.6428 apart.",
        "delta = 0.7", "lower 0.6428", "upper 0.6431", "0.64289", "0.64301", "0.8123", "0.1694",
        "branch", "highs", "2.50", "1,234", "highs said so", "a note", "combinations of features that nobody has",
    ):  # fmt: skip
        assert needle in text, needle
    problem = certificate().problem
    for digest in (problem.network.digest, problem.right.digest, problem.metric.digest, problem.digest):
        assert digest in text
    assert repr(problem.network) in text


@pytest.mark.parametrize(("delta", "word"), [(0.7, "fair"), (0.6, "unfair"), (0.643, "undecided"), (None, "range")])
def test_the_verdict_is_that_of_the_certificate(tmp_path: Path, delta: float | None, word: str) -> None:
    classes = [str(a.get("class")) for a in page(tmp_path, certificate(), delta=delta).tags("p")]
    banners = [kind for kind in classes if "verdict" in kind]
    assert banners == [f"verdict {word}"]
    first = describe(certificate(), delta).splitlines()[0]
    assert first.startswith("0.6428 to 0.6431" if delta is None else word.upper() + ":")


def test_rows_that_differ_come_first_and_are_marked(tmp_path: Path) -> None:
    rows = [(kind, cells) for kind, cells in page(tmp_path, certificate()).rows if len(cells) == 3]
    assert rows[0][1] == ["Feature", "Left", "Right"]
    assert rows[1] == ("differs", ["age (differs)", "48 years", "36 years"])
    assert [kind for kind, _ in rows[2:]] == [None, None]
    assert ["trade", "artist", "artist"] in [cells for _, cells in rows]


def test_a_difference_too_small_to_show_is_told(tmp_path: Path) -> None:
    base = certificate()
    right = base.witness.left.copy()
    right[1] += 1e-9
    near = Witness(base.witness.left, right, 0.8, 0.7, 0.1, base.witness.domain)
    close = Certificate(base.problem, 0.1, 0.2, near, "branch", "highs", 1.0)
    assert "differ by less than the digits shown" in page(tmp_path, close).text
    assert "nearly alike: income" in describe(close)
    assert "differ by less than the digits shown" not in page(tmp_path, base).text


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    people = Domain(
        [
            Continuous(HOSTILE, 0.0, 1.0, Display(unit='"><img src=x>')),
            Continuous("b", 0.0, 1.0, Display(title="</table>\x1b[31m\u202e")),
            OneHot("c", ["</td>", "&amp;"]),
        ]
    )
    hostile = certificate(people, engine=HOSTILE, solver="<b>", trusted=(HOSTILE,), notes=("</ul>",))
    parsed = page(tmp_path, hostile, title=f"{HOSTILE} & co", delta=0.7)
    assert not parsed.tags("script")
    assert not parsed.tags("img")
    assert not parsed.tags("b")
    assert parsed.text.count(HOSTILE) >= 4  # title twice, engine, trusted, feature
    for text in (parsed.text, describe(hostile, 0.7)):
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_nothing_is_fetched_and_nothing_runs(tmp_path: Path) -> None:
    path = write_report([certificate(), certificate()], tmp_path / "r.html", delta=0.7)
    markup = path.read_text("utf-8")
    assert not re.search(r"(?i)https?:|//\w|@import|url\(|javascript:", markup)
    parsed = Page(markup)
    for _, attributes in parsed.elements:
        assert not {"src", "srcset", "onload", "onclick", "data"} & attributes.keys()
        assert str(attributes.get("href", "#")).startswith("#")
    assert {tag for tag, _ in parsed.elements}.isdisjoint({"script", "link", "iframe", "object", "base"})
    assert any("default-src 'none'" in str(a.get("content")) for a in parsed.tags("meta"))


def test_the_page_is_accessible(tmp_path: Path) -> None:
    parsed = page(tmp_path, certificate(), certificate(), delta=0.7)
    ids = [a["id"] for _, a in parsed.elements if "id" in a]
    assert len(ids) == len(set(ids))
    drawings = [a for a in parsed.tags("svg") if a.get("aria-hidden") != "true"]
    assert len(drawings) == 6  # range, scores and closing of each certificate
    assert all(a["role"] == "img" and a["aria-labelledby"] in ids for a in drawings)
    assert len(parsed.tags("h1")) == 1
    assert len(parsed.tags("h2")) == 3
    assert all(a.get("scope") in ("col", "row") for a in parsed.tags("th"))
    assert parsed.tags("html")[0]["lang"] == "en"
    links = [str(a["href"])[1:] for a in parsed.tags("a")]
    assert len(links) == 2
    assert set(links) <= set(ids)


def test_drawings_stay_inside_of_their_frame(tmp_path: Path) -> None:
    odd = (
        certificate(lower=0.0, upper=math.inf, trace=((0.0, 0.0, math.inf), (1.0, 0.0, math.inf))),
        certificate(final="identity", lower=3.0, upper=17.0, trace=((0.0, 0.0, 90.0), (1.0, 3.0, 17.0))),
        certificate(lower=0.0, upper=0.0, trace=()),
    )
    parsed = page(tmp_path, *odd, delta=4.0)
    drawn = 0
    for _, attributes in parsed.elements:
        for key in ("x", "x1", "x2", "y1", "y2", "width", "height", "cx"):
            value = str(attributes.get(key, ""))
            if value.endswith("%"):
                drawn += 1
                assert -1e-6 <= float(value[:-1]) <= 100 + 1e-6
    assert drawn > 50
    assert "no upper bound" in page(tmp_path, odd[0], delta=4.0).text


def test_no_pair_is_shown_when_none_was_found(tmp_path: Path) -> None:
    none = certificate(lower=0.0)
    assert "The two people" not in page(tmp_path, none).text
    assert "No similar pair that is scored apart was found." in page(tmp_path, none).text
    assert "No similar pair" in describe(none)
    assert "against" not in describe(none)


def test_a_given_person_is_spoken_of_as_one() -> None:
    local = certificate(left=domain().at([0.5, 0.25, 1.0, 0.0]))
    expected = "No person within eps = 0.2 of the given person can be scored more than 0.6431 apart from that person."
    assert expected in describe(local)


def test_text_tells_the_pair_in_words() -> None:
    text = describe(certificate(trusted=("highs",)), 0.6)
    assert text.startswith("UNFAIR: Proven by a pair: two similar people are scored 0.6428 apart; delta = 0.6 is")
    assert "  age: 48 years against 36 years" in text
    assert "  alike: income 0.25; trade artist" in text
    assert "lower 0.6428, upper 0.6431, 2.5 s, 1,234 nodes, branch, highs" in text
    assert "on the word of: highs." in text
    assert "on nothing else" in describe(certificate())


def test_without_jinja_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtra, match=r"jinja2.*likewise\[report\]"):
        write_report([certificate()], tmp_path / "r.html")


def test_bad_calls_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least one certificate"):
        write_report([], tmp_path / "r.html")
    for delta in (-0.1, math.nan):
        with pytest.raises(InputError, match="delta"):
            write_report([certificate()], tmp_path / "r.html", delta=delta)
    with pytest.raises(FileError, match="nowhere"):
        write_report([certificate()], tmp_path / "nowhere" / "r.html")
    assert not list(tmp_path.iterdir())


def test_a_certificate_from_a_file_reports_the_same(tmp_path: Path) -> None:
    original = certificate()
    again = read(original.save(tmp_path / "c.cert"))
    first = write_report([original], tmp_path / "a.html", delta=0.7).read_bytes()
    assert write_report([again], tmp_path / "b.html", delta=0.7).read_bytes() == first


def test_other_metrics_are_named(tmp_path: Path) -> None:
    base = certificate()
    for metric, words in ((Mahalanobis(np.eye(4)), "true ball"), (Mahalanobis(np.eye(4), "box"), "rectangular")):
        problem = Problem(base.problem.network, base.problem.left, base.problem.right, metric, 0.2)
        other = Certificate(problem, 0.1, 0.2, base.witness, "branch", "highs", 1.0)
        assert words in page(tmp_path, other).text


# --- numbers that stay true ------------------------------------------------------------------------------------------

gaps = st.floats(0, 1e12, allow_subnormal=False)


@given(gaps)
def test_shortened_bounds_never_claim_more(x: float) -> None:
    exact = Decimal(repr(x))
    assert Decimal(floor_text(x)) <= exact <= Decimal(ceil_text(x))
    assert float(near_text(x)) == pytest.approx(x, rel=1e-3, abs=1e-4)
    assert float(ceil_text(x)) == pytest.approx(x, rel=1.1e-3, abs=1e-4)
    assert float(floor_text(x)) == pytest.approx(x, rel=1.1e-3, abs=1e-4)


@given(gaps, gaps)
def test_shortening_keeps_the_side_of_delta(x: float, delta: float) -> None:
    if x > delta:
        assert Decimal(floor_text(x, delta)) > Decimal(repr(delta))
    else:
        assert Decimal(ceil_text(x, delta)) <= Decimal(repr(delta))


@pytest.mark.parametrize(
    ("x", "down", "up"),
    [
        (0.0, "0", "0"),
        (0.7, "0.7000", "0.7000"),
        (0.123456, "0.1234", "0.1235"),
        (0.00123456, "0.001234", "0.001235"),
        (1.23456e-9, "1.234e-9", "1.235e-9"),
        (12.34567, "12.3456", "12.3457"),
        (math.inf, "no bound", "no bound"),
    ],
)
def test_how_numbers_look(x: float, down: str, up: str) -> None:
    assert (floor_text(x), ceil_text(x)) == (down, up)


# --- charts ----------------------------------------------------------------------------------------------------------


def test_axes_put_numbers_where_they_belong() -> None:
    assert [Axis(0.0, 2.0).at(x) for x in (-1, 0, 0.5, 2, 9, math.inf)] == [0, 0, 25, 100, 100, 100]
    assert Axis(0.01, 100.0, log=True).at(1.0) == 50
    assert [t.label for t in Axis(0.0, 1.0).ticks()] == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    assert [t.label for t in Axis(0.005, 20.0, log=True).ticks()] == ["0.01", "0.1", "1", "10"]


@given(gaps, gaps, st.booleans())
def test_the_axis_of_a_gap_holds_it(lower: float, delta: float, score: bool) -> None:
    axis = gap_axis([lower, delta, math.inf], score)
    assert axis.low == 0.0
    assert axis.high >= max(lower, delta)
    assert 2 <= len(axis.ticks()) <= 8


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9), st.booleans())
def test_the_axis_of_two_outputs_holds_both(left: float, right: float, score: bool) -> None:
    axis = value_axis(left, right, score)
    assert axis.low <= min(left, right) <= max(left, right) <= axis.high
    assert 2 <= len(axis.ticks()) <= 12


def test_the_closing_chart_follows_the_trace() -> None:
    chart = closing(TRACE, 2.5, Axis(0.0, 1.0))
    assert chart is not None
    assert chart.time == Axis(0.01, 2.5, log=True)
    assert [round(step.lower) for step in chart.steps] == [100, 70, 40, 36]
    assert [round(step.upper) for step in chart.steps] == [0, 10, 30, 36]
    assert chart.steps[-1].x + chart.steps[-1].width == pytest.approx(100)
    linear = closing(((1.0, 0.0, 1.0), (2.0, 0.1, 0.2)), 4.0, Axis(0.0, 1.0))
    assert linear is not None
    assert not linear.time.log
    assert [(step.x, step.width) for step in linear.steps] == [(25, 25), (50, 50)]


def test_a_long_trace_is_thinned_and_keeps_its_end() -> None:
    trace = [(1.0 + i, i / 10_000, 1.0) for i in range(5_000)]
    chart = closing(trace, 5_000.0, Axis(0.0, 1.0))
    assert chart is not None
    assert len(chart.steps) <= 151
    assert chart.steps[-1].lower == pytest.approx(100 * (1 - 0.4999))
    assert closing(trace[:1], 1.0, Axis(0.0, 1.0)) is None
