"""The hard cases are as hard as they say: on the linking length to the last bit, and grouped as stated."""

import numpy as np
import pytest

import workbench as wb
from oracles import brute_force_labels
from workbench.data.synthetic import adversarial

BOTH = pytest.mark.parametrize("dtype", [np.float32, np.float64])
FLAT_AND_DEEP = pytest.mark.parametrize("dimensions", [2, 3])


def groups(particles: wb.Particles) -> int:
    return len(np.unique(brute_force_labels(particles, adversarial.LINK)))


@BOTH
@FLAT_AND_DEEP
def test_cases_are_what_was_asked_for(dimensions: int, dtype: type):
    for name, (particles, linking_length) in adversarial.cases(dimensions, dtype, crowd=100).items():
        assert particles.dimensions == dimensions, name
        assert particles.positions.dtype == dtype, name
        assert (particles.box is None) == name.endswith("open"), name
        assert linking_length == pytest.approx(adversarial.LINK), name
    assert set(adversarial.cases(periodic=True, crowd=10)) < set(adversarial.cases(crowd=10))


@BOTH
@FLAT_AND_DEEP
@pytest.mark.parametrize("periodic", [False, True])
def test_groups_are_as_stated(dimensions: int, dtype: type, periodic: bool):
    expected = {
        "lattice_at_link": 1, "dense_clump": 1, "two_clumps": 2, "single": 1, "coincident": 1,
        "box_faces": 2**dimensions if periodic else 3**dimensions,
    }
    for name, count in expected.items():
        size = {"count": 200} if name in ("dense_clump", "two_clumps", "coincident") else {}
        assert groups(getattr(adversarial, name)(dimensions, dtype, periodic, **size)) == count, name


@BOTH
@FLAT_AND_DEEP
def test_lattice_neighbours_are_at_the_linking_length_exactly(dimensions: int, dtype: type):
    lattice = adversarial.lattice_at_link(dimensions, dtype, side=4)
    assert len(np.unique(brute_force_labels(lattice, float(np.nextafter(adversarial.LINK, 0))))) == len(lattice)


@BOTH
@pytest.mark.parametrize("gap", ["below", "at", "above"])
@pytest.mark.parametrize("periodic", [False, True])
def test_chain_links_differ_by_the_last_bit(dtype: type, gap: str, periodic: bool):
    links = adversarial.chain(3, dtype, periodic, gap)
    steps = np.diff(links.positions[:, 2].astype(np.float64))
    sign = {"below": -1, "at": 0, "above": 1}[gap]
    assert (np.sign(steps - adversarial.LINK) == sign).all()
    assert np.abs(steps - adversarial.LINK).max() <= np.spacing(links.positions.max())
    assert groups(links) == (len(links) if gap == "above" else 1)


@BOTH
@FLAT_AND_DEEP
def test_chain_through_the_boundary_is_one_group_only_there(dimensions: int, dtype: type):
    links = adversarial.chain_through_boundary(dimensions, dtype)
    assert groups(links) == 1
    assert groups(wb.Particles(links.positions)) == 2


@BOTH
def test_faces_are_the_first_and_last_values_of_the_box(dtype: type):
    values = np.unique(adversarial.box_faces(2, dtype).positions)
    assert values[0] == 0
    assert float(values[-1]) < 1.1 <= float(np.nextafter(values[-1], dtype(2)))


@FLAT_AND_DEEP
def test_sheets_do_not_touch(dimensions: int):
    sheets = adversarial.two_sheets(dimensions, np.float32, True, count=2000)
    assert groups(sheets) == 2
    assert adversarial.LINK < np.ptp(sheets.positions[:, 0].astype(np.float64)) < 1.01 * adversarial.LINK


@BOTH
def test_outlier_is_alone(dtype: type):
    particles = adversarial.far_outlier(3, dtype)
    labels = brute_force_labels(particles, adversarial.LINK)
    outlier = int(particles.positions[:, 0].argmax())
    assert np.count_nonzero(labels == labels[outlier]) == 1


def test_crowds_can_be_a_million():
    clump = adversarial.dense_clump()
    assert len(clump) == 1_000_000
    assert np.linalg.norm(clump.upper - clump.lower) < adversarial.LINK


def test_the_same_each_time():
    first, again = adversarial.cases(crowd=50), adversarial.cases(crowd=50)
    assert all(np.array_equal(first[name][0].positions, again[name][0].positions) for name in first)


def test_unknown_gap_is_refused():
    with pytest.raises(wb.WorkbenchError, match="gap must be one of below, at, above; got 'over'"):
        adversarial.chain(gap="over")
