"""The exported question is the same one: same gaps, same distances, same people."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from problems import make
from wide import make_wide

from likewise import Problem
from likewise.cli import main
from likewise.export import export, number

CASES = [*((make, s) for s in range(14)), *((make_wide, s) for s in range(13))]
TOKEN = re.compile(r"\(|\)|[^\s()]+")


def parsed(text: str) -> list:
    """Return the assertions of a query as nested lists."""
    stack: list[list] = [[]]
    for token in TOKEN.findall(re.sub(r";.*", "", text)):
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(token)
    assert len(stack) == 1
    assert stack[0][0] == ["vnnlib-version", "<2.0>"]
    return [entry[1] for entry in stack[0] if entry[0] == "assert"]


def value(term, x, y):
    if isinstance(term, list):
        numbers = [value(part, x, y) for part in term[1:]]
        return sum(numbers) if term[0] == "+" else math.prod(numbers)
    found = re.fullmatch(r"([XY])\[0,(\d+)\]", term)
    if found:
        return (x if found[1] == "X" else y)[int(found[2])]
    assert re.fullmatch(r"-?\d+\.\d+(e-?\d+)?", term), term
    return float(term)


def holds(claim, x, y) -> bool:
    if claim[0] in ("and", "or"):
        return (all if claim[0] == "and" else any)(holds(part, x, y) for part in claim[1:])
    one, other = value(claim[1], x, y), value(claim[2], x, y)
    return {"<=": one <= other, ">=": one >= other, "==": one == other}[claim[0]]


def people(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return problem.left.sample(20, rng), problem.right.sample(20, rng)


@pytest.mark.parametrize(("maker", "seed"), CASES)
def test_network_and_query_say_what_the_problem_says(maker, seed, tmp_path):
    problem = maker(seed).problem
    network, query = export(problem, 0.1, tmp_path)
    run = ReferenceEvaluator(onnx.load(network))
    claims = parsed(query.read_text())
    gelu = "gelu" in problem.network.layers[0].activations  # onnx's own Erf is good to seven digits
    power = 1.0 if problem.metric.p in (1.0, math.inf) else problem.metric.p
    for left, right in zip(*people(problem), strict=True):
        x = np.concatenate([left, right])
        y = run.run(None, {"X": x[None]})[0][0]
        scores = problem.network(np.stack([left, right]))
        assert y[0] == pytest.approx(scores[0] - scores[1], abs=1e-6 if gelu else 1e-9)
        assert y[1] == pytest.approx(problem.metric.distance(left, right) ** power, rel=1e-9, abs=1e-12)
        wide = y[0] >= 0.1 or (not problem.symmetric and y[0] <= -0.1)
        near = y[1] <= problem.eps**power
        assert all(holds(claim, x, y) for claim in claims) == (wide and near)
        assert all(holds(claim, x, y) for claim in claims[:-2])
        nobody = x + 0.37
        assert not all(holds(claim, nobody, y) for claim in claims[:-2]) or problem.right.contains(nobody[len(left) :])


@pytest.mark.parametrize("x", [0.0, -0.1, 1e-300, 1e22, -1.5e-7, 3.0])
def test_numbers_are_written_exactly(x):
    assert re.fullmatch(r"-?\d+\.\d+(e-?\d+)?", number(x))
    assert float(number(x)) == x


def test_the_command_writes_both_files(folder: Path, capsys):
    assert main(["export", "model.npz", "schema.toml", "--eps", "0.1", "-o", "question"]) == 0
    assert (folder / "question" / "twin.onnx").is_file()
    assert "(declare-network twin" in (folder / "question" / "twin.vnnlib").read_text()
    assert main(["export", "model.npz", "schema.toml", "--eps", "0.1", "-o", "model.npz"]) == 2
    assert main(["export", "model.npz", "schema.toml", "--eps", "0.1", "--delta", "0", "-o", "question"]) == 2
    assert capsys.readouterr().err.count("likewise:") == 2
