"""Every option of training, its default for each method, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from likewise.errors import InputError

METHODS = ("certified", "milp", "sensr", "ftu")
SOLVERS = ("exact", "milp", "gradient")
SCARCE = 0.02  # the delta from which most of the loss is about decisions by default; below it, half


@dataclass(frozen=True, slots=True)
class Settings:
    """How a network is trained. Options that a method does not use are refused, not ignored (see `OWN`).

    `hidden` are the widths of the relu layers; `eps` says who is similar, `delta` how far apart they may be scored.
    An epoch passes as many people as there are to train on, in batches of `batch`. If none is given, that is a 36th of
    them, at most 1,024 and at least 96; of fewer than 768 people an eighth, at least 32. `balanced` draws as many
    people of either class into each batch. `validation` is the share of the training people that early stopping looks
    at, with `patience` epochs without progress; it is left out if it were small. `l2` is per person: the loss
    has l2 / people * (sum of squared weights).
    """

    method: str = "certified"
    hidden: tuple[int, ...] = (16, 16)
    eps: float = 0.2
    delta: float | None = None
    balanced: bool = True
    calibrate: bool = True
    epochs: int = 30
    batch: int | None = None
    rate: float = 0.01
    l2: float = 30.0
    seed: int = 0
    validation: float = 0.1
    patience: int = 15
    certify: float = 10.0  # seconds; 0 trains without a certificate
    penalty: float = 1.0  # certified: weight of the bound in the loss, if no delta is given
    decision: float | None = None  # certified: share of the loss that only asks on which side of 1/2 a score falls
    sharpness: float = 15.0  # certified: how closely that part of the loss follows the decision
    local: float = 0.0  # certified: weight of the difference at the worst neighbours of the batch
    rounds: int = 2  # certified: how often a delta is approached, each time with what the certificate taught
    fairness: float = 0.5  # milp: weight of the worst neighbour in the second half
    solver: str = "exact"  # milp: how the worst neighbour is found
    as_published: bool = False  # milp: the losses, batches and steps of the released code
    steps: int = 10  # sensr, and milp with gradient: ascent steps
    transport: float = 10.0  # sensr: price of moving, the transport multiplier

    def batch_of(self, people: int) -> int:
        """Return how many people are in a batch."""
        return self.batch or min(max(people // 36, min(people // 8, 96), 32), 1024)

    def decision_of(self) -> float:
        """Return that share. If none is given: 0.8 where slopes are scarce but not forbidden, 0.5 below, else 0.

        Below SCARCE next to nothing may depend on what can differ, and there is little to steer.
        """
        if self.decision is not None:
            return self.decision
        if self.delta is None:
            return 0.0
        return 0.8 if self.delta >= SCARCE else 0.5

    def __repr__(self) -> str:
        hidden = ",".join(map(str, self.hidden)) or "none"
        target = "" if self.delta is None else f", delta={self.delta:g}"
        return f"Settings({self.method}, hidden {hidden}, eps={self.eps:g}{target}, seed {self.seed})"


OWN: Mapping[str, tuple[str, ...]] = {
    "certified": ("delta", "penalty", "decision", "sharpness", "local", "rounds"),
    "milp": ("fairness", "solver", "as_published", "steps"),
    "sensr": ("steps", "transport"),
    "ftu": (),
}
DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "certified": {},
    "milp": {"epochs": 20},
    "sensr": {"epochs": 20},
    "ftu": {},
}
COUNTS = ("epochs", "patience", "steps", "rounds")
ABOVE_0 = ("rate", "sharpness", "transport")
AT_LEAST_0 = ("eps", "l2", "penalty", "certify", "local")
SHARES = ("decision", "fairness")


def settings_of(method: str, options: Mapping[str, Any]) -> Settings:
    """Return the settings of a method; None stands for the default, and an option of another method is refused."""
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}; known: {', '.join(METHODS)}")
    known = {field.name for field in fields(Settings)} - {"method"}
    given = {name: value for name, value in options.items() if value is not None}
    unknown = [name for name in given if name not in known]
    if unknown:
        raise InputError(f"unknown option {unknown[0]!r} of training\nknown: {', '.join(sorted(known))}")
    owned = {name for names in OWN.values() for name in names} - set(OWN[method])
    plain = Settings(method=method)
    foreign = [name for name in given if name in owned and given[name] != getattr(plain, name)]
    if foreign:
        users = ", ".join(name for name, own in OWN.items() if foreign[0] in own)
        raise InputError(f"the option {foreign[0]!r} is for the method {users}, not for {method}")
    if "hidden" in given:
        given["hidden"] = _widths(given["hidden"])
    settings = replace(plain, **{**DEFAULTS[method], **given})
    _check(settings)
    return settings


def _widths(hidden: Any) -> tuple[int, ...]:
    listed = [hidden] if isinstance(hidden, int) else list(hidden) if isinstance(hidden, Sequence) else None
    if listed is None or not all(_is_count(width) for width in listed) or isinstance(hidden, str):
        raise InputError(f"hidden must be a list of widths such as [16, 16], got {hidden!r}")
    return tuple(int(width) for width in listed)


def _is_count(value: Any) -> bool:
    return not isinstance(value, bool) and hasattr(value, "__index__") and value >= 1


def _check(settings: Settings) -> None:
    for name in COUNTS:
        if not _is_count(getattr(settings, name)):
            raise InputError(f"{name} must be a whole number >= 1, got {getattr(settings, name)!r}")
    if isinstance(settings.seed, bool) or not hasattr(settings.seed, "__index__") or settings.seed < 0:
        raise InputError(f"seed must be a whole number >= 0, got {settings.seed!r}")
    for name in (*ABOVE_0, *AT_LEAST_0, *SHARES, "validation"):
        value = getattr(settings, name)
        if value is None and name == "decision":
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
            raise InputError(f"{name} must be a finite number >= 0, got {value!r}")
        if name in ABOVE_0 and value == 0:
            raise InputError(f"{name} must be above 0")
        if name in (*SHARES, "validation") and value > (0.9 if name == "validation" else 1.0):
            raise InputError(f"{name} must be a share of 1, got {value!r}")
    if settings.delta is not None and not (isinstance(settings.delta, int | float) and 0 <= settings.delta < math.inf):
        raise InputError(f"delta must be a finite number >= 0, got {settings.delta!r}")
    if settings.solver not in SOLVERS:
        raise InputError(f"unknown solver {settings.solver!r} of the inner problem; known: {', '.join(SOLVERS)}")
    least = 2 if settings.balanced else 1
    if settings.batch is not None and not (_is_count(settings.batch) and settings.batch >= least):
        raise InputError(f"batch must be a whole number >= {least}, got {settings.batch!r}")
