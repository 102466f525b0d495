"""HoloViews elements on the page, kept up to date: each chart is drawn once and then only sent new data."""

from __future__ import annotations

from typing import Any

import holoviews as hv
from jupyter_bokeh.widgets import BokehModel


class LiveModel(BokehModel):   # type: ignore[misc]
    """A Bokeh plot whose later views, or views after a reload of the page, show it as it is now, not as it was made."""

    def get_state(self, key: Any = None, drop_defaults: bool = False) -> Any:
        """What a new view is told."""
        if key is None and getattr(self, "comm", None) is not None:
            with self.hold_trait_notifications():
                self._trait_values["render_bundle"] = self._model_to_traits(self._model)
        return super().get_state(key, drop_defaults)


class ChartView:
    """One chart. The elements shown one after the other must be built alike."""

    def __init__(self, element: Any) -> None:
        self._pipe = hv.streams.Pipe(data=element)
        chart = hv.DynamicMap(lambda data: data, streams=[self._pipe])
        self._plot = hv.renderer("bokeh").get_plot(chart)
        self._shown = element
        self.widget = LiveModel(self._plot.state, combine_events=True)
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
        if document is not None:
            document.clear()
