"""Choose: where to split a part. Candidates are ranked by a guess, the best of them are tried out.

A split is worth what it brings in its worse half. Guesses are poor: most splits bring nothing, because the linear
program moves on to another point that is as good. So a few are bounded for real (strong branching), and the one whose
halves fall furthest, as a product, is taken. A half that is proven empty costs nothing and narrows the part.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from likewise.activations import by_name
from likewise.bounds.tighten import open_neurons
from likewise.network import Network
from likewise.rounding import Array
from likewise.search.tree import Bounded, Split

INSIDE = 0.1  # a split keeps at least this share of an interval on either side
WHOLE = 1e-7  # how far a share of a category may be from 0 or 1
OFF = 1e-13  # how far a neuron's value may be from its curve, in logits
NARROW = 1e-12  # an interval that is not worth splitting
NEURONS, COLUMNS = 8, 4  # how many candidates there are of each
RELIABLE, RECENT = 3, 20  # how often a split was tried before it is taken at its word, and what is remembered


def influence(network: Network) -> list[Array]:
    """Estimate how much each neuron of each layer moves the logit: products of absolute weights (for ranking only)."""
    weights = [np.abs(layer.weight) for layer in network.layers]
    reach = [weights[-1].max(axis=0)]  # of the logit, and of what an embedding compares
    for weight in reversed(weights[1:-1]):
        reach.insert(0, reach[0] @ weight)
    return reach


@cache
def is_straight(network: Network) -> bool:
    """Tell whether a network is made of straight pieces."""
    return all(by_name(name).is_piecewise_linear() for layer in network.layers for name in set(layer.activations))


def candidates(bounded: Bounded, reach: list[Array]) -> list[Split]:
    """Return splits worth trying, the most promising first; none if the point is a real pair's.

    The sign of a dz says little once z of both sides is settled, and a split there doubles all that is left to do: it
    is one only where there is no other, or where curves make every interval count.
    """
    weighed, columns = _neurons(bounded, reach), [*_groups(bounded, reach), *_integers(bounded, reach)]
    first = [one for one in weighed if one[1].kind != "dz"]
    if is_straight(bounded.part.problem.network) and (first or columns):
        weighed = first
    neurons = sorted(weighed, key=lambda one: -one[0])[:NEURONS]
    columns = sorted(columns, key=lambda one: -one[0])[:COLUMNS]
    return [split for _, split in sorted([*neurons, *columns], key=lambda one: -one[0])]


class Experience:
    """What splits have brought so far, neuron by neuron and column by column (pseudo-costs)."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, int, int], list[float]] = {}

    def shortlist(self, splits: list[Split]) -> list[Split]:
        """Return the splits worth trying: those that little is known of, and the one that has brought most."""
        guesses = [self._guess(split) for split in splits]
        new = [split for split, guess in zip(splits, guesses, strict=True) if guess is None]
        old = [(guess, k) for k, guess in enumerate(guesses) if guess is not None]
        return [*new, *([splits[max(old)[1]]] if old else [])]

    def learn(self, split: Split, parent: float, slacks: list[float]) -> float:
        """Note what a split has brought, and return it: the product of how far both halves fall, at most down to 0."""
        falls = [max(parent - max(slack, 0.0), 1e-6 * parent) / max(parent, 1e-300) for slack in slacks]
        brought = falls[0] * falls[1]
        self._known.setdefault(self._key(split), []).append(brought)
        return brought

    def _guess(self, split: Split) -> float | None:
        known = self._known.get(self._key(split), [])
        return None if len(known) < RELIABLE else sum(known[-RECENT:]) / len(known[-RECENT:])

    @staticmethod
    def _key(split: Split) -> tuple[str, str, int, int]:
        return split.kind, split.side, split.layer, split.place


Weighed = tuple[float, Split]


