"""The clusters panel: its state, stages, drawing, and the code that reproduces its result."""

from workbench.lab.clusters_panel.breakage import Breakage, Halos, break_halos, groups_of
from workbench.lab.clusters_panel.code import code
from workbench.lab.clusters_panel.drawing import draw, shown_outcome
from workbench.lab.clusters_panel.keeping import Kept, Trace, keep_halos
from workbench.lab.clusters_panel.panes import chosen_mark
from workbench.lab.clusters_panel.state import Chosen, ClustersState

__all__ = [
    "Breakage",
    "Chosen",
    "ClustersState",
    "Halos",
    "Kept",
    "Trace",
    "break_halos",
    "chosen_mark",
    "code",
    "draw",
    "groups_of",
    "keep_halos",
    "shown_outcome",
]
