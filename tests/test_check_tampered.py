"""Tampering: whatever is done to a certificate, the checker accepts no claim that is not true."""

from __future__ import annotations

import copy
import functools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle import dense_search
from problems import make
from small_tree import certified
from tamper import MUTATIONS, Opened
from wide import make_wide
from wide_oracle import dense_search as wide_search

import likewise as lw
import likewise_checker as checker

TREES = [(make, 28), (make, 7), (make_wide, 13), (make_wide, 25), (make_wide, 42)]

UNCHANGED = 1


@functools.cache
def honest(index: int, folder: Path) -> Path:
    maker, seed = TREES[index]
    return certified(maker(seed).problem).save(folder / f"honest{index}.cert")


@functools.cache
def truth(digest: str, path: Path, index: int) -> float:
    """Return the gap of some real pair of the question in a file, by a search that knows nothing of proofs."""
    search = wide_search if TREES[index][0] is make_wide else dense_search
    return search(lw.read(path).problem).gap


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tampered")


@pytest.mark.parametrize("index", range(len(TREES)))
def test_what_is_tampered_with_was_accepted_before(index, folder):
    assert checker.check(honest(index, folder))["code"] == 0


def verdict(name: str, index: int, seed: int, folder: Path) -> tuple[int, str]:
    """Return the checker's code for a mutated file, and what is wrong with having accepted it, if anything.

    A certificate that has nothing of what a mutation changes is UNCHANGED.
    """
    it = copy.deepcopy(plain(index, folder))
    MUTATIONS[name](it, np.random.default_rng([40, seed]))
    if it.is_like(plain(index, folder)):
        return UNCHANGED, ""
    path = it.save(folder / "mutated.cert")
    found = checker.check(path)
    if found["code"] not in (0, 20):
        return found["code"], ""
    try:
        written = lw.read(path)
    except lw.InputError as error:
        return found["code"], f"likewise itself refuses it: {error}"
    gap = truth(written.problem.digest, path, index)
    if found["upper"] < gap - 1e-9:
        return found["code"], f"derived {found['upper']} below a real gap of {gap}"
    if found["code"] == 0 and written.upper < gap - 2e-6 * max(1.0, gap):
        return 0, f"accepted {written.upper} below a real gap of {gap}"
    return found["code"], ""


@functools.cache
def plain(index: int, folder: Path) -> Opened:
    return Opened.of(honest(index, folder))


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(sorted(MUTATIONS)), st.integers(0, len(TREES) - 1), st.integers(0, 10**6))
def test_no_wrong_claim_is_accepted(folder, name, index, seed):
    assert verdict(name, index, seed, folder)[1] == ""


REFUSED = [
    "claim half the upper",
    "claim more lower",
    "digests exchanged",
    "a wrong digest of the proof",
    "a proof for less",
    "a weight that is none",
    "the proof cut off",
    "more after the proof",
    "a leaf left out",
    "the file cut off",
]


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_plainly_wrong_is_refused(name, folder):
    codes = {verdict(name, index, 1, folder)[0] for index in range(len(TREES))}
    assert codes <= {2, 10}, codes
