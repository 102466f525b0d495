"""`archive.preview`: some of the points, and the same values as after decoding all."""

import itertools

import numpy as np
import pytest

import workbench as wb
from workbench.archive.frame import Damaged
from workbench.codecs import CodecFailed, Tolerance, get
from workbench.codecs.interpolation_encoding import Encoding
from workbench.codecs.pieces import join
from workbench.codecs.prequantised import lattice_step
from workbench.errors import WorkbenchError


def field(shape, dtype=np.float32):
    values = np.cumsum(np.random.default_rng(len(shape)).normal(size=shape), axis=-1).astype(dtype)
    return wb.Field(values, spacing=0.5, name="T", metadata={"units": "K"})


@pytest.mark.few
@pytest.mark.parametrize("codec", ["interpolation", "prequantised", "staged"])
@pytest.mark.parametrize(("shape", "chunk"), [((300,), 77), ((41, 60), 700), ((19, 24, 22), 2500), ((5, 6, 17, 20), 900)])
def test_a_preview_has_the_values_of_the_whole(codec, shape, chunk):
    original = field(shape)
    archive = wb.compress(original, wb.Absolute(0.05), codec, chunk_values=chunk)
    whole = archive.decompress().values
    for level in (0, 1, 2, 3, 6):
        found = archive.preview(level)
        np.testing.assert_array_equal(found.values, whole[(slice(None, None, 2**level),) * len(shape)])
        assert found.spacing == (0.5 * 2**level,) * len(shape)
        assert (found.name, found.metadata["units"]) == ("T", "K")


@pytest.mark.parametrize("bound", [wb.Relative(1e-3), wb.PointwiseRelative(1e-2), wb.Absolute(0)], ids=repr)
def test_masked_and_corrected_values_are_part_of_it(bound):
    values = field((50, 60)).values + 100
    values = values.copy()
    values[10, :], values[20, 20], values[24, 24] = np.nan, np.inf, 1e30
    given = wb.Field(values, mask=np.arange(3000).reshape(50, 60) % 7 == 0)
    archive = wb.compress(given, bound, "interpolation", chunk_values=700)
    whole, found = archive.decompress(), archive.preview(1)
    np.testing.assert_array_equal(found.values, whole.values[::2, ::2])
    np.testing.assert_array_equal(found.mask, whole.mask[::2, ::2])


def test_only_the_coarse_points_are_decoded():
    values = field((64, 64, 64)).values
    codec, tolerance = get("interpolation"), Tolerance(absolute=0.05)
    step = lattice_step(0.05, float(np.abs(values).max()), values.dtype)
    code = Encoding.of(values, (), 12, 0.05, step).to_bytes()   # whether a lattice is smaller or not
    data = join("interpolation", [code], values.shape, values.dtype, 2**28)
    coarse = codec.coarse(4).decode(data, values.shape, values.dtype)
    places = np.zeros(values.shape, bool)
    places[::4, ::4, ::4] = True
    assert (coarse[places] == codec.decode(data, values.shape, values.dtype)[places]).all()
    assert np.count_nonzero(coarse[~places]) < 4096   # a block holds several small passes
    with pytest.raises(CodecFailed, match="only decodes"):
        codec.coarse(4).encode(values, tolerance)


def test_damage_is_found_in_a_preview(tmp_path):
    path = wb.compress(field((60, 70)), wb.Absolute(0.01), "interpolation").save(tmp_path / "a.zarr")
    (chunk,) = [file for file in path.rglob("*") if file.is_file() and file.parts[-3:-1] == ("c", "0")]
    data = bytearray(chunk.read_bytes())
    data[len(data) // 2] ^= 1
    chunk.write_bytes(data)
    with pytest.raises(Damaged):
        wb.open(path).preview(1)


def test_what_has_no_preview_is_refused():
    particles = wb.compress(wb.Particles(np.random.default_rng(0).random((50, 3))), wb.Absolute(0.01))
    with pytest.raises(WorkbenchError, match="only fields have a preview"):
        particles.preview()
    archive = wb.compress(field((30, 30)), wb.Absolute(0.1))
    for level in (-1, 0.5, "2", 31):
        with pytest.raises(WorkbenchError, match="level"):
            archive.preview(level)
    assert [archive.preview(level).values.size for level in itertools.chain(range(3), [30])] == [900, 225, 64, 1]
