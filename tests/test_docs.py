"""The documentation builds without a warning, leaves nothing out, and asks nothing of other servers."""

import html
import importlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path

import pytest

import workbench as wb
from conftest import ROOT
from outside import a_browser, asked_elsewhere
from workbench.codecs.registry import codec_class
from workbench.lab.glossary import GLOSSARY
from workbench.lab.live import page as live_page

DOCS = ROOT / "docs"
DOCUMENTED = {   # whose public names have an entry, each
    "workbench.archive", "workbench.auditing", "workbench.bounds", "workbench.clusters", "workbench.clusters.descent",
    "workbench.codecs", "workbench.data", "workbench.data.synthetic", "workbench.lab", "workbench.metrics",
    "workbench.propagation", "workbench.propagation.language", "workbench.teaching",
}
POLICY = "default-src 'self' file: data: blob: 'unsafe-inline' 'unsafe-eval'"
LIVE = "page.html"   # computes in the browser
PLOT = """
import os
import holoviews as hv
hv.extension("bokeh", inline=True)
print("static:", os.environ["LOSSBENCH_STATIC"])
display({"text/html": "<table><tr>" + 200 * "<td>wide</td>" + "</tr></table>"}, raw=True)
hv.Curve([3, 1, 2])
"""

pytestmark = [pytest.mark.long, pytest.mark.slow]


def build(settings: Path, source: Path, out: Path, notebooks: str) -> subprocess.CompletedProcess[str]:
    """Build pages as `make docs` does; `notebooks` is "off" or "force"."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-c", str(settings), str(source), str(out)]
    environment = {**os.environ, "LOSSBENCH_NOTEBOOKS": notebooks, "IPYTHONDIR": str(out.parent / "ipython")}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, with notebooks as they are stored: whether these run is another test's question."""
    pytest.importorskip("sphinx", reason="needs the docs extra")
    checkout = tmp_path_factory.mktemp("checkout")
    shutil.copytree(DOCS, checkout / "docs", ignore=shutil.ignore_patterns("_build", "notebooks"))
    shutil.copytree(ROOT / "notebooks", checkout / "notebooks")
    for document in ROOT.glob("*.md"):
        shutil.copy(document, checkout)
    done = build(checkout / "docs", checkout / "docs", checkout / "html", notebooks="off")
    assert done.returncode == 0, done.stderr
    return checkout / "html"


def one_notebook(folder: Path, code: str) -> Path:
    """The source of pages that are one notebook with one cell."""
    import nbformat  # takes seconds: not for processes that only collect this file

    source = folder / "source"
    source.mkdir()
    cells = [nbformat.v4.new_markdown_cell("# A notebook"), nbformat.v4.new_code_cell(code)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), source / "index.ipynb")
    return source


