"""Pictures of fields and particles: held against NumPy's histograms and plain loops."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.guarantees import Limit
from workbench.lab.description import Axes
from workbench.lab.projection import (
    Cut,
    Projection,
    bytes_of,
    density_bytes,
    density_range,
    difference_bytes,
    difference_range,
    envelope,
    error_raster,
    frame_of,
    grid_of,
    slice_range,
    slice_raster,
    view_axes,
    whole_window,
)
from workbench.lab.remembered import MOST, remembered
from workbench.lab.units import unit_of_length

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
    with pytest.raises(wb.WorkbenchError, match="axis must be from 0 to 2 for these data; got 3"):
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


# Fields.

FIELDS = {2: (7, 5), 3: (4, 7, 5), 4: (2, 4, 7, 5)}


@pytest.mark.parametrize("dimensions", [2, 3, 4])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_slice_is_that_of_the_array_with_its_first_row_below(dimensions, axis):
    values = RANDOM.random(FIELDS[dimensions])
    field = wb.Field(values, spacing=[2.0, 1.0, 0.5, 0.25][-dimensions:])
    moment = values[1] if dimensions == 4 else values
    expected = moment if dimensions == 2 else np.take(moment, 3, axis)
    raster = slice_raster(field, Cut(axis, 3, 1))
    assert (raster.values == expected[::-1]).all()
    assert raster.block == (1, 1)
    steps = [step for own, step in enumerate(field.spacing[-3:]) if dimensions == 2 or own != axis]
    assert raster.window == (0, expected.shape[1] * steps[1], 0, expected.shape[0] * steps[0])
    assert raster.window == whole_window(field, axis)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_a_pixel_is_the_mean_of_its_block_and_the_worst_of_its_errors(rows, columns, pixels, seed):
    random = np.random.default_rng(seed)
    values = random.normal(size=(rows, columns))
    values[random.random(values.shape) < 0.2] = np.nan
    decoded = values + random.uniform(-0.5, 0.5, values.shape)
    field, cut = wb.Field(values), Cut(pixels=pixels)
    shown = slice_raster(field, cut).values[::-1]
    wrong = error_raster(field, wb.Field(decoded), Limit("absolute", 0.25), cut).values[::-1]
    height, width = min(rows, pixels), min(columns, pixels)
    assert shown.shape == wrong.shape == (height, width)
    for row in range(height):
        for column in range(width):
            place = (slice(row * rows // height, (row + 1) * rows // height),
                     slice(column * columns // width, (column + 1) * columns // width))
            block, errors = values[place], ((decoded - values) / 0.25)[place]
            if np.isnan(block).all():
                assert np.isnan(shown[row, column])
                assert np.isnan(wrong[row, column])
            else:
                assert shown[row, column] == pytest.approx(np.nanmean(block))
                assert abs(wrong[row, column]) == np.nanmax(np.abs(errors))
                assert wrong[row, column] in errors


def test_a_window_takes_the_cells_that_it_touches():
    field = wb.Field(np.arange(100.0).reshape(10, 10), spacing=0.1)
    raster = slice_raster(field, Cut(window=(0.25, 0.5, 0.0, 0.2)))
    assert raster.values.tolist() == [[12, 13, 14], [2, 3, 4]]
    assert raster.window == pytest.approx((0.2, 0.5, 0.0, 0.2))
    beyond = slice_raster(field, Cut(window=(5.0, 6.0, -3.0, -2.0)))
    assert beyond.values.tolist() == [[9]]


def test_masked_cells_are_empty_in_the_decoded_field_too():
    values = np.arange(6.0).reshape(2, 3)
    field = wb.Field(values, mask=values == 4)
    shown = slice_raster(wb.Field(values + 1), Cut(), like=field).values
    assert np.isnan(shown).tolist() == [[False, True, False], [False, False, False]]
    assert slice_range(field, Cut()) == (0, 5)
    assert slice_range(field, Cut(), logarithmic=True) == (1, 5)


def test_a_slice_without_values_has_a_scale():
    empty = wb.Field(np.full((2, 2), np.nan))
    assert slice_range(empty, Cut()) == (0, 1)
    assert slice_range(wb.Field(np.full((2, 2), -1.0)), Cut(), logarithmic=True) == (1, 10)
    assert (bytes_of(slice_raster(empty, Cut()).values, 0.0, 1.0) == 0).all()


def test_errors_relative_to_values_are_in_units_of_what_each_may_err():
    field, decoded = wb.Field([[2.0, -4.0, 0.0]]), wb.Field([[2.1, -4.1, 0.0]])
    found = error_raster(field, decoded, Limit("relative", 0.1), Cut()).values
    assert found == pytest.approx(np.array([[0.5, -0.25, 0.0]]))


def test_a_value_that_was_lost_is_as_wrong_as_can_be():
    found = error_raster(wb.Field([[1.0]]), wb.Field([[np.nan]]), Limit("absolute", 1.0), Cut()).values
    assert difference_bytes(found, 1.0).tolist() == [[255]]


def test_slices_that_are_not_there_are_refused():
    field = wb.Field(np.zeros((2, 3, 4)))
    for cut, name in ((Cut(3), "axis"), (Cut(0, 2), "index")):
        with pytest.raises(wb.WorkbenchError, match=f"{name} must be from 0"):
            slice_raster(field, cut)
    with pytest.raises(wb.WorkbenchError, match="two to four axes"):
        slice_raster(wb.Field([1.0, 2.0]), Cut())


@given(st.integers(1, 300), st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_an_envelope_loses_no_peak(count, points, seed):
    values = np.random.default_rng(seed).normal(size=count)
    field = wb.Field(values, spacing=0.5)
    where, shown = envelope(field, values, points=points)
    assert len(where) == len(shown) == (count if count <= 2 * points else 2 * points)
    assert shown.max() == values.max()
    assert shown.min() == values.min()
    assert (np.diff(where) >= 0).all()


def test_an_envelope_shows_gaps_and_the_window():
    values = np.array([0.0, np.nan, 2.0, 3.0])
    where, shown = envelope(wb.Field(values, spacing=0.5), values, (0.5, 1.5, 0, 1))
    assert where.tolist() == [0.75, 1.25]
    assert np.isnan(shown[0])
    assert shown[1] == 2


# Bytes.

@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_bytes_reach_from_one_end_to_the_other(low, spread):
    found = bytes_of(np.array([[low, low + spread / 2, low + spread, low - 1, np.inf, np.nan]]), low, low + spread)
    assert found[0, [0, 2, 3, 4, 5]].tolist() == [1, 255, 1, 255, 0]
    assert abs(int(found[0, 1]) - 128) <= 1


def test_logarithmic_bytes_are_even_in_the_logarithm():
    assert bytes_of(np.array([[1.0, 10.0, 100.0, -5.0]]), 1.0, 100.0, logarithmic=True).tolist() == [[1, 128, 255, 1]]


def test_a_constant_is_no_division_by_zero():
    assert bytes_of(np.full((1, 2), 3.0), 3.0, 3.0).tolist() == [[1, 1]]


@given(st.lists(st.floats(-2, 2), min_size=1), st.floats(0.01, 10))
def test_differences_are_symmetric_about_none(values, most):
    there = np.array([values])
    found = difference_bytes(there, most).astype(int) - 128
    assert (found == -(difference_bytes(-there, most).astype(int) - 128)).all()
    assert ((found == 0) == (np.abs(there) <= most / 254 * (1 + 1e-9))).all()


def test_lone_particles_stand_out_and_none_are_dark():
    counts = np.array([[0, 1, 5, 4000]])
    for logarithmic in (True, False):
        low, high = density_range(counts, logarithmic)
        found = density_bytes(counts, low, high, logarithmic)[0]
        assert found[0] == 0
        assert found[1] > 0
        assert found[3] == 255
    assert density_range(np.zeros((2, 2), int)) == (0.5, 1.0)
    assert difference_range(np.zeros((2, 2), int)) == 1.0


# Names and units.

def test_axes_are_named_as_the_file_names_them():
    field = wb.Field(np.zeros((2, 3, 4, 5)), spacing=0.5, metadata={"dimensions": ["time", "z", "lat", "lon"]})
    assert Cut(0, 1, 1).axes(field) == Axes("lon", "lat", "", "z = 1 of 3, 0.75, time = 1 of 2")
    assert Cut(2, 0, 0).axes(field).across == "lat"
    assert Cut(0, 1, 1).axes(wb.Field(np.zeros((2, 3, 4, 5)))).depth == "axis 1 = 1 of 3, time = 1 of 2"
    assert Cut().axes(wb.Field(np.zeros((2, 3)))) == Axes("axis 1", "axis 0")


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


def test_16_bits_resolve_narrow_limits():
    values = np.array([[0.0, 5e-5, 1.0, np.nan]])
    assert bytes_of(values, 0.0, 1.0, levels=np.uint16).tolist() == [[1, 4, 65535, 0]]
