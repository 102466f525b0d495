"""The lines of the page about propagation run as they stand there."""

import re
from typing import Any

import pytest

from conftest import ROOT


@pytest.mark.long
def test_the_lines_of_the_page_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/propagation.md").read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "propagation.md", "exec"), names)
    assert len(blocks) == 4
    assert names["found"].complete
    assert names["budget"].damage <= 1
    assert names["chips"].certain > 0.005
    assert names["table"]["bounded"].bits < names["table"]["half"].bits
    assert names["several"].promise.startswith("holds on 80% of fields of this kind, with 90% confidence, from n = 11")
