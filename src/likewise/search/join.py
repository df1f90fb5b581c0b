"""Join: bound the differences of all neurons together, where a linear program pays for each of them alone.

What a program's multipliers make of the differences is one linear function of them. Squares bound it better than lines
do (`bounds.joint`); as a row of the model, that is what it costs from then on. The program finds another way, which is
bounded in turn, until nothing more is won.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from likewise.bounds import settle
from likewise.bounds.argument import Argument
from likewise.bounds.joint import Forms, Joint
from likewise.bounds.planes import can_lean
from likewise.proof.coding import SCRATCH
from likewise.rounding import Array
from likewise.search.aim import aim
from likewise.search.confine import Spare, confine
from likewise.search.root import Root, open_count

WORTH = 0.98  # a joint that leaves more of the slack than this is not kept
ROUNDS = 4  # joints found one after the other, and times that differences are narrowed by one
SHARE = 0.15  # of the time left, to find one
AIM, AIM_SHARE = 0.015, 0.08  # seconds to look for people where a joint is met, for each open neuron; of the time left
WIDEST = 400  # differences and neurons together, beyond which one takes minutes


def sharpen(root: Root, share: float, kinds: Sequence[str] | None = None) -> None:
    """Narrow the root for a share of the time, and join its differences before and after; claim what that shows."""
    if join(root):
        root.claim()
        if not root.run.done:
            aim(root, min(AIM * open_count(root.bounds), AIM_SHARE * root.run.seconds_left))
    hold(root)
    if not root.run.done:
        root.narrow(share, kinds)
    if join(root):
        root.claim()
    hold(root)
    if root.is_round:  # parts are bounded with the whole ball, which leaves no place for joints
        root.joints = {}


def join(root: Root) -> bool:
    """Add to what is known of all differences together, while it pays; tell whether anything was.

    Each may take a share of the time left. What no longer matters is left out: every joint makes the model denser.
    """
    if not can_join(root) or root.run.done:
        return False
    is_new = False
    for _ in range(ROUNDS):
        slack, argument = _ask(root, root.joints)
        root.joints = {slot: joint for slot, joint in root.joints.items() if argument.joint[slot] > 0.0}
        if root.run.done or root.slots == SCRATCH:
            break
        is_own = can_lean(root.problem.network) and not root.joints  # whatever a program's lines pay for
        nu, both, turn = own_difference(root) if is_own else _differences(argument)
        forms = Forms(root.problem, root.bounds, both[-1], root.margin)
        joint = forms.joint(nu, both, turn, time.monotonic() + SHARE * root.run.seconds_left)
        if joint is None or _ask(root, root.joints | {root.slots: joint})[0] > WORTH * slack:
            break
        root.log.joint(root.slots, joint)
        root.joints[root.slots] = joint
        root.slots += 1
        is_new = True
    return is_new


def hold(root: Root) -> None:
    """Narrow differences by what the joint that matters most leaves of each, while that is much."""
    for _ in range(ROUNDS if root.is_straight or can_lean(root.problem.network) else 0):
        if not root.joints or root.run.done:
            return
        argument = _ask(root, root.joints)[1]
        slot = max(root.joints, key=lambda one: float(argument.joint[one]))
        slack, argument = _ask(root, {slot: root.joints[slot]})
        times = float(argument.joint[slot])
        if root.run.done or times <= 0.0 or slack <= 0.0:
            return
        spare = Spare(root.joints[slot], slack, argument, times)
        if not confine(root, spare, argument.tangents.t):
            return


def plain(root: Root) -> float:
    """Return the slack that the program of the whole shows without any joint: it is what splits have to bring down."""
    return _ask(root, {})[0]


def can_join(root: Root) -> bool:
    """Tell whether a root's differences can be joined: there are hidden layers, none too wide, and nothing is aside."""
    hidden = sum(len(b.dz.lower) for b in root.bounds.layers[:-1])
    return root.log.can_join and hidden > 0 and hidden + len(root.bounds.reach.differences.free) <= WIDEST


def _ask(root: Root, joints: dict[int, Joint]) -> tuple[float, Argument]:
    """Return the slack of the whole with some joints, and the argument for it: one that leaves the last dz alone.

    That has been bounded before, by the same means: a program that rests on it says nothing of what it rests on.
    """
    last, relaxed = root.bounds.layers[-1], root.relaxed(joints)
    loose = settle(root.problem.network.layers[-1], last.left, last.right, last.left.minus(last.right))
    bounds = root.bounds.with_layer(len(root.bounds.layers) - 1, loose)
    session = root.session(relaxed, bounds)
    slack = session.maximise(relaxed.objective)[0]
    return slack, relaxed.argument(bounds, session.proof)


def own_difference(root: Root) -> tuple[Array, tuple[Array, ...], tuple[Array, ...]]:
    """Return the difference of the logits, or scores, as a function of differences: nu, both and turn."""
    hidden = [0.0 * layer.bias for layer in root.problem.network.layers[:-1]]
    last = root.problem.network.layers[-1].weight[0]
    return np.zeros(root.problem.right.width), (*hidden[:-1], last), tuple(hidden)


def _differences(argument: Argument) -> tuple[Array, tuple[Array, ...], tuple[Array, ...]]:
    """Return what an argument makes of all differences: nu, both and turn, with what it takes from earlier joints."""
    return argument.nu, argument.both[:-1], argument.turn[:-1]
