"""The limits panel: the distance between a codec's rate and the theoretical bound for a field, and its causes."""

from workbench.lab.limits_panel.code import code
from workbench.lab.limits_panel.drawing import draw
from workbench.lab.limits_panel.state import LimitsState, require_field, tile_sides

__all__ = ["LimitsState", "code", "draw", "require_field", "tile_sides"]
