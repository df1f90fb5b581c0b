"""Run: the best bounds so far, the clock, and who wants to hear about them. Every claim passes through here."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog, lsq_linear

from likewise.bounds import Reach
from likewise.certificate import Certificate, Proof, Witness
from likewise.domain import Domain
from likewise.errors import SoundnessError
from likewise.problem import Problem
from likewise.proof import Later, Log, read_shape
from likewise.proof.coding import What
from likewise.rounding import Array


@dataclass(frozen=True, slots=True)
class News:
    """What a progress listener is told."""

    seconds: float
    lower: float
    upper: float
    nodes: int
    seconds_left: float


Listener = Callable[[News], None]
SHRINK = (1e-15, 1e-13, 1e-11, 1e-9, 1e-8, 1e-7, 3e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 3e-2, 0.1, 0.2, 0.4, 1.0)
DRAWN = (1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)  # shares of the way to well inside
NEARLY = 1e-9  # how far floats may put a gap below what it is, relative; a pair that is worse by more is not looked at
UNDECIDED = 1e-3  # of the gap, to which bounds are closed while delta is between them
SAME = 1e-8  # differences below this are a solver's tolerance


class Run:
    """The state of one certification: bounds that only ever tighten, within a time limit.

    A problem whose domains differ has two directions, each with its own upper bound; the claim is the larger one.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        seconds: float,
        gap: float,
        delta: float | None = None,
        listener: Listener | None = None,
    ) -> None:
        self.problem = problem
        self.gap = gap
        self.delta = delta
        self.started = time.monotonic()
        self.deadline = self.started + seconds
        self.lower = 0.0
        self.nodes = 0
        self.trace: list[tuple[float, float, float]] = []
        self.trusted: list[str] = []
        self.notes: list[str] = []
        self.earlier: Proof | None = None  # whose tree to begin with
        self.logs: list[Log] = []  # of each direction, once an engine has begun to write one
        self._listener = listener
        self._pair = self._anyone()
        self._uppers = [math.inf] * (1 if problem.symmetric else 2)
        self._lowers = [0.0] * len(self._uppers)
        self._direction = 0

    def _anyone(self) -> tuple[Array, Array]:
        """Return a pair that certainly exists: the same person twice."""
        person = self.problem.left.person()
        self.problem.right.require(person, "a person of the left domain")
        return person, person.copy()

    @property
    def directions(self) -> Iterable[Problem]:
        """Yield the problem to maximise f(left) - f(right) of, for each direction; half the time left for each."""
        end = self.deadline
        for index in range(len(self._uppers)):
            self._direction = index
            self.deadline = end if index + 1 == len(self._uppers) else time.monotonic() + self.seconds_left / 2
            yield self.problem.swapped() if index else self.problem
            self.deadline = end

    @property
    def upper(self) -> float:
        """The proven bound over both directions."""
        return max(self._uppers)

    @property
    def shown(self) -> float:
        """The proven bound of the current direction."""
        return self._uppers[self._direction]

    @property
    def seen(self) -> float:
        """The largest gap of a pair of the current direction."""
        return self._lowers[self._direction]

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline, not below 0."""
        return max(0.0, self.deadline - time.monotonic())

    @property
    def done(self) -> bool:
        """Whether this direction needs no more work: gap closed, question decided, or out of time."""
        return self.closes(self.shown) or self.seconds_left <= 0.0

    def closes(self, upper: float) -> bool:
        """Tell whether a bound would close the gap, or decide the question.

        A delta that lies within a closed gap is worth some more work.
        """
        wanted = self.gap
        if self.delta is not None:
            if upper <= self.delta or self.lower > self.delta:
                return True
            wanted = UNDECIDED * self.gap
        return upper - self.lower <= wanted

    def offer(self, left: Array, right: Array) -> bool:
        """Take a candidate pair of the current direction; it counts only if it exists, is similar and scores wider.

        The gap is the network's own, evaluated with outward rounding. A pair that would exceed a proven upper bound is
        a contradiction and stops the run.
        """
        problem = self.problem.swapped() if self._direction else self.problem
        scores, known = problem.network(np.stack([left, right])), self.seen
        if not scores[0] - scores[1] > known - NEARLY * (1.0 + known) or not problem.admits(left, right):
            return False
        gap = problem.gap_lower(left, right)
        if gap > self.shown:
            raise SoundnessError(f"a pair with gap {gap!r} exceeds the proven upper {self.shown!r}")
        self._lowers[self._direction] = max(self.seen, gap)
        if gap <= self.lower:
            return False
        self.lower = gap
        self._pair = (right.copy(), left.copy()) if self._direction else (left.copy(), right.copy())
        self._tell()
        return True

    def prove(self, upper: float, trusted: str | None = None) -> None:
        """Take a proven upper bound of the current direction, and what it had to trust."""
        if not upper >= 0.0:
            upper = 0.0 if upper < 0.0 else math.inf
        if upper >= self.shown:
            return
        if upper < self.seen:
            raise SoundnessError(f"upper {upper!r} was claimed below the gap {self.seen!r} of a real pair")
        self._uppers[self._direction] = upper
        if trusted and trusted not in self.trusted:
            self.trusted.append(trusted)
        self._tell()

    def shape(self, inner: Problem) -> Iterator[What | None]:
        """Yield the splits of an earlier search in this direction, if there was one."""
        if self.earlier is not None and self._direction < len(self.earlier.directions):
            with self.earlier.directions[self._direction].open() as file:
                yield from read_shape(inner, file)

    def pair(self) -> tuple[Array, Array]:
        """Return the witness in the current direction's roles."""
        left, right = self._pair
        return (right, left) if self._direction else (left, right)

    def tick(self, nodes: int | None = None) -> None:
        """Tell the listener that time has passed."""
        if nodes is not None:
            self.nodes = nodes
        if self._listener:
            self._listener(News(self.seconds, self.lower, self.upper, self.nodes, self.seconds_left))

    def _tell(self) -> None:
        self.trace.append((self.seconds, self.lower, self.upper))
        self.tick()

    def certificate(self, engine: str, solver: str) -> Certificate:
        """Return what is known now."""
        left, right = self._pair
        scores = self.problem.network(np.stack([left, right]))
        distance = self.problem.metric.distance(left, right)
        witness = Witness(left, right, float(scores[0]), float(scores[1]), distance, self.problem.right)
        end = (self.seconds, self.lower, self.upper)
        proof, taken = self._proof()
        return Certificate(
            self.problem,
            self.lower,
            self.upper,
            witness,
            engine,
            solver,
            self.seconds,
            (*self.trace, end),
            (*self.trusted, *taken),
            self.nodes,
            tuple(self.notes),
            proof=proof,
        )

    def _proof(self) -> tuple[Proof | None, tuple[str, ...]]:
        """Return the proof of the upper bound, if it rests on nothing else; and what else it would rest on."""
        if self.trusted or len(self.logs) < len(self._uppers):
            return None, ()
        taken = tuple(dict.fromkeys(what for log in self.logs for what in log.trusted))
        return (None if taken else Proof(self.problem.eps, Later(self.logs))), taken


