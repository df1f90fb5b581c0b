"""Layout: which columns each feature takes. Computed once for a domain and shared by all its parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likewise.domain._features import Feature, Integer, OneHot
from likewise.rounding import Array


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The columns of each kind of feature; `lows`, `steps` and `counts` are 0 where a column has no steps."""

    spans: tuple[tuple[Feature, slice], ...]
    groups: tuple[slice, ...]
    continuous: np.ndarray
    integers: np.ndarray
    numbers: np.ndarray
    lows: Array
    steps: Array
    counts: Array
    names: tuple[str, ...]

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.steps)

    @property
    def sizes(self) -> Array:
        """The largest absolute value of each integer column's own grid, before any narrowing; 0 for other columns."""
        return np.maximum(np.abs(self.lows), np.abs(self.lows + self.counts * self.steps))

    def on_grid(self, people: Array) -> Array:
        """Return the people with their integer columns moved to the next value, in a new array."""
        moved = np.array(people, dtype=np.float64)
        c = self.integers
        if len(c):
            k = np.clip(np.rint((moved[..., c] - self.lows[c]) / self.steps[c]), 0.0, self.counts[c])
            moved[..., c] = self.lows[c] + k * self.steps[c]
        return moved


def layout(features: tuple[Feature, ...]) -> Layout:
    """Return the layout of features in column order."""
    starts = np.cumsum([0, *(f.width for f in features)]).tolist()
    spans = tuple((f, slice(a, a + f.width)) for f, a in zip(features, starts, strict=False))
    lows, steps, counts = np.zeros((3, starts[-1]))
    names: list[str] = []
    kinds = np.zeros(starts[-1], dtype=np.int8)  # 0 continuous, 1 integer, 2 category
    for f, span in spans:
        if isinstance(f, OneHot):
            kinds[span] = 2
            names += [f"{f.name}={value}" for value in f.values]
            continue
        names.append(f.name)
        if isinstance(f, Integer):
            kinds[span] = 1
            lows[span], steps[span], counts[span] = f.low, f.step, f.count
    columns = [np.flatnonzero(kinds == 0), np.flatnonzero(kinds == 1), np.flatnonzero(kinds < 2)]
    for array in (*columns, lows, steps, counts):
        array.setflags(write=False)
    groups = tuple(span for f, span in spans if isinstance(f, OneHot))
    return Layout(spans, groups, columns[0], columns[1], columns[2], lows, steps, counts, tuple(names))
