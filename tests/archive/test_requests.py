"""What `wb.compress` refuses before any work, and what it takes as the same thing."""

import re
from dataclasses import dataclass

import numpy as np
import pytest

import workbench as wb
from archive import samples
from archive.samples import registered
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
