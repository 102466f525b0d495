"""Statistics of archives: the exact figure of the original is in every interval, whatever codec, values and region."""

from __future__ import annotations

import dataclasses
import html
import itertools
import json
import math
import sys
from fractions import Fraction

import numpy as np
import pytest

import workbench as wb
from archive.samples import parts
from archive.statistics_cases import FIELD_CODECS, KINDS, SHAPES, field
from workbench.archive import Archive
from workbench.archive.frame import pack, unpack
from workbench.archive.statistics import KNOWN, METADATA, SOME, VALUES, Statistic, statistics
from workbench.archive.statistics.sums import ROW, Sums
from workbench.archive.writing import write
from workbench.codecs import staged
from workbench.codecs.staged_blocks import Fact
from workbench.codecs.staged_stream import Stream
from workbench.errors import GuaranteeBroken, WorkbenchError
from workbench.guarantees import Limit

LARGEST = sys.float_info.max


def exact(values: np.ndarray) -> dict[str, Fraction]:
    """The figures in exact arithmetic; of the standard deviation, its square."""
    given = [Fraction(value) for value in values.reshape(-1).tolist()]
    mean = sum(given) / len(given)
    return {
        "mean": mean, "sum": sum(given, Fraction(0)), "std": sum((value - mean) ** 2 for value in given) / len(given),
        "min": min(given), "max": max(given),
    }


def holds(found: Statistic, true: Fraction) -> bool:
    """Whether the interval, and the ends that are rounded outwards, contain a figure."""
    if found.bound == math.inf:
        return True
    low, high = Fraction(found.value) - Fraction(found.bound), Fraction(found.value) + Fraction(found.bound)
    stated = [Fraction(end) if math.isfinite(end) else other for end, other in ((found.low, low), (found.high, high))]
    if found.name == "std":
        return all((a <= 0 or a * a <= true) and true <= b * b for a, b in ([low, high], stated))
    return low <= true <= high and stated[0] <= true <= stated[1]


def every_interval_holds(archive: Archive, values: np.ndarray, mask: np.ndarray | None = None, region=None) -> int:
    """Compare all statistics with the exact ones; returns how many."""
    place = (slice(None),) * values.ndim if region is None else tuple(slice(*ends) for ends in region)
    valid = np.isfinite(values) if mask is None else np.isfinite(values) & ~mask
    inside = values[place][valid[place]]
    if not inside.size:
        for name in KNOWN:
            with pytest.raises(WorkbenchError, match="at least one valid value"):
                getattr(archive, name)(region)
        return 0
    true, names = exact(inside), list(KNOWN)
    if not abs(true["sum"]) < 2**1023:
        names.remove("sum")
    for found in statistics(archive, names, region):
        assert holds(found, true[found.name]), (found, float(true[found.name]))
        assert (found.count, found.missing) == (inside.size, values[place].size - inside.size)
        assert 0 < found.bytes_read <= found.bytes_stored
    return len(names)


