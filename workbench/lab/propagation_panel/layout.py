"""Where the sites of a pipeline stand in the drawing of its graph: each right of all that it is computed from."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.propagation import Pipeline


@dataclass(frozen=True)
class Place:
    """The column and the row of a site, from 0."""

    column: int
    row: int


def places(pipeline: Pipeline) -> dict[str, Place]:
    """A place for each site. A site stays in the row of what it is computed from, as far as that is free.

    >>> pipeline = Pipeline([("a", lambda x: x), ("b", lambda a: a), ("c", lambda x: x)], outputs=["b", "c"])
    >>> [place.column for place in places(pipeline).values()]
    [0, 1, 2, 3]
    """
    found: dict[str, Place] = {}
    taken: set[Place] = set()
    for site in pipeline.sites:
        stage = pipeline.stage_of(site)
        sources = [found[name] for name in (stage.inputs or () if stage else ())]
        column = 1 + max((place.column for place in sources), default=-1)
        row = max(sources, key=lambda place: place.column).row if sources else 0
        while Place(column, row) in taken:
            row += 1
        found[site] = Place(column, row)
        taken.add(found[site])
    return found


def arrows(pipeline: Pipeline) -> list[tuple[str, str]]:
    """The pairs of sites of which the second is computed from the first."""
    return list(dict.fromkeys((read, written) for read, _, written in pipeline.edges()))
