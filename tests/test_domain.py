"""Domain: integers on their steps, side constraints decided exactly, sub-populations, people who exist."""

from __future__ import annotations

import json
import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise import Continuous, Display, Domain, DomainError, Integer, OneHot

AGE = Display(19.0, 56.0, "years", title="Age")
JOBS = Display(labels=(("a", "Artist"), ("b", "Baker")))


def mixed(constraints: Any = ()) -> Domain:
    """Five columns: age 19 to 75 in years, a job of three, and 0 to 9 children."""
    features = [Integer("age", 0.0, 1.0, 1 / 56, AGE), OneHot("job", ["a", "b", "c"], JOBS), Integer("children", 0, 9)]
    return Domain(features, constraints)


def square(constraints: Any = ()) -> Domain:
    return Domain([Continuous("x", 0.0, 1.0), Continuous("y", 0.0, 1.0)], constraints)


def equal(name: str, other: str, value: float) -> list[Any]:
    return [({name: 1.0, other: 1.0}, value), ({name: -1.0, other: -1.0}, -value)]


@st.composite
def integers(draw: st.DrawFn) -> Integer:
    low = draw(st.one_of(st.integers(-1000, 1000).map(float), st.floats(-1e6, 1e6)))
    step = draw(st.one_of(st.just(1.0), st.floats(1e-3, 1e3), st.integers(1, 1000).map(lambda n: 1 / n)))
    return Integer("n", low, low + draw(st.integers(0, 500)) * step, step)


def values(feature: Integer) -> list[float]:
    return [feature.low + k * feature.step for k in range(feature.count + 1)]


# What was stored before integers and constraints existed must keep its digest.


def test_old_domains_keep_their_digest() -> None:
    labels = Display(labels=(("a", "Alpha"),))
    age = Continuous("age", 0.0, 1.0, Display(18.0, 50.0, "years", (("a", "Alpha"),), "Age"))
    domain = Domain([age, OneHot("job", ["a", "b", "c"], labels), Continuous("x", -0.25, 0.75)])
    someone = np.array([0.5, 0.0, 1.0, 0.0, 0.25])
    assert domain.digest == "511f7662103bec366fa585fd2980adf11b9e1aa3f38983b6cc6c3fe95d2e653a"
    assert domain.at(someone).digest == "e7624654e5fbcda235dce71e2325639e0bc1d22d2c76e42c22e8faf5870bf102"
    assert domain.sharing(someone).digest == "5147276943d349b755997014776c5ac07c2a58776e710e160024fab745997245"
    assert list(domain.to_json()) == ["features", "lower", "upper"]


def test_old_domains_keep_their_samples() -> None:
    domain = Domain([Continuous("age", 0.0, 1.0), OneHot("job", ["a", "b", "c"]), Continuous("x", -0.25, 0.75)])
    people = domain.sample(2, np.random.default_rng(0))
    expected = [[0.6369616873214543, 1, 0, 0, 0.5632702392002724], [0.9127555772777217, 0, 0, 1, 0.6850724237877682]]
    assert people.tolist() == expected


# Integers.


def test_integer_has_its_values_and_no_others() -> None:
    domain = Domain([Integer("n", 0.0, 1.0, 0.1)])
    assert domain.upper.tolist() == [10 * 0.1]
    assert domain.contains(np.array([3 * 0.1]))
    assert not domain.contains(np.array([0.3]))  # 3 * 0.1 is 0.30000000000000004
    assert not domain.contains(np.array([0.35]))
    with pytest.raises(DomainError, match=r"n = .*0\.3.* is no whole number of steps of 0\.1"):
        domain.require([0.3])


