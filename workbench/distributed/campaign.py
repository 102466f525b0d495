"""`wb.distributed.campaign`: the trials of a fault-injection campaign on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.distributed.clients import executor_of
from workbench.propagation import Campaign, Perturbation, Pipeline, Until
from workbench.propagation import campaign as in_this_process


def campaign(
    pipeline: Pipeline,
    x: Any,
    perturbations: Sequence[Perturbation | Sequence[Perturbation]],
    seed: int = 0,
    until: Until | int | float | None = None,
    *,
    client: Any = None,
    **options: Any,
) -> Campaign:
    """`wb.propagation.campaign` on a Dask client, or the address of a scheduler; the outcomes are the same.

    The pipeline and the data are sent along with every 25 trials: for pipelines that compute longer than that takes.

    >>> import workbench as wb
    >>> field = wb.synthetic.gaussian_field((8, 8), seed=1)
    >>> pipeline = wb.propagation.derivatives(field)
    >>> campaign(pipeline, field, [wb.propagation.BitFlip("input", bit="sign")], until=20)
    Campaign(20 trials in 1 strata: 0 masked, 0 benign, 20 silent, 0 detected, 0 crash)
    """
    return in_this_process(pipeline, x, perturbations, seed, until, executor=executor_of(client), **options)
