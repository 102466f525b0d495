"""The key of a chart: what its lines, marks and areas mean.

It is HTML beside the plot instead of a part of it: Bokeh's own legends cover data, cut names where a chart is narrow, show
only one mark of an element whose marks vary, and draw no dashes that can be told apart.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass

from workbench.charts.chart import DASHES, MARKS
from workbench.charts.looks import Dash, Look, Marker

WIDTH, HEIGHT = 26, 14   # of a drawing, in pixels; as in chart_frame.js


@dataclass(frozen=True)
class Entry:
    """One entry of a key; an area has neither a line nor a mark."""

    name: str
    colour: str
    marker: Marker | None = None
    dash: Dash | None = None
    opacity: float = 1.0
    meaning: str = ""   # the tooltip

    @classmethod
    def of(cls, name: str, look: Look) -> Entry:
        """The entry of a codec.

        >>> Entry.of("zfp", Look("#d4524f", "square")).marker
        'square'
        """
        return cls(name, look.colour, look.marker, look.dash)

    @property
    def glyph(self) -> str:
        """The line, mark or area as SVG."""
        if self.marker is None and self.dash is None:
            size = f'x="2" y="2" width="{WIDTH - 4}" height="{HEIGHT - 4}"'
            return f'<rect {size} fill="{self.colour}" opacity="{self.opacity}"/>'
        line = mark = ""
        if self.dash is not None:
            dashes = f' stroke-dasharray="{DASHES[self.dash]}"' if DASHES[self.dash] else ""
            line = f'<path d="M0 {HEIGHT / 2:g}H{WIDTH}" stroke="{self.colour}" stroke-width="1.8"{dashes}/>'
        if self.marker is not None:
            place = f"translate({WIDTH / 2:g} {HEIGHT / 2:g})"
            mark = f'<path d="{MARKS[self.marker]}" fill="{self.colour}" transform="{place}"/>'
        return line + mark

    def told(self) -> dict[str, str]:
        """The entry for the browser."""
        return {"name": self.name, "glyph": self.glyph, "meaning": self.meaning}


def in_html(entries: Iterable[dict[str, str]]) -> str:
    """A key for a page without scripts.

    >>> in_html([Entry("zfp", "#d4524f", "square").told()])[:40]
    '<ul class="wb-key"><li><svg width="26" h'
    """
    opening = f'<li><svg width="{WIDTH}" height="{HEIGHT}" aria-hidden="true">'
    rows = (f'{opening}{entry["glyph"]}</svg> {html.escape(entry["name"])}</li>' for entry in entries)
    return f'<ul class="wb-key">{"".join(rows)}</ul>'
