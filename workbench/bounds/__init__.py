"""Bounds: the size and the quality of each codec at each error bound, and the bound that meets a target."""

from workbench.bounds.prediction.expert import Expert
from workbench.bounds.prediction.predict import calibrated, predict
from workbench.bounds.prediction.prediction import Predicted, Prediction
from workbench.bounds.prediction.train import train
from workbench.bounds.result import Sweep
from workbench.bounds.run import Run
from workbench.bounds.sweep import iter_sweep, sweep
from workbench.bounds.tuning.allocated import Allocation
from workbench.bounds.tuning.allocation import find_bounds
from workbench.bounds.tuning.find import find_bound
from workbench.bounds.tuning.found import Found
from workbench.bounds.tuning.several import All
from workbench.bounds.tuning.slack import Slack
from workbench.bounds.tuning.targets import PSNR, SSIM, KeepMassFunction, KeepSpectrum, Quality, Ratio, Target
from workbench.charts.description import Chart

__all__ = [
    "PSNR",
    "SSIM",
    "All",
    "Allocation",
    "Chart",
    "Expert",
    "Found",
    "KeepMassFunction",
    "KeepSpectrum",
    "Predicted",
    "Prediction",
    "Quality",
    "Ratio",
    "Run",
    "Slack",
    "Sweep",
    "Target",
    "calibrated",
    "find_bound",
    "find_bounds",
    "iter_sweep",
    "predict",
    "sweep",
    "train",
]
