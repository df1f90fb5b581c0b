"""likewise: prove that a neural network treats similar people alike."""

from likewise import datasets
from likewise._api import certify, profile, train
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
    "Examples",
    "FairMLPClassifier",
    "FairMLPRegressor",
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
    "Trained",
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
    "train",
    "write_npz",
    "write_schema",
]

_LAZY = {
    "Examples": "likewise.train.examples",
    "FairMLPClassifier": "likewise.train.estimators",
    "FairMLPRegressor": "likewise.train.estimators",
    "Trained": "likewise.train.trained",
}


def __getattr__(name: str) -> object:
    """Import what needs torch or scikit-learn when it is first asked for."""
    if name not in _LAZY:
        raise AttributeError(f"module 'likewise' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)
