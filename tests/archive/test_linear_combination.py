"""Linear combinations of archives: every value is within the promise of the combination of the originals, in fractions."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import workbench as wb
from archive.samples import parts, resealed
from archive.statistics_cases import FIELD_CODECS, SHAPES, field
from workbench.archive import Archive
from workbench.archive.certificate import CHECKED, DERIVED
from workbench.archive.writing import write
from workbench.errors import GuaranteeBroken, WorkbenchError
from workbench.guarantees import SliceLimits

COEFFICIENTS = (1.0, -1.0, 2.0, -0.5, 0.1, 3.0, 1e-3, 0.0)


def source(rng: np.random.Generator, shape: tuple[int, ...], codec: str, eb: float) -> tuple[Archive, Any, Any]:
    """A random archive with absolute limits, the original and its mask."""
    dtype, kind = (np.float32, np.float64)[int(rng.integers(2))], str(rng.choice(["smooth", "noise", "offset", "spikes"]))
    values, mask = field(rng, shape, dtype, kind), None
    if rng.random() < 0.3:
        values[rng.random(shape) < 0.1] = rng.choice([np.nan, np.inf])
    if rng.random() < 0.3:
        mask = rng.random(shape) < 0.3
    bound: wb.Bound = wb.Absolute(0.0 if rng.random() < 0.1 else eb)
    if rng.random() < 0.2:
        bound = wb.PerSlice([wb.Absolute(eb * float(rng.choice([0.5, 1, 30]))) for _ in range(shape[0])], 0)
    chunk_values = int(rng.choice([300, 10**6]))
    return wb.compress(wb.Field(values, mask=mask), bound, codec, chunk_values=chunk_values), values, mask


def limit_everywhere(archive: Archive) -> np.ndarray:
    """The limit of each cell."""
    limit, shape = archive.certificate["values"].limit, archive.data.layout.shape
    if not isinstance(limit, SliceLimits):
        return np.full(shape, limit.value)
    along = [-1 if axis == limit.axis else 1 for axis in range(len(shape))]
    return np.broadcast_to(np.array(limit.values).reshape(along), shape)


def require_promise(result: Archive, terms: list[tuple[float, Any, Any]]) -> np.ndarray:
    """The exact combination is within the promise wherever no source is missing; elsewhere so is the result. Returns it."""
    there = np.ones(result.data.layout.shape, bool)
    for _, values, mask in terms:
        there &= np.isfinite(values) if mask is None else np.isfinite(values) & ~mask
    found = result.decompress()
    assert (np.isfinite(found.values) & found.valid == there).all()
    exact = [
        sum(Fraction(coefficient) * Fraction(value) for (coefficient, *_), value in zip(terms, row, strict=True))
        for row in zip(*(values[there].tolist() for _, values, _ in terms), strict=True)
    ]
    limits = limit_everywhere(result)[there].tolist()
    for true, value, limit in zip(exact, found.values[there].tolist(), limits, strict=True):
        assert abs(true - Fraction(value)) <= Fraction(limit)
    return np.array(exact, object)


def case(seed: int) -> None:
    """One random combination."""
    rng = np.random.default_rng(seed)
    shape, eb = SHAPES[int(rng.integers(len(SHAPES)))], 10.0 ** rng.uniform(-5, -1)
    alike = rng.random() < 0.6
    terms = []
    for _ in range(int(rng.integers(1, 4))):
        codec = "staged" if alike else str(rng.choice(FIELD_CODECS))
        own = eb if alike else eb * rng.uniform(0.1, 5)
        terms.append((float(rng.choice(COEFFICIENTS)), *source(rng, shape, codec, own)))
    extra = float(rng.choice([0, 1 / 16, 1]))
    result = wb.linear_combination([(one, archive) for one, archive, *_ in terms], extra=extra)
    exact = require_promise(result, [(one, values, mask) for one, _, values, mask in terms])
    derived = result.certificate["values"].derived
    assert derived is not None
    sums = sum(abs(one) * limit_everywhere(archive) for one, archive, *_ in terms)
    most = sums * (1 + extra) + max(_values(derived.rounding))
    assert (limit_everywhere(result) <= most * (1 + 1e-12)).all()
    assert result.certificate["values"].valid_values(int(np.prod(shape))) == exact.size
    result.verify()
    if exact.size:
        for name, true in (("mean", exact.sum() / exact.size), ("max", exact.max())):
            figure = getattr(result, name)()
            assert Fraction(figure.low) <= true <= Fraction(figure.high)


def _values(limit: Any) -> list[float]:
    return limit.values if isinstance(limit, SliceLimits) else [limit.value]


@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.long)])
def test_random_combinations_keep_their_promise(part):
    for seed in range(1000 * part, 1000 * part + 8):
        case(seed)


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_many_random_combinations_keep_their_promise(part):
    for seed in range(10**5 + 1000 * part, 10**5 + 1000 * part + 100):
        case(seed)


def pair(codec: Any = "staged", dtype: type = np.float64, **options: Any) -> tuple[Any, Any, np.ndarray, np.ndarray]:
    """Archives of two fields, and these."""
    y, x = np.indices((60, 70)) / 9
    one, other = np.sin(x + y).astype(dtype), np.cos(x - 2 * y).astype(dtype)
    named = (wb.Field(values, name=name) for values, name in ((one, "a"), (other, "b")))
    return *(wb.compress(each, wb.Absolute(1e-3), codec, **options) for each in named), one, other


def test_lattices_of_one_step_are_subtracted_without_any_error():
    a, b, _, _ = pair(wb.codecs.get("staged", step=2**-10), chunk_values=600)
    difference = a - b
    numbers = a.decompress().values * 2**10 - b.decompress().values * 2**10
    assert (difference.decompress().values == numbers / 2**10).all()
    derived = difference.certificate["values"].derived
    assert derived.encoding.value == 0
    assert derived.rounding.value < 1e-15
    assert (a - a).decompress().values.any() == np.False_
    assert difference.mean().stage == "metadata of blocks"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_archives_of_one_bound_are_not_rounded_to_a_lattice_again(dtype):
    a, b, one, other = pair(dtype=dtype, chunk_values=600)
    cases = (a - b, [(1.0, one), (-1.0, other)], 2), (2.0 * a, [(2.0, one)], 2), (-b, [(-1.0, other)], 1)
    for result, exact, most in cases:
        require_promise(result, [(factor, values, None) for factor, values in exact])
        assert most * 1e-3 <= result.certificate["values"].bound.eb <= most * 1.0626e-3
        assert result.certificate["values"].derived.encoding.value == 0
        assert result.codec.id == "staged"
        assert result.nbytes < 1.6 * (a.nbytes + b.nbytes)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_of_exact_sources_the_roundings_of_the_arithmetic_are_promised(dtype):
    values = [np.random.default_rng(seed).normal(size=500).astype(dtype) for seed in range(3)]
    archives = [wb.compress(each, wb.Exact()) for each in values]
    result = wb.linear_combination([(0.1 * number, one) for number, one in enumerate(archives, start=1)])
    exact = require_promise(result, [(0.1 * number, each, None) for number, each in enumerate(values, start=1)])
    errors = [abs(true - Fraction(value)) for true, value in zip(exact, result.decompress().values.tolist(), strict=True)]
    assert max(errors) <= result.certificate["values"].derived.rounding.value <= 12 * max(errors)


def test_numbers_of_numpy_multiply_from_both_sides():
    a, *_ = pair("prequantised")
    assert (np.float64(2) * a).certificate["values"].limit == (a * np.float32(2)).certificate["values"].limit


def test_a_saved_combination_says_that_its_promise_is_derived(tmp_path):
    a, b, one, other = pair("interpolation")
    made = wb.linear_combination([(1, a), (-0.5, b)], out=tmp_path / "made.zarr")
    opened = wb.open((2 * made).save(tmp_path / "twice.zip"))
    certificate = opened.certificate
    assert made.attributes["name"] == "a - 0.5 b"
    assert certificate.to_dict()["checked"] == DERIVED
    for text in (str(certificate), certificate._repr_html_(), opened._repr_html_()):
        assert "derived from those of the sources" in text
        assert "2 (a - 0.5 b)" in text
        assert CHECKED not in text
        assert "largest error" not in text
    assert CHECKED in str(a.certificate)
    report = opened.verify()
    assert any("needs the combination of the originals" in note for note in report.notes)
    assert opened.verify(wb.Field(2 * one - other)).passed
    with pytest.raises(GuaranteeBroken, match="break the promise"):
        opened.verify(wb.Field(2 * one + other))


@pytest.mark.parametrize("change", ["limit", "coefficient", "rounding", "none", "nan"])
def test_a_certificate_whose_limit_is_not_the_sum_of_its_parts_is_refused(change, tmp_path):
    a, b, *_ = pair()

    def forge(document: dict) -> None:
        (promise,) = document["attributes"]["certificate"]["promises"]
        derived = promise["derived"]
        if change == "limit":
            promise["bound"]["eb"] *= 0.5
        elif change == "coefficient":
            derived["sources"][0]["coefficient"] = 3.0
        elif change == "rounding":
            derived["rounding"]["value"] += 1e-3
        elif change == "none":
            derived["sources"] = []
        else:
            derived["sources"][0]["coefficient"] = "x"

    path = write(tmp_path / "forged.zip", resealed(parts(a - b), "zarr.json", forge).items())
    with pytest.raises(WorkbenchError, match=r"certificate|sources"):
        wb.open(path).certificate  # noqa: B018


def test_the_parts_of_a_certificate_are_read_as_they_were_written():
    a, b, *_ = pair()
    certificate = (a - b).certificate
    assert type(certificate).from_dict(json.loads(json.dumps(certificate.to_dict()))).promises == certificate.promises


def test_members_of_datasets_are_combined_where_their_coordinates_are_alike():
    latitude = np.linspace(-60, 60, 20)
    values = np.random.default_rng(1).random((3, 20, 30))

    def member(shift: float) -> Archive:
        axes = {"lat": (["lat"], latitude + shift, {"units": "degrees_north"})}
        dataset = {"T": wb.Field(values, metadata={"dimensions": ["time", "lat", "lon"], "units": "K"}),
                   "lat": wb.Field(axes["lat"][1], metadata={"dimensions": ["lat"], "units": "degrees_north"})}
        return wb.compress(dataset, {"T": wb.Absolute(1e-3), "*": wb.Exact()})["T"]

    twice = member(0) + member(0)
    assert twice.attributes["metadata"] == {"dimensions": ["time", "lat", "lon"], "units": "K"}
    assert abs(twice.decompress().values - 2 * values).max() <= twice.certificate["values"].bound.eb
    if member(0).beside:
        with pytest.raises(WorkbenchError, match="coordinates along 'lat' differ"):
            member(0) + member(1)


def wrong(**about: Any) -> Archive:
    values = about.pop("values", np.zeros((60, 70)))
    return wb.compress(wb.Field(values, **about), about.pop("bound", wb.Absolute(1e-3)), "prequantised")


@pytest.mark.parametrize(("other", "words"), [
    (lambda: wrong(values=np.zeros((70, 60))), "shape"),
    (lambda: wrong(spacing=0.5), "spacing"),
    (lambda: wrong(metadata={"units": "K"}), "units"),
    (lambda: wrong(metadata={"dimensions": ["lon", "lat"]}), "names of dimensions"),
    (lambda: wb.compress(np.ones((60, 70)), wb.PointwiseRelative(1e-3)), "compress the field with wb.Absolute"),
    (lambda: wb.compress(np.ones((60, 70), np.int32), wb.Absolute(2)), "int32 values"),
    (lambda: wb.compress(wb.Particles(np.zeros((9, 3))), wb.Absolute(1)), "particles"),
    (lambda: np.zeros((60, 70)), "takes another archive"),
    (lambda: wrong(values=np.full((60, 70), 1.7e308)), "beyond the range of float64"),
])
def test_what_does_not_fit_is_refused_in_words(other, words):
    here = wrong(values=np.full((60, 70), 1.7e308), metadata={"units": "m", "dimensions": ["lat", "lon"]})
    with pytest.raises(WorkbenchError, match=words):
        here + other()


def test_wrong_calls_are_refused_in_words():
    a, *_ = pair()
    particles = wb.compress(wb.Particles(np.zeros((9, 3))), wb.Absolute(1))
    for call, words in (
        (lambda: a * "2", "multiplied by a number"),
        (lambda: a * a, "multiplied by a number"),
        (lambda: a * np.inf, "finite number"),
        (lambda: a * 10**400, "finite number"),
        (lambda: particles - particles, "only fields can be added"),
        (lambda: wb.linear_combination([]), "terms must be"),
        (lambda: wb.linear_combination([(1, a)], extra=-1), "extra must be"),
        (lambda: wb.codecs.get("staged", step=0), "step must be"),
    ):
        with pytest.raises(WorkbenchError, match=words):
            call()
