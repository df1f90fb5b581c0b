"""The kernel: its linear programs against HiGHS, its trees against Python's, and a checker that finds it out."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from problems import make
from small_tree import certified

import likewise as lw
from likewise import SoundnessError
from likewise.bounds import reach, twin_bounds
from likewise.proof import Log, read_shape
from likewise.search import branch, compiled, fast, root, search
from likewise.search.inner import inner_problem
from likewise.search.primal import Primal
from likewise.search.question import Question
from likewise.search.relaxed import DEEPEST, Relaxed
from likewise.search.run import Run

SEEDS = [seed for seed in range(0, 350, 14) if compiled.would_fit(inner_problem(make(seed).problem)[0])]  # relu
GROWN = [seed for seed in SEEDS if len(make(seed).problem.network.layers) > 1][:12]
NEAR = 1e-5  # of what nudges and tolerances leave


def test_it_is_built():
    assert not compiled.missing
    assert len(SEEDS) > 15


def model(seed):
    inner, score = inner_problem(make(seed).problem)
    bounds = twin_bounds(inner, reach(inner))
    return inner, bounds, Relaxed(inner, bounds, score, Question(0.05, np.inf, [0.0]))


@pytest.mark.parametrize("seed", SEEDS)
def test_programs_have_the_optimum_that_highs_finds(seed):
    inner, bounds, relaxed = model(seed)
    swift, session = compiled.Swift(inner, bounds, relaxed), relaxed.session(inner, bounds)
    swift.accuracy = 0.0
    rng = np.random.default_rng(seed)
    zs = np.concatenate([relaxed.template.left.z[-1], relaxed.template.right.z[0]])
    objectives = [relaxed.objective, *(np.zeros((4, relaxed.template.columns)))]
    for row in objectives[1:]:
        row[zs] = rng.normal(size=len(zs))
    for objective in objectives:
        mine, point = swift.maximise(objective)
        theirs, _ = session.maximise(objective)
        if theirs < -1e6:  # nobody is there
            assert mine < -0.5
            continue
        # A fold of the ball exceeds it by up to 1e-4; tangents come closer. Nothing else may be lower, except a whole
        # ball, of which folds see as much as the network does (tests/test_ball_programs.py).
        room = 1e-3 * (1 + abs(theirs)) if inner.metric.p == 2.0 else NEAR * (1 + abs(theirs))
        assert theirs - room <= mine or compiled.is_round(inner, bounds)
        assert mine <= theirs + NEAR * (1 + abs(theirs))
        far = 1e-4 if compiled.is_round(inner, bounds) else 1e-5
        assert abs(mine - objective @ point) <= far * (1 + abs(mine))


@pytest.mark.parametrize("metric", ["linf", "mahalanobis"])
def test_a_tableau_lasts_for_thousands_of_steps(metric):
    """It is made anew when it is worn, and tangents that do not touch are forgotten: answers stay what they are."""
    inner, score = inner_problem(big(metric))
    bounds = twin_bounds(inner, reach(inner))
    relaxed = Relaxed(inner, bounds, score, Question(0.05, np.inf, [0.0]))
    swift, session = compiled.Swift(inner, bounds, relaxed), relaxed.session(inner, bounds)
    swift.accuracy = 1e-3
    rng, sides = np.random.default_rng(0), (relaxed.template.left, relaxed.template.right)
    columns = np.concatenate([part for side in sides for part in (side.x, *side.z, *side.v)])
    for k in range(150):
        objective = np.zeros(relaxed.template.columns)
        objective[columns] = rng.normal(size=len(columns)) * (rng.random(len(columns)) < 0.2)
        theirs, mine = session.maximise(objective)[0], swift.maximise(objective)[0]
        assert mine <= theirs + NEAR * (1 + abs(theirs)), k
        assert mine >= theirs - (1e-3 if metric == "mahalanobis" else NEAR) * (1 + abs(theirs)), k
    assert swift._linear.steps > 6000


@pytest.mark.parametrize("seed", SEEDS)
def test_no_pair_is_outside_its_programs(seed):
    inner, bounds, relaxed = model(seed)
    person = inner.left.person()
    z, *_, logit = (layer[0] for layer in inner.network.preactivations(person[None]))
    slacks = logit[0] * (1 - relaxed.tangents.slopes) - relaxed.tangents.offsets
    is_within = slacks.min() > -DEEPEST  # of the same person twice; models follow no slack further down
    swift = compiled.Swift(inner, bounds, relaxed)
    for neuron, column in enumerate(relaxed.template.right.z[0]):
        for sign in (1.0, -1.0):
            objective = np.zeros(relaxed.template.columns)
            objective[column] = sign
            assert swift.maximise(objective)[0] >= sign * z[neuron] or not is_within


@pytest.mark.parametrize("seed", GROWN)
def test_python_grows_to_the_same_answer(seed, monkeypatch):
    problem = make(seed).problem
    quick = certified(problem, 10.0, 1e-5)
    monkeypatch.setattr(root, "fits", lambda problem: False)
    slow = certified(problem, 10.0, 1e-5)
    assert quick.lower <= slow.upper
    assert slow.lower <= quick.upper
    if max(quick.gap, slow.gap) <= 1e-5:
        assert abs(quick.upper - slow.upper) <= 2e-5


@pytest.fixture
def alone(monkeypatch):
    """Leave everything to the tree: no pairs but its own, nothing narrowed before."""
    monkeypatch.setattr(Primal, "look", lambda *_: None)
    monkeypatch.setattr(root.Root, "narrow", lambda *_: None)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("seed", GROWN[::3])
@pytest.mark.usefixtures("alone")
def test_trees_of_any_number_of_threads_check(seed, threads, tmp_path):
    problem = make(seed).problem
    cert = search(problem, engine="branch", solver="highs", seconds=5.0, gap=1e-5, threads=threads)
    found = lw.check(cert.save(tmp_path / "a.cert"))
    assert (found.ok, found.reasons) == (True, ())
    assert cert.upper - 1e-5 <= found.upper <= cert.upper + 1e-6


@pytest.mark.parametrize("metric", ["mahalanobis", "linf"])
@pytest.mark.parametrize("rounds", [0, 1, 4])
def test_what_is_open_checks_too(metric, rounds, tmp_path, monkeypatch):
    """A proof shows what is claimed at any time: of the root, of its first halves, of a tree that was begun again."""
    monkeypatch.setattr(fast, "SLICE", 0.02)
    monkeypatch.setattr(fast, "PATIENCE", 0.01)
    left = iter(range(rounds))

    def a_few(self):
        if next(left, None) is None:
            raise KeyboardInterrupt

    monkeypatch.setattr(fast.Fast, "look", a_few)
    cert = search(big(metric), engine="branch", solver="highs", seconds=20.0, gap=1e-7, threads=1)
    found = lw.check(cert.save(tmp_path / "a.cert"))
    assert (found.ok, found.reasons) == (True, ())
    assert found.upper <= cert.upper + 1e-6


@pytest.mark.usefixtures("alone")
def test_a_tree_goes_on_where_it_was_left(tmp_path, monkeypatch):
    problem = big()
    with monkeypatch.context() as patch:
        patch.setattr(fast, "SLICE", 0.02)
        rounds = iter(range(3))

        def a_few(self):
            if next(rounds, None) is None:
                raise KeyboardInterrupt

        patch.setattr(fast.Fast, "look", a_few)
        first = search(problem, engine="branch", solver="highs", seconds=20.0, gap=1e-7, threads=1)
    assert first.proof is not None
    path = first.save(tmp_path / "open.cert")
    before = shape(lw.read(path))
    second = search(problem, engine="branch", solver="highs", seconds=6.0, gap=1e-7, earlier=lw.read(path).proof)
    assert second.lower <= first.upper
    assert len(shape(second)) >= len(before) > 1
    assert lw.check(second.save(tmp_path / "more.cert")).ok


def shape(cert):
    inner, _ = inner_problem(cert.problem)
    with cert.proof.directions[0].open() as file:
        return [what for what in read_shape(inner, file) if what is not None]


def big(metric="linf"):
    """Return a question whose tree is large: the embedded data's people and a network that nobody has trained."""
    data = lw.datasets.load("german")
    rng = np.random.default_rng(5)
    sizes = [data.domain.width, 14, 12, 1]
    layers = [
        lw.Layer(rng.normal(size=(m, n)) / np.sqrt(n) * 2, rng.normal(size=m) * 0.2, "sigmoid" if m == 1 else "relu")
        for n, m in pairwise(sizes)
    ]
    return lw.Problem(lw.Network(layers), data.domain, data.domain, data.metric(metric), 0.1)


