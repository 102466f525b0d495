"""Fields of a series, each step after one or two earlier ones: bytes beside those of single steps, and times.

python benchmarks/series_fields.py [--only WORDS] [--data FOLDER]

Each step but the first is one chunk, encoded alone and after the decoded steps before it, with the options that suit the
first step; all corrections that the bound needs are counted. Times are processor times of all steps together. FOLDER holds
real fields (CESM, turbulence); the others are made here. The last rows are series without memory, for which the steps
before say nothing.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import timing

import workbench as wb
from workbench import codecs
from workbench.codecs.earlier import Earlier
from workbench.guarantees import Guarded, decode_guarded, encode_guarded

Series = tuple[str, Sequence[np.ndarray]]

BOUNDS = (1e-2, 1e-3, 1e-4)   # of the range of all steps
LARGER = 1.01   # at most so many times the single steps, whatever the steps before
HEADER = ["field", "steps", "bound", "single, bytes", "in time, bytes", "ratio", "predicted", "encode, x", "decode, x"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="series with these words in their names")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="where real fields are")
    options = parser.parse_args()
    print(timing.machine(), flush=True)
    rows: list[list[object]] = []
    for name, make in (*real(options.data), *made()):
        steps = make() if options.only in name else ()
        for bound in BOUNDS if steps else ():
            rows.append(measured(name, steps, bound))
            print(*rows[-1], flush=True)
    print(f"\n{timing.table(HEADER, rows)}")
    print(timing.targets([("bytes in time / single, at most", max(float(str(row[5])) for row in rows), "<=", LARGER)]))


def real(folder: Path) -> Iterator[tuple[str, Callable[[], list[np.ndarray]]]]:
    """Series in files; those that are not there are left out."""
    months, levels = folder / "cesm/ihesp14.TS.12mon.nc", folder / "cesm/cam-fv.T.3months.nc"
    slices = folder / "sperr_fields/vorticity.128_128_41"
    for path, name, variable in ((months, "CESM TS, months", "TS"), (levels, "CESM T, months", "T")):
        if path.exists():
            yield name, partial(read, path, variable)
    if slices.exists():
        yield "vorticity, along z", lambda: list(np.fromfile(slices, "<f4").reshape(41, 128, 128))


def read(path: Path, variable: str) -> list[np.ndarray]:
    """The steps of a variable."""
    import h5py

    with h5py.File(path) as file:
        return list(file[variable][:])


def made() -> Iterator[tuple[str, Callable[[], list[np.ndarray]]]]:
    """Series made here."""
    yield "density of a universe", lambda: [density(wb.synthetic.cosmic_web(64, seed=1, redshift=z)) for z in REDSHIFTS]
    yield "carried and diffusing", lambda: carried(64, 16)
    yield "density, unrelated", lambda: [density(wb.synthetic.cosmic_web(64, seed=seed)) for seed in range(3)]
    yield "noise", lambda: [np.random.default_rng(seed).normal(size=(64, 64, 64)).astype("f4") for seed in range(3)]


REDSHIFTS = tuple(round(1.5 - 0.1 * step, 1) for step in range(16))


def density(particles: wb.Particles) -> np.ndarray:
    """The density contrast on a mesh with a cell for each particle, by clouds in cells."""
    cells = round(len(particles) ** (1 / 3))
    place = np.asarray(particles.positions, np.float64) / np.asarray(particles.box) * cells
    first, mesh = np.floor(place).astype(np.int64), np.zeros(cells**3)
    for corner in np.ndindex(2, 2, 2):
        share = np.abs(1 - np.array(corner) - (place - first)).prod(axis=1)
        x, y, z = ((first + corner) % cells).T
        mesh += np.bincount((x * cells + y) * cells + z, share, cells**3)
    return mesh.reshape(cells, cells, cells).astype(np.float32)


def carried(cells: int, steps: int) -> list[np.ndarray]:
    """A field that moves by a tenth of a cell a step along each axis, and diffuses."""
    modes = np.fft.rfftn(wb.synthetic.gaussian_field((cells,) * 3, seed=5).values.astype(np.float64))
    axes = np.fft.fftfreq(cells), np.fft.fftfreq(cells), np.fft.rfftfreq(cells)
    waves = np.meshgrid(*axes, indexing="ij")
    each = np.exp(-2j * np.pi * 0.1 * sum(waves) - 2 * sum(wave**2 for wave in waves) / steps)
    return [np.fft.irfftn(modes * each**step, s=(cells,) * 3, axes=(0, 1, 2)).astype(np.float32) for step in range(steps)]


def measured(name: str, steps: Sequence[np.ndarray], share: float) -> list[object]:
    """A row of the table."""
    bound = share * float(max(map(np.max, steps)) - min(map(np.min, steps)))
    first = np.ascontiguousarray(steps[0])
    alone = codecs.get("interpolation").tuned(first, codecs.Tolerance(absolute=bound))
    known = [encode_guarded(alone, first, wb.Absolute(bound).limit(first)).decoded]
    size, spent, predicted = np.zeros(2, int), np.zeros((2, 2)), 0
    for step in map(np.ascontiguousarray, steps[1:]):
        in_time = alone.following(Earlier(tuple(known[:-3:-1]), tuple(-float(n) for n in range(1 + min(len(known), 2)))))
        for way, codec in enumerate((alone, in_time)):
            guarded, *times = timed(codec, step, bound)
            size[way] += guarded.nbytes
            spent[way] += times
        predicted += "predicted" in (guarded.figures.remark or "")
        known = [known[-1], guarded.decoded]
    encoding, decoding = spent[1] / spent[0]
    counted = f"{predicted} of {len(steps) - 1}"
    return [name, len(steps), f"{share:g}", f"{size[0]:,}", f"{size[1]:,}", f"{size[1] / size[0]:.3f}", counted,
            f"{encoding:.2f}", f"{decoding:.2f}"]


def timed(codec: codecs.Codec, values: np.ndarray, bound: float) -> tuple[Guarded, float, float]:
    """A chunk, and the seconds that its encoding and its decoding take without the check."""
    tolerance = codecs.Tolerance(absolute=bound)
    start = time.process_time()
    codec.encode(values, tolerance)
    encoded = time.process_time()
    guarded = encode_guarded(codec, values, wb.Absolute(bound).limit(values))
    begin = time.process_time()
    decode_guarded(codec, guarded.sections, values.shape, values.dtype)
    return guarded, encoded - start, time.process_time() - begin


if __name__ == "__main__":
    main()
