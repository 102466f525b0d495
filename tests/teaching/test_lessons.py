"""The exercises of each lesson: right answers are right, typical mistakes get the hint that was written for them.

That the notebooks run, and that their solutions are right there, is tested in a browser: `browser/test_notebooks.py`.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from teaching.solutions import CLASS, DOTS, SOLUTIONS
from workbench.teaching import analysis, clusters, deliveries, limits, promises, science

XI = 0.1


@pytest.fixture(scope="module")
def field() -> wb.Field:
    return wb.Field(285 + 6 * wb.synthetic.gaussian_field((64, 64), spectrum=3, seed=4).values)


@pytest.fixture(scope="module")
def archive(field: wb.Field) -> wb.Archive:
    return wb.compress(field, wb.Absolute(XI))


@pytest.mark.parametrize("lesson", sorted(path.stem for path in CLASS.glob("*.ipynb")))
def test_a_lesson_has_three_to_five_exercises_and_no_answer(lesson: str) -> None:
    cells = ["".join(cell["source"]) for cell in json.loads((CLASS / f"{lesson}.ipynb").read_text())["cells"]]
    exercises = [code for code in cells if DOTS.search(code)]
    assert 3 <= len(exercises) <= 5
    assert len(exercises) == len(SOLUTIONS[lesson]) == sum(text.count("### Exercise") for text in cells)
    assert all("check." in code for code in exercises)
    text = "\n".join(cells).replace(" ", "")
    given = [answer for answer in SOLUTIONS[lesson] if len(answer) > 16 and answer.replace(" ", "") in text]
    assert given == []


# Lesson 1.

def test_steps(field: wb.Field) -> None:
    bits = np.log2(np.ptp(field.values) / (2 * XI))
    assert promises.steps(bits, field, XI).right
    assert promises.steps(int(np.ceil(bits)), field, XI).right
    assert "One bit too many" in promises.steps(bits + 1, field, XI).text
    assert "How many bits" in promises.steps(2**bits, field, XI).text
    assert "natural" in promises.steps(bits * np.log(2), field, XI).text
    assert "now" in promises.steps(32, field, XI).text
    assert not promises.steps(bits - 1, field, XI).right


@pytest.mark.parametrize(("function", "word"), [
    (lambda v, e: np.round(v / (2 * e)) * 2 * e, "Right"),
    (lambda v, e: np.floor(v / (2 * e)) * 2 * e + e, "Right"),
    (lambda v, e: np.floor(v / (2 * e)) * 2 * e, "cutting off"),
    (lambda v, e: np.round(v / e) * e, "bits per value too many"),
    (lambda v, e: np.round(v / (2 * e)), "multiply by their width"),
    (lambda v, e: np.round(v / (2 * XI)) * 2 * XI, "not on other values"),
    (lambda v, e: v, "nothing was rounded"),
    (lambda v, e: v + 5, "which is 5 off"),
    (lambda v, e: np.full(v.shape, np.nan), "which is inf off"),
    (lambda v, e: v[0], "must have the shape"),
    (lambda v: v, "TypeError"),
])
def test_rounding(field: wb.Field, function: Any, word: str) -> None:
    assert word in promises.rounding(function, field, XI).text


def test_a_function_that_writes_into_its_argument_does_no_harm(field: wb.Field) -> None:
    def rounded(values: np.ndarray, bound: float) -> np.ndarray:
        values[:] = np.round(values / (2 * bound)) * 2 * bound
        return values

    assert promises.rounding(rounded, field, XI).right
    assert field.values.flags.writeable is False


def test_sizes(field: wb.Field, archive: wb.Archive) -> None:
    bits = 8 * archive.nbytes / field.values.size
    assert promises.bits_per_value(bits, field, archive).right
    assert "byte" in promises.bits_per_value(bits / 8, field, archive).text
    assert "smaller" in promises.bits_per_value(32 / bits, field, archive).text
    assert "whole archive" in promises.bits_per_value(archive.nbytes, field, archive).text
    assert promises.halving(1, field, 0.02).right
    assert "two bits more" in promises.halving(2, field, 0.02).text


def test_the_same_promise(field: wb.Field) -> None:
    spread = float(np.ptp(field.values))
    assert promises.same_promise(f"{spread / 1000} K", field, 1e-3).right
    assert "largest value" in promises.same_promise(field.values.max() / 1000, field, 1e-3).text
    assert "half" in promises.same_promise(spread / 2000, field, 1e-3).text


def test_a_bound_that_was_overwritten_is_named(field: wb.Field, archive: wb.Archive) -> None:
    for bound in (wb.Absolute(XI), "wide", ..., 0):
        for check in (
            lambda bound: promises.steps(1, field, bound), lambda bound: promises.halving(1, field, bound),
            lambda bound: science.typical_error(1, field, archive, bound), lambda bound: science.gradient(1, bound, 0.1),
            lambda bound: limits.price(1, np.arange(9), 1.0, bound),
        ):
            with pytest.raises(wb.WorkbenchError, match="the bound must be positive"):
                check(bound)


# Lesson 2.

def test_typical_errors_and_gradients(field: wb.Field, archive: wb.Archive) -> None:
    assert science.typical_error(XI / 3**0.5, field, archive, XI).right
    for answer, word in ((XI, "largest"), (XI / 12**0.5, "2ξ wide"), (XI / 2, "|e|"), (XI**2 / 3, "root")):
        assert word in science.typical_error(answer, field, archive, XI).text
    assert science.gradient(1.0, 0.05, 0.1).right
    for answer, word in ((0.5, "Both"), (0.1, "divided"), (0.05, "one value"), (0.01, "rather than")):
        assert word in science.gradient(answer, 0.05, 0.1).text
    assert science.guaranteed("b, a").right
    assert "(c)" in science.guaranteed("abc").text


def test_the_bound_of_a_spectrum_is_tried() -> None:
    noise = wb.synthetic.gaussian_field((32, 32), spectrum=2, seed=1)
    assert "smaller bound" in science.spectrum_bound(4.0, noise).text
    assert "so is a bound" in science.spectrum_bound("0,0001", noise).text
    assert any(science.spectrum_bound(eb, noise).right for eb in np.geomspace(0.02, 0.6, 8))
    assert "positive" in science.spectrum_bound(0, noise).text


def test_broken_halos_are_counted() -> None:
    snapshot = wb.synthetic.cosmic_web(n=32, seed=0)
    archive = wb.compress(snapshot, wb.Absolute(0.02), order="free")
    match = wb.metrics.match_halos(snapshot, archive.decompress(), order=archive.permutation(snapshot))
    assert science.broken(match.broken.mean(), snapshot, archive).right
    assert science.broken(f"{100 * match.broken.mean()} %", snapshot, archive).right
    for answer, word in ((match.identical.mean(), "whole"), (match.split.mean(), "merged"), (match.broken.sum(),
        "What share")):
        assert word in science.broken(answer, snapshot, archive).text


# Lesson 3.

def right_entropy(numbers: np.ndarray) -> float:
    p = np.unique(numbers, return_counts=True)[1] / numbers.size
    return float(-(p * np.log2(p)).sum())


@pytest.mark.parametrize(("function", "word"), [
    (right_entropy, "Right"),
    (lambda n: right_entropy(n) * np.log(2), "natural"),
    (lambda n: right_entropy(n) * np.log10(2), "decimal"),
    (lambda n: -right_entropy(n), "minus"),
    (lambda n: right_entropy(n) * n.size, "divide the counts"),
    (lambda n: len(np.unique(n)), "uncertain"),
    (lambda n: np.nan, "0"),
    (lambda n: "two", "one number"),
    (lambda n: 1 / 0, "ZeroDivisionError"),
])
def test_entropy(function: Any, word: str) -> None:
    assert word in limits.entropy_function(function).text


def test_rates() -> None:
    noise = np.random.default_rng(1).normal(size=100_000)
    numbers = np.round(noise / 0.02).astype(int)
    entropy = right_entropy(numbers)
    assert limits.noise_bits(entropy, numbers).right
    assert "equally frequent" in limits.noise_bits(np.log2(len(np.unique(numbers))), numbers).text
    assert "whole bits" in limits.noise_bits(8, numbers).text
    assert limits.rate(np.log2(100), 1.0, 0.01).right
    for answer, word in ((2 * np.log2(100), "Twice"), (np.log2(10), "squared"), (np.log(100), "natural"), (2, "decimal")):
        assert word in limits.rate(answer, 1.0, 0.01).text
    price = entropy - np.log2(3**0.5 / 0.01)
    assert price == pytest.approx(0.5 * np.log2(2 * np.pi * np.e / 12), abs=0.01)   # the price of a bound, by theory
    assert limits.price(price, numbers, 1.0, 0.01).right
    assert "root of 3" in limits.price(price + np.log2(3**0.5), numbers, 1.0, 0.01).text


def test_what_neighbours_save() -> None:
    numbers = np.cumsum(np.random.default_rng(1).integers(-3, 4, (200, 200)), axis=1)
    alone, differences = right_entropy(numbers), right_entropy(np.diff(numbers, axis=1))
    assert limits.saved(alone - differences, numbers).right
    assert "How much less" in limits.saved(differences, numbers).text
    assert "columns" in limits.saved(alone - right_entropy(np.diff(numbers, axis=0)), numbers).text


# Lesson 4.

def test_distances() -> None:
    assert clusters.distance(2 * 3**0.5 * 0.02, 0.02).right
    for factor, word in ((1, "one particle"), (2, "one axis"), (3**0.5, "Both may"), (8**0.5, "two dimensions"), (6,
        "add up")):
        assert word in clusters.distance(factor * 0.02, 0.02).text


@pytest.mark.parametrize(("function", "word"), [
    (lambda m, o, e: np.clip(m, o - e, o + e), "Right"),
    (lambda m, o, e: o + np.clip(m - o, -e, e), "Right"),
    (lambda m, o, e: np.clip(m, -e, e), "around 0"),
    (lambda m, o, e: np.clip(m - o, -e, e), "add them"),
    (lambda m, o, e: m, "Nothing"),
    (lambda m, o, e: o, "Everything"),
    (lambda m, o, e: np.where(abs(m - o) <= e, m, o), "border"),
    (lambda m, o, e: o + (m - o) * np.minimum(1, e / np.linalg.norm(m - o, axis=1, keepdims=True)), "corner"),
    (lambda m, o, e: o + e / 2, "as near as possible"),
    (lambda m, o, e: o + 2 * e, "from its original"),
    (lambda m, o, e: m * np.nan, "from its original"),
    (lambda m, o: m, "TypeError"),
])
def test_projections(function: Any, word: str) -> None:
    assert word in clusters.projection(function).text


@pytest.mark.parametrize(("function", "word"), [
    (lambda a, b: wb.Groups.from_labels(a, 1.0).equals(wb.Groups.from_labels(b, 1.0)), "Right"),
    (lambda a, b: np.array_equal(a, b), "names"),
    (lambda a, b: len(set(a)) == len(set(b)), "other members"),
    (lambda a, b: sorted(np.unique(a, return_counts=True)[1]) == sorted(np.unique(b, return_counts=True)[1]),
    "other members"),
    (lambda a, b: all(len(set(b[a == x])) == 1 for x in set(a)), "one direction"),
    (lambda a, b: all(len(set(a[b == x])) == 1 for x in set(b)), "one direction"),
    (lambda a, b: a == b, "True or False"),
    (lambda a, b: True, "split"),
])
def test_partitions(function: Any, word: str) -> None:
    assert word in clusters.same_groups(function).text


def test_the_price_of_halos_and_what_it_buys() -> None:
    snapshot = wb.synthetic.cosmic_web(n=16, seed=1)
    archive, kept = (wb.compress(snapshot, wb.Absolute(0.02), order="free", keep=keep) for keep in ((),
        [wb.KeepClusters(0.2)]))
    price = kept.bits_per_particle - archive.bits_per_particle
    assert clusters.overhead(price, archive, kept).right
    assert "all of the positions" in clusters.overhead(kept.bits_per_particle, archive, kept).text
    assert clusters.promised({"a", "b"}).right
    assert "centre" in clusters.promised("abc").text


# Lesson 5.

def test_rules_of_propagation() -> None:
    assert analysis.mean_error(0.1 / 30000**0.5, 0.1, 10_000).right
    for answer, word in ((0.1, "guarantees"), (0.001, "Nearly"), (0.1 / 3**0.5, "one value"), (1e-5, "root of N"),
        (0.1 * 10000**0.5 / 3**0.5, "sum")):
        assert word in analysis.mean_error(answer, 0.1, 10_000).text
    assert analysis.square("4 ", 20, 0.1).right
    assert analysis.square(4.01, 20, 0.1).right
    for answer, word in ((0.01, "expand"), (0.1, "x itself"), (2, "2x"), (0.005, "relative")):
        assert word in analysis.square(answer, 20, 0.1).text


@pytest.mark.parametrize(("answer", "word"), [
    (wb.PointwiseRelative(0.0225), "Right"), (wb.PointwiseRelative(0.01), "finer than needed"),
    (wb.PointwiseRelative(0.1), "off by up to"),
    (wb.Absolute(0.1), "no logarithm"), (wb.Absolute(1e-5), "Another kind"), (wb.Relative(0.01), "no logarithm"), (0.01,
    "That is a number"),
    ("wb.Absolute(1)", "Give a bound"), (wb.Absolute, "Give a bound"), (..., "Waiting"),
])
def test_bounds_of_logarithms(answer: Any, word: str) -> None:
    density = wb.Field(np.exp(2 * wb.synthetic.gaussian_field((16, 16, 16), seed=1).values))
    assert word in analysis.logarithm(answer, density, 0.01).text


def test_the_bound_of_a_budget_is_tried() -> None:
    field = wb.Field(np.exp(0.5 * wb.synthetic.gaussian_field((16, 16, 16), seed=3).values))
    pipeline = wb.propagation.power_spectrum(field)
    assert "twice the bound" in analysis.budget(1e-4, pipeline, field).text
    assert "allowed" in analysis.budget(wb.Absolute(1.0), pipeline, field).text
    assert "allowed" in analysis.budget(1e300, pipeline, field).text   # nothing is left, and no number of the result
    assert any(analysis.budget(eb, pipeline, field).right for eb in np.geomspace(0.01, 0.2, 5))


@pytest.mark.long
def test_every_seed_shuffles_two_good_files_and_three_bad_ones(tmp_path: Path) -> None:
    field = wb.Field(285 + 6 * wb.synthetic.gaussian_field((256, 256), spectrum=3, seed=4).values)
    right = {}
    for seed in range(3):
        files = deliveries(field, XI, tmp_path, seed=seed)
        passed = [file for file in files if wb.audit(field, file.path, wb.Absolute(XI), quick=True).passed]
        right[seed] = "".join(file.letter for file in passed)
        assert len(passed) == 2
        for file in files:   # as the lesson says
            assert np.sqrt(np.mean((np.load(file.path).astype(float) - field.values) ** 2)) < XI
    assert len(set(right.values())) > 1
    assert analysis.trusted(right[2], field, files, XI).right
    assert "at its own place" in analysis.trusted("abcde", field, files, XI).text
    assert analysis.trusted("xyz", field, files, XI).right is False
