"""The codec of a field for which none is requested: the one that makes a sample of it smallest, or the fastest.

No codec is best for all fields and bounds, and none can tell from a field's description. So each built-in one encodes the
values in the middle of the field, within the requested limit and with all corrections that the limit needs. The certificate
states what came of it. A part of the field is enough, so that fields in many parts get the same codec as whole ones. Codecs
that need another package are not chosen unasked, as every reader would need it, too.

The middle may be unlike the rest. `interpolation` tries a lattice for each chunk, so it is preferred to a codec that is
hardly smaller there.

Where speed matters, nothing is tried: of the built-in codecs for floats, `staged` is the fastest under every kind of bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np

from workbench import backend, codecs
from workbench.arguments import one_of
from workbench.codecs import Codec
from workbench.codecs.earlier import Earlier
from workbench.codecs.gaps import filled
from workbench.codecs.portable import Portable
from workbench.errors import WorkbenchError
from workbench.guarantees import Limit, encode_guarded
from workbench.slabs import Slices

SAMPLED = 2**16   # values that are tried
HARDLY = 1.01     # times as many bytes as another codec, at which `interpolation` is preferred

Speed = Literal["small", "fast"]
Profile = Literal["own", "portable"]

FREE: Mapping[str, Speed] = MappingProxyType({"auto": "small", "fast": "fast"})   # names for a choice, by what matters


def of_profile(profile: Profile, codec: Any = "auto", speed: Speed = "small", columns: Any = None) -> Any:
    """The codec of a profile: the requested one or, where plain Zarr must read all arrays, the one that such arrays have.

    >>> of_profile("portable", "auto", "small", None).id, of_profile("own", "sz3", "small", None)
    ('portable', 'sz3')
    """
    if one_of("profile", profile, get_args(Profile)) == "own":
        return codec
    free = isinstance(codec, Portable) or (isinstance(codec, str) and codec == "auto")
    if not free or speed != "small" or columns is not None:
        got = f"codec={codec!r}, speed={speed!r}, column_codec={columns!r}"
        raise WorkbenchError(f"profile='portable' chooses the codec; got {got}, too: leave these out")
    return codec if isinstance(codec, Portable) else Portable()


def is_free(codec: Any) -> bool:
    """Whether a choice is requested, and no codec.

    >>> is_free("auto"), is_free("fast"), is_free("staged")
    (True, True, False)
    """
    return isinstance(codec, str) and codec in FREE


def usual(dtype: np.dtype, speed: Speed = "small") -> str:
    """The codec of fields without a trial.

    >>> usual(np.dtype(np.int16)), usual(np.dtype(np.float32), "fast")
    ('prequantised', 'staged')
    """
    if dtype.kind in "iu":
        return "prequantised"
    return "staged" if speed == "fast" else "interpolation"


def middle(shape: Sequence[int]) -> Slices:
    """The middle of a field of this shape, with at most `SAMPLED` values: the longest axes are cut, to one length.

    >>> middle((30, 192, 288))
    (slice(0, 30, None), slice(73, 119, None), slice(121, 167, None))
    """
    length = max(shape)
    while math.prod(min(size, length) for size in shape) > SAMPLED:
        length -= max(length // 64, 1)
    starts = [(size - min(size, length)) // 2 for size in shape]
    return tuple(slice(start, start + min(size, length)) for start, size in zip(starts, shape, strict=True))


def needs_trial(requested: Any, speed: Speed, dtype: np.dtype, limit: Limit) -> bool:
    """Whether a trial decides about the codec of a field."""
    return is_free(requested) and speed == "small" and dtype.kind == "f" and limit.value > 0


def chosen(
    values: np.ndarray, mask: np.ndarray | None, limit: Limit, earlier: Earlier | None = None
) -> tuple[Codec, str]:
    """The codec that makes these values smallest, and the trial in words; `earlier` are these values some steps before."""
    values = np.ascontiguousarray(values)
    hidden = None if mask is None else np.ascontiguousarray(mask)
    bits: dict[Codec, float] = {}
    for name in codecs.automatic():
        try:
            codec = tuned(codecs.get(name), values, mask, limit)
            following = codec if earlier is None else codec.following(earlier)
            guarded = encode_guarded(following, values, limit, mask=hidden)
        except WorkbenchError:   # a codec that cannot keep this limit is not the smallest
            continue
        bits[codec] = 8 * guarded.nbytes / values.size
    if not bits:
        return codecs.get(usual(values.dtype)), ""
    preferred = sorted(bits, key=lambda codec: bits[codec] / (HARDLY if codec.id == "interpolation" else 1))
    sizes = ", ".join(f"{codec.id} {bits[codec]:.3g}" for codec in preferred)
    return preferred[0], f"chosen by trial on {values.size:,} values in the middle: {sizes} bits per value"


def worthwhile(
    codec: Codec, values: np.ndarray, mask: np.ndarray | None, limit: Limit, count: int
) -> tuple[Codec, str]:
    """The codec without options that would take more room than they save in `count` values, and that in words."""
    if backend.on_device(values) or values.dtype.kind != "f":
        return codec, ""
    found = codec.worthwhile(_shown(values, mask), limit.tolerance, count)
    left = [name for name, value in codec.to_dict().items() if found.to_dict()[name] != value]
    if not left:
        return found, ""
    tried = f"on {values.size:,} values in the middle it takes more room than it saves"
    return found, f"left out, as {tried}: {', '.join(left)}"


def tuned(codec: Codec, values: np.ndarray, mask: np.ndarray | None, limit: Limit) -> Codec:
    """The codec with the options that suit a sample, of which masked values are no part."""
    if backend.on_device(values) or values.dtype.kind != "f":
        return codec
    return codec.tuned(_shown(values, mask), limit.tolerance)


def _shown(values: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    valid = np.isfinite(values) if mask is None else np.isfinite(values) & ~mask
    return np.ascontiguousarray(values if valid.all() else filled(values, valid))
