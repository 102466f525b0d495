"""Workers with a GPU: who gets the searches, and that nothing is copied silently. The stand-in for CuPy refuses to mix."""

import asyncio
import os
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import fake_cupy
import workbench as wb
from workbench.data.chunked import ParticlesInMemory, even_sizes
from workbench.errors import WorkbenchError
from workbench.run import executors, gpu_workers, patience

distributed = pytest.importorskip("distributed")
SNAPSHOT = wb.synthetic.cosmic_web(n=16, seed=7)
SOURCE = ParticlesInMemory(wb.Particles(SNAPSHOT.positions, SNAPSHOT.box), even_sizes(len(SNAPSHOT), 1500))


@pytest.fixture
def mixed():
    """One worker with a GPU and one without, in this process, so that both see the stand-in."""
    place = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "dashboard": False}
    workers = {
        name: {"cls": distributed.Worker, "options": {**place, "nthreads": 1, "resources": resources}}
        for name, resources in (("card", {"GPU": 1}), ("cpu", {}))
    }
    scheduler = {"cls": distributed.Scheduler, "options": place | {"port": 0}}
    with (
        distributed.SpecCluster(scheduler=scheduler, workers=workers) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(2, timeout=60)
        yield client


def name_of_worker(item):
    return distributed.get_worker().name, gpu_workers.has_gpu()


def test_searches_go_to_the_workers_with_a_gpu(mixed):
    found = executors.OnDask(mixed).map("where", name_of_worker, range(12), on_gpu=True)
    assert set(found) == {("card", True)}
    found = executors.OnDask(mixed).map("where", name_of_worker, range(30))
    assert ("cpu", False) in found


def test_without_a_gpu_every_worker_searches(client):
    assert executors.OnDask(client)._gpus() == 0
    assert executors.OnDask(client).map("where", len, [[1], [1, 2]], on_gpu=True) == [1, 2]


@pytest.mark.parametrize("parts", [1, 5])
def test_positions_go_to_the_card_once_and_only_labels_come_back(stand_in, mixed, monkeypatch, parts):
    sent = []

    def asarray(values, dtype=None):
        sent.append(values)
        return fake_cupy.asarray(values, dtype)

    monkeypatch.setattr(stand_in, "asarray", asarray)
    with wb.friends_of_friends(SOURCE, client=mixed, parts=parts) as found:
        assert found.gathered().equals(wb.friends_of_friends(SNAPSHOT))
        searched = len(SNAPSHOT) + found.ghosts
    assert any(name.startswith("link_") for name in fake_cupy.Function.launches)
    positions = [values for values in sent if isinstance(values, np.ndarray) and values.ndim == 2 and len(values) > 3]
    assert (len(positions), sum(map(len, positions))) == (parts, searched)
    large = [size for size in fake_cupy.copied_to_host if size > 100]
    assert (len(large), sum(large)) == (parts, searched)


def test_a_worker_that_claims_a_gpu_must_have_one(mixed, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(WorkbenchError, match=r"the worker .* cannot work: a GPU needs CuPy"):
        wb.friends_of_friends(SOURCE, client=mixed)


def test_a_search_does_not_wait_for_ever_for_a_card(mixed, monkeypatch):
    monkeypatch.setattr(patience, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(patience, "PATIENCE_SECONDS", 0.2)
    sleeps = mixed.submit(asyncio.sleep, 5, resources={"GPU": 1})   # the card is busy, and then gone
    monkeypatch.setattr(patience, "GPU", "a card that is gone")
    with pytest.raises(WorkbenchError, match="find-groups: the cluster has had no worker with a GPU for"):
        executors.OnDask(mixed).map("find-groups", len, [[1]], on_gpu=True)
    mixed.cancel(sleeps, force=True)


def test_the_cluster_that_is_asked_for_listens_on_loopback_and_labels_its_workers():
    options = gpu_workers.cluster_options([0, 2], "16GiB", "ucx", "/scratch")
    assert options == {
        "CUDA_VISIBLE_DEVICES": [0, 2], "threads_per_worker": 1, "resources": {"GPU": 1}, "memory_limit": "16GiB",
        "protocol": "ucx", "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "pre_import": "cupy",
        "local_directory": "/scratch",
    }
    assert "CUDA_VISIBLE_DEVICES" not in gpu_workers.cluster_options()
    names = ["GPU-1f2a3b4c-0d1e-2f3a-4b5c-6d7e8f9a0b1c", "MIG-GPU-1f2a3b4c-0d1e-2f3a-4b5c-6d7e8f9a0b1c/1/0", 3]
    assert gpu_workers.cluster_options(names)["CUDA_VISIBLE_DEVICES"] == names


@pytest.mark.parametrize(("given", "told"), [
    ({"devices": []}, "at least one card, and each once"),
    ({"devices": [1, 1]}, "at least one card, and each once"),
    ({"devices": [-1]}, "each device must be a whole number"),
    ({"devices": ["GPU-1f", "GPU-1f"]}, "at least one card, and each once"),
    ({"devices": ["0,1"]}, r'each device must be a number, or a name such as "GPU-1f2a\.\.\." .*; got \'0,1\''),
    ({"cpu_workers": -1}, "cpu_workers must be a whole number"),
    ({"protocol": "smoke"}, "protocol must be one of tcp, ucx; got 'smoke'"),
])
def test_what_no_cluster_can_be_made_of_is_refused(given, told):
    with pytest.raises(WorkbenchError, match=told):
        wb.distributed.local_gpus(**given)


def test_without_dask_cuda_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask_cuda", None)
    with pytest.raises(WorkbenchError, match=r"GPU workers need dask-cuda.*pip install 'lossbench\[dask,gpu\]' 'dask-cuda"):
        wb.distributed.local_gpus()


@pytest.fixture
def cards(stand_in, monkeypatch):
    """What dask-cuda is asked for; in place of its cluster, one of workers that claim the cards."""
    asked = {}

    def start(**options):
        asked.update(options)
        return distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, resources={"GPU": 1}, memory_limit=options["memory_limit"], host="127.0.0.1",
            dashboard_address="127.0.0.1:0", processes=False, protocol="tcp",
        )

    monkeypatch.setitem(sys.modules, "dask_cuda", type("dask_cuda", (), {"LocalCUDACluster": staticmethod(start)}))
    return asked


def sees(dask_worker):
    return os.environ.get("CUDA_VISIBLE_DEVICES"), dask_worker.memory_manager.memory_limit, dask_worker.state.nthreads


@pytest.mark.long
def test_workers_without_a_card_stand_beside_it_and_all_have_the_same_memory(cards):
    with (
        wb.distributed.local_gpus([1], cpu_workers=2) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        client.wait_for_workers(3, timeout=60)
        workers = client.scheduler_info(-1)["workers"]
        beside = [address for address, worker in workers.items() if not worker["resources"]]
        assert len(beside) == 2
        assert all(address.startswith("tcp://127.0.0.1") for address in workers)
        share = cards["memory_limit"]
        assert share == distributed.system.MEMORY_LIMIT // 3
        assert client.run(sees, workers=beside) == dict.fromkeys(beside, ("", share, 1))
    assert cards == {**gpu_workers.cluster_options([1]), "memory_limit": share}


@pytest.mark.long
def test_all_cores_that_no_card_needs_get_a_worker(cards, monkeypatch):
    monkeypatch.setattr("dask.system.CPU_COUNT", 3)
    with wb.distributed.local_gpus(memory=2**30) as cluster:
        assert len(cluster.worker_spec) == 1 + 2   # one of the stand-in's one card
        assert cluster.worker_spec["cpu-0"]["options"]["memory_limit"] == cards["memory_limit"] == 2**30


@pytest.fixture
def rmm(monkeypatch):
    """A stand-in for RMM with a pool."""
    kinds = {name: type(name, (), {}) for name in ("PoolMemoryResource", "CudaMemoryResource")}
    used = []
    module = ModuleType("rmm")
    module.mr = SimpleNamespace(get_current_device_resource=kinds["PoolMemoryResource"], **kinds)
    module.__spec__ = ModuleSpec("rmm", None)
    allocators = ModuleType("rmm.allocators.cupy")
    allocators.rmm_cupy_allocator = used.append
    for each in (module, ModuleType("rmm.allocators"), allocators):
        monkeypatch.setitem(sys.modules, each.__name__, each)
    return module, used


def test_cards_use_the_pool_of_rmm_where_there_is_one(cards, rmm, stand_in, monkeypatch):
    with wb.distributed.local_gpus(cpu_workers=0):
        assert cards["rmm_pool_size"] == gpu_workers.POOL
    module, used = rmm
    allocators = []
    monkeypatch.setattr(stand_in.cuda, "set_allocator", allocators.append)
    gpu_workers._share_memory(stand_in)
    allocators[0](100)
    assert used == [100]
    gpu_workers._share_memory.cache_clear()
    monkeypatch.setattr(module.mr, "get_current_device_resource", module.mr.CudaMemoryResource)
    gpu_workers._share_memory(stand_in)
    allocators[1](200)
    assert used == [100]   # CuPy's own pool


def test_a_card_that_is_full_says_what_to_do_and_the_search_is_not_repeated(stand_in, mixed, monkeypatch):
    asked = []

    def full(size):
        asked.append(size)
        raise type("OutOfMemoryError", (MemoryError,), {})("Out of memory allocating 49,152 bytes")

    monkeypatch.setattr(stand_in, "get_default_memory_pool", lambda: SimpleNamespace(malloc=full))
    monkeypatch.setattr(stand_in.cuda, "set_allocator", lambda allocate: setattr(stand_in.cuda, "allocate", allocate))
    monkeypatch.setattr(stand_in, "asarray", lambda values: stand_in.cuda.allocate(values.nbytes))
    with pytest.raises(WorkbenchError, match=r"no room for 49,152 bytes more \(Out of memory .*\): give more parts"):
        wb.friends_of_friends(SOURCE, client=mixed, parts=1)
    assert len(asked) == 1
