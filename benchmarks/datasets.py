"""Datasets in one archive: what that costs over an archive for each variable, and a dataset larger than the workers.

python benchmarks/datasets.py [--gigabytes 4] [--skip-workers]

Forty variables on one grid: time and bytes of one archive and of forty; opening; the bytes that are read for a region of
one percent of a variable. Then a dataset of Dask arrays is compressed through its accessor by two workers of 1 GiB.
"""

from __future__ import annotations

import argparse
import functools
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
import timing
import xarray

import workbench as wb
import workbench.xarray
from workbench.archive.store import ZipStore
from workbench.guarantees import Limit

VARIABLES, SHAPE, DIMENSIONS = 40, (12, 96, 144), ("time", "lat", "lon")
BOUND = wb.Relative(1e-3)
CHUNK = 2**16   # values, for reading by region


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=4.0, help="of the dataset that workers compress")
    parser.add_argument("--skip-workers", action="store_true", help="only the forty variables")
    options = parser.parse_args()
    print(timing.machine())
    with tempfile.TemporaryDirectory() as folder:
        print(timing.targets(list(forty_variables(Path(folder)))))
        if not options.skip_workers:
            print(timing.targets(list(on_workers(Path(folder), options.gigabytes))))


def forty_variables(folder: Path) -> Iterator[tuple[str, float, str, float]]:
    """One archive against forty: name, figure, relation, target."""
    dataset = forty()
    bare = {name: dataset[name] for name in dataset.data_vars}
    archives = {name: wb.compress(array, BOUND, chunk_values=CHUNK) for name, array in bare.items()}
    together = wb.compress(dataset, BOUND, chunk_values=CHUNK)
    seconds = timing.interleaved({"one": one_archive, "forty": forty_archives}, repeats=3)
    yield "bytes over forty archives", together.nbytes / sum(one.nbytes for one in archives.values()), "<=", 1.03
    yield "time over forty archives", seconds["one"] / seconds["forty"], "<=", 1.03
    path = together.save(folder / "x.zip")
    yield "opening, ms", 1e3 * timing.seconds(lambda: wb.open(path)), "<=", 50
    yield "opening one variable with xarray, ms", 1e3 * timing.seconds(lambda: xarray.open_dataset(path)["V7"]), "<=", 500
    name, region = "V23", [(5, 6), (30, 50), (40, 73)]   # 0.4 percent
    needed = chunks_at(wb.open(path), name, region)
    with counted() as read:
        wb.open(path)[name].read(region)
    yield "bytes read, opening included, over those of the chunks that a region needs", sum(read) / needed, "<=", 1.5


def one_archive() -> None:
    """All variables in one archive."""
    wb.compress(forty(), BOUND, chunk_values=CHUNK)


def forty_archives() -> None:
    """An archive for each variable."""
    for name in forty().data_vars:
        wb.compress(forty()[name], BOUND, chunk_values=CHUNK)


def chunks_at(archive: wb.Collection, name: str, region: list[tuple[int, int]]) -> int:
    """The bytes of the chunks that hold a region."""
    layout = archive[name].data.layout

    def meets(index: tuple[int, ...]) -> bool:
        pairs = zip(layout.chunk_slices(index), region, strict=True)
        return all(part.start < stop and start < part.stop for part, (start, stop) in pairs)

    touched = filter(meets, layout.chunk_indices())
    return sum(archive[name].store.size(layout.chunk_key(index)) for index in touched)


@contextmanager
def counted() -> Iterator[list[int]]:
    """The sizes of all reads, of the documents, too."""
    sizes: list[int] = []
    read = ZipStore.read

    def counting(store: ZipStore, key: str, begin: int = 0, size: int | None = None) -> bytes:
        data = read(store, key, begin, size)
        sizes.append(len(data))
        return data

    with mock.patch.object(ZipStore, "read", counting):
        yield sizes


def on_workers(folder: Path, gigabytes: float) -> Iterator[tuple[str, float, str, float]]:
    """A dataset of Dask arrays larger than two workers of 1 GiB, through the accessor."""
    from distributed import Client, LocalCluster

    dataset = large(gigabytes)
    with LocalCluster(
        n_workers=2, threads_per_worker=1, memory_limit="1GiB", dashboard_address=None, host="127.0.0.1",
        local_directory=os.fspath(folder),
    ) as cluster, Client(cluster) as client:
        restarts = sum(1 for _ in client.scheduler_info(n_workers=-1)["workers"])
        start = time.perf_counter()
        archive = dataset.wb.compress(BOUND, out=folder / "large.zarr", client=client)
        seconds = time.perf_counter() - start
        workers = client.scheduler_info(n_workers=-1)["workers"]
    kept = f"{len(workers)} of {restarts} workers"
    print(f"{dataset.nbytes / 1e9:.1f} GB in {seconds:.0f} s, {archive.ratio:.1f} times smaller, {kept}")
    yield "gigabytes of the dataset", dataset.nbytes / 1e9, ">=", gigabytes * 0.9
    yield "largest error over its bound", largest_share(archive), "<=", 1.0


def largest_share(archive: wb.Collection) -> float:
    """The largest error of all members, over the limit of each."""
    promises = [archive[name].certificate["values"] for name in archive]
    return max(
        (promise.figures.get("largest_error", 0.0) / promise.limit.value for promise in promises
         if isinstance(promise.limit, Limit) and promise.limit.value), default=0.0,
    )


@functools.cache
def forty() -> xarray.Dataset:
    """Forty fields, smooth to rough, with shared coordinates."""
    arrays = {}
    for number in range(VARIABLES):
        field = wb.synthetic.gaussian_field(SHAPE, seed=number)
        attributes = {"units": "K", "long_name": f"variable {number}"}
        arrays[f"V{number}"] = (DIMENSIONS, np.asarray(field.values, np.float32), attributes)
    coordinates = {"time": np.arange(12.0), "lat": np.linspace(-90, 90, 96), "lon": np.arange(144) * 2.5}
    return xarray.Dataset(arrays, coordinates, {"title": "forty variables"})


def large(gigabytes: float) -> xarray.Dataset:
    """Four variables of Dask arrays, computed where they are needed."""
    import dask.array

    lat, lon, count = 720, 1440, 4
    blocks = max(1, round(gigabytes * 1e9 / (4 * 4 * lat * lon * count)))
    place = np.indices((lat, lon), np.float32).sum(0)

    def block(number: int, block_info: dict | None = None) -> np.ndarray:
        assert block_info is not None
        (begin, end), *_ = block_info[None]["array-location"]
        steps = np.arange(begin, end, dtype=np.float32)[:, None, None]
        return np.sin(place / (30 + number) + steps / 7).astype(np.float32)

    chunks = (4,) * blocks, (lat,), (lon,)
    arrays = {
        f"V{number}": (DIMENSIONS, dask.array.map_blocks(block, number, chunks=chunks, dtype=np.float32))   # type: ignore[no-untyped-call]
        for number in range(count)
    }
    return xarray.Dataset(arrays, {"time": np.arange(4 * blocks)})


if __name__ == "__main__":
    main()