def case(seed: int) -> int:
    """One random field, codec, bound, mask and a few regions; returns how many intervals were checked."""
    rng = np.random.default_rng(seed)
    codec = FIELD_CODECS[0] if rng.random() < 0.5 else FIELD_CODECS[int(rng.integers(len(FIELD_CODECS)))]
    shape, kind = SHAPES[int(rng.integers(len(SHAPES)))], KINDS[int(rng.integers(len(KINDS)))]
    dtype = (np.float32, np.float64)[int(rng.integers(2))]
    values, mask = field(rng, shape, dtype, kind), None
    size = float(np.abs(values).max()) or 1.0
    share = 10.0 ** rng.uniform(-8, -0.3)
    choice = rng.random()
    bound = wb.Absolute(share * size)
    if choice < 0.5:
        bound = wb.PointwiseRelative(share) if choice < 0.15 else wb.Relative(share)
    if 0.4 < choice < 0.5:
        bound = wb.PerSlice(bound, 0)
    if rng.random() < 0.3:
        values[rng.random(shape) < rng.choice([0.01, 0.5])] = rng.choice([np.nan, np.inf, -np.inf])
    if rng.random() < 0.3:
        mask = rng.random(shape) < 0.3
        mask[: shape[0] // 2] |= rng.random() < 0.5
        values[mask & (rng.random(shape) < 0.5)] = 1e30
    if codec == "staged" and rng.random() < 0.5:
        codec = wb.codecs.get(codec, sides=(8, 8, 8), deflate=bool(rng.random() < 0.5))
    archive = wb.compress(wb.Field(values, mask=mask), bound, codec, chunk_values=int(rng.choice([256, 600, 10**6])))
    checked = every_interval_holds(archive, values, mask)
    for _ in range(2):
        ends = [sorted(rng.choice(n + 1, 2, replace=False).tolist()) for n in shape]
        checked += every_interval_holds(archive, values, mask, ends)
    return checked


@pytest.mark.few(1)
@pytest.mark.parametrize("part", [0, 1, *(pytest.param(part, marks=pytest.mark.long) for part in (2, 3))])
def test_the_exact_figure_is_in_every_interval(part):
    assert sum(case(seed) for seed in range(100 * part, 100 * part + 30)) > 200


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "uint64"])
def test_integers_of_any_size(dtype):
    ends = np.iinfo(dtype)
    values = np.random.default_rng(1).integers(ends.min, ends.max, (30, 40), dtype=dtype, endpoint=True)
    for bound in (wb.Absolute(0), wb.Absolute(7)):
        every_interval_holds(wb.compress(values, bound), values)


@pytest.mark.parametrize("codec", FIELD_CODECS)
def test_the_interval_is_about_as_wide_as_the_bound(codec):
    values = field(np.random.default_rng(3), (40, 41, 42), np.float32, "smooth")
    archive = wb.compress(values, wb.Absolute(1e-3), codec)
    for name, most in (("mean", 1.01), ("std", 1.01), ("min", 1.01), ("max", 1.01)):
        assert getattr(archive, name)().bound <= most * 1e-3
    assert archive.explain("mean").bound == pytest.approx(1e-3, rel=0.01)


def test_exact_archives_have_exact_extremes_and_nearly_exact_means():
    values = field(np.random.default_rng(3), (50, 60), np.float64, "noise")
    archive = wb.compress(values, wb.Absolute(0))
    assert (archive.min().value, archive.min().bound, archive.max().bound) == (values.min(), 0, 0)
    assert archive.mean().bound < 1e-13
    assert archive.explain("mean").bound == 0


def test_staged_archives_answer_from_metadata_alone():
    values = field(np.random.default_rng(3), (64, 64, 64), np.float32, "smooth")
    archive = wb.compress(values, wb.Absolute(1e-3), wb.codecs.get("staged", sides=(8, 8, 8)))
    for name in KNOWN:
        found = getattr(archive, name)()
        assert found.stage == METADATA
        assert found.bytes_read < 0.2 * found.bytes_stored
    assert archive.mean([(8, 24), (0, 16), (32, 64)]).stage == METADATA
    beside = archive.mean([(7, 24), (0, 16), (32, 64)])
    assert beside.stage == SOME
    assert beside.bytes_read < archive.mean([(0, 3), (0, 64), (0, 64)]).bytes_stored
    assert archive.mean([(1, 2), (1, 2), (1, 2)]).stage == VALUES


def test_values_that_a_codec_got_wrong_count_as_they_were_corrected(monkeypatch):
    values = field(np.random.default_rng(3), (32, 32, 32), np.float32, "smooth")
    true_lattices = wb.codecs.staged.Staged._lattices

    def coarser(codec, given, bound):
        lattice, _ = true_lattices(codec, given, bound)
        return dataclasses.replace(lattice, step=lattice.step * 1.02, offset=int(lattice.offset / 1.02)), None

    monkeypatch.setattr("workbench.codecs.staged.Staged._lattices", coarser)
    archive = wb.compress(values, wb.Absolute(1e-2), wb.codecs.get("staged", sides=(8, 8, 8)))
    monkeypatch.undo()
    assert archive.certificate["values"].figures["corrected"] > 50
    every_interval_holds(archive, values)
    every_interval_holds(archive, values, region=[(3, 30), (0, 8), (8, 32)])


