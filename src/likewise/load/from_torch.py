"""torch -> Network: a plain nn.Sequential directly, any other module through its ONNX export, and .pt state dicts.

The only file that imports torch, and only once it is called. A module is copied, put in evaluation mode and float64,
and never changed itself. Files are read with `weights_only=True`: nothing in them can run.
"""

from __future__ import annotations

import copy
import io
import os
import pickle
import re
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.errors import FileError, MissingExtra, ModelError
from likewise.load import _operations as common
from likewise.load._arrays import BROKEN, LIMIT, brief, listed
from likewise.load._bounded import entries
from likewise.load._graph import Graph, Value, finite
from likewise.load.from_onnx import from_bytes, library
from likewise.network import Layer, Network
from likewise.rounding import Array

if TYPE_CHECKING:
    from torch import Tensor, nn

KEY = re.compile(r"((?:.*\.)?)(0|[1-9][0-9]{0,3})\.(weight|bias)")
STATE_HINT = "save the plain weights of a Sequential with torch.save(model.state_dict(), path), or export to ONNX"
TRIES = 64  # people on which an exported module is compared with itself
AGREE = 1e-8  # how far its float64 scores may be from those of the network, relative to 1 or to their size


def _library() -> Any:
    try:
        import torch
    except ImportError:
        raise MissingExtra("torch (to read torch models)", "torch") from None
    return torch


# --- modules ----------------------------------------------------------------------------------------------------------


def read_module(module: nn.Module, inputs: int | None = None) -> Network:
    """Return the network of a module; `inputs` is its number of columns, where its first Linear layer does not tell."""
    copied = _copied(module)
    width = inputs or _width(copied)
    steps = _steps(copied, "")
    if steps is None:
        return _exported(copied, width)
    graph = Graph(width)
    value = graph.inputs
    for name, step in steps:
        where = f"module {name!r} ({type(step).__name__})"
        value = READERS[type(step).__name__](graph, value, step, where)
    return graph.network(value)


def _copied(module: nn.Module) -> nn.Module:
    try:
        return copy.deepcopy(module).cpu().double().eval()
    except Exception as error:
        raise ModelError(f"cannot copy the module {type(module).__name__}: {brief(error)}") from error


def _width(module: nn.Module) -> int:
    for part in module.modules():
        if type(part).__name__ in ("Linear", "LazyLinear"):
            return int(part.in_features)  # type: ignore[arg-type]
        if type(part).__name__ == "BatchNorm1d":
            return int(part.num_features)  # type: ignore[arg-type]
    raise ModelError(
        f"the number of columns of {type(module).__name__} is not known: give read_module(module, inputs=n)"
    )


def _steps(module: nn.Module, prefix: str) -> list[tuple[str, nn.Module]] | None:
    """Return the steps of a plain Sequential, or None if a part of it is not a plain one that is read directly."""
    torch = _library()
    if type(module) is not torch.nn.Sequential or _hooked(module):
        return None
    steps: list[tuple[str, nn.Module]] = []
    for name, child in module.named_children():
        if type(child) is torch.nn.Sequential:
            inner = _steps(child, f"{prefix}{name}.")
            if inner is None:
                return None
            steps += inner
        elif type(child) is getattr(torch.nn, type(child).__name__, None) and type(child).__name__ in READERS:
            if _hooked(child):
                return None
            steps.append((prefix + name, child))
        else:
            return None
    return steps


def _hooked(module: nn.Module) -> bool:
    """Tell whether calling the module does more than its forward pass."""
    hooks = ("_forward_hooks", "_forward_pre_hooks")
    return any(getattr(module, hook) for hook in hooks) or "forward" in vars(module)


def _numbers(tensor: Tensor | None, default: Array) -> Array:
    return default if tensor is None else np.array(tensor.detach().numpy(), dtype=np.float64)


def _linear(graph: Graph, value: Value, module: Any, where: str) -> Value:
    weight, bias = _numbers(module.weight, np.zeros(0)), _numbers(module.bias, np.zeros(module.out_features))
    finite(where, weight, bias)
    try:
        return graph.shift(graph.product(value, weight), bias)
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from None


