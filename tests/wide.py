"""Random small problems of the widened kind, by seed: integers, constraints, every p, embeddings, outputs, lefts, DAGs.

`make_wide(seed)` is a function of its seed alone. What a problem is made of goes round with periods 13 (metric), 9
(network), 7 (output), 5 (left), 4 (integers) and 11 (constraints), which share no factor: any 60 seeds in a row have
every kind several times, and most pairs of kinds. Tests and `benchmarks/soundness.py` share this file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from wide_oracle import compared, crowd, forward, length

from likewise import (
    Continuous,
    Display,
    Domain,
    Integer,
    Layer,
    Metric,
    Network,
    OneHot,
    Problem,
    WeightedLp,
)
from likewise._api import make_problem
from likewise.metric import Embedding

METRICS = (
    "l1",
    "relu l2",
    "l1.5",
    "linear linf",
    "l2",
    "relu linf",
    "l3",
    "linear l1",
    "linf",
    "relu l1",
    "box",
    "linear l2",
    "relu relu",
)
NETWORKS = ("relu", "residual", "tanh", "deep relu", "relu", "residual tanh", "deep relu", "sigmoid", "input skip")
OUTPUTS = ("sigmoid", "class", "regression", "logit", "sigmoid", "class", "regression")
LEFTS = ("everyone", "where", "everyone", "a person", "sharing")
INTEGERS = ("scaled", "none", "narrow", "whole")
ROWS = ("none", "pair", "numbers", "none", "mixed", "three", "none", "pair", "mixed", "fixed", "two")
SMOOTH = ("tanh", "residual tanh", "sigmoid")
PEOPLE = 400


@dataclass(frozen=True, slots=True, eq=False)
class Wide:
    """A problem with the names of what it is made of; `arguments` are those of `certify` that ask the same."""

    seed: int
    problem: Problem
    arguments: dict[str, Any]
    network: str
    metric: str
    output: str
    left: str
    integers: str
    rows: str

    def __repr__(self) -> str:
        return f"Wide({self.seed}: {', '.join(self.kinds)})"

    @property
    def kinds(self) -> tuple[str, ...]:
        """What the problem is made of, in words."""
        return (
            f"{self.network} network",
            f"{self.metric} metric",
            f"{self.output} output",
            f"{self.left} on the left",
            f"{self.integers} integers",
            f"{self.rows} rows",
        )

    @property
    def smooth(self) -> bool:
        """Whether a hidden layer is curved."""
        return self.network in SMOOTH

    @property
    def gap(self) -> float:
        """How far the milp engine is asked to close it."""
        return 1e-4


def make_wide(seed: int) -> Wide:
    """Return the problem of a seed."""
    rng = np.random.default_rng([30, seed])
    kinds = [names[seed % len(names)] for names in (NETWORKS, METRICS, OUTPUTS, LEFTS, INTEGERS, ROWS)]
    body, kind, output, left, integers, rows = kinds
    domain = _domain(rng, integers, rows)
    people = crowd(domain).draw(4 * PEOPLE, rng)
    outputs = 3 if output == "class" else 1
    network = _network(rng, people, body, "identity" if output == "regression" else "sigmoid", outputs)
    metric = _metric(rng, people, kind)
    arguments: dict[str, Any] = {
        "network": network,
        "domain": domain,
        "metric": metric,
        "eps": 1.0,
        "output": int(rng.integers(outputs)),
        "scale": "logit" if output == "logit" else "score",
        "left": _left(rng, domain, people, left),
    }
    arguments["eps"] = _eps(rng, make_problem(**arguments), people, kind)
    return Wide(seed, make_problem(**arguments), arguments, body, kind, output, left, integers, rows)


# ---- people


def _domain(rng: np.random.Generator, integers: str, rows: str) -> Domain:
    features: list[Continuous | Integer | OneHot] = []
    count = int(rng.integers(2, 5))
    wanted = 0 if integers == "none" else int(rng.integers(1, 3))
    for i in range(count):
        shown = Display(offset=20.0, factor=-7.0) if rng.random() < 0.2 else Display(offset=1.0, factor=3.0)
        low = float(np.round(rng.uniform(-1.0, 0.5), 2)) if rng.random() < 0.4 else 0.0
        if i < wanted:
            features.append(_integer(rng, f"n{i}", integers, low, shown))
        else:
            features.append(Continuous(f"c{i}", low, low + float(rng.uniform(0.3, 1.5)), shown))
    if rows == "fixed" or rng.random() < 0.1:
        fixed = float(rng.uniform(-0.5, 0.5))
        features.append(Continuous("same", fixed, fixed) if rng.random() < 0.6 else Integer("same", fixed, fixed, 0.25))
    groups = 2 if rows == "pair" else int(rng.integers(0, 3))
    for i in range(groups):
        group = OneHot(f"g{i}", [f"v{k}" for k in range(int(rng.integers(2, 4)))])
        features.insert(int(rng.integers(0, len(features) + 1)), group)
    plain = Domain(features)
    for _ in range(200):
        domain = Domain(features, _rows(rng, plain, rows))
        if len(crowd(domain).draw(PEOPLE, rng)) >= PEOPLE // 8:
            return domain
    return plain


def _integer(rng: np.random.Generator, name: str, kind: str, low: float, shown: Display) -> Integer:
    if kind == "whole":
        first = int(rng.integers(-2, 2))
        return Integer(name, first, first + int(rng.integers(1, 4)), display=shown)
    step = 1.0 / 7.0 if kind == "scaled" else float(rng.choice([0.05, 0.3, 1.0]))
    steps = int(rng.integers(3, 8)) if kind == "scaled" else 1
    return Integer(name, low, low + steps * step, step, shown)


def _rows(rng: np.random.Generator, domain: Domain, rows: str) -> list[tuple[Any, float]]:
    """Return constraints that most, or at least many, people of the plain domain satisfy."""
    people = crowd(domain).draw(PEOPLE, rng)
    made: list[tuple[Any, float]] = []
    if rows == "pair":
        pairs = [(f, g) for f in domain.features for g in domain.features if isinstance(f, OneHot) and f is not g]
        one, other = next((f, g) for f, g in pairs if isinstance(g, OneHot))
        first, second = (f"{f.name}={f.values[int(rng.integers(len(f.values)))]}" for f in (one, other))
        made.append(({first: 1.0, second: 1.0}, 1.0))
    for _ in range({"numbers": 1, "mixed": 1, "two": 2, "three": 3}.get(rows, 0)):
        row = np.round(rng.normal(size=domain.width), 3)
        row[rng.random(domain.width) < 0.3] = 0.0
        if rows == "numbers":
            row[[c for g in domain.groups for c in range(g.start, g.stop)]] = 0.0
        made.append((row, round(float(np.quantile(people @ row, rng.uniform(0.45, 0.9))) + 0.002, 3)))
    return made


def _left(rng: np.random.Generator, domain: Domain, people: np.ndarray, left: str) -> Any:
    someone = people[int(rng.integers(len(people)))]
    if left == "everyone":
        return None
    if left == "a person":
        return someone
    if left == "sharing":
        return domain.sharing(someone)
    limits: dict[str, Any] = {}
    for feature, (name, value) in zip(domain.features, domain.decode(someone).items(), strict=True):
        if isinstance(feature, OneHot):
            limits[name] = [str(value), feature.values[int(rng.integers(len(feature.values)))]]
        elif rng.random() < 0.7:
            shown = [
                feature.display.offset + feature.display.factor * (float(value) + side * float(rng.uniform(0.2, 0.5)))
                for side in (-1.0, 1.0)
            ]
            limits[name] = (min(shown), max(shown))
    return domain.where(**limits)


# ---- networks


def _network(rng: np.random.Generator, people: np.ndarray, body: str, output: str, outputs: int) -> Network:
    """Return a network of the body's kind; a residual block carries its input past itself by identity neurons."""
    width = int(rng.integers(2, 4)) if body in SMOOTH else int(rng.integers(3, 5))
    layers: list[Layer] = []

    def add(count: int, names: list[str] | str, carried: np.ndarray | None = None) -> None:
        x = people if not layers else forward(Network(layers), people)
        weight, bias = _scaled(rng, x, count)
        if carried is not None:
            weight = np.concatenate([weight, np.eye(x.shape[1])[carried]])
            bias = np.concatenate([bias, np.zeros(len(carried))])
        layers.append(Layer(weight, bias, names))

    if body == "residual":
        add(2, "relu")
        add(2, ["relu", "relu", "identity", "identity"], np.arange(2))
        add(1, ["relu", "identity", "identity", "identity", "identity"], np.arange(4))
    elif body == "residual tanh":
        add(2, "identity")
        add(2, ["tanh", "relu", "identity", "identity"], np.arange(2))
    elif body == "input skip":
        some = rng.permutation(people.shape[1])[:2]
        add(3, ["relu", "relu", "relu", *["identity"] * len(some)], some)
        add(2, "relu")
    else:
        for _ in range(2 if body == "deep relu" else 1):
            add(width, body.removeprefix("deep "))
    add(outputs, output)
    return Network(layers)


