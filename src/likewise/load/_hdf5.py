"""HDF5 files of strangers: plain groups and plain arrays only, and nothing that leads out of the file.

The only file that imports h5py. Links to other places, arrays kept in other files, virtual arrays and arrays that claim
more than is stored are refused before anything is read.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, final

import numpy as np

from likewise.errors import FileError, InputError, MissingExtra, ModelError
from likewise.load._arrays import BROKEN, LIMIT, brief, numbers
from likewise.load._hdf5_bytes import damaged
from likewise.rounding import Array

MOST_NAMES = 100_000


def _library() -> Any:
    try:
        import h5py
    except ImportError:
        raise MissingExtra("h5py (to read Keras models)", "keras") from None
    return h5py


@final
class Folder:
    """A group of an HDF5 file."""

    def __init__(self, group: Any, path: str) -> None:
        self._group, self.path = group, path

    def __repr__(self) -> str:
        return f"Folder({self.path!r})"

    @property
    def names(self) -> list[str]:
        """The names in the group, sorted."""
        if len(self._group) > MOST_NAMES:
            raise ModelError(f"{self.path or '/'}: has more than {MOST_NAMES:,} entries")
        return sorted(str(name) for name in self._group)

    def folder(self, name: str) -> Folder | None:
        """Return a group by its path below this one, or None if there is nothing."""
        found = self._open(name)
        if found is not None and not isinstance(found, _library().Group):
            raise ModelError(f"{self.path}/{name}: expected a group")
        return None if found is None else Folder(found, f"{self.path}/{name}")

    def array(self, name: str) -> Array:
        """Return an array by its path below this group, as float64."""
        found, what = self._open(name), f"{self.path}/{name}"
        if not isinstance(found, _library().Dataset):
            raise ModelError(f"{what}: {'is missing' if found is None else 'expected an array'}")
        if found.dtype.kind not in "fiu":
            raise ModelError(f"{what}: needs real numbers, got {found.dtype}")
        layout = found.id.get_create_plist()
        if layout.get_external_count() or found.is_virtual:
            raise ModelError(f"{what}: keeps its numbers in another file, which is not read")
        claimed, stored = (
            found.size * found.dtype.itemsize if found.shape is not None else 0,
            found.id.get_storage_size(),
        )
        if found.shape is None or claimed > LIMIT or claimed > stored or layout.get_nfilters():
            raise ModelError(
                f"{what}: claims shape {found.shape} ({claimed:,} bytes), {stored:,} plain bytes are there"
            )
        try:
            return numbers(np.asarray(found[()]))
        except ValueError as error:
            raise ModelError(f"{what}: {error}") from None

    def _open(self, name: str) -> Any:
        """Return what lies at a path, every step of which must be a plain entry of its group."""
        h5py = _library()
        here = self._group
        for step in name.split("/"):
            if not isinstance(here, h5py.Group) or step in ("", ".", ".."):
                raise ModelError(f"{self.path}: {name[:100]!r} is no path in the file")
            link = here.get(step, getlink=True)
            if link is None:
                return None
            if not isinstance(link, h5py.HardLink):
                raise ModelError(f"{self.path}/{name}: {step[:60]!r} is a link to elsewhere, which is not followed")
            here = here[step]
        return here

    def text(self, name: str) -> str | None:
        """Return an attribute that is text, or None if it is not there."""
        found = self._attribute(name)
        if found is None or isinstance(found, str):
            return found
        if isinstance(found, bytes):
            return found.decode()
        raise ModelError(f"{self.path or '/'}: the attribute {name} must be text")

    def texts(self, name: str) -> list[str] | None:
        """Return an attribute that is a list of texts; a long one is stored in pieces name0, name1, ..."""
        whole = self._attribute(name)
        pieces = [] if whole is None else [whole]
        while whole is None and (piece := self._attribute(f"{name}{len(pieces)}")) is not None:
            pieces.append(piece)
        if not pieces:
            return None
        return [t.decode() if isinstance(t, bytes) else str(t) for piece in pieces for t in np.ravel(piece)]

    def _attribute(self, name: str) -> Any:
        if name not in self._group.attrs:
            return None
        stored = self._group.attrs.get_id(name)
        size = stored.get_space().get_simple_extent_npoints() * stored.get_type().get_size()
        if size > LIMIT >> 4:
            raise ModelError(f"{self.path or '/'}: the attribute {name} claims {size:,} bytes")
        return self._group.attrs[name]


@contextmanager
def opened(content: bytes, what: str) -> Iterator[Folder]:
    """Open an HDF5 file that is in memory, and turn whatever h5py raises on damaged bytes into a FileError."""
    h5py = _library()
    damage = damaged(content)
    if damage:
        raise FileError(f"{what} is not a readable HDF5 file: {damage}")
    try:
        with h5py.File(io.BytesIO(content), "r") as file:
            yield Folder(file, "")
    except InputError:
        raise
    except (OSError, *BROKEN) as error:
        raise FileError(f"{what} is not a readable HDF5 file: {brief(error)}") from None
