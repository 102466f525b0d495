"""The page about protection: its lines run."""

import re
from pathlib import Path
from typing import Any

import numpy as np

import workbench as wb

PAGE = Path(__file__).resolve().parents[3] / "docs" / "protection.md"


def test_the_lines_of_the_page_run() -> None:
    random = np.random.default_rng(0)
    names: dict[str, Any] = {
        "wb": wb, "points": random.normal(size=(500, 3)), "a": random.normal(size=(20, 30)),
        "b": random.normal(size=(30, 10)), "my_product": np.matmul, "field": random.normal(size=(20, 20)),
        "density": np.exp(random.normal(size=(8, 8, 8))), "stencil": np.ones((3, 3)) / 9,
        "clean_fields": random.normal(size=(5, 20, 20)),
        "power_spectrum": lambda x: abs(np.fft.rfftn(x)) ** 2, "stages": {"density": np.abs, "mean": np.mean},
    }
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 4
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
        if block == blocks[0]:
            assert names["found"].integrity.corrected == 0
    assert names["protected"].checks
    assert names["findings"].checks == 400
