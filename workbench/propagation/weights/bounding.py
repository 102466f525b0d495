"""A tensor within a bound, as an archive will decode it, and the bytes that it takes there.

Weights have no neighbours that predict them, so the codec is the built-in one for such numbers unless another is asked for:
values on a lattice, on which zeros stay zeros, and the scales of rows and columns. A small tensor is encoded for each
bound. Of a large one, the lattice is all that its decoded values need, and the size is that of a sample of its rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from workbench import codecs
from workbench.archive.content.variable import numbers_within
from workbench.codecs import Codec
from workbench.codecs.pcodec import PCodec
from workbench.codecs.prequantised import Prequantised, lattice_numbers, lattice_step
from workbench.codecs.rounding import largest_magnitude
from workbench.data.variable import Form, Variable
from workbench.guarantees import Absolute, Exact, Limit, encode_guarded

OWN = "prequantised"
SMALL = 2**17        # values that are encoded for each bound;
SAMPLED = 2**15      # of more, so many in rows from all over the tensor


@dataclass(frozen=True, eq=False)
class Bounded:
    """The values of a tensor within a bound, and what says how many bytes they take."""

    values: np.ndarray
    encoded: Callable[[], float]

    @property
    def nbytes(self) -> float:
        """About how many bytes they take."""
        return self.encoded()


def codec_of(asked: str | Codec) -> Codec:
    """The codec of tensors: "auto" is the built-in one for numbers without neighbours."""
    if isinstance(asked, Codec):
        return asked
    return codecs.get(OWN if asked == "auto" else asked)


def scale_of(values: np.ndarray) -> float:
    """The root mean square of the values of a tensor that are finite and not zero; 0 for what can have no bound."""
    form = Form.of(values)
    if not (form.is_half or form.dtype in ("float32", "float64", "complex64", "complex128")):
        return 0.0
    sizes = np.abs(values.astype(np.complex128 if form.is_complex else np.float64)).reshape(-1)
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    return float(np.sqrt(np.mean((sizes / sizes.max()) ** 2)) * sizes.max()) if sizes.size else 0.0


def bounded(values: np.ndarray, bound: Absolute | Exact, codec: Codec) -> Bounded:
    """A tensor within a bound."""
    form = Form.of(values)
    if bound.eb == 0 or not values.size:
        return Bounded(values, partial(_bytes, form.numbers(values), 0.0, PCodec()))
    numbers, finer = numbers_within(Variable(values), form, bound)
    if finer.eb == 0:
        return Bounded(values, partial(_bytes, numbers, 0.0, PCodec()))
    if numbers.size > SMALL and isinstance(codec, Prequantised) and np.isfinite(numbers).all():
        step = lattice_step(finer.eb, largest_magnitude(numbers), numbers.dtype)
        decoded = np.multiply(lattice_numbers(numbers, step), step, dtype=np.float64).astype(numbers.dtype)
        return Bounded(form.values(decoded), partial(_bytes, numbers, finer.eb, codec))
    guarded = encode_guarded(codec, numbers, Limit("absolute", finer.eb))
    return Bounded(form.values(np.asarray(guarded.decoded).reshape(numbers.shape)), lambda: float(guarded.nbytes))


def _bytes(numbers: np.ndarray, eb: float, codec: Codec) -> float:
    """The bytes of these within a bound, of large ones by a sample."""
    part = _sample(numbers) if numbers.size > SMALL else numbers
    return encode_guarded(codec, part, Limit("absolute", eb)).nbytes * numbers.size / part.size


def _sample(numbers: np.ndarray) -> np.ndarray:
    """Rows from all over a tensor, or runs where rows are too long."""
    row = numbers[0].size
    table = numbers if row <= SAMPLED // 16 else numbers.reshape(-1)[: numbers.size // 4096 * 4096].reshape(-1, 4096)
    count = min(max(SAMPLED // math.prod(table.shape[1:]), 1), len(table))
    return np.ascontiguousarray(table[np.linspace(0, len(table) - 1, count).astype(np.int64)])
