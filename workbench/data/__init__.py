"""What the workbench works on: particles, fields, trajectories, the files they come from, and synthetic samples."""

from workbench.data.field import Field
from workbench.data.particles import Particles
from workbench.data.trajectory import Trajectory
from workbench.data.variable import Variable

__all__ = ["Field", "Particles", "Trajectory", "Variable"]
