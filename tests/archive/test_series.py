"""Series: every step is what it would be alone, in the order of the first, whatever it was predicted from."""

import dataclasses
import itertools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.archive import encoded as chunks
from workbench.archive import reading
from workbench.archive.decoded_chunks import DecodedChunks
from workbench.archive.earlier import composed, rows_before
from workbench.archive.series.order import Matched

BOUND = 0.01


def waves(steps: int, side: int = 24, dtype: str = "float32") -> list[wb.Field]:
    """A field that moves slowly, with noise that stays."""
    x, noise = np.linspace(0, 6, side), 0.05 * np.random.default_rng(0).normal(size=(side, side))
    values = (np.sin(2 * x - 0.1 * t)[:, None] * np.cos(x + 0.05 * t) + noise for t in range(steps))
    return [wb.Field(one.astype(dtype)) for one in values]


def moving(steps: int, count: int = 300, seed: int = 0, change: int = 0, shuffled: bool = False) -> list[wb.Particles]:
    """Particles that move by their velocities in a box of 8; at each step, so many vanish, and as many are new."""
    rng = np.random.default_rng(seed)
    positions, velocities = rng.uniform(0, 8, (count, 3)), rng.normal(0, 0.1, (count, 3))
    ids, following, found = np.arange(count) * 7 + 3, count * 7 + 3, []
    for _ in range(steps):
        rows = rng.permutation(len(ids)) if shuffled else np.arange(len(ids))
        found.append(wb.Particles.wrapped(
            positions[rows].astype("f4"), 8.0, velocities=velocities[rows].astype("f4"), ids=ids[rows]
        ))
        positions = positions + velocities
        if change:
            stay = np.sort(rng.permutation(len(ids))[change:])
            new = rng.uniform(0, 8, (change, 3)), rng.normal(0, 0.1, (change, 3)), np.arange(following, following + change)
            positions, velocities, ids = (
                np.concatenate([old[stay], one]) for old, one in zip((positions, velocities, ids), new, strict=True)
            )
            following += change
    return found


def require_like(decoded: wb.Particles, original: wb.Particles) -> None:
    """Refuse decoded particles that are not the original ones, found by their ids, within the bound."""
    places = {one: place for place, one in enumerate(np.asarray(original.ids).tolist())}
    rows = [places[one] for one in np.asarray(decoded.ids).tolist()]
    assert sorted(rows) == list(range(len(original)))
    away = np.abs(decoded.positions.astype("f8") - original.positions[rows])
    assert np.minimum(away, 8 - away).max() <= BOUND


