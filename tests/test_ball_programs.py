"""The kernel's programs with a round ball, by tangents and by an interior point method, against a conic value."""

from __future__ import annotations

import numpy as np
import pytest
from problems import make
from scipy.optimize import linprog

import likewise as lw
from likewise.bounds import reach, twin_bounds
from likewise.search import compiled, search
from likewise.search.inner import inner_problem
from likewise.search.question import Question
from likewise.search.relaxed import Relaxed

ROUNDS = 600
TIGHT = 1e-9  # how far a point of the conic value may be outside the ball, relative


def asked(seed):
    inner, score = inner_problem(make(seed).problem)
    bounds = twin_bounds(inner, reach(inner))
    return inner, bounds, Relaxed(inner, bounds, score, Question(0.05, np.inf, [0.0]))


def has_ball(seed):
    inner, _ = inner_problem(make(seed).problem)
    is_relu = all(set(layer.activations) == {"relu"} for layer in inner.network.layers[:-1])
    return is_relu and compiled.would_fit(inner) and inner.metric.p == 2.0 and inner.eps > 1e-3


SEEDS = [seed for seed in range(900) if has_ball(seed)][:24]


def test_there_are_balls():
    assert len(SEEDS) > 15


def conic(inner, bounds, relaxed, objective):
    """Maximise over the model and the whole ball: linear programs by scipy, with a tangent at each point outside."""
    model = relaxed.template.model(inner, bounds)
    box, d = relaxed.template.compared
    matrix = inner.metric.matrix[:, box.free]
    rows, sides = model.matrix.toarray(), [(model.row_lower, -1.0), (model.row_upper, 1.0)]
    above = np.concatenate([sign * rows[np.isfinite(side)] for side, sign in sides])
    most = np.concatenate([sign * side[np.isfinite(side)] for side, sign in sides])
    for _ in range(ROUNDS):
        found = linprog(-objective, above, most, bounds=np.column_stack([model.lower, model.upper]))
        if found.x is None:
            return None
        s = matrix @ found.x[d]
        norm = float(np.linalg.norm(s))
        if norm <= inner.eps * (1 + TIGHT):
            return -found.fun
        tangent = np.zeros(len(objective))
        tangent[d] = s / norm @ matrix
        above, most = np.vstack([above, tangent]), np.append(most, inner.eps)
    return None  # not settled


def objectives(relaxed, seed):
    rng = np.random.default_rng(seed)
    zs = np.concatenate([relaxed.template.left.z[-1], relaxed.template.right.z[0]])
    yield relaxed.objective
    for _ in range(2):
        row = np.zeros(relaxed.template.columns)
        row[zs] = rng.normal(size=len(zs))
        yield row


@pytest.mark.parametrize("seed", SEEDS)
def test_the_conic_value_is_found(seed, monkeypatch):
    inner, bounds, relaxed = asked(seed)
    is_blind = compiled.is_round(inner, bounds)
    swifts = []
    for is_round in (True, False):  # by the interior point method, by tangents
        monkeypatch.setattr(compiled, "is_round", lambda *_, now=is_round: now)
        swifts.append(compiled.Swift(inner, bounds, relaxed))
        swifts[-1].accuracy = 0.0
    for objective in objectives(relaxed, seed):
        value = conic(inner, bounds, relaxed, objective)
        if value is None:
            continue
        (mine, point), (drawn, _) = (swift.maximise(objective) for swift in swifts)
        assert value - 1e-6 * (1 + abs(value)) <= mine <= value + 1e-5 * (1 + abs(value))
        assert abs(objective @ point - value) <= 1e-4 * (1 + abs(value))
        assert drawn >= value - 1e-6 * (1 + abs(value))
        assert is_blind or drawn <= value + 1e-6 * (1 + abs(value))  # what the network does not see is left to the box


def blind(seed=0, eps=0.3):
    """Return a question about six neurons and a metric of thirty numbers, four directions of which it does not see."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(30, 30)))[0][:, 4:]
    layers = [
        lw.Layer(rng.normal(size=(6, 30)) / 3, rng.normal(size=6) * 0.2, "relu"),
        lw.Layer(rng.normal(size=(1, 6)), rng.normal(size=1), "sigmoid"),
    ]
    domain = lw.Domain([lw.Continuous(f"x{k}", 0.0, 1.0) for k in range(30)])
    return lw.Problem(lw.Network(layers), domain, domain, lw.Mahalanobis(basis @ basis.T), eps)


@pytest.mark.parametrize("seed", range(3))
def test_what_the_network_does_not_see_of_a_ball_counts(seed, tmp_path):
    problem = blind(seed)
    cert = search(problem, engine="branch", solver="highs", seconds=20.0, gap=1e-5, threads=1)
    assert cert.upper - cert.lower <= 1e-5 * (1 + 1e-9)
    found = lw.check(cert.save(tmp_path / "a.cert"))
    assert (found.ok, found.reasons) == (True, ())


def test_either_method_comes_to_the_same_answer(monkeypatch):
    problem = blind()
    whole = search(problem, engine="branch", solver="highs", seconds=20.0, gap=1e-4, threads=1)
    monkeypatch.setattr("likewise.search.root.is_round", lambda *_: False)
    monkeypatch.setattr(compiled, "is_round", lambda *_: False)
    drawn = search(problem, engine="branch", solver="highs", seconds=10.0, gap=1e-4, threads=1)
    assert whole.lower <= drawn.upper
    assert drawn.lower <= whole.upper
