"""Train the smooth and the wide networks of the benchmarks; they are kept in models/smooth and models/wide.

    python benchmarks/train_networks.py [--only PART]

Fixed seeds, one thread, float64: the same machine makes the same networks again. Weights of wide networks are rounded
to eight bits of mantissa, so that their files stay small; the rounded network is the network.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from instances import domain_of
from torch import nn

import likewise as lw

MODELS = Path(__file__).resolve().parent / "models"
ACTIVATIONS = {"relu": nn.ReLU, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh, "gelu": nn.GELU}
SMOOTH = [
    (data, name, hidden)
    for data in ("german", "adult", "crime")
    for name in ("sigmoid", "tanh", "gelu")
    for hidden in ((16,), (16, 16))
]
WIDE = [(data, "relu", (width, width)) for data in ("adult", "crime") for width in (512, 2048)]
EPOCHS, BATCH, RATE, DECAY = 20, 256, 2e-3, 1e-3
WIDE_STEPS, WIDE_DECAY = 300, 3.0  # wide networks overfit in no time: few steps, strong decay
BITS = 8


def columns(data: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the training people, with the columns of the fixed networks, and their targets."""
    loaded = lw.datasets.load(data)
    have = [name for feature, span in loaded.domain.spans for name in [feature.name] * (span.stop - span.start)]
    want = [name for feature, span in domain_of(data).spans for name in [feature.name] * (span.stop - span.start)]
    people = np.full((len(loaded.X_train), len(want)), 0.5)  # a column that only the fixed networks have says nothing
    people[:, [k for k, name in enumerate(want) if name in have]] = loaded.X_train
    return people, np.asarray(loaded.y_train, dtype=np.float64)


def train(data: str, activation: str, hidden: Sequence[int], decay: float) -> nn.Sequential:
    """Train one network: cross-entropy for classes, squares for the regression."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    people, target = (torch.tensor(part) for part in columns(data))
    sizes = [people.shape[1], *hidden, 1]
    parts: list[nn.Module] = []
    for one, other in itertools.pairwise(sizes):
        parts += [nn.Linear(one, other, dtype=torch.float64), ACTIVATIONS[activation]()]
    network = nn.Sequential(*parts[:-1])
    loss = nn.MSELoss() if data == "crime" else nn.BCEWithLogitsLoss()
    optimiser = torch.optim.AdamW(network.parameters(), RATE, weight_decay=decay)
    batches = -(-len(people) // BATCH)
    epochs = max(EPOCHS, 20_000 // len(people)) if decay < WIDE_DECAY else max(1, WIDE_STEPS // batches)
    for _ in range(epochs):
        order = torch.randperm(len(people))
        for start in range(0, len(people), BATCH):
            rows = order[start : start + BATCH]
            optimiser.zero_grad()
            loss(network(people[rows])[:, 0], target[rows]).backward()
            optimiser.step()
    return network


def save(network: nn.Sequential, data: str, activation: str, file: Path, rounded: bool) -> None:
    """Write the weights, rounded if they are many, with the names of the activations."""
    layers = [part for part in network if isinstance(part, nn.Linear)]
    arrays: dict[str, np.ndarray] = {}
    for k, layer in enumerate(layers):
        for name, values in (("W", layer.weight), ("b", layer.bias)):
            array = values.detach().numpy()
            arrays[f"{name}{k}"] = round_off(array).astype(np.float32) if rounded else array
    last = "identity" if data == "crime" else "sigmoid"
    arrays["activations"] = np.array([*[activation] * (len(layers) - 1), last])
    file.parent.mkdir(exist_ok=True)
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # numpy's stub takes the first for an option


def round_off(values: np.ndarray) -> np.ndarray:
    """Return the numbers with BITS bits of mantissa, those below a ten-thousandth of the largest as 0."""
    mantissa, exponent = np.frexp(values)
    short = np.ldexp(np.round(np.ldexp(mantissa, BITS)), exponent - BITS)
    return np.where(np.abs(values) < 1e-4 * np.abs(values).max(), 0.0, short)


def main() -> None:
    """Train what is missing."""
    line = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    line.add_argument("--only", default="", help="train only those whose name holds this")
    wanted = line.parse_args().only
    for folder, networks in (("smooth", SMOOTH), ("wide", WIDE)):
        for data, activation, hidden in networks:
            widths = "x".join(map(str, hidden))
            name = f"{data}_{activation}_{widths}" if folder == "smooth" else f"{data}_{widths}"
            file = MODELS / folder / f"{name}.npz"
            if wanted in f"{folder}/{name}" and not file.is_file():
                network = train(data, activation, hidden, DECAY if folder == "smooth" else WIDE_DECAY)
                save(network, data, activation, file, folder == "wide")
                print(f"{file.relative_to(MODELS)}: {file.stat().st_size / 1e6:.2f} MB", flush=True)


if __name__ == "__main__":
    main()
