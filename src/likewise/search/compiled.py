"""Compiled: what the kernel is told of a question, and how its tree is written to the proof.

The kernel (`src/kernel/`, C++) grows the tree of networks whose layers have one activation each, thousands of parts a
second. It keeps one program whose bounds change from part to part: slopes of a relu's lines are those of the root,
those of curves follow the part, and so do all offsets. Every bound is rebuilt from multipliers there, rounded outward.
They are multipliers of `Relaxed`'s rows, so `Template.argument` makes an argument of them, which a checker evaluates on
its own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from likewise.activations import Activation, by_name
from likewise.bounds import TwinBounds
from likewise.bounds.ball import SMALLEST, rotation
from likewise.bounds.joint import Joint
from likewise.bounds.planes import PLACES
from likewise.bounds.template import Template
from likewise.network import Layer
from likewise.problem import Problem
from likewise.rounding import Array, dot_error
from likewise.search.relaxed import Relaxed
from likewise.solvers import Dual, LinearModel

try:
    from likewise.search import _kernel  # type: ignore[attr-defined]
except ImportError:  # not built: `missing` says so wherever it would have been used
    _kernel = None

KINDS = ("left", "right", "dz", "category")
SIDES = ("left", "right", "both")
OPEN, SPLIT, CLOSED, EMPTY, STUCK = range(5)
FINE, COARSE = 0.01, 0.3  # how far a point may be outside a round ball, relative to it and to the objective: two kinds
# How the kernel works: trials of a split before it is taken at its word, parts between dives for a pair, the share of
# simplex steps to narrow dz in the tree, and whether what a neuron is off by in the harmless direction is left alone.
CHOICES: dict[str, float] = {"reliable": 4, "dive_every": 16, "narrowing": 0.25, "harmless": True}
RELU = "relu"
FAR = 1e12
FORMED = 1e-11  # what an entry of a form may be off by, beside the sum of absolute values: see src/kernel/joint.hpp
BENDS = {"linear": 0, "convex": 1, "concave": -1}
missing = _kernel is None


def fits(problem: Problem) -> bool:
    """Tell whether the kernel is there, and can grow the tree of a problem."""
    return not missing and would_fit(problem)


def would_fit(problem: Problem) -> bool:
    """Tell whether a problem is one for the kernel: numbers and categories, layers of one activation, nothing aside."""
    hidden = [set(layer.activations) for layer in problem.network.layers[:-1]]
    return all(len(names) == 1 for names in hidden) and not problem.aside and not len(problem.right.integers)


def is_round(problem: Problem, bounds: TwinBounds) -> bool:
    """Tell whether the kernel takes a ball as it is, by an interior point method, instead of drawing tangents.

    It does where the metric sees more of a difference than the network. Tangents in the directions that the network
    sees then leave the others to the box, and there are too many directions to draw tangents in all of them. It has no
    place for rows of all neurons: a model with joints has tangents all the same.
    """
    free = int((~bounds.reach.shared).sum())
    is_ball = problem.metric.p == 2.0 and problem.eps >= SMALLEST
    is_straight = all(set(layer.activations) == {RELU} for layer in problem.network.layers[:-1])
    return fits(problem) and is_straight and is_ball and len(problem.network.layers[0].bias) < free


def question(
    problem: Problem, bounds: TwinBounds, relaxed: Relaxed, influence: list[Array], splits: bool = True
) -> dict[str, Any]:
    """Return the arrays that the kernel's `Tree` is made of; `relaxed` is filled with `bounds`, those of the root.

    Where nothing is split, each line of a curve has one side; a tree has both of every slope, so it needs fewer.
    """
    template = relaxed.template
    lines = template.lines(bounds.layers)
    model = template.fill(problem, bounds, lines, relaxed.objective)
    layers = [
        _layer(relaxed, lines, index, layer, influence[index] if index < len(influence) else np.ones(len(layer.bias)))
        for index, layer in enumerate(problem.network.layers)
    ]
    at = 0
    for one in layers if len(relaxed.places) else ():
        if "activation" in one:
            height = 2 * PLACES * len(one["bias"])
            one["plane_rows"] = relaxed.places[at : at + height]
            at += height
    low, high = _finite(model.matrix, model.lower, model.upper, model.row_lower, model.row_upper)
    groups = problem.right.groups
    shared = bounds.reach.shared
    solved = _solved(problem, bounds, relaxed, layers)
    alone = [*relaxed.joined.values(), *relaxed.planed[: len(relaxed.planed) - len(relaxed.places)].tolist()]
    low[[template.columns + row for row in alone]] = -FAR  # a proof has these as upper bounds alone
    for row, _ in solved:  # of neurons that are on all along, two lines say together what is an equation here
        high[template.columns + row] = low[template.columns + row]
    kept, zero = _kept(model, bounds, layers, splits), (model.lower == 0.0) & (model.upper == 0.0)
    ball = _ball(problem, template, is_round(problem, bounds) and not relaxed.joined)
    if ball:  # it is drawn by tangents: no folds
        kept[template.ball_rows] = False
        kept[template.touching] = True
        entries = kept[np.repeat(np.arange(len(kept)), np.diff(model.matrix.indptr))]
        used = np.bincount(model.matrix.indices[entries], minlength=template.columns) > 0
        used[ball["ball_columns"]] = True
        zero |= ~used
    return (
        ball
        | CHOICES
        | {
            "columns": template.columns,
            "start": model.matrix.indptr,
            "index": model.matrix.indices,
            "value": model.matrix.data,
            "goal": relaxed.slack,
            "kept": kept,
            "zero": zero,
            "solved_rows": [row for row, _ in solved],
            "solved_columns": [column for _, column in solved],
            "given": [model.row_lower[row] for row, _ in solved],
            "low": low,
            "high": high,
            "layers": layers,
            "joints": joints(problem, bounds, relaxed) if splits else [],
            "x_left": template.left.x,
            "x_right": template.right.x,
            "low_left": problem.left.lower,
            "high_left": problem.left.upper,
            "low_right": problem.right.lower,
            "high_right": problem.right.upper,
            "group_starts": [group.start for group in groups],
            "group_stops": [group.stop for group in groups],
            "group_shared": [bool(shared[group].all()) for group in groups],
            "curved": relaxed.score.curved,
            "t": relaxed.question.t,
        }
    )


def joints(problem: Problem, bounds: TwinBounds, relaxed: Relaxed) -> list[dict[str, Any]]:
    """Return what is known of all differences together: the kernel derives it anew for every part.

    Not of curves: a checker's intervals are a little narrower there, which may raise a bound with the same weights.
    """
    if any(set(layer.activations) != {RELU} for layer in problem.network.layers[:-1]):
        return []
    return [_joint(problem, bounds, joint, relaxed.joined[slot]) for slot, joint in relaxed.joints.items()]


def _joint(problem: Problem, bounds: TwinBounds, joint: Joint, row: int) -> dict[str, Any]:
    """Return one: the form of what does not change from part to part, and the weights of the rest.

    `shift` bounds what rounding does to that form, on the diagonal (see src/kernel/joint.hpp).
    """
    differences, layers = bounds.reach.differences, problem.network.layers[:-1]
    free, heights = differences.free, [len(layer.bias) for layer in layers]
    low, high = differences.lower[free], differences.upper[free]
    of_d, rest, of_ball = np.split(joint.weights, [problem.right.width, len(joint.weights) - 1])
    pairs = np.split(rest, np.cumsum([2 * height for height in heights])[:-1])
    interval, slope = (np.concatenate([np.split(pair, 2)[k] for pair in pairs]) for k in (0, 1))
    of_d, n = of_d[free], len(free) + sum(heights)
    base, size, linear = np.zeros((n, n)), np.zeros((n + 1, n + 1)), np.zeros(n)
    linear[: len(free)] = joint.nu[free] + of_d * (low + high)
    far = np.maximum(np.abs(low), np.abs(high))
    size[:-1, -1] = np.abs(linear) + size[:-1, -1]
    size[: len(free), -1] += of_d * far + np.abs(joint.nu[free])
    first = slice(0, len(free))
    matrix = problem.metric.matrix[:, free]
    base[first, first] = np.diag(of_d) + of_ball * (matrix.T @ matrix)
    size[first, first] = np.diag(of_d) + of_ball * (np.abs(matrix).T @ np.abs(matrix))
    at = len(free)
    for index, (layer, both, turn) in enumerate(zip(layers, joint.both, joint.turn, strict=True)):
        weight = layer.weight if index else layer.weight[:, free]
        pi = np.split(pairs[index], 2)[0][:, None]
        base[first, first] += weight.T @ (pi * weight)
        size[first, first] += np.abs(weight).T @ (pi * np.abs(weight))
        linear[first] -= turn @ weight
        size[first, -1] += np.abs(turn) @ np.abs(weight)
        first = slice(at, at + len(both))
        linear[first] += both
        size[first, -1] += np.abs(both)
        at += len(both)
    diagonal = np.diag(base) + np.concatenate([np.zeros(len(free)), slope])
    scale = 1.0 / np.sqrt(np.maximum(np.append(diagonal, max(abs(joint.upper), 1e-9)), 1e-12))
    constant, constant_size = (
        float(of_ball[0]) * problem.eps**2 + sign for sign in (-of_d @ (low * high), of_d @ far**2)
    )
    size[-1] = size[:, -1]
    size[-1, -1] = constant_size
    return {
        "row": row, "margin": joint.margin, "upper": joint.upper, "constant": constant,
        "constant_size": constant_size, "base": base,
        "shift": FORMED * (size @ scale) / scale, "linear": linear, "scale": scale, "columns": free,
        "interval": interval, "slope": slope,
    }  # fmt: skip


def root(bounds: TwinBounds) -> dict[str, Array]:
    """Return the intervals of the whole."""
    found = {}
    for name in ("left", "right", "dz"):
        boxes = [getattr(b, name) for b in bounds.layers]
        found[f"low_{name}"] = np.concatenate([box.lower for box in boxes])
        found[f"high_{name}"] = np.concatenate([box.upper for box in boxes])
    return found


def _ball(problem: Problem, template: Template, is_whole: bool) -> dict[str, Any]:
    """Return a round ball, and the directions in which the network sees it; nothing for any other metric."""
    box, columns = template.compared
    if problem.metric.p != 2.0 or not len(columns) or problem.eps < SMALLEST:
        return {}
    matrix = problem.metric.matrix[:, box.free]
    matrix = matrix[np.abs(matrix).sum(axis=1) > 0]
    if not len(matrix):
        return {}
    turn = rotation(matrix, problem.network.layers[0].weight[:, box.free])
    turn = np.eye(len(matrix)) if turn is None else turn
    return {
        "ball_columns": columns,
        "ball_people": box.free,
        "ball_full": matrix,
        "ball_turn": turn,
        "ball_turned": turn @ matrix,
        "ball_eps": problem.eps,
    } | (_uneven(matrix) if is_whole else {})


def _uneven(matrix: Array) -> dict[str, Any]:
    """Return A'A as a multiple of the identity and what other directions, often few, add to it."""
    values, vectors = np.linalg.eigh(matrix.T @ matrix)
    alike = np.abs(values[:, None] - values) <= 1e-9 * values.max()
    even = float(values[alike.sum(axis=1).argmax()])
    odd = ~alike[alike.sum(axis=1).argmax()]
    return {"ball_even": even, "ball_sign": values[odd] - even, "ball_uneven": vectors[:, odd].T.copy()}


