"""The panel of `docs/new-panel.md`: it works as it stands there, and is as short as promised."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb

PAGE = Path(__file__).parents[2] / "docs" / "new-panel.md"
(SOURCE,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def panel(tmp_path: Path) -> Any:
    script = tmp_path / "page.py"
    script.write_text(SOURCE, encoding="utf-8")
    names = runpy.run_path(str(script))
    yield names["panel"]
    names["panel"].close()


def test_it_is_short() -> None:
    assert len(SOURCE.splitlines()) < 150


def test_it_needs_the_kit_alone() -> None:
    assert set(re.findall(r"^(?:from|import) (workbench\S*)", SOURCE, re.MULTILINE)) == {"workbench", "workbench.lab.kit"}


def test_it_shows_what_it_computes(panel: Any) -> None:
    errors = []
    for bits in (2, 8, 16):
        assert panel.change(bits=bits)
        rounded = panel.result["rounded"]
        errors.append(np.abs(rounded.values - panel.field.values).max())
        assert panel.shown.facts[0].value == f"{rounded.archive.ratio:.1f}"
    assert errors[0] > errors[1] > errors[2] > 0
    assert panel.widget is panel.widget


def test_its_code_gives_the_same_archive(panel: Any) -> None:
    names = {"wb": wb, "field": panel.field}
    exec(panel.code(), names)
    np.testing.assert_array_equal(names["archive"].decompress().values, panel.result["rounded"].values)


def test_it_refuses_nonsense(panel: Any) -> None:
    assert not panel.request(bits=99)
    panel.wait()
    assert panel.status.error == "bits must be from 0 to 23; got 99"
