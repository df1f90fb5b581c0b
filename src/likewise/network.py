"""Network: affine layers and activations in float64, frozen, with a digest and a rigorous evaluation."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from likewise.activations import Activation, by_name
from likewise.errors import LARGEST, ModelError
from likewise.rounding import Array, dot_error, up


def frozen(values: ArrayLike) -> Array:
    """Return a read-only float64 copy, with -0.0 written as 0.0 so that digests do not see it."""
    array: Array = np.array(values, dtype=np.float64) + 0.0
    array.setflags(write=False)
    return array


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Layer:
    """One affine map and the activation of each of its neurons: x -> activation(weight x + bias)."""

    weight: Array
    bias: Array
    activations: tuple[str, ...]

    def __init__(self, weight: ArrayLike, bias: ArrayLike, activation: str | Sequence[str]) -> None:
        try:
            w, b = frozen(weight), frozen(bias)
        except (TypeError, ValueError):
            raise ModelError("weights and biases must be arrays of numbers") from None
        if w.ndim != 2 or b.shape != w.shape[:1] or 0 in w.shape:
            raise ModelError(
                f"weight of shape {w.shape} and bias of shape {b.shape} do not make a layer (out x in, out)"
            )
        names = (activation,) * len(b) if isinstance(activation, str) else tuple(activation)
        if len(names) != len(b):
            raise ModelError(f"{len(names)} activations for {len(b)} neurons")
        for name in dict.fromkeys(names):
            by_name(name)
        object.__setattr__(self, "weight", w)
        object.__setattr__(self, "bias", b)
        object.__setattr__(self, "activations", names)

    def __repr__(self) -> str:
        kinds = "/".join(dict.fromkeys(self.activations))
        return f"Layer({self.weight.shape[1]} -> {len(self.bias)}; {kinds})"

    def groups(self) -> tuple[tuple[Activation, np.ndarray], ...]:
        """Return each activation of the layer with the indices of its neurons."""
        return _groups(self.activations)

    def activate(self, z: Array) -> Array:
        """Apply each neuron's activation to the last axis of `z`."""
        groups = self.groups()
        if len(groups) == 1:
            return groups[0][0].value(z)
        out = np.empty_like(z)
        for activation, rows in groups:
            out[..., rows] = activation.value(z[..., rows])
        return out

    def slope(self, z: Array) -> Array:
        """Return each neuron's derivative at the last axis of `z`."""
        out = np.empty_like(z)
        for activation, rows in self.groups():
            out[..., rows] = activation.slope(z[..., rows])
        return out


