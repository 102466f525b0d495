"""Charts on the page: each is drawn once, and later only its changes are sent.

Bokeh describes changes in its own protocol; `front/charts.js` applies them in the browser. Every change of a chart has a
number of its own: Bokeh draws when its library is there, which may be after many changes, and each view draws for itself. A
view that misses a change asks for the whole content of the page, which has the plot as it is then.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from workbench.charts.description import Chart
from workbench.charts.to_holoviews import load, to_holoviews
from workbench.lab import report
from workbench.lab.description import STATIC
from workbench.lab.front_end import front_end
from workbench.lab.page import Page
from workbench.lab.part import Part
from workbench.lab.turns import in_turn

if TYPE_CHECKING:
    from bokeh.document.events import DocumentPatchedEvent


class ChartPart(Part):
    """One chart. Changes are sent as data while it has the same kinds of parts and axes; others are drawn anew.

    Its content is the plot at the time when the part was put on the page or drawn anew, and the latest change.

    >>> part = ChartPart(load().Curve([1, 4, 9]))
    >>> part.content["drawing"]["number"], part.content["change"]["number"]
    (0, 0)
    >>> part.close()
    """

    kind = "chart"

    def __init__(self, shown: Any) -> None:
        front_end().add_bokeh()
        self._shown = shown
        self._number = 0
        self._held: list[DocumentPatchedEvent] | None = None
        self._draw(shown, _element(shown))
        super().__init__(drawing=self._drawn(), change={"number": 0}, coming=False)

    def _draw(self, shown: Any, element: Any) -> None:
        from bokeh.document import Document

        hv = load()
        self._pipe = hv.streams.Pipe(data=element)
        live = hv.DynamicMap(lambda data: data, streams=[self._pipe])
        self.plot, self._kinds = hv.renderer("bokeh").get_plot(live), _kinds(shown, element)
        if self.plot.state.document is None:
            Document().add_root(self.plot.state)
        self._document = self.plot.state.document
        self._document.on_change_dispatch_to(self)

    def show(self, shown: Any) -> None:
        """Show another chart; the same object again costs nothing."""
        if shown is self._shown:
            return
        self._shown, element = shown, _element(shown)
        if _kinds(shown, element) == self._kinds:
            with self._at_once():
                self._pipe.send(element)
        else:
            self._release()
            self._draw(shown, element)
            self._number += 1
            self.set(drawing=self._drawn(), change={"number": self._number})

    def wait(self, coming: bool) -> None:
        """Show whether a newer chart is being computed."""
        self.set(coming=coming)

    def close(self) -> None:
        """Release the memory of the plot."""
        self._release()
        self._shown = None

    @in_turn
    def whole(self) -> dict[str, Any]:
        """The content with the plot as it is now."""
        return {**self.content, "drawing": self._drawn()}

    def _release(self) -> None:
        self._document.remove_on_change(self)
        document = self.plot.state.document
        self.plot.cleanup()
        self._pipe.clear()
        document.clear()

    def _drawn(self) -> dict[str, Any]:
        from bokeh.core.json_encoder import serialize_json

        return {"number": self._number, "document": serialize_json(self._document.to_json(deferred=False))}

    @contextlib.contextmanager
    def _at_once(self) -> Iterator[None]:
        """Send all changes within this context as one change."""
        self._held = []
        try:
            yield
        finally:
            events, self._held = self._held, None
            if events:
                self._send(events)

    def _document_patched(self, event: DocumentPatchedEvent) -> None:
        """Bokeh calls this by its name."""
        if self._held is None:
            self._send([event])
        else:
            self._held.append(event)

    def _send(self, events: list[DocumentPatchedEvent]) -> None:
        from bokeh.core.json_encoder import serialize_json
        from bokeh.protocol import Protocol

        message = Protocol().create("PATCH-DOC", events)
        ids, buffers = [buffer.id for buffer in message.buffers], [buffer.to_bytes() for buffer in message.buffers]
        self._number += 1
        patch = serialize_json({"content": message.content, "ids": ids})
        self.set(change={"number": self._number, "patch": patch, "buffers": buffers})


class ChartPage(Page):
    """A chart as a widget of its own."""

    def __init__(self, shown: Any) -> None:
        self.chart = ChartPart(shown)
        super().__init__({"chart": self.chart}, draws="part")

    def close(self) -> None:
        """Remove the chart from the page, and release its memory."""
        super().close()
        self.chart.close()

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        if os.environ.get(STATIC):
            return {"text/html": report.chart(self.chart.plot.state), "text/plain": repr(self)}
        return super()._repr_mimebundle_(**kwargs)


@in_turn
def chart(shown: Any) -> ChartPage:
    """A chart of this package, or a HoloViews element, as a widget that loads nothing from other machines.

    >>> type(chart(load().Curve([1, 4, 9]))).__name__
    'ChartPage'
    """
    return ChartPage(shown)


def _element(shown: Any) -> Any:
    return to_holoviews(shown) if isinstance(shown, Chart) else shown


def _kinds(shown: Any, element: Any) -> list[Any]:
    """The kinds of the layers, on which the glyphs of a plot depend, and of the axes: Bokeh cannot change a scale."""
    axes = [axis.logarithmic for axis in (shown.x, shown.y)] if isinstance(shown, Chart) else []
    return [*element.traverse(lambda part: type(part).__name__), *axes]
