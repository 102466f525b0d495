"""The glossary can be read as tooltips and as a page: sorted, short, one sentence or two, one meaning for each word."""

import pytest

from workbench.lab.glossary import GLOSSARY

LONGEST = 170   # characters that fit into a tooltip


def test_terms_are_sorted() -> None:
    assert list(GLOSSARY) == sorted(GLOSSARY, key=str.casefold)


@pytest.mark.parametrize("term", GLOSSARY)
def test_an_explanation_is_a_short_phrase_that_does_more_than_repeat_the_term(term: str) -> None:
    text = GLOSSARY[term]
    assert 0 < len(text) <= LONGEST
    assert text == text.strip()
    assert not text.endswith(".")
    assert text != term
