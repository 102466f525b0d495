"""Particles: what is accepted, what is refused and with which words, wrapping, selection."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import workbench as wb

ONE = [[0.5, 0.5, 0.5]]


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", ">f8", "<i4", "<u2"])
def test_number_types(dtype: str) -> None:
    positions = np.array([[1, 2, 3], [4, 5, 6]], dtype)
    particles = wb.Particles(positions)
    assert particles.positions.dtype == (np.float32 if dtype.endswith("f4") else np.float64)
    assert particles.positions.dtype.isnative
    np.testing.assert_array_equal(particles.positions, positions)


def test_later_writes_of_the_caller_change_nothing() -> None:
    given = {"positions": np.full((5, 3), 0.5), "velocities": np.zeros((5, 3)), "ids": np.arange(5)}
    particles = wb.Particles(**given, box=1.0)
    for name, array in given.items():
        before = array.copy()
        array[...] = 99
        np.testing.assert_array_equal(getattr(particles, name), before)
        with pytest.raises(ValueError, match="read-only"):
            getattr(particles, name)[0] = 7


def test_read_only_arrays_are_taken_without_a_copy() -> None:
    positions = np.random.default_rng(0).random((5, 3))
    positions.flags.writeable = False
    assert np.shares_memory(wb.Particles(positions).positions, positions)


def test_masked_positions_are_refused_and_others_taken() -> None:
    positions = np.random.default_rng(0).random((5, 3))
    np.testing.assert_array_equal(wb.Particles(np.ma.array(positions)).positions, positions)
    for name in ("positions", "velocities"):
        given = {"positions": positions, name: np.ma.masked_less(positions, positions[2, 1] + 1e-9)}
        with pytest.raises(wb.WorkbenchError, match=rf"{name} must have no masked entries; got \d+ of them: leave those"):
            wb.Particles(**given)


@pytest.mark.parametrize(("largest", "fits"), [(2**53, True), (2**53 + 1, False), (-(2**53) - 1, False)])
def test_integer_positions_are_converted_where_that_is_exact(largest: int, fits: bool) -> None:
    positions = np.array([[largest, 0, 1], [5, 6, 7]])
    if fits:
        np.testing.assert_array_equal(wb.Particles(positions).positions.astype(np.int64), positions)
    else:
        with pytest.raises(wb.WorkbenchError, match=r"integer positions must be at most 2\^53"):
            wb.Particles(positions)


def misaligned(array: np.ndarray) -> np.ndarray:
    return np.frombuffer(b"\0" + array.tobytes(), np.uint8)[1:].view(array.dtype).reshape(array.shape)


@pytest.mark.parametrize("layout", [np.asfortranarray, lambda a: a[::2], lambda a: a[::-1], misaligned])
def test_other_memory_layouts(layout) -> None:
    positions = layout(np.random.default_rng(0).random((10, 3)))
    particles = wb.Particles(positions)
    assert particles.positions.flags.c_contiguous
    assert particles.positions.flags.aligned
    np.testing.assert_array_equal(particles.positions, positions)


@pytest.mark.parametrize(
    ("box", "periods"),
    [(None, None), (2, (2.0, 2.0, 2.0)), ((1, 2, 4.5), (1.0, 2.0, 4.5)), (np.float32(2), (2.0, 2.0, 2.0))],
)
def test_boxes(box, periods) -> None:
    assert wb.Particles(ONE, box).box == periods


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"positions": []}, r"positions must have shape \(N, 2\) or \(N, 3\); got \(0,\)"),
        ({"positions": np.empty((0, 3))}, "positions must hold at least one particle; got an empty array"),
        ({"positions": [1.0, 2.0]}, r"positions must have shape \(N, 2\) or \(N, 3\); got \(2,\)"),
        ({"positions": np.zeros((3, 4))}, r"positions must have shape \(N, 2\) or \(N, 3\); got \(3, 4\)"),
        ({"positions": [[1.0, 2], [3]]}, "positions must be an array of numbers"),
        ({"positions": np.zeros((2, 3), "f2")}, "positions must be float32 or float64; got float16"),
        ({"positions": np.zeros((2, 3), complex)}, "positions must be float32 or float64; got complex128"),
        ({"positions": [["a", "b"]]}, "positions must be float32 or float64; got <U1"),
        ({"positions": [[0, np.nan, 0]]}, "positions must be finite; got nan or infinity on axis 1"),
        ({"positions": [[np.inf, 0, -np.inf]]}, "positions must be finite; got nan or infinity on axis 0, 2"),
        ({"positions": ONE, "box": 0}, "box lengths must be positive and finite; got 0"),
        ({"positions": ONE, "box": -1}, "box lengths must be positive and finite; got -1"),
        ({"positions": ONE, "box": [1, 1, np.inf]}, "use None for an open space"),
        ({"positions": ONE, "box": [1, 1]}, r"box must be None, a length, or 3 lengths; got \[1, 1\]"),
        ({"positions": ONE, "box": "1 Mpc"}, "box must be None, a length, or 3 lengths; got '1 Mpc'"),
        ({"positions": [[1.0, 0, 0]], "box": 1}, r"must lie in \[0, 1\) on axis 0; got \[1, 1\]: use Particles.wrapped"),
        ({"positions": [[0, -1e-9, 0]], "box": 1}, r"must lie in \[0, 1\) on axis 1; got \[-1e-09, -1e-09\]"),
        ({"positions": ONE, "velocities": [[1.0, 2]]}, r"velocities must have shape \(1, 3\)"),
        ({"positions": ONE, "ids": [1, 2]}, r"ids must have shape \(1,\), to match the positions; got \(2,\)"),
        ({"positions": ONE, "ids": [0.5]}, "ids must be integers; got float64"),
    ],
)
def test_bad_input_is_refused(arguments: dict, message: str) -> None:
    with pytest.raises(wb.WorkbenchError, match=message):
        wb.Particles(**arguments)


@given(
    arrays(np.float64, (1000, 3), elements=st.floats(-1, 1), fill=st.floats(-1, 1)),
    st.integers(0, 2999),
    st.sampled_from([np.nan, np.inf, -np.inf]),
)
def test_one_bad_coordinate_is_found_wherever_it_is(positions: np.ndarray, place: int, bad: float) -> None:
    positions = positions.copy()
    positions.flat[place] = bad
    with pytest.raises(wb.WorkbenchError, match=f"on axis {place % 3}"):
        wb.Particles(positions)


@given(arrays(np.float32, st.tuples(st.integers(1, 300), st.just(2)), elements=st.floats(-(2.0**100), 2.0**100, width=32)))
def test_extent(positions: np.ndarray) -> None:
    particles = wb.Particles(positions)
    np.testing.assert_array_equal(particles.lower, positions.min(axis=0))
    np.testing.assert_array_equal(particles.upper, positions.max(axis=0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(data=st.data())
def test_wrapping_brings_everything_inside(dtype: type, data: st.DataObject) -> None:
    width = np.dtype(dtype).itemsize * 8
    box = data.draw(st.floats(0.125, 1000, width=width))
    just_below = [float(np.nextafter(dtype(x), dtype(-np.inf))) for x in (0, box)]
    coordinates = st.floats(-1e4, 1e4, width=width) | st.sampled_from([0.0, -0.0, box, -box, *just_below])
    values = data.draw(arrays(dtype, (20, 2), elements=coordinates))
    wrapped = wb.Particles.wrapped(values, box)
    assert wrapped.positions.dtype == dtype
    inside = (values >= 0) & (values < box)
    np.testing.assert_array_equal(wrapped.positions[inside], values[inside])
    moved = (wrapped.positions.astype(np.float64) - values) / box
    np.testing.assert_allclose(moved, np.round(moved), atol=1e-3 if dtype == np.float32 else 1e-9)


def test_wrapping_refuses_what_has_no_image() -> None:
    with pytest.raises(wb.WorkbenchError, match="wrapping needs a periodic box"):
        wb.Particles.wrapped(ONE, None)
    with pytest.raises(wb.WorkbenchError, match="positions must be finite"):
        wb.Particles.wrapped([[np.nan, 0.0]], 1.0)


def test_selection_carries_everything_along() -> None:
    positions = np.random.default_rng(0).random((6, 3))
    particles = wb.Particles(positions, 1.0, velocities=10 * positions, ids=np.arange(6), metadata={"z": 0})
    for chosen in ([4, 1], np.array([False, True, False, False, True, False])):
        part = particles.select(chosen)
        np.testing.assert_array_equal(part.positions, positions[part.ids])
        np.testing.assert_array_equal(part.velocities, 10 * positions[part.ids])
        assert part.box == (1.0, 1.0, 1.0)
        assert part.metadata == {"z": 0}


def test_spacing_and_volume() -> None:
    periodic = wb.Particles(np.zeros((8, 3)), box=(1, 2, 4))
    assert (periodic.volume, periodic.spacing) == (8.0, 1.0)
    open_space = wb.Particles([[1.0, 1], [3, 2]])
    assert (open_space.volume, open_space.spacing) == (2.0, 1.0)


def test_it_says_what_it_is() -> None:
    assert repr(wb.Particles(np.zeros((1000, 2), "f4"), box=(1, 2.5), ids=np.arange(1000))) == (
        "Particles(1,000 in 2-D, float32, box 1 x 2.5, ids)"
    )


@pytest.mark.parametrize(("position", "box", "dtype"), [(-1e38, 1e39, np.float32), (1e300, 1e-10, np.float64)])
def test_a_position_whose_image_no_number_can_hold_is_refused_when_wrapped(
    position: float, box: float, dtype: type
) -> None:
    """It became the corner of the box."""
    with pytest.raises(wb.WorkbenchError, match=r"must have an image in the box .* check the units"):
        wb.Particles.wrapped(np.array([[position, 0, 0]], dtype), box)


def test_the_spacing_of_particles_far_apart_is_infinite_without_a_warning() -> None:
    assert wb.Particles(np.array([[0.0, 0, 0], [1e300, 1e300, 1e300]])).spacing == np.inf
