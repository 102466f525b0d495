"""What the tests of the readers share: a file made of bytes, and the two ways in which damage is tried."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from workbench import Field, Particles, WorkbenchError
from workbench.data.readers import open_file


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    """Put bytes into a file."""

    def write(content: bytes | str, name: str = "file.dat") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for the many short-lived files of a property-based test."""
    return tmp_path_factory.mktemp("damaged")


@pytest.fixture(scope="session")
def refused_when_cut(scratch: Path) -> Callable[..., None]:
    """A file cut at a place must be refused, in our words."""

    def check(content: bytes, cut: int, **options: Any) -> None:
        path = scratch / "cut"
        path.write_bytes(content[:cut])
        with pytest.raises(WorkbenchError):
            open_file(path, **options)

    return check


@pytest.fixture(scope="session")
def survives(scratch: Path) -> Callable[..., None]:
    """A file with changed bytes must be refused in our words, or be read as something."""

    def check(content: bytes, changes: dict[int, int], **options: Any) -> None:
        damaged = bytearray(content)
        for place, value in changes.items():
            damaged[place % len(damaged)] = value
        path = scratch / "changed"
        path.write_bytes(damaged)
        with suppress(WorkbenchError):
            assert isinstance(open_file(path, **options), Particles | Field)

    return check
