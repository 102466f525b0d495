"""Every planted defect is found, named as what it is, and none is found in a good copy."""

import pytest

import workbench as wb

xr = pytest.importorskip("xarray")
from audit.planted import BOUNDS, DEFECTS, good_copy, small_dataset  # noqa: E402

HARMLESS = {"dimension order"}   # of which values are as promised


@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_is_found_and_named(name):
    plant, kind, member = DEFECTS[name]
    original = small_dataset()
    found = wb.audit(original, plant(good_copy(original)), BOUNDS)
    assert [one for one in found.findings if (one.kind, one.member) == (kind, member)], found
    assert found.passed == (kind in HARMLESS), found


def test_a_good_copy_passes():
    original = small_dataset()
    found = wb.audit(original, good_copy(original), BOUNDS)
    assert found.passed, found
    assert not found.findings, found
    assert [found[name].outcome for name in ("T", "q", "sst", "lat")] == ["holds"] * 3 + ["identical"]
