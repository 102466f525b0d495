"""The words of the panels, each with one explanation: the source of all tooltips and of the glossary page of the documentation.

One word has one meaning in all panels, notebooks and pages.
"""

from __future__ import annotations

from collections.abc import Mapping

GLOSSARY: Mapping[str, str] = {
    "95% interval of the bound": "contains the bound of such fields with a probability of 95%",
    "archive description": "names, checksums and certificate in an archive; it matters for small fields",
    "bound in tiles": "a bound of the Gaussian model: the fewest bits for codes that code one tile at a time",
    "broken": "halos that lost or gained members: split ones and merged ones",
    "each value bounded": "a bound of the Gaussian model: the fewest bits that keep each value within the error bound",
    "error bound": "the largest allowed error of any value, in the unit of the data",
    "false link": "a pair of particles from different groups that are friends in the decoded particles",
    "fixed length ≈": "the normal approximation of what the best code needs if all fields get as many bits",
    "fixed length ≤": "achievability, a bound of the Gaussian model: if all fields get as many bits, this is enough",
    "fixed length ≥": "converse, a bound of the Gaussian model: if all fields get as many bits, no fewer are enough",
    "Gaussian-model bound": "a bound of the Gaussian model: the fewest bits on average with this mean square error",
    "Gaussian?": "whether the new information in the values is distributed as in a Gaussian field",
    "linking length": "particles closer than this are friends; groups are chains of friends",
    "mean square error": "of errors that are uniform within the error bound: a third of its square",
    "merged": "halos that lost no member but are joined by particles of other groups",
    "missing link": "a pair of friends that is no longer connected; the fewest that would rejoin every split group are counted",
    "one variance adds": "the additional bits if one variance is assumed for all regions",
    "PSNR": "peak signal-to-noise ratio: the mean square error relative to the squared range of the values",
    "region borders add": "the part of the bound that is due to the borders of regions, which count as independent",
    "split": "halos that lost members",
    "this field alone": "a bound of the Gaussian model: the fewest bits that keep this field within it, except by chance",
    "tiles add": "the additional bits if tiles are coded independently",
}


def meaning(term: str) -> str:
    """The explanation of a term.

    >>> meaning("split")
    'halos that lost members'
    """
    return GLOSSARY[term]
