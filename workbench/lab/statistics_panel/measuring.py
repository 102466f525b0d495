"""What the statistics panel computes: figures from the archive, the same after decoding, and slices, coarse and exact."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from workbench.archive import Archive
from workbench.archive.statistics import KNOWN, METADATA, BlockMeans, Histogram, Statistic, reach, statistics
from workbench.data import Field
from workbench.lab.jobs import Job
from workbench.lab.statistics_panel.state import Region

COARSE = 2**21   # cells of a field from which its slices are shown coarsely first


@dataclass(frozen=True, eq=False)
class Figures:
    """The statistics of a part of the field from the archive, how long they took, and the histogram."""

    region: Region
    statistics: tuple[Statistic, ...]
    seconds: float
    histogram: Histogram | None = None
    nbytes: int = 4096

    def __getitem__(self, name: str) -> Statistic:
        return next(one for one in self.statistics if one.name == name)


@dataclass(frozen=True, eq=False)
class Decoded:
    """The same figures of the decoded values, by NumPy, and how long decoding and computing took."""

    values: dict[str, float]
    seconds: float
    bytes_read: int
    nbytes: int = 4096


@dataclass(frozen=True, eq=False)
class Coarse:
    """The means of all blocks; None for small fields, and where values would have to be decoded for them."""

    means: BlockMeans | None

    @property
    def nbytes(self) -> int:
        """The memory that they take."""
        return 0 if self.means is None else self.means.values.nbytes


@dataclass(frozen=True, eq=False)
class Slice:
    """A slice of the field as a field of one or two axes; `blocks` are the sides of the blocks that were averaged."""

    field: Field
    blocks: tuple[int, ...] = ()

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return self.field.values.nbytes


def figures(archive: Archive, region: Region, job: Job) -> Figures:
    """All statistics of a part."""
    job(0.0, "statistics")
    begun = time.perf_counter()
    several = statistics(archive, list(KNOWN), region)
    return Figures(region, tuple(several), time.perf_counter() - begun)


def with_histogram(archive: Archive, known: Figures, bins: int, job: Job) -> Figures:
    """The figures with a histogram between the ends of what the original values can be."""
    job(0.0, "histogram")
    ends = reach(known["min"], known["max"])
    if not ends[0] < ends[1]:
        return known
    counts = archive.histogram(bins, ends, known.region)
    return Figures(known.region, known.statistics, known.seconds, counts)


def after_decoding(archive: Archive, region: Region, job: Job) -> Decoded:
    """The figures of the decoded values: everything that the region touches is decoded."""
    job(0.0, "decoding")
    begun = time.perf_counter()
    whole = all(end == (0, size) for end, size in zip(region, archive.data.layout.shape, strict=True))
    field = archive.decompress() if whole else archive.read(region)
    values = field.values[field.valid].astype(np.float64)
    known = {
        "mean": float(values.mean()), "sum": float(values.sum()), "std": float(values.std()), "min": float(values.min()),
        "max": float(values.max()),
    }
    seconds = time.perf_counter() - begun
    return Decoded(known, seconds, archive.data.nbytes if whole else archive.explain("min", region).bytes_read)


def coarse(archive: Archive, job: Job) -> Coarse:
    """The means of all blocks, where the metadata of blocks have them and the field is large."""
    if math.prod(archive.data.layout.shape) < COARSE or archive.explain("mean").stage != METADATA:
        return Coarse(None)
    job(0.0, "means of blocks")
    return Coarse(archive.block_means())


def coarse_slice(archive: Archive, means: BlockMeans, region: Region, crossed: tuple[int, ...]) -> Slice:
    """The blocks that a slice cuts, each with its mean."""
    values = means.values
    for axis, ((start, _), edges) in enumerate(zip(region, means.edges, strict=True)):
        if axis in crossed:
            values = np.take(values, [int(np.searchsorted(edges, start, side="right")) - 1], axis)
        else:
            values = np.repeat(values, np.diff(edges), axis)
    return Slice(_flat(archive, values, None, crossed), means.sides)


def exact_slice(archive: Archive, region: Region, crossed: tuple[int, ...], job: Job) -> Slice:
    """The decoded slice: only the chunks, or the blocks, that it cuts are decoded."""
    job(0.0, "slice")
    part = archive.read(region)
    return Slice(_flat(archive, part.values, part.mask, crossed))


def _flat(archive: Archive, values: np.ndarray, mask: np.ndarray | None, crossed: tuple[int, ...]) -> Field:
    """A slice as a field without the axes that it crosses, of each of which it has one point."""
    kept = [axis for axis in range(values.ndim) if axis not in crossed]
    metadata = dict(archive.attributes.get("metadata") or {})
    names = metadata.get("dimensions") or [f"axis {axis}" for axis in range(values.ndim)]
    metadata["dimensions"] = [names[axis] for axis in kept]
    return Field(
        values.squeeze(crossed), spacing=tuple(archive.spacing[axis] for axis in kept), metadata=metadata,
        mask=None if mask is None else mask.squeeze(crossed), name=archive.attributes.get("name") or "",
    )
