"""scikit-learn: estimators and pipelines against their own predictions, and metrics moved into raw units."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

from likewise.errors import DomainError, MetricError, ModelError
from likewise.load import folded, load, read_sklearn
from likewise.metric import Embedding, Mahalanobis, WeightedLp
from likewise.network import Layer, Network

RNG = np.random.default_rng(4)
X = RNG.normal(size=(80, 3)) * [1.0, 20.0, 0.1] + [0.0, 40.0, 5.0]
Y = (X[:, 0] + X[:, 1] / 20 > 2).astype(int)
JOBS = np.array(["artist", "baker", "cook"])[RNG.integers(0, 3, size=80)]
TOWNS = RNG.integers(1, 3, size=80)
MIXED = np.array([X[:, 1], JOBS, X[:, 0], TOWNS, X[:, 2]], dtype=object).T  # numbers and categories, interleaved


# A few steps of training are enough here.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def mlp(**options: Any) -> MLPClassifier:
    return MLPClassifier((6, 4), max_iter=15, random_state=0, **options)


@pytest.mark.parametrize("activation", ["identity", "logistic", "tanh", "relu"])
def test_classifier(activation: str) -> None:
    model = mlp(activation=activation).fit(X, Y)
    net = load(model)
    assert net(X) == pytest.approx(model.predict_proba(X)[:, 1], rel=1e-12)
    assert net.layers[-1].activations == ("sigmoid",)
    assert len(net.layers) == 3


def test_several_labels_are_several_sigmoids() -> None:
    model = mlp().fit(X, np.array([Y, 1 - Y, X[:, 2] > 5]).T)
    assert load(model)(X) == pytest.approx(model.predict_proba(X), rel=1e-12)


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("kind", [MLPRegressor, LinearRegression, Ridge, Lasso, ElasticNet])
def test_regressor(kind: Any, targets: int) -> None:
    model = MLPRegressor(hidden_layer_sizes=(5,), max_iter=15, random_state=0) if kind is MLPRegressor else kind()
    model.fit(X, X[:, 0] ** 2 if targets == 1 else X[:, :2] ** 2)
    assert load(model)(X) == pytest.approx(model.predict(X), rel=1e-10)


@pytest.mark.parametrize("intercept", [True, False])
def test_logistic_regression(intercept: bool) -> None:
    model = LogisticRegression(fit_intercept=intercept).fit(X, Y)
    assert load(model)(X) == pytest.approx(model.predict_proba(X)[:, 1], rel=1e-12)


SCALERS: dict[str, Any] = {
    "standard": StandardScaler(),
    "standard without mean": StandardScaler(with_mean=False),
    "standard without scale": StandardScaler(with_std=False),
    "min max": MinMaxScaler((-2, 3)),
    "robust": RobustScaler(),
    "robust without centre": RobustScaler(with_centering=False),
    "robust without scale": RobustScaler(with_scaling=False),
    "max abs": MaxAbsScaler(),
    "nothing": "passthrough",
    "two": Pipeline([("a", StandardScaler()), ("b", MinMaxScaler())]),
}


@pytest.mark.parametrize("case", SCALERS)
def test_a_scaler_is_folded_into_the_first_layer(case: str) -> None:
    pipeline = Pipeline([("scale", SCALERS[case]), ("model", mlp())]).fit(X, Y)
    net = read_sklearn(pipeline)
    assert net(X) == pytest.approx(pipeline.predict_proba(X)[:, 1], rel=1e-9)
    assert len(net.layers) == 3


def mixed(last: Any, **options: Any) -> Pipeline:
    """Numbers scaled, a category encoded, another encoded without its first value, in an order of its own."""
    columns = ColumnTransformer(
        [
            ("town", OneHotEncoder(drop="first"), [3]),
            ("numbers", StandardScaler(), [4, 0]),
            ("job", OneHotEncoder(sparse_output=False), [1]),
        ],
        **options,
    )
    return Pipeline([("columns", columns), ("again", MaxAbsScaler()), ("model", last)])


@pytest.mark.parametrize("remainder", ["drop", "passthrough", MinMaxScaler()])
def test_columns_are_folded_in_the_order_of_the_data(remainder: Any) -> None:
    pipeline = mixed(mlp(), remainder=remainder).fit(MIXED, Y)
    made = folded(pipeline)
    names = [column.name for column in made.columns]
    kept = [0, 1, 3, 4] if remainder == "drop" else [0, 1, 2, 3, 4]
    assert names == [f"column {i}" for i in kept]
    assert [column.categories for column in made.columns if column.categories] == [("artist", "baker", "cook"), (1, 2)]
    people = made.encode(MIXED[:, kept].tolist())
    assert people.shape == (80, len(kept) + 3)
    assert made.network(people) == pytest.approx(pipeline.predict_proba(MIXED)[:, 1], rel=1e-9)
    assert load(pipeline).digest == made.network.digest
    raw = people @ made.matrix.T + made.shift
    assert raw == pytest.approx(np.asarray(pipeline[:-1].transform(MIXED), dtype=float), abs=1e-12)


SLICED = [("a", MinMaxScaler(), slice(0, 1)), ("b", MinMaxScaler(), [False, True, False]), ("c", "passthrough", [-1])]


@pytest.mark.parametrize("chosen", [SLICED, SLICED[:2], SLICED[2:], [("all", RobustScaler(), slice(0, None))]])
def test_slices_and_masks_choose_columns(chosen: Any) -> None:
    pipeline = Pipeline([("columns", ColumnTransformer(chosen)), ("model", LogisticRegression())]).fit(X, Y)
    made = folded(pipeline)
    kept = [int(column.name.split()[1]) for column in made.columns]
    assert made.network(X[:, kept]) == pytest.approx(pipeline.predict_proba(X)[:, 1], rel=1e-9)


@pytest.mark.parametrize("chosen", [["rent", "age"], slice("age", "rent")])
def test_columns_have_the_names_of_the_data_frame_that_was_fitted(chosen: Any) -> None:
    scaler = StandardScaler().fit(X[:, [2, 0]] if isinstance(chosen, list) else X)
    columns = ColumnTransformer([("s", scaler, [2, 0] if isinstance(chosen, list) else [0, 1, 2])])
    pipeline = Pipeline([("columns", columns), ("model", LogisticRegression())]).fit(X, Y)
    expected = folded(pipeline).network.digest
    columns.feature_names_in_ = np.array(["age", "income", "rent"], dtype=object)  # as fit(frame) would leave it
    columns.transformers_ = [("s", columns.transformers_[0][1], chosen)]
    made = folded(pipeline)
    assert made.network.digest == expected
    assert [column.name for column in made.columns] == (
        ["age", "rent"] if isinstance(chosen, list) else ["age", "income", "rent"]
    )


def test_scaling_by_1_changes_no_bit() -> None:
    model = mlp().fit(X, Y)
    scaler = StandardScaler().fit(X)
    scaler.mean_, scaler.scale_ = np.zeros(3), np.ones(3)
    assert load(Pipeline([("scale", scaler), ("model", model)])).digest == load(model).digest


# --- metrics ----------------------------------------------------------------------------------------------------------


def pairs(made: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    people = made.encode(MIXED[:, [0, 1, 3, 4]].tolist())
    return [(people[i], people[i + 40]) for i in range(40)]


def test_a_metric_of_prepared_columns_is_the_same_distance_in_raw_columns() -> None:
    made = folded(mixed(LogisticRegression()).fit(MIXED, Y))
    root = RNG.normal(size=(4, 6))
    phi = Network([Layer(RNG.normal(size=(3, 6)), RNG.normal(size=3), "relu")])
    plain = (Mahalanobis(root.T @ root), WeightedLp(RNG.uniform(size=6), math.inf), WeightedLp(np.ones(6), 1))
    for metric in (*plain, Embedding(phi, WeightedLp(np.ones(3), 1))):
        raw = made.raw_metric(metric)
        assert raw.p == metric.p
        assert raw.width == made.network.inputs
        for left, right in pairs(made):
            before = metric.distance(made.matrix @ left + made.shift, made.matrix @ right + made.shift)
            assert raw.distance(left, right) == pytest.approx(before, rel=1e-9)


def test_both_units_are_shown() -> None:
    pipeline = Pipeline([("scale", StandardScaler()), ("model", LogisticRegression())]).fit(X, Y)
    made = folded(pipeline)
    shown = made.show(WeightedLp([1.0, 2.0, 0.0]))
    spread = pipeline[0].scale_
    rows = [line.split() for line in shown.splitlines()[2:]]
    assert [row[2:] for row in rows] == [
        ["1", f"{1 / spread[0]:.4g}", f"{spread[0]:.4g}"],
        ["2", f"{2 / spread[1]:.4g}", f"{spread[1]:.4g}"],
        ["0", "0", f"{spread[2]:.4g}"],
    ]
    assert "eps" in shown
    with pytest.raises(MetricError, match="4 columns"):
        made.show(WeightedLp(np.ones(4)))
    with pytest.raises(MetricError, match="depends on the person"):
        made.show(Embedding(Network([Layer(np.ones((1, 3)), [0.0], "relu")]), WeightedLp([1.0])))


def test_an_unknown_category_is_named() -> None:
    made = folded(mixed(LogisticRegression()).fit(MIXED, Y))
    with pytest.raises(DomainError, match=r"column 1.*pilot"):
        made.encode([[1.0, "pilot", 1, 2.0]])
    with pytest.raises(DomainError, match="4 columns"):
        made.encode([[1.0]])


# --- refused by name --------------------------------------------------------------------------------------------------

THREE = np.arange(80) % 3


def test_three_classes() -> None:
    for model in (mlp().fit(X, THREE), LogisticRegression().fit(X, THREE)):
        assert load(model)(X) == pytest.approx(model.predict_proba(X), rel=1e-9)


def poisson() -> Any:
    return MLPRegressor(loss="poisson", hidden_layer_sizes=(3,), max_iter=5).fit(X, Y + 1)


def spoilt() -> Any:
    model = LogisticRegression().fit(X, Y)
    model.coef_ = np.full((1, 3), np.nan)
    return model


def chained(*steps: Any, data: Any = X) -> Any:
    named = [(f"step{i}", step) for i, step in enumerate((*steps, LogisticRegression()))]
    return Pipeline(named).fit(data, Y)


def two_ways() -> Any:
    return chained(ColumnTransformer([("a", OneHotEncoder(), [3]), ("b", StandardScaler(), [3])]), data=MIXED)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "many classes": (lambda: LogisticRegression().fit(X, np.arange(80) % 17), "17 classes"),
    "an exponential output": (poisson, "'exp'"),
    "forest": (lambda: RandomForestClassifier(2).fit(X, Y), "RandomForestClassifier"),
    "not fitted": (mlp, "not fitted"),
    "pipeline not fitted": (lambda: Pipeline([("a", StandardScaler()), ("b", mlp())]), "not fitted"),
    "power": (lambda: chained(PowerTransformer()), "PowerTransformer"),
    "clip": (lambda: chained(MinMaxScaler(clip=True)), "clip=True"),
    "function": (lambda: chained(FunctionTransformer(np.sin)), "function"),
    "infrequent": (lambda: chained(OneHotEncoder(max_categories=2), data=JOBS.reshape(-1, 1)), "infrequent"),
    "number and category": (two_ways, "column 3"),
    "scaled, then encoded": (lambda: chained(MaxAbsScaler(), OneHotEncoder(), data=TOWNS.reshape(-1, 1)), "column 0"),
    "weights": (
        lambda: chained(ColumnTransformer([("a", StandardScaler(), [0, 1])], transformer_weights={"a": 2.0})),
        "transformer_weights",
    ),
    "not finite": (spoilt, "non-finite"),
    "only a scaler": (lambda: StandardScaler().fit(X), "StandardScaler"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    make, culprit = REFUSED[case]
    with pytest.raises(ModelError, match=culprit) as caught:
        load(make())
    assert str(caught.value).count("\n") < 3
