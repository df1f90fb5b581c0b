"""The checker loses no pair: real pairs are followed down the trees of proofs, whatever their multipliers are."""

from __future__ import annotations

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

    def __init__(self, inner, lefts, rights):
        columns = []
        for left, right in zip(lefts, rights, strict=True):
            row, sides = [left, right, left - right], [left, right]
            for k, layer in enumerate(inner.layers):
                sides = [layer.floats[0] @ side + layer.floats[1] for side in sides]
                row += [*sides, sides[0] - sides[1]]
                if k + 1 < len(inner.layers):
                    boxes = [layer.values(np.array([side, side])) for side in sides]
                    sides = [box.mean(axis=0) for box in boxes]
                    row += [*sides, sides[0] - sides[1]]
            columns.append(np.concatenate([*row, [1.0]]))
        self.numbers = np.array(columns)
        a, b = self.numbers[:, inner.a], self.numbers[:, inner.b]
        self.gaps = inner.factor * (checker.sigmoid(a) - checker.sigmoid(b) if inner.is_curved else a - b)
        d = self.numbers[:, 2 * inner.width : 3 * inner.width]
        changes = [d[:, group].any(axis=1) for group in inner.one.groups]
        self.differ = np.array(changes, dtype=bool).reshape(-1, len(d)).T
        self.factor = inner.factor

    def in_part(self, part):
        """Mark the pairs that a part's box and groups allow."""
        room = NEAR * (1 + np.abs(self.numbers))
        inside = (self.numbers >= part.box[0] - room) & (self.numbers <= part.box[1] + room)
        return inside.all(axis=1) & (self.differ | ~part.differ).all(axis=1)

    def lost(self, part, among):
        """Count the pairs of a part that it has lost: wide enough for its box but not in it, or wider than its cap."""
        wide = among & (self.gaps > self.factor * part.since + NEAR)
        return int((wide & ~(self.in_part(part) & part.alive)).sum() + (among & (self.gaps > part.cap + NEAR)).sum())


def followed(path, lefts, rights, rng, noise, patch):
    """Check a certificate, its multipliers disturbed, and count the parts seen and the pairs lost on the way."""
    it = Opened.of(path)
    question, lost, parts = checker.Question(it.manifest, it.arrays), 0, 0
    settle, split, arguments = checker.Part.settle, checker.split, checker.Arguments
    for k in range(len(it.manifest["proof"]["directions"])):
        inner = checker.Inner(question, bool(k))
        pairs = Pairs(inner, *((rights, lefts) if k else (lefts, rights)))

        def watched(part, pairs=pairs):
            nonlocal lost, parts
            known = part.__dict__.setdefault("pairs", np.ones(len(pairs.gaps), dtype=bool))
            settle(part)
            lost, parts = lost + pairs.lost(part, known), parts + 1

        def halved(stream, tag, part, pairs=pairs):
            nonlocal lost
            halves = split(stream, tag, part)
            for half in halves:
                half.pairs = part.pairs & pairs.in_part(half)
            wide = part.pairs & (pairs.gaps > pairs.factor * part.since + NEAR)
            lost += int((wide & ~halves[0].pairs & ~halves[1].pairs).sum())
            return halves

        def disturbed(stream, inner):
            given = arguments(stream, inner)
            given.y = given.y + noise * rng.normal(size=given.y.shape) * (0.01 + np.abs(given.y))
            start = inner.count - inner.limits
            given.y[:, start:] = np.maximum(given.y[:, start:], 0)
            given.mu = given.y[:, start - len(inner.matrix) : start]
            return given

        with patch.context() as now, zipfile.ZipFile(path) as archive, archive.open(f"proof/{k}.bin") as file:
            now.setattr(checker.Part, "settle", watched)
            now.setattr(checker, "split", halved)
            now.setattr(checker, "Arguments", disturbed if noise else arguments)
            with np.errstate(all="ignore"):
                checker.read_tree(checker.Stream(file), inner)
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


def flatter_slopes(name, low, high):
    return 0.98 * honest_quotients(name, low, high)


def half_a_ball(rows, p):
    return 0.5 * honest_norm(rows, p)


honest_quotients, honest_norm = checker.quotients, checker.norm


@pytest.mark.parametrize(("name", "wrong"), [("quotients", flatter_slopes), ("norm", half_a_ball)])
def test_a_fault_in_the_checker_loses_pairs(name, wrong, tmp_path, monkeypatch):
    lost = 0
    for maker, seed in CASES[:4]:
        problem, rng = maker(seed).problem, np.random.default_rng([50, seed])
        written = certified(problem, 20.0, 1e-3)
        path = written.save(tmp_path / "a.cert")
        with monkeypatch.context() as patch:
            patch.setattr(checker, name, wrong)
            lost += followed(path, written.witness.left[None], written.witness.right[None], rng, 0.0, patch)[0] > 0
    assert lost
