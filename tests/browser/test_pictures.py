"""Pictures in a reader's hands: exact values, halos that are named before they are chosen, colours, layers, files."""

import functools
import re
from collections.abc import Iterator

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from browser.accessibility import serious_findings
from browser.conftest import Opened
from browser.notebook_page import NotebookPage, eventually
from browser.panels import DECODED, ERROR, ORIGINAL, idle, opened_panel, prepared
from workbench.lab.front_end import modules

pytestmark = pytest.mark.slow
DATA = """import numpy as np
import workbench as wb
waves = wb.synthetic.gaussian_field((40, 64, 64), seed=3)
holed = np.ma.masked_where(np.indices(waves.shape)[2] < 8, waves.values)
field = wb.Field(holed, spacing=0.5, metadata={"units": {"length": "Mpc"}, "dimensions": ["z", "y", "x"]})
snapshot = wb.synthetic.cosmic_web(n=32)"""
MAPS, TOOLS = ".wb-canvas >> nth=0", ".wb-bar-place"


LINKED = """async (sources) => {
    const addresses = {};
    const address = (name) => addresses[name] ??= URL.createObjectURL(new Blob([
        sources[name].replace(/from "[.][/]([\\w.]+)"/g, (_, other) => `from "${address(other)}"`),
    ], { type: "text/javascript" }));
    for (const name of Object.keys(sources).filter((name) => /^(canvas|ticks)/.test(name)))
        Object.assign(window, await import(address(name)));
}"""


@pytest.fixture(scope="module")
def functions(browser: Browser) -> Iterator[Page]:
    """An empty page with what the modules of the canvas export."""
    page = browser.new_page()
    page.evaluate(LINKED, modules())
    yield page
    page.close()


PLACING = "({ scale: 1, rise: 1, x: (x) => x, y: (y) => y })"
NESTED = """[
    { shape: "circles", label: "halo", ids: [1, 2, 3], titles: ["large", "small", "smallest"],
      places: new Float32Array([100, 100, 50, 130, 100, 12, 108, 100, 4]) },
    { shape: "lines", label: "link", ids: [7], width: 1, places: new Float32Array([145, 60, 145, 140]) },
]"""


def test_the_smallest_circle_around_the_pointer_is_meant(functions: Page) -> None:
    found = f"(at) => hit({NESTED}, {PLACING}, ...at)?.title ?? null"
    expected = {
        (100, 100): "large",   # although another circle is eight pixels away
        (130, 100): "small", (108, 102): "smallest", (100, 147): "large", (146, 120): "link 7", (152, 100): "large",
        (160, 100): None,
    }
    assert {at: functions.evaluate(found, at) for at in expected} == expected
    order = functions.evaluate(f"inOrder({NESTED}, {PLACING}, 300, 300).map(({{ title }}) => title)")
    assert order == ["large", "small", "smallest", "link 7"]
    assert functions.evaluate(f"inOrder({NESTED}, {PLACING}, 105, 105).length") == 1   # the others are out of sight


@pytest.mark.parametrize(("low", "high", "texts"), [
    (0, 48, ["0", "10", "20", "30", "40"]),
    (-0.3, 0.31, ["\N{MINUS SIGN}0.2", "0", "0.2"]),
    (41.95, 42.05, ["41.96", "41.98", "42", "42.02", "42.04"]),
    (0, 2e6, ["0", "5 · 10⁵", "10⁶", "1.5 · 10⁶", "2 · 10⁶"]),
    (1e6 + 0.1, 1e6 + 0.9, ["0.2", "0.4", "0.6", "0.8"]),   # distances from a round number
])
def test_ticks_are_few_and_round(functions: Page, low: float, high: float, texts: list[str]) -> None:
    found = functions.evaluate("([low, high]) => ticksOf(low, high, 5)", [low, high])
    assert [tick["text"] for tick in found["ticks"]] == texts
    places = np.array([tick["place"] - found["from"] for tick in found["ticks"]])
    assert np.ptp(np.diff(places)) <= 1e-9 * np.ptp(places)


