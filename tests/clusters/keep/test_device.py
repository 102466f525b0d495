"""The same bytes every time: with any number of threads, any cut into runs, and by the way of a GPU."""

from types import ModuleType

import numpy as np
import pytest

import fake_cupy
import workbench as wb
from clusters.keep.scenarios import SOLVERS, Scenario, decoded_with
from combinations import in_pairs
from workbench import backend
from workbench.clusters import broken
from workbench.clusters.keep import Correction, repair
from workbench.clusters.keep.edits import apply_edits
from workbench.guarantees.correction import apply_correction
from workbench.guarantees.sections import EDIT, PIN


def clustered(dimensions: int, dtype: type, box: float | None, count: int = 6000, min_members: int = 1) -> Scenario:
    """Clumps so near to each other that errors of a fifth of the linking length tear and join many."""
    random = np.random.default_rng(dimensions)
    centres = random.random((count // 12, dimensions))
    points = centres[random.integers(0, len(centres), count)] + random.normal(size=(count, dimensions)) * 0.01
    points = points[np.lexsort(np.floor(points * 20).T)].astype(dtype)   # beside each other in the file, as on a curve
    original = wb.Particles.wrapped(points, box) if box else wb.Particles(points)
    length = 0.25 * count ** (-1 / dimensions)
    bound = wb.Absolute(0.2 * length)
    decoded = decoded_with(original, random.uniform(-1, 1, points.shape), bound)
    return Scenario(original, decoded, bound, (0.7 * length, length), min_members)


def bytes_of(correction: Correction) -> bytes:
    """All that is stored, and all that is told about it."""
    figures = correction.opened, correction.needs, correction.attempts, correction.close_calls, correction.descent
    arrays = (correction.positions, correction.index, correction.rank, correction.pinned)
    stored = [part for _, part in sorted(correction.sections().items())]
    return b"".join([repr(figures).encode(), *(backend.to_host(array).tobytes() for array in arrays), *stored])


@pytest.fixture(scope="module")
def crowded() -> Scenario:
    return clustered(3, np.float32, 1.0)


@pytest.mark.parametrize("solver", SOLVERS)
def test_threads_and_chance_change_nothing(crowded: Scenario, solver: str) -> None:
    with backend.using_threads(1):
        expected = bytes_of(crowded.correct(solver))
    assert crowded.correct(solver).edited > 300
    for threads in (1, 2, 3, 7):
        with backend.using_threads(threads):
            assert bytes_of(crowded.correct(solver)) == expected


@pytest.mark.long
def test_chunks_change_nothing(crowded: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a launch on another machine would change: into how many runs the work is cut."""
    expected = bytes_of(crowded.correct())
    for chunks in (1, 37, 100_000):
        monkeypatch.setattr(backend, "chunks", lambda count, array, chunks=chunks: max(1, min(chunks, count)))
        assert bytes_of(crowded.correct()) == expected


def on_the_gpu(cupy: ModuleType, scenario: Scenario, solver: str) -> Correction:
    original = wb.Particles(cupy.asarray(scenario.original.positions), scenario.original.box)
    return wb.clusters.correct(
        original, cupy.asarray(scenario.decoded), scenario.bound, scenario.lengths, "length", scenario.min_members, solver
    )


OF_ALL_KINDS = [   # as `clustered` takes them
    (3, np.float32, 1.0, 1500, 1), (3, np.float64, None, 1500, 1),
    (2, np.float32, None, 1500, 5), (2, np.float64, 1.0, 1500, 20),
]


@pytest.mark.parametrize(("kind", "solver"), in_pairs(OF_ALL_KINDS, SOLVERS))
def test_the_way_to_the_gpu_gives_the_same_bytes(stand_in, kind, solver) -> None:
    scenario = clustered(*kind)
    expected = scenario.correct(solver)
    assert expected.edited > 0
    found = on_the_gpu(stand_in, scenario, solver)
    assert type(found.positions) is fake_cupy.ndarray
    assert bytes_of(found) == bytes_of(expected)
    assert type(found.index) is np.ndarray


def test_positions_on_the_gpu_are_decoded_there(stand_in: ModuleType) -> None:
    scenario = clustered(3, np.float32, 1.0, 1500)
    correction = scenario.correct("refine")
    sections = correction.sections()
    assert set(sections) == {EDIT, PIN}
    moved = apply_edits(stand_in.asarray(scenario.decoded), sections[EDIT])
    found = apply_correction(moved, sections[PIN])
    assert type(found) is fake_cupy.ndarray
    assert found.get().tobytes() == correction.positions.tobytes()


def test_positions_stay_on_the_gpu(stand_in: ModuleType) -> None:
    """What is brought over grows with the moves, not with the particles: but for what tells how likely each is to move."""
    scenario = clustered(3, np.float32, 1.0)
    fake_cupy.copied_to_host.clear()
    correction = on_the_gpu(stand_in, scenario, "auto")
    assert max(fake_cupy.copied_to_host) <= 2 * max(correction.edited, 1)   # the index and the move of each, in one copy
    assert sum(fake_cupy.copied_to_host) < 20 * correction.edited + 2000


def test_originals_and_decoded_positions_must_be_on_one_machine(stand_in: ModuleType) -> None:
    scenario = clustered(2, np.float32, None, 300)
    with pytest.raises(wb.WorkbenchError, match="on one machine"):
        wb.clusters.correct(scenario.original, stand_in.asarray(scenario.decoded), scenario.bound, 0.01, "length")


@pytest.mark.gpu
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("dimensions", "dtype", "box"), [(3, np.float32, 1.0), (2, np.float64, None)])
def test_a_gpu_gives_the_same_bytes(dimensions, dtype, box, solver) -> None:
    scenario = clustered(dimensions, dtype, box, 20_000)
    expected = bytes_of(scenario.correct(solver))
    assert bytes_of(on_the_gpu(backend.gpu(), scenario, solver)) == expected


@pytest.mark.parametrize("unseen", [1, 9])
def test_idle_rounds_change_nothing(stand_in: ModuleType, monkeypatch: pytest.MonkeyPatch, unseen: int) -> None:
    """A GPU goes on for a few rounds without being asked. A candidate that gave up may have a proposal left by then."""
    monkeypatch.setattr(repair, "UNSEEN", unseen)
    monkeypatch.setattr(broken, "UNSEEN", unseen)
    made, random = wb.synthetic.cosmic_web(n=16, seed=2), np.random.default_rng(2)
    original, bound = wb.Particles(made.positions, made.box), 0.45 * 0.2 * made.spacing
    decoded = (original.positions.astype(float) + 0.95 * bound * (2 * random.random((16**3, 3)) - 1)) % made.box[0]
    scenario = Scenario(original, decoded.astype(np.float32), wb.Absolute(bound), (0.2 * made.spacing,))
    expected, found = scenario.correct("auto"), on_the_gpu(stand_in, scenario, "auto")
    assert bytes_of(found) == bytes_of(expected)
    assert found.evaluated == expected.evaluated
