"""Cells of differences: the bound of a wide network by cutting up the directions that its metric does not see."""

from __future__ import annotations

import heapq
import itertools
import math
import time

import numpy as np

from likewise.bounds.cells import Cells, Size, cells_of
from likewise.rounding import Array
from likewise.search.root import Root

AT_ONCE = 8  # cells to cut at a time
COARSE = 1  # times to cut before anything is bounded: cells as large as that are not worth it
HALVED = 4  # directions to halve at a time: what cells of one size have in common takes longer than the cells
OVERLAP = 1e-12  # of the whole, by which neighbours overlap, so that rounding leaves no gap between them

Cell = tuple[float, int, int, tuple[float, ...]]  # minus its bound, a number, its depth, the middle of its slabs


def cut(root: Root, deadline: float) -> None:
    """Cut cells, the worst first, and claim the worst one's bound, until the deadline or the gap is closed.

    Every difference of a similar pair is in a cell: the first one holds all of them, and the parts of a cell cover it.
    """
    cells = cells_of(root.problem, root.bounds)
    if cells is None or not all(map(math.isfinite, cells.free.longest)):
        return
    sizes: dict[int, Size] = {}  # by depth
    known = float(root.bounds.layers[-1].dz.upper[0])
    heap: list[Cell] = [(-known, 0, 0, (0.0,) * len(cells.free.longest))]
    numbers = itertools.count(1)
    while heap and not root.run.done and time.monotonic() < deadline:
        taken = [heapq.heappop(heap) for _ in range(min(AT_ONCE, len(heap)))]
        for at in sorted({cell[2] for cell in taken}):
            for bound, depth, mid in _parts(cells, sizes, taken, at, deadline):
                if bound > -math.inf:
                    heapq.heappush(heap, (-bound, next(numbers), depth, mid))
        claim(root, -heap[0][0] if heap else 0.0)


def claim(root: Root, difference: float) -> None:
    """Claim what a bound on the difference of the logits proves."""
    last = root.bounds.layers[-1]
    upper = root.score.upper(float(last.left.upper[0]), float(last.right.lower[0]), difference)
    root.proven = min(root.proven, upper)
    root.run.prove(root.proven)


def _parts(
    cells: Cells, sizes: dict[int, Size], taken: list[Cell], depth: int, deadline: float
) -> list[tuple[float, int, tuple[float, ...]]]:
    """Cut the cells of one depth, and bound what comes of it; a part's bound is at most that of its whole."""
    half, halved = _halves(cells, depth)
    if depth >= COARSE and depth not in sizes:
        sizes[depth] = cells.size(half, sizes.get(depth - 1), deadline)
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=len(halved))))
    mids, known = [], []
    for minus, _, at, mid in taken:
        if at == depth:
            part = np.tile(np.array(mid), (len(signs), 1))
            part[:, halved] += signs * (_halves(cells, depth - 1)[0][halved] / 2)
            mids.append(part)
            known += [-minus] * len(signs)
    uppers = np.array(known)
    if depth in sizes:
        uppers = np.minimum(uppers, cells.uppers(sizes[depth], np.vstack(mids)))
    return [(float(u), depth + 1, tuple(mid.tolist())) for u, mid in zip(uppers, np.vstack(mids), strict=True)]


def _halves(cells: Cells, depth: int) -> tuple[Array, list[int]]:
    """Return half the lengths of the cells that come of cutting those of a depth, and the directions that are cut.

    They depend on the depth alone: what matters most at that length is halved. At depth -1, the whole.
    """
    free = cells.free
    half, halved = free.longest.copy(), []
    weights = np.abs(cells.problem.network.layers[2].weight[0]) @ cells.sizes
    matters = weights @ np.abs(free.whole.weight @ free.rows.T)
    for _ in range(depth + 1):
        halved = np.argsort(-half * matters)[:HALVED].tolist()
        half[halved] = half[halved] / 2 + OVERLAP * free.longest[halved]
    return half, halved
