"""The cloud without a browser: what is sent is a fair sample, in places that are exact enough, in the right colours."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.lab.cloud_view import JOINED, LEFT, Cloud, CloudState, Frame, fates_of, part, scene_of, still
from workbench.lab.cloud_view.fates import HALO_BITS, MOST_HALOS, STATUS, Fates
from workbench.lab.cloud_view.scene import Scene
from workbench.lab.cloud_view.state import HUES, STATUS_HUES, rgb
from workbench.lab.cloud_view.still import palette
from workbench.lab.colours import coloured

LENGTH = 0.05


def clumps(count: int = 4000, box: float | None = 1.0, seed: int = 0) -> wb.Particles:
    random = np.random.default_rng(seed)
    centres = random.random((40, 3))
    around = centres[random.integers(0, 40, count)] + 0.01 * random.normal(size=(count, 3))
    return wb.Particles.wrapped(around, box) if box else wb.Particles(around + 7)


def shaken(particles: wb.Particles, size: float = 0.01) -> wb.Particles:
    moved = particles.positions + size * np.random.default_rng(1).uniform(-1, 1, particles.positions.shape)
    return wb.Particles.wrapped(moved, particles.box) if particles.box else wb.Particles(moved)


def compared(box: float | None = 1.0, length: float = 0.01) -> tuple[wb.Particles, wb.Particles, Fates]:
    particles = clumps(box=box)
    other = shaken(particles)
    before, after = (wb.friends_of_friends(each, length, "length") for each in (particles, other))
    return particles, other, fates_of(particles, before, after)


def scene(count: int = 4000) -> Scene:
    particles = clumps(count)
    return scene_of(particles, fates_of(particles, wb.friends_of_friends(particles, LENGTH, "length")))


def shown_places(scene: Scene, side: int = 0) -> np.ndarray:
    """Where the points are drawn."""
    return np.array(scene.frame.lower) + scene.points[side][:, :3] / 65535 * np.array(scene.frame.lengths)


def apart(one: np.ndarray, other: np.ndarray, box: tuple[float, ...] | None) -> np.ndarray:
    difference = one - other
    return np.abs(difference if box is None else difference - np.round(difference / box) * box)


# Places.

@pytest.mark.parametrize("box", [1.0, None])
def test_points_are_drawn_within_half_a_step(box: float | None) -> None:
    particles, other, fates = compared(box)
    shown = scene_of(particles, fates, other)
    order = np.random.default_rng(0).permutation(len(particles))   # as scene_of shuffles them
    for side, each in enumerate((particles, other)):
        assert np.abs(shown_places(shown, side) - each.positions[order]).max() <= 1.0001 * shown.frame.exact
    assert shown.frame.exact == max(shown.frame.lengths) / 65535 / 2


def test_one_halo_is_drawn_to_far_below_its_bound() -> None:
    particles, other, fates = compared()
    shown = scene_of(particles, fates, other, halo=3)
    assert shown.frame.exact < 0.01 / 100   # the particles were moved by up to 0.01
    tags = [side[:, 3] & HALO_BITS for side in shown.points]
    assert (tags[0] == 3).sum() == fates.halos.members[2]   # all members are there
    assert len(shown) < len(particles)


def test_one_halo_across_the_edge_of_the_box_is_whole() -> None:
    random = np.random.default_rng(0)
    particles = wb.Particles.wrapped(0.02 * random.normal(size=(500, 3)), 1.0)   # around the corner
    fates = fates_of(particles, wb.friends_of_friends(particles, 0.2, "length"))
    shown = scene_of(particles, fates, halo=1)
    assert len(shown) == 500
    assert max(shown.frame.lengths) < 0.4
    centre = np.array(shown.frame.lower) + shown.centres[0]
    assert apart(shown_places(shown), fates.halos.centres[0], (1.0,) * 3).max() < 0.2
    assert np.abs(shown_places(shown) - centre).max() < 0.2   # of the image in the frame


def test_every_prefix_is_a_fair_sample() -> None:
    shown = scene(20_000)
    octants = ((shown.points[0][:, :3] >= 32768) @ [1, 2, 4])
    share = np.bincount(octants, minlength=8) / len(shown)
    for count in (1000, 4000):
        sample = np.bincount(octants[:count], minlength=8) / count
        assert np.abs(sample - share).max() < 4 * np.sqrt(0.25 / count)


def test_too_many_particles_are_sampled_and_counted() -> None:
    particles = clumps()
    fates = fates_of(particles, wb.friends_of_friends(particles, LENGTH, "length"))
    shown = scene_of(particles, fates, most=1000)
    assert (len(shown), shown.total) == (1000, 4000)


@pytest.mark.parametrize("positions", [[[1.0, 2.0, 3.0]], [[1.0, 2.0, 3.0], [1.0, 2.0, 9.0]]])
def test_few_particles_in_open_space_have_a_frame(positions: Any) -> None:
    particles = wb.Particles(positions)
    shown = scene_of(particles, fates_of(particles, wb.friends_of_friends(particles, 0.1, "length")))
    assert min(shown.frame.lengths) > 0
    assert np.allclose(np.sort(shown_places(shown)[:, 2]), np.sort(particles.positions[:, 2]), atol=1e-3)


def test_a_frame_keeps_what_lies_outside_on_its_faces() -> None:
    assert Frame((0.0,) * 3, (1.0,) * 3).steps(np.array([[-1.0, 0.5, 2.0]])).tolist() == [[0, 32768, 65535]]


# Halos.

def test_a_halo_is_continued_by_the_group_with_most_of_its_members() -> None:
    particles = wb.Particles(np.arange(30.0).reshape(10, 3))
    before = wb.clusters.Groups.from_labels([0] * 4 + [1] * 3 + [2] * 2 + [3], 1.0)
    after = wb.clusters.Groups.from_labels([0, 0, 0, 5] + [0] * 3 + [2] * 2 + [2], 1.0)
    fates = fates_of(particles, before, after, min_members=2)
    assert fates.before.tolist() == [1, 1, 1, 1, 2, 2, 2, 3, 3, 0]
    assert fates.after is not None
    assert fates.change is not None
    assert fates.status is not None
    assert fates.sizes is not None
    assert fates.after.tolist() == [1, 1, 1, 1, 1, 1, 1, 3, 3, 3]   # halo 1 has lost one member and has taken in halo 2
    assert fates.change.tolist() == [0, 0, 0, LEFT, *[JOINED] * 3, 0, 0, JOINED]
    assert [STATUS[each] for each in fates.status] == ["split", "merged", "merged"]
    assert fates.sizes.tolist() == [6, 0, 3]


def test_equal_groups_change_nothing() -> None:
    particles = clumps()
    groups = wb.friends_of_friends(particles, LENGTH, "length")
    fates = fates_of(particles, groups, groups)
    assert fates.change is not None
    assert fates.status is not None
    assert not fates.change.any()
    assert not fates.status.any()
    assert np.array_equal(fates.before, fates.after)   # type: ignore[arg-type]


def test_tags_hold_the_number_and_the_change() -> None:
    _, _, fates = compared()
    assert fates.change is not None
    for tags, numbers in zip(fates.tags, (fates.before, fates.after), strict=True):
        assert np.array_equal(tags & HALO_BITS, numbers)   # type: ignore[arg-type]
        assert np.array_equal(tags >> 14, fates.change)
    assert {LEFT, JOINED} <= set(fates.change.tolist())


def test_more_halos_than_tags_have_room_for_are_left_out() -> None:
    count = MOST_HALOS + 10
    particles = wb.Particles(np.random.default_rng(0).random((2 * count, 3)))
    fates = fates_of(particles, wb.clusters.Groups.from_labels(np.arange(2 * count) // 2, 0.1), min_members=2)
    assert len(fates.halos) == fates.before.max() == MOST_HALOS


# Colours.

def test_the_halo_that_is_shown_alone_has_the_first_hue() -> None:
    particles = clumps()
    fates = fates_of(particles, wb.friends_of_friends(particles, LENGTH, "length"))
    alone = scene_of(particles, fates, halo=9)
    assert alone.ranks[8] == 0
    seen = np.flatnonzero(alone.ranks < MOST_HALOS)
    assert len(seen) < len(fates.halos)
    assert sorted(alone.ranks[seen]) == list(range(len(seen)))
    assert tuple(palette(alone, CloudState(coloured=1))[9, :3]) == rgb(HUES[0])
    assert list(scene().ranks) == list(range(len(scene().ranks)))   # all of them: by size


def test_the_still_picture_has_the_colours_of_its_halos() -> None:
    particles, other, fates = compared(length=0.016)
    shown = scene_of(particles, fates, other)
    background = np.array([8, 8, 24])
    for colouring in ("halo", "status", "density"):
        picture = coloured(still(shown, 1, CloudState(colouring), (120, 160)))   # type: ignore[arg-type]
        assert picture.shape == (120, 160, 3)
        assert (np.abs(picture.astype(int) - background).max(axis=-1) > 60).mean() > 0.01
    hues = {tuple(row[:3]) for row in palette(shown, CloudState("status"))[1:]}
    assert hues <= {rgb(hue) for hue in STATUS_HUES.values()}
    assert len(hues) > 1


def test_the_still_picture_is_what_the_camera_sees() -> None:
    shown = scene()
    ahead = still(shown, 0)
    assert not np.array_equal(ahead.pixels, still(shown, 0, CloudState(camera=(2.0, 0.0, 2.7, 0, 0, 0))).pixels)
    behind = still(shown, 0, CloudState("density", camera=(0.6, 0.35, 0.1, 9, 9, 9)))
    assert not behind.pixels.any()   # all of it is far from what the camera looks at


# The part.

def sent_by(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict[str, Any], list[bytes]]]:
    sent: list[tuple[dict[str, Any], list[bytes]]] = []
    monkeypatch.setattr(cloud.part, "tell", lambda content, buffers=(): sent.append((content, list(buffers))))
    return sent


def test_points_are_sent_in_pieces_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "FIRST_PIECE", 1000)
    monkeypatch.setattr(part, "LARGEST_PIECE", 2000)
    particles, other, fates = compared()
    shown = scene_of(particles, fates, other)
    cloud = Cloud(shown)
    sent = sent_by(cloud, monkeypatch)
    pieces: list[list[bytes]] = [[], []]
    while (start := sum(content["count"] for content, _ in sent)) < len(shown):
        cloud.part.heard({"does": "points", "scene": cloud.part.content["scene"]["id"], "from": start})
        for side, piece in enumerate(sent[-1][1]):
            pieces[side].append(piece)
    assert [content["count"] for content, _ in sent] == [1000, 1000, 2000]
    for side in (0, 1):
        assert b"".join(pieces[side]) == shown.points[side].tobytes()
    cloud.close()


def test_a_page_with_an_older_scene_is_sent_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    cloud = Cloud(scene(100))
    old = cloud.part.content["scene"]["id"]
    cloud.part.show(scene(200))
    sent = sent_by(cloud, monkeypatch)
    cloud.part.heard({"does": "points", "scene": old, "from": 0})
    assert not sent
    cloud.part.heard({"does": "still", "scene": cloud.part.content["scene"]["id"]})
    assert sent[0][0]["html"].count("<img") == 1
    cloud.close()


def test_the_same_scene_again_is_not_sent_again() -> None:
    shown = scene(100)
    cloud = Cloud(shown)
    cloud.part.show(shown)
    assert cloud.number == 0
    cloud.close()


def test_choices_of_the_reader_and_of_code_are_one_state() -> None:
    cloud = Cloud(scene(100), CloudState(coloured=3))
    cloud.settings = {"cloud": {"colouring": "density", "camera": [1, 0, 2, 0, 0, 0]}}   # as the browser does
    cloud.change(opacity=2)
    assert cloud.state == CloudState("density", 3, opacity=2, camera=(1, 0, 2, 0, 0, 0))
    for choices in ({"colouring": "age"}, {"camera": (0, 0)}, {"size": 2}, {"box": 1}):
        with pytest.raises(wb.WorkbenchError, match=r"must be|has no choice"):
            cloud.change(**choices)
    cloud.close()


def test_what_was_clicked_is_told_every_time() -> None:
    shown = scene()
    cloud = Cloud(shown)
    changes: list[Any] = []
    cloud.observe(changes.append, "picked")
    for _ in range(2):
        cloud.part.heard({"does": "pick", "scene": cloud.part.content["scene"]["id"], "number": 2, "side": 0})
    assert [change["new"]["label"] for change in changes] == 2 * [int(shown.fates.halos.labels[1])]
    cloud.close()


@pytest.mark.parametrize("static", ["1", ""])
def test_pages_without_a_kernel_show_a_still_picture(static: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOSSBENCH_STATIC", static)
    cloud = Cloud(scene())
    bundle = cloud._repr_mimebundle_()
    assert bundle["text/html"].count("<img") == 1
    assert len(bundle["text/html"]) < 300_000
    assert ("application/vnd.jupyter.widget-view+json" in bundle) == (not static)
    cloud.close()


# In the clusters panel.

def test_the_clusters_panel_shows_the_cloud_of_its_results() -> None:
    panel = wb.lab.clusters(clumps())
    panel.wait()
    panel.widget   # noqa: B018
    cloud = panel.cloud
    assert cloud is not None
    assert (cloud.content["hidden"], panel._view.canvas.content["hidden"], cloud.scene) == (True, False, None)
    cloud.toggle.heard({})
    assert (cloud.content["hidden"], panel._view.canvas.content["hidden"]) == (False, True)   # in its place
    shown = cloud.content["scene"]
    assert (shown["titles"], shown["halo"]) == (["original", "decoded"], 0)
    cloud.heard({"does": "pick", "scene": shown["id"], "number": 2, "side": 0})
    panel.wait()
    assert cloud.content["scene"]["halo"] == 2   # what was picked is looked at closely, by the cloud too
    panel.preserve()
    panel.wait()
    assert cloud.scene.titles == ("original", "halos kept")
    scene = cloud.scene
    panel.change(axis=0)
    panel.wait()
    assert cloud.scene is scene   # which is independent of the line of sight
    cloud.toggle.heard({})
    assert (cloud.content["hidden"], panel._view.canvas.content["hidden"], cloud.scene) == (True, False, None)
    cloud.toggle.heard({})
    panel.close()
    assert cloud.scene is None


def test_the_clusters_panel_has_no_cloud_in_2d() -> None:
    panel = wb.lab.clusters(wb.Particles(clumps().positions[:, :2], box=1.0))
    panel.widget   # noqa: B018
    assert panel.cloud is not None
    assert panel.cloud.toggle not in [part for row in panel.rows() for part in row.parts]
    panel.close()


# Opening one.

def test_an_archive_is_compared_in_the_order_of_the_original() -> None:
    places = clumps()
    particles = wb.Particles(places.positions, places.box, velocities=np.ones_like(places.positions))
    archive = wb.compress(particles, wb.Absolute(1e-4), codec="lattice", order="free")
    shown = wb.lab.cloud(particles, archive, linking_length=LENGTH, unit="length")
    before, after = (shown_places(shown.scene, side) for side in (0, 1))
    assert apart(before, after, particles.box).max() < 2e-4
    shown.close()


def test_reordered_particles_are_put_back() -> None:
    particles = clumps(500)
    order = np.random.default_rng(3).permutation(500)
    shown = wb.lab.cloud(particles, particles.select(order), order=order)
    assert np.array_equal(shown.scene.points[0], shown.scene.points[1])
    shown.close()


def test_a_halo_is_named_by_its_label() -> None:
    particles = clumps()
    groups = wb.friends_of_friends(particles, LENGTH, "length")
    shown = wb.lab.cloud(particles, groups=groups, label=int(groups.largest(2)[1]))
    assert shown.scene.halo == 2
    shown.close()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: wb.lab.cloud(wb.Field(np.zeros((4, 4)))), "a cloud needs particles; got Field"),
        (lambda p: wb.lab.cloud(wb.Particles(p.positions[:, :2])), "needs particles in 3-D; got Particles.*lab.clusters"),
        (lambda p: wb.lab.cloud(p, p.select(np.arange(10))), "other must be the same 500 particles; got 10"),
        (lambda p: wb.lab.cloud(p, colouring="status"), "colouring by status needs decoded particles; got other=None"),
        (lambda p: wb.lab.cloud(p, halo=10_000), "halo must be a number from 1, the largest, to .*; got 10000"),
        (lambda p: wb.lab.cloud(p, halo=1, label=0), "got both, 1 and 0"),
        (lambda p: wb.lab.cloud(p, label=-5), "label must be that of a halo; got -5"),
        (lambda p: wb.lab.cloud(p, point_size=0), "point_size must be a positive number, at most 100; got 0"),
        (
            lambda p: wb.lab.cloud(p, groups=SimpleNamespace(labels=np.zeros(3, int), linking_length=1.0)),   # type: ignore
            "groups must be of 500 particles; got labels of 3",
        ),
    ],
)
def test_what_cannot_be_shown_is_refused(make: Any, message: str) -> None:
    with pytest.raises(wb.WorkbenchError, match=message):
        make(clumps(500))
