"""The checker: it derives what engines prove, refuses what they prove wrongly, and runs with numpy alone."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import math
import shutil
import struct
import subprocess
import sys
import time
import tracemalloc
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from problems import make
from small_tree import certified
from tamper import Opened
from wide import make_wide

import likewise as lw
import likewise_checker as checker
from likewise.activations.linear import hull_lines
from likewise.bounds import reach
from likewise.bounds.difference import difference_lines
from likewise.certificate import Payload, Proof
from likewise.cli import main
from likewise.proof import Log, argued_bounds
from likewise.proof.reach import argue
from likewise.report.text import describe
from likewise.search import search
from likewise.search.inner import inner_problem
from likewise.search.question import Question
from likewise.search.relaxed import Relaxed
from likewise.solvers import Session

FILE = Path(checker.__file__).resolve()
SEEDS = [(make, s) for s in (1, 7, 28, 44, 46)] + [(make_wide, s) for s in (0, 4, 9, 10, 13)]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A certificate with a tree, and its problem."""
    problem = make(28).problem
    path = certified(problem).save(tmp_path_factory.mktemp("checked") / "a.cert")
    return path, problem


@pytest.mark.parametrize(("maker", "seed"), SEEDS)
def test_what_the_engine_proves_is_derived_again(maker, seed, tmp_path):
    written = certified(maker(seed).problem, 20.0)
    found = lw.check(written.save(tmp_path / "a.cert"))
    assert (found.ok, found.reasons, found.trusted) == (True, (), ())
    assert found.upper <= written.upper + 1e-6 * max(1.0, written.upper)
    assert written.lower - 1e-9 <= found.lower <= found.upper


def test_an_upper_below_the_pair_is_refused_however_little_that_is(tmp_path):
    cert = certified(make(1).problem, gap=1e-7)
    assert cert.gap <= 1e-7
    path = cert.save(tmp_path / "a.cert")
    assert checker.check(path)["code"] == 0
    it = Opened.of(path)
    it.manifest["upper"] = cert.lower - 8e-7
    it.sign_again()
    found = checker.check(it.save(tmp_path / "b.cert"))
    assert found["code"] == 10
    assert "the pair shows" in found["reasons"][0]


def test_a_proof_survives_reading_and_saving(saved, tmp_path):
    again = lw.read(saved[0]).save(tmp_path / "b.cert")
    assert lw.check(again) == lw.check(saved[0])


def test_a_bound_that_came_from_a_larger_eps_brings_its_proof(tmp_path):
    problem = make(28).problem
    large = certified(problem)
    small = replace(large, problem=replace(problem, eps=0.9 * problem.eps), lower=0.0, witness=same_person(problem))
    found = lw.check(small.save(tmp_path / "small.cert"))
    assert found.ok
    assert found.upper == lw.check(large.save(tmp_path / "large.cert")).upper
    wrong = replace(large, problem=replace(problem, eps=1.1 * problem.eps))
    assert lw.check(wrong.save(tmp_path / "wrong.cert")).reasons == ("the proof is for a smaller eps",)


def test_every_certificate_of_a_profile_checks(tmp_path):
    problem = make(28).problem
    listed = lw.profile(
        problem.network, problem.right, problem.metric, [0.02, 0.05, 0.1], seconds=6, gap=1e-3, engine="branch"
    )
    assert [lw.check(one.save(tmp_path / "a.cert")).code for one in listed] == [0, 0, 0]


def same_person(problem):
    person = problem.left.person()
    score = float(problem.network(person[None])[0])
    return lw.Witness(person, person.copy(), score, score, 0.0, problem.right)


def test_rationals_agree_with_floats(tmp_path):
    for seed in (28, 42):
        path = certified(make(seed).problem).save(tmp_path / "a.cert")
        floats, exact = lw.check(path), lw.check(path, exact=True)
        assert floats.ok
        assert exact.ok
        assert exact.upper <= floats.upper
        assert exact.upper == pytest.approx(floats.upper, abs=1e-9)


