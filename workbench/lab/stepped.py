"""A panel at several values of one choice, for pages without a kernel: a slider of the page changes between them.

With a kernel, the panel itself is shown. Where there will be none (LOSSBENCH_STATIC), everything is computed while the page
is made, and each step is drawn as in the file of a notebook. The page's own script, of a few lines, hides all steps but
one; where no script runs, all stand below each other.
"""

from __future__ import annotations

import dataclasses
import html
import os
import secrets
from collections.abc import Sequence
from typing import Any

from workbench.errors import WorkbenchError, briefly
from workbench.lab.description import STATIC
from workbench.lab.last_picture import content
from workbench.lab.panel import Panel

MOST_BYTES = 160_000   # of each step
MOST_STEPS = 24        # a page of 4 MB

SCRIPT = """
(() => {
  const place = document.getElementById("%s"), slider = place.querySelector("input"), name = place.querySelector("output");
  const steps = [...place.querySelectorAll(":scope > [data-step]")];
  const show = () => {
    steps.forEach((step, at) => { step.hidden = at !== Number(slider.value); });
    name.textContent = steps[slider.value].dataset.step;
    slider.setAttribute("aria-valuetext", name.textContent);
  };
  slider.addEventListener("input", show);
  slider.parentElement.hidden = false;
  show();
})();
"""


class SteppedPanel:
    """What `stepped` returns: the last line of a cell displays it."""

    def __init__(self, panel: Panel[Any], label: str, field: str, values: Sequence[Any]) -> None:
        self.panel, self.label, self.field, self.values = panel, label, field, values

    def html(self) -> str:
        """A part of a page, with the panel as it is at each value; the panel returns to where it was.

        >>> import workbench as wb
        >>> with wb.lab.bounds(wb.synthetic.gaussian_field((32, 32), seed=1), eb=0.1) as panel:
        ...     page = stepped(panel, "error bound", eb=[0.2, 0.1, 0.05]).html()
        >>> page.count("data-step="), "<script src" in page
        (3, False)
        """
        before = getattr(self.panel.state, self.field)
        try:
            parts = [self._step(value) for value in self.values]
        finally:
            self.panel.change(**{self.field: before})
        start = next((at for at, value in enumerate(self.values) if value == before), 0)
        name = f"wb-steps-{secrets.token_hex(4)}"
        ends = f'min="0" max="{len(parts) - 1}" value="{start}" step="1"'
        slider = f'<input type="range" {ends} style="width: 22em; max-width: 60%">'
        control = f'<label hidden>{html.escape(self.label)} {slider} <output style="font-weight: 600"></output></label>'
        return f'<div id="{name}" class="wb-steps">{control}{"".join(parts)}<script>{SCRIPT % name}</script></div>'

    def _step(self, value: Any) -> str:
        self.panel.change(**{self.field: value})
        self.panel.wait()
        return f'<div data-step="{html.escape(_text(value))}">{content(self.panel.shown, MOST_BYTES)}</div>'

    def _ipython_display_(self) -> None:
        if os.environ.get(STATIC):
            raise NotImplementedError   # IPython then takes the other method
        self.panel._ipython_display_()

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        return {"text/html": self.html(), "text/plain": repr(self)}

    def __repr__(self) -> str:
        return f"{self.panel!r} at {len(self.values)} steps of {self.field}"


def stepped(panel: Panel[Any], label: str, **choice: Sequence[Any]) -> SteppedPanel:
    """A panel that remains alive in pages without a kernel: its content at each of several values of one choice.

    `choice` is one field of the panel's state, with its values; `label` stands before the slider of the page.

    >>> import workbench as wb
    >>> stepped(wb.lab.bounds(wb.synthetic.gaussian_field((32, 32), seed=1)), "error bound", eb=[0.2, 0.1])
    Bounds(Field('gaussian', 32 x 32, float32)) at 2 steps of eb
    """
    if not isinstance(panel, Panel):
        raise WorkbenchError(f"stepped needs a panel, such as wb.lab.bounds(field); got {briefly(panel)}")
    if len(choice) != 1:
        got = ", ".join(choice) or "none"
        raise WorkbenchError(f"stepped needs one choice with its values, such as eb=[0.1, 0.01]; got {got}")
    ((field, values),) = choice.items()
    names = [each.name for each in dataclasses.fields(panel.state)]
    if field not in names:
        raise WorkbenchError(f"{field} is no choice of this panel: it has {', '.join(names)}")
    if isinstance(values, str) or not hasattr(values, "__len__") or not 1 < len(values) <= MOST_STEPS:
        raise WorkbenchError(f"{field} needs a list of 2 to {MOST_STEPS} values; got {briefly(values)}")
    return SteppedPanel(panel, label, field, values)


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
