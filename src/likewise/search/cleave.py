"""Cleave: halve what the dz of a smooth neuron can be, and find the numbers of all differences together anew.

Which way each neuron's difference goes is what a bound of all together cannot know: for either sign its bowl must be
as high. In half of the pairs a few of the bowls can be much flatter, once they are found for that half; with the
numbers of the whole they would stay as they are. So a part takes as long as a root, and few are enough or it does not
pay.
"""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import dataclass, replace

import numpy as np

from likewise.bounds import Box, TwinBounds, completed
from likewise.bounds.argument import Argument
from likewise.bounds.bowl import Bowls
from likewise.bounds.joint import Forms, Joint
from likewise.bounds.planes import can_lean
from likewise.proof import Kept
from likewise.proof.coding import SCRATCH
from likewise.rounding import Array
from likewise.search.join import can_join, own_difference
from likewise.search.polish import polish
from likewise.search.root import Root
from likewise.search.run import repaired

EACH = 0.1  # of the time left, to find the numbers of a part
AS_MUCH = 0.05  # of the gap, by which a joint may show less than is known for halves of it to be worth a look
TRIED = 10  # parts that are halved before it is asked whether that pays
SLOWER, MUCH = 3.0, 0.2  # times the time left that it may seem to take, or of what is wanted, to be gone on with
POLISH, LOOK, LOOK_EVERY = 0.3, 1.0, 8  # seconds to climb from a part's point, and elsewhere every so many halvings
SPENT = 0.005  # of what is open, that must be missed about dz for halves to be worth it
INSIDE = 0.2  # a cut keeps at least this share of an interval on either side
ACROSS = 65  # places to look for a bowl's highest point


@dataclass(frozen=True, slots=True, eq=False)
class Cloven:
    """A part: its intervals, the joint that bounds it, what that shows of the gap, and where to halve it.

    And how much of that is missed where the joint is met, by tops that are above their bowls.
    """

    node: int
    bounds: TwinBounds
    joint: Joint
    upper: float
    cut: tuple[int, int, float]  # layer, neuron, at
    missed: float

    def __lt__(self, other: Cloven) -> bool:
        """Tell whether to look at this one first."""
        return self.upper > other.upper


def cleave(root: Root) -> Kept | None:
    """Close the gap by halving dz, if that pays; what halves show is claimed as it comes.

    Return their proof where the gap is left to a tree: it is what shows the claim until that has caught up.
    """
    if not can_lean(root.problem.network) or not can_join(root) or not root.joints:
        return None
    begun, mark, first = time.monotonic(), root.log.mark(), _bounded(root, 0, root.bounds, None)
    if first is None or first.upper > root.proven + AS_MUCH * (root.proven - root.run.lower):
        return None  # lines show more: it is not all differences together that the gap is about
    first = replace(first, upper=min(first.upper, root.proven))
    parts, count = [first], 0
    while not root.run.done:
        if count % (2 * LOOK_EVERY) == 0:
            root.look(min(LOOK, 0.05 * root.run.seconds_left))
        root.run.prove(_shown(root, parts))
        if root.run.done:
            break
        is_long = count >= 2 * TRIED and _seems_long(root, first.upper, parts, time.monotonic() - begun)
        if not parts or is_long or _is_spent(root, parts[0]):
            return _left(root, mark)
        part = heapq.heappop(parts)
        halves = _halves(root, part, count)
        if halves is None:  # time is up
            break
        for half in halves:
            heapq.heappush(parts, half)
        count += 2
        root.run.tick(count)
    return None


def _left(root: Root, mark: tuple[int, int, int]) -> Kept | None:
    """Return what has been shown of halves, if that is more than the root shows; another tree is to begin there."""
    kept = root.log.kept() if root.run.shown < root.proven else None
    root.log.fell()
    root.log.back(mark)
    return kept


def _shown(root: Root, parts: list[Cloven]) -> float:
    """Return what all parts show. The root's lemmas are about pairs at its threshold: no less can be claimed."""
    return max(parts[0].upper if parts else 0.0, root.score.factor * root.question().t)


def _is_spent(root: Root, widest: Cloven) -> bool:
    """Tell whether no halves can close a part: none show less than the threshold, or it is not about dz any more."""
    open_gap = widest.upper - root.run.lower - root.run.gap
    return widest.upper <= root.score.factor * root.question().t or widest.missed < SPENT * open_gap


def _seems_long(root: Root, first: float, parts: list[Cloven], seconds: float) -> bool:
    """Tell whether halving has brought little, and at the pace so far would take much longer than there is time."""
    now = _shown(root, parts)
    fallen, left = first - now, now - root.run.lower - root.run.gap
    return fallen < MUCH * (fallen + left) and seconds * left > SLOWER * fallen * root.run.seconds_left


def _halves(root: Root, part: Cloven, count: int) -> list[Cloven] | None:
    """Return the halves of a part that are not empty, bounded and written to the proof; None if time is up first."""
    (layer, neuron, at), found = part.cut, []
    for node, ends in ((count + 1, (-math.inf, at)), (count + 2, (at, math.inf))):
        bounds = _within(root, part.bounds, layer, neuron, ends)
        half = None if bounds is None else _bounded(root, node, bounds, part)
        if bounds is not None and half is None:
            return None
        found.append(half)
    root.log.split(part.node, ("dz", layer, neuron, at), (count + 1, count + 2))
    for node, half in zip((count + 1, count + 2), found, strict=True):
        if half is None:
            root.log.empty(node)
    return [half for half in found if half is not None]


