"""FairMLPClassifier and FairMLPRegressor: the training methods with the manners of scikit-learn.

Without a domain, everyone between the smallest and the largest value of each column can exist; without a metric, the
largest difference of any column is the distance. `certify()` proves what was fitted; with `delta` fitting does so too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from likewise.certificate import Certificate
from likewise.domain import Continuous, Domain
from likewise.metric import Metric, WeightedLp
from likewise.network import Network
from likewise.rounding import Array
from likewise.train.examples import Examples
from likewise.train.run import certifier, train
from likewise.train.settings import Settings, settings_of

OPTIONS = ("hidden", "eps", "delta", "epochs", "batch", "rate", "l2", "validation", "patience")


class _FairMLP(BaseEstimator):  # type: ignore[misc]
    """What both estimators share; see them for the parameters."""

    def __init__(
        self,
        domain: Domain | None = None,
        metric: Metric | None = None,
        *,
        method: str = "certified",
        hidden: tuple[int, ...] = (16, 16),
        eps: float = 0.2,
        delta: float | None = None,
        epochs: int = 30,
        batch: int | None = None,
        rate: float = 0.01,
        l2: float = 3.0,
        validation: float = 0.1,
        patience: int = 15,
        seconds: float = 10.0,
        options: dict[str, Any] | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.domain = domain
        self.metric = metric
        self.method = method
        self.hidden = hidden
        self.eps = eps
        self.delta = delta
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.l2 = l2
        self.validation = validation
        self.patience = patience
        self.seconds = seconds
        self.options = options
        self.random_state = random_state

    def _settings(self, **more: Any) -> Settings:
        given = {name: getattr(self, name) for name in OPTIONS}
        certify = self.seconds if self.delta is not None else 0.0
        seed = self.random_state
        if seed is None:
            seed = int(np.random.default_rng().integers(2**31))
        elif not hasattr(seed, "__index__"):  # a RandomState, which scikit-learn allows
            seed = int(check_random_state(seed).randint(2**31))
        return settings_of(self.method, {**given, "certify": certify, "seed": seed, **more, **(self.options or {})})

    def _train(self, X: Array, y: Array, kind: str, **more: Any) -> None:
        domain = self.domain or _range(X)
        metric = self.metric or WeightedLp(np.ones(X.shape[1]))
        self.examples_ = Examples(X, y, X[:0], y[:0], domain, metric, kind=kind)
        trained = train(self.examples_, self._settings(**more))
        self.network_: Network = trained.network
        self.history_ = trained.history
        self.settings_ = trained.settings
        self.certificate_: Certificate | None = trained.certificate
        self.n_iter_ = len(trained.history)

    def certify(self, seconds: float | None = None) -> Certificate:
        """Return the certificate of the fitted network, for the eps, domain and metric of the estimator."""
        check_is_fitted(self, "network_")
        asked = {**{name: getattr(self.settings_, name) for name in ("eps", "delta")}}
        settings = settings_of("certified", {**asked, "certify": seconds or self.seconds})
        self.certificate_ = certifier(self.examples_, settings, None)(self.network_)
        return self.certificate_

    def _scores(self, X: ArrayLike) -> Array:
        check_is_fitted(self, "network_")
        return self.network_(validate_data(self, X, reset=False, dtype=np.float64))


class FairMLPClassifier(ClassifierMixin, _FairMLP):  # type: ignore[misc]
    """A multi-layer perceptron for two classes that treats similar people alike.

    `domain` and `metric` say who can exist and who is similar; `method`, `hidden`, `eps`, `delta` and the rest are
    those of likewise.train, `options` any others of them by name. `balanced` draws as many people of either class into
    each batch; `calibrate` folds Platt scaling into the last layer. After fitting: `network_`, `history_`,
    `certificate_`.
    """

    def __init__(
        self,
        domain: Domain | None = None,
        metric: Metric | None = None,
        *,
        method: str = "certified",
        hidden: tuple[int, ...] = (16, 16),
        eps: float = 0.2,
        delta: float | None = None,
        balanced: bool = True,
        calibrate: bool = True,
        epochs: int = 30,
        batch: int | None = None,
        rate: float = 0.01,
        l2: float = 3.0,
        validation: float = 0.1,
        patience: int = 15,
        seconds: float = 10.0,
        options: dict[str, Any] | None = None,
        random_state: int | None = 0,
    ) -> None:
        super().__init__(
            domain, metric, method=method, hidden=hidden, eps=eps, delta=delta, epochs=epochs, batch=batch, rate=rate,
            l2=l2, validation=validation, patience=patience, seconds=seconds, options=options,
            random_state=random_state,
        )  # fmt: skip
        self.balanced = balanced
        self.calibrate = calibrate

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike) -> FairMLPClassifier:
        """Train on people X (n, columns) and their classes, of which there must be two."""
        people, classes = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(classes)
        kind = type_of_target(classes, input_name="y", raise_unknown=True)
        self.classes_, codes = np.unique(classes, return_inverse=True)
        if kind != "binary" and len(self.classes_) > 2:
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        if len(self.classes_) < 2:
            raise ValueError(f"FairMLPClassifier needs two classes, got 1 class: {self.classes_[0]!r}")
        self._train(people, codes.astype(np.float64), "classes", balanced=self.balanced, calibrate=self.calibrate)
        return self

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the scores of both classes, (n, 2)."""
        scores = self._scores(X)
        return np.column_stack([1.0 - scores, scores])

    def decision_function(self, X: ArrayLike) -> Array:
        """Return the logit of the second class."""
        check_is_fitted(self, "network_")
        return self.network_.logit()(validate_data(self, X, reset=False, dtype=np.float64))

    def predict(self, X: ArrayLike) -> Any:
        """Return the class of each person."""
        scores = self._scores(X)
        return self.classes_[(scores > 0.5).astype(int)]


class FairMLPRegressor(RegressorMixin, _FairMLP):  # type: ignore[misc]
    """A multi-layer perceptron for numbers that treats similar people alike; parameters as FairMLPClassifier."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> FairMLPRegressor:
        """Train on people X (n, columns) and their outcomes."""
        people, outcomes = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        self._train(people, np.asarray(outcomes, dtype=np.float64), "numbers")
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Return the outcome of each person."""
        return self._scores(X)


def _range(X: Array) -> Domain:
    """Return the domain of everyone between the smallest and the largest value of each column."""
    return Domain(
        Continuous(f"column {i}", float(low), float(high))
        for i, (low, high) in enumerate(zip(X.min(axis=0), X.max(axis=0), strict=True))
    )
