"""The two trivial baselines that stand in every comparison, and the constant.

A linear model of the columns that cannot differ within a similar pair has a delta of 0 exactly. `divided`
is a linear model of all columns whose logits are divided by a constant: its delta is as small as one likes and its
decisions do not change, which is why deltas are compared after calibration.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from likewise.network import Layer, Network
from likewise.rounding import Array
from likewise.train.calibrate import class_weights
from likewise.train.examples import Examples

RIDGE = 10.0  # half of this times the squared weights is added to the sum of the losses (benchmarks/train_choice.py)
NEWTON = 50


def linear(examples: Examples, columns: np.ndarray, balanced: bool, ridge: float = RIDGE) -> Network:
    """Return the logistic (or least-squares) regression on some columns, as a network of one layer."""
    X = examples.X_train[:, columns]
    weights = class_weights(examples.y_train) if balanced and examples.is_classes else np.ones(len(X))
    found = _regression(X, examples.y_train, weights, examples.is_classes, ridge)
    row = np.zeros((1, examples.domain.width))
    row[0, columns] = found[:-1]
    return Network([Layer(row, found[-1:], "sigmoid" if examples.is_classes else "identity")])


def _regression(X: Array, y: Array, weights: Array, is_classes: bool, ridge: float) -> Array:
    """Return coefficients and intercept by Newton's method (one step of which is least squares)."""
    wide = np.column_stack([X, np.ones(len(X))])
    pull = np.diag(np.r_[np.full(X.shape[1], ridge), 1e-9])
    at = np.zeros(wide.shape[1])
    for _ in range(NEWTON):
        z = wide @ at
        p = expit(z) if is_classes else z
        curve = weights * (p * (1 - p) if is_classes else 1.0)
        slope = wide.T @ (weights * (p - y)) + pull @ at
        step = np.linalg.solve((wide * curve[:, None]).T @ wide + pull, slope)
        at = at - step
        if np.abs(step).max() < 1e-10:
            break
    return at


def divided(network: Network, constant: float) -> Network:
    """Return the network with its output before the sigmoid divided by a constant."""
    last = network.layers[-1]
    return Network((*network.layers[:-1], Layer(last.weight / constant, last.bias / constant, last.activations)))
