"""The public face: names, imports that stay away, one-line reprs, and what is installed."""

from __future__ import annotations

import inspect
import subprocess
import sys
import tomllib
import types
from pathlib import Path

import numpy as np
import pytest

import likewise as lw

ROOT = Path(__file__).parent.parent
OPTIONAL = (
    "torch",
    "jinja2",
    "matplotlib",
    "pyscipopt",
    "gurobipy",
    "cbcbox",
    "onnx",
    "h5py",
    "sklearn",
    "ray",
    "dask",
)
EXTRAS = [
    "torch",
    "onnx",
    "keras",
    "sklearn",
    "scip",
    "gurobi",
    "cbc",
    "ray",
    "dask",
    "report",
    "train",
    "sign",
    "dev",
    "all",
]


def test_all_is_sorted_and_complete() -> None:
    assert lw.__all__ == sorted(set(lw.__all__))
    rooms = {p.name.removesuffix(".py") for p in Path(lw.__file__).parent.iterdir()} - set(lw.__all__)
    public = {name for name in vars(lw) if not name.startswith("_") and name not in rooms}
    assert public | set(lw._LAZY) == set(lw.__all__)


def test_every_public_name_says_what_it_is() -> None:
    for name in lw.__all__:
        assert inspect.getdoc(getattr(lw, name)), name


def test_every_error_is_public() -> None:
    from likewise import errors

    names = {
        name for name, value in vars(errors).items() if isinstance(value, type) and value.__module__ == errors.__name__
    }
    assert names <= set(lw.__all__)


@pytest.mark.parametrize("module", ["likewise", "likewise.cli"])
def test_import_brings_no_optional_library(module: str) -> None:
    code = f"import sys, {module}; print([m for m in {OPTIONAL!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_reprs_are_one_line() -> None:
    data, network = lw.datasets.load("german"), lw.datasets.demo_network()
    problem = lw.Problem(network, data.domain, data.domain, data.metric(), 0.1)
    small = lw.Network([lw.Layer(np.ones((1, 2)), np.zeros(1), "sigmoid")])
    domain = lw.Domain([lw.Continuous("age", 0.0, 1.0), lw.Continuous("income", 0.0, 1.0)])
    cert = lw.certify(small, domain, lw.WeightedLp([1.0, 1.0]), eps=0.1)
    values = [data, network, network.layers[0], data.domain, *data.domain.features, data.metric(), data.metric("linf")]
    for value in [*values, problem, cert, cert.witness, lw.Display()]:
        assert "\n" not in repr(value), type(value).__name__
        assert not repr(value).startswith("<"), type(value).__name__


def test_public_names_come_from_likewise() -> None:
    for name in lw.__all__:
        value = getattr(lw, name)
        module = value.__name__ if isinstance(value, types.ModuleType) else value.__module__
        assert module.startswith("likewise"), name


def test_extras_and_pins() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert list(project["optional-dependencies"]) == EXTRAS
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert pins["torch"] == "2.13.0"
    wanted = [*project["dependencies"], *(w for extra in EXTRAS[:-1] for w in project["optional-dependencies"][extra])]
    for requirement in wanted:
        assert requirement.split(">=")[0] in pins, requirement
