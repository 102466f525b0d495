"""Answers of any kind are judged, never refused with an exception; hints fit the mistake and grow plainer."""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.teaching.answers import letters, number
from workbench.teaching.question import Question, about, near, required


class Hostile:
    """Raises whatever it is asked."""

    def __float__(self) -> float:
        raise RuntimeError("no")

    def __repr__(self) -> str:
        raise RuntimeError("no")

    def __len__(self) -> int:
        raise RuntimeError("no")


SILLY = [
    True, np.True_, "", "eight", "8 8", "1e", "1e999", "8 elephants", "9" * 500, " " * 100_000, b"x", [], [8], [1, [2,
    3]], {}, {8},
    (1, 2), 1 + 2j, 10**400, 2**63, math.nan, math.inf, -math.inf, np.zeros(3), np.zeros((0, 2)), np.array("x"),
    np.array([None]),
    object(), Hostile(), Hostile, print, range(3), wb.Absolute(1), wb.Field([1.0, 2.0]), Decimal("NaN"), NotImplemented,
    (letter for letter in "ab"),
]


@pytest.fixture
def question() -> Question:
    return Question("?", "gentle", "plainer", "plain")


@pytest.mark.parametrize("answer", [
    8, 8.0, "8", " 8.0 ", "+8", "8,0", np.int8(8), np.float32(8), np.array(8), np.array([8]), Fraction(8), Decimal(8),
    "8 bits",
    "8bit", "1 byte", "1 byte per value", "8 bits/value",
])
def test_a_number_may_be_written_in_many_ways(question: Question, answer: Any) -> None:
    assert question.number(answer, near(8), "bits").right


@pytest.mark.parametrize("answer", SILLY, ids=lambda _: "")
def test_silly_answers_are_wrong_or_missing_and_nothing_is_raised(question: Question, answer: Any) -> None:
    verdicts = [question.number(answer, near(8), "bits"), question.choice(answer, "ab", {"a": "", "b": "", "c": ""}),
                question.array(answer, (3,), np.zeros(3))]
    for verdict in verdicts:
        assert verdict.right is not True
        assert "<div" in verdict._repr_html_()
        assert len(repr(verdict)) < 500
    question.bound(answer), question.call(answer)


@settings(max_examples=60)
@given(st.one_of(st.text(), st.floats(), st.integers(), st.binary(), st.lists(st.text())))
def test_any_text_or_number_is_read_or_named(answer: Any) -> None:
    read = number(answer, "share")
    assert isinstance(read, str) or math.isfinite(read)
    assert isinstance(letters(answer, "abc"), str | frozenset)


@pytest.mark.parametrize("answer", [..., None, "", " ", "..."])
def test_dots_wait_for_an_answer(question: Question, answer: Any) -> None:
    verdict = question.number(answer, near(8))
    assert (verdict.right, verdict.hint) == (None, "gentle")


def test_hints_grow_plainer_with_different_wrong_answers_only(question: Question) -> None:
    hints = [question.number(answer, near(8)).hint for answer in (1, 1, 2.5, 1, 3, 5, 6)]
    assert hints == ["gentle", "gentle", "plainer", "plainer", "plain", "plain", "plain"]
    assert question.number(8, near(8)).right
    assert question.number(1, near(8)).hint == "gentle"


@pytest.mark.parametrize(("factor", "unit", "word"), [
    (2, "", "twice"), (0.5, "", "half"), (-1, "", "sign"), (10, "", "point"), (0.001, "", "point"),
    (8, "bits", "byte"), (1 / 8, "bits", "byte"), (3, "", "not far"), (1e9, "", "large"), (1e-9, "", "small"), (0, "",
    "Not yet"), (-7, "", "Not yet"),
])
def test_factors_say_what_was_forgotten(question: Question, factor: float, unit: str, word: str) -> None:
    verdict = question.number(6.5 * factor, near(6.5), unit)
    assert verdict.right is False
    assert word in verdict.text.replace("Exactly ", "")


def test_a_known_mistake_comes_before_a_factor_and_never_before_the_truth(question: Question) -> None:
    mistakes = [(near(16), "you doubled it"), (about(8, 1), "too near")]
    assert question.number(16, near(8), mistakes=mistakes).text == "you doubled it"
    assert question.number(8, near(8), mistakes=mistakes).right


@pytest.mark.parametrize("answer", [0.79, 79, "79 %", "79%", "79 percent", "0,79", "79 per cent"])
def test_shares_may_be_in_percent(question: Question, answer: Any) -> None:
    assert question.number(answer, near(0.79), "share").right


@pytest.mark.parametrize("answer", ["ab", "AB", "b, a", "a and b", ["b", "a"], {"a", "b"}, ("a", "b"), "(a) (b)", "a b b"])
def test_letters_may_be_written_in_many_ways(question: Question, answer: Any) -> None:
    assert question.choice(answer, "ab", {"a": "x", "b": "y", "c": "z"}).right


def test_one_doubtful_letter_at_a_time_is_named(question: Question) -> None:
    reasons = {"a": "first", "b": "second", "c": "third"}
    assert question.choice("c", "ab", reasons).text == "None of 3 are judged rightly. Think again about (a): first"
    assert question.choice("abc", "ab", reasons).text == "2 of 3 are judged rightly. Think again about (c): third"
    assert "out of a, b, c" in question.choice("abd", "ab", reasons).text


def _ends(kind: type[BaseException]) -> Callable[..., Any]:
    def ended(*arguments: Any) -> Any:
        raise kind("too bad")
    return ended


@pytest.mark.parametrize("kind", [ValueError, ZeroDivisionError, SystemExit, AssertionError, RecursionError,
    wb.WorkbenchError])
def test_a_function_that_ends_with_an_error_is_told_which(question: Question, kind: type[BaseException]) -> None:
    assert question.call(_ends(kind), 1).text == f"Your function ended with {kind.__name__}: too bad"


def test_what_stops_a_kernel_stops_a_function(question: Question) -> None:
    with pytest.raises(KeyboardInterrupt):
        question.call(_ends(KeyboardInterrupt))


def test_a_function_returns_dots_nothing_or_something(question: Question) -> None:
    assert question.call(lambda: ...).right is None
    assert "return" in question.call(lambda: None).text
    assert question.call(lambda: 3) == 3
    assert "shape (2,); yours has (3,)" in question.array(lambda: [1, 2, 3], (2,)).text
    assert "returns str" in question.array(lambda: "abc", (3,)).text


def test_text_of_students_is_no_html(question: Question) -> None:
    shown = question.number("<script>alert(1)</script>", near(8))._repr_html_()
    assert "<script" not in shown


def test_an_overwritten_variable_is_named() -> None:
    with pytest.raises(wb.WorkbenchError,
        match="the field must be as the lesson makes it; got 3: run the cells above again"):
        required(3, wb.Field, "the field")
