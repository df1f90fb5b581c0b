"""The front door: coerce what users hand over, then walk the line from problem to certificate."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from likewise.certificate import Certificate
from likewise.domain import Domain
from likewise.errors import InputError, MissingExtra
from likewise.load import load
from likewise.metric import Metric
from likewise.problem import Problem
from likewise.search import News, search
from likewise.train.settings import settings_of

if TYPE_CHECKING:
    from likewise.train.trained import Trained

INTERRUPTED = "interrupted"  # the note of a search that Ctrl-C ended
PAIR_FROM, UPPER_FROM = "the pair was found for eps = ", "the upper bound was proven for eps = "
LEAST = 1e-3  # seconds that a question gets even if the time for all of them is over


def certify(
    network: Any,
    domain: Domain,
    metric: Metric,
    eps: float,
    *,
    delta: float | None = None,
    seconds: float = 60.0,
    gap: float = 1e-5,
    engine: str = "auto",
    solver: str = "highs",
    threads: int | None = None,
    left: Domain | ArrayLike | None = None,
    output: int = 0,
    scale: str = "score",
    progress: Callable[[News], None] | None = None,
    resume: Certificate | None = None,
) -> Certificate:
    """Bound how far apart two eps-similar people can be scored.

    Returns a certificate with proven `lower <= delta_max <= upper`, `lower` shown by a real pair. It stops when the
    bounds are within `gap`, when `delta` is decided, or after `seconds`; Ctrl-C returns what is known by then.
    `left` fixes one person, or a part of the domain, and solves both directions. `progress` is called with News.
    `resume` is an earlier certificate of the same question: the search begins with its pair and the parts its proof
    ended with. Nothing that it claims is taken over without proof.
    """
    problem = make_problem(network, domain, metric, eps, left=left, output=output, scale=scale)
    count = check_options(delta, seconds, gap, threads)
    start = None
    if resume is not None:
        if resume.problem.digest != problem.digest:
            raise InputError("the certificate to resume is about another question (model, domain, metric, eps or left)")
        start = (resume.witness.left, resume.witness.right)
    found = search(
        problem,
        engine=engine,
        solver=solver,
        seconds=seconds,
        gap=gap,
        delta=delta,
        threads=count,
        listener=progress,
        start=start,
        earlier=None if resume is None else resume.proof,
    )
    return replace(found, scale=scale, output=output)


def profile(
    network: Any,
    domain: Domain,
    metric: Metric,
    eps: Sequence[float] | np.ndarray,
    *,
    delta: float | None = None,
    seconds: float = 60.0,
    gap: float = 1e-5,
    engine: str = "auto",
    solver: str = "highs",
    threads: int | None = None,
    left: Domain | ArrayLike | None = None,
    output: int = 0,
    scale: str = "score",
    progress: Callable[[News], None] | None = None,
) -> list[Certificate]:
    """Return a certificate for each eps, in the order given; `seconds` is the time for all of them together.

    Each certificate stands alone. Work is shared: people who are similar at a small eps are so at a larger one, so a
    pair found is carried upwards and an upper bound downwards, and both bounds grow with eps. Ctrl-C ends the search,
    and what is known by then is returned for every eps.
    """
    if isinstance(eps, str | bytes) or not isinstance(eps, Sequence | np.ndarray) or not len(eps):
        raise InputError(f"eps must be a list of at least one number, got {eps!r}")
    count = check_options(delta, seconds, gap, threads)
    one = load(Path(network) if isinstance(network, str) else network)
    asked = [make_problem(one, domain, metric, e, left=left, output=output, scale=scale) for e in eps]
    end = time.monotonic() + seconds

    def run(problem: Problem, share: float, start: Certificate | None, ceiling: float) -> Certificate:
        pair = None if start is None else (start.witness.left, start.witness.right)
        options: dict[str, Any] = {"engine": engine, "solver": solver, "gap": gap, "delta": delta, "threads": count}
        return search(problem, seconds=share, listener=progress, start=pair, ceiling=ceiling, **options)

    distinct = {problem.eps: problem for problem in asked}
    found = _upwards([distinct[e] for e in sorted(distinct)], run, end)
    if INTERRUPTED not in found[-1].notes:
        found = _again(found, run, end, gap, delta)
    shared = {one.eps: replace(one, scale=scale, output=output) for one in _monotone(found)}
    return [shared[problem.eps] for problem in asked]


def train(
    data: Any,
    method: str = "certified",
    hidden: Sequence[int] = (16, 16),
    eps: float = 0.2,
    metric: str | Metric | None = None,
    *,
    delta: float | None = None,
    balanced: bool = True,
    calibrate: bool = True,
    epochs: int | None = None,
    seed: int = 0,
    from_: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    threads: int | None = None,
    progress: Callable[[dict[str, float]], None] | None = None,
    **options: Any,
) -> Trained:
    """Train a network on a Dataset or on Examples, and certify what will be used: its calibration is folded in.

    `method` is "certified", "milp", "sensr" or "ftu". With `delta` (certified only) the answer is the most accurate
    network found whose certificate says upper <= delta; `.reached` says whether there is one. `metric` is one by name
    ("mahalanobis"), or a Metric. `from_` is a network to repair instead of random weights. The state is written to
    `checkpoint` after each epoch, and `resume` goes on from it. Further options are fields of likewise.train.settings.
    """
    if find_spec("torch") is None:
        raise MissingExtra("torch (to train)", "train")
    from likewise.train.examples import examples_of
    from likewise.train.run import train as run

    given = {"hidden": hidden, "eps": eps, "delta": delta, "balanced": balanced, "calibrate": calibrate}
    settings = settings_of(method, {**given, "epochs": epochs, "seed": seed, **options})
    begin = None if from_ is None else load(Path(from_) if isinstance(from_, str) else from_)
    if threads is not None:
        check_options(None, 1.0, 1.0, threads)
    examples = examples_of(data, metric)
    return run(examples, settings, begin=begin, progress=progress, keep=checkpoint, resume=resume, threads=threads)


Search = Callable[[Problem, float, Certificate | None, float], Certificate]


def _upwards(problems: Sequence[Problem], run: Search, end: float) -> list[Certificate]:
    """Search each eps in turn, from the pair of the one before, with an equal share of the time that is left."""
    found: list[Certificate] = []
    for i, problem in enumerate(problems):
        before = found[-1] if found else None
        if before is not None and INTERRUPTED in before.notes:
            # The pair is one of this problem too. Nothing else is known of it.
            known = replace(before, problem=problem, upper=math.inf, trusted=(), proof=None)
            found.append(replace(known, trace=(), seconds=0.0, nodes=0))
            continue
        share = max((end - time.monotonic()) / (len(problems) - i), LEAST)
        found.append(run(problem, share, before, math.inf))
    return found


def _again(found: Sequence[Certificate], run: Search, end: float, gap: float, delta: float | None) -> list[Certificate]:
    """Give the time that some did not need to those that are still open, if it is more than they had."""
    best = _monotone(found)
    todo = [i for i, one in enumerate(best) if one.gap > gap and (delta is None or one.verdict(delta) == "undecided")]
    for k, i in enumerate(todo):
        old, share = best[i], (end - time.monotonic()) / (len(todo) - k)
        if share <= old.seconds:
            continue
        new = run(old.problem, share, old, old.upper)
        best[i] = replace(
            new,
            seconds=old.seconds + new.seconds,
            trace=(*old.trace, *((old.seconds + t, max(a, old.lower), min(b, old.upper)) for t, a, b in new.trace)),
            trusted=new.trusted if new.upper < old.upper else old.trusted,
            proof=new.proof if new.upper < old.upper else old.proof,
            nodes=old.nodes + new.nodes,
            notes=(*_still(old, new), *new.notes),
        )
        if INTERRUPTED in new.notes:
            break
    return best


def _still(old: Certificate, new: Certificate) -> list[str]:
    """Return the notes on where bounds came from that a second search has not made untrue."""
    stale = ((PAIR_FROM, new.lower > old.lower), (UPPER_FROM, new.upper < old.upper))
    return [note for note in old.notes if not any(is_new and note.startswith(start) for start, is_new in stale)]


def _monotone(found: Sequence[Certificate]) -> list[Certificate]:
    """Return certificates (of increasing eps) with pairs carried upwards and upper bounds downwards."""
    best = list(found)
    source = 0
    for i, one in enumerate(best):
        donor = best[source]
        if one.lower < donor.lower:
            notes = (*one.notes, f"{PAIR_FROM}{donor.eps!r}")
            best[i] = replace(one, lower=donor.lower, witness=donor.witness, notes=notes)
        else:
            source = i
    source = len(best) - 1
    for i in reversed(range(len(best))):
        one, donor = best[i], best[source]
        if one.upper > donor.upper:
            notes = (*one.notes, f"{UPPER_FROM}{donor.eps!r}")
            best[i] = replace(one, upper=donor.upper, trusted=donor.trusted, proof=donor.proof, notes=notes)
        else:
            source = i
    return [
        one
        if one.trace and one.trace[-1][1:] == (one.lower, one.upper)
        else replace(one, trace=(*one.trace, (one.seconds, one.lower, one.upper)))
        for one in best
    ]


def make_problem(
    network: Any,
    domain: Domain,
    metric: Metric,
    eps: float,
    *,
    left: Domain | ArrayLike | None = None,
    output: int = 0,
    scale: str = "score",
) -> Problem:
    """Return the question as a value, every part of it checked."""
    if not isinstance(domain, Domain):
        raise InputError(f"domain must be a likewise.Domain, got {type(domain).__name__}")
    if not isinstance(metric, Metric):
        raise InputError(f"metric must be a likewise metric, got {type(metric).__name__}")
    if isinstance(output, bool) or not isinstance(output, int):
        raise InputError(f"output must be a whole number, got {output!r}")
    one = load(Path(network) if isinstance(network, str) else network).select(output)
    if scale not in ("score", "logit"):
        raise InputError(f"scale must be 'score' or 'logit', got {scale!r}")
    who = domain if left is None else left if isinstance(left, Domain) else domain.at(left)
    return Problem(one.logit() if scale == "logit" else one, who, domain, metric, eps)


def check_options(delta: float | None, seconds: float, gap: float, threads: int | None) -> int:
    """Refuse limits that are none, and return how many threads there are."""
    for name, value in (("seconds", seconds), ("gap", gap)):
        if not (_is_number(value) and value > 0):
            raise InputError(f"{name} must be a finite number above 0, got {value!r}")
    if delta is not None and not (_is_number(delta) and delta >= 0):
        raise InputError(f"delta must be a finite number >= 0, got {delta!r}")
    count = threads if threads is not None else os.cpu_count() or 1
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InputError(f"threads must be a whole number >= 1, got {threads!r}")
    return count


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
