"""What a method of training is: how its loss is made of a batch, and what the network really is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from likewise.train.bound import TwinBound
from likewise.train.examples import Examples
from likewise.train.layers import Layers
from likewise.train.settings import Settings


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """What a method is made from. Outcomes of a regression are trained on as (y - shift) / unit."""

    examples: Examples
    settings: Settings
    bound: TwinBound
    shift: float
    unit: float

    @property
    def is_classes(self) -> bool:
        """Whether the outcomes are classes."""
        return self.examples.is_classes


def unchanged(raw: Layers, slope: float) -> Layers:
    """Return the layers as they are."""
    return raw


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """A method, as what is special about it.

    `loss(layers, X, y, share)` is the loss of a batch, without l2, after this share of the training; `judged(layers, X,
    y)` is what it is at the end, person by person, for early stopping. The network really is `effective(raw, slope)` of
    the tensors that are trained, `slope` being that of the calibration so far. Only epochs after the share `ready` may
    be chosen by early stopping; at `reset` Adam forgets.
    """

    loss: Callable[[Layers, Tensor, Tensor, float], Tensor]
    judged: Callable[[Layers, Tensor, Tensor], Tensor]
    effective: Callable[[Layers, float], Layers] = unchanged
    ready: float = 0.0
    reset: float | None = None
    is_steady: bool = False  # a constant rate, and the last epoch is the answer


def plain_losses(context: Context) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the log loss of logits, or the squared error, person by person."""
    if context.is_classes:
        return lambda values, y: functional.binary_cross_entropy_with_logits(values, y, reduction="none")
    return lambda values, y: functional.mse_loss(values, y, reduction="none")


def to_score(values: Tensor, is_classes: bool) -> Tensor:
    """Return scores from what the layers give."""
    return torch.sigmoid(values) if is_classes else values
