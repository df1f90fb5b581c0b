"""Keras -> Network: .h5 and .keras files, read with h5py; neither Keras nor TensorFlow is needed.

.keras   a zip with config.json and model.weights.h5, in which arrays lie at layers/dense_1/vars/0
.h5      the attribute model_config, and arrays at model_weights/<layer>/<weight name>
.h5      weights alone, in either of the two layouts: a chain of Dense layers is assumed, and stderr says so
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from likewise.errors import FileError, InputError, MissingExtra, ModelError
from likewise.load._arrays import BROKEN, brief, listed
from likewise.load._bounded import content, entries
from likewise.load._graph import Graph
from likewise.load._hdf5 import Folder, opened
from likewise.load._keras_layers import LAYERS, Step, Tensor, shape_after
from likewise.network import Layer, Network
from likewise.rounding import Array

POLICIES = ("float32", "float64")
Arrays = Mapping[str, Sequence[Array]]
Place = tuple[str, int]  # a layer, and which of its calls
# What a configuration that is not of the expected form makes Python raise; each is turned into our own error.
MISFITS = (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError, OverflowError)


def read_keras(path: str | os.PathLike[str]) -> Network:
    """Return the network of a .keras or .h5 file; layers that cannot be read are refused by name."""
    file = Path(path)
    try:
        return _read_zip(file) if file.suffix.lower() == ".keras" else _read_h5(file)
    except (FileError, MissingExtra):
        raise
    except InputError as error:
        raise ModelError(f"{file}: {error}") from None


def _read_zip(file: Path) -> Network:
    names = entries(file, "Keras file (a zip archive)")
    missing = [name for name in ("config.json", "model.weights.h5") if name not in names]
    if missing:
        raise FileError(f"{file}: {listed(missing)} is missing in the archive")
    try:
        with zipfile.ZipFile(file) as archive:
            config = json.loads(archive.read("config.json"))
            about = json.loads(archive.read("metadata.json")) if "metadata.json" in names else {}
            weights = archive.read("model.weights.h5")
    except OSError as error:
        raise FileError(f"cannot read {file}: {error.strerror or brief(error)}") from None
    except BROKEN as error:
        raise FileError(f"{file} is not a readable Keras file: {brief(error)}") from None
    with opened(weights, f"{file}: model.weights.h5") as root:
        return _built(config, str(about.get("keras_version", "3")), lambda layers: _numbered(root, layers))


def _read_h5(file: Path) -> Network:
    with opened(content(file), str(file)) as root:
        written = root.text("model_config")
        if written is None:
            return _chain(file, _bare(root))
        try:
            config = json.loads(written)
        except BROKEN as error:
            raise ModelError(f"model_config is no JSON: {brief(error)}") from None
        weights = root.folder("model_weights")
        if weights is None:
            raise ModelError("the group 'model_weights' is missing")
        return _built(config, root.text("keras_version") or "2", lambda layers: _named(weights, layers))


# --- where the arrays lie ---------------------------------------------------------------------------------------------


def snake(kind: str) -> str:
    """Return the name under which Keras 3 stores a layer of a class: LeakyReLU -> leaky_re_lu."""
    return re.sub("([a-z])([A-Z])", r"\1_\2", re.sub("(.)([A-Z][a-z]+)", r"\1_\2", kind)).lower()


def _numbered(root: Folder, layers: Sequence[tuple[str, str]]) -> dict[str, list[Array]]:
    """Return the arrays of each layer (name, class) from layers/<class>_<n>/vars/<i>."""
    found: dict[str, list[Array]] = {}
    seen: dict[str, int] = {}
    for name, kind in layers:
        stem = snake(kind)
        count = seen[stem] = seen.get(stem, -1) + 1
        place = root.folder(f"layers/{stem}_{count}/vars" if count else f"layers/{stem}/vars")
        stored = None if place is None else place.text("name")
        if stored is not None and stored != name:
            raise ModelError(f"the weights of layer {name!r} are stored for {stored[:60]!r}")
        found[name] = [] if place is None else _variables(place)
    return found


def _variables(place: Folder) -> list[Array]:
    return [place.array(name) for name in place.names]  # 0, 1, ...: no layer that is read has ten


def _named(weights: Folder, layers: Sequence[tuple[str, str]]) -> dict[str, list[Array]]:
    """Return the arrays of each layer (name, class) from <layer>/<weight name>."""
    found: dict[str, list[Array]] = {}
    for name, _ in layers:
        place = weights.folder(name)
        found[name] = [] if place is None else [place.array(path) for path in place.texts("weight_names") or []]
    return found


def _bare(root: Folder) -> list[tuple[str, list[Array]]]:
    """Return name and arrays of each layer that has some, in order, from a file of weights alone."""
    ordered = root.texts("layer_names")
    if ordered is not None:
        return [(name, arrays) for name, arrays in _named(root, [(n, "") for n in ordered]).items() if arrays]
    layers = root.folder("layers")
    if layers is None:
        raise ModelError("is no Keras file: it has neither model_config nor layer_names nor layers")
    places = [(name, layers.folder(f"{name}/vars")) for name in layers.names]
    arrays = [(name, _variables(place)) for name, place in places if place is not None and place.names]
    return sorted(arrays, key=lambda item: (len(item[0]), item[0]))  # dense, dense_1, ..., dense_10


def _chain(file: Path, layers: Sequence[tuple[str, Sequence[Array]]]) -> Network:
    if not layers:
        raise ModelError("holds no weights")
    made = []
    for i, (name, arrays) in enumerate(layers):
        if not 1 <= len(arrays) <= 2 or arrays[0].ndim != 2:
            shapes = [array.shape for array in arrays]
            raise ModelError(f"layer {name!r} is no Dense layer: its arrays have shapes {shapes}; save the whole model")
        bias = arrays[1] if len(arrays) == 2 else np.zeros(arrays[0].shape[1])
        made.append(Layer(arrays[0].T, bias, "relu" if i < len(layers) - 1 else "sigmoid"))
    network = Network(made)
    assumed = "relu hidden layers and a sigmoid output" if len(made) > 1 else "a sigmoid output"
    print(f"{file}: holds weights alone, assuming Dense layers with {assumed}", file=sys.stderr)
    return network


# --- what the configuration says --------------------------------------------------------------------------------------


def _built(config: Any, version: str, arrays: Callable[[Sequence[tuple[str, str]]], Arrays]) -> Network:
    """Return the network of a configuration; `arrays` maps its layers, as (name, class), to their weights."""
    try:
        kind, inner = config["class_name"], config["config"]
        layers = inner if isinstance(inner, list) else inner["layers"]
        if kind not in ("Sequential", "Functional", "Model"):
            raise ModelError(f"a model of class {str(kind)[:60]!r} is not read: only Sequential and Functional")
        for layer in layers:
            _check(layer)
        weights = arrays([(str(layer["config"]["name"]), str(layer["class_name"])) for layer in layers])
        major = int(version.split(".")[0])
        if kind == "Sequential":
            return _sequential(layers, weights, major)
        return _functional(inner, layers, weights, major)
    except InputError:
        raise
    except MISFITS as error:
        raise ModelError(f"its configuration cannot be read: {type(error).__name__} {brief(error)}") from None


def _check(layer: Any) -> None:
    """Refuse a layer that is not one of Keras' own, or that rounds to less than float32."""
    kind, config = layer["class_name"], layer["config"]
    where = f"layer {str(config['name'])[:60]!r} ({str(kind)[:60]})"
    if kind not in LAYERS and kind != "InputLayer":
        raise ModelError(f"{where} is not read\nread are: InputLayer, {', '.join(LAYERS)}")
    if layer.get("registered_name") or not str(layer.get("module", "keras")).startswith(
        ("keras", "tensorflow", "tf_keras")
    ):
        raise ModelError(f"{where} is a class of its own, not the one of Keras")
    policy = config.get("dtype") or "float32"
    name = policy["config"]["name"] if isinstance(policy, dict) else policy
    if name not in POLICIES:
        raise ModelError(f"{where} computes in {str(name)[:40]}: only {' and '.join(POLICIES)} are read")


