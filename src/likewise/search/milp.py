"""The milp engine: thresholds by tangents, shared columns, difference rows, a lifted ball, a solver's dual bound.

The gap is never encoded. At a threshold t just above the best pair, the model's maximal slack of the cuts a >= g(b)
is bounded by the solver; below 0 it proves that no pair has a gap of t, and any value of it proves some bound
(`Score.upper_from_slack`). The model always holds the best pair itself, so it is feasible by construction.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace

import numpy as np

from likewise.activations import by_name
from likewise.bounds import Reach, TwinBounds, reach, twin_bounds
from likewise.bounds.ball import BALLS, excess
from likewise.bounds.encoding import Detail, Encoding, add_preactivations, encode, pieces
from likewise.bounds.template import Template
from likewise.bounds.tighten import open_neurons, tighten
from likewise.network import Network
from likewise.problem import Problem
from likewise.rounding import Array
from likewise.search.branch import OUTSIDE, TANGENTS, Relaxed, branch
from likewise.search.inner import inner_problem
from likewise.search.polish import polish
from likewise.search.primal import primal
from likewise.search.question import Question, ask
from likewise.search.run import Run, repaired
from likewise.search.score import Score, tangent_points, tangents
from likewise.solvers import Limits, LinearModel, Progress, Session, Solver, Status, Watch, solver_room

FOR_REACH = 0.1  # share of the time to find out which categories can change
MOST_REACH = 10.0  # seconds of it
FIRST_PRIMAL = 0.4  # seconds for pairs before anything is asked
MORE_PRIMAL = 0.03  # seconds for pairs before the solver starts, per neuron whose phase is open
CLIMB_SECONDS = 0.5  # from a solver's point
PASSES = 4  # of tightening under the question's cut
STALLED = 5  # rounds in a row that moved neither bound


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """The encoding of a question with its slack variable."""

    encoding: Encoding
    slack: int
    linear: LinearModel


def search_milp(problem: Problem, run: Run, solver: Solver, threads: int) -> None:
    """Close the gap of one direction as far as time allows; everything found goes through `run`."""
    inner, score = inner_problem(problem)
    where = reach(inner, min(FOR_REACH * run.seconds_left, MOST_REACH))
    bounds = twin_bounds(inner, where)
    prove_from_bounds(run, score, bounds)
    if run.done:
        return
    primal(problem, inner, score, where, run, min(FIRST_PRIMAL, 0.2 * run.seconds_left))
    engine = Engine(inner, problem, score, run, solver, threads)
    bounds = engine.forward(bounds)
    prove_from_bounds(run, score, bounds)
    engine.close(bounds)


def prove_from_bounds(run: Run, score: Score, bounds: TwinBounds) -> None:
    """Claim what the output layer's bounds alone prove; they are likewise's own, outward rounded."""
    last = bounds.layers[-1]
    run.prove(score.upper(float(last.left.upper[0]), float(last.right.lower[0]), float(last.dz.upper[0])))


@dataclass(slots=True, eq=False)
class Engine:
    """One direction of one problem on one solver: `problem` is the inner one, `outer` what pairs must satisfy."""

    problem: Problem
    outer: Problem
    score: Score
    run: Run
    solver: Solver
    threads: int
    detail: Detail = field(default_factory=Detail)
    wary: bool = False  # the solver called a model empty that holds a real pair: give it more room

    def forward(self, bounds: TwinBounds) -> TwinBounds:
        """Tighten layer by layer with linear programs over the layers before; a third of the time at most."""
        deadline = time.monotonic() + self.run.seconds_left / 3
        for index in range(1, len(bounds.layers)):
            if not open_neurons(bounds.layers[index - 1]).any():
                continue
            template = Template(self.problem, bounds, replace(self.detail, ball=1e-4), index)
            session = Session(template.model(self.problem, bounds))
            bounds = tighten(self.problem, bounds, template, session, deadline, first=index)
            self.run.tick()
        return bounds

    def close(self, bounds: TwinBounds) -> None:
        """Ask thresholds just above the best pair until none is left to ask."""
        near: list[float] = []
        stalled = 0
        seconds = self.run.seconds_left
        # A solver needs a grid where activations are curved; a tree only has to shrink their intervals.
        # So is the ball of an embedding that is made of tangents.
        curved = not is_piecewise_linear(self.problem.network) or (
            self.problem.aside > 0 and self.problem.metric.p not in BALLS
        )
        while not self.run.done and stalled < STALLED:
            before = (self.run.lower, self.run.upper)
            question = self.question(near)
            tight = self.conditional(question, bounds)
            if not near and not self.run.done:
                # Before the solver starts it pays to look longer: a better pair asks a sharper question.
                time_for_pairs = min(MORE_PRIMAL * open_count(tight), 0.1 * seconds)
                primal(self.outer, self.problem, self.score, bounds.reach, self.run, time_for_pairs)
                question = self.question(near)
            if self.run.done:
                return
            if self.wary or curved:
                self.branch(tight)
                return
            near = self.ask(question, tight, self.run.seconds_left)
            moved = self.run.lower - before[0] + before[1] - self.run.upper
            stalled = 0 if moved > 1e-3 * self.run.gap else stalled + 1
        if stalled:
            self.run.notes.append(f"{self.solver.name} made no progress in {STALLED} rounds")
            self.branch(bounds)

    def branch(self, bounds: TwinBounds) -> None:
        """Close the gap by a tree: for curved activations, and when the solver is not to be trusted."""
        branch(self.problem, self.outer, self.score, self.run, bounds)

    def question(self, near: list[float]) -> Question:
        """Ask for a little more than the best pair; without a cut if the solver was seen to lose it."""
        question = ask(self.run, self.score, self.problem.network, near)
        return replace(question, cut=math.inf) if self.wary else question

    def model(self, question: Question, bounds: TwinBounds, part: Problem | None = None) -> Model:
        """Encode the question, of a part of the problem if one is given: slack <= a - tangent(b) for every tangent."""
        problem = part or self.problem
        last = len(problem.network.layers) - 1
        encoding = encode(problem, bounds, self.detail, last)
        add_preactivations(encoding, problem, bounds, last, self.detail)
        a, b = int(encoding.left.z[last][0]), int(encoding.right.z[last][0])
        box_a, box_b = bounds.layers[last].left, bounds.layers[last].right
        a_upper, b_lower, b_upper = float(box_a.upper[0]), float(box_b.lower[0]), float(box_b.upper[0])
        rows = encoding.rows
        slack = rows.variable(-question.cut if math.isfinite(question.cut) else -1e3, a_upper - b_lower + 1e3)
        if self.score.curved:
            points = tangent_points(question.t, b_lower, b_upper, a_upper, TANGENTS, question.near)
            for cut in tangents(question.t, b_lower, b_upper, points):
                rows.row([slack, a, b], [1.0, -1.0, cut.slope], upper=-cut.offset)
        else:
            rows.row([slack, a, b], [1.0, -1.0, 1.0], upper=-question.t)
        objective = np.zeros(len(rows.lower))
        objective[slack] = 1.0
        return Model(encoding, slack, rows.model(objective))

    def conditional(self, question: Question, bounds: TwinBounds) -> TwinBounds:
        """Tighten all bounds under the question's cut, which the best pair satisfies, while it pays.

        Before each pass the relaxed model's own bound on the slack is claimed.
        """
        if self.wary:
            return bounds
        deadline = time.monotonic() + min(self.run.seconds_left / 4, 20.0)
        size = openness(bounds)
        for _ in range(PASSES):
            relaxed = Relaxed(self.problem, bounds, self.score, question, self.detail.touches)
            session = Session(relaxed.template.model(self.problem, bounds))
            slack, _ = session.maximise(relaxed.objective)
            self.claim(question, slack, None)
            if self.run.done or time.monotonic() > deadline:
                break
            bounds = tighten(self.problem, bounds, relaxed.template, session, deadline)
            before, size = size, openness(bounds)
            if size > 0.9 * before:
                break
        return bounds

    def claim(self, question: Question, slack: float, trusted: str | None) -> None:
        """Turn a bound on the slack into one on the gap."""
        if math.isfinite(slack):
            self.run.prove(self.score.upper_from_slack(question.t, slack), trusted)

    def ask(self, question: Question, bounds: TwinBounds, seconds: float) -> list[float]:
        """Run the solver on the question; return logits at which more tangents are worth having."""
        model = self.model(question, bounds)
        trusted = f"dual bounds of {self.solver.name}"
        seen: list[float] = []
        b_index = int(model.encoding.right.z[-1][0])

        room = solver_room(model.linear)
        if math.isinf(room):
            self.wary = True
            return seen

        def progress(news: Progress) -> bool:
            self.run.tick(self.run.nodes)
            self.claim(question, news.bound + room, trusted)
            return self.run.done or self.better(question)

        def point(x: Array) -> None:
            self.offer(model.encoding, bounds.reach, x)
            seen.append(float(x[b_index]))

        limits = Limits(seconds, 0.0, self.threads)
        answer = self.solver.solve(model.linear, limits, watch=Watch(progress, point))
        self.run.nodes += answer.nodes
        self.wary = answer.status is Status.INFEASIBLE
        if not self.wary:
            self.claim(question, answer.bound + room, trusted)
        if answer.point is not None:
            point(answer.point)
            self.climb(model.encoding, bounds.reach, answer.point)
        self.refine(answer.point, model.encoding, bounds)
        return seen[-4:]

    def better(self, question: Question) -> bool:
        """Tell whether the best pair has passed the threshold, so that a higher one should be asked."""
        return self.run.lower > question.t * self.score.factor

    def offer(self, encoding: Encoding, where: Reach, x: Array) -> None:
        """Offer the people of a solver's point."""
        exact = repaired(self.outer, where, x[encoding.left.x], x[encoding.right.x])
        if exact is not None:
            self.run.offer(*exact)

    def climb(self, encoding: Encoding, where: Reach, x: Array) -> None:
        """Polish the pair that a solver's point stands for: its categories may be new, its numbers a little off."""
        exact = repaired(self.outer, where, x[encoding.left.x], x[encoding.right.x])
        if exact is not None:
            seconds = min(CLIMB_SECONDS, 0.1 * self.run.seconds_left)
            polish(self.outer, self.problem, self.score, where, self.run, exact, seconds)

    def refine(self, x: Array | None, encoding: Encoding, bounds: TwinBounds) -> None:
        """Draw the ball closer, and add breakpoints where a solver's point sits on a curved activation.

        A cell that holds the point is split there, or in the middle if the point is near one of its ends.
        """
        if x is None:
            return
        over, touch = excess(bounds.reach.differences, x[encoding.d])
        touches = (*self.detail.touches, touch) if over > OUTSIDE else self.detail.touches
        grid = dict(self.detail.grid)
        for index in range(len(encoding.left.v)):
            names = self.problem.network.layers[index].activations
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


def is_piecewise_linear(network: Network) -> bool:
    """Tell whether the network is made of straight pieces up to its logit."""
    return all(by_name(name).is_piecewise_linear() for layer in network.layers for name in layer.activations)


def open_count(bounds: TwinBounds) -> int:
    """Count the neurons whose phase is open."""
    return sum(int(open_neurons(b).sum()) for b in bounds.layers)


def openness(bounds: TwinBounds) -> float:
    """Measure how much is left open: the widths of z and dz over the neurons whose phase is open."""
    return sum(
        float((box.upper - box.lower)[open_neurons(b)].sum()) for b in bounds.layers for box in (b.left, b.right, b.dz)
    )


def _split(breaks: Array, z: float) -> Array:
    i = int(np.clip(np.searchsorted(breaks, z) - 1, 0, len(breaks) - 2))
    low, high = breaks[i], breaks[i + 1]
    if high - low < 1e-7:
        return np.empty(0)
    inside = 0.15 < (z - low) / (high - low) < 0.85
    return np.array([z if inside else (low + high) / 2])
