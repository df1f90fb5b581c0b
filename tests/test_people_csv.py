"""People from a csv in their own units: what is written is what the network sees, and each mistake has its place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from likewise.domain import Continuous, Display, Domain, Integer, OneHot
from likewise.errors import InputError
from likewise.load.people import read_people

DOMAIN = Domain(
    [
        Continuous("age", 0.0, 1.0, Display(18.0, 60.0, "years")),
        Continuous("debt", -1.0, 1.0),
        Integer("children", 0.0, 1.0, 0.1, Display(0.0, 10.0)),
        OneHot("job", ["artist", "baker"], Display(labels=(("artist", "an artist"),))),
    ]
)
ROWS = "name,job,age,debt,children\nAnn,baker,48,-0.25,3\nBob,artist,78,1,0\n"


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "people.csv"
    path.write_text(text)
    return path


def test_people_are_read_in_their_own_units(tmp_path: Path) -> None:
    people = read_people(write(tmp_path, ROWS), DOMAIN)
    assert people.X[:, [0, 1, 3, 4]].tolist() == [[0.5, -0.25, 0.0, 1.0], [1.0, 1.0, 1.0, 0.0]]
    assert people.X[:, 2] == pytest.approx([0.3, 0.0])
    assert people.names == ("line 2", "line 3")
    assert people.extra == {"name": ("Ann", "Bob")}
    assert people.outside == {}
    assert repr(people) == "People(2, 0 outside of the domain)"
    assert dict(DOMAIN.show(people.X[0]))["age"] == "48 years"


def test_the_order_of_columns_blank_lines_and_a_mark_at_the_start_do_not_matter(tmp_path: Path) -> None:
    first = read_people(write(tmp_path, ROWS), DOMAIN)
    other = "\ufeffage, children ,job,debt\n\n48,3.0, baker ,-2.5e-1\n78,+0,artist,1.\n"
    again = read_people(write(tmp_path, other), DOMAIN)
    assert np.array_equal(first.X, again.X)
    assert again.names == ("line 3", "line 4")
    assert again.extra == {}


def test_every_step_of_a_whole_number_is_in_the_domain(tmp_path: Path) -> None:
    for top in (3, 7, 10, 49, 93):
        domain = Domain([Integer("n", 0.0, 1.0, 1 / top, Display(5.0, float(top)))])
        rows = "\n".join(str(5 + i) for i in range(top + 1))
        people = read_people(write(tmp_path, f"n\n{rows}\n"), domain)
        assert people.outside == {}
        assert all(domain.contains(person) for person in people.X)
        assert len(np.unique(people.X)) == top + 1


def test_rounding_alone_puts_nobody_outside(tmp_path: Path) -> None:
    domain = Domain([Continuous("x", 0.0, 1.0, Display(0.1, 0.7)), Continuous("y", 0.1, 0.3, Display(0.0, 0.1))])
    people = read_people(write(tmp_path, "x,y\n0.1,0.01\n0.8,0.03\n"), domain)
    assert people.outside == {}
    assert people.X.tolist() == [[0.0, 0.1], [1.0, 0.3]]


def test_people_outside_of_the_domain_are_told_and_left_as_they_are(tmp_path: Path) -> None:
    rows = "age,debt,children,job\n48,0,3,baker\n93,0,3,baker\n48,0,2.5,baker\n48,-7,3,baker\n"
    people = read_people(write(tmp_path, rows), DOMAIN)
    assert sorted(people.outside) == [1, 2, 3]
    assert people.X[1, 0] == 1.25
    for row, feature in ((1, "age"), (2, "children"), (3, "debt")):
        assert f"line {row + 2}" in people.outside[row]
        assert feature in people.outside[row]


def test_constraints_count(tmp_path: Path) -> None:
    domain = Domain(DOMAIN.features, constraints=[([1.0, 0, 0, 0, 1.0], 1.5)])  # no baker above 48
    people = read_people(write(tmp_path, "age,debt,children,job\n48,0,3,baker\n49,0,3,baker\n49,0,3,artist\n"), domain)
    assert list(people.outside) == [1]


MISTAKES = [
    ("age,debt,children\n1,2,3\n", "column 'job'"),
    ("age,debt,children,job\n20,0,3,pilot\n", "line 2, column 'job': unknown category 'pilot'"),
    ("age,debt,children,job\n20,0,3,an artist\n", "unknown category 'an artist'"),
    ("age,debt,children,job\n20,0,3,baker\n21,0,3,\n", "line 3, column 'job': the value is missing"),
    ("age,debt,children,job\nold,0,3,baker\n", "line 2, column 'age': needs a number, got 'old'"),
    ("age,debt,children,job\n?,0,3,baker\n", "line 2, column 'age': the value is missing"),
    ("age,debt,children,job\nnan,0,3,baker\n", "line 2, column 'age': the value is missing"),
    ("age,debt,children,job\ninf,0,3,baker\n", "column 'age': needs a number"),
    ("age,debt,children,job\n1e999,0,3,baker\n", "column 'age': needs a number"),
    ("age,debt,children,job\n1_0,0,3,baker\n", "column 'age': needs a number"),
    ("age,debt,children,job\n٣,0,3,baker\n", "column 'age': needs a number"),
    ("age,debt,children,job\n" + "9" * 5000 + ",0,3,baker\n", "column 'age': needs a number"),
    ("age,debt,children,job,age\n1,0,3,baker,1\n", "'age' appears twice"),
    ("age,debt,children,job\n20,0,3\n", "line 2 has 3 cells"),
    ("age,debt,children,job\n", "not one row"),
    ("", "empty"),
]


@pytest.mark.parametrize(("text", "culprit"), MISTAKES)
def test_each_mistake_is_refused_with_its_place(tmp_path: Path, text: str, culprit: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_people(path, DOMAIN)
    message = str(caught.value)
    assert culprit in message
    assert str(path) in message
    assert message.count("\n") < 3
    assert len(message) < 500


def test_a_display_that_cannot_be_undone_is_refused(tmp_path: Path) -> None:
    domain = Domain([Continuous("age", 0.0, 1.0, Display(18.0, 0.0))])
    with pytest.raises(InputError, match=r"'age'.*factor of 0"):
        read_people(write(tmp_path, "age\n18\n"), domain)
