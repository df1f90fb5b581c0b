"""likewise: prove that a neural network treats similar people alike."""

from likewise import datasets
from likewise._api import certify, profile
from likewise._check import Checked, check
from likewise._people import PersonBounds, certify_people
from likewise.certificate import Certificate, Witness, read
from likewise.domain import Continuous, Display, Domain, Integer, OneHot
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
from likewise.load import Folded, Schema, folded, load, read_schema, write_npz, write_schema
from likewise.metric import Embedding, Mahalanobis, Metric, WeightedLp
from likewise.metric.learn import Learnt, learn_embedding, learn_mahalanobis, learn_weights
from likewise.network import Layer, Network
from likewise.problem import Problem

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "Checked",
    "Continuous",
    "Display",
    "Domain",
    "DomainError",
    "Embedding",
    "FileError",
    "Folded",
    "InputError",
    "Integer",
    "Layer",
    "Learnt",
    "LikewiseError",
    "Mahalanobis",
    "Metric",
    "MetricError",
    "MissingExtra",
    "ModelError",
    "Network",
    "OneHot",
    "PersonBounds",
    "Problem",
    "Schema",
    "SolverError",
    "SoundnessError",
    "WeightedLp",
    "Witness",
    "certify",
    "certify_people",
    "check",
    "datasets",
    "folded",
    "learn_embedding",
    "learn_mahalanobis",
    "learn_weights",
    "load",
    "profile",
    "read",
    "read_schema",
    "write_npz",
    "write_schema",
]
