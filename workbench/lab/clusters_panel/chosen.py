"""The chosen halo or link: its name, its figures against linking length and bound, and which comes next."""

from __future__ import annotations

import numpy as np

from workbench.clusters.broken import distances
from workbench.data import Particles
from workbench.data.periodic import nearest_image
from workbench.lab.clusters_panel.breakage import Halos, Outcome
from workbench.lab.clusters_panel.panes import FALSE, MISSING, title_of, titles_of
from workbench.lab.clusters_panel.state import Chosen, ClustersState
from workbench.lab.description import Fact
from workbench.lab.figures import figure, group

GROUP = "close-up"   # of the figures


def title_of_chosen(halos: Halos, outcome: Outcome | None, chosen: Chosen, min_members: int) -> str:
    """The chosen halo or link in words; groups of fewer members are no halos, and have no number.

    >>> from workbench.clusters import Catalogue, Groups
    >>> none = Catalogue(np.empty(0, int), np.empty(0, int), np.empty((0, 3)), np.empty(0))
    >>> title_of_chosen(Halos(Groups(np.arange(3), 0.2), none), None, Chosen.halo(2), 20)
    'particle 2, without friends'
    """
    if chosen.kind == "link":
        one, other = chosen.particles
        pair = f"particles {one:,} and {other:,}" if outcome is None else f"not broken: particles {one:,} and {other:,}"
        return f"{name_of_link(outcome, chosen) or pair} {_where(halos, chosen, min_members)}"
    place = halos.place(int(halos.groups.labels[chosen.particles[0]]))
    if place is None:
        return f"particle {chosen.particles[0]:,}, without friends"
    title = title_of(halos, place, outcome)
    return title if place < halos.count(min_members) else f"group of{title.partition(':')[2]}"


def name_of_link(outcome: Outcome | None, chosen: Chosen | None) -> str:
    """The kind and the number of the chosen link if it is broken, such as "missing link 3 of 1,563"; else nothing."""
    if outcome is None or chosen is None or chosen.kind != "link":
        return ""
    for name, links in ((MISSING, outcome.missing), (FALSE, outcome.false)):
        row = np.flatnonzero((links.pairs == np.array(chosen.particles)).all(axis=1))[:1]
        if len(row):
            return titles_of(name, row, len(links))[0]
    return ""


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


def chosen_facts(
    particles: Particles, state: ClustersState, halos: Halos, outcome: Outcome | None
) -> tuple[Fact, ...]:
    """The figures of the chosen halo or link; none if nothing is chosen."""
    chosen = state.chosen
    if chosen is None:
        return ()
    if chosen.kind == "link":
        return _link_facts(particles, state, halos.groups.linking_length, outcome, chosen)
    place = halos.place(int(halos.groups.labels[chosen.particles[0]]))
    return () if place is None else _halo_facts(halos, outcome, place)


