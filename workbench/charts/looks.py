"""How a codec looks in all charts: one colour, one mark and one dash pattern, whatever else a chart shows.

All colours have medium lightness, so that they are visible on white and on dark pages, and none is a colour of a
theoretical curve. Codecs also differ in marks and dashes, for colour-blind readers. A codec that is not listed gets a look
from a hash of its name, so that it is the same in every chart, unless another codec of the same chart has it already.
"""

from __future__ import annotations

import itertools
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

Marker = Literal["circle", "square", "diamond", "triangle", "inverted_triangle", "hex", "star"]
Dash = Literal["solid", "dashed", "dotted", "dotdash", "dashdot"]

CODEC_COLOURS = ("#c2609a", "#8a6fd1", "#93800f", "#0f8fa4", "#a9714b", "#d4524f", "#5f8a2e", "#6d7f96")


@dataclass(frozen=True)
class Look:
    """The look of the points and lines of a codec."""

    colour: str
    marker: Marker
    dash: Dash = "solid"


LOOKS: Mapping[str, Look] = MappingProxyType({
    "interpolation": Look("#5f8a2e", "circle", "dotdash"),
    "sz3": Look("#8a6fd1", "circle", "solid"),
    "zfp": Look("#d4524f", "square", "dashed"),
    "sperr": Look("#0f8fa4", "diamond", "dotdash"),
    "prequantised": Look("#93800f", "triangle", "dotted"),
    "lattice": Look("#c2609a", "hex", "solid"),
    "pcodec": Look("#a9714b", "inverted_triangle", "dashdot"),
    "fpzip": Look("#5f8a2e", "star", "dashed"),
    "bitround": Look("#6d7f96", "square", "dotted"),
    "columns": Look("#c2609a", "star", "dashdot"),
    "draco": Look("#0f8fa4", "inverted_triangle", "dotted"),
    "numcodecs": Look("#5f8a2e", "hex", "dotdash"),
})

_PAIRS = [pair for pair in itertools.product(CODEC_COLOURS, get_args(Marker))
          if pair not in {(look.colour, look.marker) for look in LOOKS.values()}]
OTHERS = tuple(Look(*pair, dash) for pair, dash in zip(_PAIRS, itertools.cycle(get_args(Dash)), strict=False))


def looks_of(names: Iterable[str]) -> dict[str, Look]:
    """The looks of the codecs in one chart, by their names, which differ in colour or mark as long as there are enough.

    A codec with options, in another order or with another kind of bound has the colour of the codec and another mark.

    >>> found = looks_of(["zfp, absolute", "zfp"])
    >>> found["zfp"] == LOOKS["zfp"], found["zfp, absolute"].colour == LOOKS["zfp"].colour
    (True, True)
    """
    chosen = list(dict.fromkeys(names))
    found: dict[str, Look] = {}
    for name in sorted(chosen, key=lambda name: (name not in LOOKS, name)):
        wanted = _wanted(name)
        found[name] = next((look for look in wanted if look not in found.values()), wanted[0])
    return {name: found[name] for name in chosen}


def _wanted(name: str) -> Sequence[Look]:
    """The looks that suit a name, the best first."""
    if name in LOOKS:
        return [LOOKS[name]]
    first = zlib.crc32(name.encode()) % len(OTHERS)
    turned = [*OTHERS[first:], *OTHERS[:first]]
    known = LOOKS.get(re.split(r"[(,]", name, maxsplit=1)[0])
    return turned if known is None else sorted(turned, key=lambda look: look.colour != known.colour)
