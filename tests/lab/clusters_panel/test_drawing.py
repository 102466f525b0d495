"""What is shown: pictures against counts of particles, marks against what they mark, and charts that are built alike."""

import dataclasses
from typing import Any

import numpy as np
import pytest

import workbench as wb
from lab.clusters_panel import samples
from workbench.charts.description import Rule, Series, Span
from workbench.clusters.keep.repair import Step
from workbench.clusters.matching import SPLIT
from workbench.lab.chart_part import ChartPart
from workbench.lab.clusters_panel.curves import descent_chart, mass_function_chart
from workbench.lab.clusters_panel.detail import MOST_POINTS, sight_of
from workbench.lab.clusters_panel.drawing import draw, shown_outcome
from workbench.lab.clusters_panel.keeping import Trace
from workbench.lab.clusters_panel.panes import MOST_HALOS, MOST_LINKS, chosen_mark
from workbench.lab.clusters_panel.state import Chosen
from workbench.lab.description import Marks, Picture, Shown
from workbench.lab.projection import shown_axes

CLUMPS = [name for name in samples.SETS if name.endswith("-D")]


def drawn(name: str, **fields: Any) -> Shown:
    case = samples.case(name)
    return draw(case.particles, case.changed(**fields), case.halos, case.breakage, case.kept)


def marks_of(picture: Picture, label: str, shape: str = "") -> list[Marks]:
    return [marks for marks in picture.marks if marks.label == label and shape in ("", marks.shape)]


def facts_of(shown: Shown) -> dict[str, str]:
    return {fact.name: fact.value for fact in shown.facts}


def links_of(picture: Picture, label: str) -> Marks:
    """The lines of this label, the first if there are several; empty marks are left out of the close-up."""
    none = Marks("lines", np.empty((0, 4)), "#ffffff", label, ids=np.empty(0))
    return next(iter(marks_of(picture, label, "lines")), none)


@pytest.mark.parametrize("shows", ["decoded", "kept"])
@pytest.mark.parametrize("name", samples.SETS)
def test_every_set_can_be_drawn_at_every_stage(name, shows):
    case = samples.case(name)
    state = case.changed(shows=shows)
    stages = [(), (case.breakage,), (case.breakage, case.kept), (None, case.kept), (case.breakage, None, case.kept.trace)]
    for results in stages:
        shown = draw(case.particles, state, case.halos, *results)
        breakage, kept, *_ = *results, None, None
        made = [name for name, result in (("decoded", breakage), ("halos kept", kept)) if result is not None]
        assert [picture.title for picture in shown.pictures] == ["original", *made]
        there = shown_outcome(state, breakage, kept)
        front = "original" if there is None else "halos kept" if shows == "kept" and kept is not None else "decoded"
        assert shown.pictures[shown.front].title == front
        assert shown.detail is None
        assert set(shown.tables) == {"halos", "certificate"}
        assert all(picture.pixels.any() for picture in shown.pictures)
        is_kept = shows == "kept" and len(results) == 2
        trace = results[2] if len(results) == 3 else case.kept.trace if is_kept else Trace()
        assert ("descent" in shown.charts) == (len(trace) > 0)
        assert ("mass function" in shown.charts) == (case.halos.count(state.min_members) > 0)
        assert all(chart.svg.startswith("<svg") for chart in shown.charts.values())


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("name", CLUMPS)
def test_pictures_have_light_where_there_are_particles(name, axis):
    case = samples.case(name)
    shown = drawn(name, axis=axis)
    axes = shown_axes(case.particles, axis)
    sets = case.particles, case.breakage.outcome.decoded, case.kept.outcome.decoded
    for particles, picture in zip(sets, shown.pictures, strict=True):
        left, right, bottom, top = picture.window
        height, width = picture.pixels.shape
        positions = particles.positions[:, axes].astype(float)
        inside = ((positions >= [left, bottom]) & (positions <= [right, top])).all(axis=1)
        counts = np.histogram2d(
            positions[inside, 1], positions[inside, 0], (height, width), ((bottom, top), (left, right))
        )[0][::-1]
        assert ((counts > 0) == (picture.pixels > 0)).mean() > 0.99   # edges of pixels are rounded
    assert len({(picture.low, picture.high, picture.pixels.shape) for picture in shown.pictures}) == 1


