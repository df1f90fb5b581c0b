"""The differentiable bound: how far apart the output before its sigmoid can be for ANY two similar people.

Only the `free` columns can differ within a similar pair (bounds.reach proves it). For the difference d in them,
||A d||_p <= eps and |d| <= box give, for any row m and any matrix P (weak duality, with multipliers m P),

    m.d  <=  dual(m)  =  eps ||m P||_q + |m - m P A|.box            (P the pseudo-inverse of A: tight on its rows)

A relu layer multiplies each neuron's difference by a slope in [0, 1]: 0 where the neuron is off for everyone who can
exist, 1 where it is on for everyone. The output's weights, carried backwards as centre +- radius through those slopes,
arrive at the first layer as c +- r, and with M its free columns

    |logit(left) - logit(right)|  <=  dual(c M) + sum_j r_j dual(M_j).

No data point is involved: the bound is about everyone. It is evaluated in floats and steers the training; what is
claimed in the end is what the certifier proves. The bound is linear in the free columns as long as no neuron's slope
range grows, and it does not when these columns are scaled by t <= 1 around a centre that exists. So a limit can be
kept exactly, at every step, by such a scaling: no penalty has to be tuned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from likewise.bounds import reach
from likewise.domain import Domain
from likewise.metric import Metric
from likewise.metric.embedding import unfolded
from likewise.network import Layer, Network
from likewise.problem import Problem
from likewise.rounding import Array
from likewise.train.layers import Layers, tensor

SECONDS = 30.0  # for the proofs of which columns can differ
TINY = 1e-300


@dataclass(frozen=True, slots=True, eq=False)
class Everyone:
    """The domain as tensors: the columns of numbers with their ends, and the allowed columns of each one-hot group."""

    numbers: Tensor
    lower: Tensor
    upper: Tensor
    categories: Tensor  # (groups, most categories), short rows filled up with their first column


def _everyone(domain: Domain) -> Everyone:
    rows = [np.arange(g.start, g.stop)[domain.upper[g] > 0.5] for g in domain.groups]
    most = max((len(row) for row in rows), default=0)
    filled = [np.concatenate([row, np.full(most - len(row), row[0])]) for row in rows]
    columns = domain.numbers.copy()
    return Everyone(
        torch.tensor(columns),
        tensor(domain.lower[columns]),
        tensor(domain.upper[columns]),
        torch.tensor(np.array(filled, dtype=np.int64)),
    )


@dataclass(frozen=True, slots=True, eq=False)
class TwinBound:
    """The columns in which similar people can differ, by how much, and the domain."""

    everyone: Everyone
    free: Tensor  # column numbers
    eps: float
    p: float
    dual_norm: float  # q, with 1/p + 1/q = 1
    matrix: Tensor  # A, of the free columns
    inverse: Tensor  # P: (free, rows of A)
    onto: Tensor  # P A: the projection on the differences that the metric sees
    box: Tensor
    lowest: Tensor  # the domain's ends in the free columns
    highest: Tensor
    centre: Tensor  # values of the free columns that exist
    is_blind: bool  # whether there are differences that a linear metric does not see
    can_flip: bool  # whether a category can change within a similar pair
    is_linear: bool  # whether the metric itself is a norm of the differences

    def __repr__(self) -> str:
        return f"TwinBound({len(self.free)} columns can differ, eps={self.eps:g})"

    def dual(self, rows: Tensor) -> Tensor:
        """Bound rows.d over the differences of similar people, for rows (n, free)."""
        seen = self.eps * _norm(rows @ self.inverse, self.dual_norm)
        rest = (rows - rows @ self.onto).abs() @ self.box
        return torch.minimum(seen + rest, rows.abs() @ self.box)

    def logit(self, layers: Layers) -> Tensor:
        """Bound the difference of the output before its sigmoid."""
        first = layers[0][0][:, self.free]
        if not len(self.free):
            return first.sum()  # of nothing: 0, and differentiable
        if len(layers) == 1:
            return self.dual(first)[0]
        slopes = self._slopes(layers)
        middle = layers[-1][0][0]
        radius = torch.zeros_like(middle)
        for k in reversed(range(len(slopes))):
            low, high = slopes[k]
            middle, radius = middle * (low + high) / 2, radius * high + middle.abs() * (high - low) / 2
            if k:
                middle, radius = middle @ layers[k][0], radius @ layers[k][0].abs()
        return self.dual((middle @ first)[None])[0] + (radius * self.dual(first)).sum()

    def _slopes(self, layers: Layers) -> list[tuple[Tensor, Tensor]]:
        """Return the least and largest slope of each hidden neuron over everyone who can exist (no gradient)."""
        with torch.no_grad():
            low, high = self._first(*layers[0])
            found = []
            for weight, bias in layers[1:]:
                found.append(((low >= 0).double(), (high > 0).double()))
                at_least, at_most = low.clamp(min=0), high.clamp(min=0)
                plus, minus = weight.clamp(min=0), weight.clamp(max=0)
                low, high = plus @ at_least + minus @ at_most + bias, plus @ at_most + minus @ at_least + bias
        return found

    def _first(self, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """Return what enters the first hidden layer at least and at most."""
        who = self.everyone
        part = weight[:, who.numbers]
        ends = part * who.lower, part * who.upper
        low, high = bias + torch.minimum(*ends).sum(dim=1), bias + torch.maximum(*ends).sum(dim=1)
        if not len(who.categories):
            return low, high
        chosen = weight[:, who.categories]
        return low + chosen.amin(dim=2).sum(dim=1), high + chosen.amax(dim=2).sum(dim=1)

    def seeing(self, layers: Layers) -> Layers:
        """Return the layers with the free columns measured from the centre and blind to what the metric is blind to.

        Where the metric has a null space, f(x) becomes f(P A x): else people at distance 0 could be scored apart.
        """
        if not len(self.free):
            return layers
        free = layers[0][0][:, self.free]
        return self._with(layers, free @ self.onto if self.is_blind else free)

    def within(self, layers: Layers, limit: float) -> Layers:
        """Return `seeing(layers)` with the free columns scaled down until the bound is at most the limit."""
        if not len(self.free):
            return layers
        seen = self.seeing(layers)
        bound = self.logit(seen)
        if float(bound.detach()) <= limit:  # asked first: the quotient has no finite slope where both are 0
            return seen
        scale = limit / bound
        return self._with(layers, seen[0][0][:, self.free] * scale)

    def _with(self, layers: Layers, free: Tensor) -> Layers:
        weight, bias = layers[0]
        return [(weight.index_copy(1, self.free, free), bias - free @ self.centre), *layers[1:]]

    def raw(self, layers: Layers) -> Layers:
        """Return the layers that `seeing` gives back as these (but for what the metric is blind to)."""
        weight, bias = layers[0]
        return [(weight, bias + weight[:, self.free] @ self.centre), *layers[1:]]


def _norm(rows: Tensor, q: float) -> Tensor:
    if q in (1.0, 2.0, math.inf):
        norms: Tensor = torch.linalg.vector_norm(rows, q, dim=1)
        return norms
    powers: Tensor = (rows.abs() ** q).sum(dim=1) + TINY
    root: Tensor = torch.pow(powers, 1 / q)
    return root  # rounded up, so that it has a slope at 0


def twin_bound(domain: Domain, metric: Metric, eps: float, people: Array) -> TwinBound:
    """Return the bound for a question; `people` give the centre."""
    plain, room = _plain(metric, eps, domain)
    anyone = Network([Layer(np.zeros((1, domain.width)), np.zeros(1), "identity")])
    found = reach(Problem(anyone, domain, domain, plain, room), SECONDS)
    free = np.flatnonzero(~found.shared)
    box = np.maximum(np.abs(found.differences.lower), np.abs(found.differences.upper))[free]
    matrix = plain.matrix[:, free]
    inverse = np.asarray(np.linalg.pinv(matrix, rcond=1e-9), dtype=np.float64)
    centre = np.clip(people.mean(axis=0), domain.lower, domain.upper)[free]
    return TwinBound(
        everyone=_everyone(domain),
        free=torch.tensor(free),
        eps=room,
        p=plain.p,
        matrix=tensor(matrix),
        dual_norm=_conjugate(plain.p),
        inverse=tensor(inverse),
        onto=tensor(inverse @ matrix),
        box=tensor(box),
        lowest=tensor(domain.lower[free]),
        highest=tensor(domain.upper[free]),
        centre=tensor(centre),
        is_blind=len(matrix) > 0 and int(np.linalg.matrix_rank(matrix, rtol=1e-9)) < len(free),
        can_flip=bool(found.flippable),
        is_linear=metric.is_linear,
    )


def _plain(metric: Metric, eps: float, domain: Domain) -> tuple[Metric, float]:
    """Return a metric without phi, and an eps, that hold at least the same pairs."""
    if metric.is_linear:
        return unfolded(metric, float(eps), domain.upper - domain.lower)
    return Metric(np.zeros((0, domain.width)), math.inf, "none"), float(eps)


def _conjugate(p: float) -> float:
    return math.inf if p == 1.0 else 1.0 if p == math.inf else p / (p - 1.0)
