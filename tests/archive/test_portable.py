"""Portable archives: what somebody reads who has zarr-python and xarray, and no package of ours."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from archive.samples import assert_same_bits, field
from workbench.archive import choice, portable, sharding
from workbench.archive.frame import Damaged
from workbench.codecs import Tolerance
from workbench.codecs.portable import OffLattice, Portable
from workbench.errors import WorkbenchError

xarray = pytest.importorskip("xarray")
pytest.importorskip("zarr")
pytest.importorskip("numcodecs")

RANDOM = np.random.default_rng(37)
WALK = RANDOM.normal(size=(37, 41)).cumsum(0).cumsum(1)
MASK = RANDOM.random((37, 41)) < 0.2


def with_nan(dtype):
    values = WALK.astype(dtype)
    values[3:5, 7:] = np.nan
    values[0, 0], values[1, 1] = np.inf, -0.0
    return values


def filled(dtype):
    return wb.Field(np.where(MASK, 1e20, WALK).astype(dtype), mask=MASK, metadata={"units": "K"})


BOUNDS = [wb.Absolute(10.0**-k) for k in range(4)]
CASES = {
    **{f"nan-{dtype}": (with_nan(dtype), wb.Absolute(0.01)) for dtype in ("f4", "f8")},
    **{f"fill-{dtype}": (filled(dtype), wb.Relative(1e-3)) for dtype in ("f4", "f8")},
    **{f"lattice-{dtype}": (WALK.astype(dtype), wb.Absolute(0.01)) for dtype in ("f4", "f8")},
    "pointwise": (np.exp(WALK).astype("f4"), wb.PointwiseRelative(1e-3)),
    "subnormal": ((WALK * 1e-40).astype("f4"), wb.PointwiseRelative(1e-3)),
    "exact": (with_nan("f4"), wb.Exact()),
    "outlier": (np.where(np.arange(70_000) == 17, 1e30, 1.5), wb.Absolute(1e-3)),
    "near-infinity": (np.full(50, np.finfo("f4").max), wb.Absolute(1e37)),
    "one": (np.array([3.7]), wb.Absolute(0.1)),
    "slices": (WALK[:4].astype("f4"), wb.PerSlice(BOUNDS, axis=0)),
    "counts": ((WALK * 1e3).astype("i4"), wb.Absolute(5)),
    "bytes": (np.arange(256, dtype="u1"), wb.Absolute(3)),
    "ids": (np.arange(1000, dtype="i8") ** 3, wb.Exact()),
}


def ocean():
    random = np.random.default_rng(38)
    return xarray.Dataset(
        {
            "T": (("time", "lat", "lon"), WALK[:36].reshape(4, 9, 41).astype("f4"), {"units": "K", "valid_min": -9.5}),
            "ice": (("lat", "lon"), with_nan("f4")[:9]),
            "basin": (("lat", "lon"), random.integers(0, 5, (9, 41)), {"flag_values": [0, 1, 2, 3, 4]}),
            "open": (("lat",), np.arange(9) % 2 == 0),
        },
        {
            "time": np.arange("2026-01", "2026-05", dtype="M8[M]").astype("M8[ns]"), "lat": np.linspace(-60, 60, 9),
            "area": (("lat", "lon"), random.random((9, 41))),
        },
        {"title": "an ocean"},
    )


RULES = {"T": wb.Absolute("0.01 K"), "ice": wb.Relative(1e-3), "*": wb.Exact()}


@pytest.fixture(scope="module")
def read_by_zarr(tmp_path_factory):
    """What a process finds in all archives of this file that has no package of ours, by their names."""
    folder, suffixes = tmp_path_factory.mktemp("portable"), (".zarr", ".zip")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(portable, "_own", lambda *given: ("another codec", 1.0))   # takes longer than all else
        for number, (name, (source, bound)) in enumerate(CASES.items()):
            archive = wb.compress(source, bound, profile="portable", chunk_values=(500, None)[number % 2])
            archive.save(folder / f"{name}{suffixes[number % 2]}")
        collection = wb.compress(ocean(), RULES, profile="portable", chunks={"lat": 4})
        for suffix in suffixes:
            collection.save(folder / f"ocean{suffix}")
        patch.setattr(sharding, "MOST_FILES", 8)
        wb.compress(WALK[0], wb.Absolute(0.1), profile="portable", chunks=1).save(folder / "shards.zip")
    program = Path(__file__).with_name("plain_reader.py")
    run = subprocess.run([sys.executable, "-I", str(program), str(folder)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr

    def found(name):
        (file,) = folder.glob(f"{name}.npz") if "." in name else folder.glob(f"{name}.*.npz")
        return dict(np.load(file)), wb.open(str(file)[: -len(".npz")], isolate=False)

    return found


@pytest.mark.long_with("nan-f4")
@pytest.mark.parametrize("name", CASES)
def test_values_are_in_their_bound_without_the_package(read_by_zarr, name):
    source, bound = CASES[name]
    found, archive = read_by_zarr(name)
    decoded = archive.decompress()
    assert_same_bits(found["zarr values"], decoded.values)
    assert archive.verify(source).passed
    assert not archive.damage()
    if decoded.mask is not None:
        assert_same_bits(found["zarr mask"], MASK)
        assert_same_bits(found["zarr values"][MASK], source.values[MASK])
        assert (np.isnan(found["xarray values"]) == MASK).all()
        assert found["units values"] == "K"
    elif isinstance(bound, wb.Absolute):
        finite = np.isfinite(source.astype("f8"))
        errors = np.abs(found["zarr values"][finite].astype("f8") - source[finite].astype("f8"))
        assert (errors <= bound.eb).all()
        assert_same_bits(found["zarr values"][~finite], source[~finite])


def test_a_chunk_in_a_shard_is_read_without_the_package(read_by_zarr):
    found, archive = read_by_zarr("shards")
    assert archive.data.layout.shard_shape is not None
    assert_same_bits(found["zarr values"], archive.decompress().values)


@pytest.mark.parametrize("name", ["ocean.zarr", "ocean.zip"])
def test_a_dataset_is_one_to_xarray_alone(read_by_zarr, name):
    found, archive = read_by_zarr(name)
    wanted = ocean()
    assert found["coordinates"].tolist() == ["area", "lat", "time"]
    for own in ("basin", "open", "time", "lat", "area"):
        assert_same_bits(found[f"xarray {own}"], wanted[own].values)
    assert (np.abs(found["xarray T"] - wanted["T"].values) <= 0.01).all()
    assert found["units T"] == "K"
    assert (np.isnan(found["xarray ice"]) == np.isnan(wanted["ice"].values)).all()
    assert archive.verify(wanted).passed
    assert not archive.damage()
    xarray.testing.assert_allclose(archive.to_xarray().drop_vars("ice"), wanted.drop_vars("ice"), atol=0.01)


def test_the_price_is_stated():
    archive = wb.compress(field((64, 64), np.float32), wb.Absolute(0.01), profile="portable")
    said = archive.certificate.choice
    assert "which only lossbench reads" in said
    assert "times as much" in said


def test_an_array_with_coordinates_brings_them():
    array = ocean()["T"]
    archive = wb.compress(array, wb.Absolute(0.01), profile="portable")
    assert set(archive) == {"T", "time", "lat", "area"}
    assert archive.verify(array.to_dataset()).passed


def test_nan_beyond_the_sample_needs_rounding_in_place_of_a_lattice(tmp_path, monkeypatch):
    monkeypatch.setattr(choice, "SAMPLED", 1000)
    values = np.linspace(0, 99, 3000)
    values[0] = np.nan
    np.save(tmp_path / "x.npy", values)
    archive = wb.compress(tmp_path / "x.npy", wb.Absolute(0.01), profile="portable", chunk_values=500)
    assert archive.codec.scale is None
    assert "cannot hold all values" in archive.certificate.choice
    assert archive.verify(values).passed


def test_what_the_profile_cannot_do_is_refused():
    values, bound = WALK, wb.Absolute(0.1)
    for options, words in [
        ({"codec": "sz3"}, "chooses the codec"), ({"speed": "fast"}, "chooses the codec"),
        ({"profile": "all"}, "profile must"), ({"keep": wb.Safeguard("sign")}, "keeps bounds alone"),
    ]:
        with pytest.raises(WorkbenchError, match=words):
            wb.compress(values, bound, **{"profile": "portable", **options})
    with pytest.raises(WorkbenchError, match="got particles"):
        wb.compress(wb.Particles(RANDOM.random((10, 3))), bound, profile="portable")
    with pytest.raises(WorkbenchError, match="at most 134,217,728 values"):
        Portable().in_chunks((2**28,))
    with pytest.raises(WorkbenchError, match=r"'halos': .*got particles"):
        wb.compress({"halos": wb.Particles(RANDOM.random((10, 3)))}, bound, profile="portable")


def test_a_damaged_chunk_is_found_and_the_others_are_kept(tmp_path):
    archive = wb.compress(WALK, wb.Absolute(0.01), profile="portable", chunk_values=500)
    path = archive.save(tmp_path / "x.zarr")
    place = path / "values" / "c" / "0" / "0"
    data = bytearray(place.read_bytes())
    data[-1] ^= 0x5A
    place.write_bytes(data)
    damaged = wb.open(path, isolate=False)
    with pytest.raises(Damaged, match="values/c/0/0"):
        damaged.decompress()
    assert [one.where for one in damaged.damage()] == ["values/c/0/0"]
    rest, _ = damaged.salvage()
    shown = ~rest.mask
    assert shown.any()
    assert (np.abs(rest.values - WALK)[shown] <= 0.01).all()


def test_documents_that_contradict_the_codec_are_refused(tmp_path):
    archive = wb.compress(WALK, wb.Absolute(0.01), profile="portable")
    layout = archive.data.layout
    stated = layout.metadata()
    assert type(layout).from_metadata("values", stated) == layout
    for change in (
        {"codecs": stated["codecs"][1:]}, {"codecs": [{"name": "gzip", "configuration": {"level": 1}}]},
        {"codecs": [*stated["codecs"][:-1], {"name": "blosc", "configuration": {}}]},
        {"attributes": {}}, {"attributes": {**stated["attributes"], "lossbench:codec": {"codec": {"id": "portable"}}}},
        {"attributes": {**stated["attributes"], "lossbench:codec": {"codec": {"id": "portable", "chunk": [2**40, 2]}}}},
        {"attributes": {**stated["attributes"], "lossbench:codec": {"codec": {"id": "sz3"}}}},
        {"attributes": {**stated["attributes"], "lossbench:codec": [1]}},
    ):
        with pytest.raises(WorkbenchError, match=r"values in zarr.json"):
            type(layout).from_metadata("values", {**json.loads(json.dumps(stated)), **change})


def test_a_chunk_that_is_larger_than_its_array_is_refused_before_it_is_decoded():
    layout = wb.compress(np.arange(10.0), wb.Absolute(0.01), profile="portable").data.layout
    stated = json.loads(json.dumps(layout.metadata()))
    stated["chunk_grid"]["configuration"]["chunk_shape"] = [2**27]
    stated["attributes"]["lossbench:codec"]["codec"]["chunk"] = [2**27]
    with pytest.raises(WorkbenchError, match="must not be larger than the array"):
        type(layout).from_metadata("values", stated)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("delta", [False, True])
def test_our_decoder_does_what_numcodecs_does(dtype, delta):
    from numcodecs import Delta, FixedScaleOffset, blosc

    values = WALK.astype(dtype)
    codec = Portable(scale=49.7, delta=delta, shuffle="bitshuffle").in_chunks(values.shape)
    data = codec.encode(values, Tolerance(absolute=0.02))
    numbers = np.frombuffer(blosc.decompress(data), "<i4")
    numbers = Delta("<i4").decode(numbers) if delta else numbers
    wanted = FixedScaleOffset(offset=0, scale=49.7, dtype=f"<{dtype}", astype="<i4").decode(numbers)
    assert_same_bits(codec.decode(data, values.shape, dtype), wanted.reshape(values.shape))


def test_a_lattice_refuses_what_it_cannot_hold():
    lattice = Portable(scale=2.0)
    for values in (np.array([np.nan]), np.array([1e30]), np.array([-np.inf])):
        with pytest.raises(OffLattice):
            lattice.encode(values, Tolerance(absolute=1.0))
    with pytest.raises(OffLattice):
        lattice.encode_with_gaps(np.ones(3), np.array([True, False, True]), Tolerance(absolute=1.0))
    assert dataclasses.replace(lattice, delta=True).rounding() == Portable()


def test_bytes_are_the_same_for_any_number_of_threads():
    values = RANDOM.normal(size=2**19)
    from numcodecs import blosc

    before, found = blosc.get_nthreads(), set()
    try:
        for threads in (1, 2, 8):
            blosc.set_nthreads(threads)
            found.add(Portable(level=1).encode(values, Tolerance(absolute=0.1)))
    finally:
        blosc.set_nthreads(before)
    assert len(found) == 1
