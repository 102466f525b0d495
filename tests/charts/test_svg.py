"""The drawing: every part where it belongs, readable on white and on black, and valid whatever the names are."""

from __future__ import annotations

import math
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.charts import looks
from workbench.charts.description import Axis, Band, Cells, Chart, Part, Point, Rule, Series, Span, joined
from workbench.charts.svg import WIDTH, drawing, entries, key
from workbench.errors import WorkbenchError

SVG = "{http://www.w3.org/2000/svg}"
ACROSS, UP = Axis("k", 1, 100, logarithmic=True), Axis("power", 10.0, 30.0)


def drawn(*parts: Part, x: Axis = ACROSS, y: Axis = UP, **more: object) -> ElementTree.Element:
    return ElementTree.fromstring(Chart("chart", x, y, parts, **more).svg)   # type: ignore[arg-type]


def texts(root: ElementTree.Element) -> list[str]:
    return [node.text for node in root.iter() if node.text and node.text.strip()]


def lines_of(root: ElementTree.Element) -> list[list[tuple[float, ...]]]:
    found = (node.attrib["points"] for node in root.iter(f"{SVG}polyline"))
    return [[tuple(map(float, place.split(","))) for place in points.split()] for points in found]


def frame_of(root: ElementTree.Element) -> tuple[float, float]:
    (frame,) = root.iter(f"{SVG}svg") if root.tag != f"{SVG}svg" else list(root.iter(f"{SVG}svg"))[1:]
    return float(frame.attrib["width"]), float(frame.attrib["height"])


def test_lines_are_where_their_axes_say_and_gaps_stay_gaps() -> None:
    root = drawn(Series("", [1, 10, 100], [10.0, 20.0, 30.0]))
    wide, high = frame_of(root)
    assert np.allclose(lines_of(root), [[(0, high), (wide / 2, high / 2), (wide, 0)]], atol=0.1)
    assert [len(line) for line in lines_of(drawn(Series("", range(1, 6), [1, 2, math.nan, 1, 2])))] == [2, 2]


def test_every_kind_of_part_is_drawn_with_its_words() -> None:
    root = drawn(
        Span("tolerated", "y", 12.0, 14.0), Band("interval", [1, 10], [12.0, 13.0], [15.0, math.inf]),
        Rule("end", "x", 10.0), Rule("unknown", "x", math.nan),
        Cells("cause", [(1, 10, 10, 20)], tooltips=["all"], texts=["9"]),
        Series("found", [1, 10], [12, 13], dash=None, marker="star", tooltips=["first", "second"]), note="a note",
    )
    assert {"tolerated", "interval", "end", "cause", "found", "9", "a note"} <= set(texts(root))
    assert "unknown" not in texts(root)
    assert [node.text for node in root.iter(f"{SVG}title")] == ["all", "first", "second"]
    (band,) = root.iter(f"{SVG}polygon")
    assert len(band.attrib["points"].split()) == 3
    assert root.attrib["aria-label"] == "chart: power by k. found: 13 at 10."


def test_names_cannot_become_shapes() -> None:
    hostile = "</text><script>alert(1)</script>\"'&"
    chart = Chart(hostile, Axis(hostile, 0, 1, names=[(0.5, hostile)]), UP, (Series(hostile, [0.5], [20], marker="hex"),))
    root = ElementTree.fromstring(chart.svg)
    assert not list(root.iter(f"{SVG}script"))
    assert "<script" not in chart._repr_html_() + key(entries(chart))
    assert texts(root).count(hostile) == 4


NUMBERS = st.floats(-1e300, 1e300) | st.sampled_from([math.inf, -math.inf, math.nan])


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=8))
def test_every_point_is_inside_the_frame(pairs: list[tuple[float, float]]) -> None:
    x, y = zip(*pairs, strict=True)
    root = drawn(Series("a", x, y), x=Axis.around("x", x), y=Axis.around("y", y))
    wide, high = frame_of(root)
    places = [place for line in lines_of(root) for place in line]
    assert len(places) == sum(math.isfinite(a) and math.isfinite(b) for a, b in pairs)
    assert all(-1 <= a <= wide + 1 and -1 <= b <= high + 1 for a, b in places)


