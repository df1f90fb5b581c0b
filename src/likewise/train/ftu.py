"""ftu: fairness through unawareness, the plain baseline. The sensitive features are not there, and that is all."""

from __future__ import annotations

from torch import Tensor

from likewise.train.layers import Layers, logits
from likewise.train.method import Context, Method, plain_losses


def ftu(context: Context) -> Method:
    """Return the method."""
    losses = plain_losses(context)

    def judged(layers: Layers, X: Tensor, y: Tensor) -> Tensor:
        return losses(logits(layers, X), y)

    return Method(lambda layers, X, y, share: judged(layers, X, y).mean(), judged)
