"""Archives: compressed data with a promise that was checked, as Zarr groups that anyone can read."""

from workbench.archive.archive import Archive
from workbench.archive.certificate import Certificate, Promise
from workbench.archive.compress import compress
from workbench.archive.content.field import FIELD
from workbench.archive.content.particles import PARTICLES
from workbench.archive.content.registry import enter
from workbench.archive.frame import Damaged
from workbench.archive.opening import ARCHIVE
from workbench.data.readers import register

enter(PARTICLES, FIELD)
register(ARCHIVE)   # from here on wb.open knows archives

__all__ = ["Archive", "Certificate", "Damaged", "Promise", "compress"]
