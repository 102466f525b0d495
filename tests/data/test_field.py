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
    assert field.values.dtype == (np.float32 if dtype == ">f4" else np.float64)
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
        ({"values": np.zeros(3, bool)}, "values must be float32 or float64; got bool"),
        ({"values": np.zeros(3), "spacing": -1}, "spacing must be positive and finite; got -1"),
        ({"values": np.zeros(3), "spacing": [1, 2]}, r"spacing must be one number or 1 of them; got \[1, 2\]"),
        ({"values": np.zeros(3), "mask": np.zeros(3)}, r"mask must be boolean of shape \(3,\); got float64"),
        ({"values": np.zeros(3), "mask": np.zeros(4, bool)}, r"mask must be boolean of shape \(3,\); got bool of .*\(4,\)"),
    ],
)
def test_bad_input_is_refused(arguments: dict, message: str) -> None:
    with pytest.raises(wb.WorkbenchError, match=message):
        wb.Field(**arguments)


def test_it_says_what_it_is() -> None:
    mask = np.zeros((64, 32), bool)
    mask[0] = True
    assert repr(wb.Field(np.zeros((64, 32), "f4"), name="T", mask=mask)) == "Field('T', 64 x 32, float32, 32 masked)"
