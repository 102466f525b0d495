"""Pictures of particles, compared with NumPy's histograms."""

import gc
import weakref

import numpy as np
import pytest

import workbench as wb
from workbench.data.units import unit_of_length
from workbench.lab.description import Axes
from workbench.lab.projection import Projection, frame_of, grid_of, view_axes
from workbench.lab.remembered import MOST, remembered

RANDOM = np.random.default_rng(7)


def counted(particles, axis, window, shape):
    """Particles per pixel by numpy, row 0 at the top."""
    across, up = (own for own in range(particles.dimensions) if particles.dimensions == 2 or own != axis)
    places = particles.positions.astype(np.float64)
    left, right, bottom, top = window
    ends = [[bottom, top], [left, right]]
    return np.histogram2d(places[:, up], places[:, across], shape, ends)[0].astype(int)[::-1]


@pytest.mark.parametrize("box", [None, 1.0, (1.0, 2.0, 0.75)])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("window", [None, (0.21, 0.45, 0.1, 0.33), (-1.0, 3.0, -0.5, 0.5)])
def test_counts_are_those_of_a_histogram(box, axis, window):
    positions = RANDOM.random((5000, 3)) * np.broadcast_to(1.0 if box is None else box, 3) * 0.999
    particles = wb.Particles(positions, box)
    window = window or frame_of(particles, axis)
    part = Projection.of(particles, axis).within(window)
    shape = grid_of(window, 20_000)
    assert (part.counts(shape) == counted(particles, axis, window, shape)).all()
    assert part.counts(shape).sum() == len(part)


def test_counts_of_two_dimensions_need_no_axis():
    particles = wb.Particles(RANDOM.random((500, 2)), box=1.0)
    for axis in (0, 2):
        seen = Projection.of(particles, axis)
        assert (seen.counts((8, 8)) == counted(particles, axis, seen.frame, (8, 8))).all()


def test_single_precision_moves_particles_by_a_pixel_at_most():
    particles = wb.Particles(RANDOM.random((100_000, 3)).astype("f4"), box=1.0)
    seen = Projection.of(particles, 2)
    found, expected = seen.counts((256, 256)), counted(particles, 2, seen.frame, (256, 256))
    assert found.sum() == expected.sum()
    assert np.abs(found - expected).sum() < 200


def test_a_deep_look_far_from_the_origin_stays_sharp():
    places = 1e6 + np.arange(64)[:, None] * np.array([[1e-3, 1e-3, 0.0]])
    particles = wb.Particles(np.concatenate([places, [[0.0, 0.0, 0.0]]]))
    window = (1e6 - 5e-4, 1e6 + 0.0635, 1e6 - 5e-4, 1e6 + 0.0635)
    assert (Projection.of(particles, 2).within(window).counts((64, 64))[::-1] == np.eye(64)).all()


@pytest.mark.parametrize("positions", [[[3.0, 4.0]], [[1.0, 2.0], [1.0, 5.0]], [[0.0, 0.0], [0.0, 0.0]], [[1e300, 0.0]]])
def test_particles_without_extent_have_a_frame_around_them(positions):
    particles = wb.Particles(positions)
    left, right, bottom, top = frame_of(particles)
    assert left < right
    assert bottom < top
    seen = Projection.of(particles)
    assert seen.counts(grid_of(seen.frame, len(particles))).sum() == len(particles)


def test_pixels_are_square_and_few_for_few_particles():
    assert grid_of((0, 4, 0, 1), 10**7) == (256, 1024)
    assert grid_of((0, 1, 0, 1e9), 10**7)[1] == 1
    assert max(grid_of((0, 1, 0, 1), 0)) == 64


def test_an_axis_that_is_not_there_is_refused():
    with pytest.raises(wb.WorkbenchError, match="axis must be a whole number, between 0 and 2; got 3"):
        Projection.of(wb.Particles(np.zeros((1, 3))), 3)


def test_a_projection_is_made_once_and_dies_with_its_particles():
    particles = wb.Particles(RANDOM.random((10, 3)))
    seen = Projection.of(particles, 1)
    assert Projection.of(particles, 1) is seen
    assert Projection.of(particles, 0) is not seen
    alive = weakref.ref(seen)
    del particles, seen
    gc.collect()
    assert alive() is None


def test_what_was_used_last_is_remembered():
    owner, made = wb.Field(np.zeros(2)), []
    for key in [*range(MOST), 0, MOST, 0, 1]:
        remembered(owner, "numbers", key, lambda key=key: made.append(key) or key)
    assert made == [*range(MOST), MOST, 1]   # 1 had to go for MOST, 0 was used in between


@pytest.mark.parametrize(("units", "expected"), [
    ({"length": "nm", "time": "ps"}, "nm"), ({"positions": "comoving Mpc/h"}, "Mpc/h"), ("Mpc/h, km/s", "Mpc/h"),
    ("not stated; HACC's convention is comoving Mpc/h and km/s", ""), ({"UnitLength_in_cm": 3e21}, ""), (None, ""),
])
def test_units_are_those_that_the_data_state(units, expected):
    particles = wb.Particles([[0.5, 0.5, 0.5]], box=2.0, metadata={"units": units})
    assert unit_of_length(particles.metadata) == expected
    along = f"all 2 {expected} along y" if expected else "all 2 along y"
    assert view_axes(particles, 1) == Axes("x", "z", expected, along)


def test_a_view_of_two_dimensions_has_no_depth():
    assert view_axes(wb.Particles([[0.0, 1.0]])) == Axes("x", "y")