def brightness(colour: str) -> float:
    """Relative luminance, as WCAG defines it."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((brightness(one), brightness(other)))
    return (high + 0.05) / (low + 0.05)


MANY = joined(Point(f"codec {n}", n + step, n, "p") for n in range(40) for step in (0.0, 1.0))


@pytest.mark.parametrize("page", ["#ffffff", "#111111"])
def test_everything_can_be_seen_on_light_and_dark_pages(page: str) -> None:
    assert min(contrast(colour, page) for colour in (looks.GREY, *looks.COLOURS, *looks.CODEC_COLOURS)) > 3
    used = re.findall(r"#[0-9a-f]{6}", Chart("many", ACROSS, UP, tuple(MANY)).svg)
    assert set(used) <= {looks.GREY, looks.INK, *looks.CODEC_COLOURS}
    assert contrast(looks.INK, "#ffffff") > 4.5   # where the page does not say the colour of its texts


def test_many_codecs_are_in_rows_above_the_plot_and_look_different() -> None:
    root = drawn(*MANY, x=Axis("x", 0, 50), y=Axis("y", 0, 50))
    rows = [node for node in root.iter(f"{SVG}g") if any((text.text or "").startswith("codec") for text in node)]
    places = [tuple(map(float, re.findall(r"[\d.]+", row.attrib["transform"]))) for row in rows]
    assert len(set(places)) == 40
    assert max(x for x, _ in places) < WIDTH - 60
    assert len({ElementTree.tostring(row[1]) for row in rows}) == 40


def test_long_names_are_cut_and_told_in_full() -> None:
    name = "numcodecs(codec=" + "x" * 60
    root = drawn(Series(name, [1.0], [20.0]))
    assert f"{name[:59]}…" in texts(root)
    assert name in [node.text for node in root.iter(f"{SVG}title")]


def test_parts_of_one_name_share_an_entry_of_the_key() -> None:
    ends = [Rule("bound", "x", place) for place in (2.0, 3.0)]
    fit, measured = Series("fit", [1, 2], [1, 2]), Series("fit", [1, 2], [1, 2], dash=None, marker="square")
    chart = Chart("", ACROSS, UP, (*ends, fit, measured, Series("", [1], [1]), Series("none", [], [])))
    assert [entry["name"] for entry in entries(chart)] == ["bound", "fit"]
    assert [entry["glyph"].count("<path") for entry in entries(chart)] == [1, 2]
    scaled = Chart("", ACROSS, UP, (fit,), scale=(Cells("0%", []), Cells("100%", [])))
    assert list(scaled.key) == ["0%", "100%"]


def test_a_drawing_is_complete_or_leaves_its_title_and_key_to_the_page() -> None:
    chart = Chart("growth", ACROSS, UP, (Series("found", [1, 10], [11, 12]),))
    assert {"growth", "found"} <= set(texts(ElementTree.fromstring(chart.svg)))
    assert not {"growth", "found"} & set(texts(ElementTree.fromstring(drawing(chart, complete=False))))


def test_a_drawing_is_saved_as_it_is_shown(tmp_path: Path) -> None:
    shown = Chart("growth", ACROSS, UP, (Series("found", [1, 10], [11, 12]),))
    assert shown.save(tmp_path / "curves.svg").read_text(encoding="utf-8") == shown._repr_svg_()
    assert shown._repr_svg_() in shown._repr_html_()
    assert repr(shown) == "Chart(growth)"
    with pytest.raises(WorkbenchError, match=r"a chart is written as .svg; got .*curves.png"):
        shown.save(tmp_path / "curves.png")
    with pytest.raises(WorkbenchError, match="into a folder that exists"):
        shown.save(tmp_path / "nowhere" / "curves.svg")
