"""sensr: training on the people that are most unfairly treated, after Yurochkin, Bower and Sun (ICLR 2020).

Each person is first moved along the sensitive directions, which the metric does not see, so that the loss grows, and
then in all directions at a price: loss(x') - price * d(x, x')^2. The network learns from where the people end up. The
budget is kept batch by batch: if the mean squared distance exceeds eps^2, the second move is shortened until it does
not. Both moves are Adam steps; as in the original, nothing keeps the moved people in the domain.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from likewise.errors import InputError
from likewise.metric.embedding import unfolded
from likewise.train.layers import Layers, logits, tensor
from likewise.train.method import Context, Method, plain_losses

SUBSPACE_RATE, FULL_RATE = 0.05, 0.01


def sensr(context: Context) -> Method:
    """Return the method."""
    metric, settings = context.examples.metric, context.settings
    if not metric.is_linear or metric.p != 2.0:
        raise InputError("the method sensr needs a Mahalanobis metric (a 2-norm without a curved embedding)")
    width = context.examples.domain.width
    matrix = unfolded(metric, settings.eps, np.ones(width))[0].matrix
    _, sizes, rows = np.linalg.svd(matrix)
    rank = int((sizes > 1e-9 * sizes.max(initial=0.0)).sum())
    hidden_directions, seen = tensor(rows[rank:]), tensor(matrix)
    losses = plain_losses(context)

    def moved(layers: Layers, X: Tensor, y: Tensor) -> Tensor:
        fixed = [(weight.detach(), bias.detach()) for weight, bias in layers]

        def harm(people: Tensor) -> Tensor:
            return losses(logits(fixed, people), y).sum()

        there = X
        if len(hidden_directions):
            start = torch.zeros(len(X), len(hidden_directions), dtype=torch.float64)
            along = _adam(lambda c: harm(X + c @ hidden_directions), start, settings.steps, SUBSPACE_RATE)
            there = X + along @ hidden_directions
        off = _adam(
            lambda d: harm(there + d) - settings.transport * ((there + d - X) @ seen.T).square().sum(),
            torch.zeros_like(X),
            settings.steps,
            FULL_RATE,
        )
        distance = ((there + off - X) @ seen.T).square().sum(dim=1).mean()
        kept = min(1.0, settings.eps / math.sqrt(max(float(distance), 1e-300)))
        return there + off * kept

    def judged(layers: Layers, X: Tensor, y: Tensor) -> Tensor:
        return losses(logits(layers, moved(layers, X, y)), y)

    return Method(lambda layers, X, y, share: judged(layers, X, y).mean(), judged)


def _adam(value: Callable[[Tensor], Tensor], at: Tensor, steps: int, rate: float) -> Tensor:
    """Climb from a point by Adam steps."""
    first, second = torch.zeros_like(at), torch.zeros_like(at)
    for k in range(1, steps + 1):
        here = at.detach().requires_grad_()
        slope = torch.autograd.grad(value(here), here)[0]
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        at = at + rate * (first / (1 - 0.9**k)) / ((second / (1 - 0.999**k)).sqrt() + 1e-8)
    return at.detach()
