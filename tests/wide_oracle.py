"""What is true of a widened problem, found by code of its own: who exists, who is similar, and pairs that score apart.

Nothing of the library is called but data is read: layers, features, bounds, rows, the metric's matrix, p and phi.
`dense_search` returns a real pair, so no `upper` may be below its gap; `violations` lists every claim that is not so.
Membership and distance are decided in rationals (a power that is not whole: fifty digits), gaps in fifty digits.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import mpmath as mp
import numpy as np
from scipy.optimize import minimize

from likewise import Certificate, Domain, Integer, Network, OneHot, Problem

mp.mp.dps = 60  # as in test_activations: the precision is one for all
INSIDE = 1 - 1e-9  # float distances up to this part of eps are within eps exactly
ROOM = 1e-10  # what the smooth optimiser leaves free beside a constraint, in parts of its size
SAMPLES = 500
KEPT = 36
CLIMBS = 50
CHANGED = 5
POLISHED = 4
COMBINATIONS = 2000  # up to so many combinations of both people's whole features are all tried

Pairs = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A pair that exists and is similar, and its gap."""

    gap: float
    left: np.ndarray
    right: np.ndarray


# ---- who exists


@dataclass(frozen=True, slots=True, eq=False)
class Crowd:
    """The people of one side: `free` columns vary in [lower, upper], the others take one of the `choices`.

    A choice is the columns of one feature with its possible values, one row each.
    """

    lower: np.ndarray
    upper: np.ndarray
    A: np.ndarray
    b: np.ndarray
    free: np.ndarray
    choices: tuple[tuple[np.ndarray, np.ndarray], ...]

    def inside(self, x: np.ndarray) -> np.ndarray:
        """Tell who satisfies the constraints, in floats."""
        return np.asarray((x @ self.A.T <= self.b).all(axis=1))

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw about n people, many at corners, those that the constraints allow."""
        parts = rng.random((n, len(self.lower)))
        parts = np.where(rng.random(parts.shape) < 0.4, np.rint(parts), parts)
        x = np.clip(self.lower + parts * (self.upper - self.lower), self.lower, self.upper)
        for columns, values in self.choices:
            x[:, columns] = values[rng.integers(len(values), size=n)]
        return x[self.inside(x)]


def values_of(feature: Integer) -> list[float]:
    """Return every value of an integer feature: the floats low + k * step."""
    return [feature.low + k * feature.step for k in range(round((feature.high - feature.low) / feature.step) + 1)]


def columns_of(domain: Domain) -> Iterator[tuple[object, np.ndarray]]:
    """Yield each feature with its columns."""
    start = 0
    for feature in domain.features:
        width = len(feature.values) if isinstance(feature, OneHot) else 1
        yield feature, np.arange(start, start + width)
        start += width


def crowd(domain: Domain) -> Crowd:
    """Return the people of a domain."""
    free, choices = [], []
    for feature, columns in columns_of(domain):
        low, high = domain.lower[columns], domain.upper[columns]
        if isinstance(feature, OneHot):
            rows = [row for row in np.eye(len(columns)) if (row >= low).all() and (row <= high).all()]
            choices.append((columns, np.array(rows)))
        elif isinstance(feature, Integer):
            values = [v for v in values_of(feature) if low[0] <= v <= high[0]]
            choices.append((columns, np.array(values)[:, None]))
        elif low[0] < high[0]:
            free.append(columns[0])
    A, b = domain.constraints
    return Crowd(domain.lower, domain.upper, A, b, np.array(free, dtype=int), tuple(choices))


def not_a_person(domain: Domain, x: np.ndarray) -> list[str]:
    """Return why this is nobody of the domain, exactly; an empty list if it is somebody."""
    wrong = []
    exact = [Fraction(v) for v in x.tolist()]
    for low, v, high in zip(domain.lower.tolist(), exact, domain.upper.tolist(), strict=True):
        if not Fraction(low) <= v <= Fraction(high):
            wrong.append(f"{float(v)!r} is out of {low!r} to {high!r}")
    for feature, columns in columns_of(domain):
        part = x[columns].tolist()
        if isinstance(feature, OneHot) and sorted(part) != [0.0] * (len(part) - 1) + [1.0]:
            wrong.append(f"{feature.name} is not one-hot: {part}")
        if isinstance(feature, Integer) and part[0] not in values_of(feature):
            wrong.append(f"{feature.name} = {part[0]!r} is no whole number of steps")
    for row, b in zip(domain.constraints[0].tolist(), domain.constraints[1].tolist(), strict=True):
        total = sum((Fraction(a) * v for a, v in zip(row, exact, strict=True)), Fraction())
        if total > Fraction(b):
            wrong.append(f"a constraint is broken by {float(total - Fraction(b))!r}")
    return wrong


# ---- scores and distances, in floats and exactly

FLOAT = {
    "identity": lambda z: z,
    "relu": lambda z: np.maximum(z, 0.0),
    "tanh": np.tanh,
    "sigmoid": lambda z: 0.5 * (1.0 + np.tanh(0.5 * z)),
}
TRUE = {
    "identity": lambda z: z,
    "relu": lambda z: max(z, z * 0),
    "tanh": mp.tanh,
    "sigmoid": lambda z: 1 / (1 + mp.exp(-z)),
}


def forward(network: Network, x: np.ndarray) -> np.ndarray:
    """Return all outputs (n, outputs) in floats."""
    for layer in network.layers:
        z = x @ layer.weight.T + layer.bias
        names = layer.activations
        one = len(set(names)) == 1
        x = FLOAT[names[0]](z) if one else np.stack([FLOAT[n](z[:, k]) for k, n in enumerate(names)], axis=1)
    return x


def true_forward(network: Network, person: np.ndarray, *, rational: bool) -> list:
    """Return all outputs in fractions (relu and identity only) or to fifty digits."""
    number = Fraction if rational else mp.mpf
    x = [number(v) for v in person.tolist()]
    for layer in network.layers:
        sums = [
            sum((number(w) * v for w, v in zip(row, x, strict=True)), number(bias))
            for row, bias in zip(layer.weight.tolist(), layer.bias.tolist(), strict=True)
        ]
        x = [TRUE[name](s) for name, s in zip(layer.activations, sums, strict=True)]
    return x


def true_score(network: Network, person: np.ndarray) -> mp.mpf:
    """Return the one output to fifty digits."""
    return true_forward(network, person, rational=False)[0]


def compared(problem: Problem, x: np.ndarray) -> np.ndarray:
    """Return the vectors (n, rows) whose p-norm of differences is the distance."""
    phi = problem.metric.phi
    return (x if phi is None else forward(phi, x)) @ problem.metric.matrix.T


def apart(problem: Problem, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the differences of those vectors; exactly 0 only where they are."""
    phi = problem.metric.phi
    d = left - right if phi is None else forward(phi, left) - forward(phi, right)
    return d @ problem.metric.matrix.T


