"""The worst neighbour of each person of a batch: x* = argmax |f(x) - f(x*)| with d(x, x*) <= eps, x* in the domain.

Categories that cannot flip are fixed, so the search is over the free columns d = x* - x alone. In both directions the
network is made linear where it stands, the linear function is maximised over ball and box at once, and the best of all
points visited is kept. Where relu layers are concerned a full step lands on another linear piece, so a few steps do.

The linear maximum over {||A d||_2 <= eps, low <= d <= high} is found by fixing columns at the bounds they violate and
solving for the others in closed form; every d that is returned is in the box and in the ball. Measured against a MILP
the mean gap is well below half a percent (benchmarks/train_inner.py): good for training, no proof.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from likewise.errors import InputError
from likewise.train.bound import TwinBound
from likewise.train.layers import Layers

STEPS = 6  # linear steps from each start
RIDGE = 1e-6  # added to A^T A, relatively, where it is singular
HALVINGS = 60


def require_exact(bound: TwinBound) -> None:
    """Refuse questions that the exact local engine does not solve."""
    if bound.can_flip:
        raise InputError(
            "solver='exact' needs categories that cannot change within eps, and here some can\n"
            "give a smaller eps, or solver='milp'"
        )
    if not bound.is_linear or not (bound.p == 2.0 or _is_diagonal(bound)):
        raise InputError(
            "solver='exact' is for weighted lp and Mahalanobis metrics\ngive solver='milp' or solver='gradient'"
        )


def _is_diagonal(bound: TwinBound) -> bool:
    matrix = bound.matrix[bound.matrix.abs().sum(dim=1) > 0]
    is_single = bool(((matrix != 0).sum(dim=1) == 1).all() and ((matrix != 0).sum(dim=0) <= 1).all())
    return is_single or not len(bound.free)


@torch.no_grad()
def worst_neighbours(layers: Layers, X: Tensor, bound: TwinBound, is_classes: bool, both: bool = True) -> Tensor:
    """Return the neighbour of each person whose score is farthest from theirs; with `both=False`, the highest."""
    if not len(bound.free):
        return X.clone()
    weight, bias = layers[0]
    entering, free = torch.addmm(bias, X, weight.T), weight[:, bound.free]
    low = (bound.lowest - X[:, bound.free]).clamp(max=0.0)
    high = (bound.highest - X[:, bound.free]).clamp(min=0.0)
    here = _above(layers, entering)[0]
    best, farthest = torch.zeros_like(low), torch.full_like(here, -1.0)
    for sign in (1.0, -1.0) if both else (1.0,):
        found, value = _climb(layers, entering, free, bound, low, high, sign)
        apart = (_squash(value, is_classes) - _squash(here, is_classes)).abs()
        better = apart > farthest
        best, farthest = torch.where(better[:, None], found, best), torch.where(better, apart, farthest)
    return X.index_copy(1, bound.free, X[:, bound.free] + best)


def _squash(values: Tensor, is_classes: bool) -> Tensor:
    return torch.sigmoid(values) if is_classes else values


def _climb(
    layers: Layers, entering: Tensor, free: Tensor, bound: TwinBound, low: Tensor, high: Tensor, sign: float
) -> tuple[Tensor, Tensor]:
    """Return the d with the highest (or lowest) output that linear steps from two starts find, and that output."""
    nothing = torch.zeros_like(low)
    value, slope = _above(layers, entering)
    best, reached = nothing, value
    for first in (slope, _all_on(layers, slope)):
        d, gain = nothing, value
        rows = first @ free
        for _ in range(STEPS):
            d = oracle(bound, sign * rows, low, high)
            gain, slope = _above(layers, entering + d @ free.T)
            better = sign * gain > sign * reached + 1e-12
            best, reached = torch.where(better[:, None], d, best), torch.where(better, gain, reached)
            if not bool(better.any()):
                break
            rows = slope @ free
    return best, reached


def _above(layers: Layers, entering: Tensor) -> tuple[Tensor, Tensor]:
    """Return the output, and its derivatives by what enters the first layer's activations."""
    values, on = entering, []
    for weight, bias in layers[1:]:
        on.append(values > 0)
        values = torch.addmm(bias, torch.relu(values), weight.T)
    slope = torch.ones(len(entering), 1, dtype=torch.float64)
    for (weight, _), active in zip(reversed(layers[1:]), reversed(on), strict=True):
        slope = (slope @ weight) * active
    return values[:, 0], slope