class Page(HTMLParser):
    """The links of a page, what it loads, and its policy."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.policy = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        if tag == "a":
            self.links.add(found.get("href", ""))
        elif tag == "link" and found.get("rel") not in ("stylesheet", "icon"):
            return   # tells what is where, loads nothing
        self.loads |= {found[name] for name in ("src", "data", "href") if name in found and tag != "a"}
        if found.get("http-equiv") == "Content-Security-Policy":
            self.policy = found.get("content", "")


def text_of(page: Path) -> str:
    """What a reader sees, with typewriter quotes and in one line."""
    text = html.unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))
    return re.sub(r"\s+", " ", text.translate({0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"'}))


def wide_pages(pages: Iterable[Path]) -> dict[tuple[str, int], int]:
    """Pages that scroll sideways, with the width of the window, and the width that they need.

    The windows are of common widths, down to one in which there is navigation on one side only.
    """
    wide = {}
    with a_browser() as browser:
        shown = browser.new_page()
        for page in pages:
            shown.goto(page.as_uri())
            for width in (1024, 1180, 1366):
                shown.set_viewport_size({"width": width, "height": 768})
                needed = shown.evaluate("() => document.scrollingElement.scrollWidth")
                if needed > width:
                    wide[str(page), width] = needed
    return wide


def inventory(site: Path) -> set[str]:
    """The names of Python objects that have an entry."""
    from sphinx.util.inventory import InventoryFile

    found = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    return {name for kind in found.data if kind.startswith("py:") for name in found.data[kind]}


def test_every_page_is_reached_from_the_first(site: Path) -> None:
    written = [path.relative_to(DOCS) for path in DOCS.rglob("*.md")]
    notebooks = [path.relative_to(ROOT) for path in (ROOT / "notebooks").rglob("*.ipynb")]
    wanted = {str(path.with_suffix(".html")) for path in [*written, *notebooks]} - {"index.html"}
    assert {"compression.html", "notebooks/start.html", "reference/shell.html"} <= wanted
    reached = Page(site / "index.html").links
    assert wanted - reached == set()


def test_every_public_name_has_an_entry(site: Path) -> None:
    entries = inventory(site)
    names = {f"{module}.{name}" for module in DOCUMENTED for name in importlib.import_module(module).__all__}
    assert names - entries == {"workbench.data.synthetic.adversarial"}   # a module, for tests


def test_every_codec_has_an_entry_with_its_options(site: Path) -> None:
    text = text_of(site / "reference" / "codecs.html")
    for name in wb.codecs.status():
        codec = codec_class(name)
        assert f"{codec.__module__}.{codec.__name__}" in inventory(site)
        options = [f"{option}: {about['title']}" for option, about in codec.schema()["properties"].items()]
        assert [option for option in options if option not in text] == []


def test_the_page_of_the_panels_begins_with_the_calls_that_open_them(site: Path) -> None:
    page = (site / "reference" / "panels.html").read_text(encoding="utf-8")
    entries = re.findall(r'<dt class="sig sig-object py" id="workbench\.lab\.([\w.]+)"', page)
    assert entries[:3] == ["bounds", "clusters", "limits"]
    assert not {"Panel.rows", "BoundsPanel.draw"} & set(entries)


def test_every_word_of_the_panels_is_explained(site: Path) -> None:
    page = text_of(site / "glossary.html")
    told = [f"{term}{text[0].upper()}{text[1:]}." for term, text in GLOSSARY.items()]
    assert [one for one in told if one.replace(" ", "") not in page.replace(" ", "").replace("¶", "")] == []


def test_every_name_of_the_library_leads_to_its_entry(site: Path) -> None:
    text = (DOCS / "reference" / "index.md").read_text(encoding="utf-8")
    targets = dict(re.findall(r"`wb\.(\w+) <([\w.]+)>`", text))
    assert set(wb.__all__) - {"lab"} == set(targets) - {"lab"}
    assert set(targets.values()) - inventory(site) == set()


def test_halos_are_counted_in_the_same_words_everywhere() -> None:
    notebooks = [*(ROOT / "notebooks").rglob("*.ipynb"), *(ROOT / "app").rglob("*.ipynb")]
    texts = [ROOT / "README.md", *DOCS.rglob("*.md"), *notebooks]
    old = re.compile(r"missing merge|lost some|lost members and \{")
    assert [path.name for path in texts if old.search(path.read_text(encoding="utf-8"))] == []


def test_every_shell_command_is_described() -> None:
    text = (DOCS / "reference" / "shell.md").read_text(encoding="utf-8")
    ran = subprocess.run([sys.executable, "-m", "workbench.cli", "--help"], capture_output=True, text=True, timeout=60)
    commands = set(re.findall(r"^    (\w+)", ran.stdout, re.MULTILINE)) - {"COMMAND"}
    assert len(commands) >= 8
    assert commands == set(re.findall(r"^\| `workbench (\w+)", text, re.MULTILINE))


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html")}
    assert len(pages) > 20
    assert {load for page in pages.values() for load in page.loads if "//" in load} == set()
    assert {page.policy for path, page in pages.items() if path.name != LIVE} == {POLICY}
    assert pages[site / LIVE].policy == live_page.POLICY   # which forbids more


def test_no_page_scrolls_sideways(site: Path) -> None:
    assert wide_pages(site.rglob("*.html")) == {}


def test_a_browser_shows_a_plot_and_a_wide_table_and_asks_nobody_else(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="needs the docs extra")
    done = build(DOCS, one_notebook(tmp_path, PLOT), tmp_path / "html", notebooks="force")
    assert done.returncode == 0, done.stderr
    page = tmp_path / "html" / "index.html"
    assert "static: 1" in page.read_text(encoding="utf-8")
    assert asked_elsewhere(page.as_uri(), ".bk-Canvas, canvas") == []
    assert wide_pages([page]) == {}


def test_a_notebook_that_fails_is_noticed(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="needs the docs extra")
    done = build(DOCS, one_notebook(tmp_path, "1 / 0"), tmp_path / "html", notebooks="force")
    assert done.returncode != 0
    assert "ZeroDivisionError" in done.stderr
