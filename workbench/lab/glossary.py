"""The words of the panels, each with one explanation: the source of all tooltips and of the glossary page of the documentation.

One word has one meaning in all panels, notebooks and pages.
"""

from __future__ import annotations

from collections.abc import Mapping

GLOSSARY: Mapping[str, str] = {
    "bits above the bound": "draw operating points as bits above the theoretical bound instead of bits",
    "broken": "halos that lost or gained members: split ones and merged ones",
    "chance of failure": "the largest probability with which a code of fixed length may exceed the distortion",
    "codec": "the method of compression",
    "error bound": "the largest allowed error of any value, in the unit of the data",
    "false link": "a pair of particles from different groups that are friends in the decoded particles",
    "halo: at least": "groups with at least so many members are shown as halos",
    "keep groups of": "groups with at least so many members are kept: none of them is split or merged",
    "kind of bound": "absolute: in the unit of the data; relative to the range: a share of largest less smallest value; pointwise relative: a share of each value",
    "line of sight": "the axis along which particles are seen",
    "linking length": "particles closer than this are friends; groups are chains of friends",
    "log colours": "colours follow the logarithm of the value",
    "merged": "halos that lost no member but are joined by particles of other groups",
    "missing link": "a pair of friends that is no longer connected; the fewest that would rejoin every split group are counted",
    "order": "kept: the order of the particles is restored; free: particles are stored in any order, which takes fewer bits",
    "regions": "parts of the field with statistics of their own; each gets its own model",
    "second picture": "decoded: particles as the codec returns them; halos kept: after the halos were preserved",
    "slice": "the number of the visible slice, from 0",
    "slice across axis": "the axis of the array that is perpendicular to the visible slice",
    "solver": "how particles are moved to keep halos: by descent, by whatever takes fewer bits, or by exact corrections, which take more",
    "split": "halos that lost members",
    "tiles of": "the side of the tiles that a codec codes independently, in values; larger tiles take fewer bits",
    "time": "the number of the visible time step, from 0",
    "unit of the linking length": "mean spacings: (volume / number of particles)^(1/3); unit of the box: as the positions",
}


def meaning(term: str) -> str:
    """The explanation of a term.

    >>> meaning("split")
    'halos that lost members'
    """
    return GLOSSARY[term]
