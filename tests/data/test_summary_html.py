"""What notebooks show of data, groups and archives: complete, escaped, and without work that one would notice."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import workbench as wb
from workbench.data import field as fields
from workbench.data.summary_html import MOST_ENTRIES, summary

HOSTILE = "<script>alert('x')</script>"


class Rows(HTMLParser):
    """The rows of the tables of a summary, and its first line."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(source)
        assert self.open == []
        cells = [(tag, text) for tag, text in zip(self.tags, self.texts, strict=True) if tag in ("th", "td")]
        names = [text for tag, text in cells if tag == "th"]
        self.rows = dict(zip(names, [text for tag, text in cells if tag == "td"], strict=True))
        self.line = next(text for tag, text in zip(self.tags, self.texts, strict=True) if tag == "code")

    def handle_starttag(self, tag: str, attributes: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.tags.append(self.open[-1])
        self.texts.append(data)


def shown(thing: object) -> Rows:
    return Rows(thing._repr_html_())


def test_particles() -> None:
    positions = np.array([[0.25, 0.5], [1.0, 0.75]], np.float32)
    given = {"units": {"positions": "Mpc"}, "source": HOSTILE}
    particles = wb.Particles(positions, box=2.0, ids=[4, 5], metadata=given)
    found = shown(particles)
    assert found.line == repr(particles)
    assert found.rows["space"] == "periodic, 2 x 2"
    assert found.rows["range"] == "x 0.25 to 1, y 0.5 to 0.75"
    assert found.rows["mean spacing"] == f"{particles.spacing:.6g}"
    assert found.rows["positions"] == "float32, 2 x 2"
    assert found.rows["size"] == "32 bytes"
    assert found.rows["units.positions"] == "Mpc"
    assert found.rows["source"] == HOSTILE
    assert "<script" not in particles._repr_html_()


def test_a_field_with_values_that_do_not_count() -> None:
    values = np.array([[1.5, np.nan], [-2.0, np.inf]])
    field = wb.Field(values, spacing=0.5, name=HOSTILE, mask=[[False, False], [True, False]], metadata={"units": "K"})
    found = shown(field)
    assert found.rows["name"] == HOSTILE
    assert (found.rows["shape"], found.rows["type"], found.rows["spacing"]) == ("2 x 2", "float64", "0.5 x 0.5")
    assert found.rows["range"] == "1.5 to 1.5, of 1 finite, unmasked values"
    assert (found.rows["units"], found.rows["masked"]) == ("K", "1")


def test_a_field_without_any_valid_value() -> None:
    assert shown(wb.Field([np.nan])).rows["range"] == "no finite, unmasked value"


def test_the_range_of_a_large_field_is_not_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fields, "MOST_SCANNED", 3)
    assert "range" in shown(wb.Field([1, 2, 3])).rows
    assert "range" not in shown(wb.Field([1, 2, 3, 4])).rows


def test_groups() -> None:
    found = shown(wb.Groups.from_labels([0, 0, 1, 1, 1, 2], 0.5)).rows
    assert found["groups of two or more"] == "2, with 5 particles"
    assert found["largest"] == "3 members"
    assert found["single particles"] == "1"


def test_an_archive_and_its_certificate() -> None:
    field = wb.Field(np.linspace(0, 1, 1000, dtype=np.float32), metadata={"comment": HOSTILE})
    archive = wb.compress(field, wb.Absolute(1e-3), codec="prequantised")
    source = archive._repr_html_()
    assert "<script" not in source
    assert "every value within 0.001" in source
    assert "comment" in source
    assert re.search(r"float32, 1,000, [\d,]+ bytes", source)
    assert f"4 kB (4,000 bytes): {archive.ratio:.4g} times as large" in source


def test_long_metadata_are_cut() -> None:
    many = {f"entry {number}": "x" * 10_000 for number in range(3 * MOST_ENTRIES)}
    source = summary("line", {}, {**many, "list": list(range(10**6))})
    assert len(source) < 300 * MOST_ENTRIES
    assert f"and {2 * MOST_ENTRIES + 1:,} more" in source
