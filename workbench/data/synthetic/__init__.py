"""Samples with known properties: simulated universes, random fields, crystals, and particle sets made to be hard.

Everything is made on the spot from a seed, so that demos, tests and benchmarks need no download, and every sample
says in its metadata what it was made from.
"""

from workbench.data.synthetic import adversarial
from workbench.data.synthetic.cosmic_web import cosmic_web
from workbench.data.synthetic.cosmology import Cosmology
from workbench.data.synthetic.crystal import molecular_lattice
from workbench.data.synthetic.random_field import gaussian_field
from workbench.data.synthetic.regions import Region, piecewise_field

__all__ = ["Cosmology", "Region", "adversarial", "cosmic_web", "gaussian_field", "molecular_lattice", "piecewise_field"]