def test_sums_beside_a_group_are_those_of_rationals(tmp_path):
    features = [{"kind": "continuous", "low": 1, "high": 1}, {"kind": "continuous", "low": 0, "high": 0.0624}]
    side = {"features": [*features, {"kind": "one_hot", "values": ["a"]}], "lower": [1, 0, 1], "upper": [1, 0.0624, 1]}
    arrays = {"W0": np.array([[1e15, 1.0, 0.0]]), "b0": np.array([-1e15]), "metric": np.zeros((1, 3))}
    arrays |= {"witness_left": np.array([1.0, 0.0624, 1.0]), "witness_right": np.array([1.0, 0.0, 1.0])}
    manifest = {"format": "likewise certificate", "version": 7, "lower": 0.0, "upper": 0.0, "eps": 0.0, "trusted": []}
    manifest |= {"activations": [["identity"]], "metric": {"p": 1.0}, "left": side, "right": side}
    manifest["proof"] = {"kind": "tree", "eps": 0.0, "directions": []}
    path = Opened(manifest, arrays, {}).save(tmp_path / "a.cert")
    for exact in (False, True):
        found = checker.check(path, exact=exact)
        assert found["upper"] >= 0.0624  # the gap of the pair, in real numbers
        assert found["code"] == 10


@pytest.mark.parametrize("seed", [19, 21, 22, 24])  # sigmoid, softplus, elu, silu; small trees
def test_curved_functions_are_rounded_outward_among_rationals(seed, tmp_path):
    path = certified(make(seed).problem, 2.0, 1e-2).save(tmp_path / "a.cert")
    floats, exact = lw.check(path), lw.check(path, exact=True)
    assert floats.ok
    assert exact.ok
    assert exact.upper == pytest.approx(floats.upper, abs=1e-9)


def test_the_model_must_be_the_same(saved, tmp_path):
    path, problem = saved
    assert lw.check(path, problem.network).ok
    last = problem.network.layers[-1]
    other = lw.Network([*problem.network.layers[:-1], lw.Layer(last.weight * 1.001, last.bias, last.activations)])
    assert lw.check(path, other).reasons == ("the model is another network than the certificate's",)
    npz = tmp_path / "model.npz"
    lw.write_npz(problem.network, npz)
    assert checker.check(path, npz)["code"] == 0
    with np.load(npz) as arrays:
        turned = {name: np.where(arrays[name] == 0, -0.0, arrays[name]) for name in arrays if name[0] in "Wb"}
        np.savez(npz, activations=arrays["activations"], **turned)
    assert checker.check(path, npz)["code"] == 0  # -0.0 is 0.0
    lw.write_npz(other, npz)
    assert checker.check(path, npz)["code"] == 10
    np.savez(npz, W0=np.ones((1, 1), dtype=complex))
    assert checker.check(path, npz)["code"] == 2


def test_a_model_with_a_layer_that_has_no_activation_is_unreadable(saved, tmp_path):
    path, problem = saved
    npz = tmp_path / "model.npz"
    lw.write_npz(problem.network, npz)
    with np.load(npz) as arrays:
        kept = dict(arrays)
    depth = len(problem.network.layers)
    np.savez(npz, **kept, **{f"W{depth}": np.full((1, 1), 1000.0), f"b{depth}": np.zeros(1)})
    assert checker.check(path, npz)["code"] == 2
    np.savez(npz, **kept | {"activations": np.append(kept["activations"], kept["activations"][-1])})
    assert checker.check(path, npz)["code"] == 2


def test_without_a_proof_only_what_intervals_show_is_derived(saved, tmp_path):
    bare = replace(lw.read(saved[0]), proof=None, trusted=("dual bounds of highs",))
    found = lw.check(bare.save(tmp_path / "b.cert"))
    assert (found.ok, found.code, found.trusted) == (False, 20, ("dual bounds of highs",))
    assert found.upper > bare.upper
    assert found.lower == pytest.approx(bare.lower, abs=1e-9)
    unnamed = lw.check(replace(bare, trusted=()).save(tmp_path / "c.cert"))
    assert unnamed.code == 20
    assert "no proof" in unnamed.trusted[0]


