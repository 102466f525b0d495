"""The decoder of interpolated fields: every part is checked against the shape before it is used."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.codecs.codec import CodecFailed
from workbench.codecs.earlier import Earlier
from workbench.codecs.inflating import inflated
from workbench.codecs.interpolation_fit import Weights
from workbench.codecs.interpolation_grid import AXES, Axes, Pass, coarsest, every, four_axes, passes, steps_of
from workbench.codecs.interpolation_model import Model, networks_of, require_model
from workbench.codecs.interpolation_stream import Blocks, Header, kind_of
from workbench.codecs.interpolation_time import Known, Multiples, coarsest_forecast, mean_left
from workbench.codecs.prequantised import Prequantised


def decoded(
    data: bytes, shape: Sequence[int], dtype: np.dtype, trained: Model | None, spacing: int, earlier: Earlier | None = None
) -> np.ndarray:
    """The values whose coordinates are multiples of the spacing, except along frozen axes; the others are 0."""
    four = four_axes(shape)
    header, coarse_bytes, tables_bytes, view = Header.from_bytes(data)
    model = None if header.model is None else _required(header.model, header.frozen, trained, shape)
    value, order = np.zeros(four, dtype), passes(four, header.frozen)
    places = every(coarsest(four, header.frozen), header.frozen)
    value[places] = Prequantised()._decode_piece(bytes(view[:coarse_bytes]), value[places].shape, dtype)
    side = _inflated(view[coarse_bytes : coarse_bytes + tables_bytes], order)
    known = _required_steps(earlier, shape, dtype) if header.in_time else None
    multiples, means = Multiples.none(order).numbers, [header.mean] * len(order)
    if known is not None:
        read, side = Multiples.read(side, order)
        multiples, means = read.numbers, [mean_left(header.mean, each) for each in read.numbers[1:]]
        if multiples[0].any():
            value[places] += coarsest_forecast(known, places, four, multiples[0])
    weights, side = weights_from(side, order)
    blocks = Blocks.from_bytes(side, view[coarse_bytes + tables_bytes :], order)
    steps = steps_of(order, header.step, header.finer)
    each = zip(weights, means, steps.tolist(), strict=True)
    numbers = np.array([own.for_kernel(mean, step / 2, dtype) for own, mean, step in each], dtype).reshape(-1)
    blocks.decode(order, numbers, networks_of(model, order), steps, value, spacing, multiples[1:], known)
    return value


def _required_steps(earlier: Earlier | None, shape: Sequence[int], dtype: np.dtype) -> Known:
    """The earlier steps from which a field of this shape and type was predicted."""
    if earlier is None:
        raise CodecFailed(
            "these values are predicted from those of earlier steps, which were not given: open the series that this step "
            "belongs to"
        )
    known = Known.of(earlier, shape, dtype)
    if known is None:
        found = ", ".join(f"{each.dtype} of shape {each.shape}" for each in earlier.values)
        raise CodecFailed(
            f"values of earlier steps must be {dtype} of shape {tuple(shape)}, and not too large; got {found}"
        )
    return known


def _required(checksum: int, frozen: Axes, trained: Model | None, shape: Sequence[int]) -> Model:
    """The model with which a field of this shape was encoded."""
    model = require_model(trained, checksum)
    if model.dimensions != len(shape) or frozen != tuple(axis + AXES - len(shape) for axis in model.frozen):
        raise CodecFailed(f"the model is for fields with {model.dimensions} axes, not for {shape} and these frozen ones")
    return model


def _inflated(data: memoryview, order: Sequence[Pass]) -> bytes:
    """The tables; no more of them than these passes can have."""
    return inflated(data, 2**17 + 64 * len(order) + 12 * sum(1 + (each.targets >> 12) for each in order))


def weights_from(side: bytes, order: Sequence[Pass]) -> tuple[list[Weights], bytes]:
    """The weights of each pass, and what follows them."""
    at = -(-len(order) // 8)
    if len(side) < at:
        raise CodecFailed("the weights of an interpolated field are truncated")
    new = np.unpackbits(np.frombuffer(side, np.uint8, at))
    latest: dict[int, Weights] = {}
    found = []
    for each, is_new in zip(order, new, strict=False):
        if is_new:
            latest[kind_of(each)], at = Weights.read(side, at, each)
        found.append(latest.setdefault(kind_of(each), Weights.usual(each)))
    return found, side[at:]
