"""Archives: compressed data with a promise that was checked, as Zarr groups that anyone can read."""

from workbench.archive.archive import Archive
from workbench.archive.certificate import Certificate, Promise
from workbench.archive.collection.collection import Collection
from workbench.archive.collection.dataset import Dataset
from workbench.archive.compress import compress
from workbench.archive.content.field import FIELD
from workbench.archive.content.particles import PARTICLES
from workbench.archive.content.registry import enter
from workbench.archive.content.trajectory import TRAJECTORY
from workbench.archive.content.variable import VARIABLE
from workbench.archive.converting import convert
from workbench.archive.frame import Damaged
from workbench.archive.linear_combination import linear_combination
from workbench.archive.opening import ARCHIVE
from workbench.archive.series.opening import SERIES
from workbench.archive.series.series import Series
from workbench.archive.statistics.vectors import curl, divergence
from workbench.data.readers import register

enter(PARTICLES, FIELD, VARIABLE, TRAJECTORY)
register(SERIES)
register(ARCHIVE)   # from here on wb.open knows archives

__all__ = [
    "Archive", "Certificate", "Collection", "Damaged", "Dataset", "Promise", "Series", "compress", "convert", "curl",
    "divergence", "linear_combination",
]
