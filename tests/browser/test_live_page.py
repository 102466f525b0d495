"""The page that computes by itself, opened from a disk: what it shows is what the library computes, and it asks nobody."""

import io
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

import workbench as wb
from browser.accessibility import serious_findings
from workbench.clusters.matching import MERGED, SPLIT, Halos, match_groups
from workbench.codecs import Tolerance
from workbench.data import Particles
from workbench.lab.live.examples import ABOUT, TITLE, field_example, particles_example
from workbench.lab.live.page import page

LEAST = 5
ANSWER = ".wb-live-answer"


@pytest.fixture(scope="module")
def snapshot() -> Particles:
    return wb.synthetic.cosmic_web(n=20, seed=3)


@pytest.fixture(scope="module")
def field() -> wb.Field:
    return wb.Field(wb.synthetic.gaussian_field((90, 110), 3.0, seed=2).values.astype(np.float32))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory, snapshot: Particles, field: wb.Field) -> Path:
    examples = [
        particles_example(snapshot, "Particles", "a universe", least=LEAST, kept=(0.1, 0.3)),
        field_example(field, "A field", "waves"),
    ]
    made = tmp_path_factory.mktemp("live") / "page.html"
    made.write_text(page(examples, TITLE, ABOUT))
    return made


@pytest.fixture
def live(browser: Browser, file: Path) -> Iterator[Page]:
    """The page; an error in it, and a request for anything but the file, fail the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened, wrong = context.new_page(), []
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
    inside = "data:", file.as_uri()
    opened.on("request", lambda asked: None if asked.url.startswith(inside) else wrong.append(asked.url))
    opened.goto(file.as_uri())
    expect(opened.locator("#live")).to_have_attribute("data-ready", "true")
    yield opened
    context.close()
    assert wrong == []


def typed(live: Page, label: str, bound: float) -> None:
    live.get_by_label(f"{label}, typed").fill(repr(bound))
    live.get_by_label(f"{label}, typed").press("Enter")


def test_broken_halos_are_those_of_the_library(live: Page, snapshot: Particles) -> None:
    bound = 0.03
    typed(live, "error bound of each coordinate", bound)
    codec = wb.codecs.get("lattice", coder="context").prepared(Particles(snapshot.positions, snapshot.box))
    data = codec.encode(snapshot.positions, Tolerance(absolute=bound))
    found = np.empty_like(snapshot.positions)
    found[codec.permutation(snapshot.positions, data)] = codec.decode(data, found.shape, found.dtype)
    groups = wb.friends_of_friends(snapshot)
    after = wb.friends_of_friends(Particles(found, snapshot.box))
    match = match_groups(Halos.of(groups, LEAST), groups.labels, after, LEAST)
    split, merged = (int((match.status == kind).sum()) for kind in (SPLIT, MERGED))
    assert split
    assert merged
    text = (
        f"{split + merged} of {len(match)} halos are broken: {split} split, {merged} merged; "
        f"{int(match.lost.sum())} are lost"
    )
    section = live.get_by_role("region", name="Particles")
    expect(section.locator(ANSWER)).to_contain_text(text)
    bits = float(re.search(r"([\d.]+) bits a particle", section.locator(ANSWER).inner_text())[1])   # type: ignore[index]
    assert bits == pytest.approx(8 * len(data) / len(snapshot), rel=0.02)


def test_clusters_are_kept_at_the_bounds_of_the_page(live: Page) -> None:
    live.get_by_label("keep clusters").check()
    status = live.get_by_role("region", name="Particles").locator(ANSWER)
    expect(status).to_contain_text(re.compile(r"All \d+ halos are kept, and every smaller group, particle for particle"))
    slider = live.get_by_label("error bound of each coordinate", exact=True)
    before = status.inner_text()
    slider.press("ArrowRight")
    expect(status).not_to_have_text(before)
    expect(status).to_contain_text("halos are kept")
    assert live.get_by_label("error bound of each coordinate, typed").is_disabled()


def test_the_size_and_errors_of_a_field(live: Page, field: wb.Field) -> None:
    bound = 0.05
    typed(live, "error bound of each value", bound)
    codec = wb.codecs.get("prequantised")
    data = codec.encode(field.values, Tolerance(absolute=bound))
    error = codec.decode(data, field.values.shape, field.values.dtype) - field.values.astype(float)
    said = live.get_by_role("region", name="A field").locator(ANSWER)
    expect(said).to_contain_text(f"a typical one (root mean square) {np.sqrt((error**2).mean()):.4g}")
    bits = float(re.search(r"([\d.]+) bits a value", said.inner_text())[1])   # type: ignore[index]
    assert bits == pytest.approx(8 * len(data) / field.values.size, rel=0.02)
    typed(live, "error bound of each value", -1)
    assert live.get_by_label("error bound of each value, typed").get_attribute("aria-invalid") == "true"


def test_a_file_of_ones_own(live: Page, snapshot: Particles) -> None:
    def give(name: str, array: np.ndarray) -> None:
        stream = io.BytesIO()
        np.save(stream, array)
        live.get_by_label("an .npy file").set_input_files({"name": name, "mimeType": "", "buffer": stream.getvalue()})

    alert = live.get_by_role("region", name="your own file").get_by_role("alert")
    give("numbers.npy", np.arange(9))
    expect(alert).to_contain_text("numbers.npy: this page takes float32 and float64; the array is i8")
    give("positions.npy", snapshot.positions.astype(float))
    expect(live.get_by_role("region", name="positions.npy").locator(ANSWER)).to_contain_text("halos are broken")
    expect(alert).to_be_empty()
    box = live.get_by_label("length of the periodic box, of positions (empty: open)")
    box.fill("3")
    box.press("Enter")
    expect(alert).to_contain_text("coordinates must be from 0 to below its length, 3")
    give("cube.npy", np.random.default_rng(0).random((6, 7, 8), np.float32))
    expect(live.get_by_role("region", name="cube.npy")).to_contain_text("Slice 3 of 6 along the first axis is shown")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_there_are_no_barriers(live: Page, theme: str) -> None:
    live.emulate_media(color_scheme=theme)   # type: ignore[arg-type]
    expect(live.locator("body")).to_have_attribute("data-jp-theme-light", str(theme == "light").lower())
    assert serious_findings(live, "main") == []


def test_the_policy_of_the_page_forbids_requests(browser: Browser, file: Path) -> None:
    with browser.new_context() as context:
        opened = context.new_page()
        opened.goto(file.as_uri())
        forbidden = opened.evaluate("""async () => {
            const found = [];
            document.addEventListener("securitypolicyviolation", (event) => found.push(event.effectiveDirective));
            const there = "http://127.0.0.1:9/";
            await Promise.allSettled([fetch(there), import(`${there}a.js`)]);
            await new Promise((end) => Object.assign(new Image(), { onerror: end, src: `${there}a.png` }));
            return found.sort();
        }""")
        assert forbidden == ["connect-src", "img-src", "script-src-elem"]
