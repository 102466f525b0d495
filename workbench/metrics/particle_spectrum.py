"""The power spectrum of the number density of particles, computed on a mesh.

Particles are assigned to the mesh by cloud-in-cell (CIC) deposit, with the kernel of the synthetic universe
(`kernels/mesh.cu`), and the power is divided by the squared CIC window. The remaining effect of the mesh is aliasing from
beyond its Nyquist wave number, which is small up to half of it. Positions within a cell are resolved to 1 in 2^15; smaller
moves have no effect.

Particles at random positions have a power of volume / N, the shot noise. It is computed with the window and aliasing of
the mesh (Jing 2005, ApJ 620, 559, equation 20), so that it can be separated exactly from the signal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from workbench import backend
from workbench.arguments import whole_number
from workbench.data import Particles
from workbench.data.triclinic import require_no_triclinic_cell
from workbench.errors import WorkbenchError, briefly
from workbench.metrics.pairs import require_host
from workbench.metrics.spectrum import Spectrum, shell_averages, wave_numbers

CELLS_PER_SPACING = 2
MOST_CELLS = {2: 2048, 3: 256}      # along an axis, unless told otherwise: 128 MB for a mesh of 256^3
_WEIGHT_BITS = 15                   # per axis, as in kernels/mesh.cu
_ROOM = 2**18 - 1                   # particles that one cell of a 3-D mesh can hold there
_CHUNK = 2**16                      # particles per call of the kernel


def particle_spectrum(particles: Particles, cells: int | None = None, within: Particles | None = None) -> Spectrum:
    """The power spectrum of the number density contrast; its unit is that of a volume.

    `cells` is the number of mesh cells along each axis; when not given, the power of two from 2 per mean spacing on, up
    to 256 (2,048 in two dimensions). In an open space the bounding box of the particles is treated as periodic, or that of
    `within` when given, so that decoded particles can use the box of the original.

    >>> random = Particles(np.random.default_rng(0).random((4096, 3)), box=1.0)
    >>> spectrum = particle_spectrum(random)
    >>> round(float(spectrum.power[:8].mean() * 4096), 1), round(float(spectrum.shot_noise[0] * 4096), 1)
    (1.0, 1.0)
    """
    for name, given in (("particles", particles), ("within", within)):
        if not isinstance(given, Particles) and (given is not None or name == "particles"):
            raise WorkbenchError(f"{name} must be Particles; got {briefly(given)}")
    require_host("a power spectrum", particles.positions)
    frame = within or particles
    require_no_triclinic_cell(frame, "a power spectrum")
    lengths = frame.lengths
    if not min(lengths) > 0:
        raise WorkbenchError(
            f"a power spectrum needs particles that fill a volume; these span {lengths}: give a box, or leave an axis out"
        )
    count, dimensions = len(particles), particles.dimensions
    cells = default_cells(count, dimensions) if cells is None else whole_number("cells", cells, least=2, most=4096)
    origin = np.zeros(dimensions) if frame.box is not None else frame.lower
    contrast = _deposit(particles, cells, origin, np.asarray(lengths))
    contrast *= cells**dimensions / count
    contrast -= 1
    gain, noise = _cloud(cells, lengths)
    noise[0] *= math.prod(lengths) / count
    return shell_averages(contrast, lengths, gain, noise)


def default_cells(count: int, dimensions: int) -> int:
    """How many cells a mesh has along each axis when nothing else is asked for.

    >>> default_cells(64**3, 3), default_cells(10**9, 3)
    (128, 256)
    """
    needed = math.log2(CELLS_PER_SPACING * count ** (1 / dimensions))
    return int(min(max(2 ** math.ceil(needed - 1e-9), 16), MOST_CELLS[dimensions]))


def _deposit(particles: Particles, cells: int, origin: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The number of particles in each cell, by CIC deposit.

    A cell of the kernel's mesh is an integer of limited range. The mesh is checked before a cell could overflow, and added
    to a mesh of floats when a cell is more than half full.
    """
    positions = particles.positions
    unit = 2.0 ** -(_WEIGHT_BITS * particles.dimensions)
    mass = np.zeros((cells,) * particles.dimensions, np.int64)
    density: np.ndarray | None = None
    room = _ROOM
    deposit = backend.kernel("mesh", "deposit", np.float64, particles.dimensions)
    for start in range(0, len(positions), _CHUNK):
        if room < _CHUNK:
            fullest = math.ceil(int(mass.max()) * unit)
            if fullest > _ROOM / 2:
                density = unit * mass if density is None else density + unit * mass
                mass[...] = fullest = 0
            room = _ROOM - fullest
        on_mesh = _on_mesh(positions[start : start + _CHUNK], cells, origin, lengths)
        deposit(len(on_mesh), cells, on_mesh, mass)
        room -= len(on_mesh)
    return unit * mass if density is None else density + unit * mass


def _on_mesh(positions: np.ndarray, cells: int, origin: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Positions in units of mesh cells, in [0, cells): those that rounding puts outside lie on a face, which is face 0."""
    places = (positions - origin) * (cells / lengths)
    places -= cells * np.floor(places / cells)
    places[(places < 0) | (places >= cells)] = 0
    return places


def _cloud(cells: int, lengths: Sequence[float]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Per axis, the inverse of the squared CIC window for each wave, and the shot noise of one particle after that."""
    waves = wave_numbers([cells] * len(lengths), lengths)
    phases = [k * length / (2 * cells) for k, length in zip(waves, lengths, strict=True)]
    gain = [np.sinc(phase / np.pi) ** -4 for phase in phases]
    return gain, [factor * (1 - 2 / 3 * np.sin(phase) ** 2) for factor, phase in zip(gain, phases, strict=True)]
