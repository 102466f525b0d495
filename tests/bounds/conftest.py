"""Data small enough to sweep often, an empty cache for each test, and codecs of another package that misbehave."""

import contextlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.bounds import cache
from workbench.codecs import registry

# A package as pip installs it: other processes find it on their own.
MISBEHAVING = '''
import os, sys, time
from dataclasses import dataclass
from typing import ClassVar
from workbench.codecs import Codec

@dataclass(frozen=True)
class Base(Codec):
    def _encode(self, values, tolerance):
        return values.tobytes()

    def _decode(self, data, shape, dtype):
        import numpy
        return numpy.frombuffer(data, dtype).reshape(shape).copy()

@dataclass(frozen=True)
class Stalls(Base):
    id: ClassVar[str] = "stalls"
    title: ClassVar[str] = "never returns"

    def _encode(self, values, tolerance):
        time.sleep(3600)

@dataclass(frozen=True)
class Dies(Base):
    id: ClassVar[str] = "dies"
    title: ClassVar[str] = "killed, as by a system that is out of memory"

    def _encode(self, values, tolerance):
        os.kill(os.getpid(), 9)

@dataclass(frozen=True)
class Aborts(Base):
    id: ClassVar[str] = "aborts"
    title: ClassVar[str] = "complains, and exits"

    def _encode(self, values, tolerance):
        os.write(2, b"starting\\nheap is <corrupted>\\n\\n")
        os._exit(3)

@dataclass(frozen=True)
class Prints(Base):
    id: ClassVar[str] = "prints"
    title: ClassVar[str] = "prints, as C libraries do"

    def _encode(self, values, tolerance):
        os.write(1, b'{"not": "an answer"}\\n')
        print("nor this")
        sys.stdout.flush()
        return super()._encode(values, tolerance)
'''
NAMES = ("Stalls", "Dies", "Aborts", "Prints")


@pytest.fixture(autouse=True)
def empty_cache() -> None:
    cache._MEMORY.clear()


@pytest.fixture
def misbehaving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Codecs "stalls", "dies", "aborts" and "prints"; returns the folder of the package."""
    package = tmp_path / "installed"
    described = package / "misbehaving-1.0.dist-info"
    described.mkdir(parents=True)
    (package / "misbehaving.py").write_text(MISBEHAVING)
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: misbehaving\nVersion: 1.0\n")
    points = "\n".join(f"{name.lower()} = misbehaving:{name}" for name in NAMES)
    (described / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{points}\n")
    monkeypatch.syspath_prepend(package)
    registry._entry_points.cache_clear()
    yield package
    registry._entry_points.cache_clear()
    sys.modules.pop("misbehaving", None)


@pytest.fixture
def leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """After the test no process of this one is left, dead or alive, and no file where temporary files go."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    before = children()
    yield
    assert children() <= before
    assert list(scratch.iterdir()) == []


def children() -> set[str]:
    """The processes that any thread of this one has started."""
    found: set[str] = set()
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):   # a thread that ends meanwhile has started none
            found.update((thread / "children").read_text().split())
    return found


@pytest.fixture(scope="session")
def waves() -> wb.Field:
    return wb.synthetic.gaussian_field((40, 48), seed=3)


@pytest.fixture(scope="session")
def coast(waves: wb.Field) -> wb.Field:
    """A field with everything that a field can have."""
    values = waves.values.copy()
    values[3, 5], values[7, 7] = np.nan, -np.inf
    mask = np.zeros(values.shape, bool)
    mask[:, :6] = True
    return wb.Field(values, (0.5, 0.25), "height <m>", mask, {"units": "m", "levels": np.arange(3)})


@pytest.fixture(scope="session")
def snapshot() -> wb.Particles:
    """Particles with velocities and ids."""
    return wb.synthetic.cosmic_web(n=12, seed=2)
