"""The certificate file: whatever a question is made of comes back with the same digests, and nothing else is read."""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import likewise as lw

OLD = Path(__file__).parent / "data" / "certificate-version1.zip"  # written by the code before embeddings
DOMAIN = lw.Domain(
    [lw.Continuous("age", 0.0, 1.0), lw.Integer("children", 0.0, 1.0, 0.25), lw.OneHot("job", ["artist", "baker"])],
    constraints=[({"age": 1.0, "job=baker": 0.5}, 1.25)],
)


def network(outputs: int = 1, final: str = "sigmoid") -> lw.Network:
    rng = np.random.default_rng(5)
    hidden = lw.Layer(rng.normal(size=(3, 4)), rng.normal(size=3), ["relu", "tanh", "gelu"])
    return lw.Network([hidden, lw.Layer(rng.normal(size=(outputs, 3)), rng.normal(size=outputs), final)])


def embedding() -> lw.Metric:
    rng = np.random.default_rng(6)
    phi = lw.Network([lw.Layer(rng.normal(size=(3, 4)), rng.normal(size=3), ["relu", "identity", "relu"])])
    return lw.Embedding(phi, lw.WeightedLp([1.0, 2.0, 0.5], p=1.5))


METRICS: dict[str, lw.Metric] = {
    "embedding": embedding(),
    "mahalanobis": lw.Mahalanobis(np.diag([1.0, 2.0, 0.0, 0.0])),
    "box": lw.Mahalanobis(np.diag([1.0, 2.0, 0.0, 0.0]), "box"),
    **{f"l{p}": lw.WeightedLp([1.0, 0.3, 2.0, 0.0], p=p) for p in (1, 1.5, 2, 3, math.pi, math.inf)},
}


