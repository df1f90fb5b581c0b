"""Bad input of every format and command: exit 2, a named culprit in three lines, nothing written, little memory.

`test_bad_input.py` has the first formats; here are model files of all kinds, hostile ones among them, schemas with
integers, constraints and embeddings, and the options and files that name people.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import SCHEMA
from onnx import TensorProto, helper, numpy_helper
from test_bad_input import Bomb, Capture, refused

import likewise as lw
from likewise.cli import main

HUGE = 1 << 14  # two of these make a tensor of 2 GB
ROOM = 700 * 1024  # KiB that any refusal may take, likewise and its libraries included


def onnx_bytes(operation: str, weight: np.ndarray | None = None, **external: str) -> bytes:
    """A model of one node; with `external`, its weight claims to lie in another file."""
    weight = np.ones((4, 1)) if weight is None else weight
    tensor = numpy_helper.from_array(weight, "W")
    if external:
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in external.items():
            tensor.external_data.add(key=key, value=value)
    graph = helper.make_graph(
        [helper.make_node(operation, ["x", "W"] if operation in ("MatMul", "Conv") else ["x"], ["y"], name="the_node")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, ["n", 4])],
        [helper.make_tensor_value_info("y", TensorProto.DOUBLE, ["n", "k"])],
        [tensor],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def huge_onnx() -> bytes:
    model = onnx.ModelProto.FromString(onnx_bytes("MatMul"))
    model.graph.initializer[0].dims[:] = [HUGE, HUGE]
    return bytes(model.SerializeToString())


def zipped(**entries: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name.replace("__", "."), content)
    return packed.getvalue()


def bomb() -> bytes:
    """A zip of a few KB whose directory says, truly or not, that it unpacks to 3 GB."""
    packed = bytearray(zipped(W0__npy=b"\0" * (1 << 20)))
    directory = packed.rindex(b"PK\x01\x02")
    packed[directory + 24 : directory + 28] = (3 << 30).to_bytes(4, "little")
    return bytes(packed)


def claimed_npz() -> bytes:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (HUGE, HUGE)})
    return zipped(W0__npy=header.getvalue() + b"\0" * 64, b0__npy=b"")


def keras(config: object) -> bytes:
    return zipped(config__json=json.dumps(config).encode(), model__weights__h5=b"\x89HDF\r\n\x1a\n" + b"\0" * 8)


# file name, its content, and what the message must name besides the file
FILES: dict[str, tuple[str, bytes, str]] = {
    "onnx: unknown operation": ("m.onnx", onnx_bytes("Sin"), "the_node"),
    "onnx: convolution": ("m.onnx", onnx_bytes("Conv"), "Conv"),
    "onnx: nan": ("m.onnx", onnx_bytes("MatMul", np.full((4, 1), np.nan)), "the_node"),
    "onnx: not for these columns": ("m.onnx", onnx_bytes("MatMul", np.ones((5, 1))), "4"),
    "onnx: data above the folder": ("m.onnx", onnx_bytes("MatMul", location="../data"), "../data"),
    "onnx: data at the root": ("m.onnx", onnx_bytes("MatMul", location="/etc/passwd"), "/etc/passwd"),
    "onnx: data behind a link": ("m.onnx", onnx_bytes("MatMul", location="link"), "link"),
    "onnx: data that is not there": ("m.onnx", onnx_bytes("MatMul", location="nowhere"), "nowhere"),
    "onnx: data that ends too soon": ("m.onnx", onnx_bytes("MatMul", location="person.csv"), "person.csv"),
    "onnx: a claim of 2 GB": ("m.onnx", huge_onnx(), "W"),
    "onnx: text": ("m.onnx", b"this is no model", "onnx"),
    "onnx: empty": ("m.onnx", b"", "onnx"),
    "onnx: half": ("m.onnx", onnx_bytes("MatMul")[:-40], "onnx"),
    "pt: a pickle that runs code": ("m.pt", pickle.dumps(Bomb()), "m.pt"),
    "pt: text": ("m.pt", b"this is no model", "m.pt"),
    "pickle": ("m.pkl", pickle.dumps(Bomb()), "pickle"),
    "joblib": ("m.joblib", pickle.dumps(Bomb()), "pickle"),
    "keras: text": ("m.keras", b"this is no model", "zip"),
    "keras: no configuration": ("m.keras", zipped(hello__txt=b"x"), "config.json"),
    "keras: no weights": ("m.keras", keras({}), "m.keras"),
    "keras: a bomb": ("m.keras", bomb(), "MiB"),
    "h5: text": ("m.h5", b"this is no model", "m.h5"),
    "npz: a bomb": ("m.npz", bomb(), "MiB"),
    "npz: a claim of 2 GB": ("m.npz", claimed_npz(), "W0"),
    "unknown format": ("m.exe", b"MZ", ".exe"),
}


@pytest.mark.parametrize("case", FILES)
def test_model_file(case: str, folder: Path, capsys: Capture) -> None:
    name, content, culprit = FILES[case]
    (folder / name).write_bytes(content)
    (folder.parent / "data").write_bytes(b"\0" * 32)
    (folder / "link").symlink_to("/etc/passwd")
    message = refused(capsys, name, "schema.toml", "--eps", "0.1")
    assert name in message or "columns" in message or "nowhere" in message
    assert culprit in message
    assert not (folder / "exploded").exists()


@pytest.mark.parametrize("case", [case for case in FILES if "claim" in case or "bomb" in case])
def test_what_a_file_claims_takes_no_memory(case: str, folder: Path) -> None:
    name, content, _ = FILES[case]
    (folder / name).write_bytes(content)
    code = (
        "import resource, sys; from likewise.cli import main; code = main(sys.argv[1:]); "
        "print(code, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    command = [sys.executable, "-c", code, "certify", name, "schema.toml", "--eps", "0.1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    status, peak = map(int, done.stdout.split())
    assert status == 2
    assert peak < ROOM


@pytest.mark.parametrize("name", ["m.npz", "m.onnx", "m.keras", "m.h5", "m.pt", "m.toml", "m.csv"])
def test_nobody_waits_for_a_pipe(name: str, folder: Path, capsys: Capture) -> None:
    os.mkfifo(folder / name)
    model, schema = (name, "schema.toml") if name not in ("m.toml", "m.csv") else ("model.npz", "m.toml")
    people = ["--people", name] if name == "m.csv" else []
    assert name in refused(capsys, model, "schema.toml" if people else schema, "--eps", "0.1", *people)


def test_a_certificate_is_a_regular_file(folder: Path) -> None:
    os.mkfifo(folder / "m.cert")
    for path in ("m.cert", "."):
        with pytest.raises(lw.FileError, match="no regular file"):
            lw.read(path)


INTEGER = SCHEMA.replace('kind = "continuous"\nlow = 0.0\nhigh = 1.0\n[[', 'kind = "integer"\nlow = 0\nhigh = 9\n[[')
RULE = "[[constraint]]\nterms = {{ {} }}\nat_most = {}\n[metric]"
EMBEDDING = '[metric]\nkind = "embedding"\n'


def ruled(*rules: tuple[str, object]) -> str:
    return SCHEMA.replace(
        "[metric]", "".join(RULE.format(*rule).removesuffix("[metric]") for rule in rules) + "[metric]"
    )


def metric(text: str) -> str:
    return SCHEMA[: SCHEMA.index("[metric]")] + text


SCHEMAS: dict[str, tuple[str, str]] = {
    "integer: no whole number of steps": (INTEGER.replace("high = 9", "high = 9\nstep = 2"), "income"),
    "integer: a step of 0": (INTEGER.replace("high = 9", "high = 9\nstep = 0"), "income"),
    "integer: too many steps": (INTEGER.replace("high = 9", "high = 9\nstep = 1e-12"), "income"),
    "a constraint that nobody satisfies": (ruled(("age = 1.0", -1.0)), "age"),
    "contradictory constraints": (ruled(("age = 1.0", 0.25), ("age = -1.0", -0.5)), "contradict"),
    "a constraint on nothing known": (ruled(('"height" = 1.0', 1.0)), "height"),
    "a constraint on a whole group": (ruled(('"job" = 1.0', 1.0)), "job"),
    "a constraint on an unseen category": (ruled(('"job=pilot" = 1.0', 1.0)), "pilot"),
    "a constraint that is not finite": (ruled(("age = 1.0", "nan")), "constraint"),
    "p below 1": (metric('[metric]\nkind = "lp"\nweights = 1.0\np = 0.5'), "p"),
    "p is nan": (metric('[metric]\nkind = "lp"\nweights = 1.0\np = nan'), "p"),
    "S not positive": (metric('[metric]\nkind = "mahalanobis"\nS = [[1,2,0,0],[2,1,0,0],[0,0,1,0],[0,0,0,1]]'), "eig"),
    "embedding: no network": (metric(EMBEDDING + '[metric.inner]\nkind = "lp"\nweights = 1.0'), "file"),
    "embedding: elsewhere": (
        metric(EMBEDDING + 'file = "../phi.npz"\n[metric.inner]\nkind = "lp"\nweights = 1.0'), "../phi.npz"),
    "embedding: no inner metric": (metric(EMBEDDING + 'file = "phi.npz"'), "inner"),
    "embedding: of another width": (
        metric(EMBEDDING + 'file = "phi.npz"\n[metric.inner]\nkind = "lp"\nweights = 1.0'), "columns"),
    "embedding: weights do not fit": (
        metric(EMBEDDING + 'file = "fits.npz"\n[metric.inner]\nkind = "lp"\nweights = [1.0]'), "bad.toml"),
}  # fmt: skip


@pytest.mark.parametrize("case", SCHEMAS)
def test_schema(case: str, folder: Path, capsys: Capture) -> None:
    for name, width in (("phi.npz", 7), ("fits.npz", 4)):
        lw.write_npz(lw.Network([lw.Layer(np.ones((2, width)), np.zeros(2), "relu")]), folder / name)
    text, culprit = SCHEMAS[case]
    (folder / "bad.toml").write_text(text)
    message = refused(capsys, "model.npz", "bad.toml", "--eps", "0.1")
    assert culprit in message
    assert "bad.toml" in message


ROWS = "age,income,job\n48,0.5,baker\n"
PEOPLE: dict[str, tuple[str, str]] = {
    "a feature missing": ("age,job\n48,baker\n", "income"),
    "a category unseen": ("age,income,job\n48,0.5,baker\n48,0.5,pilot\n", "line 3"),
    "no number": ("age,income,job\nold,0.5,baker\n", "age"),
    "a cell missing": ("age,income,job\n,0.5,baker\n", "age"),
    "a short line": ("age,income,job\n48,0.5\n", "line 2"),
    "nobody": ("age,income,job\n", "row"),
    "nobody inside": ("age,income,job\n300,0.5,baker\n", "domain"),
    "a column twice": ("age,age,income,job\n48,48,0.5,baker\n", "age"),
    "a byte of 0": ("age,income,job\n48,0.5,ba\0ker\n", "NUL"),
    "latin-1": ("age,income,job\n48,0.5,b\udce4ker\n", "UTF-8"),
}


@pytest.mark.parametrize("case", PEOPLE)
def test_people(case: str, folder: Path, capsys: Capture) -> None:
    text, culprit = PEOPLE[case]
    (folder / "bad.csv").write_bytes(text.encode(errors="surrogateescape"))
    message = refused(capsys, "model.npz", "schema.toml", "--eps", "0.1", "--people", "bad.csv", "--threads", "1")
    assert "bad.csv" in message
    assert culprit in message


OPTIONS: dict[str, tuple[list[str], str]] = {
    "people and left": (["--people", "people.csv", "--left", "person.csv"], "--left"),
    "people and where": (["--people", "people.csv", "--where", "age=20:30"], "--where"),
    "people and report": (["--people", "people.csv", "--report", "r.html"], "--report"),
    "people of another data set": (["--people", "german"], "german"),
    "people not there": (["--people", "nowhere.csv"], "nowhere.csv"),
    "left outside of the domain": (["--left", "old.csv"], "age"),
    "where: unknown feature": (["--where", "height=1:2"], "height"),
    "where: no limit": (["--where", "age"], "age"),
    "where: nothing": (["--where", "age="], "age"),
    "where: no number": (["--where", "age=young:old"], "young"),
    "where: backwards": (["--where", "age=40:20"], "age"),
    "where: nobody": (["--where", "age=200:300"], "age"),
    "where: nan": (["--where", "age=nan:3"], "age"),
    "where: unknown category": (["--where", "job=pilot"], "pilot"),
    "where: twice": (["--where", "age=20:30", "--where", "age=25:40"], "twice"),
    "where: no category": (["--where", "job=,"], "job"),
    "metric that the schema lacks": (["--metric", "embedding"], "embedding"),
    "metric of p below 1": (["--metric", "l0.5"], "p"),
    "logit of no sigmoid": (["--scale", "logit", "--output", "1"], "output 1"),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_option(case: str, folder: Path, capsys: Capture) -> None:
    (folder / "people.csv").write_text(ROWS)
    (folder / "old.csv").write_text("age,income,job\n120,0.5,baker\n")
    options, culprit = OPTIONS[case]
    assert culprit in refused(capsys, "model.npz", "schema.toml", "--eps", "0.1", *options)


@pytest.mark.parametrize(
    ("options", "culprit"),
    [(["--output", "3"], "output 3"), (["--output", "-1"], "output -1"), (["--scale", "logit"], "identity")],
)
def test_outputs_of_a_regression(options: list[str], culprit: str, folder: Path, capsys: Capture) -> None:
    lw.write_npz(lw.Network([lw.Layer(np.ones((3, 4)), np.zeros(3), "identity")]), folder / "many.npz")
    assert culprit in refused(capsys, "many.npz", "schema.toml", "--eps", "0.1", *options)


@pytest.mark.parametrize("kind", ["vibes", "lp", "l"])
def test_a_metric_that_a_data_set_lacks(kind: str, folder: Path, capsys: Capture) -> None:
    assert kind in refused(capsys, "model.npz", "german", "--eps", "0.1", "--metric", kind)


def other(capsys: Capture, *arguments: str) -> str:
    """Run a command other than `certify`; return its message once everything that must hold holds."""
    before = {p: p.read_bytes() for p in Path().iterdir() if p.is_file()}
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    seen = capsys.readouterr()
    assert code == 2, seen.err
    assert seen.out == ""
    assert seen.err.startswith("likewise: ")
    assert 1 <= len(seen.err.splitlines()) <= 3
    assert {p: p.read_bytes() for p in Path().iterdir() if p.is_file()} == before
    return seen.err


PROFILES: dict[str, tuple[list[str], str]] = {
    "no eps": ([], "--eps"),
    "eps is text": (["--eps", "small,large"], "small"),
    "eps is empty": (["--eps", ""], "--eps"),
    "eps is nan": (["--eps", "0.1,nan"], "eps"),
    "eps is negative": (["--eps", "0.1,-0.1"], "-0.1"),
    "another suffix": (["--eps", "0.1", "-o", "p.txt"], "p.txt"),
    "over the schema": (["--eps", "0.1", "-o", "schema.toml"], "schema.toml"),
    "people": (["--eps", "0.1", "--people", "people.csv"], "--people"),
    "no time": (["--eps", "0.1", "--seconds", "0"], "seconds"),
}


@pytest.mark.parametrize("case", PROFILES)
def test_profile(case: str, folder: Path, capsys: Capture) -> None:
    options, culprit = PROFILES[case]
    assert culprit in other(capsys, "profile", "model.npz", "schema.toml", *options)


GOOD = "age,job,sex,y\n30,a,m,1\n40,b,f,0\n50,a,f,1\n60,b,m,0\n"
TABLES: dict[str, tuple[str, list[str], str]] = {
    "no such target": (GOOD, ["--target", "z"], "z"),
    "no such sensitive column": (GOOD, ["--sensitive", "sex,race"], "race"),
    "target and sensitive": (GOOD, ["--target", "sex", "--sensitive", "sex"], "sex"),
    "target is the same for all": (GOOD.replace(",0\n", ",1\n"), ["--target", "y"], "y"),
    "everything is sensitive": ("sex,y\nm,1\nf,0\nm,0\n", ["--sensitive", "sex", "--target", "y"], "data.csv"),
    "sensitive, the same for all": (GOOD.replace(",m,", ",f,"), ["--sensitive", "sex"], "sex"),
    "one row": ("age,y\n3,1\n", [], "rows"),
    "no row": ("age,y\n", [], "row"),
    "everything missing": ("age,y\n?,1\n?,0\n", [], "age"),
    "empty": ("", [], "line"),
    "semicolons": ("age;y\n3;1\n", [], "commas"),
    "a column twice": ("age,age\n3,1\n", [], "age"),
    "no name": ("age,\n3,1\n", [], "column 2"),
    "a number beyond": ("age,y\n1e308,1\n-1e308,0\n", [], "age"),
    "over the data": (GOOD, ["-o", "data.csv"], "data.csv"),
    "into a missing folder": (GOOD, ["-o", "nowhere/schema.toml"], "nowhere"),
    "over a schema that was not named": (GOOD, [], "schema.toml"),
}


@pytest.mark.parametrize("case", TABLES)
def test_table(case: str, folder: Path, capsys: Capture) -> None:
    text, options, culprit = TABLES[case]
    (folder / "data.csv").write_text(text)
    if "schema.toml" not in culprit:
        (folder / "schema.toml").unlink()
    assert culprit in other(capsys, "schema", "data.csv", *options)


@pytest.mark.parametrize("data", ["nowhere.csv", ".", "model.npz"])
def test_table_path(data: str, folder: Path, capsys: Capture) -> None:
    assert data in other(capsys, "schema", data, "-o", "new.toml")
