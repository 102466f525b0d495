"""The bar of a notebook: one place that is updated, safe for any text. For terminals see tests/cli/test_output.py."""

import sys
from types import SimpleNamespace

import pytest

import workbench as wb
from workbench import progress


@pytest.fixture
def shown(monkeypatch):
    """What IPython was asked to show, and how."""
    found = []

    def display(data, raw, display_id):
        assert raw is display_id is True
        found.append(("new", data))
        return SimpleNamespace(update=lambda data, raw: found.append(("update", data)))

    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object())))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    return found


def test_all_steps_share_one_place_of_a_notebook(shown):
    with progress.ProgressBar(clock=iter(range(100)).__next__) as bar:
        bar(0.25, "find groups")
        bar(1.0, "compare <b>labels</b>")
    assert [how for how, _ in shown] == ["new", "update", "update"]
    assert shown[0][1]["text/html"] == '<progress max="1" value="0.25"></progress> find groups'
    assert shown[1][1]["text/html"].endswith("compare &lt;b&gt;labels&lt;/b&gt;")
    assert shown[2][1] == {"text/plain": "", "text/html": ""}   # nothing remains


def test_a_search_and_an_archive_take_the_same_bar(shown):
    snapshot = wb.synthetic.cosmic_web(n=8)
    with progress.ProgressBar(clock=iter(range(1000)).__next__) as bar:
        wb.friends_of_friends(snapshot, parts=2, progress=bar).close()
        wb.compress(snapshot, wb.Absolute(0.01), progress=bar)
    text = " ".join(data["text/plain"] for _, data in shown)
    assert [step for step in ("send particles", "find groups", "compare labels", "positions") if step not in text] == []


def test_outside_of_a_notebook_nothing_is_displayed(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace()))
    assert progress._display() is None
    monkeypatch.setitem(sys.modules, "IPython", None)
    assert progress._display() is None
