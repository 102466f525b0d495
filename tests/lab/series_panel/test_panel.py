"""The clusters panel of a series without a browser: what it shows is the descent, and its code gives the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.charts.description import Rule
from workbench.clusters import Groups
from workbench.lab.series_panel.drawing import ALONE, OF_MAIN, OF_OTHERS
from workbench.lab.series_panel.halos import Followed
from workbench.lab.series_panel.panel import SeriesPanel

TIMES = [0.6, 0.8, 1.0]


@pytest.fixture(scope="module")
def snapshots() -> list[wb.Particles]:
    return list(wb.synthetic.cosmic_web_series(20, [1 / time - 1 for time in TIMES], seed=1, steps=12))


@pytest.fixture(scope="module")
def series(snapshots: list[wb.Particles], tmp_path_factory: pytest.TempPathFactory) -> wb.Series:
    made = wb.Series(tmp_path_factory.mktemp("series") / "loose", wb.Absolute(0.08))
    for snapshot in snapshots:
        made.append(snapshot)
    return made


@pytest.fixture
def panel(series: wb.Series, snapshots: list[wb.Particles]) -> Any:
    with wb.lab.clusters(series, snapshots, min_members=10) as opened:
        opened.wait()
        yield opened


def test_the_figures_are_those_of_the_descent(panel: SeriesPanel, series: wb.Series, snapshots: list[wb.Particles]) -> None:
    original = wb.descent([wb.friends_of_friends(one) for one in snapshots], snapshots, TIMES, min_members=10)
    counts = original.differences(series.descent(10, 0.2)).counts
    facts = {fact.name: fact.value for fact in panel.shown.facts}
    assert {kind: int(facts[kind].replace(",", "")) for kind in counts if kind != "links"} == {
        kind: count for kind, count in counts.items() if kind != "links"
    }
    assert counts["links"] > counts["kept"]
    assert panel.shown.tables["steps"].total is None
    assert [row[2] for row in panel.shown.tables["steps"].rows] == [f"{len(step):,}" for step in original.steps]


def test_circles_are_where_halos_are(panel: SeriesPanel, snapshots: list[wb.Particles]) -> None:
    panel.change(step=1)
    panel.wait()
    original, decoded = panel.shown.pictures
    descent = panel.result["descents"].original.descent
    for marks in original.marks:
        for place, number in zip(marks.places, marks.ids, strict=True):
            members = np.isin(snapshots[1].ids, descent.members(int(descent.steps[1].halos[number]), 1))
            offset = (snapshots[1].positions[members][:, :2] - place[:2] + 10) % 20 - 10
            assert np.abs(offset.mean(axis=0)).max() < 1e-3
    labels = {marks.label: len(marks) for marks in decoded.marks}
    assert labels[OF_MAIN] == 1
    assert labels[ALONE] > 0


def test_the_tree_of_a_halo_is_followed_through_all_steps(panel: SeriesPanel) -> None:
    descent = panel.result["descents"].original.descent
    halo = descent.largest(2, step=1)[1]
    panel.change(step=1)
    panel.wait()
    panel._shown = panel.shown
    panel.picked("halos", 1)
    assert panel.state.chosen == (1, halo)
    progenitors = descent.progenitors(halo, 1)
    panel.change(step=0)
    panel.wait()
    labels = {marks.label: marks for marks in panel.shown.pictures[0].marks}
    assert len(labels[OF_MAIN]) + len(labels[OF_OTHERS]) == len(progenitors)
    assert labels[OF_MAIN].titles == [f"halo {progenitors[0]['halo']}: {progenitors[0]['members']:,} members"]
    panel.change(step=2)
    panel.wait()
    labels = {marks.label: marks for marks in panel.shown.pictures[0].marks}
    assert labels[OF_MAIN].titles[0].startswith(f"halo {descent.descendant(halo, 1)['halo']}: ")
    assert not len(labels[OF_OTHERS])
    tree = panel.shown.charts["merger tree"]
    assert [part.place for part in tree.of(Rule)] == [TIMES[2]]
    assert len(tree.y.names) == 2


def test_the_code_draws_the_same_tree(panel: SeriesPanel, series: wb.Series, snapshots: list[wb.Particles], tmp_path: Path,
                                      monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    panel.row_chosen("halos", 2)
    names: dict[str, Any] = {"series": series, "originals": snapshots}
    exec(panel.code(), names)
    halo = panel.state.chosen[1]
    chart = names["original"].plot(halo, other=names["decoded"])
    assert (tmp_path / "merger-tree.svg").read_text() == chart.svg
    assert len(chart.parts) == len(panel.shown.charts["merger tree"].parts) - 1   # without the visible step
    panel.row_chosen("steps", 0)
    assert panel.state.step == 0


def test_without_originals_the_linking_length_is_that_of_the_promise(snapshots: list[wb.Particles], tmp_path: Path) -> None:
    kept = wb.Series(tmp_path / "kept", wb.Absolute(0.08), keep=[wb.KeepClusters(0.25)])
    for snapshot in snapshots[:2]:
        kept.append(snapshot)
    with wb.lab.clusters(kept) as panel:
        assert panel.state.linking_length == 0.25
        assert panel.result["descents"].original is None
        shown = panel.shown
        assert [picture.title for picture in shown.pictures] == ["decoded"]
        assert "links kept" not in {fact.name for fact in shown.facts}
        panel.change(min_members=4000)
        panel.wait()
        assert not panel.shown.charts
        assert panel.report()[1].count("<svg") >= 1
    with wb.lab.clusters(kept, snapshots[:2]) as panel:
        assert panel.result["descents"].differences.equal


def test_what_is_refused(series: wb.Series, snapshots: list[wb.Particles], tmp_path: Path) -> None:
    for call, message in [
        (lambda: wb.lab.clusters(series, snapshots[:1]), "originals must have one entry for each of 3 steps; got 1"),
        (lambda: wb.lab.clusters(series, step=3), "the step must be from 0 to 2; got 3"),
        (lambda: wb.lab.clusters(series, chosen=(5, 0)), "the step must be from 0 to 2; got 5"),
        (lambda: wb.lab.clusters(series, chosen="halo"), "chosen by its step and the smallest id of its members"),
        (lambda: wb.lab.clusters(series, linking_length=-1), "the linking length b must be"),
        (lambda: wb.lab.clusters(snapshots[0], snapshots), "originals belong to a series of steps"),
        (lambda: wb.lab.clusters(wb.Series(tmp_path / "none", wb.Absolute(1.0))), "has no steps yet"),
    ]:
        with pytest.raises(wb.WorkbenchError, match=message):
            call()
    fields = wb.Series(tmp_path / "fields", wb.Absolute(1.0))
    fields.append(np.zeros(100), 0.0)
    with pytest.raises(wb.WorkbenchError, match="the clusters panel needs particles"):
        wb.lab.clusters(fields)


@pytest.mark.parametrize("gap", [0, 1, 2])
def test_the_family_of_a_halo_is_that_of_its_tree(gap: int) -> None:
    random = np.random.default_rng(gap)
    labels = random.integers(0, 12, (7, 120))
    for at in range(1, 7):   # most stay where they are; some halos are not found
        labels[at] = np.where(random.random(120) < 0.96, labels[at - 1], labels[at])
    labels = np.where(random.random((7, 12))[np.arange(7)[:, None], labels] < 0.3, np.arange(200, 320), labels)
    descent = wb.descent([Groups.from_labels(row, 0.1) for row in labels], min_members=3, gap=gap)
    followed = Followed(descent, (), ())
    for at, step in enumerate(descent.steps):
        for number, halo in enumerate(step.halos.tolist()):
            waiting, tree = [descent.tree(halo, at)], set()
            while waiting:
                node = waiting.pop()
                tree.add((node["step"], node["halo"]))
                waiting += node["progenitors"]
            branch = {(row["step"], row["halo"]) for row in descent.main_branch(halo, at)}
            here = {"step": at, "halo": halo}
            while (after := descent.descendant(here["halo"], here["step"])) is not None:
                branch.add((after["step"], after["halo"]))
                here = after
            for other, names in enumerate(each.halos for each in descent.steps):
                main, others = followed.family(at, number, other)
                assert ({(other, int(names[main]))} if main >= 0 else set()) == {one for one in branch if one[0] == other}
                assert {(other, int(names[one])) for one in others} == {one for one in tree - branch if one[0] == other}
    assert (descent.counts.get("over a gap", 0) > 3) == (gap > 0)


def test_links_over_a_gap_are_shown(series: wb.Series, snapshots: list[wb.Particles]) -> None:
    with wb.lab.clusters(series, snapshots, min_members=30, gap=1) as panel:
        panel.wait()
        original = panel.result["descents"].original.descent
        facts = {fact.name: fact.value for fact in panel.shown.facts}
        assert original.gap == 1
        assert facts["over a gap"] == str(original.counts["over a gap"])
        assert panel.code().count("gap=1") == 2
        panel.change(step=0)
        panel.wait()
        told = [row[3] for row in panel.shown.tables["halos"].rows]
        assert sum(goes.endswith(" 2 steps on") for goes in told) == original.counts["over a gap"] > 0
        panel.change(gap=0)
        panel.wait()
        assert "over a gap" not in {fact.name for fact in panel.shown.facts}
