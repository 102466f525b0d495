"""Values go to other processes, and come back as they were."""

import copy
import multiprocessing
import pickle

import numpy as np
import pytest

import workbench as wb
from workbench.clusters import catalogue

PARTICLES = wb.Particles(
    np.random.default_rng(0).random((64, 3)), 1.0, np.zeros((64, 3), "f4"), np.arange(64), {"time": 0.5, "deep": {"a": [1]}}
)
FIELD = wb.Field(np.ma.masked_less(np.arange(12).reshape(3, 4), 2), 0.5, "T", metadata={"units": "K"})
GROUPS = wb.friends_of_friends(PARTICLES, 0.8)
VALUES = {
    "particles": PARTICLES,
    "open": wb.Particles([[0.0, 1.0], [2.0, 3.0]]),
    "field": FIELD,
    "groups": GROUPS,
    "catalogue": catalogue(PARTICLES, GROUPS, min_members=1),
}
COPIES = {"pickle": lambda value: pickle.loads(pickle.dumps(value)), "copy": copy.copy, "deepcopy": copy.deepcopy}


def parts(value):
    """Everything in a value, as plain nested containers that compare."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.tolist()
    if hasattr(value, "__dataclass_fields__"):
        return type(value).__name__, {name: parts(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, tuple):
        return tuple(map(parts, value))
    return dict(value) if hasattr(value, "items") else value


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("way", COPIES)
def test_a_copy_has_the_same_parts(name, way):
    assert parts(COPIES[way](VALUES[name])) == parts(VALUES[name])


@pytest.mark.parametrize("way", ["pickle", "deepcopy"])
def test_copies_are_as_read_only_as_what_they_are_copies_of(way):
    particles, field = COPIES[way](PARTICLES), COPIES[way](FIELD)
    assert not any(array.flags.writeable for array in (particles.positions, particles.ids, field.values, field.mask))
    with pytest.raises(TypeError):
        particles.metadata["time"] = 1


def test_a_changed_pickle_is_checked_like_any_other_input():
    outside = pickle.dumps(PARTICLES).replace(PARTICLES.positions.tobytes(), np.full((64, 3), 7.0).tobytes())
    with pytest.raises(wb.WorkbenchError, match="must lie in"):
        pickle.loads(outside)


def test_another_process_gets_and_returns_them():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        returned = pool.map(copy.copy, list(VALUES.values()))
    assert [parts(value) for value in returned] == [parts(value) for value in VALUES.values()]