def length(d: np.ndarray, p: float) -> np.ndarray:
    """Return the p-norm of each row."""
    size = np.abs(d)
    top = np.maximum(size.max(axis=1, initial=0.0), 1e-300)
    return top if p == math.inf else top * ((size / top[:, None]) ** p).sum(axis=1) ** (1 / p)


def near(problem: Problem, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Tell which pairs are within eps, by a safe margin; equal people are, and at eps = 0 equal vectors."""
    far = length(apart(problem, left, right), problem.metric.p)
    return np.asarray((far <= max(problem.eps * INSIDE, 1e-299)) | (left == right).all(axis=1))


def exactly_similar(problem: Problem, left: np.ndarray, right: np.ndarray) -> bool:
    """Decide d(left, right) <= eps in rationals, for a phi of relu and identity and whole p; else in fifty digits."""
    phi, p = problem.metric.phi, problem.metric.p
    one, other = (
        [Fraction(v) for v in x.tolist()] if phi is None else true_forward(phi, x, rational=True) for x in (left, right)
    )
    d = [a - b for a, b in zip(one, other, strict=True)]
    sums = [
        abs(sum((Fraction(a) * x for a, x in zip(row, d, strict=True)), Fraction()))
        for row in problem.metric.matrix.tolist()
    ]
    eps = Fraction(problem.eps)
    if p == math.inf:
        return max(sums) <= eps
    if p == int(p):
        return sum(s ** int(p) for s in sums) <= eps ** int(p)
    power = mp.mpf(p)
    total = mp.fsum([(mp.mpf(s.numerator) / mp.mpf(s.denominator)) ** power for s in sums])
    return bool(total <= mp.mpf(problem.eps) ** power)


def gaps(problem: Problem, pairs: Pairs) -> np.ndarray:
    """Return f(left) - f(right), in floats."""
    return forward(problem.network, pairs[0])[:, 0] - forward(problem.network, pairs[1])[:, 0]


# ---- the dense search


def dense_search(problem: Problem, seed: int = 0) -> Found:
    """Return the best pair that sampling, climbing and a smooth optimiser find, in both directions if they differ."""
    found = [_one_direction(problem, seed)]
    if not same_people(problem):
        other = _one_direction(problem.swapped(), seed)
        found.append(Found(other.gap, other.right, other.left))
    return max(found, key=lambda f: f.gap)


def same_people(problem: Problem) -> bool:
    """Tell whether both sides are the same people."""
    one, other = problem.left, problem.right
    sides = ((one.lower, other.lower), (one.upper, other.upper), *zip(one.constraints, other.constraints, strict=True))
    return all(np.array_equal(a, b) for a, b in sides)


def _one_direction(problem: Problem, seed: int) -> Found:
    rng = np.random.default_rng([9, seed])
    sides = crowd(problem.left), crowd(problem.right)
    pairs = _starts(problem, sides, rng)
    pairs = _unlike(sides, _sorted(problem, _real(problem, sides, pairs)), KEPT)
    pairs = _climbed(problem, sides, pairs, CLIMBS, rng)
    changed = _changed(problem, sides, _unlike(sides, _sorted(problem, pairs), CHANGED))
    if len(changed[0]):
        changed = _unlike(sides, _sorted(problem, changed), KEPT)
        pairs = _joined(pairs, _climbed(problem, sides, changed, CLIMBS // 2, rng))
    polished = [pairs, _same_twice(problem)]
    for left, right in zip(*_unlike(sides, _sorted(problem, pairs), POLISHED), strict=True):
        polished.append(_smooth(problem, sides, left, right))
    return _exact(problem, _sorted(problem, _joined(*polished)))


def _same_twice(problem: Problem) -> Pairs:
    """Return pairs of someone with himself, one who is of either side: rounding may have put all others beyond eps."""
    people = np.array([problem.left.person(), problem.right.person()])
    return people, people.copy()


def _joined(*pairs: Pairs) -> Pairs:
    return np.concatenate([p[0] for p in pairs]), np.concatenate([p[1] for p in pairs])


def _sorted(problem: Problem, pairs: Pairs) -> Pairs:
    order = np.argsort(-gaps(problem, pairs), kind="stable")
    return pairs[0][order], pairs[1][order]


def _real(problem: Problem, sides: tuple[Crowd, Crowd], pairs: Pairs) -> Pairs:
    good = near(problem, *pairs) & sides[0].inside(pairs[0]) & sides[1].inside(pairs[1])
    return pairs[0][good], pairs[1][good]


def _unlike(sides: tuple[Crowd, Crowd], pairs: Pairs, count: int) -> Pairs:
    """Return `count` of the pairs: mostly the best of each combination of whole features, then the best of the rest."""
    held = np.concatenate([c for c, _ in sides[1].choices]) if sides[1].choices else np.zeros(0, dtype=int)
    seen: set[tuple[bytes, bytes]] = set()
    first = []
    for k, (left, right) in enumerate(zip(*pairs, strict=True)):
        kind = left[held].tobytes(), right[held].tobytes()
        if kind not in seen:
            seen.add(kind)
            first.append(k)
    first = first[: max(1, 3 * count // 4)]
    order = [*first, *itertools.islice((k for k in range(len(pairs[0])) if k not in set(first)), count)][:count]
    return pairs[0][order], pairs[1][order]


def _starts(problem: Problem, sides: tuple[Crowd, Crowd], rng: np.random.Generator) -> Pairs:
    """Return pairs to begin with: anyone with anyone, whole features shared or changed, the rest drawn together."""
    left, right = sides[0].draw(2 * SAMPLES, rng), sides[1].draw(2 * SAMPLES, rng)
    n = min(len(left), len(right))
    left, right = left[:n], right[:n]
    twins = left.copy(), left.copy()
    for columns, values in sides[1].choices:
        share = rng.random(n) < 0.75
        share &= (left[:, None, columns] == values[None]).all(axis=2).any(axis=1)
        right[np.ix_(share, columns)] = left[np.ix_(share, columns)]
    loose = np.flatnonzero(_loose(problem))
    shift = left.copy(), left.copy()
    some = np.intersect1d(loose, sides[1].free)
    shift[1][:, some] = right[:, some]
    tried = _joined((left, right), twins, shift, _every_choice(sides, rng))
    solved = _solved(problem, sides, tried)
    other = _solved(problem, sides[::-1], solved[::-1])[::-1]
    return _joined(tried, *(_pulled(problem, sides, pairs) for pairs in (tried, solved, other)))


def _every_choice(sides: tuple[Crowd, Crowd], rng: np.random.Generator) -> Pairs:
    """Return a few pairs for every combination of whole features if there are few; half have the free columns alike."""
    width = len(sides[0].lower)
    counts = [[len(values) for _, values in side.choices] for side in sides]
    total = math.prod(counts[0]) * math.prod(counts[1])
    if total > COMBINATIONS:
        return np.zeros((0, width)), np.zeros((0, width))
    options = [itertools.product(*map(range, c)) for c in counts]
    pairs = list(itertools.product(*options)) * min(8, COMBINATIONS // total)
    parts = rng.random((2, len(pairs), width))
    parts[1, len(pairs) // 2 :] = parts[0, len(pairs) // 2 :]
    made = []
    for k, side in enumerate(sides):
        x = np.clip(sides[1].lower + parts[k] * (sides[1].upper - sides[1].lower), side.lower, side.upper)
        for j, (columns, values) in enumerate(side.choices):
            x[:, columns] = values[[pair[k][j] for pair in pairs]]
        made.append(x)
    return made[0], made[1]


def _changed(problem: Problem, sides: tuple[Crowd, Crowd], pairs: Pairs) -> Pairs:
    """Return the pairs with a whole feature of one or of each changed, made similar again where possible."""
    made: list[Pairs] = []
    options = [[(j, k) for j, (_, values) in enumerate(side.choices) for k in range(len(values))] for side in sides]
    for one, other in itertools.product([None, *options[0]], [None, *options[1]]):
        new = pairs[0].copy(), pairs[1].copy()
        for x, side, option in zip(new, sides, (one, other), strict=True):
            if option is not None:
                columns, values = side.choices[option[0]]
                x[:, columns] = values[option[1]]
        made.append(new)
    tried = _joined(*made)
    solved = _solved(problem, sides, tried)
    other_way = _solved(problem, sides[::-1], solved[::-1])[::-1]
    return _real(problem, sides, _joined(*(_pulled(problem, sides, p) for p in (solved, other_way))))


def _loose(problem: Problem) -> np.ndarray:
    """Return the columns that the distance does not see."""
    phi = problem.metric.phi
    if phi is None:
        return np.asarray((problem.metric.matrix == 0.0).all(axis=0))
    return np.asarray((phi.layers[0].weight == 0.0).all(axis=0))


def _pulled(problem: Problem, sides: tuple[Crowd, Crowd], pairs: Pairs, turns: int = 14) -> Pairs:
    """Draw the left one's free columns (the right one's, if none is) towards the other's until they are within eps."""
    if not len(sides[0].free) and len(sides[1].free):
        return _pulled(problem, sides[::-1], pairs[::-1], turns)[::-1]
    left, right = pairs
    target = left.copy()
    tight = np.setdiff1d(sides[0].free, np.flatnonzero(_loose(problem)))
    target[:, tight] = np.clip(right[:, tight], sides[0].lower[tight], sides[0].upper[tight])
    part, step = np.where(near(problem, left, right), 0.0, 1.0), 0.5
    for _ in range(turns):  # part: how much of the way to the target; always near enough, if the target is
        tried = np.maximum(part - step, 0.0)
        moved = left + tried[:, None] * (target - left)
        part = np.where(near(problem, moved, right), tried, part)
        step /= 2
    return np.where((part == 1.0)[:, None], target, left + part[:, None] * (target - left)), right


