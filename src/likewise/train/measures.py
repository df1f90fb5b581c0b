"""How good and how fair decisions are, on people with known outcomes. Fairlearn's measures need fairlearn."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

import numpy as np

from likewise.errors import MissingExtra
from likewise.network import Network
from likewise.rounding import Array


def accuracy(y: Array, decided: np.ndarray) -> float:
    """Return the share of right decisions."""
    return float(np.mean((y > 0.5) == decided))


def balanced_accuracy(y: Array, decided: np.ndarray) -> float:
    """Return the mean, over the classes that are there, of the share of right decisions."""
    shares = [np.mean((decided == kind)[(y > 0.5) == kind]) for kind in (False, True) if ((y > 0.5) == kind).any()]
    return float(np.mean(shares))


def mean_squared_error(y: Array, scores: Array) -> float:
    """Return the mean of the squared errors."""
    return float(np.mean((scores - y) ** 2))


def r_squared(y: Array, scores: Array) -> float:
    """Return the share of the variance that is explained; 0 if there is none to explain."""
    spread = float(np.var(y))
    return 1.0 - mean_squared_error(y, scores) / spread if spread else 0.0


def measured(network: Network, X: Array, y: Array, is_classes: bool) -> dict[str, float]:
    """Return the measures of accuracy that fit the outcomes."""
    scores = network(X)
    if not is_classes:
        return {"mse": mean_squared_error(y, scores), "r2": r_squared(y, scores)}
    return {"accuracy": accuracy(y, scores >= 0.5), "balanced_accuracy": balanced_accuracy(y, scores >= 0.5)}


def group_gaps(y: Array, decided: np.ndarray, groups: Mapping[str, np.ndarray]) -> dict[str, dict[str, float]]:
    """Return the equalised-odds and the demographic-parity difference of each sensitive feature, by Fairlearn."""
    if not groups:
        return {}
    if find_spec("fairlearn") is None:
        raise MissingExtra("fairlearn (for measures of group fairness)", "fairness")
    from fairlearn.metrics import demographic_parity_difference, equalized_odds_difference

    truth, guess = (y > 0.5).astype(int), decided.astype(int)
    return {
        name: {
            "equalised_odds": float(equalized_odds_difference(truth, guess, sensitive_features=values)),
            "demographic_parity": float(demographic_parity_difference(truth, guess, sensitive_features=values)),
        }
        for name, values in groups.items()
    }
