"""A coded cache as a dataset, so that an archive keeps it: one member for each layer, one for each layer's latest tokens.

The bytes of the blocks are those of the entropy coder, which no codec makes smaller. An archive adds checksums and
names, and a member can be read alone.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from workbench.backend import to_host
from workbench.codecs.codec import CodecFailed
from workbench.errors import WorkbenchError
from workbench.propagation.caches.coded_blocks import Known, decode_blocks
from workbench.propagation.caches.kv_cache import KVCache
from workbench.propagation.caches.layers import StreamLayer, Turns, UnrotatedLayer, by_token
from workbench.propagation.caches.packed_codes import unpack_codes
from workbench.propagation.caches.steps import limits, restored, steps_of

_LAYER = struct.Struct("<IIIdddd")   # heads, width, pairs of blocks, the share of values, what the certificate says
_SIZES = struct.Struct("<II")    # bytes of a block of keys, and of its values with their steps


def cache_to_dataset(cache: KVCache) -> dict[str, np.ndarray]:
    """The members that `wb.compress(..., wb.Exact())` takes; `cache_from_dataset` makes the cache of them again."""
    if cache.coder != "entropy" or cache.bounds is not None:
        raise WorkbenchError("only a cache with coder='entropy' and without bounds has bytes to be stored")
    found = {
        "score_step": np.array(cache.score_step), "value_step": np.array(cache.value_step),
        "sizes": np.array([cache.recent, cache.block, cache.turns is not None], np.int64),
    }
    for layer in cache.layers:
        coded, start = cache.coded(layer), cache.coded_tokens.get(layer, 0)
        if isinstance(coded, StreamLayer):
            found[f"coded/{layer:03d}"] = np.frombuffer(_layer_bytes(coded, cache.certificate.score_bound), np.uint8)
        else:
            found[f"queries/{layer:03d}"] = np.append(*cache.query_sums(layer))
        held = to_host(cache.keys(layer)), to_host(cache.values(layer))
        found[f"latest/{layer:03d}"] = np.stack([each[:, start:] for each in held])
    return found


def cache_from_dataset(dataset: Mapping[str, Any], turns: Turns | None = None) -> KVCache:
    """The cache in a dataset, or in an archive of one (`wb.open(...).decompress()`): its tokens as they were decoded.

    New tokens may follow: their bytes are those that they would have had, and its certificate is about all. Distortions,
    and `fewest_bits`, are of the blocks that are coded from now on. Keys that were coded before the rotation need the
    `turns` of the model again.
    """
    def members(name: str) -> np.ndarray:
        if name not in dataset:
            raise WorkbenchError(f"a stored cache must have a member {name!r}; got {', '.join(list(dataset)[:4])} ...")
        return np.asarray(getattr(dataset[name], "values", dataset[name]))

    if (sizes := members("sizes")).shape != (3,):
        raise CodecFailed(f"the sizes of a stored cache must be three numbers; got the shape {sizes.shape}")
    recent, block, unrotated = sizes.tolist()
    if bool(unrotated) != (turns is not None):
        what = "before the rotation, which needs turns=lm.turns" if unrotated else "after the rotation: leave out turns"
        raise WorkbenchError(f"the keys of this cache were coded {what}")
    cache = KVCache(members("score_step").tolist(), members("value_step").tolist(), recent, block, turns=turns)
    for name in sorted(each for each in dataset if each.startswith("latest/")):
        layer, latest = int(name.removeprefix("latest/")), members(name)
        if f"coded/{layer:03d}" in dataset:
            older, coded, score_bound = _decoded_layer(layer, members(f"coded/{layer:03d}").tobytes(), block, turns)
            cache.restore(layer, *np.concatenate([older, latest], axis=2))
            cache.restore_coded(layer, coded, score_bound)
        else:
            cache.restore(layer, *latest)
            *sums, count = members(f"queries/{layer:03d}").tolist()
            cache.restore_queries(layer, np.reshape(sums, latest.shape[1::2]), int(count))
    return cache


def _layer_bytes(coded: StreamLayer, score_bound: float) -> bytes:
    sizes = np.array([len(each) for each in coded.blocks], "<u4")
    stated = coded.share, coded.key_error, coded.value_error, score_bound
    head = _LAYER.pack(*coded.steps.shape, len(coded.blocks) // 2, *stated)
    return b"".join([head, coded.steps.astype("<i2").tobytes(), sizes.tobytes(), *coded.blocks])


def _decoded_layer(
    layer: int, data: bytes, block: int, turns: Turns | None
) -> tuple[np.ndarray, StreamLayer, float]:
    """Keys and values, (2, heads, tokens, width), what is kept of them, and the largest change of a score so far."""
    if len(data) < _LAYER.size:
        raise CodecFailed(f"a stored layer has a header of {_LAYER.size} bytes; got {len(data)}")
    heads, width, pairs, share, *errors, score_bound = _LAYER.unpack_from(data)
    if not (min(errors) >= 0 and max(errors) <= 1 and score_bound >= 0):
        raise CodecFailed(f"a stored layer states errors of {errors} and a score bound of {score_bound}: it is damaged")
    channels, at = heads * width, _LAYER.size
    body = at + 2 * channels + _SIZES.size * pairs
    if len(data) < body:
        raise CodecFailed(f"a layer of {pairs} blocks of {channels} channels need {body:,} bytes; got {len(data):,}")
    steps = np.frombuffer(data, "<i2", channels, at).reshape(heads, width)
    ends = body + np.cumsum([0, *np.frombuffer(data, "<u4", 2 * pairs, at + 2 * channels).tolist()])
    if ends[-1] != len(data):
        raise CodecFailed(f"a layer whose blocks end at byte {ends[-1]} must end there; got {len(data)} bytes")
    parts = [data[a:b] for a, b in pairwise(ends)]
    codes, numbers = zip(*(_values(each, block) for each in parts[1::2]), strict=True)
    keys, known_keys = decode_blocks(parts[::2], channels, block, Known.nothing(channels))
    values, known_values = decode_blocks(numbers, channels, block, Known.nothing(channels))
    key_steps, value_steps = steps_of(steps), steps_of(np.concatenate(codes))
    stated = layer, steps.astype(np.int16), share, block
    coded = StreamLayer(*stated) if turns is None else UnrotatedLayer(*stated, turns)
    decoded = restored(by_token(keys, heads), key_steps[:, None, :])
    if isinstance(coded, UnrotatedLayer):
        decoded = coded.rotated_keys(0, decoded)
    both = np.stack([decoded, restored(by_token(values, heads), value_steps[None, :, None])])
    coded.go_on_after(parts, (known_keys, known_values), float(limits(value_steps).max()), (errors[0], errors[1]))
    return both, coded, score_bound


def _values(data: bytes, block: int) -> tuple[np.ndarray, bytes]:
    codes, end = unpack_codes(data, block)
    return codes, data[end:]
