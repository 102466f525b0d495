"""What lies under the pointer: held against the arrays themselves, in every panel."""

import dataclasses

import numpy as np
import pytest

import workbench as wb
from lab.bounds_panel.samples import quiet
from lab.clusters_panel import samples as clumps
from lab.limits_panel.samples import of_all
from lab.limits_panel.samples import sample as limits_sample
from workbench.data.periodic import nearest_image
from workbench.lab.bounds_panel import BoundsState, try_bound
from workbench.lab.bounds_panel.reading import reading as bounds_reading
from workbench.lab.clusters_panel.detail import particle_under, sight_of
from workbench.lab.clusters_panel.panes import HALO_MARKS, panes
from workbench.lab.clusters_panel.panes import reading as clusters_reading
from workbench.lab.clusters_panel.state import Chosen
from workbench.lab.limits_panel import LimitsState, draw
from workbench.lab.limits_panel.pictures import reading as limits_reading
from workbench.lab.projection import Projection, shown_axes

RANDOM = np.random.default_rng(3)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("kind", ["absolute", "pointwise"])
def test_original_decoded_and_error_are_those_of_one_cell(axis, kind):
    values = RANDOM.normal(size=(6, 7, 8)).astype("f4")
    field = wb.Field(values, spacing=(0.5, 1.0, 2.0), mask=values > 1.5)
    state = BoundsState("prequantised", kind, 0.01, axis=axis, index=2, pixels=4)   # a pixel is a mean of several cells
    trial = try_bound(field, state, quiet)
    down, across = [step for own, step in enumerate(field.spacing) if own != axis]
    for row, column in ((0, 0), (3, 5), (5, 6)):
        cell = [row, column]
        cell.insert(axis, 2)
        found = bounds_reading(field, state, trial, ((column + 0.4) * across, (row + 0.6) * down))
        assert found.place == f"cell {cell}"
        if field.mask[tuple(cell)]:
            assert set(found.values) == {"no value"}
            continue
        original, decoded, error = found.values
        assert np.float32(original) == values[tuple(cell)]
        assert np.float32(decoded) == trial.decoded.values[tuple(cell)]
        exact = float(trial.decoded.values[tuple(cell)]) - float(values[tuple(cell)])
        allowed = 0.01 * abs(float(values[tuple(cell)])) if kind == "pointwise" else 0.01
        shown, share = (float(text.removesuffix(" bounds")) for text in error.split(" = "))
        assert shown == pytest.approx(exact, rel=1e-5)
        assert share == pytest.approx(exact / allowed, rel=1e-3)
    assert bounds_reading(field, state, trial, (-0.1, 1.0)) is None
    assert len(bounds_reading(field, state, None, (0.1, 0.1)).values) == 1


def test_the_cell_of_a_field_of_four_axes_has_its_time():
    field = wb.Field(RANDOM.normal(size=(3, 4, 5, 6)))
    state = BoundsState("prequantised", eb=0.1, axis=1, index=2, time=1)
    found = bounds_reading(field, state, None, (3.5, 0.5))
    assert found.place == "cell [1, 0, 2, 3]"
    assert float(found.values[0]) == field.values[1, 0, 2, 3]


@pytest.mark.parametrize("window", [None, (0.2, 0.45, 0.1, 0.35)])
def test_particles_are_counted_in_the_pixel_that_is_shown(window):
    particles = wb.Particles(RANDOM.random((4000, 3)).astype("f4"), box=1.0)
    seen = Projection.of(particles, 1)
    left, right, bottom, top = window or seen.frame
    shape = (50, 50)
    counts = seen.within((left, right, bottom, top)).counts(shape)[::-1]
    for row, column in ((0, 0), (7, 31), (49, 49)):
        x, y = left + (column + 0.5) * (right - left) / 50, bottom + (row + 0.5) * (top - bottom) / 50
        assert seen.count_at((left, right, bottom, top), shape, x, y) == counts[row, column]
    assert seen.count_at((left, right, bottom, top), shape, left - 1, bottom) is None


def test_a_difference_of_particles_is_that_of_their_numbers():
    particles = wb.Particles(RANDOM.random((4000, 3)), box=1.0)
    state = BoundsState("lattice", eb=0.05, axis=2)
    trial = try_bound(particles, state, quiet)
    original, decoded, difference = bounds_reading(particles, state, trial, (0.5, 0.5)).values
    here = [int(text.split(" here")[0]) for text in (original, decoded, difference)]
    assert here[1] - here[0] == here[2]
    assert "per unit area" in original
    assert bounds_reading(particles, state, trial, (2.0, 0.5)).values == ("", "")


