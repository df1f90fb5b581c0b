"""Polish: climb from cell to cell of a piecewise-linear network, with the best pair of each cell from a linear program.

With the categories and every neuron's linear piece held, both logits are linear in the people, and the score's tangents
at the current gap make the best pair of the cell a linear program. Then the pieces whose limits stopped the climb are
exchanged for their neighbours; the last pair lies in the new cell too. A curved activation is followed along its
tangent for a short stretch. All pairs are candidates only: `Run.offer` decides.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_matrix, hstack, vstack
from scipy.special import logit

from likewise.activations import by_name
from likewise.bounds import Box, Reach
from likewise.bounds.ball import BALLS
from likewise.bounds.encoding import Detail, compared_rows, encode_inputs
from likewise.bounds.rows import Index
from likewise.network import Layer, Network
from likewise.problem import Problem
from likewise.rounding import Array
from likewise.search.ascend import ascend, can_ascend
from likewise.search.run import Run, repaired
from likewise.search.score import Score, tangents
from likewise.solvers import LinearModel, Session

STRETCH = 0.05  # how far a curved activation is followed along its tangent
ASCENT = 0.3  # seconds that an ascent of smooth curves may take, if it takes so long
PATIENCE = 3  # cells in a row that brought nothing
STEEPEST = 1e9  # a cell steeper than this is no linear program that a solver can be asked
INWARD = 1e-8  # how far side constraints are drawn in, so that what a solver finds satisfies them
ENOUGH = 1e-10  # a gain below this is none
SPREAD = np.array([0.0, 0.02, -0.02, 0.1, -0.1, 0.4, -0.4, 1.5, -1.5, 5.0, -5.0])

Pair = tuple[Array, Array]


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """The linear pieces of one layer's neurons: low <= z <= high, where the activation is slope * z + offset."""

    low: Array
    high: Array
    slope: Array
    offset: Array


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """Every z of every layer as gradient @ x + constant, with its piece's limits; the last layer's rows come last."""

    gradient: Array
    constant: Array
    low: Array
    high: Array


def polish(problem: Problem, inner: Problem, score: Score, reach: Reach, run: Run, pair: Pair, seconds: float) -> None:
    """Climb from a pair until the neighbouring cells bring nothing, offering each better pair.

    `inner` is the same problem as the engines bound it: its network ends at the logit. On the way a pair need only be
    one up to a solver's tolerance; it is made exact, which takes longer than the linear program, if it beats the best.
    """
    deadline = time.monotonic() + seconds
    if can_ascend(problem):
        least = min(ASCENT, 0.05 * run.seconds_left)
        higher = repaired(problem, reach, *ascend(problem, reach, pair, max(seconds, least)))
        if higher is not None and _gap(problem, higher) > _gap(problem, pair):
            pair = higher
            run.offer(*pair)
    is_rough = inner.metric.p not in BALLS or inner.aside > 0  # cells know the metric only near the pair
    network = inner.network
    inputs = _inputs(inner, reach, pair)
    heights = [[np.zeros(len(layer.bias)) for layer in network.layers[:-1]] for _ in pair]
    best, idle, warm = _gap(problem, pair), 0, Warm()
    while idle < PATIENCE and time.monotonic() < deadline:
        entering = [network.preactivations(x[None]) for x in pair]
        sides = [composed(network, zs, shift) for zs, shift in zip(entering, heights, strict=True)]
        if max(float(np.abs(side.gradient).max()) for side in sides) > STEEPEST:
            return
        b_now = float(network.preactivations(pair[1][None])[-1][0, 0])
        found: Pair | None
        found, heights = _best_of_cell(network, score, inputs, sides, best, b_now, warm)
        is_better = _gap(problem, found) > best + ENOUGH
        if is_better and (is_rough or _gap(problem, found) > run.lower):
            found = repaired(problem, reach, *found)
            is_better = found is not None and _gap(problem, found) > best + ENOUGH
        if found is None or not is_better:
            idle += 1
            continue
        pair, best, idle = found, _gap(problem, found), 0
        run.offer(*pair)
        if is_rough:
            inputs = _inputs(inner, reach, pair)


