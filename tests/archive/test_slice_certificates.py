"""What an archive states of the limits of slices: little, all of it, and nothing that `verify` would not find out."""

import numpy as np
import pytest

import workbench as wb
from archive.samples import from_parts, parts, reopened, resealed
from archive.slices import layers, limit_of
from workbench.archive.key import ROOT
from workbench.errors import GuaranteeBroken, WorkbenchError


def test_the_document_has_one_number_for_each_slice(tmp_path):
    field = wb.Field(np.random.default_rng(0).normal(size=(600, 4)) * np.arange(1, 601)[:, None])
    archive = reopened(wb.compress(field, wb.PerSlice(wb.Relative(0.1), 0), "pcodec"), tmp_path / "a.zip")
    one = wb.compress(field, wb.Relative(0.1), "pcodec", chunks=(1, -1))
    assert len(archive.store.read(ROOT)) - len(one.store.read(ROOT)) < 13 * 600
    assert archive.certificate["values"].limit.values == [limit_of(row, True, wb.Relative(0.1)) for row in field.values]
    assert len(str(archive.certificate)) < 1000
    assert archive.verify(field).passed


def test_figures_compare_each_error_with_the_limit_of_its_slice():
    field = wb.Field(layers())
    archive = wb.compress(field, wb.PerSlice(wb.Relative(0.01), 0))
    promise, decoded = archive.certificate["values"], archive.decompress()
    errors = np.abs(decoded.values.astype("f8") - field.values.astype("f8")).max(axis=(1, 2))
    assert promise.figures["largest_share_of_limit"] == pytest.approx((errors / promise.limit.values).max(), rel=1e-6)
    report = archive.verify(field)
    (held,) = [check for check in report.checks if check.name == "values_largest_share_of_limit"]
    assert held.value == promise.figures["largest_share_of_limit"] <= held.limit == 1


def with_promise(archive, **changes):
    """The archive with another promise, by someone who knows about checksums."""
    def change(root):
        root["attributes"]["certificate"]["promises"][0].update(changes)

    return from_parts(resealed(parts(archive), ROOT, change))


def forged_limit(archive, others):
    """The archive with other limits of some slices."""
    limit = archive.certificate["values"].limit.to_dict()
    return with_promise(archive, limit={**limit, "values": [others.get(i, v) for i, v in enumerate(limit["values"])]})


def test_a_wrong_limit_of_any_slice_breaks_the_guarantee():
    field = wb.Field(layers())
    archive = wb.compress(field, wb.PerSlice(wb.Relative(0.01), 0))
    exact = archive.certificate["values"].limit.values
    for number in range(6):
        for other in (exact[number] * 2, np.nextafter(exact[number], np.inf), 0.0):
            forged = forged_limit(archive, {number: float(other)})
            with pytest.raises(GuaranteeBroken, match=f"in slice {number} along axis 0"):
                forged.verify(field)
    for forged in (
        with_promise(archive, limit={"kind": "absolute", "axis": 0, "values": exact[:-1]}),
        with_promise(archive, limit={"kind": "absolute", "axis": 0, "values": [*exact, 1.0]}),
        with_promise(archive, limit={"kind": "absolute", "value": 1e9}),
        with_promise(archive, limit={"kind": "absolute", "axis": 7, "values": exact}),
        with_promise(archive, bound={"kind": "absolute", "eb": 1e9}),
        with_promise(archive, bound={"kind": "per-slice", "axis": 1, "bounds": {"kind": "relative", "eb": 0.01}}),
        with_promise(archive, bound=None, limit={"kind": "absolute", "axis": 0, "values": [0.0] * 6}),
        with_promise(archive, bound={"kind": "per-slice", "axis": 0, "bounds": {"kind": "absolute", "eb": [1.0, 2.0]}}),
    ):
        with pytest.raises((GuaranteeBroken, WorkbenchError)):
            forged.verify(field)


@pytest.mark.parametrize("changes", [
    {"limit": {"kind": "absolute", "axis": -1, "values": [1.0]}},
    {"limit": {"kind": "absolute", "axis": 0, "values": ["a"]}},
    {"limit": {"kind": ["absolute"], "axis": 0, "values": [1.0, 2.0]}},
    {"limit": {"kind": "absolute", "values": [1.0]}},
    {"limit": {"kind": "absolute", "axis": 0, "values": []}},
    {"limit": {"kind": "absolute", "axis": 0, "values": 3}},
    {"bound": {"kind": "per-slice"}},
    {"bound": {"kind": "per-slice", "axis": "x", "bounds": {"kind": "absolute", "eb": 1.0}}},
    {"bound": {"kind": "per-slice", "axis": 0, "bounds": {"kind": "per-slice", "eb": 1.0}}},
    {"bound": {"kind": "per-slice", "axis": 0, "bounds": 3}},
    {"bound": {"kind": "per-slice", "axis": 0, "bounds": {"kind": "absolute", "eb": []}}},
])
def test_forged_certificates_end_in_a_sentence(changes):
    archive = wb.compress(layers(), wb.PerSlice(wb.Relative(0.01), 0))
    with pytest.raises(WorkbenchError):
        print(with_promise(archive, **changes).certificate)


def test_a_value_beyond_the_limit_of_its_slice_breaks_the_guarantee():
    field = wb.Field(layers(dtype="f8"))
    archive = wb.compress(field, wb.PerSlice(wb.Relative(0.01), 0))
    limits, decoded = archive.certificate["values"].limit.values, archive.decompress().values
    values = field.values.copy()
    for number in (0, 5):
        changed = values.copy()
        inside = np.argsort(changed[number].ravel())[300]   # neither end: the range stays
        flat = changed[number].reshape(-1)
        flat[inside] = decoded[number].reshape(-1)[inside] + 1.001 * limits[number]
        with pytest.raises(GuaranteeBroken, match="1 of 3,720 values of values break the promise"):
            archive.verify(wb.Field(changed))
    with pytest.raises(GuaranteeBroken, match="in slice 3 along axis 0"):
        archive.verify(wb.Field(np.where(np.arange(6)[:, None, None] == 3, 2 * values, values)))
