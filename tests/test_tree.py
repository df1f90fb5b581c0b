"""The tree: few parts in memory, a root narrowed anew, bases that outlive their model, and pairs that look the same."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from problems import make
from small_tree import certified
from threadpoolctl import threadpool_info, threadpool_limits

import likewise as lw
from likewise.bounds import Box, reach, twin_bounds
from likewise.search import branch, search, tree
from likewise.search.alike import brought_in, most_alike
from likewise.search.exchange import exchanges
from likewise.search.inner import inner_problem
from likewise.search.question import Question
from likewise.search.relaxed import Relaxed
from likewise.search.smooth import view


def test_few_parts_in_memory_give_the_same_answer(monkeypatch):
    problem = make(28).problem
    usual = certified(problem)
    monkeypatch.setattr(tree, "MOST", 2)
    few = certified(problem)
    assert few.lower <= usual.upper
    assert usual.lower <= few.upper
    assert few.gap <= 1e-3


def test_beyond_the_most_the_newest_part_is_taken_and_none_is_forgotten(monkeypatch):
    monkeypatch.setattr(tree, "MOST", 2)
    parts = tree.Tree()
    for upper in (0.5, 0.3, 0.9, 0.4):
        parts.push(tree.Bounded(1.0, upper, *(None,) * 4, 0, 0.0))
    assert parts.upper == 0.9
    assert [part.upper for part in parts.pop(1)] == [0.4]
    assert [part.upper for part in parts.pop(5)] == [0.9, 0.5, 0.3]
    assert parts.upper == -math.inf


def test_a_part_keeps_within_what_is_known_of_the_whole():
    inner, _ = inner_problem(make(28).problem)
    whole = twin_bounds(inner, reach(inner))
    layer = whole.layers[0]
    middle = (layer.left.lower + layer.left.upper) / 2

    def with_left(lower, upper):
        return replace(whole, layers=(replace(layer, left=Box(lower, upper)), *whole.layers[1:]))

    part = tree.Part(inner, with_left(layer.left.lower, middle))
    quarter = (layer.left.lower + middle) / 2
    met = part.within(with_left(quarter, layer.left.upper), 7)
    assert met is not None
    assert met.node == 7
    assert (met.zs[0][0].lower == quarter).all()
    assert (met.zs[0][0].upper == middle).all()
    assert (met.zs[0][1].lower == layer.right.lower).all()
    assert part.within(with_left(middle + 1.0, middle + 2.0), 7) is None
    near = part.within(with_left(np.nextafter(middle, np.inf), middle + 2.0), 7)
    assert near is not None  # within rounding of nothing, which a checker may not see: it stays as it was
    assert (near.zs[0][0].lower == layer.left.lower).all()


@pytest.mark.parametrize("seed", [14, 28])
@pytest.mark.usefixtures("without_kernel")
def test_a_root_that_is_narrowed_again_and_again_still_checks(seed, monkeypatch, tmp_path):
    planted = []
    monkeypatch.setattr(branch, "BETTER", -1.0)
    monkeypatch.setattr(branch, "REST", 0.0)
    plant, work = branch.Branch.plant, branch.Branch.work

    def counted(self):
        planted.append(self)
        plant(self)

    def again(self, widest):
        work(self, widest)
        self.replant()

    monkeypatch.setattr(branch.Branch, "plant", counted)
    monkeypatch.setattr(branch.Branch, "work", again)
    cert = certified(make(seed).problem, 3.0, 1e-6)
    assert len(planted) > 1
    found = lw.check(cert.save(tmp_path / "a.cert"))
    assert (found.ok, found.reasons) == (True, ())
    assert found.upper <= cert.upper + 1e-6 * max(1.0, cert.upper)


def models(seed):
    """Return two models of one problem, the second at a higher threshold and with more tangents, and its bounds."""
    inner, score = inner_problem(make(seed).problem)
    bounds = twin_bounds(inner, reach(inner))
    few = Relaxed(inner, bounds, score, Question(0.05, math.inf, [0.0]))
    width = len(few.template.compared[0].free)
    touches = [np.ones(int((np.abs(inner.metric.matrix[:, few.template.compared[0].free]).sum(axis=1) > 0).sum()))]
    many = Relaxed(inner, bounds, score, Question(0.06, math.inf, [0.0, 1.0]), touches if width else ())
    return inner, bounds, few, many


@pytest.mark.parametrize("seed", range(0, 30, 3))
def test_a_basis_is_a_start_in_a_newer_model_and_changes_no_bound(seed):
    inner, bounds, old, new = models(seed)
    session = old.session(inner, bounds)
    session.maximise(old.objective)
    adapted = new.adapted(session.basis, old)
    cold = new.session(inner, bounds).maximise(new.objective)[0]
    warm = new.session(inner, bounds, adapted).maximise(new.objective)[0]
    assert warm == pytest.approx(cold, rel=1e-7, abs=1e-9)


def test_of_pairs_that_look_the_same_the_most_alike_is_found():
    rng = np.random.default_rng(3)
    domain = lw.Domain([lw.Continuous(f"x{k}", 0.0, 1.0) for k in range(12)])
    layers = [
        lw.Layer(rng.normal(size=(3, 12)), rng.normal(size=3), "relu"),
        lw.Layer([[1.0, -1.0, 1.0]], [0.0], "identity"),
    ]
    metric = lw.Mahalanobis(np.eye(12))
    problem = lw.Problem(lw.Network(layers), domain, domain, metric, 0.1)
    weight = problem.network.layers[0].weight
    for _ in range(20):
        left, right = rng.random((2, 12))
        one, other = most_alike(problem, left, right)
        assert domain.inside(np.stack([one, other])).all()
        assert weight @ one == pytest.approx(weight @ left, abs=1e-6)
        assert weight @ other == pytest.approx(weight @ right, abs=1e-6)
        assert metric.distance(one, other) <= metric.distance(left, right) + 1e-9
        # No closer pair: a difference that the layer sees as this one has at least the norm of its part in the rows.
        assert metric.distance(one, other) >= np.linalg.norm(np.linalg.pinv(weight) @ weight @ (left - right)) - 1e-5


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_differences_brought_in_are_allowed(p):
    rng = np.random.default_rng(int(min(p, 9)))
    matrix = rng.normal(size=(4, 6))
    d = brought_in(rng.normal(size=(50, 6)), matrix, p, 0.3, -np.ones(6), np.ones(6))
    assert (np.linalg.norm(d @ matrix.T, p, axis=1) <= 0.3).all()
    assert (np.abs(d) <= 1.0).all()


def test_all_exchanges_of_two_categories_are_tried():
    rng = np.random.default_rng(8)
    domain = lw.Domain([lw.OneHot(f"g{k}", list("abcd")) for k in range(4)] + [lw.Continuous("x", 0.0, 1.0)])
    layers = [
        lw.Layer(rng.normal(size=(6, 17)), rng.normal(size=6), "relu"),
        lw.Layer(rng.normal(size=(1, 6)), [0.0], "sigmoid"),
    ]
    metric = lw.WeightedLp([*[10.0] * 16, 1.0], p=math.inf)
    problem = lw.Problem(lw.Network(layers), domain, domain, metric, 0.3)
    right = domain.sample(1, rng)[0]
    right[16] = 0.2
    left = right.copy()
    left[16] = 0.5
    found = exchanges(view(problem, domain.sample(50, rng)), reach(problem), left, right)

    def gap(person):
        moved = person.copy()
        moved[16] = 0.5
        scores = problem.network(np.stack([moved, person]))
        return float(scores[0] - scores[1])

    best = -math.inf
    for one, other in itertools.combinations(range(4), 2):
        for i, j in itertools.product(range(4), repeat=2):
            person = right.copy()
            person[4 * one : 4 * one + 4] = np.eye(4)[i]
            person[4 * other : 4 * other + 4] = np.eye(4)[j]
            best = max(best, gap(person))
    assert all(domain.contains(person) for person in found)
    assert max(gap(person) for person in found) == pytest.approx(best, abs=1e-12)
    assert best > gap(right) + 1e-3


def test_matrices_are_multiplied_by_one_thread_while_an_engine_runs():
    def threads():
        return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

    seen = []
    with threadpool_limits(limits=2, user_api="blas"):
        search(
            make(28).problem,
            engine="branch",
            solver="highs",
            seconds=20.0,
            gap=1e-3,
            threads=2,
            listener=lambda news: seen.append(threads()),
        )
        assert threads() == {2}
    assert seen
    assert all(one == {1} for one in seen)
