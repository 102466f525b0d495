"""The descent of a series: that of the originals where clusters are kept, whatever the order of the particles."""

from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.archive.series import descent as series_descent


def steps(changing: bool = False) -> list[wb.Particles]:
    """Three snapshots of one simulation; each in another order, and without some of the particles, if `changing`."""
    snapshots = list(wb.synthetic.cosmic_web_series(16, [0.5, 0.2, 0], seed=4, steps=12))
    if not changing:
        return snapshots
    random = np.random.default_rng(0)
    return [one.select(random.permutation(len(one))[: len(one) - 50 * step]) for step, one in enumerate(snapshots)]


def series_of(folder: Path, snapshots: list[wb.Particles], **options: object) -> wb.Series:
    series = wb.Series(folder, wb.Absolute(0.05), **options)
    for snapshot in snapshots:
        series.append(wb.Particles(snapshot.positions, snapshot.box, ids=snapshot.ids, metadata=snapshot.metadata))
    return series


def original_of(snapshots: list[wb.Particles], min_members: int = 20) -> wb.Descent:
    return wb.descent([wb.friends_of_friends(one) for one in snapshots], snapshots, min_members=min_members)


@pytest.mark.parametrize("order", ["keep", "free"])
@pytest.mark.parametrize("changing", [False, True])
def test_kept_clusters_keep_the_descent(tmp_path: Path, order: str, changing: bool):
    snapshots = steps(changing)
    spacing = snapshots[0].spacing   # one length for all, however many particles there are
    series = series_of(tmp_path / "s", snapshots, order=order, keep=[wb.KeepClusters(0.2 * spacing, unit="length")])
    groups = [wb.friends_of_friends(one, 0.2 * spacing, unit="length") for one in snapshots]
    original = wb.descent(groups, snapshots, series.times, min_members=10)
    assert original.counts["continue"] > 10
    assert series.descent(10).equals(original)
    assert series.descent(10).times == series.times
    over = series.descent(10, gap=1)
    assert over.equals(wb.descent(groups, snapshots, series.times, min_members=10, gap=1))
    assert over.gap == 1
    report = series.verify(snapshots)["descent"]
    assert report.passed
    assert report.figures["descent_links"] > 100
    assert report.figures["descent_links_over_a_step"] == wb.descent(
        groups, snapshots, min_members=2, gap=1
    ).counts["over a gap"] > 0
    if not changing and order == "keep":
        assert "descent" not in series.verify(snapshots, parts=2)   # where no process holds a step


def test_a_bound_alone_breaks_links(tmp_path: Path):
    snapshots = steps()
    series = series_of(tmp_path / "s", snapshots)
    found = original_of(snapshots, 10).differences(series.descent(10, linking_length=0.2))
    assert not found.equal
    assert found.broken > 0
    assert "descent" not in series.verify(snapshots)


def test_another_descent_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    snapshots = steps()
    series = series_of(tmp_path / "s", snapshots, keep=[wb.KeepClusters(0.2)])
    given = series_descent._original

    def exchanged(archives, originals, lengths):
        for step, (groups, ids) in enumerate(given(archives, originals, lengths)):
            yield groups, ids[::-1] if step == 1 else ids

    monkeypatch.setattr(series_descent, "_original", exchanged)
    with pytest.raises(wb.GuaranteeBroken, match="the descent of groups of at least 2 members at linking length"):
        series.verify(snapshots)


def test_what_has_no_descent(tmp_path: Path):
    particles = series_of(tmp_path / "particles", steps())
    with pytest.raises(wb.WorkbenchError, match="step 0 keeps no clusters: give linking_length="):
        particles.descent()
    several = series_of(tmp_path / "several", steps()[:1], keep=[wb.KeepClusters([0.2, 0.3])])
    with pytest.raises(wb.WorkbenchError, match="step 0 keeps 2 linking lengths"):
        several.descent()
    fields = wb.Series(tmp_path / "fields", wb.Absolute(0.1))
    with pytest.raises(wb.WorkbenchError, match="fields has no steps yet: a descent needs one"):
        fields.descent()
    fields.append(np.zeros(100), 0.0)
    with pytest.raises(wb.WorkbenchError, match="a descent needs particles at each step; step 0 is Archive"):
        fields.descent(linking_length=0.2)
