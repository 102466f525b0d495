"""Draw the pictures of the front page, from the panels themselves.

    .venv/bin/python app/pictures.py [NAME ...]

Each is one SVG: parts of the pictures that a panel shows, and for two of them a chart without its words. It has no
background, and charts have colours of medium lightness, so it suits light and dark pages.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.charts.description import Band, Chart, Rule, Series
from workbench.charts.svg import drawing
from workbench.lab.description import Axes, Picture, Shown
from workbench.lab.static_picture import svg

APP = Path(__file__).resolve().parent
WIDE, HIGH = 264, 198
LINE, MARK = 7.0, 24.0   # in a chart that is drawn at a quarter of its size

Place = tuple[float, float, float, float]   # left, top, width, height


def drawn(page: str) -> str:
    """The drawing for a page."""
    notebook = json.loads((APP / "pages" / f"{page}.ipynb").read_text(encoding="utf-8"))
    (code,) = ("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code")
    names: dict[str, Any] = {}
    exec(code, names)
    with names["panel"] as panel:
        parts = DRAWINGS[page](panel)
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}">{"".join(parts)}</svg>\n'


def clusters(panel: Any) -> list[str]:
    """A quarter of the map, with its halos: the broken ones in orange."""
    (seen, *_) = done(panel).pictures
    looks = {"halo": ("#7cc4ff", 1.2), "split halo": ("#ff9d3c", 2.2), "merged halo": ("#ff9d3c", 2.2)}
    halos = [each for each in seen.marks if each.label in looks]
    marks = (replace(each, colour=looks[each.label][0], width=looks[each.label][1]) for each in halos)
    return [placed(cropped(replace(seen, marks=tuple(marks)), 0.5), (0, 0, WIDE, HIGH))]


def bounds(panel: Any) -> list[str]:
    """The field in three strips: original, decoded and error."""
    panel.change(eb=0.2, logarithmic=True)
    pictures, wide = done(panel).pictures, (WIDE - 4) / 3
    strips = (cropped(each, 0.6, wide / HIGH, place) for each, place in zip(pictures, (0.2, 0.5, 0.8), strict=True))
    return [placed(strip, ((wide + 2) * i, 0, wide, HIGH)) for i, strip in enumerate(strips)]


def limits(panel: Any) -> list[str]:
    """The field, and the bits that codecs need above the bound."""
    panel.ask("points")
    shown = done(panel)
    return halves(shown.pictures[0], shown.charts["rate-distortion"])


def propagation(panel: Any) -> list[str]:
    """The value that is hit, and the error at every stage."""
    shown = done(panel)
    hit = replace(shown.pictures[1], marks=tuple(replace(each, width=16) for each in shown.pictures[1].marks))
    return halves(hit, shown.charts["errors"], 0)


def halves(picture: Picture, chart: Chart, centre: float = 0.5) -> list[str]:
    """A picture, and a chart beside it."""
    half = WIDE / 2
    seen = cropped(picture, 0.9, half / HIGH, centre)
    return [placed(seen, (0, 0, half, HIGH)), placed_chart(chart, (half + 6, 12, half - 14, HIGH - 24))]


DRAWINGS: dict[str, Callable[[Any], list[str]]] = {
    "clusters": clusters, "bounds": bounds, "limits": limits, "propagation": propagation,
}


def done(panel: Any) -> Shown:
    """What a panel shows when all work is done."""
    panel.result   # noqa: B018 (raises if it failed)
    panel.wait()
    return panel.shown


def cropped(picture: Picture, share: float, shape: float = WIDE / HIGH, centre: float = 0.5) -> Picture:
    """A part of a picture, so much of its height, without axes; `shape` is its width by its height."""
    rows, columns = picture.pixels.shape
    high = int(rows * share)
    wide = min(int(high * shape), columns)
    top, first = (rows - high) // 2, int((columns - wide) * centre)
    left, right, bottom, upper = picture.window
    across, up = (right - left) / columns, (upper - bottom) / rows
    window = left + first * across, left + (first + wide) * across, upper - (top + high) * up, upper - top * up
    return replace(picture, pixels=picture.pixels[top:top + high, first:first + wide], window=window, axes=Axes())


def placed(picture: Picture, place: Place) -> str:
    """A picture as a part of the drawing."""
    return within(svg(picture), place, "xMidYMid slice")


def placed_chart(chart: Chart, place: Place) -> str:
    """A chart without words."""
    x, y = (replace(axis, title="", names=((axis.low, ""),), turned=False) for axis in (chart.x, chart.y))
    thick = [replace(part, width=LINE, size=MARK, tooltips=()) for part in chart.of(Series)]
    rules = [replace(part, width=LINE / 2) for part in chart.of(Rule)]
    high = round(640 * place[3] / place[2])
    bare = replace(chart, title="", x=x, y=y, parts=(*chart.of(Band), *rules, *thick), note="", height=high, about="")
    return within(drawing(bare, complete=False), place, "none")


def within(drawn: str, place: Place, fits: str) -> str:
    """An SVG inside another."""
    left, top, wide, high = place
    box = re.search(r'viewBox="([^"]+)"', drawn)
    assert box is not None
    content = re.sub(r"<title>.*?</title>", "", drawn[drawn.index(">") + 1:])
    where = f'x="{left:g}" y="{top:g}" width="{wide:g}" height="{high:g}" viewBox="{box[1]}" preserveAspectRatio="{fits}"'
    return f"<svg {where}>{content}"


if __name__ == "__main__":
    for name in sys.argv[1:] or DRAWINGS:
        target = APP / "pictures" / f"{name}.svg"
        target.parent.mkdir(exist_ok=True)
        print(f"{target}: {target.write_text(drawn(name), encoding='utf-8'):,} bytes")