def limits(functions: Page, levels: list[int], mode: str, sent: str = "", first: str = "pane") -> list[float]:
    """The ends of the colours of a picture with these levels, which mean 0 to 254 from 1 to 255."""
    found: list[float] = functions.evaluate(f"""([levels, limits]) => {{
        const scale = {{ low: 0, high: 254, empty: true, logarithmic: false, colours: "values", unit: "", palette: [] }};
        const sent = {{ ...scale, {sent} }};
        const pane = {{ sent, levels: Uint8Array.from(levels) }};
        const other = {{ sent, levels: Uint8Array.from([1, 101]) }};
        return limitsOf(pane, {first}, {{ limits, typed: [10, 20], locked: true }});
    }}""", [levels, mode])
    return found


def test_limits_are_those_of_the_values_that_are_there(functions: Page) -> None:
    levels = [0] * 500 + [1] + [51] * 98 + [201]   # masked, and two outliers
    assert limits(functions, levels, "full") == [0, 254]
    assert limits(functions, levels, "1-99") == [50, 51]
    assert limits(functions, levels, "0.1-99.9") == [0, 200]
    assert limits(functions, levels, "typed") == [10, 20]
    assert limits(functions, levels, "1-99", first="other") == [0, 100]   # those of the first picture, on the same scale
    errors = "colours: 'difference', low: -1, high: 1"
    low, high = limits(functions, [128] * 98 + [138, 255], "1-99", errors)
    assert -low == high == pytest.approx(10 / 127)
    assert limits(functions, levels, "typed", "palette: ['#ffffff']") == [0, 254]


COLOURED = """([deep, levels, limits]) => {
    const sent = { deep, width: levels.length, height: 1, low: 0, high: 254, empty: true, palette: [], colours: "values" };
    const table = new Uint8Array(768).map((_, i) => i / 3); // a colour is as bright as its number
    const typed = deep ? Uint16Array.from(levels) : Uint8Array.from(levels);
    const pane = { sent, levels: typed, limits };
    const image = imageOf(pane, { values: new DataView(table.buffer) }, { colours: "" });
    return [...image.getContext("2d").getImageData(0, 0, levels.length, 1).data.filter((_, i) => i % 4 === 0)];
}"""


def test_levels_of_8_and_16_bits_get_the_colour_of_their_value(functions: Page) -> None:
    assert functions.evaluate(COLOURED, [False, [0, 1, 128, 255], [0, 254]]) == [118, 0, 128, 255]
    assert functions.evaluate(COLOURED, [True, [0, 1, 32768, 65535], [0, 254]]) == [118, 0, 128, 255]
    narrow = [2, 3]   # a 254th of the range: bytes have one level there, and 16 bits have 258
    assert functions.evaluate(COLOURED, [False, [2, 3, 4, 5], narrow]) == [0, 0, 255, 255]
    assert functions.evaluate(COLOURED, [True, [517, 582, 646, 775, 60000], narrow]) == [0, 64, 127, 255, 255]


STRETCHED = """([columns, rows, width, height]) => {
    const [image, canvas] = [document.createElement("canvas"), document.createElement("canvas")];
    Object.assign(image, { width: columns, height: rows });
    const painted = image.getContext("2d");
    for (let row = 0; row < rows; row++) {
        painted.fillStyle = `rgb(${60 * row}, 0, 0)`;
        painted.fillRect(0, row, columns, 1);
    }
    Object.assign(canvas, { width, height });
    const context = canvas.getContext("2d");
    paintImage(context, image, 0, 0, width, height, 1);
    const column = context.getImageData(Math.floor(width / 2), 0, 1, height).data;
    return [...new Set(column.filter((_, i) => i % 4 === 0))];
}"""


