"""Colour maps as tables of 256 colours: the canvas in the browser and the pictures in a report use the same bytes.

All rise evenly in lightness (or fall evenly from the middle, for differences). Those with hues run between blue and orange
or yellow, which are distinct in all common kinds of colour blindness.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from functools import cache

import numpy as np

from workbench.charts.looks import VIRIDIS
from workbench.lab.description import ColourMap, Picture

NOTHING = (118, 118, 118)   # masked cells: a medium grey that is in no map

ANCHORS: Mapping[ColourMap, tuple[str, ...]] = {
    "density": ("080818", "261e5c", "682a78", "b03c64", "e86c42", "fab058", "fef4d0"),
    "values": ("0b1f4b", "1f4370", "40636f", "6f826c", "a89f5e", "dcbf57", "fdeb8e"),
    "viridis": VIRIDIS,
    "grey": ("101010", "f6f6f6"),
    "difference": ("1d4f91", "4f8fc4", "a9cbe2", "f2f2ee", "f0c08c", "d9822b", "8f4700"),
}


@cache
def table(name: ColourMap) -> np.ndarray:
    """The colours (256, 3) of a map, as bytes.

    >>> table("density").shape, table("density")[0].tolist()
    ((256, 3), [8, 8, 24])
    """
    anchors = np.array([tuple(bytes.fromhex(anchor)) for anchor in ANCHORS[name]], float)
    places = np.linspace(0, len(anchors) - 1, 256)
    channels = [np.interp(places, np.arange(len(anchors)), anchors[:, channel]) for channel in range(3)]
    colours = np.stack(channels, axis=-1).round().astype(np.uint8)
    colours.flags.writeable = False
    return colours


def tables() -> dict[str, bytes]:
    """All maps, for the browser."""
    return {name: table(name).tobytes() for name in ANCHORS}


def coloured(picture: Picture) -> np.ndarray:
    """The picture as (height, width, 3) bytes."""
    numbers, colours = _indexed(picture)
    return colours[numbers]


def _indexed(picture: Picture) -> tuple[np.ndarray, np.ndarray]:
    """The number of the colour of each pixel, as bytes, and the colours."""
    colours = _palette(picture.palette) if picture.palette else table(picture.colours)
    if picture.empty:
        colours = np.concatenate([[NOTHING], colours[1:]]).astype(np.uint8)
    if picture.pixels.dtype == np.uint8:
        return picture.pixels, colours
    return ((picture.pixels.astype(np.uint32) + 256) // 257).astype(np.uint8), colours   # only level 0 is colour 0


def _palette(given: tuple[str, ...]) -> np.ndarray:
    """A colour for each byte, from 1, where bytes are whole numbers at equal distances."""
    numbers = np.rint((np.arange(256) - 1).clip(0) / 254 * (len(given) - 1)).astype(int)
    return np.array([tuple(bytes.fromhex(colour.lstrip("#"))) for colour in given], np.uint8)[numbers]


def png(picture: Picture) -> bytes:
    """The picture as a PNG file, with a byte for each pixel and the colours beside them."""
    from PIL import Image

    stream, (numbers, colours) = io.BytesIO(), _indexed(picture)
    image = Image.fromarray(np.ascontiguousarray(numbers))
    image.putpalette(colours.tobytes())
    image.save(stream, "PNG", optimize=True)
    return stream.getvalue()


def data_url(picture: Picture) -> str:
    """The picture as a data URL for an HTML page."""
    return "data:image/png;base64," + base64.b64encode(png(picture)).decode()
