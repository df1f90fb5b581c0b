"""schema.toml: what is written reads back to the same digests, and every mistake is refused by name."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.domain import Continuous, Display, Domain, Feature, Integer, OneHot
from likewise.errors import DomainError, FileError, InputError, MetricError, ModelError
from likewise.load import Schema, read_schema, write_npz, write_schema
from likewise.load._toml import rule_lines
from likewise.metric import Embedding, Mahalanobis, Metric, WeightedLp
from likewise.network import Layer, Network

TEXT = """
title = "Loans"
source = "a bank"

[[feature]]
name = "age"
kind = "continuous"
low = 0
high = 1.0
title = "Age"
offset = 18
factor = 60.0
unit = "years"

[[feature]]
name = "job"
kind = "one_hot"
values = ["a", "b"]
labels = { a = "artist" }

[metric]
kind = "lp"
weights = 2.0
"""
CHILDREN = """
[[feature]]
name = "children"
kind = "integer"
low = 0
high = 1
step = 0.25
factor = 4.0
"""
CONSTRAINT = """
[[constraint]]
terms = { age = 1, "job=b" = 0.5 }
at_most = 1.25
"""
METRIC = '[metric]\nkind = "lp"\nweights = 2.0\n'


def store(path: Path, **arrays: np.ndarray) -> None:
    np.savez(path, **arrays)  # type: ignore[arg-type]


def schema(tmp_path: Path, old: str = "", new: str = "") -> Path:
    assert old in TEXT
    path = tmp_path / "s.toml"
    path.write_text(TEXT.replace(old, new, 1) if old else TEXT)
    return path


def test_a_schema_is_read_as_written(tmp_path: Path) -> None:
    read = read_schema(schema(tmp_path))
    age = Continuous("age", 0.0, 1.0, Display(18.0, 60.0, "years", (), "Age"))
    job = OneHot("job", ["a", "b"], Display(labels=(("a", "artist"),)))
    assert read.domain.digest == Domain([age, job]).digest
    assert read.metric.digest == WeightedLp([2.0, 2.0, 2.0]).digest
    assert (read.title, read.source) == ("Loans", "a bank")
    assert read.domain.show(np.array([0.5, 1.0, 0.0])) == [("Age", "48 years"), ("job", "artist")]


def test_whole_numbers_are_read(tmp_path: Path) -> None:
    read = read_schema(schema(tmp_path, METRIC, f"{CHILDREN}\n{METRIC}")).domain
    assert read.features[2] == Integer("children", 0.0, 1.0, 0.25, Display(0.0, 4.0))
    assert read_schema(schema(tmp_path, METRIC, f"{CHILDREN}\n{METRIC}".replace("step = 0.25\n", ""))).domain.features[
        2
    ] == Integer("children", 0.0, 1.0, 1.0, Display(0.0, 4.0))


def test_constraints_are_read_by_the_names_of_columns(tmp_path: Path) -> None:
    second = CONSTRAINT.replace("age = 1, ", "").replace("1.25", "3e-2")
    read = read_schema(schema(tmp_path, METRIC, f"{CONSTRAINT}{second}\n{METRIC}")).domain
    A, b = read.constraints
    assert A.tolist() == [[1.0, 0.0, 0.5], [0.0, 0.0, 0.5]]
    assert b.tolist() == [1.25, 0.03]


PHI = Network(
    [Layer([[1.0, 2.0, 3.0], [0.5, 0.25, 0.0]], [0.1, 0.0], "tanh"), Layer([[1.0, -1.0]] * 2, [0.0, 1.0], "relu")]
)
S3 = np.diag([1.0, 4.0, 9.0])


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ('kind = "lp"\nweights = [1, 0.5, 0]\np = 1', WeightedLp([1.0, 0.5, 0.0], 1)),
        ('kind = "lp"\nweights = [1, 2, 3]\np = "inf"', WeightedLp([1, 2, 3])),
        ('kind = "lp"\nweights = [1, 2, 3]\np = 1\nrelaxation = "box"', WeightedLp([1, 2, 3], 1, "box")),
        ('kind = "lp"\nfile = "w.npz"', WeightedLp([3, 2, 1])),
        ('kind = "lp"\nweights = [1, 2, 3]\np = 2', WeightedLp([1, 2, 3], 2)),
        ('kind = "lp"\nweights = 0.3\np = 1.5', WeightedLp([0.3] * 3, 1.5)),
        ('kind = "lp"\nscales = [1, 2, 3]\np = 3', Metric(np.diag([1.0, 2.0, 3.0]), 3.0, "lp")),
        (
            'kind = "embedding"\nfile = "phi.npz"\n[metric.inner]\nkind = "lp"\nweights = [1, 2]',
            Embedding(PHI, WeightedLp([1, 2])),
        ),
        (
            'kind = "embedding"\nfile = "phi.npz"\ninner = { kind = "mahalanobis", S = [[1, 0], [0, 4]] }',
            Embedding(PHI, Mahalanobis(np.diag([1.0, 4.0]))),
        ),
        ('kind = "mahalanobis"\nS = [[1,0,0],[0,4,0],[0,0,9]]', Mahalanobis(S3)),
        ('kind = "mahalanobis"\nfile = "sub/m.npz"', Mahalanobis(S3)),
        ('kind = "mahalanobis"\nfile = "sub/m.npz"\nrelaxation = "box"', Mahalanobis(S3, "box")),
        ('kind = "mahalanobis"\nA = [[1, 2.5, 0]]', Metric(np.array([[1, 2.5, 0]]), 2.0, "mahalanobis")),
    ],
)
def test_every_way_to_give_a_metric(tmp_path: Path, table: str, expected: Metric) -> None:
    (tmp_path / "sub").mkdir()
    store(tmp_path / "sub" / "m.npz", S=S3, meta=np.array("ignored"))
    store(tmp_path / "w.npz", weights=np.array([3, 2, 1]))
    write_npz(PHI, tmp_path / "phi.npz")
    read = read_schema(schema(tmp_path, METRIC, f"[metric]\n{table}\n")).metric
    assert (read.digest, read.kind, read.note) == (expected.digest, expected.kind, expected.note)


CONTRADICTION = CONSTRAINT.replace("= 1,", "= -1,").replace("1.25", "-0.75") + CONSTRAINT.replace("1.25", "0.5")
EMBEDDING, INNER = '[metric]\nkind = "embedding"\n', '[metric.inner]\nkind = "lp"\n'
BAD_SCHEMAS = [
    ("high = 1.0\n", "", DomainError, ("'age'", "high")),
    ("low = 0\n", "low = 2\n", DomainError, ("'age'", "low <= high")),
    ("low = 0\n", "low = nan\n", DomainError, ("'age'", "low", "nan")),
    ("low = 0\n", "low = true\n", DomainError, ("'age'", "low", "True")),
    ("low = 0\n", 'low = "0"\n', DomainError, ("'age'", "low")),
    ("factor = 60.0", "factor = inf", DomainError, ("'age'", "factor")),
    ('unit = "years"', "unit = 3", FileError, ("'age'", "unit")),
    ('unit = "years"', 'units = "years"', DomainError, ("'age'", "'units'")),
    ('name = "age"', 'title2 = "age"', DomainError, ("number 1", "name")),
    ('name = "age"', 'name = "job"', DomainError, ("'job'", "twice")),
    ('kind = "continuous"', 'kind = "ordinal"', DomainError, ("'age'", "'ordinal'")),
    ('kind = "continuous"', 'kind = ["continuous"]', DomainError, ("'age'", "kind")),
    ('values = ["a", "b"]', "values = []", DomainError, ("'job'", "distinct")),
    ('values = ["a", "b"]', 'values = ["a", "a"]', DomainError, ("'job'", "distinct")),
    ('values = ["a", "b"]', 'values = "ab"', DomainError, ("'job'", "values")),
    ('values = ["a", "b"]', 'values = ["a", 0.5]', DomainError, ("'job'", "values")),
    ("{ a =", "{ z =", DomainError, ("'job'", "'z'")),
    ('"artist" }', "1 }", DomainError, ("'job'", "labels")),
    ("[metric]", "[metrik]", FileError, ("'metrik'",)),
    (METRIC, "", MetricError, ("[metric]",)),
    ('kind = "lp"', 'kind = "vibes"', MetricError, ("'vibes'", "mahalanobis, lp, embedding")),
    ('kind = "lp"', 'kind = "embedding"', MetricError, ("'weights'", "inner")),
    (METRIC, f"{EMBEDDING}", MetricError, ("file", "None")),
    (METRIC, f'{EMBEDDING}file = "gone.npz"\n', FileError, ("gone.npz",)),
    (METRIC, f'{EMBEDDING}file = "../out.npz"\n', FileError, ("../out.npz", "outside")),
    (METRIC, f'{EMBEDDING}file = "text.npz"\n', ModelError, ("text.npz", "'S'")),
    (METRIC, f'{EMBEDDING}file = "phi.npz"\n', MetricError, ("[metric.inner]",)),
    (METRIC, f'{EMBEDDING}file = "phi.npz"\ninner = {{ kind = "lp" }}\n', MetricError, ("[metric.inner]", "weights")),
    (METRIC, f'{EMBEDDING}file = "phi.npz"\n{INNER}weights = [1, 2, 3]\n', MetricError, ("3 columns", "outputs", "2")),
    (METRIC, f'{EMBEDDING}file = "wide.npz"\n{INNER}weights = 1\n', MetricError, ("7 columns", "features", "3")),
    (METRIC, CHILDREN.replace("0.25", "0") + METRIC, DomainError, ("'children'", "step")),
    (METRIC, CHILDREN.replace("0.25", "-1") + METRIC, DomainError, ("'children'", "step")),
    (METRIC, CHILDREN.replace("0.25", '"1"') + METRIC, DomainError, ("'children'", "step")),
    (METRIC, CHILDREN.replace("high = 1", "") + METRIC, DomainError, ("'children'", "high")),
    (METRIC, CHILDREN.replace("integer", "continuous") + METRIC, DomainError, ("'children'", "'step'")),
    (METRIC, CONSTRAINT.replace("[[constraint]]", "[constraint]") + METRIC, DomainError, ("[[constraint]]",)),
    (METRIC, CONSTRAINT.replace("at_most = 1.25", "") + METRIC, DomainError, ("constraint 1", "at_most", "None")),
    (METRIC, CONSTRAINT.replace("1.25", "nan") + METRIC, DomainError, ("constraint 1", "at_most", "nan")),
    (METRIC, CONSTRAINT.replace("at_most", "at_least") + METRIC, DomainError, ("constraint 1", "'at_least'")),
    (
        METRIC,
        CONSTRAINT.replace("job=b", "job=z") + METRIC,
        DomainError,
        ("constraint 1", "no column is called 'job=z'", "job=a"),
    ),
    (
        METRIC,
        CONSTRAINT.replace('"job=b"', "job") + METRIC,
        DomainError,
        ("constraint 1", "no column is called 'job'", "'job=a'"),
    ),
    (METRIC, CONSTRAINT.replace("age = 1", 'age = "1"') + METRIC, DomainError, ("constraint 1", "age", "'1'")),
    (METRIC, CONSTRAINT.replace('{ age = 1, "job=b" = 0.5 }', "{ }") + METRIC, DomainError, ("constraint 1", "terms")),
    (METRIC, CONSTRAINT.replace('{ age = 1, "job=b" = 0.5 }', "3") + METRIC, DomainError, ("constraint 1", "terms")),
    (METRIC, CONSTRAINT + CONSTRAINT.replace("age", "ago") + METRIC, DomainError, ("constraint 2", "'ago'")),
    (METRIC, CONSTRAINT.replace("1.25", "1e300") + METRIC, DomainError, ("constraint 1", "1e+300")),
    (METRIC, CONSTRAINT.replace("1.25", "-1") + METRIC, DomainError, ("nobody can exist", "constraint 1", "age")),
    (METRIC, CONTRADICTION + METRIC, DomainError, ("nobody can exist", "constraint 1", "constraint 2")),
    ("weights = 2.0", "", MetricError, ("weights", "none")),
    ("weights = 2.0", 'weights = 2.0\nfile = "m.npz"', MetricError, ("exactly one",)),
    ("weights = 2.0", "weights = [1, 2]", MetricError, ("2 columns", "3")),
    ("weights = 2.0", "weights = -1.0", MetricError, ("weight 0",)),
    ("weights = 2.0", 'weights = ["1", "2", "3"]', MetricError, ("weights", "numbers")),
    ("weights = 2.0", "weights = [[1], [1, 2]]", MetricError, ("weights",)),
    ("weights = 2.0", "weights = 2.0\np = 0.5", MetricError, ("p must be",)),
    ("weights = 2.0", "weights = 2.0\np = nan", MetricError, ("p must be",)),
    ("weights = 2.0", "scales = -2.0\np = 2", MetricError, ("weight",)),
    ("weights = 2.0", 'weights = 2.0\np = "one"', MetricError, ("p must be", "one")),
    ("weights = 2.0", 'weights = 2.0\nrelaxation = "ball"', MetricError, ("relaxation", "'ball'")),
    ("weights = 2.0", "weight = 2.0", MetricError, ("'weight'",)),
    (METRIC, '[metric]\nkind = "mahalanobis"\nS = [[1, 2], [2, 1]]\n', MetricError, ("semi-definite",)),
    (METRIC, '[metric]\nkind = "mahalanobis"\nS = [[1, 2], [0, 1]]\n', MetricError, ("symmetric",)),
    (METRIC, '[metric]\nkind = "mahalanobis"\nS = [[1.0]]\n', MetricError, ("1 columns",)),
    (METRIC, '[metric]\nkind = "mahalanobis"\nfile = "gone.npz"\n', FileError, ("gone.npz",)),
    (METRIC, '[metric]\nkind = "mahalanobis"\nfile = "../out.npz"\n', FileError, ("../out.npz", "outside")),
    (METRIC, '[metric]\nkind = "mahalanobis"\nfile = "/etc/hostname"\n', FileError, ("/etc/hostname", "outside")),
    (METRIC, '[metric]\nkind = "mahalanobis"\nfile = "link.npz"\n', FileError, ("link.npz", "outside")),
    (METRIC, '[metric]\nkind = "mahalanobis"\nfile = "odd.npz"\n', MetricError, ("odd.npz", "'T'")),
    (METRIC, '[metric]\nkind = "mahalanobis"\nfile = "text.npz"\n', MetricError, ("text.npz", "<U1")),
    (METRIC, '[metric]\nkind = "mahalanobis"\nfile = 3\n', MetricError, ("file",)),
    ('title = "Loans"', "title = Loans", FileError, ("not a toml", "line 2")),
    ('title = "Loans"', "title = 7", FileError, ("title",)),
    ('title = "Loans"', "title = " + "[" * 5000, FileError, ("not a toml",)),
]


@pytest.mark.parametrize(("old", "new", "kind", "culprits"), BAD_SCHEMAS)
def test_a_bad_schema_is_refused_by_name(
    tmp_path: Path, old: str, new: str, kind: type[InputError], culprits: tuple[str, ...]
) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()
    store(tmp_path / "out.npz", S=np.eye(3))
    (folder / "link.npz").symlink_to(tmp_path / "out.npz")
    store(folder / "odd.npz", T=np.eye(3))
    store(folder / "text.npz", S=np.array([["a"]]))
    write_npz(PHI, folder / "phi.npz")
    write_npz(Network([Layer(np.ones((2, 7)), np.zeros(2), "identity")]), folder / "wide.npz")
    path = schema(folder, old, new)
    with pytest.raises(kind) as caught:
        read_schema(path)
    message = str(caught.value)
    assert str(folder) in message
    message = message.replace(str(tmp_path), "")  # pytest's folders are named after the test
    assert message.count("\n") < 3
    for culprit in culprits:
        assert culprit in message


def test_files_that_are_no_schemas_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"gone\.toml.*No such file"):
        read_schema(tmp_path / "gone.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match=r"bytes\.toml is not a toml"):
        read_schema(tmp_path / "bytes.toml")
    (tmp_path / "empty.toml").write_text("")
    with pytest.raises(DomainError, match=r"empty\.toml.*\[\[feature\]\]"):
        read_schema(tmp_path / "empty.toml")


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
finite = st.floats(-1e6, 1e6)


@st.composite
def domains(draw: st.DrawFn) -> Domain:
    names = draw(st.lists(words.filter(bool), min_size=1, max_size=4, unique=True))
    features: list[Feature] = []
    for name in names:
        display = Display(draw(finite), draw(finite), draw(words), (), draw(words))
        kind = draw(st.sampled_from(["continuous", "integer", "one_hot"]))
        if kind == "continuous":
            low, high = sorted((draw(finite), draw(finite)))
            features.append(Continuous(name, low, high, display))
        elif kind == "integer":
            steps, step = draw(st.integers(1, 50)), draw(st.sampled_from([1.0, 0.25, 3.0]))
            features.append(Integer(name, 2.0, 2.0 + steps * step, step, display))
        else:
            values = draw(st.lists(words, min_size=1, max_size=3, unique=True))
            labels = tuple((value, draw(words)) for value in values if draw(st.booleans()))
            shown = Display(display.offset, display.factor, display.unit, labels, display.title)
            features.append(OneHot(name, values, shown))
    domain = Domain(features)
    if not draw(st.booleans()):
        return domain
    A = np.array(draw(st.lists(st.lists(finite, min_size=domain.width, max_size=domain.width), min_size=1, max_size=3)))
    loose = np.abs(A) @ np.maximum(np.abs(domain.lower), np.abs(domain.upper)) + 1.0  # excludes nobody
    return Domain(features, constraints=[(A, loose)])


@settings(max_examples=60, deadline=None)
@given(domain=domains(), data=st.data())
def test_a_schema_reads_back_with_the_same_digests(
    tmp_path_factory: pytest.TempPathFactory, domain: Domain, data: st.DataObject
) -> None:
    weights = data.draw(st.lists(st.floats(0, 1e3), min_size=domain.width, max_size=domain.width))
    skew = np.random.default_rng(data.draw(st.integers(0, 99))).normal(size=(domain.width, domain.width))
    relaxation = data.draw(st.sampled_from([None, "box"]))
    lp = WeightedLp(weights, data.draw(st.sampled_from([1.0, 1.1, 1.5, 2.0, 3.0, 7.3, math.inf])), relaxation)
    phi = Network([Layer(skew, np.ones(domain.width), data.draw(st.sampled_from(["identity", "relu"])))])
    linear = data.draw(st.sampled_from([lp, Mahalanobis(skew @ skew.T, relaxation)]))
    metric = data.draw(st.sampled_from([linear, Embedding(phi, linear)]))
    written = Schema(domain, metric, data.draw(words), data.draw(words))
    read = read_schema(write_schema(written, tmp_path_factory.mktemp("s") / "s.toml"))
    assert read.domain.digest == domain.digest
    assert read.metric.digest == metric.digest
    assert (read.metric.kind, read.metric.note) == (metric.kind, metric.note)
    assert (read.title, read.source) == (written.title, written.source)


def test_what_a_schema_cannot_hold_is_not_written(tmp_path: Path) -> None:
    domain = Domain([Continuous("x", 0.0, 1.0)])
    with pytest.raises(DomainError, match="narrowed"):
        write_schema(Schema(domain.at([0.5]), WeightedLp([1.0])), tmp_path / "s.toml")
    with pytest.raises(MetricError, match="cannot hold"):
        write_schema(Schema(domain, Metric(np.ones((1, 1)), 2.0, "other")), tmp_path / "s.toml")
    with pytest.raises(FileError, match="not valid text"):
        write_schema(Schema(Domain([Continuous("\ud800", 0.0, 1.0)]), WeightedLp([1.0])), tmp_path / "s.toml")
    assert not list(tmp_path.iterdir())


def test_a_constraint_on_an_ambiguous_column_is_not_written(tmp_path: Path) -> None:
    twice = [OneHot("job", ["a", "b"]), Continuous("job=a", 0.0, 1.0)]
    assert rule_lines(Domain(twice), [(1, 1.0)], 1.0)[1] == 'terms = { "job=b" = 1.0 }'
    with pytest.raises(DomainError, match="'job=a'"):
        write_schema(
            Schema(Domain(twice, constraints=[([1.0, 0, 1.0], 1.5)]), WeightedLp([1.0] * 3)), tmp_path / "s.toml"
        )
    assert not list(tmp_path.iterdir())
    text = '[[feature]]\nname = "job"\nkind = "one_hot"\nvalues = ["a", "b"]\n'
    text += '[[feature]]\nname = "job=a"\nkind = "continuous"\nlow = 0\nhigh = 1\n'
    (tmp_path / "s.toml").write_text(text + CONSTRAINT.replace("age", '"job=a"') + METRIC)
    with pytest.raises(DomainError, match=r"s\.toml: constraint 1: 2 columns are called 'job=a'"):
        read_schema(tmp_path / "s.toml")


def test_comments_stand_at_both_ends_and_cannot_end_early(tmp_path: Path) -> None:
    schema_ = Schema(Domain([Continuous("x", 0.0, 1.0)]), WeightedLp([1.0]))
    path = write_schema(schema_, tmp_path / "s.toml", head=["first", "", "sec\nond\x00"], tail=["last\r[metric]"])
    lines = path.read_text().split("\n")
    assert lines[:4] == ["# first", "#", "# sec\\nond\\x00", ""]
    assert lines[-2] == "# last\\r[metric]"
    assert read_schema(path).domain.digest == schema_.domain.digest
