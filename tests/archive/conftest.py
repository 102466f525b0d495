"""Small archives whose chunks hold raw values, and a codec that reads them: enough to try the container."""

import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from workbench.archive.frame import pack, unpack
from workbench.archive.layout import ArrayLayout
from workbench.archive.root import documents_of


class Parts:
    """What makes archives; a fixture, because folders of tests share nothing by import."""

    @staticmethod
    def layout(name: str, values: np.ndarray, chunk_shape: tuple[int, ...], **attributes: Any) -> ArrayLayout:
        return ArrayLayout(name, values.shape, chunk_shape, values.dtype, {"codec": "raw"}, attributes)

    @staticmethod
    def entries(layouts: list[tuple[ArrayLayout, np.ndarray]], attributes: Any = None) -> Iterator[tuple[str, bytes]]:
        yield from documents_of(attributes or {"kind": "test"}, [layout for layout, _ in layouts]).items()
        for layout, values in layouts:
            for index in layout.chunk_indices():
                yield layout.chunk_key(index), Parts.chunk(values[layout.chunk_slices(index)])

    @staticmethod
    def chunk(values: np.ndarray) -> bytes:
        return pack(values.shape, {"code": np.ascontiguousarray(values).tobytes()})

    @staticmethod
    def small() -> tuple[dict[str, bytes], ArrayLayout, np.ndarray]:
        """One array of (5, 7) values in chunks of (2, 4)."""
        values = np.arange(35, dtype=np.float32).reshape(5, 7) + 1
        layout = Parts.layout("values", values, (2, 4), unit="kg")
        return dict(Parts.entries([(layout, values)])), layout, values


@pytest.fixture(scope="session")
def parts() -> type[Parts]:
    return Parts


@pytest.fixture
def raw_chunks(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A stand-in for the module that decodes chunks, for chunks of raw values."""

    def decode_chunk(data: bytes, configuration: Mapping[str, Any], dtype: np.dtype, where: str) -> np.ndarray:
        assert configuration == {"codec": "raw"}
        frame = unpack(data, where)
        return np.frombuffer(frame.section("code"), dtype).reshape(frame.shape)

    module = ModuleType("workbench.archive.chunk")
    module.decode_chunk = decode_chunk
    monkeypatch.setitem(sys.modules, "workbench.archive.chunk", module)
    return module
