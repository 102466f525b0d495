"""Controls: each shows one field of a panel's state, and requests changes of it.

The state owns the value. A slider shows the position nearest to it and never changes it, and what is typed is requested as
it stands: the state takes it, or refuses it with a sentence. A refused entry stays in its field until it is corrected or
another change is made.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from workbench.lab.glossary import GLOSSARY, meaning
from workbench.lab.part import Part

Ask = Callable[..., object]
STEPS_PER_DECADE = 20
DIGITS = 3   # of a value at a position of a logarithmic slider


class Control(Part, ABC):
    """A control for a field of the state. Its tooltip is the glossary's entry of `about`, or else of the label.

    A control without a label is part of a sentence; `about` is its name where none is seen.

    `asking` is true while a request of the user is carried out; requests of one movement have the same `gesture`. The
    browser sends only what the user asks for, never what it shows, so showing a value cannot change it. The unit is read
    aloud with the value, or what `spoken` returns for the state.
    """

    def __init__(
        self, field: str, label: str, about: str = "", spoken: Callable[[Any], str] | None = None, **content: Any
    ) -> None:
        self.field, self.label, self._spoken = field, label, spoken
        self.asking = False
        self.gesture = 0.0
        explained = meaning(about) if about else GLOSSARY.get(label, "")
        usual: dict[str, Any] = {"name": label or about, "unit": "", "texts": [], "shown": {}}
        super().__init__(field=field, label=label, meaning=explained, **{**usual, **content})
        self._ask: Ask = lambda **fields: None
        self._state: Any = None
        self._text = ""                     # what was typed last
        self._refused: str | None = None    # the text that was refused
        self._answered = 0                  # the number of the latest request

    def connect(self, ask: Ask) -> None:
        """Request changes by calling `ask(field=value)`, which returns False when it refuses."""
        self._ask = ask

    def show(self, state: Any) -> None:
        """Show the field's value."""
        self._state = state
        if not self.asking:   # the answer follows when the request is decided
            self._answer()

    def forgive(self) -> None:
        """Forget a refused entry."""
        self._refused = None

    def moved(self, position: int) -> None:
        """The user chose a position of the slider or list."""
        self._request(self._value_at(position))

    def typed(self, text: str) -> None:
        """The user typed a text."""
        self._text = text
        self._request(self._read(text), text)

    def _value_at(self, position: int) -> Any:
        return position

    @abstractmethod
    def _place(self, value: Any) -> tuple[int, str]:
        """The position and the text of a value."""

    def _read(self, text: str) -> Any:
        """The value that a text stands for; the text itself, which the state refuses, if there is none."""
        return _float(text)

    def heard(self, content: Mapping[str, Any]) -> None:
        """Take a request; it has a number."""
        self._answered, self.gesture = int(content["number"]), float(content["gesture"])
        if "text" in content:
            self.typed(str(content["text"]))
        else:
            self.moved(int(content["position"]))

    def _request(self, value: Any, text: str | None = None) -> None:
        self.asking = True
        taken = False
        try:
            taken = self._ask(**{self.field: value}) is not False
        finally:
            self.asking = False
            self._refused = None if taken else text
            self._answer()

    def _answer(self) -> None:
        if self._state is None:
            return
        position, text = self._place(getattr(self._state, self.field))
        unit = self.content["unit"] if self._spoken is None else self._spoken(self._state)
        shown = {"position": position, "text": text, "unit": unit, "refused": self._refused}
        self.set(shown={**shown, "answered": self._answered})

    def _number(self, value: float) -> str:
        """A number as it was typed, or else as it is."""
        return self._text if _float(self._text) == value else exact(value)


class Slider(Control):
    """A control with a slider of whole positions: `least` is the number at the first where they have no texts."""

    kind = "slider"

    def moved(self, position: int) -> None:
        """The user chose a position; beyond the ends, they chose the end."""
        super().moved(self._within(position))

    def _within(self, position: int) -> int:
        return min(max(position, 0), self.content["positions"] - 1)


class LogSlider(Slider):
    """A positive number: a slider over its logarithm, and a field to type any other.

    Values beyond the ends of the slider are shown at the nearest end.

    >>> slider = LogSlider("eb", "error bound", low=1e-3, high=1.0)
    >>> slider.connect(lambda **fields: print(fields))
    >>> slider.moved(20)
    {'eb': 0.01}
    >>> slider.typed("0.0123456")
    {'eb': 0.0123456}
    """

    def __init__(
        self, field: str, label: str, low: float, high: float, unit: str = "", about: str = "",
        spoken: Callable[[Any], str] | None = None,
    ) -> None:
        super().__init__(field, label, about, spoken, unit=unit, editable=True, least=0)
        self.low = self.high = 0.0
        self.span(low, high)

    def span(self, low: float, high: float) -> None:
        """Change the ends of the slider."""
        ends = max(low, sys.float_info.min), max(high, sys.float_info.min)
        if ends == (self.low, self.high):
            return
        self.low, self.high = ends
        first = math.ceil(_steps(self.low) - 1e-6)
        last = max(math.floor(_steps(self.high) + 1e-6), first)
        self._values = [float(f"{10 ** (step / STEPS_PER_DECADE):.{DIGITS}g}") for step in range(first, last + 1)]
        self._first = first
        self.set(positions=len(self._values), texts=[exact(value) for value in self._values])
        self._answer()

    def _value_at(self, position: int) -> float:
        return self._values[position]

    def _place(self, value: float) -> tuple[int, str]:
        return self._within(round(_steps(value)) - self._first), self._number(value)


