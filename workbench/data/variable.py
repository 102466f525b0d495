"""An array of any type and shape, with its name and what else it carries: dates, text, booleans, complex numbers, halves.

Codecs take numbers of 32 and 64 bits on grids of one to four dimensions. A `Form` says how any other array is such numbers,
and how these become the array again, bit for bit: dates are counts of their unit, text is its code points, a complex number
is two, and a number of 16 bits is its bits, or the same number in 32 bits where an error bound applies to it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from workbench import backend
from workbench.data.field import DTYPES
from workbench.data.labelled import LONGEST_TEXT, Labelled, joined
from workbench.data.summary_html import size, summary
from workbench.data.taking import masked_parts, taken
from workbench.errors import WorkbenchError, briefly

TEXT = "text"   # of any length, which NumPy has as objects
HALVES = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
MOST_AXES = 4
_NO_TEXT = 2**32 - 1   # the length that stands for None
_FORMED = re.compile(r"[<>|=][MmUS]\d+(\[\d*[A-Za-z]{1,2}\])?")


@dataclass(frozen=True, eq=False, repr=False)
class Variable:
    """An array of any type and shape: what `wb.compress` takes beside particles and fields, and keeps exactly.

    Numbers may have a bound, also complex ones and those of 16 bits. Text may be of any length.

    >>> Variable(np.array(["2026-11-26", "NaT"], "M8[D]"), "time")
    Variable('time', 2, datetime64[D])
    >>> Variable(["A1", None]).values.tolist()
    ['A1', None]
    """

    values: np.ndarray
    name: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __init__(self, values: Any, name: str | None = None, metadata: Mapping[str, Any] | None = None) -> None:
        labelled = Labelled.of(values)
        plain, hidden = masked_parts("values", labelled.values)
        if hidden is not None:
            raise WorkbenchError(
                f"an array of {plain.dtype} and shape {plain.shape} must have no masked entries; got {hidden.sum():,}: "
                "fill them by array.filled(...); numbers of 32 and 64 bits on 1 to 4 axes may be masked"
            )
        object.__setattr__(self, "values", _taken(backend.to_host(plain)))
        object.__setattr__(self, "name", labelled.name if name is None else name)
        object.__setattr__(self, "metadata", joined(labelled.metadata, metadata))
        if not isinstance(self.name, str | None):
            raise WorkbenchError(f"name must be text or None; got {self.name!r}")
        Form.of(self.values)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of values along each axis."""
        return self.values.shape

    def __reduce__(self) -> tuple[Callable[..., Variable], tuple[Any, ...]]:
        return Variable, (self.values, self.name, dict(self.metadata))

    def __repr__(self) -> str:
        name = f"{self.name!r}, " if self.name else ""
        kind = TEXT if self.values.dtype.kind == "O" else str(self.values.dtype)
        return f"Variable({name}{' x '.join(map(str, self.shape)) or 'one value'}, {kind})"

    def _repr_html_(self) -> str:
        return summary(repr(self), {"size": size(self.values.nbytes)}, self.metadata)


