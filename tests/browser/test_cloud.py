"""The cloud in a browser: it is drawn, turned, named and picked; it survives a lost context, and goes without a trace."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from browser.conftest import Opened
from browser.notebook_page import NotebookPage, eventually
from browser.panels import prepared

pytestmark = pytest.mark.long
POINTS = ".wb-cloud-points"
DATA = """import workbench as wb
snapshot = wb.synthetic.cosmic_web(n=32)
groups = wb.friends_of_friends(snapshot, 0.2)
archive = wb.compress(wb.Particles(snapshot.positions, snapshot.box), wb.Absolute(0.1 * groups.linking_length))"""
TWO = "cloud = wb.lab.cloud(snapshot, archive, groups, rotate=%s)\ncloud"
# Where the centre of the chosen halo is said to be: in the middle of a side, once the camera looks at it.
MIDDLE = "canvas => ({x: canvas.clientWidth / 4, y: canvas.clientHeight / 2})"
LOSE = "canvas => { globalThis.lost = canvas.getContext('webgl2').getExtension('WEBGL_lose_context'); lost.loseContext() }"
NO_WEBGL = """() => {
    const usual = HTMLCanvasElement.prototype.getContext;
    HTMLCanvasElement.prototype.getContext = function(kind, ...rest) {
        return kind === "webgl2" ? null : usual.call(this, kind, ...rest);
    };
    globalThis.withWebgl = () => { HTMLCanvasElement.prototype.getContext = usual };
}"""


@pytest.fixture(scope="module")
def page(shared: Opened) -> Opened:
    return prepared(shared, "cloud", 1000, DATA)


@pytest.fixture
def notebook(page: Opened) -> Iterator[NotebookPage]:
    notebook, watch = page
    yield notebook
    notebook.run_cell("cloud.close()")
    notebook.delete_cells_after(1)
    assert not (complaints := watch.complaints()), "\n".join(complaints)


def opened(notebook: NotebookPage, source: str) -> Locator:
    notebook.run_cell(source)
    canvas = notebook.page.locator(POINTS)
    eventually(lambda: canvas.get_attribute("data-drawn") is not None)
    return canvas


def settle(notebook: NotebookPage, canvas: Locator) -> None:
    """Wait until it rests and all points are drawn."""
    count = notebook.python("len(cloud.scene)")
    eventually(lambda: (canvas.get_attribute("data-moving"), canvas.get_attribute("data-points")) == ("false", count))


def camera(notebook: NotebookPage) -> list[float]:
    return [float(number) for number in json.loads(notebook.python("list(cloud.state.camera)"))]


def test_a_cloud_is_turned_zoomed_named_and_picked(notebook: NotebookPage) -> None:
    canvas = opened(notebook, TWO % False)
    settle(notebook, canvas)
    first = notebook.drawn(canvas)
    assert first.colours > 100
    notebook.portrait("lab-cloud", ".wb-cloud")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 4, box["y"] + box["height"] / 2
    notebook.page.mouse.move(x, y)
    notebook.page.mouse.down()
    notebook.page.mouse.move(x + 90, y + 20, steps=4)
    notebook.page.mouse.up()
    settle(notebook, canvas)
    eventually(lambda: camera(notebook)[0] != 0.6)
    assert notebook.picture(canvas) != first
    before = camera(notebook)
    canvas.press("ArrowLeft")
    notebook.page.mouse.wheel(0, -300)   # it has the focus
    eventually(lambda: camera(notebook)[0] != before[0] and camera(notebook)[2] < before[2])
    canvas.press("0")
    settle(notebook, canvas)
    assert notebook.picture(canvas) == first
    notebook.page.mouse.move(1, 1)   # which names no halo
    canvas.press("PageDown")   # so this is the largest; Enter chooses it
    reading = notebook.page.locator(".wb-cloud-reading")
    expect(reading).to_contain_text(notebook.python("f'halo 1: {groups.sizes.max():,} members'").strip("'"))
    canvas.press("Enter")
    eventually(lambda: notebook.python("bool(cloud.picked.get('label') == groups.largest(1)[0])") == "True")
    notebook.run_cell("cloud.change(camera=[0.6, 0.35, 0.5, *((cloud.scene.centres[0] - 16) / 32).tolist()])")
    notebook.delete_cell()
    settle(notebook, canvas)
    canvas.press("PageDown")   # another halo has the name, so that the pointer has to find this one
    canvas.hover(position=canvas.evaluate(MIDDLE))
    expect(reading).to_contain_text("halo 1:")
    canvas.click(position=canvas.evaluate(MIDDLE))
    eventually(lambda: notebook.python("(cloud.picked['number'], cloud.picked['times'])") == "(1, 2)")
    notebook.page.get_by_label("colour by").select_option("status")
    eventually(lambda: notebook.python("cloud.state.colouring") == "'status'")
    expect(notebook.page.locator(".wb-cloud .wb-legend")).to_contain_text("split:")


@pytest.mark.long
def test_rotation_stops_on_touch_and_is_left_out_for_those_who_want_less_motion(notebook: NotebookPage) -> None:
    canvas = opened(notebook, TWO % True)
    eventually(lambda: canvas.get_attribute("data-moving") == "true")
    canvas.click(position={"x": 5, "y": 5})
    eventually(lambda: notebook.python("cloud.state.rotating") == "False")
    settle(notebook, canvas)
    resting = notebook.picture(canvas)
    canvas.press("Space")
    eventually(lambda: notebook.picture(canvas) != resting)
    notebook.run_cell("cloud.close()")
    notebook.delete_cells_after(1)
    notebook.page.emulate_media(reduced_motion="reduce")
    try:
        opened(notebook, TWO % True)
        eventually(lambda: notebook.python("cloud.state.rotating") == "False")
    finally:
        notebook.page.emulate_media(reduced_motion="no-preference")


@pytest.mark.long
def test_a_lost_context_is_healed_and_a_closed_cloud_gives_its_memory_back(notebook: NotebookPage) -> None:
    canvas = opened(notebook, TWO % False)
    settle(notebook, canvas)
    first = notebook.picture(canvas)
    canvas.evaluate(LOSE)
    eventually(lambda: bool(canvas.evaluate("canvas => canvas.getContext('webgl2').isContextLost()")))
    notebook.page.wait_for_timeout(100)   # a context can be given back once its loss was told
    canvas.evaluate("() => lost.restoreContext()")
    eventually(lambda: notebook.picture(canvas) == first)
    canvas.evaluate("canvas => { globalThis.context = canvas.getContext('webgl2') }")
    assert not notebook.page.evaluate("() => context.isContextLost()")
    notebook.run_cell("cloud.close()")
    expect(canvas).to_have_count(0)
    eventually(lambda: bool(notebook.page.evaluate("() => context.isContextLost()")))


def test_without_webgl_a_sentence_and_a_still_picture_stand_there(notebook: NotebookPage) -> None:
    notebook.page.evaluate(NO_WEBGL)
    try:
        notebook.run_cell(TWO % False)
        expect(notebook.page.get_by_text("this browser has no WebGL 2")).to_be_visible()
        pictures = notebook.page.locator(".wb-cloud-still img")
        expect(pictures).to_have_count(2)
        eventually(lambda: pictures.first.evaluate("image => image.naturalWidth") > 0)
        notebook.portrait("lab-cloud-still", ".wb-cloud")
    finally:
        notebook.page.evaluate("() => withWebgl()")
