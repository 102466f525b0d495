"""Archives encoded anew: the same values or a stated loss more, with the promise, the certificate and its history."""

import dataclasses

import numpy as np
import pytest

import workbench as wb
from archive import samples
from archive.samples import CODECS, assert_same_bits
from workbench.archive import choice, sharding
from workbench.archive.collection.loss_in_files import state_losses
from workbench.archive.derivation import checksum_of
from workbench.archive.frame import Damaged
from workbench.errors import WorkbenchError

RANDOM = np.random.default_rng(37)
SLICES = wb.PerSlice([wb.Absolute(0.1 + row) for row in range(8)], axis=0)


def gapped(dtype=np.float32):
    values = samples.field((8, 41), dtype)
    values[3:5], values[7, 7] = np.nan, np.inf
    return wb.Field(values, mask=RANDOM.random((8, 41)) < 0.1, name="T", metadata={"units": "K"})


def assert_same_contents(new, old):
    assert (new.layout.shape, new.layout.dtype, new.layout.chunk_shape) == (
        old.layout.shape, old.layout.dtype, old.layout.chunk_shape
    )
    assert_same_bits(new.values(), old.values())


@pytest.mark.parametrize("profile", ["own", "portable"])
@pytest.mark.parametrize("bound", [wb.Absolute(0.01), wb.PointwiseRelative(0.01), SLICES])
def test_a_field_keeps_its_values_and_its_promise(tmp_path, profile, bound):
    if profile == "portable":
        pytest.importorskip("numcodecs")
    original = gapped()
    old = wb.compress(original, bound, "prequantised", chunk_values=300)
    path = old.save(tmp_path / "old.zip")
    new = wb.convert(path, profile=profile, out=tmp_path / "new.zip")
    for name, stored in old.arrays.items():
        assert_same_contents(new.arrays[name], stored)
        assert new.certificate[name].to_dict() == old.certificate[name].to_dict()
    assert new.verify(original).passed
    assert not new.damage()
    assert new.decompress().metadata == old.decompress().metadata
    (made,) = new.certificate.history
    assert (made["archive"], made["checksum"], made["codec"]) == ("old.zip", checksum_of(old.documents), "prequantised")
    assert "pcodec" in made["versions"]
    assert "made from old.zip" in str(new.certificate)
    assert "made from old.zip" in new.certificate._repr_html_()


def test_history_grows_with_each_step():
    archive = wb.compress(samples.field((20, 30), np.float64), wb.Absolute(0.1), "prequantised")
    for _ in range(3):
        archive = wb.convert(archive)
    assert [one["codec"] for one in archive.certificate.history] == ["prequantised", "pcodec", "pcodec"]


@pytest.mark.parametrize("order", ["keep", "free"])
def test_particles_keep_their_order_their_clusters_and_their_columns(order):
    original = dataclasses.replace(samples.particles(600), columns={"Potential": RANDOM.normal(size=600)})
    old = wb.compress(
        original, wb.Absolute(0.05), order=order, keep=wb.KeepClusters(0.3), store_permutation=order == "free",
        columns={"Potential": wb.Relative(1e-3)}, chunk_values=300,
    )
    new = wb.convert(old)
    assert set(new.arrays) == set(old.arrays)
    for name, stored in old.arrays.items():
        assert_same_contents(new.arrays[name], stored)
    assert new.verify(original).passed
    assert new.verify().passed
    assert new.certificate["positions"].keep == old.certificate["positions"].keep
    assert_same_bits(new.read([(0, 5)] * 3).positions, old.read([(0, 5)] * 3).positions)


@pytest.mark.parametrize("codec", ["auto", "sz3", "prequantised", "portable"])
def test_errors_that_are_added_are_promised(codec):
    if codec not in (*CODECS, "auto", "portable", "prequantised"):
        pytest.skip(f"{codec} is not installed")
    original = gapped(np.float64)
    old = wb.compress(original, wb.Absolute(0.01), "staged", chunk_values=300)
    how = {"profile": "portable"} if codec == "portable" else {"codec": codec}
    new = wb.convert(old, extra=0.25, **how)
    promise = new.certificate["values"]
    assert promise.limit.value == pytest.approx(0.0125)
    assert promise.derived.sources[0].checksum == checksum_of(old.documents)
    before, after, valid = old.decompress(), new.decompress(), original.valid
    assert (np.abs(after.values[valid] - before.values[valid]) <= 0.0025).all()
    assert (np.abs(after.values[valid] - original.values[valid]) <= promise.limit.value).all()
    assert_same_bits(after.values[~valid], original.values[~valid])
    assert_same_bits(after.mask, original.mask)
    assert new.verify().passed
    assert "0.25 times its bound" in new.certificate.history[0]["encoding"]


def test_members_of_a_dataset_are_converted_and_exact_ones_stay_exact(tmp_path):
    members = {"T": samples.field((20, 30), np.float32), "n": np.arange(20), "name": np.array(["a", None, "ccc"], object)}
    old = wb.compress(members, {"T": wb.Absolute(0.01), "*": wb.Exact()})
    for how in ({}, {"codec": "prequantised", "extra": 0.5}, {"profile": "portable", "extra": 0.5}):
        if "profile" in how:
            pytest.importorskip("numcodecs")
        new = wb.convert(old, out=tmp_path / "new.zip", overwrite=True, **how)
        assert_same_bits(new["n"].decompress().values, members["n"])
        assert new["name"].decompress().values.tolist() == ["a", None, "ccc"]
        assert new["T"].certificate["values"].limit.value == pytest.approx(0.01 * (1 + how.get("extra", 0)))
        assert new["n"].certificate.history


