"""For every test: repeatable hypothesis runs, no silent skips in CI, and a folder of inputs that work."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

IN_CI = os.environ.get("CI", "").lower() in ("1", "true", "yes")
ALLOWED = ("no Gurobi licence",)  # the only reasons to skip a test in CI

settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
settings.load_profile("ci" if IN_CI else "dev")

Hook = Generator[None, Any, Any]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Hook:
    return _no_silent_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Hook:
    return _no_silent_skip((yield))


def _no_silent_skip(report: Any) -> Any:
    """In CI, turn a skip into a failure unless its reason is allowed; an expected failure is no skip."""
    if IN_CI and report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not any(allowed in reason for allowed in ALLOWED):
            report.outcome = "failed"
            report.longrepr = f"skipped in CI: {reason}"
    return report


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with model.npz (4 -> 6 -> 1), schema.toml and person.csv that fit each other."""
    write_inputs(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_inputs(where: Path) -> None:
    rng = np.random.default_rng(7)
    layers = {"W0": rng.normal(size=(6, 4)), "b0": rng.normal(size=6), "W1": rng.normal(size=(1, 6)), "b1": np.zeros(1)}
    np.savez(where / "model.npz", activations=np.array(["relu", "sigmoid"]), **layers)  # type: ignore[arg-type]
    (where / "schema.toml").write_text(SCHEMA)
    (where / "person.csv").write_text("job,age,income\nbaker,48,0.25\n")


SCHEMA = """
title = "Two numbers and a job"
[[feature]]
name = "age"
kind = "continuous"
low = 0.0
high = 1.0
offset = 18.0
factor = 60.0
unit = "years"
[[feature]]
name = "income"
kind = "continuous"
low = 0.0
high = 1.0
[[feature]]
name = "job"
kind = "one_hot"
values = ["artist", "baker"]
[metric]
kind = "lp"
weights = 1.0
"""


@pytest.fixture
def without_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Python grow all trees."""
    monkeypatch.setattr("likewise.search.root.fits", lambda problem: False)
