"""What `wb.compress` refuses before any work, and what it takes as the same thing."""

import re
from dataclasses import dataclass

import numpy as np
import pytest

import workbench as wb
from archive import samples
from archive.samples import assert_same_bits, registered
from workbench import codecs
from workbench.errors import WorkbenchError


class Untouched(codecs.Codec):
    """A codec that must not be asked for anything."""

    id = "untouched"
    title = "Never called"

    def _encode(self, values, tolerance):
        raise AssertionError("work was done")

    _decode = _encode


def nested(depth):
    found = {}
    for _ in range(depth):
        found = {"a": found}
    return found


@pytest.mark.parametrize(("metadata", "said"), [
    ({"text": "x" * 2**24}, "metadata must fit into 8,388,608 bytes as JSON; got 16,777,"),
    (nested(70), "metadata must be nested at most 64 deep"),
])
@pytest.mark.parametrize("make", [
    lambda metadata: wb.Field(samples.field(), metadata=metadata),
    lambda metadata: wb.Particles(samples.particles(20).positions, 10.0, metadata=metadata),
])
def test_metadata_that_cannot_be_stored_are_refused_before_the_work(make, metadata, said):
    with registered(Untouched), pytest.raises(WorkbenchError, match=said):
        wb.compress(make(metadata), wb.Absolute(0.1), Untouched())


@pytest.mark.parametrize("chunk_values", [1e6, float("nan"), "10", 0, -3, [10], True])
@pytest.mark.parametrize("data", [samples.particles(20), samples.field()], ids=["particles", "field"])
def test_chunk_values_must_be_a_whole_number(data, chunk_values):
    with pytest.raises(WorkbenchError, match=f"chunk_values must be a whole number.*got {re.escape(repr(chunk_values))}"):
        wb.compress(data, wb.Absolute(0.1), chunk_values=chunk_values)


def test_a_whole_number_of_numpy_will_do():
    assert wb.compress(samples.field(), wb.Absolute(0.1), chunk_values=np.int32(100)).data.layout.chunk_count == 8


def test_one_promise_needs_no_list_and_none_is_none():
    snapshot = samples.particles(100)
    keep = wb.KeepClusters(0.2)
    one, several = (wb.compress(snapshot, wb.Absolute(0.1), keep=given) for given in (keep, [keep]))
    assert one.certificate == several.certificate
    assert wb.compress(snapshot, wb.Absolute(0.1), keep=None).certificate["positions"].keep == ()


@pytest.mark.parametrize("keep", [3, "clusters", 0.2])
def test_what_is_no_promise_is_refused_in_a_sentence(keep):
    with pytest.raises(WorkbenchError, match=r"keep must be wb\.KeepClusters"):
        wb.compress(samples.particles(100), wb.Absolute(0.1), keep=keep)


@pytest.mark.parametrize("codec", [[], ["sz3"], {}, 3, None, b"sz3"])
def test_what_is_no_codec_is_refused_in_a_sentence(codec):
    with pytest.raises(WorkbenchError, match="codec must be one of lattice, interpolation, sz3"):
        wb.compress(samples.field(), wb.Absolute(0.1), codec)


@pytest.mark.parametrize("bound", [wb.Absolute, wb.Relative, wb.PointwiseRelative])
@pytest.mark.parametrize("eb", [10**400, -(10**400)])
def test_bounds_beyond_the_range_of_floats_are_refused_in_a_sentence(bound, eb):
    with pytest.raises(WorkbenchError, match="must be finite"):
        bound(eb)


# Velocities.

@pytest.mark.parametrize(("codec", "used"), [("auto", "prequantised"), ("lattice", "prequantised"), ("pcodec", "pcodec"),
                                             ("sz3", "sz3"), ("zfp", "zfp"), ("draco", "prequantised")])
