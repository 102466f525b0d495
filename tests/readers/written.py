"""Small files of every format, written by the tests themselves and independently of the readers."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

BOX = 10.0


def points(count: int, dtype: Any = np.float32, seed: int = 0, box: float = BOX) -> np.ndarray:
    """Positions inside [0, box)."""
    return (np.random.default_rng(seed).random((count, 3)) * box * 0.999).astype(dtype)


def velocities(count: int, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(count, 3)).astype(dtype)


def record(payload: bytes, order: str = "<") -> bytes:
    """A Fortran record."""
    size = struct.pack(f"{order}I", len(payload))
    return size + payload + size


def gadget(
    positions: np.ndarray,
    velocity: np.ndarray,
    ids: np.ndarray,
    counts: tuple[int, ...],
    *,
    order: str = "<",
    version: int = 1,
    totals: tuple[int, ...] | None = None,
    files: int = 1,
    box: float = BOX,
) -> bytes:
    """A Gadget binary snapshot; `counts` is the number of particles per type."""
    header = bytearray(256)
    struct.pack_into(f"{order}6I6d2d", header, 0, *counts, *range(6), 0.5, 1.0)
    struct.pack_into(f"{order}6I", header, 96, *(totals or counts))
    struct.pack_into(f"{order}i4d", header, 124, files, box, 0.3, 0.7, 0.68)
    blocks = [(b"HEAD", bytes(header))]
    for label, array in ((b"POS ", positions), (b"VEL ", velocity), (b"ID  ", ids)):
        blocks.append((label, array.astype(array.dtype.newbyteorder(order)).tobytes()))
    out = b""
    for label, payload in blocks:
        if version == 2:
            out += record(label + struct.pack(f"{order}I", len(payload) + 8), order)
        out += record(payload, order)
    return out


def fast_food(positions: np.ndarray, *, order: str = "<", box: int = int(BOX), weights: bool = True) -> bytes:
    columns = [*positions.T, *([positions[:, 0]] if weights else [])]
    payloads = [
        struct.pack(f"{order}5i", box, len(positions), 0, 0, 0),
        struct.pack(f"{order}9f", box, *[0.0] * 8),
        struct.pack(f"{order}f", 0.25),
        *(np.ascontiguousarray(column).astype(column.dtype.newbyteorder(order)).tobytes() for column in columns),
    ]
    return b"".join(record(payload, order) for payload in payloads)


def slow_crc64(data: bytes) -> int:
    """CRC-64 bit by bit: initial ones, reflected, not complemented at the end."""
    state = 0xFFFFFFFFFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = (state >> 1) ^ (0xC96C5795D7870F42 if state & 1 else 0)
    return state


FLAGS = {"x": 4, "y": 8, "z": 16}


def genericio(
    ranks: list[dict[str, np.ndarray]],
    *,
    order: str = "<",
    origin: tuple[float, ...] = (0.0, 0.0, 0.0),
    scale: tuple[float, ...] = (BOX,) * 3,
    blosc: Any = None,
) -> bytes:
    """A GenericIO file of columns per rank; compressed when the Blosc module is given."""
    columns = ranks[0]
    global_size, variable_size, rank_size, block_size = 168, 272, 48, 48
    blocks = len(ranks) * len(columns) if blosc else 0
    ranks_at = global_size + variable_size * len(columns)
    blocks_at = ranks_at + rank_size * len(ranks)
    header_size = blocks_at + block_size * blocks
    header = bytearray(header_size)
    counts = [len(next(iter(rank.values()))) for rank in ranks]
    numbers = [header_size, sum(counts), len(ranks), 1, 1, len(columns), variable_size, global_size]
    numbers += [len(ranks), rank_size, ranks_at, global_size]
    header[:8] = b"HACC01L\0" if order == "<" else b"HACC01B\0"
    block_table = (block_size, blocks_at) if blosc else (0, 0)
    struct.pack_into(f"{order}12Q6d2Q", header, 8, *numbers, *origin, *scale, *block_table)
    for index, (name, column) in enumerate(columns.items()):
        flags = {"f": 3, "i": 2, "u": 0}[column.dtype.kind] | FLAGS.get(name, 0)
        place = global_size + variable_size * index
        struct.pack_into(f"{order}256s2Q", header, place, name.encode(), flags, column.dtype.itemsize)
    body = b""
    for rank, (entries, count) in enumerate(zip(ranks, counts, strict=True)):
        start = header_size + 8 + len(body)
        struct.pack_into(f"{order}6Q", header, ranks_at + rank_size * rank, rank, 0, 0, count, start, rank)
        for index, column in enumerate(entries.values()):
            payload = column.astype(column.dtype.newbyteorder(order)).tobytes()
            if blosc:
                compressed = blosc.compress(payload, typesize=column.dtype.itemsize)
                payload = struct.pack(f"{order}Q", slow_crc64(payload)) + compressed
                place = blocks_at + block_size * (rank * len(columns) + index)
                at = header_size + 8 + len(body)
                struct.pack_into(f"{order}8s24x2Q", header, place, b"BLOSC", at, len(payload))
            body += payload + struct.pack(f"{order}Q", slow_crc64(payload))
    return bytes(header) + struct.pack(f"{order}Q", slow_crc64(bytes(header))) + body


def hacc_columns(count: int, seed: int = 0) -> dict[str, np.ndarray]:
    """The columns of a HACC rank."""
    position, velocity = points(count, seed=seed), velocities(count)
    columns = {name: position[:, axis].copy() for axis, name in enumerate("xyz")}
    columns |= {name: velocity[:, axis].copy() for axis, name in enumerate(("vx", "vy", "vz"))}
    columns["phi"] = velocity[:, 0].copy()
    return {**columns, "id": np.arange(count, dtype=np.int64), "mask": np.zeros(count, np.uint16)}


def bov(folder: Path, values: np.ndarray, **changes: str) -> Path:
    """A BOV header with its raw file."""
    values.astype("<" + values.dtype.str[1:]).tofile(folder / "values.raw")
    entries = {
        "TIME": "1.5",
        "DATA_FILE": "values.raw",
        "DATA_SIZE": " ".join(str(points) for points in reversed(values.shape)),
        "DATA_FORMAT": "FLOAT" if values.dtype == np.float32 else "DOUBLE",
        "VARIABLE": "density",
        "DATA_ENDIAN": "LITTLE",
        "CENTERING": "zonal",
        "BRICK_ORIGIN": "0. 0. 0.",
        "BRICK_SIZE": "8. 4. 2.",
    } | changes
    path = folder / "field.bov"
    path.write_text("".join(f"{key}: {value}\n" for key, value in entries.items()))
    return path


def trr(frames: list[np.ndarray], *, box: np.ndarray | None, velocity: bool = True) -> bytes:
    """A GROMACS trajectory in the precision of the positions."""
    out = b""
    for number, positions in enumerate(frames):
        dtype = positions.dtype.newbyteorder(">")
        nothing = positions[:0]
        blocks = {"box": nothing if box is None else box, "x": positions, "v": -positions if velocity else nothing}
        data = {name: block.astype(dtype).tobytes() for name, block in blocks.items()}
        sizes = [0, 0, len(data["box"]), 0, 0, 0, 0, len(data["x"]), len(data["v"]), 0]
        out += struct.pack(">iii12s", 1993, 13, 12, b"GMX_trn_file")
        out += struct.pack(">10i3i", *sizes, len(positions), 100 * number, 0)
        out += np.array([0.5 * number, 0.0], dtype).tobytes() + data["box"] + data["x"] + data["v"]
    return out


def xyz(frames: list[np.ndarray], comment: str = "atoms") -> str:
    lines = []
    for frame in frames:
        lines += [str(len(frame)), comment, *(f"Ar {x:.9g} {y:.9g} {z:.9g}" for x, y, z in frame)]
    return "\n".join(lines) + "\n"


def gro(positions: np.ndarray, box: float = BOX) -> str:
    """One frame of a GROMACS structure."""
    rows = [
        f"{1:5d}{'SOL':<5}{'OW':>5}{index:5d}{x:8.3f}{y:8.3f}{z:8.3f}"
        for index, (x, y, z) in enumerate(positions.tolist(), 1)
    ]
    return "\n".join(["atoms", f"{len(rows):5d}", *rows, f"{box:10.5f}" * 3]) + "\n"


def lammps(
    positions: np.ndarray,
    *,
    low: float = 0.0,
    flags: str = "pp pp pp",
    tilts: tuple[float, ...] | None = None,
    columns: str = "x y z",
    order: np.ndarray | None = None,
    box: float = BOX,
) -> str:
    """One frame of a LAMMPS dump; `order` shuffles the lines."""
    bounds = [f"{low} {low + box}" + (f" {tilts[axis]}" if tilts else "") for axis in range(3)]
    rows = [f"{index + 1} 1 " + " ".join(f"{number:.17g}" for number in row) for index, row in enumerate(positions)]
    rows = rows if order is None else [rows[index] for index in order]
    title = f"ITEM: BOX BOUNDS {'xy xz yz ' if tilts else ''}{flags}"
    head = ["ITEM: TIMESTEP", "7", "ITEM: NUMBER OF ATOMS", str(len(rows)), title, *bounds]
    return "\n".join([*head, f"ITEM: ATOMS id type {columns}", *rows]) + "\n"
