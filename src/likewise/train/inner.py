"""The worst neighbour of each person of a batch, by the means of one's choice: exact, milp or gradient.

`exact` is local.py. `gradient` is ascent in the metric, projected on ball and box: fast, and far from the optimum
where the metric is ill-conditioned. `milp` is person.py, a MILP for each person and direction, which is what the paper
does (with `as_published` in the rotated box instead of the ball); processes share the people.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from likewise.domain import Domain
from likewise.errors import InputError
from likewise.rounding import Array
from likewise.train.bound import TwinBound
from likewise.train.layers import Layers, logits, tensor
from likewise.train.local import require_exact, worst_neighbours
from likewise.train.method import Context, to_score
from likewise.train.person import Neighbourhood

FEW = 50  # people a core, below which processes are not worth it

Neighbours = Callable[[Layers, Tensor], Tensor]


def neighbours_of(context: Context) -> Neighbours:
    """Return the function from layers and people to the worst neighbour of each person."""
    settings, bound = context.settings, context.bound
    if settings.solver == "milp":
        if not bound.is_linear or bound.p not in (2.0, math.inf):
            raise InputError("solver='milp' is for Mahalanobis and l-inf metrics: give solver='exact' or 'gradient'")
        return _Milp(context)
    if settings.solver == "gradient":
        if not bound.is_linear:
            raise InputError("solver='gradient' needs a metric without a curved embedding: give solver='milp'")
        return lambda layers, X: ascended(layers, X, bound, settings.steps, context.is_classes)
    require_exact(bound)
    both = not settings.as_published
    return lambda layers, X: worst_neighbours(layers, X, bound, context.is_classes, both=both)


def ascended(layers: Layers, X: Tensor, bound: TwinBound, steps: int, is_classes: bool) -> Tensor:
    """Return neighbours by projected gradient ascent, in both directions; categories stay as they are."""
    layers = [(weight.detach(), bias.detach()) for weight, bias in layers]
    low = (bound.lowest - X[:, bound.free]).clamp(max=0.0)
    high = (bound.highest - X[:, bound.free]).clamp(min=0.0)
    here = to_score(logits(layers, X), is_classes)
    best, farthest = X.clone(), torch.zeros(len(X), dtype=torch.float64)
    for sign in (1.0, -1.0):
        d = torch.zeros_like(low)
        for _ in range(steps):
            near = X.index_copy(1, bound.free, X[:, bound.free] + d).requires_grad_()
            slope = torch.autograd.grad(logits(layers, near).sum(), near)[0][:, bound.free]
            size = torch.linalg.vector_norm(slope @ bound.matrix.T, bound.p, dim=1, keepdim=True).clamp(min=1e-300)
            d = _projected(d + sign * slope / size * (2.5 * bound.eps / steps), bound, low, high)
        near = X.index_copy(1, bound.free, X[:, bound.free] + d)
        apart = (to_score(logits(layers, near), is_classes) - here).abs()
        better = apart > farthest
        best, farthest = torch.where(better[:, None], near, best), torch.where(better, apart, farthest)
    return best


def _projected(d: Tensor, bound: TwinBound, low: Tensor, high: Tensor) -> Tensor:
    inside = torch.maximum(torch.minimum(d, high), low)
    size = torch.linalg.vector_norm(inside @ bound.matrix.T, bound.p, dim=1, keepdim=True).clamp(min=1e-300)
    return inside * torch.clamp(bound.eps / size, max=1.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Ask:
    """The question about one person, for a process."""

    around: Neighbourhood
    is_classes: bool
    both: bool

    def __call__(self, person: Array) -> Array:
        return self.around.farthest(person, self.is_classes, self.both)


class _Milp:
    """A MILP per person; the processes are started when first needed, and end with this object."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._pool: ProcessPoolExecutor | None = None

    def __call__(self, layers: Layers, X: Tensor) -> Tensor:
        context, settings = self._context, self._context.settings
        around = neighbourhood(layers, context.bound, context.examples.domain, is_ball=not settings.as_published)
        ask = _Ask(around, context.is_classes, not settings.as_published)
        people = list(X.detach().numpy())
        cores = os.cpu_count() or 1
        if cores == 1 or len(people) < FEW * cores:
            return tensor(np.array([ask(person) for person in people]))
        if self._pool is None:
            self._pool = ProcessPoolExecutor(cores, multiprocessing.get_context("spawn"), _alone)
        return tensor(np.array(list(self._pool.map(ask, people, chunksize=8))))


def neighbourhood(layers: Layers, bound: TwinBound, domain: Domain, is_ball: bool) -> Neighbourhood:
    """Return what the MILPs of all people share."""
    weights = tuple((weight.detach().numpy(), bias.detach().numpy()) for weight, bias in layers)
    free, matrix, reach = bound.free.numpy(), bound.matrix.numpy(), bound.box.numpy()
    return Neighbourhood(weights, domain, free, matrix, bound.eps, reach, is_ball and bound.p == 2.0)


def _alone() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
