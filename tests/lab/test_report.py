"""Reports and static pictures are complete without scripts, a kernel or a network."""

from __future__ import annotations

import asyncio
import base64
import html
import html.parser
import io
import re
import urllib.parse
import xml.etree.ElementTree
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import workbench as wb
from lab.bounds_panel.samples import sample
from workbench.charts.description import Axis, Chart, Series
from workbench.lab import report, static_picture
from workbench.lab.description import Axes, Charts, Fact, Marks, Picture, Shown, Table
from workbench.lab.last_picture import AGE, LastPicture, static_bundle
from workbench.text_files import write_text


class Texts(html.parser.HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.svgs: list[str] = []
        self.text = ""
        self._script = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._script = tag in ("script", "style")
        if tag == "svg":
            self.svgs.append(dict(attrs).get("aria-label") or "")

    def handle_endtag(self, tag: str) -> None:
        self._script = False

    def handle_data(self, data: str) -> None:
        self.text += "" if self._script else data


def picture(**more: Any) -> Picture:
    given = {"low": 0.5, "high": 80.0, "logarithmic": True, "unit": "particles", **more}
    return Picture("decoded", np.arange(256, dtype=np.uint8).reshape(16, 16), (0, 1, 0, 1), **given)


def test_a_report_tells_everything_without_scripts(tmp_path: Path) -> None:
    with wb.lab.bounds(sample("cube")) as panel:
        panel.result   # noqa: B018
        text = panel.save_report(tmp_path / "report.html").read_text(encoding="utf-8")
    page = Texts(text)
    assert "Bounds: interpolation, absolute 0.01" in page.text
    for words in ("8 of 16 across axis 0", "times smaller", "Lossbench", "NumPy", "UTC"):
        assert words in page.text, words
    for label in ("Errors: share of the values by error", "Power spectrum: deviation of the power", "decoded: "):
        assert any(label in said for said in page.svgs), label
    assert text.count('class="wb-live"') == 3


def test_a_picture_has_its_colour_bar_and_its_legend_in_words() -> None:
    marks = Marks("circles", [[0.5, 0.5, 0.1], [0.2, 0.2, 0.1]], "#56b4e9", "broken halo", dashed=True)
    page = Texts(static_picture.figure(picture(marks=(marks,), empty=True)))
    assert "0.5" in page.text
    assert "particles, log scale" in page.text
    assert "broken halo (2)" in page.text
    assert "no value" in page.text
    assert page.svgs[0] == "decoded: from 0.5 to 80 particles, logarithmic, 2 broken halo"


def test_marks_are_as_faint_as_on_the_page_and_those_for_a_closer_look_are_left_out() -> None:
    places = [[0.5, 0.5, 0.1]]
    faint = Marks("circles", places, "#56b4e9", "intact", opacity=0.25)
    near = Marks("circles", places, "#fff", "link", near=True)
    page = static_picture.figure(picture(marks=(faint, near)))
    assert 'stroke="#56b4e9"' in page
    assert 'opacity="0.25"' in page
    assert "#fff" not in page
    assert "link" not in page


def test_a_picture_has_its_axes_with_the_ticks_of_charts() -> None:
    shown = picture(axes=Axes("x", "y", "Mpc/h"), quantity="surface density")
    page = Texts(static_picture.figure(shown))
    assert {"x [Mpc/h]", "y [Mpc/h]", "0.2", "0.8"} <= set(re.findall(r">([^<>]+)</text>", static_picture.svg(shown)))
    assert "surface density" in page.text
    assert page.svgs[0] == "decoded: surface density from 0.5 to 80 particles, logarithmic"


def test_a_picture_without_a_range_has_no_colour_bar() -> None:
    page = Texts(static_picture.figure(picture(low=1.0, high=1.0)))
    assert page.svgs == ["decoded"]


def test_the_picture_for_a_notebook_without_a_kernel_is_small_and_says_what_it_is() -> None:
    noise = np.random.default_rng(1).integers(0, 256, (1024, 1024), np.uint8)
    circles = np.random.default_rng(2).uniform(0, 1, (20000, 3))
    pictures = tuple(
        Picture(title, noise, (0, 1, 0, 1), marks=(Marks("circles", circles, "#ffffff", "halos"),)) for title in "abcd"
    )
    axis = Axis("x", 0, 1)
    charts = Charts({
        name: partial(Chart, name, axis, axis, (Series(name, np.linspace(0, 1, count), np.zeros(count)),))
        for name, count in (("short", 2), ("endless", 100_000))
    })
    ratio = Fact("ratio", "8.1", "good", "times smaller", unit="x")
    told = {"answer": ("It is", ratio), "facts": (ratio,), "settings": {"codec": "sz3"}, "remark": "A remark."}
    shown = Shown(pictures=pictures, charts=charts, **told)
    bundle = static_bundle("Bounds", "a field", shown, "wb-last-1")
    assert len(bundle["text/html"]) < 300_000
    assert bundle["text/html"].count("<img") == 5
    assert 'alt="short: x by x. short: 0 at 1."' in bundle["text/html"]
    assert 'It is <span class="wb-fact good"><b>✓ 8.1</b> <small>x</small></span></p>' in bundle["text/html"]
    assert "times smaller" not in bundle["text/html"]   # a tooltip, where there is no style sheet
    assert "ratio 8.1 x" in bundle["text/html"]
    assert "A remark." in bundle["text/html"]
    assert "codec: sz3" in bundle["text/html"]
    assert "run the cell" in bundle["text/plain"]


def images(page: str) -> list[str]:
    """The drawings that are images, in their order."""
    return [urllib.parse.unquote(html.unescape(found)) for found in re.findall(r'src="data:image/svg\+xml,([^"]+)"', page)]


def test_the_picture_for_a_notebook_has_its_axes_and_colour_bar_and_the_front_one_is_first() -> None:
    marks = Marks("circles", [[0.5, 0.5, 0.1]], "#56b4e9", "broken halo")
    axes = {"axes": Axes("x", "y", "Mpc/h"), "quantity": "surface density"}
    one, other = replace(picture(), title="original"), picture(marks=(marks,), **axes)
    first, second = images(static_bundle("A", "b", Shown(pictures=(one, other), front=1), "wb-last-1")["text/html"])
    texts = re.findall(r">([^<>]+)</text>", first)
    assert {"decoded", "x [Mpc/h]", "y [Mpc/h]", "0.2", "0.5", "80", "broken halo (1)"} <= set(texts)
    assert "surface density [particles], log scale" in texts
    assert "original" in second
    for drawing in (first, second):   # an image is shown as large as its picture asks, whatever stands below it
        root = xml.etree.ElementTree.fromstring(drawing)
        assert [root.get("width"), root.get("height")] == root.get("viewBox", "").split()[2:]


def test_a_colour_bar_is_one_image_with_the_colours_of_its_picture() -> None:
    shown = picture(low=1.0, high=3.0, logarithmic=False, palette=("#ff0000", "#00ff00", "#0000ff"), empty=True)
    _, bar = re.findall(r'base64,([^"]+)"', static_picture.figure(shown))
    colours = np.array(Image.open(io.BytesIO(base64.b64decode(bar))).convert("RGB"))[0]
    assert {tuple(colour) for colour in colours.tolist()} == {(255, 0, 0), (0, 255, 0), (0, 0, 255)}


def test_what_a_colour_bar_means_is_below_its_ends_where_it_is_long() -> None:
    def lines(quantity: str) -> set[str]:
        drawn = static_picture.complete(picture(quantity=quantity))
        return set(re.findall(r'y="([\d.]+)" text-anchor="(?:start|middle|end)"', drawn))

    assert len(lines("mass")) == 1
    assert len(lines("change of the value by the rms of all values")) == 2


def test_points_with_a_dash_are_rings() -> None:
    points = Marks("points", [[0.5, 0.5]], "#ff3df0", "hit value", dash="2 2")
    assert static_picture.complete(picture(marks=(points,))).count('fill="none" stroke="#ff3df0"') == 2


def test_every_cell_that_shows_a_panel_has_its_newest_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[str, Any]] = []

    class Handle:
        def __init__(self, name: str) -> None:
            self.name = name

        def update(self, content: Any, **kwargs: Any) -> None:
            shown.append((self.name, content))

    def display(content: Any, raw: bool, display_id: str = "") -> Handle:
        if display_id:   # the panel itself has none
            shown.append((display_id, content))
        return Handle(display_id)

    monkeypatch.setattr("IPython.display.display", display)

    async def twice() -> None:
        last, texts = LastPicture(), ["one"]
        last.display_beside({}, lambda: {"text/plain": texts[-1]})
        last.display_beside({}, lambda: {"text/plain": texts[-1]})
        texts.append("two")
        await asyncio.sleep(1.5 * AGE)

    asyncio.run(twice())
    names = {name for name, _ in shown}
    assert len(names) == 1   # an update reaches all outputs of this name
    assert [content["text/plain"] for _, content in shown] == ["one", "one", "two"]


