"""Axes with coordinates, compared with xarray's own selection by labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.errors import WorkbenchError
from workbench.lab.grid import GridAxis, grid_of
from workbench.lab.slices import Cut, slice_raster

LEVELS = [1000.0, 850.0, 500.0, 200.0, 50.0]


def atmosphere() -> xarray.Dataset:
    """Latitudes that descend, levels that are not evenly spaced, and months of a year of 360 days."""
    values = np.random.default_rng(4).normal(size=(3, 5, 7, 8)).astype("f4")
    months = xarray.date_range("2001-01-16", periods=3, freq="MS", calendar="360_day", use_cftime=True)
    return xarray.Dataset(
        {
            "T": (("time", "lev", "lat", "lon"), values, {"units": "K"}),
            "orog": (("lat", "lon"), values[0, 0], {"units": "m"}),
            "matrix": (("band", "band2"), np.eye(4)),
        },
        coords={
            "time": months, "lev": ("lev", LEVELS, {"units": "hPa"}),
            "lat": ("lat", np.linspace(90, -90, 7), {"units": "degrees_north"}),
            "lon": ("lon", np.linspace(0, 315, 8), {"units": "degrees_east"}), "area": (("lat", "lon"), values[1, 1]),
        },
    )


@pytest.fixture
def panel() -> Any:
    with wb.lab.bounds(atmosphere(), variable="T", time=1, index=2) as made:
        made.wait()
        yield made


def controls(panel: Any) -> dict[str, Any]:
    return {part.field: part for row in panel.rows() for part in row.parts if hasattr(part, "field")}


def test_a_slice_shows_dimensions_coordinates_and_units(panel: Any) -> None:
    axes = panel.shown.pictures[0].axes
    assert (axes.across, axes.up) == ("lon [°E]", "lat [°N]")
    assert axes.depth == "lev = 500 hPa (2 of 5), time = 2001-03-01 (1 of 3)"
    assert panel.shown.pictures[0].window == pytest.approx((-22.5, 337.5, -105, 105))
    assert panel.shown.settings["slice"] == "lev = 500 hPa (2 of 5)"
    found = panel.reading(0, 93.0, 58.0)
    expected = atmosphere()["T"].isel(time=1).sel(lev=500).sel(lon=93, lat=58, method="nearest")
    assert found.values[0] == str(expected.values)
    assert found.place == "time 2001-03-01, lev 500 hPa, lat 60 °N, lon 90 °E, cell [1, 2, 1, 2]"


def test_north_is_up_although_latitudes_descend(panel: Any) -> None:
    field, cut = panel.data, panel.state.cut(panel.data)
    shown = slice_raster(field, cut).values
    assert (shown == atmosphere()["T"].values[1, 2]).all()   # the first row of the file is at the top
    zoomed = slice_raster(field, Cut(0, 2, 1, (40.0, 140.0, 25.0, 80.0), grid=cut.grid))
    chosen = atmosphere()["T"].isel(time=1, lev=2).sel(lat=[90, 60, 30], lon=[45, 90, 135])   # the cells that it touches
    assert (zoomed.values == chosen.values).all()
    assert zoomed.window == pytest.approx((22.5, 157.5, 15, 105))


def test_sliders_take_coordinates(panel: Any) -> None:
    panel.widget   # noqa: B018
    shown = controls(panel)
    assert shown["axis"].content["texts"] == ["lev", "lat", "lon"]
    assert shown["index"].content["shown"]["text"] == "500 hPa"
    assert shown["time"].content["texts"] == ["2001-02-01", "2001-03-01", "2001-04-01"]
    shown["index"].typed("190")
    shown["time"].typed("2001-02")
    assert (panel.state.index, panel.state.time) == (3, 0)
    shown["index"].typed("up there")
    assert panel.state.index == 3
    assert panel.status.error == "the slice must be a coordinate such as 500 hPa; 'up there' is not one"
    shown["time"].typed("soon")
    assert "a coordinate such as 2001-03-01, or a number from 0 to 2; 'soon'" in panel.status.error
    panel.change(axis=1)
    assert shown["index"].content["texts"][0] == "90 °N"
    shown["index"].typed("-60 °N")
    assert panel.state.index == 5


def test_an_axis_without_a_scale_has_ticks_with_its_coordinates(panel: Any) -> None:
    panel.change(axis=2, index=0)
    axes = panel.shown.pictures[0].axes
    assert (axes.across, axes.up) == ("lat [°N]", "lev [hPa]")
    assert axes.ticks == ((), ((4.5, "1000"), (3.5, "850"), (2.5, "500"), (1.5, "200"), (0.5, "50")))
    assert panel.reading(0, 29.0, 1.4).place.startswith("time 2001-03-01, lev 200 hPa, lat 30 °N, lon 0 °E")


def test_other_variables_and_arrays_alone_have_their_coordinates_too(panel: Any) -> None:
    panel.change(variable="orog")
    assert panel.shown.pictures[0].axes.up == "lat [°N]"
    panel.change(variable="matrix")
    assert panel.shown.pictures[0].axes.up == "band"
    with wb.lab.bounds(atmosphere()["T"].isel(time=0)) as alone:
        assert alone.shown.pictures[0].axes.depth == "lev = 500 hPa (2 of 5)"


def test_coordinates_that_do_not_fit_the_field_are_refused() -> None:
    field = wb.Field(atmosphere()["T"].isel(time=0))
    part = wb.Field(field.values[:2], metadata=field.metadata)
    with pytest.raises(WorkbenchError, match="coordinate lev has 5 values along lev, and the field 2"):
        grid_of(part)


SHARES = st.floats(-0.2, 1.2)


@given(st.integers(1, 30), st.floats(-1e6, 1e6), st.floats(1e-3, 1e3), st.booleans(), SHARES, SHARES)
def test_cells_and_places_of_an_even_axis_are_the_inverse_of_each_other(
    count: int, first: float, step: float, descends: bool, one: float, other: float
) -> None:
    values = first + step * np.arange(count)
    axis = GridAxis.of("x", values[::-1] if descends else values, "m")
    low, high = axis.covered(slice(0, count))
    for cell in range(count):
        ends = axis.covered(slice(cell, cell + 1))
        assert axis.cell(sum(ends) / 2) == cell
    window = sorted(low + share * (high - low) for share in (one, other))
    touched = axis.touched(*window)
    assert 0 <= touched.start < touched.stop <= count
    inside = [cell for cell in range(count) if window[0] < sum(axis.covered(slice(cell, cell + 1))) / 2 < window[1]]
    assert {*inside} <= {*range(touched.start, touched.stop)}


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (np.array(["2026-01-01T06", "2026-01-01T12"], "M8[ns]"), ["2026-01-01T06:00:00", "2026-01-01T12:00:00"]),
        (np.array([6, 12], "m8[h]"), ["6 h", "12 h"]),
        (np.array(["north", "south"]), ["north", "south"]),
        (np.array([1.0, np.nan]), ["1", "nan"]),
        (np.array([True, False]), ["True", "False"]),
        (np.array([2.5]), ["2.5"]),
    ],
)
def test_coordinates_of_any_type_are_named(values: np.ndarray, texts: list[str]) -> None:
    axis = GridAxis.of("along", values, "")
    assert axis.texts == texts
    assert all(axis.index(text) == index for index, text in enumerate(texts) if text != "nan")
    assert len(axis.ticks(slice(0, len(values)), 4)) in (0, len(values))


def test_dates_at_ticks_are_as_short_as_they_can_be() -> None:
    days = np.arange("2026-01-01", "2026-12-31", dtype="M8[D]")
    axis = GridAxis.of("time", days, "")
    assert [text for _, text in axis.ticks(slice(0, 364), 4)] == ["2026-01", "2026-04", "2026-07", "2026-10"]
    assert [text for _, text in axis.ticks(slice(0, 8), 4)] == ["01-01", "01-03", "01-05", "01-07"]