def _batch_norm(graph: Graph, value: Value, module: Any, where: str) -> Value:
    if module.running_mean is None or module.running_var is None:
        raise ModelError(f"{where}: keeps no running statistics, so a score would depend on who else is scored")
    if module.num_features != len(value):
        raise ModelError(f"{where}: has {module.num_features} features for a vector of {len(value)}")
    one, nought = np.ones(len(value)), np.zeros(len(value))
    statistics = tuple(
        _numbers(tensor, default)
        for tensor, default in (
            (module.weight, one), (module.bias, nought), (module.running_mean, nought), (module.running_var, one)
        )
    )  # fmt: skip
    return common.normalise(graph, value, statistics, float(module.eps), where)


def _flatten(graph: Graph, value: Value, module: Any, where: str) -> Value:
    if (module.start_dim, module.end_dim) not in ((1, -1), (1, 1)):
        raise ModelError(f"{where}: flattens axes {module.start_dim} to {module.end_dim}, which would mix people")
    return value


def _gelu(graph: Graph, value: Value, module: Any, where: str) -> Value:
    if module.approximate != "none":
        raise ModelError(f"{where}: the approximation {module.approximate!r} of gelu is not read, only the exact form")
    return graph.activate(value, "gelu", where)


def _softmax(graph: Graph, value: Value, module: Any, where: str) -> Value:
    if module.dim not in (1, -1):
        raise ModelError(f"{where}: works along dim={module.dim}: give dim=1")
    return common.softmax(graph, value, where)


def _plain(name: str) -> Callable[[Graph, Value, Any, str], Value]:
    return lambda graph, value, _, where: graph.activate(value, name, where)


READERS: Mapping[str, Callable[[Graph, Value, Any, str], Value]] = {
    "AlphaDropout": _plain("identity"),
    "BatchNorm1d": _batch_norm,
    "Dropout": _plain("identity"),
    "ELU": lambda graph, value, module, where: common.elu(graph, value, float(module.alpha), where),
    "Flatten": _flatten,
    "GELU": _gelu,
    "Hardsigmoid": _plain("hardsigmoid"),
    "Hardtanh": lambda graph, value, module, where: common.clip(graph, value, module.min_val, module.max_val, where),
    "Identity": _plain("identity"),
    "LeakyReLU": lambda graph, value, module, where: common.leaky(graph, value, module.negative_slope, where),
    "Linear": _linear,
    "PReLU": lambda graph, value, module, where: common.leaky(
        graph, value, _numbers(module.weight, np.zeros(1)), where
    ),
    "ReLU": _plain("relu"),
    "ReLU6": _plain("relu6"),
    "SELU": _plain("selu"),
    "SiLU": _plain("silu"),
    "Sigmoid": _plain("sigmoid"),
    "Softmax": _softmax,
    "Softplus": lambda graph, value, module, where: common.softplus(graph, value, float(module.beta), where),
    "Softsign": _plain("softsign"),
    "Tanh": _plain("tanh"),
}


def _exported(module: nn.Module, width: int) -> Network:
    """Return the network of any module through its ONNX export, once it has been compared with the module itself."""
    library()  # torch would say that it is missing, but not how to install it
    torch = _library()
    what = f"module {type(module).__name__}"
    people = torch.from_numpy(np.random.default_rng(0).normal(size=(TRIES, width)))
    written = io.BytesIO()
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore", DeprecationWarning)
            # A trace follows one path through the code: whatever depends on the numbers must stop it.
            warnings.simplefilter("error", torch.jit.TracerWarning)
            expected = np.asarray(module(people).numpy(), dtype=np.float64).reshape(TRIES, -1)
            torch.onnx.export(module, (people,), written, dynamo=False, opset_version=17)
    except Exception as error:
        raise ModelError(
            f"{what} cannot be run on (n, {width}) people or exported to ONNX: {brief(error)}\n"
            "if it takes another number of columns, give read_module(module, inputs=n)"
        ) from error
    try:
        network = from_bytes(written.getvalue())
    except ModelError as error:
        raise ModelError(f"{what}: {error}") from None
    scores = network(people.numpy()).reshape(TRIES, -1)
    apart = np.abs(scores - expected) / np.maximum(1.0, np.abs(expected)) if scores.shape == expected.shape else np.inf
    if not np.max(apart) <= AGREE:
        raise ModelError(f"{what}: its ONNX export gives other scores than the module, by {np.max(apart):.2g}")
    return network


