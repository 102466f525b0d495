"""What every command prints: strict JSON, tables without ambiguity, and progress that stays out of the way."""

import io
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.conftest import refuse
from workbench.cli.progress import Progress
from workbench.cli.source import print_result, readable
from workbench.progress import ERASE

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
nested = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


def same(value: Any, found: Any) -> bool:
    if isinstance(value, dict):
        return list(value) == list(found) and all(same(entry, found[name]) for name, entry in value.items())
    if isinstance(value, list):
        return len(value) == len(found) and all(map(same, value, found))
    return found is None if isinstance(value, float) and not math.isfinite(value) else found == value


@given(st.dictionaries(st.text(), nested))
def test_json_is_strict_and_says_the_same(values: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sys.stdout", out := io.StringIO())
        print_result(values, as_json=True)
    assert same(values, json.loads(out.getvalue(), parse_constant=refuse))


def test_arrays_of_numpy_and_strange_values_become_json(capsys: pytest.CaptureFixture) -> None:
    strange = {"a": np.float32(0.5), "b": np.array([1, 2]), "c": np.datetime64("2026-01-01"), "d": {3: (np.nan, b"x")}}
    print_result(strange, as_json=True)
    assert json.loads(capsys.readouterr().out) == {"a": 0.5, "b": [1, 2], "c": "2026-01-01", "d": {"3": [None, "b'x'"]}}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (32768, "32,768"), ([32768, 3], "32768, 3"), ([], "-"), (None, "-"), (True, "yes"), ([True, 1.5], "yes, 1.5"),
        ([[0, 1], [2, None]], "(0, 1), (2, -)"), ({"eb": 0.1, "of": {"n": 1000}}, "eb=0.1, of=(n=1000)"),
    ],
)
def test_tables_are_unambiguous(value: Any, text: str) -> None:
    assert readable(value) == text


class Screen(io.StringIO):
    """A terminal that knows what a person would see on its last line."""

    def isatty(self) -> bool:
        return True

    @property
    def seen(self) -> str:
        return self.getvalue().split(ERASE)[-1]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_terminal_shows_one_line_that_is_gone_in_the_end() -> None:
    screen, clock = Screen(), Clock()
    with Progress(stream=screen, clock=clock) as progress:
        progress(None, "reading a.npz")
        assert screen.seen == "reading a.npz ..."
        for done in range(1, 101):
            clock.now += 0.2
            progress(done / 100, "positions")
        assert "#" * 30 in screen.seen
        assert screen.seen.endswith("100%")
    assert screen.seen == ""
    assert "\n" not in screen.getvalue()


def test_a_terminal_is_not_flooded() -> None:
    screen, clock = Screen(), Clock()
    with Progress(stream=screen, clock=clock) as progress:
        for done in range(10_000):
            clock.now += 0.001
            progress(done / 10_000, "values")
    assert screen.getvalue().count("values") <= 101


def test_a_line_is_never_longer_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    screen = Screen()
    with Progress(stream=screen) as progress:
        progress(None, "reading " + "a" * 100)
        assert len(screen.seen) == 19


def test_a_log_gets_a_line_every_half_minute() -> None:
    log, clock = io.StringIO(), Clock()
    with Progress(stream=log, clock=clock) as progress:
        for second in range(100):
            clock.now += 1
            progress(second / 100, "values")
    assert log.getvalue().splitlines() == ["values: 29%, 1:11 left", "values: 59%, 0:41 left", "values: 89%, 0:11 left"]


@pytest.mark.parametrize("stream", [Screen(), io.StringIO()])
def test_quiet_is_silent(stream: io.StringIO) -> None:
    clock = Clock()
    with Progress(quiet=True, stream=stream, clock=clock) as progress:
        progress(None, "reading")
        clock.now += 1000
        progress(0.5, "values")
    assert stream.getvalue() == ""


def test_a_line_is_erased_before_an_error_is_told() -> None:
    screen = Screen()

    def fail() -> None:
        with Progress(stream=screen) as progress:
            progress(0.5, "values")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert screen.seen == ""
    assert "values" in screen.getvalue()
