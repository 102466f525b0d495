"""Variables as a file of the source stored them, where that keeps the promise about their values.

A file may hold numbers packed: as integers with a scale and an offset, as floats of fewer bits, as dates in days. Packing
rounds. An archive has bounded the errors of the unpacked values and may have used up the bound, so that rounding again
would go beyond it. So each variable is packed and unpacked here, and the difference counts: it must fit between the largest
error that the certificate states and the limit; where nothing is known of these, it must be zero.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from workbench.archive.archive import Archive
from workbench.data.labelled import FILLS, PACKING
from workbench.errors import WorkbenchError
from workbench.guarantees import Limit
from workbench.run.chunked_field import grid

OF_PACKING = ("dtype", *PACKING, *FILLS, "_Unsigned", "units", "calendar")   # what of an encoding changes numbers
MARGIN = 1 + 1e-12   # above the rounding of the sum of two errors


def room_of(archive: Archive) -> float:
    """How much more the values of an archive may change without breaking its promise.

    >>> import workbench as wb
    >>> room_of(wb.compress(np.arange(100.0), wb.Absolute(0.0)))
    0.0
    """
    promise = archive.certificate[archive.data.layout.name]
    limit, error = promise.limit, promise.figures.get("largest_error")
    if archive.kind != "field" or not isinstance(limit, Limit) or limit.relative or error is None:
        return 0.0
    return max(limit.value - error * MARGIN, 0.0) / MARGIN


def packed_within(name: str, variable: Any, room: float) -> tuple[Any, list[str]]:
    """The variable with the encoding of the source, or with as much of it as leaves its values in their bound.

    The sentences say what was left out of the encoding.

    >>> import xarray
    >>> encoding = {"dtype": "int16", "scale_factor": 0.5, "_FillValue": -1}
    >>> variable = xarray.Variable("x", np.array([1.0, 2.3]), encoding=encoding)
    >>> packed_within("T", variable, 0.3)[0].encoding["dtype"], packed_within("T", variable, 0.1)[0].encoding
    ('int16', {})
    """
    full = variable.encoding
    for encoding in _encodings(full):
        candidate = variable.copy(deep=False)
        candidate.encoding = _without_new_fill(variable, encoding)
        if _keeps_numbers(candidate) or _fits(name, candidate, room):
            left = [key for key in full if key not in encoding and key in OF_PACKING]
            return candidate, [_in_words(name, variable, full)] if left else []
    raise WorkbenchError(f"{name!r} of {variable.dtype} would not come back from the file as it is: leave it out")


def _encodings(full: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The encoding of the source, without what changes numbers, and none."""
    yield dict(full)
    yield {key: entry for key, entry in full.items() if key not in OF_PACKING}
    yield {}


def _without_new_fill(variable: Any, encoding: dict[str, Any]) -> dict[str, Any]:
    """No fill value where the source had none; xarray would add one."""
    dates = "calendar" in encoding or variable.dtype.kind in "Mm"
    added = (variable.dtype.kind == "f" or dates) and not any(fill in encoding for fill in FILLS)
    return {**encoding, "_FillValue": None} if added and encoding else encoding


def _keeps_numbers(variable: Any) -> bool:
    """Whether numbers are stored in their own type, as they are, which needs no look at them."""
    encoding, dtype = variable.encoding, variable.dtype
    changing = [encoding[key] for key in OF_PACKING if key != "dtype" and encoding.get(key) is not None]
    of_floats = dtype.kind == "f" and all(isinstance(one, float | np.floating) and np.isnan(one) for one in changing)
    return dtype.kind in "fiu" and encoding.get("dtype", dtype) == dtype and (of_floats or not changing)


def _fits(name: str, variable: Any, room: float) -> bool:
    """Whether packed values differ by no more than `room`; arrays of Dask are looked at block by block."""
    places: Any = [...]
    if variable.chunks:
        places = grid(variable.shape, tuple(map(max, variable.chunks)))
    changes = (_change(name, variable[place].compute()) for place in places)
    return all(change is not None and change <= room for change in changes)


def _change(name: str, variable: Any) -> float | None:
    """The largest difference of values that are packed and unpacked again; None if others than numbers change."""
    from xarray import conventions

    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            coded = conventions.encode_cf_variable(variable, name=name)
            back = conventions.decode_cf_variable(name, coded, decode_timedelta=variable.dtype.kind == "m").values
    except Exception:   # xarray, NumPy and cftime raise errors of many kinds where values do not fit
        return None
    values = variable.values
    if values.shape != back.shape:
        return None
    if values.dtype.kind not in "fiu" or back.dtype.kind not in "fiu":
        return 0.0 if _alike(values, back) else None
    return _largest_difference(values, back)


def _largest_difference(values: np.ndarray, back: np.ndarray) -> float | None:
    """The largest difference of finite numbers; None if others are not the same."""
    same = (values == back) | ((values != values) & (back != back))
    if same.all():
        return 0.0
    if not (np.isfinite(values) & np.isfinite(back))[~same].all():
        return None
    wide = np.float64 if values.dtype.itemsize < 8 or values.dtype.kind == "f" else np.longdouble
    return float(abs(back[~same].astype(wide) - values[~same].astype(wide)).max())


def _alike(values: np.ndarray, back: np.ndarray) -> bool:
    if values.dtype.kind in "Mm":
        return back.dtype.kind == values.dtype.kind and bool(((values == back) | (np.isnat(values) & np.isnat(back))).all())
    return bool(np.array_equal(values, back))


def _in_words(name: str, variable: Any, full: Mapping[str, Any]) -> str:
    dtype, packed = full.get("dtype"), " and ".join(key for key in PACKING if full.get(key) is not None)
    stored = [*([str(np.dtype(dtype))] if dtype not in (None, str) else []), *([packed] if packed else [])]
    return (
        f"{name} is written as {variable.dtype} and not as in the source ({' with '.join(stored) or 'packed'}): packing it "
        "again would change values beyond their bound"
    )
