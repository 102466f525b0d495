"""The small model, read once for all tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

import small_language_model as small
import workbench as wb


@pytest.fixture(scope="session")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small.write_model(tmp_path_factory.mktemp("model") / "small.gguf")


@pytest.fixture(scope="session")
def lm(model_file: Path) -> wb.propagation.LanguageModel:
    return wb.propagation.language_model(model_file)
