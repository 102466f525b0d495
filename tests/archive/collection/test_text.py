"""Text of fixed width as members."""

import numpy as np
import pytest

import workbench as wb


@pytest.mark.parametrize("dtype", ["U1", "S1", "U2", "S3"])
@pytest.mark.parametrize("shape", [(2,), (), (2, 3)])
def test_text_of_any_width_comes_back(dtype: str, shape: tuple[int, ...]) -> None:
    text = np.full(shape, "A", dtype)
    decoded = wb.compress({"station": text}, wb.Exact())["station"].decompress()
    np.testing.assert_array_equal(decoded.values, text, strict=True)
