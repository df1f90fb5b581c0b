"""From settings to layers: one run of the loop, or the rounds towards a delta, resumable at every epoch.

With a delta the first round keeps the differentiable bound at what delta allows. The certifier is exacter than the
bound, so the next round allows the bound more by what was left, starting from the weights so far. The answer is the
network of the round with the lowest validation loss among those whose certificate says upper <= delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from likewise.certificate import Certificate
from likewise.network import Layer, Network
from likewise.train import checkpoint
from likewise.train.calibrate import folded, platt
from likewise.train.certified import certified, limit_of
from likewise.train.layers import Layers, logits, tensor, to_network
from likewise.train.loop import Progress, State, answer, fit, start
from likewise.train.method import Context, Method

SPARE = 0.1  # a round is worth it if the certificate leaves at least this share of delta
MOST = 2.0  # and the limit grows by no more than this factor
SAFE = 1 - 1e-7  # the limit is kept by this much more than exactly, for the rounding of the certifier
SHRINK = 0.9
AGAIN = 0.5  # later rounds train for this share of the epochs
TRIES = 5

Certify = Callable[[Network], Certificate]
Resumed = tuple[State, dict[str, Any]] | None


@dataclass(frozen=True, slots=True, eq=False)
class Keeper:
    """Where and as what the state is kept; without a path, nowhere."""

    path: Path | None
    asked: str

    def __call__(self, state: State, outer: dict[str, Any]) -> None:
        """Write the state."""
        if self.path is not None:
            checkpoint.save(self.path, self.asked, state, outer)


def deployed(context: Context, method: Method, state: State) -> Network:
    """Return what will be used: the best epoch's network, calibrated, or in the outcomes' own units."""
    layers = answer(method, state)
    if not context.is_classes:
        return folded(to_network(layers, False), context.unit, context.shift)
    if not context.settings.calibrate:
        return to_network(layers, True)
    return folded(to_network(layers, True), *_calibration(context, layers))


def _calibration(context: Context, layers: Layers) -> tuple[float, float]:
    examples = context.examples
    with torch.no_grad():
        scores = logits(layers, tensor(examples.X_train)).numpy()
    return platt(scores, examples.y_train, context.settings.balanced)


def settle(context: Context, method: Method, state: State) -> None:
    """Repeat the calibration until the limit, which is about calibrated logits, agrees with it."""
    if not (context.is_classes and context.settings.calibrate):
        return
    for _ in range(TRIES):
        slope = _calibration(context, answer(method, state))[0]
        done = abs(slope - state.best_slope) <= 1e-9 * slope
        state.best_slope = slope * (1 + 1e-9)
        if done:
            return


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """A finished round: what it came to, and how."""

    loss: float
    network: Network
    proven: Certificate
    history: list[dict[str, float]]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return the round as plain values, without its certificate."""
        layers = [(layer.weight.tolist(), layer.bias.tolist(), layer.activations[0]) for layer in self.network.layers]
        return {"loss": self.loss, "layers": layers, "history": self.history, "seconds": self.seconds}


def _round_from_json(plain: dict[str, Any], certify: Certify) -> Round:
    network = Network(Layer(*layer) for layer in plain["layers"])
    return Round(plain["loss"], network, certify(network), plain["history"], plain["seconds"])


def towards(
    context: Context, begin: Layers, certify: Certify, keeper: Keeper, progress: Progress | None, resumed: Resumed
) -> tuple[Round, list[Round]]:
    """Return the best round towards settings.delta, which holds if its certificate says so, and all the rounds."""
    delta = context.settings.delta
    assert delta is not None
    limit: float | None = limit_of(delta, context.is_classes, context.unit) * SAFE
    state, rounds = None, []
    if resumed is not None:
        state, outer = resumed
        limit = float(outer["limit"])
        rounds = [_round_from_json(plain, certify) for plain in outer["rounds"]]
    while limit is not None and len(rounds) < context.settings.rounds:
        state = state or start(begin, context.settings.seed + 1000 * len(rounds))
        done, begin = _one_round(context, limit, state, certify, keeper, progress, rounds)
        rounds.append(done)
        state, limit = None, _next_limit(limit, done.proven.upper, delta, context)
    good = [one for one in rounds if one.proven.upper <= delta]
    best = min(good, key=lambda one: one.loss) if good else min(rounds, key=lambda one: one.proven.upper)
    return best, rounds


def _one_round(
    context: Context,
    limit: float,
    state: State,
    certify: Certify,
    keeper: Keeper,
    progress: Progress | None,
    before: list[Round],
) -> tuple[Round, Layers]:
    epochs = max(1, round((AGAIN if before else 1.0) * context.settings.epochs))
    now = replace(context, settings=replace(context.settings, epochs=epochs))
    method = certified(now, limit)
    outer = {"limit": limit, "rounds": [one.to_json() for one in before]}
    fit(now, method, state, progress=progress, keep=lambda after: keeper(after, outer))
    settle(now, method, state)
    network = deployed(now, method, state)
    history = [{"round": len(before), **line} for line in state.history]
    done = Round(state.best_loss, network, certify(network), history, state.seconds)
    return done, state.layers(state.best)


def _next_limit(limit: float, upper: float, delta: float, context: Context) -> float | None:
    """Return the limit of the next round, or None if another round is not worth it."""
    if not math.isfinite(upper) or upper > delta:
        return limit * SHRINK * (min(1.0, delta / upper) if math.isfinite(upper) else 0.5)
    if upper >= (1 - SPARE) * delta or upper <= 0.0:
        return None
    allowed, used = (limit_of(value, context.is_classes, context.unit) for value in (delta, upper))
    return limit * min(MOST, allowed / used) * (1 - 1e-3)
