"""How far particles moved, against the nearest of all images."""

import itertools
import math

import numpy as np
import pytest

import workbench as wb
from workbench.data.periodic import nearest_image
from workbench.metrics import displacements


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distances_are_those_of_the_nearest_images(dimensions, dtype):
    random, box = np.random.default_rng(0), np.array([1.0, 2.0, 5.0])[:dimensions]
    first, second = (random.random((2, 300, dimensions)) * box * (1 - 1e-6)).astype(dtype)
    found = displacements(wb.Particles(first, box), wb.Particles(second, box))
    images = np.array(list(itertools.product((-1, 0, 1), repeat=dimensions))) * box
    difference = second.astype(np.float64)[:, None] + images - first[:, None]
    nearest = difference[np.arange(300), (difference**2).sum(axis=2).argmin(axis=1)]
    assert found.coordinates.max_error == pytest.approx(np.abs(nearest).max(), rel=1e-12)
    assert found.coordinates.rms_error == pytest.approx(np.sqrt((nearest**2).mean()), rel=1e-12)
    assert found.max_distance == pytest.approx(np.sqrt((nearest**2).sum(axis=1)).max(), rel=1e-12)
    assert found.rms_distance == pytest.approx(np.sqrt((nearest**2).sum(axis=1).mean()), rel=1e-12)
    assert found.psnr == pytest.approx(20 * math.log10(box.max() / found.coordinates.rms_error))
    assert found.nrmse == pytest.approx(found.coordinates.rms_error / box.max())


def test_faces_of_a_box_are_one():
    last = np.nextafter(np.float32(100), np.float32(0))
    found = displacements(wb.Particles(np.float32([[0, 50]]), 100.0), wb.Particles(np.array([[last, 50]]), 100.0))
    assert found.coordinates.max_error == 100 - float(last)
    there, back = np.array([[99.9, 0.1]]), np.array([[-99.9, 0.1]])
    assert nearest_image(there, (100.0, 100.0)) == pytest.approx(-nearest_image(back, (100.0, 100.0)) + [[0, 0.2]])


def test_in_an_open_space_nothing_wraps():
    found = displacements(wb.Particles([[0.0, 0.0], [1.0, 3.0]]), wb.Particles([[0.9, 0.0], [1.0, 3.0]]), bound=0.5)
    assert (found.max_distance, found.coordinates.exceeding, found.longest_side) == (0.9, 1, 3.0)


def test_the_order_is_undone():
    random = np.random.default_rng(2)
    original = wb.Particles(random.random((1000, 3)), 1.0)
    order = random.permutation(1000)
    assert displacements(original, original.select(order), order).max_distance == 0
    assert displacements(original, original.select(order)).max_distance > 0.1


def test_parts_add_up():
    random = np.random.default_rng(3)
    first, second = random.random((2, 100, 3))
    whole = displacements(wb.Particles(first, 1.0), wb.Particles(second, 1.0))
    cuts = slice(0, 30), slice(30, 100)
    parts = [displacements(wb.Particles(first[c], 1.0), wb.Particles(second[c], 1.0)) for c in cuts]
    added = parts[0] + parts[1]
    assert added.max_distance == whole.max_distance
    assert added.rms_distance == pytest.approx(whole.rms_distance, rel=1e-14)


def test_extreme_distances_are_numbers():
    for scale in (1e-170, 1e170):
        found = displacements(wb.Particles([[0.0, 0.0]]), wb.Particles([[3 * scale, 4 * scale]]))
        assert found.max_distance == pytest.approx(5 * scale, rel=1e-14)
        assert found.rms_distance == pytest.approx(5 * scale, rel=1e-14)


@pytest.mark.parametrize(("order", "message"), [
    ([0, 0, 1], "order must contain each of 0 to 2 once"),
    ([0, 1, 3], "order must contain each of 0 to 2 once"),
    ([0, 1, -1], "order must contain each of 0 to 2 once"),
    ([0, 1], r"order must be 3 indices; got int64 of shape \(2,\)"),
    ([0.0, 1.0, 2.0], "order must be 3 indices; got float64"),
])
def test_an_order_that_is_none_is_refused(order, message):
    particles = wb.Particles([[0.0, 0.0], [1.0, 0.0], [2.0, 1.0]])
    with pytest.raises(wb.WorkbenchError, match=message):
        displacements(particles, particles, order)


def test_sets_that_do_not_fit_together_are_refused():
    particles = wb.Particles([[0.0, 0.0]], 1.0)
    with pytest.raises(wb.WorkbenchError, match=r"the same number of particles; got shapes \(1, 2\) and \(2, 2\)"):
        displacements(particles, wb.Particles([[0.0, 0.0]] * 2, 1.0))
    with pytest.raises(wb.WorkbenchError, match=r"the same box; got \(1.0, 1.0\) and None"):
        displacements(particles, wb.Particles([[0.0, 0.0]]))


def test_on_a_device(cupy):
    random = np.random.default_rng(4)
    first, second = random.random((2, 500, 3), dtype=np.float32)
    order = random.permutation(500)
    ours = [wb.Particles(cupy.asarray(array), 1.0) for array in (first, second)]
    theirs = [wb.Particles(array, 1.0) for array in (first, second)]
    assert repr(displacements(*ours, cupy.asarray(order), 0.1)) == repr(displacements(*theirs, order, 0.1))
