"""The state of the loop as a file: written atomically after each epoch, so that kill -9 costs at most one."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from likewise.certificate import write_atomically
from likewise.errors import FileError, InputError
from likewise.load._arrays import read_arrays
from likewise.network import Network
from likewise.train.examples import Examples
from likewise.train.layers import tensor
from likewise.train.loop import State
from likewise.train.settings import Settings

VERSION = 1
NUMBERS = ("epoch", "steps", "slope", "best_slope", "best_loss", "waited", "seconds")


def question(examples: Examples, settings: Settings, begin: Network | None) -> str:
    """Return a digest of all that the result depends on: a checkpoint of another question is refused."""
    sha = hashlib.sha256(f"likewise training {VERSION}".encode())
    plain = {name: value for name, value in asdict(settings).items() if name != "certify"}
    sha.update(json.dumps(plain, sort_keys=True).encode())
    for array in (examples.X_train, examples.y_train):
        sha.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    digests = [examples.domain.digest, examples.metric.digest, "" if begin is None else begin.digest]
    return hashlib.sha256(sha.digest() + "".join(digests).encode()).hexdigest()


def save(path: Path, asked: str, state: State, outer: Mapping[str, Any]) -> None:
    """Write the state, and where the run around the loop is."""
    arrays: dict[str, np.ndarray] = {}
    for i, (part, (first, second)) in enumerate(zip(state.raw, state.moments, strict=True)):
        arrays |= {f"raw{i}": part.detach().numpy(), f"first{i}": first.numpy(), f"second{i}": second.numpy()}
    arrays |= {f"best{i}": part.numpy() for i, part in enumerate(state.best)}
    about = {
        "version": VERSION,
        "question": asked,
        "parts": len(state.raw),
        "has_best": bool(state.best),
        "rng": state.rng.bit_generator.state,
        "history": state.history,
        "outer": dict(outer),
        **{name: getattr(state, name) for name in NUMBERS},
    }
    arrays["about"] = np.array(json.dumps(about))
    packed = io.BytesIO()
    np.savez(packed, **arrays)  # type: ignore[arg-type]
    write_atomically(path, packed.getvalue())


def load(path: str | os.PathLike[str], asked: str) -> tuple[State, dict[str, Any]]:
    """Return the state of a checkpoint of the same question; anything else is refused."""
    file = Path(path)
    arrays, _ = read_arrays(file, lambda key: True)
    try:
        about = json.loads(str(arrays["about"]))
        is_ours = about["version"] == VERSION
        count = int(about["parts"])
    except (KeyError, ValueError, TypeError):
        raise FileError(f"{file} is not a checkpoint of training") from None
    if not is_ours:
        raise FileError(f"{file}: a checkpoint of version {about['version']}, this likewise writes {VERSION}")
    if about["question"] != asked:
        raise InputError(
            f"{file} is a checkpoint of another run: other data, options or start\nremove it to begin anew"
        )
    try:
        rng = np.random.default_rng()
        rng.bit_generator.state = about["rng"]
        raw = [tensor(arrays[f"raw{i}"]).requires_grad_() for i in range(count)]
        moments = [(tensor(arrays[f"first{i}"]), tensor(arrays[f"second{i}"])) for i in range(count)]
        best = [tensor(arrays[f"best{i}"]) for i in range(count)] if about["has_best"] else []
        numbers = {name: about[name] for name in NUMBERS}
        return State(raw, moments, rng, best=best, history=about["history"], **numbers), about["outer"]
    except (KeyError, ValueError, TypeError) as error:
        raise FileError(f"{file} is a damaged checkpoint: {type(error).__name__}") from None