def test_what_does_not_change_is_the_same_array_so_that_it_is_not_sent_again():
    one, other = (drawn("periodic 3-D", shows="kept", min_members=members) for members in (2, 10))
    for before, after in zip(one.pictures, other.pictures, strict=True):
        assert before.pixels is after.pixels
    assert one.charts["descent"] is other.charts["descent"]
    assert one.charts["mass function"] is not other.charts["mass function"]
    assert drawn("periodic 3-D", shows="kept", min_members=2).charts["mass function"] is one.charts["mass function"]


@pytest.mark.parametrize("name", CLUMPS)
def test_each_halo_is_outlined_in_the_manner_of_what_became_of_it(name):
    case = samples.case(name)
    shown = drawn(name, min_members=5)
    count, axes = case.halos.count(5), shown_axes(case.particles, 2)
    assert count < MOST_HALOS
    labels, status = case.halos.catalogue.labels[:count], case.breakage.outcome.status[:count]
    looks = set()
    for kind, label in enumerate(("intact", "split", "merged")):
        (marks,) = marks_of(shown.pictures[1], label)
        assert marks.ids is not None
        assert sorted(marks.ids.tolist()) == sorted(labels[status == kind].tolist())
        place = np.searchsorted(np.sort(labels), marks.ids)
        centres = case.halos.catalogue.centres[np.argsort(labels)[place]][:, axes]
        np.testing.assert_allclose(marks.places[:, :2], centres, rtol=1e-6)
        looks.add((marks.opacity == 1, marks.dash))   # which can be told apart without colours
    assert len(looks) == 3
    kept = drawn(name, min_members=5, shows="kept")
    for number, numbers in ((0, [count, 0, 0]), (1, np.bincount(status, minlength=3).tolist()), (2, [count, 0, 0])):
        assert [len(marks_of(kept.pictures[number], label)[0]) for label in ("intact", "split", "merged")] == numbers


@pytest.mark.parametrize("name", CLUMPS)
def test_broken_links_are_marked_where_they_are_and_can_be_clicked(name):
    case = samples.case(name)
    picture = drawn(name).pictures[1]
    axes = shown_axes(case.particles, 2)
    outcome = case.breakage.outcome
    looks = set()
    for label, links in (("missing link", outcome.missing), ("false link", outcome.false)):
        lines = links_of(picture, label)
        assert lines.ids is not None
        assert 0 < len(lines) <= MOST_LINKS
        ends = outcome.decoded.positions[links.pairs[lines.ids]][:, :, axes]
        np.testing.assert_allclose(lines.places[:, :2], ends[:, 0], rtol=1e-5)
        sizes = np.sqrt(((lines.places[:, 2:] - lines.places[:, :2]) ** 2).sum(axis=1))
        assert (sizes <= links.lengths[lines.ids] * (1 + 1e-4)).all()   # by nearest image: no line crosses the box
        looks.add((lines.colour, lines.dashed))
        row = int(lines.ids[-1])
        assert chosen_mark(label, row, outcome) == Chosen.link(*links.pairs[row])
        assert chosen_mark(label, len(links), outcome) is None
    assert len(looks) == 2
    assert chosen_mark("split", 5, outcome) == Chosen.halo(5)
    assert chosen_mark("links", 5, outcome) is None
    assert chosen_mark("missing link", 0, None) is None


