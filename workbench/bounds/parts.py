"""Particles or a field as plain arrays and a JSON description, for hashing and for other processes.

Processes share the arrays through an unnamed temporary file. It is written once, mapped by all processes, and deleted by
the system when the last of them ends, even if it is killed. So nothing needs cleaning up.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any

import numpy as np

from workbench.archive import document, provenance
from workbench.archive.content.registry import content_of
from workbench.data import Field, Particles
from workbench.data.particles import named
from workbench.errors import WorkbenchError
from workbench.run.chunked_field import ChunkedField

_ALIGNMENT = 64


def arrays_of(data: Particles | Field) -> dict[str, np.ndarray]:
    """The arrays that exist, by name."""
    return content_of(data).arrays(data)


def description_of(data: Particles | Field | ChunkedField) -> dict[str, Any]:
    """Everything except the arrays, ready for JSON."""
    if isinstance(data, Particles):
        own: dict[str, Any] = {"kind": "particles", "box": data.box}
        if isinstance(data.masses, float):
            own["masses"] = data.masses
    else:
        own = {"kind": "field", "spacing": data.spacing, "name": data.name}
    return document.plain({**own, "metadata": provenance.plain(data.metadata)}, "the description of the data")


def put_together(described: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Particles | Field:
    """The data made from these parts.

    >>> field = Field(np.zeros((2, 3)), spacing=0.5)
    >>> put_together(description_of(field), arrays_of(field))
    Field(2 x 3, float64)
    """
    about: dict[str, Any] = {name: value for name, value in described.items() if name != "kind"}
    if described["kind"] != "particles":
        own: dict[str, Any] = {**about, **arrays}
        return Field(**own)
    beside = {name: array for name, array in arrays.items() if name != "positions"}
    return Particles(arrays["positions"], **about, **named(beside))


def digest_of(data: Particles | Field) -> str:
    """A digest of the content: equal data have equal digests."""
    found = blake2b(digest_size=32)
    found.update(document.to_bytes(description_of(data)))
    for name, values in arrays_of(data).items():
        found.update(f"{name} {values.dtype.str} {values.shape}".encode())
        found.update(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)
    return found.hexdigest()


@contextmanager
def shared(data: Particles | Field) -> Iterator[tuple[int, dict[str, Any]]]:
    """An inheritable file descriptor, and the description from which `mapped` restores the data."""
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
    """The data in a shared file. The arrays are views of the mapped file, without copies."""
    own = {name: value for name, value in described.items() if name != "arrays"}
    with open(file, "rb", closefd=False) as opened:
        arrays = {
            name: np.asarray(np.memmap(opened, part["dtype"], "r", part["offset"], tuple(part["shape"])))
            for name, part in described["arrays"].items()
        }
    return put_together(own, arrays)
