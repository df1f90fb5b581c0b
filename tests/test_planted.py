"""Planted faults: each is put into the library on purpose, and the soundness check must notice.

The check is a question whose answer is known: is every gap below that of a pair we hold? A sound engine never says yes.
It is asked with the search for pairs switched off, so that nothing but the proofs decides, just below the pair's gap.
The same questions with no fault planted must pass, or the check would be worth nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from oracle import dense_search
from problems import Case, make

from likewise import SoundnessError
from likewise.bounds import Box, Differences, LayerBounds, Reach, reach, settle
from likewise.bounds.difference import difference_lines
from likewise.bounds.interval import affine
from likewise.bounds.linear import Lines, activation_lines
from likewise.search import fast, milp, root, search
from likewise.search.primal import Primal
from likewise.search.score import Cut, tangents
from likewise.solvers import Dual, dual

JUST_BELOW = 1e-5
# Neurons that hardly move, next to ones that do: solvers once lost real pairs of these to their tolerances.
DELICATE = (224, 320, 386, 540, 584, 793, 892)
SECONDS = 4.0

Patch = Callable[[str, object], None]


@cache
def question(seed: int) -> tuple[Case, float]:
    """Return a case and the gap of a pair that truly exists; the search is on and nothing is planted."""
    case = make(seed)
    return case, dense_search(case.problem).gap


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> Patch:
    """Switch off what looks for pairs, and return how to plant a fault."""
    monkeypatch.setattr(Primal, "look", lambda *_: None)
    for module in (fast, milp, root):
        monkeypatch.setattr(module, "repaired", lambda *_: None)
    return lambda where, what: monkeypatch.setattr(f"likewise.{where}", what)


def refuted(seed: int, engine: str = "milp", seconds: float = SECONDS) -> str:
    """Say how the engine contradicts itself, or what it claims below a gap that exists; empty if it does neither."""
    case, gap = question(seed)
    delta = max(gap - JUST_BELOW, 0.0)
    try:
        cert = search(case.problem, engine=engine, solver="highs", seconds=seconds, gap=1e-5, delta=delta)
    except SoundnessError as error:
        return f"SoundnessError: {error}"
    return f"upper {cert.upper!r}, a pair has {gap!r}, trusted: {cert.trusted}" if cert.upper < gap else ""


def flipped_difference(slope: Box, dz: Box) -> Lines:
    lines = difference_lines(slope, dz)
    return replace(lines, upper_slope=-lines.upper_slope)


def flipped_lines(layer: object, z: Box) -> Lines:
    lines = activation_lines(layer, z)
    return replace(lines, upper_offset=-lines.upper_offset)


def inward_dual(model: object, multipliers: np.ndarray) -> Dual:
    proof = dual(model, multipliers)
    return replace(proof, bound=proof.bound - 1e-4)


def inward_tangents(t: float, b_lower: float, b_upper: float, points: np.ndarray) -> list[Cut]:
    return [Cut(c.slope, c.offset + 1e-4) for c in tangents(t, b_lower, b_upper, points)]


def dropped_group(problem: object, seconds: float) -> Reach:
    found = reach(problem, seconds)
    box = found.differences
    lower, upper = box.lower.copy(), box.upper.copy()
    for group in found.flippable:
        lower[group] = upper[group] = 0.0
    still = Differences(box.metric, box.eps, lower, upper)
    return Reach(still, (lower == 0.0) & (upper == 0.0), ())


def swapped_affine(weight: np.ndarray, bias: np.ndarray, box: Box) -> Box:
    right = affine(weight, bias, box)
    negative = np.minimum(weight, 0.0)
    wrong = right.upper - negative @ box.lower + negative @ box.upper
    return Box(np.minimum(right.lower, wrong), wrong)


def swapped_sides(layer: object, left: Box, right: Box, dz: Box, meet: object = Box.meet) -> LayerBounds:
    bounds = settle(layer, left, right, dz, meet)
    return replace(bounds, dv=Box(-bounds.dv.upper, -bounds.dv.lower), dz=Box(-bounds.dz.upper, -bounds.dz.lower))


@dataclass(frozen=True)
class Fault:
    """Where a wrong function goes, and the seeds that must show it."""

    places: tuple[str, ...]
    wrong: Callable[..., object]
    seeds: tuple[int, ...]


FAULTS = {
    "a flipped sign in the difference lines": Fault(
        ("bounds.twin.difference_lines", "bounds.encoding.difference_lines", "bounds.template.difference_lines"),
        flipped_difference,
        (14, 29, 43),
    ),
    "a flipped sign in the activation lines": Fault(("bounds.twin.activation_lines",), flipped_lines, (14, 17, 43)),
    "dual bounds rounded inward": Fault(("solvers.session.dual",), inward_dual, (14, 29, 45)),
    "tangents moved inward": Fault(("search.milp.tangents", "search.relaxed.tangents"), inward_tangents, (14, 29, 45)),
    "a dropped group": Fault(("search.branch.reach",), dropped_group, (4, 70, 72)),
    "a swapped bound in an affine map": Fault(("bounds.twin.affine",), swapped_affine, (14, 29, 43)),
    "swapped sides of a difference": Fault(("bounds.twin.settle", "bounds.stack.settle"), swapped_sides, (29, 45, 58)),
}


@pytest.mark.parametrize("engine", ["milp", "branch"])
@pytest.mark.parametrize("name", FAULTS)
def test_planted_fault_is_noticed(name, engine, blind):
    fault = FAULTS[name]
    for place in fault.places:
        blind(place, fault.wrong)
    seeds = fault.seeds if engine == "milp" else fault.seeds[:1]
    missed = [seed for seed in seeds if not refuted(seed, engine, 10 * SECONDS)]  # it ends once it is noticed
    assert not missed, f"{name} went unnoticed on seeds {missed}"


@pytest.mark.parametrize("seed", sorted({seed for fault in FAULTS.values() for seed in fault.seeds}))
@pytest.mark.usefixtures("blind")
def test_nothing_is_noticed_where_nothing_is_planted(seed):
    assert not refuted(seed, "milp" if seed % 2 else "branch")


@pytest.mark.parametrize("seed", DELICATE)
@pytest.mark.usefixtures("blind")
def test_solver_tolerances_prove_nothing_false(seed):
    assert not refuted(seed)
