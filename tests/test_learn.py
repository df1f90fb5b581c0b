"""Learnt metrics: planted directions are found, sensitive features are free, and the words match the numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.linalg import null_space, subspace_angles

from likewise.domain import Continuous, Display, Domain, OneHot
from likewise.errors import MetricError
from likewise.metric import _fit
from likewise.metric.learn import Learnt, learn_embedding, learn_mahalanobis, learn_weights
from likewise.rounding import Array

WIDTH = 6
DOMAIN = Domain([Continuous(f"x{i}", 0.0, 1.0) for i in range(WIDTH)])


def people(n: int = 4000, seed: int = 0) -> Array:
    return np.random.default_rng(seed).random((n, WIDTH))


def angle(metric_matrix: Array, directions: Array) -> float:
    """The largest angle in degrees between what a metric ignores and some directions (rows)."""
    return float(np.degrees(subspace_angles(null_space(metric_matrix), directions.T)).max())


def test_a_planted_number_is_projected_out() -> None:
    X, direction = people(), np.array([[1.0, -2.0, 0.0, 0.0, 0.5, 0.0]])
    noise = np.random.default_rng(1).normal(size=len(X))
    learnt = learn_mahalanobis(X, {"group": 1e4 * (X @ direction[0] + 0.1 * noise)}, DOMAIN)
    assert learnt.metric.matrix.shape == (WIDTH - 1, WIDTH)
    assert angle(learnt.metric.matrix, direction) < 1.0


def test_a_planted_yes_or_no_is_projected_out() -> None:
    X, direction = people(), np.array([[0.0, 3.0, 0.0, -4.0, 0.0, 0.0]])
    chance = 1 / (1 + np.exp(-2 * (X - 0.5) @ direction[0]))
    told = np.random.default_rng(2).random(len(X)) < chance
    for values in (told, told.astype(float), np.where(told, "yes", "no"), np.eye(2)[told.astype(int)]):
        learnt = learn_mahalanobis(X, {"group": values}, DOMAIN)
        assert len(learnt.metric.matrix) == WIDTH - 1
        assert angle(learnt.metric.matrix, direction) < 3.0


def test_several_features_are_stacked() -> None:
    X = people()
    planted = np.array([[1.0, 1.0, 0, 0, 0, 0], [0, 0, 1.0, -1.0, 0, 0], [0, 0, 0, 0, 1.0, 0]])
    logits = 8 * np.column_stack([X @ planted[0] - 1, X @ planted[1], np.zeros(len(X))])
    draw = logits + np.random.default_rng(3).gumbel(size=logits.shape)  # three classes, two directions
    learnt = learn_mahalanobis(X, {"class": draw.argmax(axis=1).astype(str), "number": X @ planted[2]}, DOMAIN)
    assert len(learnt.metric.matrix) == WIDTH - 3
    assert angle(learnt.metric.matrix, planted) < 3.0


def test_kept_columns_get_zero_rows_and_the_same_metric_as_dropped_ones() -> None:
    X, rng = people(500), np.random.default_rng(4)
    codes = rng.integers(0, 3, len(X)) + (X[:, 0] > 0.8)
    number = X[:, 1] + rng.random(len(X))
    kept = Domain([OneHot("race", list("abcd")), *DOMAIN.features, Continuous("share", 0.0, 2.0)])
    wide = np.column_stack([np.eye(4)[codes], X, number])
    A = learn_mahalanobis(wide, ["race", "share"], kept).metric.matrix
    B = learn_mahalanobis(X, {"race": codes.astype(str), "share": number}, DOMAIN).metric.matrix
    S, T = A.T @ A, B.T @ B
    assert np.abs(S[4:10, 4:10] - T).max() < 1e-9
    S[4:10, 4:10] = 0.0
    assert not S.any()
    assert np.abs(T @ T - T).max() < 1e-12


def test_a_category_nobody_has_is_no_direction() -> None:
    X = people(300)
    domain = Domain([*DOMAIN.features, OneHot("race", list("abc"))])
    wide = np.column_stack([X, np.eye(3)[(X[:, 0] > 0.5).astype(int)]])
    assert len(learn_mahalanobis(wide, "race", domain).metric.matrix) == WIDTH - 1


def test_the_softmax_fit_is_optimal() -> None:
    X, rng = people(400), np.random.default_rng(5)
    for classes in (2, 3):
        codes = (rng.random((len(X), classes)) + X[:, :classes]).argmax(axis=1)
        found = _fit.softmax(X, codes, classes, 0.7)
        full = np.vstack([np.zeros(WIDTH), found]) if classes == 2 else found
        bias = np.zeros(classes)
        for _ in range(4000):  # the intercepts alone, by plain gradient steps
            p = np.exp(X @ full.T + bias)
            p /= p.sum(axis=1, keepdims=True)
            bias -= 2 * (p - np.eye(classes)[codes]).mean(axis=0)
        slope = (p - np.eye(classes)[codes]).T @ X
        slope = slope[-len(found) :] + 0.7 * found
        assert np.abs(slope).max() < 1e-3


def test_the_linear_fit_solves_its_normal_equations() -> None:
    X = people(200)
    values = np.random.default_rng(6).random(200)
    a = _fit.linear(X, values, 2.0)[0]
    centred = X - X.mean(axis=0)
    assert centred.T @ (centred @ a - (values - values.mean())) + 2.0 * a == pytest.approx(np.zeros(WIDTH), abs=1e-9)


def test_the_network_s_slope_is_that_of_its_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    X = people(30)
    seen: list[tuple[float, float]] = []

    def compare(loss: _fit.Loss, start: Array, _: int) -> Array:
        rng = np.random.default_rng(7)
        for _ in range(5):
            at, step = start + 0.3 * rng.normal(size=start.shape), rng.normal(size=start.shape)
            ahead, back = loss(at + 1e-6 * step)[0], loss(at - 1e-6 * step)[0]
            seen.append(((ahead - back) / 2e-6, float(loss(at)[1] @ step)))
        return start

    monkeypatch.setattr(_fit, "_minimise", compare)
    for outcomes in (np.arange(30) % 3, X[:, 0]):
        outputs = 3 if outcomes.dtype.kind == "i" else 1
        _fit.train(X, outcomes, ("tanh", "relu", "identity"), (WIDTH, 4, 5, outputs), 0, 0.01)
    assert len(seen) == 10
    for numeric, exact in seen:
        assert exact == pytest.approx(numeric, rel=1e-4, abs=1e-7)


def test_weights_are_zero_on_sensitive_columns_and_one_elsewhere() -> None:
    domain = Domain([OneHot("race", ["a", "b"]), *DOMAIN.features])
    X = np.column_stack([np.eye(2)[np.arange(300) % 2], people(300)])
    metric, summary = learn_weights(X, "race", domain)
    assert np.array_equal(metric.matrix, np.diag([0.0, 0.0, 1, 1, 1, 1, 1, 1]))
    assert metric.p == math.inf
    assert "Free to differ: race." in summary
    assert learn_weights(X, "race", domain, p=1.0).metric.p == 1.0


def test_weights_by_correlation_fall_with_it() -> None:
    X, rng = people(), np.random.default_rng(8)
    number = X[:, 0]
    X[:, 1] = 0.5 * number + 0.5 * rng.random(len(X))
    X[:, 2] = 0.25  # never moves: nothing goes along with it
    weights = np.diagonal(learn_weights(X, {"group": number}, DOMAIN, by="correlation").metric.matrix)
    assert weights[0] == pytest.approx(0.0, abs=1e-9)
    assert weights[1] == pytest.approx(1 - 0.5**0.5, abs=0.03)
    assert weights[2] == 1.0
    assert weights[3:] == pytest.approx(np.ones(3), abs=0.05)


def test_an_embedding_tells_classes_better_than_guessing() -> None:
    X = people(600)
    y = (np.abs(X[:, 0] - 0.5) + X[:, 1] > 0.9).astype(float)
    metric, summary = learn_embedding(X, y, DOMAIN, units=4)
    assert metric.kind == "embedding"
    assert metric.width == WIDTH
    share = float(summary.split("From these ")[1].split("%")[0]) / 100
    assert share > max(y.mean(), 1 - y.mean()) + 0.1
    distances = [metric.distance(X[i], X[j]) for i in range(20) for j in range(i)]
    assert 0.0 < min(distances) < max(distances) <= 1.0 + 1e-9  # in shares of each unit's range
    assert metric.distance(X[3], X[3]) == 0.0


@pytest.mark.parametrize("activation", ["identity", "relu", "tanh"])
def test_an_embedding_is_the_same_every_time_and_blind_to_the_sensitive(activation: str) -> None:
    domain = Domain([OneHot("race", ["a", "b"]), *DOMAIN.features])
    X = np.column_stack([np.eye(2)[np.arange(200) % 2], people(200)])
    words = np.array(["low", "mid", "high"])[(3 * X[:, 3]).astype(int)]
    first, second = (
        learn_embedding(X, words, domain, units=3, activation=activation, sensitive=["race"]) for _ in range(2)
    )
    assert first.metric.digest == second.metric.digest
    assert first.summary == second.summary
    changed = X[0].copy()
    changed[:2] = changed[1::-1]
    assert first.metric.distance(X[0], changed) == 0.0
    assert learn_embedding(X, words, domain, units=3, seed=1).metric.digest != first.metric.digest


def test_an_embedding_of_numbers_explains_them() -> None:
    X = people(400)
    summary = learn_embedding(X, 3 * X[:, 0] - X[:, 4], DOMAIN, units=2).summary
    assert int(summary.split("explain ")[1].split("%")[0]) > 90


def test_the_summary_names_features_in_the_user_s_units() -> None:
    domain = Domain(
        [Continuous("age", 0.0, 1.0, Display(18.0, 60.0, "years")), *DOMAIN.features[1:], OneHot("job", ["a", "b"])]
    )
    X = np.column_stack([people(400), np.eye(2)[np.arange(400) % 2]])
    learnt = learn_mahalanobis(X, {"group": X[:, 0] + 0.5 * X[:, 1]}, domain, ridge=1e-6)
    assert isinstance(learnt, Learnt)
    assert repr(learnt) == f"Learnt({learnt.metric!r})"
    lines = learnt.summary.splitlines()
    assert lines[0] == "Not counted: 1 direction of 8 columns, from which one can guess group."
    # at distance 0 age and x1 move along (1, 0.5) / |.|, so age over its whole range; alone it costs its S
    assert "age by 60 years; x1 by 0.5" in lines[1]
    assert "age by 6 years: 0.045" in lines[2]  # 0.1 * sqrt(1 - 1 / 1.25)
    assert lines[3] == "Distance of the nearest change of category alone: job 1.4 (a to b)."


BAD = [
    (people(10)[:, :5], "x0", "6 columns"),
    (people(10)[0], "x0", "6 columns"),
    (people(1), "x0", "two or more"),
    (np.full((4, WIDTH), np.nan), "x0", r"X\[0, 0\] is nan"),
    ([["a"] * WIDTH] * 3, "x0", "numbers"),
    (people(10), [], "name features"),
    (people(10), [3], "name features"),
    (people(10), ["height"], "'height'.*\n.*values"),
    (people(10), {"group": np.arange(9)}, "'group'.*10 values"),
    (people(10), {"group": np.ones((10, 2))}, "'group'.*one-hot"),
    (people(10), {"group": ["a"] * 10}, "'group'.*same value"),
    (people(10), {"group": [math.inf, *range(9)]}, "'group'.*finite"),
    (people(10), [f"x{i}" for i in range(WIDTH)], "every feature is sensitive"),
    (people(10), {f"g{i}": people(10)[:, i] for i in range(WIDTH)}, "nothing is left"),
]


@pytest.mark.parametrize(("X", "sensitive", "culprit"), BAD)
def test_what_cannot_be_learnt_from_is_refused(X: Array, sensitive: list[str], culprit: str) -> None:
    with pytest.raises(MetricError, match=culprit) as caught:
        learn_mahalanobis(X, sensitive, DOMAIN)
    assert str(caught.value).count("\n") < 3


def test_options_that_make_no_sense_are_refused() -> None:
    X = people(10)
    with pytest.raises(MetricError, match="ridge"):
        learn_mahalanobis(X, "x0", DOMAIN, ridge=0.0)
    with pytest.raises(MetricError, match="'vibes'"):
        learn_weights(X, "x0", DOMAIN, by="vibes")
    with pytest.raises(MetricError, match="units"):
        learn_embedding(X, X[:, 0], DOMAIN, units=0)
    with pytest.raises(MetricError, match="y must be 10"):
        learn_embedding(X, X[:9, 0], DOMAIN)
    with pytest.raises(MetricError, match="same for everyone"):
        learn_embedding(X, np.ones(10), DOMAIN)
    with pytest.raises(MetricError, match="finite"):
        learn_embedding(X, np.full(10, np.nan), DOMAIN)
