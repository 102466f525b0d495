"""`wb.lab.cloud`: open a cloud of particles; everything that it needs is computed or checked here."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.archive import Archive
from workbench.bounds.sources import require_data
from workbench.clusters import Groups, friends_of_friends
from workbench.clusters.friends import Unit
from workbench.data import Particles
from workbench.errors import WorkbenchError
from workbench.lab import cells
from workbench.lab.cloud_view.fates import Fates, fates_of
from workbench.lab.cloud_view.part import HEIGHT, Cloud
from workbench.lab.cloud_view.scene import scene_of
from workbench.lab.cloud_view.state import CloudState, Colouring
from workbench.metrics.pairs import checked_order


def cloud(
    particles: Particles,
    other: Particles | Archive | None = None,
    groups: Groups | None = None,
    other_groups: Groups | None = None,
    *,
    halo: int | None = None,
    label: int | None = None,
    order: Any = None,
    linking_length: float = 0.2,
    unit: Unit = "spacing",
    min_members: int = 20,
    colouring: Colouring = "halo",
    coloured: int = 49,
    point_size: float = 1.0,
    opacity: float = 1.0,
    box: bool = True,
    depth_cue: bool = True,
    rotate: bool = True,
    titles: tuple[str, str] = ("original", "decoded"),
    height: int = HEIGHT,
) -> Cloud:
    """Particles in 3-D that can be turned, with the `coloured` largest halos in colour; beside them, `other` ones.

    `other` are the same particles after compression, or their archive: particle i is the same in both, or that at
    `order[i]`. Groups that are not given are found by friends of friends. `halo` is the number of a halo, 1 for the
    largest, and `label` the label of its group: with either, only this halo and its surroundings are shown. There are seven
    hues, which repeat; a halo has the same one on both sides. `colouring="status"` tells intact, split and merged halos
    apart. The halo that was clicked is in `picked`: observe it with `cloud.observe(function, "picked")`. What the reader
    chooses is in `state`, and `change` chooses something else.

    >>> from workbench.data.synthetic import cosmic_web
    >>> shown = cloud(cosmic_web(n=16, seed=1))
    >>> shown
    Cloud(4,096 particles, original)
    >>> shown.close()
    """
    data = _in_space(particles)
    decoded = _same_particles(data, other, order)
    state = CloudState(colouring, coloured, point_size, opacity, box, depth_cue, rotating=rotate)
    before = friends_of_friends(data, linking_length, unit) if groups is None else groups
    after = other_groups
    if decoded is not None and after is None:
        after = friends_of_friends(decoded, before.linking_length, "length")
    fates = fates_of(data, before, after if decoded is not None else None, min_members)
    if colouring == "status" and decoded is None:
        raise WorkbenchError("colouring by status needs decoded particles; got other=None: give them, or their archive")
    scene = scene_of(data, fates, decoded, _number(fates, halo, label), titles)
    shown = Cloud(scene, state, height)
    cells.replace_in_cell(shown)
    return shown


def _in_space(particles: Any) -> Particles:
    data = require_data(particles)
    if not isinstance(data, Particles):
        raise WorkbenchError(f"a cloud needs particles; got {data!r}: use wb.lab.bounds(...) for fields")
    return data


def _same_particles(particles: Particles, other: Any, order: Any) -> Particles | None:
    """The other particles in the order of these."""
    if other is None:
        return None
    if isinstance(other, Archive):
        order = other.permutation(particles) if other.reordered else None
        other = other.decompress()
    decoded = _in_space(other)
    if len(decoded) != len(particles):
        raise WorkbenchError(f"other must be the same {len(particles):,} particles; got {len(decoded):,}")
    places = checked_order(order, particles)
    if places is None:
        return decoded
    positions = np.empty_like(decoded.positions)
    positions[places] = decoded.positions
    return Particles(positions, decoded.box)


def _number(fates: Fates, halo: int | None, label: int | None) -> int | None:
    """The number of the halo that was named one way or the other."""
    if label is None:
        return halo
    if halo is not None:
        raise WorkbenchError(f"a halo is named by its number or by its label; got both, {halo} and {label}")
    places = np.flatnonzero(fates.halos.labels == label)
    if not len(places):
        raise WorkbenchError(f"label must be that of a halo; got {label}: groups.largest() has those of the largest")
    return int(places[0]) + 1
