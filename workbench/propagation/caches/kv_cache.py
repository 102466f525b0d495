"""`wb.propagation.KVCache`: keys and values of a language model within bounds, in few bits.

An error of a key matters by what it does to scores. So keys are quantised in steps that are inverse to the size of the
queries in each channel: then the noise of every score is the same share of the step, whatever the model. Values are
quantised in steps that are a share of the size of each token's values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self, get_args

import numpy as np

from workbench import backend, codecs
from workbench.arguments import one_of, positive
from workbench.backend import Array
from workbench.codecs import Codec
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound
from workbench.propagation.caches.blocked import BlockedCache, Coded
from workbench.propagation.caches.certificate import Certificate, attention_bounds, score_bounds
from workbench.propagation.caches.layers import (
    STEP_BITS,
    BoundedLayer,
    CodedLayer,
    PackedLayer,
    StreamLayer,
    Turns,
    UnrotatedLayer,
)
from workbench.propagation.caches.packed_blocks import PACKED_BLOCK
from workbench.propagation.caches.steps import key_codes, steps_of

Coder = Literal["entropy", "packed"]
Share = float | Sequence[float]   # one for all layers, or one for each
BLOCK = 64


class KVCache(BlockedCache):
    """A cache of keys and values in blocks, coded within bounds; give it to `generate`, and look at it afterwards.

    `score_step` is the step of keys in units that make it the noise of a score (its standard deviation is 0.29 of it),
    `value_step` the step of values as a share of the root mean square of the token's values; both may be lists with an
    entry for each layer. With `keys` and `values` as bounds, blocks are coded by a codec of `wb.codecs` in their place. The
    last `recent` tokens, and those of a block that is not yet full, stay exact. `coder="packed"` keeps keys and values in a
    form that is multiplied without being decoded, in blocks of 128 tokens. With `turns=lm.turns`, keys are coded as they
    are before the rotary embedding.

    The default steps are chosen by the divergence that was measured. What they guarantee of attention says nothing: errors
    of all channels may add up. A guarantee that says something, at most a tenth of the range of the values in SmolLM2,
    needs a `score_step` of 0.02; `certificate` states it for the queries that were seen.

    >>> random = np.random.default_rng(0)
    >>> cache = KVCache(1.0, 0.6, recent=0)
    >>> for new in range(3):
    ...     cache.append(0, *random.normal(size=(2, 1, 64, 16)).astype(np.float32))
    ...     found = cache.attend(0, random.normal(size=(3, 64, 16)).astype(np.float32))
    >>> cache.coded_tokens[0], 2.5 < cache.bits_per_value < 3.5, cache.certificate.key_error <= 1
    (128, True, True)
    """

    def __init__(
        self,
        score_step: Share = 1.0,
        value_step: Share = 0.4,
        recent: int = 64,
        block: int | None = None,
        coder: Coder = "entropy",
        *,
        keys: Bound | None = None,
        values: Bound | None = None,
        codec: str | Codec = "prequantised",
        turns: Turns | None = None,
    ) -> None:
        packed = one_of("coder", coder, get_args(Coder)) == "packed"
        super().__init__(recent, (PACKED_BLOCK if packed else BLOCK) if block is None else block)
        if packed and self.block % PACKED_BLOCK:
            raise WorkbenchError(f"packed blocks must have a multiple of {PACKED_BLOCK} tokens; got {self.block}")
        if (keys is None) != (values is None) or not isinstance(keys, Bound | None) or not isinstance(values, Bound | None):
            raise WorkbenchError(f"keys and values must both be bounds, or both left out; got {keys!r} and {values!r}")
        if keys is not None and packed:
            raise WorkbenchError("bounds are kept by a codec, which does not pack: leave out coder, or the bounds")
        if turns is not None and (packed or keys is not None):
            raise WorkbenchError("keys before the rotation have steps and the entropy coder: leave out coder and bounds")
        self.coder, self.turns = coder, turns
        self.bounds = (keys, values) if isinstance(keys, Bound) and isinstance(values, Bound) else None
        self.codec = codec if isinstance(codec, Codec) else codecs.get(codec)
        self.score_step, self.value_step = _shares("score_step", score_step), _shares("value_step", value_step)
        self.name = self._described()
        self._layers: dict[int, CodedLayer] = {}
        self._score_bound = 0.0

    def empty(self) -> Self:
        """A cache with the same settings that holds nothing."""
        steps, (keys, values) = (self.score_step, self.value_step), self.bounds or (None, None)
        return type(self)(
            *steps, self.recent, self.block, self.coder, keys=keys, values=values, codec=self.codec, turns=self.turns
        )

    @property
    def certificate(self) -> Certificate:
        """What was checked, and what follows from it for every query so far."""
        key_error = max((each.key_error for each in self._layers.values()), default=0.0)
        value_error = max((each.value_error for each in self._layers.values()), default=0.0)
        return Certificate(2 * self.coded_numbers, key_error, value_error, self._score_bound)

    @property
    def layers(self) -> list[int]:
        """The layers that hold tokens."""
        return sorted(self._length)

    def coded(self, layer: int) -> CodedLayer | None:
        """What is kept of the coded tokens of a layer; None before there are any."""
        return self._layers.get(layer)

    def restore_coded(self, layer: int, coded: StreamLayer, score_bound: float) -> None:
        """Take what was stored of the coded tokens of a layer, and the largest change of a score until then."""
        self._layers[layer] = coded
        self.coded_tokens[layer] = len(coded.blocks) // 2 * self.block
        self.key_bits += 8 * sum(map(len, coded.blocks[::2])) + STEP_BITS * coded.steps.size
        self.value_bits += 8 * sum(map(len, coded.blocks[1::2]))
        self.coded_numbers += coded.steps.size * self.coded_tokens[layer]
        self._score_bound = max(self._score_bound, score_bound)
        query_sizes = _of_layer("score_step", self.score_step, layer) / steps_of(coded.steps)   # that gave the steps
        self.restore_queries(layer, query_sizes**2, 1)

    def attention_bound(self, layer: int, queries: Array) -> np.ndarray:
        """How far the attention of these queries may be from that of exact keys and values: (heads, queries, width)."""
        asked, coded = backend.to_host(queries), self._layers.get(layer)
        if coded is None:
            return np.zeros(asked.shape)
        held = backend.to_host(self.values(layer))
        reach = score_bounds(asked.reshape(len(held), -1, asked.shape[-1]), coded.key_limits)
        found = attention_bounds(reach, coded.value_limit, held.min(axis=1), held.max(axis=1))
        return found.reshape(asked.shape)

    def _described(self) -> str:
        if self.bounds is not None:
            return f"{self.codec.id}, keys {self.bounds[0]!r}, values {self.bounds[1]!r}"
        score, value = (
            f"{min(each):g}" if min(each) == max(each) else f"{min(each):.3g}-{max(each):.3g}"
            for each in (self.score_step, self.value_step)
        )
        return f"steps {score} of scores, {value} of values" + (
            ", packed" if self.coder == "packed" else ", before the rotation" if self.turns else ""
        )

    def _code(self, layer: int, keys: np.ndarray, values: np.ndarray) -> Coded:
        if layer not in self._layers:
            self._layers[layer] = self._fresh(layer, (keys.shape[0], keys.shape[2]))
        return self._layers[layer].code(keys, values)

    def _fresh(self, layer: int, shape: tuple[int, int]) -> CodedLayer:
        """A layer without coded tokens, whose keys have steps by the queries so far."""
        if self.bounds is not None:
            return BoundedLayer(shape, self.block, self.codec, *self.bounds)
        score_step, value_step = (
            _of_layer(name, getattr(self, name), layer) for name in ("score_step", "value_step")
        )
        squares = self.query_squares(layer)
        if self.turns is not None:   # a rotation mixes channels i and i + width / 2
            pairs = np.tile(squares.reshape(len(squares), 2, -1).mean(axis=1), 2)
            return UnrotatedLayer(layer, key_codes(score_step, pairs), value_step, self.block, self.turns)
        kind = PackedLayer if self.coder == "packed" else StreamLayer
        return kind(layer, key_codes(score_step, squares), value_step, self.block)

    def _attention(self, layer: int, queries: Array) -> Array:
        coded = self._layers.get(layer)
        if coded is None:
            return super()._attention(layer, queries)
        grouped = backend.to_host(queries).reshape(len(coded.key_limits), -1, queries.shape[-1])
        self._score_bound = max(self._score_bound, float(score_bounds(grouped, coded.key_limits).max()))
        if not isinstance(coded, PackedLayer):
            return super()._attention(layer, queries)
        start = self.coded_tokens[layer]
        return coded.attend(queries, self.keys(layer)[:, start:], self.values(layer)[:, start:])


def _shares(name: str, given: Share) -> tuple[float, ...]:
    if isinstance(given, Sequence) and not isinstance(given, str):
        if not given:
            raise WorkbenchError(f"{name} must have an entry for each layer; got none")
        return tuple(positive(name, each) for each in given)
    return (positive(name, given),)


def _of_layer(name: str, shares: tuple[float, ...], layer: int) -> float:
    if len(shares) == 1:
        return shares[0]
    if layer >= len(shares):
        raise WorkbenchError(f"{name} must have an entry for each layer; got {len(shares)}, and layer {layer} asks for one")
    return shares[layer]
