"""Positions or velocities for codecs that know only arrays: each coordinate as an array of its own.

Neighbours in memory are then values of one kind, x after x, which is what those codecs predict from. A table (N, 3) taken
as a two-dimensional field would make them predict y from x.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.charts.looks import Look
from workbench.codecs.codec import Codec, CodecFailed, Tolerance

_LENGTH = struct.Struct("<Q")


class _Inner:
    """An attribute of the inner codec; on the class `Columns`, which has no inner codec, the default of all codecs."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Columns | None, owner: type | None = None) -> Any:
        return getattr(Codec if instance is None else instance.codec, self.name)


@dataclass(frozen=True)
class Columns(Codec):
    """Another codec, given one column of a table (N, D) after the other.

    >>> from workbench.codecs import get
    >>> codec = Columns(get("pcodec"))
    >>> table = np.arange(12.0).reshape(4, 3)
    >>> bool((codec.decode(codec.encode(table, Tolerance(absolute=0.0)), (4, 3), table.dtype) == table).all())
    True
    """

    id: ClassVar[str] = "columns"
    title: ClassVar[str] = "Another codec, column by column"
    look: ClassVar[Look | None] = Look("#cc7884", "triangle", "dashdot")
    dimensions: ClassVar[tuple[int, ...]] = (2,)

    codec: Codec

    # These attributes of the inner codec hold for its columns.
    lossless: ClassVar[Any] = _Inner()
    relative: ClassVar[Any] = _Inner()
    finite: ClassVar[Any] = _Inner()
    holds_gil: ClassVar[Any] = _Inner()
    on_device: ClassVar[Any] = _Inner()
    contained: ClassVar[Any] = _Inner()
    dtypes: ClassVar[Any] = _Inner()
    chunk_values: ClassVar[Any] = _Inner()

    def require(self) -> None:
        """Raise an error when the inner codec cannot run here."""
        self.codec.require()

    def to_dict(self) -> dict[str, Any]:
        """The configuration, ready for JSON."""
        return {"id": self.id, "codec": self.codec.to_dict()}

    @staticmethod
    def wrapped(described: Mapping[str, Any]) -> Mapping[str, Any]:
        """The configuration of the inner codec."""
        inner = described.get("codec")
        if not isinstance(inner, Mapping) or set(described) != {"id", "codec"} or inner.get("id") == Columns.id:
            raise CodecFailed(f"columns must be described by their inner codec; got {dict(described)!r:.200}")
        return inner

    def encode_with_gaps(self, values: Array, valid: Array, tolerance: Tolerance) -> bytes:
        """Gaps are filled in each column by itself."""
        contiguous = backend.namespace(values).ascontiguousarray
        columns = zip(contiguous(values.T), contiguous(valid.T), strict=True)
        return _joined(self.codec.encode_with_gaps(column, there, tolerance) for column, there in columns)

    def _encode(self, values: Array, tolerance: Tolerance) -> bytes:
        xp = backend.namespace(values)
        return _joined(self.codec.encode(xp.ascontiguousarray(column), tolerance) for column in values.T)

    def _decode(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        view, table = memoryview(data), np.empty(shape, dtype)
        for column in range(shape[1]):
            size = _LENGTH.unpack_from(view)[0] if len(view) >= _LENGTH.size else len(view)
            if len(view) < _LENGTH.size + size:
                raise CodecFailed(f"column {column} of {shape[1]} is cut short")
            table[:, column] = self.codec.decode(bytes(view[_LENGTH.size : _LENGTH.size + size]), shape[:1], dtype)
            view = view[_LENGTH.size + size :]
        if view:
            raise CodecFailed(f"{len(view)} bytes follow the last column")
        return table


def _joined(parts: Iterable[bytes]) -> bytes:
    return b"".join(piece for part in parts for piece in (_LENGTH.pack(len(part)), part))