def test_missing_values_are_corrections_that_no_sum_has():
    values = field(np.random.default_rng(3), (32, 32, 32), np.float32, "smooth")
    values[20, 20, 20] = np.nan
    archive = wb.compress(values, wb.Absolute(1e-2), wb.codecs.get("staged", sides=(8, 8, 8)))
    assert archive.mean().stage == METADATA   # NaN is in no sum
    assert archive.mean().missing == 1
    every_interval_holds(archive, values)


def test_forged_sums_are_found_by_verify(tmp_path):
    values = field(np.random.default_rng(3), (20, 21, 22), np.float32, "smooth")
    values[0, 0, :3] = np.nan
    archive = wb.compress(values, wb.Absolute(1e-3), "staged")
    assert archive.verify(values).passed
    assert archive.verify().passed
    entries, layout = parts(archive), archive.data.layout
    (key,) = (layout.chunk_key(index) for index in layout.chunk_indices())
    for fact in (Fact.SUM, Fact.SQUARES, Fact.LOW, Fact.HIGH, Fact.COUNT):
        opened = unpack(entries[key], key)
        sections = {tag: bytes(part) for tag, part in opened.sections.items()}
        stream = Stream.from_bytes(sections["code"], opened.shape, layout.dtype)
        stream.facts[fact, 1] -= 1
        sections["code"] = stream.to_bytes(opened.shape, layout.dtype)
        forged = wb.open(write(tmp_path / f"{fact}.zip", {**entries, key: pack(opened.shape, sections)}.items()))
        assert (forged.decompress().values[1:] == archive.decompress().values[1:]).all()
        for given in ((), (values,)):
            with pytest.raises(GuaranteeBroken, match="the sums of its block 1 are not those of its values"):
                forged.verify(*given)


def test_chunks_are_decoded_one_by_one(monkeypatch):
    values = field(np.random.default_rng(3), (64, 64), np.float32, "smooth")
    archive = wb.compress(values, wb.Absolute(1e-3), "prequantised", chunk_values=512)
    sizes = []
    true = Sums.of.__func__
    monkeypatch.setattr(Sums, "of", classmethod(lambda cls, part, limit: sizes.append(part.size) or true(cls, part, limit)))
    archive.mean()
    assert len(sizes) == archive.data.layout.chunk_count > 4
    assert max(sizes) <= 512


def test_members_of_datasets_and_saved_archives(tmp_path):
    import xarray

    values = field(np.random.default_rng(3), (30, 40), np.float32, "smooth")
    data = xarray.Dataset({"T": (("y", "x"), values), "name": ("y", np.array(["a"] * 30))})
    archive = wb.compress(data, {"T": wb.Absolute(1e-3), "*": wb.Exact()})
    path = archive.save(tmp_path / "x.zip")
    every_interval_holds(wb.open(path)["T"], values)
    with pytest.raises(WorkbenchError, match="this statistic is of fields of real numbers; the archive holds"):
        archive["name"].mean()