@given(integers())
def test_integer_values_are_theirs(feature: Integer) -> None:
    all_values = values(feature)
    assert feature.high == all_values[-1]
    assert len(set(all_values)) == len(all_values)
    domain = Domain([feature])
    assert all(domain.contains(np.array([value])) for value in all_values[:: max(1, len(all_values) // 20)])
    assert np.array_equal(feature.nearest(np.array(all_values)), all_values)
    again = Integer("n", feature.low, feature.high, feature.step)
    assert again == feature


@given(integers(), st.floats(-2e6, 2e6), st.floats(-2e6, 2e6), st.integers(-2, 2))
def test_integer_within_is_brute_force(feature: Integer, low: float, high: float, ulps: int) -> None:
    for first, last in ((low, high), (feature.low + ulps * math.ulp(feature.low), high), (feature.low, feature.high)):
        inside = [value for value in values(feature) if first <= value <= last]
        assert feature.within(first, last) == ((inside[0], inside[-1]) if inside else None)


@pytest.mark.parametrize("k", [0, 1, 13, 27, 55, 56])
def test_integer_within_one_value(k: int) -> None:
    feature = Integer("age", 0.0, 1.0, 1 / 56)
    value = values(feature)[k]
    assert feature.within(value, value) == (value, value)
    assert feature.within(math.nextafter(value, 2.0), math.nextafter(value, 2.0)) is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, 9, 0), "step above 0"),
        ((0, 9, -1), "step above 0"),
        ((0, 9, math.nan), "step above 0"),
        ((0, 9, "two"), "step above 0"),
        ((0, 9, 2), "no whole number of steps"),
        ((0, 0.3, 1), "no whole number of steps"),
        ((0, 1 + 1e-6, 0.1), "no whole number of steps"),
        ((0, 2**31 - 0.5, 1), "no whole number of steps"),
        ((0, 2**31 + 1, 1), "more than 2147483648 steps"),
        ((5, 4), "low <= high"),
        ((0, math.inf), "finite"),
        ((math.nan, 1), "finite"),
        ((None, 1), "finite"),
        ((0, 1e16), "rescale"),
        ((1e14, 1e14 + 1, 0.125), "lost in float64"),
    ],
)
def test_bad_integers(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(DomainError, match=f"'n'.*{words}"):
        Integer("n", *arguments)


def test_fixed_features() -> None:
    domain = Domain([Integer("n", 3, 3), Continuous("x", 0.25, 0.25)])
    assert domain.sample(3, np.random.default_rng(0)).tolist() == [[3.0, 0.25]] * 3
    assert domain.person().tolist() == [3.0, 0.25]
    assert not domain.contains(np.array([4.0, 0.25]))


def test_columns_of_each_kind() -> None:
    domain = Domain([OneHot("g", ["u", "v"]), Integer("n", 0, 4, 2), Continuous("x", 0, 1), Integer("m", 1, 2)])
    assert domain.columns == ("g=u", "g=v", "n", "x", "m")
    assert domain.integers.tolist() == [2, 4]
    assert domain.continuous.tolist() == [3]
    assert domain.numbers.tolist() == [2, 3, 4]
    assert domain.steps.tolist() == [0.0, 0.0, 2.0, 0.0, 1.0]
    assert domain.groups == (slice(0, 2),)
    assert repr(domain) == "Domain(1 continuous, 2 integer, 1 one-hot, 5 columns)"
    assert repr(square([([1, 1], 1)])) == "Domain(2 continuous, 0 one-hot, 2 columns, 1 constraint)"


def test_samples_of_integers_are_uniform() -> None:
    people = Domain([Integer("n", 0.0, 0.3, 0.1)]).sample(4000, np.random.default_rng(1))
    found, counts = np.unique(people, return_counts=True)
    assert found.tolist() == [0.0, 0.1, 0.2, 3 * 0.1]
    assert (np.abs(counts - 1000) < 150).all()


@given(integers(), st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=20), st.floats(0, 1), st.floats(0, 1))
def test_snap_is_inside_and_idempotent(feature: Integer, numbers: list[float], one: float, other: float) -> None:
    whole = Domain([feature, Continuous("x", -1.0, 2.0)])
    low, high = sorted(np.array(values(feature))[[int(one * feature.count), int(other * feature.count)]])
    for domain in (whole, whole._narrowed(np.array([low, 0.5]), np.array([high, 0.75]))):
        people = domain.snap(np.array([[value, value] for value in numbers]))
        assert all(domain.contains(person) for person in people)
        assert domain.inside(people).all()
        assert np.array_equal(domain.snap(people), people)
        assert np.array_equal(domain.snap(np.array([numbers[0], numbers[0]])), people[0])
        best = np.abs(np.array(values(feature)) - np.clip(numbers[0], domain.lower[0], domain.upper[0])).min()
        off = abs(people[0, 0] - np.clip(numbers[0], domain.lower[0], domain.upper[0]))
        assert off <= best + 1e-9 * feature.step + 1e-12 * abs(people[0, 0])


