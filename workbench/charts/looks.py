"""How a codec looks in all charts: one colour, one mark and one dash pattern, whatever else a chart shows.

All colours have medium lightness, so that they are visible on white and on dark pages, and none is a colour of a
theoretical curve. Codecs also differ in marks and dashes, for colour-blind readers. The codecs of this package state their
looks. Any other line gets a look from a hash of its name, so that it is the same in every chart, unless another line of the
same chart has it already.
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


def looks_of(names: Iterable[str], known: Mapping[str, Look] = MappingProxyType({})) -> dict[str, Look]:
    """The looks of the lines in one chart, by their names, which differ in colour or mark as long as there are enough.

    `known` are the looks of codecs. A codec with options, in another order or with another kind of bound has the colour of
    the codec and another mark.

    >>> known = {"zfp": Look("#d4524f", "square", "dashed")}
    >>> found = looks_of(["zfp, absolute", "zfp"], known)
    >>> found["zfp"] == known["zfp"], found["zfp, absolute"].colour == known["zfp"].colour
    (True, True)
    """
    chosen = list(dict.fromkeys(names))
    free = _free(known)
    found: dict[str, Look] = {}
    for name in sorted(chosen, key=lambda name: (name not in known, name)):
        wanted = _wanted(name, known, free)
        found[name] = next((look for look in wanted if look not in found.values()), wanted[0])
    return {name: found[name] for name in chosen}


def _free(known: Mapping[str, Look]) -> list[Look]:
    """Looks of which no known one has both the colour and the mark."""
    taken = {(look.colour, look.marker) for look in known.values()}
    pairs = [pair for pair in itertools.product(CODEC_COLOURS, get_args(Marker)) if pair not in taken]
    return [Look(*pair, dash) for pair, dash in zip(pairs, itertools.cycle(get_args(Dash)), strict=False)]


def _wanted(name: str, known: Mapping[str, Look], free: Sequence[Look]) -> Sequence[Look]:
    """The looks that suit a name, the best first."""
    if name in known:
        return [known[name]]
    first = zlib.crc32(name.encode()) % len(free)
    turned = [*free[first:], *free[:first]]
    codec = known.get(re.split(r"[(,]", name, maxsplit=1)[0])
    return turned if codec is None else sorted(turned, key=lambda look: look.colour != codec.colour)
