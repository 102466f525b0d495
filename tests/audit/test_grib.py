"""GRIB packs each message in steps of its own: the largest is what a file promises."""

import numpy as np
import pytest

import workbench as wb
from workbench.archive.collection.grib import half_steps

pytest.importorskip("cfgrib", reason="needs the grib extra")
eccodes = pytest.importorskip("eccodes", reason="needs the grib extra")


def write(path, bits, change=0.0, constant=False, packing="grid_simple"):
    with path.open("wb") as file:
        for step in range(2):
            message = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")
            count = eccodes.codes_get(message, "numberOfPoints")
            values = 280 + np.random.default_rng(step).normal(size=count).cumsum()
            values = np.full(count, 280.0) if constant else values
            for key, value in (("packingType", packing), ("dataDate", 20200101 + step), ("shortName", "2t")):
                eccodes.codes_set(message, key, value)
            if packing == "grid_simple":
                eccodes.codes_set(message, "bitsPerValue", bits)
            eccodes.codes_set_values(message, values + change)
            eccodes.codes_write(message, file)
            eccodes.codes_release(message)
    return path


@pytest.mark.parametrize(("bits", "change", "outcome"), [(10, 0.0, "holds"), (10, 0.5, "broken"), (24, 0.0, "identical")])
def test_a_packed_copy_is_within_half_of_its_step(tmp_path, bits, change, outcome):
    original, lossy = write(tmp_path / "a.grib", 24), write(tmp_path / "b.grib", bits, change)
    row = wb.audit(original, lossy, quick=True)["t2m"]
    assert row.outcome == outcome
    assert outcome == "identical" or row.promise == "GRIB packing in steps of 0.0625"


def test_messages_without_packing_promise_no_step(tmp_path):
    assert half_steps(write(tmp_path / "a.grib", 16, constant=True)) == {}
    assert half_steps(write(tmp_path / "b.grib", 16, packing="grid_ieee")) == {}
    assert half_steps(tmp_path) == {}
