"""Encoding: both networks, their inputs and their differences as one mixed-integer linear model.

Every true pair of people, with the values its neurons take, is a point of the model; so a maximum over the model is
an upper bound over all pairs. Continuous differences share nothing, columns that cannot differ are one variable.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from likewise.activations import PwlBounds, by_name, pwl_bounds
from likewise.bounds.ball import ball_rows
from likewise.bounds.difference import difference_lines
from likewise.bounds.interval import Box
from likewise.bounds.reach import Reach
from likewise.bounds.rows import Index, Rows
from likewise.bounds.support import Differences
from likewise.bounds.twin import LayerBounds, TwinBounds
from likewise.domain import Domain
from likewise.problem import Problem
from likewise.rounding import Array, up

Grid = dict[tuple[int, int], Array]  # (layer, neuron) -> extra breakpoints of a curved activation

STRAIGHT = 1e-9  # how far an activation may bend and still be encoded as a line
NOTHING = -1  # a neuron that is constantly 0 has no variable


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """The variables of one person: input columns, and per layer what enters (z) and leaves (v) each neuron.

    The variables of a neuron hold `scale` times its values, a power of two: solvers work to absolute tolerances, and
    lose neurons whose values span a millionth.
    """

    x: Index
    z: list[Index] = field(default_factory=list)
    v: list[Index] = field(default_factory=list)
    scale: list[Array] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Encoding:
    """A model with the places of its variables."""

    rows: Rows
    left: Side
    right: Side
    d: Index


@dataclass(frozen=True, slots=True)
class Detail:
    """How closely to encode: cells per curved activation, extra breakpoints, the ball's excess and its tangents."""

    cells: int = 16
    grid: Grid = field(default_factory=dict)
    ball: float = 1e-6
    touches: tuple[Array, ...] = ()


def encode(problem: Problem, bounds: TwinBounds, detail: Detail, layers: int) -> Encoding:
    """Encode the inputs and the first `layers` layers; the next layer's z, being affine, is left to the caller."""
    encoding = encode_inputs(problem, bounds.reach, detail)
    for index in range(layers):
        add_preactivations(encoding, problem, bounds, index)
        _add_values(encoding, problem, bounds, index, detail)
    return encoding


def input_box(problem: Problem, shared: np.ndarray) -> tuple[Array, Array]:
    """Bound the right person's columns; one that is shared is within the left person's bounds as well."""
    low = np.where(shared, np.maximum(problem.left.lower, problem.right.lower), problem.right.lower)
    high = np.where(shared, np.minimum(problem.left.upper, problem.right.upper), problem.right.upper)
    return low, high


def encode_inputs(problem: Problem, where: Reach, detail: Detail, inward: float = 0.0) -> Encoding:
    """Add both people: shared columns once, one-hot groups as binaries that sum to 1, the metric on the rest.

    `inward` draws side constraints in, for candidates; a bound needs them as they are.
    """
    rows, differences, shared = Rows(), where.differences, where.shared
    left, right = problem.left, problem.right
    low, high = input_box(problem, shared)
    x_right = rows.variables(low, high)
    x_left = x_right.copy()
    x_left[~shared] = rows.variables(left.lower[~shared], left.upper[~shared])
    free = differences.free
    d = rows.variables(differences.lower[free], differences.upper[free])
    for column, difference in zip(free, d, strict=True):
        rows.row([x_left[column], x_right[column], difference], [1.0, -1.0, -1.0], 0.0, 0.0)
    for group in right.groups:
        for x in dict.fromkeys((tuple(x_right[group]), tuple(x_left[group]))):
            rows.row(x, np.ones(len(x)), 1.0, 1.0)
            for column in x:
                rows.integer[column] = True
    people_rows(rows, right, x_right, inward)
    if (x_left != x_right).any():
        people_rows(rows, left, x_left, inward)
    ball_rows(rows, differences, d, detail.ball, detail.touches, problem.network.layers[0].weight)
    return Encoding(rows, Side(x_left), Side(x_right), d)


def people_rows(rows: Rows, domain: Domain, x: Index, inward: float = 0.0) -> None:
    """Add what makes numbers a person beyond their bounds: side constraints, and whole steps of integers.

    A value on an integer's grid is within `grid_errors` of low + k step, low being a value itself.
    """
    for row, most in zip(*domain.constraints, strict=True):
        used = np.flatnonzero(row)
        rows.row(x[used], row[used], upper=float(most) - inward * (1.0 + abs(float(most))))
    for column in domain.integers.tolist():
        low, high, step = domain.lower[column], domain.upper[column], domain.steps[column]
        count = rows.variable(0.0, float(np.round((high - low) / step)), integer=True)
        off = float(domain.grid_errors[column])
        rows.row([x[column], count], [1.0, -step], low - off, low + off)


