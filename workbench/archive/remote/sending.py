"""Sending an archive to an object store: one zip file, which the store shows when it is complete, or not at all."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from workbench.archive.remote.object_store import ObjectFile, ObjectStore
from workbench.archive.remote.stores import WEB, RemoteZip
from workbench.archive.root import intact_root
from workbench.archive.writing import write
from workbench.data.readers.address import is_address, name_of, plain_address, scheme_of
from workbench.errors import WorkbenchError


def upload(
    address: str, parts: Iterable[tuple[str, bytes]], overwrite: bool, storage_options: Mapping[str, Any] | None
) -> str:
    """Write the parts of an archive to a zip file here, and send it; returns its address."""
    place = free_place(address, overwrite, storage_options)
    with tempfile.TemporaryDirectory(prefix="lossbench-") as folder:
        file = write(Path(folder) / "archive.zip", parts)
        place.put(file)
        sent, size = place.size(), file.stat().st_size
    if sent != size:
        raise WorkbenchError(f"{plain_address(address)} must have {size:,} bytes; its store says {sent}: send it again")
    return address


def free_place(address: Any, overwrite: bool, storage_options: Mapping[str, Any] | None = None) -> ObjectStore:
    """A place in an object store where an archive can be written; only an archive is replaced, and only on request."""
    shown = plain_address(address) if is_address(address) else repr(address)
    if not is_address(address) or scheme_of(address) in WEB:
        raise WorkbenchError(f"archives are sent to object stores, such as s3://bucket/x.zip; got {shown}")
    if not name_of(address).endswith(".zip"):
        raise WorkbenchError(f"an archive in an object store must be one file that ends in .zip; got {shown}")
    place = ObjectStore(address, dict(storage_options or {}))
    if place.size() is None:
        return place
    if not overwrite:
        raise WorkbenchError(f"{shown} exists: choose another name, or pass overwrite=True")
    try:
        intact_root(RemoteZip(ObjectFile(place)))
    except WorkbenchError:
        raise WorkbenchError(
            f"only an archive written by lossbench is overwritten; {shown} is not: move it away, or choose another name"
        ) from None
    return place
