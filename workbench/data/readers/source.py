"""The file or folder being opened: its first bytes for recognition, checked reads for parsing.

Every read of our own parsers goes through `Source.array` or `Source.bytes`. They compare the requested range with the size
of the file before allocating, so that a truncated file, or a header with an absurd count, causes an error and never an
endless loop or exhausted memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.readers.address import is_address, name_of
from workbench.data.readers.limits import DEFAULT, ReadLimits
from workbench.errors import WorkbenchError

HEAD_BYTES = 4096


@dataclass(frozen=True)
class Source:
    """A path that exists, with its size and its first bytes (none for a folder), and how far it is trusted.

    Of an address on another machine nothing is read here: the format that takes addresses asks for what it needs.
    """

    path: Path
    size: int
    head: bytes
    limits: ReadLimits = DEFAULT
    address: str | None = None

    @classmethod
    def at(cls, path: str | os.PathLike[str], limits: ReadLimits = DEFAULT) -> Source:
        """The source at a path; missing, unreadable or empty ones are refused.

        >>> Source.at("no/such/file")
        Traceback (most recent call last):
        workbench.errors.WorkbenchError: there is no file or folder no/such/file: check the path
        """
        if is_address(path):
            return cls(Path(name_of(path)), 0, b"", limits, path)
        try:
            place = Path(path).expanduser()
            if place.is_dir():
                return cls(place, 0, b"", limits)
            if place.exists() and not place.is_file():
                raise WorkbenchError(f"{path} must be a file or folder; it is a pipe or a device: copy its content first")
            with place.open("rb") as file:
                head = file.read(HEAD_BYTES)
            size = place.stat().st_size
        except FileNotFoundError:
            raise WorkbenchError(f"there is no file or folder {path}: check the path") from None
        except WorkbenchError:
            raise
        except (OSError, TypeError, ValueError, RuntimeError) as error:
            raise WorkbenchError(f"cannot open {path!r}: {error}") from None
        if size == 0:
            raise WorkbenchError(f"{place.name} is empty (0 bytes): check that it was written, or copied, completely")
        return cls(place, size, head, limits)

    @property
    def name(self) -> str:
        """The last part of the path, for messages."""
        return self.path.name

    @property
    def place(self) -> Path | str:
        """The path, or the address."""
        return self.address or self.path

    @property
    def is_folder(self) -> bool:
        """Whether this is a folder, such as a Zarr store."""
        return self.size == 0 and self.address is None

    def starts_with(self, *beginnings: bytes) -> bool:
        """Whether the file begins with one of these."""
        return self.head.startswith(beginnings)

    def bytes(self, at: int, count: int, what: str) -> bytes:
        """`count` bytes from byte `at`; a truncated file is an error that names what is missing."""
        self._require_there(at, count, what)
        return self._read(at, count, np.dtype(np.uint8), what).tobytes()

    def array(self, at: int, count: int, dtype: np.dtype, what: str) -> np.ndarray:
        """`count` items of a type from byte `at`, within the limits; a truncated file is an error, as for `bytes`."""
        self._require_there(at, count * dtype.itemsize, what)
        self.require_room(what, count * dtype.itemsize)
        return self._read(at, count, dtype, what)

    def _require_there(self, at: int, wanted: int, what: str) -> None:
        if at < 0 or wanted < 0 or at + wanted > self.size:
            raise self.damaged(f"expected {wanted:,} bytes of {what} from byte {at:,}; the file has {self.size:,} bytes")

    def _read(self, at: int, count: int, dtype: np.dtype, what: str) -> np.ndarray:
        with self.path.open("rb") as file:
            file.seek(at)
            values = np.fromfile(file, dtype, count)
        if len(values) != count:
            raise self.damaged(f"expected {count:,} items of {what}; got {len(values):,}")
        return values

    def require_room(self, what: str, nbytes: int) -> None:
        """Refuse an array that takes implausibly much memory for a file of this size, or more than the caller allows."""
        self.limits.require_room(nbytes, self.size, f"{what} in {self.name}")

    def damaged(self, reason: str) -> WorkbenchError:
        """The error for a file whose header and content disagree."""
        return WorkbenchError(f"{self.name} is truncated or damaged: {reason}. Copy or download it again")

    @contextmanager
    def read_by(self, library: str) -> Iterator[None]:
        """Turn any exception of a library about this file into one kind of error.

        Libraries fail on damaged files in too many ways to list, from KeyError to MemoryError.
        """
        try:
            yield
        except WorkbenchError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise WorkbenchError(f"{library} cannot read {self.name} ({reason}): it may be truncated or damaged") from error


def plain(value: Any) -> Any:
    """A header entry in plain Python types, so that metadata print, compare and convert to JSON.

    >>> plain({"Redshift": np.array([0.5]), "Code": np.bytes_(b"SWIFT")})
    {'Redshift': 0.5, 'Code': 'SWIFT'}
    """
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist()[0] if value.shape == (1,) else value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace").rstrip("\0 ")
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)