def _layer(relaxed: Relaxed, lines: Any, index: int, layer: Any, influence: Array) -> dict[str, Any]:
    template, n = relaxed.template, len(layer.bias)
    found = {
        "weight": layer.weight,
        "bias": layer.bias,
        "influence": influence,
        "z_left": template.left.z[index],
        "z_right": template.right.z[index],
        "dz": template.difference_rows(index),
    }
    if index < len(lines):
        rows, slopes = template.line_rows(index), lines[index][0]
        below, above, value = np.split(rows[-3 * n :], 3)
        found |= {
            "v_left": template.left.v[index],
            "v_right": template.right.v[index],
            "below": below,
            "above": above,
            "value": value,
            "below_slope": slopes[-4 * n : -3 * n],
            "above_slope": slopes[-2 * n : -n],
        }
        found |= _straight(rows, slopes, n) if layer.activations[0] == RELU else _curved(rows, slopes, n, layer)
    return found


def _straight(rows: Array, slopes: Array, n: int) -> dict[str, Any]:
    """Return the lines of relus: their slopes are those of the root in every part."""
    _, steep_left, chord_left, _, steep_right, chord_right = np.split(rows[: 6 * n], 6)
    return {
        "steep_left": steep_left,
        "steep_right": steep_right,
        "chord_left": chord_left,
        "chord_right": chord_right,
        "chord_slope_left": slopes[2 * n : 3 * n],
        "chord_slope_right": slopes[5 * n : 6 * n],
        "flat": np.concatenate([rows[:n], rows[3 * n : 4 * n]]),
    }


