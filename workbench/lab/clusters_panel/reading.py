"""What lies under the pointer in the clusters panel: numbers of particles in the maps, one particle in the close-up."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from workbench.data import Particles
from workbench.lab.clusters_panel.breakage import Halos, Outcome
from workbench.lab.clusters_panel.detail import aftermath, neighbourhood, sight_of
from workbench.lab.clusters_panel.state import ClustersState
from workbench.lab.density import density_picture
from workbench.lab.description import Reading
from workbench.lab.projection import shown_axes
from workbench.lab.reading import particle_reading

NEAR = 0.04   # of the close-up's half width: the particle that is meant


def reading(
    particles: Particles, state: ClustersState, outcomes: Iterable[Outcome], place: tuple[float, float]
) -> Reading:
    """How many particles are in the pixel at a place, in each of the maps, and per area."""
    density, _ = density_picture(particles, state.axis, state.window, state.pixels)
    shown = [particles, *(outcome.decoded for outcome in outcomes)]
    return particle_reading(shown, state.axis, density.window, density.pixels.shape, place)


def particle_under(
    particles: Particles, state: ClustersState, halos: Halos, outcome: Outcome | None, place: tuple[float, float]
) -> Reading | None:
    """The particle of the close-up whose decoded position is nearest to a place, and how far it was moved.

    None where no particle is near, or where there are so many that the close-up shows their density.
    """
    if state.chosen is None:
        return None
    sight = sight_of(particles, halos, state.chosen)
    near = neighbourhood(particles, sight)
    after = aftermath(particles, outcome, near, sight, halos.groups.linking_length)
    if not len(near.index) or not near.is_drawn_singly:
        return None
    apart = np.hypot(*(after.places[:, shown_axes(particles, state.axis)] - place).T)
    found = int(np.argmin(apart))
    if apart[found] > NEAR * sight.reach:
        return None
    number = int(near.index[found])
    decoded = particles if outcome is None else outcome.decoded
    moved = float(np.abs(after.places[found] - near.places[found]).max())
    return Reading(lines=(
        f"particle {number:,}",
        f"original  {_coordinates(particles, number)}",
        f"decoded  {_coordinates(decoded, number)}",
        f"error  {moved:.4g} = {moved / state.bound:.4g} bounds",
    ))


def _coordinates(particles: Particles, number: int) -> str:
    """All digits of a position."""
    return ", ".join(str(each) for each in particles.positions[number])
