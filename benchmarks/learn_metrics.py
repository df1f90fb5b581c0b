"""Learn the embedded metrics anew: how src/likewise/datasets/data/*.metric.npz and *.embedding.npz were made.

    python benchmarks/learn_metrics.py            compare with the embedded files: angles between sensitive subspaces
    python benchmarks/learn_metrics.py --write    write crime.metric.npz and the four *.embedding.npz

S of adult, credit and german came with the fixed networks. They were learnt in the same way on the same people, with a
solver that stopped early. S of crime is for 95 columns, one fewer than the fixed networks have: cutting OtherPerCap out
of the 96 leaves no projector (an eigenvalue of 0.0013 instead of 0), so it was learnt here, on the training people of
`load("crime")`.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import numpy as np
from scipy.linalg import subspace_angles

from likewise import datasets
from likewise.certificate import write_atomically
from likewise.metric.learn import learn_embedding, learn_mahalanobis
from likewise.rounding import Array

DATA = Path(datasets.__file__).parent / "data"
LEARNT_HERE = ("crime",)


def matrix(data: datasets.Dataset) -> Array:
    """Return S over the columns that are not sensitive, learnt on the training people."""
    kept = datasets.load(data.name, sensitive="keep")
    metric = learn_mahalanobis(kept.X_train, kept.sensitive, kept.domain).metric
    width = data.domain.width  # the sensitive columns come last
    block: Array = (metric.matrix.T @ metric.matrix)[:width, :width]
    return block


def angles(one: Array, other: Array) -> Array:
    """Return the angles, in degrees, between the subspaces that two projectors leave out."""
    found: Array = np.degrees(subspace_angles(_null(one), _null(other)))
    return found


def _null(S: Array) -> Array:
    values, vectors = np.linalg.eigh(S)
    return np.asarray(vectors[:, values < 0.5])


def embedding(data: datasets.Dataset) -> dict[str, np.ndarray]:
    """Return W0 and b0 of 10 linear units, each divided by its range among the training people."""
    learnt = learn_embedding(data.X_train, data.y_train, data.domain)
    print(f"{data.name}: {learnt.summary.splitlines()[0]}")
    assert learnt.metric.phi is not None
    layer = learnt.metric.phi.layers[0]
    ranges = np.ptp(data.X_train @ layer.weight.T, axis=0)
    return {
        "W0": layer.weight / ranges[:, None],
        "b0": layer.bias / ranges,
        "activations": np.array(["identity"]),
    }


def store(name: str, arrays: dict[str, np.ndarray]) -> None:
    """Write arrays into the folder of the embedded data."""
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)  # type: ignore[arg-type]
    write_atomically(DATA / name, packed.getvalue())


def main() -> None:
    """Learn, and compare or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the files instead of comparing with them")
    write = parser.parse_args().write
    for name in datasets.NAMES:
        data = datasets.load(name)
        S = matrix(data)
        if write:
            store(f"{name}.embedding.npz", embedding(data))
        if write and name in LEARNT_HERE:
            store(f"{name}.metric.npz", {"S": S})
        A = data.metric("mahalanobis").matrix
        print(f"{name}: degrees to the embedded S: {np.round(angles(A.T @ A, S), 2)}")


if __name__ == "__main__":
    main()
