"""Everything likewise raises on purpose.

LikewiseError
|-- InputError (also ValueError)   the user's input is at fault; the command line exits with 2
|   |-- ModelError                 a network: weights, shapes, activations
|   |-- DomainError                who can exist: features, people outside of it
|   |-- MetricError                who is similar: weights, matrices, eps
|   |-- FileError                  a file that cannot be read as what it claims to be
|   `-- MissingExtra               an optional library is not installed; names the extra
|-- SolverError                    a solver failed, or refused the problem (licence, size)
`-- SoundnessError                 two proven facts contradict each other: a defect of likewise
"""

from __future__ import annotations

LARGEST = 1e15  # beyond this, float64 can neither hold a unit nor a product of two


class LikewiseError(Exception):
    """The root of all deliberate errors."""


class InputError(LikewiseError, ValueError):
    """The user's input is at fault."""


class ModelError(InputError):
    """A network that cannot be accepted."""


class DomainError(InputError):
    """A domain that cannot be accepted, or a person outside of it."""


class MetricError(InputError):
    """A metric or an eps that cannot be accepted."""


class FileError(InputError):
    """A file that cannot be read as what it claims to be."""


class MissingExtra(InputError):
    """An optional library is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} is not installed: pip install 'likewise[{extra}]'")


class SolverError(LikewiseError):
    """A solver failed or refused the problem."""


class SoundnessError(LikewiseError):
    """Two proven facts contradict each other: a defect of likewise, never of the input."""