def test_a_solvers_word_is_named_everywhere(tmp_path, capsys):
    written = search(make(28).problem, engine="milp", solver="highs", seconds=20.0, gap=1e-6, threads=1)
    path, word = written.save(tmp_path / "a.cert"), "dual bounds of highs"
    assert written.trusted == (word,)
    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    assert (manifest["proof"], manifest["trusted"]) == ({"kind": "solver-trusted"}, [word])
    found = checker.check(path)
    assert (found["code"], found["ok"], found["trusted"]) == (20, False, [word])
    assert main(["check", str(path)]) == 20
    assert word in capsys.readouterr().out
    assert f"on the word of: {word}" in describe(written, 0.5)


@pytest.mark.parametrize(("maker", "seed"), [(make, 7), (make, 71), (make_wide, 42)])
def test_that_a_category_cannot_change_is_shown_and_not_trusted(maker, seed, tmp_path):
    problem = maker(seed).problem
    inner, _ = inner_problem(problem)
    where = reach(inner)
    held = [group for group in inner.right.groups if where.shared[group].all()]
    argued = argue(inner, where)
    assert held
    assert argued.content.count(b"S") >= 1
    assert argued.trusted == ()
    taken = replace(where, shared=np.ones_like(where.shared))  # what is not so is not shown
    can_change = tuple(group for group in inner.right.groups if group.stop - group.start > 1)
    assert argue(replace(inner, eps=100.0), taken).trusted == can_change


def test_a_group_that_is_only_said_not_to_change_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr("likewise.proof.reach.BUDGETS", (0,))
    written = certified(make(7).problem, 20.0, 1e-2)
    assert written.proof is None
    assert any("cannot differ" in what for what in written.trusted)
    found = lw.check(written.save(tmp_path / "a.cert"))
    assert (found.code, found.trusted) == (20, written.trusted)


@pytest.mark.parametrize("kind", ["relu", "leaky_relu", "softplus", "elu"])
@pytest.mark.parametrize("written", [b"E", b"Z" + struct.pack("<Id", 129, 0.0) + b"EE"], ids=["whole", "split"])
def test_what_overflows_proves_nothing(kind, written, tmp_path):
    layers = [lw.Layer([[size]], [0.0], kind) for size in [1e15] * 24 + [1e-15] * 24]  # all in all, about x
    domain = lw.Domain([lw.Continuous("x", 1.0, 50.0)])
    network = lw.Network([*layers, lw.Layer([[1.0]], [-5.0], "sigmoid")])
    problem = lw.Problem(network, domain, domain, lw.WeightedLp([1.0]), 10.0)
    payload = Payload(lambda: io.BytesIO(written), hashlib.sha256(written).hexdigest(), len(written), 1, 1)
    proof = Proof(problem.eps, (payload,))
    person = lw.Witness(np.ones(1), np.ones(1), 0.5, 0.5, 0.0, domain)
    claim = lw.Certificate(problem, 0.0, 0.1, person, "a liar", "none", 0.0, proof=proof)
    found = checker.check(claim.save(tmp_path / "a.cert"))
    assert found["code"] == 10
    assert found["upper"] > 0.9  # the sigmoids of -4 and 6 are that far apart


def test_a_certificate_of_an_old_version_is_read():
    found = lw.check(Path(__file__).parent / "data" / "certificate-version1.zip")
    assert found.code in (0, 20)


def moved_hull(activation, lo, hi):
    below, above = hull_lines(activation, lo, hi)
    return below, [(slope, offset - 1e-4) for slope, offset in above]


def moved_difference(slope, dz):
    lines = difference_lines(slope, dz)
    return replace(lines, upper_offset=lines.upper_offset - 1e-4, lower_offset=lines.lower_offset + 1e-4)


