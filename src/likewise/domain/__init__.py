"""Domain: who can exist. Features in column order, a box, one-hot groups, and linear side constraints."""

from likewise.domain._domain import Domain
from likewise.domain._features import Continuous, Display, Feature, Integer, OneHot

__all__ = ["Continuous", "Display", "Domain", "Feature", "Integer", "OneHot"]
