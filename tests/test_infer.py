"""From a csv to a schema: kinds and scales, sensitive columns, mined constraints, and files that are no tables."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from likewise.domain import Continuous, Integer, OneHot
from likewise.errors import FileError, InputError, LikewiseError
from likewise.load import _table, read_schema
from likewise.load.infer import Inferred, infer, write_inferred
from likewise.load.people import read_people

HEADER = ["age", "income", "children", "job", "sex", "score", "flag", "rooms", "home"]


def loans(path: Path, n: int = 600) -> Path:
    """Planted: nobody under 30 is retired, no clerk owns a home, and (sensitive) no clerk is of the second sex."""
    rng = np.random.default_rng(3)
    with path.open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(HEADER)
        for _ in range(n):
            sex = "fm"[rng.integers(2)]
            job = ["clerk", "pilot", "retired"][rng.integers(3)]
            job = "pilot" if (job == "clerk" and sex == "m") else job
            age = int(rng.integers(30 if job == "retired" else 18, 79))
            income = round(float(rng.normal(30 + 20 * (sex == "f"), 5)), 2)
            good = "yes" if income + age > 80 else "no"
            home = "rents" if job == "clerk" else ["owns", "rents"][rng.integers(2)]
            table.writerow([age, income, 1000 * rng.integers(0, 5), job, sex, good, rng.integers(2), 3, home])
    return path


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return loans(tmp_path_factory.mktemp("loans") / "loans.csv")


@pytest.fixture(scope="module")
def loan(table: Path) -> Inferred:
    return infer(table, "score", ["sex"])


def test_each_column_becomes_the_feature_it_looks_like(loan: Inferred) -> None:
    kinds = {f.name: type(f) for f in loan.schema.domain.features}
    assert kinds == {
        "age": Continuous,
        "income": Continuous,
        "children": Integer,
        "job": OneHot,
        "flag": Integer,
        "rooms": Continuous,
        "home": OneHot,
    }
    by_name = {f.name: f for f in loan.schema.domain.features}
    children, rooms, job = by_name["children"], by_name["rooms"], by_name["job"]
    assert isinstance(children, Integer)
    assert (children.low, children.high, children.step) == (0.0, 1.0, 0.25)
    assert (children.display.offset, children.display.factor) == (0.0, 4000.0)
    assert isinstance(rooms, Continuous)
    assert (rooms.low, rooms.high, rooms.display.number(0.0)) == (0.0, 0.0, "3")
    assert isinstance(job, OneHot)
    assert job.values == ("clerk", "pilot", "retired")


def test_everyone_in_the_table_is_in_the_domain_and_reads_the_same(loan: Inferred, table: Path) -> None:
    assert loan.X.shape == (600, 10)
    assert all(loan.schema.domain.contains(person) for person in loan.X)
    with table.open() as stream:
        rows = list(csv.DictReader(stream))
    for person, row in zip(loan.X[:40], rows, strict=False):
        shown = dict(loan.schema.domain.show(person))
        assert float(shown["age"]) == float(row["age"])
        assert float(shown["children"].replace(",", "")) == float(row["children"])
        assert shown["job"] == row["job"]
    assert loan.y is not None
    assert loan.y.tolist() == [float(row["score"] == "yes") for row in rows]


def test_the_sensitive_column_is_dropped_and_what_tells_it_is_not_counted(loan: Inferred) -> None:
    metric = loan.schema.metric
    assert "sex" not in {f.name for f in loan.schema.domain.features}
    assert metric.kind == "mahalanobis"
    assert len(metric.matrix) == loan.schema.domain.width - 1
    free = np.linalg.svd(metric.matrix)[2][-1]
    assert abs(free[1]) == np.abs(free).max()  # income is what differs most between the sexes
    assert any("sex: dropped" in note for note in loan.notes)
    assert any("y = 0 for no, y = 1 for yes" in note for note in loan.notes)


def test_the_sensitive_column_is_kept_and_free_if_asked(table: Path) -> None:
    kept = infer(table, "score", ["sex"], keep=True)
    spans = {f.name: span for f, span in kept.schema.domain.spans}
    assert not kept.schema.metric.matrix[:, spans["sex"]].any()
    assert any("sex: kept" in note for note in kept.notes)


def test_without_sensitive_columns_all_count_alike(table: Path) -> None:
    plain = infer(table)
    assert plain.y is None
    assert np.array_equal(plain.schema.metric.matrix, np.eye(plain.schema.domain.width))
    assert any("No sensitive column" in note for note in plain.notes)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("mine", [False, True])
def test_the_schema_reads_back(table: Path, tmp_path: Path, keep: bool, mine: bool) -> None:
    inferred = infer(table, "score", ["sex"], keep=keep, mine=mine)
    path = write_inferred(inferred, tmp_path / "loans.toml")
    read = read_schema(path)
    assert read.domain.digest == inferred.schema.domain.digest
    assert read.metric.digest == inferred.schema.metric.digest
    assert bool(len(read.domain.constraints[1])) == mine
    text = path.read_text()
    assert ("\n# [[constraint]]" in text) == (not mine)
    assert ("# sensitive columns sex: kept" in text) == keep
    assert "includes people who cannot" in text
    people = read_people(table, read.domain)
    assert np.array_equal(people.X, inferred.X)
    assert not people.outside


def test_what_never_comes_together_is_suggested(table: Path) -> None:
    kept = infer(table, "score", ["sex"], keep=True)
    texts = [rule.text for rule in kept.suggestions]
    found = {text.split(":")[0] for text in texts}
    assert {"nobody with job = clerk and home = owns", "nobody with job = retired and age below 30"} <= found
    assert len(found) == 3  # the third: clerks are all of the sex that earns more
    assert not any("sex" in text for text in texts)  # it is sensitive: nobody is taken out of the comparison
    assert len(kept.schema.domain.constraints[1]) == 0  # only suggested


def test_mined_constraints_exclude_the_unseen_and_nobody_seen(table: Path) -> None:
    kept = infer(table, "score", ["sex"], keep=True, mine=True)
    domain = kept.schema.domain
    assert all(domain.contains(person) for person in kept.X)
    spans = {f.name: (f, span) for f, span in domain.spans}
    clerk = next(person for person in kept.X if person[spans["job"][1].start] == 1.0)
    other = clerk.copy()
    other[spans["sex"][1]] = other[spans["sex"][1]][::-1]
    assert domain.contains(other)  # nobody in the data is a clerk of that sex, but the question is about them
    other[spans["home"][1]] = other[spans["home"][1]][::-1]
    assert not domain.contains(other)
    retired = next(person for person in kept.X if person[spans["job"][1].stop - 1] == 1.0)
    young = retired.copy()
    young[spans["age"][1]] = 0.1
    assert not domain.contains(young)


def test_commented_constraints_are_real_ones_without_their_hashes(table: Path, tmp_path: Path) -> None:
    path = write_inferred(infer(table, "score", ["sex"], keep=True), tmp_path / "loans.toml")
    text = path.read_text()
    keys = ("# [[constraint]]", "# terms =", "# at_most =")
    path.write_text("\n".join(line[2:] if line.startswith(keys) else line for line in text.splitlines()))
    mined = infer(table, "score", ["sex"], keep=True, mine=True)
    assert read_schema(path).domain.digest == mined.schema.domain.digest


def test_incomplete_rows_are_left_out_and_counted(table: Path, tmp_path: Path) -> None:
    lines = table.read_text().splitlines()
    lines[5] = ",".join(["", *lines[5].split(",")[1:]])
    lines[3] = ",".join(["NA", *lines[5].split(",")[1:]])
    (tmp_path / "holes.csv").write_text("\n".join([lines[0], "", *lines[1:], ""]))
    found = infer(tmp_path / "holes.csv", "score", ["sex"])
    assert len(found.X) == 598
    assert found.notes[0].startswith("598 people; 2 more rows")


def test_identifiers_are_left_out_and_said(tmp_path: Path) -> None:
    rows = "\n".join(f"p{i},{i % 7},{i % 5},{'ab'[i % 2]}" for i in range(200))
    (tmp_path / "t.csv").write_text(f"name,m,n,s\n{rows}\n")
    found = infer(tmp_path / "t.csv", sensitive=["s"])
    assert [f.name for f in found.schema.domain.features] == ["m", "n"]
    assert any("left out: 'name' has 200 different texts" in note for note in found.notes)


def test_text_from_the_table_cannot_leave_its_comment(tmp_path: Path) -> None:
    evil = 'a\n[metric]\nkind = "lp"\x07'
    with (tmp_path / "t.csv").open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["m", "n", evil, "y"])
        table.writerows([[i, i % 3, ("x\ny", 'q"]')[i % 2], ("no\nfeature = 1", "yes")[i % 2]] for i in range(40)])
    found = infer(tmp_path / "t.csv", "y", [evil], keep=True, mine=True)
    read = read_schema(write_inferred(found, tmp_path / "t.toml"))
    assert read.domain.digest == found.schema.domain.digest
    assert [f.name for f in read.domain.features] == ["m", "n", evil]


def test_targets_of_each_kind(tmp_path: Path) -> None:
    rows = "\n".join(f"{i % 9},{i % 2 + 1},{'abc'[i % 3]},{i / 7}" for i in range(60))
    (tmp_path / "t.csv").write_text(f"n,two,three,number\n{rows}\n")
    two, three, number = (infer(tmp_path / "t.csv", target).y for target in ("two", "three", "number"))
    assert two is not None
    assert three is not None
    assert number is not None
    assert two.tolist() == [float(i % 2) for i in range(60)]
    assert three.tolist() == [float(i % 3) for i in range(60)]
    assert number.tolist() == [i / 7 for i in range(60)]


HOSTILE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "empty"),
    "blank lines": (b"\n\n\n", "empty"),
    "only a header": (b"a,b\n", "not one row"),
    "header without names": (b",\n1,2\n", "empty"),
    "a name left out": (b"a,,c\n1,2,3\n", "column 2"),
    "a name twice": (b"a,b,a\n1,2,3\n", "'a' appears twice"),
    "a short row": (b"a,b\n1,2\n3\n", "line 3 has 1 cells"),
    "a long row": (b"a,b\n1,2,3\n", "line 2 has 3 cells"),
    "a NUL byte": (b"a,b\n1,2\n3,\x004\n", "NUL byte on line 3"),
    "not UTF-8": (b"a,b\n1,2\n\xe9,3\n", "line 3 has the byte 0xe9"),
    "UTF-16": ("a,b\n1,2\n".encode("utf-16"), "0xff"),
    "an open quote": (b'a,b\n1,"2\n3,4\n', "not csv"),
    "text after a quote": (b'a,b\n1,"2"x\n', "not csv"),
    "a cell without end": (b"a,b\n1," + b"x" * 200_000 + b"\n", "field"),
    "semicolons": (b"a;b\n1;2\n", "separated by commas"),
    "tabs": (b"a\tb\n1\t2\n", "separated by commas"),
    "too many columns": (b",".join(b"c%d" % i for i in range(10_001)) + b"\n", "10,001 columns"),
    "all incomplete": (b"a,b\n1,?\n?,?\n,\n", "column 'b' lacks most: 3 of 3"),
    "one person": (b"a,b\n1,2\n", "at least 2"),
    "too wide a range": (b"a,b\n-1.5e308,2\n1.5e308,2\n", "'a'"),
    "a binary file": (bytes(range(256)) * 4, "bad.csv"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_file_that_is_no_table_is_refused_by_name(case: str, tmp_path: Path) -> None:
    content, culprit = HOSTILE[case]
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    with pytest.raises(LikewiseError) as caught:
        infer(path)
    message = str(caught.value)
    assert culprit in message
    assert str(path) in message or case == "too wide a range"
    assert message.count("\n") < 3
    assert len(message) < 700


def test_files_too_large_are_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "huge.csv").open("wb") as stream:
        stream.truncate(3 << 30)  # a hole: takes no room, and would take 3 GB to read
    with pytest.raises(FileError, match=r"huge\.csv.* 3072 MiB, more than the"):
        infer(tmp_path / "huge.csv")
    (tmp_path / "many.csv").write_text("a,b\n" + "1,2\n" * 40)
    monkeypatch.setattr(_table, "CELLS", 60)
    with pytest.raises(FileError, match=r"many\.csv: more than 60 cells"):
        infer(tmp_path / "many.csv")
    monkeypatch.setattr(_table, "LIMIT", 150)
    with pytest.raises(FileError, match=r"many\.csv: 0 MiB, more than the 0 MiB"):
        infer(tmp_path / "many.csv")


def test_paths_that_are_no_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"gone\.csv.*No such file"):
        infer(tmp_path / "gone.csv")
    with pytest.raises(FileError, match="directory"):
        infer(tmp_path)
    with pytest.raises(FileError, match=r"/dev/zero.*no regular file"):
        infer("/dev/zero")
    with pytest.raises(FileError, match="cannot read"):
        infer("a\0b.csv")


@pytest.mark.parametrize(
    ("target", "sensitive", "culprit"),
    [
        ("goal", [], "no column 'goal'"),
        ("score", ["gender"], "no column 'gender'"),
        ("score", ["score"], "'score' is named twice"),
        ("score", ["sex", "sex"], "'sex' is named twice"),
        ("score", "sex", "list of columns"),
        ("rooms", ["sex"], "'rooms' is 3.0 for everyone"),
        ("score", ["rooms"], "'rooms' has the same value"),
        ("score", [name for name in HEADER if name != "score"], "no column is left"),
    ],
)
def test_columns_that_do_not_fit_are_refused(table: Path, target: str, sensitive: list[str], culprit: str) -> None:
    with pytest.raises(InputError, match=culprit) as caught:
        infer(table, target, sensitive)
    assert str(caught.value).count("\n") < 3


def test_a_sensitive_identifier_is_refused(tmp_path: Path) -> None:
    rows = "\n".join(f"p{i},{i % 7}" for i in range(200))
    (tmp_path / "t.csv").write_text(f"name,n\n{rows}\n")
    with pytest.raises(FileError, match="sensitive column 'name'"):
        infer(tmp_path / "t.csv", sensitive=["name"])
    with pytest.raises(FileError, match="target 'name' has 200"):
        infer(tmp_path / "t.csv", "name")
