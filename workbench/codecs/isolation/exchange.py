"""How two processes pass requests and arrays: messages of JSON on a socket, and a file in memory for the data.

The file has no name. It is gone with the last process that knows it, whatever ends them. What a decoder writes into it is
the array that the caller gets, without a copy.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import socket
import struct
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

ALIGNMENT = 64
LONGEST_MESSAGE = 2**26   # bytes; the document that a request comes from has at most 2^24

_LENGTH = struct.Struct("<Q")


class SharedFile:
    """A file in memory, to be closed; arrays made from it stay valid."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    @classmethod
    def of_size(cls, size: int) -> Self:
        """A new file of zeros. Memory for them is taken when they are written to."""
        descriptor = os.memfd_create("lossbench") if hasattr(os, "memfd_create") else _on_disk()
        os.ftruncate(descriptor, size)
        return cls(descriptor)

    def array(self, offset: int, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        """The array at this place, shared."""
        mapped = mmap.mmap(self.descriptor, os.fstat(self.descriptor).st_size)
        return np.frombuffer(mapped, dtype, math.prod(shape), offset).reshape(shape)

    def write(self, offset: int, data: memoryview) -> None:
        """Put contiguous bytes at this place."""
        view = data.cast("B")
        while view:
            written = os.pwrite(self.descriptor, view, offset)
            view, offset = view[written:], offset + written

    def read(self, offset: int, size: int) -> bytes:
        """The bytes at this place."""
        return self.array(offset, (size,), np.dtype("u1")).tobytes()

    def close(self) -> None:
        """Forget the file here."""
        os.close(self.descriptor)


def aligned(size: int) -> int:
    """The next place where an array may begin.

    >>> aligned(64), aligned(65)
    (64, 128)
    """
    return -(-size // ALIGNMENT) * ALIGNMENT


def send(link: socket.socket, message: Mapping[str, Any], file: SharedFile | None = None) -> None:
    """Send a message, and with it access to a file."""
    data = json.dumps(message).encode()
    socket.send_fds(link, [_LENGTH.pack(len(data))], [] if file is None else [file.descriptor])
    link.sendall(data)


def receive(link: socket.socket) -> tuple[dict[str, Any], SharedFile | None] | None:
    """The next message and the file that came with it; None when the other side has ended."""
    head, descriptors, _, _ = socket.recv_fds(link, _LENGTH.size, 1)
    file = SharedFile(descriptors[0]) if descriptors else None
    if len(head) < _LENGTH.size:
        return None
    (left,) = _LENGTH.unpack(head)
    if left > LONGEST_MESSAGE:
        return None
    parts = []
    while left:
        part = link.recv(min(left, 2**20))
        if not part:
            return None
        parts.append(part)
        left -= len(part)
    return json.loads(b"".join(parts)), file


def _on_disk() -> int:
    """A file without a name where the system has none in memory."""
    with tempfile.TemporaryFile(prefix="lossbench-") as file:
        return os.dup(file.fileno())
