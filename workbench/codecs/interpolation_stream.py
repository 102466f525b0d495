"""The bytes of the built-in codec for fields: tables of frequencies (`residuals.py`), and blocks of coded residuals.

Blocks are independent of each other within a pass.

A block is checked when it is decoded: its code must end in the state in which the encoder began, with all bits used, and
its values must have the checksum that they had in the encoder. So a machine that computes a location or a scale otherwise
than the encoder's cannot return other values; the block and its pass are named.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench import backend
from workbench.codecs.codec import CodecFailed
from workbench.codecs.entropy import slots_of, starts, words_of
from workbench.codecs.interpolation_grid import AXES, FINER, Axes, Pass
from workbench.codecs.interpolation_time import STEPS, Known, for_kernel, spacing_before
from workbench.codecs.residuals import CONTEXTS, Tables, counted, symbol_slots

# The first byte of a piece: what follows is as here, or as `prequantised` writes it, or as here with earlier steps.
INTERPOLATED, ON_LATTICE, IN_TIME = 0, 1, 2

BLOCK_BYTES = 2**15               # aimed at: a block costs 20 bytes
BLOCK_BITS = range(12, 20)        # of the number of targets in a block

_HEADER = struct.Struct("<BddBII")   # the kind, step, mean, axes and flags, bytes of the coarsest points and of the tables
_CHECKSUM = struct.Struct("<I")      # of the model
_MODELLED, _FINER = AXES, AXES + 1   # bits of flags beside the frozen axes: a model was used; `finer`
_SIZES = struct.Struct("<BBH")     # the bits of a block's targets, how many tables there are, their bytes


@dataclass(frozen=True)
class Header:
    """What a piece of an interpolated field begins with; `frozen` is among four axes."""

    step: float
    mean: float
    frozen: Axes
    finer: int          # how much finer the steps of coarse passes are
    model: int | None   # the checksum of the trained model that was used
    in_time: bool = False   # whether earlier steps were used

    def to_bytes(self, coarse: int, tables: int) -> bytes:
        """The header of a piece with so many bytes of the coarsest points and of tables."""
        flags = sum(1 << axis for axis in self.frozen) | self.finer << _FINER | (self.model is not None) << _MODELLED
        named = b"" if self.model is None else _CHECKSUM.pack(self.model)
        kind = IN_TIME if self.in_time else INTERPOLATED
        return _HEADER.pack(kind, self.step, self.mean, flags, coarse, tables) + named

    @classmethod
    def from_bytes(cls, data: bytes) -> tuple[Header, int, int, memoryview]:
        """The header, the bytes of the coarsest points and of tables, and what follows."""
        if len(data) < _HEADER.size + _CHECKSUM.size:
            raise CodecFailed(f"an interpolated field has a header of {_HEADER.size} bytes; got {len(data)}: truncated")
        kind, step, mean, flags, coarse, tables = _HEADER.unpack_from(data)
        sound = math.isfinite(step) and step > 0 and math.isfinite(mean) and flags >> _FINER < len(FINER)
        if kind not in (INTERPOLATED, IN_TIME) or not sound:
            raise CodecFailed(f"an interpolated field needs a positive step; got {step} and flags {flags:#b}: damaged")
        frozen = tuple(axis for axis in range(AXES) if flags >> axis & 1)
        view, model = memoryview(data)[_HEADER.size :], None
        if flags >> _MODELLED & 1:
            (model,), view = _CHECKSUM.unpack_from(view), view[_CHECKSUM.size :]
        return cls(step, mean, frozen, flags >> _FINER, model, kind == IN_TIME), coarse, tables, view


def blocks_of(passes: Sequence[Pass], block: int) -> tuple[np.ndarray, list[range]]:
    """Where blocks of about `block` targets begin, and the end; and which of them can be decoded at once.

    Small passes in a row are one block; a pass with more targets is cut evenly.
    """
    begin, groups, open_targets = [0], [], 0
    for each in passes:
        if open_targets and open_targets + each.targets <= block:
            begin[-1] += each.targets
            open_targets += each.targets
            continue
        pieces = -(-each.targets // block)
        groups.append(range(len(begin) - 1, len(begin) - 1 + pieces))
        start = begin[-1]
        begin += [start + each.targets * (piece + 1) // pieces for piece in range(pieces)]
        open_targets = each.targets if pieces == 1 else block
    return np.array(begin, np.int64), groups


def blocks_together(blocks: int) -> int:
    """How many blocks of a pass a thread codes in turns: two where there are more than threads, which takes less time."""
    return 2 if blocks > backend.threads() else 1


def kind_of(of: Pass) -> int:
    """Passes that can use the same weights: those with the same odd axes and as many pairs."""
    return sum(1 << axis for axis in of.odd) | len(of.pairs) << 4


def targets_before(passes: Sequence[Pass]) -> np.ndarray:
    """The number of the first target of each pass, and the number of all."""
    return np.concatenate([[0], np.cumsum([each.targets for each in passes], dtype=np.int64)]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Rest:
    """What follows the symbols of some blocks, and a checksum of the decoded values of each."""

    words: np.ndarray       # uint32
    first: np.ndarray       # the first word of each block, and the end
    checksums: np.ndarray   # uint32

    @classmethod
    def of(
        cls, begin: np.ndarray, passes: Sequence[Pass], code: np.ndarray, number: np.ndarray, value: np.ndarray,
        shape: np.ndarray,
    ) -> Rest:
        """That of blocks of these passes, which begin at these targets, with the code and the residual of each target."""
        blocks = len(begin) - 1
        below = np.empty(blocks, np.int64)
        backend.kernel("interpolation", "count_rest", value.dtype)(blocks, begin, code, below)
        first = starts((below + 31) // 32)
        words, checksums = np.empty(int(first[-1]), np.uint32), np.empty(blocks, np.uint32)
        backend.kernel("interpolation", "write_rest", value.dtype)(
            blocks, begin, len(passes), targets_before(passes), described(passes), shape, value, code, number, first, words,
            checksums,
        )
        return cls(words, first, checksums)

    @classmethod
    def joined(cls, parts: Sequence[Rest]) -> Rest:
        """That of all blocks, one part after the other."""
        sizes = [np.diff(part.first) for part in parts]
        none = np.empty(0, np.uint32)
        words = np.concatenate([none, *(part.words for part in parts)])
        checksums = np.concatenate([none, *(part.checksums for part in parts)])
        return cls(words, starts(np.concatenate([none, *sizes])), checksums)


@dataclass(frozen=True, eq=False)
class Blocks:
    """The coded residuals of all blocks."""

    tables: Tables
    bits: int                # a block has at most 2**bits targets
    begin: np.ndarray        # the first target of each block, and the end
    words: np.ndarray        # uint16: the symbols
    word_first: np.ndarray
    rest: np.ndarray         # uint32: what follows them
    rest_first: np.ndarray
    checksums: np.ndarray    # uint32, of the decoded values of each

    @classmethod
    def of(cls, passes: Sequence[Pass], bits: int, code: np.ndarray, rest: Rest) -> Blocks:
        """The blocks of these codes (context * SYMBOLS + symbol) and of what follows them."""
        tables = Tables.of(counted(code))
        begin, _ = blocks_of(passes, 1 << bits)
        words, word_first = words_of(code, begin, tables.frequency[tables.row])
        return cls(tables, bits, begin, words, word_first, rest.words, rest.first, rest.checksums)

    def to_bytes(self) -> tuple[bytes, tuple[bytes, bytes]]:
        """The tables and the sizes of all blocks; and the blocks: symbols, and what follows them."""
        tables = self.tables.to_bytes()
        sizes = np.diff(self.word_first), np.diff(self.rest_first), self.checksums
        head = _SIZES.pack(self.bits, len(self.tables.shares), len(tables))
        side = b"".join([head, tables, *(each.astype("<u4").tobytes() for each in sizes)])
        return side, (self.words.astype("<u2", copy=False).tobytes(), self.rest.astype("<u4", copy=False).tobytes())

    @classmethod
    def from_bytes(cls, side: bytes, body: memoryview, passes: Sequence[Pass]) -> Blocks:
        """What `to_bytes` wrote for these passes; nothing is larger than they and the bytes allow."""
        if len(side) < _SIZES.size:
            raise CodecFailed(f"an interpolated field has at least {_SIZES.size} bytes of tables; got {len(side)}: damaged")
        bits, tables, length = _SIZES.unpack_from(side)
        if bits not in BLOCK_BITS or not 1 <= tables <= CONTEXTS:
            raise CodecFailed(f"an interpolated field cannot have {tables} tables and blocks of 2^{bits}: damaged")
        begin, _ = blocks_of(passes, 1 << bits)
        blocks = len(begin) - 1
        if len(side) != _SIZES.size + length + 12 * blocks:
            raise CodecFailed(f"an interpolated field of {blocks} blocks has {len(side)} bytes of tables: damaged")
        words, rest, checksums = np.frombuffer(side, "<u4", offset=_SIZES.size + length).reshape(3, blocks)
        word_first, rest_first = starts(words), starts(rest)
        if 2 * word_first[-1] + 4 * rest_first[-1] != len(body):
            raise CodecFailed(f"the blocks of an interpolated field do not have {len(body)} bytes: damaged")
        split = 2 * int(word_first[-1])
        return cls(
            Tables.from_bytes(side[_SIZES.size : _SIZES.size + length], tables), bits, begin,
            np.frombuffer(bytes(body[:split]), "<u2").astype(np.uint16, copy=False), word_first,
            np.frombuffer(bytes(body[split:]), "<u4").astype(np.uint32, copy=False), rest_first,
            checksums.astype(np.uint32),
        )

    def decode(
        self, passes: Sequence[Pass], weights: np.ndarray, networks: np.ndarray, steps: np.ndarray, value: np.ndarray,
        least_spacing: int = 1, multiples: np.ndarray | None = None, known: Known | None = None,
    ) -> None:
        """Decode the targets of all passes into `value`, which holds the points that are not interpolated.

        Passes with a spacing below `least_spacing` are left out. `multiples` of each pass are those of the steps that are
        known, if any are.
        """
        frequency = self.tables.frequency
        arrays = {
            "begin": self.begin, "pass_begin": targets_before(passes), "description": described(passes),
            "weight": weights, "network": networks.reshape(-1), "shape": np.array(value.shape, np.int64),
            "word_first": self.word_first, "words": self.words, "rest_first": self.rest_first, "rest": self.rest,
            "row": self.tables.row, "symbol_at": symbol_slots(frequency), "frequency": frequency.reshape(-1),
            "start": slots_of(frequency).reshape(-1), "checksum": self.checksums,
        }
        flat, shape, numbers = value.reshape(-1), arrays["shape"], np.zeros((len(passes), STEPS), np.int16)
        deviation, sound = np.zeros(value.size, value.dtype), np.zeros(len(self.checksums), np.uint8)
        arrays |= {"latest": flat, "before": flat, "left": flat}
        if known is not None and multiples is not None:
            arrays |= {"latest": known.latest, "before": known.before, "left": np.zeros(value.size, value.dtype)}
            numbers = multiples
        arrays["multiple"] = for_kernel(numbers, value.dtype)
        end = int(arrays["pass_begin"][sum(each.spacing >= least_spacing for each in passes)])
        kernel = backend.kernel("interpolation", "decode_targets", value.dtype)
        for group in blocks_of(passes, 1 << self.bits)[1]:
            if self.begin[group.start] >= end:
                break
            together = blocks_together(len(group))
            which = int(np.searchsorted(arrays["pass_begin"], self.begin[group.start]))
            if known is not None and numbers[which].any() and (which == 0 or (numbers[which] != numbers[which - 1]).any()):
                spacing = spacing_before(passes, which)
                known.take_away(passes[which], spacing, shape, numbers[which], flat, arrays["left"])
            kernel(
                -(-len(group) // together), arrays, together=together, block=group.start, end=group.stop,
                passes=len(passes), step=steps, value=flat, deviation=deviation, sound=sound, in_time=known is not None,
            )
            if not sound[group.start : group.stop].all():
                self._refuse(group.start + int(np.argmin(sound[group.start : group.stop])), passes)

    def _refuse(self, block: int, passes: Sequence[Pass]) -> None:
        """Name a block that did not decode to the values that were encoded."""
        which = int(np.searchsorted(targets_before(passes), self.begin[block], side="right")) - 1
        raise CodecFailed(
            f"block {block} of {len(self.checksums)}, with spacing {passes[which].spacing}, does not decode to the values "
            "that were encoded: it is damaged, or this machine computes otherwise than the one that wrote it"
        )


def described(passes: Sequence[Pass]) -> np.ndarray:
    """All passes, as kernels know them."""
    return np.array([each.description for each in passes], np.int64).reshape(-1)


def block_bits(bits: float, targets: int) -> int:
    """The size of blocks that take about `BLOCK_BYTES`."""
    wanted = BLOCK_BYTES * 8 * targets / max(bits, 1)
    return min(max(int(np.log2(max(wanted, 1))), BLOCK_BITS[0]), BLOCK_BITS[-1])
