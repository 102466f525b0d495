"""Particles or a field taken apart into plain arrays and a plain description: to be hashed, or seen by other processes.

Processes share the arrays through a file without a name. It is written once, mapped by all, and gone when the last of them
is, whatever ends them: there is nothing to clean up, and nothing that a kill could leave behind.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any

import numpy as np

from workbench.archive import document, provenance
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError

_ALIGNMENT = 64


def arrays_of(data: Particles | Field) -> dict[str, np.ndarray]:
    """The arrays by name, those that there are."""
    names = ("positions", "velocities", "ids") if isinstance(data, Particles) else ("values", "mask")
    return {name: values for name in names if (values := getattr(data, name)) is not None}


def description_of(data: Particles | Field) -> dict[str, Any]:
    """All but the arrays, as JSON can hold it."""
    if isinstance(data, Particles):
        own: dict[str, Any] = {"kind": "particles", "box": data.box}
    else:
        own = {"kind": "field", "spacing": data.spacing, "name": data.name}
    return document.plain({**own, "metadata": provenance.plain(data.metadata)}, "what describes the data")


def put_together(described: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Particles | Field:
    """The data of which these are the parts.

    >>> field = Field(np.zeros((2, 3)), spacing=0.5)
    >>> put_together(description_of(field), arrays_of(field))
    Field(2 x 3, float64)
    """
    own: dict[str, Any] = {name: value for name, value in {**described, **arrays}.items() if name != "kind"}
    return Particles(**own) if described["kind"] == "particles" else Field(**own)


def digest_of(data: Particles | Field) -> str:
    """A name for the content: equal data have the same, other data another."""
    found = blake2b(digest_size=32)
    found.update(document.to_bytes(description_of(data)))
    for name, values in arrays_of(data).items():
        found.update(f"{name} {values.dtype.str} {values.shape}".encode())
        found.update(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)
    return found.hexdigest()


@contextmanager
def shared(data: Particles | Field) -> Iterator[tuple[int, dict[str, Any]]]:
    """A file, to be inherited by its number, and the description of which `mapped` makes the data again."""
    layout: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryFile(prefix="lossbench-") as file:
        try:
            for name, values in arrays_of(data).items():
                offset = file.seek(-file.tell() % _ALIGNMENT, 1)
                file.write(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)
                layout[name] = {"dtype": values.dtype.str, "shape": values.shape, "offset": offset}
            file.flush()
        except OSError as error:
            raise WorkbenchError(
                f"the data must fit into {tempfile.gettempdir()}, where processes share them; {error}: point TMPDIR to "
                "another folder, or use workers=1"
            ) from None
        yield file.fileno(), {**description_of(data), "arrays": layout}


def mapped(file: int, described: Mapping[str, Any]) -> Particles | Field:
    """The data in a shared file. The arrays are views of it: no process has a copy of its own."""
    own = {name: value for name, value in described.items() if name != "arrays"}
    with open(file, "rb", closefd=False) as opened:
        arrays = {
            name: np.asarray(np.memmap(opened, part["dtype"], "r", part["offset"], tuple(part["shape"])))
            for name, part in described["arrays"].items()
        }
    return put_together(own, arrays)
