"""Controls: each shows one field of a panel's state, and requests changes of it.

The state owns the value, never the widget: sliders of ipywidgets silently clamp to their ends, so a value beyond the ends
widens the slider, and typed values are not changed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ipywidgets as widgets

Ask = Callable[..., object]
STEPS_PER_DECADE = 20


class Control(ABC):
    """A widget for a field of the state."""

    widget: widgets.Widget

    def __init__(self, field: str) -> None:
        self.field = field
        self._showing = False
        self._ask: Ask = lambda **fields: None

    def connect(self, ask: Ask) -> None:
        """Request changes by calling `ask(field=value)`."""
        self._ask = ask

    def show(self, state: Any) -> None:
        """Show the field's value, without requesting a change."""
        self._showing = True
        try:
            self._show(getattr(state, self.field))
        finally:
            self._showing = False

    def ask(self, value: Any) -> None:
        """Request a new value, unless the control is only being updated."""
        if not self._showing:
            self._ask(**{self.field: value})

    @abstractmethod
    def _show(self, value: Any) -> None: ...


class LogSlider(Control):
    """A positive number: a slider over its logarithm, and a field to type any other.

    >>> slider = LogSlider("eb", "error bound", low=1e-3, high=1.0)
    >>> slider.connect(lambda **fields: print(fields))
    >>> slider.slider.value = -2.0
    {'eb': 0.01}
    >>> slider.entry.value = "1e-5"
    {'eb': 1e-05}
    """

    def __init__(self, field: str, label: str, low: float, high: float, unit: str = "") -> None:
        super().__init__(field)
        bottom, top = math.floor(math.log10(low)), math.ceil(math.log10(high))
        step = 1 / STEPS_PER_DECADE
        layout = widgets.Layout(flex="1 1 220px", min_width="180px")
        self.slider = widgets.FloatSlider(
            value=bottom, min=bottom, max=top, step=step, description=label, readout=False, layout=layout, style=NATURAL
        )
        narrow = widgets.Layout(width="92px")
        self.entry = widgets.Text(layout=narrow, continuous_update=False, tooltip=f"{label}: any value")
        self.unit = widgets.HTML(unit)
        self.widget = widgets.HBox([self.slider, self.entry, self.unit], layout=widgets.Layout(flex="1 1 320px"))
        self.widget.add_class(f"wb-control-{field}")
        self.slider.observe(self._slid, "value")
        self.entry.observe(self._typed, "value")

    def span(self, low: float, high: float) -> None:
        """Change the ends of the slider."""
        self._showing = True
        bottom, top = math.floor(math.log10(low)), math.ceil(math.log10(high))
        self.slider.min = min(self.slider.min, bottom)   # ipywidgets rejects a lower end above the upper one
        self.slider.max = top
        self.slider.min = bottom
        self._showing = False

    def _slid(self, change: Any) -> None:
        self.ask(float(f"{10 ** self.slider.value:.3g}"))

    def _typed(self, change: Any) -> None:
        try:
            value = float(self.entry.value)
        except ValueError:
            value = math.nan   # rejected by the state, with an error message
        self.ask(value)

    def _show(self, value: float) -> None:
        exponent = math.log10(value)
        self.slider.min, self.slider.max = min(self.slider.min, exponent), max(self.slider.max, exponent)
        if float(f"{10 ** self.slider.value:.3g}") != value:
            self.slider.value = exponent
        if not _reads_as(self.entry.value, value):
            self.entry.value = f"{value:.6g}"


class Steps(Control):
    """A whole number between two ends."""

    def __init__(self, field: str, label: str, low: int, high: int) -> None:
        super().__init__(field)
        layout = widgets.Layout(flex="1 1 260px", min_width="180px")
        self.widget = widgets.IntSlider(
            value=low, min=low, max=max(high, low), description=label, layout=layout, style=NATURAL
        )
        self.widget.disabled = high <= low
        self.widget.add_class(f"wb-control-{field}")
        self.widget.observe(lambda change: self.ask(int(self.widget.value)), "value")

    def reach(self, high: int) -> None:
        """Change the upper end."""
        self._showing = True
        self.widget.max, self.widget.disabled = high, high <= self.widget.min
        self._showing = False

    def _show(self, value: int) -> None:
        self.widget.value = value


class Choice(Control):
    """One of several values, each with its text."""

    def __init__(self, field: str, label: str, options: Mapping[str, Any] | Sequence[Any]) -> None:
        super().__init__(field)
        pairs = list(options.items()) if isinstance(options, Mapping) else [(str(option), option) for option in options]
        layout = widgets.Layout(flex="0 1 auto", width="auto", min_width="130px")
        self.widget = widgets.Dropdown(options=pairs, description=label, layout=layout, style=NATURAL)
        self.widget.add_class(f"wb-control-{field}")
        self.widget.observe(lambda change: self.ask(self.widget.value), "value")

    def _show(self, value: Any) -> None:
        if value not in [option for _, option in self.widget.options]:
            self.widget.options = [*self.widget.options, (str(value), value)]
        self.widget.value = value


class Number(Control):
    """A typed number."""

    def __init__(self, field: str, label: str, whole: bool = False) -> None:
        super().__init__(field)
        self._whole = whole
        layout = widgets.Layout(flex="0 1 auto", width="auto", min_width="120px")
        self.widget = widgets.Text(description=label, layout=layout, style=NATURAL, continuous_update=False)
        self.widget.add_class(f"wb-control-{field}")
        self.widget.observe(self._typed, "value")

    def _typed(self, change: Any) -> None:
        try:
            self.ask(int(self.widget.value) if self._whole else float(self.widget.value))
        except ValueError:
            self.ask(math.nan)

    def _show(self, value: float) -> None:
        if not _reads_as(self.widget.value, value):
            self.widget.value = f"{value:.6g}"


class Toggle(Control):
    """Yes or no."""

    def __init__(self, field: str, label: str) -> None:
        super().__init__(field)
        self.widget = widgets.Checkbox(description=label, indent=False, layout=widgets.Layout(width="auto"))
        self.widget.add_class(f"wb-control-{field}")
        self.widget.observe(lambda change: self.ask(bool(self.widget.value)), "value")

    def _show(self, value: bool) -> None:
        self.widget.value = value


def button(label: str, action: Callable[[], object], tooltip: str = "") -> widgets.Button:
    """A button that calls `action`."""
    made = widgets.Button(description=label, tooltip=tooltip or label, layout=widgets.Layout(width="auto"))
    made.on_click(lambda pressed: action())
    return made


NATURAL = {"description_width": "initial"}


def _reads_as(text: str, value: float) -> bool:
    try:
        return float(text) == value
    except ValueError:
        return False
