"""Model files: what is written reads back the same, and every bad file is refused by name in three lines."""

from __future__ import annotations

import io
import math
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.errors import FileError, InputError, ModelError
from likewise.load import load, read_npz, write_npz
from likewise.network import Layer, Network


def network(hidden: int = 3) -> Network:
    rng = np.random.default_rng(7)
    return Network(
        [
            Layer(rng.normal(size=(hidden, 2)), rng.normal(size=hidden), "tanh"),
            Layer(rng.normal(size=(1, hidden)), rng.normal(size=1), "sigmoid"),
        ]
    )


GOOD = {"W0": np.ones((3, 2)), "b0": np.zeros(3), "W1": np.ones((1, 3)), "b1": np.zeros(1)}
NAMES = np.array(["relu", "sigmoid"])


def store(path: Path, **arrays: object) -> Path:
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return path


def refuses(path: Path, kind: type[InputError], *culprits: str) -> None:
    with pytest.raises(kind) as caught:
        load(path)
    message = str(caught.value)
    assert path.name in message
    message = message.replace(str(path.parent), "")  # pytest's folders are named after the test
    assert message.count("\n") < 3
    for culprit in culprits:
        assert culprit in message


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=True)
    return stream.getvalue()


def zipped(path: Path, entries: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return path


def forged(shape: str, descr: str = "<f8") -> bytes:
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + b"\0" * 16


def test_a_network_reads_back_with_the_same_digest(tmp_path: Path) -> None:
    net = network()
    assert load(write_npz(net, tmp_path / "m.npz")).digest == net.digest
    assert [p.name for p in tmp_path.iterdir()] == ["m.npz"]  # no temporary file is left


def test_a_network_passes_through() -> None:
    net = network()
    assert load(net) is net


def test_stored_activations_are_used_and_silence_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = store(tmp_path / "m.npz", **GOOD, activations=np.array(["tanh", "identity"]), meta="anything")
    assert [layer.activations[0] for layer in read_npz(path).layers] == ["tanh", "identity"]
    assert capsys.readouterr() == ("", "")


def test_missing_activations_are_assumed_and_said_on_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = read_npz(store(tmp_path / "m.npz", **GOOD))
    assert [layer.activations[0] for layer in net.layers] == ["relu", "sigmoid"]
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "m.npz" in err
    assert "relu" in err


def test_integers_and_small_floats_are_numbers_too(tmp_path: Path) -> None:
    arrays = {key: value.astype(kind) for (key, value), kind in zip(GOOD.items(), "iBfe", strict=True)}
    net = read_npz(store(tmp_path / "m.npz", **arrays, activations=NAMES))
    assert net([[1.0, 2.0]]) == pytest.approx(1 / (1 + math.exp(-9)))


def test_a_layer_with_mixed_activations_reads_back(tmp_path: Path) -> None:
    names = ["relu", "identity", "tanh"]
    mixed = Network([Layer(np.ones((3, 2)), np.zeros(3), names), Layer(np.ones((1, 3)), [0], "sigmoid")])
    path = write_npz(mixed, tmp_path / "m.npz")
    assert load(path).digest == mixed.digest
    with np.load(path) as stored:
        assert stored["activations"].tolist() == ["relu,identity,tanh", "sigmoid"]


def test_writing_into_a_missing_folder_names_it(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="nowhere"):
        write_npz(network(), tmp_path / "nowhere" / "m.npz")


@pytest.mark.parametrize("source", [3, None, [1.0], b"m.npz"])
def test_what_is_not_a_path_is_refused(source: object) -> None:
    with pytest.raises(ModelError, match=type(source).__name__):
        load(source)  # type: ignore[arg-type]


def test_an_unknown_suffix_lists_the_known_ones(tmp_path: Path) -> None:
    refuses(tmp_path / "model.exe", FileError, ".exe", ".npz")
    refuses(tmp_path / "model", FileError, "no suffix", ".npz")


@pytest.mark.parametrize("suffix", [".pkl", ".pickle", ".joblib"])
def test_a_pickle_is_refused_with_the_reason(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"model{suffix}"
    path.write_bytes(b"anything")
    refuses(path, FileError, "run code", "likewise.load(model)")


def test_files_that_are_no_archives_are_refused(tmp_path: Path) -> None:
    refuses(tmp_path / "missing.npz", FileError, "No such file")
    (tmp_path / "folder.npz").mkdir()
    refuses(tmp_path / "folder.npz", FileError, "directory")
    (tmp_path / "text.npz").write_text("hello")
    refuses(tmp_path / "text.npz", FileError, "not a zip")
    whole = write_npz(network(), tmp_path / "m.npz").read_bytes()
    (tmp_path / "half.npz").write_bytes(whole[: len(whole) // 2])
    refuses(tmp_path / "half.npz", FileError, "not a zip")


def test_damage_inside_of_the_archive_is_refused(tmp_path: Path) -> None:
    whole = bytearray(write_npz(network(), tmp_path / "m.npz").read_bytes())
    whole[200] ^= 0xFF
    (tmp_path / "bent.npz").write_bytes(whole)
    refuses(tmp_path / "bent.npz", FileError)
    refuses(zipped(tmp_path / "noise.npz", {"W0.npy": b"not an array"}), FileError, "'W0'")
    cut = npy(GOOD["W0"])[:-8]
    refuses(zipped(tmp_path / "cut.npz", {"W0.npy": cut}), FileError, "'W0'", "40 bytes")
    nested = forged("(" * 60)
    refuses(zipped(tmp_path / "nested.npz", {"b0.npy": nested}), FileError, "'b0'")


def test_a_listing_that_swallows_its_end_is_refused(tmp_path: Path) -> None:
    path = write_npz(network(), tmp_path / "m.npz")
    content = bytearray(path.read_bytes())
    second = content.index(b"PK\1\2", content.index(b"PK\1\2") + 4)
    rest = content.index(b"PK\5\6") - second
    own = 46 + int.from_bytes(content[second + 28 : second + 30], "little")
    content[second + 32 : second + 34] = (rest - own).to_bytes(2, "little")  # the length of its comment
    path.write_bytes(content)
    refuses(path, FileError, "5 entries", "2 are listed")


def test_pickles_are_refused_and_never_run(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (Path.touch, (Path(tmp_path / "sprung"),))  # type: ignore[return-value]

    refuses(
        store(tmp_path / "m.npz", **(GOOD | {"W0": np.array([Trap()], dtype=object)})),
        FileError,
        "'W0'",
        "pickled objects",
    )
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("shape", ["(1000000, 1000000)", "(99999999999999999999,)", "(-1, -2)"])
def test_a_header_that_claims_too_much_is_refused_before_memory_is_taken(tmp_path: Path, shape: str) -> None:
    refuses(zipped(tmp_path / "m.npz", {"W0.npy": forged(shape)}), FileError, "'W0'", "claims")


def test_an_archive_that_unpacks_to_gigabytes_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "bomb.npz", {"W0.npy": b""})
    content = bytearray(path.read_bytes())
    central = content.index(b"PK\x01\x02")
    content[central + 24 : central + 28] = (3 << 30).to_bytes(4, "little")  # the uncompressed size it declares
    path.write_bytes(content)
    refuses(path, FileError, "3072 MiB")


def test_the_same_array_twice_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m.npz", "w") as archive:
        archive.writestr("W0.npy", npy(np.ones((1, 1))))
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("W0.npy", npy(np.zeros((1, 1))))
    refuses(tmp_path / "m.npz", FileError, "'W0'", "twice")


@pytest.mark.parametrize(
    ("change", "culprits"),
    [
        ({"extra": np.ones(1)}, ("unknown key", "'extra'")),
        ({"W01": np.ones((1, 1))}, ("unknown key", "'W01'")),
        ({f"stray{i}": np.ones(1) for i in range(99)}, ("unknown key", "94 more")),
        ({"b1": None}, ("'b1'", "missing")),
        ({"W0": None, "b0": None, "W1": None, "b1": None}, ("'W0'", "missing", "no weights")),
        ({"W5000": np.ones((1, 1))}, ("'W2'", "missing")),
        ({"W1": np.ones((1, 3), dtype=complex)}, ("W1", "complex128")),
        ({"b0": np.array(["a", "b", "c"])}, ("b0", "<U1")),
        ({"W0": np.ones((3, 2), dtype=bool)}, ("W0", "bool")),
        ({"W0": np.ones((3, 2), dtype=np.longdouble)}, ("W0", "longdouble")),
        ({"b1": np.array([2**60 + 1])}, ("b1", "2^53")),
        ({"W0": np.float64(1.0)}, ("layer 0", "()")),
        ({"b1": np.zeros(2)}, ("layer 1", "(2,)")),
        ({"W1": np.ones((1, 4))}, ("layer 1", "4 inputs")),
        ({"W0": np.full((3, 2), np.nan)}, ("layer 0", "non-finite")),
        ({"activations": np.array(["relu"])}, ("activations", "2 strings")),
        ({"activations": np.array([1, 2])}, ("activations", "int64")),
        ({"activations": np.array(["relu", "swoosh"])}, ("layer 1", "swoosh")),
        ({"activations": np.array(["relu,tanh", "sigmoid"])}, ("layer 0", "2 activations for 3 neurons")),
        ({"activations": np.array(["relu,tanh,", "sigmoid"])}, ("layer 0", "unknown activation ''")),
    ],
)
def test_wrong_content_is_refused_by_name(tmp_path: Path, change: dict[str, object], culprits: tuple[str, ...]) -> None:
    arrays = {key: value for key, value in (GOOD | {"activations": NAMES} | change).items() if value is not None}
    if "longdouble" in culprits:
        if np.dtype(np.longdouble).itemsize == 8:
            pytest.skip("long double is double here")
        culprits = ("W0", str(np.dtype(np.longdouble)))
    refuses(store(tmp_path / "m.npz", **arrays), ModelError, *culprits)


@settings(max_examples=120, deadline=None)
@given(place=st.integers(0, 10**6), flip=st.integers(1, 255), cut=st.integers(0, 3))
def test_no_damage_escapes_as_anything_but_an_input_error(
    tmp_path_factory: pytest.TempPathFactory, place: int, flip: int, cut: int
) -> None:
    path = tmp_path_factory.mktemp("bent") / "m.npz"
    content = bytearray(write_npz(network(), path).read_bytes())
    content[place % len(content)] ^= flip
    path.write_bytes(content[: len(content) - 20 * cut])
    complaint = ""
    try:
        loaded = load(path)
    except InputError as error:
        complaint = str(error)
    if complaint:
        assert complaint.count("\n") < 3
        assert "m.npz" in complaint
    else:  # the byte was one that zip does not use; what the checksums protect is unchanged
        assert loaded.digest == network().digest