def test_links_are_drawn_in_a_small_window_but_the_chosen_one_in_every_window():
    pairs = samples.case("periodic 3-D").breakage.outcome.missing.pairs
    picture = drawn("periodic 3-D", chosen=Chosen.link(*pairs[3])).pictures[1]
    assert [(marks.near, marks.ids.tolist() == [3]) for marks in marks_of(picture, "missing link", "lines")] == [
        (True, False), (False, True),
    ]
    assert all(marks.near for marks in marks_of(picture, "false link"))
    small = drawn("periodic 3-D", window=(0.4, 0.6, 0.4, 0.6)).pictures[1]
    assert not any(marks.near for marks in small.marks)
    picture = drawn("periodic 3-D").pictures[1]
    assert all(marks.near for kind in ("missing link", "false link") for marks in marks_of(picture, kind))


def test_points_stand_for_lines_that_are_too_short_to_be_seen():
    wide = drawn("periodic 3-D").pictures[1]
    near = drawn("periodic 3-D", window=(0.4, 0.6, 0.4, 0.6)).pictures[1]
    case = samples.case("periodic 3-D")
    (points,) = marks_of(near, "false link", "points")
    assert len(points) == 0
    assert 0 < len(links_of(near, "false link")) < len(links_of(wide, "false link"))
    tiny = dataclasses.replace(case.state, window=(-50.0, 50.0, -50.0, 50.0))
    (points,) = marks_of(draw(case.particles, tiny, case.halos, case.breakage).pictures[1], "false link", "points")
    assert len(points) == len(links_of(wide, "false link"))


def test_a_sentence_says_how_much_is_not_drawn(monkeypatch):
    monkeypatch.setattr("workbench.lab.clusters_panel.panes.MOST_HALOS", 7)
    monkeypatch.setattr("workbench.lab.clusters_panel.panes.MOST_LINKS", 3)
    shown, case = drawn("periodic 3-D", min_members=2), samples.case("periodic 3-D")
    halos = [marks for label in ("intact", "split", "merged") for marks in marks_of(shown.pictures[1], label)]
    assert sum(map(len, halos)) == 7
    assert sorted(np.concatenate([m.ids for m in halos]).tolist()) == sorted(case.halos.catalogue.labels[:7].tolist())
    count = case.halos.count(2)
    assert shown.note == f"7 of {count} halos are drawn: the largest."
    near = drawn("periodic 3-D", min_members=2, window=(0.4, 0.6, 0.4, 0.6)).note
    assert near.startswith("7 of ")
    assert " missing links are drawn: those of the largest groups." in near


def test_a_window_shows_what_is_in_it():
    case, window = samples.case("periodic 2-D"), (0.25, 0.5, 0.5, 0.75)
    shown = drawn("periodic 2-D", window=window)
    assert shown.pictures[0].window == window
    for marks in shown.pictures[1].marks:
        if marks.shape == "circles":
            assert ((marks.places[:, 0] >= 0.25) & (marks.places[:, 1] <= 0.75)).all()
    assert len(case.halos.catalogue) > sum(len(marks) for marks in shown.pictures[0].marks)


@pytest.mark.parametrize("members", [2, 20, 10**9])
def test_facts_are_what_was_counted(members):
    case = samples.case("periodic 3-D")
    facts, outcome = facts_of(drawn("periodic 3-D", min_members=members)), case.breakage.outcome
    count = case.halos.groups.count(members)
    same, split, merged = outcome.counts(count)
    assert facts["halos"] == f"{count:,}"
    assert same + split + merged == count
    assert [facts[name] for name in ("broken", "split", "merged")] == [f"{n:,}" for n in (split + merged, split, merged)]
    assert facts["missing links"] == f"{len(outcome.missing):,}"
    assert facts["false links"] == f"{len(outcome.false):,}"
    assert facts["error bound"] == f"{case.state.bound:.6g} = 0.25 b"
    assert facts["linking length"].startswith(f"{case.halos.groups.linking_length:.4g} = ")
    assert facts["bits per particle"] == f"{case.breakage.archive.bits_per_particle:.3f}"
    assert facts["ratio"] == f"{96 / case.breakage.archive.bits_per_particle:.1f}"


