"""The limits panel without a browser: what holds the parts together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.errors import WorkbenchError
from workbench.lab.limits_panel import measuring

SOON = 120.0


@pytest.fixture
def panel() -> Any:
    field = wb.synthetic.piecewise_field((64, 64), [wb.synthetic.Region(1.0, 0.9)], seed=1)
    with wb.lab.limits(field) as panel:
        yield panel


def test_arrays_are_fields_and_other_things_are_refused() -> None:
    with wb.lab.limits(np.random.default_rng(1).normal(size=400)) as panel:
        assert panel.result["figures"].rate > 0
    with pytest.raises(WorkbenchError, match="the limits panel needs a field"):
        wb.lab.limits(wb.synthetic.cosmic_web(n=4, seed=1))   # type: ignore[arg-type]


def test_only_what_depends_on_the_change_is_computed_again(panel: Any) -> None:
    first = dict(panel.result)
    panel.change(eb=2 * panel.state.eb)
    coarser = dict(panel.result)
    assert {name for name in first if coarser[name] is not first[name]} == {"figures"}
    panel.change(tile=8)
    tiled = dict(panel.result)
    assert {name for name in first if tiled[name] is not coarser[name]} == {"tiled", "figures"}
    panel.change(tile=None, eb=panel.state.eb / 2, picture="regions", window=(0, 10, 0, 10))
    assert all(panel.result[name] is first[name] for name in first)


def test_codes_of_fixed_length_are_computed_on_request_only(panel: Any) -> None:
    assert not {"fixed length", "band"} & panel.result.keys()
    panel.compute_fixed_length()
    panel.wait(SOON)
    first = dict(panel.result)
    assert first["fixed length"].converse < first["fixed length"].achievable
    panel.change(eb=2 * panel.state.eb)
    assert "fixed length" not in panel.result
    assert panel.result["band"] is first["band"]
    panel.change(eps=1e-4)
    assert "band" not in panel.result
    assert panel._engine.runs["fixed length"] == 1


def test_the_picture_in_front_is_a_choice(panel: Any) -> None:
    panel.wait(SOON)
    panel.picture_chosen("new information")
    assert panel.state.picture == "new information"
    assert panel.shown.front == 2
    assert panel.undo()
    assert panel.shown.front == 0


def test_work_is_named_before_its_first_report(panel: Any) -> None:
    panel.wait(SOON)
    panel.change(tile=16)
    assert panel.status.text


def test_other_regions_are_another_model(panel: Any) -> None:
    found = panel.result["model"]
    panel.change(regions=1)
    assert panel.result["model"] is not found
    assert panel.result["model"].limits.source.regions.count == 1


def test_what_is_refused_is_told_and_changes_nothing(panel: Any) -> None:
    before = panel.state
    assert not panel.request(eps=0.6)
    assert "must lie in (0, 0.5]" in panel.status.error
    assert panel.state == before


def test_codecs_are_compared_and_stay(panel: Any) -> None:
    panel.ask("points")
    panel.wait(SOON)
    points = panel.result["points"]
    codecs = measuring.codecs_for(panel.field)
    assert len(points) == (len(measuring.STEPS) + 1) * len(codecs)
    assert sum(measuring.limit_of(point) == panel.state.eb for point in points) == len(codecs)
    table = panel.shown.tables["operating points"]
    panel.change(tile=8)
    panel.wait(SOON)
    assert panel.shown.tables["operating points"].rows == table.rows
    names: dict[str, Any] = {panel.name: panel.field}
    exec(panel.code(), names)
    assert {str(point.run) for point in names["points"]} == {str(point.run) for point in points}
    panel.change(eb=2 * panel.state.eb)
    panel.ask("points")
    panel.wait(SOON)
    assert len(panel.result["points"]) == len(points) + len(codecs)   # those at the other bounds are not run again


def test_codecs_are_compared_at_the_chosen_bound_first(panel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    panel.result   # noqa: B018
    count, asked = len(measuring.codecs_for(panel.field)), panel.state.eb
    runs, shares = measuring.iter_sweep, []

    def watched(*arguments: Any, **options: Any) -> Any:
        for run in runs(*arguments, **options):
            shares.append((run.bound.eb == asked, panel.status.share))
            yield run

    monkeypatch.setattr(measuring, "iter_sweep", watched)
    panel.ask("points")
    panel.wait(SOON)
    assert [chosen for chosen, _ in shares] == [True] * count + [False] * (len(shares) - count)
    assert [share for _, share in shares] == sorted(share for _, share in shares)


def test_a_cancelled_comparison_shows_what_it_got_to(panel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    panel.result   # noqa: B018
    runs = measuring.iter_sweep

    def some(*arguments: Any, **options: Any) -> Any:
        for number, run in enumerate(runs(*arguments, **options)):
            if number == 3:
                panel.cancel()
            yield run

    monkeypatch.setattr(measuring, "iter_sweep", some)
    panel.ask("points")
    panel.wait(SOON)
    assert panel.status.text == "cancelled"
    assert 3 <= len(panel.shown.tables["operating points"].rows) <= 4
    assert "points" not in panel.result


def test_the_code_gives_what_is_shown(panel: Any, capsys: pytest.CaptureFixture[str]) -> None:
    panel.change(tile=8, eps=0.001)
    assert "converse" not in panel.code()
    panel.compute_fixed_length()
    panel.wait(SOON)
    found = panel.result
    assert "compare" not in panel.code()
    exec(panel.code(), {panel.name: panel.field})
    printed = capsys.readouterr().out
    for figure in (found["figures"].rate, found["figures"].tiled, found["fixed length"].converse):
        assert str(float(figure)) in printed


def test_regions_that_were_asked_for_are_in_the_code(panel: Any) -> None:
    panel.change(regions=2)
    assert "regions=2" in panel.code()


def test_another_axis_shows_its_middle_and_reaches_as_far() -> None:
    with wb.lab.limits(wb.synthetic.gaussian_field((12, 16, 20), seed=2)) as panel:
        panel.widget   # noqa: B018
        panel.change(axis=2)
        assert panel.state.index == 10
        assert panel._index.high == 19


def test_a_plane_has_one_slice_along_every_axis(panel: Any) -> None:
    panel.widget   # noqa: B018
    assert panel.change(axis=1)
    assert len(panel.shown.pictures) >= 1


def test_a_report_holds_everything(panel: Any, tmp_path: Any) -> None:
    panel.wait(SOON)
    text = panel.save_report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Gaussian-model bound" in text
    assert "wb.rate_distortion" in text
