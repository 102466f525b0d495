"""Propagation: what an error does downstream, for bit flips and for compression within a bound.

A pipeline is an analysis as named stages; a perturbation changes the array at one of its sites.

>>> import numpy as np
>>> pipeline = Pipeline([("contrast", lambda x: x / x.mean() - 1), ("variance", lambda d: (d * d).mean())])
>>> run = pipeline.run(np.arange(1.0, 9.0))
>>> flipped = pipeline.perturbed(run, BitFlip("contrast", bit="sign", index=0))
>>> float(flipped["contrast"][0]), bool(flipped["variance"] == run["variance"])
(0.7777777777777778, True)
"""

from workbench.propagation.bits import BitFlip, StuckAt
from workbench.propagation.bounded import Bounded, Noise
from workbench.propagation.budget import budget
from workbench.propagation.budget_result import Budget
from workbench.propagation.caches import (
    CacheBudget,
    CacheComparison,
    CacheFigures,
    KVCache,
    baseline_cache,
    cache_budget,
    cache_from_dataset,
    cache_to_dataset,
    compare_caches,
)
from workbench.propagation.campaign import CampaignPlan, campaign
from workbench.propagation.campaign_result import Campaign, HeatMap
from workbench.propagation.certification import Holds
from workbench.propagation.dose import Dose, DoseResponse, dose_response
from workbench.propagation.dropped import Dropped
from workbench.propagation.from_function import from_function
from workbench.propagation.from_torch import from_torch
from workbench.propagation.language.model import LanguageModel, language_model
from workbench.propagation.perturbation import Perturbation
from workbench.propagation.pipeline import Pipeline, Run
from workbench.propagation.protected import protected
from workbench.propagation.ready import (
    derivatives,
    halos,
    histogram,
    kmeans,
    kuramoto_sivashinsky,
    linear_operator,
    perceptron,
    power_spectrum,
    principal_components,
    vorticity,
)
from workbench.propagation.realisations import realisations
from workbench.propagation.reduced import LowRank, Prune
from workbench.propagation.reductions import ReductionComparison, ReductionFigures, compare_reductions
from workbench.propagation.stage import Detected, Stage, StageFailed
from workbench.propagation.stopping import Until
from workbench.propagation.strata import strata
from workbench.propagation.stream_flip import CompressedStreamFlip
from workbench.propagation.stuck_cells import StuckCells
from workbench.propagation.tolerance import Tolerance, each_within, poisson, shares_equal, within
from workbench.propagation.tolerated import Tolerated, accuracy, tolerated
from workbench.propagation.trace import SiteError, Trace, trace

__all__ = [
    "BitFlip",
    "Bounded",
    "Budget",
    "CacheBudget",
    "CacheComparison",
    "CacheFigures",
    "Campaign",
    "CampaignPlan",
    "CompressedStreamFlip",
    "Detected",
    "Dose",
    "DoseResponse",
    "Dropped",
    "HeatMap",
    "Holds",
    "KVCache",
    "LanguageModel",
    "LowRank",
    "Noise",
    "Perturbation",
    "Pipeline",
    "Prune",
    "ReductionComparison",
    "ReductionFigures",
    "Run",
    "SiteError",
    "Stage",
    "StageFailed",
    "StuckAt",
    "StuckCells",
    "Tolerance",
    "Tolerated",
    "Trace",
    "Until",
    "accuracy",
    "baseline_cache",
    "budget",
    "cache_budget",
    "cache_from_dataset",
    "cache_to_dataset",
    "campaign",
    "compare_caches",
    "compare_reductions",
    "derivatives",
    "dose_response",
    "each_within",
    "from_function",
    "from_torch",
    "halos",
    "histogram",
    "kmeans",
    "kuramoto_sivashinsky",
    "language_model",
    "linear_operator",
    "perceptron",
    "poisson",
    "power_spectrum",
    "principal_components",
    "protected",
    "realisations",
    "shares_equal",
    "strata",
    "tolerated",
    "trace",
    "vorticity",
    "within",
]
