"""The format `pack9` of Abacus: cells of particles, nine bytes for each particle and for the header of each cell.

Nine bytes hold six numbers of 12 bits, each stored with 2048 added. A first byte of 255 marks the header of a cell: the
other numbers are the cells along an axis of the box, a velocity scale, and the indices i, j, k of the cell, each less 2000.
Other rows are particles: a position in steps of 1/2000 of the cell from its centre, a velocity in steps of 1/2000 of the
scale. This is the definition of abacusutils.
"""

from __future__ import annotations

import numpy as np

ROW = 9          # bytes
MARK = 255       # the first byte of a header
OFFSET = 2000    # of the numbers in headers
STEP = 1 / 2000
BLOCK = 2**18    # rows that are decoded together, so that the intermediate arrays stay small


def is_header(rows: np.ndarray) -> np.ndarray:
    """Which rows (N, 9) are headers of cells; the others are particles."""
    marks: np.ndarray = rows[:, 0] == MARK
    return marks


def unpack_pack9(
    rows: np.ndarray, length: float, speed: float, columns: tuple[str, ...] = ("positions", "velocities")
) -> dict[str, np.ndarray]:
    """Positions around the centre of a box of this length, and velocities, as float32; the first row must be a header.

    `speed` is the velocity, in km/s, of a particle that crosses the box in redshift space (`VelZSpace_to_kms`).

    >>> cell = np.array([255, 0, 0x3A, 0x80, 0, 0x33, 0x03, 0, 0x32], np.uint8)   # of 10 x 10 x 10, the one at (3, 0, 2)
    >>> particle = np.array([0x80, 0x80, 0x64, 0x80, 0x80, 0, 0x80, 0x80, 0], np.uint8)   # 100 steps from its centre in y
    >>> unpack_pack9(np.stack([cell, particle]), 100.0, 500.0)["positions"].tolist()
    [[-15.0, -44.5, -25.0]]
    """
    marks = is_header(rows)
    out = {name: np.empty((len(rows) - int(marks.sum()), 3), np.float32) for name in columns}
    headers = _numbers(rows[marks])
    scales = 1 / (headers[:, 1] + OFFSET)                                         # of the box: the side of a cell
    centres = (headers[:, 3:] + (OFFSET + 0.5)) * (scales * length)[:, None] - length / 2
    speeds = (headers[:, 2] + OFFSET) * STEP * scales * speed
    cell_of = np.cumsum(marks) - 1
    done = 0
    for start in range(0, len(rows), BLOCK):
        chosen = np.flatnonzero(~marks[start : start + BLOCK]) + start
        numbers, cell = _numbers(rows[chosen]), cell_of[chosen]
        end = done + len(chosen)
        if "positions" in out:
            out["positions"][done:end] = numbers[:, :3] * (STEP * length * scales[cell])[:, None] + centres[cell]
        if "velocities" in out:
            out["velocities"][done:end] = numbers[:, 3:] * speeds[cell][:, None]
        done = end
    return out


def _numbers(rows: np.ndarray) -> np.ndarray:
    """The six numbers in each row: three bytes hold two of 12 bits, and the middle byte half of each.

    The low four bits of the middle byte end the first number; the high four begin the second.
    """
    first, middle, last = (rows[:, byte::3].astype(np.int16) for byte in range(3))
    numbers = np.empty((len(rows), 6), np.int16)
    numbers[:, 0::2] = (first << 4) | (middle & 0x0F)
    numbers[:, 1::2] = ((middle & 0xF0) << 4) | last
    return numbers - np.int16(2048)