def test_velocities_are_coded_by_the_codec_asked_for_or_by_one_that_every_machine_has(codec, used):
    if not {codec, used} <= {"auto", *samples.CODECS}:
        pytest.skip(f"{codec} is not installed")
    snapshot = samples.particles(100)
    archive = wb.compress(snapshot, wb.Absolute(0.1), codec, velocities=wb.Absolute(1))
    assert archive.arrays["velocities"].codec.codec.id == used
    assert archive.verify(snapshot).passed


# A codec that learns from the whole.

@dataclass(frozen=True)
class Taught(codecs.Codec):
    """Stores differences from a template that it learned from the whole field: its first row."""

    id = "taught"
    title = "Differences from a template"
    contained = True
    template: str = codecs.option("", "the template, as hexadecimal float64")

    def fitted(self, values, tolerance):
        return Taught(values[0].astype("<f8").tobytes().hex())

    def _encode(self, values, tolerance):
        steps = np.rint((values - self._rows(values)) / (2 * tolerance.value))
        return tolerance.value.hex().encode() + b" " + steps.astype("<i4").tobytes()

    def _decode(self, data, shape, dtype):
        size, _, steps = data.partition(b" ")
        steps = np.frombuffer(steps, "<i4").reshape(shape)
        return (steps * 2 * float.fromhex(size.decode()) + self._rows(steps)).astype(dtype)

    def _rows(self, values):
        return np.frombuffer(bytes.fromhex(self.template), "<f8")[: values.shape[-1]]


def test_a_codec_learns_from_the_whole_field_and_every_reader_gets_what_it_learned(tmp_path):
    zarr = pytest.importorskip("zarr")
    row = np.linspace(0, 1000, 64) ** 1.5
    field = np.tile(row, (40, 1)) + np.random.default_rng(0).normal(size=(40, 64)) * 0.01
    with registered(Taught):
        archive = wb.compress(field, wb.Absolute(0.1), Taught(), chunk_values=40 * 16)
        assert archive.data.layout.chunk_count > 2
        assert archive.codec.template == field[0].tobytes().hex()
        path = archive.save(tmp_path / "some.zarr")
        decoded = wb.open(path).decompress().values
        assert abs(decoded - field).max() <= 0.1
        assert archive.certificate["values"].figures["chunks_stored_exactly"] == {}
        assert_same_bits(zarr.open_group(path, mode="r")["values"][:], decoded)
        assert wb.open(path).verify(field).passed


def test_columns_hand_the_whole_to_the_codec_inside():
    seen = []

    class Watching(Untouched):
        id = "watching"

        def fitted(self, values, tolerance):
            seen.append(values.tolist())
            return self

    codecs.Columns(Watching()).fitted(np.array([[1.0, 2.0], [3.0, 4.0]]), codecs.Tolerance(absolute=0.1))
    assert seen == [[1.0, 3.0, 2.0, 4.0]]


@pytest.mark.parametrize("trait", ["lossless", "relative", "finite", "holds_gil", "on_device", "dtypes", "chunk_values"])
def test_columns_have_the_traits_of_the_codec_inside_and_the_class_those_of_any(trait):
    assert getattr(codecs.Columns, trait) == getattr(codecs.Codec, trait)
    for name in ("pcodec", "prequantised"):
        inner = codecs.get(name)
        assert getattr(codecs.Columns(inner), trait) == getattr(inner, trait)


def test_a_plug_in_whose_order_is_that_of_a_polynomial_keeps_it():
    @dataclass(frozen=True)
    class Polynomial(codecs.ParticleCodec):
        id = "polynomial"
        title = "Points along polynomials"
        order: int = codecs.option(3, "of the polynomial", minimum=1, maximum=9)

        def _encode(self, values, tolerance):
            return values.tobytes()

        def _decode(self, data, shape, dtype):
            return np.frombuffer(data, dtype).reshape(shape).copy()

    snapshot = samples.particles(60)
    with registered(Polynomial):
        for order in ("keep", "free"):
            archive = wb.compress(snapshot, wb.Absolute(0.1), Polynomial(), order=order)
            assert archive.codec.order == 3
            assert archive.verify(snapshot).passed
            assert len(archive.read([(0, 5)] * 3)) > 0
