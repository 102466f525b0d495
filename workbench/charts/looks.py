"""How a codec looks in all charts: one colour, one mark and one dash pattern, whatever else a chart shows.

All colours have medium lightness, so that they are visible on white and on dark pages, and none is a colour of a
theoretical curve. Codecs also differ in marks and dashes: those with one mark have colours that colour-blind readers can
tell apart. The codecs of this package state their
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

GREY = "#7a7a7a"      # of lines
INK = "#767676"       # of texts, where the page does not say its own
COLOURS = ("#2f7fc1", "#d0600f", "#1a9070", "#c2609a", "#8a6fd1", "#93800f", "#0f8fa4", "#a9714b")
CODEC_COLOURS = (
    "#c2609a", "#8a6fd1", "#93800f", "#0f8fa4", "#a9714b", "#d4524f", "#5f8a2e", "#6d7f96",
    "#66734a", "#84546c", "#cc7884", "#4890fc", "#2ba02b", "#c43adc", "#1651fd", "#ff1ab2", "#962dff",
)
AREA_COLOURS = ("#467ab2", "#c36615", "#39b7b5", "#9aad6e", "#4c8bfd", "#794f4a")   # distinct without red or green, too
VIRIDIS = ("440154", "482878", "3e4989", "31688e", "26828e", "1f9e89", "35b779", "6ece58", "b5de2b", "fde725")
MARKS: Mapping[Marker, str] = {   # 8 units wide, around the origin
    "circle": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", "square": "M-4 -4h8v8h-8z",
    "diamond": "M0 -4.8l3.2 4.8l-3.2 4.8l-3.2 -4.8z", "triangle": "M0 -5l5 9h-10z",
    "inverted_triangle": "M0 5l5 -9h-10z", "hex": "M-4.5 0l2.25 -4h4.5l2.25 4l-2.25 4h-4.5z",
    "star": "M0 -5.5l1.6 3.6l3.9 .4l-2.9 2.6l.8 3.9l-3.4 -2l-3.4 2l.8 -3.9l-2.9 -2.6l3.9 -.4z",
}
DASHES: Mapping[Dash, str] = {"solid": "", "dashed": "7 4", "dotted": "2 3", "dotdash": "2 3 7 3", "dashdot": "7 3 2 3"}


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


def colour(number: int) -> str:
    """The colour of the curve or region of this number; colours repeat after eight.

    >>> colour(0), colour(8) == colour(0)
    ('#2f7fc1', True)
    """
    return COLOURS[number % len(COLOURS)]


def area_colour(number: int) -> str:
    """The colour of the area of this number, such as a part of a bar; colours repeat after six."""
    return AREA_COLOURS[number % len(AREA_COLOURS)]


def marker(number: int) -> Marker:
    """The mark of the curve or region of this number."""
    return get_args(Marker)[number % len(get_args(Marker))]
