"""Fields: what is accepted and what is refused."""

import numpy as np
import pytest

import workbench as wb


@pytest.mark.parametrize("shape", [(5,), (4, 5), (3, 4, 5), (2, 3, 4, 5)])
@pytest.mark.parametrize("dtype", [">f4", "<f8", "<i2"])
def test_shapes_and_types(shape: tuple[int, ...], dtype: str) -> None:
    values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    field = wb.Field(values, name="T")
    assert field.shape == shape
    assert field.values.dtype == np.dtype(dtype).newbyteorder("=")
    assert field.spacing == (1.0,) * len(shape)
    np.testing.assert_array_equal(field.values, values)


def test_what_is_not_finite_or_masked_is_not_valid() -> None:
    values = np.array([1.0, np.nan, np.inf, 4.0])
    field = wb.Field(values, mask=np.array([False, False, False, True]))
    assert field.valid.tolist() == [True, False, False, False]
    np.testing.assert_array_equal(field.values, values)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": 3.0}, r"values must have 1 to 4 dimensions; got shape \(\)"),
        ({"values": np.zeros((1,) * 5)}, r"values must have 1 to 4 dimensions; got shape \(1, 1, 1, 1, 1\)"),
        ({"values": np.zeros((3, 0))}, r"values must not be empty; got shape \(3, 0\)"),
        ({"values": np.zeros(3, bool)}, "float32, float64 or integers of at most 64 bits; got bool.*'uint8'"),
        ({"values": np.zeros(3, "f2")}, "got float16: convert with .astype.'float32'., which is exact"),
        ({"values": np.zeros(3, "g")}, "round with .astype.'float64'"),
        ({"values": np.zeros(3, "c8")}, "got complex64: take the real and the imaginary part"),
        ({"values": np.zeros(3, "M8[s]")}, r"got datetime64\[s\]: take the time since a date"),
        ({"values": np.zeros(3, "m8[s]")}, r"got timedelta64\[s\]: convert with .astype.'int64'"),
        ({"values": np.zeros(3, object)}, "got object: convert it to numbers"),
        ({"values": np.zeros(3, "S2")}, "it must be an array of numbers"),
        ({"values": np.zeros(3, [("a", "f4"), ("b", "f4")])}, r"take its columns one by one, such as array\['a'\]"),
        ({"values": [[1.0], [1.0, 2.0]]}, "values must be an array of numbers; got"),
        ({"values": np.zeros(3), "name": 5}, "name must be text or None; got 5"),
        ({"values": np.zeros(3), "spacing": -1}, "spacing must be positive and finite; got -1"),
        ({"values": np.zeros(3), "spacing": [1, 2]}, r"spacing must be one number or 1 of them; got \[1, 2\]"),
        ({"values": np.zeros(3), "mask": np.zeros(3)}, r"mask must be boolean of shape \(3,\); got float64"),
        ({"values": np.zeros(3), "mask": np.zeros(4, bool)}, r"mask must be boolean of shape \(3,\); got bool of .*\(4,\)"),
    ],
)
def test_bad_input_is_refused(arguments: dict, message: str) -> None:
    with pytest.raises(wb.WorkbenchError, match=message):
        wb.Field(**arguments)


def test_the_mask_of_a_masked_array_is_taken_over_and_joined_with_another() -> None:
    values = np.ma.array([1.0, 2.0, 1e20, 4.0], mask=[False, False, True, False])
    assert wb.Field(values).mask.tolist() == [False, False, True, False]
    assert wb.Field(values, mask=[True, False, False, False]).mask.tolist() == [True, False, True, False]
    assert wb.Field(np.ma.array([1.0, 2.0])).mask is None
    assert wb.Field(np.zeros(2), mask=np.ma.array([False, False], mask=[False, True])).mask.tolist() == [False, True]


def test_later_writes_of_the_caller_change_nothing() -> None:
    values, mask = np.ones(4), np.zeros(4, bool)
    masked = np.ma.array(np.ones(4), mask=[True, False, False, False])
    fields = [wb.Field(values, mask=mask), wb.Field(masked)]
    values[0], mask[0], masked[0] = np.nan, True, 5.0
    assert [field.values.tolist() for field in fields] == [[1.0] * 4] * 2
    assert [field.mask.tolist() for field in fields] == [[False] * 4, [True, False, False, False]]


def test_read_only_arrays_are_taken_without_a_copy() -> None:
    values = np.ones(4)
    values.flags.writeable = False
    assert np.shares_memory(wb.Field(values).values, values)


def test_memory_that_is_not_aligned_is_copied() -> None:
    values = np.arange(6.0)
    misaligned = np.frombuffer(b"\0" + values.tobytes(), np.uint8)[1:].view(np.float64)
    assert not misaligned.flags.aligned
    assert wb.Field(misaligned).values.flags.aligned
    np.testing.assert_array_equal(wb.Field(misaligned).values, values)


def test_it_says_what_it_is() -> None:
    mask = np.zeros((64, 32), bool)
    mask[0] = True
    assert repr(wb.Field(np.zeros((64, 32), "f4"), name="T", mask=mask)) == "Field('T', 64 x 32, float32, 32 masked)"


def test_an_array_is_read_in_place_for_the_time_of_a_call() -> None:
    values = np.ma.masked_less(np.arange(6.0), 2)
    looked_at = wb.Field.of(values)
    assert np.shares_memory(looked_at.values, values.data)
    assert looked_at.mask.tolist() == [True, True, False, False, False, False]
    assert wb.Field.of(looked_at) is looked_at
    assert values.flags.writeable


def test_an_archive_in_place_of_values_is_refused_with_the_way_to_its_values() -> None:
    archive = wb.compress(np.arange(9.0), wb.Absolute(0.1))
    with pytest.raises(wb.WorkbenchError, match=r"got Archive\(.*: give archive\.decompress\(\)"):
        wb.Field(archive)
