"""What stands in the file of a notebook for a panel: a static picture of what it showed last.

JupyterLab prefers widgets to any other form of an output, and shows an error where their kernel is gone, although the same
output has other forms. So the picture is a second output of the cell, which hides itself while the panel is on the page,
and hides the error when it is not.
"""

from __future__ import annotations

import html
import itertools
import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from workbench.charts.description import Chart
from workbench.lab import markup, static_picture
from workbench.lab.description import STATIC, Picture, Shown
from workbench.lab.turns import Patience

MOST_BYTES = 280_000
MOST_MARKS = 800               # of a picture: further kinds of marks are left out
SIDES = (360, 240, 160, 100)   # pixels of a picture along its longer side; the first that is small enough is taken
AGE = 1.0                      # seconds after which the picture in the notebook follows a change
WIDE, FULL = 360, "width: 100%"   # pixels that a picture is about as wide as


class LastPicture:
    """The second output of every cell that shows a panel. One name for all, so a change reaches each of them."""

    def __init__(self) -> None:
        self.key = f"wb-last-{secrets.token_hex(4)}"
        self.live = self.key.replace("last", "live")   # the class of the panel on the page
        self._output: Any = None
        self._patience = Patience(AGE)

    def display_beside(self, bundle: dict[str, Any], make: Callable[[], dict[str, str]]) -> None:
        """Add what displays a widget to the running cell, and the picture as a second output."""
        if os.environ.get(STATIC):
            raise NotImplementedError   # IPython then takes the other method
        from IPython.display import display

        display(bundle, raw=True)   # type: ignore[no-untyped-call]
        self._output = display(make(), raw=True, display_id=self.key)   # type: ignore[no-untyped-call]
        self.follow(make)

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
    text = f"{title}({subject}): the panel as this notebook has kept it; run the cell for the live one"
    heading = f"<p><b>{html.escape(title)}</b> {html.escape(subject)}</p>"
    hint = "<p><small>The panel as this notebook has kept it. Run the cell for the live one.</small></p>"
    return {
        "text/html": f'<div class="wb-last {key}">{_style(key)}{heading}{content(shown)}{hint}</div>',
        "text/plain": text,
    }


def content(shown: Shown, most: int = MOST_BYTES) -> str:
    """The content of a panel as HTML of about so many bytes at most, without scripts: words, pictures, charts."""
    words = [_settings(shown), _answer(shown), _figures(shown), *map(_sentence, (shown.remark, shown.note))]
    charts = [shown.charts[name] for name in sorted(shown.charts, key=lambda name: name not in shown.beside)]
    drawings = "".join(map(_chart, charts))
    return "".join(words) + images(_pictures(shown), most - len(drawings)) + _row(drawings)


def images(pictures: Sequence[Picture], most: int = MOST_BYTES) -> str:
    """Pictures as HTML of at most so many bytes, side by side."""
    made = ""
    for side in SIDES:
        made = "".join(_image(picture, side) for picture in pictures)
        if len(made) < most:
            break
    return _row(made)


def _row(content: str) -> str:
    return f'<div style="display: flex; flex-wrap: wrap; gap: 10px">{content}</div>'


def _pictures(shown: Shown) -> list[Picture]:
    """All pictures, the one in front first."""
    ordered = sorted(enumerate(shown.pictures), key=lambda numbered: numbered[0] != shown.front)
    return [*(picture for _, picture in ordered), *([shown.detail] if shown.detail else [])]


def _style(key: str) -> str:
    """Either the panel is on the page, or its last picture is. Of all outputs, only widgets do not tell their type."""
    panel, output = f".{key.replace('last', 'live')}", ".jp-OutputArea-child"
    return (
        f"<style>body:has({panel}) .{key}, body:has({panel}) {output}:has(.{key}), "
        f".jp-OutputArea:has(.{key}) {output}:has(> .jp-OutputArea-output:not([data-mime-type])):not(:has(.wb-panel)) "
        f"{{ display: none; }}</style>"
    )


def _settings(shown: Shown) -> str:
    return _sentence("; ".join(f"{name}: {value}" for name, value in shown.settings.items()))


def _answer(shown: Shown) -> str:
    """The sentence without the meanings of its figures, which pages without style sheets would show within it."""
    return markup.answer([part if isinstance(part, str) else replace(part, meaning="") for part in shown.answer])


def _sentence(text: str) -> str:
    return f'<p style="margin: 4px 0">{html.escape(text)}</p>' if text else ""


def _figures(shown: Shown) -> str:
    return _sentence("; ".join(f"{fact.name} {fact.value} {fact.unit}".strip() for fact in shown.facts))


def _image(picture: Picture, side: int) -> str:
    """A picture as an image of at most so many pixels, since notebooks that are not trusted leave SVG out."""
    step = -(-max(picture.pixels.shape) // side)
    counts = itertools.accumulate(map(len, picture.marks))
    marks = tuple(each for each, count in zip(picture.marks, counts, strict=True) if count <= MOST_MARKS)
    drawn = static_picture.complete(replace(picture, pixels=picture.pixels[::step, ::step], marks=marks), WIDE)
    made = static_picture.image(drawn, static_picture.described(picture), FULL)
    return f'<div style="flex: 1 1 220px; max-width: 460px">{made}</div>'


def _chart(chart: Chart) -> str:
    """A chart as an image, unless it has more shapes than a notebook should keep."""
    drawn = static_picture.image(chart.svg, chart.words, FULL)
    return f'<div style="flex: 1 1 360px; max-width: 640px">{drawn}</div>' if len(drawn) < MOST_BYTES // 8 else ""
