"""A bound or a linking length in another unit is noted in the certificate; what is usual is not."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import workbench as wb
from workbench.archive.plausibility import notes_on, spread_of
from workbench.guarantees import Bound

FLOATS = st.floats(-1e6, 1e6, width=32) | st.just(float("nan")) | st.just(float("inf"))


def rain() -> wb.Field:
    return wb.Field(np.random.default_rng(1).gamma(0.3, 1e-8, (40, 50)).astype(np.float32))


def web() -> wb.Particles:
    return wb.synthetic.cosmic_web(n=16, seed=1)


@given(arrays.arrays(np.float32, st.integers(1, 60), elements=FLOATS), st.data())
def test_the_spread_is_that_of_numpy(values: np.ndarray, data: st.DataObject) -> None:
    mask = data.draw(arrays.arrays(bool, values.shape))
    valid = values[np.isfinite(values) & ~mask].astype(np.float64)
    found = spread_of(values, mask)
    if not valid.size:
        assert found is None
        return
    assert (found.lower, found.upper) == (valid.min(), valid.max())
    assert found.deviation == pytest.approx(valid.std(), rel=1e-6, abs=1e-6 * (1 + abs(valid).max()))


def test_the_spread_of_many_values_is_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).normal(1e4, 1, 1000)
    monkeypatch.setattr("workbench.archive.plausibility._PART", 64)
    assert spread_of(values).deviation == pytest.approx(values.std(), rel=1e-9)
    assert spread_of(np.array([1e308, -1e308])).deviation == np.inf


@pytest.mark.parametrize("bound", [wb.Absolute(0.01), wb.Relative(0.6)])
def test_a_bound_above_the_range_is_noted(bound: Bound) -> None:
    archive = wb.compress(rain(), bound, "prequantised")
    (note,) = archive.certificate.notes
    assert note.startswith("the bound of values, ")
    assert "is larger than half their range" in note
    assert f"note: {note}" in str(archive.certificate)
    assert "note:" in archive._repr_html_()


def test_a_bound_above_the_deviation_is_noted() -> None:
    (note,) = wb.compress(rain(), wb.Absolute(float(rain().values.std()) * 1.1), "prequantised").certificate.notes
    assert "is larger than their standard deviation" in note


@pytest.mark.parametrize("bound", [wb.Absolute(1e-10), wb.Relative(1e-3), wb.PointwiseRelative(0.9), wb.Absolute(0)])
def test_a_usual_bound_is_not(bound: Bound) -> None:
    assert wb.compress(rain(), bound, "prequantised").certificate.notes == ()


def test_masked_values_do_not_count() -> None:
    values, mask = rain().values.copy(), np.zeros(rain().shape, bool)
    values[0], mask[0] = 1e20, True
    assert wb.compress(wb.Field(values, mask=mask), wb.Absolute(0.01), "prequantised").certificate.notes
    assert not wb.compress(wb.Field(np.full((4, 4), 7.0)), wb.Absolute(1), "prequantised").certificate.notes


def test_notes_are_in_the_file(tmp_path: Path) -> None:
    made = wb.compress(rain(), wb.Absolute(0.01), "prequantised")
    assert wb.open(made.save(tmp_path / "a.zip")).certificate == made.certificate


def test_a_linking_length_in_another_unit_is_noted() -> None:
    tight = wb.Particles(web().positions / 10, web().box[0] / 10)
    notes = wb.compress(tight, wb.Absolute(0.001), keep=[wb.KeepClusters(2.8)]).certificate.notes
    assert notes[0] == (
        "the linking length is 2.8 mean spacings, 0.28 in the unit of positions: beyond 1, most particles are usually one "
        "group; if it is in the unit of positions, pass unit='length'"
    )
    assert notes[1] == "at linking length 0.28, 4,096 of 4,096 particles are one group: is this length intended?"
    assert wb.compress(tight, wb.Absolute(0.001), keep=[wb.KeepClusters(0.2)]).certificate.notes == ()


def test_bounds_of_particles_are_noted() -> None:
    archive = wb.compress(web(), wb.Absolute(3.0), velocities=wb.Absolute(1e6))
    positions, velocities = archive.certificate.notes
    assert positions.startswith("the bound of positions, 3, is larger than the mean spacing of particles, 1: ")
    assert velocities.startswith("the bound of velocities, 1e+06, is larger than half their range")
    assert wb.compress(web(), wb.Absolute(0.1), velocities=wb.Relative(1e-3)).certificate.notes == ()


def test_a_signalling_nan_is_examined_without_a_warning():
    values = np.arange(10_000, dtype=np.float32)
    values.view(np.uint32)[::7] = 0x7F800001
    assert notes_on(wb.Field(values), wb.Absolute(0.1)) == ()