def _curved(rows: Array, slopes: Array, n: int, layer: Layer) -> dict[str, Any]:
    """Return the lines of other activations, whose slopes the kernel chooses anew: below, at both ends, above."""
    return curve(by_name(layer.activations[0])) | {
        "lines_left": rows[: 4 * n],
        "lines_right": rows[6 * n : 10 * n],
        "slopes_left": slopes[: 4 * n],
        "slopes_right": slopes[6 * n : 10 * n],
        "spare": np.concatenate([rows[4 * n : 6 * n], rows[10 * n : 12 * n]]),
    }


def curve(activation: Activation) -> dict[str, Any]:
    """Return what the kernel is told of an activation."""
    found = {
        "activation": activation.name,
        "piece_low": [piece.low for piece in activation.pieces],
        "piece_high": [piece.high for piece in activation.pieces],
        "piece_bend": [BENDS[piece.shape] for piece in activation.pieces],
        "kinks": activation.kinks(),
        "values": activation.values,
        "steepness": activation.steepness,
    }
    return found if activation.bends is None else found | {"bends": activation.bends}


def _kept(model: LinearModel, bounds: TwinBounds, layers: list[dict[str, Any]], splits: bool) -> NDArray[np.bool_]:
    """Mark the rows that say something: not those without sides, nor those of neurons on one straight piece."""
    kept = np.asarray(np.isfinite(model.row_lower) | np.isfinite(model.row_upper))
    for b, rows in zip(bounds.layers, layers, strict=True):
        if "spare" in rows and splits:
            kept[rows["spare"]] = False
        if "flat" not in rows:
            continue
        kept[rows["flat"]] = False
        for side, box in (("left", b.left), ("right", b.right)):
            is_off, is_on = box.upper <= 0.0, box.lower >= 0.0
            kept[rows[f"steep_{side}"][is_off]] = False
            kept[rows[f"chord_{side}"][is_off | is_on]] = False
        straight = b.slope.lower == b.slope.upper
        for name in ("below", "above", "value"):
            kept[rows[name][straight]] = False
    return kept


