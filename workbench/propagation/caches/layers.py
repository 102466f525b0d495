"""The coded tokens of one layer of a `KVCache`: as streams of bytes, packed for products, or by a codec within bounds.

Whatever the form, every decoded key and value is compared with the original here, and the largest errors are kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.codecs import Codec
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound
from workbench.guarantees.enforce import encode_guarded
from workbench.propagation.caches.blocked import Coded
from workbench.propagation.caches.coded_blocks import Known, encode_blocks
from workbench.propagation.caches.packed_blocks import PackedBlocks
from workbench.propagation.caches.packed_codes import pack_codes
from workbench.propagation.caches.steps import limits, multiples, restored, steps_of, value_codes
from workbench.propagation.language.arithmetic import attention_weights, mixed, rotated, scores

Turns = Callable[[int, int], Array]   # (first, count) -> the rotation at these positions, as `LanguageModel.turns`
ROTATION_ROUNDING = 1 + 2**-5   # times a bound: what rounding of the rotation may add, of keys up to 32,767 steps from zero
STEP_BITS = 16   # of a key's step, stored once for each channel of a layer


class CodedLayer(ABC):
    """The coded tokens of a layer.

    `key_limits` (heads, width) and `value_limit` bound the errors; `key_error` and `value_error` are the largest so far in
    units of these.
    """

    def __init__(self, key_limits: np.ndarray, block: int) -> None:
        self.key_limits, self.value_limit, self.block = key_limits, 0.0, block
        self.key_error = self.value_error = 0.0

    @abstractmethod
    def code(self, keys: np.ndarray, values: np.ndarray) -> Coded:
        """Code the next blocks, (heads, tokens, width) each."""


class QuantisedLayer(CodedLayer):
    """Multiples of a step: of each channel for keys, of each token for values."""

    def __init__(self, layer: int, steps: np.ndarray, share: float, block: int) -> None:
        super().__init__(limits(steps_of(steps)), block)
        self.layer, self.steps, self.share = layer, steps, share   # steps by number (heads, width)
        self._steps_counted = False

    def code(self, keys: np.ndarray, values: np.ndarray) -> Coded:
        """Code the next blocks, and compare each number with the original."""
        codes = value_codes(self.share, values)
        key_steps, value_steps = steps_of(self.steps)[:, None, :], steps_of(codes)[None, :, None]
        key_numbers = multiples(keys, key_steps, f"keys of layer {self.layer}")
        value_numbers = multiples(values, value_steps, f"values of layer {self.layer}")
        decoded = restored(key_numbers, key_steps), restored(value_numbers, value_steps)
        self.key_error = max(self.key_error, self._error("key", keys, decoded[0], limits(key_steps)))
        self.value_error = max(self.value_error, self._error("value", values, decoded[1], limits(value_steps)))
        self.value_limit = max(self.value_limit, float(limits(value_steps).max()))
        key_bits, value_bits = self._store(key_numbers, value_numbers, codes)
        once = 0 if self._steps_counted else STEP_BITS * self.steps.size
        self._steps_counted = True
        return Coded(*decoded, key_bits + once, value_bits)

    def _error(self, what: str, given: np.ndarray, decoded: np.ndarray, limit: np.ndarray) -> float:
        """The largest error in units of its bound, which it must not exceed."""
        worst = float((np.abs(given.astype(np.float64) - decoded) / limit).max())
        if not worst <= 1:
            raise WorkbenchError(f"a {what} of layer {self.layer} differs by {worst:.3g} of its bound")
        return worst

    @abstractmethod
    def _store(self, keys: np.ndarray, values: np.ndarray, codes: np.ndarray) -> tuple[float, float]:
        """Keep the numbers of blocks and the steps of the values' tokens: the bits of keys and of values."""


class StreamLayer(QuantisedLayer):
    """Blocks as bytes of the entropy coder: those of a block's keys, and of its values with their steps, in turns."""

    def __init__(self, layer: int, steps: np.ndarray, share: float, block: int) -> None:
        super().__init__(layer, steps, share, block)
        self.blocks: list[bytes] = []
        self._known_keys = self._known_values = Known.nothing(steps.size)

    def go_on_after(
        self, blocks: list[bytes], known: tuple[Known, Known], value_limit: float, errors: tuple[float, float]
    ) -> None:
        """Be as after these blocks, whose largest errors were those of keys and of values, in units of their bounds."""
        self.blocks, self.value_limit, self._steps_counted = blocks, value_limit, True
        self._known_keys, self._known_values = known
        self.key_error, self.value_error = errors

    def _store(self, keys: np.ndarray, values: np.ndarray, codes: np.ndarray) -> tuple[float, float]:
        key_bytes, self._known_keys = encode_blocks(by_channel(keys, self.block), self._known_keys)
        value_bytes, self._known_values = encode_blocks(by_channel(values, self.block), self._known_values)
        with_steps = [
            pack_codes(own) + data for own, data in zip(codes.reshape(-1, self.block), value_bytes, strict=True)
        ]
        for pair in zip(key_bytes, with_steps, strict=True):
            self.blocks += pair
        return 8.0 * sum(map(len, key_bytes)), 8.0 * sum(map(len, with_steps))


