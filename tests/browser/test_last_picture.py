"""A panel that several cells show: each keeps its newest picture in the file, and shows it when the kernel is gone."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from browser.lab_server import LabServer
from browser.notebook_page import NotebookPage, eventually
from browser.watch import Watch

FIELD = "import workbench as wb\nfield = wb.synthetic.gaussian_field((24, 24, 24), seed=3)"
MOST_BYTES = 300_000


@pytest.mark.long
def test_each_cell_keeps_the_newest_picture(notebook: NotebookPage, watch: Watch, server: LabServer) -> None:
    watch.allow("widget model not found")   # which JupyterLab logs, and the picture replaces
    notebook.write("twice.ipynb", FIELD, "panel = wb.lab.bounds(field)\npanel", "panel")
    notebook.run_all()
    eventually(lambda: notebook.page.locator(".wb-panel").count() == 2)
    notebook.run_cell("panel.change(eb=0.25)\npanel.wait()")
    kept = notebook.page.locator(".wb-last")
    expect(kept).to_have_count(2)
    for number in range(2):
        expect(kept.nth(number)).to_contain_text("absolute 0.25", timeout=10_000)
    notebook.save()
    cells = json.loads((server.notebooks / "twice.ipynb").read_text())["cells"]
    outputs = [output.get("data", {}) for cell in cells[1:3] for output in cell["outputs"]]
    texts = ["".join(output["text/html"]) for output in outputs if "text/html" in output]
    assert len(texts) == 2
    assert texts[0] == texts[1]
    assert "absolute 0.25" in texts[0]
    assert len(texts[0]) < MOST_BYTES
    notebook.end_kernel()
    notebook.reload()
    for number in range(2):
        expect(kept.nth(number)).to_be_visible()
        images = kept.nth(number).locator("img")
        assert images.evaluate_all("images => images.every(image => image.complete && image.naturalWidth)")
    notebook.screenshot("kept-twice")
