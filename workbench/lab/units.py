"""Units of densities and names of axes, as far as the data state them; nothing is guessed."""

from __future__ import annotations

from workbench.data import Field, Particles
from workbench.data.units import unit_of_length


def density_unit(particles: Particles) -> str:
    """The unit of particles per area.

    >>> density_unit(Particles([[0.0, 0.0]], metadata={"units": "nm"})), density_unit(Particles([[0.0, 0.0]]))
    ('particles per nm²', 'particles per unit area')
    """
    unit = unit_of_length(particles.metadata)
    if not unit:
        return "particles per unit area"
    return f"particles per {unit if unit.isalpha() else f'({unit})'}²"


def axis_names(data: Particles | Field) -> tuple[str, ...]:
    """The name of each axis: x, y, z of particles; of fields those of the file, or their numbers.

    >>> axis_names(Particles([[0.0, 0.0]])), axis_names(Field([[1.0]]))
    (('x', 'y'), ('axis 0', 'axis 1'))
    """
    if isinstance(data, Particles):
        return ("x", "y", "z")[: data.dimensions]
    count = len(data.shape)
    given = data.metadata.get("dimensions")
    if isinstance(given, list | tuple) and len(given) == count and all(isinstance(name, str) and name for name in given):
        return tuple(given)
    return tuple(f"axis {number}" for number in range(count))
