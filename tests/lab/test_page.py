"""A page sends what differs, once, under a number; what was missed is asked for."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest

from workbench.lab import page as page_module
from workbench.lab.front_end import front_end, loader, modules
from workbench.lab.page import Page
from workbench.lab.part import Part

IMPORTED = re.compile(r'^(?:import|export) \{([^}]*)\} from "\./(.*)";', re.MULTILINE)
EXPORTED = re.compile(r"^export (?:async )?(?:function|const|class) (\w+)|^export const \[([\w, ]+)\]", re.MULTILINE)


class Heard(Part):
    def __init__(self) -> None:
        super().__init__(text="one", pixels=b"123", marks=[])
        self.said: list[Any] = []

    def heard(self, content: Any) -> None:
        self.said.append(content)


@pytest.fixture
def part() -> Heard:
    return Heard()


@pytest.fixture
def page(part: Heard) -> Iterator[Page]:
    made = Page({"part": part})
    yield made
    made.close()


@pytest.fixture
def sent(page: Page, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the browser is sent from here on, with the buffers."""
    messages: list[Any] = []
    monkeypatch.setattr(page, "send", lambda content, buffers=None: messages.append((content, buffers or [])))
    return messages


def whole(page: Page) -> Any:
    return page.get_state("content")["content"]


def test_only_fields_that_differ_are_sent_with_the_next_number(page: Page, part: Heard, sent: list[Any]) -> None:
    part.set(text="one", pixels=b"123")
    assert sent == []
    part.set(text="two", marks=[{"places": b"4"}, {"places": b"56"}])
    part.set(pixels=b"124")
    first, second = sent
    marks = [{"places": {"buffer": 0}}, {"places": {"buffer": 1}}]
    assert first == ({"number": 1, "parts": {"part": {"text": "two", "marks": marks}}, "removed": []}, [b"4", b"56"])
    assert second == ({"number": 2, "parts": {"part": {"pixels": {"buffer": 0}}}, "removed": []}, [b"124"])


def test_false_and_zero_are_different_values(page: Page, part: Heard, sent: list[Any]) -> None:
    part.set(text=0, marks=[{"on": 1}])
    part.set(text=False, marks=[{"on": True}])
    assert [content["parts"]["part"] for content, _ in sent] == [
        {"text": 0, "marks": [{"on": 1}]}, {"text": False, "marks": [{"on": True}]},
    ]
    assert sent[1][0]["parts"]["part"]["text"] is False


def test_changes_at_once_are_one_message(page: Page, part: Heard, sent: list[Any]) -> None:
    with page.at_once():
        part.set(text="two")
        other = Part(text="new")
        page.add(other, "other")
        with page.at_once():
            part.set(text="three")
        assert sent == []
    (content, _), = sent
    assert content["parts"] == {"part": {"text": "three"}, "other": {"kind": "", "text": "new", "hidden": False}}
    page.remove(other)
    assert sent[-1][0] == {"number": 2, "parts": {}, "removed": ["other"]}
    other.set(text="nobody sees this")
    assert len(sent) == 2


def test_the_state_of_the_widget_is_the_whole_content_now(page: Page, part: Heard) -> None:
    part.set(text="two")
    assert whole(page) == {"number": 1, "parts": {"part": dict(part.content)}}
    part.set(text="three")
    assert (whole(page)["number"], whole(page)["parts"]["part"]["text"]) == (2, "three")


def test_a_view_that_missed_a_message_gets_the_content_and_any_other_the_number(
    page: Page, part: Heard, sent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    states: list[Any] = []
    monkeypatch.setattr(page, "send_state", states.append)
    part.set(text="two")
    page._handle_custom_msg({"number": 0}, [])
    assert states == ["content"]
    page._handle_custom_msg({"number": 1}, [])
    assert (states, sent[-1]) == (["content"], ({"number": 1}, []))


def test_messages_reach_their_part_if_it_is_still_there(page: Page, part: Heard) -> None:
    page._handle_custom_msg({"part": "part", "message": {"does": "save"}}, [])
    page._handle_custom_msg({"part": "gone", "message": {}}, [])
    assert part.said == [{"does": "save"}]


def test_the_number_is_sent_again_when_changes_have_ended(
    page: Page, part: Heard, sent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_module, "REPEATED", (0.01, 0.02))

    async def changes() -> None:
        part.set(text="two")
        part.set(text="three")
        sent.clear()
        while len(sent) < 2:
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(changes(), 30))
    assert sent[:2] == [({"number": 2}, [])] * 2


def test_scripts_are_sent_once_for_all_pages(page: Page) -> None:
    other = Page({})
    assert other.front is page.front is front_end()
    assert len(loader()) < 5000
    assert all(len(page.get_state()[name]) < 5000 for name in ("_esm", "own_id"))
    other.close()


def test_what_modules_import_is_exported_without_circles() -> None:
    exported = {
        name: {each.strip() for pair in EXPORTED.findall(text) for each in ",".join(pair).split(",") if each.strip()}
        for name, text in modules().items()
    }
    needs: dict[str, set[str]] = {}
    for name, text in modules().items():
        for names, other in IMPORTED.findall(text):
            wanted = {each.strip().split(" as ")[0] for each in names.split(",") if each.strip()}
            if name != "widgets.js":
                assert wanted <= exported[other], (name, other, wanted - exported[other])
            needs.setdefault(name, set()).add(other)
    while needs:   # the modules that need nothing any more
        free = {name for name in needs if not needs[name] & needs.keys()}
        assert free, f"modules that import each other: {sorted(needs)}"
        needs = {name: others for name, others in needs.items() if name not in free}
