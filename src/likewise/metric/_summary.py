"""Say in words what a metric treats as similar: what may differ at no distance, and what a change alone costs."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import linprog

from likewise.domain import Domain, Feature, OneHot
from likewise.metric._form import Metric
from likewise.rounding import Array

LISTED = 8
ZERO = 1e-9
PROBES = 5  # people at whom a change is tried; metrics that are linear cost everyone the same


def plural(count: int, noun: str) -> str:
    """Return "1 direction", "2 directions"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def reach(metric: Metric, domain: Domain, free: Collection[str]) -> list[str]:
    """Say which numbers, besides the free ones, may differ at distance 0 in the same categories, and by how much."""
    same = np.zeros(domain.width, dtype=bool)
    for group in domain.groups:
        same[group] = True
    basis = null_space(np.vstack([metric.matrix, np.eye(domain.width)[same]]), rcond=ZERO)
    width = domain.upper - domain.lower
    found: list[tuple[float, str]] = []
    for feature, span in domain.spans:
        i = span.start
        if isinstance(feature, OneHot) or feature.name in free or np.abs(basis[i]).max(initial=0.0) < ZERO:
            continue
        both = np.vstack([basis, -basis]), np.concatenate([width, width])
        furthest = linprog(-basis[i], *both, bounds=(None, None)).x  # z = 0 is feasible and the box bounded
        most = float(basis[i] @ np.asarray(furthest))
        found.append((-most / (width[i] or 1.0), f"{feature.name} by {_amount(feature, most)}"))
    if not found:
        return ["At distance 0 no number can differ unless a category does."] if same.any() else []
    return [f"At distance 0, others moving along, may differ: {_some(found)}."]


def ease(metric: Metric, domain: Domain, people: Array, free: Collection[str]) -> list[str]:
    """Say what a change of each feature alone costs, besides the free ones, the cheapest first."""
    numbers: list[tuple[float, str]] = []
    flips: list[tuple[float, str]] = []
    tried = people[np.linspace(0, len(people) - 1, PROBES).astype(int)]
    for feature, span in domain.spans:
        if feature.name in free or (isinstance(feature, OneHot) and feature.width == 1):
            continue
        if isinstance(feature, OneHot):
            cost, a, b = _nearest(metric, tried, span)
            flips.append((cost, f"{feature.name} {cost:.2g} ({feature.values[a]} to {feature.values[b]})"))
        elif domain.upper[span.start] > domain.lower[span.start]:
            step = 0.1 * float(domain.upper[span.start] - domain.lower[span.start])
            cost = _cost(metric, tried, {span.start: step})
            numbers.append((cost, f"{feature.name} by {_amount(feature, step)}: {cost:.2g}"))
    lines = [f"Distance of a tenth of the range alone: {_some(numbers)}."] if numbers else []
    return lines + ([f"Distance of the nearest change of category alone: {_some(flips)}."] if flips else [])


def _nearest(metric: Metric, tried: Array, span: slice) -> tuple[float, int, int]:
    """Return the cheapest change of category, its cost averaged over the people who were tried."""
    size = span.stop - span.start
    best = (0.0, 0, 0)
    for a in range(size):
        for b in range(a + 1, size):
            bare = tried.copy()
            bare[:, span] = np.eye(size)[a]
            cost = _cost(metric, bare, {span.start + a: -1.0, span.start + b: 1.0})
            if best[1:] == (0, 0) or cost < best[0]:
                best = (cost, a, b)
    return best


def _cost(metric: Metric, tried: Array, change: dict[int, float]) -> float:
    moved = tried.copy()
    for column, step in change.items():
        moved[:, column] += step
    return float(np.mean([metric.distance(a, b) for a, b in zip(tried, moved, strict=True)]))


def _amount(feature: Feature, step: float) -> str:
    """Return a step in the user's own units."""
    shown = abs(feature.display.factor * step)
    return f"{f'{shown:,.0f}' if shown >= 1000 else f'{shown:.3g}'} {feature.display.unit}".strip()


def _some(found: list[tuple[float, str]]) -> str:
    """Return the first few texts in the order of their numbers, and how many more there are."""
    rest = f" and {len(found) - LISTED} more" if len(found) > LISTED else ""
    return "; ".join(text for _, text in sorted(found)[:LISTED]) + rest
