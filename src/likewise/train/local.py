"""The worst neighbour of each person of a batch: x* = argmax |f(x) - f(x*)| with d(x, x*) <= eps, x* in the domain.

Categories that cannot flip are fixed, so the search is over the free columns d = x* - x alone. In both directions the
network is made linear where it stands, the linear function is maximised over ball and box at once, and the best of all
points visited is kept. An optimum may lie on kinks, between what their two sides ask for; so steps may go part of the
way, and neurons near their kink count as partly on in some of the derivatives.

The linear maximum over {||A d||_2 <= eps, low <= d <= high} is found by fixing columns at the bounds they violate,
solving for the others in closed form, and letting go of those that pull inwards; every d that is returned is in the box
and in the ball. Where the metric has a null space, slide.py searches instead. benchmarks/train_inner.py measures the
gap to a MILP: good for training, no proof.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from likewise.errors import InputError
from likewise.train.bound import TwinBound
from likewise.train.layers import Layers, output_of, slope_of
from likewise.train.slide import slide

STEPS = 12  # linear steps from each start, at most
PARTS = (1.0, 0.5, 0.25, 0.1, 0.03)  # of a step
SOFT = (0.0, 0.1, 0.02, 0.003)  # how soft the kinks are in the derivatives, step by step
AXES = 1  # columns towards whose ends the search also starts
RIDGE = 1e-6  # added to A^T A, relatively, where it is singular
HALVINGS = 60
TINY = 1e-12


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
    here = output_of(layers, entering)
    best, farthest = torch.zeros_like(low), torch.full_like(here, -1.0)
    for sign in (1.0, -1.0) if both else (1.0,):
        search = slide if bound.is_blind and bound.p == 2.0 else _climb
        found, value = search(layers, entering, free, bound, low, high, sign)
        apart = (_squash(value, is_classes) - _squash(here, is_classes)).abs()
        better = apart > farthest
        best, farthest = torch.where(better[:, None], found, best), torch.where(better, apart, farthest)
    return X.index_copy(1, bound.free, X[:, bound.free] + best)


def _squash(values: Tensor, is_classes: bool) -> Tensor:
    return torch.sigmoid(values) if is_classes else values


def _climb(
    layers: Layers, entering: Tensor, free: Tensor, bound: TwinBound, low: Tensor, high: Tensor, sign: float
) -> tuple[Tensor, Tensor]:
    """Return the d with the highest (or lowest) output that linear steps from several starts find, and that output."""
    best, reached, slope = torch.zeros_like(low), output_of(layers, entering), slope_of(layers, entering, 0.0)
    starts = [slope @ free, _all_on(layers, slope) @ free]
    for rows in starts:
        best, reached = _steps(layers, entering, free, bound, low, high, sign, sign * rows, best, reached)
    for axis in _axes(free):
        for way in (1.0, -1.0):
            rows = torch.zeros_like(low)
            rows[:, axis] = way
            best, reached = _steps(layers, entering, free, bound, low, high, sign, rows, best, reached)
    return best, reached


def _axes(free: Tensor) -> list[int]:
    """Return the columns that weigh most: towards their ends, other neurons are on than here."""
    order = free.abs().sum(dim=0).argsort(descending=True)
    return [int(axis) for axis in order[:AXES]]


def _steps(
    layers: Layers,
    entering: Tensor,
    free: Tensor,
    bound: TwinBound,
    low: Tensor,
    high: Tensor,
    sign: float,
    rows: Tensor,
    best: Tensor,
    reached: Tensor,
) -> tuple[Tensor, Tensor]:
    """Take linear steps, the first along the rows given, and return the best d and its output, the old ones included.

    A step goes to the end that the linear function likes best, or part of the way there: an optimum may lie on a kink,
    between the two ends that either side of it asks for. Only people whose output still rises take another step.
    """
    todo, here = torch.arange(len(best)), torch.zeros_like(best)
    height = torch.full_like(reached, -torch.inf)
    best, reached = best.clone(), reached.clone()
    for k in range(STEPS):
        end = oracle(bound, rows, low[todo], high[todo])
        d, value, slope = _part_way(layers, entering[todo], free, here[todo], end, sign, k)
        better = sign * value > sign * reached[todo]
        best[todo[better]], reached[todo[better]] = d[better], value[better]
        rising = (sign * value > height[todo] + 1e-7) | torch.tensor(k < len(SOFT))
        height[todo], here[todo] = sign * value, d
        todo, rows = todo[rising], sign * (slope[rising] @ free)
        if not len(todo):
            break
    return best, reached


def _part_way(
    layers: Layers, entering: Tensor, free: Tensor, here: Tensor, end: Tensor, sign: float, step: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the best point on the way from here to the end, its output, and the derivatives there."""
    parts = torch.tensor(PARTS if step else (1.0,), dtype=torch.float64)
    begin, way = torch.addmm(entering, here, free.T), (end - here) @ free.T
    values = torch.stack([output_of(layers, begin + part * way) for part in parts])
    value, chosen = (sign * values).max(dim=0)
    part = parts[chosen][:, None]
    slope = slope_of(layers, begin + part * way, SOFT[step % len(SOFT)])
    return here + part * (end - here), sign * value, slope


