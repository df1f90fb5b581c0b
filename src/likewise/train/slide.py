"""The worst neighbours where the metric has a null space: people slide along what it does not see, box end to box end.

There the linear maximum of local.py has no closed form to start from. Instead the slope of the network pushes d, box
and ball pull it back in turn, and what they disagree on is remembered (the alternating direction method of
multipliers, with a push that dies down). Every so often d is drawn into both, and the best of these points is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from likewise.train.bound import TwinBound
from likewise.train.layers import Layers, output_of, slope_of

ROUNDS = 300
PUSH = 0.5  # at first, in units of the columns
LAST = 0.02  # of the push, at the end
LOOK = 5  # rounds between two looks at the output
NEWTON = 3  # steps towards the multiplier of the ball, each time from the last one
FLAT = 1e-12  # an axis that is stretched by less than the root of this, relatively, is one that the metric does not see
NARROW = 1e-12  # the least radius to project on; points are drawn into the ball itself afterwards
TINY = 1e-300


@dataclass(frozen=True, slots=True, eq=False)
class Ball:
    """{d: ||A d||_2 <= eps} by its axes, to project on."""

    axes: Tensor
    squares: Tensor  # of A's stretching along each axis
    eps: float

    def project(self, points: Tensor, price: Tensor) -> tuple[Tensor, Tensor]:
        """Return the points nearly projected, and the multipliers, which are near `price`.

        The multiplier of a point outside is the root of 1 / size - 1 / eps, which is close to linear in it.
        """
        along = points @ self.axes
        for _ in range(NEWTON):
            kept = 1 / (1 + price * self.squares)
            size = (self.squares * (along * kept) ** 2).sum(dim=1, keepdim=True).clamp(min=TINY)
            fall = (self.squares**2 * along**2 * kept**3).sum(dim=1, keepdim=True).clamp(min=TINY)
            price = (price + (1 / self.eps - size**-0.5) * size**1.5 / fall).clamp(min=0.0)
        return (along / (1 + price * self.squares)) @ self.axes.T, price


def slide(
    layers: Layers, entering: Tensor, free: Tensor, bound: TwinBound, low: Tensor, high: Tensor, sign: float
) -> tuple[Tensor, Tensor]:
    """Return the d with the highest (or lowest) output that was found for each person, and that output."""
    squares, axes = torch.linalg.eigh(bound.matrix.T @ bound.matrix)
    ball = Ball(axes, torch.where(squares > FLAT * squares.max(), squares, 0.0), max(bound.eps, NARROW))
    best, reached = torch.zeros_like(low), sign * output_of(layers, entering)
    d, inside, memory = torch.zeros_like(low), torch.zeros_like(low), torch.zeros_like(low)
    price = torch.zeros_like(low[:, :1])
    for k in range(ROUNDS):
        rows = sign * (slope_of(layers, torch.addmm(entering, d, free.T), 0.0) @ free)
        push = PUSH * max(1 - k / ROUNDS, LAST) / torch.linalg.vector_norm(rows, dim=1, keepdim=True).clamp(min=TINY)
        d = torch.maximum(torch.minimum(inside - memory + push * rows, high), low)
        inside, price = ball.project(d + memory, price)
        memory = memory + d - inside
        if k % LOOK == LOOK - 1:
            size = torch.linalg.vector_norm(d @ bound.matrix.T, dim=1, keepdim=True)
            drawn = d * torch.clamp(bound.eps / size.clamp(min=TINY), max=1.0)
            value = sign * output_of(layers, torch.addmm(entering, drawn, free.T))
            better = value > reached
            best, reached = torch.where(better[:, None], drawn, best), torch.where(better, value, reached)
    return best, sign * reached
