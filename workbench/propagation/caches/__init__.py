"""Caches of keys and values of language models: coded within bounds, as published, compared, and stored."""

from workbench.propagation.caches.baselines import baseline_cache
from workbench.propagation.caches.comparison import CacheComparison, CacheFigures, compare_caches
from workbench.propagation.caches.kv_cache import KVCache
from workbench.propagation.caches.sharing import CacheBudget, cache_budget
from workbench.propagation.caches.stored import cache_from_dataset, cache_to_dataset

__all__ = [
    "CacheBudget", "CacheComparison", "CacheFigures", "KVCache", "baseline_cache", "cache_budget", "cache_from_dataset",
    "cache_to_dataset", "compare_caches",
]