def broken_counts(halos: Halos, outcome: Outcome, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many missing and how many false links the halos at these places have; a false link counts for both its halos."""
    labels = halos.catalogue.labels[places]
    return _each(halos, outcome.missing.pairs[:, :1], labels), _each(halos, outcome.false.pairs, labels)


def sentence_of_chosen(
    particles: Particles, state: ClustersState, halos: Halos, outcome: Outcome | None
) -> str:
    """What compression has done to the chosen halo or link; empty if nothing is chosen, or not known yet."""
    chosen = state.chosen
    if chosen is None or outcome is None:
        return ""
    if chosen.kind == "link":
        length = halos.groups.linking_length
        before, after = (_distance(each, chosen) for each in (particles, outcome.decoded))
        one, other = _moved(particles, outcome, chosen)
        moved = f"moved by at most {one.max() / state.bound:.2f} ξ and {other.max() / state.bound:.2f} ξ along an axis"
        return f"Distance {_in_lengths(before, length)} → {_in_lengths(after, length)}; {moved}."
    place = halos.place(int(halos.groups.labels[chosen.particles[0]]))
    if place is None:
        return ""
    missing, false = (f"{int(count[0]):,}" for count in broken_counts(halos, outcome, np.array([place])))
    sizes = f"{halos.catalogue.members[place]:,} → {outcome.members[place]:,}"
    return f"Members {sizes}; missing links {missing}, false links {false}."


def _distance(particles: Particles, chosen: Chosen) -> float:
    """Between the ends of a link."""
    return float(distances(particles.positions, np.array([chosen.particles]), particles.box)[0])


def _moved(particles: Particles, outcome: Outcome, chosen: Chosen) -> np.ndarray:
    """How far the ends of a link moved along each axis."""
    ends = list(chosen.particles)
    moved = outcome.decoded.positions[ends].astype(np.float64) - particles.positions[ends]
    return np.abs(nearest_image(moved, particles.box))


def _each(halos: Halos, ends: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """How often each label occurs among the groups of these particles."""
    present, counts = np.unique(halos.groups.labels[ends], return_counts=True)
    place = np.minimum(np.searchsorted(present, labels), max(len(present) - 1, 0))
    return np.where(present[place] == labels, counts[place], 0) if len(present) else np.zeros(len(labels), int)


def _where(halos: Halos, chosen: Chosen, min_members: int) -> str:
    """The halo or the two halos of a link, by number, or by their size if they are too small for halos."""
    labels = sorted({int(halos.groups.labels[end]) for end in chosen.particles})
    places = sorted(place for label in labels if (place := halos.place(label)) is not None)
    sizes, count = halos.catalogue.members, halos.count(min_members)
    names = [f"halo {place + 1:,}" if place < count else f"a group of {sizes[place]:,}" for place in places]
    names += ["a single particle"] * (len(labels) - len(places))
    if len(labels) == 1:
        return f"in {names[0]}"
    return f"between {' and '.join(names)}" if places else "between two single particles"


def _link_facts(
    particles: Particles, state: ClustersState, length: float, outcome: Outcome | None, chosen: Chosen
) -> tuple[Fact, ...]:
    before = _distance(particles, chosen)
    facts = [figure("distance before", _against(before, length), about="distance")]
    if outcome is not None:
        facts.append(figure("distance after", _against(_distance(outcome.decoded, chosen), length), about="distance"))
        for name, along in zip(("one particle moved", "the other moved"), _moved(particles, outcome, chosen), strict=True):
            text = f"{float(np.sqrt((along**2).sum())):.4g}, along one axis up to {along.max() / state.bound:.3f} ξ"
            facts.append(figure(name, text, about="displacement"))
    return group(GROUP, facts)


def _against(distance: float, length: float) -> str:
    """A distance in the unit of the data and in linking lengths.

    >>> _against(0.25, 0.2), _against(0.200002, 0.2)
    ('0.25 = 1.250 b', '0.200002 = 1.00001 b')
    """
    return f"{distance:.{_digits(distance / length) + 2}g} = {_in_lengths(distance, length)}"


def _in_lengths(distance: float, length: float) -> str:
    return f"{distance / length:.{_digits(distance / length)}f} b"


def _digits(share: float) -> int:
    """So many that a distance is seen to be shorter or longer than the linking length."""
    return 3 if share == 1 else min(max(3, -int(np.floor(np.log10(abs(share - 1))))), 12)


def _halo_facts(halos: Halos, outcome: Outcome | None, place: int) -> tuple[Fact, ...]:
    catalogue = halos.catalogue
    facts = [Fact("members", f"{catalogue.members[place]:,}", meaning="members of this halo in the original")]
    if outcome is not None:
        missing, false = broken_counts(halos, outcome, np.array([place]))
        facts += [
            figure("members after", outcome.members[place], form=","),
            figure("its missing links", missing[0], form=",", about="missing link"),
            figure("its false links", false[0], form=",", about="false link"),
        ]
    return group(GROUP, [*facts, figure("radius", catalogue.radii[place], form=".4g")])
