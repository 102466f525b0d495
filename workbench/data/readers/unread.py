"""Formats that scientists have and that are not read here: the error names them and says what to do."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from workbench.data.readers.source import Source
from workbench.errors import SeveralArrays, WorkbenchError

PP_HEADER = 256           # bytes of the record in front of each field
MOST_POINTS = 2**28       # of one field in PP: a larger number is none of points


@dataclass(frozen=True)
class Unread:
    """A format by its first bytes, and how its contents get here."""

    title: str
    recognises: Callable[[bytes], bool]
    advice: str


def beginning(*marks: bytes, at: int = 0) -> Callable[[bytes], bool]:
    """Whether a file has one of these marks at a byte.

    >>> beginning(b"ustar", at=2)(b"..ustar")
    True
    """
    return lambda head: any(head[at : at + len(mark)] == mark for mark in marks)


def is_pp(head: bytes) -> bool:
    """Whether this begins with the header of a field in the Met Office's PP format: a date, a length, rows and points.

    >>> is_pp(struct.pack(">I", 256) + bytes(256))
    False
    """
    for order in "><":
        if len(head) >= PP_HEADER + 8 and struct.unpack_from(f"{order}I", head)[0] == PP_HEADER:
            words = struct.unpack_from(f"{order}45i", head, 4)
            year, month, day, hour, minute = words[:5]
            dated = 0 <= year <= 9999 and 0 <= month <= 12 and 0 <= day <= 31 and 0 <= hour <= 24 and 0 <= minute < 60
            return dated and all(0 < words[place] < MOST_POINTS for place in (14, 17, 18))
    return False


AS_DATASET = 'give wb.compress(path, {"*": wb.Exact()}), a bound for each of its arrays, or open it by its own library'
UNREAD = (
    Unread("Met Office PP", is_pp, "convert it to NetCDF, as by iris.save(iris.load(path), 'fields.nc')"),
    Unread("GRIB", lambda head: b"GRIB" in head[:64], AS_DATASET),
    Unread("FITS", beginning(b"SIMPLE  ="), AS_DATASET),
    Unread(
        "TIFF or GeoTIFF",
        beginning(b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"),
        AS_DATASET,
    ),
    Unread("HDF4", beginning(b"\x0e\x03\x13\x01"), "convert it to HDF5 by h4toh5"),
    Unread("Parquet", beginning(b"PAR1"), AS_DATASET),
    Unread("MATLAB", beginning(b"MATLAB 5.0 MAT-file"), "open it by scipy.io.loadmat, and give one of its arrays"),
    Unread("ROOT", beginning(b"root"), "open it by uproot, and give columns as arrays"),
    Unread("VTK", beginning(b"# vtk DataFile", b"<VTKFile"), "open it by pyvista or meshio, and give one of its arrays"),
    Unread("safetensors", lambda head: head[8:10] == b'{"', AS_DATASET),
    Unread(
        "PDB", beginning(b"HEADER    ", b"CRYST1", b"ATOM  ", b"REMARK "), "convert it to GRO, as by gmx editconf"
    ),
    Unread("pickle", beginning(b"\x80\x03", b"\x80\x04", b"\x80\x05"), "save the array by numpy.save: pickles run code"),
    Unread("gzip, bzip2, xz or Zstandard", beginning(b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"(\xb5/\xfd"), "decompress it"),
    Unread("tar", beginning(b"ustar", at=257), "extract its files"),
)


def refuse_unread(source: Source) -> None:
    """Raise the error that names the format of a file, if it is a known one that is not read."""
    for known in UNREAD:
        if not source.is_folder and known.recognises(source.head):
            error = SeveralArrays if known.advice == AS_DATASET else WorkbenchError
            raise error(f"{source.name} is a file of {known.title}, which is not read here: {known.advice}")
