"""What the demo says about keeping clusters: measured anew, and the same on the page."""

import html.parser
from pathlib import Path

import numpy as np
import pytest

import oracles
import workbench as wb
from workbench.cli import demo_comparison, demo_propagation, main
from workbench.cli.demo_comparison import HEADER, SHARE, Comparison, compare_ways

NAMES = ["plain", "clusters kept"]


@pytest.fixture(scope="module")
def web() -> wb.Particles:
    return wb.synthetic.cosmic_web(n=24, seed=2)


@pytest.fixture(scope="module")
def groups(web: wb.Particles) -> wb.Groups:
    return wb.friends_of_friends(web, 0.2)


@pytest.fixture(scope="module")
def comparison(web: wb.Particles, groups: wb.Groups) -> Comparison:
    return compare_ways(web, groups, min_members=20)


class Tables(html.parser.HTMLParser):
    """The cells of all rows of all tables of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.cell = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.cell = tag in ("td", "th")
        if tag == "tr":
            self.rows.append([])
        elif self.cell:
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self.cell = False

    def handle_data(self, data: str) -> None:
        if self.cell:
            self.rows[-1][-1] += data


def test_ways_are_those_of_the_library(web: wb.Particles, groups: wb.Groups, comparison: Comparison) -> None:
    bound = wb.Absolute(SHARE * groups.linking_length)
    assert comparison.bound == bound.eb
    plain = wb.compress(web, bound, order="free")
    kept = wb.compress(web, bound, order="free", keep=[wb.KeepClusters(0.2)])
    assert [way.name for way in comparison.ways] == NAMES
    bits = {way.name: way.bits for way in comparison.ways}
    assert bits["plain"] == plain.bits_per_particle
    assert bits["clusters kept"] == pytest.approx(kept.bits_per_particle)
    for way in comparison.ways:
        assert way.bits - way.overhead == pytest.approx(plain.bits_per_particle)


def test_plain_halos_are_broken_as_an_independent_finder_says(
    web: wb.Particles, groups: wb.Groups, comparison: Comparison
) -> None:
    archive = wb.compress(web, wb.Absolute(comparison.bound), order="free")
    decoded, places = archive.decompress(), archive.permutation(web)
    labels = oracles.scipy_labels(decoded, groups.linking_length)
    before = {frozenset(places[labels == label]) for label in np.unique(labels)}
    halos = [frozenset(groups.members(label)) for label in groups.ids[groups.sizes >= 20]]
    broken = sum(halo not in before for halo in halos)
    assert broken > 0
    split = sum(not any(halo <= group for group in before) for halo in halos)
    assert (comparison.ways[0].broken, comparison.ways[0].split) == (broken, split)
    assert not comparison.ways[0].same_groups


def test_the_promise_keeps_both_the_groups_and_the_bound(comparison: Comparison) -> None:
    _, kept = comparison.ways
    assert (kept.same_groups, kept.broken) == (True, 0)
    assert kept.largest_error <= 1 + 1e-6
    assert kept.halos == comparison.halos
    assert 0 < kept.overhead < 0.05 * kept.bits


def test_halos_are_counted_by_size(groups: wb.Groups, comparison: Comparison) -> None:
    edges = 20 * 2.0 ** np.arange(len(comparison.halos) + 1)
    assert comparison.halos == tuple(np.histogram(groups.sizes, edges)[0])
    assert sum(comparison.halos) == groups.count()


def test_an_archive_is_not_taken_at_its_word(
    web: wb.Particles, groups: wb.Groups, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ruined(wb.Archive):
        """Certifies kept groups, and decodes other positions."""

        def decompress(self) -> wb.Particles:
            decoded = super().decompress()
            return wb.Particles(decoded.positions[::-1].copy(), decoded.box)

    def compress(*args: object, **options: object) -> wb.Archive:
        archive = wb.compress(*args, **options)
        return Ruined(archive.store) if options["keep"] else archive

    monkeypatch.setattr(demo_comparison, "compress", compress)
    kept = compare_ways(web, groups, 20).ways[1]
    assert kept.broken == groups.count()
    assert not kept.same_groups
    assert kept.largest_error > 10


def test_demo_prints_what_the_page_shows(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    page = tmp_path / "demo.html"
    assert main(["demo", "-n", "16", "--seed", "1", "--out", str(page)]) == 0
    printed = capsys.readouterr().out.splitlines()
    rows = Tables(page.read_text(encoding="utf-8")).rows
    assert list(HEADER) in rows
    for name in NAMES:
        (row,) = [row for row in rows if row[0] == name]
        (line,) = [line for line in printed if line.startswith(name)]
        assert line.split() == " ".join(row).split()
        assert (row[HEADER.index("same groups")] == "NO") == (name == "plain")


def test_demo_tells_which_bounds_the_mass_function_tolerates() -> None:
    snapshot = wb.synthetic.cosmic_web(n=24, seed=1)
    found = demo_propagation.doses(snapshot, 0.2, 20)
    assert [dose.ratio for dose in found] == sorted(dose.ratio for dose in found)
    assert found[0].damage <= 1
    verdicts = [line.split()[-1] for line in demo_propagation.dose_table(found).splitlines()[3:]]
    assert verdicts == ["tolerated" if dose.damage <= 1 else "much" for dose in found]


def test_a_universe_without_halos_is_compressed_too(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["demo", "-n", "4", "--out", str(tmp_path / "demo.html")]) == 0
    assert "clusters kept" in capsys.readouterr().out
