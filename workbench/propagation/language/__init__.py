"""Language models of the llama family, run in NumPy or CuPy, so that every array in them is a site for errors."""

from workbench.propagation.language.cache import Cache, ExactCache, KeyValueCache
from workbench.propagation.language.model import Generation, LanguageModel, language_model

__all__ = ["Cache", "ExactCache", "Generation", "KeyValueCache", "LanguageModel", "language_model"]
