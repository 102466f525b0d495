"""Atoms that leave a cell through a face and come back through the opposite one, as if they had gone on.

A jump through the cell would be a large residual in its frame and in the next, and where it is predicted from. So before
frames are predicted, periods of the cell are added to positions so that each atom takes the short way from frame to frame.
How many is kept in the chunk, and taken off when it is decoded: nothing about a file is assumed, so that atoms outside
their cell, molecules that are wrapped as a whole and oblique cells that change come back as they were.

The numbers of periods are known nearly everywhere, and the few differences are kept: either from those that bring all
atoms into one cell, which fail only for atoms that are about on a face; or from those in the frame before.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Self

import numpy as np

from workbench.codecs.codec import CodecFailed, Tolerance
from workbench.codecs.inflating import inflated
from workbench.codecs.pcodec import PCodec

INTO_CELL, AS_BEFORE = 0, 1   # what numbers of periods are compared with
MOST = 2**20                  # periods
EXACTLY = Tolerance(absolute=0.0)

_HEADER = struct.Struct("<B3dIQII")   # the way, the low faces, bytes of the edges, differences, bytes of places and of them


@dataclass(frozen=True, eq=False)
class Faces:
    """The cells of frames, edges as rows (frames, 3, 3), and the periods added to each atom (frames, atoms, 3).

    >>> frames = np.full((2, 1, 3), 0.5)
    >>> frames[:, 0, 0] = [9.75, 0.25]
    >>> faces = Faces.of(frames, np.tile(10 * np.eye(3), (2, 1, 1)), 0.01)
    >>> faces.without(frames)[1, 0].tolist()
    [10.25, 0.5, 0.5]
    """

    edges: np.ndarray     # float32
    periods: np.ndarray   # int32

    @classmethod
    def of(cls, values: np.ndarray, edges: np.ndarray, finest: float) -> Self | None:
        """The periods that make the ways of all atoms short; None if no atom crosses a face.

        Edges are taken as multiples of about `finest`, as fewer digits take less room where cells change.
        """
        digit = np.float64(2.0 ** np.clip(np.floor(np.log2(max(finest, 1e-300))), -60, 60))
        edges = (np.rint(edges / digit) * digit).astype(np.float32)
        inverse = inverses(edges)
        if not np.isfinite(inverse).all() or not edges.any():
            return None
        periods = np.zeros(values.shape, np.int32)
        for frame in range(1, len(values)):
            with np.errstate(all="ignore"):   # values that are not finite stay where they are
                way = values[frame].astype(np.float64) - values[frame - 1]
                crossed = np.rint(fractions(way, inverse[frame]))
                crossed = np.where(np.abs(crossed) < MOST, crossed, 0).astype(np.int32)
            periods[frame] = periods[frame - 1] - crossed
        return cls(edges, periods) if 0 < np.abs(periods).max() < MOST else None

    def without(self, values: np.ndarray) -> np.ndarray:
        """The positions as if there were no faces."""
        return self._moved(values, 1)

    def within(self, values: np.ndarray) -> np.ndarray:
        """The positions where the file has them, from those without faces."""
        return self._moved(values, -1)

    def _moved(self, values: np.ndarray, sign: int) -> np.ndarray:
        found = values.copy()
        frame, atom = np.nonzero(self.periods.any(axis=2))
        count, edges = sign * self.periods[frame, atom].astype(np.float64), self.edges.astype(np.float64)[frame]
        for c in range(3):
            way = count[:, 0] * edges[:, 0, c] + count[:, 1] * edges[:, 1, c] + count[:, 2] * edges[:, 2, c]
            found[frame, atom, c] = (values[frame, atom, c] + way).astype(values.dtype)
        return found

    def to_bytes(self, decoded: np.ndarray) -> bytes:
        """The periods, for one who has decoded these positions without faces."""
        low = low_faces(self.within(decoded), self.edges)
        ways = [self.periods[1:] - into_cell(decoded, self.edges, low)[1:], np.diff(self.periods, axis=0)]
        way = int(np.argmin([np.count_nonzero(each) for each in ways]))
        differences = ways[way].reshape(-1)
        places, parts = np.flatnonzero(differences), [b"", b""]
        if places.size:
            parts = [PCodec().encode(each, EXACTLY) for each in (places, differences[places].astype(np.int32))]
        numbers = np.ascontiguousarray(self.edges.transpose(1, 2, 0)).astype("<f4")
        cells = zlib.compress(numbers.reshape(-1).view("u1").reshape(-1, 4).T.tobytes(), 9)   # alike ones together
        return _HEADER.pack(way, *low, len(cells), places.size, *map(len, parts)) + cells + b"".join(parts)

    @staticmethod
    def end(data: bytes) -> int:
        """How many bytes of these are of faces: others follow."""
        if len(data) < _HEADER.size:
            raise CodecFailed(f"motion: {len(data)} bytes hold no cells: they are damaged")
        _, _, _, _, cells, _, places, values = _HEADER.unpack_from(data)
        return int(_HEADER.size + cells + places + values)

    @classmethod
    def read(cls, data: bytes, decoded: np.ndarray) -> Self:
        """What `to_bytes` wrote for these decoded positions."""
        way, *low, cells, count, of_places, of_values = _HEADER.unpack_from(data)
        shape, size = decoded.shape, decoded[1:].size
        if way not in (INTO_CELL, AS_BEFORE) or not np.isfinite(low).all() or count > size:
            raise CodecFailed("motion: what is said of cells is none of theirs: it is damaged")
        begin = _HEADER.size + cells
        digits = np.frombuffer(inflated(data[_HEADER.size : begin], 36 * shape[0]), "u1").reshape(4, -1)
        numbers = np.ascontiguousarray(digits.T).reshape(-1).view("<f4").astype(np.float32)
        edges = np.ascontiguousarray(numbers.reshape(3, 3, shape[0]).transpose(2, 0, 1))
        if not np.isfinite(inverses(edges)).all():
            raise CodecFailed("motion: the cells have no volume: they are damaged")
        differences = np.zeros(size, np.int32)
        if count:
            places = PCodec().decode(data[begin : begin + of_places], (count,), np.dtype(np.int64))
            if places.min() < 0 or places.max() >= size:
                raise CodecFailed(f"motion: faces are crossed beyond the {size:,} coordinates: the bytes are damaged")
            rest = data[begin + of_places : begin + of_places + of_values]
            differences[places] = PCodec().decode(rest, (count,), np.dtype(np.int32))
        periods = np.zeros(shape, np.int32)
        own = differences.reshape(-1, *shape[1:])
        periods[1:] = own + into_cell(decoded, edges, low)[1:] if way == INTO_CELL else np.cumsum(own, axis=0)
        return cls(edges, periods)


def inverses(edges: np.ndarray) -> np.ndarray:
    """The inverse of each cell; an axis without a period has the unit in its place. Every machine finds the same bits."""
    there = np.any(edges != 0, axis=2)
    full = edges.astype(np.float64) + np.eye(3) * ~there[:, :, None]
    one, two, three = (full[:, k] for k in range(3))
    across = [np.cross(two, three), np.cross(three, one), np.cross(one, two)]
    volume = one[:, 0] * across[0][:, 0] + one[:, 1] * across[0][:, 1] + one[:, 2] * across[0][:, 2]
    with np.errstate(all="ignore"):   # cells without volume are refused where this is called
        inverse = np.stack(across, axis=2) / volume[:, None, None]
    return np.where(there[:, None, :], inverse, 0)


def fractions(values: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    """Positions or ways (atoms, 3) in units of the edges of a cell; sums are in a fixed order."""
    return values[:, :1] * inverse[0] + values[:, 1:2] * inverse[1] + values[:, 2:] * inverse[2]


def low_faces(values: np.ndarray, edges: np.ndarray) -> list[float]:
    """Where a cell must begin, in units of its edges, to have all of these about in its middle."""
    ends = []
    with np.errstate(all="ignore"):
        for frame, inverse in zip(values, inverses(edges), strict=True):
            inside = fractions(frame.astype(np.float64), inverse)
            inside = inside[np.isfinite(inside).all(axis=1)]
            ends += [inside.min(axis=0), inside.max(axis=0)] if len(inside) else []
        found = (np.min(ends, axis=0) + np.max(ends, axis=0) - 1) / 2 if ends else np.zeros(3)
    return [float(each) for each in np.where(np.isfinite(found), found, 0)]


def into_cell(values: np.ndarray, edges: np.ndarray, low: list[float]) -> np.ndarray:
    """The periods to take off so that all of these are in their cells."""
    found = np.zeros(values.shape, np.int32)
    for frame, inverse in enumerate(inverses(edges)):
        with np.errstate(all="ignore"):
            periods = np.floor(fractions(values[frame].astype(np.float64), inverse) - np.array(low))
            known = (np.abs(periods) < MOST) & (inverse.any(axis=0))
            found[frame] = np.where(known, periods, 0).astype(np.int32)
    return found
