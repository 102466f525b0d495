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
SNAPSHOT = wb.synthetic.cosmic_web(n=16, seed=3)


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
    assert panel.shown.pictures[panel.shown.front].title == "halos kept"
    assert "KeepClusters" in panel.code()


def test_a_tab_shows_its_picture_and_the_figures_of_its_archive(panel: Any) -> None:
    panel.picture_chosen("original")
    assert (panel.shown.front, panel.state.shows) == (0, "decoded")
    assert panel.change(bound=0.9 * panel.state.bound)
    panel.wait(SOON)
    assert panel.shown.front == 0   # and stays while a slider moves
    panel.preserve()
    panel.wait(SOON)
    assert panel.shown.front == 2   # what was asked for is seen
    assert [picture.title for picture in panel.shown.pictures] == ["original", "decoded", "halos kept"]
    panel.picture_chosen("original")
    assert (panel.shown.front, panel.archive_name) == (0, "particles-halos-kept.zip")
    panel.picture_chosen("decoded")
    assert (panel.shown.front, panel.archive_name) == (1, "particles.zip")
    panel.picture_chosen("halos kept")
    assert (panel.shown.front, panel.archive_name) == (2, "particles-halos-kept.zip")
    panel.undo()
    assert panel.shown.front == 1


def said(panel: Any) -> str:
    return " ".join(part if isinstance(part, str) else f"<{part.value}>{part.verdict}" for part in panel.shown.answer)


def test_the_answer_says_what_became_of_the_halos_and_what_it_costs_to_keep_them(panel: Any) -> None:
    results = panel.result
    count, bits = results["halos"].count(20), f"<{results['breakage'].bits_per_particle:.2f}>"
    _, split, merged = results["breakage"].outcome.counts(count)
    broken = f"<{split + merged} of {count}>bad halos broken ({split} split, {merged} merged) · {bits} bits/particle"
    assert said(panel) == broken
    panel.preserve()
    panel.wait(SOON)
    kept = panel.result["kept"]
    assert said(panel) == (
        f"<all {count}>good halos equal · <{kept.bits_per_particle:.2f}> bits/particle · <{kept.overhead:+.2f}> for keeping"
    )
    panel.picture_chosen("decoded")
    assert said(panel) == f"{broken} · keeping costs <{kept.overhead:+.2f}>"
    panel.change(bound=1e-4, min_members=100)
    panel.wait(SOON)
    assert said(panel).startswith(f"<0 of {panel.result['halos'].count(100)}>good halos broken · ")
    panel.change(min_members=10**6)
    assert said(panel).startswith("no halos · ")


def test_smaller_halos_than_those_that_are_kept_may_be_broken(panel: Any) -> None:
    panel.change(keep_members=500, min_members=5)
    panel.preserve()
    panel.wait(SOON)
    count = panel.result["halos"].count(5)
    _, split, merged = panel.result["kept"].outcome.counts(count)
    assert split + merged > 0
    broken = f"<{split + merged} of {count}>bad halos broken ({split} split, {merged} merged)"
    assert said(panel).startswith(f"{broken} · <all groups of 500 or more>good equal · ")


def test_what_became_of_the_pair_stands_beneath_the_close_up(panel: Any) -> None:
    assert panel._sentence.content["text"] == ""
    panel.next_link()
    facts = {fact.name: fact.value for fact in panel.shown.facts}
    before, after = (facts[f"distance {when}"].split(" = ")[1] for when in ("before", "after"))
    assert panel._sentence.content["text"].startswith(f"Distance {before} → {after}; moved by ")
    assert float(before.removesuffix(" b")) < 1 < float(after.removesuffix(" b"))
    halos = panel.result["halos"]
    panel.change(chosen=Chosen.halo(int(halos.catalogue.labels[0])))
    assert panel._sentence.content["text"].startswith(f"Members {halos.catalogue.members[0]:,} → ")
    panel.change(chosen=None)
    assert panel._sentence.content["text"] == ""


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
    assert panel._place_of_link.content["text"] == f"missing link {pairs.index(first) + 1} of {len(outcome.missing):,}"
    assert panel._next.content["enabled"]
    assert panel._previous.content["enabled"]


def test_a_row_of_the_table_shows_its_halo(panel: Any) -> None:
    panel.row_chosen("halos", 5)
    assert panel.state.chosen == Chosen.halo(int(panel.result["halos"].catalogue.labels[5]))
    assert panel.shown.tables["halos"].chosen == 5
    panel.row_chosen("certificate", 0)
    panel.row_chosen("halos", 10**9)
    assert panel.shown.tables["halos"].chosen == 5


def test_what_is_clicked_is_looked_at(panel: Any) -> None:
    label = int(panel.result["halos"].catalogue.labels[0])
    panel.picked("split", label)
    assert panel.state.chosen == Chosen.halo(label)
    panel.picked("legend", 3)
    assert panel.state.chosen == Chosen.halo(label)


def test_the_archive_that_is_written_is_the_one_that_is_shown(panel: Any, tmp_path: Path) -> None:
    assert panel.archive_name == panel._saving.content["name"] == "particles.zip"
    plain = wb.open(panel.save_archive(tmp_path / "plain.zip"))
    panel.preserve()
    panel.wait(SOON)
    assert panel.archive_name == panel._saving.content["name"] == "particles-halos-kept.zip"
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


def test_everything_shown_belongs_to_one_archive(panel: Any) -> None:
    panel.preserve()
    panel.wait(SOON)
    before = panel.state
    for change in OTHER_PROMISES:
        panel.change(**change)
        panel.wait(SOON)
        assert panel.state.shows == "decoded"
        assert "kept" not in panel.result
        shown = panel.shown
        assert [picture.title for picture in shown.pictures] == ["original", "decoded"]
        assert shown.front == 1
        assert "descent" not in shown.charts
        assert shown.tables["certificate"].rows == ()
        assert "cost of keeping" not in [fact.name for fact in shown.facts]
        assert "keep=[" not in panel.code()
        assert panel._saving.content["name"] == "particles.zip"
        panel.change(**{name: getattr(before, name) for name in change}, shows="kept")   # that archive is still there
        assert panel.state == before
        assert "keep=[" in panel.code()
        assert panel._saving.content["name"] == "particles-halos-kept.zip"


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
