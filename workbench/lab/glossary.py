"""The words of the panels, each with one explanation: the source of all tooltips and of the glossary page of the documentation.

One word has one meaning in all panels, notebooks and pages.
"""

from __future__ import annotations

from collections.abc import Mapping

GLOSSARY: Mapping[str, str] = {
    "broken": "halos that lost or gained members: split ones and merged ones",
    "changed members": "particles that left their halo (a cross) or joined one (a ring); up to 20,000 are marked",
    "colour by": "halo: the largest in colour; status: intact, split or merged; density: particles along the line of sight",
    "coloured halos": "so many of the largest halos have a hue; the hues repeat after the seventh",
    "depth cue": "particles far away are dimmer",
    "error bound": "the largest allowed error of any value, in the unit of the data",
    "false link": "a pair of particles from different groups that are friends in the decoded particles",
    "in 3-D": "the particles as a cloud that can be turned: all of them, or the halo of the close-up",
    "linking length": "particles closer than this are friends; groups are chains of friends",
    "merged": "halos that lost no member but are joined by particles of other groups",
    "missing link": "a pair of friends that is no longer connected; the fewest that would rejoin every split group are counted",
    "opacity": "the light of each particle: more shows sparse regions, less the inside of dense ones",
    "point size": "the size of each particle, relative to what suits their number",
    "split": "halos that lost members",
}


def meaning(term: str) -> str:
    """The explanation of a term.

    >>> meaning("split")
    'halos that lost members'
    """
    return GLOSSARY[term]
