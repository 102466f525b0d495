"""The members of a zip file, from its directory or, where that is damaged, from the headers of the members themselves.

The directory of a zip file is at its end, so a truncated file has none. The members of an archive are stored
without compression, each behind a header with its name and size: one walk over these headers finds every member that is
complete. Bytes that are no header are skipped up to the next signature. Members found this way need not be trusted:
chunks and documents have checksums of their own.
"""

from __future__ import annotations

import io
import mmap
import re
import stat
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path

from workbench.archive.frame import HINT
from workbench.archive.key import is_key, require_key
from workbench.errors import WorkbenchError

LOCAL_HEADER = struct.Struct("<4s2xHH8xIIHH")   # signature, flags, method, sizes, lengths of name and extra field
LOCAL_SIGNATURE = b"PK\x03\x04"
_ENCRYPTED, _SIZES_LATER = 0x1, 0x8   # flags; the second says that the sizes are behind the member
_MOST_EXTRA = 256   # bytes of an extra field in which the size is searched
_ZIP64 = 2**32 - 1
_NOT_PLAIN = _ENCRYPTED | _SIZES_LATER
# The header of a member that is stored, not encrypted, with its size and a short name; a file that is nothing but
# signatures is passed over at the speed of the search.
_PLAIN_HEADER = re.compile(
    rb"PK\x03\x04..[" + b"".join(re.escape(bytes([flags])) for flags in range(256) if not flags & _NOT_PLAIN)
    + rb"].\0\0.{8}(.{4})\1.[\0-\x02]", re.DOTALL
)


@dataclass(frozen=True)
class Member:
    """A part of a zip file: where its header begins, and how many bytes it holds."""

    key: str
    offset: int
    size: int


@dataclass(frozen=True)
class Listing:
    """The members of a zip file, and the byte before which all of them end."""

    members: list[Member]
    end: int


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
    return Listing([Member(member.filename, member.header_offset, member.file_size) for member in members], end)


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
    *_, unpacked, name_length, extra_length = LOCAL_HEADER.unpack(data[at:behind])
    if unpacked == _ZIP64:
        extra = data[behind + name_length : behind + name_length + min(extra_length, _MOST_EXTRA)]
        unpacked = _zip64_size(extra)
    start = behind + name_length + extra_length
    if start + unpacked > size:
        return None, at + 1
    name = data[behind : behind + name_length].decode("utf-8", "replace")
    return (Member(name, at, unpacked) if is_key(name) else None), start + unpacked


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
    """Refuse members that are not plain stored files, and a directory that contradicts the file."""
    for member in members:
        kind = stat.S_IFMT(member.external_attr >> 16)
        if kind not in (0, stat.S_IFREG):
            raise WorkbenchError(f"an archive holds plain files; {member.filename} in {name} is a link or a device")
        if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & _ENCRYPTED:
            raise WorkbenchError(
                f"{member.filename} in {name} is compressed or encrypted by the zip file itself: unpack the file, and pack "
                "it again without compression (zip -0)"
            )
        if member.file_size != member.compress_size or not 0 <= member.header_offset < end:
            raise WorkbenchError(f"{name} contradicts itself about {member.filename}: copy or download it again; or {HINT}")
    if len({member.filename for member in members}) < len(members):
        raise WorkbenchError(f"{name} holds several parts with the same name: it was not written as an archive")
    needed = sum(member.file_size + LOCAL_HEADER.size + len(member.filename) for member in members)
    if needed > end:
        raise WorkbenchError(
            f"the parts of {name} need {needed:,} bytes; it has {end:,}: copy or download it again; or {HINT}"
        )