def wrong_tangents(told, relaxed):
    told["high"][told["columns"] + relaxed.cuts] -= 1e-3


def wrong_weights(told, relaxed):
    for layer in told["layers"][:-1]:
        layer["weight"] = layer["weight"] * 0.9


def wrong_slopes(told, relaxed):
    for layer in told["layers"][:-1]:
        if "chord_slope_left" not in layer:
            layer["slopes_left"] = layer["slopes_left"] * 0.9
            continue
        layer["chord_slope_left"] = layer["chord_slope_left"] * 0.9
        layer["chord_slope_right"] = layer["chord_slope_right"] * 0.9


def wrong_ball(told, relaxed):
    told["ball_eps"] = told["ball_eps"] * 0.99
    told["high"][told["columns"] + relaxed.cuts] -= 1e-3


@pytest.mark.parametrize("fault", [wrong_tangents, wrong_weights, wrong_slopes, wrong_ball])
def test_the_checker_finds_a_kernel_out_that_was_told_wrong(fault, tmp_path, monkeypatch):
    """What the kernel claims from a wrong model is not in the proof: a pair or the checker contradicts it."""
    asked = compiled.question

    def told(problem, bounds, relaxed, influence, splits=True):
        found = asked(problem, bounds, relaxed, influence, splits)
        if fault is wrong_ball and "ball_eps" not in found:
            return found
        found["high"] = found["high"].copy()
        fault(found, relaxed)
        return found

    monkeypatch.setattr(compiled, "question", told)
    noticed = 0
    for seed in GROWN:
        try:
            cert = certified(make(seed).problem, 2.0, 1e-5)
        except SoundnessError:
            noticed += 1
            continue
        noticed += not lw.check(cert.save(tmp_path / "a.cert")).ok
    assert noticed


