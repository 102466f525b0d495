"""Who owns a position and who needs a copy of it, against distances to the cuboids of all subdomains."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import workbench as wb
from workbench import backend
from workbench.data.chunked import ParticlesInMemory, even_sizes
from workbench.run.executors import InProcess
from workbench.subdomains.decomposition import Decomposition, WithGhosts
from workbench.subdomains.exchange import FEW, Exchange


def plain_ghosts(division, positions, width):
    """All pairs of a position and a foreign subdomain within `width` of it along every axis, image by image."""
    lower, upper = division.faces
    owner, pairs = division.owners(positions), set()
    shifts = [np.zeros(division.dimensions)]
    for axis, period in enumerate(division.box or ()):
        along = period * (np.arange(division.dimensions) == axis)
        shifts = [shift + sign * along for shift in shifts for sign in (-1, 0, 1)]
    for row, position in enumerate(positions.astype(np.float64)):
        for part in range(division.parts):
            for image in (position + shift for shift in shifts):
                if part != owner[row] and (image >= lower[part] - width).all() and (image < upper[part] + width).all():
                    pairs.add((row, part))
    return pairs


@example(seed=0, dimensions=3, box=1.0, parts=8, width=0.6, dtype=np.float32, crowd=1)
@given(
    seed=st.integers(0, 2**32 - 1), dimensions=st.integers(2, 3), box=st.sampled_from([None, 1.0]),
    parts=st.integers(1, 12), width=st.sampled_from([0.001, 0.05, 0.4]), dtype=st.sampled_from([np.float32, np.float64]),
    crowd=st.sampled_from([1, 5]),
)
def test_ghosts_are_those_within_the_width(seed, dimensions, box, parts, width, dtype, crowd):
    positions = np.random.default_rng(seed).random((40, dimensions)).astype(dtype) ** crowd
    division = Decomposition.of(positions, parts, box and (box,) * dimensions)
    owner, rows, found = division.divided(positions, width)
    pairs = list(zip(rows.tolist(), found.tolist(), strict=True))
    assert pairs == sorted(plain_ghosts(division, positions, width))
    lower, upper = division.faces
    assert (positions >= lower[owner]).all()
    assert (positions < upper[owner]).all()


def test_a_cut_is_compared_in_double():
    """0.3 lies between two float32 numbers: the comparison must not round it to either of them."""
    above = float(np.float32(0.3))
    below = float(np.nextafter(np.float32(0.3), np.float32(0)))
    positions = np.array([[below, 0], [above, 0]], np.float32)
    for place in (0.3, above, above + 1e-12):
        division = Decomposition.of(np.array([[place - 0.1, 0.0], [place + 0.1, 0.0]]), 2)
        cut = division.cuts[0].place
        assert division.owners(positions).tolist() == [int(below >= cut), int(above >= cut)]


@pytest.mark.parametrize(("n", "parts", "threads"), [
    (10, 1, 1), (10, 5, 3), *(pytest.param(10, parts, 1, marks=pytest.mark.long) for parts in (20, 64)),
])
def test_every_particle_is_sent_to_its_owner_and_to_whom_is_near(tmp_path, n, parts, threads):
    snapshot = wb.synthetic.cosmic_web(n=n, seed=2)
    source = ParticlesInMemory(snapshot, even_sizes(len(snapshot), 150 if parts == 20 else 900))
    division = Decomposition.of(snapshot.positions, parts, snapshot.box)
    owner, pairs = division.owners(snapshot.positions), plain_ghosts(division, snapshot.positions, 0.3)
    exchange = Exchange(source, WithGhosts(division, 0.3), tmp_path, Numbers())
    with backend.using_threads(threads):
        shipped = exchange.distribute(InProcess())
    assert (shipped.owned == np.bincount(owner, minlength=parts)).all()
    assert (shipped.counts - shipped.owned == np.bincount([to for _, to in pairs], minlength=parts)).all()
    for part in range(parts):
        found = exchange.receive(part)
        index = sorted({*np.flatnonzero(owner == part).tolist(), *(row for row, to in pairs if to == part)})
        assert found.index.tolist() == index
        assert (found.owned == (owner[index] == part)).all()
        np.testing.assert_array_equal(found.positions, snapshot.positions[index])
        starts = np.repeat(source.starts[:-1], source.sizes)[index]
        assert (found.cargo.view(np.int16)[:, 0] == index - starts).all()
    assert np.bincount(owner, minlength=parts).max() <= 1.2 * len(snapshot) / parts + 1
    for chunk, start in enumerate(source.starts[:-1] if parts <= FEW else ()):
        rows = {part: (rows.tolist(), places) for part, rows, places in exchange.owners(chunk)}
        own = owner[start : start + source.sizes[chunk]]
        assert {part: found for part, (found, _) in rows.items()} == {
            part: np.flatnonzero(own == part).tolist() for part in set(own.tolist())
        }
        assert all(places.start == (owner[:start] == part).sum() for part, (_, places) in rows.items())
    assert not list(tmp_path.glob("chunk-*"))   # particles are there once


class Numbers:
    """Cargo: the row in the chunk."""

    row_bytes = 2

    def rows(self, chunk):
        return np.arange(900, dtype=np.int16)[:, None].view(np.uint8)