def compared_rows(rows: Rows, problem: Problem, dz: Box, detail: Detail) -> tuple[Differences, Index]:
    """Add the differences of what an embedding makes of two people, and the metric that limits them."""
    box = Differences(problem.metric, problem.eps, dz.lower[1:], dz.upper[1:])
    d = rows.variables(box.lower, box.upper)
    ball_rows(rows, box, d[box.free], detail.ball, detail.touches)
    return box, d


def affine_row(side: Side, weight: Array, index: int) -> tuple[Index, Array]:
    """Return the variables and coefficients of one neuron's weighted sum, neurons that are 0 left out."""
    inputs = side.x if index == 0 else side.v[index - 1]
    used = inputs != NOTHING
    return inputs[used], weight[used] if index == 0 else weight[used] / side.scale[index - 1][used]


def add_preactivations(
    encoding: Encoding, problem: Problem, bounds: TwinBounds, index: int, detail: Detail | None = None
) -> None:
    """Add z = weight v + bias on both sides, within its bounds, and their difference within its own.

    In the last layer, what an embedding makes of both people is compared.
    """
    layer, b = problem.network.layers[index], bounds.layers[index]
    is_output = index == len(problem.network.layers) - 1
    scale = np.ones(len(layer.bias)) if is_output else _scales(b)
    rows = encoding.rows
    for side, box in ((encoding.left, b.left), (encoding.right, b.right)):
        z = rows.variables(scale * box.lower, scale * box.upper)
        for j, variable in enumerate(z):
            columns, values = affine_row(side, layer.weight[j], index)
            constant = -scale[j] * layer.bias[j]
            rows.row([*columns, variable], [*(scale[j] * values), -1.0], constant, constant)
        side.z.append(z)
        side.scale.append(scale)
    for j, (one, other) in enumerate(zip(encoding.left.z[index], encoding.right.z[index], strict=True)):
        rows.row([one, other], [1.0, -1.0], scale[j] * b.dz.lower[j], scale[j] * b.dz.upper[j])
    if is_output and problem.aside:
        _, d = compared_rows(rows, problem, b.dz, detail or Detail())
        for one, other, difference in zip(encoding.left.z[index][1:], encoding.right.z[index][1:], d, strict=True):
            rows.row([one, other, difference], [1.0, -1.0, -1.0], 0.0, 0.0)


def _scales(b: LayerBounds) -> Array:
    """Return powers of two (so that scaling is exact) that bring each neuron's values near 1, if they are far."""
    size = np.maximum(b.left.magnitude, b.right.magnitude)
    exponent = -np.round(np.log2(np.clip(size, 1e-12, 1e12)))
    return np.asarray(np.exp2(np.where(np.abs(exponent) > 7, exponent, 0.0)))


def _add_values(encoding: Encoding, problem: Problem, bounds: TwinBounds, index: int, detail: Detail) -> None:
    layer, b = problem.network.layers[index], bounds.layers[index]
    wanted = _wanted_sides(problem, index)
    for side, z, v, sign in (
        (encoding.left, b.left, b.left_value, 1.0),
        (encoding.right, b.right, b.right_value, -1.0),
    ):
        leaving = np.full(len(layer.bias), NOTHING, dtype=np.int64)
        for j, name in enumerate(layer.activations):
            curve = pieces(name, z.lower[j], z.upper[j], detail, (index, j))
            scale = side.scale[index][j]
            curve = PwlBounds(scale * curve.breaks, scale * curve.lower, scale * curve.upper)
            need = None if wanted is None else sign * wanted[j]
            box = (scale * v.lower[j], scale * v.upper[j])
            leaving[j] = add_curve(encoding.rows, int(side.z[index][j]), curve, box, need)
        side.v.append(leaving)
    _difference_rows(encoding, b, index)


def pieces(name: str, lower: float, upper: float, detail: Detail, where: tuple[int, int]) -> PwlBounds:
    """Return piecewise-linear bounds of one neuron's activation over its interval.

    A stretch so short that the activation is straight on it is one cell: many tiny ones bring nothing, and a solver
    that meets them only to its tolerances has been seen to cut off real pairs.
    """
    extra = detail.grid.get(where)
    inside = () if extra is None else tuple(extra[(extra > lower) & (extra < upper)].tolist())
    return _pieces(name, float(lower), float(upper), detail.cells, inside)


@lru_cache(maxsize=1 << 14)
def _pieces(name: str, lower: float, upper: float, cells: int, extra: tuple[float, ...]) -> PwlBounds:
    activation = by_name(name)
    plain = pwl_bounds(activation, lower, upper, 1)
    if cells == 1 or float((plain.upper - plain.lower).max()) <= STRAIGHT:
        return plain
    grid = pwl_bounds(activation, lower, upper, cells)
    if not extra or activation.is_piecewise_linear():
        return grid
    return pwl_bounds(activation, lower, upper, cells, breaks=np.unique(np.concatenate([grid.breaks, extra])))