def test_narrowed_bounds_are_values() -> None:
    domain = Domain([Integer("n", 0, 10, 2)])
    part = domain._narrowed(np.array([1.0]), np.array([7.5]))
    assert (part.lower.tolist(), part.upper.tolist()) == ([2.0], [6.0])
    with pytest.raises(DomainError, match=r"'n' has no value from 2\.5 to 3\.5"):
        domain._narrowed(np.array([2.5]), np.array([3.5]))


def test_beyond_loses_nobody() -> None:
    feature = Integer("age", 0.0, 1.0, 1 / 56)
    domain = Domain([feature])
    for k in range(56):
        cut = (values(feature)[k] + values(feature)[k + 1]) / 2
        below, above = domain.beyond(0, cut, True), domain.beyond(0, cut, False)
        assert below is not None
        assert above is not None
        assert below.upper.tolist() == [values(feature)[k]]
        assert above.lower.tolist() == [values(feature)[k + 1]]
        at = domain.at([values(feature)[k]])
        assert at.beyond(0, cut, False) is None
        found = at.beyond(0, cut, True)
        assert found is not None
        assert found.upper.tolist() == at.upper.tolist()
    with pytest.raises(DomainError, match="column 0"):
        square().beyond(0, 0.5, True)


# Constraints.


def test_constraints_in_every_form_are_the_same() -> None:
    row, rows = [1.0, -2.0, 0.0, 0.0, 0.5], np.zeros((2, 5))
    rows[0] = row
    rows[1, 4] = -1.0
    named = mixed([({"age": 1.0, "job=a": -2.0, "children": 0.5}, 0.5), ({"children": -1}, -1)])
    single = mixed(((row, 0.5), (rows[1], -1.0)))
    joined = mixed([(rows, [0.5, -1.0])])
    assert named.digest == single.digest == joined.digest == mixed([named.constraints]).digest != mixed().digest
    assert named.constraints[0].shape == (2, 5)
    assert not named.constraints[0].flags.writeable
    assert mixed().constraints[0].shape == (0, 5)
    assert mixed([mixed().constraints]).digest == mixed().digest


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        ([([1, 2, 3], 1)], "constraint 1: A needs 2 columns"),
        ([([1, 1], 1), ([[1, 1]], 1)], "constraint 2: b needs 1 numbers"),
        ([([1, 1], [1])], "constraint 1: b needs a number"),
        ([([1, math.nan], 1)], "constraint 1: .* y is not finite"),
        ([([1, 1], math.inf)], "constraint 1: .* b is not finite"),
        ([([1e16, 1], 1)], "constraint 1: .* x is beyond 1e.15"),
        ([({"z": 1}, 1)], "constraint 1: no column is called 'z'; known: x, y"),
        ([({"x": "much"}, 1)], "constraint 1: x must be made of numbers"),
        ([({"x": [1, 2]}, 1)], "constraint 1: x needs one number"),
        ([({"x": 1}, [1, 2])], "constraint 1: b needs a number"),
        ([(None, None)], "constraint 1"),
        ([([[1, 1], [1]], 1)], "constraint 1: A must be made of numbers"),
        ([[1, 1, 1]], "constraint 1: needs a pair"),
        ([5], "constraint 1: needs a pair"),
        (({"x": 1}, 1), "constraint 1: needs a pair"),
        ({"x": 1}, "list of pairs"),
        (5, "list of pairs"),
    ],
)
def test_bad_constraints(constraints: Any, words: str) -> None:
    with pytest.raises(DomainError, match=words):
        square(constraints)


def test_a_category_is_named_in_full() -> None:
    with pytest.raises(DomainError, match="no column is called 'job'; name a category, such as 'job=a'"):
        mixed([({"job": 1}, 1)])
    odd = [OneHot("a", ["b", "c"]), Continuous("a=b", 0, 1)]
    with pytest.raises(DomainError, match="2 columns are called 'a=b'"):
        Domain(odd, [({"a=b": 1}, 1)])