@pytest.fixture
def count_decodes(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many chunks were decoded since the last call."""
    counted = [0]
    plain = reading.decode_as_written

    def counting(*given: Any) -> Any:
        counted[0] += 1
        return plain(*given)

    def since() -> int:
        found, counted[0] = counted[0], 0
        return found

    monkeypatch.setattr(reading, "decode_as_written", counting)
    return since


def test_a_field_is_smaller_in_time_and_kept_at_each_step(tmp_path: Path) -> None:
    fields = waves(6, side=64)
    series = wb.Series(tmp_path / "series", wb.Absolute(1e-3))
    for time, field in enumerate(fields):
        assert series.append(field, 0.5 * time).verify(field).passed
    alone = sum(wb.compress(field, wb.Absolute(1e-3)).data.nbytes for field in fields)
    assert sum(archive.data.nbytes for archive in series) < 0.6 * alone
    opened = wb.Series(tmp_path / "series")
    assert len(opened) == 6
    assert opened.times == (0.0, 0.5, 1.0, 1.5, 2.0, 2.5)
    assert opened.verify(fields).passed
    assert opened.certificate.keys == (0,)
    assert opened.certificate.predicted == 5 / 6
    assert opened.at(1.4) is opened[3]
    assert opened.at(0.5, exact=True) is opened[1]
    assert [one.shape for one in opened.read(slice(1, 3), region=[(0, 4), None])] == [(4, 64), (4, 64)]
    for whole, field in zip(opened.read(), fields, strict=True):
        assert np.abs(whole.values - field.values).max() <= 1e-3
    assert "6 steps" in repr(opened)
    assert "<table>" in opened._repr_html_()
    assert "predicted in time" in str(opened.certificate)
    with pytest.raises(IndexError, match="6 steps"):
        opened[6]
    with pytest.raises(wb.WorkbenchError, match="the nearest is at"):
        opened.at(1.4, exact=True)


def test_whatever_reads_an_archive_reads_a_step(tmp_path: Path) -> None:
    fields = [wb.Field(one.values[None] * np.ones((3, 1, 1), "f4")) for one in waves(3)]
    series = wb.Series(tmp_path / "series", wb.Absolute(1e-3), "interpolation", chunks=12)
    for field in fields:
        series.append(field)
    step, whole = series[2], series[2].decompress().values
    assert step.data.layout.predicted == 2
    assert step.data.layout.chunk_count == 4
    assert (step.read([None, (5, 14), (3, 4)]).values == whole[:, 5:14, 3:4]).all()
    assert (step.preview(1).values == whole[::2, ::2, ::2]).all()
    assert abs(step.mean().value - whole.mean()) < 1e-5
    assert step.damage() == []
    assert step.salvage()[1] == []
    combined = wb.linear_combination([(1.0, series[2]), (-1.0, series[1])])
    assert np.abs(combined.decompress().values - (fields[2].values - fields[1].values)).max() <= 2e-3 + 1e-6
    again = wb.compress(step, wb.Absolute(1e-2))
    assert np.abs(again.decompress().values - whole).max() <= 1e-2
    alone = wb.open(series.path / "step-000002.zip")
    assert alone.certificate["values"].bound == wb.Absolute(1e-3)
    reads = alone.decompress, alone.preview, alone.verify, alone.salvage, alone.damage, lambda: alone.read([None] * 3)
    for read in reads:
        with pytest.raises(wb.WorkbenchError, match=r"earlier steps of its series: open the folder .* wb\.Series"):
            read()
    alone.save(tmp_path / "copy.zip")
    assert wb.open(series.path / "step-000000.zip").verify(fields[0]).passed   # a key step needs no other


def test_plain_zarr_says_what_a_step_needs(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    series = wb.Series(tmp_path / "series", wb.Absolute(1e-3), "interpolation")
    for field in waves(2):
        series.append(field)
    group = zarr.open_group(zarr.storage.ZipStore(series.path / "step-000001.zip", mode="r"), mode="r")
    with pytest.raises(wb.WorkbenchError, match=r"predicted from earlier steps of a series.*wb\.Series"):
        group["values"][:]


@pytest.mark.parametrize("order", ["keep", "free"])
@pytest.mark.parametrize(("change", "shuffled"), [(0, False), (0, True), (5, True)])
def test_particles_are_found_by_their_ids(tmp_path: Path, order: str, change: int, shuffled: bool) -> None:
    steps = moving(6, change=change, shuffled=shuffled)
    series = wb.Series(tmp_path / "series", wb.Absolute(BOUND), order=order, velocities=wb.Absolute(0.01), every=3)
    for particles in steps:
        series.append(particles)
    opened = wb.Series(tmp_path / "series")
    assert opened.verify(steps).passed
    assert opened.verify().passed
    assert opened.certificate.keys == (0, 3)
    previous: list[int] = []
    for number, original in enumerate(steps):
        decoded = opened[number].decompress()
        require_like(decoded, original)
        ids = decoded.ids.tolist()
        kept = [one for one in previous if one in set(ids)]
        assert ids[: len(kept)] == kept   # survivors in their order, new ones behind
        previous = ids
        wanted = original.ids[[7, 0, 3]]
        found = opened.read(number, ids=[*wanted.tolist(), -5])
        assert (found.ids == wanted).all()
        assert np.abs(found.velocities - original.velocities[[7, 0, 3]]).max() <= 0.01
        places = opened[number].permutation(original)
        assert (original.ids[places] == decoded.ids).all()
        inside = opened[number].read([(0, 4)] * 3)
        low = (decoded.positions < 4).all(axis=1)
        assert sorted(inside.ids.tolist()) == sorted(decoded.ids[low].tolist())
    stated = [(row.appeared, row.vanished) for row in opened.certificate.rows]
    assert stated == [(0, 0), *[(change, change)] * 5]
    stored = [number for number in range(6) if "ids" in opened[number]._described.layouts]
    assert stored == ([0, 3] if change else [0])
    predicted = [row.predicted for row in opened.certificate.rows]
    assert predicted == [0, 2, 2, 0, 2, 2]


def test_free_order_is_smaller_than_single_archives_with_ids(tmp_path: Path) -> None:
    steps = moving(5, count=2000)
    series = wb.Series(tmp_path / "series", wb.Absolute(BOUND), order="free", velocities=wb.Absolute(0.01))
    for particles in steps:
        series.append(particles)
    alone = sum(
        wb.compress(one, wb.Absolute(BOUND), order="free", velocities=wb.Absolute(0.01)).nbytes for one in steps
    )
    assert series.nbytes < 0.8 * alone


def test_clusters_are_kept_at_each_step(tmp_path: Path) -> None:
    steps, keep = moving(4, count=500), wb.KeepClusters(0.3)
    series = wb.Series(tmp_path / "series", wb.Absolute(0.1), keep=keep)
    for particles in steps:
        series.append(particles)
    opened = wb.Series(tmp_path / "series")
    assert opened.append(moving(5, count=500)[4]).certificate["positions"].keep
    for archive, original in zip(opened, moving(5, count=500), strict=True):
        groups = [wb.friends_of_friends(one, 0.3).labels for one in (original, archive.decompress())]
        assert (groups[0] == groups[1]).all()
    assert opened.verify(moving(5, count=500)).passed


def test_each_variable_of_a_dataset_has_its_rule(tmp_path: Path) -> None:
    def dataset(number: int) -> dict[str, Any]:
        fields = {"T": waves(4)[number], "P": waves(4, dtype="float64")[number]}
        half, both = fields["T"].values.astype("f2"), fields["P"].values * (1 + 1j)
        return {**fields, "half": half, "both": both, "n": np.arange(4), "place": np.array(["A", "B"])}

    rules = {
        "T": wb.Absolute(1e-3), "P": {"bound": wb.Relative(1e-4), "codec": "interpolation"}, "both": wb.Absolute(1e-3),
        "half": wb.Absolute(1e-2),
    }
    series = wb.Series(tmp_path / "series", rules)
    for number in range(3):
        series.append(dataset(number))
    opened = wb.Series(tmp_path / "series")
    opened.append(dataset(3))
    assert opened.verify([dataset(number) for number in range(4)]).passed
    assert [opened[3][name].data.layout.predicted for name in ("T", "half", "both")] == [2, 2, 2]
    assert opened[3]["n"].decompress().values.tolist() == [0, 1, 2, 3]
    assert opened[3]["place"].decompress().values.tolist() == ["A", "B"]
    again = wb.Series(tmp_path / "series", rules)
    assert [row.predicted > 3 for row in again.certificate.rows] == [False, True, True, True]   # "n" and "place" stay


def test_what_stays_exactly_as_it_was_takes_no_bytes(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    area = random.random((40, 60))
    area[3, 4:6] = np.nan, -0.0
    land, steps = area > 0.5, []
    for number in range(5):
        changing = area.copy()
        changing[0, 0] = number // 2
        steps.append({
            "area": wb.Field(area, mask=land), "land": land, "kind": (9 * area > 4).astype("i2"), "changing": changing,
            "T": waves(5, 40)[number],
        })
    rules = {"T": wb.Absolute(BOUND), "changing": {"bound": wb.Exact(), "chunks": (20, -1)}, "*": wb.Exact()}
    series = wb.Series(tmp_path / "run", rules)
    bytes_of = []
    for step in steps:
        series.append(step)
        bytes_of.append({
            name: sum(map(member.arrays["values"].chunk_nbytes, member.arrays["values"].layout.chunk_indices()))
            for name, member in series[-1].items()
        })
    for name in ("area", "land", "kind"):
        assert max(each[name] for each in bytes_of[1:]) < 100 < bytes_of[0][name]
    at_once, once, again = (bytes_of[number]["changing"] for number in (0, 1, 2))
    assert once < 130
    assert 0.3 * at_once < again < 0.7 * at_once   # one of two chunks
    assert series.verify(steps).passed
    for archives in (series, wb.Series(tmp_path / "run"), pickle.loads(pickle.dumps(series))):
        for number in (4, 0, 3):
            for name, values in steps[number].items():
                if name != "T":
                    given = values.values if isinstance(values, wb.Field) else values
                    decoded = archives[number][name].decompress().values
                    assert decoded.dtype == given.dtype
                    assert decoded.tobytes() == given.tobytes()
    with pytest.raises(wb.GuaranteeBroken, match="step 4"):
        series.verify([*steps[:4], {**steps[4], "kind": steps[4]["kind"] + 1}])
    (tmp_path / "run" / "step-000000.zip").unlink()
    with pytest.raises(wb.WorkbenchError, match="steps 1 to 4 cannot be read without it"):
        wb.Series(tmp_path / "run")[4]["land"].decompress()


def test_variables_may_change_their_shape_and_type(tmp_path: Path) -> None:
    wave = np.sin(np.arange(3000) / 50) * (1 + 1j)
    steps = [{"v": one} for one in (wave[:9], wave, wave + 0.01, wave.astype("c8"), wave[:100].astype("c8"))]
    series = wb.Series(tmp_path / "run", {"v": wb.Absolute(BOUND)})
    for step in steps:
        series.append(step)
    assert wb.Series(tmp_path / "run").verify(steps).passed


def test_members_with_the_same_bytes_are_not_taken_for_each_other(tmp_path: Path) -> None:
    series, zeros = wb.Series(tmp_path / "run", wb.Exact()), np.zeros(20)
    for number in range(2):
        series.append({"whole": zeros.astype("i4"), "real": (zeros + 1 - number).astype("f4"), "flat": zeros.astype("i4")})
    opened = wb.Series(tmp_path / "run")
    assert [opened[1][name].decompress().values.dtype for name in ("real", "whole")] == ["f4", "i4"]
    assert opened.certificate.rows[1].predicted == 2


def test_a_step_takes_no_more_decodes_than_there_are_steps_to_the_key(tmp_path: Path, count_decodes: Any) -> None:
    series = wb.Series(tmp_path / "series", wb.Absolute(1e-3), "interpolation", every=5)
    for field in waves(12):
        series.append(field)
    for number in (0, 4, 5, 9, 11):
        opened = wb.Series(tmp_path / "series")
        count_decodes()
        opened[number].decompress()
        assert count_decodes() == number % 5 + 1
    opened = wb.Series(tmp_path / "series")
    for _ in opened.read():
        pass
    assert count_decodes() == 12   # in order, each once
    count_decodes()
    series.append(waves(13)[12])   # what was encoded last is known still
    assert count_decodes() == 0


def test_a_small_cache_costs_time_and_no_values(tmp_path: Path, count_decodes: Any) -> None:
    series = wb.Series(tmp_path / "series", wb.Absolute(1e-3), "interpolation", chunks=12)
    for field in waves(4):
        series.append(field)
    whole = series[3].decompress().values
    opened = wb.Series(tmp_path / "series")
    opened._steps.kept = DecodedChunks(most_bytes=1, least=1)
    assert (opened[3].decompress().values == whole).all()


def test_without_a_codec_that_predicts_every_step_is_a_key_step(tmp_path: Path) -> None:
    series = wb.Series(tmp_path / "fields", wb.Absolute(1e-3), "prequantised")
    points = wb.Series(tmp_path / "points", wb.Absolute(BOUND), "lattice")
    for field, particles in zip(waves(3), moving(3, change=2), strict=True):
        series.append(field)
        points.append(particles)
    assert series.certificate.keys == points.certificate.keys == (0, 1, 2)
    assert points.verify(moving(3, change=2)).passed


def test_what_is_done_of_a_step_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    series, encoded = wb.Series(tmp_path / "series", wb.Absolute(1e-3), "interpolation", chunks=12), []
    plain = chunks.encode_values
    field = waves(3, side=48)

    def counting(*given: Any) -> Any:
        encoded.append(given)
        if len(encoded) == 17 + 9:
            raise KeyboardInterrupt
        return plain(*given)

    monkeypatch.setattr(chunks, "encode_values", counting)
    series.append(field[0])
    with pytest.raises(KeyboardInterrupt):
        series.append(field[1])
    series.append(field[1])
    assert len(encoded) < 2 * 16 + 9   # some of the 16 chunks were not encoded again
    assert series.verify(field[:2]).passed


def test_values_relative_to_each_are_compressed_without_time(tmp_path: Path) -> None:
    fields = [wb.Field(np.exp(one.values)) for one in waves(3)]
    series = wb.Series(tmp_path / "series", wb.PointwiseRelative(1e-3))
    for field in fields:
        series.append(field)
    assert series.verify(fields).passed
    assert series[2].data.layout.predicted == 0


def test_gaps_and_masks_may_change(tmp_path: Path) -> None:
    rng, fields = np.random.default_rng(0), []
    for field in waves(4):
        values = field.values.copy()
        values[rng.random(values.shape) < 0.1] = np.nan
        fields.append(wb.Field(values, mask=rng.random(values.shape) < 0.2))
    series = wb.Series(tmp_path / "series", wb.Absolute(1e-3), "interpolation")
    for field in fields:
        series.append(field)
    assert series.verify(fields).passed


def test_time_comes_from_the_metadata_or_is_counted(tmp_path: Path) -> None:
    field = waves(1)[0]

    def at(**metadata: Any) -> wb.Field:
        return dataclasses.replace(field, metadata=metadata)

    series = wb.Series(tmp_path / "a", wb.Absolute(0.1))
    series.append(at(redshift=3.0))
    series.append(at(time=0.5, redshift=1.0))
    series.append(field, time=0.75)
    series.append(field, metadata={"time": 0.8})
    assert series.times == (0.25, 0.5, 0.75, 0.8)
    assert series[3].decompress().metadata == {"time": 0.8}
    counted = wb.Series(tmp_path / "b", wb.Absolute(0.1))
    for _ in range(3):
        counted.append(field)
    assert counted.times == (0.0, 1.0, 2.0)


@pytest.mark.parametrize("order", ["keep", "free"])
@pytest.mark.parametrize("change", [0, 20])
def test_particles_of_datasets_are_found_by_their_ids(tmp_path: Path, order: str, change: int) -> None:
    steps = [
        {"gas": gas, "dm": dm} for gas, dm in zip(
            moving(4, shuffled=True, change=change), moving(4, 200, seed=1, shuffled=True, change=change), strict=True
        )
    ]
    series = wb.Series(tmp_path / "s", {"*": wb.Absolute(BOUND)}, order=order, velocities=wb.Absolute(BOUND))
    for number, step in enumerate(steps):
        series.append(step, number)
    assert series.verify(steps).passed
    for number, step in enumerate(steps):
        for name, original in step.items():
            require_like(series[number].decompress()[name], original)
    if not change:
        ids = [series[number].decompress()["dm"].ids.tolist() for number in range(4)]
        assert ids == [ids[0]] * 4
        sorted_steps = [{name: one.select(np.argsort(one.ids)) for name, one in step.items()} for step in steps]
        other = wb.Series(tmp_path / "o", {"*": wb.Absolute(BOUND)}, velocities=wb.Absolute(BOUND))
        for number, step in enumerate(sorted_steps):
            other.append(step, number)
        assert series.certificate.rows[3].predicted == other.certificate.rows[3].predicted > 0
        twice = {name: dataclasses.replace(one, ids=np.zeros(len(one), int)) for name, one in steps[-1].items()}
        series.append(twice, 4)   # in the order that is given
        assert series[4].verify(twice).passed


@pytest.mark.parametrize("kind", ["array", "dataset", "chunked", "of one step"])
def test_time_comes_from_the_coordinate_of_xarray(tmp_path: Path, kind: str) -> None:
    xarray = pytest.importorskip("xarray")
    values = waves(1)[0].values

    def at(time: Any) -> Any:
        array = xarray.DataArray(values, dims=("y", "x"), coords={"time": time}, name="T")
        if kind == "chunked":
            return array.chunk()
        return array.to_dataset() if kind == "dataset" else array.expand_dims("time") if kind == "of one step" else array

    bound: Any = {"T": wb.Absolute(0.1), "*": wb.Exact()} if kind == "dataset" else wb.Absolute(0.1)
    series = wb.Series(tmp_path / "numbers", bound)
    series.append(at(1.5))
    series.append(at(np.int64(3)), time=3)
    with pytest.raises(wb.WorkbenchError, match=r"the coordinate time of step 2 is 4, and time= is 3\.5: leave time= out"):
        series.append(at(4.0), time=3.5)
    with pytest.raises(wb.WorkbenchError, match="times must rise: step 1 is at 3, and step 2 must be later; got 2"):
        series.append(at(2.0))
    series.append(at(np.nan), time=3.5)
    assert series.times == (1.5, 3.0, 3.5)
    dates = wb.Series(tmp_path / "dates", bound)
    for date in ("2020-01-01", "2020-02-01T12"):
        dates.append(at(np.datetime64(date, "ns")))
    dates.append(at(np.datetime64("2020-03-01", "s")), time=20000)   # any number may be meant by a date
    assert dates.times == (18262.0, 18293.5, 20000.0)
    assert dates.verify().passed
    counted = wb.Series(tmp_path / "counted", bound)
    plain = at(0.0).drop_vars("time")
    for step in (plain, plain):
        counted.append(step)
    assert counted.times == (0.0, 1.0)


def test_where_prediction_does_not_pay_a_run_ends(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    series = wb.Series(tmp_path / "series", wb.Absolute(1e-3))
    for _ in range(4):
        series.append(wb.Field(rng.normal(size=(24, 24)).astype("f4")))
    assert len(series.certificate.keys) >= 2


@settings(max_examples=10, deadline=None)
@given(st.data())
def test_any_particles(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    order = data.draw(st.sampled_from(["keep", "free"]))
    universe = range(12)
    sets = data.draw(st.lists(st.lists(st.sampled_from(universe), min_size=1, unique=True), min_size=1, max_size=6))
    every = data.draw(st.sampled_from([None, 1, 2, 4]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    steps = [
        wb.Particles(
            rng.uniform(0, 7.9, (len(ids), 2)), 8.0, ids=np.array(ids, np.uint16), columns={"m": rng.random(len(ids))}
        )
        for ids in sets
    ]
    series = wb.Series(tmp_path_factory.mktemp("any") / "s", wb.Absolute(BOUND), order=order, every=every)
    for particles in steps:
        series.append(particles)
    opened = wb.Series(series.path)
    assert opened.verify(steps).passed
    for number in rng.permutation(len(steps)).tolist():
        require_like(opened[number].decompress(), steps[number])


@settings(max_examples=8, deadline=None)
@given(
    st.integers(0, 2**32 - 1), st.sampled_from(["float32", "float64"]), st.integers(1, 3), st.sampled_from([None, 1, 3])
)
def test_any_fields(
    tmp_path_factory: pytest.TempPathFactory, seed: int, dtype: str, axes: int, every: int | None
) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 9, axes).tolist())
    first, change = rng.normal(size=(2, *shape))
    hostile = np.where(rng.random(shape) < 0.1, rng.choice([np.nan, np.inf, 1e30, -0.0]), 0)
    values = (first + t * change * rng.choice([0, 1]) + (hostile if t % 2 else 0) for t in range(4))
    fields = [wb.Field(one.astype(dtype)) for one in values]
    series = wb.Series(tmp_path_factory.mktemp("any") / "s", wb.Absolute(1e-3), every=every, chunk_values=100)
    for field in fields:
        series.append(field)
    assert wb.Series(series.path).verify(fields).passed


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 20), unique=True), st.lists(st.integers(0, 20), unique=True))
def test_matching_is_that_of_plain_python(before: list[int], after: list[int]) -> None:
    found = Matched.of(np.array(after, np.int64), np.array(before, np.int64)) if before and after else None
    if found is None:
        return
    order = list(range(len(after))) if found.order is None else found.order.tolist()
    stay = [one for one in before if one in after]
    new = [one for one in after if one not in before]
    assert [after[place] for place in order] == stay + new
    assert found.appeared.tolist() == new
    assert found.vanished.tolist() == [place for place, one in enumerate(before) if one not in after]
    rows = rows_before(len(after), found.vanished, len(before))
    assert [before[row] if row >= 0 else None for row in rows.tolist()] == stay + [None] * len(new)


def test_rows_of_two_steps_before() -> None:
    for first, second, third in itertools.product(itertools.permutations(range(3)), repeat=3):
        one, two = (np.array([place if place < 2 else -1 for place in rows]) for rows in (first, second))
        expected = [int(two[row]) if row >= 0 else -1 for row in one]
        found = composed([one, two])
        assert found is not None
        assert found.tolist() == expected
        assert third is not None
        assert composed([None, None]) is None


def test_workers_make_the_same_bytes(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    steps, fields = moving(3, count=400, change=3), waves(3)
    bytes_of = {}
    for workers in (0, 1, 2):
        for name, data in (("particles", steps), ("fields", fields)):
            series = wb.Series(tmp_path / f"{name}-{workers}", wb.Absolute(BOUND), chunk_values=400)
            options = {"n_workers": workers, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
            if not workers:
                for one in data:
                    series.append(one)
            else:
                with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
                    for one in data:
                        series.append(one, client=client, scratch=tmp_path)
            for number in range(3):
                for array, stored in series[number].arrays.items():
                    if stored.store.in_memory or stored.store.name != f"step-{number:06d}.zip":
                        continue   # ids that changed
                    chunks = [stored.store.read(key) for key in stored.layout.file_keys()]
                    assert bytes_of.setdefault((name, number, array), chunks) == chunks
            assert series.verify(data).passed


def test_ids_are_compared_as_whole_numbers(tmp_path: Path) -> None:
    ids = np.uint64(2**60) + np.arange(20, dtype=np.uint64)
    series = wb.Series(tmp_path / "series", wb.Absolute(BOUND))
    for particles in moving(2, 20):
        series.append(dataclasses.replace(particles, ids=ids))
    for one in series.read(ids=[2**60 + 11, 2**60 + 4, 2**60 - 1, -1]):
        assert one.ids.tolist() == [2**60 + 11, 2**60 + 4]
    for wrong in ([], [2.0**60], ["a"], [[2**60]]):
        with pytest.raises(wb.WorkbenchError, match="the ids of particles to read must be a row of integers"):
            series.read(ids=wrong)


def test_particles_that_come_late_are_none_before(tmp_path: Path) -> None:
    steps = moving(3, 20, change=4)
    series = wb.Series(tmp_path / "series", wb.Absolute(BOUND))
    for particles in steps:
        series.append(particles)
    late = int(steps[-1].ids[-1])
    before, _, after = series.read(ids=[late])
    assert before is None
    assert after.ids.tolist() == [late]
    with pytest.raises(wb.WorkbenchError, match=r"none of these steps .* has a particle with one of these ids"):
        series.read(0, ids=[late])
