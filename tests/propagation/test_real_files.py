"""Real data: baryons of a Nyx run, temperatures of a climate model, and simulated particles."""

import numpy as np
import pytest

import workbench as wb
from workbench.propagation import (
    Bounded,
    budget,
    campaign,
    derivatives,
    halos,
    power_spectrum,
    strata,
    trace,
)


@pytest.fixture(scope="module")
def baryons(shared_data):
    pytest.importorskip("h5py")
    return wb.open(shared_data / "hacc_nyx_toy" / "z255_32.h5", name="native_fields/baryon_density")


@pytest.fixture(scope="module")
def temperatures(shared_data):
    pytest.importorskip("netCDF4")
    return wb.open(shared_data / "cesm" / "cam-fv.T.3months.nc", name="T")


@pytest.mark.long
def test_the_spectrum_of_baryons_keeps_its_tolerance(baryons):
    pipeline = power_spectrum(baryons)
    found = budget(pipeline, baryons)
    decoded = wb.compress(baryons, found.bounds["input"]).decompress()
    assert abs(pipeline(decoded) / pipeline(baryons) - 1).max() <= 0.01
    assert found.ratio > 2


def test_predictions_and_intervals_hold_for_baryons(baryons):
    pipeline = power_spectrum(baryons)
    run = pipeline.run(baryons)
    rms = float(np.sqrt(np.mean(run["input"].astype(float) ** 2)))
    for share in (1e-4, 1e-3, 1e-2):
        found = trace(pipeline, run, Bounded("input", wb.Absolute(share * rms), "prequantised"))
        assert found["contrast"].ratio == pytest.approx(1, abs=0.01)
        assert found["waves"].ratio == pytest.approx(1, abs=0.01)
        assert all(each.holds for each in found.stages)


def test_a_campaign_on_baryons_finds_the_exponent_most_harmful(baryons):
    pipeline = power_spectrum(baryons)
    found = campaign(pipeline, baryons, strata(pipeline, baryons, sites=["input", "contrast"]), until=300)
    harm = found.heat_map("silent").share + found.heat_map("detected").share
    assert (harm[:, 1] >= harm[:, 2]).all()   # exponent, mantissa
    assert harm[:, 1].max() > 0


def test_gradients_of_temperatures_stay_in_their_interval(temperatures):
    level = wb.Field(np.nan_to_num(temperatures.values[0, 10]), spacing=1.0)
    found = trace(derivatives(level), level, Bounded("input", wb.Absolute(0.05)))
    assert all(each.holds for each in found.stages)
    assert found["gradient"].badge == "linear"
    assert found["gradient"].guaranteed < 0.08


def test_halos_of_particles_stay_in_their_interval(shared_data):
    pytest.importorskip("h5py")
    snapshot = wb.open(shared_data / "disperse_32" / "disperse_simu_32_id.gad")
    found = trace(halos(snapshot), snapshot, Bounded("input", wb.Absolute(0.01 * snapshot.spacing)))
    assert found["groups"].holds is True
    assert found["mass_function"].holds is True
    kept = Bounded("input", wb.Absolute(0.1 * snapshot.spacing), keep=wb.KeepClusters(0.2))
    assert trace(halos(snapshot), snapshot, kept)["mass_function"].error == 0
