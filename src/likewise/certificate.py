"""Certificate: the question, lower with its witness, upper with what it rests on; and its file.

The file is a zip: `manifest.json` for people and programs, `arrays.npz` for the float64 weights, the metric's
matrix (and embedding) and the witness, and `proof/...` for what shows `upper` (docs/certificate-format.md). It is
written beside the target first and moved into place, so that no crash leaves half. Version 2 added embeddings, and what
the output is, version 4 the proof (3 had one of another form); older files are read as well, without proofs.
"""

from __future__ import annotations

import io
import json
import lzma
import math
import os
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from likewise.activations import by_name
from likewise.domain import Domain
from likewise.errors import FileError, InputError, SoundnessError
from likewise.metric import Metric
from likewise.network import Layer, Network
from likewise.problem import Problem
from likewise.rounding import Array

FORMAT = 8
READABLE = (1, 2, 3, 4, 5, 6, 7, 8)
PROVEN = (6, 7, 8)  # versions with proofs of the form that is read
LIMIT = 1 << 30  # no certificate unpacks to more bytes than this, its proof aside
PROOF = "proof/"  # what the names of a proof's files begin with
PHI = "phi_"  # what the names of an embedding's arrays begin with
SCORES = frozenset({"sigmoid", "hardsigmoid"})  # outputs that are read as a score between 0 and 1
# What a file that is none of ours makes the libraries raise; each is turned into a FileError.
BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)


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

    def summary(self) -> dict[str, Any]:
        """Return the pair as plain values."""
        return {
            "left": self.left.tolist(),
            "right": self.right.tolist(),
            "left_score": self.left_score,
            "right_score": self.right_score,
            "distance": self.distance,
        }

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
class Payload:
    """One direction's tree of a proof: how to read its bytes, their digest, and how large it is."""

    open: Callable[[], IO[bytes]] = field(repr=False)
    sha256: str
    size: int
    nodes: int
    leaves: int


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """What shows `upper`, for every direction of the problem; `eps` may be larger than the certificate's."""

    eps: float
    directions: Sequence[Payload]

    def manifest(self) -> dict[str, Any]:
        """Return it as plain values."""
        listed = [
            {"file": f"{PROOF}{k}.bin", "sha256": p.sha256, "bytes": p.size, "nodes": p.nodes, "leaves": p.leaves}
            for k, p in enumerate(self.directions)
        ]
        return {"kind": "tree", "eps": self.eps, "directions": listed}


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """Proven bounds `0 <= lower <= delta_max <= upper` on how far apart two similar people can be scored.

    `trusted` lists what `upper` rests on beyond likewise's own outward-rounded arithmetic. `trace` holds
    (seconds, lower, upper) and is monotone. `scale` and `output` say which of the model's numbers `problem.network`
    gives: its output of that number, as it is ("score") or before the final sigmoid ("logit").
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
    scale: str = "score"
    output: int = 0
    proof: Proof | None = field(default=None, repr=False)

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

    @property
    def unit(self) -> str:
        """What gaps are measured in: "score" (0 to 1), "logit", or "output" (the network's own units)."""
        if self.scale == "logit":
            return "logit"
        return "score" if set(self.problem.network.layers[-1].activations) <= SCORES else "output"

    def verdict(self, delta: float) -> str:
        """Return "fair" if upper <= delta, "unfair" if the witness exceeds delta, else "undecided"."""
        if not (isinstance(delta, int | float) and math.isfinite(delta) and delta >= 0):
            raise InputError(f"delta must be a finite number >= 0, got {delta!r}")
        if self.upper <= delta:
            return "fair"
        return "unfair" if self.lower > delta else "undecided"

    def summary(self) -> dict[str, Any]:
        """Return the numbers as plain values, as the command line prints them."""
        return {
            "lower": self.lower,
            "upper": self.upper if math.isfinite(self.upper) else None,
            "gap": self.gap if math.isfinite(self.gap) else None,
            "seconds": self.seconds,
            "engine": self.engine,
            "solver": self.solver,
            "eps": self.eps,
            "unit": self.unit,
            "scale": self.scale,
            "output": self.output,
            "nodes": self.nodes,
            "trusted": list(self.trusted),
            "witness": self.witness.summary(),
        }

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the certificate file atomically and return its path."""
        target = Path(path)
        arrays: dict[str, Array] = {"metric": self.problem.metric.matrix}
        arrays |= {"witness_left": self.witness.left, "witness_right": self.witness.right}
        arrays |= _weights(self.problem.network, "")
        if self.problem.metric.phi is not None:
            arrays |= _weights(self.problem.metric.phi, PHI)
        packed = io.BytesIO()
        np.savez(packed, **arrays)  # type: ignore[arg-type]
        with written_atomically(target) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("manifest.json", json.dumps(self._manifest(), indent=1))
            archive.writestr("arrays.npz", packed.getvalue())
            for k, payload in enumerate(() if self.proof is None else self.proof.directions):
                with payload.open() as source, archive.open(f"{PROOF}{k}.bin", "w", force_zip64=True) as entry:
                    shutil.copyfileobj(source, entry, 1 << 20)
        return target

    def _manifest(self) -> dict[str, Any]:
        p = self.problem
        return {
            "format": "likewise certificate",
            "version": FORMAT,
            **self.summary(),
            "trace": [[s, lo, hi if math.isfinite(hi) else None] for s, lo, hi in self.trace],
            "notes": list(self.notes),
            "proof": {"kind": "solver-trusted"} if self.proof is None else self.proof.manifest(),
            "activations": _activations(p.network),
            "metric": {
                "kind": p.metric.kind,
                "p": "inf" if p.metric.p == math.inf else p.metric.p,
                "note": p.metric.note,
                "phi": None if p.metric.phi is None else _activations(p.metric.phi),
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


def _weights(network: Network, prefix: str) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for i, layer in enumerate(network.layers):
        arrays |= {f"{prefix}W{i}": layer.weight, f"{prefix}b{i}": layer.bias}
    return arrays


def _activations(network: Network) -> list[list[str]]:
    return [list(layer.activations) for layer in network.layers]


def _network(kinds: Any, arrays: Mapping[str, Array], prefix: str) -> Network:
    return Network(
        Layer(arrays[f"{prefix}W{i}"], arrays[f"{prefix}b{i}"], [str(name) for name in names])
        for i, names in enumerate(kinds)
    )


def write_atomically(target: Path, content: bytes) -> None:
    """Write a file beside its target and move it into place."""
    with written_atomically(target) as file:
        file.write(content)


@contextmanager
def written_atomically(target: Path) -> Iterator[IO[bytes]]:
    """Give a file beside the target to write to, and move it into place once it is written."""
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise FileError(f"cannot write {target}: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise FileError(f"cannot write {target}: {error.strerror}") from None
        raise


def read(path: str | os.PathLike[str]) -> Certificate:
    """Read a certificate file; its claims are as written, and only its form and digests are checked here."""
    try:
        if Path(path).exists() and not Path(path).is_file():
            raise FileError("it is no regular file")
        with zipfile.ZipFile(path) as archive:
            _refuse_large(archive)
            manifest = json.loads(archive.read("manifest.json"))
            arrays = _unpacked(archive.read("arrays.npz"))
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}") from None
    except BROKEN as error:
        raise FileError(f"{path} is not a certificate: {error}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != "likewise certificate":
        raise FileError(f"{path} is not a certificate: its manifest does not say so")
    if manifest.get("version") not in READABLE:
        known = " and ".join(map(str, READABLE))
        raise FileError(f"{path}: version {manifest.get('version')!r}, this likewise reads {known}")
    try:
        return _rebuild(manifest, arrays, Path(path))
    except (*BROKEN, AttributeError, SoundnessError) as error:
        raise FileError(f"{path} is not a valid certificate: {error}") from None


def _refuse_large(archive: zipfile.ZipFile) -> None:
    if sum(entry.file_size for entry in archive.infolist() if not entry.filename.startswith(PROOF)) > LIMIT:
        raise FileError(f"it unpacks to more than {LIMIT >> 20} MiB")


def _unpacked(content: bytes) -> dict[str, Array]:
    """Return the float64 arrays of an npz; no header can make it reserve more than the bytes that are there."""
    arrays = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        _refuse_large(archive)
        for entry in archive.infolist():
            stored = archive.read(entry)
            stream = io.BytesIO(stored)
            if np.lib.format.read_magic(stream) != (1, 0):
                raise ValueError(f"array {entry.filename!r} is of another npy version than 1.0")
            shape, by_column, dtype = np.lib.format.read_array_header_1_0(stream)
            if dtype != np.dtype("<f8"):
                raise ValueError(f"array {entry.filename!r} holds {dtype}, not float64")
            values = np.frombuffer(stored, dtype, offset=stream.tell())
            arrays[entry.filename.removesuffix(".npy")] = values.reshape(shape, order="F" if by_column else "C")
    return arrays


def _rebuild(manifest: dict[str, Any], arrays: dict[str, Array], path: Path) -> Certificate:
    network = _network(manifest["activations"], arrays, "")
    form = manifest["metric"]
    phi = None if form.get("phi") is None else _network(form["phi"], arrays, PHI)
    metric = Metric(arrays["metric"], float(form["p"]), str(form["kind"]), str(form["note"]), phi)
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
        str(manifest.get("scale", "score")),
        int(manifest.get("output", 0)),
        _proof(manifest["proof"] if _is_read(manifest["version"], problem.network) else {}, path),
    )


def _is_read(version: int, network: Network) -> bool:
    """Tell whether a proof can be written again as it is: records of smooth neurons are others than before."""
    names = {name for layer in network.layers[:-1] for name in layer.activations}
    return version in PROVEN and (version == FORMAT or all(by_name(name).bends is None for name in names))


def _proof(form: Mapping[str, Any], path: Path) -> Proof | None:
    """Return the proof as it lies in the file: it is read again when it is copied."""
    if form.get("kind") != "tree":
        return None

    def opener(name: str) -> Callable[[], IO[bytes]]:
        return lambda: zipfile.ZipFile(path).open(name)

    return Proof(
        float(form["eps"]),
        tuple(
            Payload(opener(str(d["file"])), str(d["sha256"]), int(d["bytes"]), int(d["nodes"]), int(d["leaves"]))
            for d in form["directions"]
        ),
    )
