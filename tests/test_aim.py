"""Aim: what phases cost is what a pair is short of; people are found who have them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import likewise as lw
from likewise.search.aim import _Crowd, _target, aim
from likewise.search.branch import begin
from likewise.search.join import join
from likewise.search.root import Root
from likewise.search.run import Run

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
from instances import instance


def joined(name: str) -> Root:
    """Return the root of a question with a joint, and no pair but the same person twice."""
    asked = instance(name)
    root = begin(asked, Run(asked, seconds=60.0, gap=1e-5))
    root.run.lower, root.run._lowers, root.run._pair = 0.0, [0.0], root.run._anyone()
    assert join(root)
    return root


@pytest.mark.parametrize("name", ["mild/german_16|mahalanobis|0.2", "mild/credit_16|linf|0.05"])
def test_phases_cost_what_a_pair_is_short_of(name: str) -> None:
    root = joined(name)
    joint = next(iter(root.joints.values()))
    target = _target(root, joint)
    assert target is not None
    crowd = _Crowd(root, target, np.random.default_rng(0))
    (layer,) = root.problem.network.layers[:-1]
    ends = [np.maximum((crowd.x + sign * target.d / 2) @ layer.weight.T + layer.bias, 0.0) for sign in (1, -1)]
    dz = layer.weight @ target.d
    reached = (ends[0] - ends[1]) @ joint.both[0] + joint.nu @ target.d - joint.turn[0] @ dz
    most = np.maximum(joint.both[0] * dz, 0.0).sum() + joint.nu @ target.d - joint.turn[0] @ dz
    assert np.allclose(crowd._cost(crowd.z, 0.0, 0.0), most - reached, atol=1e-9)
    assert (reached <= joint.upper).all()
    assert (reached < most - 1e-6).any()


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("mild/credit_16|mahalanobis|0.05", 0.072234),
        ("mild/credit_16|linf|0.2", 0.655118),
        ("mild/german_16x16|linf|0.05", 0.108111),
    ],
)
def test_people_are_found(name: str, known: float) -> None:
    root = joined(name)
    assert root.run.lower == 0.0
    assert aim(root, 3.0)
    assert root.run.lower > 0.9 * known
    assert root.outer.admits(*root.run.pair())


def test_people_stay_in_the_domain() -> None:
    root = joined("mild/german_16|linf|0.05")
    target = _target(root, next(iter(root.joints.values())))
    assert target is not None
    crowd = _Crowd(root, target, np.random.default_rng(1))
    found = list(crowd.cooled(0.3))
    assert found
    assert all(root.problem.right.contains(person) for person in [*found, *crowd.x])
    assert np.allclose(crowd.z, crowd.x @ crowd.columns + crowd.hidden[0].bias, atol=1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_integers_constraints_and_categories(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    features = [lw.Integer(f"n{k}", 0, 4, step=0.5) for k in range(3)]
    if seed % 3:
        features += [lw.Continuous("age", 0.0, 1.0), lw.OneHot("job", ["a", "b", "c"])][: seed % 3]
    width = lw.Domain(features).width
    limits = [(rng.normal(size=(1, width)), np.array([5.0]))] if seed > 2 else []
    domain = lw.Domain(features, constraints=limits)
    layers = [lw.Layer(rng.normal(size=(6, width)), rng.normal(size=6), "relu")]
    layers.append(lw.Layer(rng.normal(size=(1, 6)), np.zeros(1), "sigmoid"))
    found = lw.certify(
        lw.Network(layers), domain, lw.WeightedLp(np.ones(width)), eps=0.6, seconds=10, gap=1e-4, threads=1
    )
    assert found.gap <= 1e-4
    assert lw.check(found.save(tmp_path / "a.cert")).ok


def test_without_a_joint_there_is_nothing_to_aim_at() -> None:
    asked = instance("mild/german_8|linf|0.05")
    root = begin(asked, Run(asked, seconds=20.0, gap=1e-5))
    assert not aim(root, 1.0)
    assert root.aimed == 0