def test_value_region_and_information_are_those_of_one_cell():
    field, found = limits_sample("two"), of_all("two")
    state = LimitsState.for_(field)
    news = draw(field, state, found).pictures[2]
    row, column = field.shape[0] // 3, field.shape[1] // 4
    value, region, bits = limits_reading(field, state, found["model"], found["news"], (column + 0.5, row + 0.5)).values
    assert float(value) == field.values[row, column]
    assert region == f"region {found['model'].limits.source.regions.labels[row, column] + 1}"
    level = news.pixels[::-1][row, column]
    shown = news.low + (int(level) - 1) / 254 * (news.high - news.low)
    if 1 < level < 255:
        assert float(bits.split()[0]) == pytest.approx(shown, abs=(news.high - news.low) / 200)
    assert limits_reading(field, state, None, None, (0.5, 0.5)).values[1:] == ()


@pytest.mark.parametrize("name", ["periodic 3-D", "open 2-D"])
def test_halos_have_their_number_size_and_status_for_a_name(name):
    case = clumps.case(name)
    state = case.changed(min_members=5)
    outcome = case.breakage.outcome
    pictures, _ = panes(case.particles, state, case.halos, {"decoded": outcome}, outcome)
    circles = [marks for marks in pictures[1].marks if marks.shape == "circles"]
    assert len({(marks.dash, marks.opacity) for marks in circles}) == len(HALO_MARKS)   # distinct without their colours
    names = dict(zip(np.concatenate([marks.ids for marks in circles]).tolist(),
                     [title for marks in circles for title in marks.titles], strict=True))
    found = case.halos.catalogue
    assert names[found.labels[0]].startswith(f"halo 1: {found.members[0]:,} members, ")
    links = [marks for marks in pictures[1].marks if "link" in marks.label]
    for shape in ("lines", "points"):
        assert len({bool(marks.dash) for marks in links if marks.shape == shape}) == 2
    axes = list(shown_axes(case.particles, case.state.axis))
    place = tuple(case.particles.positions[0][axes].astype(float))
    original, decoded = clusters_reading(case.particles, case.state, [outcome], place).values
    assert int(original.split()[0]) >= 1
    assert decoded.endswith("per unit area")
    before, _ = panes(case.particles, case.state, case.halos, {}, None)
    assert {title.count(",") for marks in before[0].marks for title in marks.titles} <= {0, 1}


def test_densities_depend_neither_on_the_size_of_pixels_nor_on_the_window():
    particles = wb.synthetic.cosmic_web(n=16)
    case = clumps.Case.of(particles)
    scales = set()
    for fields in ({}, {"pixels": 64}, {"window": (2.0, 6.0, 2.0, 6.0)}):
        (picture,), _ = panes(particles, dataclasses.replace(case.state, **fields), case.halos, {}, None)
        scales.add((picture.low, picture.high, picture.unit))
    assert scales == {(picture.low, picture.high, "particles per (Mpc/h)²")}


@pytest.mark.parametrize("name", ["periodic 3-D", "open 2-D"])
def test_a_particle_of_the_close_up_has_its_number_its_two_places_and_its_error(name):
    case = clumps.case(name)
    outcome, box = case.breakage.outcome, case.particles.box
    pair = tuple(map(int, (outcome.missing if len(outcome.missing) else outcome.false).pairs[0]))
    state = case.changed(chosen=Chosen("link", pair))
    middle = np.array(sight_of(case.particles, case.halos, state.chosen).middle)
    axes = list(shown_axes(case.particles, state.axis))
    for number in pair:
        place = nearest_image(outcome.decoded.positions[number] - middle, box)[axes]
        found = particle_under(case.particles, state, case.halos, outcome, tuple(place))
        shown = int(found.lines[0].split()[1].replace(",", ""))
        others = outcome.decoded.positions[[shown, number]].astype(float) - middle
        one, other = (float(np.hypot(*(nearest_image(each, box)[axes] - place))) for each in others)
        assert one <= other + 1e-12   # itself, or one that covers it
        assert found.lines[2] == "decoded  " + ", ".join(map(str, outcome.decoded.positions[shown]))
        moved = (outcome.decoded.positions[shown] - case.particles.positions[shown]).astype(float)
        error = np.abs(nearest_image(moved, box))
        told, share = (float(text.removesuffix(" bounds")) for text in found.lines[3].removeprefix("error  ").split(" = "))
        assert told == pytest.approx(error.max(), rel=1e-2, abs=1e-6)
        assert share == pytest.approx(told / state.bound, rel=1e-2, abs=1e-6)
    assert particle_under(case.particles, state, case.halos, outcome, (1e6, 1e6)) is None
    assert particle_under(case.particles, case.state, case.halos, outcome, (0.0, 0.0)) is None
