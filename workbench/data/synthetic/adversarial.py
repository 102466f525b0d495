"""Adversarial particle sets for cluster finders and for codecs with a cluster guarantee.

Each set is hard for one stated reason: distances equal to the linking length to the last bit, positions on the faces of the
box, or a worst case for searches by cells. All sets use the linking length 1/4. Its multiples and their differences are
exact in single precision, so a pair at the linking length is exactly there in any arithmetic. `cases()` returns all sets
for tests.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from workbench.data.particles import Particles
from workbench.errors import WorkbenchError

LINK = 0.25
Case = tuple[Particles, float]
_GAPS = ("below", "at", "above")


def lattice_at_link(dimensions: int = 3, dtype: Any = np.float32, periodic: bool = True, side: int = 6) -> Particles:
    """A lattice with neighbours exactly one linking length apart, also across the boundary.

    Hard because `<` or `<=`, and the rounding of the distance, decide every pair: one group, or no links.
    """
    sites = LINK * np.stack(np.meshgrid(*[np.arange(side)] * dimensions, indexing="ij"), axis=-1)
    return _particles(sites, dtype, LINK * side if periodic else None, dimensions)


def duplicates(dimensions: int = 3, dtype: Any = np.float32, periodic: bool = True, count: int = 300) -> Particles:
    """Random points, each occurring one to five times.

    Hard because a pair at distance zero has no direction of separation, and equal keys need a defined sorting order.
    """
    random = np.random.Generator(np.random.Philox(count))
    points = random.random((count // 3, dimensions)).astype(dtype)
    repeated = random.permutation(np.repeat(points, random.integers(1, 6, len(points)), axis=0))
    return _particles(repeated, dtype, 1.0 if periodic else None, dimensions)


def chain(
    dimensions: int = 3, dtype: Any = np.float32, periodic: bool = True, gap: str = "at", length: int = 40
) -> Particles:
    """A chain along the last axis with links just below, exactly at, or just above the linking length.

    Hard because a single wrong decision splits or joins the halves of the chain: there is no second path. It ends far from
    the boundary. "below" and "above" differ from the linking length only by the last bit of a coordinate.
    """
    if gap not in _GAPS:
        raise WorkbenchError(f"gap must be one of {', '.join(_GAPS)}; got {gap!r}")
    line = [np.dtype(dtype).type(LINK)]
    while len(line) < length:
        line.append(_next_in_chain(line[-1], gap))
    points = np.full((length, dimensions), LINK, dtype)
    points[:, -1] = line
    return _particles(points, dtype, LINK * (length + 8) if periodic else None, dimensions)


def chain_through_boundary(dimensions: int = 3, dtype: Any = np.float32, length: int = 40) -> Particles:
    """Two half chains in a periodic box, linked only across the boundary, at exactly the linking length.

    Hard because the group has its ends in the middle of the box: finding it needs periodic images, and a search by
    subdomains must join subdomains on opposite sides of the box.
    """
    steps = np.concatenate([np.arange(length // 2), np.arange(length // 2 + 8, length + 8)])
    points = np.zeros((len(steps), dimensions))
    points[:, 0] = LINK * steps
    return _particles(points, dtype, LINK * (length + 8), dimensions)


def box_faces(dimensions: int = 3, dtype: Any = np.float32, periodic: bool = True) -> Particles:
    """Points on every face, edge and corner of the box: each coordinate is 0, the middle, or the last value below the end.

    Hard because 0 and the last value are neighbours only across the boundary, and because code that multiplies before it
    truncates rounds the last value up into a cell that does not exist. In a periodic box the 3^D points form 2^D groups.
    """
    box = 1.1   # not a float32: the last value before it is not the next smaller double
    values = np.array([0.0, 0.55, _last_below(box, dtype)], dtype)
    points = np.array(list(itertools.product(values, repeat=dimensions)))
    return _particles(points, dtype, box if periodic else None, dimensions)


def dense_clump(dimensions: int = 3, dtype: Any = np.float32, periodic: bool = True, count: int = 1_000_000) -> Particles:
    """One group with all of its particles within half a linking length of each other.

    Hard because all pairs are linked: a search that lists or counts pairs visits count^2 / 2 of them.
    """
    random = np.random.Generator(np.random.Philox(count))
    points = 0.5 + LINK / 4 * random.random((count, dimensions), np.float32)
    return _particles(points, dtype, 1.0 if periodic else None, dimensions)


def two_sheets(dimensions: int = 3, dtype: Any = np.float32, periodic: bool = True, count: int = 20_000) -> Particles:
    """Two dense parallel sheets (lines in 2-D), slightly more than one linking length apart: two groups.

    Hard because each cell of one sheet is near dense cells of the other without links, so no pair allows an early exit: a
    search by pairs of cells compares all of their particles.
    """
    random = np.random.Generator(np.random.Philox(count))
    points = random.random((count, dimensions), np.float32)
    points[:, 0] = np.where(np.arange(count) % 2, 0.3, 0.3 + 1.001 * LINK)
    return _particles(points, dtype, 1.0 if periodic else None, dimensions)


def two_clumps(dimensions: int = 3, dtype: Any = np.float32, periodic: bool = True, count: int = 20_000) -> Particles:
    """Two dense clumps slightly more than one linking length apart: two groups.

    Hard because it is the worst case for a pair of cells: count^2 / 4 distances without a link.
    """
    random = np.random.Generator(np.random.Philox(count))
    points = 0.3 + 1e-3 * LINK * random.random((count, dimensions), np.float32)
    points[::2, 0] += 1.002 * LINK
    return _particles(points, dtype, 1.0 if periodic else None, dimensions)


def far_outlier(dimensions: int = 3, dtype: Any = np.float32, count: int = 500) -> Particles:
    """A cloud in the unit cube and one particle very far from it, with open boundaries.

    Hard because a grid over the extent has too many cells to allocate, or to number with 21 bits per axis, and because
    coordinates relative to the far end lose all their digits.
    """
    random = np.random.Generator(np.random.Philox(count))
    points = random.random((count, dimensions))
    points[count // 2] = 1e6 if np.dtype(dtype) == np.float32 else 1e12
    return _particles(points, dtype, None, dimensions)


def single(dimensions: int = 3, dtype: Any = np.float32, periodic: bool = True) -> Particles:
    """One particle: no extent, no mean spacing with open boundaries, no pairs."""
    return _particles(np.full((1, dimensions), 0.5), dtype, 1.0 if periodic else None, dimensions)


def coincident(dimensions: int = 3, dtype: Any = np.float32, periodic: bool = True, count: int = 1000) -> Particles:
    """All particles at the same point: no extent, one cell, every distance zero."""
    return _particles(np.full((count, dimensions), 0.7), dtype, 1.0 if periodic else None, dimensions)


def cases(
    dimensions: int = 3, dtype: Any = np.float32, periodic: bool | None = None, crowd: int = 2000
) -> dict[str, Case]:
    """All sets by name, each with its linking length; both open and periodic unless `periodic` selects one kind.

    `crowd` is the number of particles of the dense sets: 2000 lets a test compare all pairs, 1,000,000 reveals quadratic
    algorithms.

    >>> particles, linking_length = cases(dimensions=2)["chain at the linking length, open"]
    >>> particles, linking_length
    (Particles(40 in 2-D, float32, open), 0.25)
    """
    found: dict[str, Case] = {}
    for wraps in (False, True) if periodic is None else (periodic,):
        where = "periodic" if wraps else "open"
        made = _either(dimensions, dtype, wraps, crowd) | (_periodic if wraps else _open)(dimensions, dtype)
        for name, particles in made.items():
            found[f"{name}, {where}"] = particles, LINK
        below = float(np.nextafter(LINK, 0))
        found[f"lattice just above the linking length, {where}"] = lattice_at_link(dimensions, dtype, wraps), below
    return found


def _either(dimensions: int, dtype: Any, periodic: bool, crowd: int) -> dict[str, Particles]:
    """The sets that exist with open boundaries and in a periodic box."""
    plain: dict[str, Callable[..., Particles]] = {
        "lattice at the linking length": lattice_at_link, "duplicates": duplicates, "box faces": box_faces,
        "single": single, "coincident": coincident,
    }
    crowded = {"dense clump": dense_clump, "two sheets": two_sheets, "two clumps": two_clumps}
    made = {name: make(dimensions, dtype, periodic) for name, make in plain.items()}
    made |= {name: make(dimensions, dtype, periodic, count=crowd) for name, make in crowded.items()}
    return made | {f"chain {gap} the linking length": chain(dimensions, dtype, periodic, gap) for gap in _GAPS}


def _periodic(dimensions: int, dtype: Any) -> dict[str, Particles]:
    return {"chain through the boundary": chain_through_boundary(dimensions, dtype)}


def _open(dimensions: int, dtype: Any) -> dict[str, Particles]:
    return {"far outlier": far_outlier(dimensions, dtype)}


def _particles(points: np.ndarray, dtype: Any, box: float | None, dimensions: int) -> Particles:
    return Particles(np.asarray(points, dtype).reshape(-1, dimensions), box)


def _next_in_chain(last: Any, gap: str) -> Any:
    """The coordinate after `last` at a distance, in double precision, on the chosen side of the linking length."""
    following = type(last)(last + type(last)(LINK))
    while gap == "above" and float(following) - float(last) <= LINK:
        following = np.nextafter(following, type(last)(np.inf))
    while gap == "below" and float(following) - float(last) >= LINK:
        following = np.nextafter(following, type(last)(0))
    return following


def _last_below(limit: float, dtype: Any) -> Any:
    """The largest value of this type below `limit`, which need not be of this type."""
    value = np.dtype(dtype).type(limit)
    return value if float(value) < limit else np.nextafter(value, np.dtype(dtype).type(0))
