"""Joint bounds in the checker: what it derives by squares holds, and nobody can make it derive less."""

from __future__ import annotations

import copy
import functools
import io
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tamper import Opened

import likewise as lw
import likewise_checker as checker
from likewise.bounds.joint import Forms
from likewise.proof.coding import sparse
from likewise.search import fast, milp, root, search
from likewise.search.primal import Primal

SEED, NAME = 2, "proof/0.bin"
CASES = [("relu", 2.0), ("relu", np.inf), ("tanh", 2.0)]

Record = tuple[int, np.ndarray, np.ndarray, np.ndarray]  # slot, row, weights, bowls


def problem(kind: str, p: float) -> lw.Problem:
    rng, sizes = np.random.default_rng(SEED), (4, 6, 1)
    layers = [
        lw.Layer(1.5 * rng.normal(size=(b, a)) / np.sqrt(a), 0.3 * rng.normal(size=b), name)
        for a, b, name in zip(sizes, sizes[1:], (kind, "sigmoid"), strict=False)
    ]
    domain = lw.Domain([lw.Continuous(f"x{i}", -1.0, 1.0) for i in range(sizes[0])])
    return lw.Problem(lw.Network(layers), domain, domain, lw.WeightedLp(np.ones(sizes[0]), p), 0.5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("joint")


def rest_on_joints(patch: pytest.MonkeyPatch) -> None:
    """Let a root show what it can by joints alone: nothing is narrowed, and nothing is split."""
    patch.setattr(root.Root, "narrow", lambda *_: None)
    patch.setattr(fast.Fast, "close", lambda self: None)


@functools.cache
def honest(case: tuple[str, float], folder: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        rest_on_joints(patch)
        cert = search(problem(*case), engine="branch", solver="highs", seconds=3, gap=1e-2, threads=1)
    return cert.save(folder / f"{case[0]}{case[1]}.cert")


def question_of(it: Opened) -> checker.Question:
    return checker.Question(it.manifest, it.arrays)


def joints(it: Opened) -> list[tuple[int, int]]:
    return [(start, end) for tag, start, end in it.records(NAME) if tag == b"J"]


def record_of(it: Opened) -> Record:
    """Return slot, row, weights and bowls of the first joint bound of a proof."""
    question, (start, end) = question_of(it), joints(it)[0]
    file = io.BytesIO(it.proofs[NAME][start + 1 : end])
    (slot,), row = checker.take(file, "<B"), checker.vector(file, question.size)
    weights, hidden = (
        checker.vector(file, 2 * len(question.ins) - question.width + 1),
        len(question.ins) - question.width,
    )
    return slot, row, weights, checker.vector(file, 5 * hidden * question.is_smooth)


def written(record: Record) -> bytes:
    slot, row, weights, bowls = record
    return b"J" + bytes([slot]) + sparse(row) + sparse(weights) + (sparse(bowls) if len(bowls) else b"")


def changed(path: Path, change: Callable[[Record, checker.Question], bytes]) -> Path:
    """Return a certificate whose first joint bound is another one."""
    it = Opened.of(path)
    start, end = joints(it)[0]
    content = it.proofs[NAME]
    it.proofs[NAME] = content[:start] + change(record_of(it), question_of(it)) + content[end:]
    return it.save(path.with_name("changed.cert"))


@pytest.mark.parametrize("case", CASES)
def test_a_proof_that_joins_differences_is_verified(case, folder):
    path = honest(case, folder)
    it = Opened.of(path)
    question, used = question_of(it), 0.0
    for tag, start, end in it.records(NAME):
        if tag in b"LTD":
            used += checker.arguments(question, io.BytesIO(it.proofs[NAME][start + 1 : end]))[4][:, -16:].sum()
    assert joints(it)
    assert used > 0
    assert checker.check(path)["code"] == 0


@pytest.mark.parametrize("case", CASES[:2])
def test_rationals_verify_it_too(case, folder):
    found, exact = checker.check(honest(case, folder)), checker.check(honest(case, folder), exact=True)
    assert exact["code"] == 0
    assert exact["upper"] == pytest.approx(found["upper"], abs=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_a_number_that_is_the_same_for_everyone_leaves_joints_as_they_are(case, folder, monkeypatch):
    usual = problem(*case)
    domain = usual.right.where(x0=(0.3, 0.3))
    rest_on_joints(monkeypatch)
    asked = lw.Problem(usual.network, domain, domain, usual.metric, usual.eps)
    cert = search(asked, engine="branch", solver="highs", seconds=3, gap=1e-2, threads=1)
    path = cert.save(folder / "fixed.cert")
    assert joints(Opened.of(path))
    assert checker.check(path)["code"] == 0


@pytest.mark.parametrize("case", CASES)
def test_a_lower_claim_is_refused(case, folder):
    it = Opened.of(honest(case, folder))
    it.manifest["upper"] = min(it.manifest["upper"], checker.check(honest(case, folder))["upper"]) - 1e-4
    assert checker.check(it.save(folder / "lower.cert"))["code"] == 10


def scaled(by: float) -> Callable[[Record, checker.Question], bytes]:
    return lambda record, question: written((*record[:2], by * record[2], record[3]))


def bent(row: int, by: float) -> Callable[[Record, checker.Question], bytes]:
    """Change p, q, r, e or f of all bowls, where there are any."""

    def change(record: Record, question: checker.Question) -> bytes:
        if len(record[3]):
            record[3].reshape(5, -1)[row] *= by
        return written(record)

    return change


def moved(name: str, by: float) -> Callable[[Record, checker.Question], bytes]:
    """Change a function: nu, both or turn of it."""

    def change(record: Record, question: checker.Question) -> bytes:
        width = question.width
        places = {"nu": question.ins[:width], "both": question.outs[width:], "turn": question.ins[width:]}[name]
        record[1][places] = by * record[1][places] + (by - 1)
        return written(record)

    return change


CHANGES = {
    **{f"weights times {by}": scaled(by) for by in (0.0, 0.5, 0.99, 1.01, 2.0, 1e6, 1e-6, -1.0)},
    **{f"{name} times {by}": moved(name, by) for name in ("nu", "both", "turn") for by in (0.0, 0.5, 1.1, -1.0)},
    **{f"{name} times {by}": bent(k, by) for k, name in enumerate("pqref") for by in (0.0, 0.9, 1.2, -1.0, 1e6)},
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_changed_is_derived_again(name, folder):
    for case in CASES:
        path = honest(case, folder)
        claimed, pair = checker.check(path)["claimed"][1], checker.check(path)["lower"]
        found = checker.check(changed(path, CHANGES[name]))
        assert found["code"] in (0, 10)
        assert found["upper"] >= pair
        assert (found["code"] == 0) == (found["upper"] <= claimed + checker.CLOSE * max(1.0, claimed))


def test_without_weights_nothing_is_shown(folder):
    assert checker.check(changed(honest(CASES[0], folder), scaled(0.0)))["code"] == 10


def at(place: int) -> Callable[[Record, checker.Question], bytes]:
    def change(record: Record, question: checker.Question) -> bytes:
        record[1][place] = -1e-3
        return written(record)

    return change


REFUSED: dict[str, Callable[[Record, checker.Question], bytes]] = {
    "a slot that is none": lambda record, _: written((16, *record[1:])),
    "a slot far off": lambda record, _: written((255, *record[1:])),
    "a left number": at(0),
    "a right number": at(4),
    "a left z": at(12),
    "a right v": at(12 + 3 * 6 + 6),
    "dz of the last layer": at(12 + 6 * 6 + 2),
    "dv of the last layer": at(12 + 6 * 6 + 5),
    "twice the same": lambda record, _: 2 * written(record),
    "cut off": lambda record, _: written(record)[:-3],
    "a weight too many": lambda record, _: written(record) + bytes(8),
    "no number": lambda record, _: written(record)[:-8] + np.array([np.nan]).tobytes(),
    "an infinite one": lambda record, _: written(record)[:-8] + np.array([np.inf]).tobytes(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_no_sense_is_refused(name, folder):
    found = checker.check(changed(honest(CASES[0], folder), REFUSED[name]))
    assert found["code"] in (2, 10)


def test_what_the_row_claims_is_not_read(folder):
    path = honest(CASES[0], folder)

    def lowered(record: Record, question: checker.Question) -> bytes:
        record[1][-1] = -1e9
        return written(record)

    assert checker.check(changed(path, lowered))["upper"] == checker.check(path)["upper"]


def pairs_of(part: checker.Part, it: Opened, count: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return differences of pairs within eps and within the part: d, dz and dv."""
    question, arrays = part.question, it.arrays
    box = part.triple(question.x)[:, 0]
    left = rng.uniform(*box[:, 0], size=(count, question.width))
    d = rng.normal(size=left.shape)
    d *= (question.eps * rng.uniform(size=(count, 1)) ** 0.25) / np.linalg.norm(d, question.p, axis=1)[:, None]
    d = np.clip(d, *box[:, 2])
    z, other = (x @ arrays["W0"].T + arrays["b0"] for x in (left, left - d))
    f = np.tanh if it.manifest["activations"][0][0] == "tanh" else functools.partial(np.maximum, 0.0)
    fits = np.ones(count, dtype=bool)
    for side, x, own in ((0, left, z), (1, left - d, other)):
        low, high = part.triple(question.layers[0].z)[:, 0, side]
        fits &= ((x >= box[0, side]) & (x <= box[1, side])).all(axis=1) & ((own >= low) & (own <= high)).all(axis=1)
    return {"d": d[fits], "dz": (z - other)[fits], "dv": (f(z) - f(other))[fits]}


@pytest.mark.parametrize("case", CASES)
def test_what_is_derived_holds_for_pairs(case, folder):
    it = Opened.of(honest(case, folder))
    rng, (slot, row, weights, bowls), shown, seen = np.random.default_rng(5), record_of(it), 0, 0
    for _ in range(25):
        question = question_of(it)
        part, width = checker.Part(question), question.width
        middle, reach = rng.uniform(-0.5, 0.5, size=width), rng.uniform(0.2, 1.0, size=width)
        part.box[:, 0, : 2 * width] = np.clip([np.tile(middle - reach, 2), np.tile(middle + reach, 2)], -1.0, 1.0)
        part.box[:, 0, 2 * width] *= rng.choice([0.0, 0.3, 1.0])
        new = np.zeros(question.size)
        places = np.union1d(question.ins, question.outs)
        new[places] = row[places] + rng.choice([0.0, 0.3]) * rng.normal(size=len(places))
        own = weights * rng.uniform(0.8, 1.5, size=len(weights))
        with np.errstate(all="ignore"):
            part.define(io.BytesIO(written((slot, new, own, bowls * rng.uniform(0.8, 1.3, size=len(bowls))))[1:]))
        top, pairs = part.tops[0, slot], pairs_of(part, it, 4000, rng)
        g = -(pairs["d"] @ new[question.ins[:width]] + pairs["dz"] @ new[question.ins[width:]])
        g -= pairs["dv"] @ new[question.outs[width:]]
        assert (g <= top).all()
        shown, seen = shown + np.isfinite(top), seen + len(g)
    assert shown >= 5
    assert seen > 1000


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("end", [0, 1])
def test_a_phase_that_is_known_on_one_side_is_used_as_far_as_it_holds(sign, side, end, folder):
    """sign (dv - s dz) of one neuron, s its slope on that side: bounded by next to nothing on the right side alone."""
    it = Opened.of(honest(CASES[0], folder))
    slot, row, weights, bowls = record_of(it)
    tops, tightness = [], []
    for neuron in range(6):
        question = question_of(it)
        part, width = checker.Part(question), question.width
        part.triple(question.layers[0].z)[end, 0, side, neuron] = 0.0
        new = np.zeros_like(row)
        new[question.outs[width + neuron]], new[question.ins[width + neuron]] = -sign, sign * (end == 0)
        with np.errstate(all="ignore"):
            own = np.full_like(weights, 1e-6)
            own[width + 6 + neuron], own[-1] = 1.0, 1e-4  # of its slope, and of the ball
            part.define(io.BytesIO(written((slot, new, own, bowls))[1:]))
        pairs = pairs_of(part, it, 4000, np.random.default_rng(neuron))
        g = sign * (pairs["dv"][:, neuron] - (end == 0) * pairs["dz"][:, neuron])
        assert (g <= part.tops[0, slot]).all()
        tops.append(part.tops[0, slot])
        tightness.append(g.max())
    is_known = (sign > 0) == (side == 0)  # of a convex function: at most the slope at the left z, at least at the right
    assert (min(tightness) > 0.01) != is_known
    assert (max(tops) < 0.01) == is_known


def test_parts_beside_each_other_are_bounded_as_they_are_alone(folder):
    it = Opened.of(honest(CASES[0], folder))
    question, record = question_of(it), record_of(it)
    with np.errstate(all="ignore"):
        whole = checker.Part(question)
        whole.define(io.BytesIO(written(record)[1:]))
        parts = [copy.deepcopy(whole) for _ in range(3)]
        for k, part in enumerate(parts):
            part.question, part.tops[:] = question, np.inf
            part.box[1, 0, k] = 0.0
            part.box[:, 0, 2 * question.width + k] *= k / 2  # of one, a column does not differ
            part.settle()
            part.join(record[0], part.alive)
        stack = copy.copy(parts[0])
        stack.box, stack.tops = np.concatenate([part.box for part in parts], axis=1), np.full((3, 16), np.inf)
        stack.alive, stack.differ = np.ones(3, dtype=bool), np.concatenate([part.differ for part in parts])
        stack.settle()
        stack.join(record[0], stack.alive)
    assert np.isfinite(stack.tops[:, record[0]]).all()
    assert stack.tops[:, record[0]] == pytest.approx([part.tops[0, record[0]] for part in parts], rel=1e-6)


class SmallBall(Forms):
    """Forms of fewer pairs than there are."""

    def __init__(self, problem, bounds, last, margin=0.0):
        super().__init__(replace(problem, eps=0.5 * problem.eps), bounds, last, margin)


class NarrowSlopes(Forms):
    def __init__(self, problem, bounds, last, margin=0.0):
        layers = [replace(b, slope=replace(b.slope, upper=0.4 * b.slope.upper)) for b in bounds.layers]
        super().__init__(problem, replace(bounds, layers=tuple(layers)), 0 * last, margin)  # both sides count


@pytest.mark.parametrize("fault", [SmallBall, NarrowSlopes])
def test_a_fault_of_the_engine_is_noticed(fault, folder, monkeypatch):
    real = checker.check(honest(CASES[0], folder))["lower"]
    monkeypatch.setattr(Primal, "look", lambda *_: None)
    for module in (fast, milp, root):
        monkeypatch.setattr(module, "repaired", lambda *_: None)
    rest_on_joints(monkeypatch)
    monkeypatch.setattr("likewise.search.join.Forms", fault)
    monkeypatch.setattr(Forms, "holds", lambda *_: True)
    try:
        cert = search(problem(*CASES[0]), engine="branch", solver="highs", seconds=2, gap=1e-3, threads=1)
    except lw.SoundnessError:
        return
    assert cert.upper < real - 1e-4  # or the fault would be none
    found = checker.check(cert.save(folder / "fault.cert"))
    assert found["code"] == 10
    assert found["upper"] >= real


def closing_by(slot: int, it: Opened) -> tuple[bytes, bytes, bytes]:
    """Return what is before the root's joint, that joint, and its leaf alone, both of them of another slot."""
    question, record = question_of(it), record_of(it)
    spans = [(tag, start, end) for tag, start, end in it.records(NAME) if tag != b"J" and tag != b"E"]
    for _, start, end in reversed(spans):
        t, points, targets, weights, y = checker.arguments(question, io.BytesIO(it.proofs[NAME][start + 1 : end]))
        if targets == [(0, 0)] and y[0, record[0] - 16] > 0:
            break
    y[0, [record[0] - 16, slot - 16]] = 0.0, y[0, record[0] - 16]
    head = b"A" + struct.pack("<dHH", t, len(points), 1) + sparse(points) + struct.pack("<Ib", 0, 0)
    before = b"".join(it.proofs[NAME][start:end] for tag, start, end in it.records(NAME)[: joint_at(it)])
    argument = head + sparse(np.concatenate([weights[0], y[0]]))
    return before, written((slot, *record[1:])), argument + b"E"


def joint_at(it: Opened) -> int:
    return [tag for tag, *_ in it.records(NAME)].index(b"J")


def test_the_slot_that_may_be_defined_again_closes_its_own_node(folder):
    """Leaves are looked at some at once, but not those: by then the slot may be another one."""
    it, split, uppers = Opened.of(honest(CASES[0], folder)), b"Z" + struct.pack("<Id", 0, 0.1), []
    _, row, weights, bowls = record_of(it)
    useless = written((15, 3 * row, 0 * weights, bowls))
    for slot in (3, 15):
        before, joint, leaf = closing_by(slot, it)
        halves = 2 * leaf if slot == 3 else joint + leaf + useless + joint + leaf
        content = before + (joint if slot == 3 else b"") + split + halves
        with np.errstate(all="ignore"):
            uppers.append(checker.upper_bound(question_of(it), io.BytesIO(content)))
            late = checker.upper_bound(question_of(it), io.BytesIO(before + split + joint + leaf + useless + leaf))
    assert uppers[1] == pytest.approx(uppers[0], rel=1e-9)
    assert late > uppers[1] + 1e-3  # the second half rests on what is defined last


def test_the_slot_that_may_be_defined_again_is_not_handed_down(folder):
    it = Opened.of(honest(CASES[0], folder))
    _, row, weights, bowls = record_of(it)
    with np.errstate(all="ignore"):
        for slot, is_kept in ((3, True), (15, False)):
            part = checker.Part(question_of(it))
            part.define(io.BytesIO(written((slot, row, weights, bowls))[1:]))
            assert np.isfinite(part.tops[0, slot])
            halves = part.split(io.BytesIO(struct.pack("<Id", 0, 0.1)), b"Z")
            assert all(np.isfinite(half.tops[0, slot]) == is_kept for half in halves)
        part.define(io.BytesIO(written((15, 2 * row, weights, bowls))[1:]))
        twice = part.tops[0, 15]
        part.define(io.BytesIO(written((15, row, weights, bowls))[1:]))
    assert part.tops[0, 15] < twice  # of the function that it was defined as last
