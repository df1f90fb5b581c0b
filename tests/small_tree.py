"""A tiny tree over linear programs that writes a proof: enough to test logs and the checker without the engine."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from likewise import Certificate, Problem, Witness
from likewise.bounds import TwinBounds, propagated, reach
from likewise.bounds.tighten import open_neurons
from likewise.certificate import Payload, Proof
from likewise.proof import Log, Target, argued_bounds
from likewise.search.branch import Relaxed
from likewise.search.inner import inner_problem
from likewise.search.question import Question
from likewise.search.tree import Bounded, Half, Part, Split, best_split, influence
from likewise.solvers import Session


@dataclass
class Small:
    """A proof of one direction, at a threshold, by at most so many nodes."""

    problem: Problem
    t: float
    most: int = 15
    lemmas: bool = True

    def run(self) -> tuple[float, Payload]:
        """Return the proven upper bound and its payload."""
        inner, score = inner_problem(self.problem)
        where = reach(inner)
        self.log, self.ids = Log(inner, where), 0
        bounds = argued_bounds(inner, where, self.log)
        self.inner, self.score, self.where = inner, score, where
        relaxed = Relaxed(inner, bounds, score, Question(self.t, math.inf, [0.0]))
        if self.lemmas:
            self.argue_boxes(bounds, relaxed)
        open_parts = self.bound(relaxed, [(0, Half.of(Part(inner, bounds)))])
        while open_parts and self.ids < self.most:
            open_parts.sort(key=lambda pair: pair[1].slack)
            node, widest = open_parts.pop()
            split = best_split(widest, influence(inner.network))
            halves = self.halves(node, widest, split)
            if not halves:
                open_parts.insert(0, (node, widest))
                break
            open_parts += self.bound(relaxed, halves)
        slack = max([bounded.slack for _, bounded in open_parts], default=-1.0)
        return max(0.0, score.upper_from_slack(self.t, slack)), self.log.finish()

    def argue_boxes(self, bounds: TwinBounds, relaxed: Relaxed) -> None:
        """Write a lemma for every box that intervals alone may not show."""
        template = relaxed.template
        lines = template.lines(bounds.layers)
        session = Session(template.fill(self.inner, bounds, lines, np.zeros(template.columns)))
        for k, b in enumerate(bounds.layers):
            for j in np.flatnonzero(open_neurons(b) | (k == len(bounds.layers) - 1)).tolist():
                for kind in ("left", "right", "dz"):
                    for sign in (1.0, -1.0):
                        target, objective = Target(k, j, kind, sign), np.zeros(template.columns)
                        left, right = target.coefficients(k, len(b.dz.lower))
                        objective[template.left.z[k]], objective[template.right.z[k]] = left, right
                        value, _ = session.maximise(objective)
                        self.log.lemma(0, k, j, kind, sign, value, self.argument(relaxed, session, lines))

    def argument(self, relaxed, session, lines):
        return relaxed.template.argument(session.proof.multipliers, lines, relaxed.tangents, relaxed.tangent_rows)

    def bound(self, relaxed: Relaxed, nodes: list[tuple[int, Half]]) -> list[tuple[int, Bounded]]:
        """Bound nodes, and write what closes them; return those that stay open."""
        still = []
        for node, half in nodes:
            layers, alive = propagated(self.inner.network, [half.zs])
            if not alive[0]:
                self.log.empty(node)
                continue
            bounds = TwinBounds(self.where, tuple(b[0] for b in layers))
            lines = relaxed.template.lines(bounds.layers)
            model = relaxed.template.fill(half.problem, bounds, lines, relaxed.objective)
            session = Session(model)
            slack, point = session.maximise(relaxed.objective)
            argument = self.argument(relaxed, session, lines)
            self.log.leaf(node, argument, slack)
            if slack >= 0.0:
                narrow = relaxed.template.shrunk(bounds, model, session.proof)
                self.log.narrow(node, argument, bounds, narrow)
                part = Part(half.problem, narrow)
                still.append((node, Bounded(slack, part, point, relaxed.template, session.basis)))
        return still

    def halves(self, node: int, bounded: Bounded, split: Split) -> list[tuple[int, Half]]:
        """Split a node where `best_split` says, and write where that is."""
        if split.weight <= 0.0:
            return []
        cut = split.halves
        inside = dict(zip(cut.__code__.co_freevars, (cell.cell_contents for cell in cut.__closure__), strict=True))
        halves = cut()
        if "group" in inside:
            group = inside["group"]
            mask = np.arange(group.stop - group.start) == inside["category"]
            what = ("category", "both" if inside["shared"] else inside["side"], group, mask)
        elif "column" in inside:
            column = inside["column"]
            at = self.inner.right.lower[column]  # overwritten below: the cut is between two steps
            part = bounded.part
            at = part.problem.right.lower[column] + (inside["at"] + 0.5) * part.problem.right.steps[column]
            side = "both" if self.where.shared[column] else inside["side"]
            what = ("integer", side, column, float(at))
        else:
            index, j, side = inside["index"], inside["j"], inside["side"]
            one, other = (h.zs[index][0 if side == "left" else 1].upper[j] for h in halves)
            what = (side, index, j, float(min(one, other)))
        if len(halves) < 2:  # one of the two holds nobody, and `best_split` left it out
            return []
        children = [self.ids + 1, self.ids + 2]
        self.ids += 2
        self.log.split(node, what, children)
        return list(zip(children, halves, strict=True))


def certified(problem: Problem, t: float, most: int = 15, **options: bool) -> Certificate:
    """Return a certificate with a proof, its witness one person twice or whatever `lower` there is at hand."""
    directions = [problem] if problem.symmetric else [problem, problem.swapped()]
    runs = [Small(p, t, most, **options).run() for p in directions]
    person = problem.left.person()
    score = float(problem.network(person[None])[0])
    witness = Witness(person, person.copy(), score, score, 0.0, problem.right)
    upper = max(upper for upper, _ in runs)
    proof = Proof(problem.eps, tuple(payload for _, payload in runs))
    return Certificate(problem, 0.0, upper, witness, "small", "highs", 0.1, proof=proof)


__all__ = ["Small", "certified", "replace"]
