"""Small archives in the package, one of each codec, and whether this installation decodes them as when they were written.

The library of a codec may change: a new version may refuse what an older one wrote, or decode it to other values. So the
package carries an archive of each codec, and in `expected.json` the checksum of each array that it decoded to when it was
written; `workbench doctor` compares. Files here are never written again, as they stand for those that people have.
`tests/archive/make_golden.py` says how they were made.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from workbench.archive.archive import Archive
from workbench.archive.collection.collection import Collection
from workbench.archive.frame import Damaged
from workbench.archive.opening import opened
from workbench.archive.provenance import VERSIONS
from workbench.archive.reading import StoredArray
from workbench.errors import WorkbenchError

FOLDER = Path(__file__).parent
EXPECTED = FOLDER / "expected.json"


class Outcome(NamedTuple):
    """What became of an archive in the package: the packages that wrote it, and why it was not decoded, if it was not.

    `missing` is a codec that is not installed, `fault` what users of this codec must know.
    """

    name: str
    written_with: str
    missing: str | None = None
    fault: str | None = None

    def __str__(self) -> str:
        if self.missing:
            return f"not tried: {self.missing}"
        if self.fault:
            return f"FAILS: {self.fault}"
        return f"decodes as when it was written ({self.written_with})"


def outcomes() -> Iterator[Outcome]:
    """The outcome for each archive in the package.

    >>> next(outcomes()).fault is None
    True
    """
    for name, expected in expected_arrays().items():
        written = "an unknown version"
        try:
            archive = opened(FOLDER / f"{name}.zip")
            written = written_with(archive)
            missing = _missing(archive)
            found = expected if missing else checksums(archive)
        except Damaged as error:
            yield Outcome(name, written, fault=error.reason)
        except (WorkbenchError, OSError) as error:
            yield Outcome(name, written, fault=str(error))
        else:
            wrong = ", ".join(sorted(array for array in {*expected, *found} if expected.get(array) != found.get(array)))
            said = f"{wrong}: other values than those that {written} wrote; install that version, and report this"
            yield Outcome(name, written, missing, said if wrong else None)


def expected_arrays() -> dict[str, dict[str, str]]:
    """For each archive in the package, the checksum of each of its arrays."""
    expected: dict[str, dict[str, str]] = json.loads(EXPECTED.read_text())
    return expected


def checksums(archive: Archive | Collection) -> dict[str, str]:
    """The checksum of everything that an archive decodes to: of type, shape and bytes."""
    return {name: checksum(values) for name, values in arrays(archive).items()}


def checksum(values: np.ndarray) -> str:
    """A checksum that has nothing in common with those in archives.

    >>> checksum(np.zeros(3)) == checksum(np.zeros(3, np.float32))
    False
    """
    whole = f"{values.dtype.str} {values.shape} ".encode() + np.ascontiguousarray(values).tobytes()
    return hashlib.blake2b(whole, digest_size=16).hexdigest()


def arrays(archive: Archive | Collection) -> dict[str, np.ndarray]:
    """Everything that an archive decodes to; the arrays of members by `member/array`."""
    return {name: stored.values() for name, stored in _stored(archive).items()}


def written_with(archive: Archive | Collection) -> str:
    """The packages that wrote an archive of this package, with their versions."""
    found: dict[str, str] = {}
    for stored in _stored(archive).values():
        found |= stored.layout.configuration[VERSIONS]
    return ", ".join(f"{name} {version}" for name, version in found.items())


def _missing(archive: Archive | Collection) -> str | None:
    """Why the codec of an array cannot run here."""
    try:
        for stored in _stored(archive).values():
            stored.codec.require()
    except WorkbenchError as missing:
        return str(missing)
    return None


def _stored(archive: Archive | Collection) -> dict[str, StoredArray]:
    if isinstance(archive, Archive):
        return archive.arrays
    return {f"{member}/{name}": stored for member, one in archive.items() for name, stored in one.arrays.items()}
