"""The user's choices in the panel of a language model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from workbench.lab.choices import one_of, positive, told_how_to_change, whole
from workbench.lab.description import Window, checked_window
from workbench.propagation import BitFlip, Noise, Perturbation
from workbench.propagation.language import LanguagePipeline
from workbench.propagation.language.pipeline import PARTS
from workbench.propagation.number_format import NumberFormat
from workbench.propagation.pipeline import Run

Kind = Literal["flip", "noise"]
Format = Literal["float32", "bfloat16", "float16"]
PLACES = {"after the block": "", **{part: part for part in PARTS}}
LEAST_NOISE, MOST_NOISE = 1e-7, 10.0
LEAST_STEP, MOST_STEP = 0.01, 8.0
LEAST_BUDGET, MOST_BUDGET = 1e-4, 1.0   # of divergence, in nats


@told_how_to_change
@dataclass(frozen=True)
class LanguageState:
    """One error, and what is looked at.

    `kind` is a flip of one `bit` of the number of a `token` and `channel`, in a `format`, or noise of an `amplitude` in
    units of the root mean square on all numbers of the site. The site is a `part` of the block `layer`; "" is the residual
    stream after it. The map shows the part `shown` of all blocks, and `tokens` are written at most. `score_step`
    and `value_step` are those of a `KVCache`, for a table that compares caches. `budget` is the divergence that bounds of
    all weights may make together.

    >>> LanguageState(layer=5).site
    'block 5 down'
    """

    kind: Kind = "flip"
    part: str = "down"
    layer: int = 0
    token: int = 0
    channel: int = 0
    bit: int = 30
    format: Format = "float32"
    amplitude: float = 0.01
    seed: int = 0
    shown: str = ""
    tokens: int = 32
    score_step: float = 1.0
    value_step: float = 0.4
    budget: float = 0.01
    window: Window | None = None

    def __post_init__(self) -> None:
        one_of("the kind of error", self.kind, get_args(Kind))
        one_of("the format", self.format, get_args(Format))
        one_of("the site", self.part, tuple(PLACES.values()))
        one_of("the map", self.shown, tuple(PLACES.values()))
        words = {"layer": "the block", "token": "the token", "channel": "the channel", "bit": "the bit", "seed": "the seed"}
        for field, name in words.items():
            object.__setattr__(self, field, whole(name, getattr(self, field), least=0))
        sizes = {
            "amplitude": "the amplitude", "score_step": "the step of scores", "value_step": "the step of values",
            "budget": "the budget",
        }
        for field, name in sizes.items():
            object.__setattr__(self, field, positive(name, getattr(self, field)))
        object.__setattr__(self, "tokens", whole("the number of tokens", self.tokens, least=1))
        object.__setattr__(self, "window", checked_window(self.window))

    @property
    def site(self) -> str:
        """Where the error is put in."""
        return f"block {self.layer} {self.part}".strip()

    @property
    def numbers(self) -> NumberFormat:
        """The format whose bits flip."""
        return NumberFormat.of("float32", None if self.format == "float32" else self.format)

    @property
    def error(self) -> Any:
        """What the changed run depends on."""
        own = (self.token, self.channel, self.bit, self.format) if self.kind == "flip" else (self.amplitude, self.seed)
        return self.kind, self.site, own

    def perturbation(self, run: Run) -> Perturbation:
        """The error as a perturbation of this run."""
        if self.kind == "noise":
            return Noise(self.site, self.amplitude, unit="rms")
        pipeline = run.pipeline
        assert isinstance(pipeline, LanguagePipeline)
        place = pipeline.index(self.site, run, self.token, self.channel)
        stored = None if self.format == "float32" else self.format
        return BitFlip(self.site, bit=self.bit, index=place, format=stored)
