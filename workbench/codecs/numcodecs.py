"""Any codec of numcodecs, by its name there: Zarr users have these already.

A file names the codec that decodes it, so the names must be restricted: some codecs of numcodecs unpickle their input, and
codecs of other packages could do anything. Only the codecs listed here are accepted, and those of other packages that the
running program has registered itself.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from workbench.charts.looks import Look
from workbench.codecs.codec import CodecFailed, Tolerance, option
from workbench.codecs.inflating import BOUNDED
from workbench.codecs.pieces import InPieces
from workbench.errors import WorkbenchError

COMPRESSORS = ("blosc", "bz2", "gzip", "lz4", "lzma", "pcodec", "zfpy", "zlib", "zstd")
FILTERS = ("astype", "base64", "bitround", "delta", "fixedscaleoffset", "quantize", "shuffle")
CHECKSUMS = ("adler32", "crc32", "crc32c", "fletcher32", "jenkins_lookup3")

# Codecs that decode forged bytes without harm: compressors that stop at the expected size, and arithmetic of NumPy.
HARMLESS = (*BOUNDED, "adler32", "astype", "base64", "bitround", "crc32", "delta", "fixedscaleoffset", "quantize")

TYPES = ("dtype", "astype", "encode_dtype", "decode_dtype")   # options that name a type
SMALLEST_RATE = 3   # bits a value: with less, zfpy writes beyond its memory on lines of float64


@dataclass(frozen=True)
class NumCodecs(InPieces):
    """A codec of numcodecs with its own options; it ignores the tolerance.

    The type of the data is filled in where a codec asks for it and no option gives it.

    >>> codec = NumCodecs("quantize", {"digits": 2})
    >>> values = np.linspace(0, 1, 5) / 3
    >>> codec.decode(codec.encode(values, Tolerance(absolute=0.0)), values.shape, values.dtype).tolist()
    [0.0, 0.0859375, 0.1640625, 0.25, 0.3359375]
    """

    id: ClassVar[str] = "numcodecs"
    title: ClassVar[str] = "numcodecs: any of its codecs"
    look: ClassVar[Look | None] = Look("#84546c", "circle", "dotdash")
    module: ClassVar[str | None] = "numcodecs"
    needs_extra: ClassVar[str | None] = "codecs"
    most_values: ClassVar[int] = 2**27
    smooth: ClassVar[bool] = False

    codec: str = option("zstd", "the name of the codec in numcodecs")
    options: Mapping[str, Any] | str = option("{}", "the options of that codec, as JSON")

    contained = property(lambda self: self.codec in HARMLESS)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "options", _as_json(self.options))
        _check_allowed(self.codec)
        _check_types(self._given())
        rate = self._given().get("rate", SMALLEST_RATE)
        if self.codec == "zfpy" and not (isinstance(rate, int | float) and rate >= SMALLEST_RATE):
            raise WorkbenchError(f"numcodecs: the rate of zfpy must be {SMALLEST_RATE} or more; got {rate}: use zfp")

    def to_dict(self) -> dict[str, Any]:
        """The configuration, ready for JSON: `from_dict` restores the codec."""
        return {"id": self.id, "codec": self.codec, "options": self._given()}

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """The options as JSON Schema (draft 2020-12), so that a panel can draw them."""
        schema = super().schema()
        schema["properties"]["options"].update(type="object", default={})
        return schema

    def _given(self) -> dict[str, Any]:
        return json.loads(str(self.options))

    def _encode_piece(self, values: np.ndarray, tolerance: Tolerance) -> bytes:
        encoded = self._made_for(values.dtype).encode(values)
        return encoded.tobytes() if isinstance(encoded, np.ndarray) else bytes(encoded)

    def _decode_piece(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        if self.codec in BOUNDED:
            values = np.empty(shape, dtype)
            BOUNDED[self.codec](data, values)
            return values
        decoded = self._made_for(dtype).decode(data)
        raw = bytearray(decoded.tobytes() if isinstance(decoded, np.ndarray) else decoded)
        if len(raw) != math.prod(shape) * dtype.itemsize:
            raise CodecFailed(f"{self.codec} must decode to {math.prod(shape)} values of {dtype}; got {len(raw)} bytes")
        return np.frombuffer(raw, dtype).reshape(shape)

    def _made_for(self, dtype: np.dtype) -> Any:
        """The codec itself; options about the type that it requires and no option gives are filled in."""
        from numcodecs.registry import codec_registry, get_codec

        asked = inspect.signature(codec_registry[self.codec].__init__).parameters
        known = {"dtype": dtype.str, "decode_dtype": dtype.str, "elementsize": dtype.itemsize}
        filled = {name: value for name, value in known.items() if name in asked}
        return get_codec({"id": self.codec, **filled, **self._given()})


def _as_json(options: Mapping[str, Any] | str) -> str:
    """Options as JSON text with sorted keys: it can be compared and hashed."""
    try:
        given = json.loads(options) if isinstance(options, str) else dict(options)
        text = json.dumps(given, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise WorkbenchError(f"numcodecs: options must be a mapping of JSON values; got {options!r}: {error}") from None
    if not isinstance(given, dict) or "id" in given:
        raise WorkbenchError(f"numcodecs: options must be a mapping without an id; got {options!r}")
    return text


def _check_types(options: Mapping[str, Any]) -> None:
    """Accept only types of numbers: for objects, the stored bytes would be addresses in memory."""
    for name in TYPES:
        try:
            kind = np.dtype(options.get(name, "f8")).kind
        except (TypeError, ValueError):
            kind = "unknown"
        if kind not in ("f", "i", "u"):
            raise WorkbenchError(f"numcodecs: {name} must be a type of numbers, such as '<f4'; got {options[name]!r}")


def _check_allowed(name: str) -> None:
    if name in (*COMPRESSORS, *FILTERS, *CHECKSUMS):
        return
    from numcodecs.registry import codec_registry, entries

    found = codec_registry.get(str(name))
    if found is not None and not found.__module__.startswith("numcodecs."):
        return
    names = ", ".join((*COMPRESSORS, *FILTERS, *CHECKSUMS))
    if str(name) in entries:
        raise WorkbenchError(
            f"numcodecs: codec {name!r} belongs to another package, and a file must not decide to run it: "
            "import its class and call numcodecs.registry.register_codec(...) first"
        )
    why = ", which is not for numbers or executes what it reads" if found is not None else ""
    raise WorkbenchError(f"numcodecs: codec must be one of {names}; got {name!r}{why}")