def certificate(metric: lw.Metric, **changes: Any) -> lw.Certificate:
    """A certificate that no search made: its pair is one person twice."""
    left = changes.pop("left", DOMAIN.where(children=(0.25, 0.75)))
    problem = lw.Problem(changes.pop("net", network()), left, DOMAIN, metric, 0.1)
    person = left.person()
    score = float(problem.network(person[None])[0])
    witness = lw.Witness(person, person.copy(), score, score, 0.0, DOMAIN)
    fields = {"engine": "milp", "solver": "highs", "seconds": 1.5, "notes": ("a note",), "trusted": ("highs",)}
    return lw.Certificate(problem, 0.0, 0.5, witness, **(fields | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", METRICS)
def test_every_question_comes_back(kind: str, tmp_path: Path) -> None:
    written = certificate(METRICS[kind])
    again = lw.read(written.save(tmp_path / "c.cert"))
    assert again.summary() == written.summary()
    assert (again.notes, again.trusted, again.trace) == (written.notes, written.trusted, written.trace)
    for one, other in zip(_parts(again), _parts(written), strict=True):
        assert one.digest == other.digest
    assert again.problem.metric.kind == METRICS[kind].kind
    assert again.problem.metric.p == METRICS[kind].p
    assert again.problem.network.layers[0].activations == ("relu", "tanh", "gelu")
    person = DOMAIN.sample(2, np.random.default_rng(0))
    assert again.problem.metric.distance(*person) == written.problem.metric.distance(*person)


def _parts(certificate: lw.Certificate) -> list[Any]:
    problem = certificate.problem
    return [problem, problem.network, problem.left, problem.right, problem.metric]


@pytest.mark.parametrize(
    ("final", "scale", "output", "unit"),
    [("sigmoid", "score", 0, "score"), ("identity", "logit", 0, "logit"), ("identity", "score", 2, "output")],
)
def test_what_gaps_are_measured_in_comes_back(final: str, scale: str, output: int, unit: str, tmp_path: Path) -> None:
    written = certificate(METRICS["l1"], net=network(final=final), scale=scale, output=output)
    again = lw.read(written.save(tmp_path / "c.cert"))
    assert (again.scale, again.output, again.unit) == (scale, output, unit)


def test_a_search_says_what_it_measured() -> None:
    many = network(3, "identity")
    found = lw.certify(many, DOMAIN, METRICS["l1"], 0.05, seconds=5, threads=1, output=2)
    assert (found.output, found.unit) == (2, "output")
    assert found.problem.network.digest == many.select(2).digest
    logit = lw.certify(network(), DOMAIN, METRICS["l1"], 0.05, seconds=5, threads=1, scale="logit")
    assert logit.unit == "logit"
    assert logit.summary()["unit"] == "logit"


def test_a_file_of_version_1_is_read() -> None:
    old = lw.read(OLD)
    assert (old.lower, old.upper) == (0.24723454958463206, 0.24724316912975952)
    assert (old.unit, old.scale, old.output) == ("score", "score", 0)
    assert old.problem.network.layers[0].activations == ("relu", "tanh")
    assert old.problem.metric.phi is None
    assert old.problem.admits(old.witness.left, old.witness.right)
    assert old.problem.gap_lower(old.witness.left, old.witness.right) == old.lower


# --- files that are none -------------------------------------------------------------------------------------------


def repacked(path: Path, manifest: Callable[[dict[str, Any]], None] | None = None, arrays: bytes | None = None) -> Path:
    """Write a certificate with its manifest changed, or other arrays."""
    certificate(METRICS["embedding"]).save(path)
    with zipfile.ZipFile(path) as archive:
        said, stored = json.loads(archive.read("manifest.json")), archive.read("arrays.npz")
    if manifest is not None:
        manifest(said)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", json.dumps(said))
        archive.writestr("arrays.npz", stored if arrays is None else arrays)
    return path


def npz(**entries: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(f"{name}.npy", content)
    return packed.getvalue()


def claim(shape: tuple[int, ...], kind: str = "<f8") -> bytes:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": kind, "fortran_order": False, "shape": shape})
    return header.getvalue()


CHANGES: dict[str, Callable[[dict[str, Any]], None]] = {
    "another network": lambda m: m["activations"][0].__setitem__(0, "sigmoid"),
    "another embedding": lambda m: m["metric"]["phi"][0].__setitem__(1, "relu"),
    "the embedding left out": lambda m: m["metric"].update(phi=None),
    "another p": lambda m: m["metric"].update(p=1.0),
    "another constraint": lambda m: m["right"]["constraints"]["b"].__setitem__(0, 5.0),
    "another step": lambda m: m["right"]["features"][1].update(step=0.5),
    "another eps": lambda m: m.update(eps=0.2),
    "lower above upper": lambda m: m.update(lower=0.6),
    "a version to come": lambda m: m.update(version=99),
    "no metric": lambda m: m.pop("metric"),
    "a list for a metric": lambda m: m.update(metric=[1]),
    "a number for a domain": lambda m: m.update(left=3),
    "no arrays of the embedding": lambda m: m["metric"]["phi"].append(["relu"]),
    "another format": lambda m: m.update(format="likewise recipe"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_changed_manifest_is_refused(case: str, tmp_path: Path) -> None:
    with pytest.raises(lw.FileError, match=r"c\.cert"):
        lw.read(repacked(tmp_path / "c.cert", CHANGES[case]))


@pytest.mark.parametrize(
    "arrays",
    [
        b"",
        b"PK\x05\x06" + b"\0" * 18,
        npz(W0=claim((1 << 40,))),
        npz(W0=claim((1 << 14, 1 << 14)) + b"\0" * 80),
        npz(W0=claim((4,), "|O") + b"\0" * 32),
        npz(W0=claim((4,), "<f4") + b"\0" * 16),
        npz(W0=b"\x93NUMPY\x03\x00" + b"\0" * 40),
        npz(W0=claim((2,)) + b"\0" * 17),
    ],
)
def test_arrays_that_are_none_are_refused(arrays: bytes, tmp_path: Path) -> None:
    with pytest.raises(lw.FileError, match=r"c\.cert"):
        lw.read(repacked(tmp_path / "c.cert", arrays=arrays))


def test_a_bomb_is_refused_by_what_it_declares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likewise.certificate.LIMIT", 1 << 20)
    inside = npz(W0=claim((1 << 18,)) + b"\0" * (1 << 21))
    assert len(inside) < 1 << 16
    with pytest.raises(lw.FileError, match="unpacks to more than 1 MiB"):
        lw.read(repacked(tmp_path / "c.cert", arrays=inside))
    certificate(METRICS["l1"]).save(tmp_path / "d.cert")
    with zipfile.ZipFile(tmp_path / "d.cert", "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("padding", b"\0" * (1 << 21))
    with pytest.raises(lw.FileError, match="unpacks to more than 1 MiB"):
        lw.read(tmp_path / "d.cert")
