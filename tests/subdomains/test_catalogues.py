"""Catalogues that do not pass through the client: shards, which have each group once, and their summary."""

import pickle
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from combinations import in_pairs
from workbench.clusters import Catalogue
from workbench.clusters.moments import Moments
from workbench.data.chunked import ParticlesInMemory, even_sizes
from workbench.errors import WorkbenchError
from workbench.run.executors import InProcess
from workbench.subdomains.exchange import Exchange
from workbench.subdomains.groups import search
from workbench.subdomains.shards import Sent

WEB = wb.synthetic.cosmic_web(n=16, seed=7)
NAMES = ["label", "members", "x", "y", "z", "radius", "mass", "vx", "vy", "vz", "dispersion"]


def groups_of(client=None, parts=6, **options):
    masses = np.random.default_rng(1).uniform(1, 2, len(WEB))
    heavy = wb.Particles(WEB.positions, WEB.box, velocities=WEB.velocities, masses=masses)
    source = ParticlesInMemory(heavy, even_sizes(len(WEB), 1000))
    return wb.friends_of_friends(source, 0.2, client=client, parts=parts, **options)


def rows_of(path):
    """The columns of a shard, as a program without Lossbench reads them."""
    if path.suffix == ".parquet":
        table = pytest.importorskip("pyarrow.parquet").read_table(path)
        return {name: table[name].to_numpy() for name in table.column_names}
    return {name: np.asarray(array[:]) for name, array in pytest.importorskip("zarr").open_group(path, mode="r").arrays()}


@pytest.mark.parametrize(("on_workers", "format", "least"), in_pairs([False, True], ["zarr", "parquet"], [1, 20]))
def test_shards_have_each_group_of_the_catalogue_once(tmp_path, request, on_workers, format, least):
    pytest.importorskip({"zarr": "zarr", "parquet": "pyarrow"}[format])
    with groups_of(request.getfixturevalue("client") if on_workers else None) as groups:
        expected = groups.catalogue(least)
        found = groups.write_catalogue(tmp_path / "halos", least, format=format)
        files = sorted((tmp_path / "halos").iterdir())
    assert [path.name for path in files] == [f"part-{number:06}.{format}" for number in range(6 + 3)]
    shards = [rows_of(path) for path in files]
    table = {name: np.concatenate([shard[name] for shard in shards]) for name in NAMES}
    order = np.lexsort((table["label"], -table["members"]))
    for name, column in expected.columns().items():
        np.testing.assert_array_equal(table[name][order], column)
        assert table[name].dtype == column.dtype
    assert any(len(shard["label"]) for shard in shards[6:])   # groups in several subdomains
    assert (found.groups, found.particles) == (len(expected), expected.members.sum())
    assert [path.name for path in tmp_path.iterdir()] == ["halos"]


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_a_summary_is_that_of_the_catalogue(data):
    count, parts = data.draw(st.integers(1, 200)), data.draw(st.integers(1, 12))
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    positions = random.random((count, 2)) ** data.draw(st.sampled_from([1, 4]))
    particles = wb.Particles(positions) if data.draw(st.booleans()) else wb.Particles(positions, 1.0)
    least, largest = data.draw(st.integers(1, 6)), data.draw(st.integers(0, 4))
    length = data.draw(st.sampled_from([0.01, 0.05, 0.2]))
    whole = wb.clusters.catalogue(particles, wb.friends_of_friends(particles, length, "length"), least)
    with wb.friends_of_friends(particles, length, "length", parts=parts) as groups:
        found = groups.summary(least, largest)
        assert groups.count(least) == found.groups == len(whole)
        edges, histogram = groups.mass_function(least)
    np.testing.assert_array_equal(found.largest.labels, whole.labels[:largest])
    np.testing.assert_array_equal(found.largest.members, whole.members[:largest])
    np.testing.assert_array_equal(histogram, np.histogram(whole.members, edges)[0])
    assert (found.particles, histogram.sum()) == (whole.members.sum(), len(whole))
    assert edges[0] == least
    assert len(whole) == 0 or edges[-2] <= whole.members.max() < edges[-1]


class Weighing(InProcess):
    """Runs steps here, and weighs what a scheduler would bring to the client."""

    def map(self, name, step, items, *args, **options):
        results = super().map(name, step, items, *args, **options)
        if name in ("measure-groups", "join-groups"):
            sizes.extend(len(pickle.dumps(result)) for result in results)
        return results


sizes: list[int] = []


