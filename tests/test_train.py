"""Training: what is promised of every method, of the target delta, of checkpoints, and what is refused."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import likewise as lw
from likewise.train import loop
from likewise.train.calibrate import calibrated, platt
from likewise.train.checkpoint import load
from likewise.train.run import train as run
from likewise.train.settings import METHODS, settings_of

QUICK: dict[str, Any] = {"hidden": [6], "epochs": 4, "l2": 1.0, "certify": 1.0, "threads": 1}


def examples(people: int = 300, seed: int = 0, regression: bool = False) -> lw.Examples:
    """People of two numbers and a job of three, the third of which nobody to train on has."""
    rng = np.random.default_rng(seed)
    domain = lw.Domain([lw.Continuous("a", 0.0, 1.0), lw.Continuous("b", 0.0, 1.0), lw.OneHot("job", ["x", "y", "z"])])
    X = np.zeros((people, 5))
    X[:, :2] = rng.random((people, 2))
    job = rng.integers(0, 2, people)
    X[np.arange(people), 2 + job] = 1.0
    logit = 4 * (X[:, 0] - 0.5) + 2 * job - 1
    y = logit + rng.normal(size=people) * 0.1 if regression else (rng.random(people) < 1 / (1 + np.exp(-logit))) * 1.0
    half = people // 2
    metric = lw.Mahalanobis(np.eye(5))
    return lw.Examples(X[:half], y[:half], X[half:], y[half:], domain, metric)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("regression", [False, True])
def test_every_method_learns_and_is_certified(method: str, regression: bool) -> None:
    data = examples(regression=regression)
    trained = lw.train(data, method, **{**QUICK, "epochs": 15})
    tested = trained.measures(data.X_test, data.y_test)
    assert tested["r2"] > 0.3 if regression else tested["balanced_accuracy"] > 0.6
    assert trained.certificate is not None
    assert 0 <= trained.certificate.lower <= trained.certificate.upper
    assert len(trained.history) <= 15
    assert {"epoch", "loss", "delta_bound", "seconds"} <= set(trained.history[-1])
    assert trained.certificate.problem.network.digest == trained.network.digest  # what is proven is what is used


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("milp", {"solver": "exact", "as_published": True}),
        ("milp", {"solver": "milp"}),
        ("milp", {"solver": "milp", "as_published": True}),
        ("milp", {"solver": "gradient"}),
        ("certified", {"local": 0.5}),
        ("certified", {"metric": lw.WeightedLp(np.ones(5))}),
        ("certified", {"metric": lw.WeightedLp(np.ones(5), p=3), "delta": 0.05}),
        ("certified", {"metric": lw.Mahalanobis(np.diag([1.0, 0.0, 1.0, 1.0, 1.0])), "delta": 0.05}),
    ],
)
def test_the_options_of_the_methods(method: str, options: dict[str, Any]) -> None:
    trained = lw.train(examples(60), method, **{**QUICK, "epochs": 2, "hidden": [3]}, **options)
    assert trained.certificate is not None
    assert math.isfinite(trained.certificate.upper)
    assert trained.reached is not False


def test_what_a_solver_cannot_do_is_refused() -> None:
    curved = lw.Embedding(lw.Network([lw.Layer(np.eye(5), np.zeros(5), "relu")]), lw.WeightedLp(np.ones(5)))
    for solver in ("exact", "milp", "gradient"):
        with pytest.raises(lw.InputError, match="solver="):
            lw.train(examples(), "milp", metric=curved, solver=solver, **QUICK)
    with pytest.raises(lw.InputError, match="sensr needs a Mahalanobis"):
        lw.train(examples(), "sensr", metric=lw.WeightedLp(np.ones(5)), **QUICK)


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("delta", [0.0, 0.01, 0.1])
def test_a_target_is_kept_or_said_to_be_missed(regression: bool, delta: float) -> None:
    trained = lw.train(examples(regression=regression), delta=delta, **QUICK)
    assert trained.certificate is not None
    assert trained.reached is (trained.certificate.upper <= delta)
    assert trained.reached or delta == 0.0  # rounding alone may keep an upper bound above 0


def test_a_larger_delta_buys_accuracy() -> None:
    data = examples(2000)
    losses = [min(h["loss"] for h in lw.train(data, delta=d, **QUICK).history) for d in (0.001, 0.5)]
    assert losses[1] < losses[0]


def test_early_stopping_does_not_undo_fairness() -> None:
    data, options = examples(600), {**QUICK, "epochs": 20}
    plain = lw.train(data, "ftu", **options).certificate
    fair = lw.train(data, "milp", fairness=0.95, **options).certificate
    assert plain is not None
    assert fair is not None
    assert fair.upper < 0.6 * plain.lower  # the epoch before fairness counts has a lower loss, and 0.7 of it


def test_repair_starts_from_the_network_given() -> None:
    data = examples(1000)
    unfair = lw.train(data, "ftu", **{**QUICK, "epochs": 20})
    assert unfair.certificate is not None
    assert unfair.certificate.lower > 0.02
    fixed = lw.train(data, delta=0.02, from_=unfair.network, **QUICK)
    assert fixed.reached
    assert [len(layer.bias) for layer in fixed.network.layers] == [6, 1]
    untouched = lw.train(data, from_=unfair.network, rate=1e-12, penalty=0.0, calibrate=False, **QUICK)
    assert np.allclose(untouched.network(data.X_test), unfair.network(data.X_test), atol=1e-6)


def test_the_seed_decides() -> None:
    data = examples()
    one, again, other = (lw.train(data, seed=seed, **QUICK) for seed in (3, 3, 4))
    assert one.network.digest == again.network.digest != other.network.digest


def test_calibration_is_part_of_the_network() -> None:
    data = examples(2000)
    raw = lw.train(data, "ftu", calibrate=False, **QUICK).network
    after = calibrated(raw, data.X_train, data.y_train, balanced=True)
    slope, shift = platt(raw.logit()(data.X_train), data.y_train, balanced=True)
    assert np.allclose(after.logit()(data.X_test), slope * raw.logit()(data.X_test) + shift)
    again = platt(after.logit()(data.X_train), data.y_train, balanced=True)
    assert again == pytest.approx((1.0, 0.0), abs=1e-6)
    shrunk = lw.Network([*raw.layers[:-1], lw.Layer(raw.layers[-1].weight / 50, raw.layers[-1].bias / 50, "sigmoid")])
    back = calibrated(shrunk, data.X_train, data.y_train, balanced=True)
    assert np.allclose(back(data.X_test), after(data.X_test), atol=1e-6)  # shrinking the logits buys nothing


def test_platt_is_finite_for_classes_that_can_be_told_apart() -> None:
    slope, shift = platt(np.array([-1.0, -2.0, 1.0, 2.0]), np.array([0.0, 0.0, 1.0, 1.0]), balanced=True)
    assert 0 < slope < 100
    assert math.isfinite(shift)


def test_batches_are_balanced() -> None:
    y = np.r_[np.zeros(90), np.ones(10)]
    rows = list(loop.batches(y, 20, True, np.random.default_rng(0)))
    assert all((y[chosen] == 1).sum() == (y[chosen] == 0).sum() == 10 for chosen in rows)
    plain = list(loop.batches(y, 20, False, np.random.default_rng(0)))
    assert sorted(np.concatenate(plain).tolist()) == list(range(100))


def test_a_batch_without_one_of_the_classes_is_no_accident() -> None:
    data = examples(60)
    trained = lw.train(data, "ftu", balanced=False, batch=1, **QUICK)
    assert np.isfinite(trained.network(data.X_test)).all()


def test_one_class_is_refused() -> None:
    data = examples()
    with pytest.raises(lw.InputError, match="nothing to tell apart"):
        replace(data, y_train=np.ones(len(data.y_train)))


def test_a_loss_that_is_not_finite_ends_the_training() -> None:
    with pytest.raises(lw.InputError, match="not finite in epoch 1"):
        lw.train(examples(), "ftu", rate=1e300, **QUICK)


def test_a_constant_feature_and_one_that_nobody_has() -> None:
    data = examples()
    X = np.array(data.X_train)
    X[:, 1] = 0.25
    trained = lw.train(replace(data, X_train=X), delta=0.05, **QUICK)
    assert trained.reached
    unseen = np.array([[0.5, 0.5, 0.0, 0.0, 1.0]])  # a category of the schema that no training person has
    assert (trained.network.layers[0].weight[:, 4] == 0).all()
    assert 0 <= trained.network(unseen)[0] <= 1


def test_eps_0_costs_nothing() -> None:
    trained = lw.train(examples(), eps=0.0, delta=0.001, **QUICK)
    assert trained.certificate is not None
    assert trained.certificate.upper <= 0.001
    assert trained.history[-1]["delta_bound"] == pytest.approx(0.0, abs=1e-12)


def test_validation_part_is_stratified_or_left_out() -> None:
    data = examples(3000)
    fit, held = data.split(0.2, np.random.default_rng(0))
    assert len(held) == pytest.approx(300, abs=1)
    assert not set(fit) & set(held)
    assert abs(data.y_train[held].mean() - data.y_train[fit].mean()) < 0.02
    assert len(examples(1000).split(0.2, np.random.default_rng(0))[1]) == 0


def test_patience_ends_early() -> None:
    trained = lw.train(examples(), "ftu", patience=1, rate=1e-9, hidden=[6], epochs=50, certify=0.0)
    assert len(trained.history) < 50


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "magic"}, "unknown method"),
        ({"method": "ftu", "delta": 0.1}, "'delta' is for the method certified"),
        ({"method": "ftu", "solver": "milp"}, "'solver' is for the method milp"),
        ({"hidden": [0]}, "hidden must be"),
        ({"hidden": "16"}, "hidden must be"),
        ({"epochs": 0}, "epochs must be"),
        ({"rate": -1.0}, "rate must be"),
        ({"delta": math.nan}, "delta must be"),
        ({"delta": 0.1, "certify": 0.0}, "needs a certificate"),
        ({"validation": 0.95}, "share"),
        ({"batch": 1}, "batch must be"),
        ({"wings": 2}, "unknown option 'wings'"),
        ({"resume": True}, "give keep"),
        ({"threads": 0}, "threads must be"),
        ({"from_": lw.Network([lw.Layer(np.ones((1, 3)), np.zeros(1), "sigmoid")])}, "maps 3 columns"),
        ({"from_": lw.Network([lw.Layer(np.ones((1, 5)), np.zeros(1), "tanh")])}, "tanh"),
        ({"metric": "mahalanobis"}, "metric must be a likewise metric"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(lw.InputError, match=words):
        lw.train(examples(), **options)


def test_examples_that_do_not_fit_are_refused() -> None:
    data = examples()
    with pytest.raises(lw.DomainError, match="4 columns"):
        replace(data, X_train=np.zeros((3, 4)), y_train=np.zeros(3))
    with pytest.raises(lw.InputError, match="row 1"):
        replace(data, y_train=np.r_[0.0, np.nan, np.ones(len(data.y_train) - 2)])
    with pytest.raises(lw.InputError, match="Dataset or likewise"):
        lw.train([1, 2, 3])


def test_resuming_gives_the_same_network(tmp_path: Path) -> None:
    data = examples()
    settings = settings_of("certified", {"hidden": [6], "epochs": 8, "certify": 1.0, "delta": 0.05, "rounds": 1})
    whole = run(data, settings, threads=1)
    kept = tmp_path / "state"

    class Enough(Exception):
        pass

    def stop(news: dict[str, float]) -> None:
        if news["epoch"] == 5:
            raise Enough

    with pytest.raises(Enough):
        run(data, settings, keep=kept, progress=stop, threads=1)
    resumed = run(data, settings, keep=kept, resume=True, threads=1)
    assert resumed.network.digest == whole.network.digest
    with pytest.raises(lw.InputError, match="another run"):
        run(data, replace(settings, seed=9), keep=kept, resume=True)


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "state"
    file.write_bytes(b"not a checkpoint")
    with pytest.raises(lw.FileError):
        load(file, "")
    np.savez(file, about=np.array("{}"))
    with pytest.raises(lw.FileError, match="not a checkpoint"):
        load(tmp_path / "state.npz", "")


# The command line, but the process kills itself (as kill -9 does) when its fourth epoch is done and not yet kept.
KILLED = """
import os, signal, sys
from likewise.cli import main
from likewise.train import checkpoint

