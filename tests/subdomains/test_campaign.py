"""A campaign on the workers of a real cluster: the outcomes of this process."""

import threading

import numpy as np
import pytest

import workbench as wb
from workbench.errors import WorkbenchError
from workbench.propagation import CampaignPlan

distributed = pytest.importorskip("distributed")
cloudpickle = pytest.importorskip("cloudpickle")


def brightness(field, floor=0.0):
    contrast = field - field.mean()
    squared = contrast**2 + floor
    return squared.sum(axis=0)


@pytest.fixture(scope="module")
def client():
    """Two workers that are threads: other tests of this folder start processes."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", processes=False,
            memory_limit=0,   # what a worker would measure is the memory of all tests before
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as found,
    ):
        yield found


@pytest.mark.parametrize("make", [
    wb.propagation.power_spectrum, lambda field: wb.propagation.from_function(brightness, field.values),
])
def test_workers_count_the_outcomes_of_one_process(client, make):
    field = wb.Field(np.exp(wb.synthetic.gaussian_field((12, 12, 12), seed=2).values.astype(float)))
    pipeline = make(field)
    perturbations = wb.propagation.strata(pipeline, field)
    expected = wb.propagation.campaign(pipeline, field, perturbations, seed=5, until=150, workers=1)
    found = wb.propagation.campaign(pipeline, field, perturbations, seed=5, until=150, client=client)
    assert found.trials == expected.trials
    stop = threading.Event()
    some = wb.propagation.campaign(
        pipeline, field, perturbations, seed=5, until=20_000, client=client, cancel=stop, progress=lambda *now: stop.set()
    )
    assert not some.complete
    assert some.trials[:150] == expected.trials[: len(some.trials)]
    plan = CampaignPlan(pipeline, field, perturbations, seed=5)
    sent = cloudpickle.loads(cloudpickle.dumps(plan.experiment))   # as to a process
    assert tuple(sent.outcomes(range(30))) == expected.trials[:30]


def test_something_else_than_a_client_is_refused(client):
    field = wb.synthetic.gaussian_field((8, 8), seed=1)
    pipeline = wb.propagation.derivatives(field)
    with pytest.raises(WorkbenchError, match=r"client must be a dask\.distributed\.Client"):
        wb.propagation.campaign(pipeline, field, [wb.propagation.BitFlip("input")], client=3)
    with pytest.raises(WorkbenchError, match=r"workers counts threads of this process; got 2 and a client"):
        wb.propagation.campaign(pipeline, field, [wb.propagation.BitFlip("input")], client=client, workers=2)
