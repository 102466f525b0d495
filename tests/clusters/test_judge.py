"""The judge of labellings must itself reject every kind of wrong labelling, and say why."""

import numpy as np
import pytest

import oracles
import workbench as wb

#     0 . 1 . 2       3 . 4       5        with links of 0.1
LINE = wb.Particles([[0.0, 0], [0.1, 0], [0.2, 0], [0.6, 0], [0.7, 0], [1.5, 0]])
LENGTH = 0.11
RIGHT = np.array([0, 0, 0, 3, 3, 5])


def test_right_labels_pass() -> None:
    oracles.judge_labels(LINE, LENGTH, RIGHT)
    np.testing.assert_array_equal(oracles.brute_force_labels(LINE, LENGTH), RIGHT)
    np.testing.assert_array_equal(oracles.scipy_labels(LINE, LENGTH), RIGHT)


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        ([0, 0, 2, 3, 3, 5], "friends"),
        ([0, 1, 0, 3, 3, 5], "friends"),
        ([0, 0, 0, 0, 0, 5], "not connected"),
        ([0, 0, 0, 3, 3, 3], "not connected"),
        ([1, 1, 1, 3, 3, 5], "smallest"),
        ([0, 0, 0, 4, 4, 5], "smallest"),
        ([0, 0, 0, 3, 3, 9], "of its own group"),
        ([0, 0, 0, -1, -1, 5], "of its own group"),
        ([0, 0, 0, 3, 3], "one integer per particle"),
        ([0.0, 0, 0, 3, 3, 5], "one integer per particle"),
    ],
)
def test_wrong_labels_are_named(labels: list, why: str) -> None:
    with pytest.raises(oracles.WrongLabelling, match=why):
        oracles.judge_labels(LINE, LENGTH, np.array(labels))


def test_every_single_change_is_noticed() -> None:
    for particle in range(len(RIGHT)):
        for label in range(len(RIGHT)):
            wrong = RIGHT.copy()
            wrong[particle] = label
            if label != RIGHT[particle]:
                with pytest.raises(oracles.WrongLabelling):
                    oracles.judge_labels(LINE, LENGTH, wrong)
