"""The chart of a sweep: every run where it belongs, and a line for each codec and kind of bound."""

import pytest

import workbench as wb
from workbench.bounds import Sweep, sweep


def test_there_is_a_line_for_each_codec_and_a_mark_for_each_run(waves):
    chart = sweep(waves, ["sz3", "zfp", "lattice"], [wb.Absolute(eb) for eb in (0.1, 0.01, 0.001)]).plot()
    assert [line.name for line in chart.parts] == ["sz3", "zfp"]
    for line in chart.parts:   # more bits, better: to the right, and up
        assert len(line.x) == 3
        assert line.x.tolist() == sorted(line.x)
        assert line.y.tolist() == sorted(line.y)
    assert chart.parts[0].tooltips[-1].startswith("sz3, absolute 0.001: bits per value ")
    assert (chart.x.title, chart.y.title, chart.note) == (
        "bits per value", "PSNR [dB]", "not drawn: 3 without finite figures"
    )


def test_bounds_of_two_kinds_are_two_lines(waves):
    bounds = [wb.Absolute(0.1), wb.Absolute(0.01), wb.Relative(0.01)]
    parts = sweep(waves, "zfp", bounds).plot("ratio", "max_error").parts
    assert {line.name: len(line.x) for line in parts} == {"zfp, absolute": 2, "zfp, relative": 1}


def test_a_figure_that_was_not_measured_is_refused(waves):
    found = sweep(waves, "zfp", wb.Absolute(0.1))
    with pytest.raises(wb.WorkbenchError, match=r"must be measured figures \(limit, .*\); got 'halo_recall'"):
        found.plot(y="halo_recall")


def test_nothing_to_draw_is_said(waves):
    for found in (Sweep(()), sweep(waves, "lattice", wb.Absolute(0.1)), sweep(waves, "pcodec", wb.Absolute(0.1))):
        chart = found.plot()
        assert chart.title == "nothing to draw: no run has a finite bits_per_value and psnr"
        assert chart.title in chart.svg
        assert chart.parts == ()
