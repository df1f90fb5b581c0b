"""Certificate: the question, lower with its witness, upper with what it rests on; and its file.

The file is a zip: `manifest.json` for people and programs, `arrays.npz` for the float64 weights, the metric's
matrix and the witness. It is written beside the target first and moved into place, so that no crash leaves half.
"""

from __future__ import annotations

import io
import json
import math
import os
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from likewise.domain import Domain
from likewise.errors import FileError, InputError, SoundnessError
from likewise.metric import Metric
from likewise.network import Layer, Network
from likewise.problem import Problem
from likewise.rounding import Array

FORMAT = 1
LIMIT = 1 << 30  # no certificate unpacks to more bytes than this


@dataclass(frozen=True, slots=True, eq=False)
class Witness:
    """A real pair: both people exist, they are similar, and left scores higher (unless `left` was given)."""

    left: Array
    right: Array
    left_score: float
    right_score: float
    distance: float
    domain: Domain

    def __repr__(self) -> str:
        return f"Witness({self.left_score:.6f} against {self.right_score:.6f} at distance {self.distance:.6g})"

    def rows(self) -> list[tuple[str, str, str]]:
        """Return (feature, left, right) in the user's words."""
        left, right = self.domain.show(self.left), self.domain.show(self.right)
        return [(name, one, other) for (name, one), (_, other) in zip(left, right, strict=True)]

    def describe(self) -> str:
        """Tell the pair in words: what they share, where they differ, how they are scored."""
        differ = [row for row in self.rows() if row[1] != row[2]]
        alike = [f"{name} {left}" for name, left, right in self.rows() if left == right]
        lines = [f"left scores {self.left_score:.4f}, right scores {self.right_score:.4f}"]
        lines += [f"  {name}: {left} against {right}" for name, left, right in differ]
        lines += ["  alike: " + ", ".join(alike)] if alike else []
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """Proven bounds `0 <= lower <= delta_max <= upper` on how far apart two similar people can be scored.

    `trusted` lists what `upper` rests on beyond likewise's own outward-rounded arithmetic. `trace` holds
    (seconds, lower, upper) and is monotone.
    """

    problem: Problem
    lower: float
    upper: float
    witness: Witness
    engine: str
    solver: str
    seconds: float
    trace: tuple[tuple[float, float, float], ...] = ()
    trusted: tuple[str, ...] = ()
    nodes: int = 0
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        if not (0.0 <= self.lower <= self.upper):
            raise SoundnessError(f"lower {self.lower!r} and upper {self.upper!r} contradict each other")

    def __repr__(self) -> str:
        return f"Certificate([{self.lower:.6f}, {self.upper:.6f}], eps={self.problem.eps:g}, {self.engine})"

    @property
    def gap(self) -> float:
        """How far the bounds are apart."""
        return self.upper - self.lower

    @property
    def eps(self) -> float:
        """How similar the people are."""
        return self.problem.eps

    def verdict(self, delta: float) -> str:
        """Return "fair" if upper <= delta, "unfair" if the witness exceeds delta, else "undecided"."""
        if not (isinstance(delta, int | float) and math.isfinite(delta) and delta >= 0):
            raise InputError(f"delta must be a finite number >= 0, got {delta!r}")
        if self.upper <= delta:
            return "fair"
        return "unfair" if self.lower > delta else "undecided"

    def summary(self) -> dict[str, Any]:
        """Return the numbers as plain values, as the command line prints them."""
        pair = self.witness
        return {
            "lower": self.lower,
            "upper": self.upper if math.isfinite(self.upper) else None,
            "gap": self.gap if math.isfinite(self.gap) else None,
            "seconds": self.seconds,
            "engine": self.engine,
            "solver": self.solver,
            "eps": self.eps,
            "nodes": self.nodes,
            "trusted": list(self.trusted),
            "witness": {
                "left": pair.left.tolist(),
                "right": pair.right.tolist(),
                "left_score": pair.left_score,
                "right_score": pair.right_score,
                "distance": pair.distance,
            },
        }

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the certificate file atomically and return its path."""
        target = Path(path)
        arrays: dict[str, Array] = {"metric": self.problem.metric.matrix}
        arrays |= {"witness_left": self.witness.left, "witness_right": self.witness.right}
        for i, layer in enumerate(self.problem.network.layers):
            arrays |= {f"W{i}": layer.weight, f"b{i}": layer.bias}
        packed = io.BytesIO()
        np.savez(packed, **arrays)  # type: ignore[arg-type]
        written = io.BytesIO()
        with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("manifest.json", json.dumps(self._manifest(), indent=1))
            archive.writestr("arrays.npz", packed.getvalue())
        write_atomically(target, written.getvalue())
        return target

    def _manifest(self) -> dict[str, Any]:
        p = self.problem
        return {
            "format": "likewise certificate",
            "version": FORMAT,
            **self.summary(),
            "trace": [[s, lo, hi if math.isfinite(hi) else None] for s, lo, hi in self.trace],
            "notes": list(self.notes),
            "activations": [list(layer.activations) for layer in p.network.layers],
            "metric": {
                "kind": p.metric.kind,
                "p": "inf" if p.metric.p == math.inf else p.metric.p,
                "note": p.metric.note,
            },
            "left": p.left.to_json(),
            "right": p.right.to_json(),
            "digests": {
                "network": p.network.digest,
                "left": p.left.digest,
                "right": p.right.digest,
                "metric": p.metric.digest,
                "problem": p.digest,
            },
        }


def write_atomically(target: Path, content: bytes) -> None:
    """Write a file beside its target and move it into place."""
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise FileError(f"cannot write {target}: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise FileError(f"cannot write {target}: {error.strerror}") from None


def read(path: str | os.PathLike[str]) -> Certificate:
    """Read a certificate file; its claims are as written, and only its form and digests are checked here."""
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > LIMIT:
                raise FileError(f"{path}: unpacks to more than {LIMIT >> 20} MiB")
            manifest = json.loads(archive.read("manifest.json"))
            with np.load(io.BytesIO(archive.read("arrays.npz")), allow_pickle=False) as packed:
                arrays = {name: np.asarray(packed[name], dtype=np.float64) for name in packed.files}
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}") from None
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError, NotImplementedError, RuntimeError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path} is not a certificate: {error}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != "likewise certificate":
        raise FileError(f"{path} is not a certificate: its manifest does not say so")
    if manifest.get("version") != FORMAT:
        raise FileError(f"{path}: version {manifest.get('version')!r}, this likewise reads version {FORMAT}")
    try:
        return _rebuild(manifest, arrays)
    except (KeyError, TypeError, IndexError, InputError, SoundnessError) as error:
        raise FileError(f"{path} is not a valid certificate: {error}") from None


def _rebuild(manifest: dict[str, Any], arrays: dict[str, Array]) -> Certificate:
    kinds = manifest["activations"]
    network = Network(Layer(arrays[f"W{i}"], arrays[f"b{i}"], names) for i, names in enumerate(kinds))
    form = manifest["metric"]
    metric = Metric(arrays["metric"], float(form["p"]), str(form["kind"]), str(form["note"]))
    left, right = Domain.from_json(manifest["left"]), Domain.from_json(manifest["right"])
    problem = Problem(network, left, right, metric, float(manifest["eps"]))
    if problem.digest != manifest["digests"]["problem"]:
        raise FileError("the question's digest does not match its content")
    pair = manifest["witness"]
    witness = Witness(
        left.require(arrays["witness_left"], "witness left"),
        right.require(arrays["witness_right"], "witness right"),
        float(pair["left_score"]),
        float(pair["right_score"]),
        float(pair["distance"]),
        right,
    )
    infinite = math.inf
    return Certificate(
        problem,
        float(manifest["lower"]),
        infinite if manifest["upper"] is None else float(manifest["upper"]),
        witness,
        str(manifest["engine"]),
        str(manifest["solver"]),
        float(manifest["seconds"]),
        tuple((float(s), float(lo), infinite if hi is None else float(hi)) for s, lo, hi in manifest["trace"]),
        tuple(str(t) for t in manifest["trusted"]),
        int(manifest["nodes"]),
        tuple(str(n) for n in manifest["notes"]),
    )