def test_without_it_python_says_so(monkeypatch):
    problem = big()
    for module in (compiled, branch):
        monkeypatch.setattr(module, "missing", True)
    cert = search(problem, engine="branch", solver="highs", seconds=3.0, gap=1e-5)
    assert any("the kernel was not built" in note for note in cert.notes)


def is_curved(seed):
    inner, _ = inner_problem(make(seed).problem)
    names = {name for layer in inner.network.layers[:-1] for name in layer.activations}
    return bool(names) and names != {"relu"} and compiled.would_fit(inner)


CURVED = [seed for seed in range(60) if is_curved(seed)][:14]


@pytest.mark.parametrize("seed", CURVED)
def test_what_is_shown_of_curves_is_derived_again(seed, tmp_path, monkeypatch):
    """Slopes of lines change from part to part, and the root is narrowed between slices of the tree: proofs keep up."""
    monkeypatch.setattr(fast, "SLICE", 0.02)
    monkeypatch.setattr(fast, "PATIENCE", 0.0)
    begin = fast.Fast.__init__

    def impatient(self, *given):
        begin(self, *given)
        self.patience = 0.05

    monkeypatch.setattr(fast.Fast, "__init__", impatient)
    cert = certified(make(seed).problem, 1.0, 1e-3)
    found = lw.check(cert.save(tmp_path / "a.cert"))
    assert (found.ok, found.reasons) == (True, ())
    assert found.upper <= cert.upper + 1e-6 * max(1.0, cert.upper)


