"""How an archive was made: the codec, its options and versions, for someone who opens it in ten years."""

from __future__ import annotations

import functools
import platform
import re
import zlib
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from workbench.codecs import Codec, Columns

VERSIONS = "versions"   # in an array's configuration: of the packages that wrote it,
STREAM = "stream"       # and of the codec's stream
PLAIN = re.compile(r"\d[\w.+!-]{0,30}", re.ASCII)   # what may stand in a command that people copy; files state anything
LONGEST = 1000   # characters of an option, or of a value that JSON cannot hold


def of(codec: Codec) -> dict[str, Any]:
    """The codec with its options, and the versions of the packages involved.

    Of a long option, such as a model, there is a checksum: the document of the array has it all.
    """
    options = {name: _short(value) for name, value in codec.to_dict().items()}
    return {"codec": options, "versions": versions(codec), "machine": platform.machine()}


def _short(option: Any) -> Any:
    if isinstance(option, str) and len(option) > LONGEST:
        return f"{len(option):,} characters, CRC-32 {zlib.crc32(option.encode()):08x}"
    return option


def versions(codec: Codec) -> dict[str, str]:
    """The packages that write an array, and their versions here.

    >>> from workbench.codecs import get
    >>> sorted(versions(get("prequantised")))
    ['lossbench', 'numpy', 'pcodec']
    """
    names = [name for name in ("lossbench", "numpy", "pcodec", _inner(codec).module) if name]
    return {name: version_of(name) for name in dict.fromkeys(names)}


def stream(codec: Codec) -> int:
    """The version of the stream of a codec; decoded values depend on it, and on the library of the codec.

    >>> from workbench.codecs import get
    >>> stream(get("lattice"))
    1
    """
    return _inner(codec).stream_version


def decodes_alike(configuration: Mapping[str, Any], codec: Codec) -> bool:
    """Whether an array with this configuration decodes to the values that were written, without comparing them."""
    module, recorded = _inner(codec).module, configuration.get(VERSIONS)
    known = recorded if isinstance(recorded, Mapping) else {}
    return configuration.get(STREAM) == stream(codec) and (module is None or known.get(module) == version_of(module))


def _inner(codec: Codec) -> Codec:
    return codec.codec if isinstance(codec, Columns) else codec


def compared(recorded: Any, codec: Codec) -> str:
    """How the versions that wrote a chunk differ from those here, and what to do, for messages.

    >>> from workbench.codecs import get
    >>> compared({**versions(get("pcodec")), "pcodec": "0.1"}, get("pcodec"))
    "it was written with pcodec 0.1; pcodec ... is installed: read it where that version is (pip install 'pcodec==0.1')"
    """
    here = versions(codec)
    if not isinstance(recorded, Mapping):
        return f"it was written with unknown versions; {_listed(here)} are installed"
    before = {name: _printable(recorded.get(name, "unknown")) for name in here}
    other = [name for name in here if before[name] != here[name]]
    if not other:
        return f"it was written with {_listed(here)}, which are installed"
    written, installed = (_listed({name: found[name] for name in other}) for found in (before, here))
    verb, remedy = "is" if len(other) == 1 else "are", _remedy(before, codec, other)
    return f"it was written with {written}; {installed} {verb} installed{remedy}"


def _remedy(before: Mapping[str, str], codec: Codec, other: Sequence[str]) -> str:
    """How to get the versions that wrote a chunk: of the codec's library if that differs, and otherwise of this package."""
    module = _inner(codec).module
    name = module if module in other else "lossbench" if "lossbench" in other else None
    if name is None or not PLAIN.fullmatch(before[name]):
        return ""
    return f": read it where that version is (pip install '{name}=={before[name]}')"


def other_writer(configuration: Mapping[str, Any]) -> str:
    """The version of this package that wrote an array, if it is another, for messages about what is unknown here.

    >>> other_writer({"versions": {"lossbench": "9.1"}})
    ' (lossbench 9.1 wrote it, and this is ...: pip install --upgrade lossbench)'
    """
    recorded, here = configuration.get(VERSIONS), version_of("lossbench")
    version = str(recorded.get("lossbench")) if isinstance(recorded, Mapping) else here
    if version == here or not PLAIN.fullmatch(version):
        return ""
    return f" (lossbench {version} wrote it, and this is {here}: pip install --upgrade lossbench)"


def listed(recorded: Any) -> str:
    """The versions that a document records, for messages.

    >>> listed({"lossbench": "0.1.0"}), listed(None)
    ('lossbench 0.1.0', 'unknown versions')
    """
    known = isinstance(recorded, Mapping) and recorded
    return _listed({_printable(name): _printable(text) for name, text in recorded.items()}) if known else "unknown versions"


def plain(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a file as JSON can hold it: arrays as lists, other types as text.

    >>> plain({"redshift": np.float64(0.5), "box": np.array([1, 2]), "when": np.datetime64("2026-01-01")})
    {'redshift': 0.5, 'box': [1, 2], 'when': '2026-01-01'}
    """
    return {str(key): _plain(value) for key, value in metadata.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray) and value.dtype.kind in "biufUS":
        value = value.tolist()
    if isinstance(value, Mapping):
        return plain(value)
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return text[:LONGEST]


def _printable(recorded: Any) -> str:
    """A value from a file as short text without control characters."""
    return "".join(letter if letter.isprintable() else "?" for letter in str(recorded)[:40])


def _listed(found: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in found.items())


@functools.cache
def version_of(name: str) -> str:
    """The version of a package, as far as it is known here."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
