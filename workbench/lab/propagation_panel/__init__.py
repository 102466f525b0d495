"""The propagation panel: an error is put into an analysis, and seen, predicted and counted at every stage behind it."""

from workbench.lab.propagation_panel.code import code
from workbench.lab.propagation_panel.drawing import draw
from workbench.lab.propagation_panel.state import PropagationState

__all__ = ["PropagationState", "code", "draw"]
