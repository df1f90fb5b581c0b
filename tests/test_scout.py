"""The scout: it finds real pairs in a process of its own, ends when it is told to, and says when it failed."""

from __future__ import annotations

import time

import pytest
from oracle import dense_search, violations
from problems import make

from likewise.bounds import reach
from likewise.search import branch, search
from likewise.search.inner import inner_problem
from likewise.search.run import Run
from likewise.search.scout import Order, Scout


def order(seed, seconds=60.0):
    problem = make(seed).problem
    inner, score = inner_problem(problem)
    return Order(problem, inner, score, reach(inner), seconds, 1e-6, Run(problem, seconds=1.0, gap=1.0).pair())


def waited_for(what, seconds=60.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.05)
    return False


def test_it_finds_pairs_and_ends_with_its_context():
    sent = order(28)
    pairs = []
    with Scout(sent) as scout:
        assert waited_for(lambda: pairs.extend(scout.found()) or pairs)
        process = scout._process
        assert process.poll() is None
    assert process.poll() is not None
    run = Run(sent.outer, seconds=10.0, gap=1e-6)
    for pair in pairs:
        run.offer(*pair)
    assert run.lower > 0.0


def test_it_says_why_it_ended():
    sent = order(28)
    with Scout(sent) as scout:
        scout._process.kill()
        assert waited_for(lambda: scout.trouble is not None)
        scout.tell(sent.pair)  # to nobody
        assert "ended early" in scout.trouble


@pytest.mark.parametrize("seed", [28, 46])
@pytest.mark.usefixtures("without_kernel")
def test_a_search_with_a_scout_is_sound_and_closes(seed, monkeypatch):
    sent = []
    send = branch.Root.send
    monkeypatch.setattr(branch.Root, "send", lambda self: sent.append(1) or send(self))
    case = make(seed)
    cert = search(case.problem, engine="branch", solver="highs", seconds=40.0, gap=case.gap, threads=2)
    assert sent
    assert not violations(case.problem, cert, dense_search(case.problem))
    assert cert.gap <= case.gap
