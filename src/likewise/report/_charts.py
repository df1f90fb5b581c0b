"""Where things go on a chart, in per cent of its width and height, so that text keeps its size on every screen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Trace = Sequence[tuple[float, float, float]]
MOST_STEPS = 150
LOG_FROM = 30.0  # times that span more than this are drawn on a logarithmic axis


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Axis:
    """An interval of numbers drawn from 0 to 100 per cent; `at` clips what lies outside."""

    low: float
    high: float
    log: bool = False

    def at(self, x: float) -> float:
        """Return where `x` is drawn."""
        if math.isnan(x) or x <= self.low:
            return 0.0
        if x >= self.high:
            return 100.0
        if self.log:
            return round(100 * math.log(x / self.low) / math.log(self.high / self.low), 3)
        return round(100 * (x / (self.high - self.low) - self.low / (self.high - self.low)), 3)

    def ticks(self) -> tuple[Tick, ...]:
        """Return marks at round numbers, about five of them."""
        marks = _decades(self.low, self.high) if self.log else _rounds(self.low, self.high)
        return tuple(Tick(self.at(x), f"{x:g}") for x in marks)


def _rounds(low: float, high: float) -> list[float]:
    step = _nice((high - low) / 5)
    first = math.ceil(low / step - 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, first + 12) if i * step <= high * (1 + 1e-9)]


def _decades(low: float, high: float) -> list[float]:
    marks = [10.0**k for k in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    inside = [x for x in marks if low <= x <= high]
    return inside[:: math.ceil(len(inside) / 6)]


def _nice(x: float) -> float:
    """Return the smallest of 1, 2, 5 times a power of ten that is at least `x`."""
    power = 10.0 ** math.floor(math.log10(x))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= x * (1 - 1e-9))


def gap_axis(numbers: Sequence[float], score: bool) -> Axis:
    """Return the axis of a gap: 0 to 1 between scores, else from 0 to a round number above all the others."""
    top = max((x for x in numbers if math.isfinite(x)), default=0.0)
    if score and top <= 1.0:
        return Axis(0.0, 1.0)
    return Axis(0.0, max(top, 5 * _nice(top / 5)) if 1e-300 < top < 1e300 else 1.0)


def value_axis(left: float, right: float, score: bool) -> Axis:
    """Return the axis of two outputs: 0 to 1 for scores, else round numbers around both."""
    finite = [x for x in (left, right) if abs(x) < 1e300]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    if score and 0.0 <= low <= high <= 1.0:
        return Axis(0.0, 1.0)
    step = _nice(max((high - low) / 3, abs(low) / 1e6, 1e-9))
    return Axis((math.floor(low / step) - 1) * step, (math.ceil(high / step) + 1) * step)


@dataclass(frozen=True, slots=True)
class Step:
    """From `x` on for `width` per cent the bounds were `lower` and `upper`, as distances from the top."""

    x: float
    width: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Closing:
    """How the bounds closed: steps over time, and both axes."""

    steps: tuple[Step, ...]
    time: Axis
    gap: Axis


def closing(trace: Trace, seconds: float, gap: Axis) -> Closing | None:
    """Return the chart of a trace, or None if there is nothing to draw."""
    points = [point for point in trace if math.isfinite(point[0]) and point[0] >= 0.0]
    positive = [t for t, _, _ in points if t > 0.0]
    if len(points) < 2 or not positive:
        return None
    end = max([*positive, seconds if math.isfinite(seconds) else 0.0])
    log = end / min(positive) > LOG_FROM
    time = Axis(min(positive) if log else 0.0, end, log)
    thinned = points[:: math.ceil(len(points) / MOST_STEPS)]
    thinned += points[-1:] if thinned[-1] != points[-1] else []
    ends = [*(t for t, _, _ in thinned[1:]), end]
    steps = []
    for (start, lower, upper), stop in zip(thinned, ends, strict=True):
        x, width = time.at(start), max(time.at(stop) - time.at(start), 0.0)
        steps.append(Step(x, round(width, 3), round(100 - gap.at(lower), 3), round(100 - gap.at(upper), 3)))
    return Closing(tuple(steps), time, gap)


@dataclass(frozen=True, slots=True)
class Point:
    """The bounds for one eps: where it is drawn, and both as distances from the top."""

    x: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Growth:
    """How the bounds grow with eps: a point each, and both axes."""

    points: tuple[Point, ...]
    eps: Axis
    gap: Axis


def growth(bounds: Sequence[tuple[float, float, float]], gap: Axis) -> Growth | None:
    """Return the chart of (eps, lower, upper), or None if there are not two different eps."""
    ordered = sorted(bounds)
    if not ordered or ordered[0][0] == ordered[-1][0]:
        return None
    eps = gap_axis([one[0] for one in ordered], False)
    points = [Point(eps.at(e), round(100 - gap.at(lo), 3), round(100 - gap.at(hi), 3)) for e, lo, hi in ordered]
    return Growth(tuple(points), eps, gap)


def anchor(at: float) -> str:
    """Return how a label at this place is anchored, so that it stays inside of the chart."""
    if at < 20.0:
        return "start"
    return "end" if at > 80.0 else "middle"
