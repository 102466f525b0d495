"""The decoder of interpolated fields: every part is checked against the shape before it is used."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.codecs.codec import CodecFailed
from workbench.codecs.inflating import inflated
from workbench.codecs.interpolation_fit import Weights
from workbench.codecs.interpolation_grid import AXES, Axes, Pass, coarsest, every, four_axes, passes, steps_of
from workbench.codecs.interpolation_model import Model, networks_of, require_model
from workbench.codecs.interpolation_stream import Blocks, Header, kind_of
from workbench.codecs.prequantised import Prequantised


def decoded(
    data: bytes, shape: Sequence[int], dtype: np.dtype, trained: Model | None, spacing: int
) -> np.ndarray:
    """The values whose coordinates are multiples of the spacing, except along frozen axes; the others are 0."""
    four = four_axes(shape)
    header, coarse_bytes, tables_bytes, view = Header.from_bytes(data)
    model = None if header.model is None else _required(header.model, header.frozen, trained, shape)
    value, order = np.zeros(four, dtype), passes(four, header.frozen)
    places = every(coarsest(four, header.frozen), header.frozen)
    value[places] = Prequantised()._decode_piece(bytes(view[:coarse_bytes]), value[places].shape, dtype)
    side = _inflated(view[coarse_bytes : coarse_bytes + tables_bytes], order)
    weights, side = weights_from(side, order)
    blocks = Blocks.from_bytes(side, view[coarse_bytes + tables_bytes :], order)
    steps = steps_of(order, header.step, header.finer)
    pairs = zip(weights, steps.tolist(), strict=True)
    numbers = np.array([each.for_kernel(header.mean, step / 2, dtype) for each, step in pairs], dtype).reshape(-1)
    blocks.decode(order, numbers, networks_of(model, order), steps, value, spacing)
    return value


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