def test_a_report_begins_with_the_answer() -> None:
    ratio = Fact("ratio", "8.1", meaning="times smaller")
    page = report.body("Bounds", "a field", Shown(answer=("It is", ratio), facts=(ratio,), remark="A remark."), "")
    said = Texts(page).text
    assert said.index("It is 8.1") < said.index("ratio")
    assert "A remark." in said


def test_the_sizes_of_tables_are_told() -> None:
    shown = Shown(tables={"halos": Table(("halo",), (("7",), ("9",)), total=308)})
    assert "halos (2 of 308)" in Texts(report.body("Clusters", "particles", shown, "")).text


def test_figures_of_a_group_stand_together_with_their_meanings() -> None:
    shown = Shown(facts=(Fact("ratio", "8.1", meaning="times smaller", group="size"), Fact("PSNR", "60", group="error")))
    page = report.body("Bounds", "a field", shown, "")
    assert re.findall(r'role="group" aria-label="(\w+)"', page) == ["size", "error"]
    (described,) = re.findall(r'aria-describedby="([\w-]+)"', page)
    assert f'id="{described}">times smaller<' in page


def test_figures_are_one_stop_of_the_tab_key() -> None:
    named = (Fact("codec", "sz3"), *(Fact(name, "8.1", meaning="of the archive") for name in ("ratio", "bits", "size")))
    stops = re.findall(r'class="wb-term"( tabindex="-1")?', report.body("Bounds", "a field", Shown(facts=named), ""))
    assert stops == ["", ' tabindex="-1"', ' tabindex="-1"']


def test_a_report_is_not_written_through_what_lies_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link under the name of the unfinished file, which nobody can guess; if somebody does, nothing is written."""
    monkeypatch.setattr("secrets.token_hex", lambda _: "guessed")
    (tmp_path / "private").write_text("private")
    (tmp_path / ".report.html.guessed.part").symlink_to(tmp_path / "private")
    with pytest.raises(wb.WorkbenchError, match="File exists"):
        write_text(tmp_path / "report.html", "content", "a report", ".html")
    assert (tmp_path / "private").read_text() == "private"
    monkeypatch.undo()
    (tmp_path / ".report.html.part").symlink_to(tmp_path / "private")
    write_text(tmp_path / "report.html", "content", "a report", ".html")
    assert (tmp_path / "private").read_text() == "private"
