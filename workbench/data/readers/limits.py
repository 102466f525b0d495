"""How far a file is trusted: how much memory its arrays may ask for, and whether it may name other files to be read.

A file of a kilobyte can describe an array of any size whose chunks were never written, and can say that its numbers lie in
any other file of this machine. Sizes are compared with the bytes that are stored, and data outside of the file's own folder
are left alone, unless the caller allows more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

from workbench.arguments import whole_number
from workbench.errors import WorkbenchError

FREE_BYTES = 2**28          # that any file may ask for
BYTES_PER_STORED = 2**10    # beyond, for each stored byte: about what deflate reaches at most


@dataclass(frozen=True)
class ReadLimits:
    """`most_bytes` of one array (None: what the stored bytes make plausible); `external` lets files name others anywhere.

    >>> ReadLimits().require_room(2**40, 1400, "density")
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: density takes 1,099,511,627,776 bytes in memory, and only 1,400 are stored: pass
    most_bytes=1099511627776 if you trust where the file comes from
    """

    most_bytes: int | None = None
    external: bool = False

    def __post_init__(self) -> None:
        if self.most_bytes is not None:
            whole_number("most_bytes", self.most_bytes, least=1)
        if not isinstance(self.external, bool):
            raise WorkbenchError(f"external must be True or False; got {self.external!r}")

    @classmethod
    def among(cls, options: Mapping[str, Any]) -> Self:
        """The limits among the options for opening a file."""
        return cls(**{name: options[name] for name in NAMES if name in options})

    def require_room(self, nbytes: int, stored: int, what: str) -> None:
        """Refuse an array that takes too much memory, before any is allocated."""
        if self.most_bytes is not None and nbytes > self.most_bytes:
            raise WorkbenchError(f"{what} takes {nbytes:,} bytes in memory, and most_bytes= allows {self.most_bytes:,}")
        if self.most_bytes is None and nbytes > FREE_BYTES + BYTES_PER_STORED * stored:
            raise WorkbenchError(
                f"{what} takes {nbytes:,} bytes in memory, and only {stored:,} are stored: pass most_bytes={nbytes} if you "
                "trust where the file comes from"
            )

    def require_inside(self, named: Path, source: Path) -> None:
        """Refuse a file that another one names as its data, and that lies outside of the folder of that one."""
        if self.external:
            return
        folders = {source.parent.resolve(), source.resolve().parent}
        try:
            place = named.resolve()
        except (OSError, ValueError, RuntimeError):   # no name that a file can have
            raise refused(str(named), source.name) from None
        if not any(place.is_relative_to(folder) for folder in folders):
            raise refused(str(named), source.name)


DEFAULT = ReadLimits()
NAMES = tuple(field.name for field in fields(ReadLimits))


def refused(named: str, source: str) -> WorkbenchError:
    """The error for data in another file.

    >>> print(refused("/etc/passwd", "grid.h5"))
    grid.h5 names '/etc/passwd' as its data, and only files in its own folder are read: pass external=True if you trust
    where the file comes from
    """
    return WorkbenchError(
        f"{source} names {named!r} as its data, and only files in its own folder are read: pass external=True if you trust "
        "where the file comes from"
    )


def without_limits(options: Mapping[str, Any], taken: tuple[str, ...] = ()) -> dict[str, Any]:
    """The other options, and those limits that a format takes itself."""
    return {name: value for name, value in options.items() if name not in NAMES or name in taken}
