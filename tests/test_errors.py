"""Errors in a cell are one sentence; elsewhere they have their traceback."""

from __future__ import annotations

import builtins
import traceback

import pytest

import workbench as wb

pytest.importorskip("IPython", reason="cells need IPython, which the lab extra brings")

from IPython.core.interactiveshell import InteractiveShell

CELL = """import workbench as wb
field = wb.Field([1.0, 2.0, 3.0])
panel = wb.lab.bounds(field, {arguments})
"""
SENTENCES = {
    'eb="abc"': "WorkbenchError: the error bound must be a positive number; 'abc' is not one",
    "ebb=0.1": "WorkbenchError: a bounds panel has no choice 'ebb' (did you mean eb?); its choices are axis, codec, eb, ",
    'codec="sz9"': "WorkbenchError: codec must be one of ",
}


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> InteractiveShell:
    """A shell that is not the one of this process, so that panels do not look for its variables.

    Nor may libraries that are imported later, such as astropy, take this process for one in a shell.
    """
    monkeypatch.setattr(builtins, "__IPYTHON__", True, raising=False)   # which the shell sets, and never removes
    return InteractiveShell()


@pytest.mark.parametrize("arguments", SENTENCES)
def test_a_wrong_argument_is_one_sentence_below_the_line_of_the_user(
    shell: InteractiveShell, arguments: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell(CELL.format(arguments=arguments))
    line, sentence = capsys.readouterr().out.strip().splitlines()
    assert line == f"line 3: panel = wb.lab.bounds(field, {arguments})"
    assert sentence.startswith(SENTENCES[arguments])


def test_without_a_shell_the_traceback_is_whole() -> None:
    with pytest.raises(wb.WorkbenchError) as raised:
        wb.Particles([[0.0, 0.0, float("nan")]])
    text = "".join(traceback.format_exception(raised.value))
    assert "workbench/data/particles.py" in text.replace("\\", "/")
    assert text.endswith(f"WorkbenchError: {raised.value}\n")
