"""The code of this package as one hash: results may be shared, or compared, only between processes with the same."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

from workbench import host_library

PACKAGE = Path(__file__).resolve().parents[1]
WITHOUT_EFFECT = ("cli", "lab")   # parts of this package that no figure depends on


@functools.cache
def own_code() -> str:
    """The hash of this package's sources, as they are when it is first asked for.

    >>> len(own_code())
    32
    """
    files = [file for file in sorted(PACKAGE.rglob("*.py")) if file.relative_to(PACKAGE).parts[0] not in WITHOUT_EFFECT]
    return hash_of([hash_of_files(files), host_library.source_hash(host_library.kernel_folder())])


def hash_of_files(files: Iterable[Path]) -> str:
    """The hash of the names and contents of files."""
    return hash_of(f"{file.name} {blake2b(file.read_bytes()).hexdigest()}" for file in files)


def hash_of(texts: Iterable[str]) -> str:
    """The hash of several texts.

    >>> hash_of(["a", "b"]) == hash_of(["ab"])
    False
    """
    return blake2b("\0".join(texts).encode(), digest_size=16).hexdigest()