@lru_cache(maxsize=256)
def _groups(names: tuple[str, ...]) -> tuple[tuple[Activation, np.ndarray], ...]:
    return tuple(
        (by_name(name), np.array([k for k, other in enumerate(names) if other == name]))
        for name in dict.fromkeys(names)
    )


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Network:
    """A feed-forward network; `network(X)` maps (n, inputs) to (n,), or to (n, outputs) if there are several."""

    layers: tuple[Layer, ...]

    def __init__(self, layers: Iterable[Layer]) -> None:
        chain = tuple(layers)
        if not chain:
            raise ModelError("a network needs at least one layer")
        for i, layer in enumerate(chain):
            for what, values in (("weight", layer.weight), ("bias", layer.bias)):
                if not np.isfinite(values).all():
                    raise ModelError(f"layer {i}: {what} has a non-finite entry (NaN or infinity)")
                if np.abs(values).max() > LARGEST:
                    raise ModelError(f"layer {i}: {what} has an entry beyond {LARGEST:g}: rescale the network")
            if i and layer.weight.shape[1] != len(chain[i - 1].bias):
                raise ModelError(
                    f"layer {i} takes {layer.weight.shape[1]} inputs, but layer {i - 1} gives {len(chain[i - 1].bias)}"
                )
        object.__setattr__(self, "layers", chain)

    def __repr__(self) -> str:
        widths = " -> ".join(str(w) for w in (self.inputs, *(len(layer.bias) for layer in self.layers)))
        acts = ", ".join("/".join(dict.fromkeys(layer.activations)) for layer in self.layers)
        return f"Network({widths}; {acts}; {self.digest[:8]})"

    @property
    def inputs(self) -> int:
        """How many columns a person has."""
        return int(self.layers[0].weight.shape[1])

    @property
    def outputs(self) -> int:
        """How many outputs the network has."""
        return len(self.layers[-1].bias)

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical float64 weights and the activations."""
        sha = hashlib.sha256(b"likewise network 1")
        for layer in self.layers:
            sha.update(repr((layer.weight.shape, layer.activations)).encode())
            sha.update(np.ascontiguousarray(layer.weight, dtype="<f8").tobytes())
            sha.update(np.ascontiguousarray(layer.bias, dtype="<f8").tobytes())
        return sha.hexdigest()

    def __call__(self, people: ArrayLike) -> Array:
        """Score people (n, inputs) in float64."""
        x = np.asarray(people, dtype=np.float64)
        if x.ndim != 2 or x.shape[1] != self.inputs:
            raise ModelError(f"expected people as (n, {self.inputs}), got an array of shape {x.shape}")
        for layer in self.layers:
            x = layer.activate(x @ layer.weight.T + layer.bias)
        return x[:, 0] if self.outputs == 1 else x

    def preactivations(self, people: Array) -> list[Array]:
        """Return what enters each layer's activations, for people (n, inputs)."""
        x, entering = people, []
        for layer in self.layers:
            entering.append(x @ layer.weight.T + layer.bias)
            x = layer.activate(entering[-1])
        return entering

    def jacobian(self, person: Array) -> Array:
        """Return the derivatives (outputs, inputs) at a person, in floats (a hint: at a kink, of the piece above)."""
        through = np.eye(self.inputs)
        for layer, z in zip(self.layers, self.preactivations(person[None]), strict=True):
            through = layer.slope(z[0])[:, None] * (layer.weight @ through)
        return through

    def enclose(self, person: Array) -> tuple[Array, Array]:
        """Return `lower <= f(person) <= upper` for the real-number function of the stored weights.

        Each layer carries a float value and the radius of a ball around it that holds the real one. An affine step
        multiplies the radius by |weight| and adds the rounding error of its own sums; an activation multiplies it
        by a Lipschitz constant and adds the error of its float evaluation. Every radius is stepped up.
        """
        value, radius = person, np.zeros_like(person)
        for layer in self.layers:
            magnitude = np.abs(layer.weight)
            spread = magnitude @ np.abs(value) + np.abs(layer.bias)
            terms = layer.weight.shape[1] + 1
            carried = magnitude @ radius
            error = dot_error(terms, spread) + carried + dot_error(terms, carried)
            z = layer.weight @ value + layer.bias
            value, radius = np.empty_like(z), np.empty_like(z)
            for activation, rows in layer.groups():
                value[rows] = activation.value(z[rows])
                radius[rows] = up(activation.lipschitz * error[rows] + activation.error(z[rows]), 4)
        return np.nextafter(value - radius, -np.inf), np.nextafter(value + radius, np.inf)

    def select(self, output: int) -> Network:
        """Return the network of one output alone."""
        if not 0 <= output < self.outputs:
            raise ModelError(
                f"output {output} does not exist: the network has {self.outputs} (0 to {self.outputs - 1})"
            )
        if self.outputs == 1:
            return self
        last = self.layers[-1]
        only = Layer(last.weight[[output]], last.bias[[output]], last.activations[output])
        return Network((*self.layers[:-1], only))

    def logit(self) -> Network:
        """Return the network before its final sigmoid."""
        last = self.layers[-1]
        if set(last.activations) != {"sigmoid"}:
            raise ModelError(f"scale='logit' needs a sigmoid output, this network ends in {last.activations[0]}")
        return Network((*self.layers[:-1], Layer(last.weight, last.bias, "identity")))
