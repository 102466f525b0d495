"""What lies under the pointer in the maps of the clusters panel: exact numbers of particles."""

from __future__ import annotations

from workbench.data import Particles
from workbench.lab.clusters_panel.breakage import Outcome
from workbench.lab.clusters_panel.density import density_of
from workbench.lab.clusters_panel.state import ClustersState
from workbench.lab.description import Reading
from workbench.lab.reading import particle_reading


def reading(particles: Particles, state: ClustersState, outcome: Outcome | None, place: tuple[float, float]) -> Reading:
    """How many particles are in the pixel at a place, in each of the maps, and per area."""
    density = density_of(particles, state.axis, state.window, state.pixels)
    shown = [particles] if outcome is None else [particles, outcome.decoded]
    return particle_reading(shown, state.axis, density.window, density.pixels.shape, place)