def _solved(problem: Problem, sides: tuple[Crowd, Crowd], pairs: Pairs) -> Pairs:
    """Take Gauss-Newton steps with the left one's free columns (or the right one's) to come within eps if possible."""
    if not len(sides[0].free) and len(sides[1].free):
        return _solved(problem, sides[::-1], pairs[::-1])[::-1]
    left, right = pairs[0].copy(), pairs[1]
    free = sides[0].free
    if not len(free) or not len(left):
        return left, right
    goal = compared(problem, right)
    for _ in range(3):
        at = compared(problem, left)
        off = at - goal
        size = length(off, problem.metric.p)
        off *= np.maximum(0.0, 1.0 - problem.eps * (1 - 1e-6) / np.maximum(size, 1e-300))[:, None]
        slopes = np.stack([(compared(problem, _shifted(left, c, 1e-6)) - at) / 1e-6 for c in free], axis=2)
        step = -np.einsum("nij,nj->ni", np.linalg.pinv(slopes, rcond=1e-6), off)
        left[:, free] = np.clip(left[:, free] + step, sides[0].lower[free], sides[0].upper[free])
    return left, right


def _shifted(x: np.ndarray, column: int, by: float) -> np.ndarray:
    moved = x.copy()
    moved[:, column] += by
    return moved


