"""Panels for JupyterLab: each call opens a panel that shows the cost and the effects of a choice, and gives its code.

>>> import workbench as wb
>>> with wb.lab.bounds(wb.synthetic.gaussian_field((64, 64), seed=1)) as panel:
...     panel.result["trial"].archive.ratio > 1
True
"""

from workbench.lab.bounds_panel.dataset_panel import DatasetPanel
from workbench.lab.bounds_panel.opening import bounds
from workbench.lab.bounds_panel.panel import BoundsPanel
from workbench.lab.chart_part import chart
from workbench.lab.cloud_view.opening import cloud
from workbench.lab.cloud_view.part import Cloud
from workbench.lab.clusters_panel.panel import ClustersPanel, clusters
from workbench.lab.limits_panel.panel import LimitsPanel, limits
from workbench.lab.panel import Panel
from workbench.lab.picture import StillPicture, picture
from workbench.lab.propagation_panel.panel import PropagationPanel, propagation
from workbench.lab.series_panel.panel import SeriesPanel
from workbench.lab.statistics_panel.panel import StatisticsPanel, statistics
from workbench.lab.stepped import SteppedPanel, stepped

__all__ = [
    "BoundsPanel", "Cloud", "ClustersPanel", "DatasetPanel", "LimitsPanel", "Panel", "PropagationPanel", "SeriesPanel",
    "StatisticsPanel", "SteppedPanel", "StillPicture", "bounds", "chart", "cloud", "clusters", "limits", "picture",
    "propagation", "statistics", "stepped",
]
