"""A scalar field on a regular grid of one to four dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.data.labelled import Labelled, joined, to_data_array
from workbench.data.summary_html import size, summary
from workbench.data.taking import as_array, conversion, lengths, masked_parts, taken
from workbench.errors import WorkbenchError

INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
DTYPES = ("float32", "float64", *INTEGERS)
MOST_SCANNED = 2**24   # values whose range is shown in a notebook: some hundredths of a second


@dataclass(frozen=True, eq=False, repr=False)
class Field:
    """Values on a grid, 1-D to 4-D, in float32, float64 or any integer type; NaN and infinities are allowed and kept.

    `spacing` is the distance between neighbouring points along each axis (one number, or one per axis; 1 when not
    given). `mask` marks values without meaning: fill values, or land in an ocean field. The mask of a masked array, of
    NumPy, Dask, netCDF4 or astropy, is taken over, and joined with `mask` if both are given. An array of xarray or a Series
    of pandas brings its name, dimensions, coordinates and attributes, and a quantity of astropy, pint or unyt its unit, as
    metadata; `to_xarray` gives them back.

    A writeable NumPy array is copied, so that later writes to it change nothing here. Set `array.flags.writeable = False`
    to hand over a large one without a copy. CuPy arrays are never copied, and must not be written to afterwards.

    >>> Field(np.zeros((64, 32), np.float32), spacing=0.5, name="temperature")
    Field('temperature', 64 x 32, float32)
    >>> Field(np.ma.masked_equal([1, 2, -999], -999))
    Field(3, int64, 1 masked)
    """

    values: Array
    spacing: tuple[float, ...]
    name: str | None = None
    mask: Array | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __init__(
        self,
        values: Any,
        spacing: float | Sequence[float] | None = None,
        name: str | None = None,
        mask: Any = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        labelled = Labelled.of(values)
        plain, hidden = masked_parts("values", labelled.values)
        checked = _values(plain)
        entries = {
            "values": checked,
            "spacing": _spacing(spacing, checked.ndim),
            "name": _name(labelled.name if name is None else name),
            "mask": _mask(mask, hidden, checked),
            "metadata": joined(labelled.metadata, metadata),
        }
        for key, value in entries.items():
            object.__setattr__(self, key, value)

    @classmethod
    def of(cls, data: Any) -> Field:
        """The field itself, or a field that shares the memory of an array: only for calls during which nobody writes to it.

        >>> Field.of(np.zeros(3)).shape
        (3,)
        """
        if isinstance(data, cls):
            return data
        return cls(backend.read_only(data) if type(data) in (np.ndarray, np.ma.MaskedArray) else data)

    def to_xarray(self) -> Any:
        """The field as a DataArray of xarray, with the dimensions, coordinates and attributes that it came with.

        Masked values become NaN. Fields that came without names of dimensions have axis_0, axis_1 and so on.

        >>> Field([[1.0, 2.0]], name="T", metadata={"dimensions": ["time", "lat"], "units": "K"}).to_xarray().dims
        ('time', 'lat')
        """
        mask = None if self.mask is None else backend.to_host(self.mask)
        return to_data_array(backend.to_host(self.values), mask, self.name, self.metadata)

    def require_floats(self, what: str) -> None:
        """Refuse integers where they would have to be rounded; `what` names the operation that needs floats.

        >>> Field([1, 2]).require_floats("a limit")
        Traceback (most recent call last):
        workbench.errors.WorkbenchError: a limit needs floating-point values; got Field(2, int64): convert with ...
        """
        if self.values.dtype.kind != "f":
            convert = "wb.Field(field.values.astype('float32'), mask=field.mask)"
            raise WorkbenchError(f"{what} needs floating-point values; got {self!r}: convert with {convert}")

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of points along each axis."""
        return tuple(self.values.shape)

    @property
    def valid(self) -> Array:
        """True where a value is finite and not masked."""
        xp = backend.namespace(self.values)
        finite = xp.isfinite(self.values)
        return finite if self.mask is None else finite & ~self.mask

    def __reduce__(self) -> tuple[Callable[..., Field], tuple[Any, ...]]:
        return Field, (self.values, self.spacing, self.name, self.mask, dict(self.metadata))

    def __repr__(self) -> str:
        name = f"{self.name!r}, " if self.name else ""
        masked = "" if self.mask is None else f", {int(self.mask.sum()):,} masked"
        return f"Field({name}{' x '.join(map(str, self.shape))}, {self.values.dtype}{masked})"

    def _repr_html_(self) -> str:
        units = self.metadata.get("units")
        rows = {
            "name": self.name or "",
            "shape": " x ".join(f"{n:,}" for n in self.shape),
            "type": str(self.values.dtype),
            "range": self._range(),
            "spacing": " x ".join(f"{step:.6g}" for step in self.spacing),
            "units": units if isinstance(units, str) else "",
            "masked": "" if self.mask is None else f"{int(self.mask.sum()):,}",
            "size": size(self.values.nbytes),
        }
        return summary(repr(self), rows, self.metadata)

    def _range(self) -> str:
        """The smallest and largest valid value, where finding them takes no time that one would notice."""
        if backend.on_device(self.values) or self.values.size > MOST_SCANNED:
            return ""
        valid = self.valid
        found = self.values[valid]
        rest = "" if found.size == valid.size else f", of {found.size:,} finite, unmasked values"
        return f"{found.min():.6g} to {found.max():.6g}{rest}" if found.size else "no finite, unmasked value"


def _values(given: Any) -> Array:
    array = as_array("values", given)
    if array.dtype.name not in DTYPES:   # of either byte order
        raise WorkbenchError(
            f"values must be float32, float64 or integers of at most 64 bits; got {array.dtype}: {conversion(array.dtype)}"
        )
    if not 1 <= array.ndim <= 4:
        raise WorkbenchError(f"values must have 1 to 4 dimensions; got shape {array.shape}")
    if array.size == 0:
        raise WorkbenchError(f"values must not be empty; got shape {array.shape}")
    return taken(array)


def _name(given: Any) -> str | None:
    if given is not None and not isinstance(given, str):
        raise WorkbenchError(f"name must be text or None; got {given!r}")
    return given


def _spacing(given: float | Sequence[float] | None, dimensions: int) -> tuple[float, ...]:
    spacing = lengths(1.0 if given is None else given, dimensions)
    if spacing is None:
        raise WorkbenchError(f"spacing must be one number or {dimensions} of them; got {given!r}")
    if not all(0 < step < math.inf for step in spacing):
        raise WorkbenchError(f"spacing must be positive and finite; got {given!r}")
    return spacing


def _mask(given: Any, hidden: np.ndarray | None, values: Array) -> Array | None:
    """The mask given and that of a masked array, joined."""
    if given is None:
        return None if hidden is None else taken(hidden)
    mask = given if backend.on_device(given) else _plain_mask(given)
    backend.namespace(mask, values)
    if mask.dtype != bool or mask.shape != values.shape:
        raise WorkbenchError(f"mask must be boolean of shape {values.shape}; got {mask.dtype} of shape {mask.shape}")
    return taken(mask) if hidden is None else backend.read_only(mask | hidden)


def _plain_mask(given: Any) -> np.ndarray:
    """A mask as a plain array: masked entries of a mask count as masked."""
    try:
        found: np.ndarray = np.ma.filled(np.ma.asarray(given), True)
    except (ValueError, TypeError) as error:
        raise WorkbenchError(f"mask must be a boolean array; got {error}") from None
    return found