def _neurons(bounded: Bounded, reach: list[Array]) -> list[Weighed]:
    """Weigh the neurons whose value, or difference of values, is off their curve."""
    template, part = bounded.relaxed.template, bounded.part
    found: list[Weighed] = []
    for index, b in enumerate(part.bounds.layers[:-1]):
        layer, matters = part.problem.network.layers[index], reach[index]
        is_open = open_neurons(b)
        # The gap never falls as the left output rises: what the last hidden layer is off by the other way is harmless.
        is_last = index == len(part.bounds.layers) - 2 and not part.problem.aside
        wanted = np.sign(part.problem.network.layers[-1].weight[0]) if is_last else np.zeros(len(layer.bias))
        values, off = {}, {}
        for name, side, box in (("left", template.left, b.left), ("right", template.right, b.right)):
            z = np.clip(bounded.point[side.z[index]], box.lower, box.upper)
            values[name] = (z, layer.activate(z))
            sign = (1.0 if name == "left" else -1.0) * wanted
            off[name] = harm(bounded.point[side.v[index]] - values[name][1], sign) * matters
        dz = values["left"][0] - values["right"][0]
        apart = values["left"][1] - values["right"][1]
        dv = bounded.point[template.left.v[index]] - bounded.point[template.right.v[index]]
        values["dz"], off["dz"] = (dz, apart), 0.5 * harm(dv - apart, wanted) * matters
        for name, box in (("left", b.left), ("right", b.right), ("dz", b.dz)):
            for j in np.flatnonzero(is_open & (off[name] > OFF) & (box.upper - box.lower > NARROW)).tolist():
                kinks = (0.0,) if name == "dz" else _kinks(layer.activations[j])
                at = _place(kinks, float(box.lower[j]), float(box.upper[j]), float(values[name][0][j]))
                if at is not None:
                    found.append((float(off[name][j]), Split(name, layer=index, place=j, at=at)))
    return found


def harm(off: Array, wanted: Array) -> Array:
    """Return how far values are off where that is wanted: upwards for +1, downwards for -1, either way for 0."""
    return np.where(wanted == 0.0, np.abs(off), np.maximum(wanted * off, 0.0))


@cache
def _kinks(activation: str) -> tuple[float, ...]:
    return by_name(activation).kinks()


def _place(kinks: tuple[float, ...], low: float, high: float, z: float) -> float | None:
    """Split at a kink if there is one inside, else at the point, kept off the ends."""
    inside = [k for k in kinks if low < k < high]
    if inside:
        return min(inside, key=lambda k: abs(k - z))
    at = float(np.clip(z, low + INSIDE * (high - low), high - INSIDE * (high - low)))
    return at if low < at < high else None


def _effect(bounded: Bounded, reach: list[Array]) -> Array:
    """Estimate how much each column moves the logit."""
    network = bounded.part.problem.network
    first = np.abs(network.layers[0].weight)
    return np.asarray((reach[0] if len(network.layers) > 1 else np.ones(len(first))) @ first)


def _groups(bounded: Bounded, reach: list[Array]) -> list[Weighed]:
    problem, template = bounded.part.problem, bounded.relaxed.template
    effect = _effect(bounded, reach)
    found: list[Weighed] = []
    for group in problem.right.groups:
        shared = bool(bounded.part.bounds.reach.shared[group].all())
        for side, x in (("left", template.left.x[group]), ("right", template.right.x[group])):
            if shared and side == "left":
                continue
            values = bounded.point[x]
            missing = 1.0 - float(values.max())
            if missing > WHOLE:
                chosen = (np.arange(len(values)) == int(values.argmax())).astype(np.float64)
                weight = missing * float(effect[group][values > WHOLE].max())
                found.append((weight, Split("category", "both" if shared else side, place=group.start, chosen=chosen)))
    return found


def _integers(bounded: Bounded, reach: list[Array]) -> list[Weighed]:
    problem, template = bounded.part.problem, bounded.relaxed.template
    effect = _effect(bounded, reach)
    found: list[Weighed] = []
    for column in problem.right.integers.tolist():
        step, low = problem.right.steps[column], problem.right.lower[column]
        shared = bool(bounded.part.bounds.reach.shared[column])
        for side, x in (("left", template.left.x[column]), ("right", template.right.x[column])):
            steps = (bounded.point[x] - low) / step
            off = abs(float(steps - np.round(steps)))
            if off > WHOLE + problem.right.grid_errors[column] / step and not (shared and side == "left"):
                at = float(low + (np.floor(steps) + 0.5) * step)
                weight = off * step * float(effect[column])
                found.append((weight, Split("integer", "both" if shared else side, place=column, at=at)))
    return found
