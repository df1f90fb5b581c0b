"""The paper engine: the published encoding, corrected where its text errs, as the baseline for comparison.

Two independent copies of the network, big-M rows for relu, SOS2 with binaries on a grid for every curved activation,
the output's sigmoid included, one-hot binaries in both copies, the metric relaxed to its box, pre-activation bounds
by linear programs over the relaxed domain. No coordinates are shared and no differences bounded. The model contains
every similar pair with its true values, so the solver's dual bound is an upper bound; `lower` is a re-evaluated pair.
That bound is the solver's word, and solvers err: where a pair that is found in a moment refutes it, nothing is said.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from likewise.activations import by_name, pwl_bounds
from likewise.bounds import Box, Differences, Reach, domain_upper
from likewise.bounds.encoding import people_rows
from likewise.bounds.interval import activate, affine
from likewise.bounds.reach import unlimited
from likewise.bounds.rows import Index, Rows
from likewise.domain import Domain
from likewise.errors import SolverError
from likewise.metric import Metric, unfolded
from likewise.network import Layer, Network
from likewise.problem import Problem
from likewise.rounding import Array, up
from likewise.search.attack import attack
from likewise.search.inner import beside
from likewise.search.run import Run, repaired
from likewise.solvers import Limits, Progress, Session, Solver, Status, Watch, solver_room

GRID = 32
LOOK, LOOK_SHARE = 0.3, 0.05  # seconds to look for a pair that may refute the solver, and their share of the time


@dataclass(frozen=True, slots=True, eq=False)
class Copy:
    """The variables of one person: inputs, the last layer's values so far."""

    x: Index
    v: Index


def search_paper(problem: Problem, run: Run, solver: Solver, threads: int, grid: int = GRID) -> None:
    """Solve the published encoding of one direction and claim the solver's dual bound."""
    network, metric, eps = _flat(problem)
    left_bounds = layer_bounds(network, problem.left, grid, run)
    right_bounds = left_bounds if problem.symmetric else layer_bounds(network, problem.right, grid, run)
    rows = Rows()
    left = _copy(rows, network, problem.left, left_bounds, grid, len(network.layers))
    right = _copy(rows, network, problem.right, right_bounds, grid, len(network.layers))
    one, other = (left.x, right.x) if problem.metric.is_linear else (left.v[1:], right.v[1:])
    for row in metric.matrix:
        rows.row([*one, *other], [*row, *-row], -eps, eps)
    objective = np.zeros(len(rows.lower))
    objective[left.v[0]], objective[right.v[0]] = 1.0, -1.0
    model = rows.model(objective)
    apart = problem.right.upper - problem.left.lower
    plain = metric if problem.metric.is_linear else unlimited(len(apart))
    anyhow = Reach(Differences(plain, eps, -apart, apart), np.zeros(len(apart), dtype=bool), problem.right.groups)
    attack(problem, anyhow, run, np.random.default_rng(0), min(LOOK, LOOK_SHARE * run.seconds_left))
    word = Word(problem, anyhow, run, solver.name, solver_room(model), (left.x, right.x))
    answer = solver.solve(model, Limits(run.seconds_left, run.gap, threads), watch=Watch(word.progress, word.point))
    run.tick(answer.nodes)
    if answer.status is not Status.INFEASIBLE:
        word.claim(answer.bound)
    if answer.point is not None:
        word.point(answer.point)
    word.require()


class Word:
    """What a solver says of a model, held against the pairs that are known."""

    def __init__(
        self, problem: Problem, reach: Reach, run: Run, name: str, room: float, people: tuple[Index, Index]
    ) -> None:
        self._problem, self._reach, self._run, self._name, self._room = problem, reach, run, name, room
        self._people = people
        self._said, self._seen = np.inf, run.seen  # the least bound that was claimed, and the largest gap

    @property
    def _is_refuted(self) -> bool:
        return self._said < self._seen

    def claim(self, bound: float) -> None:
        """Take a dual bound, unless a pair has refuted one."""
        self._said = min(self._said, max(bound + self._room, 0.0))  # anyone is a pair with themselves
        if not self._is_refuted:
            self._run.prove(bound + self._room, f"dual bounds of {self._name}")

    def progress(self, news: Progress) -> bool:
        """Take what is new; tell whether to stop."""
        self._run.tick(news.nodes)
        self.claim(news.bound)
        return self._run.done or self._is_refuted

    def point(self, x: Array) -> None:
        """Make a pair of a solver's point."""
        exact = repaired(self._problem, self._reach, *(x[columns] for columns in self._people))
        if exact is not None and self._problem.admits(*exact):
            self._seen = max(self._seen, self._problem.gap_lower(*exact))
            if not self._is_refuted:
                self._run.offer(*exact)

    def require(self) -> None:
        """Refuse all of it if a pair has refuted any of it."""
        if self._is_refuted:
            told = f"says that no gap is above {self._said:.9g}, but a pair has {self._seen:.9g}"
            raise SolverError(f"{self._name} {told}")