class Steps(Slider):
    """A whole number between two ends. Where each has a text, such as a date, the field shows it, and takes a typed one.

    With `plays`, a button moves on from each position to the next when what belongs to it is on the page.

    >>> steps = Steps("index", "slice", 0, 9)
    >>> steps.connect(lambda **fields: print(fields))
    >>> steps.moved(4)
    {'index': 4}
    """

    def __init__(self, field: str, label: str, low: int, high: int, about: str = "", plays: bool = False) -> None:
        super().__init__(field, label, about, editable=True, least=low, plays=plays)
        self.low = low
        self.reach(high)

    def reach(
        self, high: int, texts: Sequence[str] = (), read: Callable[[str], int | None] = lambda text: None
    ) -> None:
        """Change the upper end, and the texts of all numbers; `read` returns the number that a typed text means."""
        self.high, self._number_of = max(high, self.low), read
        self.set(positions=self.high - self.low + 1, texts=list(texts))
        self._answer()

    def _value_at(self, position: int) -> int:
        return self.low + position

    def _place(self, value: int) -> tuple[int, str]:
        position, texts = self._within(value - self.low), self.content["texts"]
        return position, texts[position] if texts else str(value)

    def _read(self, text: str) -> Any:
        number = self._number_of(text)
        return _whole(text) if number is None else number


class Choice(Control):
    """One of several values, each with its text: a list or, as `tabs`, buttons of which one is pressed.

    >>> choice = Choice("codec", "codec", {"SZ3": "sz3", "ZFP": "zfp"})
    >>> choice.connect(lambda **fields: print(fields))
    >>> choice.moved(1)
    {'codec': 'zfp'}
    """

    kind = "choice"

    def __init__(
        self, field: str, label: str, options: Mapping[str, Any] | Sequence[Any], about: str = "", tabs: bool = False,
        text_of: Callable[[Any], str] = str,
    ) -> None:
        super().__init__(field, label, about, tabs=tabs)
        self._text_of = text_of   # values that were not offered
        named = options.items() if isinstance(options, Mapping) else [(str(option), option) for option in options]
        self._values: list[Any] = []
        for text, value in named:
            self._offer(text, value)

    def _offer(self, text: str, value: Any) -> None:
        self._values.append(value)
        self.set(texts=[*self.content["texts"], text])

    def _value_at(self, position: int) -> Any:
        return self._values[position]

    def _place(self, value: Any) -> tuple[int, str]:
        if value not in self._values:
            self._offer(self._text_of(value), value)
        position = self._values.index(value)
        return position, self.content["texts"][position]


class Number(Control):
    """A typed number.

    >>> number = Number("min_members", "halo: at least", whole=True)
    >>> number.connect(lambda **fields: print(fields))
    >>> number.typed("25")
    {'min_members': 25}
    """

    kind = "text"

    def __init__(self, field: str, label: str, whole: bool = False, unit: str = "", about: str = "") -> None:
        super().__init__(field, label, about, unit=unit)
        self._is_whole = whole

    def _read(self, text: str) -> Any:
        return _whole(text) if self._is_whole else super()._read(text)

    def _place(self, value: float) -> tuple[int, str]:
        return 0, self._number(value)


class Toggle(Control):
    """Yes or no.

    >>> toggle = Toggle("logarithmic", "log colours")
    >>> toggle.connect(lambda **fields: print(fields))
    >>> toggle.moved(1)
    {'logarithmic': True}
    """

    kind = "toggle"

    def _value_at(self, position: int) -> bool:
        return bool(position)

    def _place(self, value: bool) -> tuple[int, str]:
        return int(value), ""


class Button(Part):
    """A button that calls `action`; so does its `key`, anywhere in the panel but where one types.

    >>> pressed = Button("find", lambda: print("searching"))
    >>> pressed.heard({})
    searching
    """

    kind = "button"

    def __init__(
        self, label: str, action: Callable[[], object], tooltip: str = "", primary: bool = False, key: str = ""
    ) -> None:
        super().__init__(label=label, tooltip=tooltip or label, primary=primary, key=key, enabled=True, pressed=None)
        self._action = action

    def heard(self, content: Mapping[str, Any]) -> None:
        """Call the action."""
        self._action()


class Words(Part):
    """Some words in a row, such as the number of what is shown. Those that are `wide` take all the room that is left."""

    kind = "words"

    def __init__(self, text: str = "", wide: bool = False) -> None:
        super().__init__(text=text, wide=wide)


Place = Literal["above", "folded", "top", "answer", "over", "pictures", "detail", "side", "strip", "foot"]


class Row:
    """Parts in a row at a `place` of the panel.

    The first rows are `above` everything, those that are `folded` behind the button *more controls*. Rows at the `top`
    stand over the answer, those of the `answer` behind its sentence, those `over` the pictures below it, those of the
    `pictures` in the place of these where they are hidden, those of the `detail` beneath it, at the `side` beside the
    pictures, in the `strip` below them, at the `foot` below all.

    >>> Row(Words("halos"), place="strip").place
    'strip'
    """

    def __init__(self, *parts: Part, place: Place = "above") -> None:
        self.parts, self.place = parts, place


def exact(value: float) -> str:
    """The shortest text that reads as this number.

    >>> exact(0.07), exact(2.0), exact(1e9), exact(0.1 + 0.2)
    ('0.07', '2', '1e+09', '0.30000000000000004')
    """
    short = f"{value:.6g}"
    return short if float(short) == value else repr(value)


def _steps(value: float) -> float:
    return STEPS_PER_DECADE * math.log10(value)


def _float(text: str) -> float | str:
    """The number that a text stands for, or else the text."""
    try:
        return float(text)
    except ValueError:
        return text


def _whole(text: str) -> float | str:
    """The same, whole numbers as such."""
    number = _float(text)
    return int(number) if isinstance(number, float) and number.is_integer() else number
