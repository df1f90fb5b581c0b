"""Fast: the branch engine's tree as the kernel grows it; here pairs are made real and claims are made.

The kernel works for a slice of time; then its pairs are polished, its bound is claimed, and where a better pair or a
point that asks for a tangent has come up it goes on with a sharper model.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from likewise.bounds import TwinBounds
from likewise.bounds.argument import Argument
from likewise.bounds.template import Lines
from likewise.bounds.tighten import ALL
from likewise.proof import Kept, Log
from likewise.proof.coding import What
from likewise.rounding import Array
from likewise.search import compiled
from likewise.search.aim import aim
from likewise.search.compiled import CLOSED, EMPTY, KINDS, SIDES, SPLIT
from likewise.search.join import plain, sharpen
from likewise.search.polish import polish
from likewise.search.relaxed import Relaxed
from likewise.search.root import Root
from likewise.search.run import repaired

SLICE = 0.25  # seconds that the kernel works between looks at what it has found
BETTER = 0.3  # of the wanted gap, by which a pair must be better to be looked at before a slice is over
POLISH, POLISHED = 0.1, 3  # seconds to climb from one of the kernel's pairs, and from how many of a slice
MOST = 2_000_000  # parts of a tree, of some thousand bytes each
STUCK = 8  # parts that cannot be split whose points are looked at
PATIENCE, PATIENCE_SHARE = 2.0, 0.3  # seconds before all of the root is narrowed, and the share of what is left for it
JUMP, REST = (
    0.2,
    0.5,
)  # of the gap, by which a better pair has all of the root narrowed at once; seconds before, at least
EASIER = 0.8  # of the slack of its program, that a root must have left for another tree to begin if it shows no more
LOOK_FIRST, LOOK_MOST = 0.3, 3.0  # seconds to look for pairs elsewhere, each time twice as long
LOOK_SHARE = 0.2  # of the time, for these looks
LOOK_BEFORE = 1.0  # seconds to look for pairs before all of the root is narrowed: a better one makes that worth more


Models = list[tuple[Relaxed, TwinBounds]]  # of a tree, with the bounds that each was filled with


@dataclass(frozen=True, slots=True, eq=False)
class Earlier:
    """A tree that shows what is claimed while another one, from a narrower root, does not show as much yet."""

    tree: Any  # the kernel's
    models: Models
    mark: tuple[int, int, int]  # what its root knew, in the log


class Fast:
    """The tree of one direction of a problem, from what its root knows."""

    def __init__(self, root: Root, threads: int, earlier: Kept | None = None) -> None:
        """Begin a tree; `earlier` is the proof of what is claimed, if that is more than the root shows."""
        self.root, self.run, self.threads = root, root.run, threads
        self.looked, self.look_for = time.monotonic(), LOOK_FIRST
        self.begun, self.patience, self.rest = self.run.seconds, max(PATIENCE, self.run.seconds), REST
        self.lower = self.run.lower  # when the root was narrowed last
        self.earlier: Earlier | Kept | None = earlier
        self.plant()

    def plant(self) -> None:
        """Begin with an empty tree."""
        self.models: Models = []
        root = self.root
        self.tree = compiled.tree(root.problem, root.bounds, self._model(), root.influence, root.proven)
        self.root.log.rest = self.write

    def _model(self) -> Relaxed:
        relaxed = self.root.relaxed(is_tree=True)
        self.drawn = self._asked()
        self.models.append((relaxed, self.root.bounds))
        return relaxed

    def _asked(self) -> int:
        return len(self.root.near) + len(self.root.touches)

    def close(self) -> None:
        """Grow until the gap is closed, nothing is left to split, or time is up."""
        self.regrow(self.run.shape(self.root.problem))
        factor = self.root.score.factor
        while not self.run.done:
            relaxed = self.models[-1][0]
            seconds = min(SLICE, self.run.seconds_left)
            wanted = max((self.run.lower + self.run.gap) / factor, relaxed.question.t)
            self.tree.run(seconds, self.run.lower / factor, BETTER * self.run.gap / factor, wanted, self.threads)
            self.run.tick(self.tree.bounded)
            shows = max(factor * max(self.tree.upper, relaxed.question.t), 0.0)
            self.run.prove(shows)
            if shows <= self.run.shown:
                self.earlier = None
            if self.run.done:
                return
            self.climb()
            self.root.hear()
            for point in self.tree.points()[:STUCK]:
                self.consider(relaxed, point[: relaxed.template.columns])
            is_better = self.run.lower > factor * relaxed.question.t
            if self.is_time_to_narrow:
                self.replant()
            elif is_better or self._asked() > self.drawn:
                self.renew()
            elif self.tree.size > MOST:
                self.run.notes.append(f"the tree has more than {MOST} parts: it is left as it is")
                return
            elif self.tree.open == self.tree.stuck:
                self.run.notes.append("the tree has nothing left to split: no pair was found that shows its last bound")
                return
            self.look()

    @property
    def is_time_to_narrow(self) -> bool:
        """Whether all of the root should be narrowed: splitting takes long, or a pair came up that cuts much more."""
        waited = self.run.seconds - self.begun
        has_jumped = self.run.lower - self.lower > JUMP * (self.run.shown - self.run.lower)
        return waited > self.patience or (has_jumped and waited > self.rest)

    def regrow(self, shape: Iterator[What | None]) -> None:
        """Split the whole as an earlier search did; what the kernel would not have split that way stays whole."""
        todo: list[int | None] = [0]
        for what in shape:
            if not todo:
                break
            node = todo.pop()
            split = None if what is None or node is None else self._split(what)
            if what is not None:
                todo += [None, None] if split is None else reversed(self.tree.divide(node, *split))
        self.tree.gather()

    def _split(self, what: What) -> tuple[int, int, int, int, int, float] | None:
        """Return a proof's split as the kernel has it; None if it has no such splits."""
        kind, first, where, at = what
        if isinstance(first, int) and isinstance(where, int):
            is_hidden = first < len(self.root.problem.network.layers) - 1
            return (KINDS.index(kind), 2, first, where, 0, float(at)) if is_hidden else None
        groups = self.root.problem.right.groups
        if not isinstance(where, slice) or where not in groups or np.count_nonzero(at) != 1:
            return None
        is_shared = bool(self.root.bounds.reach.shared[where].all())
        if is_shared != (first == "both"):
            return None
        chosen = where.start + int(np.argmax(at))
        return KINDS.index(kind), SIDES.index(str(first)), 0, groups.index(where), chosen, 0.0

    def renew(self) -> None:
        """Go on with a model of what is known by now."""
        told = compiled.question(self.root.problem, self.root.bounds, self._model(), self.root.influence)
        self.tree.renew(told, compiled.root(self.root.bounds))

    def replant(self) -> None:
        """Narrow every neuron of the root, z as well as dz; begin again if that shows more or promises to.

        Otherwise it is all forgotten: parts were closed by what is shown of all differences within the intervals that
        they had, and within narrower ones the same numbers may show a little less. For the same reason a tree that
        shows more than the narrower root is kept, as it is, until the next one has caught up.
        """
        before, shown, root = self.run.seconds, self.run.shown, self.root
        root.look(min(LOOK_BEFORE, 0.05 * self.run.seconds_left))
        known = root.bounds, dict(root.joints), root.slots, root.proven, root.margin
        mark, slack = root.log.mark(), plain(root)
        sharpen(root, PATIENCE_SHARE, ALL)
        self.begun, self.lower = self.run.seconds, self.run.lower
        self.rest = max(REST, self.begun - before)
        self.patience = max(2 * self.patience, 3 * (self.begun - before))
        open_share = (shown - self.lower) / max(known[3] - self.lower, 1e-300)  # of the root's gap, left by the tree
        if root.proven <= self.run.shown and self.run.done:
            self.earlier = None
            root.log.alone()  # the root shows by itself what the tree was to show
        elif root.proven < shown or plain(root) < EASIER * open_share * slack:
            if root.proven > self.run.shown and self.earlier is None:
                self.earlier = Earlier(self.tree, self.models, mark)
            self.plant()
        else:
            root.bounds, root.joints, root.slots, root.proven, root.margin = known
            root.log.back(mark)
            if not self.run.done:
                self.renew()

    def climb(self) -> None:
        """Make the kernel's pairs real, and climb from the best."""
        root = self.root
        for _, left, right in sorted(self.tree.pairs(), key=lambda pair: -pair[0])[:POLISHED]:
            exact = repaired(root.outer, root.bounds.reach, left, right)
            if exact is not None and not self.run.done:
                self.run.offer(*exact)
                seconds = min(POLISH, 0.05 * self.run.seconds_left)
                polish(root.outer, root.problem, root.score, root.bounds.reach, self.run, exact, seconds)

    def consider(self, relaxed: Relaxed, point: Array) -> None:
        """Take the point of a part that cannot be split: all but a pair, or the model is too coarse there."""
        root = self.root
        root.draw(relaxed, point, 0.0)
        exact = repaired(root.outer, root.bounds.reach, *root.people(relaxed, point))
        if exact is not None and self.run.offer(*exact):
            seconds = min(POLISH, 0.05 * self.run.seconds_left)
            polish(root.outer, root.problem, root.score, root.bounds.reach, self.run, exact, seconds)

    def look(self) -> None:
        """Look for pairs elsewhere now and then, longer each time."""
        is_time = time.monotonic() - self.looked > self.look_for / LOOK_SHARE
        if is_time and self.root.scout is None:
            seconds = min(self.look_for, 0.2 * self.run.seconds_left)
            if not aim(self.root, seconds / 2):
                self.root.look(seconds / 2)
            self.root.look(seconds / 2)
            self.looked, self.look_for = time.monotonic(), min(2 * self.look_for, LOOK_MOST)

    def write(self, log: Log) -> None:
        """Write to the proof the tree that shows what is claimed."""
        if isinstance(self.earlier, Kept):
            log.restore(self.earlier)
            return
        tree, models = self.tree, self.models
        if self.earlier is not None:
            tree, models = self.earlier.tree, self.earlier.models
            log.back(self.earlier.mark)
        log.fell()
        lines = [relaxed.template.lines(bounds.layers) for relaxed, bounds in models]
        argue = partial(_argument, models, lines)
        groups = self.root.problem.right.groups
        todo = [0]
        while todo:
            node = todo.pop()
            state, one, other, (kind, side, layer, place, chosen, at), model, index, value, mu = tree.node(node)
            for lemma_layer, neuron, sign, *how in tree.lemmas(node):
                log.lemma(node, lemma_layer, neuron, "dz", float(sign), argue(*how))
            if state == SPLIT:
                what: What = (KINDS[kind], layer, place, at)
                if KINDS[kind] == "category":
                    group = groups[place]
                    mask = np.arange(group.start, group.stop) == chosen
                    what = (KINDS[kind], SIDES[side], group, mask)
                log.split(node, what, (one, other))
                todo += [other, one]
            elif state == EMPTY:
                log.empty(node)
            elif model >= 0:
                log.leaf(node, argue(model, index, value, mu), -1.0 if state == CLOSED else 0.0)


def _argument(models: Models, lines: list[list[Lines]], model: int, index: Array, value: Array, mu: Array) -> Argument:
    """Return the argument that multipliers of one of a tree's models make."""
    relaxed = models[model][0]
    y = np.zeros(relaxed.template.height)
    y[index] = value
    return relaxed.argued(y, lines[model], mu)
