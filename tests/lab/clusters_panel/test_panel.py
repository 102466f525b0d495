"""The clusters panel without a browser: what holds the parts together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.errors import WorkbenchError
from workbench.lab.clusters_panel.state import Chosen

SOON = 60.0
SNAPSHOT = wb.synthetic.cosmic_web(n=24, seed=3)


@pytest.fixture
def panel() -> Any:
    with wb.lab.clusters(SNAPSHOT) as made:
        made.widget   # noqa: B018
        made.wait(SOON)
        yield made


def test_fields_are_shown_where_to_go() -> None:
    with pytest.raises(WorkbenchError, match=r"use wb\.lab\.bounds"):
        wb.lab.clusters(wb.Field(np.zeros(8)))   # type: ignore[arg-type]


def test_another_unit_keeps_the_linking_length(panel: Any) -> None:
    halos = panel.result["halos"].groups
    panel.change(unit="length")
    assert panel.state.linking_length == pytest.approx(halos.linking_length)
    assert panel.result["halos"].groups.equals(halos)


def test_the_ends_of_the_bound_follow_the_linking_length(panel: Any) -> None:
    ends = panel._bound.low, panel._bound.high
    panel.change(linking_length=3 * panel.state.linking_length)
    assert (panel._bound.low, panel._bound.high) == pytest.approx([3 * end for end in ends])


def test_preserving_shows_what_is_kept(panel: Any) -> None:
    assert panel.state.shows == "decoded"
    panel.preserve()
    panel.wait(SOON)
    assert panel.state.shows == "kept"
    assert panel.result["kept"].verified
    assert panel.shown.pictures[1].title == "halos kept"
    assert "KeepClusters" in panel.code()


def test_the_code_gives_what_is_shown(panel: Any) -> None:
    panel.preserve()
    panel.wait(SOON)
    names = {panel.name: SNAPSHOT}
    exec(panel.code(), names)
    assert names["archive"].bits_per_particle == panel.result["kept"].archive.bits_per_particle


def test_broken_links_are_gone_through_one_by_one(panel: Any) -> None:
    outcome = panel.result["breakage"].outcome
    pairs = [*outcome.missing.pairs.tolist(), *outcome.false.pairs.tolist()]
    seen = []
    for _ in range(len(pairs) + 1):
        panel.next_link()
        seen.append(list(panel.state.chosen.particles))
    assert seen == [*pairs, pairs[0]]
    assert panel.shown.detail is not None


def test_one_can_go_back_and_start_from_a_halo(panel: Any) -> None:
    results = panel.result
    outcome, labels = results["breakage"].outcome, results["halos"].groups.labels
    pairs = [*outcome.missing.pairs.tolist(), *outcome.false.pairs.tolist()]
    panel.previous_link()
    assert list(panel.state.chosen.particles) == pairs[-1]
    panel.change(chosen=Chosen.link(*pairs[4]))
    panel.previous_link()
    assert list(panel.state.chosen.particles) == pairs[3]
    label = labels[pairs[7][0]]
    panel.change(chosen=Chosen.halo(int(label)))
    panel.next_link()
    first = next(pair for pair in pairs if label in labels[pair])
    assert list(panel.state.chosen.particles) == first
    assert panel._steps.place == f"missing link {pairs.index(first) + 1} of {len(outcome.missing):,}"
    assert panel._steps.count == len(pairs)


def test_a_row_of_the_table_shows_its_halo(panel: Any) -> None:
    panel.row_chosen("halos", 5)
    assert panel.state.chosen == Chosen.halo(int(panel.result["halos"].catalogue.labels[5]))
    assert panel.shown.tables["halos"].chosen == 5
    panel.row_chosen("certificate", 0)
    panel.row_chosen("halos", 10**9)
    assert panel.shown.tables["halos"].chosen == 5


def test_what_is_clicked_is_looked_at(panel: Any) -> None:
    label = int(panel.result["halos"].catalogue.labels[0])
    panel.picked("split halo", label)
    assert panel.state.chosen == Chosen.halo(label)
    panel.picked("legend", 3)
    assert panel.state.chosen == Chosen.halo(label)


def test_the_archive_that_is_written_is_the_one_that_is_shown(panel: Any, tmp_path: Path) -> None:
    assert panel.archive_name == panel._saving.name.value == "particles.zip"
    plain = wb.open(panel.save_archive(tmp_path / "plain.zip"))
    panel.preserve()
    panel.wait(SOON)
    assert panel.archive_name == panel._saving.name.value == "particles-halos-kept.zip"
    kept = wb.open(panel.save_archive(tmp_path / "kept.zip"))
    assert kept.verify(wb.Particles(SNAPSHOT.positions, SNAPSHOT.box)).passed
    assert kept.nbytes > plain.nbytes


def test_to_show_kept_halos_is_to_keep_them(panel: Any) -> None:
    assert panel.change(shows="kept", bound=panel.state.bound / 2)
    assert panel.state.shows == "decoded"
    panel.wait(SOON)
    assert panel.state.shows == "kept"
    assert panel.result["kept"].verified


OTHER_PROMISES = [{"bound": 0.01}, {"codec": "prequantised"}, {"linking_length": 0.15}, {"keep_members": 5}]


@pytest.mark.parametrize("change", OTHER_PROMISES)
def test_everything_shown_belongs_to_one_archive(panel: Any, change: dict[str, Any]) -> None:
    panel.preserve()
    panel.wait(SOON)
    before = panel.state
    panel.change(**change)
    panel.wait(SOON)
    assert panel.state.shows == "decoded"
    assert "kept" not in panel.result
    shown = panel.shown
    assert shown.pictures[1].title == "decoded"
    assert "descent" not in shown.charts
    assert shown.tables["certificate"].rows == ()
    assert "cost of keeping" not in [fact.name for fact in shown.facts]
    assert "keep=[" not in panel.code()
    assert panel._saving.name.value == "particles.zip"
    panel.change(**{name: getattr(before, name) for name in change}, shows="kept")   # that archive is still there
    assert panel.state == before
    assert "keep=[" in panel.code()
    assert panel._saving.name.value == "particles-halos-kept.zip"


def test_what_was_kept_for_earlier_choices_is_not_shown(panel: Any) -> None:
    panel.preserve()
    panel.change(bound=panel.state.bound / 2)
    panel.wait(SOON)
    assert panel.state.shows == "decoded"
    assert "descent" not in panel.shown.charts


def test_a_look_from_another_side_leaves_halos_kept(panel: Any) -> None:
    panel.preserve()
    panel.wait(SOON)
    panel.change(axis=0, min_members=10)
    assert panel.state.shows == "kept"
