"""`wb.distributed.campaign`: the trials of a fault-injection campaign on the workers of a cluster."""

from __future__ import annotations

from typing import Any

from workbench.bounds.sweep import Progress, Stoppable
from workbench.propagation import Campaign, CampaignPlan
from workbench.run.clients import executor_of


def campaign(
    *plan: Any, client: Any = None, progress: Progress | None = None, cancel: Stoppable | None = None, **options: Any
) -> Campaign:
    """`wb.propagation.campaign` on a Dask client, or the address of a scheduler; the outcomes are the same.

    It takes the arguments of `wb.propagation.CampaignPlan`. The pipeline and the data are sent along with every 25 trials:
    for pipelines that compute longer than that takes.

    >>> import workbench as wb
    >>> field = wb.synthetic.gaussian_field((8, 8), seed=1)
    >>> pipeline = wb.propagation.derivatives(field)
    >>> campaign(pipeline, field, [wb.propagation.BitFlip("input", bit="sign")], until=20)
    Campaign(20 trials in 1 strata: 0 masked, 0 benign, 20 silent, 0 detected, 0 crash)
    """
    return CampaignPlan(*plan, **options).run(executor_of(client), progress, cancel)
