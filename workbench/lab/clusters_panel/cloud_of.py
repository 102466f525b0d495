"""The third dimension of the clusters panel: a cloud of the original and the particles that the second picture shows.

A map along one axis cannot show where the pieces of a split halo lie. The scene is made when it is wanted and the sliders
rest, because its points are many megabytes; it shows the halo of the close-up, or the whole snapshot if there is none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench.data import Particles
from workbench.lab.cloud_view import CloudPart, Scene, fates_of, scene_of
from workbench.lab.clusters_panel.breakage import Halos, Outcome
from workbench.lab.clusters_panel.state import Chosen, ClustersState
from workbench.lab.controls import Button
from workbench.lab.glossary import meaning
from workbench.lab.turns import Rest, in_turn

RESTED = 0.4   # seconds without changes before a scene is made


def cloud_of(particles: Particles, state: ClustersState, halos: Halos, outcome: Outcome | None, title: str) -> Scene:
    """The scene of these results; of one halo if the close-up shows one, or a link of one.

    >>> from workbench.data.synthetic import cosmic_web
    >>> from workbench.lab.clusters_panel.breakage import break_halos, groups_of
    >>> snapshot = cosmic_web(n=16, seed=1)
    >>> state = ClustersState.for_(snapshot)
    >>> halos = groups_of(snapshot, state, lambda share, text: None)
    >>> outcome = break_halos(snapshot, state, halos, lambda share, text: None).outcome
    >>> cloud_of(snapshot, state, halos, outcome, "decoded").titles
    ('original', 'decoded')
    """
    after, decoded = (None, None) if outcome is None else (outcome.groups, outcome.decoded)
    fates = fates_of(particles, halos.groups, after, state.min_members)
    chosen = 0 if state.chosen is None else int(fates.before[list(state.chosen.particles)].max())
    return scene_of(particles, fates, decoded, chosen or None, ("original", title))


class ClustersCloud(CloudPart):
    """The cloud in the place of the pictures, and the button "in 3-D" that shows it.

    `choose` is called with a halo that was clicked, and `put_aside` with whether the pictures are to leave their place.
    """

    def __init__(
        self, particles: Particles, choose: Callable[[Chosen], object], put_aside: Callable[[bool], object]
    ) -> None:
        super().__init__(lambda number, side: choose(Chosen.halo(self.label_of(number))))
        self._particles, self._put_aside = particles, put_aside
        self._results: tuple[Any, ...] = ()
        self._made_of: tuple[Any, ...] = ()
        self._rest = Rest(RESTED)
        self.toggle = Button("in 3-D", lambda: self.want(not self.wanted), meaning("in 3-D"))
        self.toggle.set(pressed=False)
        self.set(hidden=True)

    @property
    def wanted(self) -> bool:
        """Whether the button is pressed."""
        return bool(self.toggle.content["pressed"])

    def want(self, wanted: bool) -> None:
        """Show the cloud, or remove it and release its points."""
        self.toggle.set(pressed=wanted)
        self.set(hidden=not wanted)
        self._put_aside(wanted)
        self._follow()

    def show_results(self, state: ClustersState, halos: Halos, outcome: Outcome | None, title: str) -> None:
        """Show these results, if a cloud is wanted, as soon as they stay for a moment."""
        self._results = (state.chosen, state.min_members, halos, outcome, title, state)
        self._follow()

    @in_turn
    def _follow(self) -> None:
        self._rest.cancel()
        if not self.wanted:
            self._made_of = ()
            self.show(None)
        elif self._results and self._results[:-1] != self._made_of and not self._rest.begin(self._make):
            self._make()

    def _make(self) -> None:
        *made_of, state = self._results
        _, _, halos, outcome, title = made_of
        self._made_of = tuple(made_of)
        self.show(cloud_of(self._particles, state, halos, outcome, title))
