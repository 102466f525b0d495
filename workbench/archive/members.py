"""The members of a zip file, from its directory or, where that is damaged, from the headers of the members themselves.

The directory of a zip file is at its end, so a truncated file has none. Each member of an archive stands behind a header
with its name and sizes: one walk over these headers finds every member that is complete. Bytes that are no header are
skipped up to the next signature. Members found this way need not be trusted: chunks and documents have checksums of their
own.

Chunks are stored without compression, so that any part of them is read where it is. Zarr's documents are deflated: they are
read as a whole, and are much of a small archive.
"""

from __future__ import annotations

import io
import mmap
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from workbench.archive.document import MOST_BYTES
from workbench.archive.frame import HINT, Damaged
from workbench.archive.key import ROOT, is_key, require_key
from workbench.errors import WorkbenchError

LOCAL_HEADER = struct.Struct("<4s2xHH8xIIHH")   # signature, flags, method, sizes, lengths of name and extra field
LOCAL_SIGNATURE = b"PK\x03\x04"
_ENCRYPTED, _SIZES_LATER = 0x1, 0x8   # flags; the second says that the sizes are behind the member
_MOST_EXTRA = 256   # bytes of an extra field in which the size is searched
_ZIP64 = 2**32 - 1
_NOT_PLAIN = _ENCRYPTED | _SIZES_LATER
LEVEL, _RAW = 9, -15   # of zlib: as small as it can, and without a header
_FIRST_DATE = (1980, 1, 1, 0, 0, 0)   # the earliest that a zip file knows
_PLAIN_FILE = 0o100644 << 16
_UNIX = 3
_MOST_INFLATED = 1032   # bytes for each deflated one, at most
# The header of a member that is stored or deflated, not encrypted, with its sizes and a short name; a file that is nothing
# but signatures is passed over at the speed of the search.
_PLAIN_HEADER = re.compile(
    rb"PK\x03\x04..[" + b"".join(re.escape(bytes([flags])) for flags in range(256) if not flags & _NOT_PLAIN)
    + rb"].(?:\0\0.{8}(.{4})\1|\x08\0.{16}).[\0-\x02]", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Member:
    """A part of a zip file: where its header begins, how many bytes it holds, and how many it takes."""

    key: str
    offset: int
    size: int
    stored: int
    deflated: bool = False

    def inflated(self, data: bytes) -> bytes:
        """What a deflated part holds, from its bytes in the file."""
        inflater = zlib.decompressobj(_RAW)
        try:
            found = inflater.decompress(data, self.size + 1)
        except zlib.error as error:
            raise Damaged(self.key, f"it cannot be inflated ({error})") from None
        if len(found) != self.size or not inflater.eof or inflater.unused_data:
            raise Damaged(self.key, f"it must be inflated to {self.size:,} bytes; it is not")
        return found


@dataclass(frozen=True)
class Listing:
    """The members of a zip file, and the byte before which all of them end."""

    members: list[Member]
    end: int


def is_deflated(key: str) -> bool:
    """Whether a part is deflated in a zip file: documents of Zarr are.

    >>> is_deflated("zarr.json"), is_deflated("values/c/0/0"), is_deflated("values/root.json.z")
    (True, False, False)
    """
    return key.rsplit("/", 1)[-1] == ROOT


def written(key: str) -> zipfile.ZipInfo:
    """What `zipfile` needs to know of a part before it is written: no times, and whether it is deflated."""
    member = zipfile.ZipInfo(key, _FIRST_DATE)
    member.create_system, member.external_attr = _UNIX, _PLAIN_FILE
    if is_deflated(key):
        member.compress_type = zipfile.ZIP_DEFLATED
    return member


def nbytes_in_zip(parts: Mapping[str, bytes]) -> int:
    """How many bytes these parts take in a zip file.

    >>> nbytes_in_zip({"values/c/0": b" " * 1000}), nbytes_in_zip({"zarr.json": b" " * 1000}) < 20
    (1000, True)
    """
    return sum(len(_deflated(data)) if is_deflated(key) else len(data) for key, data in parts.items())


def _deflated(data: bytes) -> bytes:
    """The same bytes as `zipfile` writes."""
    deflater = zlib.compressobj(LEVEL, zlib.DEFLATED, _RAW)
    return deflater.compress(data) + deflater.flush()


def listed(path: Path) -> Listing:
    """The members by the directory of the zip file. Members that cannot be parts of an archive are left out."""
    return listed_in(path, path.name, "not an archive, or an incomplete zip file", f"check the path; if it is one, {HINT}")


def listed_in(file: Path | io.RawIOBase, name: str, else_it_is: str, advice: str) -> Listing:
    """The same, of a file that is open or not yet; and what is said of one that is no zip file."""
    try:
        with zipfile.ZipFile(file) as opened:
            end = opened.start_dir
            members = [member for member in opened.infolist() if not member.is_dir() and _may_be_part(member)]
    except (OSError, WorkbenchError):
        raise
    except Exception as error:   # a forged zip file can make the standard library raise anything
        raise WorkbenchError(f"{name} is {else_it_is} ({error}): {advice}") from None
    _check_members(name, members, end)
    return Listing([_of_directory(member) for member in members], end)


def scanned(path: Path) -> Listing:
    """The members whose headers are found in the file, with or without its directory."""
    size = path.stat().st_size
    found: dict[str, Member] = {}
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
        header = _PLAIN_HEADER.search(data)
        while header:
            member, following = _member_at(data, header.start(), size)
            if member is not None:
                found.setdefault(member.key, member)
            header = _PLAIN_HEADER.search(data, following)
        if isinstance(data, mmap.mmap):
            data.close()
    return Listing(list(found.values()), size)


def _member_at(data: mmap.mmap | bytes, at: int, size: int) -> tuple[Member | None, int]:
    """The member whose header begins here, if any, and where to search for the next."""
    behind = at + LOCAL_HEADER.size
    if behind > size:
        return None, at + 1
    *_, method, stored, unpacked, name_length, extra_length = LOCAL_HEADER.unpack(data[at:behind])
    deflated, name = method != zipfile.ZIP_STORED, data[behind : behind + name_length].decode("utf-8", "replace")
    if deflated and not (is_deflated(name) and _may_be_inflated(unpacked, stored)):
        return None, at + 1
    if not deflated and unpacked == _ZIP64:
        extra = data[behind + name_length : behind + name_length + min(extra_length, _MOST_EXTRA)]
        stored = unpacked = _zip64_size(extra)
    start = behind + name_length + extra_length
    if start + stored > size:
        return None, at + 1
    return (Member(name, at, unpacked, stored, deflated) if is_key(name) else None), start + stored


def _of_directory(member: zipfile.ZipInfo) -> Member:
    deflated = member.compress_type == zipfile.ZIP_DEFLATED
    return Member(member.filename, member.header_offset, member.file_size, member.compress_size, deflated)


def _may_be_inflated(size: int, stored: int) -> bool:
    """Whether so many deflated bytes can be a document of this size."""
    return size <= min(MOST_BYTES, stored * _MOST_INFLATED)


def _zip64_size(extra: bytes) -> int:
    """The size of a member too large for its header, from the extra field of type 1."""
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<HH", extra)
        if kind == 1 and length >= 8 and len(extra) >= 12:
            return struct.unpack_from("<Q", extra, 4)[0]
        extra = extra[4 + length :]
    return _ZIP64


def _may_be_part(member: zipfile.ZipInfo) -> bool:
    """Whether a member may be part of the archive (hidden files are not). Paths that lead out of it are refused."""
    if is_key(member.filename):
        return True
    names = member.filename.replace("\\", "/").split("/")
    if ".." in names or "" in names or "\\" in member.filename:
        require_key(member.filename)
    return False


def _check_members(name: str, members: list[zipfile.ZipInfo], end: int) -> None:
    """Refuse members that are not plain files or are compressed, but for documents, and a directory that lies."""
    for member in members:
        kind = stat.S_IFMT(member.external_attr >> 16)
        if kind not in (0, stat.S_IFREG):
            raise WorkbenchError(f"an archive holds plain files; {member.filename} in {name} is a link or a device")
        deflated = member.compress_type == zipfile.ZIP_DEFLATED and is_deflated(member.filename)
        if not (deflated or member.compress_type == zipfile.ZIP_STORED) or member.flag_bits & _ENCRYPTED:
            raise WorkbenchError(
                f"{member.filename} in {name} is compressed or encrypted by the zip file itself: unpack the file, and pack "
                "it again without compression (zip -0)"
            )
        sizes = member.file_size, member.compress_size
        fit = _may_be_inflated(*sizes) if deflated else sizes[0] == sizes[1]
        if not fit or not 0 <= member.header_offset < end:
            raise WorkbenchError(f"{name} contradicts itself about {member.filename}: copy or download it again; or {HINT}")
    if len({member.filename for member in members}) < len(members):
        raise WorkbenchError(f"{name} holds several parts with the same name: it was not written as an archive")
    needed = sum(member.compress_size + LOCAL_HEADER.size + len(member.filename) for member in members)
    if needed > end:
        raise WorkbenchError(
            f"the parts of {name} need {needed:,} bytes; it has {end:,}: copy or download it again; or {HINT}"
        )
