"""Branch: close the gap by a tree of linear programs, each bound rebuilt from its duals; no solver's word is taken.

A part of a tree is bounded by its slack at a threshold (see `search.score`). Slacks only fall as the threshold rises,
so when a better pair asks for a higher one, parts bounded before keep their bounds.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from likewise.bounds import reach, twin_bounds
from likewise.bounds.tighten import Tightener, tighten
from likewise.bounds.wide import spread_bounds
from likewise.problem import Problem
from likewise.proof import Log, argued_bounds
from likewise.proof.coding import What
from likewise.search.bounding import Job, Result, bound
from likewise.search.cells import cut
from likewise.search.choose import Experience, candidates
from likewise.search.cleave import cleave
from likewise.search.compiled import missing, would_fit
from likewise.search.fast import Fast
from likewise.search.inner import inner_problem
from likewise.search.join import sharpen
from likewise.search.root import Root, open_count
from likewise.search.run import Run
from likewise.search.tree import Bounded, Half, Part, Split, Tree, halves, split_of
from likewise.solvers import Solver

WIDE = 600  # neurons, beyond which a linear program takes minutes
FOR_FORMS = 0.65  # share of the time that is left, for the bounds of a wide network
FOR_REACH, MOST_REACH = 0.3, 10.0  # share of the time, and seconds, to find out which categories can change
WORTH_A_SCOUT = 2.0  # seconds left; a process takes half of one to begin
FIRST_LOOK, FIRST_LOOK_SWIFT = 0.3, 0.1  # seconds for pairs before anything is bounded; where the kernel finds its own
AT_ONCE = 24  # parts to split at a time where splits are not tried out first
AGAIN = 0.8  # a part whose slack fell to this share since its dz were tightened has them tightened again
DRAW_EVERY = 12  # points that ask for a tangent, before the model is built anew with them
TRIAL, FASTEST = 0.2, 1e-4  # of the time that is left, to try splits out; seconds that a part takes at least
DIVE_SHARE = 0.2  # of the time, to look for pairs where the widest part has its point
LOOK_PER_NEURON, LOOK_SWIFT = (
    0.01,
    0.005,
)  # seconds for pairs before anything is narrowed, per neuron whose phase is open
LOOK_EVERY, LOOK_SHARE = 2.0, 0.1  # seconds between looks for pairs from elsewhere, and their share of the time
BETTER, REST = 0.1, 3.0  # a share of the gap by which a pair must be better to narrow anew, and how long not to again
NEAR = 0.12  # of what outputs can differ by, that the best pair is short of: then narrowing alone may well do
AT_FIRST, WELL = 0.05, 0.5  # share of the time to narrow before differences are joined, while rounds halve the slack
STALLED, STALLED_SHARE = 0.05, 0.8  # a share of the gap that splitting should have closed by then; if not, look longer


def search_branch(problem: Problem, run: Run, solver: Solver, threads: int) -> None:
    """Close the gap of one direction by a tree; `solver` is not asked, linear programs are solved by HiGHS."""
    root = begin(problem, run)
    if not run.done:
        root.forward(1 / 3)
    if not run.done:
        grow(root, threads)


def is_wide(problem: Problem) -> bool:
    """Tell whether a network is so wide that a linear program of it takes minutes."""
    return sum(len(layer.bias) for layer in problem.network.layers) > WIDE


def begin(problem: Problem, run: Run) -> Root:
    """Find out who can differ and how far every neuron can go, and look for a first pair.

    A network that is too wide for more is done with here.
    """
    inner, score = inner_problem(problem)
    where = reach(inner, min(FOR_REACH * run.seconds_left, MOST_REACH))
    log = Log(inner, where)
    if is_wide(inner):  # an argument for each of so many neurons would fill the disk
        bounds = twin_bounds(inner, where, with_norms=True)
    else:
        run.logs.append(log)
        bounds = argued_bounds(inner, where, log)
    root = Root(inner, problem, score, run, bounds, log)
    root.prove()
    if is_wide(inner):  # nothing more will be proven: the rest of the time is for pairs
        run.notes.append("the network is too wide for linear programs: bounded by norms and quadratic forms")
        deadline = time.monotonic() + FOR_FORMS * run.seconds_left
        root.bounds = spread_bounds(inner, bounds, deadline)
        root.prove()
        cut(root, deadline)
        while not run.done:
            root.look(run.seconds_left)
    elif not run.done:
        root.look(min(FIRST_LOOK_SWIFT if root.is_compiled else FIRST_LOOK, 0.2 * run.seconds_left))
    return root


def grow(root: Root, threads: int) -> None:
    """Close the gap from what is known; with a thread to spare, a scout looks for pairs meanwhile."""
    # A better pair makes a sharper cut, and wide networks need longer to find one.
    each = LOOK_SWIFT if root.is_compiled else LOOK_PER_NEURON
    root.look(min(each * open_count(root.bounds), 0.05 * root.run.seconds_left))
    if root.run.done:
        return
    if root.is_compiled:
        climb(root, threads)
        return
    if threads > 1 and root.run.seconds_left > WORTH_A_SCOUT:
        with root.send() as scout:
            climb(root, threads - 1)
            if scout.trouble is not None:
                root.run.notes.append(scout.trouble)
        return
    climb(root, threads)


def climb(root: Root, threads: int) -> None:
    """Narrow the root, then split until the gap is closed."""
    if root.is_round:  # a joint takes seconds there; most are closed by then
        root.narrow(1 / 2)
    else:
        if root.is_straight and root.is_compiled and is_near(root):
            root.narrow(AT_FIRST, most=WELL)
        if not root.run.done:
            sharpen(root, 1 / 2)
    if root.run.done:
        return
    if root.is_compiled:
        earlier = cleave(root)
        if not root.run.done:
            Fast(root, threads, earlier).close()
        return
    if missing and would_fit(root.problem):
        root.run.notes.append(
            "the kernel was not built (it takes a C++ compiler at install): Python grows the tree, slowly"
        )
    Branch(root, threads).close()


def is_near(root: Root) -> bool:
    """Tell whether the outputs (or logits) of the best pair differ by nearly as much as bounds allow."""
    left, right = root.problem.network.preactivations(np.stack(root.run.pair()))[-1][:, 0]
    most = float(root.bounds.layers[-1].dz.upper[0])
    return most - float(left - right) < NEAR * most


class Branch:
    """The tree of one direction of a problem, from what its root knows."""

    def __init__(self, root: Root, threads: int) -> None:
        self.root, self.threads = root, threads
        self.problem, self.score, self.run = root.problem, root.score, root.run
        self.experience = Experience()
        self.numbers = 0  # the last node of the proof
        self.pace = FASTEST  # seconds that a part took to bound, of late
        self.plant()
        self.narrowed = (root.run.lower, 0.0)  # the best pair when the root was narrowed last, and until when not again
        self.at_once = 1 if root.is_straight else AT_ONCE
        self.started = self.looked = time.monotonic()
        self.dives = 0
        self.dived, self.seen, self.share = 0.0, self.run.shown, STALLED_SHARE

    def plant(self) -> None:
        """Begin with an empty tree."""
        self.relaxed = self.root.relaxed()
        self.drawn = self._asked()
        self.tree = Tree()
        self.written: dict[int, float] = {0: self.root.proven}  # what the proof shows of each open node

    def close(self) -> None:
        """Split and bound until the gap is closed, nothing is left to split, or time is up."""
        if not self.regrow(self.run.shape(self.problem)):
            return
        while True:
            self.run.prove(max(self.tree.upper, self.score.factor * self.relaxed.question.t))
            if self.run.done:
                return
            widest = self.tree.pop(self.at_once)
            if widest:
                self.work(widest)
                self.look(widest[0])
            fresh = self._asked() - self.drawn
            if self.run.lower > self.relaxed.question.t * self.score.factor or fresh >= (DRAW_EVERY if widest else 1):
                self.renew()
                self.replant()
            elif not widest:
                self.run.notes.append("the tree has nothing left to split: no pair was found that shows its last bound")
                return

    def regrow(self, shape: Iterator[What | None]) -> bool:
        """Split the whole as an earlier search did, and bound what comes of it; without one, bound the whole.

        Tell whether all of it is bounded: if time was over before, nothing may be claimed of the tree.
        """
        todo: list[Half | None] = [Part(self.problem, self.root.bounds).again()]
        jobs: list[Job] = []
        splits = itertools.chain(shape, itertools.repeat(None))
        while todo and not self.run.done:
            half, what = todo.pop(), next(splits)
            split = None if what is None else split_of(what, self.problem)
            if half is not None and split is not None:
                todo += reversed(self.divided(half, split))
            elif what is not None:
                todo += [None, half]
            elif half is not None:
                jobs.append((half, None))
            if len(jobs) >= AT_ONCE or not todo:
                self.keep(jobs)
                jobs = []
        return not todo and not jobs

    def divided(self, half: Half, split: Split) -> list[Half | None]:
        """Split a part, and write that to the proof."""
        parts: list[Half | None] = []
        for part, node in zip(halves(half, split), self.children(half.node, split), strict=True):
            parts.append(None if part is None else replace(part, node=node))
            if part is None:
                self.root.log.empty(node)
        return parts

    def renew(self) -> None:
        """Build the model anew: at a higher threshold, and with the tangents that points have asked for."""
        self.drawn = self._asked()
        self.relaxed = self.root.relaxed()
        self.tree.retry()

    def replant(self) -> None:
        """Narrow the root anew where a much better pair has come up, and begin again if that beats the whole tree."""
        lower, rest = self.narrowed
        now = time.monotonic()
        if now < rest or self.run.lower - lower < BETTER * (self.run.shown - self.run.lower):
            return
        before = self.run.shown
        self.root.narrow(1 / 4)
        after = time.monotonic()
        self.narrowed = (self.run.lower, after + REST * (after - now))
        if self.root.proven <= before and not self.run.done:
            self.root.log.fell()
            self.plant()
            self.keep([(Part(self.problem, self.root.bounds).again(), None)])

    def _asked(self) -> int:
        return len(self.root.near) + len(self.root.touches)

    def work(self, widest: list[Bounded]) -> None:
        """Bound parts anew, tighten or split them; whatever may still hold a pair goes back to the tree."""
        jobs: list[Job] = []
        for part in widest:
            if part.relaxed is not self.relaxed:  # bounded at an earlier threshold: ask again first
                half = part.part.within(self.root.bounds, part.node)
                if half is None:  # a lemma of the root contradicts a split, which a checker sees by itself
                    self.root.log.empty(part.node)
                else:
                    jobs.append((half, part))
            elif not self.root.is_straight:
                jobs += self.cut(part)
            elif part.slack < AGAIN * part.settled:
                self.tighten(part)
            else:
                self.split(part)
        self.keep(jobs)

    def keep(self, jobs: list[Job]) -> None:
        """Bound parts, and put back what may still hold a pair."""
        for result in self.bound(jobs):
            self.put(result)

    def put(self, result: Result) -> None:
        """Write to the proof how a part was bounded, and keep it if it is open."""
        bounded, argue = result
        if argue is None:
            self.root.log.empty(bounded.node)
        elif not bounded.is_open or self._shows(bounded) < self.written.get(bounded.node, math.inf):
            self.root.log.leaf(bounded.node, argue(), bounded.slack)
        if bounded.is_open:
            self.written[bounded.node] = bounded.upper
            self.tree.push(bounded)
        else:
            self.written.pop(bounded.node, None)

    def _shows(self, bounded: Bounded) -> float:
        """Return the bound that a part's own linear program shows; inf where what is known of its parent is better."""
        own = self.score.upper_from_slack(bounded.relaxed.question.t, bounded.slack)
        return own if own <= bounded.upper else math.inf

    def children(self, node: int, split: Split) -> tuple[int, int]:
        """Write a split to the proof, and return the numbers of its halves."""
        self.numbers += 2
        self.written.pop(node, None)
        self.root.log.split(node, split.what, (self.numbers - 1, self.numbers))
        return self.numbers - 1, self.numbers

    def tighten(self, part: Bounded) -> None:
        """Narrow the dz of a part under the cut that its slack is not below 0, and bound it again."""
        bounds = part.part.bounds
        session = self.relaxed.session(part.part.problem, bounds, part.basis)
        self.relaxed.demand(session, 0.0)
        tell = self.root.telling(part.node, self.relaxed, bounds)
        zs = tighten(bounds, Tightener(self.relaxed.template, session, self.run.deadline, tell), self.root.kinds)
        if zs is None:  # two lemmas contradict each other, which a checker sees by itself
            self.root.log.empty(part.node)
            return
        for bounded, argue in self.bound([(Half(part.part.problem, zs, part.node), part)]):
            again = part.slack if bounded.slack < AGAIN * part.slack else bounded.slack
            self.put((replace(bounded, settled=again), argue))

    def cut(self, part: Bounded) -> list[Job]:
        """Return the halves of the split that looks best, untried: curves lose a little with every split."""
        splits = candidates(part, self.root.influence)
        if not splits:
            self.stuck(part)
            return []
        return [(half, part) for half in self.divided(part.part.again(part.node), splits[0]) if half is not None]

    def stuck(self, part: Bounded) -> None:
        """Put a part aside that cannot be split: its point is all but a pair, or the model is too coarse there."""
        self.root.draw(part.relaxed, part.point, 0.0)
        self.root.polish(part)
        self.tree.give_up(part)

    def split(self, widest: Bounded) -> None:
        """Try the most promising splits; narrow the part by halves that are empty, or else split it at the best."""
        splits = self.experience.shortlist(candidates(widest, self.root.influence))
        splits = splits[: max(1, int(TRIAL * self.run.seconds_left / (2 * self.pace)))]
        if not splits:
            self.stuck(widest)
            return
        cut = [halves(widest.part.again(), split) for split in splits]
        results = iter(self.bound([(half, widest) for pair in cut for half in pair if half is not None]))
        tried = [tuple(None if half is None else next(results) for half in pair) for pair in cut]
        alone = [k for k, pair in enumerate(tried) if sum(map(_is_open, pair)) < 2]
        if alone:
            self.fix(widest, [(splits[k], tried[k]) for k in alone])
            return
        gains = [
            self.experience.learn(split, widest.slack, [one[0].slack for one in pair if one])
            for split, pair in zip(splits, tried, strict=True)
        ]
        best = max(range(len(tried)), key=gains.__getitem__)
        for node, result in zip(self.children(widest.node, splits[best]), tried[best], strict=True):
            assert result is not None
            self.put((replace(result[0], node=node), result[1]))

    def fix(self, widest: Bounded, tried: list[tuple[Split, tuple[Result | None, ...]]]) -> None:
        """Narrow a part to what several splits leave of it, each of which has a half that holds no pair."""
        half: Half | None = widest.part.again(widest.node)
        for split, pair in tried:
            if half is None:
                return
            parts, numbers = halves(half, split), self.children(half.node, split)
            half = None
            for one, node, result in zip(parts, numbers, pair, strict=True):
                if one is None or result is None:
                    self.root.log.empty(node)
                elif _is_open(result):
                    half = replace(one, node=node)
                else:
                    self.put((replace(result[0], node=node), result[1]))
        if half is not None:
            self.keep([(half, widest)])

    def bound(self, jobs: list[Job]) -> list[Result]:
        """Bound parts."""
        self.run.tick(self.run.nodes + len(jobs))
        started = time.monotonic()
        found = bound(self.relaxed, self.root.bounds.reach, jobs, self.threads)
        if jobs:
            self.pace = max(FASTEST, (time.monotonic() - started) / len(jobs))
        # What the root has shown of the whole holds of every part.
        return [(replace(one, upper=min(one.upper, self.root.proven)), argue) for one, argue in found]

    def look(self, widest: Bounded) -> None:
        """Look for better pairs below the widest part, and now and then elsewhere; note what bends there."""
        if self.run.done:
            return
        now = time.monotonic()
        self.root.hear()
        self.root.draw(widest.relaxed, widest.point, widest.slack)
        if self.dived < DIVE_SHARE * (now - self.started):
            self.dives += 1
            if self.dives % 2 and self.root.is_straight and self.problem.right.groups:
                self.root.match(widest)
            else:
                self.root.dive(widest)
            self.dived += time.monotonic() - now
        if now - self.looked > LOOK_EVERY and self.root.scout is None:
            # Where splitting brings nothing, most likely a pair is missing; unless looking brings nothing either.
            is_stalled = self.run.shown > self.seen - STALLED * (self.run.shown - self.run.lower)
            share, before = self.share if is_stalled else LOOK_SHARE, self.run.lower
            self.root.look(min(share * (now - self.looked), 0.2 * self.run.seconds_left))
            is_better = self.run.lower > before
            self.share = STALLED_SHARE if is_better or not is_stalled else max(0.4, self.share / 2)
            self.looked, self.seen = time.monotonic(), self.run.shown


def _is_open(result: Result | None) -> bool:
    return result is not None and result[0].is_open
