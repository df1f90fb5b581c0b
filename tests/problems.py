"""Random small problems by seed: every activation, every metric, and on purpose what trips verifiers.

`make(seed)` is a function of its seed alone. The kinds go round with periods 14, 5, 11, 9 and 13, so that any 70 seeds
in a row have every activation with every metric and any 154 every activation with every trait. Tests and
`benchmarks/soundness.py` share this file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from likewise import Continuous, Domain, Layer, Mahalanobis, Metric, Network, OneHot, Problem, WeightedLp
from likewise.activations import NAMES, by_name

METRICS = ("linf", "ball", "l1", "singular", "box")
TRAITS = (
    "plain",
    "dead neurons",
    "duplicate neurons",
    "zero weights",
    "weights of 1e-6",
    "plain",
    "weights of 1e-12",
    "weights of 1e-45",
    "degenerate box",
    "constant network",
    "saturated",
)
OUTPUTS = ("sigmoid", "sigmoid", "sigmoid", "identity", "sigmoid", "sigmoid", "tanh", "sigmoid", "softplus")
LEFTS = ("everyone", "everyone", "everyone", "everyone", "everyone", "a person") * 2 + ("a group",)
TINY = {"weights of 1e-6": 1e-6, "weights of 1e-12": 1e-12, "weights of 1e-45": 1e-45}


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A problem with the names of what it is made of."""

    seed: int
    problem: Problem
    activation: str
    metric: str
    trait: str
    output: str
    left: str

    def __repr__(self) -> str:
        return (
            f"Case({self.seed}: {self.activation}/{self.output}, {self.metric}, {self.trait}, {self.left} on the left)"
        )

    @property
    def smooth(self) -> bool:
        """Whether a hidden layer, or an output that is treated like one, is curved."""
        return not by_name(self.activation).is_piecewise_linear() or self.output == "softplus"

    @property
    def gap(self) -> float:
        """How far the milp engine is asked to close it."""
        return 1e-3 if self.smooth else 1e-5


def make(seed: int) -> Case:
    """Return the case of a seed."""
    rng = np.random.default_rng([20, seed])
    activation, trait = NAMES[seed % len(NAMES)], TRAITS[seed % len(TRAITS)]
    kind, output = METRICS[seed % len(METRICS)], OUTPUTS[seed % len(OUTPUTS)]
    left = LEFTS[seed % len(LEFTS)]
    domain = _domain(rng, trait)
    hidden = _widths(rng, smooth=not by_name(activation).is_piecewise_linear())
    network = _network(rng, domain, hidden, activation, output, trait)
    metric = _metric(rng, domain, kind)
    eps = _eps(rng, kind)
    someone = domain.sample(1, rng)[0]
    who = {"everyone": domain, "a person": domain.at(someone), "a group": domain.sharing(someone)}[left]
    problem = Problem(network, who, domain, metric, eps)
    return Case(seed, problem, activation, kind, trait, output, left)


def _domain(rng: np.random.Generator, trait: str) -> Domain:
    features: list[Continuous | OneHot] = []
    for i in range(int(rng.integers(2, 6))):
        low = float(np.round(rng.uniform(-1.0, 0.5), 2)) if rng.random() < 0.3 else 0.0
        features.append(Continuous(f"c{i}", low, low + (1.0 if rng.random() < 0.7 else float(rng.uniform(0.1, 2.0)))))
    if trait == "degenerate box":
        features[0] = Continuous("c0", 0.25, 0.25)
    for i in range(int(rng.integers(0, 4))):
        features.insert(
            int(rng.integers(0, len(features) + 1)), OneHot(f"g{i}", [f"v{k}" for k in range(int(rng.integers(1, 5)))])
        )
    return Domain(features)


def _widths(rng: np.random.Generator, *, smooth: bool) -> list[int]:
    depth = int(rng.choice([1, 2, 3], p=[0.55, 0.4, 0.05] if smooth else [0.35, 0.4, 0.25]))
    most = {1: 5, 2: 3, 3: 2} if smooth else {1: 5, 2: 5, 3: 4}
    return [int(rng.integers(2, most[depth] + 1)) for _ in range(depth)]


def _network(
    rng: np.random.Generator, domain: Domain, hidden: list[int], activation: str, output: str, trait: str
) -> Network:
    people = domain.sample(200, rng)
    layers = []
    x = people
    for width, name in [(w, activation) for w in hidden] + [(1, output)]:
        weight, bias = _scaled(rng, x, width, 3.0 if trait == "saturated" else 1.0)
        _plant(rng, weight, bias, trait, last=width == 1)
        layers.append(Layer(weight, bias, name))
        x = layers[-1].activate(x @ layers[-1].weight.T + layers[-1].bias)
    return Network(layers)


def _scaled(rng: np.random.Generator, x: np.ndarray, width: int, gain: float) -> tuple[np.ndarray, np.ndarray]:
    """Draw a layer whose sums, over people, have a spread of about 1.5 and change sign."""
    weight = rng.normal(size=(width, x.shape[1]))
    sums = x @ weight.T
    spread = np.maximum(sums.std(axis=0), 0.05 * np.abs(sums).max(axis=0) + 1e-3)
    weight *= (1.5 * gain / spread)[:, None]
    middle = np.median(x @ weight.T, axis=0)
    return weight, rng.normal(scale=0.5 * gain, size=width) - middle


def _plant(rng: np.random.Generator, weight: np.ndarray, bias: np.ndarray, trait: str, *, last: bool) -> None:
    """Put the trait into a layer, in place."""
    if trait in TINY:
        some = rng.random(weight.shape) < 0.4
        weight[some] = TINY[trait] * rng.normal(size=weight.shape)[some]
    elif trait == "zero weights":
        weight[rng.random(weight.shape) < 0.5] = 0.0
    elif trait == "constant network" and last:
        weight[:] = 0.0
    elif trait == "saturated" and last:
        bias += 12.0
    elif trait == "dead neurons" and not last:
        bias[0] = -np.abs(weight[0]).sum() * 50.0
        weight[-1] *= 1e-6
        bias[-1] = -1e-5
    elif trait == "duplicate neurons" and not last:
        weight[1], bias[1] = weight[0], bias[0]


def _metric(rng: np.random.Generator, domain: Domain, kind: str) -> Metric:
    width = domain.width
    if kind in ("linf", "l1"):
        weights = np.where(rng.random(width) < 0.2, 0.0, rng.uniform(0.3, 2.0, width))
        if rng.random() < 0.3:
            weights = np.ones(width)
        return WeightedLp(weights, p=math.inf if kind == "linf" else 1)
    basis = np.linalg.qr(rng.normal(size=(width, width)))[0]
    values = rng.uniform(0.3, 2.0, width)
    if kind == "singular" or (kind == "box" and rng.random() < 0.5):
        values[: int(rng.integers(1, max(2, width // 3) + 1))] = 0.0
    if not values.any():
        values[-1] = 1.0
    S = (basis * values) @ basis.T
    return Mahalanobis((S + S.T) / 2, relaxation="box" if kind == "box" else None)


def _eps(rng: np.random.Generator, kind: str) -> float:
    """Return an eps that is 0, tiny, usual, or so large that categories flip.

    It is 0 for diagonal metrics only: no pair of floats is exactly 0 apart along a rotated null space, so that nothing
    could be said about the lower side.
    """
    which = rng.random()
    if which < 0.04 and kind in ("linf", "l1"):
        return 0.0
    low, high = (1e-4, 1e-2) if which < 0.15 else (0.02, 0.4) if which < 0.65 else (0.6, 2.5)
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))
