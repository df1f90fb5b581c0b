"""The checker loses no pair: real pairs are followed down the trees of proofs, whatever their multipliers are."""

from __future__ import annotations

import io
import struct
import zipfile

import numpy as np
import pytest
from oracle import similar_pairs
from problems import make
from small_tree import certified
from tamper import Opened
from wide import make_wide
from wide_oracle import dense_search

import likewise_checker as checker

NEAR = 1e-7


class Pairs:
    """Real pairs of one direction of a certificate: all their numbers, in the order of a proof, and their gaps."""

    def __init__(self, question, lefts, rights):
        columns = []
        for left, right in zip(lefts, rights, strict=True):
            row, sides = [left, right, left - right], [left, right]
            for layer in question.layers:
                sides = [left, right] if layer.source == question.x else sides
                sides = [layer.floats[0] @ side + layer.floats[1] for side in sides]
                row += [*sides, sides[0] - sides[1]]
                sides = [layer.values(np.array([side, side])).mean(axis=0) for side in sides]
                row += [*sides, sides[0] - sides[1]]
            columns.append(np.concatenate([*row, [1.0]]))
        self.numbers = np.array(columns)
        a, b = self.numbers[:, question.a], self.numbers[:, question.b]
        self.gaps = checker.sigmoid(a) - checker.sigmoid(b) if question.is_curved else a - b
        d = self.numbers[:, 2 * question.width : 3 * question.width]
        changes = [d[:, group].any(axis=1) for group in question.one.groups]
        self.differ = np.array(changes, dtype=bool).reshape(-1, len(d)).T

    def in_part(self, part):
        """Mark the pairs that a part's box and groups allow."""
        room = NEAR * (1 + np.abs(self.numbers))
        low, high = part.box[:, 0]
        inside = (self.numbers >= low - room) & (self.numbers <= high + room)
        return inside.all(axis=1) & (self.differ | ~part.differ[0]).all(axis=1)

    def lost(self, part, among):
        """Count the pairs of a part that it has lost: wide enough for its box but not in it, or wider than its cap."""
        wide = among & (self.gaps > part.since[0] + NEAR)
        gone = wide & ~(self.in_part(part) & part.alive[0])
        return int(gone.sum() + (among & (self.gaps > part.cap[0] + NEAR)).sum())


@pytest.fixture(autouse=True)
def in_floats(monkeypatch):
    """Compute with floats, whatever was checked before."""
    monkeypatch.setattr(checker, "EXACT", [False])


def followed(path, lefts, rights, rng, noise, patch):
    """Check a certificate, its multipliers disturbed, and count the parts seen and the pairs lost on the way."""
    it = Opened.of(path)
    lost, parts = 0, 0
    settle, split, bound = checker.Part.settle, checker.Part.split, checker.Part.bound
    for k in range(len(it.manifest["proof"]["directions"])):
        question = checker.Question(it.manifest, it.arrays, ("right", "left") if k else ("left", "right"))
        question.beside = 1  # one part after the other, so that each can be watched
        pairs = Pairs(question, *((rights, lefts) if k else (lefts, rights)))

        def watched(part, pairs=pairs):
            nonlocal lost, parts
            known = part.__dict__.setdefault("pairs", np.ones(len(pairs.gaps), dtype=bool))
            settle(part)
            lost, parts = lost + pairs.lost(part, known), parts + 1

        def halved(part, file, tag, pairs=pairs):
            nonlocal lost
            halves = split(part, file, tag)
            known = part.__dict__.setdefault("pairs", np.ones(len(pairs.gaps), dtype=bool))
            for half in halves:
                half.pairs = known & pairs.in_part(half)
            wide = known & (pairs.gaps > part.since[0] + NEAR)
            lost += int((wide & ~halves[0].pairs & ~halves[1].pairs).sum())
            return halves

        def disturbed(part, t, points, targets, weights, y):
            y = y + noise * rng.normal(size=y.shape) * (0.01 + np.abs(y))
            limits = slice(part.question.mu.stop, None)
            y[:, limits] = np.maximum(y[:, limits], 0)
            return bound(part, t, points, targets, weights, y)

        with patch.context() as now, zipfile.ZipFile(path) as archive, archive.open(f"proof/{k}.bin") as file:
            now.setattr(checker.Part, "settle", watched)
            now.setattr(checker.Part, "split", halved)
            now.setattr(checker.Part, "bound", disturbed if noise else bound)
            with np.errstate(all="ignore"):
                checker.upper_bound(question, file)
    return lost, parts


CASES = [*((make, s) for s in (1, 7, 19, 28, 44, 46, 71)), *((make_wide, s) for s in (0, 4, 9, 10, 13, 42))]