def test_constraints_are_decided_exactly() -> None:
    point = np.array([0.1, 0.2])
    exact = Fraction(0.1) + Fraction(0.2)
    assert float(exact) != exact
    below, above = (math.nextafter(float(exact), way) for way in (0.0, 1.0))
    around = sorted({below, float(exact), above})
    assert [square([([1, 1], b)]).contains(point) for b in around] == [exact <= Fraction(b) for b in around]
    assert square([([1, 1], 0.4)]).contains(np.array([0.2, 0.2]))
    thirds = square([([3, 0], 1)])  # 3 * fl(1/3) is 1 in floats and below 1 in truth
    assert thirds.contains(np.array([1 / 3, 0.0]))
    assert not square([([-3, 0], -1)]).contains(np.array([1 / 3, 0.0]))
    assert 3 * (1 / 3) == 1.0


def test_an_equality_that_floats_lose() -> None:
    tiny, rows = 2.0**-60, [([1, 1, -1], 2.0**-60), ([-1, -1, 1], -(2.0**-60))]
    domain = Domain([Continuous(name, 0.0, 1.0) for name in "xyz"], rows)
    assert 1.0 + tiny - 1.0 != tiny
    assert domain.contains(np.array([1.0, tiny, 1.0]))
    assert not domain.contains(np.array([1.0, math.nextafter(tiny, 1.0), 1.0]))
    assert not domain.contains(np.array([1.0, math.nextafter(tiny, 0.0), 1.0]))


@given(st.lists(st.floats(0, 1), min_size=2, max_size=2), st.lists(st.floats(-3, 3), min_size=2, max_size=2), st.data())
def test_contains_is_the_rational_truth(point: list[float], row: list[float], data: st.DataObject) -> None:
    truth = sum(Fraction(a) * Fraction(x) for a, x in zip(row, point, strict=True))
    b = float(truth)
    for _ in range(data.draw(st.integers(0, 2))):
        b = math.nextafter(b, data.draw(st.sampled_from([-math.inf, math.inf])))
    domain = square([(row, b)])
    assert domain.contains(np.array(point)) == (truth <= Fraction(b))
    assert domain.inside(np.array([point])).tolist() == [True] or abs(b) < 1e-290


def test_whole_numbers_at_the_boundary() -> None:
    domain = mixed([({"job=a": 1, "children": 1}, 5), ({"job=b": 0.1, "children": 0.1}, 0.3)])
    holds = [domain.contains(np.array([0.0, 1.0, 0.0, 0.0, float(n)])) for n in range(10)]
    assert holds == [Fraction(0.1) * n <= Fraction(0.3) and n <= 4 for n in range(10)]


def test_require_names_the_constraint() -> None:
    domain = mixed([({"age": 1}, 5), ({"children": 1, "job=c": -9}, 2.5)])
    with pytest.raises(DomainError, match=r"constraint 2 \(-9 job=c \+ children <= 2\.5\) does not hold: 3"):
        domain.require([0.0, 1.0, 0.0, 0.0, 3.0])
    assert domain.contains(np.array([0.0, 0.0, 0.0, 1.0, 3.0]))


def test_parts_keep_the_constraints() -> None:
    domain = mixed([({"children": 1, "job=c": -9}, 2.5)])
    someone = np.array([0.0, 1.0, 0.0, 0.0, 2.0])
    parts = [domain.at(someone), domain.sharing(someone), domain.only(domain.groups[0], np.array([True, True, False]))]
    parts += [domain.where(job="a"), domain.holding(someone), Domain.from_json(domain.to_json())]
    for part in parts:
        assert part.contains(someone)
        assert all(np.array_equal(*pair) for pair in zip(part.constraints, domain.constraints, strict=True))
        assert not part.contains(np.array([0.0, 1.0, 0.0, 0.0, 3.0]))
    shared = domain.sharing(someone)
    assert (shared.lower.tolist(), shared.upper.tolist()) == ([0, 1, 0, 0, 0], [1, 1, 0, 0, 9])