def _all_on(layers: Layers, like: Tensor) -> Tensor:
    """Return the derivatives as if every neuron were on: a second start, where all may be off."""
    slope = torch.ones(1, 1, dtype=torch.float64)
    for weight, _ in reversed(layers[1:]):
        slope = slope @ weight
    return slope.expand_as(like)


def oracle(bound: TwinBound, rows: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Return d in ball and box that makes rows.d largest, for each row."""
    d = _ball(bound, rows, low, high) if bound.p == 2.0 else _separable(bound, rows, low, high)
    d = torch.maximum(torch.minimum(d, high), low)
    size = torch.linalg.vector_norm(d @ bound.matrix.T, bound.p, dim=1)
    scale: Tensor = torch.clamp(bound.eps / size.clamp(min=1e-300), max=1.0)
    return d * scale[:, None]


def _ball(bound: TwinBound, rows: Tensor, low: Tensor, high: Tensor) -> Tensor:
    gram = bound.matrix.T @ bound.matrix
    count = len(bound.free)
    gram = gram + RIDGE * gram.diagonal().mean().clamp(min=1e-300) * torch.eye(count, dtype=torch.float64)
    direction = rows @ torch.linalg.inv(gram)
    d: Tensor = direction * (bound.eps / (rows * direction).sum(dim=1).clamp(min=1e-300).sqrt())[:, None]
    todo = torch.arange(len(d))[((d < low - TINY) | (d > high + TINY)).any(dim=1)]
    if len(todo):
        d[todo] = _clipped(gram, rows[todo], low[todo], high[todo], d[todo], bound.eps)
    return d


def _clipped(gram: Tensor, rows: Tensor, low: Tensor, high: Tensor, d: Tensor, eps: float) -> Tensor:
    """Fix columns at the bounds that they violate, and let those go again that pull inwards, until none does either."""
    found, todo = d.clone(), torch.arange(len(d))
    fixed, held = torch.zeros_like(d, dtype=torch.bool), torch.zeros_like(d)
    for _ in range(3 * d.shape[1]):
        out = (d < low[todo] - TINY) | (d > high[todo] + TINY)
        ends = torch.maximum(torch.minimum(d, high[todo]), low[todo])
        fixed, held = fixed | out, torch.where(out, ends, held)
        d, share = _with_fixed(gram, rows[todo], held, fixed, eps)
        found[todo] = d
        pull = (rows[todo] - (d @ gram) / share.clamp(min=1e-300)[:, None]) * (held - (low + high)[todo] / 2).sign()
        inwards = torch.where(fixed, pull, 0.0)
        worst = inwards.argmin(dim=1, keepdim=True)
        beyond = ((d < low[todo] - TINY) | (d > high[todo] + TINY)).any(dim=1)
        loose = ~beyond & (inwards.gather(1, worst)[:, 0] < -1e-9 * rows[todo].abs().amax(dim=1)) & (share > 0)
        fixed = fixed.scatter(1, worst, fixed.gather(1, worst) & ~loose[:, None])
        held = torch.where(fixed, held, 0.0)
        going = beyond | loose
        if bool(loose.any()):
            d[loose] = _with_fixed(gram, rows[todo[loose]], held[loose], fixed[loose], eps)[0]
        todo, d, fixed, held = todo[going], d[going], fixed[going], held[going]
        if not len(todo):
            break
    return found


def _with_fixed(gram: Tensor, rows: Tensor, held: Tensor, fixed: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Maximise over the ball with some columns held; also return t with (A^T A d) = t rows in the other columns.

    The others follow those that are held, and share what is left of the radius.
    """
    moving = ~fixed
    inside = (gram * (moving[:, :, None] & moving[:, None, :])) + torch.diag_embed(fixed.double())
    right = torch.stack([rows * moving, -(held @ gram) * moving], dim=2)
    solved = torch.linalg.solve(inside, right)
    direction, base = solved[:, :, 0] * moving, held + solved[:, :, 1] * moving
    left = (eps**2 - ((base @ gram) * base).sum(dim=1)).clamp(min=0.0)
    share = (left / (rows * direction).sum(dim=1).clamp(min=1e-300)).sqrt()
    return base + direction * share[:, None], share


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
