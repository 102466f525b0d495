"""Groups: counting, naming, comparing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import workbench as wb

labellings = arrays(np.int64, st.integers(1, 60), elements=st.integers(-5, 20))


@given(labellings)
def test_from_any_labels(labels: np.ndarray) -> None:
    groups = wb.Groups.from_labels(labels, 0.1)
    for i, label in enumerate(groups.labels):
        assert label == np.flatnonzero(labels == labels[i])[0]
    assert groups.sizes.sum() == len(labels)
    assert len(groups) == len(set(labels.tolist()))
    assert [len(groups.members(label)) for label in groups.ids] == groups.sizes.tolist()


@given(labellings, st.integers(1, 5))
def test_count(labels: np.ndarray, least: int) -> None:
    expected = sum((labels == label).sum() >= least for label in set(labels.tolist()))
    assert wb.Groups.from_labels(labels, 0.1).count(least) == expected


@given(labellings, st.randoms())
def test_renaming_keeps_the_partition_and_merging_does_not(labels: np.ndarray, random) -> None:
    groups = wb.Groups.from_labels(labels, 0.1)
    names = sorted(set(labels.tolist()))
    renamed = dict(zip(names, random.sample(range(1000), len(names)), strict=True))
    assert groups.equals(wb.Groups.from_labels(np.array([renamed[label] for label in labels]), 0.3))
    if len(names) > 1:
        merged = np.where(labels == names[0], names[1], labels)
        assert not groups.equals(wb.Groups.from_labels(merged, 0.1))


def test_equals_needs_the_same_particles() -> None:
    assert not wb.Groups.from_labels([0, 0], 0.1).equals(wb.Groups.from_labels([0, 0, 2], 0.1))


def test_largest_breaks_ties_by_label() -> None:
    groups = wb.Groups.from_labels([3, 3, 1, 1, 2], 0.1)
    assert groups.largest().tolist() == [0, 2, 4]


@pytest.mark.parametrize("labels", [[], [0.5], [[0, 1]]])
def test_wrong_labels_are_refused(labels) -> None:
    with pytest.raises(wb.WorkbenchError, match="labels must be a non-empty row of integers; got"):
        wb.Groups.from_labels(labels, 0.1)
