"""Activation functions: values, slopes, and sound linear and piecewise-linear bounds."""

from likewise.activations._activation import Activation, Piece
from likewise.activations._table import NAMES, by_name
from likewise.activations.pwl import PwlBounds, pwl_bounds

__all__ = ["NAMES", "Activation", "Piece", "PwlBounds", "by_name", "pwl_bounds"]
