"""The files of Abacus: ASDF, with blocks in pieces that are compressed by Blosc."""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.readers.libraries import library
from workbench.data.readers.source import Source, plain


@contextmanager
def opened(source: Source) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The columns and the header of a file."""
    asdf = library("asdf", "Abacus files")
    with source.read_by("asdf"), asdf.config_context() as config:
        config.add_extension(_blosc_extension())
        with asdf.open(source.path, ignore_missing_extensions=True, ignore_unrecognized_tag=True) as file:
            header = file.tree.get("header", {})
            yield file.tree.get("data"), plain(dict(header)) if hasattr(header, "keys") else {}


def column_of(path: Path, name: str) -> np.ndarray:
    """One column of a file."""
    with opened(Source.at(path)) as (data, _):
        return np.array(data[name])


@functools.cache
def _blosc_extension() -> Any:
    """The ASDF extension for the block compression `blsc`; created on use, because its base classes are optional."""
    extension: Any = library("asdf.extension", "Abacus files")
    Compressor, Extension = extension.Compressor, extension.Extension

    class Blosc(Compressor):   # type: ignore[misc, valid-type]
        label = b"blsc"

        def decompress(self, data: Iterable[Any], out: Any, **options: Any) -> int:
            return _decompress(b"".join(bytes(piece) for piece in data), out)

    class Abacus(Extension):   # type: ignore[misc, valid-type]
        extension_uri = "asdf://lossbench/extensions/abacus-blosc-1.0.0"
        compressors = (Blosc(),)

    return Abacus()


def _decompress(stream: bytes, out: Any) -> int:
    """A sequence of pieces, each preceded by its compressed size as four big-endian bytes."""
    blosc = library("blosc", "compressed Abacus files")
    target, at, done = memoryview(out).cast("B"), 0, 0
    while at < len(stream):
        (size,) = struct.unpack_from(">I", stream, at)
        piece = stream[at + 4 : at + 4 + size]
        expands_to, compressed, _ = blosc.get_cbuffer_sizes(piece)
        if compressed != len(piece) or done + expands_to > len(target):
            raise ValueError("a compressed block does not fit its stated size")
        target[done : done + expands_to] = blosc.decompress(piece)
        at, done = at + 4 + size, done + expands_to
    return done
