"""The bounds panel without a browser: what holds the parts together."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.errors import WorkbenchError

SOON = 60.0


@pytest.fixture
def field_panel() -> Any:
    with wb.lab.bounds(wb.synthetic.gaussian_field((24, 32, 40), seed=2)) as panel:
        yield panel


def test_arrays_are_fields_and_other_things_are_refused() -> None:
    with wb.lab.bounds(np.linspace(0, 1, 100, dtype=np.float32)) as panel:
        assert panel.result["trial"].run["max_error"] <= panel.state.eb
    with pytest.raises(WorkbenchError, match=r"data must be Particles, a Field or a NumPy array; got str: open files with"):
        wb.lab.bounds("snapshot.hdf5")   # type: ignore[arg-type]


def test_another_kind_of_bound_is_about_as_strict(field_panel: Any) -> None:
    field_panel.widget   # noqa: B018
    absolute = field_panel.result["trial"].run["max_error"]
    field_panel.change(kind="relative")
    assert field_panel.result["trial"].run["max_error"] == pytest.approx(absolute, rel=0.1)
    assert field_panel._slider.high == 1   # a share of the range, at most all of it


def test_another_axis_shows_its_middle_and_reaches_as_far(field_panel: Any) -> None:
    field_panel.widget   # noqa: B018
    field_panel.change(axis=2)
    assert field_panel.state.index == 20
    assert field_panel._steps["index"].high == 39
    field_panel.change(axis=0)
    assert field_panel._steps["index"].high == 23


def test_going_back_measures_nothing_again(field_panel: Any) -> None:
    first = field_panel.result["trial"]
    field_panel.change(eb=2 * field_panel.state.eb)
    assert field_panel.result["trial"] is not first
    field_panel.change(eb=field_panel.state.eb / 2)
    assert field_panel.result["trial"] is first


def test_what_was_tried_is_in_the_table_once(field_panel: Any) -> None:
    eb = field_panel.state.eb
    for bound in (eb, 2 * eb, eb, 2 * eb):
        field_panel.change(eb=bound)
        field_panel.result   # noqa: B018
    field_panel.ask("others")
    field_panel.wait(SOON)
    rows = field_panel.shown.tables["tried so far"].rows
    assert len(rows) == len(set(rows)) == 2 + len(field_panel.result["others"])


def test_velocities_and_ids_are_left_out_and_the_code_says_so() -> None:
    snapshot = wb.synthetic.cosmic_web(n=12, seed=1)
    with wb.lab.bounds(snapshot) as panel:
        panel.name = "snapshot"
        names = {"snapshot": snapshot}
        exec(panel.code(), names)
        assert names["archive"].nbytes == panel.result["trial"].archive.nbytes
        assert panel.data.velocities is None


def test_the_archive_is_written(field_panel: Any, tmp_path: Path) -> None:
    path = field_panel.save_archive(tmp_path / "field.zip")
    assert wb.open(path).verify(field_panel.data).passed


def test_a_codec_that_fails_is_told_in_a_sentence(field_panel: Any) -> None:
    field_panel.change(codec="lattice")   # which is for particles
    trial = field_panel.result["trial"]
    assert trial.run.error
    assert trial.run.error in field_panel.shown.answer
    with pytest.raises(WorkbenchError, match="failed"):
        field_panel.save_archive("nothing.zip")


def test_only_the_latest_runs_are_remembered(field_panel: Any) -> None:
    run, examined = field_panel.result["trial"].run, field_panel.examined(field_panel.state)
    for eb in range(1, 301):
        examined.note(dataclasses.replace(run, bound=wb.Absolute(float(eb))))
    assert [each.bound.eb for each in field_panel.history.values()] == [float(eb) for eb in range(101, 301)]
    table = field_panel.shown.tables["tried so far"]
    assert len(table.rows) == 201   # and the present one
    assert table.chosen == 200
    before = field_panel.state
    field_panel.row_chosen("tried so far", 200)   # which the history has forgotten
    assert field_panel.state == before
    field_panel.row_chosen("tried so far", 0)
    assert field_panel.state.eb == 101


@pytest.mark.parametrize(("dtype", "made"), [
    ("i1", np.asarray),
    *(pytest.param(dtype, made, marks=pytest.mark.long)
      for dtype in ("u1", "i2", "u2", "i4", "i8", "u8") for made in (np.asarray, wb.Field)),
])
def test_integers_have_whole_errors_within_their_bound(dtype: str, made: Any) -> None:
    waves = wb.synthetic.gaussian_field((24, 32), 3, seed=2).values
    values = (20 * (waves - waves.min())).astype(dtype)
    with wb.lab.bounds(made(values), eb=2) as panel:
        panel.widget   # noqa: B018
        error = panel.result["trial"].decoded.values.astype("i8") - values.astype("i8")
        assert abs(error).max() == 2
        assert panel.state.codec == "prequantised"
        assert {"spectrum ratio", "error histogram", "rate-distortion"} <= panel.shown.charts.keys()
        reading = panel.reading(0, 3.5, 4.5)
        assert reading.values[0] == str(values[4, 3])
        assert f"{error[4, 3]} = " in reading.values[2]
        panel.ask("others")
        panel.wait(SOON)
        assert {run.label for run in panel.history.values()} == {"prequantised", "pcodec"}
        panel.change(kind="relative", eb=0.1)
        assert panel.result["trial"].run["max_error"] <= 0.1 * float(values.max())
        assert not panel.request(kind="pointwise")
    with pytest.raises(WorkbenchError, match="must be absolute or relative to the range; got pointwise"):
        wb.lab.bounds(values, kind="pointwise")


@pytest.fixture(scope="module")
def rough() -> np.ndarray:
    return np.cumsum(np.random.default_rng(0).laplace(size=(96, 96)), axis=1).astype(np.float32)


@pytest.fixture(scope="module")
def model(rough: np.ndarray) -> wb.codecs.Model:
    return wb.codecs.train(rough, bounds=0.01, steps=100)


def test_a_model_is_chosen_and_left_out_again(rough: np.ndarray, model: wb.codecs.Model) -> None:
    with wb.lab.bounds(rough, model=model, kind="relative", eb=0.01) as panel:
        assert panel.state.codec == "interpolation"
        plain = panel.result["plain"][0]
        shown = {fact.name: fact.value for fact in panel.shown.facts}
        assert shown["without the model"] == f"{plain['bits_per_value']:.3g}"
        assert shown["bits per value"] == f"{panel.result['trial'].run['bits_per_value']:.3g}"
        assert "model" not in str(plain)
        names: dict[str, Any] = {"data": rough, "model": model}
        exec(panel.code(), names)
        assert names["archive"].nbytes == panel.result["trial"].archive.nbytes
        assert model.text not in panel.code()
        panel.change(codec="prequantised")
        assert panel.state.model is None
        panel.change(model=model)
        assert panel.state.codec == "interpolation"
        panel.change(model=None)
        assert panel.result["plain"] == ()
        assert "without the model" not in [fact.name for fact in panel.shown.facts]
        codecs = [row[0] for row in panel.shown.tables["tried so far"].rows]
        panel.row_chosen("tried so far", next(place for place, name in enumerate(codecs) if "model" in name))
        assert panel.state.model == model
        panel.row_chosen("tried so far", codecs.index("interpolation"))
        assert panel.state.model is None


def test_a_model_is_read_from_its_file(rough: np.ndarray, model: wb.codecs.Model, tmp_path: Path) -> None:
    path = model.save(tmp_path / "rough.model")
    with wb.lab.bounds(rough, model=path) as panel:
        assert panel.state.model == model
        assert f"model=wb.codecs.Model.load({str(path)!r})" in panel.code()
    path.write_text(model.text[:-9])
    with pytest.raises(WorkbenchError, match="the model is damaged"):
        wb.lab.bounds(rough, model=path)


def test_a_model_of_other_data_is_refused(rough: np.ndarray, model: wb.codecs.Model) -> None:
    with pytest.raises(WorkbenchError, match="trained on fields with 2 axes; got a field with 3"):
        wb.lab.bounds(rough[None], model=model)
    for wrong, others in ((wb.synthetic.cosmic_web(n=8, seed=1), {}), (rough, {"codec": "zfp"})):
        with pytest.raises(WorkbenchError, match="a model is for the codec interpolation"):
            wb.lab.bounds(wrong, model=model, **others)
    with pytest.raises(WorkbenchError, match=r"the model must be a wb\.codecs\.Model, or None; got 7"):
        wb.lab.bounds(rough, model=7)