def _scaled(rng: np.random.Generator, x: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw a layer whose sums, over people, have a spread of about 1.2 and change sign."""
    weight = rng.normal(size=(width, x.shape[1]))
    sums = x @ weight.T
    weight *= (1.2 / np.maximum(sums.std(axis=0), 0.05 * np.abs(sums).max(axis=0) + 1e-3))[:, None]
    return weight, rng.normal(scale=0.5, size=width) - np.median(x @ weight.T, axis=0)


# ---- metrics


def _metric(rng: np.random.Generator, people: np.ndarray, kind: str) -> Metric:
    width = people.shape[1]
    how, _, inner = kind.rpartition(" ")
    if how:
        phi = _phi(rng, people, how, inner)
        p = 2.0 if inner == "relu" else float(inner[1:])
        return Embedding(phi, WeightedLp(rng.uniform(0.5, 1.5, phi.outputs), p=p))
    weights = np.where(rng.random(width) < 0.2, 0.0, rng.uniform(0.3, 2.0, width))
    if not weights.any():
        weights[0] = 1.0
    if kind == "box":
        return WeightedLp(weights, p=float(rng.choice([1.0, 1.5, 2.0])), relaxation="box")
    return WeightedLp(weights, p=float(kind[1:]))


def _phi(rng: np.random.Generator, people: np.ndarray, how: str, inner: str) -> Network:
    """Return a linear phi of 1 or 2 layers, or a relu one with 2 to 4 hidden units; now and then blind to a column."""
    depth = int(rng.integers(1, 3)) if how == "linear" else 2
    widths = [int(rng.integers(2, 5)), int(rng.integers(2, 4))][-depth:]
    names = ["identity"] * depth if how == "linear" else ["relu", "relu" if inner == "relu" else "identity"]
    layers: list[Layer] = []
    for width, name in zip(widths, names, strict=True):
        weight, bias = _scaled(rng, people if not layers else forward(Network(layers), people), width)
        if not layers and rng.random() < 0.3:
            weight[:, int(rng.integers(weight.shape[1]))] = 0.0
        layers.append(Layer(weight, bias, name))
    return Network(layers)


def _eps(rng: np.random.Generator, problem: Problem, people: np.ndarray, kind: str) -> float:
    """Return an eps from 2 % to 80 % of what people usually are apart, sometimes near one step; 0 once in a while.

    It is 0 for diagonal metrics only: no two floats are exactly 0 apart along a rotated null space, so that nothing
    could be said about the lower side.
    """
    if " " not in kind and rng.random() < 0.06:
        return 0.0
    values = compared(problem, people)
    usual = float(np.median(length(values - rng.permutation(values), problem.metric.p)))
    steps = problem.right.steps
    if " " not in kind and steps.any() and rng.random() < 0.4:
        column = int(np.argmax(steps))
        one = float(steps[column] * problem.metric.matrix[column, column])
        if one > 0.0:
            return one * float(rng.choice([0.99, 1.01, 1.5, 2.1]))
    return max(usual, 0.05) * math.exp(rng.uniform(math.log(0.02), math.log(0.8)))
