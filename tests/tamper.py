"""Certificates, tampered with: more than thirty kinds of mutation of the manifest, the arrays and the proof's bytes.

Whoever tampers knows the format: wherever a digest would give a change away, it is computed anew. Shared by
`test_check_tampered.py` and `benchmarks/soundness.py`.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import likewise_checker as checker

Rng = np.random.Generator


@dataclass
class Opened:
    """A certificate file taken apart."""

    manifest: dict[str, Any]
    arrays: dict[str, np.ndarray]
    proofs: dict[str, bytes]
    raw: Callable[[bytes], bytes] = field(default=lambda content: content)
    honest_digests: bool = False

    @classmethod
    def of(cls, path: Path) -> Opened:
        with zipfile.ZipFile(path) as archive:
            arrays = dict(np.load(io.BytesIO(archive.read("arrays.npz"))))
            proofs = {name: archive.read(name) for name in archive.namelist() if name.startswith("proof/")}
            return cls(json.loads(archive.read("manifest.json")), arrays, proofs)

    def save(self, path: Path) -> Path:
        """Write it again, with digests that fit unless the mutation is about them."""
        if not self.honest_digests:
            self.sign_again()
        packed, written = io.BytesIO(), io.BytesIO()
        np.savez(packed, **self.arrays)
        with zipfile.ZipFile(written, "w") as archive:
            archive.writestr("manifest.json", json.dumps(self.manifest))
            archive.writestr("arrays.npz", packed.getvalue())
            for name, content in self.proofs.items():
                archive.writestr(name, content)
        path.write_bytes(self.raw(written.getvalue()))
        return path

    def is_like(self, other: Opened) -> bool:
        """Tell whether nothing was changed."""
        arrays = [np.array_equal(self.arrays[name], other.arrays[name], equal_nan=True) for name in self.arrays]
        plain = (self.manifest, self.proofs, self.raw, self.honest_digests)
        return all(arrays) and plain == (other.manifest, other.proofs, other.raw, other.honest_digests)

    def sign_again(self) -> None:
        try:
            self.manifest["digests"] = checker.Question(self.manifest, self.arrays).digests()
        except Exception:  # noqa: BLE001 - a question that makes no sense has no digests either
            return
        for part in self.manifest["proof"].get("directions", []):
            if part["file"] in self.proofs:
                part["sha256"] = hashlib.sha256(self.proofs[part["file"]]).hexdigest()

    def records(self, name: str) -> list[tuple[bytes, int, int]]:
        """Return (tag, start, end) of every record of a proof; arguments are L, T or D: leaf, lemma, who can differ."""
        sides = ("right", "left") if name.endswith("1.bin") else ("left", "right")
        question = checker.Question(self.manifest, self.arrays, sides)
        file, found = io.BytesIO(self.proofs[name]), []
        while file.tell() < len(self.proofs[name]):
            start = file.tell()
            tag = file.read(1)
            found.append((read_record(file, question, tag), start, file.tell()))
        return found


def read_record(file: Any, question: Any, tag: bytes) -> bytes:
    """Read the rest of a record, whatever it says, and return its tag, or what its arguments are about."""
    if tag == b"A":
        _, lines, count = checker.take(file, "<dHH")
        checker.vector(file, lines)
        (place, sign), *_ = [checker.take(file, "<Ib") for _ in range(count)]
        for _ in range(count):
            checker.vector(file, lines + question.count)
        return b"L" if sign == 0 else b"D" if place < 3 * question.width else b"T"
    if tag == b"J":
        checker.take(file, "<B")
        checker.vector(file, question.size)
        checker.vector(file, 2 * len(question.ins) - question.width + 1)
        checker.vector(file, 5 * (len(question.ins) - question.width) * question.is_smooth)
    elif tag == b"Z":
        checker.take(file, "<Id")
    elif tag in (b"C", b"S"):
        _, group = checker.take(file, "<BH")
        columns = question.one.groups[group]
        file.read(columns.stop - columns.start if tag == b"C" else 0)
    return tag


def proof_edit(edit: Callable[[Opened, str, bytearray, Rng], bytes | None]) -> Callable[[Opened, Rng], None]:
    """Make a mutation of a proof's bytes; None leaves them as they are."""

    def mutate(it: Opened, rng: Rng) -> None:
        name = str(rng.choice(sorted(it.proofs)))
        new = edit(it, name, bytearray(it.proofs[name]), rng)
        it.proofs[name] = it.proofs[name] if new is None else bytes(new)

    return mutate