def test_all_figures_belong_to_the_archive_that_is_shown():
    case = samples.case("periodic 3-D")
    plain, kept = facts_of(drawn("periodic 3-D")), facts_of(drawn("periodic 3-D", shows="kept"))
    assert not {"cost of keeping", "groups verified"} & set(plain)
    assert drawn("periodic 3-D").tables["certificate"].rows == ()
    assert {kept[name] for name in ("broken", "split", "merged", "missing links", "false links")} == {"0"}
    assert kept["bits per particle"] == f"{case.kept.archive.bits_per_particle:.3f}" != plain["bits per particle"]
    assert kept["ratio"] == f"{96 / case.kept.archive.bits_per_particle:.1f}"
    more = 100 * case.kept.overhead / case.breakage.bits_per_particle
    assert kept["cost of keeping"] == f"{case.kept.overhead:+.3f} bits ({more:+.2g} %)"
    assert kept["groups verified"] == "equal"
    assert {row[3] for row in drawn("periodic 3-D", shows="kept").tables["halos"].rows} == {"intact"}
    told = [drawn("periodic 3-D", shows=shows).settings["kept"] for shows in ("decoded", "kept")]
    assert told == ["no groups", "all groups, solver auto"]


@pytest.mark.parametrize("name", ["periodic 3-D", "no halos"])
def test_nothing_is_good_where_nothing_could_break(name):
    shown = drawn(name, min_members=10**6)
    assert drawn(name).charts.keys() == ({"mass function"} if name == "periodic 3-D" else set())
    verdicts = {fact.name: fact.verdict for fact in shown.facts}
    assert {verdicts[fact] for fact in ("broken", "split", "merged")} == {""}
    links = {verdicts["missing links"], verdicts["false links"]}
    assert links == ({"bad"} if name == "periodic 3-D" else {""})
    assert not shown.charts
    assert shown.tables["halos"].rows == ()


def test_a_smaller_halo_is_offered_where_none_is_large_enough():
    largest = samples.case("periodic 3-D").halos.catalogue.members[0]
    note = drawn("periodic 3-D", min_members=10**6).note
    assert f'the largest has {largest:,}: set "halo: at least" to {largest:,} or less' in note
    assert drawn("periodic 3-D", min_members=int(largest)).tables["halos"].total == 1
    assert "No two particles are friends" in drawn("no halos").note


def test_groups_that_are_not_the_same_are_shown_to_be_bad():
    case = samples.case("periodic 3-D")
    spoiled = dataclasses.replace(case.kept, verified=False)
    shown = draw(case.particles, case.changed(shows="kept"), case.halos, case.breakage, spoiled)
    (fact,) = (fact for fact in shown.facts if fact.name == "groups verified")
    assert (fact.value, fact.verdict) == ("different", "bad")


def test_what_was_asked_for_and_is_not_there_is_said():
    case = samples.case("periodic 3-D")
    shown = draw(case.particles, case.changed(shows="kept"), case.halos, case.breakage)
    assert shown.pictures[1].title == "decoded"
    assert "press preserve" in shown.note


def test_the_table_has_the_largest_halos_before_and_after(monkeypatch):
    case = samples.case("periodic 3-D")
    outcome, label = case.breakage.outcome, int(case.halos.catalogue.labels[3])
    member = int(case.halos.groups.members(label)[-1])
    table = drawn("periodic 3-D", min_members=2, chosen=Chosen.halo(member)).tables["halos"]
    assert table.chosen == 3
    assert (len(table.rows), table.total) == (min(200, case.halos.count(2)), case.halos.count(2))
    columns = dict(zip(table.columns, zip(*table.rows, strict=True), strict=True))
    labels = case.halos.groups.labels
    for place in range(len(table.rows)):
        here = case.halos.catalogue.labels[place]
        now = outcome.groups.labels[labels == here]
        expected = max(np.bincount(outcome.groups.labels)[group] for group in _most_common(now))
        assert int(columns["members after"][place]) <= expected
        assert columns["halo"][place] == str(place + 1)
        assert int(columns["missing links"][place]) == (labels[outcome.missing.pairs] == here).any(axis=1).sum()
        assert int(columns["false links"][place]) == (labels[outcome.false.pairs] == here).any(axis=1).sum()
    assert [*columns["status"]] == [("intact", "split", "merged")[kind] for kind in outcome.status[: len(table.rows)]]
    monkeypatch.setattr("workbench.lab.clusters_panel.drawing.LARGEST_HALOS", 2)
    few = drawn("periodic 3-D", min_members=2, chosen=Chosen.halo(member)).tables["halos"]
    assert (few.extent, few.chosen) == (f"2 of {case.halos.count(2):,}", None)