def test_files_of_an_archive_that_was_encoded_anew_claim_no_rounded_mantissas():
    pytest.importorskip("numcodecs")
    values, bound = samples.field((20, 30), np.float32), wb.PointwiseRelative(1e-3)
    for codec in ("interpolation", "portable"):
        old = wb.compress({"q": values}, {"q": bound}, **({"profile": codec} if codec == "portable" else {"codec": codec}))
        for archive in (old, wb.convert(old, profile="portable")):
            variables = {"q": old.to_xarray()["q"].variable}
            state_losses(variables, {"q": archive["q"]})
            stated = variables["q"].attrs
            assert ("quantization_nsb" in stated) is (codec == "portable" and archive is old)
            assert "quantization_nsb" in stated or stated["lossy_compression_maximum_error"] == 1e-3


def test_many_chunks_are_in_shards_again(monkeypatch):
    monkeypatch.setattr(sharding, "MOST_FILES", 8)
    old = wb.compress(np.arange(30.0), wb.Absolute(0.1), "prequantised", chunks=1)
    new = wb.convert(old)
    assert new.data.layout.shard_shape == old.data.layout.shard_shape is not None
    assert_same_contents(new.data, old.data)


@pytest.mark.parametrize(("how", "words"), [
    ({"codec": "prequantised"}, "without extra errors"), ({"extra": -1}, "extra must"), ({"extra": "much"}, "extra must"),
    ({"codec": "nothing"}, "codec must"), ({"profile": "all"}, "profile must"), ({"codec": "fast"}, None),
])
def test_wrong_arguments_are_refused(how, words):
    old = wb.compress(samples.field((20, 30), np.float32), wb.Absolute(0.01), "staged")
    if words is None:
        assert_same_contents(wb.convert(old, **how).data, old.data)
        return
    with pytest.raises(WorkbenchError, match=words):
        wb.convert(old, **how)


def test_what_cannot_take_more_errors_is_refused():
    relative = wb.compress(samples.field((20, 30), np.float32) + 9, wb.PointwiseRelative(0.01), "prequantised")
    with pytest.raises(WorkbenchError, match="relative to each value"):
        wb.convert(relative, extra=0.1)
    for how in ({"extra": 0.1}, {"profile": "portable"}):
        with pytest.raises(WorkbenchError, match="particles are encoded anew without loss"):
            wb.convert(wb.compress(samples.particles(100), wb.Absolute(0.1)), **how)
    with pytest.raises(WorkbenchError):
        wb.convert("no-such-archive.zip")


def test_bounds_of_values_that_are_stored_as_others_take_no_more_errors():
    members = {"c": np.arange(20) * (1 + 1j), "h": np.arange(20, dtype=np.float16)}
    old = wb.compress(members, wb.Absolute(0.5))
    with pytest.raises(WorkbenchError, match="have a bound of their own") as refused:
        wb.convert(old, extra=0.5)
    assert refused.value.__notes__ == ["This is about 'c'."]
    assert wb.convert(old).verify(members).passed


def test_nan_beyond_the_sample_is_kept_by_portable_archives(monkeypatch):
    pytest.importorskip("numcodecs")
    monkeypatch.setattr(choice, "SAMPLED", 1000)
    values = np.linspace(0, 99, 3000)
    values[0] = np.nan
    old = wb.compress(values, wb.Absolute(0.01), "staged")
    new = wb.convert(old, profile="portable", extra=0.5)
    decoded = new.decompress().values
    assert new.codec.scale is None
    assert np.isnan(decoded[0])
    assert np.nanmax(np.abs(decoded - values)) <= 0.015


def test_the_price_of_an_earlier_profile_is_forgotten():
    pytest.importorskip("numcodecs")
    old = wb.compress(samples.field((20, 30), np.float32), wb.Absolute(0.01), profile="portable")
    assert "own_bytes" in old.certificate["values"].figures
    assert "own_bytes" not in wb.convert(old).certificate["values"].figures


def test_a_damaged_archive_is_not_converted(tmp_path):
    path = wb.compress(samples.field((20, 30), np.float32), wb.Absolute(0.01), "prequantised").save(tmp_path / "x.zarr")
    place = path / "values" / "c" / "0" / "0"
    place.write_bytes(place.read_bytes()[:-1])
    with pytest.raises(WorkbenchError, match="damaged"):
        wb.convert(path, out=tmp_path / "y.zip")
    assert not (tmp_path / "y.zip").exists()


def test_a_codec_that_refuses_says_which_version_wrote_the_archive(monkeypatch):
    from workbench.codecs.prequantised import Prequantised

    def refuse(self, data, shape, dtype):
        raise ValueError("this stream is of the past")

    archive = wb.compress(samples.field((20, 30), np.float32), wb.Absolute(0.01), "prequantised")
    monkeypatch.setattr(Prequantised, "_decode_piece", refuse)
    with pytest.raises(Damaged, match=r"of the past \(it was written with lossbench 0.1.0, numpy .*, which are installed"):
        archive.decompress()