def test_a_root_that_shows_all_by_itself_is_the_whole_proof():
    inner, bounds, _ = model(SEEDS[0])
    log = Log(inner, bounds.reach)
    log.rest = lambda _: pytest.fail("the tree was written beside it")
    log.alone()
    assert log.finish().leaves == 1


def test_a_tree_that_shows_more_than_its_root_stays_whatever_the_other_direction_has(monkeypatch):
    rng = np.random.default_rng(0)
    layers = [lw.Layer(rng.normal(size=(6, 4)), rng.normal(size=6), "relu")]
    layers.append(lw.Layer(rng.normal(size=(1, 6)), rng.normal(size=1), "sigmoid"))
    domain = lw.Domain([lw.Continuous(f"x{i}", -1.0, 1.0) for i in range(4)])
    asked = lw.Problem(lw.Network(layers), domain.where(x0=(-1.0, 0.5)), domain, lw.WeightedLp(np.ones(4), np.inf), 0.3)
    run = Run(asked, seconds=60.0, gap=1e-6)
    at = branch.begin(next(iter(run.directions)), run)
    grown = fast.Fast(at, 1)
    tree = grown.tree
    run.prove((at.proven + run.lower) / 2)  # by the tree
    monkeypatch.setattr(fast, "sharpen", lambda *_: None)
    grown.replant()
    assert run.upper == np.inf
    assert grown.tree is tree


@pytest.mark.parametrize("seed", [3, 5, 8])
def test_what_is_claimed_is_shown_by_the_earlier_tree_until_the_next_has_caught_up(seed, tmp_path, monkeypatch):
    """A root is narrowed, and its tree begun again, when the last tree has shown more than the root does."""
    rng = np.random.default_rng(seed)
    layers = [lw.Layer(rng.normal(size=(n, m)), rng.normal(size=n), "relu") for m, n in pairwise([6, 12, 12])]
    layers.append(lw.Layer(rng.normal(size=(1, 12)), rng.normal(size=1), "sigmoid"))
    domain = lw.Domain([lw.OneHot("job", ["a", "b", "c"]), *(lw.Continuous(f"x{i}", -1.0, 1.0) for i in range(3))])
    asked = lw.Problem(lw.Network(layers), domain, domain, lw.WeightedLp(np.ones(6), np.inf), 0.3)
    run = Run(asked, seconds=60.0, gap=1e-6)
    at = branch.begin(next(iter(run.directions)), run)
    grown = fast.Fast(at, 1)
    while not run.shown < at.proven - 1e-4:
        grown.tree.run(0.05, run.lower, 1.0, run.lower, 1)
        run.prove(grown.tree.upper)
    claimed = run.shown
    monkeypatch.setattr(fast, "sharpen", lambda at, *_: at.log.lemma(0, 0, 0, "dz", 1.0, nothing(at)))
    monkeypatch.setattr(fast, "EASIER", np.inf)
    grown.replant()
    assert grown.earlier is not None
    assert (run.shown, grown.tree.upper) == (claimed, at.proven)
    found = lw.check(run.certificate("branch", "highs").save(tmp_path / "a.cert"))
    assert (found.ok, found.reasons) == (True, ())
    assert found.upper <= claimed + 1e-9
    grown.earlier = None  # the new tree alone does not show it
    assert not lw.check(run.certificate("branch", "highs").save(tmp_path / "b.cert")).ok


def nothing(at):
    """Return an argument of a root that shows no more than is known."""
    relaxed = at.relaxed()
    return relaxed.argued(np.zeros(relaxed.template.height), relaxed.template.lines(at.bounds.layers))
