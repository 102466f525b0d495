"""What can go wrong at a site, as frozen values: a perturbation turns the array there into another one.

A perturbation never writes into the array that it is given. What it leaves open (which value, which bit) is drawn from the
generator of the trial; `drawn` returns the same perturbation with nothing left open, which can be pasted into a script.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.backend import Array
from workbench.errors import WorkbenchError
from workbench.propagation.error_sizes import change_of
from workbench.propagation.stage import Where


@dataclass(frozen=True, eq=False)
class Changed:
    """An array after a perturbation: where it may differ (flat indices; None: anywhere), and what was done."""

    values: Array
    where: Where = None
    notes: Sequence[Mapping[str, Any]] = field(default_factory=tuple)


@dataclass(frozen=True)
class Perturbation(ABC):
    """A change of the array at one site."""

    site: str

    def __post_init__(self) -> None:
        if not isinstance(self.site, str) or not self.site:
            raise WorkbenchError(f"{type(self).__name__} needs the name of a site; got {self.site!r}")

    @abstractmethod
    def check(self, values: Array) -> None:
        """Refuse arrays to which this perturbation cannot be applied."""

    @abstractmethod
    def apply(self, values: Array, draws: np.random.Generator | None = None, box: Any = None) -> Changed:
        """The changed array. `draws` decides what is left open; `box` is that of the site, if it holds positions."""

    def drawn(self, values: Array, draws: np.random.Generator, box: Any = None) -> tuple[Perturbation, ...]:
        """The perturbation, or several single ones, with all random choices made."""
        return (self,)

    def radius(self, values: Array, changed: Array) -> Any:
        """What no value can change by more than: a number, or one for each value. Here, the change itself."""
        return change_of(values, changed)

    def to_dict(self) -> dict[str, Any]:
        """The perturbation, ready for JSON."""
        given = {name: _plain(value) for name, value in self._choices().items()}
        return {"kind": type(self).__name__, "site": self.site, **given}

    def _choices(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        fields = [each for each in dataclasses.fields(self) if each.name != "site"]
        return {each.name: value for each in fields if (value := getattr(self, each.name)) != each.default}

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self._choices().items())
        return f"{type(self).__name__}({self.site!r}{options})"


def require_draws(perturbation: Perturbation, draws: np.random.Generator | None) -> np.random.Generator:
    """The generator, where something is left open."""
    if draws is None:
        raise WorkbenchError(f"{perturbation!r} is random: give draws=draws_of(seed, trial), or choose bit and index")
    return draws


def _plain(value: Any) -> Any:
    return value.to_dict() if hasattr(value, "to_dict") else list(value) if isinstance(value, tuple) else value
