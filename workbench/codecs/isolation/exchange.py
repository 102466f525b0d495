"""How two processes pass requests and arrays: messages of JSON on a socket, and a file in memory for the data.

The file has no name, and disappears with the last process that holds it, however that ends. It is used again for the next
request, because allocating new pages of memory costs several times as much as copying.
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
    """A file in memory, mapped as arrays by two processes."""

    def __init__(self, descriptor: int) -> None:
        self.size = os.fstat(descriptor).st_size
        self._descriptor = descriptor
        self._bytes = np.frombuffer(mmap.mmap(descriptor, self.size), np.uint8)

    @classmethod
    def of_size(cls, size: int) -> Self:
        """A new file of zeros. Its memory is allocated on writing."""
        descriptor = os.memfd_create("lossbench") if hasattr(os, "memfd_create") else _on_disk()
        os.ftruncate(descriptor, size)
        return cls(descriptor)

    def array(self, offset: int, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        """The array at this place, shared."""
        return self._bytes[offset : offset + math.prod(shape) * dtype.itemsize].view(dtype).reshape(shape)

    def write(self, offset: int, data: memoryview) -> None:
        """Put contiguous bytes at this place."""
        self._bytes[offset : offset + data.nbytes].data[:] = data.cast("B")

    def read(self, offset: int, size: int) -> bytes:
        """The bytes at this place."""
        return self._bytes[offset : offset + size].tobytes()

    def send_by(self, link: socket.socket, data: bytes) -> None:
        """Send bytes, and with them access to the file."""
        socket.send_fds(link, [data], [self._descriptor])

    def close(self) -> None:
        """Close the file; existing maps of it stay valid."""
        os.close(self._descriptor)


def aligned(size: int) -> int:
    """The next place where an array may begin.

    >>> aligned(64), aligned(65)
    (64, 128)
    """
    return -(-size // ALIGNMENT) * ALIGNMENT


def send(link: socket.socket, message: Mapping[str, Any], file: SharedFile | None = None) -> None:
    """Send a message, and with it access to a file."""
    data = json.dumps(message).encode()
    head = _LENGTH.pack(len(data))
    if file is None:
        link.sendall(head)
    else:
        file.send_by(link, head)
    link.sendall(data)


def receive(link: socket.socket) -> tuple[dict[str, Any], SharedFile | None] | None:
    """The next message and the file that came with it; None when the other side has ended."""
    head, descriptors, _, _ = socket.recv_fds(link, _LENGTH.size, 1)
    file = None
    if descriptors:
        file = SharedFile(descriptors[0])
        file.close()
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
