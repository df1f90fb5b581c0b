"""npz: W0, b0, W1, b1, ... with Wi of shape (out, in), and an optional string array `activations`, one per layer.

A layer whose neurons differ has a list of names with commas between them, one per neuron.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from likewise.certificate import write_atomically
from likewise.errors import ModelError
from likewise.load._arrays import listed, read_arrays, take
from likewise.network import Layer, Network

WEIGHT = re.compile(r"[Wb](0|[1-9][0-9]{0,3})")


def read_npz(path: str | os.PathLike[str]) -> Network:
    """Return the network of an npz file; `meta` is ignored, and any other unknown key is refused.

    Without `activations`, relu hidden layers and a sigmoid output are assumed, and stderr says so.
    """
    file = Path(path)
    arrays, others = read_arrays(file, lambda key: key == "activations" or WEIGHT.fullmatch(key) is not None)
    unknown = [key for key in others if key != "meta"]
    if unknown:
        raise ModelError(
            f"{file}: unknown key {listed(unknown)}\na model has W0, b0, W1, b1, ..., activations and meta"
        )
    depth = _depth(file, arrays)
    layers = []
    for i, activation in enumerate(_activations(file, arrays, depth)):
        weight, bias = take(file, arrays, f"W{i}", ModelError), take(file, arrays, f"b{i}", ModelError)
        try:
            layers.append(Layer(weight, bias, activation))
        except ModelError as error:
            raise ModelError(f"{file}: layer {i}: {error}") from None
    try:
        return Network(layers)
    except ModelError as error:
        raise ModelError(f"{file}: {error}") from None


def _depth(file: Path, arrays: Mapping[str, np.ndarray]) -> int:
    keys = arrays.keys() - {"activations"}
    depth = 1 + max((int(key[1:]) for key in keys), default=0)
    missing = [key for i in range(depth) for key in (f"W{i}", f"b{i}") if key not in keys]
    if missing:
        raise ModelError(f"{file}: {listed(missing)} is missing; found: {listed(sorted(keys), 8) or 'no weights'}")
    return depth


def _activations(file: Path, arrays: Mapping[str, np.ndarray], depth: int) -> list[str | list[str]]:
    stored = arrays.get("activations")
    if stored is None:
        assumed = "relu hidden layers and a sigmoid output" if depth > 1 else "a sigmoid output"
        print(f"{file}: no activations are stored, assuming {assumed}", file=sys.stderr)
        return [*["relu"] * (depth - 1), "sigmoid"]
    if stored.dtype.kind != "U" or stored.shape != (depth,):
        raise ModelError(
            f"{file}: activations must be {depth} strings, one per layer, got {stored.dtype} of shape {stored.shape}"
        )
    return [str(name).split(",") if "," in str(name) else str(name) for name in stored]


def _joined(names: tuple[str, ...]) -> str:
    return names[0] if len(set(names)) == 1 else ",".join(names)


def write_npz(network: Network, path: str | os.PathLike[str]) -> Path:
    """Write the network atomically and return the path; `read_npz` gives back the same digest."""
    arrays: dict[str, np.ndarray] = {}
    for i, layer in enumerate(network.layers):
        arrays |= {f"W{i}": layer.weight, f"b{i}": layer.bias}
    arrays["activations"] = np.array([_joined(layer.activations) for layer in network.layers])
    packed = io.BytesIO()
    np.savez(packed, **arrays)  # type: ignore[arg-type]
    target = Path(path)
    write_atomically(target, packed.getvalue())
    return target