def in_record(tags: bytes, change: Callable[[bytearray, int, int, Rng], bytes | None]) -> Callable[[Opened, Rng], None]:
    """Make a mutation of one record of the given kinds."""

    def edit(it: Opened, name: str, content: bytearray, rng: Rng) -> bytes | None:
        fit = [(a, b) for tag, a, b in it.records(name) if tag in tags]
        return change(content, *fit[int(rng.integers(len(fit)))], rng) if fit else None

    return proof_edit(edit)


def float_edit(tags: bytes, change: Callable[[float, Rng], float]) -> Callable[[Opened, Rng], None]:
    """Make a mutation of one of the last few numbers of a record, which are its multipliers."""

    def edit(content: bytearray, start: int, end: int, rng: Rng) -> bytes | None:
        count = (end - start) // 8 - 2
        if count < 1:
            return None
        at = end - 8 * int(rng.integers(1, count + 1))
        content[at : at + 8] = struct.pack("<d", change(struct.unpack("<d", content[at : at + 8])[0], rng))
        return bytes(content)

    return in_record(tags, edit)


def set_in(*path: Any, to: Callable[[Any, Rng], Any]) -> Callable[[Opened, Rng], None]:
    """Make a mutation of one entry of the manifest."""

    def mutate(it: Opened, rng: Rng) -> None:
        where: Any = it.manifest
        for key in path[:-1]:
            where = where[key]
        where[path[-1]] = to(where[path[-1]], rng)

    return mutate


def array_edit(name: str, change: Callable[[np.ndarray, Rng], None]) -> Callable[[Opened, Rng], None]:
    def mutate(it: Opened, rng: Rng) -> None:
        it.arrays[name] = it.arrays[name].copy()
        change(it.arrays[name], rng)

    return mutate


def one_entry(change: Callable[[float, Rng], float]) -> Callable[[np.ndarray, Rng], None]:
    def mutate(values: np.ndarray, rng: Rng) -> None:
        at = int(rng.integers(values.size))
        values.ravel()[at] = change(float(values.ravel()[at]), rng)

    return mutate


def both_sides(key: str, change: Callable[[list[float], Rng], None]) -> Callable[[Opened, Rng], None]:
    """Make a mutation of a bound of the domain, on both sides alike."""

    def mutate(it: Opened, rng: Rng) -> None:
        seed = int(rng.integers(1 << 30))
        for side in ("left", "right"):
            change(it.manifest[side][key], np.random.default_rng(seed))

    return mutate


def move(values: list[float], rng: Rng, by: float) -> None:
    at = int(rng.integers(len(values)))
    values[at] += by


def drop_digests(it: Opened, rng: Rng) -> None:
    names = list(it.manifest["digests"])
    one, other = rng.choice(len(names), 2, replace=False)
    d = it.manifest["digests"]
    d[names[one]], d[names[other]] = d[names[other]], d[names[one]]
    it.honest_digests = True


def wrong_sha(it: Opened, rng: Rng) -> None:
    it.manifest["proof"]["directions"][0]["sha256"] = "0" * 64
    it.honest_digests = True


def cut_off(it: Opened, rng: Rng) -> None:
    share = float(rng.uniform(0.05, 0.99))
    it.raw = lambda content: content[: int(share * len(content))]


def any_byte(it: Opened, rng: Rng) -> None:
    where, what = float(rng.random()), int(rng.integers(1, 256))

    def flip(content: bytes) -> bytes:
        at = int(where * len(content))
        return content[:at] + bytes([content[at] ^ what]) + content[at + 1 :]

    it.raw = flip


def drop_direction(it: Opened, rng: Rng) -> None:
    it.manifest["proof"]["directions"].pop()


def another_category(it: Opened, rng: Rng) -> None:
    for side in ("left", "right"):
        for feature in it.manifest[side]["features"]:
            if feature["kind"] == "one_hot":
                feature["values"] = feature["values"][:-1] if rng.random() < 0.5 else [*feature["values"], "new"]
                break


def no_constraints(it: Opened, rng: Rng) -> None:
    for side in ("left", "right"):
        it.manifest[side].pop("constraints", None)


def swap_people(it: Opened, rng: Rng) -> None:
    a = it.arrays
    a["witness_left"], a["witness_right"] = a["witness_right"], a["witness_left"]


def exchange_children(it: Opened, name: str, content: bytearray, rng: Rng) -> bytes | None:
    """Exchange the arguments of two leaves."""
    ends = [(a, b) for tag, a, b in it.records(name) if tag == b"L"]
    if len(ends) < 2:
        return None
    i = int(rng.integers(len(ends) - 1))
    (a, b), (c, d) = ends[i], ends[i + 1]
    return bytes(content[:a] + content[c:d] + content[b:c] + content[a:b] + content[d:])