def _most_common(labels: np.ndarray) -> np.ndarray:
    found, counts = np.unique(labels, return_counts=True)
    return found[counts == counts.max()]


def test_the_certificate_is_a_table_of_short_names_and_sentences():
    case = samples.case("periodic 3-D")
    table = drawn("periodic 3-D", shows="kept").tables["certificate"]
    stated = dict(table.rows)
    assert len(table.columns) == 2
    assert stated["particles moved"].startswith(f"{case.kept.certificate['edited']:,} ")
    assert stated["fingerprint of the groups"] == case.kept.certificate["partition"][0]
    assert not [text for text in stated.values() if text.startswith(("so ", "not implied"))]


# The detail.

@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("name", CLUMPS)
def test_a_halo_is_shown_with_its_particles_their_bounds_and_their_links(name, axis):
    case = samples.case(name)
    place = np.flatnonzero(case.breakage.outcome.status == SPLIT)[0]
    label = int(case.halos.catalogue.labels[place])
    shown = drawn(name, chosen=Chosen.halo(label), axis=axis)
    detail = shown.detail
    assert detail is not None
    (original,), (decoded,) = (marks_of(detail, what) for what in ("original", "decoded"))
    others, boxes = (sum(map(len, marks_of(detail, what))) for what in ("other groups", "± ξ"))
    assert len(original) == len(decoded) == case.halos.catalogue.members[place]
    bound = case.state.bound
    assert boxes in (0, len(original) + others)
    for boxes in marks_of(detail, "± ξ"):
        np.testing.assert_allclose(boxes.places[:, 1] - boxes.places[:, 0], 2 * bound, rtol=1e-3)
        centres = (boxes.places[:, :1] + boxes.places[:, 1:2]) / 2, (boxes.places[:, 2:3] + boxes.places[:, 3:]) / 2
        apart = np.abs(np.hstack(centres)[None] - original.places[:, None]).max(axis=2).min(axis=1)
        assert (apart <= 1e-3 * bound).all()
    assert (np.abs(decoded.places - original.places) <= bound * (1 + 1e-4)).all()
    left, right, bottom, top = detail.window
    assert ((original.places >= [left, bottom]) & (original.places <= [right, top])).all()
    own = [marks for marks in (links_of(detail, "missing link"), links_of(detail, "false link")) if len(marks)]
    assert own
    links = case.breakage.outcome.missing
    row = np.flatnonzero((case.halos.groups.labels[links.pairs] == label).any(axis=1))[0]
    assert int(row) in links_of(detail, "missing link").ids
    false = case.breakage.outcome.false.pairs[links_of(detail, "false link").ids.astype(int)]
    assert (case.halos.groups.labels[false] == label).any(axis=1).all()   # those of other halos are not drawn
    assert [len(marks_of(picture, "", "boxes")) for picture in shown.pictures] == [1, 1, 1]


