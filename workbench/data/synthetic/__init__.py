"""Samples with known properties: simulated universes, random fields, crystals, digits, and adversarial particle sets.

All samples are generated from a seed, so that demos, tests and benchmarks need no download. The metadata of each sample
contain its parameters.
"""

from workbench.data.synthetic import adversarial
from workbench.data.synthetic.cosmic_web import cosmic_web, cosmic_web_series
from workbench.data.synthetic.cosmology import Cosmology
from workbench.data.synthetic.crystal import molecular_lattice
from workbench.data.synthetic.digits import digits
from workbench.data.synthetic.random_field import gaussian_field
from workbench.data.synthetic.regions import Region, piecewise_field

__all__ = [
    "Cosmology", "Region", "adversarial", "cosmic_web", "cosmic_web_series", "digits", "gaussian_field",
    "molecular_lattice", "piecewise_field",
]
