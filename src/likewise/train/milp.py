"""milp: Algorithm 1 of the paper. For each person of the batch the worst neighbour x* is found, and

    loss = lambda L + (1 - lambda) |f(x) - f(x*)|,    lambda = 1 in the first half, then 1 - fairness.

`as_published` does what the released code does instead: lambda is 1/2 from the start, the fairness term compares
relu(logit) and comes in at half-time, only the neighbour with the highest score is looked for, Adam is reset at
half-time, the rate is constant, and the last epoch is the answer.
"""

from __future__ import annotations

import torch
from torch import Tensor

from likewise.train.inner import neighbours_of
from likewise.train.layers import Layers, logits
from likewise.train.method import Context, Method, plain_losses, to_score

HALF = 0.5


def milp(context: Context) -> Method:
    """Return the method."""
    settings = context.settings
    neighbours, losses = neighbours_of(context), plain_losses(context)

    def compared(values: Tensor) -> Tensor:
        return torch.relu(values) if settings.as_published else to_score(values, context.is_classes)

    def judged(layers: Layers, X: Tensor, y: Tensor) -> Tensor:
        values, near = logits(layers, X), neighbours(layers, X)
        apart = (compared(values) - compared(logits(layers, near))).abs()
        return (1 - settings.fairness) * losses(values, y) + settings.fairness * apart

    def loss(layers: Layers, X: Tensor, y: Tensor, share: float) -> Tensor:
        if share >= HALF:
            return judged(layers, X, y).mean()
        plain = losses(logits(layers, X), y).mean()
        return (1 - settings.fairness) * plain if settings.as_published else plain

    reset = HALF if settings.as_published else None
    return Method(loss, judged, ready=HALF, reset=reset, is_steady=settings.as_published)
