"""Branch: close the gap by a tree of linear programs, each bound rebuilt from its duals; no solver's word is taken.

A part of a tree is bounded by its slack at a threshold (see `search.score`). Slacks only fall as the threshold rises,
so when a better pair asks for a higher one, parts bounded before keep their bounds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from likewise.bounds import Reach, TwinBounds, propagated
from likewise.bounds.template import Template
from likewise.network import Network
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


class Relaxed:
    """The relaxed model of a question: its template with the slack of every tangent."""

    def __init__(self, problem: Problem, bounds: TwinBounds, score: Score, question: Question) -> None:
        last = len(problem.network.layers) - 1
        self.question = question
        self.template = Template(problem, bounds.reach, BALL, last)
        a, b = self.template.left.z[last], self.template.right.z[last]
        box_a, box_b = bounds.layers[last].left, bounds.layers[last].right
        a_upper, b_lower, b_upper = float(box_a.upper[0]), float(box_b.lower[0]), float(box_b.upper[0])
        most = a_upper - b_lower + abs(question.t) + 1e3
        slack = self.template.variables(np.array([max(-question.cut, -1e3)]), np.array([most]))
        if score.curved:
            points = tangent_points(question.t, b_lower, b_upper, a_upper, TANGENTS, question.near)
            cuts = tangents(question.t, b_lower, b_upper, points)
            slopes, offsets = np.array([c.slope for c in cuts]), np.array([c.offset for c in cuts])
        else:
            slopes, offsets = np.ones(1), np.array([question.t])
        one = np.ones(len(slopes), dtype=np.int64)
        endless = np.full(len(slopes), -np.inf)
        self.template.rows(endless, -offsets, (slack * one, 1.0), (a * one, -1.0), (b * one, slopes[:, None]))
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


def branch(problem: Problem, network: Network, score: Score, run: Run, bounds: TwinBounds) -> None:
    """Split and bound until the gap is closed, nothing is left to split, or time is up.

    `problem` is that of the logit network, `network` the one with its scores. `bounds` may have been tightened under
    an earlier question's cut: a pair at a later, higher threshold satisfies that cut too.
    """
    relaxed = Relaxed(problem, bounds, score, replace(ask(run, score, problem.network, []), cut=math.inf))

    def bound(halves: list[tuple[Half, Bounded | None]]) -> list[Bounded]:
        parts = list(relaxed.bound(halves, bounds.reach))
        for bounded in sorted(parts, key=lambda bounded: -bounded.slack)[:OFFERED]:
            offer(problem, run, bounds, bounded)
        return parts

    tree = Tree(bound, Part(problem, bounds))
    outer = replace(problem, network=network)
    for rounds in itertools.count():
        run.prove(score.upper_from_slack(relaxed.question.t, tree.slack))
        if run.done or not tree.split(AT_ONCE, relaxed.template):
            return
        run.tick(run.nodes + AT_ONCE)
        if rounds % PRIMAL_EVERY == 0:
            primal(outer, problem.network, score, bounds.reach, run, 0.01 * run.seconds_left)
        if run.lower > relaxed.question.t * score.factor:
            near = relaxed.question.near[-3:]
            relaxed = Relaxed(problem, bounds, score, replace(ask(run, score, problem.network, near), cut=math.inf))


def offer(problem: Problem, run: Run, bounds: TwinBounds, bounded: Bounded) -> None:
    """Offer the people of a linear program's point."""
    left: Array = bounded.point[bounded.template.left.x]
    exact = repaired(problem, bounds.reach.shared, left, bounded.point[bounded.template.right.x])
    if exact is not None:
        run.offer(*exact)
