"""What the live page takes, and who writes one; `tests/browser/test_live_page.py` opens it."""

import json
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.cli import main
from workbench.data import Particles
from workbench.lab.live.examples import example_of


@pytest.fixture
def field() -> wb.Field:
    return wb.Field(wb.synthetic.gaussian_field((9, 11), 3.0, seed=2).values.astype(np.float32))


def test_what_a_live_page_cannot_take(field: wb.Field) -> None:
    with pytest.raises(wb.WorkbenchError, match="two or three axes"):
        example_of(wb.Field([1.0, 2.0]), "a line")
    with pytest.raises(wb.WorkbenchError, match="in three dimensions"):
        example_of(Particles([[0.5, 0.5]], 1.0), "flat")


def test_panels_and_the_shell_write_such_pages(
    tmp_path: Path, field: wb.Field, capsys: pytest.CaptureFixture[str]
) -> None:
    panel = wb.lab.bounds(field, eb=0.07)
    saved = panel.save_report(tmp_path / "live.html", live=True)
    panel.close()
    assert '"start": 0.07' in saved.read_text()
    particles = wb.synthetic.cosmic_web(n=8)
    clusters = wb.lab.clusters(particles, bound=0.011, min_members=7)
    clusters.wait()
    saved = clusters.save_report(tmp_path / "clusters.html", live=True)
    clusters.close()
    assert '"least": 7' in saved.read_text()
    assert '"start": 0.011' in saved.read_text()
    np.save(tmp_path / "field.npy", field.values)
    assert main(["page", str(tmp_path / "field.npy"), "-o", str(tmp_path / "shell.html"), "--json", "--quiet"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == {"page": str(tmp_path / "shell.html"), "bytes": (tmp_path / "shell.html").stat().st_size}
    assert '"shape": [9, 11]' in (tmp_path / "shell.html").read_text()


def test_panels_without_such_a_page_say_so(field: wb.Field) -> None:
    panel = wb.lab.limits(field)
    with pytest.raises(wb.WorkbenchError, match="the limits panel has no live page"):
        panel.save_report(live=True)
    panel.close()