@pytest.mark.parametrize("name", CLUMPS)
def test_links_in_the_detail_are_all_friends_but_the_false_ones(name):
    case = samples.case(name)
    outcome, length = case.breakage.outcome, case.halos.groups.linking_length
    pair = outcome.false.pairs[0]
    detail = drawn(name, chosen=Chosen.link(*pair)).detail
    assert detail is not None
    (whole, of_pair), false = marks_of(detail, "links"), links_of(detail, "false link")
    assert 0 in false.ids
    (ring,) = marks_of(detail, "", "circles")
    assert len(ring) == 2
    assert {tuple(place) for place in ring.places[:, :2].tolist()} <= {
        tuple(place) for place in marks_of(detail, "decoded")[0].places.tolist()
    }
    ends = of_pair.places.reshape(-1, 2, 2)
    at_pair = (ends[:, :, None] == ring.places[None, None, :, :2]).all(axis=-1)
    assert at_pair.any(axis=(1, 2)).all()
    reach = detail.window[1]
    middle = np.array(sight_of(case.particles, case.halos, Chosen.link(*pair)).middle)
    apart = case.particles.positions - middle
    near = outcome.decoded.positions.astype(float)
    if case.particles.box is not None:
        apart -= np.rint(apart)
    places = near[(np.abs(apart) <= reach * (1 - 1e-5)).all(axis=1)]
    difference = places[:, None] - places
    if case.particles.box is not None:
        difference -= np.rint(difference)
    friends = (np.triu((difference**2).sum(axis=-1) <= length**2, 1)).sum()
    assert abs(len(whole) + len(of_pair) + len(false) - friends) <= 2   # particles on the edge of the picture


def test_a_halo_across_a_face_is_shown_whole():
    random = np.random.default_rng(0)
    particles = wb.Particles.wrapped(np.concatenate([0.02 * random.normal(size=(200, 3)), random.random((200, 3))]), 1.0)
    case = samples.Case.of(particles, linking_length=0.02, unit="length", bound=0.004)
    label = int(case.halos.catalogue.labels[0])
    assert np.ptp(particles.positions[case.halos.groups.members(label), 0]) > 0.9
    detail = draw(particles, case.changed(chosen=Chosen.halo(label)), case.halos, case.breakage).detail
    assert detail is not None
    assert detail.window[1] < 0.3
    assert len(marks_of(detail, "original")[0]) >= case.halos.catalogue.members[0]


def test_of_too_many_particles_the_density_is_shown_with_the_broken_links():
    random = np.random.default_rng(0)
    ball = random.normal(size=(4 * MOST_POINTS, 3)) * 0.05 + 0.5
    case = samples.Case.of(wb.Particles(ball.astype(np.float32), 1.0), linking_length=0.013, unit="length", bound=0.003)
    state = case.changed(chosen=Chosen.halo(int(case.halos.catalogue.labels[0])))
    shown = draw(case.particles, state, case.halos, case.breakage)
    detail = shown.detail
    assert detail is not None
    assert not marks_of(detail, "original")
    assert "shows the density" in shown.note
    left, right, bottom, top = detail.window
    area = (right - left) * (top - bottom) / detail.pixels.size
    assert detail.high * area == pytest.approx(round(detail.high * area))   # whole particles in a pixel
    assert detail.unit == "particles per unit area"
    (points,) = marks_of(detail, "ends of broken links")
    ends = {tuple(place) for place in points.places.tolist()}
    lines = np.concatenate([links_of(detail, kind).places for kind in ("missing link", "false link")])
    assert len(lines) > 10
    assert {tuple(end) for end in lines.reshape(-1, 2).tolist()} == ends


def test_a_picture_of_single_particles_has_no_scale_of_colours():
    pair = samples.case("periodic 3-D").breakage.outcome.missing.pairs[0]
    detail = drawn("periodic 3-D", chosen=Chosen.link(*pair)).detail
    assert detail is not None
    assert detail.low == detail.high


@pytest.mark.parametrize("name", CLUMPS)
def test_bars_have_the_lengths_that_they_stand_for(name):
    case = samples.case(name)
    detail = drawn(name, chosen=Chosen.link(0, 1)).detail
    assert detail is not None
    for label, length in (("b", case.halos.groups.linking_length), ("ξ", case.state.bound)):
        (bar,) = marks_of(detail, f"{label} = {length:.3g}")
        left, low, right, high = bar.places[0].tolist()
        assert (right - left, high - low) == (pytest.approx(length, rel=1e-4), 0)


