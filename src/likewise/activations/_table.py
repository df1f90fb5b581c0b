"""The known activations by name."""

from __future__ import annotations

from math import inf

from likewise.activations import _functions as fn
from likewise.activations._activation import CONCAVE, CONVEX, LINEAR, Activation, Minimum, Piece
from likewise.errors import ModelError
from likewise.rounding import UNIT, down, up


def _pieces(ends: tuple[float, ...], *shapes: str) -> tuple[Piece, ...]:
    """Return the pieces of the real line between `ends`."""
    stops = (-inf, *ends, inf)
    return tuple(Piece(stops[i], stops[i + 1], shape) for i, shape in enumerate(shapes))


def _around(x: float, y: float) -> tuple[float, float]:
    """Return [x, y] widened by one float: the constants below are correctly rounded."""
    return float(down(x)), float(up(y))


def _stationary(argument: float, value: float) -> Minimum:
    """Return a minimum given by its correctly rounded argument and value."""
    return Minimum(*_around(argument, argument), float(down(value)))


_S_SHAPED = _pieces((0.0,), CONVEX, CONCAVE)
_HINGE = _pieces((0.0,), LINEAR, LINEAR)
_SILU_TURN = 2.3993572805154675  # z tanh(z/2) = 2
_GELU_TURN = 1.4142135623730951  # z^2 = 2

_ALL = (
    Activation(
        "relu", fn.relu, fn.step(0.0, inf), _HINGE, fn.nothing, fn.nothing, values=(0.0, inf), steepness=(0.0, 1.0)
    ),
    Activation(
        "leaky_relu", fn.leaky_relu, fn.leaky_relu_slope, _HINGE, fn.leaky_relu_error, fn.nothing,
        values=(-inf, inf), steepness=(fn.LEAK, 1.0),
    ),
    Activation(
        "relu6", fn.relu6, fn.step(0.0, 6.0), _pieces((0.0, 6.0), LINEAR, LINEAR, LINEAR), fn.nothing, fn.nothing,
        values=(0.0, 6.0), steepness=(0.0, 1.0),
    ),
    Activation(
        "hardtanh", fn.hardtanh, fn.step(-1.0, 1.0), _pieces((-1.0, 1.0), LINEAR, LINEAR, LINEAR), fn.nothing,
        fn.nothing, values=(-1.0, 1.0), steepness=(0.0, 1.0),
    ),
    Activation(
        "hardsigmoid", fn.hardsigmoid, fn.step(-3.0, 3.0, 1 / 6), _pieces((-3.0, 3.0), LINEAR, LINEAR, LINEAR),
        fn.hardsigmoid_error, fn.hardsigmoid_slope_error, values=(0.0, 1.0), steepness=(0.0, 1 / 6 + UNIT),
    ),
    Activation(
        "sigmoid", fn.sigmoid, fn.sigmoid_slope, _S_SHAPED, fn.relative(fn.sigmoid, fn.L + 4),
        fn.relative(fn.sigmoid_slope, fn.L + 6), values=(0.0, 1.0), steepness=(0.0, 0.25), bends=(0.0963, 0.125),
    ),
    Activation(
        "tanh", fn.tanh, fn.tanh_slope, _S_SHAPED, fn.relative(fn.tanh, fn.L + 1),
        fn.relative(fn.tanh_slope, fn.L + 6), values=(-1.0, 1.0), steepness=(0.0, 1.0), bends=(0.77, 2.0),
    ),
    Activation(
        "softplus", fn.softplus, fn.sigmoid, _pieces((), CONVEX), fn.relative(fn.softplus, 2 * fn.L + 2),
        fn.relative(fn.sigmoid, fn.L + 4), values=(0.0, inf), steepness=(0.0, 1.0), bends=(0.25, 0.0963),
    ),
    Activation(
        "elu", fn.elu, fn.elu_slope, _pieces((0.0,), CONVEX, LINEAR), fn.elu_error, fn.elu_slope_error,
        values=(-1.0, inf), steepness=(0.0, 1.0),
    ),
    Activation(
        "selu", fn.selu, fn.selu_slope, _pieces((0.0,), CONVEX, LINEAR), fn.relative(fn.selu, fn.L + 3),
        fn.selu_slope_error, values=(-fn.SELU_LEFT, inf), steepness=(0.0, fn.SELU_LEFT),
    ),
    Activation(
        "silu", fn.silu, fn.silu_slope, _pieces((-_SILU_TURN, _SILU_TURN), CONCAVE, CONVEX, CONCAVE),
        fn.relative(fn.silu, fn.L + 6), fn.silu_slope_error, values=(float(down(-0.2784645427610738)), inf),
        steepness=_around(-0.09983932012886691, 1.099839320128867),
        minimum=_stationary(-1.2784645427610737, -0.2784645427610738), bends=(0.5, 0.3083),
    ),
    Activation(
        "gelu", fn.gelu, fn.gelu_slope, _pieces((-_GELU_TURN, _GELU_TURN), CONCAVE, CONVEX, CONCAVE),
        fn.relative(fn.gelu, 3 * fn.L + 12), fn.gelu_slope_error, values=(float(down(-0.16997120747990366)), inf),
        steepness=_around(-0.12890414518515478, 1.1289041451851547),
        minimum=_stationary(-0.7517915246935645, -0.16997120747990366), bends=(0.798, 0.779),
    ),
    Activation(
        "softsign", fn.softsign, fn.softsign_slope, _S_SHAPED, fn.relative(fn.softsign, 3),
        fn.relative(fn.softsign_slope, 6), values=(-1.0, 1.0), steepness=(0.0, 1.0),
    ),
    Activation(
        "identity", fn.identity, fn.step(-inf, inf), _pieces((), LINEAR), fn.nothing, fn.nothing,
        values=(-inf, inf), steepness=(1.0, 1.0),
    ),
)  # fmt: skip

NAMES: tuple[str, ...] = tuple(activation.name for activation in _ALL)
_BY_NAME = {activation.name: activation for activation in _ALL}


def by_name(name: str) -> Activation:
    """Return the activation called `name`, or refuse with the list of the known ones."""
    if name not in _BY_NAME:
        raise ModelError(f"unknown activation {name!r}\nknown are: {', '.join(NAMES)}")
    return _BY_NAME[name]
