"""The drawing: every point where it belongs, readable on white and on black, and valid whatever the names are."""

import itertools
import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.bounds import Run, Sweep, sweep
from workbench.charts import chart, looks
from workbench.charts.chart import Axis, Point

SVG = "{http://www.w3.org/2000/svg}"


def drawn(lines, asked=0):
    return ElementTree.fromstring(chart.chart(lines, "ratio", "psnr", asked).svg)


def texts(root):
    return [text for node in root.iter() for text in [node.text] if text and text.strip()]


def lines_of(root):
    found = (node.attrib["points"] for node in root.iter(f"{SVG}polyline"))
    return [[tuple(map(float, place.split(","))) for place in points.split()] for points in found]


def test_there_is_a_line_for_each_codec_and_a_mark_for_each_run(waves):
    found = sweep(waves, ["sz3", "zfp", "lattice"], [wb.Absolute(eb) for eb in (0.1, 0.01, 0.001)])
    root = ElementTree.fromstring(found.plot().svg)
    lines = lines_of(root)
    assert [len(line) for line in lines] == [3, 3]
    for line in lines:   # more bits, better: to the right, and up
        assert line == sorted(line)
        assert [y for _, y in line] == sorted((y for _, y in line), reverse=True)
    titles = [node.text for node in root.iter(f"{SVG}title")]
    assert any(title.startswith("sz3, absolute 0.001: ") for title in titles)
    assert {"bits per value", "PSNR [dB]", "sz3", "zfp", "not drawn: 3 without finite figures"} <= set(texts(root))


def test_bounds_of_two_kinds_are_two_lines(waves):
    bounds = [wb.Absolute(0.1), wb.Absolute(0.01), wb.Relative(0.01)]
    root = ElementTree.fromstring(sweep(waves, "zfp", bounds).plot("ratio", "max_error").svg)
    assert [len(line) for line in lines_of(root)] == [2, 1]
    assert {"zfp, absolute", "zfp, relative"} <= set(texts(root))


def test_a_figure_that_was_not_measured_is_refused(waves):
    found = sweep(waves, "zfp", wb.Absolute(0.1))
    with pytest.raises(wb.WorkbenchError, match=r"must be measured figures \(limit, .*\); got 'halo_recall'"):
        found.plot(y="halo_recall")


def test_nothing_to_draw_is_said(waves):
    for found in (Sweep(()), sweep(waves, "lattice", wb.Absolute(0.1)), sweep(waves, "pcodec", wb.Absolute(0.1))):
        assert texts(ElementTree.fromstring(found.plot().svg)) == [
            "nothing to draw: no run has a finite bits_per_value and psnr"
        ]


def test_names_cannot_become_shapes():
    hostile = "</text><script>alert(1)</script>\"'&"
    run = Run({"id": "x"}, hostile, wb.Absolute(1), figures={"bits_per_value": 1.0, "psnr": 2.0})
    shown = Sweep((run,)).plot()
    root = ElementTree.fromstring(shown.svg)
    assert not list(root.iter(f"{SVG}script"))
    assert "<script" not in shown._repr_html_()
    assert hostile in texts(root)


SIZES = st.floats(1e-200, 1e200)
NUMBERS = SIZES | SIZES.map(lambda size: -size) | st.just(0.0)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=8))
def test_every_point_is_inside_the_frame(pairs):
    root = drawn({"a": [Point(x, y, "point") for x, y in pairs]})
    (line,) = lines_of(root)
    assert len(line) == len(pairs)
    for x, y in line:
        assert chart.LEFT <= x <= chart.WIDTH - chart.RIGHT
        assert chart.TOP <= y <= chart.HEIGHT - chart.BOTTOM


@given(st.lists(NUMBERS, min_size=1, max_size=8))
def test_an_axis_keeps_order_and_has_a_handful_of_ticks(values):
    axis = Axis.around(values)
    places = [axis(value) for value in sorted(values)]
    assert places == sorted(places)
    ticks = axis.ticks()
    assert ticks == sorted(ticks)
    assert len(ticks) <= 13
    assert all(-1e-9 <= axis(tick) <= 1 + 1e-9 for tick in ticks)
    if max(values) - min(values) > 1e-6 * max(map(abs, values)):
        assert len(ticks) >= 2


