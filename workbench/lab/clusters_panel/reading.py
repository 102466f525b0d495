"""What lies under the pointer in the maps of the clusters panel: exact numbers of particles, and the names of halos.

A halo is named by its place among the largest, from 1, so that the name says something about its size.
"""

from __future__ import annotations

from workbench.data import Particles
from workbench.lab.clusters_panel.breakage import BROKEN, INTACT, MERGED, Halos, Outcome
from workbench.lab.clusters_panel.density import density_of
from workbench.lab.clusters_panel.state import ClustersState
from workbench.lab.description import Reading
from workbench.lab.reading import particle_reading

WORDS = {INTACT: "same members", BROKEN: "lost members", MERGED: "joined by others"}


def halo_title(halos: Halos, place: int, status: int | None = None) -> str:
    """The name of a halo, by its place in the catalogue: its number, its size, and what became of it.

    >>> import numpy as np
    >>> from workbench.clusters import Catalogue, Groups
    >>> nowhere = np.zeros(1)
    >>> halos = Halos(Groups.from_labels([0, 0], 0.1), Catalogue(np.array([0]), np.array([2]), nowhere, nowhere))
    >>> halo_title(halos, 0, INTACT)
    'halo 1: 2 members, same members'
    """
    words = "" if status is None else f", {WORDS[status]}"
    return f"halo {place + 1}: {int(halos.catalogue.members[place]):,} members{words}"


def reading(particles: Particles, state: ClustersState, outcome: Outcome | None, place: tuple[float, float]) -> Reading:
    """How many particles are in the pixel at a place, in each of the maps, and per area."""
    density = density_of(particles, state.axis, state.window, state.pixels)
    shown = [particles] if outcome is None else [particles, outcome.decoded]
    return particle_reading(shown, state.axis, density.window, density.pixels.shape, place)
