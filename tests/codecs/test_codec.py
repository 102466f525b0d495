import importlib.metadata
import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from workbench.codecs import Codec, CodecFailed, ParticleCodec, Tolerance, option
from workbench.codecs.registry import _OWN, codec_class
from workbench.errors import WorkbenchError


@dataclass(frozen=True)
class Raw(Codec):
    id: ClassVar[str] = "raw"
    title: ClassVar[str] = "The bytes themselves"

    mode: str = option("plain", "what to do", choices=("plain", "raise", "reshape", "retype", "none", "list", "refuse"))
    level: int = option(3, "how hard", minimum=0, maximum=9)
    share: float = option(0.5, "how much", minimum=0.0, maximum=1.0)
    bits: int | None = option(None, "how many", minimum=1, maximum=8)

    def _encode(self, values, tolerance):
        if self.mode == "raise":
            raise ZeroDivisionError("by nothing")
        if self.mode == "refuse":
            raise WorkbenchError("not today")
        return memoryview(values.tobytes())

    def _decode(self, data, shape, dtype):
        if len(data) != np.prod(shape) * dtype.itemsize:
            raise OSError("too short")
        values = np.frombuffer(data, dtype).reshape(shape)
        made = {"reshape": values.reshape(-1), "retype": values.astype("f2"), "none": None, "list": values.tolist()}
        return made.get(self.mode, values)


VALUES = np.arange(6.0).reshape(2, 3)
EXACT = Tolerance(absolute=0.0)


def test_a_plain_codec_gives_bytes_and_takes_anything_like_bytes():
    data = Raw().encode(VALUES, EXACT)
    assert type(data) is bytes
    for given in (data, bytearray(data), memoryview(data)):
        assert (Raw().decode(given, [np.int64(2), 3], "f8") == VALUES).all()


def test_what_a_codec_raises_becomes_one_sentence():
    with pytest.raises(CodecFailed, match=r"raw could not encode float64 of shape \(2, 3\): ZeroDivisionError: by nothing"):
        Raw(mode="raise").encode(VALUES, EXACT)
    with pytest.raises(CodecFailed, match=r"raw could not decode: OSError: too short"):
        Raw().decode(b"123", (2, 3), "f8")


def test_what_a_codec_refuses_stays_its_own_sentence():
    with pytest.raises(WorkbenchError, match=r"^not today$") as raised:
        Raw(mode="refuse").encode(VALUES, EXACT)
    assert raised.type is WorkbenchError


@pytest.mark.parametrize("mode", ["reshape", "retype", "none", "list"])
def test_a_codec_that_returns_something_else_has_failed(mode):
    with pytest.raises(CodecFailed, match=r"raw must decode to float64 of shape \(2, 3\); got"):
        Raw(mode=mode).decode(Raw().encode(VALUES, EXACT), (2, 3), "f8")


@pytest.mark.parametrize(("options", "message"), [
    ({"mode": "other"}, "raw: mode must be one of 'plain', .*; got 'other'"),
    ({"level": 10}, "raw: level must be integer from 0 to 9; got 10"),
    ({"level": -1}, "got -1"),
    ({"level": 2.5}, "got 2.5"),
    ({"level": True}, "got True"),
    ({"level": "3"}, "got '3'"),
    ({"level": None}, "got None"),
    ({"share": 1.5}, "raw: share must be number from 0.0 to 1.0; got 1.5"),
    ({"share": float("nan")}, "got nan"),
    ({"bits": 9}, "raw: bits must be integer from 1 to 8; got 9"),
])
def test_options_outside_their_limits_are_refused(options, message):
    with pytest.raises(WorkbenchError, match=message):
        Raw(**options)


def test_an_option_that_may_be_none_is_none_by_default():
    assert Raw().bits is None
    assert Raw(bits=8).bits == 8


def test_the_schema_tells_a_panel_what_to_draw():
    schema = Raw.schema()
    assert schema["$schema"].endswith("2020-12/schema")
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert schema["properties"] == {
        "mode": {"type": "string", "default": "plain", "title": "what to do",
                 "enum": ["plain", "raise", "reshape", "retype", "none", "list", "refuse"]},
        "level": {"type": "integer", "default": 3, "title": "how hard", "minimum": 0, "maximum": 9},
        "share": {"type": "number", "default": 0.5, "title": "how much", "minimum": 0.0, "maximum": 1.0},
        "bits": {"type": ["integer", "null"], "default": None, "title": "how many", "minimum": 1, "maximum": 8},
    }


def test_a_missing_library_is_named_with_the_way_to_get_it():
    class Missing(Raw):
        id = "missing"
        module = "a_library_that_nobody_has"

    assert str(Missing.missing()).endswith("which is not installed: pip install a_library_that_nobody_has")
    for call in (lambda: Missing().encode(VALUES, EXACT), lambda: Missing().decode(b"", (1,), "f8")):
        with pytest.raises(WorkbenchError, match="missing needs a_library_that_nobody_has"):
            call()


def test_every_codec_names_the_extra_that_installs_its_library():
    lines = [line.lower().partition(";") for line in importlib.metadata.requires("lossbench")]
    known = {(re.split("[^a-z0-9]", name)[0], re.sub(".*extra == ", "", mark).strip(" '")) for name, _, mark in lines}
    for made in [codec_class(name) for name in _OWN]:
        assert made.module is None or (made.module.lower(), made.needs_extra or "") in known, made.id


@pytest.mark.parametrize("given", [{}, {"absolute": 1.0, "relative": 1.0}])
def test_a_tolerance_is_one_of_two_kinds(given):
    with pytest.raises(WorkbenchError, match="either absolute or relative"):
        Tolerance(**given)


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("kind", ["absolute", "relative"])
def test_a_tolerance_is_a_number_that_is_not_negative(kind, value):
    with pytest.raises(WorkbenchError, match="finite and not negative"):
        Tolerance(**{kind: value})


def test_the_absolute_error_for_a_relative_tolerance_is_that_of_the_smallest_value():
    values = np.array([0.0, -8.0, 0.5, 2.0])
    assert Tolerance(relative=0.25).absolute_for(values) == 0.125
    assert Tolerance(absolute=0.25).absolute_for(values) == 0.25
    assert Tolerance(relative=0.25).absolute_for(np.zeros(3)) == 0


def test_a_particle_codec_keeps_the_order_unless_it_says_otherwise():
    class Points(ParticleCodec, Raw):
        id = "points"

    positions = np.zeros((4, 3))
    codec = Points()
    assert not codec.reorders
    assert codec.permutation(positions, codec.encode(positions, EXACT)) is None
    with pytest.raises(WorkbenchError, match="points takes arrays of 2 dimensions"):
        codec.encode(np.zeros(12), EXACT)