def lower_threshold(content: bytearray, start: int, end: int, rng: Rng) -> bytes:
    """Pretend that a leaf was about a smaller threshold."""
    t = struct.unpack("<d", content[start + 1 : start + 9])[0]
    content[start + 1 : start + 9] = struct.pack("<d", t * float(rng.uniform(0.0, 0.95)))
    return bytes(content)


def nothing_instead(content: bytearray, start: int, end: int, rng: Rng) -> bytes:
    return bytes(content[:start] + content[end:])


def at_offset(offset: int, form: str, change: Callable[[Any, Rng], Any]) -> Callable[..., bytes | None]:
    def edit(content: bytearray, start: int, end: int, rng: Rng) -> bytes | None:
        at, size = start + offset, struct.calcsize(form)
        value = change(struct.unpack(form, content[at : at + size])[0], rng)
        content[at : at + size] = struct.pack(form, value)
        return bytes(content)

    return edit


def at_target(offset: int, form: str, change: Callable[[Any, Rng], Any]) -> Callable[..., bytes | None]:
    """Make a mutation of what an argument is about, which follows its points."""

    def edit(content: bytearray, start: int, end: int, rng: Rng) -> bytes | None:
        lines = struct.unpack("<H", content[start + 9 : start + 11])[0]
        bits = content[start + 13 : start + 13 + (lines + 7) // 8]
        first = 13 + len(bits) + 8 * sum(byte.bit_count() for byte in bits)
        return at_offset(first + offset, form, change)(content, start, end, rng)

    return edit


def flip(x: float, rng: Rng) -> float:
    return -x


def stretch(x: float, rng: Rng) -> float:
    return x * float(rng.choice([0.1, 0.9, 1.1, 10.0]))


def nudge(x: float, rng: Rng) -> float:
    return x + float(rng.normal()) * (0.1 + abs(x))


MUTATIONS: dict[str, Callable[[Opened, Rng], None]] = {
    "claim half the upper": set_in("upper", to=lambda v, r: v * float(r.uniform(0.1, 0.9))),
    "claim a little less": set_in("upper", to=lambda v, r: v - 1e-4),
    "claim more lower": set_in("lower", to=lambda v, r: v + float(r.uniform(1e-4, 0.5))),
    "a larger eps": set_in("eps", to=lambda v, r: v * float(r.uniform(1.01, 3.0)) + 1e-3),
    "a larger eps with its proof": lambda it, r: (
        set_in("eps", to=lambda v, _: v * 1.5)(it, r),
        set_in("proof", "eps", to=lambda v, _: v * 1.5)(it, r),
    )[0],
    "a smaller eps": set_in("eps", to=lambda v, r: v * 0.7),
    "a proof for less": set_in("proof", "eps", to=lambda v, r: v * 0.9),
    "digests exchanged": drop_digests,
    "a wrong digest of the proof": wrong_sha,
    "no proof": set_in("proof", to=lambda v, r: {"kind": "tree", "eps": v["eps"], "directions": []}),
    "a direction less": drop_direction,
    "another p": set_in("metric", "p", to=lambda v, r: "inf" if v != "inf" else 1.0),
    "a wider domain": both_sides("upper", lambda v, r: move(v, r, 0.5)),
    "a lower domain": both_sides("lower", lambda v, r: move(v, r, -0.5)),
    "a wider left": set_in("left", "upper", to=lambda v, r: [x + 0.3 for x in v]),
    "another category": another_category,
    "no constraints": no_constraints,
    "another activation": set_in("activations", 0, 0, to=lambda v, r: "hardtanh" if v != "hardtanh" else "relu"),
    "another output": set_in("activations", -1, 0, to=lambda v, r: "identity" if v != "identity" else "sigmoid"),
    "a weight moved": array_edit("W0", one_entry(nudge)),
    "a weight turned": array_edit("W1", one_entry(flip)),
    "a bias moved": array_edit("b0", one_entry(nudge)),
    "a weight that is none": array_edit("W0", one_entry(lambda x, r: float("nan"))),
    "a huge weight": array_edit("W0", one_entry(lambda x, r: float(r.choice([1e15, 1e300, 1.7e308, np.inf])))),
    "a huge bound of the domain": both_sides("upper", lambda v, r: move(v, r, 1e300)),
    "a threshold beyond all": in_record(
        b"LT", at_offset(1, "<d", lambda t, r: float(r.choice([np.nan, np.inf, 2.0, -1.0])))
    ),
    "a number that is none": float_edit(b"LTD", lambda x, r: float(r.choice([np.nan, np.inf, -np.inf, 1e308]))),
    "the metric shrunk": array_edit("metric", lambda v, r: np.multiply(v, 0.5, out=v)),
    "a metric entry moved": array_edit("metric", one_entry(nudge)),
    "the witness moved": array_edit("witness_left", one_entry(nudge)),
    "the witness a hair off": array_edit("witness_right", one_entry(lambda x, r: x + 1e-9)),
    "the witness exchanged": swap_people,
    "the file cut off": cut_off,
    "a byte of the file": any_byte,
    "the proof cut off": proof_edit(lambda it, n, c, r: bytes(c[: int(r.integers(len(c)))])),
    "more after the proof": proof_edit(lambda it, n, c, r: bytes(c + b"E")),
    "a byte of the proof": proof_edit(
        lambda it, n, c, r: bytes(c[: (k := int(r.integers(len(c))))] + bytes([int(r.integers(256))]) + c[k + 1 :])
    ),
    "two ends exchanged": proof_edit(exchange_children),
    "a leaf without its argument": in_record(b"L", nothing_instead),
    "a leaf left out": in_record(b"E", nothing_instead),
    "an end too many": in_record(b"E", lambda c, a, b, r: bytes(c[:a] + b"E" + c[a:])),
    "lemmas left out": in_record(b"T", nothing_instead),
    "a split left out": in_record(b"ZC", nothing_instead),
    "a leaf for a smaller threshold": in_record(b"L", lower_threshold),
    "a leaf turned into a lemma": in_record(b"L", at_target(4, "<b", lambda s, r: int(r.choice([-1, 1])))),
    "a lemma turned into a leaf": in_record(b"T", at_target(4, "<b", lambda s, r: 0)),
    "lemmas for a smaller threshold": in_record(b"T", lower_threshold),
    "lemmas for every pair": in_record(b"T", at_offset(1, "<d", lambda t, r: 0.0)),
    "a split moved": in_record(b"Z", at_offset(5, "<d", nudge)),
    "a split of another neuron": in_record(b"Z", at_offset(1, "<I", lambda j, r: j ^ 1)),
    "a split of anything": in_record(b"Z", at_offset(1, "<I", lambda j, r: int(r.integers(2 * j + 2)))),
    "a split of the other person": in_record(b"C", at_offset(1, "<B", lambda s, r: 1 - s % 2)),
    "a category moved over": in_record(b"C", at_offset(4, "<B", lambda b, r: b ^ 1)),
    "another group that cannot change": in_record(b"S", at_offset(2, "<H", lambda g, r: g ^ 1)),
    "who can differ left out": in_record(b"S", nothing_instead),
    "change and no change exchanged": in_record(b"S", lambda c, a, b, r: bytes(c[:a] + b"E" + c[a:b] + c[b:])),
    "a lemma of the other side": in_record(b"T", at_target(4, "<b", lambda s, r: -s)),
    "a lemma of another neuron": in_record(b"T", at_target(0, "<I", lambda j, r: j ^ 1)),
    "a lemma of anything": in_record(b"T", at_target(0, "<I", lambda j, r: int(r.integers(2 * j + 2)))),
    "a leaf's multiplier turned": float_edit(b"L", flip),
    "a leaf's multiplier stretched": float_edit(b"L", stretch),
    "a lemma's multiplier turned": float_edit(b"T", flip),
    "a lemma's multiplier stretched": float_edit(b"T", stretch),
    "a joint bound left out": in_record(b"J", nothing_instead),
    "a joint bound twice": in_record(b"J", lambda c, a, b, r: bytes(c[:b] + c[a:])),
    "a joint bound elsewhere": in_record(b"J", at_offset(1, "<B", lambda k, r: int(r.integers(256)))),
    "a joint bound of other numbers": in_record(b"J", at_offset(2, "<I", lambda k, r: k ^ int(r.integers(1, 1 << 32)))),
    "a joint bound's number turned": float_edit(b"J", flip),
    "a joint bound's number stretched": float_edit(b"J", stretch),
    "a joint bound's number that is none": float_edit(b"J", lambda x, r: float(r.choice([np.nan, np.inf, 1e308, 0.0]))),
    "a joint bound cut off": in_record(b"J", lambda c, a, b, r: bytes(c[: int(r.integers(a + 1, b))] + c[b:])),
    "who can differ turned": float_edit(b"D", flip),
    "a column's bound of the other side": in_record(b"D", at_target(4, "<b", lambda s, r: -s)),
    "a bound of another column": in_record(b"D", at_target(0, "<I", lambda j, r: j ^ 1)),
}
