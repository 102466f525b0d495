"""Bounds: the size and the quality of each codec at each error bound."""

from workbench.bounds.chart import Chart
from workbench.bounds.result import Sweep
from workbench.bounds.run import Run
from workbench.bounds.sweep import iter_sweep, sweep

__all__ = ["Chart", "Run", "Sweep", "iter_sweep", "sweep"]
