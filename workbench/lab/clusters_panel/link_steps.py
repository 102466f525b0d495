"""Going through broken links one by one: which comes next, and the number of the link that is shown."""

from __future__ import annotations

import numpy as np

from workbench.lab.clusters_panel.breakage import Halos, Outcome
from workbench.lab.clusters_panel.chosen import name_of_link
from workbench.lab.clusters_panel.state import Chosen


def place_of_link(outcome: Outcome, chosen: Chosen | None) -> tuple[int, str]:
    """How many broken links there are, and which is chosen, in words."""
    count = len(outcome.missing) + len(outcome.false)
    return count, name_of_link(outcome, chosen) or (f"{count:,} broken links" if count else "no broken links")


def link_after(
    halos: Halos, outcome: Outcome, chosen: Chosen | None, last: int | None, step: int
) -> tuple[int, Chosen] | None:
    """The number of the next or the previous broken link, and the link; None if there is none.

    All missing links come before all false ones, and those of the largest groups first. After a link comes its neighbour,
    after a halo its own first or last link, else the neighbour of link `last`, and without it the first or the last of all.
    """
    pairs = np.concatenate([outcome.missing.pairs, outcome.false.pairs])
    if not len(pairs):
        return None
    first = 0 if step > 0 else -1
    if chosen is not None and chosen.kind == "halo":
        labels = halos.groups.labels
        own = np.flatnonzero((labels[pairs] == labels[chosen.particles[0]]).any(axis=1))
        number = int(own[first]) if len(own) else first % len(pairs)
    else:
        ends = (-1, -1) if chosen is None else chosen.particles
        here = np.flatnonzero((pairs == np.array(ends)).all(axis=1))
        before = int(here[0]) if len(here) else last
        number = (first if before is None else before + step) % len(pairs)
    return number, Chosen.link(*pairs[number].tolist())
