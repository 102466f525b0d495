"""Pixels as a PNG file, and as text that a page can hold; without a plotting library."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np


def png(pixels: np.ndarray) -> bytes:
    """RGB bytes (height, width, 3) as a PNG file."""
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)   # 0: no filter

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(rows.tobytes(), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def as_data_url(image: bytes) -> str:
    """A PNG file as text that an HTML page can hold."""
    return "data:image/png;base64," + base64.b64encode(image).decode()
