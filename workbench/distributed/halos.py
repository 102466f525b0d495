"""The catalogue of groups that are spread over subdomains, without gathering their particles.

Each subdomain adds up its part of every group: the number of members, their mean position and their mean square distance
from it. Parts of one group are combined by the parallel axis theorem, by nearest image. Groups that one subdomain holds
alone and that are too small are dropped there.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.clusters import Catalogue
from workbench.data import Particles
from workbench.data.periodic import nearest_image
from workbench.distributed.executors import Executor
from workbench.distributed.fof import Labels


@dataclass(frozen=True, eq=False)
class Moments:
    """Parts of groups: label, members, mean position, and sum of squared distances from it."""

    label: np.ndarray
    members: np.ndarray
    mean: np.ndarray
    squares: np.ndarray


def catalogue_of(labels: Labels, min_members: int, executor: Executor) -> Catalogue:
    """The groups with at least `min_members` members, the largest first."""
    parts = executor.map(
        "measure-groups", functools.partial(_moments, labels, min_members), range(labels.division.parts)
    )
    found = combined(parts, labels.source.box)
    chosen = np.flatnonzero(found.members >= min_members)
    order = chosen[np.argsort(-found.members[chosen], kind="stable")]
    members, centres = found.members[order], found.mean[order]
    box = labels.source.box
    if box is not None and len(order):
        centres = Particles.wrapped(centres, box).positions
    return Catalogue(found.label[order], members, centres, np.sqrt(found.squares[order] / np.maximum(members, 1)))


def combined(parts: Sequence[Moments], box: tuple[float, ...] | None) -> Moments:
    """Whole groups from their parts, by rising label."""
    label, members, mean, squares = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("label", "members", "mean", "squares")
    )
    order = np.argsort(label, kind="stable")
    return _added(label[order], members[order], mean[order], squares[order], box)


def _moments(labels: Labels, min_members: int, part: int) -> Moments:
    """The parts of groups that this subdomain owns; small groups that nobody else knows are left out."""
    subdomain = labels.exchange.receive(part)
    positions, (_, label) = subdomain.positions[subdomain.owned], labels.own(part)
    order = np.argsort(label, kind="stable")
    sorted_label = np.asarray(label)[order]
    name, inverse, members = np.unique(sorted_label, return_inverse=True, return_counts=True)
    wanted = (members >= min_members) | np.isin(name, labels.shared(part), assume_unique=True)
    order = order[wanted[inverse]]
    places = positions[order].astype(np.float64)
    ones = np.ones(len(order), np.int64)
    return _added(np.asarray(label)[order], ones, places, np.zeros(len(order)), labels.source.box)


def _added(
    label: np.ndarray, members: np.ndarray, mean: np.ndarray, squares: np.ndarray, box: tuple[float, ...] | None
) -> Moments:
    """Sums over runs of equal labels; places are measured from the first of each run, by nearest image."""
    if not len(label):
        return Moments(label, members, mean, squares)
    start = np.flatnonzero(np.diff(label, prepend=label[0] - 1))
    run = np.repeat(np.arange(len(start)), np.diff(start, append=len(label)))
    offset = nearest_image(mean - mean[start][run], box)
    total = np.add.reduceat(members, start)
    middle = np.add.reduceat(offset * members[:, None], start) / total[:, None]
    apart = ((offset - middle[run]) ** 2).sum(axis=1)
    return Moments(label[start], total, mean[start] + middle, np.add.reduceat(squares + members * apart, start))
