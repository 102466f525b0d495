"""No result depends on the order in which kernels take their work items.

The same results are computed twice, here and in a process whose kernels hand out their items in another order. A race whose
outcome matters, or a pass that reads what another item of it wrote, changes a digest.
"""

import hashlib
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench import backend, host_library
from workbench.codecs import Tolerance
from workbench.codecs.earlier import Earlier
from workbench.codecs.motion import Motion
from workbench.data.synthetic import adversarial
from workbench.propagation.protection import protected_convolve
from workbench.propagation.protection.matrices import column_sums
from workbench.subdomains.decomposition import Decomposition

ROOT = Path(__file__).resolve().parents[1]


def results() -> Iterator[tuple[str, Iterable[Any]]]:
    """Named arrays and bytes of everything that runs in kernels."""
    web = wb.synthetic.cosmic_web(n=16, seed=5)
    field = wb.synthetic.gaussian_field((40, 30), seed=1)
    yield "synthetic data", [web.positions, web.velocities, field.values]
    for dimensions, dtype in itertools.product((2, 3), (np.float32, np.float64)):
        kind = f"{dimensions}-D {np.dtype(dtype).name}"
        for name, (particles, length) in adversarial.cases(dimensions, dtype, crowd=300).items():
            yield f"groups, {kind}, {name}", [wb.friends_of_friends(particles, length, "length").labels]
        yield f"kept, {kind}", kept(clustered(dimensions, dtype), 0.3, "auto")
        yield f"divided, {kind}", divided(clustered(dimensions, dtype))
    for solver in ("auto", "pgd", "refine"):
        yield f"kept by {solver}", kept(bare(web), 0.6, solver)
    for codec, order in itertools.product(("lattice", "prequantised"), ("keep", "free")):
        archive = wb.compress(bare(web), wb.Absolute(0.01), codec, order=order)
        yield f"particles, {codec}, {order}", contents(archive)
    small = wb.codecs.get("lattice", coder="small", block=128)
    yield "particles, small", contents(wb.compress(bare(web), wb.Absolute(0.01), small, order="free"))
    molecules = wb.codecs.get("lattice", coder="molecules")
    yield "particles, molecules", contents(wb.compress(bare(web), wb.Absolute(0.01), molecules, chunk_values=3 * 1500))
    frames = np.array([(web.positions + step * 1e-3 * web.velocities) % 16 for step in range(3)])
    after = Earlier((frames[1], frames[0]), (2.0, 1.0, 0.0), web.velocities)
    yield "motion", [np.frombuffer(codec.encode(values, Tolerance(absolute=0.01)), np.uint8) for codec, values in
                     ((Motion(), frames), (Motion(web.box).following(after), frames[2]))]
    for bound in (wb.Absolute(0.01), wb.PointwiseRelative(0.01), wb.Absolute(0.0)):
        for codec in ("prequantised", "interpolation", "staged"):
            yield f"field, {codec}, {bound!r}", contents(wb.compress(field, bound, codec))
    archive = wb.compress(field, wb.Absolute(0.01), "staged")
    yield "operators", [archive.derivative(0).values, archive.gradient_magnitude().values, archive.laplacian().values]
    integers = wb.Field(np.random.default_rng(0).integers(-500, 500, (50, 40)).astype(np.int16))
    for protect in (False, True):
        found = wb.clusters.kmeans(web.positions, 50, max_iterations=5, protect=protect)
        yield f"k-means, protected: {protect}", [found.labels, found.centres, np.float64(found.inertia)]
    yield "convolution", [protected_convolve(field.values, np.ones((5, 3)))[0]]
    yield "column sums", column_sums(field.values)
    yield "whole numbers", contents(wb.compress(integers, wb.Absolute(3.0)))


def bare(particles: wb.Particles) -> wb.Particles:
    return wb.Particles(particles.positions, particles.box)


def clustered(dimensions: int, dtype: type) -> wb.Particles:
    random = np.random.default_rng(dimensions)
    centres = random.random((40, dimensions))
    points = centres[random.integers(0, 40, 1500)] + 0.02 * random.normal(size=(1500, dimensions))
    return wb.Particles.wrapped(points.astype(dtype), 1.0)


def divided(particles: wb.Particles) -> tuple[Any, ...]:
    """The subdomains that own these particles, and those that need copies of them."""
    return Decomposition.of(particles.positions, 7, particles.box).divided(particles.positions, 0.03)


def kept(original: wb.Particles, share: float, solver: Any) -> list[Any]:
    """The correction of positions that are off by up to this share of the linking length, and the links that broke."""
    length = 0.2 * original.spacing
    noise = 0.99 * np.random.default_rng(0).uniform(-1, 1, original.positions.shape) * share * length
    decoded = wb.Particles.wrapped((original.positions + noise).astype(original.positions.dtype), original.box)
    correction = wb.clusters.correct(original, decoded, share * length, length, "length", solver=solver)
    broken = wb.clusters.broken_links(original, decoded, correction.groups[0])
    assert correction.edited > 0
    moves = correction.positions, correction.index, correction.rank
    return [*moves, *correction.sections().values(), broken.missing, broken.false]


def contents(archive: wb.Archive) -> list[bytes]:
    return [archive.store.read(key) for key in sorted(archive.store.keys())]


def digests() -> dict[str, str]:
    return {"order": backend.work_order(), **{name: digest(parts) for name, parts in results()}}


def digest(parts: Iterable[Any]) -> str:
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        found.update(np.ascontiguousarray(part).tobytes() if isinstance(part, np.ndarray) else bytes(part))
    return found.hexdigest()


@pytest.mark.long
def test_results_do_not_depend_on_the_order_of_work_items() -> None:
    library = host_library.build_shuffled()
    environment = {**os.environ, "LOSSBENCH_HOST_LIBRARY": str(library), "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, check=True)
    shuffled, expected = json.loads(run.stdout), digests()
    assert (shuffled.pop("order"), expected.pop("order")) == ("shuffled", "rising")
    assert len(expected) > 70
    assert {name for name in expected if shuffled[name] != expected[name]} == set()


if __name__ == "__main__":
    print(json.dumps(digests()))
