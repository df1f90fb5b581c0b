"""Branch: close the gap by a tree of linear programs, each bound rebuilt from its duals; no solver's word is taken.

A part of a tree is bounded by its slack at a threshold (see `search.score`). Slacks only fall as the threshold rises,
so when a better pair asks for a higher one, parts bounded before keep their bounds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from likewise.bounds import Reach, TwinBounds, propagated
from likewise.bounds.argument import Tangents
from likewise.bounds.ball import excess
from likewise.bounds.encoding import Detail
from likewise.bounds.template import Template
from likewise.problem import Problem
from likewise.rounding import Array
from likewise.search.primal import primal
from likewise.search.question import Question, ask
from likewise.search.run import Run, repaired
from likewise.search.score import Score, tangent_points, tangents
from likewise.search.tree import Bounded, Half, Part, Tree
from likewise.solvers import Session

TANGENTS = 24
AT_ONCE = 24  # parts to split at a time
OFFERED = 3  # points of linear programs per round
PRIMAL_EVERY = 30  # rounds
BALL = 1e-6  # how far the polyhedron may exceed the ball, relative
OUTSIDE = 1e-7  # how far a point may exceed a ball made of tangents before one is drawn there
DRAW_EVERY = 12  # new tangents, before the model is built anew with them


class Relaxed:
    """The relaxed model of a question: its template with the slack of every tangent."""

    def __init__(
        self, problem: Problem, bounds: TwinBounds, score: Score, question: Question, touches: Sequence[Array] = ()
    ) -> None:
        last = len(problem.network.layers) - 1
        self.question = question
        self.template = Template(problem, bounds, Detail(ball=BALL, touches=tuple(touches)), last)
        a, b = self.template.left.z[last][:1], self.template.right.z[last][:1]
        box_a, box_b = bounds.layers[last].left, bounds.layers[last].right
        a_upper, b_lower, b_upper = float(box_a.upper[0]), float(box_b.lower[0]), float(box_b.upper[0])
        most = a_upper - b_lower + abs(question.t) + 1e3
        slack = self.template.variables(np.array([max(-question.cut, -1e3)]), np.array([most]))
        if score.curved:
            points = tangent_points(question.t, b_lower, b_upper, a_upper, TANGENTS, question.near)
            cuts = tangents(question.t, b_lower, b_upper, points)
            slopes, offsets = np.array([c.slope for c in cuts]), np.array([c.offset for c in cuts])
            points = np.array([c.at for c in cuts])
        else:
            slopes, offsets, points = np.ones(1), np.array([question.t]), np.zeros(1)
        self.tangents = Tangents(question.t, points, slopes, offsets)
        one = np.ones(len(slopes), dtype=np.int64)
        endless = np.full(len(slopes), -np.inf)
        self.tangent_rows = self.template.rows(
            endless, -offsets, (slack * one, 1.0), (a * one, -1.0), (b * one, slopes[:, None])
        )
        self.objective = np.zeros(self.template.columns)
        self.objective[slack] = 1.0

    def bound(self, halves: list[tuple[Half, Bounded | None]], where: Reach) -> Iterator[Bounded]:
        """Bound the slack of many parts, each by its linear program; those that are proven empty are left out."""
        layers, alive = propagated(halves[0][0].problem.network, [half.zs for half, _ in halves])
        lines = self.template.lines(layers)
        for row in np.flatnonzero(alive).tolist():
            half, parent = halves[row]
            bounds = TwinBounds(where, tuple(b[row] for b in layers))
            own = [tuple(values[row] for values in part) for part in lines]
            model = self.template.fill(half.problem, bounds, own, self.objective)
            # A basis fits only a model with the same rows.
            same = parent is not None and parent.template is self.template
            session = Session(model, parent.basis if parent is not None and same else None)
            slack, point = session.maximise(self.objective)
            if slack >= 0.0:
                bounds = self.template.shrunk(bounds, model, session.proof)
            slack = slack if parent is None else min(slack, parent.slack)
            yield Bounded(slack, Part(half.problem, bounds), point, self.template, session.basis)


class Branch:
    """A tree over one direction of a problem: `problem` is the inner one, `outer` the one that pairs must satisfy."""

    def __init__(self, problem: Problem, outer: Problem, score: Score, run: Run, bounds: TwinBounds) -> None:
        self.problem, self.outer, self.score, self.run, self.bounds = problem, outer, score, run, bounds
        self.touches: list[Array] = []
        self.relaxed = self.ask([])
        self.tree = Tree(self.bound, Part(problem, bounds))

    def ask(self, near: list[float]) -> Relaxed:
        """Return the relaxed model of the next question; no cut, because an empty part is proven by its own bound."""
        question = replace(ask(self.run, self.score, self.problem.network, near), cut=math.inf)
        return Relaxed(self.problem, self.bounds, self.score, question, self.touches)

    def bound(self, halves: list[tuple[Half, Bounded | None]]) -> list[Bounded]:
        """Bound halves, and offer the people of the widest ones' points."""
        self.run.tick(self.run.nodes + len(halves))
        parts = list(self.relaxed.bound(halves, self.bounds.reach))
        for bounded in sorted(parts, key=lambda bounded: -bounded.slack)[:OFFERED]:
            template = bounded.template
            left, right = bounded.point[template.left.x], bounded.point[template.right.x]
            exact = repaired(self.outer, self.bounds.reach, left, right)
            if exact is not None:
                self.run.offer(*exact)
            over, touch = excess(template.compared[0], bounded.point[template.compared[1]])
            if over > OUTSIDE:
                self.touches.append(touch)
        return parts

    def close(self) -> None:
        """Split and bound until the gap is closed, nothing is left to split, or time is up."""
        run, score = self.run, self.score
        drawn = 0
        for rounds in itertools.count():
            run.prove(score.upper_from_slack(self.relaxed.question.t, self.tree.slack))
            if run.done:
                return
            stuck = not self.tree.split(AT_ONCE, self.relaxed.template)
            if rounds % PRIMAL_EVERY == 0:
                primal(self.outer, self.problem, score, self.bounds.reach, run, 0.01 * run.seconds_left)
            if run.done:
                continue
            fresh = len(self.touches) - drawn
            if run.lower > self.relaxed.question.t * score.factor or fresh >= DRAW_EVERY or (stuck and fresh):
                drawn = len(self.touches)
                self.relaxed = self.ask(self.relaxed.question.near[-3:])
            elif stuck:
                # The last parts may have been split into nothing at all: then none is open any more.
                run.prove(score.upper_from_slack(self.relaxed.question.t, self.tree.slack))
                if run.done:
                    return
                run.notes.append("the tree has nothing left to split: no pair was found that shows its last bound")
                return


def branch(problem: Problem, outer: Problem, score: Score, run: Run, bounds: TwinBounds) -> None:
    """Close the gap by a tree. `problem` is the inner one, `outer` has the scores.

    `bounds` may have been tightened under an earlier question's cut: a pair at a later, higher threshold satisfies
    that cut too.
    """
    Branch(problem, outer, score, run, bounds).close()
