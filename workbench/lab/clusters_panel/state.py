"""The user's choices in the clusters panel: the bound, the groups to keep, and the visible part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

import numpy as np

from workbench import codecs
from workbench.arguments import flag
from workbench.clusters import KeepClusters, absolute_linking_length
from workbench.clusters.friends import Unit
from workbench.clusters.keep.promise import Solver
from workbench.data import Particles
from workbench.errors import WorkbenchError
from workbench.lab.choices import one_of, positive, told_how_to_change, whole, with_choices
from workbench.lab.description import PIXELS, Window, checked_window

Order = Literal["free", "keep"]
Shows = Literal["decoded", "kept"]

USUAL_LENGTH = 0.2     # of the mean spacing
USUAL_SHARE = 0.1      # of the linking length
FEWEST_MEMBERS = 2     # of a halo that can be outlined


@dataclass(frozen=True)
class Chosen:
    """The subject of the close-up: a halo, by the label of its group, or a link, by the particles at its ends."""

    kind: Literal["halo", "link"]
    particles: tuple[int, ...]

    def __post_init__(self) -> None:
        ends = {"halo": 1, "link": 2}.get(self.kind)
        if ends is None or len(self.particles) != ends or min(self.particles) < 0:
            raise WorkbenchError(f"a halo needs one particle and a link two; got {self.kind!r}, {self.particles}")

    @classmethod
    def halo(cls, label: int) -> Self:
        """The halo of the original with this label."""
        return cls("halo", (int(label),))

    @classmethod
    def link(cls, one: int, other: int) -> Self:
        """The link between two particles, intact or broken."""
        return cls("link", (int(one), int(other)))


@told_how_to_change
@dataclass(frozen=True)
class ClustersState:
    """The choices. `bound` is the largest error of a coordinate, in the unit of the positions, without rounding.

    `min_members` is the smallest group shown as a halo, and `keep_members` the smallest group in the promise. `axis` is
    the line of sight. `shows` chooses the archive that all figures belong to: the one of the codec alone, or the one with
    groups kept. With `original`, the map shows the particles before compression.

    >>> ClustersState(bound=0.02, solver="auto").promise
    KeepClusters(linking_length=(0.2,), unit='spacing', min_members=1, solver='auto')
    """

    bound: float
    linking_length: float = USUAL_LENGTH
    unit: Unit = "spacing"
    codec: str = "lattice"
    order: Order = "free"
    min_members: int = 20
    keep_members: int = 1
    solver: Solver = "auto"
    axis: int = 2
    window: Window | None = None
    chosen: Chosen | None = None
    shows: Shows = "decoded"
    original: bool = False
    pixels: int = PIXELS   # of a picture along its longer side, at most

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", positive("the error bound ξ", self.bound))
        object.__setattr__(self, "linking_length", positive("the linking length b", self.linking_length))
        one_of("the unit of the linking length", self.unit, get_args(Unit))
        one_of("the order", self.order, get_args(Order))
        one_of("the solver", self.solver, get_args(Solver))
        one_of("what is shown", self.shows, get_args(Shows))
        object.__setattr__(self, "original", flag("original", self.original))
        one_of("the line of sight", self.axis, (0, 1, 2))
        whole("the number of members of the smallest halo", self.min_members, FEWEST_MEMBERS)
        whole("the number of members of the smallest group to keep", self.keep_members, 1)
        whole("pixels", self.pixels, 1)
        if not isinstance(self.chosen, Chosen | None):
            raise WorkbenchError(f"a choice must be Chosen.halo(...), Chosen.link(...) or None; got {self.chosen!r:.60}")
        codecs.get(self.codec)   # raises for names that no codec has
        object.__setattr__(self, "window", checked_window(self.window))

    @classmethod
    def for_(cls, particles: Particles, **choices: Any) -> Self:
        """The initial state: the usual linking length, and a tenth of it, rounded, as the bound. `choices` are fields.

        >>> ClustersState.for_(Particles([[0.5, 0.5, 0.5]], box=10.0), linking_length=0.4).bound
        0.4
        """
        unit = choices.get("unit", "spacing" if particles.spacing > 0 else "length")
        length = USUAL_LENGTH * (1.0 if particles.spacing > 0 else _spacing_of_flat(particles))
        usual = cls(1.0, length, "spacing" if particles.spacing > 0 else "length").in_unit(particles, unit)
        state = with_choices(usual, choices)
        if "bound" in choices:
            return state
        return replace(state, bound=float(f"{USUAL_SHARE * state.length(particles):.1g}"))

    @property
    def promise(self) -> KeepClusters:
        """The promise made when halos are kept."""
        return KeepClusters(self.linking_length, self.unit, self.keep_members, self.solver)

    def length(self, particles: Particles) -> float:
        """The linking length in the unit of the positions."""
        return absolute_linking_length(particles, self.linking_length, self.unit)

    def share(self, particles: Particles) -> float:
        """The bound as a share of the linking length."""
        return self.bound / self.length(particles)

    def with_share(self, particles: Particles, share: float) -> Self:
        """The same state with this share of the linking length as the bound.

        >>> particles = Particles([[0.5, 0.5, 0.5]], box=10.0)
        >>> ClustersState(1.0, linking_length=4.0, unit="length").with_share(particles, 0.25).bound
        1.0
        """
        positive("the share", share)
        return replace(self, bound=share * self.length(particles))

    def in_unit(self, particles: Particles, unit: Unit) -> Self:
        """The same linking length, in another unit.

        >>> particles = Particles([[0.5, 0.5, 0.5]], box=10.0)
        >>> ClustersState(1.0, linking_length=0.2).in_unit(particles, "length").linking_length
        2.0
        """
        one_of("the unit of the linking length", unit, get_args(Unit))
        if unit == self.unit:
            return self
        length = self.length(particles)
        if unit == "spacing" and not particles.spacing > 0:
            raise WorkbenchError("unit must be 'length' for particles that fill no volume; got 'spacing': give a box")
        return replace(self, linking_length=length / particles.spacing if unit == "spacing" else length, unit=unit)


def _spacing_of_flat(particles: Particles) -> float:
    """The mean spacing of particles that fill no volume, along the axes that they span; 1 if all coincide."""
    sides = [length for length in particles.lengths if length > 0]
    return float(np.prod(sides) / len(particles)) ** (1 / len(sides)) if sides else 1.0