def test_what_comes_to_the_client_does_not_grow_with_the_number_of_groups(tmp_path):
    pytest.importorskip("zarr")
    largest = []
    for count in (500, 20_000):
        particles = wb.Particles(np.random.default_rng(0).random((count, 3)), 1.0)
        with search(Weighing(), particles, 0.2, parts=7) as groups:
            sizes.clear()
            assert groups.write_catalogue(tmp_path / str(count), 1, format="zarr").groups > count / 2
            largest.append(max(sizes))
    assert largest[1] < 1.1 * largest[0] < 4000


def test_threads_that_ask_for_catalogues_at_once_send_the_columns_once(monkeypatch):
    sent, distribute = [], Exchange.distribute

    def slowly(self, executor, name="send-particles"):
        sent.append(name)
        time.sleep(0.2)
        return distribute(self, executor, name)

    monkeypatch.setattr(Exchange, "distribute", slowly)
    with groups_of() as groups, ThreadPoolExecutor(2) as threads:
        every, halos = threads.map(groups.catalogue, (1, 20))
    np.testing.assert_array_equal(halos.labels, every.labels[every.members >= 20])
    assert sent == ["send-particles", "send-columns"]


def test_pieces_of_groups_come_back_to_their_owners(tmp_path):
    random = np.random.default_rng(2)
    label = np.array([3, 4, 7, 2**40])
    sent = Moments(label, label + 1, *(random.random((4, *shape)) for shape in ((), (3,), (), (0,), ())))
    Sent(tmp_path, 5).write(sent, 3)
    for owner in range(3):
        found = Sent(tmp_path, 5).read(owner, (3, 0))
        expected = sent.chosen(np.flatnonzero(label % 3 == owner))
        assert all(np.array_equal(getattr(found, name), getattr(expected, name)) for name in vars(expected))
    path = tmp_path / "subdomain-5"
    path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])
    with pytest.raises(WorkbenchError, match="subdomain-5 cannot be read"):
        Sent(tmp_path, 5).read(0, (3, 0))


def test_a_catalogue_is_a_table():
    pandas = pytest.importorskip("pandas")
    with groups_of() as groups:
        halos = groups.catalogue(20)
    frame = halos.to_dataframe()
    assert list(frame.columns) == NAMES
    np.testing.assert_array_equal(frame[["x", "y", "z"]].to_numpy(), halos.centres)
    assert isinstance(frame, pandas.DataFrame)
    flat = Catalogue(np.array([1]), np.array([2]), np.zeros((1, 2)), np.ones(1), velocities=np.ones((1, 2)),
                     dispersions=np.ones(1))
    assert list(flat.to_dataframe().columns) == ["label", "members", "x", "y", "radius", "vx", "vy", "dispersion"]


@pytest.mark.parametrize(("given", "told"), [
    ({"format": "csv"}, "format must be one of parquet, zarr; got 'csv'"),
    ({"min_members": 0}, "min_members must be a whole number"),
    ({"largest": -1}, "largest must be a whole number"),
    ({"columns": ["ids"]}, "columns must be of masses and velocities"),
    ({"folder": "taken"}, "taken exists: choose another name, or remove it"),
    ({"folder": "no/halos"}, "halos cannot be written: No such file or directory"),
])
def test_what_cannot_be_written_is_refused_before_any_work(tmp_path, monkeypatch, given, told):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    with groups_of() as groups:
        monkeypatch.setattr(InProcess, "map", lambda *_: pytest.fail("work has begun"))
        with pytest.raises(WorkbenchError, match=told):
            groups.write_catalogue(**{"folder": "halos", "format": "zarr"} | given)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


@pytest.mark.parametrize(("format", "library", "install"), [
    ("parquet", "pyarrow", "pip install pyarrow"), ("zarr", "zarr", r"pip install 'lossbench\[io\]'"),
])
def test_a_library_that_is_missing_is_named(tmp_path, monkeypatch, format, library, install):
    monkeypatch.setitem(sys.modules, library, None)
    with groups_of() as groups, pytest.raises(WorkbenchError, match=f"needs {library}, which is not installed: {install}"):
        groups.write_catalogue(tmp_path / "halos", format=format)
    assert not list(tmp_path.iterdir())


def test_files_of_workers_that_were_killed_do_not_stay(tmp_path, monkeypatch):
    pytest.importorskip("zarr")
    replace, left = Path.replace, []

    def killed_once(path, target):
        if Path(target).suffix == ".zarr" and not left:
            left.append(path)
            (Path(target).with_name(".part-000000.zarr.killed")).mkdir()
            Path(target).mkdir()   # another worker has written the same shard
            (Path(target) / "zarr.json").write_text("{}")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", killed_once)
    with groups_of(parts=1) as groups:
        groups.write_catalogue(tmp_path / "halos", format="zarr")
    assert left
    assert [path.name for path in (tmp_path / "halos").iterdir()] == ["part-000000.zarr"]