# People who exist.


def test_inside_agrees_with_contains_on_samples() -> None:
    domain = mixed([({"children": 1, "job=c": -9}, 2.5)])
    people = domain.sample(200, np.random.default_rng(0))
    assert domain.inside(people).all()
    wrong = people + np.random.default_rng(1).choice([0.0, 0.5, 1.0, np.nan, np.inf], size=people.shape)
    assert domain.inside(wrong).tolist() == [domain.contains(person) for person in wrong]
    assert domain.inside(people[0]).shape == ()
    assert domain.inside(np.zeros((0, 5))).shape == (0,)
    assert domain.inside(people * (1 + 1e-14)).all()


@pytest.mark.parametrize(
    "constraints",
    [
        [([1, 1], 0.01)],
        [([1, -1], -0.999)],
        [([1, 0], 1e-9), ([0, -1], -1 + 1e-9)],
        equal("x", "y", 0.7),
        equal("x", "y", 2.0),
        [*equal("x", "y", 0.3), ([3, -1], 0)],
        [([-1, 0], -1), ([0, 1], 0)],
        [([1, 0], 0), ([0, 1], 0)],
    ],
)
def test_samples_satisfy_narrow_constraints(constraints: Any) -> None:
    domain = square(constraints)
    assert domain.contains(domain.person())
    people = domain.sample(100, np.random.default_rng(0))
    assert people.shape == (100, 2)
    assert all(domain.contains(person) for person in people)
    assert np.array_equal(people, domain.sample(100, np.random.default_rng(0)))
    assert domain.sample(0, np.random.default_rng(0)).shape == (0, 2)


def test_narrow_samples_differ_where_there_is_room() -> None:
    people = square([([1, 0], 1e-6), ([0, 1], 1e-6)]).sample(100, np.random.default_rng(0))
    assert len(np.unique(people, axis=0)) > 50


@given(st.integers(0, 10_000))
def test_people_of_random_domains(seed: int) -> None:
    """Constraints that hold for one drawn person leave somebody, and whoever is drawn satisfies them."""
    rng = np.random.default_rng(seed)
    someone = mixed().sample(1, rng)[0]
    A = np.round(rng.normal(size=(int(rng.integers(1, 5)), 5)), 1) * (rng.random(5) < 0.7)
    b = A @ someone + rng.choice([1e-9, 0.1, 1.0], size=len(A))
    domain = mixed([(A, b)])
    assert domain.contains(domain.person())
    assert all(domain.contains(person) for person in domain.sample(20, rng))


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        ([([1, 1], 5), ([-1, -1], -3)], r"constraint 2 \(-x - y <= -3\) cannot hold, its left side is at least -2"),
        ([([0, 0], -1)], r"constraint 1 \(0 <= -1\) cannot hold"),
        ([([1, 0], 0.5), ([1, 1], 0.4), ([-1, -1], -0.6)], r"constraint 2 \(.*\) and constraint 3 \(.*\)$"),
    ],
)
def test_contradictory_constraints(constraints: Any, words: str) -> None:
    domain = square(constraints)
    for ask in (domain.person, lambda: domain.sample(5, np.random.default_rng(0))):
        with pytest.raises(DomainError, match=f"nobody can exist: the constraints contradict each other: {words}"):
            ask()


def test_contradictions_of_categories_and_steps() -> None:
    domain = mixed([({"job=a": -1, "job=b": -1}, -1), ({"job=b": 1}, 0.5), ({"job=a": 1}, 0.5)])
    with pytest.raises(DomainError, match=r"constraint 1 .* and constraint 2 .* and constraint 3"):
        domain.person()
    halves = mixed([({"children": 1}, 2.75), ({"children": -1}, -2.25)])
    with pytest.raises(DomainError, match="nobody can exist"):
        halves.person()
    with pytest.raises(DomainError, match="nobody can exist: feature 'job' has no category left"):
        mixed().only(mixed().groups[0], np.zeros(3)).person()


def test_an_equality_that_no_float_meets() -> None:
    domain = Domain([Continuous("x", 0.0, 1.0)], [([3.0], 1.0), ([-3.0], -1.0)])
    with pytest.raises(DomainError, match=r"nobody was found .* exactly: loosen .* constraint 1 \(3 x <= 1\)"):
        domain.person()