def _within(root: Root, bounds: TwinBounds, layer: int, neuron: int, ends: tuple[float, float]) -> TwinBounds | None:
    """Return bounds with the dz of a neuron between ends; None if no pair is there."""
    zs: list[tuple[Box, Box, Box]] = [(b.left, b.right, b.dz) for b in bounds.layers]
    left, right, dz = zs[layer]
    low, high = dz.lower.copy(), dz.upper.copy()
    low[neuron], high[neuron] = max(low[neuron], ends[0]), min(high[neuron], ends[1])
    zs[layer] = left, right, Box(low, high)
    return completed(root.problem.network, bounds.reach, zs)


def _bounded(root: Root, node: int, bounds: TwinBounds, above: Cloven | None) -> Cloven | None:
    """Bound a part by a joint of its own, and write that to the proof; None if time is up."""
    nu, both, turn = own_difference(root)
    forms, deadline = Forms(root.problem, bounds, both[-1], root.margin), EACH * root.run.seconds_left
    joint = forms.joint(nu, both, turn, time.monotonic() + deadline, None if above is None else above.joint)
    if joint is None and above is not None:
        joint = above.joint
    if joint is None or root.run.done:
        return None
    _climb(root, forms, joint)
    slack, argument, t = _argued(root, bounds, joint)
    upper = root.score.factor * t if slack < 0 else root.score.upper_from_slack(t, slack)
    if upper < (root.proven if above is None else above.upper):
        root.log.leaf(node, argument, slack, joint)
    elif above is not None:
        upper = above.upper  # what shows that shows it of this part, too
    return Cloven(node, bounds, joint, upper, *_cut(forms, joint))


def _argued(root: Root, bounds: TwinBounds, joint: Joint) -> tuple[float, Argument, float]:
    """Return the slack of a part with a joint, the argument for it, and the threshold it is about."""
    relaxed = root.relaxed({SCRATCH: joint})
    session = root.session(relaxed, bounds)
    slack = session.maximise(relaxed.objective)[0]
    return slack, relaxed.argument(bounds, session.proof), relaxed.question.t


def _climb(root: Root, forms: Forms, joint: Joint) -> None:
    """Climb from a pair that differs as a joint is met, in the middle of the best pair."""
    seen, d = forms.seen(joint), np.zeros(root.problem.right.width)
    if seen is None:
        return
    d[forms.free] = seen.y[1 : 1 + len(forms.free)]
    d[np.setdiff1d(np.arange(len(d)), root.problem.right.continuous)] = 0.0
    middle = np.sum(root.run.pair(), axis=0) / 2
    left, right = (
        np.clip(middle + sign * d / 2, domain.lower, domain.upper)
        for sign, domain in ((1.0, root.problem.left), (-1.0, root.problem.right))
    )
    exact = repaired(root.outer, root.bounds.reach, left, right)
    if exact is not None:
        root.run.offer(*exact)
        sides = root.outer, root.problem, root.score, root.bounds.reach
        polish(*sides, root.run, exact, min(POLISH, 0.02 * root.run.seconds_left))


def _cut(forms: Forms, joint: Joint) -> tuple[tuple[int, int, float], float]:
    """Return the neuron whose top is furthest above its bowl where the joint is met, and where to halve its dz.

    And by how much all tops together are above.
    """
    seen = forms.seen(joint)
    y = seen.y if seen is not None else np.zeros(len(forms.one[0]))
    best, chosen, start, total = -1.0, (0, 0, 0.0), 0, 0.0
    for layer, (rows, bowls) in enumerate(zip(forms.dz, forms.bowls, strict=True)):
        low, high = bowls.dz.lower, bowls.dz.upper
        dz, numbers = np.clip(rows @ y, low, high), joint.bowls[:, start : start + len(low)]
        missed = np.where(high > low, bowls.tops(numbers) - _highest(bowls, numbers, dz), -math.inf)
        start, total = start + len(low), total + float(np.maximum(missed, 0.0).sum())
        neuron = int(np.argmax(missed))
        if missed[neuron] > best:
            margin = INSIDE * (high[neuron] - low[neuron])
            inner = low[neuron] + margin, high[neuron] - margin
            at = 0.0 if inner[0] < 0.0 < inner[1] else float(np.clip(dz[neuron], *inner))
            best, chosen = float(missed[neuron]), (layer, neuron, at)
    return chosen, total


def _highest(bowls: Bowls, numbers: Array, dz: Array) -> Array:
    """Return how high each bowl is at some dz, over right z."""
    share = np.linspace(0.0, 1.0, ACROSS)[:, None]
    z = bowls.right.lower + share * (bowls.right.upper - bowls.right.lower)
    dv, (p, q, r, e, f) = bowls.activation.value(z + dz) - bowls.activation.value(z), numbers
    return np.asarray(((p * dv + q * dz + e) * dv).max(axis=0) + (r * dz + f) * dz)
