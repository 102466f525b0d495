"""Columns of particles in archives: their bounds by name or pattern, their order, and what damage leaves of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from archive.samples import from_parts, parts, resealed
from workbench.cli import main
from workbench.data.chunked import ParticlesInMemory, even_sizes
from workbench.data.columns import TYPES
from workbench.errors import GuaranteeBroken, WorkbenchError

BOUND = wb.Absolute(0.01)
RULES = {
    "Potential": wb.Relative(1e-3), "Magnetic*": wb.Absolute(0.01), "Gaps": wb.PointwiseRelative(1e-3),
    "Counts": wb.Absolute(2), "*": wb.Absolute(0.05),
}


def sample(n: int = 12, seed: int = 1) -> wb.Particles:
    """Particles with columns of many types and shapes."""
    web, random = wb.synthetic.cosmic_web(n=n, seed=seed), np.random.default_rng(seed)
    count = len(web)
    columns = {
        "Potential": random.normal(size=count).astype(np.float32), "MagneticField": random.normal(size=(count, 3)),
        "Gaps": np.where(random.random(count) < 0.1, np.nan, random.normal(size=count)),
        "Type": random.integers(0, 6, count).astype(np.uint8), "Counts": random.integers(-50, 10**6, count),
        "IsGas": random.random(count) < 0.3, "Flags": random.random((count, 2)) < 0.3,
        "Grid.0": random.integers(-9, 9, (count, 2)).astype(np.int16), "Column-1": random.normal(size=(count, 1)),
    }
    return wb.Particles(web.positions, web.box, web.velocities, web.ids, {"time": 0.5}, columns=columns)


def within(found, expected, rules=RULES):
    """Whether every column keeps its bound."""
    for name, values in expected.items():
        got = found[name]
        assert (got.dtype, got.shape) == (values.dtype, values.shape)
        valid, error = np.isfinite(values), np.abs(got.astype(np.float64) - values.astype(np.float64))
        if name == "Potential":
            assert error.max() <= 1e-3 * (float(values.max()) - float(values.min()))
        elif name == "Gaps":
            assert np.isnan(got[~valid]).all()
            assert (error[valid] <= 1e-3 * np.abs(values[valid])).all()
        elif name in ("MagneticField", "Counts", "Column-1"):
            assert error.max() <= {"MagneticField": 0.01, "Counts": 2, "Column-1": 0.05}[name]
        else:
            assert got.tobytes() == values.tobytes()


def test_a_single_particle_has_columns_of_any_size_in_chunks():
    particles = wb.Particles(
        np.ones((1, 3), np.float32), velocities=np.ones((1, 3), np.float32), ids=np.array([7]),
        columns={"a": np.ones(1, np.float32), "b": np.ones((1, 2))},
    )
    archive = wb.compress(particles, BOUND, order="free", parts=1, columns={"b": wb.Absolute(0.1)})
    assert archive.verify(particles).passed


@pytest.mark.few
@pytest.mark.parametrize("order", ["keep", "free"])
@pytest.mark.parametrize("keep", [[], [wb.KeepClusters(0.2)]])
def test_columns_are_within_their_bounds_and_alike_in_memory_and_in_chunks(tmp_path, monkeypatch, order, keep):
    monkeypatch.setattr("workbench.archive.companions.CHUNK", 500)   # particles in a chunk: so that there are several
    particles = sample()
    source = ParticlesInMemory(particles, even_sizes(len(particles), 700))
    options = {"keep": keep, "order": order, "columns": RULES, "velocities": wb.Absolute(1.0), "chunk_values": 1800}
    archive = wb.compress(particles, BOUND, **options)
    archive.save(tmp_path / "one.zip")
    chunked = wb.compress(source, BOUND, **options, parts=3, out=tmp_path / "many.zip")
    one, many = parts(archive), parts(chunked)
    assert [key for key in one if one[key] != many[key]] == []
    assert archive.verify(particles).passed
    assert chunked.verify(source, parts=2).passed
    place = archive.permutation(particles)
    decoded = wb.open(tmp_path / "many.zip").decompress()
    assert list(decoded.columns) == list(particles.columns)
    within(decoded.columns, {name: values[place] for name, values in particles.columns.items()})
    region = chunked.read([(0, particles.box[0] / 2)] * 3)
    inside = (decoded.positions < particles.box[0] / 2).all(axis=1)
    for name, values in region.columns.items():
        assert values.tobytes() == decoded.columns[name][inside].tobytes()
    again = wb.open_chunked(tmp_path / "many.zip").joined()
    assert all(again.columns[name].tobytes() == decoded.columns[name].tobytes() for name in particles.columns)


@settings(deadline=None, max_examples=30)
@given(st.data())
def test_exact_columns_of_any_type_come_back(data):
    count, random = data.draw(st.integers(1, 40)), np.random.default_rng(data.draw(st.integers(0, 99)))
    columns = {}
    for number, dtype in enumerate(data.draw(st.lists(st.sampled_from(TYPES), max_size=4))):
        shape = (count, *data.draw(st.sampled_from([(), (1,), (2,), (5,)])))
        raw = random.bytes(int(np.prod(shape)) * np.dtype(dtype).itemsize)
        values = random.random(shape) < 0.5 if dtype == "bool" else np.frombuffer(raw, dtype).reshape(shape)
        columns[f"c{number}"] = values   # of floats, any bits: NaN of every kind
    particles = wb.Particles(random.random((count, 3)), columns=columns)
    archive = wb.compress(particles, BOUND, order=data.draw(st.sampled_from(["keep", "free"])))
    place, decoded = archive.permutation(particles), archive.decompress()
    assert {name: v[place].tobytes() for name, v in columns.items()} == {n: v.tobytes() for n, v in decoded.columns.items()}
    assert archive.verify(particles).passed


@pytest.mark.parametrize("codec", ["prequantised", "pcodec", "interpolation", "staged", "bitround"])
def test_columns_are_encoded_by_the_codec_of_the_call_where_it_takes_them(codec):
    particles = sample(6)
    archive = wb.compress(particles, BOUND, codec, columns=RULES)
    assert archive.verify(particles).passed
    within(archive.decompress().columns, particles.columns)


def test_the_certificate_promises_something_of_every_column():
    archive = wb.compress(sample(6), BOUND, columns=RULES)
    stated = {promise.array: promise.describe() for promise in archive.certificate.promises}
    assert stated["Potential"] == "Potential: every value within 0.001 of the range of the values"
    assert stated["Type"] == "Type: every value exactly as it was, bit for bit"
    assert stated["Counts"] == "Counts: every value within 2 of the original"
    assert archive.certificate["Counts"].figures["largest_error"] <= 2


def test_a_pattern_leaves_integers_and_flags_exact_and_exact_rules_change_no_byte():
    particles = sample(6)
    archive = wb.compress(particles, BOUND, columns={"*": wb.Absolute(5.0)})
    assert [n for n, v in particles.columns.items() if archive.certificate[n].bound is None] == [
        n for n, v in particles.columns.items() if v.dtype.kind != "f"
    ]
    exact = wb.compress(particles, BOUND, columns={"*": wb.Exact(), "IsGas": wb.Exact()})
    assert parts(exact) == parts(wb.compress(particles, BOUND))


@pytest.mark.parametrize(("rules", "message"), [
    ({"Potental": BOUND}, "did you mean 'Potential'"), ({"Dens*": BOUND}, "a pattern; got"),
    ({"velocities": BOUND}, "give velocities="), ({"ids": wb.Exact()}, "ids are always exact"),
    ({"IsGas": BOUND}, "flags, which are exact"), ({"Type": wb.PointwiseRelative(0.1)}, "bound of integers"),
    ({"Potential": 0.1}, "columns must map"), ([BOUND], "columns must map"), ({3: BOUND}, "columns must map"),
])
def test_rules_that_cannot_be_kept_are_refused(tmp_path, rules, message):
    particles = sample(6)
    with pytest.raises(WorkbenchError, match=message):
        wb.compress(particles, BOUND, columns=rules)
    with pytest.raises(WorkbenchError, match=message):
        wb.compress(ParticlesInMemory(particles, (len(particles),)), BOUND, columns=rules, out=tmp_path / "x.zip")
    assert list(tmp_path.iterdir()) == []


def test_columns_are_for_particles_that_have_some():
    with pytest.raises(WorkbenchError, match="these have none, so no 'Potential'"):
        wb.compress(wb.synthetic.cosmic_web(n=6), BOUND, columns={"Potential": BOUND})
    with pytest.raises(WorkbenchError, match="columns bounds the columns of particles; got a field"):
        wb.compress(np.zeros(5), BOUND, columns={"Potential": BOUND})
    wb.compress(wb.synthetic.cosmic_web(n=6), BOUND, columns={"*": wb.Exact()})
    many = {f"c{number}": np.zeros(2) for number in range(70)}
    with pytest.raises(WorkbenchError, match="at most 62 arrays beside positions"):
        wb.compress(wb.Particles(np.zeros((2, 3)), columns=many), BOUND)


def test_a_bound_with_a_unit_needs_the_unit_of_its_column():
    columns = {"T": np.linspace(1, 2, 50)}
    particles = wb.Particles(np.random.default_rng(0).random((50, 3)), columns=columns, metadata={"units": {"T": "kK"}})
    archive = wb.compress(particles, BOUND, columns={"T": wb.Absolute("1 K")})
    assert archive.certificate["T"].limit.value == 1e-3
    with pytest.raises(WorkbenchError, match="needs data with a unit"):
        wb.compress(wb.Particles(particles.positions, columns=columns), BOUND, columns={"T": wb.Absolute("1 K")})


def test_another_original_is_refused():
    particles = sample(6)
    archive = wb.compress(particles, BOUND, columns=RULES)
    changed = dict(particles.columns, Type=particles.columns["Type"] + np.uint8(1))
    with pytest.raises(GuaranteeBroken, match="Type must be bit-identical"):
        archive.verify(wb.Particles(particles.positions, particles.box, columns=changed))
    changed = dict(particles.columns, Potential=particles.columns["Potential"].astype(np.float64))
    with pytest.raises(WorkbenchError, match="the original Potential must be float32"):
        archive.verify(wb.Particles(particles.positions, particles.box, columns=changed))
    fewer = wb.Particles(particles.positions, particles.box, columns={"Type": particles.columns["Type"]})
    assert any("Potential: checked against checksums only" in note for note in archive.verify(fewer).notes)


def test_damage_of_a_column_costs_its_particles_or_the_column(monkeypatch):
    monkeypatch.setattr("workbench.archive.companions.CHUNK", 500)
    particles = sample()
    entries = parts(wb.compress(particles, BOUND, columns=RULES, chunk_values=1800))
    key = "Grid.0/c/1/0"
    damaged = from_parts({**entries, key: entries[key][:-3] + b"abc"})
    assert [found.where for found in damaged.damage()] == [key]
    rest, lost = damaged.salvage()
    assert len(rest) < len(particles)
    assert list(rest.columns) == list(particles.columns)
    assert [found.where for found in lost] == [key]
    lost_all = {key: data[:-3] + b"abc" for key, data in entries.items() if key.startswith("Potential/")}
    all_lost = from_parts({**entries, **lost_all})
    rest, _ = all_lost.salvage()
    assert len(rest) == len(particles)
    assert "Potential" not in rest.columns
    with pytest.raises(GuaranteeBroken, match="Potential/c/0"):
        all_lost.verify()


def test_a_particle_member_of_a_dataset_has_rules_for_its_columns(tmp_path):
    particles = sample(6)
    rules = {"gas": {"bound": BOUND, "columns": RULES, "order": "free"}, "*": wb.Exact()}
    archive = wb.compress({"gas": particles, "T": np.arange(4.0)}, rules, out=tmp_path / "x.zip")
    assert archive.verify({"gas": particles, "T": np.arange(4.0)}).passed
    gas = wb.open(tmp_path / "x.zip")["gas"]
    place = gas.permutation(particles)
    within(gas.decompress().columns, {name: values[place] for name, values in particles.columns.items()})
    with pytest.raises(WorkbenchError, match=r"'gas': .*did you mean 'Potential'"):
        wb.compress({"gas": particles}, {"gas": {"bound": BOUND, "columns": {"Potentia": BOUND}}})


def test_columns_are_arrays_for_zarr(tmp_path):
    zarr = pytest.importorskip("zarr")
    particles = sample(6)
    wb.compress(particles, BOUND, columns=RULES).save(tmp_path / "x.zarr")
    group = zarr.open_group(tmp_path / "x.zarr", mode="r")
    decoded = wb.open(tmp_path / "x.zarr").decompress().columns
    for name, values in decoded.items():
        assert np.asarray(group[name][:]).tobytes() == values.tobytes()
    xarray = pytest.importorskip("xarray")
    opened = xarray.open_zarr(tmp_path / "x.zarr", consolidated=True)
    assert opened["MagneticField"].dims == ("particle", "component_3")


@pytest.mark.parametrize(("name", "change", "message"), [
    ("Potential", {"shape": [5]}, "Potential"), ("MagneticField", {"shape": [216, 3, 1]}, "MagneticField"),
    ("Type", {"data_type": "complex64"}, "Type"),
])
def test_forged_columns_are_refused(name, change, message):
    entries = resealed(parts(wb.compress(sample(6), BOUND)), f"{name}/zarr.json", lambda document: document.update(change))
    with pytest.raises(WorkbenchError, match=message):
        from_parts(entries).decompress()


@pytest.mark.parametrize("forged", ["potential", "__x", "cell", "x."])
def test_forged_names_are_refused(forged):
    def renamed(root):
        arrays = root["consolidated_metadata"]["metadata"]
        arrays[forged] = arrays["Type"]

    with pytest.raises(WorkbenchError):
        from_parts(resealed(parts(wb.compress(sample(6), BOUND)), "zarr.json", renamed))


def test_columns_come_back_from_numpy_files(tmp_path):
    columns = {"file": np.arange(4.0), "T": np.arange(8).reshape(4, 2), "allow_pickle": np.arange(4) > 1}
    wb.compress(wb.Particles(np.random.default_rng(0).random((4, 3)), 1.0, columns=columns), BOUND).save(tmp_path / "x.zip")
    assert main(["decompress", str(tmp_path / "x.zip"), str(tmp_path / "x.npz"), "--json"]) == 0
    again = wb.open(tmp_path / "x.npz", columns="all")
    assert {name: values.tolist() for name, values in again.columns.items()} == {
        name: values.tolist() for name, values in sorted(columns.items())
    }


def test_searches_and_comparisons_take_particles_with_columns():
    particles = sample(8)
    result = wb.sweep(particles, ["lattice"], [wb.Absolute(0.01), wb.Absolute(0.1)], order="free", workers=2)
    assert [run.error for run in result] == [None, None]
    archive = wb.compress(particles, BOUND, columns=RULES)
    figures = wb.compare(particles, archive.decompress()).figures
    assert figures["MagneticField_max_error"] <= 0.01
    assert figures["Type_differing"] == 0
