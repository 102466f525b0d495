"""The user's choices in the propagation panel, and the perturbation that they describe."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

from workbench import codecs
from workbench.archive.choice import FREE, is_free
from workbench.arguments import flag
from workbench.errors import WorkbenchError
from workbench.guarantees import Relative
from workbench.lab.choices import one_of, positive, told_how_to_change, whole, with_choices
from workbench.lab.description import PIXELS, Window, checked_window
from workbench.lab.slices import Cut
from workbench.propagation import BitFlip, Bounded, Noise, Perturbation, Run, StuckAt
from workbench.propagation.names import listed, require_known
from workbench.propagation.number_format import NumberFormat
from workbench.propagation.protected import Protection
from workbench.propagation.trials import OUTCOMES, Outcome

Kind = Literal["flip", "stuck at 0", "stuck at 1", "compression", "noise"]
Fault = Literal["flip", "stuck at 0", "stuck at 1"]
Bits = Literal["fields", "each"]
Scale = Literal["size", "sign"]
Tab = Literal["trace", "sweep", "campaign", "budget", "protect"]
Budgeted = Literal["inputs", "sites"]

ChosenProtection = tuple[tuple[Protection, ...], tuple[str, ...] | None]


class CampaignChoices(NamedTuple):
    """What a campaign depends on."""

    kind: Kind
    bits: Bits
    trials: int
    seed: int
    protection: ChosenProtection
    tolerance: float | None


UNPROTECTED: ChosenProtection = ((), None)
IN_BITS: frozenset[Kind] = frozenset({"flip", "stuck at 0", "stuck at 1"})
LEAST_BOUND, MOST_BOUND = 1e-9, 1.0   # the ends of the slider, as shares of the range
FIRST_BOUND = 1e-3
MOST_TRIALS, MOST_VALUES = 99, 1000   # the ends of the sliders


@told_how_to_change
@dataclass(frozen=True)
class PropagationState:
    """What goes wrong where, and the visible part.

    An error of a `kind` is put in at `site`: in `bit` of `count` values, or within `bound`, a share of the range of the
    values. Which values are hit, or which noise is added, follows from `seed` and `trial`. `look` is the site that is
    shown; slice `index` and `component` None are those with the largest error. A campaign tries `trials` faults at every
    site in every field of bits, or in each bit, and the heat map shows one `outcome`. `checksums`, `twice`, `ranges` and
    `finite` protect all sites, or only those named in `protect`. `tolerance` is the limit of the pipeline's tolerance, None
    its own; a budget shares it among the inputs, or all sites, whichever are `budgeted`. `tab` is what stands beside the
    pictures.

    >>> PropagationState("input", "input", bit=62).perturbation
    BitFlip('input', bit=62)
    >>> PropagationState("input", "input", kind="noise", bound=0.01).perturbation
    Noise('input', amplitude=0.01, unit='range')
    """

    site: str
    look: str
    kind: Kind = "flip"
    bit: int = 0
    bound: float = FIRST_BOUND
    codec: str = "auto"
    count: int = 1
    trial: int = 0
    seed: int = 0
    bits: Bits = "fields"
    trials: int = 100
    outcome: Outcome = "silent"
    checksums: bool = False
    twice: bool = False
    ranges: bool = False
    finite: bool = False
    protect: tuple[str, ...] | None = None
    tolerance: float | None = None
    budgeted: Budgeted = "inputs"
    tab: Tab = "trace"
    scale: Scale = "size"
    axis: int = 0
    index: int | None = None
    component: int | None = None
    window: Window | None = None
    pixels: int = PIXELS

    def __post_init__(self) -> None:
        words: dict[str, tuple[str, tuple[Any, ...]]] = {
            "kind": ("the kind of error", get_args(Kind)), "bits": ("the bits of the campaign", get_args(Bits)),
            "outcome": ("the outcome", OUTCOMES), "budgeted": ("what is budgeted", get_args(Budgeted)),
            "tab": ("the tab", get_args(Tab)), "scale": ("the scale of the difference", get_args(Scale)),
        }
        if not is_free(self.codec):   # which codecs there are takes milliseconds to find out
            words["codec"] = "the codec", (*FREE, *codecs.available())
        numbers = {
            "bit": ("the bit", 0), "count": ("the number of values", 1), "trial": ("the trial", 0), "seed": ("the seed", 0),
            "trials": ("the number of trials", 1), "axis": ("the axis", 0), "pixels": ("pixels", 1),
            "index": ("the slice", 0), "component": ("the component", 0),
        }
        for field, (name, allowed) in words.items():
            one_of(name, getattr(self, field), allowed)
        for field, (name, least) in numbers.items():
            if getattr(self, field) is not None or field not in ("index", "component"):
                object.__setattr__(self, field, whole(name, getattr(self, field), least))
        for field in ("checksums", "twice", "ranges", "finite"):
            object.__setattr__(self, field, flag(field, getattr(self, field)))
        object.__setattr__(self, "bound", positive("the error bound", self.bound))
        if self.tolerance is not None:
            object.__setattr__(self, "tolerance", positive("the tolerance", self.tolerance))
        if self.protect is not None:
            none = isinstance(self.protect, list | tuple) and not self.protect
            object.__setattr__(self, "protect", () if none else listed("the protected sites", self.protect))
        object.__setattr__(self, "window", checked_window(self.window))

    @classmethod
    def for_(cls, run: Run, **choices: Any) -> PropagationState:
        """The initial state for this run: a flip in the exponent at the first site."""
        first = run.pipeline.sites[0]
        state = with_choices(cls(first, first), choices)
        if "look" not in choices and state.site in run:
            state = replace(state, look=state.site)
        if "bit" not in choices and state.site in run:
            state = replace(state, bit=telling_bit(number_format(run, state.site)))
        return state

    def check(self, run: Run) -> None:
        """Raise if this run has no such site, or its values no such bit."""
        for site in (self.site, self.look, *(self.protect or ())):
            require_known("site", site, run.pipeline.sites)
        if self.kind in IN_BITS:
            numbers = number_format(run, self.site)
            if self.bit >= numbers.bits:
                raise WorkbenchError(
                    f"the bit must be from 0 to {numbers.bits - 1}, as {self.site} holds {numbers.name}; got {self.bit}"
                )
        self.perturbation.check(run[self.site])

    @property
    def perturbation(self) -> Perturbation:
        """The error that is put in."""
        if self.kind == "compression":
            return Bounded(self.site, Relative(self.bound), self.codec)
        if self.kind == "noise":
            return Noise(self.site, self.bound, unit="range")
        if self.kind == "flip":
            return BitFlip(self.site, bit=self.bit, count=self.count)
        return StuckAt(self.site, bit=self.bit, count=self.count, to=int(self.kind[-1]))

    @property
    def fault(self) -> Fault:
        """What a campaign tries; it draws bits, so another kind of error has none."""
        if self.kind == "compression" or self.kind == "noise":
            raise WorkbenchError(f"a campaign tries faults in bits; got {self.kind}: choose a bit flip or a stuck bit")
        return self.kind

    @property
    def protections(self) -> tuple[Protection, ...]:
        """What protects the analysis, in the order in which it is applied."""
        chosen: dict[Protection, bool] = {
            "checksums": self.checksums, "twice": self.twice, "range": self.ranges, "finite": self.finite,
        }
        return tuple(name for name, there in chosen.items() if there)

    @property
    def protection(self) -> ChosenProtection:
        """What protects the analysis, and where; no sites are named where nothing is protected."""
        return self.protections, self.protect if self.protections else None

    @property
    def error(self) -> tuple[Any, ...]:
        """What the result of the perturbation depends on."""
        return self.perturbation, self.seed, self.trial, self.protection

    @property
    def campaign(self) -> CampaignChoices:
        """What the result of a campaign depends on."""
        return CampaignChoices(self.kind, self.bits, self.trials, self.seed, self.protection, self.tolerance)

    @property
    def sweep(self) -> tuple[Any, ...]:
        """What the result of a sweep of the bound depends on."""
        return "sweep", self.site, self.codec, self.tolerance

    @property
    def budget(self) -> tuple[Any, ...]:
        """What a budget depends on."""
        return "budget", self.budgeted, self.codec, self.tolerance

    def cut(self, component: int, index: int) -> Cut:
        """The visible part of a field, at this slice of this component."""
        return Cut(self.axis, index, component, self.window, self.pixels)


def number_format(run: Run, site: str) -> NumberFormat:
    """The format of the numbers at a site."""
    return NumberFormat.of(run[site].dtype)


def telling_bit(numbers: NumberFormat) -> int:
    """A bit whose flip is seen but does not overflow: low in the exponent, or high among the bits of a whole number.

    >>> telling_bit(NumberFormat.of("f4")), telling_bit(NumberFormat.of("i8"))
    (26, 31)
    """
    exponent = numbers.fields.get("exponent")
    return exponent.start + 3 if exponent else numbers.bits // 2 - 1 if numbers.bits > 1 else 0
