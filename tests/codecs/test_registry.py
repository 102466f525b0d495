import json
import subprocess
import sys
from importlib.metadata import EntryPoint

import numpy as np
import pytest

from workbench.codecs import Codec, Tolerance, available, from_dict, get, registry, status
from workbench.codecs.pcodec import PCodec
from workbench.errors import WorkbenchError


class Doubled(PCodec):
    """What another package might bring."""

    id = "doubled"
    title = "pcodec, twice"


class Absent(PCodec):
    id = "absent"
    module = "a_library_that_nobody_has"


NOT_A_CODEC = "something else"


@pytest.fixture
def installed(monkeypatch):
    """Pretend that packages with these entry points are installed."""

    def install(**values):
        monkeypatch.setitem(sys.modules, "their_package", sys.modules[__name__])
        points = [EntryPoint(name, value, registry.GROUP) for name, value in values.items()]
        monkeypatch.setattr(registry, "entry_points", lambda group: [p for p in points if p.group == group])
        registry._entry_points.cache_clear()

    yield install
    monkeypatch.undo()
    registry._entry_points.cache_clear()


def test_a_codec_of_another_package_is_found_by_its_name(installed):
    installed(doubled="their_package:Doubled")
    codec = get("doubled", level=3)
    assert isinstance(codec, Doubled)
    assert from_dict(codec.to_dict()) == codec == Doubled(level=3)
    assert "doubled" in available()
    values = np.arange(5.0)
    assert (codec.decode(codec.encode(values, Tolerance(absolute=0)), (5,), "f8") == values).all()


def test_a_package_that_cannot_be_imported_is_named_with_its_reason(installed):
    installed(broken="a_package_that_nobody_has.codecs:Codec", nameless="their_package:Nameless")
    assert "codec broken (a_package_that_nobody_has.codecs:Codec) cannot be imported: No module" in status()["broken"]
    assert "Nameless" in status()["nameless"]
    assert {"broken", "nameless"}.isdisjoint(available())
    assert "pcodec" in available()
    with pytest.raises(WorkbenchError, match=r"codec broken .* cannot be imported"):
        get("broken")


def test_an_entry_point_that_is_no_codec_is_named(installed):
    installed(odd="their_package:NOT_A_CODEC", abstract_odd="their_package:np")
    assert "must be a subclass of codecs.Codec; got 'something else'" in status()["odd"]
    assert "must be a subclass" in status()["abstract_odd"]


def test_a_codec_whose_library_is_missing_says_how_to_get_it(installed):
    installed(absent="their_package:Absent")
    reason = "absent needs a_library_that_nobody_has, which is not installed: pip install a_library_that_nobody_has"
    assert status()["absent"] == reason
    assert "absent" not in available()


def test_the_names_of_this_package_cannot_be_taken(installed):
    installed(pcodec="their_package:Doubled")
    assert type(get("pcodec")) is PCodec
    assert list(status()).count("pcodec") == 1


@pytest.mark.parametrize("name", ["sz4", "", None, 7, "workbench.codecs.sz3:SZ3"])
def test_an_unknown_name_is_answered_with_the_known_ones(name):
    with pytest.raises(WorkbenchError, match=r"codec must be one of lattice, interpolation, sz3, .*; got"):
        from_dict({"id": name})


def test_a_configuration_without_a_name_is_refused():
    with pytest.raises(WorkbenchError, match=r"codec must be one of .*; got None"):
        from_dict({})


def test_an_unknown_option_is_answered_with_the_known_ones():
    with pytest.raises(WorkbenchError, match="zfp has the options mode, precision, rate; got speed"):
        get("zfp", speed=11)


@pytest.mark.parametrize("name", list(status()))
def test_every_codec_is_what_its_name_says(name):
    found = registry.codec_class(name)
    assert issubclass(found, Codec)
    assert found.id == name
    assert get(name) == found()
    assert from_dict(json.loads(json.dumps(found().to_dict()))) == found()
    assert hash(found()) == hash(found())


@pytest.mark.parametrize("name", list(status()))
def test_schemas_describe_what_the_codec_accepts(name):
    schema = json.loads(json.dumps(registry.codec_class(name).schema()))
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    described = {k: v["default"] for k, v in schema["properties"].items()}
    assert from_dict({"id": name, **described}) == get(name)
    kinds = {"string", "integer", "number", "boolean", "array", "object", "null"}
    for limits in schema["properties"].values():
        assert set(np.atleast_1d(limits["type"])) <= kinds
        for value in limits.get("enum", []):
            from_dict({"id": name, **{k: value for k, v in schema["properties"].items() if v is limits}})


def test_nothing_is_loaded_before_it_is_asked_for():
    code = """
import sys
import workbench.codecs
assert not {"pysz", "zfpy", "hdf5plugin", "h5py", "DracoPy", "fpzip", "numcodecs"} & set(sys.modules), sys.modules.keys()
workbench.codecs.available()
assert not {"pysz", "zfpy", "hdf5plugin", "h5py", "DracoPy", "fpzip", "numcodecs"} & set(sys.modules), sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", code], check=True)
