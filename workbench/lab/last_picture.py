"""What stands in the file of a notebook for a panel: a static picture of what it showed last.

JupyterLab prefers widgets to any other form of an output, and shows an error where their kernel is gone, although the same
output has other forms. So the picture is a second output of the cell, which hides itself while the panel is on the page,
and hides the error when it is not.
"""

from __future__ import annotations

import html
import secrets
import urllib.parse
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from workbench.charts.description import Chart
from workbench.lab import markup, static_picture
from workbench.lab.description import Picture, Shown
from workbench.lab.turns import Patience

MOST_BYTES = 280_000
SIDES = (360, 240, 160, 100)   # pixels of a picture along its longer side; the first that is small enough is taken
AGE = 1.0                      # seconds after which the picture in the notebook follows a change
KEPT = "=:/,;+()'!*@$?&.-_~ "  # characters of SVG that a data URL need not quote


class LastPicture:
    """The second output of the cell that shows a panel."""

    def __init__(self) -> None:
        self.key = f"wb-last-{secrets.token_hex(4)}"
        self.live = self.key.replace("last", "live")   # the class of the panel on the page
        self._output: Any = None
        self._patience = Patience(AGE)

    def display(self, content: dict[str, str]) -> None:
        """Add the output to the running cell."""
        from IPython.display import display

        self._output = display(content, raw=True, display_id=True)   # type: ignore[no-untyped-call]

    def follow(self, make: Callable[[], dict[str, str]]) -> None:
        """Replace the output after a moment, by what is shown then: changes that never rest must not leave it behind."""
        if self._output is None:
            return
        self._patience.begin(lambda: self._output.update(make(), raw=True))

    def close(self) -> None:
        """Stop waiting."""
        self._patience.cancel()


def static_bundle(title: str, subject: str, shown: Shown, key: str) -> dict[str, str]:
    """The picture as HTML of less than 300 kB, and as a line of text.

    >>> static_bundle("Bounds", "a field", Shown(), "wb-last-1")["text/plain"]
    'Bounds(a field): the panel as this notebook has kept it; run the cell for the live one'
    """
    told = f"{title}({subject}): the panel as this notebook has kept it; run the cell for the live one"
    pictures = [*shown.pictures, *([shown.detail] if shown.detail else [])]
    parts = [_style(key), f"<p><b>{html.escape(title)}</b> {html.escape(subject)}</p>", _settings(shown)]
    images, charts = "", "".join(map(_chart, shown.charts.values()))
    for side in SIDES:
        images = "".join(_image(picture, side) for picture in pictures)
        if len(images) < MOST_BYTES - len(charts):
            break
    row = "".join(f'<div style="display: flex; flex-wrap: wrap; gap: 10px">{each}</div>' for each in (images, charts))
    hint = "<p><small>The panel as this notebook has kept it. Run the cell for the live one.</small></p>"
    return {
        "text/html": f'<div class="wb-last {key}">{"".join(parts)}{row}{_figures(shown)}{hint}</div>',
        "text/plain": told,
    }


def _style(key: str) -> str:
    """Either the panel is on the page, or its last picture is. Of all outputs, only widgets do not tell their type."""
    panel, output = f".{key.replace('last', 'live')}", ".jp-OutputArea-child"
    return (
        f"<style>body:has({panel}) .{key}, body:has({panel}) {output}:has(.{key}), "
        f".jp-OutputArea:has(.{key}) {output}:has(> .jp-OutputArea-output:not([data-mime-type])):not(:has(.wb-panel)) "
        f"{{ display: none; }}</style>"
    )


def _settings(shown: Shown) -> str:
    told = "; ".join(f"{name}: {value}" for name, value in shown.settings.items())
    return f"<p>{html.escape(told)}</p>" if told else ""


def _figures(shown: Shown) -> str:
    """All figures, or else what is said in their place."""
    told = "; ".join(f"{fact.name} {fact.value} {fact.unit}".strip() for fact in shown.facts)
    return f"<p>{html.escape(told)}</p>" if told else markup.answer(shown.answer)


def _image(picture: Picture, side: int) -> str:
    """A picture as an image of at most so many pixels, since notebooks that are not trusted leave SVG out."""
    step = -(-max(picture.pixels.shape) // side)
    small = replace(picture, pixels=picture.pixels[::step, ::step])
    drawn = static_picture.svg(small)
    if len(drawn) > MOST_BYTES // 3:   # thousands of marks
        drawn = static_picture.svg(small, marked=False)
    return (f'<figure style="margin: 0; flex: 1 1 220px; max-width: 420px">{_img(drawn, static_picture.described(picture))}'
            f'<figcaption>{html.escape(picture.title)}</figcaption></figure>')


def _chart(chart: Chart) -> str:
    """A chart as an image, unless it has more shapes than a notebook should keep."""
    image = _img(chart.svg, chart.words)
    return f'<div style="flex: 1 1 360px; max-width: 640px">{image}</div>' if len(image) < MOST_BYTES // 8 else ""


def _img(drawn: str, said: str) -> str:
    address = html.escape("data:image/svg+xml," + urllib.parse.quote(drawn, safe=KEPT))
    return f'<img src="{address}" alt="{html.escape(said)}" style="width: 100%">'
