"""The one loop that every method goes through: batches, Adam, early stopping, history, progress, checkpoints."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise.errors import InputError
from likewise.rounding import Array
from likewise.train.calibrate import class_weights, platt
from likewise.train.certified import delta_of
from likewise.train.layers import Layers, logits, tensor
from likewise.train.measures import balanced_accuracy, mean_squared_error
from likewise.train.method import Context, Method

LEAST_RATE = 1e-2  # the share of the rate that is left at the end
BETTER = 1e-5  # by how much a loss must fall to count as progress, relatively

Progress = Callable[[dict[str, float]], None]


@dataclass(slots=True, eq=False)
class State:
    """Where the loop is: all that the next epoch depends on, and what was found so far."""

    raw: list[Tensor]  # weight, bias, weight, bias, ...
    moments: list[tuple[Tensor, Tensor]]  # Adam's, of each of them
    rng: np.random.Generator
    epoch: int = 0
    steps: int = 0  # since Adam last forgot
    slope: float = 1.0  # of the calibration
    best: list[Tensor] = field(default_factory=list)
    best_slope: float = 1.0
    best_loss: float = math.inf
    waited: int = 0
    seconds: float = 0.0
    history: list[dict[str, float]] = field(default_factory=list)

    def layers(self, of: list[Tensor]) -> Layers:
        """Return tensors two by two."""
        return list(zip(of[::2], of[1::2], strict=True))


def start(layers: Layers, seed: int) -> State:
    """Return the state before the first epoch."""
    raw = [part.detach().clone().requires_grad_() for layer in layers for part in layer]
    moments = [(torch.zeros_like(part), torch.zeros_like(part)) for part in raw]
    return State(raw, moments, np.random.default_rng((seed, 1)))


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """The people to fit and to validate on, as tensors, and the weights of the validation people."""

    X: Tensor
    y: Tensor
    X_held: Tensor
    y_held: Tensor
    weights: Tensor


def parts_of(context: Context) -> Parts:
    """Return the training people, split by the seed."""
    examples, settings = context.examples, context.settings
    fit, held = examples.split(settings.validation, np.random.default_rng((settings.seed, 2)))
    if not len(held):
        held = fit
    y = (examples.y_train - context.shift) / context.unit
    weights = class_weights(y[held]) if context.is_classes and settings.balanced else np.ones(len(held))
    X = examples.X_train
    return Parts(tensor(X[fit]), tensor(y[fit]), tensor(X[held]), tensor(y[held]), tensor(weights))


def batches(y: Array, size: int, balanced: bool, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield rows, as many as there are people in all; balanced, as many of either class, some of them again."""
    count = max(1, math.ceil(len(y) / size))
    if not balanced:
        yield from np.array_split(rng.permutation(len(y)), count)
        return
    half = max(1, min(size, len(y)) // 2)
    streams = []
    for kind in (0.0, 1.0):
        rows = np.flatnonzero(y == kind)
        rounds = math.ceil(count * half / len(rows))
        streams.append(np.concatenate([rng.permutation(rows) for _ in range(rounds)])[: count * half])
    for k in range(count):
        yield np.concatenate([stream[k * half : (k + 1) * half] for stream in streams])


def fit(
    context: Context,
    method: Method,
    state: State,
    *,
    progress: Progress | None = None,
    keep: Callable[[State], None] | None = None,
) -> State:
    """Train from a state to the last epoch, or until the validation loss has not fallen for `patience` epochs.

    `keep` is called with the state after every epoch. The answer is in `best`.
    """
    parts, settings = parts_of(context), context.settings
    while state.epoch < settings.epochs and state.waited < settings.patience:
        started = time.perf_counter()
        loss = _epoch(context, method, state, parts)
        _look(context, method, state, parts)
        state.seconds += time.perf_counter() - started
        state.history.append({"epoch": state.epoch, "loss": loss, **_news(context, method, state, parts)})
        if progress is not None:
            progress(state.history[-1])
        if keep is not None:
            keep(state)
    return state


def answer(method: Method, state: State) -> Layers:
    """Return the layers of the best epoch, as the network really is."""
    with torch.no_grad():
        return method.effective(state.layers(state.best), state.best_slope)


def _epoch(context: Context, method: Method, state: State, parts: Parts) -> float:
    """Pass the people once, and return the mean loss."""
    settings = context.settings
    balanced = settings.balanced and context.is_classes
    if method.reset is not None and state.epoch == round(method.reset * settings.epochs):
        state.moments = [(torch.zeros_like(part), torch.zeros_like(part)) for part in state.raw]
        state.steps = 0
    rows = list(batches(parts.y.numpy(), settings.batch_of(len(parts.y)), balanced, state.rng))
    total = 0.0
    for k, chosen in enumerate(rows):
        share = (state.epoch + k / len(rows)) / settings.epochs
        index = torch.as_tensor(chosen)
        layers = method.effective(state.layers(state.raw), state.slope)
        loss = method.loss(layers, parts.X[index], parts.y[index], share)
        squares = torch.stack([(weight**2).sum() for weight, _ in layers]).sum()
        loss = loss + settings.l2 / len(parts.y) * squares
        if not bool(torch.isfinite(loss)):
            raise InputError(
                f"the loss is not finite in epoch {state.epoch + 1}: training has diverged\n"
                f"give a smaller rate (it is {settings.rate:g}), or scale the columns of the data"
            )
        slopes = torch.autograd.grad(loss, state.raw, allow_unused=True)
        _adam(state, slopes, settings.rate * (1.0 if method.is_steady else _cosine(share)))
        total += float(loss.detach())
    state.epoch += 1
    return total / len(rows)


def _cosine(share: float) -> float:
    return LEAST_RATE + (1 - LEAST_RATE) * (1 + math.cos(math.pi * share)) / 2


def _adam(state: State, slopes: Any, rate: float) -> None:
    """Take one step of Adam (0.9, 0.999, 1e-8)."""
    state.steps += 1
    one, two = 1 - 0.9**state.steps, 1 - 0.999**state.steps
    with torch.no_grad():
        for part, slope, (first, second) in zip(state.raw, slopes, state.moments, strict=True):
            if slope is None:
                continue
            first.mul_(0.9).add_(slope, alpha=0.1)
            second.mul_(0.999).addcmul_(slope, slope, value=0.001)
            part.addcdiv_(first, (second / two).sqrt_().add_(1e-8), value=-rate / one)


def _look(context: Context, method: Method, state: State, parts: Parts) -> None:
    """Calibrate, and remember the weights if their validation loss is the lowest so far."""
    share = state.epoch / context.settings.epochs
    with torch.no_grad():
        layers = method.effective(state.layers(state.raw), state.slope)
        if context.is_classes and context.settings.calibrate:
            scores = logits(layers, parts.X).numpy()
            state.slope = platt(scores, parts.y.numpy(), context.settings.balanced)[0]
    if share < method.ready:
        return
    loss = 0.0  # of no use if the last epoch is the answer anyway
    if not method.is_steady:
        layers = [(weight.detach(), bias.detach()) for weight, bias in layers]
        loss = float((parts.weights * method.judged(layers, parts.X_held, parts.y_held)).mean())
    if method.is_steady or loss < state.best_loss - BETTER * abs(state.best_loss) or not state.best:
        state.best = [part.detach().clone() for part in state.raw]
        state.best_loss, state.best_slope, state.waited = loss, state.slope, 0
    else:
        state.waited += 1


def _news(context: Context, method: Method, state: State, parts: Parts) -> dict[str, float]:
    """Return what people want to see after an epoch: accuracy on the validation people, and the bound on delta."""
    with torch.no_grad():
        layers = method.effective(state.layers(state.raw), state.slope)
        scores, y = logits(layers, parts.X_held).numpy(), parts.y_held.numpy()
        difference = float(context.bound.logit(layers)) * (state.slope if context.is_classes else 1.0)
    news = {"delta_bound": delta_of(difference, context.is_classes, context.unit), "seconds": state.seconds}
    if context.is_classes:
        return {"balanced_accuracy": balanced_accuracy(y, scores > 0), **news}
    return {"mse": mean_squared_error(y, scores) * context.unit**2, **news}
