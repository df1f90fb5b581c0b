"""Read files of strangers: regular files only, of a bounded size, and errors that name the file."""

from __future__ import annotations

import zipfile
from pathlib import Path

from likewise.errors import FileError
from likewise.load._arrays import BROKEN, LIMIT, brief, regular


def content(path: Path, offset: int = 0, length: int | None = None) -> bytes:
    """Return the bytes of a regular file, or `length` of them from `offset` on."""
    regular(path)
    try:
        with path.open("rb") as stream:
            stream.seek(offset)
            return stream.read(LIMIT if length is None else length)
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or brief(error)}") from None


def entries(path: Path, what: str) -> dict[str, int]:
    """Return the names in a zip archive with the sizes that they unpack to, which are bounded together."""
    regular(path)
    try:
        with zipfile.ZipFile(path) as archive:
            listed = archive.infolist()
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or brief(error)}") from None
    except BROKEN as error:
        raise FileError(f"{path} is not a readable {what}: {brief(error)}") from None
    size = sum(entry.file_size for entry in listed)
    if size > LIMIT:
        raise FileError(f"{path}: unpacks to {size >> 20} MiB, more than the {LIMIT >> 20} MiB that are allowed")
    return {entry.filename: entry.file_size for entry in listed}
