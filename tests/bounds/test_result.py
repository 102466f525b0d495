"""What a sweep can be asked: the rows worth choosing from, tables, JSON."""

import json
import math
import pickle
import sys
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.bounds import Run, Sweep, sweep
from workbench.bounds.pareto import LARGER, SMALLER
from workbench.bounds.run import MEANINGS
from workbench.metrics.report import MEANINGS as FIGURES


def run(label="a", eb=1.0, error=None, **figures):
    return Run({"id": label, "level": 3}, label, wb.Absolute(eb), figures=figures, error=error)


VALUES = st.sampled_from([None, -1.0, 0.5, math.inf, -math.inf, math.nan]) | st.integers(0, 6).map(float)


def beaten(one, others, x, y):
    """Whether some other row is as good in both, and better in one: by the definition."""
    signs = [-1 if name in LARGER else 1 for name in (x, y)]
    mine = [sign * one[name] for sign, name in zip(signs, (x, y), strict=True)]
    for other in others:
        theirs = [sign * other[name] for sign, name in zip(signs, (x, y), strict=True)]
        if theirs[0] <= mine[0] and theirs[1] <= mine[1] and theirs != mine:
            return True
    return False


@given(st.lists(st.tuples(VALUES, VALUES), max_size=25), st.sampled_from(["bits_per_value", "ratio"]),
       st.sampled_from(["psnr", "max_error"]))
def test_pareto_keeps_what_nothing_beats(pairs, x, y):
    rows = []
    for number, pair in enumerate(pairs):
        figures = {name: value for name, value in zip((x, y), pair, strict=True) if value is not None}
        rows.append(run(f"row {number}", **figures))
    measured = [row for row in rows if not any(math.isnan(row.figures.get(name, math.nan)) for name in (x, y))]
    expected = [row.label for row in measured if not beaten(row, measured, x, y)]
    assert [row.label for row in Sweep(tuple(rows)).pareto(x, y)] == expected


def test_pareto_takes_bits_per_particle_for_particles(snapshot):
    found = sweep(snapshot, ["lattice", "pcodec"], [wb.Absolute(0.1), wb.Absolute(0.01)])
    assert list(found.pareto()) == list(found.pareto("bits_per_particle", "psnr"))
    assert found[0] in found.pareto().rows


@pytest.mark.parametrize("name", ["value_range", "particles", "no such"])
def test_a_figure_without_better_or_worse_has_no_front(name):
    with pytest.raises(wb.WorkbenchError, match=f"with a preferred direction .*; got '{name}'"):
        Sweep((run(psnr=1.0),)).pareto(y=name)


def test_better_and_worse_are_said_of_figures_that_exist():
    assert set(MEANINGS) | set(FIGURES) >= LARGER | SMALLER
    assert not LARGER & SMALLER


def test_a_sweep_is_a_sequence():
    rows = (run("a"), run("b"))
    found = Sweep(rows)
    assert (len(found), list(found), found[1]) == (2, list(rows), rows[1])
    assert found.complete
    assert not Sweep(rows, missing=2).pareto("nbytes").complete


def test_a_sweep_can_be_pickled(waves):
    found = sweep(waves, ["pcodec", "lattice"], wb.Absolute(0.1))
    assert pickle.loads(pickle.dumps(found)) == found


def test_a_dataframe_has_a_row_for_each_run(waves):
    frame = sweep(waves, ["pcodec", "zfp", "lattice"], wb.Absolute(0.1)).to_dataframe()
    assert frame["codec"].tolist() == ["pcodec", "zfp", "lattice"]
    assert frame["psnr"][0] == math.inf
    assert frame["nbytes"].isna().tolist() == [False, False, True]
    assert json.loads(frame["options"][0]) == {"level": 8}
    assert "lattice is for particles" in frame["error"][2]
    assert frame.groupby("options").size().sum() == 3


def test_an_empty_sweep_has_an_empty_dataframe_and_table():
    assert len(Sweep(()).to_dataframe()) == 0
    assert "0 runs of 0 codecs" in Sweep(())._repr_html_()
    assert list(Sweep(()).pareto()) == []


def test_without_pandas_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(wb.WorkbenchError, match=r"needs pandas, which is not installed: pip install 'lossbench\[lab\]'"):
        Sweep(()).to_dataframe()


def test_json_is_json(waves):
    def refuse(constant):
        raise AssertionError(constant)

    found = sweep(waves, ["pcodec", "lattice"], wb.Absolute(0.1))
    held = json.loads(found.to_json(), parse_constant=refuse)
    assert (held["complete"], held["missing"]) == (True, 0)
    assert held["rows"][0]["psnr"] is None
    assert held["rows"][0]["nbytes"] == found[0]["nbytes"]
    assert held["rows"][0]["options"] == {"level": 8}
    assert held["rows"][1]["error"] == found[1].error


class Cells(HTMLParser):
    """The texts of a table, row by row, and every tag."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.tags = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def test_the_table_goes_bound_by_bound_from_small_to_large():
    rows = (
        run("a", 0.1, nbytes=300, ratio=2.0), run("a", 0.2, nbytes=200, ratio=3.0),
        run("b", 0.1, nbytes=100, ratio=6.0, corrected=0.25), run("b", 0.2, error="no <room>"),
    )
    table = Cells(Sweep(rows)._repr_html_()).rows
    assert [row[:3] for row in table] == [
        ["codec", "bound", "ratio"],
        ["b", "absolute 0.1", "6"], ["a", "absolute 0.1", "2"], ["a", "absolute 0.2", "3"], ["b", "absolute 0.2", ""],
    ]
    assert table[1][-2] == "25.000%"
    assert table[4][-1] == "failed: no <room>"


def test_nothing_in_the_table_is_taken_for_html():
    hostile = "<script>alert('1')</script>&amp;"
    text = Sweep((run(hostile, error=hostile), run("fine", psnr=math.inf, nbytes=1)))._repr_html_()
    cells = Cells(text)
    assert "script" not in cells.tags
    assert hostile in [cell for row in cells.rows for cell in row]


def test_remarks_say_what_numbers_do_not():
    kept = Run({"id": "a"}, "a", wb.Absolute(1), figures={"chunks": 4, "chunks_stored_exactly": 3}, cached=True)
    assert Cells(Sweep((kept,))._repr_html_()).rows[1][-1] == "3 of 4 chunks stored exactly; cached"


def test_a_missing_figure_is_named_with_those_there_are():
    with pytest.raises(wb.WorkbenchError, match="got 'ssim', and this run has: psnr, nbytes"):
        run(psnr=1.0, nbytes=3)["ssim"]