def test_wrong_calls_are_refused_in_words():
    archive = wb.compress(np.linspace(0, 1, 600).reshape(20, 30), wb.Absolute(1e-3), "staged")
    with pytest.raises(WorkbenchError, match="names must be a list of some of mean"):
        archive.statistics("mean")
    with pytest.raises(WorkbenchError, match="no statistic is called 'mode'; available: mean, sum, std, min, max"):
        archive.explain("mode")
    for name, option, why in (
        ("mean", {"axes": 0}, "mean takes no axes=; its options are: axis=, weights="),
        ("max", {"weights": "area"}, "max takes no weights=; its options are: axis="),
        ("laplacian", {"axis": 0}, "laplacian takes no axis=; its options are: none"),
        ("block_means", {"region": [(0, 3), None]}, "block_means takes no region=; its options are: sides="),
        ("dot", {}, "needs other=, the archive of the second field"),
    ):
        for codec in ("staged", "prequantised"):
            with pytest.raises(WorkbenchError, match=why):
                wb.compress(np.ones((20, 30)), wb.Absolute(1e-3), codec).explain(name, **option)
    with pytest.raises(WorkbenchError, match="region must have 2 parts"):
        archive.mean([(0, 1)])
    with pytest.raises(WorkbenchError, match="region must select points"):
        archive.std([(5, 5), None])
    particles = wb.compress(wb.synthetic.cosmic_web(n=8), wb.Absolute(0.1))
    with pytest.raises(WorkbenchError, match="the archive holds particles"):
        particles.max()
    with pytest.raises(WorkbenchError, match="the archive holds a trajectory: use decompress"):
        wb.compress(wb.Trajectory(np.zeros((2, 5, 3))), wb.Absolute(0.1)).max()
    nothing = wb.compress(np.full((8, 9), np.nan), wb.Absolute(0.1), "staged")
    with pytest.raises(WorkbenchError, match="at least one valid value; got none"):
        nothing.mean()
    for weights in (None, {0: np.ones(8)}):
        with pytest.raises(WorkbenchError, match="at least one valid value"):
            nothing.sum(weights=weights)


def test_a_sum_beyond_all_numbers_is_refused_and_the_mean_is_not():
    values = np.full((20, 30), 1.7e308)
    archive = wb.compress(values, wb.Absolute(1e300), "pcodec")
    with pytest.raises(WorkbenchError, match="the sum of these values is beyond the range of float64"):
        archive.sum()
    assert holds(archive.mean(), Fraction(1.7e308))
    assert archive.std().low == 0


@pytest.mark.parametrize(("value", "bound", "shown"), [
    (0.1234, 0.0, "0.1234 ± 0"), (1.5, 0.25, "1.500 ± 0.250"), (123456.0, 1234.0, "123460 ± 1240"),
    (1e300, 1e290, "1.000000000000E+300 ± 1.01E+290"), (1.0, math.inf, "1.0 ± inf"),
    (2.5e-20, 1e-22, "2.5000E-20 ± 1.01E-22"), (4e17, 1e-145, "400000000000000000.000 ± 0.001"),
])
def test_figures_in_print_contain_their_interval(value, bound, shown):
    found = Statistic("mean", value, bound, VALUES, 1, 1, 1, 0)
    assert str(found) == shown


ORDER = ("value", "values", "power", "bound", "low", "high", "stage", "bytes_read", "bytes_stored", "count", "missing")


def test_every_answer_is_ready_for_json_and_has_a_table_whose_bounds_are_rounded_up():
    values = np.linspace(0, 1, 600).reshape(20, 30)
    values[0, 0] = np.nan
    archive = wb.compress(values, wb.Absolute(0.10001), "staged")
    waves = wb.compress(np.cos(np.arange(32.0)), wb.Absolute(1e-3))
    particles = wb.compress(wb.synthetic.cosmic_web(n=16, seed=1), wb.Absolute(1e-4))
    answers = [
        archive.mean(), archive.mean(axis=0), archive.laplacian(), archive.block_means(), archive.median(),
        archive.count(above=0.5), archive.histogram(3), archive.explain("mean"), waves.power_spectrum(),
        particles.count_particles([(0, 5)] * 3), particles.density(4), particles.centre_of_mass(), particles.halo_masses(),
    ]
    for answer in answers:
        stated = answer.to_dict()
        assert list(json.loads(json.dumps(stated, allow_nan=False))) == list(stated)
        assert html.escape(answer._line) in answer._repr_html_()
        assert (named := [name for name in ORDER if name in stated]) == [name for name in stated if name in named]
    assert "bound 0.1001," in repr(archive.block_means())
    assert "bound 0.1001 to 0.2001," in repr(archive.derivative(0))
    assert "bound 0.1001" in str(wb.compress(values, wb.Absolute(0.10001), "pcodec").explain("mean"))


