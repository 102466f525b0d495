"""Language models of the llama family, run in NumPy or CuPy, so that every array in them is a site for errors."""

from workbench.propagation.language.cache import Cache, ExactCache, KeyValueCache
from workbench.propagation.language.model import Generation
from workbench.propagation.language.pipeline import LanguagePipeline
from workbench.propagation.language.quality import divergence, divergences, same_tokens, top_agreement
from workbench.propagation.language.study import TASKS, faults, harmful, pooled, recorded
from workbench.propagation.language.token_errors import TokenErrors, token_errors

__all__ = [
    "TASKS",
    "Cache",
    "ExactCache",
    "Generation",
    "KeyValueCache",
    "LanguagePipeline",
    "TokenErrors",
    "divergence",
    "divergences",
    "faults",
    "harmful",
    "pooled",
    "recorded",
    "same_tokens",
    "token_errors",
    "top_agreement",
]
