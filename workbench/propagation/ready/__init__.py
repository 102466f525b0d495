"""Ready-made pipelines: analyses that scientists run on fields and particles, with what is known about their errors.

Each function takes the data, or data like it, and returns a pipeline for arrays of that shape.
"""

from workbench.propagation.ready.clustering import kmeans
from workbench.propagation.ready.counting import histogram
from workbench.propagation.ready.equation import kuramoto_sivashinsky
from workbench.propagation.ready.groups import halos
from workbench.propagation.ready.network import perceptron
from workbench.propagation.ready.operators import linear_operator
from workbench.propagation.ready.principal import principal_components
from workbench.propagation.ready.spectrum import power_spectrum
from workbench.propagation.ready.stencils import derivatives, vorticity

__all__ = [
    "derivatives",
    "halos",
    "histogram",
    "kmeans",
    "kuramoto_sivashinsky",
    "linear_operator",
    "perceptron",
    "power_spectrum",
    "principal_components",
    "vorticity",
]
