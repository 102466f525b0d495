"""Series in time as users make them: bytes of whole archives, times of `append` and of reading, and memory.

python benchmarks/series.py [--side 64] [--steps 16] [--data FOLDER] [--long 200] [--quick]

All steps go through `wb.Series`, all single archives through `wb.compress` with the same options; sizes are those of the
files. The universe is `wb.synthetic.cosmic_web_series` at scale factors from 0.5 to 1. FOLDER holds real fields. The long
run has steps of a million particles that move along simple curves. Codecs alone, and others beside them, are in
`series_particles.py` and `series_fields.py`.
"""

from __future__ import annotations

import argparse
import dataclasses
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import timing
from series_fields import read

import workbench as wb
from workbench.archive.reading import StoredArray

LINKING = 0.2               # of the mean spacing
SHARES = (0.01, 0.1, 0.3)   # of the linking length
OF_VELOCITIES = 0.01        # of their dispersion
OF_FIELDS = (1e-2, 1e-3, 1e-4)   # of the range of all steps
REPEATS = 3                 # of a time

Kept = dict[str, Any]   # the options of a series


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=64, help="particles along a side of the synthetic universe")
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="where real fields are")
    parser.add_argument("--long", type=int, default=0, help="steps of a million particles, whose memory is measured")
    parser.add_argument("--quick", action="store_true", help="a small run to see that everything works")
    options = parser.parse_args()
    side, count = (16, 4) if options.quick else (options.side, options.steps)
    print(timing.machine(), flush=True)
    redshifts = [1 / scale - 1 for scale in np.linspace(0.5, 1, count)[:-1]] + [0.0]
    web = list(wb.synthetic.cosmic_web_series(side, redshifts))
    print(f"\n{count} steps of {side**3:,} particles, bytes\n")
    print(timing.table(["archives", "bound", "single", "series", "ratio"], list(universes(web))), flush=True)
    print(f"\nFields, bytes of all steps; the median processor time of {REPEATS} repeats\n")
    header = ["field", "bound", "single", "series", "ratio", "last step / single", "append / single"]
    print(timing.table(header, list(fields(options.data))), flush=True)
    print("\nAppend beside a single compression, processor time of the last step\n")
    rows = list(times(web, 20 if options.quick else 100))
    print(timing.table(["step", "single, s", "append, s", "ratio"], rows), flush=True)
    if options.long:
        print(timing.table(["what", "measured"], list(long_run(options.long))), flush=True)


def spacing_of(particles: wb.Particles) -> float:
    """The mean spacing of particles in a cube."""
    assert particles.box is not None
    return particles.box[0] / round(len(particles) ** (1 / 3))


def bound_of_velocities(particles: wb.Particles) -> wb.Absolute:
    """A hundredth of their dispersion."""
    assert particles.velocities is not None
    return wb.Absolute(OF_VELOCITIES * float(np.std(particles.velocities)))


def universes(web: Sequence[wb.Particles]) -> Iterator[list[object]]:
    """Rows of sizes."""
    linking = LINKING * spacing_of(web[0])
    bare = [dataclasses.replace(step, velocities=None, ids=None) for step in web]
    moving = [dataclasses.replace(step, ids=None) for step in web]
    known = [dataclasses.replace(step, velocities=None) for step in web]
    velocities = bound_of_velocities(web[0])
    for share in SHARES:
        bound = wb.Absolute(share * linking)
        clusters = {"keep": wb.KeepClusters(LINKING)}
        for words, steps, kept in (
            ("kept order, positions", bare, {}),
            ("kept order, positions, clusters kept", bare, clusters),
            ("kept order, with velocities", moving, {"velocities": velocities}),
            ("kept order, with velocities, clusters kept", moving, {"velocities": velocities, **clusters}),
            ("free order with ids, positions", known, {"order": "free"}),
            ("free order with ids and velocities", web, {"order": "free", "velocities": velocities}),
        ):
            single, series = sizes(steps, bound, kept)
            yield [words, f"{share:g} b", f"{sum(single):,}", f"{sum(series):,}", f"{sum(series) / sum(single):.3f}"]


def sizes(steps: Sequence[Any], bound: wb.Absolute, kept: Kept) -> tuple[list[int], list[int]]:
    """The bytes of each single archive, and of each step of the series."""
    with tempfile.TemporaryDirectory() as folder:
        series = wb.Series(Path(folder) / "series", bound, **kept)
        single: list[int] = []
        appended: list[int] = []
        for number, step in enumerate(steps):
            series.append(step, time=float(number))
            appended.append(series.nbytes - sum(appended))
            place = Path(folder) / "single.zip"
            wb.compress(step, bound, out=place, overwrite=True, **kept)
            single.append(place.stat().st_size)
    return single, appended


def fields(folder: Path) -> Iterator[list[object]]:
    """Rows of real fields; those that are not there are left out."""
    for path, name, variable in (
        (folder / "cesm/ihesp14.TS.12mon.nc", "CESM TS, 12 months", "TS"),
        (folder / "cesm/cam-fv.T.3months.nc", "CESM T, 3 months", "T"),
    ):
        if not path.exists():
            continue
        steps = [np.ascontiguousarray(step) for step in read(path, variable)]
        for share in OF_FIELDS:
            bound = wb.Absolute(share * float(max(map(np.max, steps)) - min(map(np.min, steps))))
            single, series = sizes(steps, bound, {})
            alone, appended = append_time(steps[-3:], bound, {}, REPEATS)
            yield [name, f"{share:g}", f"{sum(single):,}", f"{sum(series):,}", f"{sum(series) / sum(single):.3f}",
                   f"{series[-1] / single[-1]:.3f}", f"{appended / alone:.2f}"]


