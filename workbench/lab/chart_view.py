"""Charts on the page: each is drawn once, and later only its changes are sent.

Bokeh describes changes in its own protocol; `chart.js` applies them in the browser. The front end of jupyter_bokeh also
does this, but does not find its library reliably and loses changes made before it is loaded.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anywidget
import ipywidgets as widgets
import traitlets

from workbench.charts.description import Chart
from workbench.charts.to_holoviews import load, to_holoviews
from workbench.lab import report
from workbench.lab.description import STATIC
from workbench.lab.front_end import front_end, widget_script
from workbench.lab.turns import in_turn

if TYPE_CHECKING:
    from bokeh.document.events import DocumentPatchedEvent

REPEATED = 1.0, 3.0, 9.0   # seconds after the last change: the number of the newest is sent again


class Library(widgets.Widget):   # type: ignore[misc]
    """BokehJS in the browser's memory, as an invisible widget."""

    _model_name = traitlets.Unicode("WidgetModel").tag(sync=True)
    _model_module = traitlets.Unicode("@jupyter-widgets/base").tag(sync=True)
    _model_module_version = traitlets.Unicode("2.0.0").tag(sync=True)
    source = traitlets.Unicode().tag(sync=True)


class Plot(anywidget.AnyWidget):
    """A Bokeh plot as a widget. Later views, and views after a reload of the page, show its current state.

    Every change has a number. A view that misses one learns so from `revision`, which is sent again when changes have
    ended, and asks for the whole plot.
    """

    _esm = widget_script("chart.js")
    _css = front_end("chart.css")
    version = traitlets.Unicode(version("bokeh")).tag(sync=True)
    library = traitlets.Instance(Library).tag(sync=True, **widgets.widget_serialization)
    drawing = traitlets.Dict().tag(sync=True)   # the plot at the time this widget was made
    revision = traitlets.Int(0).tag(sync=True)  # the number of changes so far

    def __init__(self, plot: Any) -> None:
        self._held: list[DocumentPatchedEvent] | None = None
        self._repeating: asyncio.TimerHandle | None = None
        self._observe(plot)
        super().__init__(library=_library(), drawing=self._drawn())
        self.on_msg(self._asked)

    def _observe(self, plot: Any) -> None:
        from bokeh.document import Document

        if plot.document is None:
            Document().add_root(plot)
        self._plot, self._document = plot, plot.document
        self._document.on_change_dispatch_to(self)

    def replace(self, plot: Any) -> None:
        """Show another plot in this place, as one change."""
        self._document.remove_on_change(self)
        self._observe(plot)
        self.revision += 1
        self.send({"drawing": self._drawn()})
        self._repeat_when_quiet()

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """Send all changes within this context as one change."""
        self._held = []
        try:
            yield
        finally:
            events, self._held = self._held, None
            if events:
                self._tell(events)

    def close(self) -> None:
        """Remove the chart from the page, and stop observing the plot."""
        if self._repeating is not None:
            self._repeating.cancel()
        if self.comm is not None:
            self._document.remove_on_change(self)
        super().close()

    def _drawn(self) -> dict[str, Any]:
        from bokeh.core.json_encoder import serialize_json

        return {"number": self.revision, "document": serialize_json(self._document.to_json(deferred=False))}

    @in_turn
    def _asked(self, _: Any, content: dict[str, Any], buffers: list[Any]) -> None:
        """A view reports which drawing it shows; if that is outdated, send the newest, otherwise only its number."""
        if "shown" in content:
            newest = content["shown"] == self.revision
            self.send({"number": self.revision} if newest else {"drawing": self._drawn()})

    def _document_patched(self, event: DocumentPatchedEvent) -> None:
        """Bokeh calls this by its name."""
        if self._held is None:
            self._tell([event])
        else:
            self._held.append(event)

    def _tell(self, events: list[DocumentPatchedEvent]) -> None:
        from bokeh.core.json_encoder import serialize_json
        from bokeh.protocol import Protocol

        message = Protocol().create("PATCH-DOC", events)
        ids, buffers = [buffer.id for buffer in message.buffers], [buffer.to_bytes() for buffer in message.buffers]
        change = serialize_json({"content": message.content, "ids": ids})
        self.send({"number": self.revision + 1, "change": change}, buffers)
        self.revision += 1
        self._repeat_when_quiet()

    def _repeat_when_quiet(self, times: int = 0) -> None:
        """Send the number of the newest change again, a few times: the last messages may be lost, too."""
        if self._repeating is not None:
            self._repeating.cancel()
        with contextlib.suppress(RuntimeError):   # no event loop: a script or a test, without a browser
            self._repeating = asyncio.get_running_loop().call_later(REPEATED[times], self._repeat, times)

    def _repeat(self, times: int) -> None:
        self.send_state("revision")
        if times + 1 < len(REPEATED):
            self._repeat_when_quiet(times + 1)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        if os.environ.get(STATIC):
            return {"text/html": report.chart(self._plot), "text/plain": repr(self)}
        return super()._repr_mimebundle_(**kwargs)


@in_turn
def chart(shown: Any) -> Plot:
    """A chart of this package, or a HoloViews element, as a widget that loads nothing from other machines.

    >>> type(chart(load().Curve([1, 4, 9]))).__name__
    'Plot'
    """
    return Plot(load().renderer("bokeh").get_plot(_element(shown)).state)


def _element(shown: Any) -> Any:
    return to_holoviews(shown) if isinstance(shown, Chart) else shown


class ChartView:
    """One chart of a panel. Changes are sent as data while it has the same kinds of parts; others are drawn anew."""

    def __init__(self, shown: Any) -> None:
        self._shown = shown
        self._draw(_element(shown))
        self.widget = Plot(self._plot.state)
        self.widget.layout.flex = "1 1 280px"
        self.widget.layout.min_width = "260px"

    def _draw(self, element: Any) -> None:
        hv = load()
        self._pipe = hv.streams.Pipe(data=element)
        live = hv.DynamicMap(lambda data: data, streams=[self._pipe])
        self._plot, self._kinds = hv.renderer("bokeh").get_plot(live), _kinds(element)

    def show(self, shown: Any) -> None:
        """Show another chart; the same object again costs nothing."""
        if shown is self._shown:
            return
        self._shown, element = shown, _element(shown)
        if _kinds(element) == self._kinds:
            with self.widget.at_once():
                self._pipe.send(element)
        else:
            former, pipe = self._plot, self._pipe
            self._draw(element)
            self.widget.replace(self._plot.state)
            _release(former, pipe)

    def wait(self, coming: bool) -> None:
        """Show whether a newer element is being computed."""
        (self.widget.add_class if coming else self.widget.remove_class)("wb-coming")

    def close(self) -> None:
        """Remove the chart from the page, and release its memory."""
        self.widget.close()
        _release(self._plot, self._pipe)
        self._shown = None


def _release(plot: Any, pipe: Any) -> None:
    document = plot.state.document
    plot.cleanup()
    pipe.clear()
    document.clear()


def _kinds(element: Any) -> list[str]:
    """The kinds of the layers, on which the glyphs of a plot and its axes depend."""
    return element.traverse(lambda part: type(part).__name__)


def _library() -> Library:
    """The library shared by all charts of a kernel; a new one if it was closed."""
    global _shared
    if _shared is None or _shared.comm is None:
        import bokeh

        source = Path(bokeh.__file__).parent / "server/static/js/bokeh.min.js"
        _shared = Library(source=source.read_text(encoding="utf-8"))
    return _shared


_shared: Library | None = None
