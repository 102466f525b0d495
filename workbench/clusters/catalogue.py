"""Positions and sizes of groups: the usual catalogue of a halo finder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from workbench import backend
from workbench.charts.table import data_frame, html_table
from workbench.clusters.groups import Groups
from workbench.clusters.moments import Box, Moments
from workbench.data import Particles
from workbench.data.masses import checked_masses
from workbench.errors import WorkbenchError

SHOWN = 20   # groups in a notebook


@dataclass(frozen=True, eq=False, repr=False)
class Catalogue:
    """One entry per group, the one with most members first (the smaller label first among equals), in NumPy.

    `centres` are mean positions, inside the box if there is one; `radii` are root mean square distances from them. Where
    the masses of particles are known, `masses` are those of the groups, and all means are weighted by mass. With velocities
    there are mean `velocities`, and `dispersions`, the root mean square deviations from them along one axis. Means of a
    group without mass are NaN.
    """

    labels: np.ndarray
    members: np.ndarray
    centres: np.ndarray
    radii: np.ndarray
    masses: np.ndarray | None = None
    velocities: np.ndarray | None = None
    dispersions: np.ndarray | None = None

    @classmethod
    def of(cls, groups: Moments, min_members: int, box: Box, weighed: bool) -> Self:
        """The groups with at least so many members; `weighed`: weights are masses."""
        found = groups.chosen(np.flatnonzero(groups.members >= min_members))
        found = found.chosen(np.argsort(-found.members, kind="stable"))
        centres, axes = found.mean, found.velocity.shape[1]
        if box is not None and len(centres):
            centres = Particles.wrapped(centres, box).positions
        weight = np.where(found.weight > 0, found.weight, np.nan)   # a group without mass has no centre
        known = 0 * weight
        return cls(
            found.label, found.members, centres + known[:, None], np.sqrt(found.spread / weight),
            found.weight if weighed else None, found.velocity + known[:, None] if axes else None,
            np.sqrt(found.motion / weight / axes) if axes else None,
        )

    @classmethod
    def joined(cls, catalogues: Sequence[Catalogue]) -> Self:
        """One catalogue of several whose groups differ, with the same columns."""
        columns: dict[str, Any] = {
            field.name: [getattr(one, field.name) for one in catalogues]
            for field in fields(cls) if getattr(catalogues[0], field.name) is not None
        }
        every = cls(**{name: np.concatenate(parts) for name, parts in columns.items()})
        return every.chosen(np.lexsort((every.labels, -every.members)))

    def chosen(self, rows: np.ndarray | slice) -> Self:
        """Some of the groups, in this order."""
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: column[rows] for name, column in columns.items() if column is not None})

    def columns(self) -> dict[str, np.ndarray]:
        """The columns of a table with one row per group, by name.

        >>> list(Catalogue(np.array([4, 0]), np.array([30, 20]), np.zeros((2, 3)), np.ones(2)).columns())
        ['label', 'members', 'x', 'y', 'z', 'radius']
        """
        table = {"label": self.labels, "members": self.members, **_by_axis("", self.centres), "radius": self.radii}
        if self.masses is not None:
            table["mass"] = self.masses
        if self.velocities is not None and self.dispersions is not None:
            table |= {**_by_axis("v", self.velocities), "dispersion": self.dispersions}
        return table

    def to_dataframe(self) -> Any:
        """The same table as a pandas DataFrame."""
        return data_frame(self.columns())

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        """How many groups there are, and how large.

        >>> Catalogue(np.array([4, 0]), np.array([30, 20]), np.zeros((2, 3)), np.ones(2))
        Catalogue(2 groups of 20 to 30 members)
        """
        if not len(self):
            return "Catalogue(0 groups)"
        return f"Catalogue({len(self):,} groups of {int(self.members.min()):,} to {int(self.members.max()):,} members)"

    def _repr_html_(self) -> str:
        """The largest groups, for notebooks."""
        columns = self.chosen(slice(SHOWN)).columns()
        rows = zip(*([f"{value:.6g}" for value in column.tolist()] for column in columns.values()), strict=True)
        rest = f"<p>the {SHOWN} largest of {len(self):,}</p>" if len(self) > SHOWN else ""
        return html_table(list(columns), list(rows), texts=(), title=repr(self)) + rest


def _by_axis(prefix: str, places: np.ndarray) -> dict[str, np.ndarray]:
    """The coordinates of places (N, D) as columns."""
    return {prefix + axis: places[:, number] for number, axis in enumerate("xyz"[: places.shape[1]])}


def catalogue(
    particles: Particles, groups: Groups, min_members: int = 20, masses: Any = None, velocities: Any = None
) -> Catalogue:
    """The groups with at least `min_members`, with their centres and radii.

    With `masses` (by default those of the particles, if they have any), groups have masses, and centres are centres of
    mass; with `velocities`, such as `particles.velocities`, groups have mean velocities and dispersions. Members are
    measured from their group's first one, by nearest image: in a periodic box, a group wider than half of the box has no
    meaningful centre.

    >>> particles = Particles([[0.1, 0.5], [0.9, 0.5], [0.5, 0.5]], box=1.0)
    >>> groups = Groups.from_labels([0, 0, 2], 0.2)
    >>> pair = catalogue(particles, groups, min_members=2)
    >>> pair.members.tolist(), pair.centres.round(6).tolist(), pair.radii.round(6).tolist()
    ([2], [[0.0, 0.5]], [0.1])
    >>> heavy = catalogue(particles, groups, min_members=2, masses=[3.0, 1.0, 1.0])
    >>> heavy.masses.tolist(), heavy.centres.round(6).tolist()
    ([4.0], [[0.05, 0.5]])
    """
    labels = backend.to_host(groups.labels)
    if len(labels) != len(particles):
        raise WorkbenchError(f"groups must be of these {len(particles):,} particles; got labels of {len(labels):,}")
    given = particles.masses if masses is None else masses
    weights = None if given is None else backend.to_host(checked_masses(given, len(particles)))
    moving = None if velocities is None else checked_velocities(velocities, particles.positions.shape)
    sizes = np.bincount(labels, minlength=len(labels))
    order = np.flatnonzero(sizes[labels] >= min_members)
    order = order[np.argsort(labels[order], kind="stable")]
    positions = backend.to_host(particles.positions)
    found = Moments.of(labels[order], positions, particles.box, weights, moving, order)
    return Catalogue.of(found, min_members, particles.box, weights is not None)


def checked_velocities(given: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Velocities of as many particles, in as many dimensions; refused unless they are finite."""
    velocities = np.asarray(backend.to_host(given))
    if velocities.shape != shape or velocities.dtype.kind not in "fiu":
        got = f"{velocities.dtype} of shape {velocities.shape}"
        raise WorkbenchError(f"velocities must be numbers of shape {tuple(shape)}; got {got}")
    if not np.isfinite(velocities).all():
        raise WorkbenchError("velocities must be finite; got nan or infinity: leave them out of the catalogue")
    return velocities
