"""FairMLPClassifier and FairMLPRegressor behave as scikit-learn's own."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import check_estimator

import likewise as lw

X, Y = make_classification(n_samples=150, n_features=4, random_state=0)
SMALL = {"hidden": (4,), "epochs": 4}


@pytest.mark.filterwarnings("ignore")  # of scikit-learn's own checks
@pytest.mark.parametrize("kind", ["FairMLPClassifier", "FairMLPRegressor"])
def test_scikit_learns_own_checks(kind: str) -> None:
    estimator = getattr(lw, kind)(hidden=(8,), epochs=15)
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []
    assert sum(r["status"] == "passed" for r in results) > 40


def test_in_pipelines_searches_and_folds() -> None:
    line = make_pipeline(MinMaxScaler(), lw.FairMLPClassifier(**SMALL))
    assert cross_val_score(line, X, Y, cv=2).mean() > 0.5
    search = GridSearchCV(line, {"fairmlpclassifier__eps": [0.05, 0.1]}, cv=2).fit(X, Y)
    assert search.best_params_["fairmlpclassifier__eps"] in (0.05, 0.1)


def test_clone_pickle_and_parameters() -> None:
    first = lw.FairMLPClassifier(eps=0.3, **SMALL)
    assert clone(first).get_params() == first.get_params()
    fitted = first.fit(X, Y)
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301 - our own
    assert np.array_equal(again.predict_proba(X), fitted.predict_proba(X))


def test_delta_is_certified_on_fitting() -> None:
    scaled = MinMaxScaler().fit_transform(X)
    fitted = lw.FairMLPClassifier(delta=0.05, seconds=5, **SMALL).fit(scaled, Y)
    assert fitted.certificate_ is not None
    assert fitted.certificate_.upper <= 0.05
    plain = lw.FairMLPClassifier(method="ftu", **SMALL).fit(scaled, Y)
    assert plain.certificate_ is None
    assert plain.certify(seconds=2).upper >= 0


def test_a_regressor_of_zeros_and_ones_is_one() -> None:
    fitted = lw.FairMLPRegressor(**SMALL).fit(X, Y)
    assert fitted.network_.layers[-1].activations == ("identity",)
    assert fitted.score(X, Y) <= 1.0


def test_classes_keep_their_names() -> None:
    names = np.array(["no", "yes"])[Y]
    fitted = lw.FairMLPClassifier(**SMALL).fit(X, names)
    assert set(fitted.predict(X)) <= {"no", "yes"}
    assert np.allclose(fitted.predict_proba(X).sum(axis=1), 1.0)
    with pytest.raises(ValueError, match="Only binary"):
        lw.FairMLPClassifier(**SMALL).fit(X, np.arange(len(X)) % 3)
