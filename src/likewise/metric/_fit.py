"""The small fits behind metric learning: ridge regression, softmax regression, and a network of a few layers.

All three are deterministic: L-BFGS from a start that is zero, or drawn from a seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from scipy.special import log_softmax

from likewise.activations import by_name
from likewise.rounding import Array

Loss = Callable[[Array], tuple[float, Array]]
Shapes = Sequence[tuple[int, ...]]


def linear(X: Array, values: Array, ridge: float) -> Array:
    """Return the direction (1, columns) of least squares with a free intercept and ridge / 2 * |a|^2."""
    centred = X - X.mean(axis=0)
    gram = centred.T @ centred + ridge * np.eye(X.shape[1])
    direction: Array = np.linalg.solve(gram, centred.T @ (values - values.mean()))
    return direction[None]


def softmax(X: Array, codes: np.ndarray, classes: int, ridge: float) -> Array:
    """Return a direction per class (of the second of two), by log loss summed over people and ridge / 2 * |a|^2.

    Two classes share one direction: the logit of the first is held at 0. The search runs in coordinates in which
    the columns are uncorrelated and of size 1, where a few dozen steps are enough.
    """
    rows, n = 1 if classes == 2 else classes, len(X)
    centred = X - X.mean(axis=0)
    root = np.linalg.cholesky((centred.T @ centred + ridge * np.eye(X.shape[1])) / n)
    plain = solve_triangular(root, centred.T, lower=True).T
    shapes = ((rows, X.shape[1]), (rows,))

    def directions(inner: Array) -> Array:
        found: Array = solve_triangular(root, inner.T, lower=True, trans="T").T
        return found

    def loss(flat: Array) -> tuple[float, Array]:
        inner, bias = _split(flat, shapes)
        logits = plain @ inner.T + bias
        value, slope = _log_loss(np.column_stack([np.zeros(n), logits]) if rows == 1 else logits, codes)
        slope, weight = slope[:, -rows:], directions(inner)
        pull = solve_triangular(root, weight.T, lower=True).T
        value += 0.5 * ridge / n * float((weight**2).sum())
        return value, _join([slope.T @ plain + ridge / n * pull, slope.sum(axis=0)])

    found = directions(_split(_minimise(loss, np.zeros(_size(shapes)), 3000), shapes)[0])
    return found if rows == 1 else found - found.mean(axis=0)  # at the optimum the directions sum to 0


def train(
    X: Array, outcomes: Array, activations: Sequence[str], widths: Sequence[int], seed: int, ridge: float
) -> list[Array]:
    """Return W0, b0, W1, b1, ... of a network whose last layer has one output (a number) or one per class.

    `outcomes` are whole numbers of a class (log loss), or floats (squared error). The loss is a mean over people.
    """
    rng = np.random.default_rng(seed)
    sizes = list(zip(widths[1:], widths[:-1], strict=True))
    shapes = [shape for out, into in sizes for shape in ((out, into), (out,))]
    start = _join(
        [part for out, into in sizes for part in (rng.normal(size=(out, into)) / np.sqrt(into), np.zeros(out))]
    )
    used = [by_name(name) for name in activations]
    measure = _log_loss if outcomes.dtype.kind == "i" else _square

    def loss(flat: Array) -> tuple[float, Array]:
        parts = _split(flat, shapes)
        entering, leaving = [], [X]
        for weight, bias, activation in zip(parts[::2], parts[1::2], used, strict=True):
            entering.append(leaving[-1] @ weight.T + bias)
            leaving.append(activation.value(entering[-1]))
        value, back = measure(leaving[-1], outcomes)
        slopes: list[Array] = []
        for i in reversed(range(len(used))):
            back = back * used[i].slope(entering[i])
            slopes += [back.sum(axis=0), back.T @ leaving[i] + ridge * parts[2 * i]]
            back = back @ parts[2 * i]
        return value + 0.5 * ridge * sum(float((w**2).sum()) for w in parts[::2]), _join(slopes[::-1])

    return _split(_minimise(loss, start, 300), shapes)


def _log_loss(logits: Array, codes: np.ndarray) -> tuple[float, Array]:
    """Return the mean log loss and its slope at the logits."""
    people = np.arange(len(codes))
    logs = log_softmax(logits, axis=1)
    slope: Array = np.exp(logs)
    slope[people, codes] -= 1.0
    return -float(logs[people, codes].mean()), slope / len(codes)


def _square(guesses: Array, values: Array) -> tuple[float, Array]:
    """Return half of the mean squared error and its slope at the guesses."""
    error = guesses[:, 0] - values
    return 0.5 * float((error**2).mean()), error[:, None] / len(values)


def _minimise(loss: Loss, start: Array, most: int) -> Array:
    found: Array = minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": most, "maxfun": 2 * most, "maxcor": 20, "ftol": 1e-14, "gtol": 1e-9},
    ).x
    return found


def _size(shapes: Shapes) -> int:
    return sum(int(np.prod(shape)) for shape in shapes)


def _split(flat: Array, shapes: Shapes) -> list[Array]:
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    return [part.reshape(shape) for part, shape in zip(np.split(flat, ends), shapes, strict=True)]


def _join(parts: Sequence[Array]) -> Array:
    return np.concatenate([part.ravel() for part in parts])
