"""Published ways to code keys and values, written from their descriptions, and their bits counted alike.

Each counts what a decoder needs: numbers, scales and zero points in 16 bits, norms, code books, widths. None has a bound on
the error of an attention; their errors follow from their groups.
"""

from __future__ import annotations

import functools
import heapq
import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Self

import numpy as np

from workbench.arguments import number, one_of, whole_number
from workbench.errors import WorkbenchError
from workbench.propagation.caches.blocked import BlockedCache, Coded

SCALE_BITS = 16     # of a scale, a zero point or a norm
MOST_ZERO = 32_700  # a zero point is a whole number of 16 bits, with a sign; steps are rounded
LENGTH_BITS = 8     # of the length of a code word in a book


class Baseline(BlockedCache):
    """A published coding; it codes keys and values in turn by `_kind`, which returns them decoded, and their bits."""

    def __init__(self, name: str, keys: float, values: float, recent: int, block: int) -> None:
        super().__init__(recent, block)
        self.name, self.keys_setting, self.values_setting = name, keys, values

    def empty(self) -> Self:
        """A cache with the same settings that holds nothing."""
        return type(self)(self.keys_setting, self.values_setting, self.recent, self.block)   # type: ignore[call-arg]

    def _code(self, layer: int, keys: np.ndarray, values: np.ndarray) -> Coded:
        decoded, bits = list[np.ndarray](), list[float]()
        for kind, given in enumerate((keys, values)):
            heads, tokens, width = given.shape
            blocks = given.astype(np.float64).reshape(heads, tokens // self.block, self.block, width).swapaxes(0, 1)
            found, taken = self._kind(layer, kind, blocks)
            decoded.append(found.swapaxes(0, 1).reshape(given.shape).astype(np.float32))
            bits.append(taken)
        return Coded(decoded[0], decoded[1], bits[0], bits[1])

    @abstractmethod
    def _kind(self, layer: int, kind: int, blocks: np.ndarray) -> tuple[np.ndarray, float]:
        """Keys (kind 0) or values (kind 1) in blocks (blocks, heads, tokens, width): what is decoded, and its bits."""

    def _setting(self, kind: int) -> float:
        return (self.keys_setting, self.values_setting)[kind]


class Kivi(Baseline):
    """KIVI: whole numbers of a few bits between the ends of a group, keys by channel, values by token.

    Liu et al., "KIVI: a tuning-free asymmetric 2bit quantization for KV cache" (2024). A group is a channel of a block, or
    a token of a head.
    """

    def __init__(self, keys: int = 4, values: int = 4, recent: int = 64, block: int = 64) -> None:
        keys, values = _bits("keys", keys), _bits("values", values)
        super().__init__(f"KIVI, {keys}/{values} bits", keys, values, recent, block)

    def _kind(self, layer: int, kind: int, blocks: np.ndarray) -> tuple[np.ndarray, float]:
        return between_ends(blocks, (-2, -1)[kind], int(self._setting(kind)))


class Hadamard(Baseline):
    """A rotation by a Hadamard matrix before the same quantiser, in groups of 32 channels of a token.

    A rotation spreads outliers over all channels: Ashkboos et al., "QuaRot" (2024). Keys and queries are rotated alike, so
    scores do not change.
    """

    group = 32

    def __init__(self, keys: int = 4, values: int = 4, recent: int = 64, block: int = 64) -> None:
        keys, values = _bits("keys", keys), _bits("values", values)
        super().__init__(f"Hadamard, {keys}/{values} bits", keys, values, recent, block)

    def _kind(self, layer: int, kind: int, blocks: np.ndarray) -> tuple[np.ndarray, float]:
        width = blocks.shape[-1]
        matrix, group = _hadamard(width), min(self.group, width)
        rotated = (blocks @ matrix).reshape(*blocks.shape[:-1], width // group, group)
        found, bits = between_ends(rotated, -1, int(self._setting(kind)))
        return found.reshape(blocks.shape) @ matrix.T, bits


class TurboQuant(Baseline):
    """A random rotation, and the scalar quantiser that is best for what it makes of any vector: nearly Gaussian numbers.

    After Zandieh et al., "TurboQuant" (2025), its variant for the least squared error. The norm of a vector is stored.
    """

    def __init__(self, keys: int = 4, values: int = 4, recent: int = 64, block: int = 64) -> None:
        keys, values = _bits("keys", keys), _bits("values", values)
        super().__init__(f"TurboQuant-like, {keys}/{values} bits", keys, values, recent, block)

    def _kind(self, layer: int, kind: int, blocks: np.ndarray) -> tuple[np.ndarray, float]:
        width, bits = blocks.shape[-1], int(self._setting(kind))
        matrix, _ = np.linalg.qr(np.random.default_rng((layer, kind)).normal(size=(width, width)))
        norms = np.float16(np.linalg.norm(blocks, axis=-1, keepdims=True)).astype(np.float64)
        scale = norms / math.sqrt(width)
        levels = gaussian_levels(bits)
        unit = blocks @ matrix / np.where(scale > 0, scale, 1)
        nearest = np.searchsorted((levels[1:] + levels[:-1]) / 2, unit)
        return (levels[nearest] * scale) @ matrix.T, float(bits * blocks.size + SCALE_BITS * norms.size)


class KVComp(Baseline):
    """KVComp: a step that is a share of the range of a group, keys by channel, values by token, and a Huffman code.

    Jiang et al., "KVComp" (2025). The settings are shares of the range; there is a book for the keys and one for the
    values of each layer, made for the first blocks.
    """

    def __init__(self, keys: float = 0.05, values: float = 0.1, recent: int = 64, block: int = 64) -> None:
        keys, values = _share("keys", keys), _share("values", values)
        super().__init__(f"KVComp, {keys:g}/{values:g} of the range", keys, values, recent, block)
        self._books: dict[tuple[int, int], np.ndarray] = {}

    def _kind(self, layer: int, kind: int, blocks: np.ndarray) -> tuple[np.ndarray, float]:
        axes = 2 if kind == 0 else (1, 3)   # a channel of a block; a token of all heads
        numbers, decoded, groups = shares_of_range(blocks, axes, self._setting(kind))
        symbols = _most_number(self._setting(kind)) + 1
        counts, bits = np.bincount(numbers.reshape(-1), minlength=symbols), 2 * SCALE_BITS * groups
        if (layer, kind) not in self._books:
            self._books[layer, kind] = huffman_lengths(counts + 1)
            bits += LENGTH_BITS * symbols
        return decoded, float(bits + (counts * self._books[layer, kind]).sum())


class PackKV(Baseline):
    """PackKV: steps by token over all heads; tokens in the order of the median of their values, in packs of one width.

    Jiang et al., "PackKV" (2025). Softmax does not mind the order of tokens, so none is stored. A pack is 16 tokens of
    a channel: its smallest number, a width, and what the others are above it.
    """

    pack = 16

    def __init__(self, keys: float = 0.05, values: float = 0.1, recent: int = 64, block: int = 64) -> None:
        keys, values = _share("keys", keys), _share("values", values)
        super().__init__(f"PackKV, {keys:g}/{values:g} of the range", keys, values, recent, block)
        if self.block % self.pack:
            raise WorkbenchError(f"blocks of PackKV must have a multiple of {self.pack} tokens; got {self.block}")
        self._order = np.zeros(0, np.int64)

    def _code(self, layer: int, keys: np.ndarray, values: np.ndarray) -> Coded:
        heads, tokens, width = values.shape
        blocks = values.reshape(heads, tokens // self.block, self.block, width).swapaxes(0, 1)
        numbers, _, _ = shares_of_range(blocks, (1, 3), self.values_setting)
        self._order = np.argsort(np.median(numbers, axis=(1, 3)), axis=1, kind="stable")
        return super()._code(layer, keys, values)

    def _kind(self, layer: int, kind: int, blocks: np.ndarray) -> tuple[np.ndarray, float]:
        share = self._setting(kind)
        numbers, decoded, groups = shares_of_range(blocks, (1, 3), share)
        sorted_tokens = np.take_along_axis(numbers, self._order[:, None, :, None], axis=2)
        count, heads, tokens, width = numbers.shape
        packs = sorted_tokens.reshape(count, heads, tokens // self.pack, self.pack, width)
        widths = np.ceil(np.log2(np.ptp(packs, axis=3) + 1.0))
        least = _most_number(share).bit_length()
        side = widths.size * (least + least.bit_length()) + 2 * SCALE_BITS * groups
        return decoded, float(self.pack * widths.sum() + side)


BASELINES: Mapping[str, type[Baseline]] = {
    "kivi": Kivi, "kvcomp": KVComp, "packkv": PackKV, "hadamard": Hadamard, "turboquant": TurboQuant,
}


def baseline_cache(
    name: str, keys: float | None = None, values: float | None = None, recent: int = 64, block: int = 64
) -> Baseline:
    """A cache that codes as published: "kivi", "kvcomp", "packkv", "hadamard" or "turboquant".

    `keys` and `values` are bits for kivi, hadamard and turboquant, and shares of the range for kvcomp and packkv.

    >>> baseline_cache("kivi", 3, 3).name
    'KIVI, 3/3 bits'
    """
    settings = {place: given for place, given in (("keys", keys), ("values", values)) if given is not None}
    return BASELINES[one_of("name", name, list(BASELINES))](**settings, recent=recent, block=block)   # type: ignore[arg-type]


def between_ends(values: np.ndarray, axis: int, bits: int) -> tuple[np.ndarray, float]:
    """Numbers of so many bits between the ends of groups along an axis, which are stored: what is decoded, and all bits."""
    least = np.float16(values.min(axis=axis, keepdims=True)).astype(np.float64)
    scale = np.float16((values.max(axis=axis, keepdims=True) - least) / (2**bits - 1)).astype(np.float64)
    numbers = np.clip(np.rint((values - least) / np.where(scale > 0, scale, 1)), 0, 2**bits - 1)
    return numbers * scale + least, float(bits * values.size + 2 * SCALE_BITS * scale.size)


def shares_of_range(
    values: np.ndarray, axis: int | tuple[int, ...], share: float
) -> tuple[np.ndarray, np.ndarray, int]:
    """Multiples of a share of the range of each group, from its smallest on: these, what is decoded, and the groups.

    The step and the smallest multiple are stored in 16 bits each, so the step is at least what lets that one fit.

    >>> numbers, decoded, groups = shares_of_range(np.array([[1.0, 1.1, 3.0]]), 1, 0.25)
    >>> numbers.tolist(), decoded.tolist(), groups
    ([[0, 0, 4]], [[1.0, 1.0, 3.0]], 1)
    """
    least, most = values.min(axis=axis, keepdims=True), values.max(axis=axis, keepdims=True)
    fitting = np.maximum(abs(least), abs(most)) / MOST_ZERO
    step = np.maximum(share * (most - least), fitting).astype(np.float16).astype(np.float64)
    step = np.where(step > 0, step, 1.0)
    zero = np.rint(least / step)
    numbers = np.rint(values / step) - zero
    return numbers.astype(np.int64), (numbers + zero) * step, step.size


def _most_number(share: float) -> int:
    """The largest multiple of a share of a range, of which the step is rounded to 16 bits and both ends to multiples."""
    return math.ceil(1.001 / share) + 1


def huffman_lengths(counts: np.ndarray) -> np.ndarray:
    """The lengths of the code words of a Huffman code for symbols that occur so often.

    >>> huffman_lengths(np.array([5, 2, 1, 1])).tolist()
    [1, 2, 3, 3]
    """
    lengths = np.zeros(len(counts), np.int64)
    heap: list[tuple[int, int, list[int]]] = [(int(count), symbol, [symbol]) for symbol, count in enumerate(counts)]
    heapq.heapify(heap)
    while len(heap) > 1:
        one, other = heapq.heappop(heap), heapq.heappop(heap)
        members = one[2] + other[2]
        lengths[members] += 1
        heapq.heappush(heap, (one[0] + other[0], other[1], members))
    return lengths


@functools.cache
def gaussian_levels(bits: int) -> np.ndarray:
    """The levels of the quantiser of a normal number with the least squared error (Lloyd 1957, Max 1960).

    >>> gaussian_levels(1).round(4).tolist()
    [-0.7979, 0.7979]
    """
    levels = np.linspace(-2.5, 2.5, 2**bits)
    for _ in range(2000):
        cuts = np.concatenate([[-12.0], (levels[1:] + levels[:-1]) / 2, [12.0]])
        density = np.exp(-(cuts**2) / 2) * math.sqrt(2 / math.pi)
        mass = np.diff([math.erf(cut / math.sqrt(2)) for cut in cuts])
        found = -np.diff(density) / mass
        if np.abs(found - levels).max() < 1e-9:
            break
        levels = found
    return levels


def _hadamard(width: int) -> np.ndarray:
    """The orthogonal matrix of signs of this size."""
    if width & (width - 1):
        raise WorkbenchError(f"a Hadamard rotation needs a head width that is a power of two; got {width}: use turboquant")
    matrix = np.ones((1, 1))
    while len(matrix) < width:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix / math.sqrt(width)


def _bits(name: str, given: int) -> int:
    return whole_number(name, given, least=1, most=8)


def _share(name: str, given: float) -> float:
    return number(name, given, 1e-4, 0.5)
