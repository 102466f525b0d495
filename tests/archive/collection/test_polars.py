"""Tables of polars."""

import datetime

import numpy as np
import pytest

import workbench as wb

polars = pytest.importorskip("polars", reason="needs polars")


def test_columns_come_back(tmp_path):
    frame = polars.DataFrame({
        "mass": [1.5, None, 3.5], "small": polars.Series([1, 2, None], dtype=polars.Int16), "name": ["a", None, "ç"],
        "day": [datetime.date(2026, 1, 2), None, datetime.date(1900, 3, 4)],
        "when": [datetime.datetime(2026, 1, 2, 3, 4, 5, 678901), datetime.datetime(1, 1, 1), None],
        "span": [datetime.timedelta(days=1, microseconds=3), None, datetime.timedelta(-2)], "good": [True, None, False],
        "id": polars.Series([0, 2**63, 2**64 - 1], dtype=polars.UInt64),
    })
    archive = wb.compress({"halos": frame}, {"halos/mass": wb.Absolute(0.1)}, out=tmp_path / "x.zip")
    found = archive.decompress()["halos"].to_dataframe()
    assert abs(found["mass"] - [1.5, np.nan, 3.5]).max() <= 0.1
    back = polars.from_pandas(found.drop(columns=["mass"]))
    assert back["small"].to_list() == [1, 2, None]
    for name in ("name", "good", "id"):
        assert back[name].to_list() == frame[name].to_list()
    for name in ("when", "span"):
        assert back[name].to_list() == frame[name].to_list()
    assert back["day"].cast(polars.Date).to_list() == frame["day"].to_list()
    assert archive.verify({"halos": frame}).passed
    with pytest.raises(wb.GuaranteeBroken, match="'halos/id'"):
        archive.verify({"halos": frame.with_columns(id=polars.lit(3, polars.UInt64))})


@pytest.mark.parametrize("column", [
    polars.Series(["a", "b"], dtype=polars.Categorical), polars.Series(["a", "b"], dtype=polars.Enum(["a", "b"])),
    polars.Series([[1], [2, 3]]), polars.Series([{"a": 1}, {"a": 2}]),
    polars.Series([[1, 2], [3, 4]], dtype=polars.Array(int, 2)),
    polars.Series([datetime.datetime(2026, 1, 1)] * 2).dt.replace_time_zone("UTC"), polars.Series([b"a", b"b"]),
    polars.Series([datetime.time(3), None]), polars.Series([1, None], dtype=polars.Decimal(10, 2)),
], ids=lambda column: str(column.dtype)[:20])
def test_types_without_a_place_are_refused_by_name(column):
    with pytest.raises(wb.WorkbenchError, match="'k'"):
        wb.compress(polars.DataFrame({"k": column}), wb.Exact())
