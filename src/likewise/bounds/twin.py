"""TwinBounds: what is proven about every neuron of the left network, the right one, and their difference."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from likewise.bounds import norms
from likewise.bounds.difference import difference_lines, slopes, through
from likewise.bounds.interval import Box, activate, affine
from likewise.bounds.linear import Stage, activation_lines, backward_upper
from likewise.bounds.reach import Reach
from likewise.bounds.support import Differences, domain_upper
from likewise.domain import Domain
from likewise.network import Layer
from likewise.problem import Problem
from likewise.rounding import Array


@dataclass(frozen=True, slots=True, eq=False)
class LayerBounds:
    """One layer: pre-activations z of both sides and their difference dz; values v and their difference dv.

    Of one twin network, or of a stack of them: then each box has a row for each.
    """

    left: Box
    right: Box
    dz: Box
    left_value: Box
    right_value: Box
    dv: Box
    slope: Box

    def __getitem__(self, row: int) -> LayerBounds:
        """Return one of a stack."""
        boxes = (self.left, self.right, self.dz, self.left_value, self.right_value, self.dv, self.slope)
        return LayerBounds(*(box[row] for box in boxes))


@dataclass(frozen=True, slots=True, eq=False)
class TwinBounds:
    """Bounds of every layer, the input layer's reach included."""

    reach: Reach
    layers: tuple[LayerBounds, ...]

    def __repr__(self) -> str:
        free = sum(int((b.left.lower < 0).sum()) for b in self.layers)
        return f"TwinBounds({len(self.layers)} layers, {free} neurons may be below 0)"

    def with_layer(self, index: int, layer: LayerBounds) -> TwinBounds:
        """Return the bounds with one layer replaced."""
        return replace(self, layers=(*self.layers[:index], layer, *self.layers[index + 1 :]))


def settle(layer: Layer, left: Box, right: Box, dz: Box, meet: Callable[[Box, Box], Box] = Box.meet) -> LayerBounds:
    """Complete a layer's bounds from those of z and dz: both sides of v, the slope range, dv.

    The difference of two values is also the difference of their bounds. `meet` intersects two proven boxes.
    """
    dz = meet(dz, left.minus(right))
    span = Box(np.minimum(left.lower, right.lower), np.maximum(left.upper, right.upper))
    slope = slopes(layer, span)
    left_value, right_value = activate(layer, left), activate(layer, right)
    dv = meet(through(slope, dz), left_value.minus(right_value))
    return LayerBounds(left, right, dz, left_value, right_value, dv, slope)


def entering(layer: Layer, domain: Domain) -> Box:
    """Bound what enters a first layer: exact over the people of a domain, but for rounding."""
    high = np.nextafter(layer.bias + domain_upper(domain, layer.weight), np.inf)
    return Box(np.nextafter(layer.bias - domain_upper(domain, -layer.weight), -np.inf), high)


Heard = Callable[[int, str, float, list[Array], Array], None]  # layer, kind, sign, trail, sign times what was proven


def unheard(layer: int, kind: str, sign: float, trail: list[Array], upper: Array) -> None:
    """Take no notice of how a bound came about."""


def twin_bounds(problem: Problem, reach: Reach, heard: Heard = unheard, with_norms: bool = False) -> TwinBounds:
    """Bound every layer by intervals and by backward substitution, left, right and difference; keep the tighter.

    `heard` is told of every substitution: what it was about and the coefficients on its way (see `backward_upper`).
    `with_norms` bounds differences by the lengths of vectors too (see `bounds.norms`), of which it is told nothing.
    """
    done: list[LayerBounds] = []
    longest = math.inf  # of the difference of the values before a layer
    for index, layer in enumerate(problem.network.layers):
        zs, values = [b.left for b in done], [b.left_value for b in done]
        kinds = ["left", "right"] if problem.symmetric else ["left"]
        left = _side(problem, index, problem.left, zs, values, partial(_told, heard, index, kinds))
        right = left
        if not problem.symmetric:
            zs, values = [b.right for b in done], [b.right_value for b in done]
            right = _side(problem, index, problem.right, zs, values, partial(_told, heard, index, ["right"]))
        dz = _difference(problem, index, reach, done, partial(_told, heard, index, ["dz"]))
        if problem.aside and index == len(problem.network.layers) - 1:
            dz = _compared(problem, dz)
        if with_norms and done:
            dz = dz.meet(norms.differences(layer, longest))
        done.append(settle(layer, left, right, dz))
        if with_norms:
            entered = min(norms.length(dz), norms.stretch(layer.weight) * longest if done[1:] else math.inf)
            longest = min(norms.length(done[-1].dv), norms.steepest(layer) * entered)
    return TwinBounds(reach, tuple(done))


Told = Callable[[float, list[Array], Array], None]


def _told(heard: Heard, index: int, kinds: list[str], sign: float, trail: list[Array], upper: Array) -> None:
    for kind in kinds:
        heard(index, kind, sign, trail, upper)


def _side(problem: Problem, index: int, domain: Domain, z: list[Box], values: list[Box], told: Told) -> Box:
    layers = problem.network.layers
    layer = layers[index]
    before = [Box(domain.lower, domain.upper), *values]

    def base(rows: Array, errors: Array | None) -> Array:
        return domain_upper(domain, rows, errors)

    stages = [
        Stage(layers[k].weight, layers[k].bias, activation_lines(layers[k], z[k]), z[k], before[k])
        for k in range(index)
    ]
    linear = _both_sides(layer.weight, layer.bias, stages, base, told)
    return linear.meet(affine(layer.weight, layer.bias, before[-1]))


def _difference(problem: Problem, index: int, reach: Reach, done: list[LayerBounds], told: Told) -> Box:
    layers = problem.network.layers
    weight = layers[index].weight
    differences = reach.differences
    before = [Box(differences.lower, differences.upper), *(b.dv for b in done)]
    nothing = np.zeros(len(weight))

    def base(rows: Array, errors: Array | None) -> Array:
        return differences.upper_bounds(rows, errors)

    stages = [
        Stage(layers[k].weight, np.zeros(len(layers[k].bias)), difference_lines(b.slope, b.dz), b.dz, before[k])
        for k, b in enumerate(done)
    ]
    symmetric = problem.symmetric
    linear = _both_sides(weight, nothing, stages, base, told, symmetric)
    return linear.meet(affine(weight, nothing, before[-1]))


def _compared(problem: Problem, dz: Box) -> Box:
    """Limit the differences of what an embedding makes of two people by the metric that compares them."""
    box = Differences(problem.metric, problem.eps, dz.lower[1:], dz.upper[1:])
    unit = np.eye(problem.aside)
    high = np.append(dz.upper[0], box.upper_bounds(unit))
    low = np.append(dz.lower[0], -box.upper_bounds(-unit))
    return dz.meet(Box(low, high))


def _both_sides(
    weight: Array,
    bias: Array,
    stages: list[Stage],
    base: Callable[[Array, Array | None], Array],
    told: Told,
    symmetric: bool = False,
) -> Box:
    """Bound weight v + bias on both sides; a symmetric set has the same bound on either."""
    trail: list[Array] = []
    high = np.nextafter(backward_upper(weight, stages, base, trail) + bias, np.inf)
    told(1.0, trail, high)
    if symmetric:
        told(-1.0, [-through for through in trail], high)
        return Box(-high, high)
    trail = []
    low = np.nextafter(bias - backward_upper(-weight, stages, base, trail), -np.inf)
    told(-1.0, trail, -low)
    return Box(low, high)
