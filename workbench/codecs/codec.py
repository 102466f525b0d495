"""The interface of codecs: frozen values that turn an array into bytes and back, without a guarantee about the error.

The fields of a codec are its whole configuration, so that a codec can be compared, hashed, written into an archive and
shown as a panel: each option carries its limits (`option`), and `schema` returns them as JSON Schema. The tolerance is not
part of the configuration: it belongs to the data and is passed with each call, and the codec aims at it.
`workbench.guarantees` checks afterwards whether it was met, for every codec.

Many codecs kill the process or return nonsense for unexpected input. `encode` and `decode` therefore check everything
before `_encode` and `_decode`, the only methods that a new codec must define.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.charts.looks import Look
from workbench.codecs.gaps import filled, repeated
from workbench.codecs.together import Pieces
from workbench.errors import WorkbenchError
from workbench.slabs import Slices

if TYPE_CHECKING:
    from workbench.codecs.curve import Lattice
    from workbench.codecs.earlier import Earlier
    from workbench.codecs.lattice_stream import Stretches
    from workbench.data import Particles


Imitation = Literal["prediction", "expected sizes", "blocks", "wavelets", "lattice"]


class CodecFailed(WorkbenchError):
    """A codec raised, or returned an impossible result."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The largest error to aim at: in the unit of the values, or relative to each value. Zero means lossless.

    >>> Tolerance(absolute=1e-3)
    Tolerance(absolute=0.001, relative=None)
    """

    absolute: float | None = None
    relative: float | None = None

    def __post_init__(self) -> None:
        if (self.absolute is None) == (self.relative is None):
            raise WorkbenchError(f"a tolerance is either absolute or relative; got {self.absolute} and {self.relative}")
        if not (math.isfinite(self.value) and self.value >= 0):
            raise WorkbenchError(f"a tolerance must be finite and not negative; got {self.value}")

    @property
    def value(self) -> float:
        """The number, of either kind."""
        return float(self.absolute if self.absolute is not None else self.relative or 0.0)

    def absolute_for(self, values: Array) -> float:
        """The absolute error that meets the tolerance for every value of this array."""
        if self.absolute is not None:
            return self.absolute
        size = abs(values)
        present = size[size > 0]
        return float(present.min()) * self.value if present.size else 0.0


def option(
    default: Any,
    title: str,
    *,
    choices: Sequence[Any] | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
) -> Any:
    """A field of a codec: its default, one line of description, and the allowed values."""
    limits = {"title": title, "enum": choices and list(choices), "minimum": minimum, "maximum": maximum}
    return dataclasses.field(default=default, metadata={k: v for k, v in limits.items() if v is not None})


@dataclass(frozen=True)
class Codec(ABC):
    """Base of all codecs. A subclass is a frozen dataclass whose fields are made with `option`.

    Fields with `init=False`, such as values at earlier times, are no part of the configuration.
    `relative` codecs support a relative tolerance; the others get the logarithms of the values instead. `lossless` codecs
    ignore the tolerance. `finite` codecs cannot take NaN or infinities. `dimensions`, `dtypes` and `most_values` limit the
    input of `_encode`; larger arrays are cut into pieces. `contained` codecs decode any bytes, even forged ones, without
    harm and in about the memory of the result; files with other codecs are decoded in another process.

    Other parts of the package ask the class, too. Charts draw a codec with its `look`, and the glossary has its
    `explanation`. Codecs `for_fields` are compared with the theoretical bound, and an expert predicts what they do;
    `imitation` is the estimate that the expert starts from.
    """

    id: ClassVar[str]
    title: ClassVar[str]
    module: ClassVar[str | None] = None   # the package that must be installed; decoded values depend on its version
    stream_version: ClassVar[int] = 1     # raised when the same bytes decode to other values than before
    needs_extra: ClassVar[str | None] = None   # the extra of lossbench that installs it; None: every installation has it
    lossless: ClassVar[bool] = False
    relative: ClassVar[bool] = False
    finite: ClassVar[bool] = True
    smooth: ClassVar[bool] = True         # steps cost bits: gaps are filled smoothly, not by repeats
    holds_gil: ClassVar[bool] = False     # threads do not help
    automatic: ClassVar[bool] = False     # codec="auto" tries it for fields: whoever has the package can decode it
    conservative: ClassVar[bool] = False  # errors are far below the tolerance
    on_device: ClassVar[bool] = False     # takes CuPy arrays too
    contained: ClassVar[bool] = False     # decoding forged bytes is harmless
    bare: ClassVar[bool] = False          # its bytes alone are a chunk: nothing of ours can stand beside them
    beside_positions: ClassVar[bool] = False   # for columns of particles whose positions are known: see `beside`
    predicts_in_time: ClassVar[bool] = False   # from the same chunk at earlier times: see `following`
    dimensions: ClassVar[tuple[int, ...]] = (1, 2, 3, 4)
    dtypes: ClassVar[tuple[str, ...]] = ("float32", "float64")
    most_values: ClassVar[int] = 2**28
    chunk_values: ClassVar[int] = 2**20   # a good size for an archive's chunks
    look: ClassVar[Look | None] = None    # None: one that follows from the name
    explanation: ClassVar[str] = ""       # one phrase
    for_fields: ClassVar[bool] = False    # compresses fields within a tolerance that decides about error and size
    imitation: ClassVar[Imitation] = "prediction"
    tile: ClassVar[int | None] = None     # the side of the tiles that it codes independently of each other

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            _check_option(self, field)

    def tuned(self, sample: np.ndarray, tolerance: Tolerance) -> Self:
        """The codec with the options that suit an array, of which this is a part; by default the codec as it is.

        The sample has as many axes as the array. Masked values are filled from those around them.
        """
        return self

    def worthwhile(self, sample: np.ndarray, tolerance: Tolerance, values: int) -> Self:
        """The codec without options that take more room than they save in an array of so many values; often as it is.

        The sample is that of `tuned`, which is called afterwards.
        """
        return self

    def for_mean_errors(self) -> Self:
        """The codec where mean errors count, such as a PSNR, and not the bound alone; by default as it is."""
        return self

    def contradiction(self, data: bytes, decoded: Array, valid: Array, sound: Array) -> str | None:
        """What the bytes state beside the values, such as sums, and is not so of these; None if all is.

        `valid` says which cells count, and `sound` which decoded values are as the bytes have them, uncorrected.
        """
        return None

    def coarse(self, spacing: int) -> Codec | None:
        """A decoder that is right only where all coordinates are multiples of a power of two; None if it saves nothing.

        It must find damage of what it decodes by itself: its values cannot be compared with the checksum of all values.
        """
        return None

    def part(
        self, data: bytes | memoryview, shape: tuple[int, ...], dtype: np.dtype, slices: Slices
    ) -> Array | None:
        """The values in a part of an array, decoded without the rest; None if it saves nothing.

        It must find damage of what it decodes by itself: its values cannot be compared with the checksum of all values.
        """
        return None

    def in_chunks(self, shape: tuple[int, ...]) -> Self:
        """The codec for an array that has chunks of this shape; by default as it is."""
        return self

    def remark(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> str | None:
        """What a certificate should say of a chunk with these bytes, in words that many chunks share; often nothing."""
        return None

    def is_predicted(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> bool:
        """Whether these bytes of a chunk rest on values at earlier times."""
        return False

    def beside(self, positions: Array) -> Self:
        """The codec for columns of particles at these positions, as they are decoded; most codecs need not know them."""
        return self

    def following(self, earlier: Earlier) -> Self:
        """The codec for the chunk whose earlier values are these, as they are decoded; most codecs need not know them."""
        return self

    def in_cells(self, edges: Array) -> Self:
        """The codec for frames of atoms in these periodic cells, edges as rows; most codecs need not know them."""
        return self

    @abstractmethod
    def _encode(self, values: Array, tolerance: Tolerance) -> bytes:
        """The bytes of a contiguous, non-empty array that fits what the class says it takes."""

    @abstractmethod
    def _decode(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        """The array of these bytes."""

    def encode(self, values: Array, tolerance: Tolerance) -> bytes:
        """The array as bytes, without its shape and type, which the caller must keep too."""
        self.require()
        self._check_values(values)
        try:
            return bytes(self._encode(values, tolerance))
        except WorkbenchError:
            raise
        except Exception as error:
            reason = f"{self.id} could not encode {_describe(values)}: {type(error).__name__}: {error}"
            raise CodecFailed(reason) from error

    def encode_with_gaps(self, values: Array, valid: Array, tolerance: Tolerance) -> bytes:
        """What `encode` returns where invalid values may be any: those that take few bits are put in their place."""
        given = filled(values, valid) if self.smooth else repeated(values, valid)
        return self.encode(backend.read_only(given), tolerance)

    def encode_together(self, values: Array, rows: int, tolerance: Tolerance) -> list[bytes] | None:
        """What `encode` returns for each piece of so many rows, from a few launches that serve all of them.

        None where the codec takes these pieces one after the other.
        """
        self.require()
        self._check_values(values)
        return self._encode_together(values, rows, tolerance)

    def _encode_together(self, values: Array, rows: int, tolerance: Tolerance) -> list[bytes] | None:
        """What `encode_together` returns; a codec that serves many pieces at once overrides both this and the next."""
        return None

    def decode_together(self, data: Sequence[bytes], rows: int, shape: Sequence[int], dtype: Any, xp: Any = np) -> Array:
        """The array of this shape whose pieces `encode_together` has encoded."""
        shape, dtype = tuple(int(n) for n in shape), np.dtype(dtype)
        shapes = [(piece.stop - piece.start, *shape[1:]) for piece in Pieces.of(shape[0], rows)]
        return self._decode_together(xp, data, shapes, dtype)

    def _decode_together(self, xp: Any, data: Sequence[bytes], shapes: Sequence[tuple[int, ...]], dtype: np.dtype) -> Array:
        """The decoded pieces, one after the other."""
        return xp.concatenate([self.decode(one, shape, dtype, xp) for one, shape in zip(data, shapes, strict=True)])

    def _decode_on(self, xp: Any, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        """The array in the memory of this namespace; a codec that can decode on a GPU overrides it."""
        values = self._decode(data, shape, dtype)
        return values if xp is np else xp.asarray(values)

    def decode(self, data: bytes, shape: Sequence[int], dtype: Any, xp: Any = np) -> Array:
        """The array of this shape and type from its bytes, as an array of `xp`: numpy or cupy."""
        self.require()
        shape, dtype = tuple(int(n) for n in shape), np.dtype(dtype)
        try:
            values = self._decode_on(xp, bytes(data), shape, dtype)
        except WorkbenchError:
            raise
        except Exception as error:
            raise CodecFailed(f"{self.id} could not decode: {type(error).__name__}: {error}") from error
        if getattr(values, "shape", None) != shape or values.dtype != dtype:
            raise CodecFailed(f"{self.id} must decode to {dtype} of shape {shape}; got {_describe(values)}")
        return values

    def to_dict(self) -> dict[str, Any]:
        """The configuration, ready for JSON: `from_dict` restores the codec."""
        return {"id": self.id, **{f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self) if f.init}}

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """The options as JSON Schema (draft 2020-12), so that a panel can draw them."""
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": cls.title,
            "type": "object",
            "properties": {f.name: _property(f) for f in dataclasses.fields(cls) if f.init},
            "additionalProperties": False,
        }

    @classmethod
    def missing(cls) -> str | None:
        """Why this codec cannot run here, or None."""
        if cls.module is None or importlib.util.find_spec(cls.module) is not None:
            return None
        source = cls.module if cls.needs_extra is None else f"'lossbench[{cls.needs_extra}]'"
        return f"{cls.id} needs {cls.module}, which is not installed: pip install {source}"

    def require(self) -> None:
        """Raise an error when this codec cannot run here."""
        if reason := self.missing():
            raise WorkbenchError(reason)

    def _check_values(self, values: Array) -> None:
        if backend.on_device(values) and not self.on_device:
            raise WorkbenchError(f"{self.id} works on NumPy arrays; got a CuPy array: use array.get()")
        if not hasattr(values, "dtype") or values.dtype.name not in self.dtypes or not values.dtype.isnative:
            raise WorkbenchError(f"{self.id} takes {' or '.join(self.dtypes)}; got {_describe(values)}")
        if values.size == 0 or not values.flags.c_contiguous:
            raise WorkbenchError(f"{self.id} takes non-empty C-contiguous arrays; got {_describe(values)}")
        if values.ndim not in self.dimensions:
            allowed = ", ".join(map(str, self.dimensions))
            raise WorkbenchError(f"{self.id} takes arrays of {allowed} dimensions; got {_describe(values)}")
        if self.finite and not bool(backend.namespace(values).isfinite(values).all()):
            raise WorkbenchError(f"{self.id} takes finite values only; got nan or infinity: wb.compress keeps those itself")


class Blocks(Protocol):
    """Encoded points in blocks along a curve."""

    def stretches(self, cuboids: Sequence[tuple[Any, Any]]) -> Stretches:
        """The blocks that may reach into one of these (lower, upper)."""


@dataclass(frozen=True)
class ParticleCodec(Codec):
    """A codec for positions (N, 2) or (N, 3) that treats rows as points; it may return them in another order."""

    dimensions: ClassVar[tuple[int, ...]] = (2,)
    smooth: ClassVar[bool] = False
    chunk_values: ClassVar[int] = 3 * 2**19

    @property
    def reorders(self) -> bool:
        """Whether decoded points are in another order than the encoded ones."""
        return False

    @property
    def in_blocks(self) -> bool:
        """Whether `blocks` is supported: some of the encoded points can be decoded without the others."""
        return False

    def prepared(self, whole: Particles, order: str = "free") -> Self:
        """The codec for any part of these particles; `order` is "keep" or "free"."""
        return self

    def curve(self, positions: Array, tolerance: Tolerance) -> Lattice | None:
        """The lattice along whose Morton curve positions are best sorted for this codec; None where any will serve."""
        return None

    def blocks(self, data: bytes | memoryview, shape: tuple[int, ...]) -> Blocks | None:
        """The encoded points as blocks that can be decoded alone; None if only all of them can be decoded."""
        return None

    def permutation(self, positions: Array, data: bytes) -> Array | None:
        """The original index of each decoded point: decoded[i] is positions[permutation[i]]; None if the order is kept.

        `data` is their encoding.
        """
        return None


def _describe(values: Any) -> str:
    if not hasattr(values, "dtype"):
        return type(values).__name__
    order = "" if values.flags.c_contiguous else ", not C-contiguous"
    return f"{values.dtype} of shape {tuple(values.shape)}{order}"


def _check_option(codec: Codec, field: dataclasses.Field) -> None:
    value, limits = getattr(codec, field.name), field.metadata
    name = f"{codec.id}: {field.name}"
    if "enum" in limits and (hasattr(value, "shape") or value not in limits["enum"]):
        raise WorkbenchError(f"{name} must be one of {', '.join(map(repr, limits['enum']))}; got {value!r}")
    if _json_type(field) == "boolean" and not isinstance(value, bool):
        raise WorkbenchError(f"{name} must be True or False; got {value!r}")
    if not {"minimum", "maximum"} & set(limits) or (value is None and field.default is None):
        return
    low, high = limits.get("minimum", -math.inf), limits.get("maximum", math.inf)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not low <= value <= high or (_json_type(field) == "integer" and value != int(value)):
        raise WorkbenchError(f"{name} must be {_json_type(field)} from {low} to {high}; got {value!r}")


def _json_type(field: dataclasses.Field) -> str:
    declared = getattr(field.type, "__name__", str(field.type))   # text, or a class where annotations are evaluated
    names = {"bool": "boolean", "int": "integer", "float": "number", "str": "string", "tuple": "array", "dict": "object"}
    return next((json for python, json in names.items() if declared.startswith((python, f"Mapping[{python}"))), "object")


def _property(field: dataclasses.Field) -> dict[str, Any]:
    kind: str | list[str] = _json_type(field)
    if "None" in str(field.type):
        kind = [str(kind), "null"]
    return {"type": kind, "default": _plain(field.default), **field.metadata}


def _plain(value: Any) -> Any:
    """The value as a JSON type."""
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    return value.item() if isinstance(value, np.generic) else value
