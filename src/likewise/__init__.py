"""likewise: prove that a neural network treats similar people alike."""

from likewise import datasets
from likewise._api import certify
from likewise.certificate import Certificate, Witness, read
from likewise.domain import Continuous, Display, Domain, OneHot
from likewise.errors import (
    DomainError,
    FileError,
    InputError,
    LikewiseError,
    MetricError,
    MissingExtra,
    ModelError,
    SolverError,
    SoundnessError,
)
from likewise.load import load
from likewise.metric import Mahalanobis, Metric, WeightedLp
from likewise.network import Layer, Network
from likewise.problem import Problem

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "Continuous",
    "Display",
    "Domain",
    "DomainError",
    "FileError",
    "InputError",
    "Layer",
    "LikewiseError",
    "Mahalanobis",
    "Metric",
    "MetricError",
    "MissingExtra",
    "ModelError",
    "Network",
    "OneHot",
    "Problem",
    "SolverError",
    "SoundnessError",
    "WeightedLp",
    "Witness",
    "certify",
    "datasets",
    "load",
    "read",
]
