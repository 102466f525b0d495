"""Cells of atoms in their own order, each placed by earlier atoms of its molecule: a coder of the lattice codec.

Atoms of a molecule are near each other in a file, and their bonds have nearly fixed lengths and angles. A delta from one
atom to the next takes as many bits as a ball of the size of a bond has cells. Here an atom is described as in a Z-matrix,
by bond length, bond angle and dihedral angle: it takes the bits of a sphere, of a circle or of an arc, as far as these are
known (`kernels/molecules.cu`). No topology is needed: the encoder finds which atoms to place others by, and means of
lengths and angles are learned in each block. XTC, the format of GROMACS, codes runs of small differences, but no lengths
and angles.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.codecs.codec import CodecFailed
from workbench.codecs.crc import CheckedBlocks, crc32_of_blocks
from workbench.codecs.curve import Lattice
from workbench.codecs.entropy import starts
from workbench.codecs.pcodec import pack_integers, unpack_integers
from workbench.codecs.together import Pieces

BLOCK_ATOMS = 8192     # in a block: fewer would learn too little
CHANCES = backend.constant("molecules.cu", "CHANCES")
MEANS = backend.constant("molecules.cu", "MEANS")
LINKS = backend.constant("molecules.cu", "LINKS")
MOST_CELLS = backend.constant("molecules.cu", "MOST_CELLS")
MOST_RUNS = 256        # on a GPU: each has 1 MB of its own
ROOM = 48              # bits for each atom beside those of its cell, at first

_HEADER = struct.Struct("<IQ")    # bytes of the lengths of blocks, words
_CHECKSUM = struct.Struct("<I")   # of the header and the tables; every block has its own


@dataclass(frozen=True, eq=False)
class CodedMolecules(CheckedBlocks):
    """Cells of a lattice in three dimensions, coded in blocks. The first cell of each block is kept by the caller.

    >>> lattice = Lattice((0.0, 0.0, 0.0), 0.01, (999, 999, 999), (10.0, 10.0, 10.0))
    >>> cells = np.cumsum(np.full((100, 3), 5), axis=0, dtype=np.int32)
    >>> coded, = CodedMolecules.of_pieces(cells, Pieces.of(100, 100), lattice)
    >>> again = CodedMolecules.cells_of_pieces([coded], cells[:1].astype(np.int64), lattice)
    >>> bool((again == cells).all()), len(coded.to_bytes()) < 100
    (True, True)
    """

    count: int
    words: np.ndarray        # uint16
    word_first: np.ndarray   # where each block begins, and the end
    checksums: np.ndarray    # of each block

    @classmethod
    def suits(cls, lattice: Lattice) -> bool:
        """Whether cells of this lattice can be coded."""
        return lattice.dimensions == 3 and max(lattice.last) < MOST_CELLS

    @classmethod
    def of_pieces(cls, cells: Array, pieces: Pieces, lattice: Lattice) -> list[CodedMolecules]:
        """The cells of each piece, coded together on the machine where they are."""
        words, first = _words(cells, pieces, lattice)
        xp = backend.namespace(cells)
        sums = crc32_of_blocks([(words, xp.asarray(first))], xp.arange(len(first) - 1, dtype=np.int64))
        words, sums = backend.to_host(words), backend.to_host(sums)
        coded = []
        for items, own in zip(pieces, pieces.blocks_by_piece(BLOCK_ATOMS), strict=True):
            at = first[own.start : own.stop + 1]
            coded.append(cls(items.stop - items.start, words[at[0] : at[-1]], at - at[0], sums[own]))
        return coded

    @classmethod
    def cells_of_pieces(cls, coded: Sequence[CodedMolecules], first: np.ndarray, lattice: Lattice, xp: Any = np) -> Array:
        """The cells of equal pieces (the last may be shorter), together; `first` has the first cell of each block."""
        for one in coded:
            one._check(np.arange(len(one.checksums)))
        pieces = Pieces.of(sum(one.count for one in coded), coded[0].count)
        ahead = np.cumsum([0, *(len(one.words) for one in coded)])
        word_first = [one.word_first[:-1] + at for one, at in zip(coded, ahead, strict=False)]
        words = xp.asarray(np.concatenate([one.words for one in coded]))
        cells = xp.empty((pieces.count, 3), xp.int32)
        runs, shared = _arguments(cells, pieces, lattice)
        backend.kernel("molecules", "decode_molecules")(
            runs, shared, first=xp.asarray(first.reshape(-1)), words=words, cell=cells,
            word_first=xp.asarray(np.append(np.concatenate(word_first), ahead[-1])),
        )
        return cells

    def like(self, other: object) -> bool:
        """Whether `cells_of_pieces` takes both together, if their lengths allow it."""
        return isinstance(other, CodedMolecules)

    @property
    def _parts(self) -> Sequence[tuple[np.ndarray, np.ndarray]]:
        return [(self.words, self.word_first)]

    def to_bytes(self) -> bytes:
        """Everything as bytes."""
        lengths = np.diff(self.word_first).astype(np.uint32)
        sizes = pack_integers(lengths) if len(lengths) > 1 else b""   # of a single block it is known
        head = _HEADER.pack(len(sizes), len(self.words))
        described = sizes + self.checksums.astype("<u4").tobytes()
        checksum = _CHECKSUM.pack(zlib.crc32(described, zlib.crc32(head)))
        return b"".join([head, checksum, described, self.words.astype("<u2").tobytes()])

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, count: int) -> CodedMolecules:
        """The cells of so many atoms that `to_bytes` wrote."""
        view, body, blocks = memoryview(data), _HEADER.size + _CHECKSUM.size, -(-count // BLOCK_ATOMS)
        if len(view) < body:
            raise CodecFailed(f"coded molecules have a header of {body} bytes; got {len(view)}")
        sizes, words = _HEADER.unpack_from(view)
        ends = np.cumsum([body, sizes, 4 * blocks, 2 * words]).tolist()
        if ends[-1] != len(view):
            raise CodecFailed(f"coded molecules of {count:,} atoms must have {ends[-1]:,} bytes; got {len(view):,}")
        checksum = zlib.crc32(view[body : ends[2]], zlib.crc32(view[: _HEADER.size]))
        if checksum != _CHECKSUM.unpack_from(view, _HEADER.size)[0]:
            raise CodecFailed("the tables of coded molecules fail their checksum")
        lengths = np.full(1, words) if blocks == 1 else unpack_integers(bytes(view[body : ends[1]]), blocks, np.uint32)
        first = starts(lengths)
        if first[-1] != words:
            raise CodecFailed(f"the blocks of coded molecules must have {words:,} words together; got {first[-1]:,}")
        sums, coded = np.frombuffer(view[ends[1] : ends[2]], "<u4"), np.frombuffer(view[ends[2] :], "<u2")
        return cls(count, np.require(coded, requirements="A"), first, np.require(sums, requirements="A"))


def _arguments(cells: Array, pieces: Pieces, lattice: Lattice) -> tuple[int, dict[str, Any]]:
    """How many blocks are coded at once, and what both kernels need: layout, lattice, room for what each block learns."""
    xp, blocks = backend.namespace(cells), pieces.blocks(BLOCK_ATOMS)
    runs = min(blocks, MOST_RUNS) if backend.on_device(cells) else backend.chunks(blocks, cells)
    return runs, {
        "blocks": blocks, "n": len(cells), "piece": pieces.length, "block": BLOCK_ATOMS,
        "last": xp.asarray(lattice.last, xp.int64), "period": xp.asarray(lattice.period, xp.int64),
        "chance": xp.empty(runs * CHANCES, xp.uint32), "means": xp.empty(runs * MEANS, xp.float32),
        "link": xp.empty(runs * BLOCK_ATOMS * LINKS, xp.int32),
    }


def _words(cells: Array, pieces: Pieces, lattice: Lattice) -> tuple[Array, np.ndarray]:
    """The words of all blocks, and where those of each block begin."""
    xp, blocks = backend.namespace(cells), pieces.blocks(BLOCK_ATOMS)
    slot = min(BLOCK_ATOMS, pieces.length) * (3 * max(lattice.last).bit_length() + ROOM) // 16 + 8
    runs, shared = _arguments(cells, pieces, lattice)
    while True:
        slots, used = xp.empty(blocks * slot, xp.uint16), xp.empty(blocks, xp.int64)
        backend.kernel("molecules", "encode_molecules")(runs, shared, cell=cells, slot=slot, words=slots, used=used)
        sizes = backend.to_host(used)
        if sizes.min(initial=0) >= 0:
            break
        slot *= 4   # improbable atoms
    first = starts(sizes)
    words = xp.empty(int(first[-1]), xp.uint16)
    backend.kernel("entropy", "gather_words")(blocks, slot, slots, used, xp.asarray(first), words)
    return words, first