def _solved(
    problem: Problem, bounds: TwinBounds, relaxed: Relaxed, layers: list[dict[str, Any]]
) -> list[tuple[int, int]]:
    """Return equations and the column each is solved for; no column stands in an equation that comes before its own."""
    template, shared = relaxed.template, bounds.reach.shared
    found: list[tuple[int, int]] = []
    place = template.input_rows
    for group, row in template.group_rows():
        if shared[group].all():
            found.append((row, int(template.right.x[group][-1])))
    grouped = np.zeros(problem.right.width, dtype=bool)
    for group in problem.right.groups:
        grouped[group] = True
    for k, column in enumerate(bounds.reach.differences.free):
        if not grouped[column]:
            found.append((place.differences.start + k, int(template.left.x[column])))
    for index, (b, rows) in enumerate(zip(bounds.layers, layers, strict=True)):
        for side, affine in zip(("left", "right"), template.affine_rows(index), strict=True):
            found += zip(affine.tolist(), rows[f"z_{side}"].tolist(), strict=True)
        if "flat" in rows:
            for side, box in (("left", b.left), ("right", b.right)):
                for j in np.flatnonzero(box.lower >= 0.0):
                    if box.upper[j] > 0.0:
                        found.append((int(rows[f"steep_{side}"][j]), int(rows[f"v_{side}"][j])))
    return found


def _finite(matrix: csr_matrix, lower: Array, upper: Array, row_lower: Array, row_upper: Array) -> tuple[Array, Array]:
    """Bound every variable and row; a row without a side is bounded by what its variables allow, rounded outward."""
    positive, negative = matrix.maximum(0.0), matrix.minimum(0.0)
    size = abs(matrix) @ np.maximum(np.abs(lower), np.abs(upper))
    error = dot_error(2 * int(np.diff(matrix.indptr).max(initial=0)) + 2, size) + 1e-9 * (1.0 + size)
    least = positive @ lower + negative @ upper - error
    most = positive @ upper + negative @ lower + error
    low = np.where(np.isfinite(row_lower), row_lower, least)
    high = np.where(np.isfinite(row_upper), row_upper, most)
    return np.concatenate([lower, low]), np.concatenate([upper, high])


def tree(problem: Problem, bounds: TwinBounds, relaxed: Relaxed, influence: list[Array], proven: float) -> Any:
    """Return the kernel's tree with nothing but its root, of which a gap of `proven` at most is shown."""
    assert _kernel is not None
    upper = proven / relaxed.score.factor  # a power of 2
    return _kernel.Tree(question(problem, bounds, relaxed, influence), root(bounds), upper)


def annealer(quest: dict[str, Any], habits: dict[str, Any]) -> Any:
    """Return the kernel's annealer of a problem (see `search.anneal`)."""
    assert _kernel is not None
    return _kernel.Annealer(quest, habits)


class Swift:
    """A `Maximiser` over the relaxed model of a whole question, by the kernel: one objective after the other."""

    def __init__(self, problem: Problem, bounds: TwinBounds, relaxed: Relaxed) -> None:
        assert _kernel is not None
        self._linear = _kernel.Linear(question(problem, bounds, relaxed, influence=[], splits=False))
        self.columns = relaxed.template.columns
        self.proof = Dual(math.inf, np.zeros(relaxed.template.height))
        self.basis: object = None
        self.accuracy = FINE

    def maximise(self, objective: Array) -> tuple[float, Array]:
        """Return a proven upper bound on objective.x, and the point found (a hint); `proof` keeps how it came about."""
        used = np.flatnonzero(objective)
        _, bound, point, y, mu = self._linear.maximise(used.tolist(), objective[used].tolist(), self.accuracy)
        self.proof = Dual(bound, y, mu)
        return bound, point[: self.columns]

    def change_bounds(self, columns: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> None:
        """Replace the bounds of some variables."""
        given = (np.atleast_1d(one).tolist() for one in (columns, lower, upper))
        for column, low, high in zip(*given, strict=True):
            self._linear.limit(column, low, high)