def _climbed(problem: Problem, sides: tuple[Crowd, Crowd], pairs: Pairs, turns: int, rng: np.random.Generator) -> Pairs:
    """Move each pair at random, by steps that shrink, and keep what is real and wider apart."""
    left, right = pairs[0].copy(), pairs[1].copy()
    value = gaps(problem, (left, right))
    for turn in range(turns):
        size = 0.5 * 0.9 ** (turn % (CLIMBS // 2))
        new = _stepped(problem, sides, (left, right), size, rng)
        new = _pulled(problem, sides, _solved(problem, sides, new) if turn % 4 == 0 else new, 8)
        gap = gaps(problem, new)
        better = (gap > value) & near(problem, *new) & sides[0].inside(new[0]) & sides[1].inside(new[1])
        left[better], right[better], value[better] = new[0][better], new[1][better], gap[better]
    return left, right


def _stepped(
    problem: Problem, sides: tuple[Crowd, Crowd], pairs: Pairs, size: float, rng: np.random.Generator
) -> Pairs:
    """Propose new pairs: moved together, apart or one alone; sometimes with a new whole value for one or both."""
    n, width = pairs[0].shape
    step = size * rng.normal(size=(n, width)) * (rng.random((n, width)) < 0.5)
    which = rng.random((n, 1))
    other = np.where(which < 0.4, step, np.where(which < 0.7, 0.0, size * rng.normal(size=(n, width))))
    new = []
    for x, side, move in ((pairs[0], sides[0], step), (pairs[1], sides[1], other)):
        y = x.copy()
        span = (side.upper - side.lower)[side.free]
        y[:, side.free] = np.clip(
            x[:, side.free] + move[:, side.free] * span, side.lower[side.free], side.upper[side.free]
        )
        new.append(y)
    for j in range(len(sides[0].choices)):
        columns = sides[0].choices[j][0]
        kinds = [side.choices[j][1] for side in sides]
        picked = [values[rng.integers(len(values), size=n)] for values in kinds]
        joint = (picked[0][:, None] == kinds[1][None]).all(axis=2).any(axis=1)
        how = rng.random(n)
        for x, rows, values in (
            (new[0], (how < 0.05) | ((how > 0.9) & joint), picked[0]),
            (new[1], (how > 0.05) & (how < 0.1), picked[1]),
            (new[1], (how > 0.9) & joint, picked[0]),
        ):
            x[np.ix_(rows, columns)] = values[rows]
    return new[0], new[1]


def _smooth(problem: Problem, sides: tuple[Crowd, Crowd], left: np.ndarray, right: np.ndarray) -> Pairs:
    """Polish the free columns of one pair by sequential quadratic programming; whole features are held."""
    p, eps, rows = problem.metric.p, problem.eps, len(problem.metric.matrix)
    frees = sides[0].free, sides[1].free
    n, m = len(frees[0]), len(frees[0]) + len(frees[1])
    slack = rows if p == 1.0 else 0  # |differences| as variables of their own
    if not m or eps == 0.0:
        return left[None], right[None]

    def people(x: np.ndarray) -> Pairs:
        one, other = np.tile(left, (len(x), 1)), np.tile(right, (len(x), 1))
        one[:, frees[0]], other[:, frees[1]] = x[:, :n], x[:, n:m]
        return one, other

    def rooms(x: np.ndarray) -> np.ndarray:
        one, other = people(x)
        d = apart(problem, one, other) / (eps * (1 - 4e-9))
        if p == 1.0:
            s = x[:, m:]
            kept = [s - d, s + d, 1.0 - s.sum(axis=1, keepdims=True)]
        elif p == math.inf:
            kept = [1.0 - d, 1.0 + d]
        else:
            kept = [1.0 - (np.abs(d) ** p).sum(axis=1, keepdims=True)]
        for side, y in ((sides[0], one), (sides[1], other)):
            kept.append(side.b - ROOM * (1 + np.abs(side.b)) - y @ side.A.T)
        return np.concatenate(kept, axis=1)

    def around(x: np.ndarray) -> np.ndarray:
        return np.concatenate([x[None] + 1e-7 * np.eye(len(x)), x[None] - 1e-7 * np.eye(len(x))])

    def slope(values: np.ndarray) -> np.ndarray:
        half = len(values) // 2
        return (values[:half] - values[half:]) / 2e-7

    def steepness(x: np.ndarray) -> np.ndarray:
        return slope(rooms(around(x))).T

    low = np.concatenate([sides[0].lower[frees[0]], sides[1].lower[frees[1]]])
    high = np.concatenate([sides[0].upper[frees[0]], sides[1].upper[frees[1]]])
    start = np.concatenate([left[frees[0]], right[frees[1]]])
    sizes = np.abs(apart(problem, left[None], right[None]))[0] / eps
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        solved = minimize(
            lambda x: -float(gaps(problem, people(x[None]))[0]),
            np.concatenate([start, sizes[:slack]]),
            jac=lambda x: -slope(gaps(problem, people(around(x)))),
            bounds=[*zip(low, high, strict=True), *[(0.0, 1.0)] * slack],
            constraints={"type": "ineq", "fun": lambda x: rooms(x[None])[0], "jac": steepness},
            method="SLSQP",
            options={"maxiter": 20, "ftol": 1e-10},
        )
    x = np.clip(np.nan_to_num(solved.x[:m]), low, high)
    ways = np.array([start + share * (x - start) for share in (1.0, 1 - 1e-8, 1 - 1e-6, 1 - 1e-4, 0.99, 0.9, 0.0)])
    found = people(np.clip(ways, low, high))
    pulled = _pulled(problem, sides, found, 30)
    return _real(problem, sides, _joined(found, pulled, (left[None], right[None])))


def _exact(problem: Problem, pairs: Pairs) -> Found:
    """Return the widest of the sorted pairs that is admitted exactly, its gap in fifty digits rounded down."""
    for left, right in zip(*pairs, strict=True):
        if admitted(problem, left, right):
            gap = true_score(problem.network, left) - true_score(problem.network, right)
            return Found(max(0.0, math.nextafter(float(gap), -math.inf)), left, right)
    raise AssertionError("the search lost even the pair of someone with himself")


def admitted(problem: Problem, left: np.ndarray, right: np.ndarray) -> bool:
    """Tell, exactly, whether the pair exists and is similar."""
    exist = not not_a_person(problem.left, left) and not not_a_person(problem.right, right)
    return exist and exactly_similar(problem, left, right)


# ---- what a certificate says


def violations(problem: Problem, cert: Certificate, found: Found) -> list[str]:
    """Return what is wrong with a certificate, in words; an empty list if nothing is."""
    left, right = cert.witness.left, cert.witness.right
    wrong = []
    if not 0.0 <= cert.lower <= cert.upper:
        wrong.append(f"not 0 <= lower <= upper: {cert.lower!r}, {cert.upper!r}")
    if found.gap > cert.upper:
        wrong.append(f"a pair has the gap {found.gap!r}, upper is {cert.upper!r}")
    wrong += [f"left: {w}" for w in not_a_person(problem.left, left)]
    wrong += [f"right: {w}" for w in not_a_person(problem.right, right)]
    if not exactly_similar(problem, left, right):
        wrong.append("the witness is not a similar pair")
    gap = true_score(problem.network, left) - true_score(problem.network, right)
    gap = gap if same_people(problem) else abs(gap)
    if gap < mp.mpf(cert.lower):
        wrong.append(f"the witness has the gap {float(gap)!r}, lower is {cert.lower!r}")
    for (s0, lower0, upper0), (s1, lower1, upper1) in itertools.pairwise(cert.trace):
        if s1 < s0 or lower1 < lower0 or upper1 > upper0:
            wrong.append(f"the trace goes back from {(s0, lower0, upper0)} to {(s1, lower1, upper1)}")
    if not cert.trace or cert.trace[-1][1:] != (cert.lower, cert.upper):
        wrong.append("the trace does not end at the bounds")
    return wrong
