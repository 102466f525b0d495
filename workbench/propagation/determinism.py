"""Whether a pipeline returns the same bits twice: what every comparison with an unperturbed run rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from workbench.propagation.containers import array_of
from workbench.propagation.error_sizes import change_of
from workbench.propagation.stage import StageFailed

if TYPE_CHECKING:
    from workbench.propagation.pipeline import Run


def require_deterministic(run: Run) -> None:
    """Compute every stage again on the inputs that it had, and refuse the first that returns something else."""
    for stage in run.pipeline.stages:
        results = stage.function(*(run.raw[site] for site in stage.inputs or ()))
        listed = results if len(stage.outputs) > 1 else (results,)
        for site, again in zip(stage.outputs, listed, strict=True):
            before, after = run[site], array_of(again)
            if before.shape != after.shape or bool(np.any(largest := change_of(before, after))):
                how = "of another shape" if before.shape != after.shape else f"that differs by up to {largest.max():.3g}"
                raise StageFailed(
                    f"stage {stage.name!r} must return the same for the same input; a second call returned an array {how}: "
                    "give it a fixed seed, or draw random numbers outside of the pipeline"
                )
