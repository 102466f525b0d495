"""ASDF files of any kind: the arrays of the tree are members, its mappings and lists groups, single values attributes.

Arrays stay in the file until they are encoded. The library keeps what it has decompressed as long as a file is open, so
one array at a time is read from an opening of its own.
"""

from __future__ import annotations

import datetime
import functools
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench.archive.collection.dataset import Dataset
from workbench.data.readers.abacus_files import require_plain_document
from workbench.data.readers.source import Source
from workbench.errors import WorkbenchError
from workbench.slabs import Slices

MAGIC = b"#ASDF"
MOST_DOCUMENT = 2**24             # bytes of the tree without its arrays
WRITER = ("asdf_library", "history")   # what the tree says of the program that wrote it

Keys = tuple[str | int, ...]

OPEN: dict[InTree, tuple[ExitStack, np.ndarray]] = {}   # the array that is read now: what closes its file, and its values
LOCK = threading.Lock()   # of that file


@dataclass(frozen=True, eq=False)
class InTree:
    """An array of a file, read where it is needed."""

    path: Path
    keys: Keys
    shape: tuple[int, ...]
    dtype: np.dtype
    is_masked: bool

    def __getitem__(self, place: Slices) -> np.ndarray:
        with LOCK:
            part = _open_array(self)[place]
            return np.ma.copy(part) if self.is_masked else np.array(part)


@contextmanager
def opened_asdf(path: Path) -> Iterator[Dataset]:
    """The dataset in a file."""
    require_plain_document(Source.at(path), MOST_DOCUMENT)
    members: dict[str, Any] = {}
    groups: dict[str, dict[str, Any]] = {"": {}}
    try:
        with _file(path) as file:
            tree = {key: entry for key, entry in file.tree.items() if key not in WRITER}
            _collect(path.absolute(), (), tree, members, groups)
    except WorkbenchError:
        raise
    except Exception as error:   # of the library, for damaged files of many kinds
        raise WorkbenchError(f"{path.name} must be an ASDF file; it cannot be read: {error}") from None
    if not members:
        raise WorkbenchError(f"{path.name} must hold arrays; its tree has none")
    try:
        yield Dataset(members, {name: {"attributes": attributes} for name, attributes in groups.items() if attributes})
    finally:
        with LOCK:
            _close()


def _collect(path: Path, keys: Keys, node: Any, members: dict[str, Any], groups: dict[str, dict[str, Any]]) -> None:
    """Put the arrays in a mapping or a list into the members, and its single values into the attributes of the group."""
    group = "/".join(map(str, keys))
    for key, entry in node.items() if isinstance(node, Mapping) else enumerate(node):
        at = (*keys, key)
        name = "/".join(map(str, at))
        if name in members:
            raise WorkbenchError(f"two arrays in {path.name} are named {name!r}: rename one of them")
        if _is_array(entry):
            members[name] = _member(path, at, entry)
        elif isinstance(entry, complex):   # which no attribute can be
            members[name] = np.array(entry)
        elif isinstance(entry, Mapping) or (isinstance(entry, list | tuple) and not all(map(_is_single, entry))):
            _collect(path, at, entry, members, groups)
        elif entry is not None:
            groups.setdefault(group, {})[str(key)] = _attribute(path, name, entry)


def _is_array(entry: Any) -> bool:
    return hasattr(entry, "dtype") and hasattr(entry, "shape") and not isinstance(entry, np.generic)


def _is_single(entry: Any) -> bool:
    return isinstance(entry, str | bool | int | float | datetime.date | np.generic)


def _attribute(path: Path, name: str, entry: Any) -> Any:
    """A single value, or a list of these."""
    if isinstance(entry, list | tuple):
        return [_attribute(path, name, one) for one in entry]
    if not _is_single(entry):
        raise WorkbenchError(
            f"{name!r} in {path.name} must be an array, text or a number; got {type(entry).__name__}: give wb.compress a "
            "mapping of the arrays, without it"
        )
    return entry.isoformat() if isinstance(entry, datetime.date) else entry


def _member(path: Path, keys: Keys, array: Any) -> Any:
    if not type(array).__module__.startswith("asdf."):   # a quantity or the like, which a further library has made
        return array
    dtype = np.dtype(array.dtype)
    if dtype.names is not None:   # a table
        return np.array(array[...])
    return InTree(path, keys, tuple(array.shape), dtype, array._mask is not None)


@contextmanager
def _file(path: Path) -> Iterator[Any]:
    """A file, open for reading; the library would leave one open that it cannot read."""
    import asdf

    how = {"lazy_load": True, "memmap": True, "ignore_missing_extensions": True, "ignore_unrecognized_tag": True}
    with path.open("rb") as stream, asdf.open(stream, **how) as file:
        yield file


def _open_array(wanted: InTree) -> np.ndarray:
    """The values of an array, in the one file that is open for it."""
    if wanted not in OPEN:
        _close()
        with ExitStack() as stack:
            file = stack.enter_context(_file(wanted.path))
            values = functools.reduce(lambda node, key: node[key], wanted.keys, file.tree)[...]
            OPEN[wanted] = stack.pop_all(), values
    return OPEN[wanted][1]


def _close() -> None:
    for wanted in list(OPEN):
        stack = OPEN.pop(wanted)[0]   # the values must be gone before
        stack.close()
