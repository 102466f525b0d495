"""The bounds panel: drag an error bound, and see its cost and its errors at once."""

from workbench.lab.bounds_panel.code import code
from workbench.lab.bounds_panel.drawing import draw
from workbench.lab.bounds_panel.state import BoundsState, applicable, exponents, other_questions
from workbench.lab.bounds_panel.trial import Spectra, Trial, spectra_of, try_bound

__all__ = [
    "BoundsState",
    "Spectra",
    "Trial",
    "applicable",
    "code",
    "draw",
    "exponents",
    "other_questions",
    "spectra_of",
    "try_bound",
]
