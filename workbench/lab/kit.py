"""What a panel of one's own needs, in one place: see `docs/new-panel.md`.

>>> from workbench.lab.kit import Panel, Row, Steps
>>> issubclass(Steps, Control)
True
"""

from workbench.charts.description import Axis, Band, Cells, Chart, Rule, Series, Span, joined
from workbench.lab.choices import finite, one_of, positive, whole, with_choices
from workbench.lab.controls import Button, Choice, Control, LogSlider, Number, Row, Steps, Toggle, Words
from workbench.lab.description import Axes, Charts, Fact, Marks, Picture, Reading, Shown, Table, Window
from workbench.lab.engine import Results, Stage
from workbench.lab.jobs import Job
from workbench.lab.panel import Panel
from workbench.lab.part import Part
from workbench.lab.remembered import remembered
from workbench.lab.saving import SaveArchive

__all__ = [
    "Axes", "Axis", "Band", "Button", "Cells", "Chart", "Charts", "Choice", "Control", "Fact", "Job", "LogSlider", "Marks",
    "Number", "Panel", "Part", "Picture", "Reading", "Results", "Row", "Rule", "SaveArchive", "Series", "Shown", "Span",
    "Stage", "Steps", "Table", "Toggle", "Window", "Words", "finite", "joined", "one_of", "positive", "remembered", "whole",
    "with_choices",
]
