"""Pictures of fields, compared with NumPy and plain loops."""


import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.guarantees import Limit
from workbench.lab.description import Axes
from workbench.lab.levels import bytes_of, difference_bytes
from workbench.lab.slices import Cut, envelope, error_raster, slice_range, slice_raster

RANDOM = np.random.default_rng(7)
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
        with pytest.raises(wb.WorkbenchError, match=f"{name} must be a whole number, between 0 and"):
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


def test_axes_are_named_as_the_file_names_them():
    field = wb.Field(np.zeros((2, 3, 4, 5)), spacing=0.5, metadata={"dimensions": ["time", "z", "lat", "lon"]})
    assert Cut(0, 1, 1).axes(field) == Axes("lon", "lat", "", "z = 1 of 3, 0.75, time = 1 of 2")
    assert Cut(2, 0, 0).axes(field).across == "lat"
    assert Cut(0, 1, 1).axes(wb.Field(np.zeros((2, 3, 4, 5)))).depth == "axis 1 = 1 of 3, time = 1 of 2"
    assert Cut().axes(wb.Field(np.zeros((2, 3)))) == Axes("axis 1", "axis 0")
