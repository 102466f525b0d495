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


def test_preserving_shows_what_is_kept(panel: Any) -> None:
    assert panel.state.shows == "decoded"
    panel.preserve()
    panel.wait(SOON)
    assert panel.state.shows == "kept"
    assert panel.result["kept"].verified
    assert panel.shown.pictures[1].title == "kept"
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


def test_what_is_clicked_is_looked_at(panel: Any) -> None:
    label = int(panel.result["halos"].catalogue.labels[0])
    panel.picked("broken halo", label)
    assert panel.state.chosen == Chosen.halo(label)
    panel.picked("legend", 3)
    assert panel.state.chosen == Chosen.halo(label)


def test_the_archive_that_is_written_is_the_one_that_is_shown(panel: Any, tmp_path: Path) -> None:
    plain = wb.open(panel.save_archive(tmp_path / "plain.zip"))
    panel.change(shows="kept")
    with pytest.raises(WorkbenchError, match="press preserve"):
        panel.save_archive(tmp_path / "kept.zip")
    panel.preserve()
    panel.wait(SOON)
    kept = wb.open(panel.save_archive(tmp_path / "kept.zip"))
    assert kept.verify(wb.Particles(SNAPSHOT.positions, SNAPSHOT.box)).passed
    assert kept.nbytes > plain.nbytes


def test_another_bound_is_not_kept_until_it_is_asked_for(panel: Any) -> None:
    panel.preserve()
    panel.wait(SOON)
    panel.change(bound=panel.state.bound / 2)
    panel.wait(SOON)
    assert "kept" not in panel.result
    assert "press preserve" in panel.shown.note
