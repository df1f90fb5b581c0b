"""Going on from a certificate: the same tree, nothing taken on trust, and other questions or broken files refused."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from problems import make

from likewise import Certificate, InputError, Problem, certify, read
from likewise.proof import read_shape
from likewise.search import branch, root, search
from likewise.search.inner import inner_problem

SEED = 49  # a curved one, whose tree is large


@pytest.fixture(scope="module")
def half_done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Certificate, Path]:
    """Return a certificate that a few rounds leave open, and its file."""
    path = tmp_path_factory.mktemp("resume") / "open.cert"
    rounds = iter(range(12))
    with pytest.MonkeyPatch.context() as patch:
        work = branch.Branch.work

        def a_few(self: branch.Branch, widest: list[branch.Bounded]) -> None:
            work(self, widest)
            if next(rounds, None) is None:
                raise KeyboardInterrupt

        patch.setattr(branch.Branch, "work", a_few)
        patch.setattr(root, "fits", lambda problem: False)  # a tree of Python's
        cert = search(make(SEED).problem, engine="branch", solver="highs", seconds=60.0, gap=1e-6, threads=1)
    assert "interrupted" in cert.notes
    cert.save(path)
    return cert, path


def ask(problem: Problem, **more: Any) -> Certificate:
    one = {"left": problem.left, "gap": 1e-6, "threads": 1, **more}
    return certify(problem.network, problem.right, problem.metric, problem.eps, **one)


def splits(cert: Certificate) -> list[object]:
    assert cert.proof is not None
    inner, _ = inner_problem(cert.problem)
    with cert.proof.directions[0].open() as file:
        return list(read_shape(inner, file))


def test_the_tree_is_read_back(half_done: tuple[Certificate, Path]) -> None:
    cert, path = half_done
    shape = splits(read(path))
    assert sum(what is not None for what in shape) == sum(what is None for what in shape) - 1
    assert len(shape) > 20
    assert len(shape) == len(splits(cert))


def test_a_search_begins_where_the_last_one_ended(
    half_done: tuple[Certificate, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, path = half_done

    def stop(self: branch.Branch, widest: list[branch.Bounded]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(branch.Branch, "work", stop)  # what is known before anything new is split
    monkeypatch.setattr(root, "fits", lambda problem: False)  # a tree of Python's, as the first one
    earlier = read(path)
    problem = cert.problem
    again, fresh = ask(problem, resume=earlier), ask(problem)
    assert again.lower >= cert.lower
    assert len(splits(again)) >= 0.9 * len(splits(cert))
    assert again.upper < fresh.upper - 1e-4


def test_what_a_file_claims_is_not_taken_over(half_done: tuple[Certificate, Path]) -> None:
    cert, _ = half_done
    lie = replace(cert, upper=cert.lower)
    assert ask(cert.problem, seconds=1.0, resume=lie).upper > cert.lower


def test_another_question_is_refused(half_done: tuple[Certificate, Path]) -> None:
    cert, _ = half_done
    problem = cert.problem
    with pytest.raises(InputError, match="another question"):
        certify(problem.network, problem.right, problem.metric, problem.eps * 1.01 + 0.01, resume=cert)


def test_broken_trees_are_refused(half_done: tuple[Certificate, Path]) -> None:
    cert, _ = half_done
    assert cert.proof is not None
    inner, _ = inner_problem(cert.problem)
    with cert.proof.directions[0].open() as file:
        content = file.read()
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(60):
        broken = bytearray(content[: int(rng.integers(1, len(content)))])
        broken[int(rng.integers(0, len(broken)))] ^= int(rng.integers(1, 256))
        try:
            for _ in read_shape(inner, io.BytesIO(bytes(broken))):
                pass
        except InputError:
            refused += 1
    assert refused > 40  # a cut file always ends too early, unless a changed byte ended the tree before


def test_a_damaged_proof_is_refused_by_name(half_done: tuple[Certificate, Path], tmp_path: Path) -> None:
    cert, path = half_done
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        entry = next(one for one in archive.infolist() if one.filename.startswith("proof/"))
    middle = entry.header_offset + 30 + len(entry.filename) + entry.compress_size // 2
    for at in range(middle, middle + 50):
        content[at] ^= 0x5A
    broken = tmp_path / "damaged.cert"
    broken.write_bytes(bytes(content))
    with pytest.raises(InputError, match="proof"):
        ask(cert.problem, seconds=20.0, resume=read(broken))