save, kept = checkpoint.save, []

def save_or_die(*state):
    if len(kept) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    kept.append(save(*state))

checkpoint.save = save_or_die
sys.exit(main(sys.argv[1:]))
"""


def test_kill_9_and_resume(tmp_path: Path) -> None:
    options = ["train", "german", "german", "--hidden", "6", "--eps", "0.2", "--method", "ftu"]
    options += ["--epochs", "8", "--patience", "8", "--seconds", "1", "-o"]
    kept = tmp_path / "model.npz.checkpoint"
    killed = subprocess.run([sys.executable, "-c", KILLED, *options, str(tmp_path / "model.npz")], capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert kept.exists()
    assert not (tmp_path / "model.npz").exists()
    for name, more in (("model.npz", ["--resume"]), ("whole.npz", [])):
        command = [sys.executable, "-m", "likewise", *options, str(tmp_path / name), *more]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    resumed = json.loads((tmp_path / "model.history.json").read_text())["history"]
    assert [line["epoch"] for line in resumed] == list(range(1, 9))
    assert lw.load(tmp_path / "model.npz").digest == lw.load(tmp_path / "whole.npz").digest
    assert not kept.exists()


@pytest.mark.parametrize("suffix", [".npz", ".onnx", ".pt"])
def test_a_saved_model_is_the_same_and_carries_what_is_known(suffix: str, tmp_path: Path) -> None:
    data = examples()
    trained = lw.train(data, delta=0.05, **QUICK)
    path = trained.save(tmp_path / f"model{suffix}")
    again = lw.load(path)
    assert np.allclose(again(data.X_test), trained.network(data.X_test), rtol=0, atol=1e-12)
    schema, proven = lw.read_schema(tmp_path / "model.toml"), lw.read(tmp_path / "model.cert")
    assert schema.domain.digest == data.domain.digest
    assert schema.metric.digest == data.metric.digest
    assert proven.upper <= 0.05
    assert proven.problem.network.digest == again.digest
    with pytest.raises(lw.FileError, match=r"cannot write a model as '\.xyz'"):
        trained.save(tmp_path / "model.xyz")
