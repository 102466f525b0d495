"""The panel of an archive without a browser: its figures are those of the archive, its slices those of the field."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.archive import Archive
from workbench.errors import WorkbenchError
from workbench.lab.statistics_panel import measuring

SHAPES = [(300,), (40, 50), (20, 24, 28), (3, 10, 12, 14)]


def archive_of(shape: tuple[int, ...], codec: str = "staged", masked: bool = False) -> tuple[wb.Field, Archive]:
    values = np.cumsum(np.random.default_rng(len(shape)).normal(size=shape), axis=-1).astype(np.float32)
    mask = np.random.default_rng(1).random(shape) < 0.2 if masked else None
    names = ["time", "z", "y", "x"][-len(shape):]
    field = wb.Field(values, spacing=0.5, mask=mask, metadata={"units": "K", "dimensions": names}, name="T")
    return field, wb.compress(field, wb.Absolute(0.01), codec)


@pytest.mark.parametrize("shape", SHAPES)
def test_figures_and_slices_are_those_of_the_archive(shape: tuple[int, ...]) -> None:
    field, archive = archive_of(shape, masked=len(shape) == 3)
    with wb.lab.statistics(archive) as panel:
        assert panel.result["figures"]["std"] == archive.std()
        crossed = panel.state.crossed(archive)
        seen = panel.result["slice"].field
        place = tuple(slice(*ends) for ends in panel.state.slice_of(archive))
        assert np.array_equal(seen.values, archive.decompress().values[place].squeeze(crossed))
        assert (seen.mask is None) == (field.mask is None)
        if field.mask is not None:
            assert np.array_equal(seen.mask, field.mask[place].squeeze(crossed))
        shown = panel.shown
        assert len(shown.pictures) == (len(shape) > 1)
        assert list(shown.charts) == ["histogram"]
        assert panel.report()[1].count("<svg") >= 1


def test_statistics_follow_the_chosen_part() -> None:
    _, archive = archive_of((20, 24, 28))
    with wb.lab.statistics(archive, axis=1, index=3) as panel:
        panel.change(of="slice")
        assert panel.result["figures"]["mean"] == archive.mean([None, (3, 4), None])
        panel.change(of="window", window=(2.0, 6.1, 0.0, 5.0))   # x from 2 to 6.1, z from 0 to 5, cells of 0.5
        region = [(0, 10), (3, 4), (4, 13)]
        assert panel.state.region(archive) == tuple(region)
        assert panel.result["figures"]["max"] == archive.max(region)
        names: dict[str, Any] = {"archive": archive}
        exec(panel.code(), names)
        assert names["counts"].count == archive.mean(region).count


def test_a_large_field_appears_as_means_of_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "COARSE", 1000)
    _, archive = archive_of((20, 24, 28))
    means = archive.block_means()
    region, crossed = ((0, 20), (13, 14), (0, 28)), (1,)
    coarse = measuring.coarse_slice(archive, means, region, crossed)
    exact = measuring.exact_slice(archive, region, crossed, lambda *_: None)   # type: ignore[arg-type]
    assert coarse.field.shape == exact.field.shape == (20, 28)
    block = [int(np.searchsorted(edges, at, side="right")) - 1 for edges, at in zip(means.edges, (9, 13, 17), strict=True)]
    assert coarse.field.values[9, 17] == means.values[tuple(block)]
    with wb.lab.statistics(archive) as panel:
        results = {name: panel.result[name] for name in ("coarse", "figures")}
        assert [picture.title for picture in panel.draw(panel.state, results).pictures] == ["means of blocks"]


def test_decoding_gives_the_same_within_the_bounds() -> None:
    _, archive = archive_of((20, 24, 28), "prequantised")
    with wb.lab.statistics(archive, of="slice") as panel:
        panel.ask("decoded")
        panel.wait()
        for name, value in panel.result["decoded"].values.items():
            figure = panel.result["figures"][name]
            assert figure.low <= value <= figure.high
        table = panel.shown.tables["after decoding"]
        assert [row[0] for row in table.rows[-2:]] == ["bytes read", "time"]
        assert panel.result["coarse"].means is None


def test_constant_fields_and_integers_have_figures() -> None:
    for values, eb in ((np.full((8, 9), 3.0), 0.0), (np.arange(72).reshape(8, 9), 1)):
        with wb.lab.statistics(wb.compress(values, wb.Absolute(eb))) as panel:
            panel.wait()
            assert panel.shown.answer
            assert "mean" in panel.report()[1]


def test_other_things_and_wrong_choices_are_refused() -> None:
    _, archive = archive_of((20, 24, 28))
    particles = wb.compress(wb.synthetic.cosmic_web(n=8, seed=0), wb.Absolute(0.1))
    for given in (np.zeros((4, 4)), particles):
        with pytest.raises(WorkbenchError, match="needs an archive of a field"):
            wb.lab.statistics(given)   # type: ignore[arg-type]
    refused = ({"of": "half"}, "must be one of"), ({"index": 99}, "from 0 to 19"), ({"eb": 1}, "no choice")
    for choices, words in refused:
        with pytest.raises(WorkbenchError, match=words):
            wb.lab.statistics(archive, **choices)
