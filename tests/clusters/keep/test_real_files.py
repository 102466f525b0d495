"""Real particles of three kinds: a simulation, a mock catalogue of galaxies, and a fluid of molecules."""

from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from clusters.keep.scenarios import SOLVERS, Scenario, decoded_with, require_kept, require_stored


def require_all_is_well(original: wb.Particles, share: float, solver: str, unit_length: float, min_members: int) -> None:
    random = np.random.default_rng(0)
    bound = wb.Absolute(share * unit_length)
    decoded = decoded_with(original, random.uniform(-1, 1, original.positions.shape), bound)
    scenario = Scenario(original, decoded, bound, (unit_length,), min_members)
    correction = scenario.correct(solver)
    assert correction.edited > 0
    assert correction.bits_per_particle < 8
    require_kept(scenario, correction)
    require_stored(scenario, correction)


@pytest.mark.few(1)
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_simulation(shared_data: Path, solver: str) -> None:
    whole = wb.open(shared_data / "disperse_32/disperse_simu_32_id.gad")
    for share, min_members in ((0.1, 1), (0.3, 20)):
        require_all_is_well(whole, share, solver, 312.5, min_members)


@pytest.mark.few(1)
@pytest.mark.parametrize("solver", SOLVERS)
def test_mock_galaxies(shared_data: Path, solver: str) -> None:
    """A slab of the catalogue, in an open space."""
    whole = wb.open(shared_data / "corrfunc_mr19/gals_Mr19.ff")
    slab = wb.Particles(whole.positions[whole.positions[:, 2] < 30])
    assert len(slab) > 5000
    require_all_is_well(slab, 0.1, solver, 0.7827, 1)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_fluid(shared_data: Path, solver: str) -> None:
    """Nothing clusters here: links are nearly as long as the spacing, and many pairs are about that far apart."""
    fluid = wb.open(shared_data / "md_freud/rdf_benchmark.gsd")
    assert fluid.box is not None
    require_all_is_well(fluid, 0.1, solver, 0.8 * fluid.spacing, 1)
