"""The words of the panels, each with one explanation: the source of all tooltips and of the glossary page of the documentation.

One word has one meaning in all panels, notebooks and pages.
"""

from __future__ import annotations

from collections.abc import Mapping

GLOSSARY: Mapping[str, str] = {
    "broken": "halos that lost or gained members: split ones and merged ones",
    "descent": "steps that move several particles together until their constraints are satisfied",
    "error bound": "the largest allowed error of any value, in the unit of the data",
    "false link": "a pair of particles from different groups that are friends in the decoded particles",
    "linking length": "particles closer than this are friends; groups are chains of friends",
    "loss": "half the sum of the squared violations, in squared error bounds: what the descent reduces",
    "merged": "halos that lost no member but are joined by particles of other groups",
    "missing link": "a pair of friends that is no longer connected; the fewest that would rejoin every split group are counted",
    "round of moves": "a step in which particles move one by one by fractions of the error bound; it may follow other "
                      "constraints than the descent before it",
    "split": "halos that lost members",
    "violation": "a pair of particles that is not yet linked as in the original",
}


def meaning(term: str) -> str:
    """The explanation of a term.

    >>> meaning("split")
    'halos that lost members'
    """
    return GLOSSARY[term]
