"""The bounds panel of a dataset: one variable after the other, honest rows, and one call for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

import workbench as wb
from workbench.errors import WorkbenchError
from workbench.lab.bounds_panel.dataset_panel import DatasetPanel
from workbench.lab.bounds_panel.number_texts import short
from workbench.lab.bounds_panel.variables_table import COLUMNS, UNTRIED

SOON = 60.0


def ocean() -> xarray.Dataset:
    random = np.random.default_rng(0)
    at = ("time", "lat", "lon")
    return xarray.Dataset(
        {
            "T": (at, random.normal(280, 1, (4, 30, 40)).cumsum(2).astype("f4"), {"units": "K"}),
            "P": (at[1:], random.normal(size=(30, 40)).cumsum(1), {"units": "Pa"}),
            "basin": (at[1:], random.integers(0, 5, (30, 40))),
            "five": (("a", "b", "c", "d", "e"), np.ones((2,) * 5, "f4")),
            "mean": ((), np.float32(3.0)),
            "station": (("lat",), np.array(["A"] * 30)),
            "level": (at[1:], np.full((30, 40), 2.5)),
        },
        coords={"time": np.arange("2026-01", "2026-05", dtype="M8[M]").astype("M8[ns]"), "lat": np.linspace(-60, 60, 30)},
    )


@pytest.fixture
def data() -> xarray.Dataset:
    return ocean()


@pytest.fixture
def panel(data: xarray.Dataset) -> Iterator[Any]:
    with wb.lab.bounds(data) as made:
        made.name = "data"
        yield made


def row(panel: Any, name: str) -> dict[str, str]:
    table = panel.shown.tables["variables"]
    return dict(zip(COLUMNS, table.rows[list(panel.members.dataset).index(name)], strict=True))


def foot(panel: Any) -> dict[str, str]:
    return dict(zip(COLUMNS, panel.shown.tables["variables"].foot, strict=True))


def made_by_code(panel: Any, data: Any) -> Any:
    names = {"data": data}
    exec(panel.code(), names)
    return names["archive"]


def test_every_variable_has_a_row_and_claims_nothing_that_was_not_measured(panel: Any) -> None:
    run = panel.result["trial"].run
    table = panel.shown.tables["variables"]
    assert [cells[0] for cells in table.rows] == list(panel.members.dataset)
    assert table.rows[table.chosen][0] == "T"
    shown = row(panel, "T")
    assert shown["bound"] == f"{panel.state.eb:g} K"
    assert shown["bytes"] == f"{run['nbytes']:,}"
    assert shown["bits/value"] == short(run["bits_per_value"])
    assert shown["largest error"] == f"{run['max_error']:.3g} K"
    for name in list(panel.members.dataset)[1:]:
        other = row(panel, name)
        assert other["bound"] == "exact"
        assert UNTRIED in other["remarks"]
        assert not any(other[figure] for figure in ("bytes", "bits/value", "ratio", "largest error"))
    assert foot(panel)["bytes"] == foot(panel)["ratio"] == ""


def test_variables_that_no_picture_shows_are_listed_with_the_reason_and_refused(panel: Any) -> None:
    table = panel.shown.tables["variables"]
    fixed = {table.rows[place][0] for place in table.fixed}
    assert fixed == {"five", "mean", "station", "time"}
    for name, reason in {"five": "5 axes", "mean": "one value", "station": "text"}.items():
        assert reason in row(panel, name)["remarks"]
        assert panel.request(variable=name) is False
        assert reason in panel.status.error
    assert panel.request(variable="Q") is False
    assert "expected the name of a variable; got 'Q'" in panel.status.error
    assert panel.state.variable == "T"


def test_each_variable_keeps_its_choices_and_its_history(panel: Any) -> None:
    panel.widget   # noqa: B018
    panel.change(eb=0.3, index=3)
    panel.change(eb=0.4)
    assert panel.change(variable="P", eb=0.01)
    panel.change(kind="relative", codec="prequantised")
    assert panel.undo()
    assert (panel.state.variable, panel.state.kind, panel.state.eb) == ("P", "absolute", 0.01)
    assert not panel.undo()   # what was done to T stays
    panel.change(variable="T")
    assert (panel.state.eb, panel.state.index) == (0.4, 3)
    assert panel.undo()
    assert (panel.state.variable, panel.state.eb) == ("T", 0.3)
    panel.change(variable="P")
    assert panel.redo()
    assert panel.state.codec == "prequantised"
    assert panel.state.choices["T"].eb == 0.3


@pytest.mark.parametrize(("name", "other"), [("P*", "P1"), ("P[1]", "P1"), ("*", "P1")])
def test_a_name_that_looks_like_a_pattern_is_about_one_variable(name: str, other: str) -> None:
    data = {name: np.linspace(0, 1, 300).reshape(20, 15), other: np.linspace(0, 3, 300).reshape(20, 15)}
    with wb.lab.bounds(data, variable=name, eb=0.5) as panel:
        panel.name = "data"
        archive = made_by_code(panel, data)
    bounds = {own: archive[own].certificate["values"].bound for own in data}
    assert bounds == {name: wb.Absolute(0.5), other: wb.Exact()}


@pytest.mark.long
def test_results_pictures_and_controls_are_those_of_the_variable(panel: Any, data: xarray.Dataset) -> None:
    panel.widget   # noqa: B018
    first = panel.result["trial"]
    controls = panel._view.controls
    panel.row_chosen("variables", list(panel.members.dataset).index("P"))
    assert panel.result["trial"].decoded.shape == (30, 40)
    assert panel.shown.pictures[0].unit == "Pa"
    fields = [{control.field for control in each} for each in (controls, panel._view.controls)]
    assert fields[0] - fields[1] == {"axis", "index"}
    assert abs(panel.result["trial"].decoded.values - data["P"].values).max() <= panel.state.eb
    panel.row_chosen("variables", 0)
    assert panel.result["trial"] is first
    assert panel._view.controls == controls
    panel.change(eb=2 * panel.state.eb)
    panel.wait(SOON)
    panel.row_chosen("tried so far", 0)
    assert panel.result["trial"] is first


def test_coordinates_are_exact_until_a_bound_is_chosen(panel: Any) -> None:
    panel.change(variable="lat")
    assert panel.state.exact
    assert panel.result["trial"].run["max_error"] == 0
    assert row(panel, "lat")["bound"] == "exact"
    assert '"lat"' not in panel.code()
    panel.change(eb=0.5)
    assert not panel.state.exact
    assert '"lat": {"bound": wb.Absolute(0.5)' in panel.code()
    panel.undo()
    assert panel.state.exact


def test_the_code_is_one_call_that_gives_what_is_chosen(panel: Any, data: xarray.Dataset) -> None:
    panel.change(codec="sz3", kind="relative", eb=1e-3)
    panel.change(variable="P", eb=0.05)
    panel.ask("archive")
    panel.wait(SOON)
    assert panel.code().count("wb.compress") == 1
    archive = made_by_code(panel, data)
    assert archive.verify(data).passed
    assert archive["T"].certificate["values"].bound == wb.Relative(1e-3)
    assert archive["T"].codec.id == "sz3"
    assert archive["P"].certificate["values"].bound == wb.Absolute(0.05)
    assert all(archive[name].certificate[archive[name].data.layout.name].bound == wb.Exact() for name in ("five", "lat"))
    assert foot(panel)["bytes"] == f"{archive.nbytes:,}"
    assert foot(panel)["ratio"] == short(archive.ratio)
    run, kept = panel.result["trial"].run, {each.name: each for each in archive.rows()}["T"]
    assert row(panel, "T")["bits/value"] == short(8 * kept.nbytes / data["T"].size)
    assert row(panel, "P")["bits/value"] == short(run["bits_per_value"])
    assert row(panel, "five")["bytes"]
    panel.change(eb=0.06)
    panel.wait(SOON)
    assert foot(panel)["bytes"] == ""   # of no archive with this bound
    assert row(panel, "five")["bytes"]


def test_what_is_saved_is_what_the_call_makes(panel: Any, data: xarray.Dataset, tmp_path: Path) -> None:
    panel.widget   # noqa: B018
    panel.change(variable="P", eb=0.05)
    panel._saver.heard({"name": str(tmp_path / "saved.zip")})
    panel._saver.press()
    panel.wait(SOON)
    assert panel._saver.content["message"] == f"saved as {tmp_path / 'saved.zip'}"
    made = made_by_code(panel, data)
    saved = wb.open(tmp_path / "saved.zip")
    assert saved.nbytes == made.nbytes
    xarray.testing.assert_identical(saved.to_xarray(), made.to_xarray())
    assert panel.save_archive(tmp_path / "again.zip").stat().st_size == (tmp_path / "saved.zip").stat().st_size
    with pytest.raises(WorkbenchError, match="exists"):
        panel.save_archive(tmp_path / "saved.zip")


def test_saving_can_be_cancelled_and_says_so(panel: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    panel.widget   # noqa: B018
    panel.wait(SOON)

    def slow(state: Any, results: Any, job: Any) -> Any:
        panel.cancel()
        job(0.5, "compressing")

    stage = panel._engine.stages["archive"]
    object.__setattr__(stage, "work", slow)
    panel._saver.heard({"name": str(tmp_path / "saved.zip")})
    panel._saver.press()
    panel.wait(SOON)
    assert "cancelled" in panel._saver.content["message"]
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_bounds_for_a_total_ratio_are_chosen_in_all_rows(panel: Any, data: xarray.Dataset) -> None:
    panel.widget   # noqa: B018
    panel.change(target="total", goal=4)
    begun = panel.state.eb
    panel.find()
    panel.wait(SOON)
    assert panel._outcome.content["text"].startswith("bounds of 2 variables meet 4x for all variables (4")
    assert "wb.find_bounds(data, wb.Ratio(4)" in panel.code()
    archive = made_by_code(panel, data)
    assert 4 <= archive.ratio < 4.4
    assert float(foot(panel)["ratio"]) == pytest.approx(archive.ratio, rel=5e-3)
    for name in ("T", "P"):
        assert row(panel, name)["bound"] == f"{archive[name].certificate['values'].bound.eb:.4g} {panel.members.unit(name)}"
        assert row(panel, name)["bytes"]
    panel.change(variable="P", exact=True)
    assert "wb.find_bounds" not in panel.code()
    panel.undo()
    assert "wb.find_bounds" not in panel.code()   # its search was for the target of T
    panel.change(variable="T")
    assert "wb.find_bounds" in panel.code()
    assert panel.undo()   # what the search has changed, in both
    assert panel._outcome.content["text"] == ""
    assert panel.state.eb == begun
    assert "P" not in panel.state.choices   # as nobody had looked at it


@pytest.mark.long
def test_bounds_that_were_found_together_are_taken_back_together(panel: Any) -> None:
    panel.change(variable="P")
    panel.change(eb=0.07)
    panel.change(variable="T", target="total", goal=4)
    before = dict(panel.state.choices)
    panel.find()
    panel.wait(SOON)
    after = dict(panel.state.choices)
    assert all(before[name].eb != after[name].eb for name in ("T", "P"))
    assert panel.undo()
    assert rules(panel) == {name: (each.exact, each.eb) for name, each in before.items()}
    assert panel.redo()
    assert rules(panel) == {name: (each.exact, each.eb) for name, each in after.items()}
    assert panel.undo()
    panel.change(variable="P")
    assert panel.undo()   # the bound that was typed before
    assert panel.state.eb != 0.07
    panel.redo()
    panel.change(variable="T")
    panel.redo()
    panel.change(eb=0.7)
    assert panel.undo()   # of this change alone
    assert rules(panel)["P"] == (False, after["P"].eb)


def rules(panel: Any) -> dict[str, tuple[bool, float]]:
    return {name: (each.exact, each.eb) for name, each in panel.state.choices.items()}


def test_integers_are_kept_exactly_until_they_have_a_bound(panel: Any, data: xarray.Dataset) -> None:
    panel.change(variable="basin")
    assert panel.state.exact
    assert panel.state.codec == "prequantised"
    assert '"basin"' not in panel.code()
    assert panel.change(eb=1)
    error = abs(panel.result["trial"].decoded.values - data["basin"].values).max()
    assert error == 1
    assert row(panel, "basin")["largest error"] == "1"
    archive = made_by_code(panel, data)
    assert archive["basin"].certificate["values"].bound == wb.Absolute(1)
    assert panel.request(kind="pointwise") is False
    assert "the bound of integers must be absolute or relative" in panel.status.error
    panel.change(variable="T", target="total", goal=4)
    panel.find()   # which seeks no bounds of integers
    panel.wait(SOON)
    assert panel.state.choices["basin"].eb == 1


def test_what_a_file_has_beside_the_dataset_is_told() -> None:
    from workbench.archive import Dataset

    known = {"": {"left_out": ["the variable area, of 5 axes"]}}
    with wb.lab.bounds(Dataset({"T": np.eye(9)}, known)) as panel:
        assert "not in this dataset: the variable area, of 5 axes" in panel.shown.note


def test_a_search_for_all_variables_can_be_cancelled(panel: Any) -> None:
    panel.wait(SOON)
    before = panel.state
    panel.change(target="total", goal=4)
    told: list[str] = []
    reported = panel._engine._reported

    def cancel(job: Any) -> None:
        reported(job)
        told.append(job.text)
        if "measuring" in job.text:
            panel.cancel()

    panel._engine._reported = cancel
    panel.find()
    panel.wait(SOON)
    assert told
    assert panel.state.choices["T"].eb == before.eb
    assert list(panel.state.choices) == ["T"]
    assert panel.status.text == "cancelled"


def test_what_is_kept_exactly_has_no_share_in_a_total_ratio(panel: Any) -> None:
    panel.change(exact=True)
    panel.change(target="total", goal=1.2)
    panel.find()
    panel.wait(SOON)
    assert panel.state.exact
    assert not panel.state.choices["P"].exact
    assert "level" not in panel.state.choices   # all of its values are equal
    panel.change(variable="P", exact=True)
    panel.change(variable="level", exact=True)
    panel.change(target="total")
    panel.find()
    panel.wait(SOON)
    assert "all are kept exactly" in panel.status.error


@pytest.mark.long
def test_a_quality_of_each_variable_and_a_ratio_of_all_are_found_together(panel: Any, data: xarray.Dataset) -> None:
    panel.widget   # noqa: B018
    panel.change(target="total", goal=1.5, second="psnr", second_goal=50)
    panel.find()
    panel.wait(SOON)
    assert panel._outcome.content["text"].startswith("bounds of 2 variables meet 1.5x for all variables and 50 dB (")
    assert "wb.find_bounds(data, wb.All(wb.Ratio(1.5), wb.PSNR(50))" in panel.code()
    archive = made_by_code(panel, data)
    assert archive.ratio >= 1.5
    for name in ("T", "P"):
        assert wb.compare(data[name].values, archive[name].decompress(), quick=True)["psnr"] >= 50
    panel.change(goal=50)
    panel.find()
    panel.wait(SOON)
    assert panel._outcome.content["text"].startswith("no bounds meet 50x for all variables and 50 dB: nearest is ")
    assert "in all, which misses a ratio of at least 50" in panel.shown.note


def test_one_variable_is_sought_and_searched_as_always(panel: Any) -> None:
    panel.change(target="ratio", goal=5, codec="prequantised")
    panel.find()
    panel.wait(SOON)
    assert panel.result["trial"].archive.ratio >= 5
    assert list(panel.state.choices) == ["T"]


def test_particles_and_tables_are_members_too() -> None:
    snapshot = wb.synthetic.cosmic_web(n=8, seed=1)
    halos = np.array([(1, 3.5), (2, 4.5)], [("id", "i8"), ("mass", "f4")])
    data = {"gas": snapshot, "halos": halos, "density": np.ones((8, 8, 8), "f4")}
    with wb.lab.bounds(data, order="free", eb=0.02) as panel:
        panel.name = "data"
        assert panel.state.variable == "gas"
        archive = made_by_code(panel, data)
        assert archive["gas"].certificate["positions"].bound == wb.Absolute(0.02)
        assert len(archive["gas"].decompress()) == len(snapshot)
        assert panel.result["trial"].run["max_error"] <= 0.02
        assert "positions alone" in row(panel, "gas")["remarks"]
        panel.change(variable="halos/mass")
        assert panel.result["trial"].decoded.shape == (2,)
        panel.change(variable="density", exact=True)
        panel.change(variable="gas", target="total", goal=1.5)
        panel.find()
        panel.wait(SOON)
        assert panel.state.eb == 0.02   # the rule for particles counts, and stays
        assert "halos/mass" in panel.state.choices


def test_variables_of_a_file_stay_there_until_somebody_looks(data: xarray.Dataset, tmp_path: Path) -> None:
    data.to_netcdf(tmp_path / "ocean.nc")
    for chunks in (None, {}):
        with xarray.open_dataset(tmp_path / "ocean.nc", chunks=chunks) as stored, wb.lab.bounds(stored) as panel:
            assert not panel.members.is_there("P")
            panel.row_chosen("variables", list(panel.members.dataset).index("P"))
            panel.wait(SOON)
            assert panel.state.variable == "P"
            assert panel.members.is_there("P")
            error = panel.result["trial"].decoded.values - data["P"].values
            assert abs(error).max() <= panel.state.eb


def test_an_archive_and_a_dataset_of_one_field_are_datasets() -> None:
    field = wb.synthetic.gaussian_field((24, 24), seed=1)
    archive = wb.compress({"T": field}, wb.Absolute(0.01))
    for data in (archive, {"T": field}):
        chosen = {"codec": "prequantised", "eb": 0.1}
        with wb.lab.bounds(data, **chosen) as panel, wb.lab.bounds(field, **chosen) as one:
            assert isinstance(panel, DatasetPanel)
            assert len(panel.shown.tables["variables"].rows) == 1
            ratios = [each.result["trial"].archive.ratio for each in (panel, one)]
            assert ratios[0] == pytest.approx(ratios[1], rel=0.05)


def test_what_cannot_be_opened_is_refused_in_a_sentence(data: xarray.Dataset) -> None:
    with pytest.raises(WorkbenchError, match=r"a field of floats or integers, or particles; got 'station', which is text"):
        wb.lab.bounds({"station": np.array(["A"])})
    with pytest.warns(UserWarning, match="has learned nothing"):
        model = wb.codecs.train(data["P"].values, bounds=0.01, steps=1)
    with pytest.raises(WorkbenchError, match=r"a model is for one field; got a dataset"):
        wb.lab.bounds(data, model=model)
    with pytest.raises(WorkbenchError, match=r"did you mean 'station'"):
        wb.lab.bounds(data, variable="statoin")


def test_a_variable_that_cannot_be_computed_is_refused_with_the_reason() -> None:
    array = pytest.importorskip("dask.array", reason="needs the dask extra")

    def fail(block: np.ndarray) -> np.ndarray:
        raise OSError("no such tape")

    lost = array.zeros((40, 50), chunks=10).map_blocks(fail, dtype="f8")
    with wb.lab.bounds(xarray.Dataset({"T": (("x", "y"), np.eye(9)), "lost": (("p", "q"), lost)}), variable="T") as panel:
        for choose in (lambda: panel.request(variable="lost"), lambda: panel.row_chosen("variables", 1)):
            assert not choose()
            assert panel.wait(SOON) is not False
            assert "'lost' cannot be computed: OSError: no such tape" in panel.status.error
        assert panel.state.variable == "T"