# Sub-populations, in the units people read.


@given(st.integers(10, 80), st.integers(10, 80), st.sampled_from([56.0, -56.0]))
def test_where_is_brute_force_on_integers(one: int, other: int, factor: float) -> None:
    low, high = sorted((one, other))
    shown = Display(19.0 if factor > 0 else 75.0, factor)
    feature = Integer("age", 0.0, 1.0, 1 / 56, shown)
    domain = Domain([feature])
    wanted = [v for v in values(feature) if low <= round(shown.offset + factor * v, 6) <= high]
    if not wanted:
        with pytest.raises(DomainError, match="'age': nobody is within"):
            domain.where(age=(low, high))
        return
    part = domain.where(age=(low, high))
    assert [v for v in values(feature) if part.contains(np.array([v]))] == wanted


@given(st.floats(-2, 2), st.floats(-2, 2), st.floats(-3, 3), st.floats(0.01, 100), st.booleans())
def test_where_is_brute_force_on_numbers(one: float, other: float, offset: float, factor: float, minus: bool) -> None:
    low, high = sorted((one, other))
    display = Display(offset, -factor if minus else factor)
    domain = Domain([Continuous("x", -1.0, 1.0, display)])
    points = np.linspace(-1.0, 1.0, 41)
    shown = [Fraction(display.offset) + Fraction(display.factor) * Fraction(p) for p in points.tolist()]
    near = Fraction(1, 10**12)
    surely = [low + near <= s <= high - near for s in shown]
    maybe = [low - near <= s <= high + near for s in shown]
    try:
        part = domain.where(x=(low, high))
    except DomainError:
        assert not any(surely)
        return
    for point, must, may in zip(points, surely, maybe, strict=True):
        assert must <= part.contains(np.array([point])) <= may


def test_where_takes_one_value() -> None:
    domain = Domain([Continuous("marital status", 0.0, 1.0, AGE), Integer("age", 0.0, 1.0, 1 / 56, AGE)])
    for year in range(19, 76):
        part = domain.where(**{"age": year, "marital status": float(year)})
        assert [text for _, text in part.show(part.person())] == [f"{year} years"] * 2
        assert (part.lower == part.upper).all()
    part = domain.where(age=[60, math.inf]).where(age=(-math.inf, 65))
    assert [part.show(x)[1][1] for x in (part.lower, part.upper)] == ["60 years", "65 years"]
    assert Domain([Continuous("x", 0, 0.7, Display(0, 1 / 0.7))]).where(x=1.0).upper == pytest.approx(0.7)
    flat = Domain([Continuous("x", 0, 1, Display(3, 0))])
    assert flat.where(x=(2, 4)).upper.tolist() == [1.0]
    with pytest.raises(DomainError, match="'x': nobody"):
        flat.where(x=(4, 5))


def test_where_takes_categories() -> None:
    domain = mixed()
    assert domain.where(job="a").upper.tolist() == [1, 1, 0, 0, 9]
    assert domain.where(job=["Baker", "c"]).upper.tolist() == [1, 0, 1, 1, 9]
    assert domain.where(job=["Baker", "c"], children=(2, 3)).lower.tolist() == [0, 0, 0, 0, 2]
    assert OneHot("n", ["1", "2"]).values == ("1", "2")
    assert Domain([OneHot("n", ["1", "2"])]).where(n=2).upper.tolist() == [0, 1]
    assert domain.where().digest == domain.digest


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"agee": 5}, "no feature 'agee'; known: age, job, children"),
        ({"job": "d"}, "'job' has no category 'd'"),
        ({"job": []}, "'job': the list of categories is empty"),
        ({"age": (40, 25)}, "'age': the range from 40 to 25 is empty"),
        ({"age": (76, 90)}, r"'age': nobody is within \(76, 90\); it goes from 19 years to 75 years in steps of 1"),
        ({"age": 25.5}, "'age': nobody"),
        ({"age": "old"}, "'age': a limit is"),
        ({"age": (1, 2, 3)}, "'age': a limit is"),
        ({"age": (1, None)}, "'age': a limit is"),
        ({"age": True}, "'age': a limit is"),
        ({"age": math.nan}, "'age': the range"),
        ({"age": (math.inf, math.inf)}, "'age': the range"),
    ],
)
def test_bad_limits(limits: dict[str, Any], words: str) -> None:
    with pytest.raises(DomainError, match=words):
        mixed().where(**limits)