class Warm:
    """The basis of the last cell, for a next one of the same shape."""

    def __init__(self) -> None:
        self._basis: object = None
        self._shape: tuple[int, int] = (0, 0)

    def solved(self, model: LinearModel) -> tuple[Session, Array]:
        """Maximise a model's objective."""
        shape = model.matrix.shape
        session = Session(model, self._basis if shape == self._shape else None)
        _, x = session.maximise(model.objective)
        self._basis, self._shape = session.basis, shape
        return session, x


def _gap(problem: Problem, pair: Pair) -> float:
    scores = problem.network(np.stack(pair))
    return float(scores[0] - scores[1])


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """Both people with the categories and integers of a pair, and the variables of what an embedding compares."""

    model: LinearModel
    left: Index
    right: Index
    compared: Index


def _inputs(inner: Problem, reach: Reach, pair: Pair) -> Inputs:
    """Encode both people. Side constraints are drawn in by what a solver may miss them by: these are candidates."""
    left, right = pair
    narrow = replace(inner, left=inner.left.holding(left), right=inner.right.holding(right))
    detail = Detail(ball=1e-7, touches=_touches(inner, pair))
    encoding = encode_inputs(narrow, reach, detail, inward=INWARD)
    compared = np.empty(0, dtype=np.int64)
    if inner.aside:
        wide = np.full(1 + inner.aside, 1e6)
        _, compared = compared_rows(encoding.rows, inner, Box(-wide, wide), detail)
    return Inputs(encoding.rows.model(), encoding.left.x, encoding.right.x, compared)


def _touches(inner: Problem, pair: Pair) -> tuple[Array, ...]:
    """Return where to draw tangents of a ball that is made of them: all over, and where the pair is now."""
    if inner.metric.p in BALLS:
        return ()
    values = inner.network.preactivations(np.stack(pair))[-1][:, 1:] if inner.aside else np.stack(pair)
    here = inner.metric.matrix @ (values[0] - values[1])
    all_over = (np.full(len(here), x * inner.eps) for x in np.linspace(0.02, 1.0, 50))
    return tuple(s[np.abs(inner.metric.matrix).sum(axis=1) > 0] for s in (here, *all_over))


def composed(network: Network, entering: Sequence[Array], shift: list[Array] | None = None) -> Affine:
    """Compose the pieces that a person's z, `entering` each layer, are on.

    `shift` says which of them to exchange: +1 the one above, -1 below.
    """
    if shift is None:
        shift = [np.zeros(len(layer.bias)) for layer in network.layers[:-1]]
    gradient, constant = network.layers[0].weight, network.layers[0].bias
    parts = []
    for index, layer in enumerate(network.layers[:-1]):
        piece = _pieces(layer, entering[index][0], shift[index])
        parts.append((gradient, constant, piece.low, piece.high))
        after = network.layers[index + 1]
        constant = after.weight @ (piece.slope * constant + piece.offset) + after.bias
        gradient = after.weight @ (piece.slope[:, None] * gradient)
    parts.append((gradient, constant, np.full(len(constant), -np.inf), np.full(len(constant), np.inf)))
    return Affine(*(np.concatenate([p[k] for p in parts]) for k in range(4)))


def _pieces(layer: Layer, z: Array, shift: Array) -> Piece:
    out = [np.empty_like(z) for _ in range(4)]
    for j, name in enumerate(layer.activations):
        activation = by_name(name)
        low, high, inside = z[j] - STRETCH, z[j] + STRETCH, z[j]
        if activation.is_piecewise_linear():
            ends = [p.high for p in activation.pieces]
            here = np.searchsorted(ends, z[j] - 1e-7 * shift[j])  # the limit in question lies at z itself
            place = int(np.clip(here + shift[j], 0, len(ends) - 1))
            low, high = activation.pieces[place].low, activation.pieces[place].high
            inside = (max(low, min(high, z[j]) - 1.0) + min(high, max(low, z[j]) + 1.0)) / 2
        slope = float(activation.slope(np.array([inside]))[0])
        offset = float(activation.value(np.array([inside]))[0]) - slope * inside
        out[0][j], out[1][j], out[2][j], out[3][j] = low, high, slope, offset
    return Piece(*out)


