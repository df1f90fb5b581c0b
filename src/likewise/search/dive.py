"""Dive: follow a linear program's point down to a real pair, deciding what it leaves open as it suggests.

Where the slack of a part is above 0 there may be a better pair. Its categories are decided a few at a time, the
clearest first, then the phases of neurons, and the linear program is asked again each time: after a dozen steps its
point is all but a pair. All pairs are candidates only: `Run.offer` decides.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from likewise.rounding import Array
from likewise.search.choose import candidates
from likewise.search.tree import Bounded, Half, Split, halves

STEPS = 30
COLUMNS, NEURONS = 3, 3  # how many of each are decided at a time

Bound = Callable[[Half, Bounded], Bounded]


def dive(start: Bounded, influence: list[Array], bound: Bound, deadline: float) -> Bounded:
    """Return the deepest part reached; its point is the best guess at a pair."""
    here = start
    for _ in range(STEPS):
        splits = candidates(here, influence)
        columns = [split for split in splits if split.kind in ("category", "integer")]
        chosen = columns[-COLUMNS:] if columns else [split for split in splits if split.kind != "dz"][:NEURONS]
        if not chosen or time.monotonic() > deadline:
            break
        deeper = _decided(here, chosen, bound)
        if deeper is None and len(chosen) > 1:
            deeper = _decided(here, chosen[:1], bound)
        if deeper is None:  # what the point suggests holds no pair: then all there are are in the other half
            deeper = _decided(here, chosen[:1], bound, is_turned=True)
        if deeper is None:
            break
        here = deeper
    return here


def _decided(here: Bounded, splits: list[Split], bound: Bound, is_turned: bool = False) -> Bounded | None:
    half: Half | None = here.part.again(here.node)
    for split in splits:
        half = None if half is None else halves(half, split)[_side(here, split) ^ is_turned]
    deeper = None if half is None else bound(half, here)
    return deeper if deeper is not None and deeper.is_open else None


def _side(here: Bounded, split: Split) -> int:
    """Return the half that the point is in: 0 is below a number, or among the chosen categories."""
    template, point = here.relaxed.template, here.point
    if split.kind == "category":
        return 0
    if split.kind == "integer":
        x = (template.left if split.side == "left" else template.right).x[split.place]
        return int(point[x] > split.at)
    side = template.left if split.kind == "left" else template.right
    return int(point[side.z[split.layer][split.place]] > split.at)
