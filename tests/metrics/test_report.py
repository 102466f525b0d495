"""Reports: text, HTML and JSON, and how figures are reached."""

import copy
import json
import pickle
from html.parser import HTMLParser

import numpy as np
import pytest

import workbench as wb
from workbench.metrics import Check, Report


def example(**changes: object) -> Report:
    values = {
        "subject": "<b>T</b> & co",
        "figures": {"max_error": 0.25, "values": 1_234_567, "invalid_kept": False, "psnr": np.inf},
        "curves": {"spectrum_ratio": np.array([1.0, np.nan])}, "checks": (Check("max_error", 0.5, 0.25),),
        "notes": ("no ssim: <too small>",),
    }
    return Report(**(values | changes))


def test_text_is_an_aligned_table():
    assert str(example()).splitlines() == [
        "<b>T</b> & co: passed",
        "  max_error          0.25  largest |decoded - original|, in the unit of the data",
        "  values        1,234,567  finite, unmasked values of the original",
        "  invalid_kept         no  whether these are bit-identical",
        "  psnr                inf  peak signal-to-noise ratio in dB; peak: range of the values, longest side of the box",
        "  max_error <= 0.5: passed",
        "  no ssim: <too small>",
    ]
    assert repr(example()) == str(example())


def test_a_failure_shows_all_digits():
    report = example(checks=(Check("max_error", 0.0999, 0.0999908447265625), Check("other", 1.0, 0.5)))
    assert report.passed is False
    assert "max_error <= 0.0999: FAILED, got 0.0999908447265625" in str(report)
    assert str(report).startswith("<b>T</b> & co: FAILED")


def test_nothing_checked_is_neither_passed_nor_failed():
    assert example(checks=()).passed is None
    assert not Check("max_error", 1.0, float("nan")).ok


def test_figures_are_reached_by_name():
    report = example()
    assert report["max_error"] == report.max_error == 0.25
    assert "max_error" in dir(report)
    with pytest.raises(wb.WorkbenchError, match="got 'ssim': it has max_error, values"):
        report["ssim"]
    with pytest.raises(AttributeError, match="has no 'ssim'; its figures are: max_error"):
        _ = report.ssim
    assert not hasattr(report, "_repr_png_")


def test_reports_cannot_be_changed_but_copied():
    figures = {"max_error": 1.0}
    report = Report("x", figures)
    figures["max_error"] = 2.0
    assert report.max_error == 1.0
    with pytest.raises(TypeError):
        report.figures["max_error"] = 3.0
    assert copy.copy(report).max_error == 1.0


def test_json_has_no_numbers_that_it_does_not_know():
    text = json.dumps(example().to_dict(), allow_nan=False)
    assert json.loads(text) == {
        "subject": "<b>T</b> & co", "passed": True,
        "figures": {"max_error": 0.25, "values": 1234567, "invalid_kept": False, "psnr": None},
        "curves": {"spectrum_ratio": [1.0, None]},
        "checks": [{"name": "max_error", "limit": 0.5, "value": 0.25, "ok": True}],
        "notes": ["no ssim: <too small>"],
    }


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attributes: object) -> None:
        self.open.append(tag)
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data + "|"


def test_html_is_sound_escaped_and_without_colours():
    source = example()._repr_html_()
    page = Page()
    page.feed(source)
    assert page.open == []
    assert "<b>T</b> & co: passed" in page.text
    assert "no ssim: <too small>" in page.text
    assert page.seen.count("tr") == 5
    assert not {"b", "too"} & set(page.seen)
    assert "color" not in source
    assert "background" not in source


def test_a_report_survives_pickling():
    report = pickle.loads(pickle.dumps(example()))
    assert str(report) == str(example())