def one_leaf(problem, patch):
    """Return a certificate whose proof is one linear program's bound, made under a planted fault."""
    inner, score = inner_problem(problem)
    where = reach(inner)
    log = Log(inner, where)
    bounds = argued_bounds(inner, where, log)
    with patch:
        relaxed = Relaxed(inner, bounds, score, Question(0.02, math.inf, [0.0]))
        lines = relaxed.template.lines(bounds.layers)
        session = Session(relaxed.template.fill(inner, bounds, lines, relaxed.objective))
        slack, _ = session.maximise(relaxed.objective)
    y = session.proof.multipliers
    log.leaf(0, relaxed.argued(y, lines), slack)
    upper, proof = max(0.0, score.upper_from_slack(0.02, slack)), Proof(problem.eps, (log.finish(),))
    return lw.Certificate(problem, 0.0, upper, same_person(problem), "one leaf", "highs", 0.0, proof=proof)


@pytest.mark.parametrize(
    ("place", "wrong", "least"),
    [
        ("likewise.activations.linear.hull_lines", hull_lines, 0),
        ("likewise.activations.linear.hull_lines", moved_hull, 3),
        ("likewise.bounds.template.difference_lines", moved_difference, 3),
    ],
)
def test_a_planted_unsound_relaxation_is_refused(place, wrong, least, tmp_path):
    refused = 0
    for seed in [s for s in range(36) if make(s).left == "everyone" and not make(s).smooth]:
        written = one_leaf(make(seed).problem, mock.patch(place, wrong))
        found = lw.check(written.save(tmp_path / "a.cert"))
        assert found.code in (0, 10)
        assert found.code == 10 or found.upper <= written.upper + 1e-6 * max(1.0, written.upper)
        refused += found.code
    assert refused // 10 >= least
    assert least or not refused


def test_it_runs_with_python_and_numpy_alone(saved, tmp_path):
    site = Path(np.__file__).parents[1]
    alone = tmp_path / "alone"
    alone.mkdir()
    for name in ("numpy", "numpy.libs"):
        if (site / name).exists():
            (alone / name).symlink_to(site / name)
    shutil.copy(FILE, tmp_path / "likewise_checker.py")
    code = f"import sys, runpy; sys.path = [p for p in sys.path if 'site-packages' not in p] + [{str(alone)!r}]; "
    code += "runpy.run_path('likewise_checker.py', run_name='__main__')"
    command = [sys.executable, "-I", "-S", "-c", code, str(saved[0])]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("verified")


def test_it_imports_nothing_else():
    nodes = list(ast.walk(ast.parse(FILE.read_text())))
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    assert imported - set(sys.stdlib_module_names) == {"numpy"}


def test_it_can_be_read_in_an_hour():
    lines = FILE.read_text().splitlines()
    assert len(lines) <= 600  # in all: code, what explains it, and what is empty
    assert max(map(len, lines)) <= 120


def halved(levels):
    """Return a certificate whose proof halves an interval so many times over, every leaf being left to intervals."""
    domain = lw.Domain([lw.Continuous("x", -1.0, 1.0)])
    network = lw.Network([lw.Layer([[1.0]], [0.0], "relu"), lw.Layer([[1.0]], [0.0], "sigmoid")])
    problem = lw.Problem(network, domain, domain, lw.WeightedLp([1.0]), 2.0)
    inner, _ = inner_problem(problem)
    log = Log(inner, reach(inner))
    for node in range(2**levels - 1):
        row = 1 << (node + 1).bit_length() - 1
        log.split(node, ("left", 0, 0, (2 * (node + 1 - row) + 1) / row - 1.0), (2 * node + 1, 2 * node + 2))
    proof = Proof(problem.eps, (log.finish(),))
    return lw.Certificate(problem, 0.0, 0.2311, same_person(problem), "halving", "none", 0.0, proof=proof)


