"""The words of the panels, each with one explanation: the source of all tooltips and of the glossary page of the documentation.

One word has one meaning in all panels, notebooks and pages.
"""

from __future__ import annotations

from collections.abc import Mapping

GLOSSARY: Mapping[str, str] = {
    "blink": "two pictures in one place by turns, which shows their differences",
    "broken": "halos that lost or gained members: split ones and merged ones",
    "colour limits": "the values at the ends of the colours; a percentile leaves out that share of the pixels at each end",
    "colour map": "the colours of the values; differences keep theirs, with white at zero",
    "density": "particles per area of the picture; no size of the window and no zooming changes it",
    "error bound": "the largest allowed error of any value, in the unit of the data",
    "false link": "a pair of particles from different groups that are friends in the decoded particles",
    "linking length": "particles closer than this are friends; groups are chains of friends",
    "layer": "all marks of one kind over the pictures, such as halos or missing links",
    "locked limits": "original and decoded have the same colours for the same values",
    "merged": "halos that lost no member but are joined by particles of other groups",
    "missing link": "a pair of friends that is no longer connected; the fewest that would rejoin every split group are counted",
    "opacity": "how much of the picture the marks over it cover",
    "split": "halos that lost members",
}


def meaning(term: str) -> str:
    """The explanation of a term.

    >>> meaning("split")
    'halos that lost members'
    """
    return GLOSSARY[term]
