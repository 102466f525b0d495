"""Which faults harm a language model: bits, layers, sites, formats of numbers, prompt and generation, kinds of text.

The questions are those of LLMFI (arXiv 2606.02430), asked by campaigns: each fault is a stratum, and what several strata
have in common, such as their layer, is counted together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from workbench.arguments import one_of
from workbench.errors import WorkbenchError
from workbench.propagation import bits as of_bits
from workbench.propagation.bits import BitFlip
from workbench.propagation.campaign import CampaignPlan
from workbench.propagation.campaign_file import CampaignFile, identity_of
from workbench.propagation.campaign_result import HARMFUL, Campaign
from workbench.propagation.draws import draws_of
from workbench.propagation.intervals import Rate, clopper_pearson
from workbench.propagation.language.model import LanguageModel
from workbench.propagation.language.pipeline import LanguagePipeline
from workbench.propagation.language.quality import divergence, same_tokens
from workbench.propagation.names import require_known
from workbench.propagation.number_format import NumberFormat
from workbench.propagation.protected import Guarded
from workbench.propagation.protection import Range
from workbench.propagation.strata import name_of
from workbench.propagation.trials import OUTCOMES, Outcome

TASKS: Mapping[str, str] = {
    "question": "What is the capital of France? Answer in one sentence.",
    "arithmetic": "Tom has 3 apples and buys 4 more. How many apples does he have now?",
    "translation": "Translate to Spanish: Good morning, my friend.",
    "code": "Write a Python function that returns the sum of two numbers.",
}   # small ones, which a model of 135 million weights can do

SITES = ("q", "k", "values", "attention", "gate", "up", "down", "")   # where faults are put in unless parts are named
Group = Literal["all", "field", "bits", "layer", "part", "step"]

_SITE = re.compile(r"(?:token (?P<step>\d+) )?block (?P<layer>\d+) ?(?P<part>.*)")


def faults(
    pipeline: LanguagePipeline,
    parts: Collection[str] = SITES,
    layers: Collection[int] | None = None,
    bits: Sequence[str | int] | Literal["each"] = "each",
    steps: Collection[int] = (0,),
    format: str | None = None,
) -> list[BitFlip]:
    """A flip for each of these parts of blocks ("" is the residual stream after a block), layers and bits, or fields.

    `layers` are by default those that the pipeline shows in detail, and `steps` the prompt, which is 0; the others are the
    tokens that the model writes. With `format`, values are rounded to it first, and its bits flip. The order is random, and
    always the same, so the trials of a campaign are a sample of all, even where they are fewer than these.
    """
    chosen = pipeline.layers if layers is None else layers
    prefixes = [f"token {step} " if step else "" for step in steps]
    sites = [f"{prefix}block {layer} {part}".strip() for part in parts for layer in chosen for prefix in prefixes]
    for site in sites:
        require_known("site", site, pipeline.sites)
    each = range(NumberFormat.of("float32", format).bits) if bits == "each" else bits
    found = [BitFlip(site, bit=bit, format=format) for bit in each for site in sites]
    return [found[place] for place in draws_of(0, 0).permutation(len(found))]


def pooled(campaign: Campaign, by: Group) -> dict[Any, dict[Outcome, Rate]]:
    """The shares of all outcomes by field of the bits, bits, layer, part of a block or step, with intervals of 95%.

    The highest bit of an exponent is a field of its own, as most of the harm is done by it. Groups of which no fault was
    tried are left out.
    """
    one_of("by", by, get_args(Group))
    counts: dict[Any, dict[Outcome, int]] = {}
    for stratum, found in zip(campaign.strata, campaign.counts, strict=True):
        own = counts.setdefault(_group(stratum[0], by), dict.fromkeys(OUTCOMES, 0))
        for outcome in OUTCOMES:
            own[outcome] += found[outcome]
    return {
        group: {outcome: clopper_pearson(counts[group][outcome], sum(counts[group].values())) for outcome in OUTCOMES}
        for group in sorted(counts, key=_order) if any(counts[group].values())
    }


def harmful(rates: Mapping[Outcome, Rate]) -> Rate:
    """The share of harmful outcomes (silent, detected or crash) in a group of `pooled`, with its interval.

    >>> print(harmful({outcome: clopper_pearson(outcome == "silent", 4) for outcome in OUTCOMES}))
    0.250 [0.006, 0.806] in 4 trials
    """
    trials = rates["silent"].trials
    return clopper_pearson(round(sum(rates[outcome].estimate for outcome in HARMFUL) * trials), trials)


def _order(group: Any) -> tuple[bool, int, str]:
    """Numbers by size, before words."""
    return isinstance(group, str), 0 if isinstance(group, str) else group, str(group)


def _group(perturbation: Any, by: Group) -> Any:
    if by == "all":
        return "all"
    if by == "bits":
        return perturbation.bit if isinstance(perturbation.bit, int) else name_of(perturbation)
    if by == "field":
        numbers = NumberFormat.of("float32", perturbation.format)
        (top,) = numbers.fields["exponent_top"]
        if perturbation.bit == top:
            return "exponent_top"
        return numbers.field_of(perturbation.bit) if isinstance(perturbation.bit, int) else name_of(perturbation)
    found = _SITE.fullmatch(perturbation.site)
    if found is None:
        return perturbation.site
    if by == "part":
        return found["part"] or "residual stream"
    return int(found[by] or 0)


def recorded(path: str | Path, model: LanguageModel) -> CampaignPlan:
    """The campaign of a language model that a file holds, to be run again: it has the same trials and outcomes."""
    file = Path(path)
    identity = identity_of(file)
    made = identity.get("made", {})
    if "model" not in made:
        raise WorkbenchError(f"{file} must hold a campaign of a language model; it holds one of {identity['pipeline']!r}")
    if made["model"] != model.digest:
        raise WorkbenchError(
            f"{file} holds a campaign of the model {identity['pipeline']!r}, digest {made['model']}; got another one, with "
            f"{model.digest}: give that model"
        )
    measures = {maker(identity["limit"]).name: maker(identity["limit"]) for maker in (same_tokens, divergence)}
    if identity["tolerance"] not in measures or None in made["ranges"].values():
        what = "a tolerance" if identity["tolerance"] not in measures else "checks"
        raise WorkbenchError(f"{file} must state all of its campaign; it has {what} of a kind that a file cannot hold")
    options = {name: made[name] for name in ("layers", "weights", "new_tokens", "last")}
    pipeline = model.pipeline(**options)
    if made["ranges"]:
        pipeline = pipeline.like(checks={site: (Guarded(Range(*ends)),) for site, ends in made["ranges"].items()})
    strata = [[_perturbation(each) for each in stratum] for stratum in identity["strata"]]
    count = len(CampaignFile(file, identity).read())
    return CampaignPlan(
        pipeline, made["tokens"], strata, identity["seed"], count, tolerance=measures[identity["tolerance"]]
    )


def _perturbation(stated: Mapping[str, Any]) -> Any:
    options = dict(stated)
    kind = getattr(of_bits, str(options.pop("kind")), None)
    if kind is None:
        raise WorkbenchError(f"a campaign is made again from its file if it flips bits; got {json.dumps(stated)}")
    return kind(**options)
