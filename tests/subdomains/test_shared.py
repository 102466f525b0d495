"""What all items of a step need: written once, read once by each process, and not sent with the tasks."""

import pickle

import numpy as np
import pytest

import workbench as wb
from subdomains.counting import Counting
from workbench.archive import Damaged
from workbench.data.chunked import ParticlesInMemory, even_sizes
from workbench.errors import GuaranteeBroken, WorkbenchError
from workbench.run import shared as module
from workbench.run.executors import InProcess, OnDask
from workbench.run.shared import Shared, with_shared
from workbench.subdomains.groups import search


class Large:
    """Counts how often it is unpickled."""

    loads = 0

    def __init__(self):
        self.data = bytes(10**6)

    def __setstate__(self, state):
        type(self).loads += 1
        self.__dict__.update(state)


def length(large, item):
    return len(large.data) + item


@pytest.fixture(autouse=True)
def nothing_held(monkeypatch):
    monkeypatch.setattr(module, "_values", {})
    monkeypatch.setattr(Large, "loads", 0)


def test_a_value_is_read_once_by_a_process_and_its_tasks_are_small(tmp_path):
    file = Shared.written(tmp_path, Large())
    task = pickle.dumps(with_shared(length, file))
    assert len(task) < 500
    assert [pickle.loads(task)(item) for item in range(5)] == [10**6 + item for item in range(5)]
    assert Large.loads == 1


def test_values_of_steps_that_have_ended_are_dropped(tmp_path):
    first = Shared.written(tmp_path, "first")
    assert first.value() == "first"
    first.delete()
    assert not list(tmp_path.iterdir())
    Shared.written(tmp_path, "second").value()
    assert list(module._values.values()) == ["second"]
    for number in range(2 * module.AT_ONCE):
        Shared.written(tmp_path, number).value()
    assert list(module._values.values()) == list(range(2 * module.AT_ONCE))[-module.AT_ONCE :]


def test_a_file_that_is_damaged_or_gone_is_not_used(tmp_path):
    shared = Shared.written(tmp_path, [1, 2, 3])
    whole = shared.path.read_bytes()
    for damaged in (whole[:-1], whole[:5] + bytes([whole[5] ^ 1]) + whole[6:], b""):
        shared.path.write_bytes(damaged)
        with pytest.raises(WorkbenchError, match="its bytes have changed since they were written"):
            shared.value()
    shared.delete()
    with pytest.raises(WorkbenchError, match="cannot be read"):
        shared.value()


def test_executors_give_it_to_each_item(client, tmp_path):
    assert InProcess().within(tmp_path).map("power", pow, [1, 2, 3], shared=2) == [2, 4, 8]
    executor = OnDask(client)
    assert executor.within(tmp_path).map("power", pow, [1, 2, 3], shared=2) == [2, 4, 8]
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="needs a folder that all workers see"):
        executor.map("power", pow, [1], shared=2)


def test_nothing_is_left_after_an_error(client, tmp_path):
    with pytest.raises(WorkbenchError, match="divide failed on the cluster at item 1 of 1: ZeroDivisionError"):
        OnDask(client).within(tmp_path).map("divide", divmod, [0], shared=2)
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_tasks_of_a_search_carry_nothing_that_grows_with_the_number_of_subdomains():
    carried = {}
    particles = wb.Particles(np.random.default_rng(0).random((400, 3)), 1.0)
    for parts in (2, 200):
        executor = Counting()
        with search(executor, ParticlesInMemory(particles, even_sizes(400, 50)), 0.2, parts=parts) as groups:
            assert groups.count(1) == len(groups) > 0
        carried[parts] = {name: counts.sent / counts.tasks for name, counts in executor.steps.items()}
    assert "compare-labels" in carried[2]
    for name, few in carried[2].items():
        assert max(few, carried[200][name]) <= 600, name


def test_an_error_of_any_kind_says_where_it_arose():
    def fail(item):
        raise Damaged(f"values/c/{item}", "its section fails its checksum")

    with pytest.raises(GuaranteeBroken, match=r"chunk values/c/7 is damaged: .*\(look, chunk 1 of 1\)"):
        InProcess().map("look", fail, [7], "chunk")
