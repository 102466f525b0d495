"""Lossbench: shrink particle and field data without losing the science."""

from workbench.clusters import Groups, friends_of_friends
from workbench.data import Field, Particles
from workbench.errors import GuaranteeBroken, WorkbenchError

__version__ = "0.1.0"
__all__ = ["Field", "Groups", "GuaranteeBroken", "Particles", "WorkbenchError", "friends_of_friends"]