def _all_on(layers: Layers, like: Tensor) -> Tensor:
    """Return the derivatives as if every neuron were on: a second start, where all may be off."""
    slope = torch.ones(1, 1, dtype=torch.float64)
    for weight, _ in reversed(layers[1:]):
        slope = slope @ weight
    return slope.expand_as(like)


def oracle(bound: TwinBound, rows: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Return d in ball and box that makes rows.d largest, for each row."""
    if bound.p == 2.0:
        d = _ball(bound, rows, low, high)
    else:
        d = _separable(bound, rows, low, high)
    d = torch.maximum(torch.minimum(d, high), low)
    size = torch.linalg.vector_norm(d @ bound.matrix.T, bound.p, dim=1)
    return d * torch.clamp(bound.eps / size.clamp(min=1e-300), max=1.0)[:, None]


def _ball(bound: TwinBound, rows: Tensor, low: Tensor, high: Tensor) -> Tensor:
    gram = bound.matrix.T @ bound.matrix
    count = len(bound.free)
    gram = gram + RIDGE * gram.diagonal().mean().clamp(min=1e-300) * torch.eye(count, dtype=torch.float64)
    inverse = torch.linalg.inv(gram)
    direction = rows @ inverse
    d = direction * (bound.eps / (rows * direction).sum(dim=1).clamp(min=1e-300).sqrt())[:, None]
    fixed = torch.zeros_like(d, dtype=torch.bool)
    todo = torch.arange(len(d))
    for _ in range(count):
        out = (d[todo] < low[todo] - 1e-12) | (d[todo] > high[todo] + 1e-12)
        todo, out = todo[out.any(dim=1)], out[out.any(dim=1)]
        if not len(todo):
            break
        fixed[todo] |= out
        held = torch.where(fixed[todo], torch.maximum(torch.minimum(d[todo], high[todo]), low[todo]), 0.0)
        d[todo] = _with_fixed(gram, rows[todo], held, fixed[todo], bound.eps)
    return d


def _with_fixed(gram: Tensor, rows: Tensor, held: Tensor, fixed: Tensor, eps: float) -> Tensor:
    """Maximise over the ball with some columns held: the others follow them, and share what is left of the radius."""
    moving = ~fixed
    inside = (gram * (moving[:, :, None] & moving[:, None, :])) + torch.diag_embed(fixed.double())
    right = torch.stack([rows * moving, -(held @ gram) * moving], dim=2)
    solved = torch.linalg.solve(inside, right)
    direction, base = solved[:, :, 0] * moving, held + solved[:, :, 1] * moving
    left = (eps**2 - ((base @ gram) * base).sum(dim=1)).clamp(min=0.0)
    gain = (rows * direction).sum(dim=1).clamp(min=1e-300)
    return base + direction * (left / gain).sqrt()[:, None]


def _separable(bound: TwinBound, rows: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Maximise over a weighted lp ball and the box: each column on its own but for one multiplier."""
    weights = bound.matrix.abs().sum(dim=0)
    room = torch.where(rows > 0, high, -low)
    if bound.p == math.inf:
        return rows.sign() * torch.minimum(room, bound.eps / weights.clamp(min=1e-300))
    if bound.p == 1.0:
        return rows.sign() * _filled(rows.abs(), weights, room, bound.eps)
    price, power = weights**bound.p, 1 / (bound.p - 1)
    low_mu, high_mu = torch.full_like(rows[:, :1], -700.0), torch.full_like(rows[:, :1], 700.0)
    size = room
    for _ in range(HALVINGS):  # the logarithm of the multiplier, by halving
        middle = (low_mu + high_mu) / 2
        size = torch.minimum(((rows.abs() / (bound.p * price).clamp(min=1e-300)).log() - middle).mul(power).exp(), room)
        inside = (price * size**bound.p).sum(dim=1, keepdim=True) <= bound.eps**bound.p
        low_mu, high_mu = torch.where(inside, low_mu, middle), torch.where(inside, middle, high_mu)
    return rows.sign() * size


def _filled(gains: Tensor, weights: Tensor, room: Tensor, eps: float) -> Tensor:
    """Spend eps on columns in the order of their gain per weight, each as far as it goes."""
    order = (gains / weights.clamp(min=1e-300)).argsort(dim=1, descending=True)
    cost = (weights * room).gather(1, order)
    before = cost.cumsum(dim=1) - cost
    paid = torch.minimum(cost, (eps - before).clamp(min=0.0))
    spent = torch.zeros_like(room).scatter(1, order, paid)
    return torch.where(weights > 0, spent / weights.clamp(min=1e-300), room)