class UnrotatedLayer(StreamLayer):
    """The same with keys as they are before the rotary embedding, where channels are more alike from token to token.

    `turns` gives the rotation at positions. It mixes two channels, so the bound of both is the root of the sum of squares.
    """

    def __init__(self, layer: int, steps: np.ndarray, share: float, block: int, turns: Turns) -> None:
        super().__init__(layer, steps, share, block)
        self.turns, pairs = turns, self.key_limits.reshape(len(steps), 2, -1)
        self.key_limits = np.tile(np.sqrt((pairs**2).sum(axis=1)), 2) * ROTATION_ROUNDING

    def code(self, keys: np.ndarray, values: np.ndarray) -> Coded:
        """Code the next blocks, and compare each number with the original, before the rotation and after it."""
        first = len(self.blocks) // 2 * self.block
        cos, sin = self._turns_from(first, keys)
        coded = super().code(rotated(keys.astype(np.float64), np.stack([cos, -sin])), values)
        decoded = self.rotated_keys(first, coded.keys)
        self.key_error = max(self.key_error, self._error("key", keys, decoded, self.key_limits[:, None, :]))
        return coded._replace(keys=decoded)

    def rotated_keys(self, first: int, keys: np.ndarray) -> np.ndarray:
        """Decoded keys after the rotation, of tokens from this position on."""
        return rotated(keys.astype(np.float64), self._turns_from(first, keys)).astype(np.float32)

    def _turns_from(self, first: int, keys: np.ndarray) -> np.ndarray:
        return backend.to_host(self.turns(first, keys.shape[1])).astype(np.float64)


class PackedLayer(QuantisedLayer):
    """Numbers packed for products, from which attention is computed."""

    def __init__(self, layer: int, steps: np.ndarray, share: float, block: int) -> None:
        super().__init__(layer, steps, share, block)
        self._keys: list[PackedBlocks] = []
        self._values: list[PackedBlocks] = []
        self._codes = np.zeros(0, np.int16)   # the steps of the values' tokens

    def _store(self, keys: np.ndarray, values: np.ndarray, codes: np.ndarray) -> tuple[float, float]:
        new = PackedBlocks.of(keys), PackedBlocks.of(values)
        for kept, blocks in zip((self._keys, self._values), new, strict=True):
            kept[:] = [PackedBlocks.joined([*kept, blocks.beside(kept[0].width) if kept else blocks])]
        self._codes = np.concatenate([self._codes, codes])
        side = 8 * sum(len(pack_codes(own)) for own in codes.reshape(-1, self.block))
        return float(new[0].bits), float(new[1].bits + side)

    def attend(self, queries: Array, keys: Array, values: Array) -> Array:
        """The attention of the last queries to the packed tokens, and to the latest keys and values, which are exact."""
        for kept in (self._keys, self._values):
            kept[:] = [each.beside(queries) for each in kept]
        (older_keys,), (older_values,) = self._keys, self._values
        xp, (heads, tokens, width), groups = backend.namespace(queries), queries.shape, len(self.steps)
        key_steps, value_steps = (xp.asarray(steps_of(codes).astype(np.float32)) for codes in (self.steps, self._codes))
        older = older_keys.scores(queries.reshape(groups, -1, width) * key_steps[:, None, :]) * np.float32(width**-0.5)
        shares = attention_weights(xp.concatenate([older.reshape(heads, tokens, -1), scores(queries, keys)], axis=-1))
        count = older_keys.tokens
        summed = older_values.sums(shares[..., :count].reshape(groups, -1, count) * value_steps)
        return summed.reshape(queries.shape) + mixed(xp.ascontiguousarray(shares[..., count:]), values)


class BoundedLayer(CodedLayer):
    """Blocks that a codec keeps within the limits that bounds have for each of them."""

    def __init__(self, shape: tuple[int, int], block: int, codec: Codec, keys: Bound, values: Bound) -> None:
        super().__init__(np.zeros(shape), block)
        self.codec, self._bounds = codec, (keys, values)

    def code(self, keys: np.ndarray, values: np.ndarray) -> Coded:
        """Code the next blocks one by one."""
        decoded, bits = (np.empty_like(keys), np.empty_like(values)), [0.0, 0.0]
        for start in range(0, keys.shape[1], self.block):
            part = slice(start, start + self.block)
            for kind, (given, bound) in enumerate(zip((keys, values), self._bounds, strict=True)):
                block = np.ascontiguousarray(given[:, part])
                limit = bound.limit(block)
                if limit.relative:
                    raise WorkbenchError(f"keys and values need a bound that is one number for a block; got {bound!r}")
                coded = encode_guarded(self.codec, block, limit)
                decoded[kind][:, part] = coded.decoded
                bits[kind] += 8.0 * coded.nbytes
                self._note(kind, limit.value, coded.figures.largest_error)
        return Coded(*decoded, *bits)

    def _note(self, kind: int, limit: float, error: float) -> None:
        share = error / limit if limit else 0.0
        if kind == 0:
            self.key_limits, self.key_error = np.maximum(self.key_limits, limit), max(self.key_error, share)
        else:
            self.value_limit, self.value_error = max(self.value_limit, limit), max(self.value_error, share)


def by_channel(numbers: np.ndarray, block: int) -> np.ndarray:
    """Numbers (heads, tokens, width) as (blocks, heads x width, tokens of a block)."""
    heads, tokens, width = numbers.shape
    shaped = numbers.reshape(heads, tokens // block, block, width).transpose(1, 0, 3, 2)
    return shaped.reshape(tokens // block, heads * width, block)


def by_token(numbers: np.ndarray, heads: int) -> np.ndarray:
    """Numbers (blocks, heads x width, tokens of a block) as (heads, tokens, width)."""
    blocks, channels, tokens = numbers.shape
    shaped = numbers.reshape(blocks, heads, channels // heads, tokens)
    return shaped.transpose(1, 0, 3, 2).reshape(heads, blocks * tokens, channels // heads)