def _wanted_sides(problem: Problem, index: int) -> Array | None:
    """Say which side of a neuron's value the gap wants: +1 as large as possible on the left, -1 as small.

    Only the last hidden layer is decided by the sign of its output weight: the gap never falls as the left output
    rises or the right one falls, since every output activation here is increasing.
    """
    if index != len(problem.network.layers) - 2 or problem.aside:
        return None
    return np.asarray(np.sign(problem.network.layers[-1].weight[0]))


def add_curve(rows: Rows, z: int, curve: PwlBounds, box: tuple[float, float], need: float | None) -> int:
    """Add v between the curve's lower and upper lines and return its variable.

    z = b_0 + sum of steps, step i within [0, width_i]; step i + 1 may start only once step i is full, which binary i
    says. Without binaries this is the convex hull. They are needed only on the side that the gap `need`s (+1 upper,
    -1 lower, 0 neither, None both) and only if that side is not concave (convex): otherwise the hull is the curve.
    """
    lower, upper, breaks = curve.lower, curve.upper, curve.breaks
    if (lower == 0.0).all() and (upper == 0.0).all():
        return NOTHING
    if (lower == breaks).all() and (upper == breaks).all():
        return z
    width = np.diff(breaks)
    if len(breaks) == 1 or not (width > 0).all():
        return rows.variable(*box)
    integer = _needs_binaries(curve, need)
    steps = rows.variables(np.zeros(len(width)), up(width))
    rows.row([z, *steps], [1.0, *-np.ones(len(width))], breaks[0], breaks[0])
    full = [rows.variable(0.0, 1.0, integer) for _ in width[1:]]
    for i, binary in enumerate(full):
        rows.row([steps[i], binary], [1.0, -width[i]], lower=-_spare(width[i]))
        rows.row([steps[i + 1], binary], [1.0, -width[i + 1]], upper=_spare(width[i + 1]))
    if len(breaks) == 3 and breaks[1] == 0.0 and (upper == np.maximum(breaks, 0.0)).all() and (lower == upper).all():
        return int(steps[1])  # relu: what exceeds 0 is the second step itself
    v = rows.variable(*box)
    for values, keeps in ((lower, (True, False)), (upper, (False, True))):
        slope = np.diff(values) / width
        spare = _spare(float(np.abs(values).max() + np.abs(slope) @ width)) * len(width)
        low = values[0] - spare if keeps[0] else -np.inf
        high = values[0] + spare if keeps[1] else np.inf
        rows.row([v, *steps], [1.0, *-slope], low, high)
    return v


def _spare(size: float) -> float:
    """Return room for the rounding of widths and slopes: a few units in the last place of the numbers involved."""
    return 8 * 2.0**-52 * float(size)


def _needs_binaries(curve: PwlBounds, need: float | None) -> bool:
    slopes = [np.diff(values) / np.diff(curve.breaks) for values in (curve.lower, curve.upper)]
    convex, concave = (np.diff(slopes[0]) >= 0).all(), (np.diff(slopes[1]) <= 0).all()
    if need is None:
        return not (convex and concave)
    return not (need == 0 or (need < 0 and convex) or (need > 0 and concave))


def _difference_rows(encoding: Encoding, b: LayerBounds, index: int) -> None:
    """Tie dv = v_left - v_right to dz by lines around its range of slopes; see bounds.difference."""
    lines = difference_lines(b.slope, b.dz)
    left, right, rows = encoding.left, encoding.right, encoding.rows
    for j in range(len(b.dz.lower)):
        columns, values = _gap_of(left.v[index][j], right.v[index][j])
        if not columns or (left.v[index][j] == left.z[index][j] and right.v[index][j] == right.z[index][j]):
            continue
        z, scale = [left.z[index][j], right.z[index][j]], left.scale[index][j]
        for slope, offset, low in (
            (lines.lower_slope[j], scale * lines.lower_offset[j], True),
            (lines.upper_slope[j], scale * lines.upper_offset[j], False),
        ):
            sides = {"lower": offset} if low else {"upper": offset}
            rows.row([*columns, *z], [*values, -slope, slope], **sides)
        rows.row(columns, values, scale * b.dv.lower[j], scale * b.dv.upper[j])


def _gap_of(left: int, right: int) -> tuple[list[int], list[float]]:
    terms = [(v, s) for v, s in ((int(left), 1.0), (int(right), -1.0)) if v != NOTHING]
    return [v for v, _ in terms], [s for _, s in terms]
