"""The milp engine: thresholds by tangents, shared columns, difference rows, a lifted ball, a solver's dual bound.

The gap is never encoded. At a threshold t just above the best pair, the model's maximal slack of the cuts a >= g(b)
is bounded by the solver; below 0 it proves that no pair has a gap of t, and any value of it proves some bound
(`Score.upper_from_slack`). The model always holds the best pair itself, so it is feasible by construction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from likewise.activations import by_name
from likewise.bounds import Reach, TwinBounds
from likewise.bounds.ball import BALLS, excess
from likewise.bounds.encoding import Detail, Encoding, add_preactivations, encode, pieces
from likewise.problem import Problem
from likewise.rounding import Array
from likewise.search.branch import Branch, begin
from likewise.search.polish import polish
from likewise.search.question import Question, ask
from likewise.search.relaxed import TANGENTS
from likewise.search.root import OUTSIDE, Root, open_count
from likewise.search.run import Run, repaired
from likewise.search.score import Score, tangent_points, tangents
from likewise.solvers import Limits, LinearModel, Progress, Solver, Status, Watch, solver_room

MORE_PRIMAL = 0.03  # seconds for pairs before the solver starts, per neuron whose phase is open
CLIMB_SECONDS = 0.5  # from a solver's point
STALLED = 5  # rounds in a row that moved neither bound


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """The encoding of a question with its slack variable."""

    encoding: Encoding
    slack: int
    linear: LinearModel


def search_milp(problem: Problem, run: Run, solver: Solver, threads: int) -> None:
    """Close the gap of one direction as far as time allows; everything found goes through `run`."""
    root = begin(problem, run)
    if not run.done:
        root.forward(1 / 3)
    if not run.done:
        root.narrow(1 / 4)
    if run.done:
        return
    if fits_solver(root):
        Engine(root, solver, threads).close()
    else:
        Branch(root, threads).close()


@dataclass(slots=True, eq=False)
class Engine:
    """One direction of one problem on one solver, from what its root knows."""

    root: Root
    solver: Solver
    threads: int
    detail: Detail = field(default_factory=Detail)
    near: list[float] = field(default_factory=list)
    wary: bool = False  # the solver called a model empty that holds a real pair, or its numbers are out of reach

    @property
    def run(self) -> Run:
        """Where claims go."""
        return self.root.run

    @property
    def score(self) -> Score:
        """What the output makes of logits."""
        return self.root.score

    def close(self) -> None:
        """Ask thresholds just above the best pair until none is left to ask; what a solver cannot do, a tree does."""
        run, stalled = self.run, 0
        # Before the solver starts it pays to look longer: a better pair asks a sharper question.
        self.root.look(min(MORE_PRIMAL * open_count(self.root.bounds), 0.1 * run.seconds_left))
        while not (run.done or self.wary) and stalled < STALLED:
            before = (run.lower, run.shown)
            self.ask(ask(run, self.score, self.root.problem.network, self.near[-4:]))
            moved = run.lower - before[0] + before[1] - run.shown
            stalled = 0 if moved > 1e-3 * run.gap else stalled + 1
        if stalled:
            run.notes.append(f"{self.solver.name} made no progress in {STALLED} rounds")
        if not run.done:
            Branch(self.root, self.threads).close()

    def model(self, question: Question) -> Model:
        """Encode the question: slack <= a - tangent(b) for every tangent."""
        problem, bounds = self.root.problem, self.root.bounds
        last = len(problem.network.layers) - 1
        encoding = encode(problem, bounds, self.detail, last)
        add_preactivations(encoding, problem, bounds, last, self.detail)
        a, b = int(encoding.left.z[last][0]), int(encoding.right.z[last][0])
        box_a, box_b = bounds.layers[last].left, bounds.layers[last].right
        a_upper, b_lower, b_upper = float(box_a.upper[0]), float(box_b.lower[0]), float(box_b.upper[0])
        rows = encoding.rows
        slack = rows.variable(-question.cut, a_upper - b_lower + 1e3)
        if self.score.curved:
            points = tangent_points(question.t, b_lower, b_upper, a_upper, TANGENTS, question.near)
            for cut in tangents(question.t, b_lower, b_upper, points):
                rows.row([slack, a, b], [1.0, -1.0, cut.slope], upper=-cut.offset)
        else:
            rows.row([slack, a, b], [1.0, -1.0, 1.0], upper=-question.t)
        objective = np.zeros(len(rows.lower))
        objective[slack] = 1.0
        return Model(encoding, slack, rows.model(objective))

    def claim(self, question: Question, slack: float, trusted: str | None) -> None:
        """Turn a bound on the slack into one on the gap."""
        if math.isfinite(slack):
            self.run.prove(self.score.upper_from_slack(question.t, slack), trusted)

    def ask(self, question: Question) -> None:
        """Run the solver on the question, and note the logits at which more tangents are worth having."""
        model, where = self.model(question), self.root.bounds.reach
        trusted = f"dual bounds of {self.solver.name}"
        b_index = int(model.encoding.right.z[-1][0])
        room = solver_room(model.linear)
        if math.isinf(room):
            self.wary = True
            return

        def progress(news: Progress) -> bool:
            self.run.tick(self.run.nodes)
            self.claim(question, news.bound + room, trusted)
            return self.run.done or self.better(question)

        def point(x: Array) -> None:
            self.offer(model.encoding, where, x)
            self.near.append(float(x[b_index]))

        limits = Limits(self.run.seconds_left, 0.0, self.threads)
        answer = self.solver.solve(model.linear, limits, watch=Watch(progress, point))
        self.run.nodes += answer.nodes
        self.wary = answer.status is Status.INFEASIBLE
        if not self.wary:
            self.claim(question, answer.bound + room, trusted)
        if answer.point is not None:
            point(answer.point)
            self.climb(model.encoding, where, answer.point)
            self.refine(answer.point, model.encoding, self.root.bounds)

    def better(self, question: Question) -> bool:
        """Tell whether the best pair has passed the threshold, so that a higher one should be asked."""
        return self.run.lower > question.t * self.score.factor

    def offer(self, encoding: Encoding, where: Reach, x: Array) -> None:
        """Offer the people of a solver's point."""
        exact = repaired(self.root.outer, where, x[encoding.left.x], x[encoding.right.x])
        if exact is not None:
            self.run.offer(*exact)

    def climb(self, encoding: Encoding, where: Reach, x: Array) -> None:
        """Polish the pair that a solver's point stands for: its categories may be new, its numbers a little off."""
        exact = repaired(self.root.outer, where, x[encoding.left.x], x[encoding.right.x])
        if exact is not None:
            seconds = min(CLIMB_SECONDS, 0.1 * self.run.seconds_left)
            polish(self.root.outer, self.root.problem, self.score, where, self.run, exact, seconds)

    def refine(self, x: Array, encoding: Encoding, bounds: TwinBounds) -> None:
        """Draw the ball closer, and add breakpoints where a solver's point sits on a curved activation.

        A cell that holds the point is split there, or in the middle if the point is near one of its ends.
        """
        over, touch = excess(bounds.reach.differences, x[encoding.d])
        touches = (*self.detail.touches, touch) if over > OUTSIDE else self.detail.touches
        grid = dict(self.detail.grid)
        for index in range(len(encoding.left.v)):
            names = self.root.problem.network.layers[index].activations
            for j, name in enumerate(names):
                if by_name(name).is_piecewise_linear():
                    continue
                for side, box in (
                    (encoding.left, bounds.layers[index].left),
                    (encoding.right, bounds.layers[index].right),
                ):
                    curve = pieces(name, box.lower[j], box.upper[j], self.detail, (index, j))
                    new = _split(curve.breaks, float(x[side.z[index][j]]) / side.scale[index][j])
                    grid[(index, j)] = np.unique(np.concatenate([grid.get((index, j), np.empty(0)), new]))
        self.detail = replace(self.detail, grid=grid, ball=max(self.detail.ball / 4, 1e-9), touches=touches)


def fits_solver(root: Root) -> bool:
    """Tell whether the model is made of straight pieces.

    A solver needs a grid where activations are curved; a tree only has to shrink their intervals. So it is with the
    ball of an embedding that is made of tangents.
    """
    return root.is_straight and not (root.problem.aside > 0 and root.problem.metric.p not in BALLS)


def _split(breaks: Array, z: float) -> Array:
    i = int(np.clip(np.searchsorted(breaks, z) - 1, 0, len(breaks) - 2))
    low, high = breaks[i], breaks[i + 1]
    if high - low < 1e-7:
        return np.empty(0)
    inside = 0.15 < (z - low) / (high - low) < 0.85
    return np.array([z if inside else (low + high) / 2])
