"""What the workbench works on: particles, fields, parts of them, the files they come from, and synthetic samples."""

from workbench.data.field import Field
from workbench.data.particles import Particles
from workbench.data.partition import Partition

__all__ = ["Field", "Particles", "Partition"]
