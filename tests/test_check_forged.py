"""Forged proofs: multipliers so large or so small that floats overflow or underflow show nothing that is not so."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from tamper import Opened

import likewise_checker as checker

TINY, HUGE = 5e-324, 1e307


def packed(values):
    values = np.asarray(values, dtype=float)
    marks = values != 0
    return np.packbits(marks, bitorder="little").tobytes() + values[marks].astype("<f8").tobytes()


def argument(points, weights, y):
    """Return the bytes of a proof that closes the whole by one argument, at the threshold 0."""
    head = b"A" + struct.pack("<dHH", 0.0, len(points), 1) + packed(points) + struct.pack("<Ib", 0, 0)
    return head + packed([*weights, *y]) + b"E"


def question(activation, low, high, last=1.0, sees=0.0, eps=0.0):
    """Return a certificate about one number and one neuron, and the function that its network is."""
    side = {"features": [{"kind": "continuous"}], "lower": [low], "upper": [high]}
    manifest = {"format": "likewise certificate", "version": 7, "lower": 0.0, "upper": 0.0, "eps": eps, "trusted": []}
    manifest |= {"activations": [[activation], ["identity"]], "metric": {"p": np.inf}, "left": side, "right": side}
    ones = {"W0": np.ones((1, 1)), "b0": np.zeros(1), "W1": np.full((1, 1), last), "b1": np.zeros(1)}
    people = {"witness_left": np.array([(low + high) / 2]), "witness_right": np.array([(low + high) / 2])}
    return manifest, ones | people | {"metric": np.full((1, 1), sees)}


def told(asked, upper, tree, path, exact):
    manifest, arrays = asked
    file = {"file": "proof/0.bin", "sha256": ""}
    proof = {"kind": "tree", "eps": manifest["eps"], "directions": [file]}
    opened = Opened(manifest | {"upper": upper, "proof": proof}, arrays, {"proof/0.bin": tree})
    return checker.check(opened.save(path), exact=exact)


def rows(asked):
    return np.zeros(checker.Question(*asked).count)


@pytest.mark.parametrize("exact", [False, True])
def test_sums_that_overflow_show_nothing(exact, tmp_path):
    """The terms of one neuron, y and z around 10, are 1e307 together, but floats add them up to -inf."""
    asked = question("silu", 9.9, 10.1, sees=1.0, eps=0.2)
    y = rows(asked)
    y[5], y[6], y[7], y[2] = 1.9 * HUGE, -1.7 * HUGE, 0.3 * HUGE, 1e300
    y[0], y[1] = y[5], -y[5]
    assert told(asked, 0.0, argument([], [], y), tmp_path / "a.cert", exact)["code"] != 0  # some differ by .2


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("weight", [1.0, TINY])
def test_a_slack_that_underflows_is_not_0(weight, exact, tmp_path):
    asked = question("relu", 0.0, 0.3)
    tree = argument([0.0], [weight], rows(asked))
    assert told(asked, 0.0, tree, tmp_path / "a.cert", exact)["code"] != 0  # some differ by .3
    honest = told(asked, 0.3, argument([0.0], [1.0], rows(asked)), tmp_path / "b.cert", exact)
    assert (honest["code"], honest["upper"]) == (0, pytest.approx(0.3))


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("weight", [1.0, TINY])
def test_multipliers_that_underflow_are_not_0(weight, exact, tmp_path):
    asked = question("silu", 0.0, 0.3, last=0.4)
    gap = 0.4 * 0.3 / (1 + np.exp(-0.3))
    y = rows(asked)
    y[7], y[8], y[2] = 1.0, -1.0, 1.0
    assert told(asked, 0.0, argument([0.0], [weight], weight * y), tmp_path / "a.cert", exact)["code"] != 0
    honest = told(asked, gap, argument([0.0], [1.0], y), tmp_path / "b.cert", exact)
    assert (honest["code"], honest["upper"]) == (0, pytest.approx(gap))