def _flat(problem: Problem) -> tuple[Network, Metric, float]:
    """Return the network, the rectangular metric and eps; an embedding that is not linear is run beside the network."""
    metric = problem.metric.boxed()
    if metric.is_linear:
        apart = np.maximum(problem.left.upper - problem.right.lower, problem.right.upper - problem.left.lower)
        return problem.network, *unfolded(metric, problem.eps, up(np.abs(apart), 2))
    both = problem.network if metric.phi is None else beside([problem.network, metric.phi])
    return both, replace(metric, phi=None), problem.eps


def layer_bounds(network: Network, domain: Domain, grid: int, run: Run) -> list[Box]:
    """Bound every layer's z: intervals first, then two linear programs per neuron over the layers before."""
    bounds: list[Box] = []
    value = Box(domain.lower, domain.upper)
    for index, layer in enumerate(network.layers):
        box = affine(layer.weight, layer.bias, value)
        if index == 0:
            exact = Box(
                layer.bias - domain_upper(domain, -layer.weight), layer.bias + domain_upper(domain, layer.weight)
            )
            box = box.meet(Box(np.nextafter(exact.lower, -np.inf), np.nextafter(exact.upper, np.inf)))
        elif run.seconds_left > 0:
            box = _tightened(network, domain, bounds, box, grid, run.deadline)
        bounds.append(box)
        value = activate(layer, box)
    return bounds


def _tightened(network: Network, domain: Domain, bounds: list[Box], box: Box, grid: int, deadline: float) -> Box:
    rows = Rows()
    index = len(bounds)
    copy = _copy(rows, network, domain, bounds, grid, index)
    layer = network.layers[index]
    session = Session(rows.model())
    low, high = box.lower.copy(), box.upper.copy()
    for j in range(len(layer.bias)):
        if time.monotonic() > deadline:
            break
        objective = np.zeros(len(rows.lower))
        objective[copy.v] = layer.weight[j]
        high[j] = min(high[j], float(up(session.maximise(objective)[0] + layer.bias[j])))
        low[j] = max(low[j], -float(up(session.maximise(-objective)[0] - layer.bias[j])))
    return Box(low, high)


def _copy(rows: Rows, network: Network, domain: Domain, bounds: list[Box], grid: int, layers: int) -> Copy:
    x = rows.variables(domain.lower, domain.upper)
    for group in domain.groups:
        rows.row(x[group], np.ones(group.stop - group.start), 1.0, 1.0)
        for column in x[group]:
            rows.integer[column] = True
    people_rows(rows, domain, x)
    v = x
    for index in range(layers):
        v = _layer(rows, network.layers[index], v, bounds[index], grid)
    return Copy(x, v)


def _layer(rows: Rows, layer: Layer, before: Index, box: Box, grid: int) -> Index:
    values = activate(layer, box)
    z = rows.variables(box.lower, box.upper)
    leaving = z.copy()
    for j, name in enumerate(layer.activations):
        rows.row([*before, z[j]], [*layer.weight[j], -1.0], -layer.bias[j], -layer.bias[j])
        if name == "identity":
            continue
        leaving[j] = rows.variable(values.lower[j], values.upper[j])
        add = _relu if name == "relu" else _grid
        add(rows, name, int(z[j]), int(leaving[j]), (box.lower[j], box.upper[j]), grid)
    return leaving


def _relu(rows: Rows, _name: str, z: int, v: int, box: tuple[float, float], _grid: int) -> None:
    """v = max(0, z) by a binary y that says z >= 0: v <= z - low (1 - y), v <= high y; none if the sign is settled."""
    low, high = box
    if low >= 0.0:
        rows.row([v, z], [1.0, -1.0], 0.0, 0.0)
    elif high > 0.0:
        y = rows.variable(0.0, 1.0, integer=True)
        rows.row([v, z], [1.0, -1.0], lower=0.0)
        rows.row([v, z, y], [1.0, -1.0, -low], upper=-low)
        rows.row([v, y], [1.0, -high], upper=0.0)


def _grid(rows: Rows, name: str, z: int, v: int, box: tuple[float, float], grid: int) -> None:
    """Put v between piecewise-linear bounds: weights eta on the breaks, nonzero only at the ends of the chosen cell."""
    curve = pwl_bounds(by_name(name), box[0], box[1], grid)
    count = len(curve.breaks)
    if count == 1:
        return
    eta = rows.variables(np.zeros(count), np.ones(count))
    y = np.array([rows.variable(0.0, 1.0, integer=True) for _ in range(count - 1)])
    rows.row(eta, np.ones(count), 1.0, 1.0)
    rows.row(y, np.ones(count - 1), 1.0, 1.0)
    rows.row([*eta, z], [*curve.breaks, -1.0], 0.0, 0.0)
    for k in range(count):
        cells = y[max(0, k - 1) : k + 1]
        rows.row([eta[k], *cells], [1.0, *-np.ones(len(cells))], upper=0.0)
    rows.row([*eta, v], [*curve.lower, -1.0], upper=0.0)
    rows.row([*eta, v], [*curve.upper, -1.0], lower=0.0)