@dataclass(frozen=True)
class Form:
    """The type and shape of an array, from which follows how it is stored as numbers.

    >>> form = Form.of(np.array([[1 + 2j, 3j]]))
    >>> form.numbers(np.array([[1 + 2j, 3j]])).tolist()
    [[[1.0, 2.0], [0.0, 3.0]]]
    >>> form.values(np.array([[[1.0, 2.0], [0.0, 3.0]]])).tolist()
    [[(1+2j), 3j]]
    """

    dtype: str
    shape: tuple[int, ...]

    @classmethod
    def of(cls, values: np.ndarray) -> Self:
        """The form of an array; refused if it cannot be kept."""
        dtype, kind = values.dtype, values.dtype.kind
        if kind == "O":
            if strangers := [one for one in values.flat if not isinstance(one, str | None)]:
                raise WorkbenchError(
                    f"objects must be text or None; got {briefly(strangers[0])}: convert them to text, or to numbers"
                )
            return cls(TEXT, values.shape)
        if kind == "T":
            return cls(TEXT, values.shape)
        name = dtype.str if kind in "MmUS" else dtype.name
        if not (kind in "MmUSb" or name in (*DTYPES, *HALVES, "complex64", "complex128")):
            columns = f": take its columns one by one, such as array[{dtype.names[0]!r}]" if dtype.names else ""
            raise WorkbenchError(f"an array must hold numbers of at most 64 bits, dates or text; got {dtype}{columns}")
        if kind in "US" and not 0 < dtype.itemsize <= 4 * LONGEST_TEXT:
            raise WorkbenchError(
                f"text must have 1 to {LONGEST_TEXT:,} characters; got {dtype}: give it as objects, array.astype(object)"
            )
        return cls(name, values.shape)

    @classmethod
    def stated(cls, dtype: Any, shape: Any) -> Self | None:
        """The form that an archive states; None if it is none."""
        sizes = isinstance(shape, list) and all(type(size) is int and 0 <= size < 2**62 for size in shape)
        names = (TEXT, "bool", *DTYPES, *HALVES, "complex64", "complex128")
        known = isinstance(dtype, str) and (dtype in names or _FORMED.fullmatch(dtype) is not None)
        return cls(dtype, tuple(shape)) if sizes and known else None

    @property
    def is_number(self) -> bool:
        """Whether a bound may apply to the values."""
        return self.dtype in (*DTYPES, *HALVES, "complex64", "complex128")

    @property
    def is_half(self) -> bool:
        """Whether the values have fewer bits than codecs take."""
        return self.dtype in HALVES

    @property
    def has_parts(self) -> bool:
        """Whether each value is several numbers, along a further axis: complex numbers, and text of fixed width."""
        return self.is_complex or self.dtype[1:2] in ("U", "S")

    @property
    def keeps_axes(self) -> bool:
        """Whether the axes of the array are those of its numbers: not those of text of any length, nor of many axes.

        >>> Form("complex64", (3, 4)).keeps_axes, Form("text", (3,)).keeps_axes
        (True, False)
        """
        fits = 1 <= len(self.shape) <= MOST_AXES - self.has_parts
        return self.dtype != TEXT and math.prod(self.shape) > 0 and fits

    @property
    def is_complex(self) -> bool:
        """Whether each value is two numbers."""
        return self.dtype.startswith("complex")

    @property
    def numpy(self) -> np.dtype:
        """The type of the array."""
        if self.dtype == TEXT:
            return np.dtype(object)
        if self.dtype in HALVES[1:]:
            try:
                import ml_dtypes
            except ImportError:
                raise WorkbenchError(f"arrays of {self.dtype} need ml_dtypes: pip install ml_dtypes") from None
            return np.dtype(getattr(ml_dtypes, self.dtype))
        return np.dtype(self.dtype)

    def numbers(self, values: np.ndarray, widened: bool = False) -> np.ndarray:
        """The array as numbers that codecs take; those of 16 bits as they are, or `widened` to 32."""
        if self.dtype == TEXT:
            return _encoded_text(values)
        values = np.ascontiguousarray(values).reshape(values.shape)
        if self.is_half:
            return _on_grid(values.astype(np.float32) if widened else values.view(f"u{values.itemsize}"))
        return _on_grid(_parts(values))

    def values(self, numbers: np.ndarray) -> np.ndarray:
        """The array of which these are the numbers."""
        if self.dtype == TEXT:
            return _decoded_text(numbers, self.shape)
        dtype = self.numpy
        if not math.prod(self.shape):
            return np.zeros(self.shape, dtype)
        if self.is_half and numbers.dtype == np.float32:
            return _narrowed(numbers, dtype).reshape(self.shape)
        flat = np.ascontiguousarray(numbers).reshape(-1).view(dtype)
        return flat[: math.prod(self.shape)].reshape(self.shape)

    def stored_shape(self, dtype: np.dtype) -> tuple[int, ...] | None:
        """The shape of the numbers, if they are of this type; None where it follows from the values, as that of text."""
        if self.dtype == TEXT:
            return None
        own = self.numpy
        return _grid_shape((*self.shape, own.itemsize // dtype.itemsize) if own.kind in "USc" else self.shape)

    def stored_kinds(self) -> tuple[str, ...]:
        """The types that the numbers may have."""
        if self.dtype == TEXT:
            return ("uint8",)
        own = _parts(np.zeros(1, self.numpy)).dtype.name if not self.is_half else f"uint{8 * self.numpy.itemsize}"
        return (own, "float32") if self.is_half else (own,)


def _taken(given: Any) -> np.ndarray:
    """An array of the caller, which cannot change later."""
    array = np.asarray(given)
    texts = array.dtype.kind in "OU" and not isinstance(given, np.ndarray)
    if texts and any(not isinstance(one, str) for one in np.asarray(given, object).flat):
        array = np.asarray(given, object)
    if array.dtype.kind in "OT":
        return backend.read_only(array.astype(object))
    return taken(array)


def _narrowed(numbers: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Numbers rounded to a type of 16 bits or fewer; a finite number beyond its largest one becomes that."""
    if dtype == np.float16:
        largest = float(np.finfo(dtype).max)
    else:
        import ml_dtypes

        largest = float(ml_dtypes.finfo(dtype).max)   # type: ignore[no-untyped-call]
    clipped = np.where(np.isfinite(numbers), np.clip(numbers, -largest, largest), numbers)
    return clipped.astype(dtype)


def _parts(values: np.ndarray) -> np.ndarray:
    """Dates, text of fixed width and complex numbers as the numbers that they consist of."""
    kind = values.dtype.kind
    if kind in "Mm":
        return values.view(np.int64)
    if kind == "b":
        return values.view(np.uint8)
    unit = {"U": "u4", "S": "u1", "c": f"f{values.itemsize // 2}"}.get(kind)
    if unit is None:
        return values
    return values.reshape(-1).view(unit).reshape(*values.shape, values.itemsize // np.dtype(unit).itemsize)


def _on_grid(numbers: np.ndarray) -> np.ndarray:
    """The numbers on a grid of one to four dimensions that is not empty."""
    if not numbers.size:
        return np.zeros(1, numbers.dtype)
    return numbers.reshape(_grid_shape(numbers.shape))


def _grid_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape of one to four dimensions for these; the first axes are joined."""
    if not math.prod(shape) or not shape:
        return (1,)
    first = len(shape) - MOST_AXES + 1
    return shape if first <= 1 else (math.prod(shape[:first]), *shape[first:])


def _encoded_text(values: np.ndarray) -> np.ndarray:
    """All lengths in bytes, and then the text as UTF-8."""
    encoded = [None if one is None else str(one).encode("utf-8", "surrogatepass") for one in values.flat]
    lengths = np.array([_NO_TEXT if one is None else len(one) for one in encoded], "<u4")
    data = np.frombuffer(lengths.tobytes() + b"".join(one for one in encoded if one), np.uint8)
    return data if data.size else np.zeros(1, np.uint8)


def _decoded_text(numbers: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    count, data = math.prod(shape), numbers.tobytes()
    if len(data) < 4 * count:
        raise WorkbenchError(f"{count:,} texts take at least {4 * count:,} bytes; got {len(data):,}")
    lengths = np.frombuffer(data, "<u4", count)
    ends = 4 * count + np.cumsum(np.where(lengths == _NO_TEXT, 0, lengths), dtype=np.int64)
    if count and int(ends[-1]) != len(data):
        raise WorkbenchError(f"texts must take {int(ends[-1]):,} bytes; got {len(data):,}")
    texts, begin = np.empty(count, object), 4 * count
    try:
        for number, (length, end) in enumerate(zip(lengths.tolist(), ends.tolist(), strict=True)):
            texts[number] = None if length == _NO_TEXT else data[begin:end].decode("utf-8", "surrogatepass")
            begin = end
    except UnicodeDecodeError as error:
        raise WorkbenchError(f"texts must be UTF-8: {error}") from None
    return texts.reshape(shape)
