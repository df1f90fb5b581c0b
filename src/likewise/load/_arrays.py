"""Open an npz archive from a stranger: no pickles, no surprises in size, and every failure names the file.

An npz is a zip of npy files. Python's zip reader never yields more bytes than an entry declares, so the declared
sizes are a true bound on memory, and they are checked before anything is unpacked. Each npy header is then held
against the bytes that are there, before numpy makes room for what the header claims.
"""

from __future__ import annotations

import io
import lzma
import math
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from likewise.errors import FileError, InputError
from likewise.rounding import Array

LIMIT = 1 << 30  # no archive unpacks to more bytes than this
EXACT = 1 << 53  # integers beyond this may not survive float64
# Everything that zipfile, its decompressors and numpy's header parser are known to raise on damaged bytes.
BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    tokenize.TokenError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    SyntaxError,
    EOFError,
    MemoryError,
    OverflowError,
    RuntimeError,
    Warning,
)


def regular(path: Path) -> Path:
    """Return the path if it is a regular file of a bounded size: no folder, no pipe, no device."""
    try:
        if path.is_dir():
            raise FileError(f"cannot read {path}: it is a directory")
        size = path.stat().st_size
        if not path.is_file():
            raise FileError(f"cannot read {path}: it is no regular file")
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or brief(error)}") from None
    except ValueError as error:  # a NUL in the name
        raise FileError(f"cannot read {str(path)!r}: {brief(error)}") from None
    if size > LIMIT:
        raise FileError(f"{path}: has {size >> 20} MiB, more than the {LIMIT >> 20} MiB that are allowed")
    return path


def read_arrays(path: Path, wanted: Callable[[str], bool]) -> tuple[dict[str, np.ndarray], list[str]]:
    """Return the wanted arrays of an npz file by key, and the keys that were not wanted."""
    try:
        with zipfile.ZipFile(regular(path)) as archive:
            return _unpack(path, archive, wanted)
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or brief(error)}") from None
    except BROKEN as error:
        raise FileError(f"{path} is not a readable npz file: {brief(error)}") from None


def _unpack(
    path: Path, archive: zipfile.ZipFile, wanted: Callable[[str], bool]
) -> tuple[dict[str, np.ndarray], list[str]]:
    entries = archive.infolist()
    counted = _counted(path)
    if counted not in (len(entries), 0xFFFF):  # the second stands for "too many for this field"
        raise FileError(f"{path} is not a readable npz file: {counted} entries are counted, {len(entries)} are listed")
    size = sum(entry.file_size for entry in entries)
    if size > LIMIT:
        raise FileError(f"{path}: unpacks to {size >> 20} MiB, more than the {LIMIT >> 20} MiB that are allowed")
    arrays: dict[str, np.ndarray] = {}
    others: list[str] = []
    for entry in entries:
        key = entry.filename.removesuffix(".npy")
        if not wanted(key):
            others.append(key)
        elif key in arrays:
            raise FileError(f"{path}: the array {key!r} is stored twice")
        else:
            arrays[key] = _read_npy(f"{path}: array {key!r}", archive.read(entry))
    return arrays, others


def _counted(path: Path) -> int:
    """Return how many entries the end of the archive counts.

    Python's zip reader ignores that number, so one damaged length in the listing can swallow the entries after it.
    """
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - (1 << 16) - 22))
        tail = stream.read()
    end = tail.rfind(b"PK\5\6")
    return int.from_bytes(tail[end + 10 : end + 12], "little")


def _read_npy(what: str, content: bytes) -> np.ndarray:
    stream = io.BytesIO(content)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy only warns about a header it had to repair
            shape, dtype = _header(stream)
    except BROKEN as error:
        raise FileError(f"{what} is not an npy array: {brief(error)}") from None
    if dtype.hasobject:
        raise FileError(f"{what} holds pickled objects, which could run code: store plain numbers")
    claimed, there = math.prod(shape) * dtype.itemsize, len(content) - stream.tell()
    if min(shape, default=0) < 0 or claimed != there:
        raise FileError(f"{what} claims shape {shape} ({claimed:,} bytes), but {there:,} bytes are there")
    stream.seek(0)
    loaded: np.ndarray = np.load(stream, allow_pickle=False)
    return loaded


def _header(stream: io.BytesIO) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
    else:
        raise ValueError(f"npy format {version[0]}.{version[1]} is not supported")
    return shape, dtype


def numbers(array: np.ndarray) -> Array:
    """Return an array of real numbers as float64, or raise a ValueError if that would lose something."""
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        raise ValueError(f"needs real numbers of at most 64 bits, got dtype {array.dtype}")
    if array.dtype.kind in "iu" and array.size and max(abs(int(array.min())), abs(int(array.max()))) > EXACT:
        raise ValueError("has integers beyond 2^53, which float64 cannot hold")
    return np.asarray(array, dtype=np.float64)


def listed(names: list[str], most: int = 5) -> str:
    """Return names for a message: quoted, shortened, and not too many."""
    shown = ", ".join(repr(name if len(name) <= 40 else name[:40] + "...") for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def brief(error: BaseException) -> str:
    """Return the first line of an error, shortened."""
    first = str(error).strip().split("\n", 1)[0]
    return first[:200] or type(error).__name__


def take(path: Path, arrays: Mapping[str, np.ndarray], key: str, kind: type[InputError]) -> Array:
    """Return one array as float64, or raise an error of that kind that names the file and the key."""
    try:
        return numbers(arrays[key])
    except ValueError as error:
        raise kind(f"{path}: {key} {error}") from None
