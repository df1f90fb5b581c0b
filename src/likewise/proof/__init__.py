"""Proof: what shows that an upper bound is right, as numbers that anyone can check; see docs/certificate-format.md."""

from likewise.proof.boxes import argued_bounds
from likewise.proof.evaluation import Evaluation, Target, evaluate
from likewise.proof.log import Kept, Later, Log
from likewise.proof.shape import read_shape

__all__ = ["Evaluation", "Kept", "Later", "Log", "Target", "argued_bounds", "evaluate", "read_shape"]
