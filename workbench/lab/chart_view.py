"""HoloViews elements on the page, kept up to date: each chart is drawn once and then only sent new data.

The Python half of jupyter_bokeh says what changed; the other half is `chart.js`, which also works when a page is loaded
again, needs no other machine, and leaves nothing in the notebook's file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anywidget
import bokeh
import holoviews as hv
import ipywidgets as widgets
import traitlets
from jupyter_bokeh.widgets import BokehModel

from workbench.lab import report
from workbench.lab.description import STATIC
from workbench.lab.front_end import front_end


class Library(widgets.Widget):   # type: ignore[misc]
    """BokehJS, in the browser's memory: a widget that nobody sees."""

    _model_name = traitlets.Unicode("WidgetModel").tag(sync=True)
    _model_module = traitlets.Unicode("@jupyter-widgets/base").tag(sync=True)
    _model_module_version = traitlets.Unicode("2.0.0").tag(sync=True)
    source = traitlets.Unicode().tag(sync=True)


class Chart(anywidget.AnyWidget, BokehModel):   # type: ignore[misc]
    """A Bokeh plot as a widget. Later views, and views after a reload of the page, show it as it is now."""

    _esm = front_end("chart.js")
    version = traitlets.Unicode(bokeh.__version__).tag(sync=True)
    library = traitlets.Instance(Library).tag(sync=True, **widgets.widget_serialization)

    def __init__(self, plot: Any) -> None:
        super().__init__(plot, library=_library())

    def get_state(self, key: Any = None, drop_defaults: bool = False) -> Any:
        """What a new view is told."""
        if key is None and getattr(self, "comm", None) is not None:
            self._trait_values["render_bundle"] = self._model_to_traits(self._model)   # now, and telling nobody
            self._document.on_change_dispatch_to(self)   # as drawing may have put the plot into another document
        return super().get_state(key, drop_defaults)


    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        if os.environ.get(STATIC):
            return {"text/html": report.chart(self._model), "text/plain": repr(self)}
        return super()._repr_mimebundle_(**kwargs)


def chart(element: Any) -> Chart:
    """A HoloViews element as a widget: unlike the element by itself, it asks no other machine for anything.

    >>> type(chart(hv.Curve([1, 4, 9]))).__name__
    'Chart'
    """
    return Chart(hv.renderer("bokeh").get_plot(element).state)


class ChartView:
    """One chart of a panel. The elements shown one after the other must be built alike."""

    def __init__(self, element: Any) -> None:
        self._pipe = hv.streams.Pipe(data=element)
        live = hv.DynamicMap(lambda data: data, streams=[self._pipe])
        self._plot = hv.renderer("bokeh").get_plot(live)
        self._shown = element
        self.widget = Chart(self._plot.state)
        self.widget.layout.flex = "1 1 280px"
        self.widget.layout.min_width = "260px"

    def show(self, element: Any) -> None:
        """Show another element; the same object again costs nothing."""
        if element is not self._shown:
            self._shown = element
            self._pipe.send(element)

    def close(self) -> None:
        """Take the chart off the page, and let go of all it holds."""
        document = self.widget._document
        self.widget.close()
        self._plot.cleanup()
        self._pipe.clear()
        self._shown = None
        if document is not None:
            document.clear()


def _library() -> Library:
    """One for all charts of a kernel, and another if somebody has closed it."""
    global _shared
    if _shared is None or _shared.comm is None:
        source = Path(bokeh.__file__).parent / "server/static/js/bokeh.min.js"
        _shared = Library(source=source.read_text(encoding="utf-8"))
    return _shared


_shared: Library | None = None