@pytest.mark.parametrize(("maker", "seed"), CASES)
def test_no_pair_is_lost(maker, seed, tmp_path, monkeypatch):
    problem, rng = maker(seed).problem, np.random.default_rng([50, seed])
    written = certified(problem, 1.0, 1e-4)
    found = dense_search(problem) if maker is make_wide else None
    others = similar_pairs(problem, seed, 60) if found is None else (found.left, found.right)
    lefts, rights = np.vstack([written.witness.left, others[0]]), np.vstack([written.witness.right, others[1]])
    path = written.save(tmp_path / "a.cert")
    for noise in (0.0, 0.0001, 0.1):
        lost, parts = followed(path, lefts, rights, rng, noise, monkeypatch)
        assert parts > 0
        assert lost == 0, noise


def flatter_slopes(layer, low, high):
    return 0.98 * honest_quotients(layer, low, high)


def half_a_ball(rows, p):
    return 0.5 * honest_norm(rows, p)


honest_quotients, honest_norm = checker.Layer.quotients, checker.norm


@pytest.mark.parametrize(("name", "wrong"), [("Layer.quotients", flatter_slopes), ("norm", half_a_ball)])
def test_a_fault_in_the_checker_loses_pairs(name, wrong, tmp_path, monkeypatch):
    lost = 0
    for maker, seed in CASES[:4]:
        problem, rng = maker(seed).problem, np.random.default_rng([50, seed])
        written = certified(problem, 20.0, 1e-3)
        path = written.save(tmp_path / "a.cert")
        with monkeypatch.context() as patch:
            patch.setattr(f"likewise_checker.{name}", wrong)
            lost += followed(path, written.witness.left[None], written.witness.right[None], rng, 0.0, patch)[0] > 0
    assert lost


@pytest.mark.parametrize(("maker", "seed"), CASES[::2])
def test_parts_beside_each_other_show_what_they_show_alone(maker, seed, tmp_path):
    """Leaves that are closed at once are bounded as if each were alone, but for the last bits."""
    it = Opened.of(certified(maker(seed).problem, 0.3, 1e-4).save(tmp_path / "a.cert"))  # parts alone take long
    uppers = []
    for beside in (1, 3, 64):
        for k in range(len(it.manifest["proof"]["directions"])):
            question = checker.Question(it.manifest, it.arrays, ("right", "left") if k else ("left", "right"))
            question.beside = beside
            whole = zipfile.ZipFile(tmp_path / "a.cert")
            with np.errstate(all="ignore"), whole as archive, archive.open(f"proof/{k}.bin") as file:
                uppers.append(checker.upper_bound(question, file))
    count = len(it.manifest["proof"]["directions"])
    for k in range(count):
        assert uppers[k::count] == pytest.approx([uppers[k]] * 3, rel=1e-10, abs=1e-10)


def vector(numbers):
    """Return numbers as a proof writes them."""
    numbers = np.asarray(numbers, dtype=np.float64)
    return np.packbits(numbers != 0, bitorder="little").tobytes() + numbers[numbers != 0].astype("<f8").tobytes()


def test_an_empty_part_beside_others_ends_and_changes_nothing():
    """An empty part has no finite ends: among curves, a search for a tangent there would never end."""
    people = {"features": [{"kind": "continuous", "name": "a"}], "lower": [0.0], "upper": [1.0]}
    manifest = {"version": 8, "metric": {"p": 2.0}, "eps": 0.1, "activations": [["tanh"], ["tanh"], ["sigmoid"]]}
    weights = {"W0": np.array([[4.0]]), "b0": np.array([-5.0]), "metric": np.eye(1)}
    weights |= {f"{name}{k}": np.eye(1) if name == "W" else np.zeros(1) for name in "Wb" for k in (1, 2)}
    question = checker.Question(manifest | {"left": people, "right": people}, weights)
    left, right = (question.layers[0].z.start + side for side in (0, 1))

    def leaf(y):
        return (
            b"A" + struct.pack("<dHH", 0.05, 1, 1) + vector([0.0]) + struct.pack("<Ib", 0, 0) + vector([1.0, *y]) + b"E"
        )

    for y in np.random.default_rng(0).normal(size=(20, question.count)):
        uppers = []
        for last in (0 * y, y):  # z_left <= 1, else z_right <= 1, else neither: nobody, since z is -1 at most
            splits = [b"Z" + struct.pack("<Id", k, 1.0) + leaf(0 * y) for k in (left, right)]
            with np.errstate(all="ignore"):
                uppers.append(checker.upper_bound(question, io.BytesIO(b"".join(splits) + leaf(last))))
        assert uppers[0] == uppers[1]