@pytest.mark.parametrize("name", CLUMPS)
def test_a_link_is_named_and_measured(name):
    case = samples.case(name)
    outcome, length = case.breakage.outcome, case.halos.groups.linking_length
    for kind, links in (("missing link", outcome.missing), ("false link", outcome.false)):
        shown = drawn(name, chosen=Chosen.link(*links.pairs[2]))
        assert shown.detail is not None
        halos = [case.halos.place(int(label)) for label in case.halos.groups.labels[links.pairs[2]]]
        assert shown.detail.title.startswith(f"{kind} 3 of {len(links):,} ")
        places = sorted(place for place in set(halos) if place is not None)
        assert len(places) == 1 or kind == "false link"
        for place in places:
            members = case.halos.catalogue.members[place]
            assert (f"halo {place + 1:,}" if members >= 20 else f"a group of {members:,}") in shown.detail.title
        facts = {fact.name: fact.value for fact in shown.facts if fact.group == "close-up"}
        for fact, particles in (("distance before", case.particles), ("distance after", outcome.decoded)):
            apart = np.diff(particles.positions[links.pairs[2]].astype(float), axis=0)[0]
            if particles.box is not None:
                apart -= np.rint(apart)
            distance, share = facts[fact].removesuffix(" b").split(" = ")
            assert float(distance) == pytest.approx(np.linalg.norm(apart), rel=1e-3)
            assert float(share) == pytest.approx(np.linalg.norm(apart) / length, rel=1e-3)
            assert (float(share) > 1) == ((kind == "missing link") == (fact == "distance after"))
        moved = facts["one particle moved"], facts["the other moved"]
        largest = [float(text.split(" up to ")[1].removesuffix(" ξ")) for text in moved]
        assert 0 < max(largest) <= 1


def test_a_halo_is_named_and_counted():
    case = samples.case("periodic 3-D")
    place = int(np.flatnonzero(case.breakage.outcome.status == SPLIT)[0])
    shown = drawn("periodic 3-D", chosen=Chosen.halo(int(case.halos.catalogue.labels[place])))
    members = case.halos.catalogue.members[place]
    assert shown.detail is not None
    assert shown.detail.title == f"halo {place + 1}: {members:,} members, split"
    facts = {fact.name: fact.value for fact in shown.facts if fact.group == "close-up"}
    assert facts["members"] == f"{members:,}"
    assert int(facts["its missing links"]) > 0
    (marks,) = marks_of(shown.pictures[1], "split")
    titles = dict(zip(marks.ids.tolist(), marks.titles, strict=True))
    assert titles[int(case.halos.catalogue.labels[place])] == shown.detail.title


@pytest.mark.parametrize("name", samples.SETS)
def test_a_particle_without_friends_and_one_without_anybody_can_be_looked_at(name):
    case = samples.case(name)
    last = len(case.particles) - 1
    for chosen in (Chosen.halo(last), Chosen.link(0, last)):
        shown = drawn(name, chosen=chosen)
        assert shown.detail is not None
        assert shown.detail.title
        assert draw(case.particles, case.changed(chosen=chosen), case.halos).detail is not None




def test_the_detail_covers_the_same_whatever_the_bound():
    case = samples.case("open 3-D")
    chosen = Chosen.halo(int(case.halos.catalogue.labels[2]))
    windows = set()
    for bound in (0.5, 1.0, 2.0):
        state = case.changed(chosen=chosen, bound=bound * case.state.bound)
        detail = draw(case.particles, state, case.halos, case.breakage).detail
        assert detail is not None
        windows.add(detail.window)
    assert len(windows) == 1


def test_tiny_distances_far_from_the_origin_are_not_lost():
    random = np.random.default_rng(0)
    particles = wb.Particles(1e6 + 1e-3 * random.random((300, 3)))
    case = samples.Case.of(particles)
    detail = draw(particles, case.changed(chosen=Chosen.halo(0)), case.halos, case.breakage).detail
    assert detail is not None
    (original,) = marks_of(detail, "original")
    assert len(np.unique(original.places, axis=0)) == len(original)


