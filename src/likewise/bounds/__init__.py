"""What can be proven without a search: who can differ, and how far every neuron can go."""

from likewise.bounds.interval import Box
from likewise.bounds.reach import Reach, reach
from likewise.bounds.stack import completed, propagated
from likewise.bounds.support import Differences, domain_upper
from likewise.bounds.twin import LayerBounds, TwinBounds, entering, settle, twin_bounds

__all__ = [
    "Box",
    "Differences",
    "LayerBounds",
    "Reach",
    "TwinBounds",
    "completed",
    "domain_upper",
    "entering",
    "propagated",
    "reach",
    "settle",
    "twin_bounds",
]
