"""Relaxed: the linear relaxation of a question, which bounds its slack over any part of the pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import expit, logit

from likewise.bounds import TwinBounds
from likewise.bounds.argument import Argument, Tangents
from likewise.bounds.encoding import Detail
from likewise.bounds.joint import Joint
from likewise.bounds.planes import Plane
from likewise.bounds.template import Lines, Template
from likewise.problem import Problem
from likewise.rounding import Array
from likewise.search.question import Question
from likewise.search.score import Score, tangent_points, tangents
from likewise.solvers import Dual, Maximiser, Session, adapted

TANGENTS = 24
BALL = 1e-4  # how far the polyhedron may exceed the ball where no tangent is drawn, relative
DEEPEST = 1e3  # how far below 0 a slack is followed


class Relaxed:
    """The relaxed model of a question: its template with the slack of every tangent."""

    def __init__(
        self,
        problem: Problem,
        bounds: TwinBounds,
        score: Score,
        question: Question,
        touches: Sequence[Array] = (),
        joints: Mapping[int, Joint] | None = None,
        planes: Sequence[Plane] = (),
        places: Sequence[Plane] = (),
    ) -> None:
        last = len(problem.network.layers) - 1
        self.question, self.score, self._touches = question, score, tuple(touches)
        self.template = Template(problem, bounds, Detail(ball=BALL, touches=tuple(touches)), last)
        a, b = self.template.left.z[last][:1], self.template.right.z[last][:1]
        box_a, box_b = bounds.layers[last].left, bounds.layers[last].right
        a_upper, b_lower, b_upper = float(box_a.upper[0]), float(box_b.lower[0]), float(box_b.upper[0])
        self.most = a_upper - b_lower + abs(question.t) + DEEPEST
        slack = self.template.variables(np.array([-DEEPEST]), np.array([self.most]))
        self.tangents = Tangents(question.t, np.zeros(1), np.ones(1), np.array([question.t]))
        if score.curved:
            points = tangent_points(question.t, b_lower, b_upper, a_upper, TANGENTS, question.near)
            cuts = tangents(question.t, b_lower, b_upper, points)
            self.tangents = Tangents(question.t, *np.array([(c.at, c.slope, c.offset) for c in cuts]).T)
        slopes, offsets = self.tangents.slopes, self.tangents.offsets
        one = np.ones(len(slopes), dtype=np.int64)
        endless = np.full(len(one), -np.inf)
        self.cuts = self.template.rows(
            endless, -offsets, (slack * one, 1.0), (a * one, -1.0), (b * one, slopes[:, None])
        )
        self.joints = dict(joints or {})  # by their slots in the proof
        self.joined = {slot: int(self.template.join(joint)[0]) for slot, joint in self.joints.items()}
        self.planes = (*planes, *places)
        self.planed = np.array([self.template.lean(plane) for plane in self.planes], dtype=np.int64)
        self.places = self.planed[len(planes) :]  # rows of planes that a tree leans part by part
        self.slack = int(slack[0])
        self.objective = np.zeros(self.template.columns)
        self.objective[slack] = 1.0

    def session(self, problem: Problem, bounds: TwinBounds, basis: object = None) -> Session:
        """Return the linear program of a part: people of `problem`'s domains, neurons within `bounds`."""
        return Session(self.template.model(problem, bounds), basis)

    def adapted(self, basis: object, old: Relaxed) -> object:
        """Return the basis of a part of an older model where to start in this one; None if there is none."""
        if old is self:
            return basis
        new, before = self.template.touching, old.template.touching
        between = int(self.cuts[0]) - new.stop  # rows of neurons: others where a narrower root has shorter curves
        is_alike = new.start == before.start and between == int(old.cuts[0]) - before.stop
        if self.template.columns != old.template.columns or not is_alike:
            return None
        rows = np.full(self.template.height, -1)
        rows[: new.start] = np.arange(new.start)
        known = {id(touch): before.start + k for k, touch in enumerate(old._touches)}
        if new.stop > new.start:
            rows[new] = [known.get(id(touch), -1) for touch in self._touches]
        rows[new.stop : new.stop + between] = before.stop + np.arange(between)
        with np.errstate(invalid="ignore"):
            apart = np.abs(self.tangents.points[:, None] - old.tangents.points)
        rows[self.cuts] = old.cuts[apart.argmin(axis=1)]
        return adapted(basis, rows)

    def demand(self, session: Maximiser, slack: float) -> None:
        """Let a session's further objectives range over pairs of at least this slack only."""
        session.change_bounds([self.slack], [max(slack, -DEEPEST)], [self.most])

    def argument(self, bounds: TwinBounds, proof: Dual) -> Argument:
        """Return the argument that multipliers of a part's model make; `bounds` are those it was filled with."""
        return self.argued(proof.multipliers, self.template.lines(bounds.layers), proof.mu)

    def argued(self, y: Array, lines: Sequence[Lines], mu: Array | None = None) -> Argument:
        """Return the argument that multipliers of rows make, given the lines of the part they are of.

        The model has joints and planes of v and z of both sides, a proof of dv and dz: the equations between them take
        these over. How a plane leans is in none of its multipliers: it is what they leave over of z.
        """
        argument = self.template.argument(y, lines, mu, self.tangents, self.cuts, self.joined)
        both, turn = ([one.copy() for one in of] for of in (argument.both, argument.turn))
        for slot, joint in self.joints.items():
            times = max(float(argument.joint[slot]), 0.0)
            for k in range(len(joint.both)):
                both[k], turn[k] = both[k] + times * joint.both[k], turn[k] + times * joint.turn[k]
        for plane, times in zip(self.planes, y[self.planed], strict=True):
            if times != 0.0:
                both[plane.layer][plane.neuron] += times * plane.sign
                turn[plane.layer][plane.neuron] += times * plane.rise
        return replace(argument, both=tuple(both), turn=tuple(turn))

    def bent(self, point: Array) -> float:
        """Return how far the slack of a model's point exceeds what its two logits make of it: more tangents help."""
        if not self.score.curved:
            return 0.0
        a, b = self.logits(point)
        p = float(expit(b)) + self.question.t
        return float(point[self.slack]) - (a - float(logit(p)) if p < 1.0 else -math.inf)

    def logits(self, point: Array) -> tuple[float, float]:
        """Return the left and the right logit of a model's point."""
        return float(point[self.template.left.z[-1][0]]), float(point[self.template.right.z[-1][0]])