@pytest.mark.parametrize(("values", "expected"), [
    ([1.0, 29.0], False), ([1.0, 30.0], True), ([1e-6, 1e-2], True), ([0.0, 1e6], False), ([-1.0, 100.0], False),
    ([5.0], False),
])
def test_an_axis_is_logarithmic_when_values_span_much(values, expected):
    assert Axis.around(values).logarithmic is expected


def test_decades_are_equally_far_apart():
    axis = Axis.around([1e-6, 1e-2])
    places = [axis(10.0**-n) for n in (6, 5, 4, 3, 2)]
    steps = [b - a for a, b in itertools.pairwise(places)]
    assert steps == pytest.approx([steps[0]] * 4)
    assert axis.ticks() == [1e-6, 1e-5, 1e-4, 1e-3, 1e-2]


def brightness(colour):
    """Relative luminance, as WCAG defines it."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((brightness(one), brightness(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("page", ["#ffffff", "#111111"])
def test_everything_can_be_seen_on_light_and_dark_pages(page):
    assert min(contrast(colour, page) for colour in (chart.GREY, *chart.COLOURS, *looks.CODEC_COLOURS)) > 3
    lines = {f"codec {n}": [Point(n, n, "p"), Point(n + 1.0, n, "p")] for n in range(12)}
    used = re.findall(r"#[0-9a-f]{6}", chart.chart(lines, "x", "y", 24).svg)
    assert set(used) <= {chart.GREY, chart.INK, *looks.CODEC_COLOURS}
    assert contrast(chart.INK, "#ffffff") > 4.5   # where the page does not say the colour of its texts


def test_many_codecs_stay_inside_the_drawing_and_look_different():
    root = drawn({f"codec {n}": [Point(n, n, "p")] for n in range(40)})
    places = [float(node.attrib["y"]) for node in root.iter(f"{SVG}text") if (node.text or "").startswith("codec")]
    assert len(places) == 40
    assert max(places) <= chart.HEIGHT - chart.BOTTOM + 8
    marks = {(node.attrib["d"], node.attrib["fill"]) for node in root.iter(f"{SVG}path") if "fill" in node.attrib}
    assert len(marks) == 40   # five shapes, eight colours


def test_long_names_are_cut_and_told_in_full():
    name = "numcodecs(codec=" + "x" * 60
    root = drawn({name: [Point(1.0, 2.0, "p")]})
    assert f"{name[:23]}…" in texts(root)
    assert name in [node.text for node in root.iter(f"{SVG}title")]


def test_a_drawing_is_saved_as_it_is_shown(waves, tmp_path):
    shown = sweep(waves, "zfp", [wb.Absolute(0.1), wb.Absolute(0.2)]).plot()
    assert shown.save(tmp_path / "curves.svg").read_text(encoding="utf-8") == shown._repr_svg_()
    assert shown._repr_svg_() in shown._repr_html_()
    assert repr(shown) == "Chart(psnr against bits_per_value)"
    with pytest.raises(wb.WorkbenchError, match=r"a chart is written as .svg; got .*curves.png"):
        shown.save(tmp_path / "curves.png")
    with pytest.raises(wb.WorkbenchError, match="into a folder that exists"):
        shown.save(tmp_path / "nowhere" / "curves.svg")


def test_theory_is_drawn_as_lines_and_bands_with_names_of_their_own():
    curves = [
        chart.Curve("bound", [(1.0, 3.0), (2.0, 1.0)], dashes="7 4"),
        chart.Curve("band", [(1.0, 3.0), (2.0, 1.0)], to=[(1.0, 4.0), (2.0, math.inf)]),
    ]
    measured = {"sz3": [chart.Point(1.5, 4.5, "a run")]}
    drawing = ElementTree.fromstring(chart.chart(measured, "mse", "bits", 1, curves).svg)
    (band,) = drawing.findall(".//{*}polygon")
    assert len(band.get("points").split()) == 3
    theory = [line for line in drawing.findall(".//{*}polyline") if line.get("stroke") == chart.GREY]
    assert [line.get("stroke-dasharray") for line in theory] == ["7 4"]
    told = [text.text for text in drawing.findall(".//{*}text")]
    assert {"bound", "band", "sz3"} <= set(told)
    assert "nothing to draw" not in chart.chart({}, "mse", "bits", 0, curves).svg
    assert "nothing to draw" in chart.chart({}, "mse", "bits", 0, [chart.Curve("none", [(1.0, math.nan)])]).svg
