"""Spoiled files of every format that can be made here: `wb.open` refuses them in a sentence, or reads something.

    python -m fuzz.readers --seed 1 --cases 10000      # from the folder of the tests, PYTHONPATH=..

Bytes are flipped, replaced, removed, repeated, or set to numbers that readers stumble over. A case depends on its number
and the seed alone. A case that takes long, or much memory, is a finding like any other exception.
"""

from __future__ import annotations

import argparse
import functools
import os
import resource
import signal
import struct
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import numpy as np

import workbench as wb
from readers import written
from workbench.archive import Archive
from workbench.data.readers import open_file

SECONDS = 20            # of a case, on a busy machine
MEMORY = 3 * 2**30      # beyond what the process has
NUMBERS = {
    "<I": (0, 1, 2**31 - 1, 2**31, 2**32 - 1), "<q": (-1, 2**62, 2**40),
    ">I": (2**31, 2**32 - 1), "<d": (float("nan"), 1e308),
}
ODD = [struct.pack(form, value) for form, values in NUMBERS.items() for value in values]
WORDS = [b"NaN", b"inf", b"-1", b"0", b"9" * 20, b'"', b"{", b"[", b"]", b"\n", b"\0", b"1e999", b"null", b"\xff\xfe"]

Make = Callable[[Path], dict[str, Any] | None]


def _raw(path: Path) -> dict[str, Any]:
    np.linspace(0, 1, 24, dtype=np.float32).tofile(path)
    return {"shape": (4, 6)}


def _npy(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, written.points(20))


def _npz(path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, positions=written.points(20), box=np.full(3, written.BOX), note="text")


def _gadget(path: Path) -> None:
    ids, counts = np.arange(20, dtype=np.uint32), (0, 20, 0, 0, 0, 0)
    path.write_bytes(written.gadget(written.points(20), written.velocities(20), ids, counts))


def _fast_food(path: Path) -> None:
    path.write_bytes(written.fast_food(written.points(20)))


def _genericio(path: Path) -> None:
    path.write_bytes(written.genericio([written.hacc_columns(20)]))


def _bov(path: Path) -> None:
    path.write_bytes(written.bov(path.parent, np.zeros((2, 3, 4), np.float32)).read_bytes())


def _trr(path: Path) -> None:
    path.write_bytes(written.trr([written.points(5)], box=np.eye(3, dtype=np.float32) * written.BOX))


def _xyz(path: Path) -> None:
    path.write_text(written.xyz([written.points(5), written.points(5, seed=1)]))


def _lammps(path: Path) -> None:
    path.write_text(written.lammps(written.points(5)))


def _hdf5_snapshot(path: Path) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        header = {"NumPart_Total": np.array([0, 20, 0, 0, 0, 0], "u4"), "NumFilesPerSnapshot": 1, "BoxSize": written.BOX,
                  "NumPart_ThisFile": np.array([0, 20, 0, 0, 0, 0], "u4"), "MassTable": np.array([0, 1.5, 0, 0, 0, 0])}
        file.create_group("Header").attrs.update(header)
        file["PartType1/Coordinates"] = written.points(20)
        file.create_dataset("PartType1/Velocities", data=written.velocities(20), chunks=(10, 3), compression="gzip")
        file["PartType1/ParticleIDs"] = np.arange(20)


def _hdf5_grid(path: Path) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("native_fields/density", data=np.ones((4, 4, 4), "f4"), chunks=(2, 4, 4), compression="gzip")
        file["native_fields/density"].attrs.update(units="g", scale_factor=2.0, _FillValue=np.float32(3))
        file.create_group("domain").attrs.update(size=[1.0] * 3, shape=[4] * 3)


def _named(path: Path) -> dict[str, Any]:
    _hdf5_snapshot(path)
    return {"positions": "PartType1/Coordinates", "ids": "PartType1/ParticleIDs", "box": written.BOX}


def _netcdf(path: Path, model: str) -> None:
    import netCDF4

    with netCDF4.Dataset(path, "w", format=model) as file:
        for name, size in {"time": None, "lat": 3, "lon": 4}.items():
            file.createDimension(name, size)
        file.createVariable("lat", "f8", ("lat",))[:] = [0, 1, 2]
        field = file.createVariable("T", "i2", ("time", "lat", "lon"), fill_value=-9)
        field.setncatts({"scale_factor": 0.5, "units": "K"})
        field[:] = np.ones((2, 3, 4))


def _amber(path: Path) -> None:
    import netCDF4

    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as file:
        file.Conventions = "AMBER"
        for name, size in {"frame": None, "atom": 5, "spatial": 3, "cell_spatial": 3, "cell_angular": 3}.items():
            file.createDimension(name, size)
        file.createVariable("coordinates", "f4", ("frame", "atom", "spatial"))[:] = np.ones((2, 5, 3))
        file.createVariable("cell_lengths", "f8", ("frame", "cell_spatial"))[:] = np.full((2, 3), 9.0)
        file.createVariable("cell_angles", "f8", ("frame", "cell_angular"))[:] = np.full((2, 3), 90.0)


def _gsd(path: Path) -> None:
    from gsd import hoomd

    frame = hoomd.Frame()
    frame.particles.N, frame.particles.position = 5, written.points(5) - written.BOX / 2
    frame.configuration.box = [written.BOX] * 3 + [0, 0, 0]
    path.unlink(missing_ok=True)
    with hoomd.open(str(path), "w") as file:
        file.append(frame)


def _abacus(path: Path) -> None:
    import asdf

    columns = {"pos": written.points(20) - written.BOX / 2, "vel": written.velocities(20)}
    header = {"BoxSize": written.BOX, "ParticleMassHMsun": 1.0, "Redshift": 0.5}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asdf.AsdfFile({"header": header, "data": columns}).write_to(path)


