"""SSIM against its definition, window by window, and against SciPy's filters."""

import itertools
import math

import numpy as np
import pytest

import workbench as wb
from workbench.metrics import ssim


def by_hand(x: np.ndarray, y: np.ndarray, window: int) -> np.ndarray:
    """The similarity of every window, from the definition, in extended precision."""
    x, y = x.astype(np.longdouble), y.astype(np.longdouble)
    span = x.max() - x.min()
    c1, c2 = (0.01 * span) ** 2, (0.03 * span) ** 2
    values = []
    for start in itertools.product(*(range(points - window + 1) for points in x.shape)):
        a, b = (field[tuple(slice(s, s + window) for s in start)].ravel() for field in (x, y))
        covariance = ((a - a.mean()) * (b - b.mean())).sum() / (a.size - 1)
        top = (2 * a.mean() * b.mean() + c1) * (2 * covariance + c2)
        values.append(top / ((a.mean() ** 2 + b.mean() ** 2 + c1) * (a.var(ddof=1) + b.var(ddof=1) + c2)))
    return np.array(values)


def pictures(shape: tuple[int, ...], offset: float = 0.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    x = wb.synthetic.gaussian_field(shape, seed=seed).values.astype(np.float64) + offset
    return x, x + 0.2 * random.normal(size=shape)


@pytest.mark.parametrize("pieces", ["whole", "tiles"])
@pytest.mark.parametrize(("shape", "window"), [
    ((17, 23), 7), ((7, 30), 7), ((12, 11), 2), ((9, 14), 4), ((9, 10, 12), 7), ((8, 5, 6), 3), ((7, 7, 7), 7),
])
def test_ssim_is_the_mean_over_windows(shape, window, pieces, request):
    if pieces == "tiles":
        request.getfixturevalue("small_pieces")
    x, y = pictures(shape)
    assert ssim(x, y, window) == pytest.approx(float(by_hand(x, y, window).mean()), rel=1e-12)


@pytest.mark.parametrize("offset", [1.0, 300.0, 1e6])
def test_large_means_cost_no_accuracy(offset):
    x, y = pictures((20, 20), offset)
    assert ssim(x, y) == pytest.approx(float(by_hand(x, y, 7).mean()), rel=1e-9)


@pytest.mark.parametrize("shape", [(200, 130), (40, 50, 30)])
def test_ssim_is_that_of_filters(shape):
    from scipy.ndimage import uniform_filter

    x, y = pictures(shape, seed=3)
    inner = (slice(3, -3),) * len(shape)
    mx, my, xx, yy, xy = (uniform_filter(q, 7)[inner] for q in (x, y, x * x, y * y, x * y))
    n, c1, c2 = 7 ** len(shape), (0.01 * np.ptp(x)) ** 2, (0.03 * np.ptp(x)) ** 2
    vx, vy, cov = (n / (n - 1) * q for q in (xx - mx * mx, yy - my * my, xy - mx * my))
    expected = (2 * mx * my + c1) * (2 * cov + c2) / ((mx * mx + my * my + c1) * (vx + vy + c2))
    assert ssim(x, y) == pytest.approx(expected.mean(), rel=1e-10)


def test_of_four_axes_the_first_is_averaged_over():
    x, y = pictures((3, 9, 10, 8))
    span = np.ptp(x)
    x[1:] = (x[1:] - x[1:].min()) / np.ptp(x[1:]) * span + x[0].min()   # so that each has its share of the range
    x[:, 0, 0, 0], x[:, 0, 0, 1] = x.min(), x.max()
    assert ssim(x, y) == pytest.approx(np.mean([ssim(a, b) for a, b in zip(x, y, strict=True)]), rel=1e-12)


def test_lone_axes_do_not_count_and_lines_have_none():
    x, y = pictures((15, 20))
    assert ssim(x[:, None], y[:, None]) == ssim(x[None, :, None], y[None, :, None]) == ssim(x, y)
    assert ssim(x[0], y[0]) is None
    assert ssim(x[:1], y[:1]) is None


def test_equal_pictures_are_alike_and_others_less():
    x, y = pictures((30, 30))
    assert ssim(x, x) == 1
    assert ssim(x, 0.9 * x + 0.1 * y) > ssim(x, y) > ssim(x, y[::-1])
    noise = 10 + np.random.default_rng(0).random((30, 30))
    assert ssim(noise, 21 - noise) < -0.9


def test_windows_with_invalid_values_are_left_out():
    x, y = pictures((20, 20))
    holes = x.copy()
    holes[:4] = np.nan
    assert ssim(holes, y) == pytest.approx(ssim_of_rows(x, y, 4), rel=1e-12)
    mask = np.zeros((20, 20), bool)
    mask[:4] = True
    x[:4] = 1e30
    assert ssim(wb.Field(x, mask=mask), y) == pytest.approx(ssim_of_rows(x, y, 4), rel=1e-12)
    assert math.isnan(ssim(np.where(np.eye(20) + np.eye(20)[::-1] > 0, np.nan, x), y, window=20))


def ssim_of_rows(x: np.ndarray, y: np.ndarray, first: int) -> float:
    return ssim(x[first:], y[first:])


@pytest.mark.parametrize("wrong", [1e9, 1e38, -1e300])
def test_one_enormous_value_spoils_its_own_windows_only(wrong):
    x, y = pictures((40, 40))
    without = by_hand(x, y, 7).reshape(34, 34)
    y[20, 20] = wrong
    without[14:21, 14:21] = 0
    assert ssim(x, y) == pytest.approx(float(without.mean()), abs=2e-3)
    assert ssim(x, np.full_like(x, wrong)) == pytest.approx(0, abs=1e-3)


def test_constant_originals_have_no_similarity():
    assert math.isnan(ssim(np.ones((9, 9)), np.ones((9, 9))))


def test_windows_that_do_not_fit_are_refused():
    x = np.random.default_rng(0).random((6, 30))
    with pytest.raises(wb.WorkbenchError, match=r"window must fit the field along each axis; got 7 for \(6, 30\) points"):
        ssim(x, x)
    with pytest.raises(wb.WorkbenchError, match="window must be a whole number, at least 2; got 1"):
        ssim(x, x, window=1)


def test_on_a_device(cupy):
    x, y = pictures((12, 13, 14))
    x[3, 3, 3] = np.nan
    assert ssim(cupy.asarray(x), cupy.asarray(y)) == ssim(x, y)
