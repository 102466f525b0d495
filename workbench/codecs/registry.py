"""The known codecs: the ones in this package, those that other packages add, and any of numcodecs by name.

Another package adds a codec by an entry point in the group `lossbench.codecs` whose value is a subclass of `Codec`.
Packages are imported on demand. One that cannot be imported is reported with its reason and does not affect the others.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import sys
from collections.abc import Collection, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from workbench.charts.looks import Look
from workbench.codecs.codec import Codec
from workbench.codecs.columns import Columns
from workbench.codecs.portable import Portable
from workbench.errors import WorkbenchError, briefly

GROUP = "lossbench.codecs"

_OWN = {
    "lattice": "workbench.codecs.lattice:LatticeCodec",
    "interpolation": "workbench.codecs.interpolation:Interpolation",
    "sz3": "workbench.codecs.sz3:SZ3",
    "zfp": "workbench.codecs.zfp:ZFP",
    "sperr": "workbench.codecs.sperr:SPERR",
    "draco": "workbench.codecs.draco:Draco",
    "fpzip": "workbench.codecs.fpzip:FPZip",
    "pcodec": "workbench.codecs.pcodec:PCodec",
    "bitround": "workbench.codecs.bitround:BitRound",
    "prequantised": "workbench.codecs.prequantised:Prequantised",
    "neighbours": "workbench.codecs.neighbours:Neighbours",
    "motion": "workbench.codecs.motion:Motion",
    "rounded": "workbench.codecs.rounded:Rounded",
    "staged": "workbench.codecs.staged:Staged",
    "numcodecs": "workbench.codecs.numcodecs:NumCodecs",
}


def available() -> list[str]:
    """The names of the codecs that can run here.

    >>> {"lattice", "pcodec"} <= set(available())
    True
    """
    return [name for name, reason in status().items() if reason is None]


def automatic() -> list[str]:
    """The names of the codecs among which `codec="auto"` chooses for fields: all decode without further packages.

    >>> automatic()
    ['interpolation', 'pcodec', 'prequantised']
    """
    return [name for name, each in own().items() if each.automatic]


def built_in() -> list[str]:
    """The names of the codecs of this package that every installation can decode.

    >>> built_in()
    ['lattice', 'interpolation', 'pcodec', 'prequantised', 'neighbours', 'motion', 'rounded', 'staged']
    """
    return [name for name, each in own().items() if each.needs_extra is None]


def for_fields() -> list[str]:
    """The names of the codecs of this package that are compared with the theoretical bound, and predicted."""
    return [name for name, each in own().items() if each.for_fields]


def looks() -> dict[str, Look]:
    """The looks of the codecs of this package in charts, by name."""
    beside = {each.id: each for each in (Columns, Portable)}
    return {name: each.look for name, each in (own() | beside).items() if each.look is not None}


def own() -> dict[str, type[Codec]]:
    """The codecs of this package by name, whether their libraries are installed or not."""
    return {name: codec_class(name) for name in _OWN}


def status() -> dict[str, str | None]:
    """Every known codec that takes arrays as they are, and why it cannot run here (None when it can)."""
    beside = [name for name, each in own().items() if each.beside_positions]
    return {name: _why_not(name) for name in [*_OWN, *_entry_points()] if name not in beside}


def _why_not(name: str) -> str | None:
    try:
        return codec_class(name).missing()
    except WorkbenchError as error:
        return str(error)


def get(name: str, **options: Any) -> Codec:
    """The codec of this name with these options; `get("numcodecs", codec="lzma")` reaches any of numcodecs.

    >>> get("pcodec", level=4).to_dict()
    {'id': 'pcodec', 'level': 4}
    """
    return from_dict({"id": name, **options})


def from_dict(configuration: Mapping[str, Any]) -> Codec:
    """The codec that `to_dict` described."""
    name = configuration.get("id")
    if isinstance(name, str) and name == Columns.id:
        return Columns(from_dict(Columns.wrapped(configuration)))
    options = {key: _frozen(value) for key, value in configuration.items() if key != "id"}
    found = Portable if isinstance(name, str) and name == Portable.id else codec_class(name)
    known = [field.name for field in dataclasses.fields(found) if field.init]
    if unknown := sorted(set(options) - set(known)):
        raise WorkbenchError(f"{found.id} has the options {', '.join(known) or '(none)'}; got {', '.join(unknown)}")
    return found(**options)


def codec_class(name: Any) -> type[Codec]:
    """The class of this name; otherwise an error that lists the known names."""
    if isinstance(name, str) and name in _OWN:
        module, attribute = _OWN[name].split(":")
        return getattr(importlib.import_module(module), attribute)
    if isinstance(name, str) and name in _entry_points():
        return _load(_entry_points()[name])
    names = ", ".join([*_OWN, *_entry_points()])
    raise WorkbenchError(f"codec must be one of {names}; got {briefly(name)}")


def require_imported(described: Any, allowed: Collection[str]) -> None:
    """Refuse a codec of another package that a file names, unless it is allowed or this program has imported it.

    The import runs code of that package, and a file must not decide about that.
    """
    if not isinstance(described, Mapping):
        return
    name = described.get("id")
    if name == Columns.id:
        require_imported(described.get("codec"), allowed)
    elif isinstance(name, str) and name in _entry_points() and name not in allowed:
        module = _entry_points()[name].module
        if module not in sys.modules:
            raise WorkbenchError(
                f"the codec {name!r} is of another package, {module}, and a file that needs it must not decide to run it: "
                f"import {module} first, or pass codecs=[{name!r}]"
            )


@functools.cache
def _entry_points() -> dict[str, EntryPoint]:
    """The codecs of other packages, without those that reuse the name of a built-in codec."""
    return {point.name: point for point in entry_points(group=GROUP) if point.name not in _OWN}


def _load(point: EntryPoint) -> type[Codec]:
    try:
        found = point.load()
    except Exception as error:
        raise WorkbenchError(f"codec {point.name} ({point.value}) cannot be imported: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Codec)):
        raise WorkbenchError(f"codec {point.name} ({point.value}) must be a subclass of codecs.Codec; got {found!r}")
    return found


def _frozen(value: Any) -> Any:
    """Lists, which JSON makes of tuples, as tuples again."""
    return tuple(_frozen(v) for v in value) if isinstance(value, list) else value