@pytest.mark.parametrize("kind", [wb.Absolute(1e290), wb.Absolute(0.0), wb.PointwiseRelative(0.9)])
@pytest.mark.parametrize("values", [(-LARGEST, LARGEST, 0.0), (LARGEST, LARGEST), (1e17, 1e17), (1e-320, 3e-320)])
@pytest.mark.filterwarnings("error")
def test_extremes_and_histograms_at_the_ends_of_the_numbers(values, kind):
    archive = wb.compress(np.array(values), kind, "prequantised")
    assert holds(archive.min(), Fraction(min(values)))
    assert holds(archive.max(), Fraction(max(values)))
    for ends in (None, (-LARGEST, LARGEST)):
        if ends is None and min(values) == LARGEST and kind == wb.Absolute(1e290):
            with pytest.raises(WorkbenchError, match=r"5 bins from 1.797.* are narrower than float64 resolves"):
                archive.histogram(5)
            continue
        counts = archive.histogram(5, ends)
        bins = np.searchsorted(counts.edges[1:-1], values, "right")
        true = np.bincount(bins, minlength=5)
        assert ((counts.low <= true) & (true <= counts.high)).all()


@pytest.mark.parametrize("size", [1, ROW - 1, ROW, ROW + 1, 5 * ROW + 7])
@pytest.mark.parametrize("limit", [None, Limit("absolute", 0.25), Limit("relative", 0.75)])
def test_sums_of_values_that_are_as_far_off_as_they_may_be(size, limit):
    rng = np.random.default_rng(size)
    decoded = np.round(rng.normal(size=size) * 64) / 64
    for sign in (-1, 1):
        moved = decoded if limit is None else decoded + sign * 0.25 if not limit.relative else decoded / (1 + sign * 0.75)
        true = exact(moved)
        for name, function in KNOWN.items():
            low, high = function([Sums.of(decoded, limit)])
            slack = Fraction(1, 2**40)   # `moved` is rounded
            low, high = (low**2 if low > 0 else low, high**2) if name == "std" else (low, high)
            assert low - slack <= true[name] <= high + slack


def test_statistics_do_not_depend_on_how_a_field_is_cut():
    values = field(np.random.default_rng(3), (40, 41), np.float64, "offset")
    cut = [wb.compress(values, wb.Absolute(1e-3), "staged", chunk_values=size).mean() for size in (300, 10**6)]
    for one, other in itertools.pairwise(cut):
        assert abs(one.value - other.value) <= one.bound + other.bound


@pytest.mark.parametrize("fact", [Fact.SUM, Fact.SQUARES, Fact.LOW, Fact.HIGH, Fact.COUNT])
def test_an_archive_with_wrong_sums_is_never_made(fact: Fact, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sums are no promise of the codec: what it states is computed again before there is an archive."""
    encode = staged.encode_blocks

    def wrong(*given: object) -> object:
        facts, first, coded = encode(*given)   # type: ignore[arg-type]
        facts[fact, 3] += -1 if fact is Fact.COUNT else 1
        return facts, first, coded

    values = wb.synthetic.gaussian_field((32, 32, 32), seed=1).values.copy()
    values[0, 0, 0] = np.nan   # so that the number of cells is stated, too
    field = wb.Field(values)
    honest = wb.compress(field, wb.Absolute(1e-2), codec=wb.codecs.get("staged", sides=(8, 8, 8)))
    monkeypatch.setattr(staged, "encode_blocks", wrong)
    archive = wb.compress(field, wb.Absolute(1e-2), codec=wb.codecs.get("staged", sides=(8, 8, 8)))
    assert honest.mean().stage != archive.mean().stage == "values"
    true = float(np.nanmean(values, dtype=np.float64))
    assert archive.mean().low <= true <= archive.mean().high
    assert archive.verify(field).passed
