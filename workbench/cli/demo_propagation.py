"""What an error bound does downstream, for the demo: the halo mass function at rising bounds."""

from __future__ import annotations

from workbench.data import Particles
from workbench.guarantees import Absolute
from workbench.propagation import Dose, dose_response, halos

SHARES = (0.005, 0.02, 0.1, 0.3)   # error bounds / linking length
CODEC = "lattice"


def doses(particles: Particles, linking_length: float, min_members: int) -> tuple[Dose, ...]:
    """The damage of the halo mass function at each bound; up to 1 is within its Poisson errors."""
    pipeline = halos(particles, linking_length, min_members=min_members)
    bounds = [Absolute(share * linking_length * particles.spacing) for share in SHARES]
    return dose_response(pipeline, particles, "input", bounds, CODEC).doses


def dose_table(found: tuple[Dose, ...]) -> str:
    """The doses as text.

    >>> print(dose_table((Dose("input", Absolute(0.02), 5.05, 0, 0.82),)))
    <BLANKLINE>
    what an error bound does downstream, to the halo mass function (damage 1: its Poisson errors):
    error bound [Mpc/h]  ratio  damage
                   0.02   5.05    0.82  tolerated
    """
    lines = ["", "what an error bound does downstream, to the halo mass function (damage 1: its Poisson errors):"]
    lines.append("error bound [Mpc/h]  ratio  damage")
    for dose in found:
        verdict = "tolerated" if dose.damage <= 1 else "too much"
        lines.append(f"{dose.bound.eb:>19.3g}  {dose.ratio:>5.2f}  {dose.damage:>6.2f}  {verdict}")
    return "\n".join(lines)
