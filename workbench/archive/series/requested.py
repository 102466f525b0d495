"""What is requested of all steps of a series, as its document states it, which is written with the first step."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

from workbench import codecs
from workbench.archive import document
from workbench.archive.key import SERIES
from workbench.archive.placing import on_disk
from workbench.archive.request import Request, promises
from workbench.archive.series.steps import MOST_RUN
from workbench.arguments import whole_number
from workbench.clusters import KeepClusters
from workbench.codecs import Codec
from workbench.errors import GuaranteeBroken, WorkbenchError
from workbench.guarantees import Absolute, Bound, Safeguard
from workbench.guarantees.guarantee import Promised
from workbench.guarantees.per_slice import stated_bound
from workbench.run.scratch_files import complete

DOCUMENT = SERIES
FORMAT = 1   # raised when older versions could not read what is written
OWN = ("every",)   # what is requested of the series, and not of each step


class DamagedDocument(GuaranteeBroken):
    """The document of a series cannot be trusted; its steps may be whole."""


@dataclass(frozen=True, kw_only=True)
class Requested:
    """The arguments of `wb.Series`."""

    bound: Any
    codec: str | Codec = "auto"
    keep: Any = ()
    order: str = "keep"
    every: int | None = None
    velocities: Bound | None = None
    columns: Mapping[str, Bound] | None = None
    column_codec: str | Codec | None = None
    chunk_values: int | None = None
    chunks: Any = None
    speed: Any = "small"

    def __post_init__(self) -> None:
        object.__setattr__(self, "keep", promises(self.keep))
        if self.every is not None:
            whole_number("every", self.every, least=1, most=MOST_RUN)
        if isinstance(self.bound, Bound):   # those of a dataset are checked with its members
            Request(self.bound, **{**self.options, "columns": self.columns or {}})

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `wb.compress` for each step, without its bound."""
        names = [field.name for field in fields(self) if field.name not in ("bound", *OWN)]
        return {name: getattr(self, name) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {field.name: _stated(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_dict(cls, stated: Mapping[str, Any]) -> Self:
        """What `to_dict` described."""
        return cls(**{name: _restored(value) for name, value in stated.items()})

    def require_same(self, stated: Mapping[str, Any], where: str) -> None:
        """Refuse what differs from what the series was begun with."""
        own = document.plain(self.to_dict(), "the arguments of a series")
        for name, value in own.items():
            if value != stated.get(name):
                given, known = getattr(self, name), _in_words(stated.get(name))
                raise WorkbenchError(
                    f"{name} must be that of the series in {where}, {known}; got {given!r}: leave it out, or begin another "
                    "series"
                )


def read_document(folder: Path) -> Mapping[str, Any] | None:
    """What the document of a series states; None where there is none."""
    try:
        data = (folder / DOCUMENT).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise WorkbenchError(f"{folder / DOCUMENT} cannot be read: {error.strerror or error}") from None
    where = f"{DOCUMENT} in {folder.name}"
    try:
        stated: Mapping[str, Any] = document.unsealed(document.from_bytes(data, where), where)
    except WorkbenchError as error:
        raise DamagedDocument(str(error)) from None
    attributes: Mapping[str, Any] = stated["attributes"]
    if attributes.get("format") != FORMAT or not isinstance(attributes.get("requested"), Mapping):
        raise WorkbenchError(
            f"{folder.name} must be a series of format {FORMAT}; got {attributes.get('format')!r:.40}: another version of "
            "lossbench may read it"
        )
    return attributes


def write_document(folder: Path, requested: Requested, name: str = "") -> Mapping[str, Any]:
    """Write the document of a new series, or that of one of this name, completely or not at all; returns what it states."""
    attributes = {"format": FORMAT, "name": name or secrets.token_hex(8), "requested": requested.to_dict()}
    data = document.to_bytes(document.sealed({"attributes": document.plain(attributes, "the arguments of a series")}))
    with on_disk(folder / DOCUMENT), complete(folder / DOCUMENT, "make room, and append the step again") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    found = read_document(folder)
    assert found is not None
    return found


def _stated(value: Any) -> Any:
    """An argument as JSON has it."""
    if isinstance(value, Bound):
        unit = {} if value.unit is None else {"unit": value.unit}
        return {"bound": {**value.to_dict(), **unit}}
    if isinstance(value, Codec):
        return {"codec": value.to_dict()}
    if isinstance(value, Promised):
        return {"keep": value.to_dict()}
    if isinstance(value, Mapping):
        return {"mapping": [[key, _stated(entry)] for key, entry in value.items()]}   # rules have an order
    if isinstance(value, list | tuple):
        return {"list": [_stated(entry) for entry in value]}
    return value


def _restored(stated: Any) -> Any:
    """The argument that was stated so."""
    if not isinstance(stated, Mapping):
        return stated
    (what, value), = stated.items()
    restore: Mapping[str, Callable[[Any], Any]] = {
        "bound": _bound, "codec": codecs.from_dict, "keep": _kept,
        "mapping": lambda pairs: {key: _restored(entry) for key, entry in pairs},
        "list": lambda entries: tuple(map(_restored, entries)),
    }
    return restore[what](value)


def _bound(stated: Mapping[str, Any]) -> Bound:
    if "unit" not in stated:
        return stated_bound(stated)
    quantity: Any = f"{stated['eb']!r} {stated['unit']}"
    return Absolute(quantity)


def _kept(stated: Mapping[str, Any]) -> Promised:
    if stated["kind"] == KeepClusters.kind:
        return KeepClusters.from_dict(stated)
    return _safeguard(stated["kind"], {name: value for name, value in stated.items() if name != "kind"})


def _safeguard(kind: str, options: Mapping[str, Any]) -> Safeguard:
    try:
        return Safeguard(kind, **options)
    except (WorkbenchError, TypeError):
        raise WorkbenchError(
            f"the series keeps {kind!r}, which cannot be made again from its document: give bound= and keep= as at its "
            "beginning"
        ) from None


def _in_words(stated: Any) -> str:
    try:
        return repr(_restored(stated))
    except (WorkbenchError, TypeError, KeyError, ValueError):
        return repr(stated)
