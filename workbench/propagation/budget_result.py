"""The result of a budget: bounds for sites, what they save, and what is certain of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.charts.table import html_table
from workbench.guarantees import Absolute
from workbench.json_values import json_value
from workbench.propagation.certification import Holds
from workbench.propagation.dose import Dose
from workbench.propagation.perturbation import Perturbation
from workbench.propagation.report import figure

ALONE = (
    "tuned to this field alone: a new field of the kind may break it (in tests on Gaussian fields, 9 to 92% of them did,"
    " by up to 5.5 times the tolerance); give several fields for bounds that hold on others"
)


@dataclass(frozen=True, eq=False, repr=False)
class Budget:
    """A bound for each site that `wb.compress` takes, and the damage of all of them together, measured on the full data.

    `ratio` is that of all sites together. `single` is the damage of each site alone, and `additivity` that of all together
    over the sum of these: 1 where damages add, less where they partly cancel. Of several fields, these are of the first.

    `promise` says what the bounds are good for. From several fields, `holds` says on which share of such fields they hold,
    `damage` is the largest that was measured, and `price` the size of the first field's archive over that with bounds tuned
    to a single field. From one field, `holds` is None: nothing is certain of others. Where other reductions than bounds
    were asked for, `reductions` are these, and bounds are their levels.
    """

    bounds: Mapping[str, Absolute]
    ratio: float
    ratios: Mapping[str, float]
    damage: float
    additivity: float
    single: Mapping[str, float]
    curves: Mapping[str, tuple[Dose, ...]]
    tolerance: str
    holds: Holds | None = None
    price: float = 1.0
    reductions: Mapping[str, Perturbation] = field(default_factory=dict)

    @property
    def promise(self) -> str:
        """What the bounds are good for, as a sentence."""
        if self.holds is None:
            return ALONE
        return f"{self.holds}. The archive is {self.price:.3g} times as large as with bounds tuned to one field"

    def to_dict(self) -> dict[str, Any]:
        """The budget as JSON types."""
        sites = {
            site: {"bound": bound.to_dict(), "ratio": self.ratios[site], "damage_alone": self.single[site]}
            | ({"reduction": self.reductions[site].to_dict()} if self.reductions else {})
            for site, bound in self.bounds.items()
        }
        return json_value({
            "tolerance": self.tolerance, "damage": self.damage, "ratio": self.ratio, "additivity": self.additivity,
            "sites": sites, "promise": self.promise, "price": self.price,
            "holds": None if self.holds is None else vars(self.holds),
        })

    def __repr__(self) -> str:
        bounds = ", ".join(map(repr, self.reductions.values())) if self.reductions else ", ".join(
            f"{site}: {bound.eb:.3g}" for site, bound in self.bounds.items()
        )
        damage = f"damage {'' if self.holds is None else 'at most '}{self.damage:.2f} of 1"
        return f"Budget({bounds}; ratio {self.ratio:.2f}, {damage}: {self.tolerance}; {self.promise})"

    def _repr_html_(self) -> str:
        made: Mapping[str, Any] = self.reductions or {site: f"{bound.eb:.6g}" for site, bound in self.bounds.items()}
        rows = [[site, str(made[site]), figure(self.ratios[site]), figure(self.single[site])] for site in self.bounds]
        rows.append(["all", "", figure(self.ratio), figure(self.damage)])
        what = "reduction" if self.reductions else "absolute bound"
        return html_table(["site", what, "ratio", "damage"], rows, title=repr(self))