def _zarr(path: Path, version: int) -> None:
    import zarr

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group = zarr.open_group(path, mode="w", zarr_format=version)
        array = group.create_array("density", shape=(4, 6), chunks=(2, 6), dtype="f4", attributes={"units": "g"})
        array[:] = np.arange(24).reshape(4, 6)


def _archive(path: Path) -> None:
    made = wb.compress(wb.Particles(written.points(40), written.BOX), wb.Absolute(0.01), chunk_values=60)
    path.write_bytes(made.save(path.with_suffix(".zip"), overwrite=True).read_bytes())


def _mdanalysis(path: Path, suffix: str) -> None:
    import MDAnalysis

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        universe = MDAnalysis.Universe.empty(5, trajectory=True)
        universe.atoms.positions, universe.dimensions = written.points(5), [written.BOX] * 3 + [90.0] * 3
        universe.atoms.write(str(path.with_suffix(suffix)))
    path.write_bytes(path.with_suffix(suffix).read_bytes())


MAKERS: dict[str, Make] = {
    "raw": _raw, "npy": _npy, "npz": _npz, "gadget": _gadget, "ff": _fast_food, "genericio": _genericio, "bov": _bov,
    "trr": _trr, "xyz": _xyz, "lammps": _lammps, "hdf5-snapshot": _hdf5_snapshot, "hdf5-grid": _hdf5_grid, "named": _named,
    "amber": _amber, "gsd": _gsd, "abacus": _abacus, "archive": _archive,
    **{f"netcdf {model}": functools.partial(_netcdf, model=model) for model in ("NETCDF3_CLASSIC", "NETCDF4")},
    **{f"zarr {version}": functools.partial(_zarr, version=version) for version in (2, 3)},
    **{name: functools.partial(_mdanalysis, suffix=f".{name}") for name in ("xtc", "dcd", "gro")},
}


@functools.cache
def files() -> dict[str, tuple[dict[str, bytes], dict[str, Any]]]:
    """A small file of each format, as its parts by name ("" for one that is no folder), and the options that open it."""
    made = {}
    for name, make in MAKERS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "file"
            try:
                options = make(path) or {}
            except ImportError:   # the library of the format is not installed
                continue
            inside = [place for place in path.rglob("*") if place.is_file()]
            parts = {place.relative_to(path).as_posix(): place.read_bytes() for place in inside}
            made[name] = parts or {"": path.read_bytes()}, options
    return made


def spoiled(random: Random, data: bytes) -> bytes:
    """The bytes after one to four changes."""
    found = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 4))):
        at, length = random.randrange(len(found) + 1), random.choice((1, 2, 4, 8, 64))
        change = random.choice(("flip", "odd", "odd", "word", "cut", "remove", "repeat", "zero"))
        if change == "flip" and at < len(found):
            found[at] ^= 1 << random.randrange(8)
        elif change in ("odd", "word"):
            new = random.choice(ODD if change == "odd" else WORDS)
            found[at : at + len(new)] = new
        elif change == "cut":
            del found[at:]
        elif change == "remove":
            del found[at : at + length]
        elif change == "repeat":
            found[at:at] = found[at : at + length] * random.choice((1, 3))
        else:
            found[at : at + length] = bytes(length)
    return bytes(found)


def open_case(seed: int, case: int, folder: Path) -> str:
    """What comes of a case: "read" or "refused"; any other exception is a finding."""
    random = Random(f"{seed}:{case}")
    name = random.choice(sorted(files()))
    parts, options = files()[name]
    part = random.choice(sorted(parts))
    changed = {**parts, part: spoiled(random, parts[part])}
    place = folder / f"case{case}"
    if "" in changed:
        place.write_bytes(changed[""])
    elif random.random() < 0.5:
        with zipfile.ZipFile(place, "w") as file:
            for key, data in changed.items():
                file.writestr(key, data)
    else:
        for key, data in changed.items():
            (place / key).parent.mkdir(parents=True, exist_ok=True)
            (place / key).write_bytes(data)
    named = {} if random.random() < 0.7 else {"format": name.partition(" ")[0]}
    try:
        opened = open_file(place, **options, **named)
        if isinstance(opened, Archive):
            opened = opened.decompress()
    except wb.WorkbenchError:
        return "refused"
    assert isinstance(opened, wb.Particles | wb.Field), f"{name}: {type(opened)}"
    return "read"


def run(seed: int, first: int, cases: int) -> tuple[dict[str, int], list[str]]:
    """How many cases ended in which way, and a line for each finding."""
    counts: dict[str, int] = {}
    found: list[str] = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")   # arithmetic on made-up numbers, and libraries that wonder
        (Path(folder) / "values.raw").write_bytes(bytes(96))
        for case in range(first, first + cases):
            try:
                with _no_longer_than(SECONDS):
                    outcome = open_case(seed, case, Path(folder))
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                name = Random(f"{seed}:{case}").choice(sorted(files()))
                found.append(f"{name}: {type(error).__name__}: {str(error)[:200]} (seed {seed}, case {case})")
                outcome = "finding"
            counts[outcome] = counts.get(outcome, 0) + 1
    return counts, found


@contextmanager
def _no_longer_than(seconds: int) -> Iterator[None]:
    def stop(_: int, __: FrameType | None) -> None:
        raise TimeoutError(f"it took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in {"seed": 0, "first": 0, "cases": 1000}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    files()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
    begun = time.monotonic()
    counts, found = run(given.seed, given.first, given.cases)
    print(*found, sep="\n")
    print(f"{counts} in {time.monotonic() - begun:.0f} s")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