def test_few_rows_are_repeated_and_not_smoothed(functions: Page) -> None:
    assert functions.evaluate(STRETCHED, [2000, 4, 300, 200]) == [0, 60, 120, 180]
    assert functions.evaluate(STRETCHED, [40, 4, 300, 200]) == [0, 60, 120, 180]
    assert functions.evaluate(STRETCHED, [40, 4, 300, 2]) == [30, 150]   # and many are averaged


@pytest.fixture(scope="module")
def page(shared: Opened) -> Opened:
    return prepared(shared, "pictures", 1300, DATA)


@pytest.fixture
def bounds(page: Opened) -> Iterator[NotebookPage]:
    with opened_panel(page, "wb.lab.bounds(field)", "spectra") as notebook:
        yield notebook


@pytest.fixture
def clusters(page: Opened) -> Iterator[NotebookPage]:
    with opened_panel(page, "wb.lab.clusters(snapshot)", "breakage") as notebook:
        yield notebook


def readings(panel: NotebookPage) -> list[str]:
    """What stands above the pictures about the place under the pointer."""
    return panel.page.locator(MAPS).locator(".wb-reading").all_inner_texts()


def place(panel: NotebookPage) -> str:
    """What stands above all pictures."""
    return panel.page.locator(TOOLS).locator(".wb-place").inner_text()


def exact(panel: NotebookPage) -> list[str]:
    """The values under the pointer, once Python has answered and they stay: a picture that moves has others soon."""
    seen: list[list[str]] = [[]]

    def stay() -> bool:
        seen.append(readings(panel))
        return seen[-1] == seen[-2] and seen[-1][0] != "" and not any("≈" in text for text in seen[-1])

    eventually(stay)
    return seen[-1]


def cell_shown(panel: NotebookPage) -> str:
    """The index of the cell under the pointer."""
    found: list[str] = []
    eventually(lambda: bool(found.extend(re.findall(r"cell (\[.*?\])", place(panel))) or found))
    return found[0]


def assert_exact(panel: NotebookPage) -> None:
    """What is shown is what the arrays have, to the last digit."""
    original, decoded, error = exact(panel)
    cell = f"tuple({cell_shown(panel)})"
    values = panel.python(f"[float(each.values[{cell}]) for each in (field, panel.result['trial'].decoded)]")
    one, other = map(float, values.strip("[]").split(","))
    assert (np.float32(original), np.float32(decoded)) == (np.float32(one), np.float32(other))
    shown, share = (float(text.removesuffix(" bounds")) for text in error.split(" = "))
    assert shown == pytest.approx(other - one, rel=1e-5, abs=1e-12)
    assert share == pytest.approx((other - one) / float(panel.python("panel.state.eb")), rel=1e-3, abs=1e-9)


@pytest.mark.long
def test_values_under_the_pointer_are_those_of_the_arrays(bounds: NotebookPage) -> None:
    canvas = bounds.page.locator(DECODED)
    box = canvas.bounding_box()
    canvas.hover(position={"x": 0.7 * box["width"], "y": 0.3 * box["height"]})
    assert_exact(bounds)
    assert re.match(r"x 22\.\d+ Mpc   y 22\.\d+ Mpc  ·  cell \[20, 44, 44\]", place(bounds)), place(bounds)
    before = cell_shown(bounds)
    canvas.press("+")   # the pointer stays, and the picture moves
    eventually(lambda: cell_shown(bounds) != before if "cell" in place(bounds) else False)
    assert_exact(bounds)
    eventually(lambda: bounds.python("panel.state.window is None") == "False")
    before_picture = bounds.picture(DECODED)
    bounds.run_cell("panel.change(eb=0.2, codec='prequantised')")
    bounds.delete_cell()
    eventually(lambda: bounds.picture(DECODED) != before_picture)
    idle(bounds, "spectra")
    assert_exact(bounds)
    canvas.hover(position={"x": 2, "y": 0.5 * box["height"]})
    canvas.press("0")
    eventually(lambda: set(readings(bounds)) == {"no value"})
    bounds.portrait("pictures-bounds", MAPS)