# The charts.

def follow(*charts: Any) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """The ends of the axes when one view shows these charts one after the other, as panels do."""
    view = ChartPart(charts[0])
    ends = []
    for chart in charts:
        view.show(chart)
        plot = view.plot.state
        ends.append(((plot.x_range.start, plot.x_range.end), (plot.y_range.start, plot.y_range.end)))
    view.close()
    return ends


def test_the_mass_function_has_three_curves_whatever_there_is():
    sizes = np.array([900, 90, 30, 20, 20])
    stages = [[sizes[:0]] * 3, [sizes, None, None], [sizes, sizes[1:], None], [sizes, sizes, sizes]]
    charts = [mass_function_chart(20, stage) for stage in stages]
    for chart in charts:
        assert [part.name for part in chart.parts] == ["original", "decoded", "kept"]
    for chart, ((left, right), (bottom, top)) in list(zip(charts, follow(*charts), strict=True))[1:]:
        members, halos = chart.parts[0].x, chart.parts[0].y
        assert left < members[0] < members[-1] < right
        assert bottom < 1 < 3 == np.nanmax(halos) < top
        assert np.isnan(halos[1])   # none has no place on a logarithmic axis


def test_a_trace_is_drawn_while_it_grows():
    steps = [Step(number, 20 - 5 * number, 3.0 / (number + 1), "descent" if number else "moves") for number in range(4)]
    charts = [descent_chart(tuple(steps[:count])) for count in range(1, 5)]
    assert [len(chart.of(Series)[0].x) for chart in charts] == [1, 2, 3, 4]
    assert [told.split()[-1] for told in charts[3].of(Series)[0].tooltips] == ["10", "8", "5", "3"]
    for count, ((left, right), (bottom, top)) in enumerate(follow(*charts), start=1):
        assert left < 1 <= count < right <= max(count, 2) + 1
        assert bottom < 0 < 2 <= top


def test_the_descent_ends_at_zero_where_nothing_is_left():
    chart = descent_chart((Step(0, 2000, 5000.0, "moves"), Step(1, 40, 0.5), Step(2, 0, 0.0)))
    violations, loss = chart.of(Series)
    assert violations.y.tolist() == [4.0, 1 + np.log10(20), 0.0]
    assert loss.y[1:].tolist() == [0.5, 0.0]
    assert [(span.low, span.high) for span in chart.of(Span)] == [(0.5, 1.5)]
    assert chart.y.ticks[0] == (0.0, "0")
    assert chart.words.endswith("After 3 steps: 0 violations, loss 0 ξ².")


def test_it_is_said_where_the_result_of_descent_was_rounded():
    first, last = Step(0, 2000, 50.0, "moves"), Step(1, 0, 0.0, "moves")
    steps = (first, Step(1, 40, 5.0), Step(2, 0, 0.0), Step(0, 1400, 9.0, "moves"), last)
    (rule,) = descent_chart(steps).of(Rule)
    assert (rule.axis, rule.place, rule.name) == ("x", 3.5, "coordinates rounded, then repaired")
    assert descent_chart(steps[:3]).of(Rule) == []


def test_a_window_beyond_the_particles_can_be_drawn():
    shown = drawn("periodic 2-D", window=(5.0, 6.0, 5.0, 6.0))
    assert not shown.pictures[0].pixels.any()


@pytest.mark.parametrize("name", CLUMPS)
def test_the_close_up_names_its_axes_and_their_unit(name: str) -> None:
    case = samples.case(name)
    known = wb.Particles(case.particles.positions, case.particles.box, metadata={"units": "Mpc"})
    state = case.changed(chosen=Chosen.halo(int(case.halos.catalogue.labels[0])), axis=1)
    axes = draw(known, state, case.halos, case.breakage).detail.axes   # type: ignore[union-attr]
    assert (axes.across, axes.up, axes.unit) == ("Δx", "Δy" if known.dimensions == 2 else "Δz", "Mpc")