def _entering(layer: Mapping[str, Any]) -> tuple[int, ...] | None:
    """Return the shape of one person, if the layer says what comes in."""
    config = layer["config"]
    shape = (
        config.get("batch_shape") or config.get("batch_input_shape") or layer.get("build_config", {}).get("input_shape")
    )
    if not shape or not all(isinstance(size, int) and size > 0 for size in shape[1:]) or len(shape) < 2:
        return None
    return tuple(shape[1:])


def _sequential(layers: Sequence[Mapping[str, Any]], weights: Arrays, version: int) -> Network:
    shape = _entering(layers[0])
    if shape is None:
        kernel = next((weights[layer["config"]["name"]] for layer in layers if layer["class_name"] == "Dense"), [])
        if not kernel:
            raise ModelError("does not say how many columns come in")
        shape = kernel[0].shape[:1]
    graph = Graph(math.prod(shape))
    tensor = Tensor(shape, graph.inputs)
    for layer in layers:
        if layer["class_name"] != "InputLayer":
            tensor = _applied(layer, [tensor], weights, version, graph)
    return graph.network(tensor.value)


def _applied(layer: Mapping[str, Any], inputs: Sequence[Tensor], weights: Arrays, version: int, graph: Graph) -> Tensor:
    kind, config = layer["class_name"], layer["config"]
    where = f"layer {config['name'][:60]!r} ({kind})"
    value = LAYERS[kind](Step(kind, where, config, weights[config["name"]], version, graph), inputs)
    return Tensor(shape_after(kind, inputs, value), value)