@pytest.mark.long
def test_colours_layers_and_files(bounds: NotebookPage) -> None:
    maps, tools = bounds.page.locator(MAPS), bounds.page.locator(TOOLS)
    before = [bounds.picture(each) for each in (ORIGINAL, DECODED, ERROR)]
    ends = maps.locator(".wb-foot span").first.inner_text()
    tools.get_by_text("colours", exact=True).click()
    tools.get_by_label("limits", exact=True).select_option("1-99")
    for each, whole in zip((ORIGINAL, DECODED, ERROR), before, strict=True):
        eventually(lambda each=each, whole=whole: bounds.picture(each) != whole)
    assert maps.locator(".wb-foot span").first.inner_text().startswith("≤ ")
    low = [foot.locator("span").first.inner_text() for foot in maps.locator(".wb-foot").all()]
    assert low[0] == low[1]
    grey = bounds.picture(ORIGINAL)
    tools.get_by_label("colour map").select_option("grey")
    eventually(lambda: bounds.picture(ORIGINAL) != grey)
    tools.get_by_role("textbox", name="from").fill("5")
    tools.get_by_role("textbox", name="to").fill("1")
    tools.get_by_role("textbox", name="to").press("Enter")
    expect(tools.get_by_role("textbox", name="to")).to_have_attribute("aria-invalid", "true")
    tools.get_by_role("textbox", name="from").fill("-0.5")
    tools.get_by_role("textbox", name="from").press("Enter")
    eventually(lambda: looks(bounds, "limits", "typed") == "('typed', [-0.5, 1])")
    assert maps.locator(".wb-foot span").first.inner_text() == "≤ \N{MINUS SIGN}0.5"
    tools.get_by_label("limits", exact=True).select_option("full")
    tools.get_by_label("colour map").select_option("")
    tools.get_by_label("limits", exact=True).press("Escape")
    eventually(lambda: bounds.picture(ORIGINAL) == before[0])
    assert maps.locator(".wb-foot span").first.inner_text() == ends
    expect(bounds.page.locator(".wb-panel .wb-legend").first).to_contain_text("no value")
    for way, beginning in (("SVG", b"<svg"), ("PNG, 2x", b"\x89PNG")):
        tools.get_by_text("save picture", exact=True).click()
        with bounds.page.expect_download() as download:
            tools.get_by_role("button", name=f"save error as {way}").click()
        assert download.value.path().read_bytes().startswith(beginning)
        tools.get_by_text("save picture", exact=True).press("Escape")


def looks(panel: NotebookPage, *names: str) -> str:
    """Settings of the pictures, which Python keeps for other views; None where nothing was sent yet."""
    return panel.python(f"tuple(panel.widget.settings['canvas'].get(name) for name in {names})")


# One end of the link in the close-up, and the half width of the picture.
RING = """(lambda shown, rings: tuple(map(float, (*rings.places[0][:2], shown.window[1]))))(
    panel.shown.detail, next(each for each in panel.shown.detail.marks if (each.shape, each.label) == ("circles", "")))"""
# Where on the page a place of the picture is: the canvas shows its home whole.
WHERE = "(canvas, [x, y, length]) => [canvas.clientWidth * x / length, canvas.clientHeight * (1 - y / length)]"


def pointed(panel: NotebookPage, canvas: Locator, halo: int) -> dict[str, float]:
    """The centre of a halo on the canvas."""
    centre = f"[*map(float, panel.result['halos'].catalogue.centres[{halo}][:2]), snapshot.box[0]]"
    x, y = canvas.evaluate(WHERE, [float(part) for part in panel.python(centre).strip("[]").split(",")])
    return {"x": x, "y": y}


def is_chosen(panel: NotebookPage, label: str) -> bool:
    """Whether the halo of this label was chosen; before any was, there is none."""
    return panel.python(f"getattr(panel.state.chosen, 'particles', None) == ({label},)") == "True"