# --- files ------------------------------------------------------------------------------------------------------------


def read_pt(path: str | os.PathLike[str]) -> Network:
    """Return the network of a .pt or .pth file with the state dict of a plain Sequential.

    A state dict holds no activations: relu hidden layers and a sigmoid output are assumed, and stderr says so.
    """
    file = Path(path)
    state = _state(file)
    layers = _layers(file, state)
    depth = len(layers)
    assumed = "relu hidden layers and a sigmoid output" if depth > 1 else "a sigmoid output"
    try:
        network = Network(
            Layer(weight, bias, "relu" if i < depth - 1 else "sigmoid") for i, (weight, bias) in enumerate(layers)
        )
    except ModelError as error:
        raise ModelError(f"{file}: {error}") from None
    print(f"{file}: a state dict holds no activations, assuming {assumed}", file=sys.stderr)
    return network


def _state(file: Path) -> dict[str, Any]:
    entries(file, "torch file (a zip archive, as torch.save writes it)")
    torch = _library()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the age of the file
            state = torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise FileError(
            f"{file} holds more than plain tensors, which could run code: it is not read\n{STATE_HINT}"
        ) from None
    except OSError as error:
        raise FileError(f"cannot read {file}: {error.strerror or brief(error)}") from None
    except (*BROKEN, AttributeError, AssertionError) as error:
        raise FileError(f"{file} is not a readable torch file: {brief(error)}") from None
    if not isinstance(state, dict) or not state:
        raise ModelError(f"{file} holds a {type(state).__name__}, not a state dict\n{STATE_HINT}")
    return {str(key): value for key, value in state.items()}


def _layers(file: Path, state: Mapping[str, Any]) -> list[tuple[Array, Array]]:
    """Return weight and bias of each Linear layer, in the order of the numbers in their names."""
    found: dict[int, dict[str, Array]] = {}
    prefixes = set()
    for key, tensor in state.items():
        match = KEY.fullmatch(key)
        if match is None or not _library().is_tensor(tensor):
            raise ModelError(f"{file}: {listed([key])} is no weight or bias of a numbered Linear layer\n{STATE_HINT}")
        prefixes.add(match[1])
        found.setdefault(int(match[2]), {})[match[3]] = _stored(file, key, tensor)
    if len(prefixes) > 1:
        raise ModelError(f"{file}: more than one chain of layers: {listed(sorted(prefixes))}\n{STATE_HINT}")
    layers = []
    for number in sorted(found):
        weight = found[number].get("weight")
        if weight is None or weight.ndim != 2:
            shape = "missing" if weight is None else f"of shape {weight.shape}, as in batch norm"
            raise ModelError(f"{file}: the weight of layer {number} is {shape}: only Linear is read\n{STATE_HINT}")
        layers.append((weight, found[number].get("bias", np.zeros(len(weight)))))
    return layers


def _stored(file: Path, key: str, tensor: Tensor) -> Array:
    """Return a tensor as float64; one that repeats its storage to claim a huge shape is refused first."""
    held = tensor.untyped_storage().nbytes() // max(tensor.element_size(), 1)
    if tensor.numel() > held or tensor.numel() * 8 > LIMIT:
        raise ModelError(f"{file}: {listed([key])} claims shape {tuple(tensor.shape)}, {held:,} numbers are there")
    if not tensor.dtype.is_floating_point or tensor.is_sparse or tensor.is_quantized:
        raise ModelError(f"{file}: {listed([key])} must hold plain floats, it has {tensor.dtype}")
    return np.array(tensor.detach().double().numpy(), dtype=np.float64)
