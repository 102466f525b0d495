"""The causes of bits above the bound, with their names and colours, the same in all charts."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.charts.looks import area_colour

CAUSES: Mapping[str, str] = {   # of `OperatingPoint.parts`, in the order in which bars are stacked
    "tiles": "tiles", "pointwise bound": "each value", "documents": "archive", "prediction and coding": "coding",
}
MEANINGS: Mapping[str, str] = {
    "tiles": "tiles that are coded independently of each other",
    "each value": "a bound on each value instead of their mean square error",
    "coding": "prediction and coding, which may be better",
    "archive": "the description of the data, and of how they were coded, in the archive",
    "region borders": "a part of the bound: regions count as independent of each other",
    "one variance": "one variance for all regions",
    "model": "the map of the regions and the parameters of the model, which a decoder needs",
    "smaller errors": "errors smaller than the error bound allows",
    "larger errors": "a mean square error larger than that of errors spread evenly within the error bound",
}
ALIKE = {   # have one colour: they are never in one chart
    "model": "archive", "smaller errors": "one variance", "larger errors": "one variance",
}


def colour_of(cause: str) -> str:
    """The colour of a cause."""
    return area_colour(list(MEANINGS).index(ALIKE.get(cause, cause)))