@pytest.mark.long
def test_the_halo_that_is_named_is_the_one_that_is_chosen(clusters: NotebookPage) -> None:
    canvas = clusters.page.locator(DECODED).first
    for halo in (0, 3):
        where = pointed(clusters, canvas, halo)
        canvas.hover(position=where)
        expect(clusters.page.locator(TOOLS).locator(".wb-place")).to_contain_text(re.compile(r"halo \d+: [\d,]+ members"))
        number, members = re.search(r"halo (\d+): ([\d,]+) members", place(clusters)).groups()   # type: ignore[union-attr]
        chosen = f"panel.result['halos'].catalogue.labels[{int(number) - 1}]"
        canvas.click(position=where)
        eventually(functools.partial(is_chosen, clusters, chosen))
        size = clusters.python(f"int(panel.result['halos'].catalogue.members[{int(number) - 1}])")
        assert size == members.replace(",", "")
    counts = [int(text.split(" here")[0].replace(",", "")) for text in exact(clusters)]
    assert counts[0] >= 1


@pytest.mark.long
def test_halos_are_reached_by_keys_and_layers_are_put_away(clusters: NotebookPage) -> None:
    page, canvas = clusters.page, clusters.page.locator(DECODED).first
    canvas.focus()
    said = page.locator(MAPS).locator("[aria-live=polite]")
    canvas.press("PageDown")
    expect(said).to_have_text(re.compile(r"halo \d+: .* members, .*; 1 of \d+"))
    outlined = clusters.picture(DECODED)
    canvas.press("PageDown")
    expect(said).to_have_text(re.compile("; 2 of "))
    eventually(lambda: clusters.picture(DECODED) != outlined)
    number = int(re.search(r"halo (\d+):", said.inner_text()).group(1))   # type: ignore[union-attr]
    clusters.portrait("pictures-clusters", MAPS)
    canvas.press("Enter")
    label = f"panel.result['halos'].catalogue.labels[{number - 1}]"
    eventually(functools.partial(is_chosen, clusters, label))
    detail = page.locator(ORIGINAL).nth(1)
    expect(detail).to_be_visible()
    whole = clusters.picture(detail)
    detail.press("+")   # the zoom of one close-up is not that of the next
    eventually(lambda: clusters.picture(detail) != whole)
    clusters.press("next ▶")
    x, y, reach = (float(part) for part in clusters.python(RING).strip("()").split(","))
    side = detail.bounding_box()["width"]
    detail.hover(position={"x": side * (x + reach) / (2 * reach), "y": side * (reach - y) / (2 * reach)})
    told = page.locator(".wb-beside", has_text=re.compile(r"particle [\d,]+\s+original .*\s+decoded .*\s+error .* bounds"))
    expect(told).to_be_visible()
    clusters.portrait("lab-close-up", ".wb-panel")
    assert serious_findings(page, ".wb-panel") == []
    expect(canvas).to_have_attribute("aria-label", re.compile(r"decoded: particles per \(Mpc/h\)², log scale from .* to "))
    canvas.press("?")
    expect(page.get_by_role("dialog", name="keys of a picture").first).to_be_visible()
    page.keyboard.press("Escape")
    canvas.press("Escape")
    clusters.press("no close-up")
    idle(clusters, "breakage")
    clusters.page.wait_for_function("() => document.activeElement?.className !== 'wb-help'")
    before = clusters.picture(DECODED)
    shown = page.locator(".wb-panel").first   # a picture that is drawn while it is not on the page leaves no trace
    shown.evaluate("panel => { panel.style.display = 'none'; }")
    clusters.run_cell("panel.change(min_members=40)\npanel.change(min_members=20)")
    clusters.delete_cell()
    shown.evaluate("panel => { panel.style.display = ''; }")
    eventually(lambda: clusters.picture(DECODED) == before)
    page.locator(".wb-panel .wb-legend").first.get_by_role("checkbox", name="merged").click()
    eventually(lambda: clusters.picture(DECODED) != before)
    eventually(lambda: looks(clusters, "hidden") == "(['merged'],)")