def _functional(
    config: Mapping[str, Any], layers: Sequence[Mapping[str, Any]], weights: Arrays, version: int
) -> Network:
    outputs, entering = _listed(config["output_layers"]), _listed(config["input_layers"])
    if len(outputs) != 1:
        raise ModelError(f"has {len(outputs)} outputs ({listed([name for name, _ in outputs])}): keep the score only")
    by_name = {layer["config"]["name"]: layer for layer in layers}
    shapes = {place: _entering(by_name[place[0]]) for place in entering}
    sizes = [math.prod(shape) if shape else 0 for shape in shapes.values()]
    if 0 in sizes:
        raise ModelError(f"the shape of input {list(shapes)[sizes.index(0)][0]!r} is not fixed")
    graph = Graph(sum(sizes))
    starts = np.cumsum([0, *sizes])
    done: dict[Place, Tensor] = {}
    for (place, shape), start, size in zip(shapes.items(), starts, sizes, strict=False):
        alone = graph.inputs if len(sizes) == 1 else graph.take(graph.inputs, np.arange(start, start + size))
        done[place] = Tensor(shape or (), alone)
    waiting = [(name, i, sources) for name, layer in by_name.items() for i, sources in enumerate(_calls(layer))]
    while outputs[0] not in done:
        ready = [call for call in waiting if all(source in done for source in call[2])]
        if not ready:
            raise ModelError(f"the output {outputs[0][0]!r} is not connected to the inputs")
        for name, i, sources in ready:
            done[name, i] = _applied(by_name[name], [done[source] for source in sources], weights, version, graph)
        waiting = [call for call in waiting if (call[0], call[1]) not in done]
    return graph.network(done[outputs[0]].value)


def _listed(stored: Any) -> list[Place]:
    """Return the layers of the inputs or outputs, which Keras writes as [name, 0, 0] or as a list of these."""
    many = [stored] if stored and isinstance(stored[0], str) else stored
    return [(str(entry[0]), int(entry[1])) for entry in many]


def _calls(layer: Mapping[str, Any]) -> Iterator[list[Place]]:
    """Yield, for each call of a layer, where its inputs come from; Keras 2 and 3 write this differently."""
    for call in layer.get("inbound_nodes", []):
        if isinstance(call, dict):
            _plain_call(layer, call["kwargs"])
            yield [_source(entry) for argument in call["args"] for entry in _flat(argument)]
        else:
            for entry in call:
                _plain_call(layer, entry[3] if len(entry) > 3 else {})
            yield [(str(entry[0]), int(entry[1])) for entry in call]


def _flat(argument: Any) -> list[Any]:
    return argument if isinstance(argument, list) else [argument]


def _source(entry: Any) -> Place:
    name, call, _ = entry["config"]["keras_history"]
    return str(name), int(call)


def _plain_call(layer: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    asked = [name for name, value in options.items() if value not in (None, False)]
    if asked:
        raise ModelError(f"layer {layer['config']['name'][:60]!r} is called with {listed(asked)}, which is not read")
