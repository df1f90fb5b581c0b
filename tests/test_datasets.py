"""The embedded data: split, scaling and column order as contracted, metrics that leave sensitive columns free."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import null_space, subspace_angles
from sklearn.model_selection import train_test_split

from likewise import datasets
from likewise.datasets import _tabular
from likewise.datasets._tabular import Column, Table, prepare, read_table, resource
from likewise.domain import Continuous, OneHot
from likewise.errors import InputError, MetricError
from likewise.load import Schema, read_npz, read_schema, write_schema
from likewise.metric.learn import learn_mahalanobis
from likewise.problem import Problem

MODELS = Path(__file__).parents[1] / "benchmarks" / "models"
# name, columns without and with the sensitive features, people, share of y = 1, dimensions that the metric ignores
SIZES = [
    ("adult", 40, 47, 45_222, 0.2478, 5),
    ("credit", 144, 146, 30_000, 0.2212, 1),
    ("german", 57, 61, 1_000, 0.7, 3),
    ("crime", 95, 99, 1_993, None, 4),
]
# accuracy and balanced accuracy of a benchmark network on its test people, as its file says
TOLD = [("adult", 0.8522, 0.7654), ("credit", 0.8180, 0.6497), ("german", 0.7700, 0.6940)]
# start and end of the SHA-256 of the uncompressed csv, as they were handed over
DIGESTS = {
    "adult": ("6f8f2bab", "0d347"),
    "credit": ("70b04919", "47b20"),
    "german": ("f0b60675", "97790"),
    "crime": ("a5b001dd", "7ac6f1"),
}
# feature and number of columns, in the order of the benchmark networks
LAYOUT = [
    ("age", 1), ("credit_amount", 1), ("duration", 1), ("existing_credits", 1), ("installment_rate", 1),
    ("people_liable", 1), ("residence_since", 1), ("credit_history", 5), ("employment", 5), ("foreign_worker", 2),
    ("housing", 3), ("installment_plans", 3), ("job", 4), ("other_debtors", 3), ("property", 4), ("purpose", 10),
    ("savings", 5), ("status", 4), ("telephone", 2),
]  # fmt: skip


@pytest.fixture(scope="module")
def german() -> datasets.Dataset:
    return datasets.load("german")


@pytest.fixture(scope="module")
def kept() -> datasets.Dataset:
    return datasets.load("german", sensitive="keep")


@pytest.fixture(scope="module", params=SIZES, ids=lambda size: size[0])
def both(request: pytest.FixtureRequest) -> tuple[datasets.Dataset, datasets.Dataset]:
    name = request.param[0]
    return datasets.load(name), datasets.load(name, sensitive="keep")


Both = tuple[datasets.Dataset, datasets.Dataset]


@pytest.mark.parametrize("name", datasets.NAMES)
def test_the_table_is_uci_s(name: str) -> None:
    digest = hashlib.sha256(gzip.decompress(resource(f"{name}.csv.gz"))).hexdigest()
    assert digest.startswith(DIGESTS[name][0])
    assert digest.endswith(DIGESTS[name][1])


def test_every_data_set_has_the_contracted_shape(both: Both) -> None:
    data, kept = both
    _, width, wider, people, share, _ = next(size for size in SIZES if size[0] == data.name)
    assert data.domain.width == data.X_train.shape[1] == data.X_test.shape[1] == width
    assert kept.domain.width == wider
    assert np.array_equal(kept.X_train[:, :width], data.X_train)
    assert len(data.y_train) == int(0.8 * people)
    assert len(data.y_train) + len(data.y_test) == people
    y = np.concatenate([data.y_train, data.y_test])
    if share is None:
        assert (y.min(), y.max()) == (0.0, 1.0)
        assert len(np.unique(y)) > 50
    else:
        assert set(y) == {0.0, 1.0}
        assert y.mean() == pytest.approx(share, abs=5e-5)


def test_the_columns_are_those_of_the_benchmark_networks(both: Both) -> None:
    data, _ = both
    listed = json.loads((MODELS / f"{data.name}.domain.json").read_text())["features"]
    expected = [(f["name"], tuple(f.get("values", ()))) for f in listed if f["name"] != "OtherPerCap"]
    found = [(f.name, f.values if isinstance(f, OneHot) else ()) for f in data.domain.features]
    assert found == expected


def test_the_training_people_are_in_the_domain_and_the_others_are_counted(both: Both) -> None:
    for data in both:
        numbers = data.domain.continuous
        for part in (data.X_train, data.X_test):
            groups = [part[:, group] for group in data.domain.groups]
            assert all(np.isin(group, (0.0, 1.0)).all() and (group.sum(axis=1) == 1.0).all() for group in groups)
        assert (data.X_train[:, numbers].min(axis=0) == 0.0).all()
        assert (data.X_train[:, numbers].max(axis=0) == 1.0).all()
        beyond = (data.X_test[:, numbers] < 0.0) | (data.X_test[:, numbers] > 1.0)
        assert data.outside == beyond.any(axis=1).sum()
        assert data.outside < 10


def test_the_learnt_metric_ignores_the_sensitive_subspace_only(both: Both) -> None:
    data, kept = both
    rank = data.domain.width - next(size[5] for size in SIZES if size[0] == data.name)
    A, wide = data.metric("mahalanobis").matrix, kept.metric("mahalanobis").matrix
    S, T = A.T @ A, wide.T @ wide
    assert A.shape == (rank, data.domain.width)
    assert np.abs(S @ S - S).max() < 1e-9
    assert np.abs(T[: len(S), : len(S)] - S).max() < 1e-9
    assert not T[len(S) :].any()
    assert not T[:, len(S) :].any()


def test_the_metric_is_that_of_the_benchmarks(both: Both) -> None:
    data, _ = both
    with np.load(MODELS / f"{data.name}.metric.npz") as stored:
        S = stored["S"]
    A = data.metric("mahalanobis").matrix
    if data.name != "crime":
        assert np.abs(A.T @ A - S).max() < 1e-12
        return
    # the 96 columns less OtherPerCap, learnt on other communities: the same subspace as far as the sample allows
    listed = json.loads((MODELS / "crime.domain.json").read_text())["features"]
    column = [f["name"] for f in listed].index("OtherPerCap")
    there = np.delete(null_space(S), column, axis=0)
    assert np.degrees(subspace_angles(there, null_space(A))).max() < 25


def test_crime_s_metric_is_learnt_from_its_training_people() -> None:
    data = datasets.load("crime", sensitive="keep")
    learnt = learn_mahalanobis(data.X_train, data.sensitive, data.domain).metric
    embedded = data.metric("mahalanobis")
    assert np.abs(learnt.matrix.T @ learnt.matrix - embedded.matrix.T @ embedded.matrix).max() < 1e-9


def test_the_embedding_has_ten_units_in_shares_of_their_range(both: Both) -> None:
    data, kept = both
    metric, wide = data.metric("embedding"), kept.metric("embedding")
    assert metric.kind == "embedding"
    assert metric.width == data.domain.width
    assert metric.p == np.inf
    with np.load(io.BytesIO(resource(f"{data.name}.embedding.npz"))) as stored:
        W, b = stored["W0"], stored["b0"]
    assert W.shape == (10, data.domain.width)
    units = data.X_train @ W.T + b
    assert np.ptp(units, axis=0) == pytest.approx(np.ones(10))
    left, right = data.X_train[0], data.X_train[1]
    assert metric.distance(left, right) == pytest.approx(np.abs(W @ (left - right)).max(), rel=1e-9)
    changed = kept.X_train[0].copy()
    changed[len(left) :] = kept.X_train[1][len(left) :]
    assert wide.within(kept.X_train[0], changed, 1e-9)
    assert wide.distance(kept.X_train[0], kept.X_train[1]) == pytest.approx(metric.distance(left, right), rel=1e-9)


def test_the_embedding_tells_the_target_better_than_guessing(both: Both) -> None:
    data, _ = both
    with np.load(io.BytesIO(resource(f"{data.name}.embedding.npz"))) as stored:
        W = stored["W0"]
    seen, there = (np.column_stack([X @ W.T, np.ones(len(X))]) for X in (data.X_train, data.X_test))
    fit = np.linalg.lstsq(seen, data.y_train, rcond=None)[0]
    if data.name == "crime":
        assert ((there @ fit - data.y_test) ** 2).mean() < 0.5 * data.y_test.var()
        return
    guess = max(data.y_test.mean(), 1 - data.y_test.mean())
    assert ((there @ fit > 0.5) == data.y_test).mean() > guess + 0.02


def test_the_package_stays_small() -> None:
    folder = Path(datasets.__file__).parent / "data"
    assert sum(file.stat().st_size for file in folder.iterdir()) < 2_300_000


def test_categories_that_are_numbers_are_in_their_order() -> None:
    assert _tabular._ordered({"10", "-1", "-2", "9"}) == ["-2", "-1", "9", "10"]
    assert _tabular._ordered({"A410", "A42", "A41"}) == ["A41", "A410", "A42"]
    assert _tabular._ordered({"10", "9", "x"}) == ["10", "9", "x"]


def test_german_has_the_contracted_shape(german: datasets.Dataset) -> None:
    assert [(f.name, f.width) for f in german.domain.features] == LAYOUT
    assert german.X_train.shape == (800, 57)
    assert german.X_test.shape == (200, 57)
    assert german.y_train.shape == (800,)
    assert german.y_train.sum() + german.y_test.sum() == 700  # good credit is y = 1
    purpose = next(f for f in german.domain.features if f.name == "purpose")
    assert isinstance(purpose, OneHot)
    assert purpose.values == ("A40", "A41", "A410", "A42", "A43", "A44", "A45", "A46", "A48", "A49")
    assert german.sensitive == ("status_sex",)


def test_keeping_the_sensitive_feature_appends_it(german: datasets.Dataset, kept: datasets.Dataset) -> None:
    assert [(f.name, f.width) for f in kept.domain.features] == [*LAYOUT, ("status_sex", 4)]
    assert np.array_equal(kept.X_train[:, :57], german.X_train)
    assert (kept.X_train[:, 57:].sum(axis=1) == 1).all()


def test_scaling_is_fitted_on_the_training_people_alone(german: datasets.Dataset) -> None:
    columns = german.domain.continuous
    assert (german.X_train[:, columns].min(axis=0) == 0.0).all()
    assert (german.X_train[:, columns].max(axis=0) == 1.0).all()
    assert all(german.domain.contains(person) for person in german.X_train)


def test_test_people_beyond_the_training_range_are_counted_and_not_clipped() -> None:
    counts = []
    for seed in range(8):
        data = datasets.load("german", seed=seed)
        counts.append(data.outside)
        assert data.outside == sum(not data.domain.contains(person) for person in data.X_test)
    assert max(counts) > 0  # else this test would show nothing


def test_the_split_is_fixed_by_the_seed(german: datasets.Dataset) -> None:
    again, other = datasets.load("german", seed=42), datasets.load("german", seed=43)
    assert np.array_equal(again.X_train, german.X_train)
    assert np.array_equal(again.y_test, german.y_test)
    assert not np.array_equal(other.y_train, german.y_train)
    train, test = train_test_split(np.arange(1000), test_size=0.2, random_state=42)
    good = read_table(resource("german.csv.gz"))["target"] == "1"
    assert np.array_equal(german.y_train, good[train])
    assert np.array_equal(german.y_test, good[test])


@pytest.mark.parametrize(("name", "accuracy", "balanced"), TOLD)
def test_the_split_is_the_one_that_the_benchmark_networks_were_trained_on(
    name: str, accuracy: float, balanced: float
) -> None:
    data = datasets.load(name)
    net = read_npz(MODELS / "mild" / f"{name}_8.npz")
    right, y = (net(data.X_test) > 0.5) == (data.y_test > 0.5), data.y_test > 0.5
    assert right.mean() == pytest.approx(accuracy, abs=5e-5)  # as noted in the model's file
    assert (right[y].mean() + right[~y].mean()) / 2 == pytest.approx(balanced, abs=5e-5)


def test_the_data_cannot_be_changed_by_accident(german: datasets.Dataset) -> None:
    with pytest.raises(ValueError, match="read-only"):
        german.X_train[0, 0] = 2.0


def test_people_read_their_own_units(german: datasets.Dataset) -> None:
    cells = read_table(resource("german.csv.gz"))
    order = datasets.split_rows(1000, 42)[0]
    for row, person in zip(order[:50], german.X_train[:50], strict=True):
        shown = dict(german.domain.show(person))
        amount = int(cells["credit_amount"][row])
        assert shown["credit amount"] == (f"{amount:,} DM" if amount >= 1000 else f"{amount} DM")
        assert shown["duration"] == f"{cells['duration'][row]} months"


def test_every_feature_has_a_title_of_its_own(both: Both) -> None:
    titles = [feature.display.title for feature in both[1].domain.features]
    assert all(titles)
    assert len(set(titles)) == len(titles)


def test_every_category_has_a_label_and_no_label_is_stray(both: Both) -> None:
    for feature in both[1].domain.features:
        if isinstance(feature, OneHot):
            labels = dict(feature.display.labels)
            assert set(labels) == set(feature.values), feature.name
            assert len(set(labels.values())) == len(labels), feature.name


def test_the_learnt_metric_is_a_projector_without_three_directions(german: datasets.Dataset) -> None:
    A = german.metric("mahalanobis").matrix
    S = A.T @ A
    assert A.shape == (54, 57)
    assert np.abs(S @ S - S).max() < 1e-9


def test_linf_weighs_every_column_alike(german: datasets.Dataset) -> None:
    metric = german.metric("linf")
    assert np.array_equal(metric.matrix, np.eye(57))
    assert metric.p == np.inf


@pytest.mark.parametrize("kind", ["mahalanobis", "linf", "embedding"])
def test_kept_sensitive_columns_are_free(german: datasets.Dataset, kept: datasets.Dataset, kind: str) -> None:
    metric = kept.metric(kind)
    assert metric.width == 61
    person, changed = kept.X_train[0].copy(), kept.X_train[0].copy()
    changed[57:] = np.roll(changed[57:], 1)
    assert metric.within(person, changed, 1e-9 if kind == "embedding" else 0.0)  # a network is evaluated with rounding
    other = kept.X_train[1]
    expected = german.metric(kind).distance(person[:57], other[:57])
    assert metric.distance(person, other) == pytest.approx(expected, rel=1e-12)


def test_unknown_words_are_refused_with_the_known_ones(german: datasets.Dataset) -> None:
    with pytest.raises(InputError, match=r"'germany'.*known: adult, credit, german, crime"):
        datasets.load("germany")
    with pytest.raises(InputError, match=r"'drop' or 'keep', got 'hide'"):
        datasets.load("german", sensitive="hide")
    for seed in (-1, 1.5, True, 2**32):
        with pytest.raises(InputError, match="seed"):
            datasets.load("german", seed=seed)  # type: ignore[arg-type]
    with pytest.raises(MetricError, match=r"'vibes'.*mahalanobis, linf, embedding"):
        german.metric("vibes")


def test_the_demo_network_fits_the_data_and_is_better_than_guessing(german: datasets.Dataset) -> None:
    net = datasets.demo_network()
    Problem(net, german.domain, german.domain, german.metric(), 0.2)
    assert net.digest.startswith("59519e7f")
    people, good = np.vstack([german.X_train, german.X_test]), np.concatenate([german.y_train, german.y_test])
    assert ((net(people) > 0.5) == good).mean() > 0.75


def test_the_demo_network_file_is_an_ordinary_model_file(capsys: pytest.CaptureFixture[str]) -> None:
    file = Path(datasets.__file__).parent / "data" / "german.network.npz"
    assert read_npz(file).digest == datasets.demo_network().digest
    assert capsys.readouterr().err == ""


def test_a_data_set_becomes_a_schema_and_comes_back(german: datasets.Dataset, tmp_path: Path) -> None:
    for kind in ("mahalanobis", "linf", "embedding"):
        written = Schema(german.domain, german.metric(kind), german.title, german.source)
        read = read_schema(write_schema(written, tmp_path / "german.toml"))
        assert read.domain.digest == german.domain.digest
        assert read.metric.digest == written.metric.digest


def test_the_licence_is_attributed() -> None:
    text = resource("ATTRIBUTION.md").decode()
    assert "CC BY 4.0" in text
    for name in datasets.NAMES:
        doi = next(word for word in datasets.TABLES[name].source.split() if word.startswith("doi:"))
        assert doi.rstrip(".") in text
        assert f"`{name}.csv.gz`" in text


def test_another_table_needs_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "".join(f"{i},{'xy'[i % 2]},{i / 20},{'?' if i == 3 else 'w'}\n" for i in range(21))
    packed = gzip.compress(f"n,c,share,s\n{rows}".encode())
    monkeypatch.setattr(_tabular, "resource", lambda _: packed)
    table = Table(
        name="toy",
        title="Toy",
        source="",
        target="share",
        positive=None,
        columns=(Column("c", "one_hot", "c"), Column("n", "continuous", "n")),
        sensitive=(Column("s", "one_hot", "s"),),
    )
    data = prepare(table, "keep", 0)
    assert len(data.y_train) == 16  # 20 complete rows: the one with a missing value is left out
    assert len(data.y_test) == 4
    assert [f.width for f in data.domain.features] == [2, 1, 1]
    number = data.domain.features[1]
    assert isinstance(number, Continuous)
    shown = number.display.offset + number.display.factor * data.X_train[:, 2]
    assert shown / 20 == pytest.approx(data.y_train)