def _best_of_cell(
    network: Network, score: Score, inputs: Inputs, sides: list[Affine], best: float, b_now: float, warm: Warm
) -> tuple[Pair, list[list[Array]]]:
    """Return the cell's best pair, and which limits stopped it, per side and layer (+1 an upper one, -1 a lower)."""
    base = inputs.model
    columns = len(base.lower)
    blocks = [base.matrix]
    lows, highs = [base.row_lower], [base.row_upper]
    compared = len(inputs.compared)
    hidden = len(sides[0].constant) - 1 - compared
    for x, side in zip((inputs.left, inputs.right), sides, strict=True):
        blocks.append(_spread(side.gradient[:hidden], x, columns))
        lows.append(side.low[:hidden] - side.constant[:hidden])
        highs.append(side.high[:hidden] - side.constant[:hidden])
    slopes, offsets = _cuts(score, best, b_now)
    a, b = sides[0], sides[1]
    cut = _spread(np.tile(-a.gradient[hidden], (len(slopes), 1)), inputs.left, columns)
    cut = cut + _spread(slopes[:, None] * b.gradient[hidden], inputs.right, columns)
    if compared:  # what the embedding makes of the left person, less that of the right one
        apart = _spread(a.gradient[hidden + 1 :], inputs.left, columns)
        apart = apart - _spread(b.gradient[hidden + 1 :], inputs.right, columns)
        blocks.append(csr_matrix(apart - _spread(np.eye(compared), inputs.compared, columns)))
        lows.append(b.constant[hidden + 1 :] - a.constant[hidden + 1 :])
        highs.append(lows[-1])
    blocks.append(cut)
    lows.append(np.full(len(slopes), -np.inf))
    highs.append(a.constant[hidden] - slopes * b.constant[hidden] - offsets)
    matrix = vstack(blocks)
    slack = csr_matrix(np.concatenate([np.zeros(matrix.shape[0] - len(slopes)), np.ones(len(slopes))])[:, None])
    objective = np.append(np.zeros(columns), 1.0)
    model = LinearModel(
        objective,
        csr_matrix(hstack([matrix, slack])),
        np.concatenate(lows),
        np.concatenate(highs),
        np.append(base.lower, -1e4),
        np.append(base.upper, 1e4),
        np.zeros(columns + 1, dtype=bool),
    )
    session, x = warm.solved(model)
    stopped = _stopped(session.proof.multipliers[len(base.row_lower) :], network)
    return (x[inputs.left], x[inputs.right]), stopped


def _spread(gradient: Array, where: np.ndarray, columns: int) -> csr_matrix:
    wide = np.zeros((len(gradient), columns))
    wide[:, where] = gradient
    return csr_matrix(wide)


def _cuts(score: Score, best: float, b: float) -> tuple[Array, Array]:
    """Return the score's tangents a >= slope b + offset at the best gap, around the right logit."""
    if not score.curved:
        return np.ones(1), np.array([best])
    t = float(np.clip(best / score.factor, 0.0, 1.0 - 1e-9))
    points = np.minimum(b + SPREAD, float(logit(max(1 - t - 1e-8, 1e-12))))
    cuts = tangents(t, -50.0, 50.0, np.unique(points))
    return np.array([c.slope for c in cuts]), np.array([c.offset for c in cuts])


def _stopped(duals: Array, network: Network) -> list[list[Array]]:
    sizes = [len(layer.bias) for layer in network.layers[:-1]]
    total = sum(sizes)
    ends = np.cumsum(sizes)[:-1]
    signs = [np.where(np.abs(part) > 1e-9, np.sign(part), 0.0) for part in (duals[:total], duals[total : 2 * total])]
    return [np.split(side, ends) for side in signs]