def test_limits_that_exclude_each_other() -> None:
    with pytest.raises(DomainError, match=r"'job': nobody is within \['b'\]; left are: \['a'\]"):
        mixed().where(job="a").where(job="b")
    with pytest.raises(DomainError, match="'age': nobody is within"):
        mixed().where(age=(20, 30)).where(age=(31, 40))


# Words and files.


def test_encode_decode_show() -> None:
    domain = mixed()
    x = domain.encode({"age": 15 / 56, "job": "b", "children": 2})
    assert domain.show(x) == [("Age", "34 years"), ("job", "Baker"), ("children", "2")]
    assert domain.decode(x) == {"age": 15 * (1 / 56), "job": "b", "children": 2.0}
    assert np.array_equal(domain.encode(domain.decode(x)), x)
    assert domain.encode({"age": 15 / 56 + 1e-13, "job": "b", "children": "2"})[0] == x[0]
    for age, words in (
        (0.5 + 1e-6, "age = .* no whole number"),
        ("old", "'age' needs a number"),
        (None, "'age' needs"),
    ):
        with pytest.raises(DomainError, match=words):
            domain.encode({"age": age, "job": "b", "children": 2})  # type: ignore[dict-item]


def test_whole_numbers_are_shown_without_decimals() -> None:
    pounds = Integer("pay", 0, 10, 0.5, Display(0, 1000, "£"))
    assert [pounds.text(v) for v in (0.0, 0.5, 1.0, 10.0)] == ["0 £", "500 £", "1,000 £", "10,000 £"]
    assert Integer("n", -1, 1, 0.5).text(0.5) == "0.5"
    assert Integer("n", -1, 1).text(-1.0) == "-1"
    assert Integer("n", 0, 12345).text(12345.0) == "12,345"


def test_json_round_trip() -> None:
    whole = mixed([({"age": 0.1, "job=a": -2.0}, 0.3), ({"children": 1}, 7)])
    for domain in (whole, whole.where(age=(25, 40), job=["a", "b"]), mixed(), whole.at(whole.person())):
        again = Domain.from_json(json.loads(json.dumps(domain.to_json())))
        assert again.digest == domain.digest
        assert again.features == domain.features
        copy = pickle.loads(pickle.dumps(domain))  # noqa: S301
        assert copy.digest == domain.digest
        assert copy.contains(domain.person())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"constraints": {"A": [[1.0]]}}, "malformed"),
        ({"constraints": {"A": [[1.0]], "b": [1.0]}}, "needs 5 columns"),
        ({"constraints": [1]}, "malformed"),
        ({"lower": [0.0, 0.0, 0.0, 0.0, 0.5], "upper": [1.0, 1.0, 1.0, 1.0, 0.6]}, "'children' has no value"),
        ({"lower": ["a"] * 5}, "malformed"),
        ({"lower": [math.nan] * 5}, "bounds do not fit"),
        ({"features": [{"name": "n", "kind": "integer", "low": 0, "high": 1, "step": "x"}]}, "malformed"),
        ({"features": [{"name": "n", "kind": "whole"}]}, "'continuous', 'integer' or 'one_hot', got 'whole'"),
    ],
)
def test_bad_json(change: dict[str, Any], words: str) -> None:
    with pytest.raises(DomainError, match=words):
        Domain.from_json(mixed().to_json() | change)


def test_other_bad_features() -> None:
    with pytest.raises(DomainError, match="Continuous, Integer and OneHot features, got str"):
        Domain(["age"])  # type: ignore[list-item]
    with pytest.raises(DomainError, match="finite offset and factor"):
        Display(factor=math.nan)
    with pytest.raises(DomainError, match="'x': needs finite low"):
        Continuous("x", "low", 1)  # type: ignore[arg-type]
