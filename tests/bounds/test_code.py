"""A cache knows the code that its figures come from: of this package, of a plug-in, of a class in a notebook."""

import importlib
import importlib.metadata
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import workbench as wb
from workbench.bounds import cache
from workbench.bounds.run import Question
from workbench.codecs import registry
from workbench.run import code as package_code

PLUGIN = """
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from workbench.codecs import Codec

@dataclass(frozen=True)
class Rounding(Codec):
    id: ClassVar[str] = "rounding"
    title: ClassVar[str] = "Rounding"

    def _encode(self, values, tolerance):
        return np.round(values, DIGITS).tobytes()

    def _decode(self, data, shape, dtype):
        return np.frombuffer(data, dtype).reshape(shape)
"""


def key(codec: wb.codecs.Codec) -> str:
    return cache.key_of("data", Question(codec, wb.Absolute(0.1)))


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Writes a codec without `module` into a package of its own, and imports it anew."""
    monkeypatch.syspath_prepend(tmp_path)

    def written(digits: int, helper: str = ""):
        folder = tmp_path / "rounding_plugin"
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").write_text("")
        (folder / "helper.py").write_text(helper)
        (folder / "codec.py").write_text(PLUGIN.replace("DIGITS", str(digits)))
        for name in [name for name in sys.modules if name.startswith("rounding_plugin")]:
            del sys.modules[name]
        importlib.invalidate_caches()
        return importlib.import_module("rounding_plugin.codec").Rounding()

    yield written
    for name in [name for name in sys.modules if name.startswith("rounding_plugin")]:
        del sys.modules[name]


def test_a_plugin_without_a_version_is_known_by_its_content(plugin) -> None:
    first = key(plugin(3))
    assert key(plugin(3)) == first
    assert key(plugin(4)) != first
    assert key(plugin(3, helper="TABLE = 1")) not in (first, key(plugin(3, helper="TABLE = 2")))


def test_a_class_that_a_notebook_defines_anew_is_another_one() -> None:
    def defined(digits: int) -> wb.codecs.Codec:
        place = {"__name__": "a_notebook"}
        exec(compile(PLUGIN.replace("DIGITS", str(digits)), "<cell>", "exec", dont_inherit=True), place)
        return place["Rounding"]()

    sys.modules["a_notebook"] = SimpleNamespace()   # a notebook's module has no file
    try:
        assert key(defined(3)) == key(defined(3))
        assert key(defined(3)) != key(defined(4))
    finally:
        del sys.modules["a_notebook"]


@pytest.mark.parametrize("changed", ["archive/chunk.py", "errors.py", "kernels"])
def test_an_editable_install_that_changed_is_another_one(
    changed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = key(wb.codecs.get("pcodec"))
    for name in ("archive", "cli"):
        (tmp_path / name).mkdir()
    for name in ("archive/chunk.py", "errors.py", "cli/info.py"):
        (tmp_path / name).write_text("one")
    monkeypatch.setattr(package_code, "PACKAGE", tmp_path)
    monkeypatch.setattr(package_code.host_library, "source_hash", lambda folder: kernels)
    kernels, seen = "old", []
    for content in ("one", "two"):
        if changed == "kernels":
            kernels = content
        else:
            (tmp_path / changed).write_text(content)
        (tmp_path / "cli" / "info.py").write_text("of no effect")
        package_code.own_code.cache_clear()
        seen.append(key(wb.codecs.get("pcodec")))
    package_code.own_code.cache_clear()
    assert len({before, *seen}) == 3
    monkeypatch.undo()
    package_code.own_code.cache_clear()
    assert key(wb.codecs.get("pcodec")) == before


def test_a_folder_gives_no_stale_rows(plugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    point = importlib.metadata.EntryPoint("rounding", "rounding_plugin.codec:Rounding", registry.GROUP)
    monkeypatch.setattr(registry, "_entry_points", lambda: {"rounding": point})
    field = wb.Field(np.linspace(0, 1, 2000, dtype=np.float32).reshape(40, 50))
    for digits, cached in ((3, False), (3, True), (1, False)):
        run = wb.sweep(field, plugin(digits), [wb.Absolute(0.1)], cache=tmp_path / "runs")[0]
        assert run.cached == cached
