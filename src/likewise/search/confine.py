"""Confine: narrow the dz of every neuron by what all differences together leave of it, for pairs at the threshold.

An argument that bounds the slack by way of a joint, g.y <= R times some number, says of every pair at the threshold
that g.y >= R - spare, spare = slack / number. R - g.y is a form that is nowhere negative and products that are not (see
`bounds.joint`), so the form is at most `spare` there: y is in an ellipsoid around the point where the form is least, a
small one if the best pair is nearly the best there is. With the same weights g + tau l has an upper bound R', for any
linear l and tau > 0, so l.y <= (R' - R + spare) / tau. The best tau gives the ellipsoid's own extent.

Linear programs cannot see that: they know of all differences together as one sum, not what it makes of each.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from likewise.bounds import Box, completed
from likewise.bounds.argument import Argument
from likewise.bounds.joint import Forms, Joint
from likewise.bounds.stack import Zs
from likewise.proof.coding import JOINTS, SCRATCH
from likewise.rounding import Array
from likewise.search.root import Root

WORTH = 0.1  # of its width, by which an interval must get narrower to be worth a lemma
SHARE = 0.1  # of the time left, to do this
MARGIN = 1e-6  # relative, of joints within intervals narrowed here: a reader's are narrower by less than that
ROOM = 1e-11  # relative, for what is added up here


@dataclass(frozen=True, slots=True, eq=False)
class Confined:
    """sign dz <= bound of a neuron, for pairs at the threshold; `joint`, that of g + tau l, is how it comes about."""

    layer: int
    neuron: int
    sign: float
    bound: float
    tau: float
    joint: Joint


@dataclass(frozen=True, slots=True, eq=False)
class Spare:
    """A joint of a root, the slack that an argument shows by way of it, and its number there."""

    joint: Joint
    slack: float
    argument: Argument
    times: float

    def left(self, upper: float) -> float:
        """Return by how much g.y may be below its upper bound, as the forms of narrower intervals show that."""
        return self.slack / self.times - (self.joint.upper - upper)

    def argued(self, found: Confined) -> Argument:
        """Return the argument for sign dz: this one with the joint of g + tau l in its place, divided by tau.

        A lemma about dz is written as one about both z, and the equation between them; the joint speaks of dz itself.
        """
        by, old, joint = 1.0 / (found.tau * self.times), self.argument, np.zeros(JOINTS)
        joint[SCRATCH] = 1.0 / found.tau
        left, right, both, turn = (
            tuple(by * one for one in part) for part in (old.left, old.right, old.both, old.turn)
        )
        turn[found.layer][found.neuron] -= found.sign
        omega = by * old.omega[0], by * old.omega[1]
        weights, nu, mu = (by * part for part in (old.weights, old.nu, old.mu))
        return Argument(old.tangents, weights, left, right, both, turn, nu, mu, omega, joint)


def confine(root: Root, spare: Spare, t: float) -> bool:
    """Narrow the dz of hidden neurons where that is worth it, and write how to the proof; tell whether it was.

    A reader narrows one after the other, and what it derives hangs on all intervals: so do forms here.
    """
    deadline, is_narrower = time.monotonic() + SHARE * root.run.seconds_left, False
    forms = Forms(root.problem, root.bounds, spare.joint.both[-1])
    for layer, neuron, sign in _promising(root, spare, forms):
        if time.monotonic() > deadline:
            break
        found = _confined(root, spare, forms, layer, neuron, sign)
        if found is None:
            continue
        root.log.joint(SCRATCH, found.joint)
        root.log.lemma(0, layer, neuron, "dz", sign, spare.argued(found))
        dz = root.bounds.layers[layer].dz
        is_empty = found.bound < (dz.lower if sign > 0 else -dz.upper)[neuron]
        tight = None if is_empty else completed(root.problem.network, root.bounds.reach, _narrowed(root, found))
        if tight is None:
            root.fall(t)
            return True
        root.bounds, root.margin, is_narrower = tight, MARGIN, True
        forms = Forms(root.problem, root.bounds, spare.joint.both[-1])
    root.prove(t)
    return is_narrower


def _promising(root: Root, spare: Spare, forms: Forms) -> list[tuple[int, int, float]]:
    """Return layers, neurons and signs for which the ellipsoid, as it is now, is much narrower than intervals."""
    looked = forms.seen(spare.joint)
    if looked is None:
        return []
    left = max(spare.left(looked.upper), 0.0)
    found = []
    for k, (rows, b) in enumerate(zip(forms.dz, root.bounds.layers, strict=False)):
        middle, spread = looked.ellipsoid(rows)
        reach = np.sqrt(left * spread)
        enough = WORTH * (b.dz.upper - b.dz.lower)
        for sign, known in ((1.0, b.dz.upper), (-1.0, -b.dz.lower)):
            found += [(k, int(j), sign) for j in np.flatnonzero(sign * middle + reach < known - enough)]
    return found


def _confined(root: Root, spare: Spare, forms: Forms, layer: int, neuron: int, sign: float) -> Confined | None:
    """Bound sign dz of one neuron; None if that is not worth a lemma."""
    joint, looked, dz = spare.joint, forms.seen(spare.joint), root.bounds.layers[layer].dz
    if looked is None:
        return None
    row = sign * forms.dz[layer][neuron]
    middle, spread = (float(one[0]) for one in looked.ellipsoid(row[None]))
    left = max(spare.left(looked.upper), 1e-12 * (abs(looked.upper) + 1e-12))
    if spread <= 0.0:
        return None
    tau = 2.0 * math.sqrt(left / spread)
    turn = [*joint.turn]
    turn[layer] = turn[layer].copy()
    turn[layer][neuron] -= tau * sign
    tau = float(sign * (joint.turn[layer][neuron] - turn[layer][neuron]))  # as it was rounded
    if tau <= 0.0:
        return None
    there = forms.shown(
        joint.nu, joint.both, tuple(turn), looked.upper + tau * middle + tau**2 * spread / 4, looked.weights
    )
    if there is None:
        return None
    parts = np.array([there.upper, -joint.upper, spare.slack / spare.times])
    bound = float(parts.sum() + ROOM * np.abs(parts).sum()) / tau
    bound += ROOM * abs(bound)
    known, width = (dz.upper if sign > 0 else -dz.lower)[neuron], (dz.upper - dz.lower)[neuron]
    return Confined(layer, neuron, sign, bound, tau, there) if bound < known - WORTH * width else None


def _narrowed(root: Root, found: Confined) -> Zs:
    """Return all intervals of a root, one of them narrower."""
    zs: list[tuple[Box, Box, Box]] = [(b.left, b.right, b.dz) for b in root.bounds.layers]
    left, right, dz = zs[found.layer]
    ends: list[Array] = [dz.lower.copy(), dz.upper.copy()]
    ends[found.sign > 0][found.neuron] = found.sign * found.bound
    zs[found.layer] = (left, right, Box(*ends))
    return zs