def test_a_proof_is_walked_in_little_memory(tmp_path):
    peaks = []
    for levels in (7, 7, 10):  # the first time, what is kept for good is made
        path = halved(levels).save(tmp_path / "a.cert")
        tracemalloc.start()
        found = checker.check(path)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert found["upper"] == pytest.approx(1 / (1 + math.exp(-1.0)) - 0.5, abs=1e-9)
    assert peaks[2] < peaks[1] + 100_000  # 1024 leaves are kept no longer than 128: some at once, then no more


def rezipped(path, target, **changes):
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            new.writestr(name, changes.get(name.replace(".", "_"), old.read(name)))
    return target


def test_one_check_at_a_time(saved, monkeypatch):
    """Whether numbers are rationals is the same for a whole process: checks in threads take turns."""
    running, most = [], []
    derive = checker.derive

    def watched(*given):
        running.append(1)
        time.sleep(0.02)
        most.append(len(running))
        derive(*given)
        running.pop()

    monkeypatch.setattr(checker, "derive", watched)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(checker.check, [saved[0]] * 4))
    assert all(one["ok"] for one in found)
    assert most == [1] * 4


def test_hostile_files_are_unreadable_and_nothing_more(saved, tmp_path, monkeypatch):
    path = saved[0]
    pickled = io.BytesIO()
    np.savez(pickled, metric=np.array([{"a": 1}], dtype=object))
    huge = io.BytesIO()
    with zipfile.ZipFile(huge, "w") as archive:
        stream = io.BytesIO()
        np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
        archive.writestr("metric.npy", stream.getvalue())
    files = [
        rezipped(path, tmp_path / "a.cert", arrays_npz=pickled.getvalue()),
        rezipped(path, tmp_path / "b.cert", arrays_npz=huge.getvalue()),
        rezipped(path, tmp_path / "c.cert", manifest_json=b"[" * 100_000),
        rezipped(path, tmp_path / "d.cert", manifest_json=json.dumps({"format": "likewise certificate"}).encode()),
        rezipped(path, tmp_path / "e.cert", manifest_json=b"\xff\xfe\x00"),
        tmp_path / "none.cert",
        tmp_path,
    ]
    (tmp_path / "f.cert").write_bytes(b"PK\x03\x04 nothing")
    for file in [*files, tmp_path / "f.cert"]:
        found = lw.check(file)
        assert (found.code, found.ok) == (2, False), file
        assert len(found.reasons) == 1
    with np.load(io.BytesIO(zipfile.ZipFile(path).read("arrays.npz"))) as arrays:
        packed = io.BytesIO()
        np.savez_compressed(packed, bomb=np.zeros(1 << 20), **arrays)
    monkeypatch.setattr(checker, "LIMIT", 1 << 20)
    assert len(packed.getvalue()) < checker.LIMIT
    bomb = rezipped(path, tmp_path / "g.cert", arrays_npz=packed.getvalue())
    assert "more than 1 MiB" in lw.check(bomb).reasons[0]
    monkeypatch.setattr(checker, "LIMIT", 1000)
    assert lw.check(path).code == 2


def test_single_precision_is_within_its_margin():
    from likewise.proof.single import single_margin

    rng = np.random.default_rng(3)
    for seed in range(0, 42, 3):
        problem = make(seed).problem
        people = problem.right.sample(200, rng)
        x = people.astype(np.float32)
        for layer in problem.network.layers:
            z = x @ layer.weight.astype(np.float32).T + layer.bias.astype(np.float32)
            x = layer.activate(z.astype(np.float64)).astype(np.float32)
        off = np.abs(x[:, 0].astype(np.float64) - problem.network(people)).max()
        margin = single_margin(problem)
        assert 2 * off <= margin
        assert math.isfinite(margin)


@pytest.mark.parametrize("seed", [35, 49])
def test_a_certificate_that_time_left_open_checks(seed, tmp_path):
    written = certified(make(seed).problem, 1.0, 1e-6)  # curved: neither is closed in a second
    found = lw.check(written.save(tmp_path / "open.cert"))
    assert found.ok, found.reasons
    assert found.upper <= written.upper * (1 + 1e-9)
