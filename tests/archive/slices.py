"""Fields whose slices have little in common, and what an archive promises of each, decided by plain NumPy."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

import workbench as wb
from archive import samples
from archive.samples import assert_same_bits, assert_within
from workbench.guarantees import SliceLimits


def limit_of(values: np.ndarray, valid: np.ndarray, bound: wb.Absolute) -> float:
    """The limit of one slice: of a range, its share rounded down to six digits."""
    kept = values[valid & np.isfinite(values)].tolist()
    if not isinstance(bound, wb.Relative) or not kept:
        return 0.0 if isinstance(bound, wb.Relative) else bound.eb
    spread = max(kept) - min(kept)
    share = bound.eb * spread
    if isinstance(spread, int) and Fraction(share) > Fraction(bound.eb) * spread:
        share = math.nextafter(share, 0)
    digits = Fraction(10) ** -330   # in the last place
    while share >= 10**6 * digits:
        digits *= 10
    return float(Fraction(share) // digits * digits)


def assert_slices(field: wb.Field, archive: wb.Archive, bounds: list, axis: int) -> None:
    """Every slice is within its own limit, exactly, and the certificate states these limits."""
    decoded, limits = archive.decompress(), []
    for number, bound in enumerate(bounds):
        place = (slice(None),) * axis + (slice(number, number + 1),)
        values, hidden = field.values[place], None if field.mask is None else field.mask[place]
        limits.append(limit_of(values, np.ones(values.shape, bool) if hidden is None else ~hidden, bound))
        own = wb.PointwiseRelative if isinstance(bound, wb.PointwiseRelative) else wb.Absolute
        if values.dtype.kind in "iu":
            pairs = zip(values.ravel().tolist(), decoded.values[place].ravel().tolist(), strict=True)
            assert all(abs(one - other) <= limits[-1] for one, other in pairs)
        else:
            assert_within(values, decoded.values[place], own(limits[-1]), mask=hidden)
    assert_same_bits(field.valid, decoded.valid)
    stated = archive.certificate["values"].limit
    assert limits == (stated.values if isinstance(stated, SliceLimits) else [stated.value] * len(limits))


def layers(shape=(6, 20, 31), axis=0, dtype="f4", seed=0):
    """Slices whose ranges differ by many orders of magnitude."""
    values = samples.field(shape, np.float64, seed)
    scales = 10.0 ** np.linspace(-6, 9, shape[axis])
    return np.moveaxis(np.moveaxis(values, axis, -1) * scales, -1, axis).astype(dtype)


def check(field, bound, axis, codec="auto", **how):
    """An archive whose slices keep their limits, and which verifies."""
    archive = wb.compress(field, wb.PerSlice(bound, axis), codec, **how)
    each = bound if isinstance(bound, list) else [bound] * field.values.shape[axis]
    assert_slices(field, archive, each, axis % field.values.ndim)
    assert archive.verify(field).passed
    return archive


@st.composite
def hard_fields(draw):
    """A field, and an axis along which its slices have little in common; some are all masked, constant or missing."""
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))
    axis = draw(st.integers(0, len(shape) - 1))
    dtype = draw(st.sampled_from(["f4", "f8", "i2", "u8", "i8"]))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = np.moveaxis(random.normal(size=shape), axis, 0)
    if dtype[0] in "iu":
        info = np.iinfo(dtype)
        values = np.stack([np.clip(one * 10.0 ** draw(st.integers(0, 15)), info.min / 2, info.max / 2) for one in values])
    else:
        values = np.stack([_slice(draw, one) for one in values])
    values = np.moveaxis(values.astype(dtype), 0, axis)
    mask = random.random(shape) < 0.3 if draw(st.booleans()) else None
    if mask is not None and draw(st.booleans()):
        np.moveaxis(mask, axis, 0)[draw(st.integers(0, shape[axis] - 1))] = True
    return wb.Field(values, mask=mask), axis


def _slice(draw, values):
    kind = draw(st.sampled_from(["as it is", "huge", "tiny", "constant", "nan", "gaps"]))
    if kind == "huge":
        return values * 1e30
    if kind == "tiny":
        return values * 1e-30
    if kind == "constant":
        return np.full_like(values, 3.25)
    if kind == "nan":
        return np.full_like(values, np.nan)
    return np.where(values > 0.5, np.inf, values) if kind == "gaps" else values
