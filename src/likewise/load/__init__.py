"""Models and files into values: a model becomes a Network, a schema.toml a domain and a metric.

The files of this room:

    _graph.py         affine maps and activations as a graph -> the canonical chain of layers
    _operations.py    what frameworks share, written with our activations: batch norm, clip, leaky slopes, ...
    npz.py            W0, b0, W1, b1, ... <-> Network
    from_onnx.py      .onnx;  _tensor.py, _onnx_shape.py, _onnx_math.py are its operations
    from_torch.py     nn.Module, .pt and .pth
    from_keras.py     .keras and .h5;  _keras_layers.py are its layers, _hdf5.py opens the file safely
    from_sklearn.py   fitted estimators and pipelines;  _columns.py reads their preprocessing
    _arrays.py        the safe way to open an npz archive from a stranger;  _bounded.py any other file
    schema.py         schema.toml -> Schema;  _toml.py writes it back
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from likewise.errors import FileError, ModelError
from likewise.load._toml import write_schema
from likewise.load.from_keras import read_keras
from likewise.load.from_onnx import read_onnx
from likewise.load.from_sklearn import Folded, folded, read_sklearn
from likewise.load.from_torch import read_module, read_pt
from likewise.load.npz import read_npz, write_npz
from likewise.load.schema import Schema, read_schema
from likewise.network import Network

__all__ = [
    "Folded",
    "Schema",
    "folded",
    "load",
    "read_keras",
    "read_module",
    "read_npz",
    "read_onnx",
    "read_pt",
    "read_schema",
    "read_sklearn",
    "write_npz",
    "write_schema",
]

READERS: Mapping[str, Callable[[Path], Network]] = {
    ".npz": read_npz,
    ".onnx": read_onnx,
    ".pt": read_pt,
    ".pth": read_pt,
    ".keras": read_keras,
    ".h5": read_keras,
}
PICKLES = (".pkl", ".pickle", ".joblib", ".sav")
OBJECTS: Mapping[str, Callable[[Any], Network]] = {"torch": read_module, "sklearn": read_sklearn}


def load(source: Any) -> Network:
    """Return a Network from a model file by its suffix, or from a torch module or a fitted scikit-learn object.

    A Network passes through as it is. Nothing in a file can run: pickles are refused.
    """
    if isinstance(source, Network):
        return source
    if isinstance(source, str | os.PathLike):
        return _from_file(Path(source))
    homes = [parent.__module__.split(".")[0] for parent in type(source).__mro__]  # so that nothing is imported for it
    if "keras" in homes:  # asked first: with one of its back ends, a Keras model is a torch module too
        raise ModelError(f"cannot load a network from the Keras object {type(source).__name__}: save it as .keras")
    reader = next((OBJECTS[home] for home in homes if home in OBJECTS), None)
    if reader is None:
        known = "give a Network, the path of a file, a torch module or a fitted scikit-learn model"
        raise ModelError(f"cannot load a network from {type(source).__name__}: {known}")
    return reader(source)


def _from_file(path: Path) -> Network:
    suffix = path.suffix.lower()
    if suffix in PICKLES:
        raise FileError(
            f"{path}: a pickle can run code when it is opened, so it is not read\n"
            "open it yourself if you trust it, and give the object: likewise.load(model)"
        )
    reader = READERS.get(suffix)
    if reader is None:
        raise FileError(f"{path}: unknown model format {suffix or '(no suffix)'!r}; known: {', '.join(READERS)}")
    return reader(path)
