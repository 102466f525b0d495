"""The propagation panel without a browser: what holds the parts together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import workbench as wb
from lab.propagation_panel.samples import MAKERS
from workbench.errors import WorkbenchError
from workbench.lab.propagation_panel import counting, dosing
from workbench.lab.propagation_panel.panel import PropagationPanel
from workbench.propagation.draws import draws_of

SOON = 120.0


def opened(name: str, **choices: Any) -> PropagationPanel:
    pipeline, x = MAKERS[name]()
    return wb.lab.propagation(pipeline, x, **choices)


@pytest.fixture
def panel() -> Iterator[PropagationPanel]:
    with opened("plane") as panel:
        yield panel


def test_what_is_no_pipeline_is_refused() -> None:
    with pytest.raises(WorkbenchError, match="the propagation panel needs a pipeline"):
        wb.lab.propagation(np.sum, np.ones(3))   # type: ignore[arg-type]
    pipeline, x = MAKERS["plane"]()
    with pytest.raises(WorkbenchError, match="must be one of this pipeline"):
        wb.lab.propagation(MAKERS["plane"]()[0], pipeline.run(x))


def test_a_pipeline_that_is_not_deterministic_is_told() -> None:
    random = np.random.default_rng()
    pipeline = wb.propagation.Pipeline([("noisy", lambda x: x + random.normal(size=x.shape))])
    with wb.lab.propagation(pipeline, np.ones((4, 4))) as panel:
        panel.wait(SOON)
        assert "must return the same for the same input" in panel.status.error


def test_only_what_depends_on_the_change_is_computed_again(panel: PropagationPanel) -> None:
    first = dict(panel.result)
    panel.change(look="laplacian", scale="sign")
    assert panel.result == first
    panel.change(bit=3)
    other = dict(panel.result)
    assert {name for name in first if other[name] is not first[name]} == {"travel", "trace"}


def test_another_site_shows_its_whole_array_and_keeps_what_fits() -> None:
    with opened("flow") as panel:
        panel.widget   # noqa: B018
        panel.change(bit=63, window=(0, 2, 0, 2), component=2, index=1, axis=1)
        panel.change(look="vorticity")
        state = panel.state
        assert (state.window, state.component, state.index, state.axis) == (None, None, None, 0)
        assert not panel.request(index=6)
        assert "the slice must be from 0 to 5" in panel.status.error
        assert not panel.request(component=3)
        assert panel.change(component=2)
        panel.change(look="enstrophy")
        assert "values" in panel.shown.charts


def test_a_narrower_number_keeps_the_bit_as_far_as_it_goes() -> None:
    with opened("two inputs", site="b", bit=62) as panel:
        assert panel.change(site="a")
        assert panel.state.bit == 15
        assert not panel.request(kind="compression")   # no codec takes 16 bits
        assert "float16" in panel.status.error


def test_the_graph_follows_and_is_followed(panel: PropagationPanel) -> None:
    panel.widget   # noqa: B018
    panel.wait(SOON)
    assert panel.graph.content["path"] == ["input", "gradient", "steepness", "laplacian"]
    panel.graph.heard({"look": "gradient"})
    panel.graph.heard({"look": "steepness"})
    panel.graph.heard({"look": "somewhere"})
    assert panel.state.look == "steepness"
    assert [node["site"] for node in panel.graph.content["nodes"] if node["chosen"]] == ["steepness"]
    panel.undo()   # sites shown one after the other are one step
    assert panel.state.look == "input"
    panel.change(site="gradient")
    panel.wait(SOON)
    assert panel.graph.content["path"] == ["gradient", "steepness"]


def test_controls_that_do_not_apply_are_not_there(panel: PropagationPanel) -> None:
    panel.widget   # noqa: B018

    def visible() -> set[str]:
        controls = panel._view.controls if panel._view else []
        return {control.field for control in controls if not control.content["hidden"]}

    assert {"bit", "trial", "count"} <= visible()
    assert not {"bound", "codec", "index", "axis", "component"} & visible()
    panel.change(kind="compression")
    assert {"bound", "codec"} <= visible()
    assert not {"bit", "trial"} & visible()
    panel.change(kind="noise", look="gradient")   # two components of a plane are two slices
    assert {"bound", "trial", "index", "axis"} <= visible()
    panel.change(look="input")
    assert "index" not in visible()


def test_a_campaign_is_told_while_it_runs_and_gives_its_worst_error(
    panel: PropagationPanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "OFTEN", 0.0)
    panel.change(trials=150)
    seen: list[tuple[int, bool]] = []
    panel._engine.changed = lambda: seen.append(
        (0, False) if (now := panel.known["campaign"]) is None else (len(now.campaign.trials), now.campaign.complete)
    )
    panel.ask("campaign")
    panel.wait(SOON)
    counted = panel.result["campaign"]
    assert counted.campaign.complete
    assert any(0 < trials < len(counted.campaign.trials) and not complete for trials, complete in seen)
    pipeline, x = panel.run.pipeline, panel.run
    faults = wb.propagation.strata(pipeline, x)
    other = wb.propagation.campaign(pipeline, x, faults, until=150 * len(faults))
    assert other.counts == counted.campaign.counts
    panel.row_chosen("campaign", 1)
    trial = counting.worst_trial(counted, 1, wb.propagation.trials.OUTCOMES)
    assert trial is not None
    assert panel.state.trial == trial.trial
    outcome = next(fact.value for fact in _settled(panel).facts if fact.name == "outcome")
    assert outcome == trial.outcome


def test_a_cancelled_campaign_shows_what_it_got_to(panel: PropagationPanel, monkeypatch: pytest.MonkeyPatch) -> None:
    panel.result   # noqa: B018
    panel.change(trials=500)
    tell = counting.Latest.is_due

    def once(latest: counting.Latest) -> bool:
        due = tell(latest)
        panel.cancel()
        return due

    monkeypatch.setattr(counting.Latest, "is_due", once)
    panel.ask("campaign")
    panel.wait(SOON)
    assert panel.status.text == "cancelled"
    assert not panel.known["campaign"].campaign.complete


def test_the_bound_is_swept_and_the_largest_that_is_tolerated_is_used(panel: PropagationPanel) -> None:
    panel.change(kind="compression", codec="fast", tab="sweep")
    assert "codec='fast'" in panel.code()
    assert panel.shown.remark == "Raises the bound at input until the result is no longer tolerated."
    panel.ask("doses")
    panel.wait(SOON)
    found = panel.result["doses"]
    bounds = [dose.bound.eb for dose in found.doses]
    assert bounds == sorted(bounds)
    assert len(bounds) == len(dosing.SHARES) + dosing.CLOSER
    assert found.best.damage <= 1 < found.above.damage
    assert found.above.bound.eb / found.best.bound.eb < 1.5   # closer than the steps of the sweep
    assert panel.shown.beside == ("doses",)
    assert "doses" in panel.shown.charts
    panel.use_tolerated()
    panel.wait(SOON)
    assert panel.result["travel"].outcome(panel.result["floor"]) == "benign"


def test_a_budget_is_found_and_its_bounds_are_tolerated() -> None:
    with opened("two inputs", kind="compression", tab="budget", site="b", codec="prequantised", budgeted="sites") as panel:
        panel.ask("budget")
        panel.wait(SOON)
        found = panel.result["budget"]
        assert list(found.budget.bounds) == ["b", "product"]   # float16 and results are left out
        assert "together 0." in panel.shown.remark
        assert "; tuned to this field alone: a new field of the kind may break it" in panel.shown.remark
        table = panel.shown.tables["budget"]
        assert [row[0] for row in table.rows] == ["b", "product"]
        assert {part.name for part in panel.shown.charts["budget"].parts} >= {"b", "product", "tolerated", "budget"}
        for row, site in enumerate(found.budget.bounds):
            panel.row_chosen("budget", row)
            panel.wait(SOON)
            assert (panel.state.site, panel.state.bound) == (site, found.shares[site])
            assert panel.result["travel"].damage() <= 1
        panel.change(budgeted="inputs")
        assert "budget" not in panel.shown.charts
        assert panel.shown.remark == "Finds the largest bounds that the tolerance allows together."


def test_a_budget_of_several_fields_says_how_often_it_holds() -> None:
    waves = [wb.synthetic.gaussian_field((16, 20), seed=seed) for seed in range(2)]
    pipeline = wb.propagation.derivatives(waves[0])
    with wb.lab.propagation(pipeline, waves, kind="compression", tab="budget", codec="prequantised") as panel:
        panel.ask("budget")
        panel.wait(SOON)
        assert panel.base.run["input"].tolist() == waves[0].values.tolist()
        found = panel.result["budget"].budget
        assert "together at most 0." in panel.shown.remark
        assert "holds on 10% of fields of this kind, with 90% confidence, from n = 1 beside the one" in panel.shown.remark
        panel.use_budget()
        panel.wait(SOON)
        assert "wb.propagation.trace(pipeline, x[0], error)" in panel.code()
        assert "wb.propagation.budget(pipeline, x, tolerance, ['input'], 'prequantised')" in panel.code()
        assert panel.state.bound * np.ptp(waves[0].values.astype(float)) == pytest.approx(found.bounds["input"].eb)
    with pytest.raises(WorkbenchError, match=r"number 2 has \(8, 8\) at 'input'"):
        wb.lab.propagation(pipeline, [waves[0], np.ones((8, 8))])


def test_a_budget_can_be_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened("plane", kind="compression", tab="budget", codec="prequantised") as panel:
        panel.wait(SOON)
        tried: list[Any] = []
        dose = wb.propagation.budget.__globals__["dose"]

        def stopped(*given: Any) -> Any:
            tried.append(given)
            if len(tried) == 4:
                panel.cancel()
            return dose(*given)

        monkeypatch.setitem(wb.propagation.budget.__globals__, "dose", stopped)
        panel.ask("budget")
        panel.wait(SOON)
        assert panel.status.text == "cancelled"
        assert len(tried) == 4


def test_the_tolerance_can_be_changed_and_all_that_depends_on_it_follows(panel: PropagationPanel) -> None:
    panel.change(trials=20, tab="campaign")
    damage = panel.result["travel"].damage()
    before = panel.result["travel"]
    harm = _outcomes(panel)
    assert harm["silent"] > 0
    assert not panel.request(tolerance=0.0)
    assert "the tolerance must be a positive number" in panel.status.error
    assert panel.change(tolerance=1000.0)
    assert panel.result["travel"] is before   # nothing but the judgement has changed
    parts = dict(enumerate(panel.shown.answer))
    assert parts[1].value == f"{damage * 0.01 / 1000:.2g}"
    assert parts[2].value == "benign"
    assert panel.shown.remark.endswith("Counted before tolerance changed")
    assert _outcomes(panel)["silent"] == 0
    assert "tolerance = wb.propagation.within(1000.0)" in panel.code()
    assert panel.shown.settings["tolerated"] == "every output within 1e+03 of its size"


def test_a_tolerance_of_ones_own_can_be_scaled() -> None:
    own = wb.propagation.Tolerance("sums", lambda right, other: abs(float(right["sum"] - other["sum"])))
    pipeline = wb.propagation.Pipeline([("sum", lambda x: x.sum())], tolerance=own)
    with wb.lab.propagation(pipeline, np.ones(8), bit=61, kind="stuck at 0") as panel:
        panel.widget   # noqa: B018
        assert panel._tolerance.content["unit"] == "x the own tolerance of sum"
        assert panel.result["travel"].damage() == 1.0   # a one has become nearly 0
        panel.change(tolerance=4.0)
        assert panel.result["travel"].damage(panel.state.tolerance) == 0.25
        names: dict[str, Any] = {"pipeline": pipeline, "x": np.ones(8)}
        exec(panel.code(), names)
        assert names["tolerance"].damage({"sum": np.array(8.0)}, {"sum": np.array(4.0)}) == 1.0


def test_a_tab_of_another_kind_of_error_says_so_and_offers_it(panel: PropagationPanel) -> None:
    panel.widget   # noqa: B018
    visible = {
        "sweep": (panel._compress, "A sweep raises the bound of a compression; now a bit is flipped."),
        "budget": (panel._compress, "A budget shares the tolerance among bounds of compression; now a bit is flipped."),
        "campaign": (panel._flip, "A campaign tries faults in bits; now an array is compressed."),
    }
    for tab, (button, said) in visible.items():
        panel.change(tab=tab)
        panel.wait(SOON)
        there = [part for rows in panel._tabs.values() for row in rows for part in row if not part.content["hidden"]]
        assert there == [button]
        assert panel.shown.remark == said
        assert not {"doses", "budget", "campaign", "errors"} & set(panel.shown.charts)
        if tab != "sweep":
            button.heard({})
            panel.wait(SOON)
            assert button.content["hidden"]
            assert said != panel.shown.remark


def test_opening_a_tab_is_no_step_to_undo(panel: PropagationPanel) -> None:
    panel.change(bit=3)
    panel.change(tab="campaign")
    panel.undo()
    assert (panel.state.bit, panel.state.tab) == (26, "campaign")
    panel.redo()
    assert (panel.state.bit, panel.state.tab) == (3, "campaign")


def test_a_bound_that_is_not_below_the_range_is_marked(panel: PropagationPanel) -> None:
    panel.change(kind="compression", codec="prequantised", bound=1e9)
    panel.wait(SOON)
    assert "not below the range: any values pass" in [getattr(part, "value", part) for part in panel.shown.answer]
    panel.change(bound=0.5)
    panel.wait(SOON)
    assert len(panel.shown.answer) == 3


def test_protection_brings_errors_back_and_is_compared(panel: PropagationPanel) -> None:
    value = int(np.argmin(abs(abs(panel.run["input"].ravel()) - 1.5)))   # its highest exponent bit makes it not a number
    trial = next(n for n in range(10**5) if wb.propagation.BitFlip("input", bit=30).drawn(
        panel.run["input"], draws_of(0, n))[0].index == value)
    panel.change(bit=30, trial=trial, trials=30)
    assert panel.result["travel"].outcome(panel.result["floor"]) == "detected"
    panel.change(ranges=True)
    found = panel.result["travel"]
    assert found.outcome(panel.result["floor"]) in ("benign", "silent")
    assert found.lost["laplacian"] == 0
    shares = []
    for ranges in (False, True):
        panel.change(ranges=ranges)
        panel.ask("campaign")
        panel.wait(SOON)
        shares.append(panel.result["campaign"].campaign.rate("detected").estimate)
    assert shares[1] < shares[0]
    panel.change(tab="protect")
    assert "without protection, " in panel.shown.remark


def test_switches_stop_what_they_protect_from() -> None:
    with opened("plane", site="gradient", look="steepness", bit=25) as panel:
        panel.wait(SOON)
        assert panel.result["travel"].errors["steepness"] > 0
        assert "faults found" not in [fact.name for fact in panel.shown.facts]
        for switch in ("checksums", "twice"):
            panel.change(**{switch: True})
            panel.wait(SOON)
            assert dict(panel.result["travel"].errors) == {"gradient": 0.0, "steepness": 0.0}
            assert next(fact.value for fact in panel.shown.facts if fact.name == "faults found") == "1"
            panel.change(**{switch: False})
        assert not panel.request(checksums=True, protect=("steepness",))
        assert "there is none for steepness" in panel.status.error


def test_the_worst_sites_of_a_campaign_are_protected_by_a_button(panel: PropagationPanel) -> None:
    panel.widget   # noqa: B018
    assert panel._worst.content["hidden"]
    panel.change(trials=60, tab="protect")
    assert not panel._worst.content["hidden"]
    assert panel._compare.content["hidden"]
    panel.protect_worst()   # by a campaign, as there was none
    panel.wait(SOON)
    assert panel.state.protect == ("gradient", "input") or panel.state.protect == ("input", "gradient")
    assert panel.state.protections == ("twice", "range", "finite")
    harm = panel.known["campaign"].campaign.rate("silent").estimate
    panel.ask("campaign")
    panel.wait(SOON)
    assert panel.result["campaign"].campaign.rate("silent").estimate < harm


@pytest.mark.long
def test_what_belongs_to_another_kind_of_error_is_put_away_and_comes_back(panel: PropagationPanel) -> None:
    panel.widget   # noqa: B018
    panel.change(kind="stuck at 1", trials=30, tab="campaign")
    assert panel.shown.remark == "Tries bits stuck at 1 at every site."
    panel.ask("campaign")
    panel.wait(SOON)
    tried = len(panel.result["campaign"].campaign.trials)
    assert f"of {tried} bits stuck at 1 ended silent" in panel.shown.remark
    panel.change(kind="compression", codec="prequantised")
    panel.wait(SOON)
    assert "campaign" not in {*panel.shown.charts, *panel.shown.tables}
    assert "ended" not in panel.shown.remark
    assert "campaign" not in panel.code()
    panel.change(tab="sweep")
    panel.ask("doses")
    panel.wait(SOON)
    assert "doses" in panel.shown.charts
    assert "dose_response" in panel.code()
    panel.change(kind="stuck at 1")
    panel.wait(SOON)
    assert "doses" not in panel.shown.charts
    assert "dose_response" not in panel.code()
    panel.change(tab="campaign")
    panel.wait(SOON)
    assert "campaign" in panel.shown.charts


def test_no_silent_outcome_is_told_with_its_interval(panel: PropagationPanel) -> None:
    panel.change(trials=10, tab="campaign", outcome="crash")
    panel.ask("campaign")
    panel.wait(SOON)
    tried = len(panel.result["campaign"].campaign.trials)
    assert panel.shown.remark.startswith(f"0 of {tried} bit flips ended crash (95%: up to ")


def test_a_campaign_made_with_other_choices_says_so_and_its_code_is_its_own(panel: PropagationPanel) -> None:
    panel.change(trials=10, outcome="masked", tab="campaign")
    panel.ask("campaign")
    panel.wait(SOON)
    found = panel.result["campaign"].campaign
    panel.change(seed=3, twice=True, trials=40)
    assert panel.shown.remark.endswith("Counted before trials and seed and protection changed")
    names: dict[str, Any] = {panel.names[0]: panel.run.pipeline, panel.names[1]: panel.run["input"]}
    exec(panel.code(), names)
    assert names["campaign"].counts == found.counts


def test_only_faults_in_bits_are_counted(panel: PropagationPanel) -> None:
    panel.change(kind="noise")
    panel.wait(SOON)
    panel.ask("campaign")
    panel.wait(SOON)
    assert panel.status.error == "a campaign tries faults in bits; got noise: choose a bit flip or a stuck bit"


def test_switches_are_there_where_the_stages_have_them() -> None:
    for name, there in (("plane", True), ("halos", False), ("flow", False)):
        with opened(name) as panel:
            assert ("checksums" in {toggle.field for toggle in panel._protections()}) == there


SHOWN = [
    {"bit": 29, "trial": 4}, {"kind": "compression", "codec": "prequantised"}, {"kind": "noise", "seed": 7},
    {"site": "gradient", "kind": "stuck at 0"}, {"bit": 30, "ranges": True}, {"bit": 30, "finite": True},
    {"site": "gradient", "bit": 30, "checksums": True, "twice": True, "protect": ("gradient", "laplacian")},
]


@pytest.mark.parametrize("choices", SHOWN, ids=str)
def test_the_code_gives_what_is_shown(choices: dict[str, Any]) -> None:
    pipeline, x = MAKERS["plane"]()
    with wb.lab.propagation(pipeline, x, look="steepness", **choices) as panel:
        names: dict[str, Any] = {"pipeline": pipeline, "x": x}
        exec(panel.code(), names)
        assert names["trace"]["steepness"] == panel.result["trace"]["steepness"]


def test_a_report_holds_everything(panel: PropagationPanel, tmp_path: Any) -> None:
    panel.wait(SOON)
    text = panel.save_report(tmp_path / "report.html").read_text(encoding="utf-8")
    for part in ("round-off floor", "wb.propagation.trace", "Error by site", "laplacian"):
        assert part in text


def _outcomes(panel: PropagationPanel) -> dict[str, int]:
    """How many trials of the campaign of now ended in each way."""
    panel.ask("campaign")
    panel.wait(SOON)
    counts = panel.result["campaign"].campaign.counts
    return {outcome: sum(each[outcome] for each in counts) for outcome in counts[0]}


def _settled(panel: PropagationPanel) -> Any:
    panel.wait(SOON)
    return panel.shown
