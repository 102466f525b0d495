"""A codec, or a speed, that is chosen for all members of a dataset."""

import numpy as np
import pytest

import workbench as wb

DATA = {
    "T": np.linspace(0, 1, 500).reshape(5, 100), "flag": np.arange(10), "station": ["A", "B"],
    "time": np.arange("2026-01-01", "2026-01-05", dtype="M8[D]"), "x": np.linspace(0, 1, 5),
}


def test_exact_members_need_no_codec_that_refuses_them() -> None:
    rules = {"T": wb.Absolute(1e-3), "x": wb.Exact()}
    archive = wb.compress(DATA, rules, "zfp")
    assert archive["T"].codec.id == "zfp"
    assert archive["flag"].codec.id == "prequantised"
    assert archive.verify(DATA).passed
    with pytest.raises(wb.WorkbenchError, match=r"^'flag': zfp does not take integers"):
        wb.compress(DATA, {**rules, "flag": {"bound": wb.Exact(), "codec": "zfp"}})
    with pytest.raises(wb.WorkbenchError, match=r"^'flag': zfp does not take integers"):
        wb.compress(DATA, {**rules, "flag": wb.Absolute(1)}, "zfp")


def test_speed_is_for_all_members() -> None:
    archive = wb.compress(DATA, wb.Absolute(1e-3), speed="fast")
    assert archive["T"].codec.id == "staged"
    assert archive.verify(DATA).passed
