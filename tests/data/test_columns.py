"""Columns of particles: any names that can be files, any numbers that fields take, and flags."""

import pickle

import numpy as np
import pytest

import workbench as wb
from workbench.data.chunked import ParticlesInMemory
from workbench.data.columns import OWN
from workbench.errors import WorkbenchError

POSITIONS = np.random.default_rng(0).random((5, 3))
COLUMNS = {
    "Potential": np.arange(5, dtype=np.float32), "MagneticField": np.arange(15.0).reshape(5, 3),
    "Type": np.arange(5, dtype=np.uint8), "is-gas": np.arange(5) % 2 == 0, "Mass.2": np.arange(10).reshape(5, 2),
}


def particles(columns=COLUMNS, **more):
    return wb.Particles(POSITIONS, 1.0, columns=columns, **more)


def test_columns_keep_their_types_and_cannot_be_changed():
    mine = dict(COLUMNS, Potential=COLUMNS["Potential"].copy())
    found = particles(mine)
    mine["Potential"][0] = 9
    assert list(found.columns) == list(COLUMNS)
    for name, expected in COLUMNS.items():
        assert found.columns[name].dtype == expected.dtype
        assert np.array_equal(found.columns[name], expected)
    with pytest.raises(TypeError):
        found.columns["Potential"] = mine["Potential"]
    with pytest.raises(ValueError, match="read-only"):
        found.columns["Potential"][0] = 1
    assert wb.Particles(POSITIONS).columns == {}


def test_columns_stay_with_the_particles():
    found = particles(ids=np.arange(5))
    chosen = found.select([3, 1])
    assert all(np.array_equal(chosen.columns[name], values[[3, 1]]) for name, values in COLUMNS.items())
    again = pickle.loads(pickle.dumps(found))
    assert all(np.array_equal(again.columns[name], values) for name, values in COLUMNS.items())
    assert list(found.companions) == ["ids", *COLUMNS]
    assert "ids, Potential, MagneticField, Type" in repr(found)
    assert "MagneticField" in found._repr_html_()
    wrapped = wb.Particles.wrapped(POSITIONS + 3, 1.0, columns=COLUMNS)
    assert np.array_equal(wrapped.columns["Type"], COLUMNS["Type"])


def test_chunks_have_the_columns_that_are_asked_for():
    source = ParticlesInMemory(particles(masses=2.5), (3, 2))
    assert source.columns == ("masses", *COLUMNS)
    chunk = source.chunk(1, ["Type", "MagneticField"])
    assert {name: values.tolist() for name, values in chunk.columns.items()} == {
        "Type": [3, 4], "MagneticField": COLUMNS["MagneticField"][3:].tolist()
    }
    joined = source.joined()
    assert joined.masses == 2.5
    assert all(np.array_equal(joined.columns[name], values) for name, values in COLUMNS.items())
    with pytest.raises(WorkbenchError, match="columns must be some of velocities, ids, masses, Potential"):
        source.chunk(0, ["Temperature"])


def test_units_of_quantities_become_metadata():
    units = pytest.importorskip("astropy.units")
    found = particles({"T": np.ones(5) * units.K, "x": np.ones(5)}, metadata={"code": "SWIFT"})
    assert found.metadata["units"] == {"T": "K"}
    assert type(found.columns["T"]) is np.ndarray


@pytest.mark.parametrize(
    "name", [*OWN, "IDs", "", ".", "..", "a/b", "-x", ".x", "x.", "__x", "é", "x" * 65, 3, None, "zarr.json"]
)
def test_names_that_cannot_be_files_or_are_taken_are_refused(name):
    with pytest.raises(WorkbenchError, match=r"the name of a column|cannot be the name of a column"):
        particles({name: np.arange(5)})


def test_names_that_are_one_file_on_some_systems_are_refused():
    with pytest.raises(WorkbenchError, match="'Type' and 'type' would be one file"):
        particles({"Type": np.arange(5), "type": np.arange(5)})


@pytest.mark.parametrize(("values", "message"), [
    (np.arange(4), r"must have shape \(5,\) or \(5, k\)"), (np.zeros((5, 0)), "must have shape"),
    (np.zeros((5, 2, 2)), "must have shape"), (np.zeros(5, complex), "got complex128: take the real"),
    (np.zeros(5, "f2"), "got float16: convert"), (np.array(["a"] * 5), "got <U1|got str"), (3.0, "must have shape"),
    (np.ma.masked_equal(np.arange(5), 3), "no masked entries; got 1"),
])
def test_what_is_no_column_is_refused(values, message):
    with pytest.raises(WorkbenchError, match=message):
        particles({"x": values})
    with pytest.raises(WorkbenchError, match="columns must map names to arrays"):
        particles([values])
