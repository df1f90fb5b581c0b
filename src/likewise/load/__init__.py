"""Files into values: a model file becomes a Network, a schema.toml a domain and a metric.

The files of this room:

    _arrays.py   the safe way to open an npz archive from a stranger
    npz.py       W0, b0, W1, b1, ... <-> Network
    schema.py    schema.toml -> Schema;  _toml.py writes it back
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from likewise.errors import FileError, ModelError
from likewise.load._toml import write_schema
from likewise.load.npz import read_npz, write_npz
from likewise.load.schema import Schema, read_schema
from likewise.network import Network

__all__ = ["Schema", "load", "read_npz", "read_schema", "write_npz", "write_schema"]

READERS: Mapping[str, Callable[[Path], Network]] = {".npz": read_npz}


def load(source: Network | str | os.PathLike[str]) -> Network:
    """Return a Network from a model file, by its suffix; a Network passes through as it is."""
    if isinstance(source, Network):
        return source
    if not isinstance(source, str | os.PathLike):
        raise ModelError(f"cannot load a network from {type(source).__name__}: give a Network or the path of a file")
    path = Path(source)
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise FileError(f"{path}: unknown model format {path.suffix or '(no suffix)'!r}; known: {', '.join(READERS)}")
    return reader(path)
