"""Formats that are not read are named, with what to do."""

import struct

import pytest

from workbench import WorkbenchError
from workbench.data.readers import open_file


def pp_field(order=">"):
    """One field of 3 rows of 4 points: a record of 64 words, and a record of the points."""
    words = [2001, 6, 15, 0, 0, 166, *[0] * 8, 12, 0, 0, 3, 4, *[0] * 45]
    header = struct.pack(f"{order}64i", *words)
    data = struct.pack(f"{order}12f", *range(12))
    return b"".join(struct.pack(f"{order}i", len(one)) + one + struct.pack(f"{order}i", len(one)) for one in (header, data))


@pytest.mark.parametrize(
    ("content", "title"),
    [
        (pp_field(), "Met Office PP"),
        (pp_field("<"), "Met Office PP"),
        (b"GRIB\0\0\0\2" + bytes(60), "GRIB"),
        (b"SIMPLE  =                    T" + b" " * 50, "FITS"),
        (b"II*\0" + bytes(60), "TIFF or GeoTIFF"),
        (struct.pack("<Q", 20) + b'{"a":{}}' + bytes(60), "safetensors"),
        (b"\x80\x04\x95" + bytes(60), "pickle"),
        (b"\x1f\x8b\x08" + bytes(60), "gzip, bzip2, xz or Zstandard"),
    ],
)
def test_an_unread_format_is_named(tmp_path, content, title):
    (tmp_path / "data").write_bytes(content)
    with pytest.raises(WorkbenchError, match=f"data is a file of {title}, which is not read here: "):
        open_file(tmp_path / "data")
