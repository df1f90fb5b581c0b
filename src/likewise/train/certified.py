"""certified: the loss carries a sound bound on the difference between any two similar people, or the network keeps it.

With a limit, the free columns of the first layer are scaled at every step so that the bound holds: what is trained is
accuracy alone. Without one, the loss has penalty * tanh(D / 4), D the bound on the calibrated logits (in a regression
D itself, in units of the outcomes' standard deviation), switched on over the first half.

For classes a share of the loss only asks on which side of 1/2 a score falls. A slope that is limited is then spent
where decisions are made, and not on people who are far from any.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from likewise.train.layers import Layers, logits
from likewise.train.local import require_exact, worst_neighbours
from likewise.train.method import Context, Method, plain_losses, to_score

RAMP = 0.5  # the share of the training over which the penalty grows


def certified(context: Context, limit: float | None) -> Method:
    """Return the method; `limit` is that of the bound on the calibrated logits (or the trained outcomes)."""
    settings, bound, losses = context.settings, context.bound, _losses(context)

    if settings.local:
        require_exact(bound)

    def each(layers: Layers, X: Tensor, y: Tensor, share: float) -> Tensor:
        values = logits(layers, X)
        total = losses(values, y)
        if limit is None and settings.penalty:
            weight = settings.penalty * min(1.0, share / RAMP)
            total = total + weight * _size(bound.logit(layers), context.is_classes)
        if settings.local:
            near = logits(layers, worst_neighbours(layers, X, bound, context.is_classes))
            apart = to_score(near, context.is_classes) - to_score(values, context.is_classes)
            total = total + settings.local * apart.abs()
        return total

    def loss(layers: Layers, X: Tensor, y: Tensor, share: float) -> Tensor:
        return each(layers, X, y, share).mean()

    def judged(layers: Layers, X: Tensor, y: Tensor) -> Tensor:
        return each(layers, X, y, 1.0)

    def effective(raw: Layers, slope: float) -> Layers:
        return bound.seeing(raw) if limit is None else bound.within(raw, limit / max(slope, 1e-9))

    return Method(loss, judged, effective, ready=RAMP if limit is None else 0.0)


def _losses(context: Context) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the log loss mixed with a smooth count of wrong decisions, or the squared error."""
    plain = plain_losses(context)
    share = context.settings.decision_of()
    sharpness = context.settings.sharpness
    if not context.is_classes or not share:
        return plain
    return lambda values, y: (1 - share) * plain(values, y) + share * torch.sigmoid(sharpness * values * (1 - 2 * y))


def _size(difference: Tensor, is_classes: bool) -> Tensor:
    return torch.tanh(difference / 4) if is_classes else difference


def limit_of(delta: float, is_classes: bool, unit: float) -> float:
    """Return the difference of logits (or of trained outcomes) that implies a difference of scores of delta."""
    if not is_classes:
        return delta / unit
    return 4 * math.atanh(delta) if delta < 1 else math.inf


def delta_of(difference: float, is_classes: bool, unit: float) -> float:
    """Return the difference of scores that a difference of logits (or of trained outcomes) implies at most."""
    return math.tanh(difference / 4) if is_classes else difference * unit