def times(web: Sequence[wb.Particles], side: int) -> Iterator[list[object]]:
    """Rows of times."""
    flow = [flowing(side, moment) for moment in (1.0, 1.05, 1.1)]
    for words, steps in ((f"{len(web[0]):,} of the universe", web[-3:]), (f"{side**3:,} on curves", flow)):
        bound, velocities = wb.Absolute(0.1 * LINKING * spacing_of(steps[0])), bound_of_velocities(steps[0])
        bare = [dataclasses.replace(step, velocities=None) for step in steps]
        for also, given, kept in (
            ("positions", bare, {}), ("positions and velocities", steps, {"velocities": velocities}),
            ("positions, clusters kept", bare, {"keep": wb.KeepClusters(LINKING)}),
        ):
            alone, appended = append_time(given, bound, kept, REPEATS)
            yield [f"{words}, {also}", f"{alone:.3f}", f"{appended:.3f}", f"{appended / alone:.2f}"]


def append_time(steps: Sequence[Any], bound: wb.Absolute, kept: Kept, repeats: int) -> tuple[float, float]:
    """The median processor times of a single compression of the last step, and of its append after the others.

    After each append the step is removed again, as if it had not been made.
    """
    with tempfile.TemporaryDirectory() as folder:
        series = wb.Series(Path(folder) / "series", bound, **kept)
        for number, step in enumerate(steps[:-1]):
            series.append(step, time=float(number))
        place, number = Path(folder) / "single.zip", len(steps) - 1

        def again() -> None:
            series.append(steps[-1], time=float(number))

        single: list[float] = []
        appended: list[float] = []
        for _ in range(repeats):
            single.append(seconds(lambda: wb.compress(steps[-1], bound, out=place, overwrite=True, **kept)))
            appended.append(seconds(again))
            series._steps.path(number).unlink()
            series._steps._opened.pop(number, None)
            series._steps._about.pop(number, None)
    return statistics.median(single), statistics.median(appended)


def seconds(run: Callable[[], object]) -> float:
    """Processor time."""
    begin = time.process_time()
    run()
    return time.process_time() - begin


def flowing(side: int, moment: float) -> wb.Particles:
    """Particles on a perturbed lattice that move along curves, with velocities; ids in no order."""
    rng, axes = np.random.default_rng(0), np.meshgrid(*[np.arange(side)] * 3, indexing="ij")
    place = (np.stack(axes, axis=-1).reshape(-1, 3) + 0.5).astype(np.float32)
    phase = 2 * np.pi * place / side
    way = 3 * np.sin(phase[:, [1, 2, 0]]) + 2 * np.sin(2 * phase[:, [2, 0, 1]] + 1) + rng.normal(0, 0.3, place.shape)
    turn, ids = rng.uniform(0, 2 * np.pi, (len(place), 1)), rng.permutation(len(place))
    positions, velocities = place + moment * way + 0.1 * np.sin(moment + turn), way + 0.1 * np.cos(moment + turn)
    return wb.Particles.wrapped(
        positions.astype(np.float32), float(side), velocities=velocities.astype(np.float32), ids=ids
    )


def long_run(count: int) -> Iterator[list[object]]:
    """A series of steps of a million particles in free order, and what reading one of them takes."""
    with tempfile.TemporaryDirectory() as folder:
        series = wb.Series(folder, wb.Absolute(0.02), order="free", velocities=wb.Absolute(0.03))
        spent = 0.0
        for number in range(count):
            step = flowing(100, 0.05 * number)
            spent += seconds(lambda step=step, number=number: series.append(step, time=float(number)))  # type: ignore[misc]
        yield ["bytes of all steps, and of their numbers", f"{series.nbytes:,} of {series.original_nbytes:,}"]
        yield ["append, processor seconds for a step", f"{spent / count:.2f}"]
        for number in sorted({count // 2, count - 1}):
            fresh = wb.Series(folder)
            with counted() as decodes:
                taken = seconds(lambda fresh=fresh, number=number: fresh[number].decompress())  # type: ignore[misc]
            since = number - fresh._steps.about(number).key
            steps = len({store for store, name in decodes if name == "positions"})
            yield [f"step {number}, {since} after its key step: decodes, processor seconds", f"{steps}, {taken:.1f}"]
        yield ["peak memory of the process, MiB", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f}"]


@contextmanager
def counted() -> Iterator[list[tuple[str, str]]]:
    """The file and the array of each chunk that is decoded meanwhile."""
    decodes: list[tuple[str, str]] = []
    decode = StoredArray.values_of

    def noted(self: StoredArray, *given: Any) -> np.ndarray:
        decodes.append((self.store.name, self.layout.name))
        return decode(self, *given)

    StoredArray.values_of = noted   # type: ignore[method-assign, assignment]
    try:
        yield decodes
    finally:
        StoredArray.values_of = decode   # type: ignore[method-assign]


if __name__ == "__main__":
    main()