def repaired(problem: Problem, where: Reach, left: Array, right: Array) -> tuple[Array, Array] | None:
    """Turn a solver's float pair into one that exists, or return None.

    Categories and integers are rounded, the box is kept, and what may vary of the difference is drawn, as little as it
    takes, towards the one that brings both people closest.
    """
    left, right = _rounded(left, problem.left), _rounded(right, problem.right)
    left, right = _within_constraints(left, problem.left), _within_constraints(right, problem.right)
    left = np.where(where.shared, right, left)
    left = np.where(np.abs(left - right) < SAME, right, left)
    if problem.admits(left, right):
        return left, right
    columns = np.setdiff1d(problem.right.continuous, np.flatnonzero(where.shared))
    if (problem.left.lower == problem.left.upper).all():  # then only the right person can move
        turned = _drawn_in(problem.swapped(), where, right, left, columns)
        return None if turned is None else (turned[1], turned[0])
    return _drawn_in(problem, where, left, right, columns)


def _within_constraints(person: Array, domain: Domain) -> Array:
    """Draw a person who misses side constraints by a little towards one, alike in what is whole, who is well inside."""
    A, b = domain.constraints
    if not len(b) or domain.contains(person):
        return person
    columns = domain.continuous
    held = person.copy()
    held[columns] = 0.0
    norms = np.linalg.norm(A[:, columns], axis=1)
    solved = linprog(
        np.append(np.zeros(len(columns)), -1.0),
        A_ub=np.column_stack([A[:, columns], norms]),
        b_ub=b - A @ held,
        bounds=[*zip(domain.lower[columns], domain.upper[columns], strict=True), (0.0, 1.0)],
    )
    if solved.x is None:
        return person
    for share in DRAWN:
        moved = person.copy()
        moved[columns] += share * (solved.x[:-1] - person[columns])
        moved = np.clip(moved, domain.lower, domain.upper)
        if domain.contains(moved):
            return moved
    return person


def _drawn_in(
    problem: Problem, where: Reach, left: Array, right: Array, columns: np.ndarray
) -> tuple[Array, Array] | None:
    closest = _closest(problem, where, left, right, columns)
    for shrink in SHRINK:
        moved = left.copy()
        moved[columns] += shrink * (right[columns] + closest - left[columns])
        moved = np.clip(moved, problem.left.lower, problem.left.upper)
        if problem.admits(moved, right):
            return moved, right
    return None


def _rounded(x: Array, domain: Domain) -> Array:
    person = domain.snap(x)
    for group in domain.groups:
        one = np.zeros(group.stop - group.start)
        one[int(np.argmax(person[group]))] = 1.0
        person[group] = one
    return person


def _closest(problem: Problem, where: Reach, left: Array, right: Array, columns: np.ndarray) -> Array:
    """Return the difference in the given columns that is least in the 2-norm of the metric, the others held.

    An embedding that is not linear is followed along its derivatives at the left person.
    """
    d = left - right
    if problem.metric.is_linear:
        matrix = where.differences.metric.matrix
        rest = d.copy()
        rest[columns] = 0.0
        if not rest.any():
            return np.zeros(len(columns))
        goal = -(matrix @ rest)
    else:
        one, other = problem.metric.embed(np.stack([left, right]))
        phi = problem.metric.phi
        matrix = problem.metric.matrix @ (np.eye(len(left)) if phi is None else phi.jacobian(left))
        goal = matrix[:, columns] @ d[columns] - problem.metric.matrix @ (one - other)
    if not len(columns) or not len(matrix):
        return np.zeros(len(columns))
    lower = problem.left.lower[columns] - right[columns]
    upper = problem.left.upper[columns] - right[columns]
    wide = np.where(lower < upper, upper, np.nextafter(upper, np.inf))
    return np.asarray(lsq_linear(matrix[:, columns], goal, (lower, wide)).x)
