"""Template: the linear relaxation of both networks with one fixed pattern, filled in anew for every part of a tree.

Which variable stands in which row never changes; bounds, slopes and offsets do, and they are written with a few array
operations. Every true pair within the bounds, with the values its neurons take, is a point of the model, in real
arithmetic: weights enter as they are, and every line of `hull_lines` and `difference_lines` is proven.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_matrix

from likewise.activations import Activation
from likewise.bounds.argument import ALWAYS, Argument, InputRows, Tangents, ball_multipliers, input_rows
from likewise.bounds.difference import difference_lines
from likewise.bounds.encoding import Detail, Side, compared_rows, encode_inputs, input_box
from likewise.bounds.interval import Box
from likewise.bounds.joint import Joint
from likewise.bounds.planes import Plane
from likewise.bounds.rows import Index, Rows
from likewise.bounds.twin import LayerBounds, TwinBounds
from likewise.problem import Problem
from likewise.rounding import Array
from likewise.solvers import LinearModel

Lines = tuple[Array, Array, Array]  # slopes, lower and upper sides of the rows v - slope z and dv - slope dz


@dataclass(slots=True, eq=False)
class _Slots:
    """Where the numbers of one layer go: its rows, and the places of its slopes in the matrix."""

    rows: Index
    slopes: Index


@dataclass(slots=True, eq=False)
class _Pattern:
    """Entries collected so far: (row, column, value)."""

    rows: list[Index] = field(default_factory=list)
    columns: list[Index] = field(default_factory=list)
    values: list[Array] = field(default_factory=list)
    height: int = 0
    size: int = 0

    def add(self, height: int, *terms: tuple[Index, Array | float]) -> Index:
        """Add `height` rows, each the sum of the terms: columns (height,) or (height, k) with their values."""
        rows = self.height + np.arange(height)
        for columns, values in terms:
            wide = np.asarray(columns).reshape(height, -1)
            self.rows.append(np.repeat(rows, wide.shape[1]))
            self.columns.append(wide.ravel())
            self.values.append(np.broadcast_to(np.asarray(values, dtype=np.float64), wide.shape).ravel())
            self.size += wide.size
        self.height += height
        return rows


class Template:
    """The relaxed model of a problem's first `depth` layers and of what enters the next one."""

    def __init__(self, problem: Problem, bounds: TwinBounds, detail: Detail, depth: int) -> None:
        self._reach, self._depth = bounds.reach, depth
        self._problem, self._touches = problem, detail.touches
        self._groups = [list(layer.groups()) for layer in problem.network.layers[:depth]]
        inputs = encode_inputs(problem, bounds.reach, detail)
        self.compared = (bounds.reach.differences, inputs.d)
        base = inputs.rows.model()
        self.left, self.right = Side(inputs.left.x), Side(inputs.right.x)
        self.columns = len(base.lower)
        self._lower, self._upper = [base.lower], [base.upper]
        self._pattern = _Pattern()
        self._sides: list[tuple[Array, Array]] = [(base.row_lower, base.row_upper)]
        coo = base.matrix.tocoo()
        self._pattern.rows.append(coo.row.astype(np.int64))
        self._pattern.columns.append(coo.col.astype(np.int64))
        self._pattern.values.append(coo.data)
        self._pattern.height, self._pattern.size = base.matrix.shape[0], coo.nnz
        self._slots: list[_Slots] = []
        self._dz: list[Index] = []
        self._affine: list[tuple[Index, Index]] = []
        touching = len(detail.touches) if problem.metric.p == 2.0 and not problem.aside else 0
        self.touching = slice(base.matrix.shape[0] - touching, base.matrix.shape[0])  # rows of tangents of a round ball
        self._ball = (input_rows(problem, bounds.reach.shared).ball, base.matrix.shape[0])
        self._tied: Index = np.empty(0, dtype=np.int64)  # of what an embedding compares
        self._compiled: tuple[csr_matrix, Index] | None = None
        for index in range(depth + 1):
            self._add_layer(problem, index)
        if problem.aside and depth == len(problem.network.layers) - 1:
            self._add_comparison(problem, bounds.layers[depth].dz, detail)

    def variables(self, lower: Array, upper: Array) -> Index:
        """Add variables and return their columns; those of people and neurons get new bounds with every part."""
        first = self.columns
        self.columns += len(lower)
        self._lower.append(lower)
        self._upper.append(upper)
        return np.arange(first, self.columns)

    @property
    def input_rows(self) -> InputRows:
        """Where the rows of both people are."""
        return input_rows(self._problem, self._reach.shared)

    def group_rows(self) -> list[tuple[slice, int]]:
        """Return the groups of columns whose sum is 1, with the row that says so: one, or one for each person."""
        found, row = [], self.input_rows.differences.stop
        for group in self._problem.right.groups:
            for _ in range(1 if self._reach.shared[group].all() else 2):
                found.append((group, row))
                row += 1
        return found

    @property
    def ball_rows(self) -> slice:
        """The rows of the metric's ball."""
        return slice(*self._ball)

    def affine_rows(self, index: int) -> tuple[Index, Index]:
        """Return the rows weight v - z = -bias of a layer, left and right."""
        return self._affine[index]

    def difference_rows(self, index: int) -> Index:
        """Return the rows of a layer's dz."""
        return self._dz[index]

    def line_rows(self, index: int) -> Index:
        """Return the rows of a hidden layer's lines, in the order of `lines`."""
        return self._slots[index].rows

    @property
    def height(self) -> int:
        """How many rows there are so far."""
        return self._pattern.height

    def rows(self, lower: Array, upper: Array, *terms: tuple[Index, Array | float]) -> Index:
        """Add rows with fixed coefficients and sides."""
        self._sides.append((lower, upper))
        return self._pattern.add(len(lower), *terms)

    def join(self, joint: Joint) -> Index:
        """Add the row of what holds of all differences together."""
        terms: list[tuple[Index, Array | float]] = [(self.compared[1][None], joint.nu[self.compared[0].free])]
        for k, (both, turn) in enumerate(zip(joint.both, joint.turn, strict=True)):
            terms += [(self.left.v[k][None], both), (self.right.v[k][None], -both)]
            terms += [(self.left.z[k][None], -turn), (self.right.z[k][None], turn)]
        return self.rows(np.full(1, -np.inf), np.full(1, joint.upper), *terms)

    def lean(self, plane: Plane) -> int:
        """Add the row of a plane of one neuron: sign dv - rise dz - lean z_right <= offset."""
        at, k = plane.neuron, plane.layer
        columns = np.array([side[k][at] for side in (self.left.v, self.right.v, self.left.z, self.right.z)])
        values = np.array([plane.sign, -plane.sign, -plane.rise, plane.rise - plane.lean])
        return int(self.rows(np.full(1, -np.inf), np.full(1, plane.offset), (columns[None], values))[0])

    def _add_layer(self, problem: Problem, index: int) -> None:
        layer = problem.network.layers[index]
        count, nothing = len(layer.bias), np.zeros(len(layer.bias))
        affine = []
        for side in (self.left, self.right):
            before = side.x if index == 0 else side.v[index - 1]
            z = self.variables(nothing, nothing)
            affine.append(self.rows(-layer.bias, -layer.bias, (np.tile(before, (count, 1)), layer.weight), (z, -1.0)))
            side.z.append(z)
            if index < self._depth:
                side.v.append(self.variables(nothing, nothing))
        self._affine.append((affine[0], affine[1]))
        endless = np.full(count, np.inf)
        zl, zr = self.left.z[index], self.right.z[index]
        self._dz.append(self.rows(-endless, endless, (zl, 1.0), (zr, -1.0)))
        if index < self._depth:
            self._slots.append(self._add_lines(index))

    def _add_comparison(self, problem: Problem, dz: Box, detail: Detail) -> None:
        """Add the metric on what an embedding makes of both people; its rows come ready made."""
        ready = Rows()
        box, d = compared_rows(ready, problem, dz, detail)
        model = ready.model()
        columns = self.variables(model.lower, model.upper)
        coo = model.matrix.tocoo()
        pattern = self._pattern
        self._ball = (pattern.height, pattern.height + coo.shape[0])
        pattern.rows.append(pattern.height + coo.row.astype(np.int64))
        pattern.columns.append(columns[coo.col])
        pattern.values.append(coo.data)
        pattern.height, pattern.size = pattern.height + coo.shape[0], pattern.size + coo.nnz
        self._sides.append((model.row_lower, model.row_upper))
        nothing = np.zeros(problem.aside)
        left, right = self.left.z[-1][1:], self.right.z[-1][1:]
        self._tied = self.rows(nothing, nothing, (left, 1.0), (right, -1.0), (columns[d], -1.0))
        self.compared = (box, columns[d[box.free]])

    def _add_lines(self, index: int) -> _Slots:
        """Add the rows v - slope z of both sides and dv - slope dz, their slopes and sides still open."""
        rows, slopes = [], []

        def add(v: Index, z: Index) -> None:
            endless = np.full(len(v), np.inf)
            at = self._pattern.size + len(v)
            rows.append(self.rows(-endless, endless, (v, 1.0), (z, 0.0)))
            slopes.append(at + np.arange(len(z)))

        for side in (self.left, self.right):
            for activation, neurons in self._groups[index]:
                for _ in range(sum(activation.hull_counts())):
                    add(side.v[index][neurons], side.z[index][neurons])
        vl, vr, zl, zr = self.left.v[index], self.right.v[index], self.left.z[index], self.right.z[index]
        endless = np.full(len(vl), np.inf)
        for _ in range(2):  # below, above: dv - slope z_left + slope z_right
            at = self._pattern.size + 2 * len(vl)
            rows.append(self.rows(-endless, endless, (vl, 1.0), (vr, -1.0), (zl, 0.0), (zr, 0.0)))
            slopes += [at + np.arange(len(zl)), at + len(zl) + np.arange(len(zl))]
        rows.append(self.rows(-endless, endless, (vl, 1.0), (vr, -1.0)))
        return _Slots(np.concatenate(rows), np.concatenate(slopes))

    def _compile(self) -> tuple[csr_matrix, Index]:
        """Return the matrix with its values so far, and where each entry went."""
        if self._compiled is None:
            pattern = self._pattern
            rows, columns = np.concatenate(pattern.rows), np.concatenate(pattern.columns)
            order = np.lexsort((columns, rows))
            place = np.empty(len(order), dtype=np.int64)
            place[order] = np.arange(len(order))
            starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=pattern.height))])
            values = np.concatenate(pattern.values)[order]
            shape = (pattern.height, self.columns)
            self._compiled = (csr_matrix((values, columns[order], starts), shape=shape), place)
        return self._compiled

    def lines(self, layers: Sequence[LayerBounds]) -> list[Lines]:
        """Return the lines of every layer, of one part or of a stack of them."""
        return [_lines(groups, b) for groups, b in zip(self._groups, layers, strict=False)]

    def model(self, problem: Problem, bounds: TwinBounds) -> LinearModel:
        """Return the model of one part, without an objective."""
        return self.fill(problem, bounds, self.lines(bounds.layers), np.zeros(self.columns))

    def fill(self, problem: Problem, bounds: TwinBounds, lines: Sequence[Lines], objective: Array) -> LinearModel:
        """Return the model of the pairs of a part: people of `problem`'s domains, neurons within `bounds`."""
        pattern, place = self._compile()
        data = pattern.data.copy()
        lower, upper = np.concatenate(self._lower), np.concatenate(self._upper)
        row_lower = np.concatenate([low for low, _ in self._sides])
        row_upper = np.concatenate([high for _, high in self._sides])
        low, high = input_box(problem, self._reach.shared)
        lower[self.right.x], upper[self.right.x] = low, high
        own = ~self._reach.shared
        lower[self.left.x[own]], upper[self.left.x[own]] = problem.left.lower[own], problem.left.upper[own]
        for index in range(self._depth + 1):
            b = bounds.layers[index]
            for side, z in ((self.left, b.left), (self.right, b.right)):
                lower[side.z[index]], upper[side.z[index]] = z.lower, z.upper
            row_lower[self._dz[index]], row_upper[self._dz[index]] = b.dz.lower, b.dz.upper
            if index < self._depth:
                lower[self.left.v[index]], upper[self.left.v[index]] = b.left_value.lower, b.left_value.upper
                lower[self.right.v[index]], upper[self.right.v[index]] = b.right_value.lower, b.right_value.upper
                slot, (slopes, least, most) = self._slots[index], lines[index]
                data[place[slot.slopes]] = -slopes
                row_lower[slot.rows], row_upper[slot.rows] = least, most
        matrix = csr_matrix((data, pattern.indices, pattern.indptr), shape=pattern.shape)
        matrix.has_canonical_format = True
        integer = np.zeros(self.columns, dtype=bool)
        return LinearModel(objective, matrix, row_lower, row_upper, lower, upper, integer)

    def argument(
        self,
        y: Array,
        lines: Sequence[Lines],
        round_mu: Array | None = None,
        tangents: Tangents = ALWAYS,
        rows: Index | None = None,
        joined: Mapping[int, int] | None = None,
    ) -> Argument:
        """Return the argument that the multipliers `y` of the model's rows make, without the slack of hull lines.

        `round_mu` are those of the metric's own rows (but for those that are 0), where a ball was drawn without rows.

        `lines` are those that the model was filled with; `rows` are where the caller put slack - a + slope b <= -offset
        for each tangent, `joined` the rows of what holds of all differences together, by their slots. Evaluated over
        the same boxes it is at most the bound that `y` proves of the model. An argument always has all layers: those
        that the template leaves out have no multipliers.
        """
        problem = self._problem
        parts = [self._multipliers(index, y, lines) for index in range(len(problem.network.layers))]
        place, metric = input_rows(problem, self._reach.shared), problem.metric
        nu, mu = np.zeros(problem.right.width), np.zeros(len(metric.matrix))
        nu[self._reach.differences.free] = y[place.differences]
        if not problem.aside or len(self._tied):
            free, ball = self.compared[0].free, y[slice(*self._ball)]
            seen = None if problem.aside else problem.network.layers[0].weight
            mu = ball_multipliers(metric.matrix, free, metric.p, problem.eps, self._touches, seen, ball)
            if round_mu is not None and len(round_mu):
                mu[np.abs(metric.matrix[:, free]).sum(axis=1) > 0] += round_mu
        omega = np.zeros(len(problem.left.constraints[1]))
        omega[: place.left.stop - place.left.start] = y[place.left]
        left, right, both, turn = zip(*parts, strict=True)
        weights = np.empty(0) if rows is None else y[rows]
        joint = np.zeros(max(joined, default=-1) + 1 if joined else 0)
        for slot, row in (joined or {}).items():
            joint[slot] = y[row]
        return Argument(tangents, weights, left, right, both, turn, nu, mu, (omega, y[place.right]), joint)

    def _multipliers(self, index: int, y: Array, lines: Sequence[Lines]) -> tuple[Array, Array, Array, Array]:
        """Return one layer's multipliers: left, right, both, turn."""
        nothing = np.zeros(len(self._problem.network.layers[index].bias))
        if index > self._depth:
            return nothing, nothing, nothing, nothing
        turn, both = -y[self._dz[index]], nothing
        if index < self._depth:
            n, slopes = len(nothing), lines[index][0]
            below, above, value = np.split(y[self._slots[index].rows[-3 * n :]], 3)
            both = below + above + value
            turn = turn + below * slopes[-4 * n : -3 * n] + above * slopes[-2 * n : -n]
        elif len(self._tied):
            turn[1:] -= y[self._tied]
        return -y[self._affine[index][0]], -y[self._affine[index][1]], both, turn


def _lines(groups: list[tuple[Activation, np.ndarray]], b: LayerBounds) -> Lines:
    """Return slopes, and the lower and upper sides of their rows, in the order of `Template._add_lines`."""
    slopes, least, most = [], [], []
    for box in (b.left, b.right):
        for activation, neurons in groups:
            below, above = activation.hull_lines(box.lower[..., neurons], box.upper[..., neurons])
            for slope, offset in below:
                slopes.append(slope)
                least.append(offset)
                most.append(np.full_like(offset, np.inf))
            for slope, offset in above:
                slopes.append(slope)
                least.append(np.full_like(offset, -np.inf))
                most.append(offset)
    lines = difference_lines(b.slope, b.dz)
    endless = np.full_like(b.dz.lower, np.inf)
    slopes += [lines.lower_slope, -lines.lower_slope, lines.upper_slope, -lines.upper_slope]
    least += [lines.lower_offset, -endless, b.dv.lower]
    most += [endless, lines.upper_offset, b.dv.upper]
    return np.concatenate(slopes, axis=-1), np.concatenate(least, axis=-1), np.concatenate(most, axis=-1)
