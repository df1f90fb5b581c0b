"""The differentiable bound is sound, and the local engine is close to a MILP."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import likewise as lw
from likewise.train.bound import twin_bound
from likewise.train.inner import ascended, neighbourhood
from likewise.train.layers import Layers, initial, logits, tensor, to_network
from likewise.train.local import oracle, require_exact, worst_neighbours

DOMAIN = lw.Domain([lw.Continuous("a", 0.0, 1.0), lw.Continuous("b", -1.0, 2.0), lw.OneHot("job", ["x", "y", "z"])])
METRICS: dict[str, Any] = {
    "ball": lw.Mahalanobis(np.diag([1.0, 2.0, 1.0, 1.0, 1.0])),
    "correlated": lw.Mahalanobis(np.eye(5) + 0.5 * np.ones((5, 5))),
    "singular": lw.Mahalanobis(np.diag([1.0, 0.0, 1.0, 1.0, 1.0])),
    "l-inf": lw.WeightedLp(np.ones(5)),
    "l1": lw.WeightedLp([1.0, 2.0, 1.0, 1.0, 1.0], p=1),
    "l3": lw.WeightedLp([1.0, 2.0, 1.0, 1.0, 1.0], p=3),
    "embedding": lw.Embedding(
        lw.Network([lw.Layer(np.arange(10.0).reshape(2, 5) / 10, np.zeros(2), "identity")]), lw.WeightedLp([1.0, 1.0])
    ),
    "curved": lw.Embedding(lw.Network([lw.Layer(np.eye(5), np.zeros(5), "relu")]), lw.WeightedLp(np.ones(5))),
}


def random_layers(seed: int, hidden: list[int], size: float = 1.0) -> Layers:
    rng = np.random.default_rng(seed)
    layers = initial([5, *hidden, 1], rng, np.ones(5, dtype=bool))
    return [(size * weight, tensor(rng.normal(size=len(bias)))) for weight, bias in layers]


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    hidden=st.sampled_from([[], [3], [6], [4, 3]]),
    name=st.sampled_from(sorted(METRICS)),
    eps=st.sampled_from([0.0, 0.1, 0.4, 1.5]),
)
def test_no_pair_exceeds_the_bound(seed: int, hidden: list[int], name: str, eps: float) -> None:
    layers, metric = random_layers(seed, hidden), METRICS[name]
    bound = twin_bound(DOMAIN, metric, eps, DOMAIN.sample(20, np.random.default_rng(seed)))
    claimed = float(bound.logit(layers))
    found = lw.certify(to_network(layers, False), DOMAIN, metric, eps, seconds=0.4, threads=1)
    assert found.lower <= claimed * (1 + 1e-9) + 1e-9
    scores = lw.certify(to_network(layers, True), DOMAIN, metric, eps, seconds=0.2, threads=1)
    assert scores.lower <= math.tanh(claimed / 4) * (1 + 1e-9) + 1e-9


def test_the_bound_is_tight_for_a_linear_network() -> None:
    layers = random_layers(1, [])
    bound = twin_bound(DOMAIN, METRICS["ball"], 0.1, DOMAIN.sample(20, np.random.default_rng(0)))
    found = lw.certify(to_network(layers, False), DOMAIN, METRICS["ball"], 0.1, seconds=5, threads=1)
    assert float(bound.logit(layers)) == pytest.approx(found.upper, rel=1e-3)


@pytest.mark.parametrize("name", sorted(METRICS))
@pytest.mark.parametrize("hidden", [[], [6], [5, 4]])
def test_scaling_keeps_any_limit(name: str, hidden: list[int]) -> None:
    layers = random_layers(2, hidden, size=3.0)
    bound = twin_bound(DOMAIN, METRICS[name], 0.3, DOMAIN.sample(20, np.random.default_rng(0)))
    for limit in (0.0, 1e-4, 0.1, 10.0):
        assert float(bound.logit(bound.within(layers, limit))) <= limit * (1 + 1e-9) + 1e-12


def test_seeing_changes_nothing_where_the_metric_sees_all() -> None:
    layers = random_layers(3, [6])
    X = tensor(DOMAIN.sample(20, np.random.default_rng(0)))
    bound = twin_bound(DOMAIN, METRICS["ball"], 0.3, X.numpy())
    assert torch.allclose(logits(bound.seeing(bound.raw(layers)), X), logits(layers, X))
    blind = twin_bound(DOMAIN, METRICS["singular"], 0.3, X.numpy())
    assert float(blind.seeing(layers)[0][0][:, 1].abs().max()) < 1e-12  # what the metric is blind to has no weight


def test_the_bound_has_a_slope_everywhere() -> None:
    for name, metric in METRICS.items():
        bound = twin_bound(DOMAIN, metric, 0.3, DOMAIN.sample(20, np.random.default_rng(0)))
        layers = [(0.0 * weight, bias) for weight, bias in random_layers(4, [4])]
        parts = [part.requires_grad_() for layer in layers for part in layer]
        slopes = torch.autograd.grad(bound.logit(layers), parts, allow_unused=True)
        assert all(slope is None or bool(torch.isfinite(slope).all()) for slope in slopes), name


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), name=st.sampled_from(["ball", "correlated", "singular", "l-inf", "l1", "l3"]))
def test_the_oracle_stays_inside_and_beats_random_points(seed: int, name: str) -> None:
    rng = np.random.default_rng(seed)
    people = DOMAIN.sample(8, rng)
    bound = twin_bound(DOMAIN, METRICS[name], 0.3, people)
    low, high = bound.lowest - tensor(people)[:, bound.free], bound.highest - tensor(people)[:, bound.free]
    rows = tensor(rng.normal(size=low.shape))
    d = oracle(bound, rows, low, high)
    assert bool((d >= low - 1e-9).all() and (d <= high + 1e-9).all())
    assert bool((torch.linalg.vector_norm(d @ bound.matrix.T, bound.p, dim=1) <= bound.eps * (1 + 1e-9)).all())
    for _ in range(50):
        other = tensor(rng.uniform(low.numpy(), high.numpy()))
        size = torch.linalg.vector_norm(other @ bound.matrix.T, bound.p, dim=1)
        other = other * torch.clamp(bound.eps / size, max=1.0)[:, None]
        assert bool(((rows * d).sum(dim=1) >= (rows * other).sum(dim=1) - 2e-3).all())


def test_the_local_engine_against_a_milp() -> None:
    data = lw.datasets.load("german")
    bound = twin_bound(data.domain, data.metric(), 0.2, data.X_train)
    network = lw.datasets.demo_network()
    layers: Layers = [(tensor(layer.weight), tensor(layer.bias)) for layer in network.layers]
    people = np.asarray(data.X_train)[:15]
    around = neighbourhood(layers, bound, data.domain, is_ball=True)
    here = network(people)
    optimal = np.abs(network(np.array([around.farthest(person, True) for person in people])) - here)
    local = worst_neighbours(layers, tensor(people), bound, True).numpy()
    climbed = ascended(layers, tensor(people), bound, 10, True).numpy()
    for near in (local, climbed):
        assert (data.metric().distances(people, near) <= 0.2 * (1 + 1e-9)).all()
        assert data.domain.inside(near).all()
        assert (np.abs(network(near) - here) <= optimal * (1 + 1e-3) + 1e-9).all()
    gaps = (optimal - np.abs(network(local) - here)) / np.maximum(optimal, 1e-9)
    assert gaps.mean() <= 0.005


def test_the_local_engine_where_the_metric_has_a_null_space() -> None:
    rng = np.random.default_rng(3)
    hidden = np.linalg.qr(rng.normal(size=(6, 2)))[0]  # correlated columns, two directions of which nobody sees
    domain = lw.Domain([lw.Continuous(f"c{i}", 0.0, 1.0) for i in range(6)])
    metric = lw.Mahalanobis(np.eye(6) - hidden @ hidden.T)
    layers = [(tensor(rng.normal(size=(n, m))), tensor(0.5 * rng.normal(size=n))) for m, n in ((6, 5), (5, 1))]
    network, people = to_network(layers, True), domain.sample(12, rng)
    bound = twin_bound(domain, metric, 0.2, people)
    near = worst_neighbours(layers, tensor(people), bound, True).numpy()
    assert (metric.distances(people, near) <= 0.2 * (1 + 1e-9)).all()
    assert domain.inside(near).all()
    around = neighbourhood(layers, bound, domain, is_ball=True)
    found, optimal = (
        np.abs(network(there) - network(people))
        for there in (near, np.array([around.farthest(person, True) for person in people]))
    )
    assert (found <= optimal * (1 + 1e-3)).all()
    assert ((optimal - found) / optimal).mean() <= 0.005
    alone = worst_neighbours(layers, tensor(people), twin_bound(domain, metric, 0.0, people), True).numpy()
    assert (metric.distances(people, alone) <= 1e-12).all()


def test_the_milp_of_one_person_against_the_certifier() -> None:
    layers = random_layers(5, [5])
    network, metric = to_network(layers, True), METRICS["correlated"]
    people = DOMAIN.sample(4, np.random.default_rng(1))
    bound = twin_bound(DOMAIN, metric, 0.3, people)
    around = neighbourhood(layers, bound, DOMAIN, is_ball=True)
    for person in people:
        near = around.farthest(person, True)
        gap = abs(float(network(near[None])[0] - network(person[None])[0]))
        found = lw.certify(network, DOMAIN, metric, 0.3, left=person, seconds=5, threads=1)
        assert found.lower * (1 - 1e-3) <= gap <= found.upper * (1 + 1e-3) + 1e-9


def test_the_exact_engine_refuses_what_it_cannot_solve() -> None:
    people = DOMAIN.sample(5, np.random.default_rng(0))
    with pytest.raises(lw.InputError, match="categories that cannot change"):
        require_exact(twin_bound(DOMAIN, METRICS["ball"], 3.0, people))
    with pytest.raises(lw.InputError):
        require_exact(twin_bound(DOMAIN, METRICS["embedding"], 0.01, people))
