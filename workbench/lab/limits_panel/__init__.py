"""Limits: how far a codec is from what theory allows for a field like this, and what the distance is made of."""

from workbench.lab.limits_panel.code import code
from workbench.lab.limits_panel.drawing import draw
from workbench.lab.limits_panel.state import LimitsState, require_field, tile_sides

__all__ = ["LimitsState", "code", "draw", "require_field", "tile_sides"]
