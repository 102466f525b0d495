"""Abacus (AbacusSummit) particles in ASDF files, whose blocks are compressed by Blosc.

Positions and velocities come either as floats in the columns `pos` and `vel`, or packed into one 32-bit integer per
axis, `rvint`: the upper 20 bits are a signed position in millionths of the box, the lower 12 an unsigned velocity from
-6000 km/s up in steps of 6000 / 2048. Positions are relative to the centre of the box and are returned in [0, box); those
of light cones are in an open space.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable
from typing import Any

import numpy as np

from workbench.data.particles import Particles
from workbench.data.readers.format import Format
from workbench.data.readers.images import Images
from workbench.data.readers.leaving import named, noted
from workbench.data.readers.libraries import library
from workbench.data.readers.options import FROM_FILE, Cell, FileBox, particles
from workbench.data.readers.source import Source, plain
from workbench.errors import WorkbenchError

VELOCITY_BITS = 12
BOX_STEPS = 1_000_000
FASTEST = 6000.0   # km/s
IDS = ("pid", "packedpid")
NAMES = {   # in the metadata: in the header
    "redshift": "Redshift",
    "scale_factor": "ScaleFactor",
    "omega_m": "Omega_M",
    "hubble": "H0",
    "simulation": "SimName",
}


def read(source: Source, *, box: FileBox = FROM_FILE, wrap: bool = False) -> Particles:
    """The particles of one file, from `rvint` or from `pos` and `vel`."""
    asdf = library("asdf", "Abacus files")
    with source.read_by("asdf"), asdf.config_context() as config:
        config.add_extension(_blosc_extension())
        with asdf.open(source.path, ignore_missing_extensions=True, ignore_unrecognized_tag=True) as file:
            data, header = file.tree.get("data"), file.tree.get("header", {})
            length = _box_length(source, header)
            positions, velocities = _phase_space(source, data, length)
            ids = next((np.array(data[name]) for name in IDS if name in data), None)
            others = named("column", set(data) - _read_from(data))
            entries = plain(dict(header))
    known = {ours: entries[theirs] for ours, theirs in NAMES.items() if theirs in entries}
    metadata = noted({"format": "Abacus ASDF", **known, "units": "Mpc/h, km/s", "header": entries}, others)
    if isinstance(box, str) and box == FROM_FILE and _is_light_cone(source, entries):
        return particles(positions, None, None, velocities, ids, metadata | {"light_cone": True}, wrap=wrap)
    return particles(positions, Cell((length,) * 3), box, velocities, ids, metadata, images=Images.CENTRE, wrap=wrap)


def _is_light_cone(source: Source, header: dict[str, Any]) -> bool:
    """A light cone surrounds an observer, across copies of the box. Abacus marks it by names of files and folders."""
    names = [source.path.name, *(part.name for part in source.path.resolve().parents)]
    said = str(header.get("OutputType", "")).lower().replace(" ", "")
    return said == "lightcone" or names[0].startswith(("lc_", "LightCone")) or "halo_light_cones" in names


def _read_from(data: Any) -> set[str]:
    """The columns that are used."""
    first = {"rvint"} if "rvint" in data else {"pos", "vel"}
    return first | {next((name for name in IDS if name in data), "")}


def unpack_rvint(packed: np.ndarray, length: float) -> tuple[np.ndarray, np.ndarray]:
    """Positions around the centre of a box of this length, and velocities in km/s, as float32.

    >>> positions, velocities = unpack_rvint(np.array([[250_000 << 12, -250_000 << 12, 4095]], np.int32), 1000.0)
    >>> positions.tolist(), velocities[0, 2].item()
    ([[250.0, -250.0, 0.0]], 5997.0703125)
    """
    steps = packed >> VELOCITY_BITS   # an arithmetic shift: the sign stays
    middle = 1 << (VELOCITY_BITS - 1)
    speeds = (packed & ((1 << VELOCITY_BITS) - 1)) - middle
    return (steps * (length / BOX_STEPS)).astype(np.float32), (speeds * (FASTEST / middle)).astype(np.float32)


def _box_length(source: Source, header: Any) -> float:
    length = plain(header.get("BoxSize")) if hasattr(header, "get") else None
    if not isinstance(length, int | float) or not 0 < length < float(np.finfo(np.float32).max):
        raise WorkbenchError(f"{source.name} is ASDF, but not from Abacus: expected BoxSize in a header; got {length!r}")
    return float(length)


def _phase_space(source: Source, data: Any, length: float) -> tuple[np.ndarray, np.ndarray | None]:
    names = list(data) if hasattr(data, "keys") else []
    if "rvint" in names:
        packed = np.array(data["rvint"])
        if packed.dtype.kind != "i" or packed.dtype.itemsize != 4 or packed.size % 3:
            raise source.damaged(f"rvint must hold three int32 per particle; got {packed.dtype} of shape {packed.shape}")
        return unpack_rvint(packed.astype(np.int32).reshape(-1, 3), length)
    if "pos" in names:
        return np.array(data["pos"]), np.array(data["vel"]) if "vel" in names else None
    listed = ", ".join(map(str, names)) or "none"
    raise WorkbenchError(f"{source.name} has no column rvint or pos; its columns are {listed}")


@functools.cache
def _blosc_extension() -> Any:
    """The ASDF extension for the block compression `blsc`; created on use, because its base classes are optional."""
    extension: Any = library("asdf.extension", "Abacus files")
    Compressor, Extension = extension.Compressor, extension.Extension

    class Blosc(Compressor):   # type: ignore[misc, valid-type]
        label = b"blsc"

        def decompress(self, data: Iterable[Any], out: Any, **options: Any) -> int:
            return _decompress(b"".join(bytes(piece) for piece in data), out)

    class Abacus(Extension):   # type: ignore[misc, valid-type]
        extension_uri = "asdf://lossbench/extensions/abacus-blosc-1.0.0"
        compressors = (Blosc(),)

    return Abacus()


def _decompress(stream: bytes, out: Any) -> int:
    """A sequence of pieces, each preceded by its compressed size as four big-endian bytes."""
    blosc = library("blosc", "compressed Abacus files")
    target, at, done = memoryview(out).cast("B"), 0, 0
    while at < len(stream):
        (size,) = struct.unpack_from(">I", stream, at)
        piece = stream[at + 4 : at + 4 + size]
        expands_to, compressed, _ = blosc.get_cbuffer_sizes(piece)
        if compressed != len(piece) or done + expands_to > len(target):
            raise ValueError("a compressed block does not fit its stated size")
        target[done : done + expands_to] = blosc.decompress(piece)
        at, done = at + 4 + size, done + expands_to
    return done


ABACUS = Format("abacus", "Abacus particles (ASDF)", lambda source: source.starts_with(b"#ASDF"), read)
