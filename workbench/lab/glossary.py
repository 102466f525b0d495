"""The words of the panels, each with one explanation: the source of all tooltips and of the documentation's glossary.

One word has one meaning in all panels, notebooks and pages.
"""

from __future__ import annotations

from collections.abc import Mapping

GLOSSARY: Mapping[str, str] = {
    "bits per particle": "the size of the archive for the position of one particle; without compression 96 in float32",
    "broken": "halos that lost or gained members: split ones and merged ones",
    "cost of keeping": "the difference in size, per particle, between the archive with halos kept and the one without",
    "displacement": "how far a particle moved; the error bound ξ holds along each axis, so the distance may be up to √3 ξ",
    "distance": "of the two particles, by nearest image; friends are at most the linking length b apart",
    "error bound": "the largest allowed error of any value, in the unit of the data",
    "false link": "a pair of particles from different groups that are friends in the decoded particles",
    "linking length": "particles closer than this are friends; groups are chains of friends",
    "members after": "the size of the decoded group that has most members of this halo",
    "merged": "halos that lost no member but are joined by particles of other groups",
    "missing link": "a pair of friends that is no longer connected; the fewest that rejoin all split groups are counted",
    "radius": "the root mean square distance of the members from the centre, in the unit of the positions",
    "ratio": "how many times smaller than without compression the positions are",
    "split": "halos that lost members",
}


def meaning(term: str) -> str:
    """The explanation of a term.

    >>> meaning("split")
    'halos that lost members'
    """
    return GLOSSARY[term]
