"""Trained: a network that was trained, how that went, and what is proven of it; and how it is saved."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from likewise.certificate import Certificate, write_atomically
from likewise.errors import FileError
from likewise.load import Schema, write_npz, write_schema
from likewise.network import Network
from likewise.rounding import Array
from likewise.train.export import write_onnx, write_torch
from likewise.train.measures import measured
from likewise.train.settings import Settings

WRITERS: Mapping[str, Callable[[Network, Path], Path]] = {
    ".npz": write_npz,
    ".onnx": write_onnx,
    ".pt": write_torch,
    ".pth": write_torch,
}


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """A trained network as it will be used: calibration is part of its last layer, and the certificate is about it.

    `history` has a line per epoch, `seconds` is the time of training alone. `certificate` is None if none was asked
    for.
    """

    network: Network
    history: tuple[Mapping[str, float], ...]
    seconds: float
    settings: Settings
    schema: Schema
    is_classes: bool
    certificate: Certificate | None = None

    def __repr__(self) -> str:
        proven = self.certificate
        found = "not certified" if proven is None else f"delta in [{proven.lower:.6f}, {proven.upper:.6f}]"
        return f"Trained({self.settings.method}, {self.network!r}, {found}, {self.seconds:.1f} s)"

    @property
    def reached(self) -> bool | None:
        """Whether the certificate says upper <= the delta that was asked for; None if none was."""
        if self.settings.delta is None or self.certificate is None:
            return None
        return self.certificate.upper <= self.settings.delta

    def measures(self, X: Array, y: Array) -> dict[str, float]:
        """Return accuracy and balanced accuracy, or the mean squared error and R2, on these people."""
        return measured(self.network, X, y, self.is_classes)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the network by its suffix (.npz, .onnx, .pt), and beside it what it was trained and proven for.

        For model.npz these are model.toml (schema and metric), model.cert (the certificate, if there is one) and
        model.history.json. Each file is written atomically; the network is the last.
        """
        target = Path(path)
        writer = WRITERS.get(target.suffix.lower())
        if writer is None:
            raise FileError(f"{target}: cannot write a model as {target.suffix!r}; known: {', '.join(WRITERS)}")
        write_schema(self.schema, target.with_suffix(".toml"))
        if self.certificate is not None:
            self.certificate.save(target.with_suffix(".cert"))
        write_atomically(target.with_suffix(".history.json"), json.dumps(self._record(), indent=1).encode())
        return writer(self.network, target)

    def _record(self) -> dict[str, Any]:
        proven = None if self.certificate is None else self.certificate.summary()
        return {
            "settings": asdict(self.settings),
            "seconds": self.seconds,
            "reached": self.reached,
            "certificate": proven,
            "history": [dict(line) for line in self.history],
        }


def written_by(path: Path) -> list[Path]:
    """Return all the files that saving a model at this path may write."""
    stem = path.with_suffix("")
    beside = [f"{stem}{end}" for end in (".toml", ".cert", ".history.json", ".metric.npz", ".embedding.npz")]
    return [path, *map(Path, beside)]
